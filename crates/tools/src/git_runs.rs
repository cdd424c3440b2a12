//! Whether a repository's own configuration makes git run a program when it only reads.
//!
//! Some of that the environment of the shell switches off (`core.fsmonitor`, pagers, locks that run hooks); a driver for
//! diffs or a filter has a name of its own, which nothing can switch off for all, so a line that would run one is asked
//! about. The files are read here and not by git: a look must cost next to nothing, and must not run anything itself. Only
//! what the repository brings is looked at: what the user's own configuration names is the user's choice.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use lathe_git::{Setting, parse_settings};
use lathe_workspace::read_regular;

/// Repositories inside that are looked at.
const MODULES: usize = 256;

const MANY: &str = "more repositories inside than are looked at";

/// The program that git would run in this folder, as the configuration names it.
pub fn git_runs(folder: &Path) -> Option<String> {
    let root = folder.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok())?;
    let (mut files, mut open, mut looked) = (Vec::new(), vec![root.to_owned()], 0);
    // A folder that is a repository of its own, known to the index as one commit: git looks into it as well, and into those
    // that are known to it.
    while let Some(tree) = open.pop() {
        looked += 1;
        if looked > MODULES {
            return Some(MANY.to_owned());
        }
        let Some(git) = repository(&tree.join(".git")) else { continue };
        // A work tree beside the first one has the configuration of that one, and may have more of its own.
        let common = led(&git.join("commondir"), b"").map(|path| git.join(path));
        files.extend([git.join("config"), git.join("config.worktree")]);
        files.extend(common.iter().map(|common| common.join("config")));
        for index in indexes(&git) {
            match gitlinks(&index) {
                Some(inner) => open.extend(inner.iter().map(|path| tree.join(path))),
                None => return Some("an index that cannot be read".to_owned()),
            }
        }
        if !modules(&common.unwrap_or(git).join("modules"), &mut files) {
            return Some(MANY.to_owned());
        }
    }
    files
        .iter()
        .filter(|file| file.symlink_metadata().is_ok())
        // What cannot be read, or is no file, may hold anything.
        .find_map(|file| {
            let Some(text) = plain(file) else { return Some(format!("{}", file.display())) };
            named(&text).or_else(|| leaves(&text, file.parent()?, root))
        })
}

/// The setting by which files outside of a work tree are taken for files of it.
fn leaves(text: &str, git: &Path, root: &Path) -> Option<String> {
    let settings = parse_settings(text).ok()?;
    let mut trees = settings.iter().filter(|setting| setting.is("core", "worktree"));
    let root = root.canonicalize().ok()?;
    let is_inside = |setting: &Setting| {
        let place = git.join(setting.value.as_deref().unwrap_or_default());
        place.canonicalize().is_ok_and(|place| place.starts_with(&root))
    };
    trees.any(|setting| !is_inside(setting)).then(|| "core.worktree".to_owned())
}

/// Where the repository of a `.git` is: itself, or where it leads to as a file.
fn repository(dot: &Path) -> Option<PathBuf> {
    if dot.is_dir() {
        return Some(dot.to_owned());
    }
    Some(dot.parent()?.join(led(dot, b"gitdir:")?))
}

/// The path that a file of one line names. Only the end of the line is no part of it, as for git.
fn led(file: &Path, begin: &[u8]) -> Option<PathBuf> {
    const LONG: u64 = 64 << 10;
    let text = read_regular(file, LONG).ok()??;
    let mut path = text.strip_prefix(begin)?;
    if !begin.is_empty() {
        path = path.strip_prefix(b" ").unwrap_or(path);
    }
    while let Some(shorter) = path.strip_suffix(b"\n").or_else(|| path.strip_suffix(b"\r")) {
        path = shorter;
    }
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(path)))
}

/// The index, and those that it may share entries with.
fn indexes(git: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(git).into_iter().flatten().flatten();
    let shared = entries.filter(|entry| entry.file_name().as_bytes().starts_with(b"sharedindex."));
    std::iter::once(git.join("index")).chain(shared.map(|entry| entry.path())).collect()
}

/// The text of a file. A pipe or a device in its place would be waited for, so it is not read.
fn plain(path: &Path) -> Option<String> {
    const LONG: u64 = 4 << 20;
    read_regular(path, LONG).ok()?.map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// The paths of repositories inside the work tree, from the index. None if it cannot be told.
fn gitlinks(index: &Path) -> Option<Vec<PathBuf>> {
    const HEAD: usize = 12;
    const FIXED: usize = 62;
    const LONG: u64 = 256 << 20;
    let Some(bytes) = read_regular(index, LONG).ok()? else { return Some(Vec::new()) };
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (version, count) = (number(4)?, number(8)?);
    // In the newest form a path leans on the one before it; whether there is such an entry is told by its mode alone.
    if version > 3 {
        let mode = 0o160_000u32.to_be_bytes();
        return (!bytes.windows(4).any(|four| four == mode)).then(Vec::new);
    }
    let (mut found, mut at) = (Vec::new(), HEAD);
    for _ in 0..count {
        let mode = number(at + 24)?;
        // Anything else means that the entries are not laid out as they are read here.
        if ![0o100_644, 0o100_755, 0o120_000, 0o160_000, 0o040_000].contains(&mode) {
            return None;
        }
        let extended = version >= 3 && bytes.get(at + 60)? & 0x40 != 0;
        let from = at + FIXED + if extended { 2 } else { 0 };
        let length = bytes.get(from..)?.iter().position(|byte| *byte == 0)?;
        if mode == 0o160_000 {
            found.push(PathBuf::from(std::ffi::OsStr::from_bytes(bytes.get(from..from + length)?)));
        }
        // Entries are filled up with zeros, at least one, to a multiple of eight.
        at += (from - at + length) / 8 * 8 + 8;
    }
    Some(found)
}

/// The configurations of submodules: git looks into them for a status. False if there are more than are looked at.
fn modules(folder: &Path, files: &mut Vec<PathBuf>) -> bool {
    let (mut open, most) = (vec![folder.to_owned()], files.len() + MODULES);
    while let Some(folder) = open.pop() {
        if files.len() >= most {
            return false;
        }
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.join("config").is_file() {
                files.push(path.join("config"));
                open.push(path.join("modules"));
            } else if path.is_dir() {
                open.push(path);
            }
        }
    }
    true
}

/// The first setting that names a program, as `diff.x.textconv`. What cannot be read may name one.
fn named(text: &str) -> Option<String> {
    let Ok(settings) = parse_settings(text) else {
        return Some("a configuration that cannot be read".to_owned());
    };
    settings.iter().find(|setting| runs(setting)).map(|setting| {
        let about =
            setting.about.as_ref().map(|about| format!("{}.", about.to_lowercase())).unwrap_or_default();
        format!("{}.{about}{}", setting.section, setting.key)
    })
}

/// Whether git may run a program because of a setting, though it only reads.
fn runs(setting: &Setting) -> bool {
    let value = setting.value.as_deref().unwrap_or_default();
    match (setting.section.as_str(), setting.key.as_str()) {
        ("diff", "external" | "command" | "textconv") => true,
        ("filter", "clean" | "smudge" | "process") => true,
        ("gpg", "program") | ("log", "showsignature") => true,
        ("format", "pretty") | ("pretty", _) => {
            ["%G", "%-G", "%+G", "% G"].iter().any(|asks| value.contains(asks))
        }
        // An object that is missing would be fetched, and what fetches is a program.
        ("remote", "promisor" | "partialclonefilter" | "uploadpack" | "vcs") => true,
        ("extensions", "partialclone") => true,
        ("core", "alternaterefscommand") => true,
        // Newer versions have hooks in the configuration, which no setting switches off for all.
        ("hook", _) => true,
        // A merge that is shown again is made again.
        ("merge", "driver") | ("diff", "submodule") => true,
        // What is in there is not looked at.
        ("include" | "includeif", "path") => true,
        // Another file is read, and lines of it are printed where they make no sense.
        ("blame", "ignorerevsfile")
        | ("mailmap", "file")
        | ("diff", "orderfile")
        | ("core", "excludesfile" | "attributesfile") => {
            value.starts_with(['/', '~', ':', '%']) || value.split('/').any(|part| part == "..")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn settings_that_name_a_program_are_found_however_they_are_written() {
        for (text, expected) in [
            ("[diff \"x\"]\n\ttextconv = evil\n", Some("diff.x.textconv")),
            ("[DIFF \"x\"] TextConv=evil", Some("diff.x.textconv")),
            ("[diff]\nexternal = evil", Some("diff.external")),
            ("[filter \"a]b\"]\nclean=x", Some("filter.a]b.clean")),
            ("[gpg \"ssh\"]\nprogram = x", Some("gpg.ssh.program")),
            ("[include]\npath = x", Some("include.path")),
            ("[blame]\nignoreRevsFile = /root/.ssh/id_rsa", Some("blame.ignorerevsfile")),
            ("[blame]\nignoreRevsFile = .git-blame-ignore-revs", None),
            ("[core]\nattributesFile = ../x", Some("core.attributesfile")),
            ("[includeIf \"gitdir:x\"]\npath = y", Some("includeif.gitdir:x.path")),
            ("[remote \"o\"]\nurl = x\npromisor = true", Some("remote.o.promisor")),
            ("[extensions]\npartialClone = o", Some("extensions.partialclone")),
            ("[core]\nbare = false\n[user]\nname = x\n[branch \"clean\"]\nremote = o\n", None),
            ("[core]\n# textconv = x\n[diff]\nalgorithm = patience", None),
            // Other spellings that git takes.
            ("\u{feff}[diff \"x\"]\ntextconv = evil", Some("diff.x.textconv")),
            ("[diff\t\"x\"]\ntextconv = evil", Some("diff.x.textconv")),
            ("[core] [diff \"x\"] textconv = evil", Some("diff.x.textconv")),
            ("[core][diff.x]textconv = evil", Some("diff.x.textconv")),
            ("[core]\nbare\n[diff\t \t\"x\"]textconv", Some("diff.x.textconv")),
            ("[hook \"x\"]\ncommand = evil", Some("hook.x.command")),
            ("[core]\nbare = false \\\n[diff]\nexternal = x", None),
            ("[core]\nx = \"[diff]\nexternal = x", Some("a configuration that cannot be read")),
            ("[diff \"x\"", Some("a configuration that cannot be read")),
            ("", None),
        ] {
            assert_eq!(named(text).as_deref(), expected, "{text}");
        }
    }
}
