//! Whether a repository's own configuration makes git run a program when it only reads.
//!
//! Some of that the environment of the shell switches off (`core.fsmonitor`, pagers, locks that run hooks); a driver for
//! diffs or a filter has a name of its own, which nothing can switch off for all, so a line that would run one is asked
//! about. The files are read here and not by git: a look must cost next to nothing, and must not run anything itself. Only
//! what the repository brings is looked at: what the user's own configuration names is the user's choice.

use std::path::{Path, PathBuf};

/// Configurations of submodules that are looked at.
const MODULES: usize = 256;

/// The program that git would run in this folder, as the configuration names it.
pub fn git_runs(folder: &Path) -> Option<String> {
    let git =
        folder.ancestors().map(|above| above.join(".git")).find(|git| git.symlink_metadata().is_ok())?;
    let git = if git.is_dir() { git } else { linked(&git)? };
    // A work tree beside the first one has the configuration of that one, and may have more of its own.
    let common = plain(&git.join("commondir")).map(|path| git.join(path.trim()));
    let mut files = vec![git.join("config"), git.join("config.worktree")];
    files.extend(common.iter().map(|common| common.join("config")));
    modules(&common.unwrap_or(git).join("modules"), &mut files);
    files
        .iter()
        .filter(|file| file.symlink_metadata().is_ok())
        // What cannot be read, or is no file, may hold anything.
        .find_map(|file| plain(file).map_or(Some(format!("{}", file.display())), |text| named(&text)))
}

/// The text of a file. A pipe or a device in its place would be waited for, so it is not read.
fn plain(path: &Path) -> Option<String> {
    const LONG: u64 = 4 << 20;
    std::fs::metadata(path).ok().filter(|found| found.is_file() && found.len() <= LONG)?;
    std::fs::read(path).ok().map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// `.git` as a file: where the repository really is.
fn linked(file: &Path) -> Option<PathBuf> {
    let text = plain(file)?;
    let path = text.strip_prefix("gitdir:")?.trim();
    Some(file.parent()?.join(path))
}

/// The configurations of submodules: git looks into them for a status.
fn modules(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop().filter(|_| files.len() < MODULES) {
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
}

/// The first setting that names a program, as `diff.x.textconv`.
fn named(text: &str) -> Option<String> {
    let mut section = String::new();
    for line in text.lines() {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            let end = header_end(rest)?;
            section = rest.get(..end).unwrap_or("").trim().to_lowercase();
            line = rest.get(end + 1..).unwrap_or("").trim();
        }
        let (key, value) = line.split_once('=').map_or((line, ""), |(key, value)| (key.trim(), value.trim()));
        if key.is_empty() || key.starts_with(['#', ';']) {
            continue;
        }
        let kind = section.split([' ', '"', '.']).next().unwrap_or("");
        let key = key.to_lowercase();
        let runs = match (kind, key.as_str()) {
            ("diff", "external" | "command" | "textconv") => true,
            ("filter", "clean" | "smudge" | "process") => true,
            ("gpg", "program") | ("log", "showsignature") => true,
            ("format", "pretty") => value.contains("%G"),
            ("pretty", _) => value.contains("%G"),
            ("remote", "promisor" | "uploadpack" | "vcs") => true,
            ("core", "alternaterefscommand") => true,
            // What is in there is not looked at.
            ("include" | "includeif", "path") => true,
            _ => false,
        };
        if runs {
            return Some(format!(
                "{}.{key}",
                section.replace([' ', '"'], ".").replace("..", ".").trim_matches('.')
            ));
        }
    }
    None
}

/// Where the header of a section ends; a bracket in quotes does not end it. None for one that does not end.
fn header_end(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    text.char_indices().find_map(|(at, c)| {
        match c {
            _ if std::mem::take(&mut escaped) => {}
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return Some(at),
            _ => {}
        }
        None
    })
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
            ("[includeIf \"gitdir:x\"]\npath = y", Some("includeif.gitdir:x.path")),
            ("[remote \"o\"]\nurl = x\npromisor = true", Some("remote.o.promisor")),
            ("[core]\nbare = false\n[user]\nname = x\n[branch \"clean\"]\nremote = o\n", None),
            ("[core]\n# textconv = x\n[diff]\nalgorithm = patience", None),
            ("", None),
        ] {
            assert_eq!(named(text).as_deref(), expected, "{text}");
        }
    }
}
