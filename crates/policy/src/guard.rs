//! Denials that hold whatever rules and modes say, in every spelling that can be seen through.

use std::collections::HashSet;
use std::path::Path;

use lathe_bash::{Piece, RedirectKind, Script, SimpleCommand, Word};
use lathe_protocol::{Decision, Verdict};

use crate::dot_patterns::meanings;
use crate::gate::{Gate, decision, normal};
use crate::git_option::may_be_option;
use crate::losses::{fits as may_mean, text_of, worktrees};
use crate::patterns::glob;
use crate::places::{
    HERE, OVERFLOW, UNKNOWN, Values, VitalPlace, is_all, is_block_device, overflows, parts, vital_place,
};
use crate::sets::simplified;

fn deny(rule: &str, reason: &str) -> Option<Decision> {
    Some(decision(Verdict::Deny, rule, reason))
}

/// The denial of a whole text.
pub(crate) fn script_denial(script: &Script) -> Option<Decision> {
    if script.endless {
        return deny("guard.endless", "it is wrapped in itself too often to be read");
    }
    if !script.bombs.is_empty() || runs_itself(script) {
        return deny("guard.fork-bomb", "it starts itself over and over");
    }
    None
}

/// Tells whether the text that a shell is given starts itself: `$0 | $0 &`.
fn runs_itself(script: &Script) -> bool {
    let own = |command: &&SimpleCommand| {
        matches!(command.words.first().map(|word| &*word.pieces),
            Some([Piece::Variable { name, .. }]) if &**name == "0")
    };
    script.commands.iter().filter(own).count() >= 2
}

/// The folders that a line may be in, and how many of them each command may be in: a command cannot be in a folder
/// that the line enters later.
pub(crate) struct Folders {
    pub(crate) all: Vec<String>,
    counts: Vec<usize>,
}

impl Folders {
    /// The folders that the command with this index may run in.
    pub(crate) fn of(&self, index: usize) -> &[String] {
        let count = self.counts.get(index).copied().unwrap_or(usize::MAX);
        self.all.get(..count).unwrap_or(&self.all)
    }
}

/// Words of lines in which a command may run after one that stands later in the line.
const AGAIN: [&str; 10] =
    ["while", "until", "for", "select", "()", "function", "eval", "trap", "alias", "source"];

pub(crate) fn folders(gate: Option<&Gate>, line: &str, script: &Script, values: &Values<'_>) -> Folders {
    let mut counts = Vec::with_capacity(script.commands.len());
    let values = &Values { line: values.line.or(Some(line)), ..*values };
    let all = each_folder(gate, script, values, |count| counts.push(count));
    // A command that the reading adds to the line, such as the place that a link leads to, comes last in the list.
    let is_put = |command: &SimpleCommand| {
        command.wrapper.is_some() && matches!(command.program_name(), Some("cd" | "pushd"))
    };
    if AGAIN.iter().any(|word| line.contains(word)) || script.commands.iter().any(is_put) {
        counts.clear();
    }
    Folders { all, counts }
}

/// The folders that a line may be in after its `cd`. Reports how many there are before each `cd`, and after each
/// other command.
fn each_folder(
    gate: Option<&Gate>,
    script: &Script,
    values: &Values<'_>,
    mut told: impl FnMut(usize),
) -> Vec<String> {
    let mut folders: Vec<String> = text_of(gate.and_then(|gate| gate.here.as_deref()));
    let mut seen: HashSet<String> = folders.iter().map(|folder| plain(folder)).collect();
    for command in &script.commands {
        if !matches!(command.program_name(), Some("cd" | "pushd" | "popd")) {
            // The commands that `find` starts run elsewhere, and `find` itself does not.
            let stays = (command.program_name() == Some("find")).then_some(folders.len());
            for target in wrapper_folders(command, values) {
                add_folders(gate, &mut folders, &mut seen, &target);
            }
            told(stays.unwrap_or(folders.len()));
            continue;
        }
        told(folders.len());
        let targets: Vec<String> =
            command.words.iter().skip(1).flat_map(|word| values.spellings(word)).collect();
        if targets.is_empty() && command.program_name() == Some("cd") {
            folders.extend(
                values.spellings(&Word { pieces: Piece::Tilde(String::new()).into(), splits: false }),
            );
        }
        // The line does not say where the shell was before, nor what a loop reads.
        let is_back = |target: &String| crate::reach::is_back(target);
        let is_read = || command.words.iter().any(|word| is_read(word, script));
        // `cd p` goes to the folder in the variable `p`, if there is no folder `p`.
        let by_variable = gate.is_some_and(|gate| gate.switched.folder_variables)
            && targets.iter().any(|target| !target.contains('/'));
        let unknown =
            command.program_name() == Some("popd") || by_variable || targets.iter().any(is_back) || is_read();
        for target in targets.into_iter().filter(|target| !target.starts_with('-')) {
            add_folders(gate, &mut folders, &mut seen, &target);
        }
        if unknown {
            add_folders(gate, &mut folders, &mut seen, &UNKNOWN.to_string());
        }
    }
    folders
}

/// Tells whether a word holds a variable that the line reads from somewhere.
fn is_read(word: &Word, script: &Script) -> bool {
    let names = |name: &str| {
        let reads = |command: &&SimpleCommand| {
            matches!(command.program_name(), Some("read" | "mapfile" | "readarray"))
        };
        let mut words = script.commands.iter().filter(reads).flat_map(|command| command.words.iter().skip(1));
        words.any(|word| word.literal() == Some(name))
    };
    word.pieces.iter().any(|piece| match piece {
        Piece::Variable { name, .. } | Piece::Operator { name, .. } => names(name),
        _ => false,
    })
}

/// Adds the folders that a line may be in after it went to another one.
fn add_folders(gate: Option<&Gate>, folders: &mut Vec<String>, seen: &mut HashSet<String>, target: &str) {
    let count = folders.len();
    for target in meanings(target) {
        add_folders_as_spelled(gate, (folders, count), seen, target);
    }
}

/// The first `count` folders are those that the line may be in before.
fn add_folders_as_spelled(
    gate: Option<&Gate>,
    (folders, count): (&mut Vec<String>, usize),
    seen: &mut HashSet<String>,
    target: String,
) {
    if target.starts_with(['/', '~']) || target.starts_with(HERE) {
        folders.extend(by_name_and_by_place(gate, target));
    } else if folders.len() <= FOLDERS {
        let more: Vec<String> = folders.iter().take(count).map(|from| format!("{from}/{target}")).collect();
        let more = more.into_iter().flat_map(|more| by_name_and_by_place(gate, more));
        let more = more.filter(|more| seen.insert(plain(more)));
        folders.extend(more.collect::<Vec<_>>());
    } else {
        folders.push(format!("{UNKNOWN}{OVERFLOW}"));
    }
}

/// The folders that `cd link/..` may lead to: bash removes the last part of the name for `..`, unless it resolves
/// links first (`cd -P`); then it is the folder above the one that the link leads to.
fn by_name_and_by_place(gate: Option<&Gate>, folder: String) -> Vec<String> {
    let climbs = folder.split('/').any(|part| part == "..");
    let Some(gate) = gate.filter(|_| climbs && !folder.contains([UNKNOWN, OVERFLOW])) else {
        return vec![folder];
    };
    let Some(disk) = gate.disk.get() else { return vec![folder] };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let both = |path: &String| [text(&normal(Path::new(path))), text(&disk.real(Path::new(path)))];
    let mut found: Vec<String> = gate.absolute_paths(&folder, &[]).iter().flat_map(both).collect();
    found.dedup();
    found
}

/// The most folders that a line may be in by relative names and that are told apart.
const FOLDERS: usize = 256;

/// A folder without `.` and `..`, to recognise that it is the same as another.
fn plain(folder: &str) -> String {
    let root = if folder.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts(folder).join("/"))
}

/// A command as it may really run: the name of its program and its words.
pub(crate) struct Spelled<'a> {
    pub(crate) name: &'a str,
    pub(crate) words: Vec<&'a str>,
}

/// Every way in which a command may really run, as far as that can be known. The caller keeps the program and the
/// words.
pub(crate) struct Spellings {
    programs: Vec<String>,
    given: Vec<String>,
    count: usize,
}

impl Spellings {
    pub(crate) fn of(command: &SimpleCommand, values: &Values<'_>) -> Self {
        let Some((first, rest)) = command.words.split_first() else {
            return Self { programs: Vec::new(), given: Vec::new(), count: 0 };
        };
        let given = rest.iter().flat_map(|word| values.spellings(word)).collect();
        // The program may come from a variable, with words of its own: `c="rm -rf"; $c /`.
        let programs = Values { may_be_empty: true, ..*values }.spellings(first);
        let variable = first.pieces.iter().any(|piece| !matches!(piece, Piece::Text(_)));
        let count = if variable { programs.len() } else { 1 };
        Self { programs, given, count }
    }

    pub(crate) fn each(&self) -> Vec<Spelled<'_>> {
        let mut each = Vec::new();
        for (index, program) in self.programs.iter().take(self.count).enumerate() {
            let name = program.rsplit('/').next().unwrap_or(program);
            let words: Vec<&str> =
                self.programs.iter().skip(index + 1).chain(&self.given).map(String::as_str).collect();
            // `/bin/r?` may be any program whose name fits.
            if name.contains(['*', '?', '[']) {
                let meant = GUARDED.into_iter().filter(|guarded| fits(name, guarded));
                each.extend(meant.map(|name| Spelled { name, words: words.clone() }));
            }
            each.push(Spelled { name, words });
        }
        each
    }
}

/// The denial of one command, if it is never run.
pub(crate) fn command_denial(
    gate: Option<&Gate>,
    command: &SimpleCommand,
    values: &Values<'_>,
    from: &[String],
) -> Option<Decision> {
    for redirect in command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Write) {
        if let Some(denied) =
            values.spellings(&redirect.word).iter().find_map(|target| written_denial(gate, target, from))
        {
            return Some(denied);
        }
    }
    // Behind walls, no line takes the system or a home folder.
    let guesses = !gate.is_some_and(Gate::has_walls);
    if let Some(words) = crate::unset_variables::words_if_empty(command, values).filter(|_| guesses) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let name = command.program_name().unwrap_or("");
        // With a test, a search may be meant well.
        let narrow = name == "find" && find_parts(&words).narrow;
        if !narrow && destroys(name, &words, &operands(&words), &[]).is_some() {
            return deny(
                "guard.destroy",
                "without a value for its variable it takes the system or a home folder",
            );
        }
    }
    let spellings = Spellings::of(command, values);
    if overflowing(command, &spellings, values, from) {
        let why = "what it changes has more values than can be looked at; name less in one line";
        return deny("guard.endless", why);
    }
    if let Some(denied) = git_loss_denial(gate, &spellings, values, from) {
        return Some(denied);
    }
    spellings.each().iter().find_map(|spelled| {
        let operands = operands(&spelled.words);
        destroys(spelled.name, &spelled.words, &operands, from)
            .or_else(|| {
                crate::harm::write_targets(spelled)
                    .iter()
                    .find_map(|target| written_denial(gate, target, from))
            })
            .or_else(|| gate?.guard_losses(spelled, from))
            .or_else(|| crate::removes::denied(gate, spelled, values, from))
    })
}

/// Tells whether a command changes something that has too many values, or is in too many folders, to be judged one by
/// one.
fn overflowing(command: &SimpleCommand, spellings: &Spellings, values: &Values<'_>, from: &[String]) -> bool {
    let far = from.iter().any(|folder| overflows(folder));
    let words = || spellings.given.iter().chain(&spellings.programs);
    let writes = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Write);
    let many = spellings.programs.len() > PROGRAMS;
    if !many && !far && !words().any(|word| overflows(word)) {
        return writes
            .into_iter()
            .any(|redirect| values.spellings(&redirect.word).iter().any(|to| overflows(to)));
    }
    // Empty files and folders do no harm wherever they are: `touch {a..z}{a..z}{a..z}.txt`.
    let empty = matches!(command.program_name(), Some("touch" | "mkdir"));
    if empty && !far && command.redirects.is_empty() {
        return false;
    }
    let known = |name: &str| GUARDED.contains(&name) || name == "git" || name == "rsync";
    match (command.program_name(), far) {
        (Some(name), true) => known(name),
        (_, true) => false,
        (_, false) => many || command.effects().change_something(),
    }
}

/// The most programs that one word may stand for and that are judged one by one.
const PROGRAMS: usize = 512;

/// The programs that [`destroys`] knows.
const GUARDED: [&str; 12] =
    ["rm", "find", "chmod", "chown", "mv", "dd", "tee", "cp", "shred", "wipefs", "mkfs", "kill"];

/// Tells whether a pattern may mean a name.
fn fits(pattern: &str, name: &str) -> bool {
    glob(&simplified(pattern), name)
}

fn destroys(name: &str, words: &[&str], operands: &[&str], from: &[String]) -> Option<Decision> {
    let places = || operands.iter().filter_map(|operand| vital_place(operand, from));
    match name {
        "rm" | "srm" | "trash" if is_recursive(words) => match places().next()? {
            VitalPlace::Root | VitalPlace::System => deny("guard.destroy", "it deletes the system"),
            VitalPlace::Home => deny("guard.destroy", "it deletes a home folder"),
            VitalPlace::Here => deny("guard.destroy", DELETES_HERE),
            VitalPlace::Git => deny("guard.git", "it deletes the history in .git"),
        },
        "find" => find(words, from),
        "chmod" | "chown" | "chgrp" | "setfacl" if is_recursive(words) => {
            let lost = |place: &VitalPlace| {
                *place == VitalPlace::Root || (name == "chmod" && *place == VitalPlace::Home)
            };
            places().find(lost)?;
            deny("guard.destroy", "it changes who may use the system or a home folder")
        }
        "mv" => {
            let lost =
                moved(words, operands).into_iter().filter_map(|operand| vital_place(operand, from)).next();
            match lost {
                Some(VitalPlace::Git) => deny("guard.git", "it moves the history in .git away"),
                Some(_) => deny("guard.destroy", "it moves the system or a home folder away"),
                None => None,
            }
        }
        "parted" | "cryptsetup" | "sfdisk" | "fdisk" | "cfdisk" | "gdisk"
            if words.iter().any(|word| READS_DISK.contains(word)) =>
        {
            None
        }
        "shred" | "wipefs" | "truncate" | "blkdiscard" | "mkswap" | "badblocks" | "mke2fs" | "newfs"
        | "sgdisk" | "parted" | "cryptsetup" | "sfdisk" | "fdisk" | "cfdisk" | "gdisk" | "pvcreate"
        | "vgcreate" | "pvremove" | "mdadm" | "zpool" | "sg_format" | "sg_sanitize" => {
            operands.iter().find(|target| is_block_device(target))?;
            deny("guard.disk", "it destroys a disk")
        }
        _ if name == "mkfs" || name.starts_with("mkfs.") || name.starts_with("newfs_") => {
            operands.iter().find(|target| is_block_device(target))?;
            deny("guard.disk", "it destroys a disk")
        }
        "nvme" | "hdparm"
            if words.iter().any(|word| {
                matches!(*word, "format" | "sanitize")
                    || word.starts_with("--security")
                    || word.starts_with("--write")
            }) =>
        {
            operands.iter().find(|target| is_block_device(target))?;
            deny("guard.disk", "it destroys a disk")
        }
        "ddrescue" | "dd_rescue" => {
            operands.get(1).filter(|target| is_block_device(target))?;
            deny("guard.disk", "it destroys a disk")
        }
        "dcfldd" | "dc3dd" => {
            words
                .iter()
                .filter_map(|word| word.strip_prefix("of="))
                .find(|target| is_block_device(target))?;
            deny("guard.disk", "it destroys a disk")
        }
        "flashrom" if words.iter().any(|word| matches!(*word, "-w" | "-E" | "--write" | "--erase")) => {
            deny("guard.disk", "it writes over the firmware")
        }
        "kill" => {
            words.iter().skip(1).find(|word| **word == "-1")?;
            deny("guard.kill-all", "it ends every process")
        }
        _ => None,
    }
}

/// The reason of a denial that the walls do not replace.
pub(crate) const DELETES_HERE: &str = "it deletes the folder it runs in";

/// Words with which programs for disks only read.
const READS_DISK: [&str; 14] = [
    "-l", "--list", "print", "-d", "--dump", "-J", "--json", "status", "luksDump", "isLuks", "luksUUID",
    "open", "luksOpen", "close",
];

/// The denial of git that deletes or overwrites all files of the system, of a home folder or of a folder above the
/// workspace.
fn git_loss_denial(
    gate: Option<&Gate>,
    spellings: &Spellings,
    values: &Values<'_>,
    from: &[String],
) -> Option<Decision> {
    for spelled in spellings.each().iter().filter(|spelled| spelled.name == "git") {
        let words = spelled.words.as_slice();
        let has = |options: &[&str]| words.iter().any(|word| may_be_option(word, options));
        let sub = |name: &str| words.contains(&name);
        let loses = (sub("clean") && has(&["-f", "--force"]))
            || (sub("checkout") && has(&["-f", "--force"]))
            || (sub("reset") && has(&["--hard"]))
            || (sub("rm") && is_recursive(words));
        if !loses {
            continue;
        }
        let mut folders: Vec<String> = worktrees(words).into_iter().map(str::to_owned).collect();
        let named = values.assigned.get("GIT_WORK_TREE").into_iter().flatten();
        folders.extend(named.flat_map(|word| values.spellings(word)));
        // The line goes there first, and nowhere else.
        if let ([_, there], true) = (from, folders.is_empty()) {
            folders.push(there.clone());
        }
        let lost = |folder: &String| {
            let whole = matches!(
                vital_place(folder, from),
                Some(VitalPlace::Root | VitalPlace::System | VitalPlace::Home)
            );
            whole
                || gate.is_some_and(|gate| {
                    gate.resolve(folder, from).iter().any(|path| gate.holds_home_or_workspace(path))
                })
        };
        if folders.iter().any(lost) {
            return deny("guard.destroy", "it deletes files of the system or a home folder");
        }
    }
    None
}

/// The denial of a write to a file, by its spelling and from each folder the line may be in.
fn written_denial(gate: Option<&Gate>, target: &str, from: &[String]) -> Option<Decision> {
    if is_block_device(target) {
        return deny("guard.disk", "it destroys a disk");
    }
    let gate = gate?;
    let paths = std::iter::once(target.to_owned()).chain(gate.resolve(target, from));
    paths.into_iter().find_map(|path| {
        // A pattern may mean it too.
        let hidden = gate.switched.hidden_names;
        let is_git = |part: &&str| part.contains(['*', '?', '[']) && may_mean(part, ".git", hidden);
        let git = parts(&path).iter().any(is_git);
        gate.guarded_write(if git { ".git" } else { &path })
    })
}

/// The files that `mv` moves away: its operands, without their target (`mv a b`, `mv -t b a`).
pub(crate) fn moved<'a>(words: &[&'a str], operands: &[&'a str]) -> Vec<&'a str> {
    let glued = |word: &str| {
        word.starts_with("-t") && word.len() > 2 || word.starts_with("--t") && word.contains('=')
    };
    let named = |word: &str| {
        let short = word.starts_with('-') && !word.starts_with("--") && word.ends_with('t');
        short || (word.starts_with("--t") && !word.contains('='))
    };
    let target = words.windows(2).find(|pair| named(pair[0])).map(|pair| pair[1]);
    let mut moved: Vec<&str> = operands.iter().copied().filter(|word| Some(*word) != target).collect();
    if target.is_none() && moved.len() > 1 && !words.iter().any(|word| glued(word)) {
        moved.pop();
    }
    moved
}

pub(crate) fn operands<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut ended = false;
    words
        .iter()
        .copied()
        .filter(|word| {
            if *word == "--" && !ended {
                ended = true;
                return false;
            }
            ended || !word.starts_with('-')
        })
        .collect()
}

/// Tells whether the options include `-r`, `-R`, `-fr`, `--recursive` or an abbreviation of it.
pub(crate) fn is_recursive(words: &[&str]) -> bool {
    words.iter().take_while(|word| **word != "--").any(|word| match word.strip_prefix("--") {
        Some(long) => !long.is_empty() && "recursive".starts_with(long),
        None => word.starts_with('-') && word.contains(['r', 'R']),
    })
}

/// The parts of a `find` command.
pub(crate) struct FindParts<'a> {
    pub(crate) starts: Vec<&'a str>,
    pub(crate) deletes: bool,
    /// True if it has each file overwritten or its mode changed.
    spoils: bool,
    /// True if a test keeps it from selecting everything.
    pub(crate) narrow: bool,
}

pub(crate) fn find_parts<'a>(words: &[&'a str]) -> FindParts<'a> {
    let expression = |word: &&str| word.starts_with(['-', '(', '!']);
    let option = |word: &&&str| matches!(**word, "-H" | "-L" | "-P" | "-D") || word.starts_with("-O");
    let options = words.iter().take_while(option).count();
    let starts = words.iter().skip(options).take_while(|word| !expression(word)).copied().collect();
    let remove = |word: &&str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        matches!(name, "rm" | "shred" | "unlink" | "srm" | "rmdir" | "mv" | "truncate")
            || word.split([' ', ';', '&', '|']).any(|part| part == "rm" || part.ends_with("/rm"))
    };
    let executes = words.iter().position(|word| matches!(*word, "-exec" | "-execdir" | "-ok" | "-okdir"));
    let executed = executes.and_then(|at| words.get(at..)).unwrap_or(&[]);
    let deletes = words.contains(&"-delete") || executed.iter().any(remove);
    let spoil = |word: &&str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        matches!(name, "cp" | "dd" | "tee" | "ln" | "install" | "chmod" | "chown" | "chattr")
            || (matches!(name, "sed" | "perl") && executed.iter().any(|word| word.starts_with("-i")))
    };
    let spoils = executed.get(1).is_some_and(spoil);
    let narrow = words.windows(2).any(|pair| {
        let named = ["-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-lname"];
        (named.contains(&pair[0]) && !is_all(pair[1]))
            || ["-size", "-user", "-group", "-perm", "-inum", "-newer", "-anewer", "-cnewer"]
                .contains(&pair[0])
            || pair[0].ends_with("time")
            || pair[0].ends_with("min")
    }) || words.contains(&"-empty");
    FindParts { starts, deletes, spoils, narrow }
}

fn find(words: &[&str], from: &[String]) -> Option<Decision> {
    let found = find_parts(words);
    if found.deletes && crate::harm::seeks_git(words) {
        return deny("guard.git", "it deletes the history in .git");
    }
    let mut places: Vec<VitalPlace> =
        found.starts.iter().filter_map(|start| vital_place(start, from)).collect();
    if found.starts.is_empty() {
        places.extend(from.iter().filter_map(|from| vital_place(".", std::slice::from_ref(from))));
    }
    // With a test, a search through a folder of the system may be meant well; from the root or a home folder it never
    // is.
    let lost = places.iter().any(|place| match place {
        VitalPlace::Root | VitalPlace::Home => true,
        VitalPlace::System | VitalPlace::Here | VitalPlace::Git => !found.narrow,
    });
    let whole = || places.iter().any(|place| matches!(place, VitalPlace::Root | VitalPlace::Home));
    if found.deletes && lost {
        return deny("guard.destroy", "it deletes what it finds in the system or a home folder");
    }
    if found.spoils && !found.narrow && whole() {
        return deny("guard.destroy", "it changes every file it finds in the system or a home folder");
    }
    None
}

/// The folder that a wrapper enters before it runs something: `env -C / x`.
fn wrapper_folders(command: &SimpleCommand, values: &Values<'_>) -> Vec<String> {
    let options: &[&str] = match command.program_name() {
        Some("env") => &["-C", "--chdir"],
        Some("sudo") => &["-D", "--chdir", "-R", "--chroot"],
        Some("unshare" | "nsenter") => &["-w", "--wd", "-R", "--root"],
        Some("systemd-run") => &["--working-directory"],
        Some("find") => return found_folders(command, values),
        _ => return Vec::new(),
    };
    let words: Vec<String> = command.words.iter().skip(1).flat_map(|word| values.spellings(word)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    crate::harm::option_values(&words, options).into_iter().map(str::to_owned).collect()
}

/// The folders in which `find / -execdir x` runs its command: those where it finds files.
fn found_folders(command: &SimpleCommand, values: &Values<'_>) -> Vec<String> {
    let words: Vec<String> = command.words.iter().skip(1).flat_map(|word| values.spellings(word)).collect();
    let dir = words.iter().any(|word| word == "-execdir" || word == "-okdir");
    let starts = words.iter().take_while(|word| !word.starts_with(['-', '(', '!']));
    let starts: Vec<String> = starts.filter(|_| dir).cloned().collect();
    let beneath: Vec<String> = starts.iter().map(|start| format!("{start}/{UNKNOWN}")).collect();
    starts.into_iter().chain(beneath).collect()
}

/// The words of a command in the form that people read.
pub(crate) fn shown_words(words: &[Word]) -> Vec<String> {
    words.iter().map(Word::show).collect()
}
