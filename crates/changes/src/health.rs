//! Whether a repository is still whole, seen from the copy of it.
//!
//! A commit, a rebase, a `gc` change a repository and leave it whole. What counts as loss: a part is gone without which git
//! knows no repository, the branch that is checked out leads nowhere, or an object is missing that something needs.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use lathe_workspace::GitConfig;

use crate::git::Git;
use crate::repository::{led_to, same_time, small};

/// Parts that a repository does not lose in its life.
const PARTS: [&str; 5] = ["HEAD", "objects", "refs", "config", "reftable"];

/// Whether git would take a folder for a repository.
pub(crate) fn is_repository(folder: &Path) -> bool {
    let is_dir = |name: &str| folder.join(name).is_dir();
    small(&folder.join("HEAD")).is_some_and(|head| is_head(&head)) && is_dir("objects") && is_dir("refs")
}

fn is_head(text: &str) -> bool {
    let text = text.trim_end();
    let is_name = |text: &str| text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_name(text) || text.strip_prefix("ref:").is_some_and(|name| name.trim().starts_with("refs/"))
}

/// What is wrong with a repository of which `copy` is what it was. None while it is whole.
pub(crate) fn broken(path: &Path, copy: &Path) -> Option<String> {
    let was = copy.symlink_metadata().ok()?;
    let Ok(now) = path.symlink_metadata() else { return Some("is gone".to_owned()) };
    if !now.is_dir() {
        // It may have been moved, with a file in its place that says where to.
        let leads = led_to(path).is_some();
        return (!leads).then(|| "leads to no repository any more".to_owned());
    }
    if !was.is_dir() {
        return (!is_repository(path)).then(|| "is no repository any more".to_owned());
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
    if small(&copy.join("config")).is_some_and(|text| !text.is_empty())
        && fs::metadata(path.join("config")).is_ok_and(|found| found.len() == 0)
    {
        return Some("has lost its configuration".to_owned());
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

/// Whether HEAD names the branch it did, which led to a commit and does not now.
fn lost_branch(path: &Path, copy: &Path) -> bool {
    let branch = |folder: &Path| {
        let head = small(&folder.join("HEAD"))?;
        Some(head.strip_prefix("ref:")?.trim().to_owned())
    };
    let (Some(was), Some(now)) = (branch(copy), branch(path)) else { return false };
    was == now && leads(copy, &was) && !leads(path, &now)
}

fn leads(folder: &Path, name: &str) -> bool {
    let is_oid = |text: &str| text.trim().len() >= 40;
    if small(&folder.join(name)).is_some_and(|text| is_oid(&text) || text.starts_with("ref:")) {
        return true;
    }
    let packed = fs::read(folder.join("packed-refs")).unwrap_or_default();
    let mut lines = packed.split(|byte| *byte == b'\n');
    lines.any(|line| line.ends_with(name.as_bytes()) && line.get(line.len() - name.len() - 1) == Some(&b' '))
}

/// How many objects are missing that were there and that something needs.
fn lost_objects(path: &Path, copy: &Path) -> usize {
    let (theirs, ours) = (path.join("objects"), copy.join("objects"));
    let vanished = vanished(&theirs, &ours);
    // Objects that were packed anew are elsewhere now, and git itself saw to it that they are.
    if vanished.is_empty() || has_new_pack(&theirs.join("pack"), &ours.join("pack")) {
        return 0;
    }
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let loose: Vec<String> = vanished
        .iter()
        .filter(|(folder, name)| folder.len() == 2 && is_hex(folder) && is_hex(name))
        .map(|(folder, name)| format!("{folder}{name}"))
        .collect();
    let now = Git::of(path);
    if loose.len() == vanished.len() && missing(&now, &loose).is_empty() {
        return 0;
    }
    // Something is really gone. It is no loss if nothing leads to it.
    let words = ["fsck", "--connectivity-only", "--no-dangling", "--no-progress"];
    let told = now.output(GitConfig::Bare, &words).unwrap_or_default();
    let told = String::from_utf8_lossy(&told).into_owned();
    let is_oid = |word: &&str| word.len() >= 40 && is_hex(word);
    let named: HashSet<String> =
        told.lines().flat_map(|line| line.split([' ', ':'])).filter(is_oid).map(str::to_owned).collect();
    let named: Vec<String> = named.into_iter().collect();
    let gone = missing(&now, &named);
    // What was missing before is not the line's doing.
    gone.len() - missing(&Git::of(copy), &gone).len()
}

/// Files of objects that were there and are not: folder and name.
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
    // Only objects are missed, not what git makes from them.
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

/// Those that a repository does not have.
fn missing(git: &Git, names: &[String]) -> Vec<String> {
    if names.is_empty() {
        return Vec::new();
    }
    let asked = names.iter().flat_map(|name| [name.as_bytes(), b"\n"].concat()).collect();
    let told = git.run(GitConfig::Bare, &["cat-file", "--batch-check=%(objectname)"], Some(asked));
    let Some(told) = told else { return names.to_vec() };
    let told = String::from_utf8_lossy(&told);
    let gone = told.lines().filter_map(|line| line.strip_suffix(" missing"));
    gone.map(str::to_owned).collect()
}
