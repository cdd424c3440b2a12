//! Settings of git that name a program, to be put into hostile repositories.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::TempRepo;

/// Pieces of configuration, each with a name. `%` is a shell line that leaves a mark, and `@` the path of a program that does.
/// Files of the repository have the attributes `filter=x diff=x merge=x` or, where the name says so, `a=b` for `x`.
pub const PROGRAM_SETTINGS: [(&str, &str); 62] = [
    ("fsmonitor", "[core]\nfsmonitor = \"%; false\""),
    ("hooks-path", "[core]\nhooksPath = hooks"),
    ("pager", "[core]\npager = \"%\""),
    (
        "pager-of-commands",
        "[pager]\nstatus = \"%\"\ndiff = \"%\"\nlog = \"%\"\nshow = \"%\"\nls-files = \"%\"",
    ),
    ("editor", "[core]\neditor = \"%; true\""),
    ("sequence-editor", "[sequence]\neditor = \"%\""),
    ("ask-pass", "[core]\naskPass = @"),
    ("ssh", "[core]\nsshCommand = \"%\"\n[remote \"origin\"]\nurl = ssh://evil.invalid/x"),
    ("git-proxy", "[core]\ngitProxy = @\n[remote \"origin\"]\nurl = git://evil.invalid/x"),
    ("alternate-refs", "[core]\nalternateRefsCommand = \"%\""),
    ("attributes-file", "[core]\nattributesFile = evil.attributes\n[filter \"f\"]\nclean = \"%; cat\""),
    ("excludes-file", "[core]\nexcludesFile = /dev/zero"),
    ("worktree", "[core]\nworktree = /etc\nfsmonitor = \"%; false\""),
    ("bare", "[core]\nbare = true\nfsmonitor = \"%; false\""),
    ("external-diff", "[diff]\nexternal = \"%;\""),
    ("textconv", "[diff \"x\"]\ntextconv = \"%; cat\"\ncachetextconv = true"),
    ("driver", "[diff \"x\"]\ncommand = \"%;\""),
    ("driver a=b", "[diff \"a=b\"]\ncommand = \"%;\""),
    ("textconv a=b", "[diff \"a=b\"]\ntextconv = \"%; cat\""),
    ("driver-in-old-form", "[diff.x]\ncommand = \"%;\""),
    ("clean", "[filter \"x\"]\nclean = \"%; cat\""),
    ("smudge", "[filter \"x\"]\nsmudge = \"%; cat\""),
    ("process", "[filter \"x\"]\nprocess = \"%\""),
    ("required", "[filter \"x\"]\nclean = \"%; cat\"\nsmudge = \"%; cat\"\nprocess = \"%\"\nrequired = true"),
    ("clean a=b", "[filter \"a=b\"]\nclean = \"%; cat\"\nrequired"),
    ("process a=b", "[filter \"a=b\"]\nprocess = \"%\"\nsmudge = \"%; cat\""),
    ("merge-driver", "[merge \"x\"]\ndriver = \"%\"\nrecursive = x"),
    ("merge-tool", "[merge]\ntool = x\n[mergetool \"x\"]\ncmd = \"%\"\npath = @"),
    ("diff-tool", "[diff]\ntool = x\nguitool = x\n[difftool \"x\"]\ncmd = \"%\"\npath = @"),
    ("diff-filter", "[interactive]\ndiffFilter = \"%\""),
    ("gpg", "[gpg]\nprogram = @\n[commit]\ngpgSign = true\n[log]\nshowSignature = true"),
    (
        "gpg-ssh",
        "[gpg]\nformat = ssh\n[gpg \"ssh\"]\nprogram = @\ndefaultKeyCommand = \"%\"\n[commit]\ngpgSign = true",
    ),
    (
        "gpg-x509",
        "[gpg]\nformat = x509\n[gpg \"x509\"]\nprogram = @\n[commit]\ngpgSign = true\n[tag]\ngpgSign = true",
    ),
    ("signatures-in-formats", "[format]\npretty = %G?\n[pretty]\np = %G?\n[gpg]\nprogram = @"),
    ("credentials", "[credential]\nhelper = \"!%\"\n[credential \"https://evil.invalid\"]\nhelper = \"!%\""),
    ("pack-objects-hook", "[uploadpack]\npackObjectsHook = @"),
    (
        "remote-programs",
        "[remote \"origin\"]\nurl = .\nuploadpack = \"%;\"\nreceivepack = \"%;\"\nvcs = evil\nproxy = @",
    ),
    (
        "ext-transport",
        "[protocol \"ext\"]\nallow = always\n[protocol]\nallow = always\n[remote \"origin\"]\nurl = \"ext::sh -c @\"",
    ),
    (
        "instead-of",
        "[protocol]\nallow = always\n[url \"ext::sh -c @ \"]\ninsteadOf = https://\n[remote \"origin\"]\nurl = https://x",
    ),
    (
        "promisor",
        "[core]\nrepositoryFormatVersion = 1\n[extensions]\npartialClone = origin\n[remote \"origin\"]\npromisor = true\nurl = .\nuploadpack = \"%;\"",
    ),
    ("include", "[include]\npath = ../evil.config"),
    ("include-if-gitdir", "[includeIf \"gitdir:**\"]\npath = ../evil.config"),
    ("include-if-branch", "[includeIf \"onbranch:**\"]\npath = ../evil.config"),
    ("worktree-config", "[extensions]\nworktreeConfig = true"),
    (
        "aliases",
        "[alias]\nstatus = \"!%\"\ndiff = \"!%\"\nlog = \"!%\"\nadd = \"!%\"\nls-files = \"!%\"\ncat-file = \"!%\"\nx = \"!%\"",
    ),
    (
        "configured-hook",
        "[hook \"evil\"]\ncommand = \"%\"\nevent = pre-commit\nevent = post-index-change\nevent = reference-transaction",
    ),
    ("old-configured-hook", "[hook]\npre-commit = \"%\"\npost-index-change = \"%\""),
    ("trailers", "[trailer \"x\"]\nkey = X\ncommand = \"%\"\ncmd = \"%\"\nifmissing = add"),
    (
        "submodule-update",
        "[submodule \"x\"]\nactive = true\nurl = .\nupdate = \"!%\"\n[submodule]\nrecurse = true",
    ),
    (
        "submodules-shown",
        "[diff]\nsubmodule = diff\nignoreSubmodules = none\n[status]\nsubmoduleSummary = true",
    ),
    (
        "maintenance",
        "[gc]\nauto = 1\nautoDetach = false\nrecentObjectsHook = \"%\"\n[maintenance]\nauto = true\nstrategy = incremental",
    ),
    ("traces", "[trace2]\nnormalTarget = %\neventTarget = %\nperfTarget = %"),
    (
        "mail",
        "[sendemail]\nsendmailCmd = \"%\"\nsmtpServer = @\ntoCmd = @\nccCmd = @\nheaderCmd = @\n[imap]\ntunnel = \"%\"",
    ),
    (
        "browsers",
        "[web]\nbrowser = x\n[browser \"x\"]\ncmd = \"%\"\npath = @\n[help]\nbrowser = x\nformat = web\n[instaweb]\nhttpd = @",
    ),
    ("manuals", "[man]\nviewer = x\n[man \"x\"]\ncmd = \"%\"\npath = @"),
    ("gui-tools", "[guitool \"x\"]\ncmd = \"%\"\n[gui]\npushAfterCommit = \"%\""),
    ("archives", "[tar \"x\"]\ncommand = \"%\"\nremote = true"),
    (
        "http",
        "[http]\nproxy = http://127.0.0.1:9\nsslKey = /dev/zero\ncookieFile = /dev/zero\n[http \"https://x\"]\nproxy = @",
    ),
    (
        "rebase",
        "[rebase]\ninstructionFormat = \"%G?\"\nautoStash = true\n[pull]\nrebase = merges\n[init]\ntemplateDir = hooks",
    ),
    (
        "receive",
        "[receive]\nprocReceiveRefs = refs\n[transfer]\nadvertiseObjectInfo = true\n[core]\nfsmonitorHookVersion = 2",
    ),
    ("help", "[help]\nautoCorrect = immediate\n[alias]\nx2 = \"!%\"\n[completion]\ncommands = x"),
    ("unknown", "[future \"x\"]\nprogram = \"%\"\n[core]\nfutureCommand = \"%\""),
];

/// Hooks of commands that Lathe itself uses.
const HOOKS: [&str; 9] = [
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "post-checkout",
    "post-index-change",
    "post-rewrite",
    "reference-transaction",
    "fsmonitor-watchman",
];

/// Puts one of [`PROGRAM_SETTINGS`] into a repository, with all that makes git obey it. A program that is run leaves a file of
/// the setting's name in `marks`.
pub fn plant_setting(repo: &TempRepo, (name, text): (&str, &str), marks: &Path) {
    let mark = format!("touch {}/{}", marks.display(), name.replace([' ', '='], "-"));
    let write_program = |path: &str| {
        repo.write(path, format!("#!/bin/sh\n{mark}\ncat\n"));
        std::fs::set_permissions(repo.join(path), std::fs::Permissions::from_mode(0o755))
            .expect("a program can be made");
    };
    write_program("evil.sh");
    for hook in HOOKS {
        write_program(&format!("hooks/{hook}"));
    }
    let driver = if name.ends_with("a=b") { "a=b" } else { "x" };
    let attributes = format!("*.txt filter={driver} diff={driver} merge={driver}\n");
    repo.write("evil.attributes", "* filter=f\n");
    repo.write(".git/info/attributes", &attributes);
    repo.write("evil.config", format!("[core]\nfsmonitor = \"{mark}; false\"\n"));
    repo.write(".git/config.worktree", format!("[core]\nfsmonitor = \"{mark}; false\"\n"));
    let text = text.replace("%G?", "\u{1}").replace('%', &mark).replace('\u{1}', "%G?");
    let text = text.replace('@', &repo.join("evil.sh").display().to_string());
    let mut config = std::fs::File::options()
        .append(true)
        .open(repo.join(".git/config"))
        .expect("a repository has a configuration");
    writeln!(config, "{text}").expect("it can be written");
}
