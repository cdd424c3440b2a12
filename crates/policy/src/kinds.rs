//! What sort of act a command or a call is, for rules that ask or deny by `kind`.

use lathe_bash::{Command, normal_words};
use lathe_protocol::{Effects, Kind};

use crate::rules::Call;
use crate::touch::{Touch, What};

/// Programs that look for files or text.
const SEARCHES: [&str; 16] = [
    "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "find", "fd", "fdfind", "locate", "ls", "dir",
    "vdir", "tree", "du",
];

/// Programs that reach other machines.
const FETCHES: [&str; 20] = [
    "curl", "wget", "ssh", "scp", "sftp", "rsync", "ftp", "nc", "ncat", "netcat", "telnet", "socat", "ping",
    "dig", "nslookup", "host", "whois", "aria2c", "http", "https",
];

/// Subcommands of git that change files of the work tree.
const GIT_EDITS: [&str; 18] = [
    "checkout",
    "switch",
    "restore",
    "reset",
    "stash",
    "clean",
    "apply",
    "am",
    "merge",
    "pull",
    "rebase",
    "cherry-pick",
    "revert",
    "read-tree",
    "checkout-index",
    "sparse-checkout",
    "rm",
    "mv",
];

/// Every kind that a command of a line is, as far as its effects are known. Whatever it is, it is executed.
pub(crate) fn of_command(command: &Command, effects: &Effects, touches: &[Touch]) -> Vec<Kind> {
    let mut kinds = vec![Kind::Execute];
    let name = command.program_name().unwrap_or_default();
    let words = normal_words(&command.words);
    let sub = words.get(1).map(String::as_str).unwrap_or_default();
    let has = |word: &str| words.iter().any(|given| given == word);
    let git = |subs: &[&str]| name == "git" && subs.contains(&sub);
    let connects = |touch: &Touch| {
        matches!(&touch.what, What::Path { names, .. } if names.iter().any(|name| {
            name.starts_with("/dev/tcp/") || name.starts_with("/dev/udp/")
        }))
    };
    let edits = !effects.writes.is_empty() || git(&GIT_EDITS);
    let deletes =
        matches!(name, "rm" | "rmdir" | "unlink" | "shred" | "srm" | "trash" | "trash-put" | "rmtrash")
            || (name == "find" && has("-delete"))
            || git(&["rm", "clean"])
            || words.iter().any(|word| word.starts_with("--delete") || word.starts_with("--remove-"));
    let moves = matches!(name, "mv" | "rename" | "prename" | "mmv") || git(&["mv"]);
    let searches = SEARCHES.contains(&name) || git(&["grep", "ls-files"]);
    let fetches = !effects.hosts.is_empty()
        || FETCHES.contains(&name)
        || git(&["fetch", "pull", "push", "clone", "ls-remote"])
        || touches.iter().any(connects);
    let reads = touches.iter().any(|touch| touch.sure && touch.reads) || searches;
    for (is, kind) in [
        (edits, Kind::Edit),
        (deletes, Kind::Delete),
        (moves, Kind::Move),
        (searches, Kind::Search),
        (fetches, Kind::Fetch),
        (reads, Kind::Read),
    ] {
        kinds.extend(is.then_some(kind));
    }
    kinds
}

/// Every kind that a call is: that of its face, and what its effects say. One face may be several tools, and a view through a
/// tool for edits is a view.
pub(crate) fn of_call(call: &Call<'_>) -> Vec<Kind> {
    let effects = call.effects;
    let mut kinds = vec![call.kind];
    kinds.extend(call.kinds);
    kinds.extend((!effects.writes.is_empty()).then_some(Kind::Edit));
    kinds.extend((!effects.hosts.is_empty()).then_some(Kind::Fetch));
    kinds.extend((!effects.reads.is_empty() && !effects.change_something()).then_some(Kind::Read));
    kinds.extend(matches!(call.tool, "search" | "glob" | "list" | "code" | "ckg").then_some(Kind::Search));
    kinds
}
