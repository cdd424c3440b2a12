//! Damage to a repository, found by comparison with its copy.
//!
//! A commit, a rebase or a `gc` changes a repository and leaves it whole. It counts as damaged if a part is gone
//! without which git does not recognise a repository, if the branch that is checked out leads nowhere, if git can no
//! longer read it, if an object is missing that something needs, or if it was replaced by another repository. For
//! other parts see `lost_parts`.
//!
//! Git may be unusable here: the program is missing, or something in the repository would make it wait. Unknown facts
//! do not count as damage, because an undo replaces a damaged repository, and discards the commits of the line. Where
//! git cannot be asked, objects are looked up in the files themselves (see `stored_objects`).

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use lathe_git::{ContentRules, GitError};

use crate::git::Git;
use crate::layout::{led_to, packed_refs, read_small};
use crate::repository::{is_same, same_time};
use crate::stored_objects;

/// Parts that a repository never loses in normal use.
const PARTS: [&str; 5] = ["HEAD", "objects", "refs", "config", "reftable"];

/// Tells whether git accepts a folder as a repository.
pub(crate) fn is_repository(folder: &Path) -> bool {
    let is_dir = |name: &str| folder.join(name).is_dir();
    read_small(&folder.join("HEAD")).is_some_and(|head| is_head(&head)) && is_dir("objects") && is_dir("refs")
}

pub(crate) fn is_head(text: &str) -> bool {
    let text = text.trim_end();
    let is_name = |text: &str| text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_name(text) || text.strip_prefix("ref:").is_some_and(|name| name.trim().starts_with("refs/"))
}

/// The damage of a repository whose earlier state is in `copy`. None while it is whole.
pub(crate) fn find_damage(path: &Path, copy: &Path) -> Option<String> {
    let was = copy.symlink_metadata().ok()?;
    let Ok(now) = path.symlink_metadata() else { return Some("is gone".to_owned()) };
    if !now.is_dir() {
        // The repository may have been moved, with a file in its place that names the new location.
        let Some(led) = led_to(path) else { return Some("leads to no repository any more".to_owned()) };
        let is_other = was.is_dir() && (is_other(&led, copy) || !is_moved(&led, copy));
        return is_other.then(|| OTHER.to_owned());
    }
    if !was.is_dir() {
        return (!is_repository(path)).then(|| "is not a repository any more".to_owned());
    }
    let lacks = |part: &&str| {
        copy.join(part).symlink_metadata().is_ok() && path.join(part).symlink_metadata().is_err()
    };
    let missing: Vec<&str> = PARTS.into_iter().filter(lacks).collect();
    if !missing.is_empty() {
        return Some(format!("has lost {}", missing.join(", ")));
    }
    if !is_repository(path) {
        return Some("is damaged".to_owned());
    }
    if read_small(&copy.join("config")).is_some_and(|text| !text.is_empty())
        && fs::metadata(path.join("config")).is_ok_and(|found| found.len() == 0)
    {
        return Some("has lost its configuration".to_owned());
    }
    if let Some(part) = odd_part(path, copy) {
        return Some(format!("has lost {part}"));
    }
    if is_other(path, copy) {
        return Some(OTHER.to_owned());
    }
    if let Some(why) = unreadable(path, copy) {
        return Some(why);
    }
    if lost_branch(path, copy) {
        return Some("has lost the branch that is checked out".to_owned());
    }
    match lost_objects(path, copy) {
        0 => None,
        1 => Some("has lost an object".to_owned()),
        count => Some(format!("has lost {count} objects")),
    }
}

const OTHER: &str = "was replaced by another";

/// Tells whether a repository lacks every commit that a name of the copy led to: then it is not the one that was
/// copied.
pub(crate) fn is_other(path: &Path, copy: &Path) -> bool {
    // As long as one file of objects is the same, it is the same repository.
    let (theirs, ours) = (path.join("objects"), copy.join("objects"));
    // If the copy has no objects of its own, this proves nothing.
    let has_own = !vanished(Path::new("/dev/null"), &ours).is_empty();
    if has_own && vanished(&theirs, &ours).is_empty() {
        return false;
    }
    let named = names(copy).into_iter().map(|(_, oid)| oid).filter(|oid| is_oid(oid));
    let named: Vec<String> = named.take(MOST_NAMES).collect();
    !named.is_empty() && missing(path, &named).len() == named.len()
}

/// Tells whether a repository elsewhere may be the one that was copied: it has one of its names, or its settings if
/// it had no names. Objects that it borrows from others prove nothing.
fn is_moved(led: &Path, copy: &Path) -> bool {
    let set = |folder: &Path| all_names(folder).into_iter().map(|(name, _)| name).collect::<HashSet<_>>();
    let was = set(copy);
    if !was.is_empty() {
        return !was.is_disjoint(&set(led));
    }
    let lines = |folder: &Path| read_small(&folder.join("config")).unwrap_or_default();
    let now = lines(led);
    lines(copy).lines().all(|line| now.lines().any(|now| now == line))
}

/// The number of names in one query.
const MOST_NAMES: usize = 1000;

/// The names that lead directly to an object, each with the object. For a damaged name the text of its file is
/// returned instead.
fn names(folder: &Path) -> Vec<(String, String)> {
    all_names(folder).into_iter().filter(|(_, text)| !text.starts_with("ref:")).collect()
}

/// All names of a repository, including those that lead to another name.
pub(crate) fn all_names(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if let Some(head) = read_small(&folder.join("HEAD")).filter(|head| is_oid(head.trim())) {
        found.push(("HEAD".to_owned(), head.trim().to_owned()));
    }
    let mut open = vec!["refs".to_owned()];
    while let Some(rel) = open.pop() {
        for entry in fs::read_dir(folder.join(&rel)).into_iter().flatten().flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let rel = format!("{rel}/{name}");
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(rel);
            } else if !name.ends_with(".lock") {
                // A file that is not text, or not a regular file, is damaged.
                let text = read_small(&folder.join(&rel)).unwrap_or_default();
                found.push((rel, text.trim().to_owned()));
            }
        }
    }
    let packed = packed_refs(folder).unwrap_or_default();
    for line in String::from_utf8_lossy(&packed).lines() {
        match line.split_once(' ').filter(|(oid, _)| is_oid(oid)) {
            Some((oid, name)) => found.push((name.to_owned(), oid.to_owned())),
            None if line.starts_with(['#', '^']) => {}
            None => found.push(("packed-refs".to_owned(), line.to_owned())),
        }
    }
    found
}

pub(crate) fn is_oid(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Files that git reads before it does anything.
const READ: [&str; 4] = ["index", "config", "HEAD", "packed-refs"];

/// One of [`READ`] that is no longer a regular file. Git would wait for a pipe, so this is checked first.
fn odd_part(path: &Path, copy: &Path) -> Option<&'static str> {
    let is_odd = |part: &&str| {
        let Ok(now) = path.join(part).symlink_metadata() else { return false };
        let was_file = copy.join(part).symlink_metadata().is_ok_and(|was| was.is_file());
        !now.is_file() && (was_file || !now.is_symlink())
    };
    READ.into_iter().find(is_odd)
}

/// The part that git could read before and cannot read now.
fn unreadable(path: &Path, copy: &Path) -> Option<String> {
    let changed = |part: &&str| !is_same(&copy.join(part), &path.join(part));
    let is_there = |folder: &Path, part: &str| folder.join(part).symlink_metadata().is_ok();
    if is_there(copy, "index") && !is_there(path, "index") {
        return Some("has lost index".to_owned());
    }
    let mut parts = READ.into_iter().filter(|part| is_there(path, part));
    if parts.any(|part| changed(&part)) && readable(path) == Some(false) && readable(copy) == Some(true) {
        return Some("cannot be read by git any more".to_owned());
    }
    let was: HashSet<(String, String)> = names(copy).into_iter().collect();
    let new = names(path).into_iter().filter(|name| !was.contains(name));
    let (fine, damaged): (Vec<_>, Vec<_>) = new.take(MOST_NAMES).partition(|(_, oid)| is_oid(oid));
    if let Some((name, _)) = damaged.first() {
        return Some(format!("has a damaged name, {name}"));
    }
    let named: Vec<String> = fine.into_iter().map(|(_, oid)| oid).collect();
    (!missing(path, &named).is_empty()).then(|| "has a name that leads to no object".to_owned())
}

/// Tells whether git can read a repository. None if git cannot be asked for a reason outside of the files that it
/// reads first.
fn readable(folder: &Path) -> Option<bool> {
    let git = Git::of(folder);
    match git.refusal() {
        None => Some(git.run(ContentRules::Bytes, &["ls-files", "-z"], None).is_some()),
        Some(GitError::Refused { file, .. }) => {
            READ.iter().any(|part| *file == folder.join(part)).then_some(false)
        }
        Some(GitError::NoRepository | GitError::Config { .. }) => Some(false),
        Some(GitError::NoProgram | GitError::Failed { .. } | GitError::Workspace(_)) => None,
    }
}

/// Tells whether HEAD leads nowhere and the branch that it led to is gone. A new branch next to the old one is a
/// branch without commits yet, which is intended.
fn lost_branch(path: &Path, copy: &Path) -> bool {
    let branch = |folder: &Path| {
        let head = read_small(&folder.join("HEAD"))?;
        Some(head.strip_prefix("ref:")?.trim().to_owned())
    };
    let (Some(was), Some(now)) = (branch(copy), branch(path)) else { return false };
    leads(copy, &was) && !leads(path, &now) && (was == now || !leads(path, &was))
}

fn leads(folder: &Path, name: &str) -> bool {
    if read_small(&folder.join(name)).is_some_and(|text| text.trim().len() >= 40 || text.starts_with("ref:"))
    {
        return true;
    }
    let packed = packed_refs(folder).unwrap_or_default();
    let mut lines = packed.split(|byte| *byte == b'\n');
    lines.any(|line| line.ends_with(name.as_bytes()) && line.get(line.len() - name.len() - 1) == Some(&b' '))
}

/// The number of missing objects that were there before and that something needs.
fn lost_objects(path: &Path, copy: &Path) -> usize {
    let (theirs, ours) = (path.join("objects"), copy.join("objects"));
    let vanished = vanished(&theirs, &ours);
    // Objects that were repacked are elsewhere now, and git itself made sure that they are.
    if vanished.is_empty() || has_new_pack(&theirs.join("pack"), &ours.join("pack")) {
        return 0;
    }
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let loose: Vec<String> = vanished
        .iter()
        .filter(|(folder, name)| folder.len() == 2 && is_hex(folder) && is_hex(name))
        .map(|(folder, name)| format!("{folder}{name}"))
        .collect();
    if loose.len() == vanished.len() && missing(path, &loose).is_empty() {
        return 0;
    }
    // An object is really gone. It is not a loss if nothing leads to it.
    let words = ["fsck", "--connectivity-only", "--no-dangling", "--no-progress"];
    let told = Git::of(path).output(ContentRules::Bytes, &words).unwrap_or_default();
    let told = String::from_utf8_lossy(&told).into_owned();
    let named: HashSet<String> = told
        .lines()
        .flat_map(|line| line.split([' ', ':']))
        .filter(|word| is_oid(word))
        .map(str::to_owned)
        .collect();
    let named: Vec<String> = named.into_iter().collect();
    let gone = missing(path, &named);
    // Objects that were missing before are not the line's doing.
    gone.len() - missing(copy, &gone).len()
}

/// Files of objects that were there and are gone: folder and name.
fn vanished(theirs: &Path, ours: &Path) -> Vec<(String, String)> {
    let mut vanished = Vec::new();
    for folder in fs::read_dir(ours).into_iter().flatten().flatten() {
        let name = folder.file_name().to_string_lossy().into_owned();
        let Ok(was) = folder.metadata() else { continue };
        if !was.is_dir() || name == "info" {
            continue;
        }
        let now = theirs.join(folder.file_name());
        if now.symlink_metadata().is_ok_and(|found| found.is_dir() && same_time(&found, &was)) {
            continue;
        }
        for entry in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            if is_file && now.join(entry.file_name()).symlink_metadata().is_err() {
                vanished.push((name.clone(), entry.file_name().to_string_lossy().into_owned()));
            }
        }
    }
    // Only lost objects count, not the files that git derives from them.
    vanished.retain(|(folder, name)| folder != "pack" || name.ends_with(".pack") || name.ends_with(".idx"));
    vanished
}

fn has_new_pack(theirs: &Path, ours: &Path) -> bool {
    let mut now = fs::read_dir(theirs).into_iter().flatten().flatten();
    now.any(|entry| {
        let is_pack = Path::new(&entry.file_name()).extension().is_some_and(|ending| ending == "pack");
        let has_index = || entry.path().with_extension("idx").is_file();
        is_pack && has_index() && ours.join(entry.file_name()).symlink_metadata().is_err()
    })
}

/// Tells whether one of these objects is missing from a repository.
pub(crate) fn lacks(path: &Path, oids: impl Iterator<Item = String>) -> bool {
    let oids: Vec<String> = oids.filter(|oid| is_oid(oid)).take(MOST_NAMES).collect();
    !missing(path, &oids).is_empty()
}

/// The objects that a repository does not have, as far as that can be known.
fn missing(path: &Path, names: &[String]) -> Vec<String> {
    if names.is_empty() {
        return Vec::new();
    }
    let asked = names.iter().flat_map(|name| [name.as_bytes(), b"\n"].concat()).collect();
    let told =
        Git::of(path).run(ContentRules::Bytes, &["cat-file", "--batch-check=%(objectname)"], Some(asked));
    let Some(told) = told else { return stored_objects::missing(&path.join("objects"), names) };
    let told = String::from_utf8_lossy(&told);
    let gone = told.lines().filter_map(|line| line.strip_suffix(" missing"));
    gone.map(str::to_owned).collect()
}
