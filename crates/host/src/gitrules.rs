//! A repository whose own configuration names programs that a harmless git command would run.
//!
//! The rules allow `git status` and its like because they only read. That is not so where the repository's configuration
//! names a file system monitor, a filter or a driver of diffs: git runs those. Such configuration never comes with a clone,
//! but it does with a copied folder. A rule of the project's tier then asks about every git command; it is made here, and
//! like all of that tier it can only tighten.

use std::path::{Path, PathBuf};

use lathe_workspace::{git_plain, git_would_wait};

/// Configurations of submodules that are looked at.
const SUBMODULES: usize = 64;

/// A rule file that asks about git, if there is a reason to.
pub(crate) fn rules(root: &Path) -> Option<String> {
    let why = reason(root)?;
    let why: String =
        why.chars().filter(|c| c.is_ascii_alphanumeric() || " .-_".contains(*c)).take(80).collect();
    Some(format!(
        "[[rule]]\ndecision = \"ask\"\ncommand = \"git\"\nreason = \"git would not only read here: {why}\"\n"
    ))
}

/// The key that names a program.
fn reason(root: &Path) -> Option<String> {
    // Where there is no repository, no process is worth starting.
    root.ancestors().find(|folder| folder.join(".git").exists())?;
    if git_would_wait(root) {
        return Some("a pipe where git reads a file".to_owned());
    }
    let folder = git_plain(root, &["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
    let folder = PathBuf::from(String::from_utf8_lossy(&folder).trim_end_matches('\n'));
    let listed =
        |scope: &str| git_plain(root, &["config", scope, "--includes", "-z", "--list"]).unwrap_or_default();
    let local = listed("--local");
    if let Some(key) = program(&local) {
        return Some(key);
    }
    let has_worktree =
        local.split(|byte| *byte == 0).any(|pair| pair.starts_with(b"extensions.worktreeconfig"));
    if let Some(key) = has_worktree.then(|| program(&listed("--worktree"))).flatten() {
        return Some(key);
    }
    let mut configs = Vec::new();
    submodules(&folder.join("modules"), 0, &mut configs);
    if configs.len() > SUBMODULES {
        return Some("submodules".to_owned());
    }
    configs.iter().find_map(|path| {
        let file = path.to_str()?;
        program(&git_plain(root, &["config", "--file", file, "--includes", "-z", "--list"])?)
    })
}

fn submodules(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten().take(SUBMODULES * 4) {
        let path = entry.path();
        if path.join("HEAD").exists() {
            found.push(path.join("config"));
            submodules(&path.join("modules"), depth + 1, found);
        } else if depth < 8 && entry.file_type().is_ok_and(|kind| kind.is_dir()) && found.len() <= SUBMODULES
        {
            // The name of a submodule may have slashes.
            submodules(&path, depth + 1, found);
        }
    }
}

/// The first key of a listing, as `git config -z` prints it, that names a program a reading command runs.
fn program(listed: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(listed);
    let pairs: Vec<(&str, &str)> = text
        .split('\0')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('\n').unwrap_or((pair, "true")))
        .collect();
    // A repository that has not all of its objects fetches them when it is read.
    let fetches =
        pairs.iter().any(|(key, _)| *key == "extensions.partialclone" || key.ends_with(".promisor"));
    let runs = |(key, value): &&(&str, &str)| {
        let truth = ["", "true", "false", "yes", "no", "on", "off", "0", "1"];
        let (section, name) =
            (key.split('.').next().unwrap_or_default(), key.rsplit('.').next().unwrap_or_default());
        match (section, name) {
            ("core", "fsmonitor") => !truth.contains(&value.to_ascii_lowercase().as_str()),
            ("core", "hookspath") | ("diff", "external" | "command" | "textconv") | ("gpg", "program") => {
                !value.is_empty()
            }
            // Large files are the one filter that repositories commonly have.
            ("filter", "clean" | "smudge" | "process") => !value.is_empty() && !value.starts_with("git-lfs "),
            ("core", "sshcommand" | "gitproxy" | "askpass") | ("credential", "helper") => fetches,
            ("remote", "uploadpack" | "vcs") | ("protocol", "allow") => fetches,
            ("remote" | "url", _) => fetches && (key.contains("ext::") || value.starts_with("ext::")),
            _ => false,
        }
    };
    pairs.iter().find(runs).map(|(key, _)| (*key).to_owned())
}

#[cfg(test)]
mod tests {
    use super::program;

    #[test]
    fn only_a_program_is_a_reason_to_ask() {
        for (listed, expected) in [
            ("core.bare\nfalse\0core.fsmonitor\ntrue\0remote.origin.url\nhttps://x\0", None),
            ("core.fsmonitor\n/tmp/x\0", Some("core.fsmonitor")),
            ("diff.pdf.textconv\npdftotext\0", Some("diff.pdf.textconv")),
            ("diff.a.b.command\nx\0", Some("diff.a.b.command")),
            ("diff.algorithm\nhistogram\0", None),
            ("filter.lfs.clean\ngit-lfs clean -- %f\0filter.lfs.process\ngit-lfs filter-process\0", None),
            ("filter.x.smudge\nsh\0", Some("filter.x.smudge")),
            ("core.sshcommand\nssh -i key\0", None),
            ("remote.o.promisor\ntrue\0core.sshcommand\nssh -i key\0", Some("core.sshcommand")),
            ("remote.o.promisor\ntrue\0remote.o.url\next::sh -c x\0", Some("remote.o.url")),
            ("remote.o.promisor\ntrue\0remote.o.url\nhttps://x\0", None),
            ("gpg.ssh.program\nx\0", Some("gpg.ssh.program")),
        ] {
            assert_eq!(program(listed.as_bytes()).as_deref(), expected, "{listed:?}");
        }
    }
}
