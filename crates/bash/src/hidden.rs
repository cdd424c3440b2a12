//! A deletion in the words of a program that is not known as a wrapper: `poetry run rm …`, `docker run -v /:/h x rm
//! …`.
//!
//! There are more programs that run others than any table holds. So the deletion itself is searched for: `rm` with an
//! option, word by word or at the beginning of a text. Programs that only read may have any words.

use crate::script::{SimpleCommand, Word, base_name};
use crate::wrap::{self, InnerCommand};
use crate::{foreign, programs, shells};

/// Programs whose words are examined elsewhere, or are only words: commands of the agent, and programs that print for
/// people.
const SPOKEN: [&str; 22] = [
    "git",
    "lathe",
    "gh",
    "glab",
    "view",
    "write",
    "edit",
    "json_edit",
    "apply_patch",
    "search",
    "glob",
    "list",
    "code",
    "ckg",
    "think",
    "todo",
    "memory",
    "ask",
    "task_done",
    "rm",
    "tee",
    "notify-send",
];

/// The most deletions in the words of one program that are read.
const MOST: usize = 64;

/// The deletions after a program that is not a wrapper by name.
pub(crate) fn hidden_deletions(command: &SimpleCommand) -> Vec<InnerCommand> {
    let Some(name) = command.program_name() else { return Vec::new() };
    if COMPUTES.contains(&name) {
        let words = command.words.iter().skip(1).filter_map(Word::literal);
        return wrap::capped(words.flat_map(subscripts).map(InnerCommand::Text));
    }
    let is_rm =
        |word: &Word| word.literal().is_some_and(|text| deletes(base_name(text)) || begins(text).is_some());
    let lends = is_container(name) && mentions(command);
    if !lends && !command.words.iter().any(is_rm) {
        return Vec::new();
    }
    if SPOKEN.contains(&name) || name.starts_with("field:") || programs::only_reads(&command.words) {
        return Vec::new();
    }
    if is_container(name) {
        return mounted_deletions(command);
    }
    let mut inner = Vec::new();
    for (index, word) in command.words.iter().enumerate() {
        let Some(text) = word.literal() else { continue };
        let rest = || command.words.get(index..).unwrap_or(&[]);
        let next = command.words.get(index + 1).and_then(Word::literal).unwrap_or("");
        match base_name(text) {
            "rimraf" | "del-cli" => {
                let paths = rest().iter().skip(1).cloned();
                inner.push(InnerCommand::Words(
                    ["rm", "-rf"].into_iter().map(Word::text).chain(paths).collect(),
                ));
            }
            _ if index == 0 => {}
            "rm" if is_recursive(rest()) => inner.push(InnerCommand::Words(rest().to_vec())),
            "find" if rest().iter().any(|word| matches!(word.literal(), Some("-delete" | "-exec"))) => {
                inner.push(InnerCommand::Words(rest().to_vec()));
            }
            name if is_language(name)
                && next.starts_with(['-', '+'])
                && (next.ends_with(['c', 'e']) || !shells::shell_words(rest()).texts.is_empty()) =>
            {
                inner.push(InnerCommand::Words(rest().to_vec()));
            }
            _ => inner.extend(begins(text).map(|text| InnerCommand::Text(text.to_owned()))),
        }
        // Each of them may hold all the words that follow.
        if inner.len() > MOST {
            inner.push(InnerCommand::Endless);
            break;
        }
    }
    inner
}

/// Commands of bash that compute the index of an array in their words.
const COMPUTES: [&str; 14] = [
    "unset",
    "let",
    "read",
    "printf",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "mapfile",
    "readarray",
    "test",
    "[",
    "wait",
];

/// The commands in the index of an array: `a[$(x)]`, in any quotes.
pub(crate) fn subscripts(text: &str) -> Vec<String> {
    let inside = |open: &'static str, close: &'static str| {
        let begun = text.match_indices(open).filter_map(move |(at, _)| text.get(at + open.len()..));
        // Without an end after one, there is none after the next.
        begun.map_while(move |rest| rest.find(close).and_then(|end| rest.get(..end))).map(str::to_owned)
    };
    inside("[$(", ")]").chain(inside("[`", "`]")).collect()
}

/// Tells whether a program of this name deletes, or runs a program that does.
fn deletes(name: &str) -> bool {
    matches!(name, "rm" | "find" | "rimraf" | "del-cli") || is_language(name)
}

/// Tells whether an option of a deletion is for folders; `cargo test rm -- x` has none.
fn is_recursive(words: &[Word]) -> bool {
    let mut options = words
        .iter()
        .skip(1)
        .map_while(Word::literal)
        .take_while(|word| word.starts_with('-') && *word != "--");
    options.any(|word| word.contains(['r', 'R']))
}

fn is_language(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "zsh" | "dash" | "python" | "python3" | "perl" | "ruby" | "node")
}

/// A text that begins with a deletion.
fn begins(text: &str) -> Option<&str> {
    let bare = text.trim_start_matches(['!', ' ', '@', ':']);
    (bare.starts_with("rm -") || bare.starts_with("sudo rm -") || bare.starts_with("/bin/rm -"))
        .then_some(bare)
}

fn is_container(name: &str) -> bool {
    matches!(name, "docker" | "podman" | "nerdctl")
}

fn mentions(command: &SimpleCommand) -> bool {
    let deletes = |text: &str| text.contains("rm -") || text.contains("-delete") || text == "rm";
    command.words.iter().filter_map(Word::literal).any(deletes)
}

/// The files that a container deletes in the folders mounted into it, by their names outside.
fn mounted_deletions(command: &SimpleCommand) -> Vec<InnerCommand> {
    let mut lent: Vec<(String, String)> = Vec::new();
    let shown: Vec<String> = command.words.iter().map(Word::show).collect();
    for (index, text) in shown.iter().enumerate() {
        let next = || shown.get(index + 1).map(String::as_str);
        let volume = match text.as_str() {
            "-v" | "--volume" => next(),
            _ => text
                .strip_prefix("--volume=")
                .or_else(|| text.strip_prefix("-v").filter(|rest| rest.contains(':'))),
        };
        if let Some((outside, rest)) = volume.and_then(|volume| volume.split_once(':')) {
            let inside = rest.split(':').next().unwrap_or(rest);
            lent.push((outside.to_owned(), inside.to_owned()));
        }
        let mount = if text == "--mount" { next() } else { text.strip_prefix("--mount=") };
        if let Some(mount) = mount {
            let field = |names: &[&str]| {
                mount.split(',').find_map(|part| {
                    let (name, value) = part.split_once('=')?;
                    names.contains(&name).then(|| value.to_owned())
                })
            };
            lent.extend(field(&["source", "src"]).zip(field(&["target", "dst", "destination"])));
        }
    }
    let words = shown
        .iter()
        .position(|word| matches!(base_name(word), "rm" | "find"))
        .map(|at| shown.get(at..).unwrap_or(&[]).join(" "));
    let texts = shown.iter().filter(|word| word.contains(' ')).flat_map(|word| foreign::shell_lines(word));
    let texts = texts.filter_map(|inner| match inner {
        InnerCommand::Text(text) => Some(text),
        InnerCommand::Words(_) | InnerCommand::Endless => None,
    });
    let lines: Vec<String> = words.into_iter().chain(texts).collect();
    let outside = |line: &str, (outside, inside): &(String, String)| {
        let (inside, find) = (inside.trim_end_matches('/'), line.starts_with("find "));
        let word = |word: &str| match word.strip_prefix(inside) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                Some(format!("{}{rest}", if outside == "/" && !rest.is_empty() { "" } else { outside }))
            }
            // Everything in the container, and so the mounted folders.
            _ if matches!(word, "/" | "/*") => Some(outside.clone()),
            _ => (word.starts_with('-') || find).then(|| word.to_owned()),
        };
        let words: Vec<String> = line.split(' ').skip(1).filter_map(word).collect();
        InnerCommand::Text(format!("{} {}", if find { "find" } else { "rm" }, words.join(" ")))
    };
    wrap::capped(lines.iter().flat_map(|line| lent.iter().map(move |lent| outside(line, lent))))
}

/// `parallel 'rm -rf {}' ::: x`: the text with each of its words.
pub(crate) fn parallel(words: &[Word]) -> Vec<InnerCommand> {
    let shown: Vec<String> = words.iter().skip(1).map(Word::show).collect();
    let literals: Vec<&str> = shown.iter().map(String::as_str).collect();
    let Some(at) = literals.iter().position(|word| word.starts_with(":::")) else { return Vec::new() };
    let Some(text) = literals.iter().take(at).find(|word| word.contains(' ')) else { return Vec::new() };
    let each = |given: &&str| {
        let marks = ["{}", "{.}", "{/}", "{//}", "{1}"];
        let filled = marks.iter().fold((*text).to_owned(), |text, mark| text.replace(mark, given));
        InnerCommand::Text(if filled == **text { format!("{text} {given}") } else { filled })
    };
    wrap::capped(literals.iter().skip(at + 1).filter(|word| !word.starts_with(":::")).map(each))
}
