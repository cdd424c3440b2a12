//! Parts of a repository that are gone or damaged while the rest of it is whole. Only these are restored, and the
//! other effects of the line stay.
//!
//! Only parts that git itself never removes count. Git drops a name together with its reflog, a work tree together
//! with its entry, a remote together with its names, and never `packed-refs`. Names that are gone together with their
//! reflogs are a deleted branch or a dropped stash.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use lathe_git::ContentRules;

use crate::git::Git;
use crate::health::{all_names as names, is_head, is_oid, lacks};
use crate::layout::{packed_refs, read_small};

/// The file of names that git packed.
const PACKED: &str = "packed-refs";

/// The file of commits whose parents were left out, and the file that names other object folders.
const SHALLOW: &str = "shallow";
const ALTERNATES: &str = "objects/info/alternates";

/// The lost parts, each by its path in the repository.
pub(crate) fn find_lost(path: &Path, copy: &Path) -> Vec<String> {
    let is_gone = |rel: &str| is_there(copy, rel) && !is_there(path, rel);
    let mut lost: Vec<String> = ["description", "config.worktree", "logs/HEAD"].map(str::to_owned).into();
    for folder in ["hooks", "info"] {
        if copy.join(folder).is_symlink() {
            lost.push(folder.to_owned());
        }
        for name in entries(&copy.join(folder)) {
            // Git writes these two for servers that cannot list folders, and may stop writing them.
            if !name.ends_with(".sample") && !matches!(name.as_str(), "refs" | "packs") {
                lost.push(format!("{folder}/{name}"));
            }
        }
    }
    lost.retain(|rel| is_gone(rel));
    lost.extend(work_trees(path, copy));
    lost.extend(lost_config(path, copy).then(|| "config".to_owned()));
    lost.extend(lost_shallow(path, copy).then(|| SHALLOW.to_owned()));
    lost.extend((is_gone(ALTERNATES) && lacks(path, oids(copy))).then(|| ALTERNATES.to_owned()));
    let has_lost_packed = lost_packed(path, copy);
    lost.extend(has_lost_packed.then(|| PACKED.to_owned()));
    lost.extend(lost_names(path, copy, has_lost_packed, false));
    // The line did more than run git. Then it cannot be decided which of the other missing parts git removed. Git
    // keeps these folders even if they are empty.
    if !lost.is_empty() || ["refs/heads", "refs/tags", "refs/remotes"].into_iter().any(is_gone) {
        lost.extend(lost_names(path, copy, has_lost_packed, true));
        lost.extend(entries(copy).into_iter().filter(|name| is_gone(name) && !is_transient(name)));
    }
    lost.retain(|rel| is_inside(copy, rel));
    lost.sort();
    lost.dedup();
    // Parts in a folder that is restored are restored with it.
    let all: HashSet<PathBuf> = lost.iter().map(PathBuf::from).collect();
    lost.retain(|rel| !Path::new(rel).ancestors().skip(1).any(|above| all.contains(above)));
    lost
}

/// Tells whether git removes a part when an operation ends.
fn is_transient(name: &str) -> bool {
    let starts = ["MERGE_", "BISECT_", "NOTES_MERGE_", "rebase-"];
    let others = ["AUTO_MERGE", "SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "sequencer"];
    starts.iter().any(|start| name.starts_with(start))
        || others.contains(&name)
        || matches!(name, PACKED | SHALLOW | "worktrees" | "gc.log")
}

/// Tells whether names that would be restored lead to nothing any more: their objects must be restored with them.
pub(crate) fn is_dangling(path: &Path, copy: &Path, lost: &[String]) -> bool {
    let is_lost = |name: &str| lost.iter().any(|part| part == name);
    if !lost.iter().any(|part| part == PACKED || part.starts_with("refs/")) {
        return false;
    }
    let has_lost_packed = is_lost(PACKED);
    let back = names(copy).into_iter().filter(|(name, _)| has_lost_packed || is_lost(name));
    lacks(path, back.map(|(_, oid)| oid))
}

/// Moves only these parts of a copy to a folder of their own.
pub(crate) fn move_parts(copy: &Path, parts: &[String], to: &Path) -> io::Result<()> {
    let names = names(copy);
    for part in parts {
        let to = to.join(part);
        fs::create_dir_all(to.parent().unwrap_or(&to))?;
        // A single name that was packed is restored as a file of its own: the other packed names may be newer.
        let packed = names.iter().find(|(name, _)| name == part).filter(|_| !is_there(copy, part));
        match packed {
            Some((_, oid)) => fs::write(to, format!("{oid}\n"))?,
            None => fs::rename(copy.join(part), to)?,
        }
    }
    Ok(())
}

fn is_there(folder: &Path, rel: &str) -> bool {
    folder.join(rel).symlink_metadata().is_ok()
}

/// Tells whether a path stays in a folder: a repository may name anything in its files, and its folders may be links.
fn is_inside(folder: &Path, rel: &str) -> bool {
    let rel = Path::new(rel);
    rel.components().all(|part| matches!(part, Component::Normal(_)))
        && rel.ancestors().skip(1).all(|above| !folder.join(above).is_symlink())
}

fn entries(folder: &Path) -> Vec<String> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    found.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Tells whether `packed-refs` is gone or damaged. Git never removes this file, even if it has no names, and begins
/// it with a comment line.
fn lost_packed(path: &Path, copy: &Path) -> bool {
    let begins = |text: &[u8]| text.starts_with(b"#");
    let Ok(was) = packed_refs(copy) else { return false };
    let had_names = was.split(|byte| *byte == b'\n').any(|line| !line.is_empty() && !begins(line));
    let is_spoiled = match packed_refs(path) {
        Ok(now) => begins(&was) && !begins(&now),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    had_names && is_spoiled && !is_there(path, "reftable")
}

fn oids(folder: &Path) -> impl Iterator<Item = String> {
    names(folder).into_iter().map(|(_, oid)| oid)
}

/// Tells whether commits lost their entry in `shallow` although their parents are still missing.
fn lost_shallow(path: &Path, copy: &Path) -> bool {
    let read = |folder: &Path| read_small(&folder.join(SHALLOW)).unwrap_or_default();
    let (was, now) = (read(copy), read(path));
    let gone: Vec<&str> = was.lines().filter(|oid| is_oid(oid) && !now.contains(oid)).take(100).collect();
    if gone.is_empty() {
        return false;
    }
    let told = |oid: &str| {
        let commit = Git::of(path).run(ContentRules::Bytes, &["cat-file", "commit", oid], None);
        String::from_utf8_lossy(&commit.unwrap_or_default()).into_owned()
    };
    let parents = |text: String| -> Vec<String> {
        let heads = text.lines().take_while(|line| !line.is_empty());
        heads.filter_map(|line| line.strip_prefix("parent ")).map(str::to_owned).collect()
    };
    lacks(path, gone.into_iter().flat_map(|oid| parents(told(oid))))
}

/// Names whose reflog is left, and reflogs whose name is left; with `both`, also pairs that are gone together.
fn lost_names(path: &Path, copy: &Path, has_lost_packed: bool, both: bool) -> Vec<String> {
    let now: HashSet<String> = names(path).into_iter().map(|(name, _)| name).collect();
    let is_theirs = |name: &str| name.starts_with("refs/") && !name.starts_with("refs/lathe/");
    let mut lost = Vec::new();
    for (name, _) in names(copy).into_iter().filter(|(name, _)| is_theirs(name)) {
        let log = format!("logs/{name}");
        let has_name = now.contains(&name) || is_there(path, &name);
        let has_log = path.join(&log).is_file();
        let comes_back = has_log || both;
        if (has_name || both) && copy.join(&log).is_file() && !is_there(path, &log) {
            lost.push(log);
        }
        if !has_name && comes_back && (!has_lost_packed || is_there(copy, &name)) {
            lost.push(name);
        }
    }
    lost
}

/// Entries of work trees that still exist and lead to them, or the lost files that git needs in each.
fn work_trees(path: &Path, copy: &Path) -> Vec<String> {
    let mut lost = Vec::new();
    for name in entries(&copy.join("worktrees")) {
        let entry = format!("worktrees/{name}");
        let Some(dot) = read_small(&copy.join(&entry).join("gitdir")) else { continue };
        // The path may be relative to the entry, which need not exist.
        let dot = plain(&path.join(&entry).join(dot.trim_end()));
        let leads_here = |text: String| {
            text.strip_prefix("gitdir:").is_some_and(|target| Path::new(target.trim()).ends_with(&entry))
        };
        if !read_small(&dot).is_some_and(leads_here) {
            continue;
        }
        if !is_there(path, &entry) {
            lost.push(entry);
            continue;
        }
        for part in ["HEAD", "commondir", "gitdir", "index", "logs/HEAD"] {
            let rel = format!("{entry}/{part}");
            let is_spoiled =
                part == "HEAD" && !read_small(&path.join(&rel)).is_some_and(|text| is_head(&text));
            if is_there(copy, &rel) && (is_spoiled || !is_there(path, &rel)) {
                lost.push(rel);
            }
        }
    }
    lost
}

/// Resolves `..` in a path lexically.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// Tells whether every section but `core` is gone, and not by git: git removes one section at a time, a remote
/// together with its names, and leaves the rest unchanged.
fn lost_config(path: &Path, copy: &Path) -> bool {
    let read = |folder: &Path| read_small(&folder.join("config")).map(|text| sections(&text));
    let (Some(was), Some(now)) = (read(copy), read(path)) else { return false };
    let of = |all: &[Section], is_core: bool| -> Vec<Section> {
        all.iter().filter(|one| (one.kind == "core") == is_core).cloned().collect()
    };
    let others = of(&was, false);
    if others.is_empty() || !of(&now, false).is_empty() {
        return false;
    }
    let names = names(path);
    let has_names = |remote: &str| {
        let folder = format!("refs/remotes/{remote}/");
        names.iter().any(|(name, _)| name.starts_with(&folder))
    };
    let has_left_names = others.iter().any(|one| one.kind == "remote" && has_names(&one.about));
    // These may be removed together with something else, several at once.
    let goes_along = |one: &&Section| matches!(one.kind.as_str(), "remote" | "branch" | "submodule");
    let alone = others.iter().filter(|one| !goes_along(one)).count();
    of(&was, true) != of(&now, true) || has_left_names || alone > 1
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Section {
    kind: String,
    /// The part in quotes: the name of a remote or a branch.
    about: String,
    lines: Vec<String>,
}

fn sections(text: &str) -> Vec<Section> {
    let mut found: Vec<Section> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(head) = line.strip_prefix('[') {
            let kind = head.split([' ', '\t', ']', '"', '.']).next().unwrap_or_default().to_ascii_lowercase();
            let about = head.split('"').nth(1).unwrap_or_default().to_owned();
            found.push(Section { kind, about, lines: Vec::new() });
        } else if let Some(section) = found.last_mut() {
            section.lines.push(line.to_owned());
        }
    }
    found
}
