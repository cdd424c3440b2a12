//! Names in git: branches, remote branches, tags, stashes and HEAD. Files are restored from copies; a commit is
//! restored by a name. So before a line that may drop names each commit gets a name under `refs/lathe/kept`, which is
//! dropped again if nothing was lost.

use std::collections::BTreeMap;
use std::path::Path;

use lathe_git::ContentRules;
use serde::{Deserialize, Serialize};

use crate::git::Git;

/// The maximum number of names that are kept: a repository with more is not the work of one person.
const MOST: usize = 2_000;

/// A name, with its commit before and after a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRef {
    pub name: String,
    pub before: String,
    /// None if the name is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// The names of a repository at one moment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct RefNames(BTreeMap<String, String>);

/// The prefix for stashes here. Git gives a stash only a number, which changes.
const STASH: &str = "stash ";

impl RefNames {
    /// Reads the current names. None if there is no repository.
    pub(crate) fn read(root: &Path) -> Option<Self> {
        let git = Git::at(root);
        let format = "--format=%(objectname) %(refname)";
        let all = text(git.run(
            ContentRules::Bytes,
            &["for-each-ref", format, "refs/heads", "refs/remotes", "refs/tags"],
            None,
        )?);
        let mut names = BTreeMap::new();
        let mut add = |line: &str, prefix: &str| {
            if let Some((oid, name)) = line.split_once(' ').filter(|_| names.len() < MOST) {
                names.insert(format!("{prefix}{name}"), oid.to_owned());
            }
        };
        all.lines().for_each(|line| add(line, ""));
        let stashes = git.run(
            ContentRules::Bytes,
            &["log", "-g", "--no-show-signature", "--format=%H %H %gs", "refs/stash", "--"],
            None,
        );
        text(stashes.unwrap_or_default()).lines().for_each(|line| add(line, STASH));
        if let Some(head) = git.run(ContentRules::Bytes, &["rev-parse", "--verify", "-q", "HEAD"], None) {
            add(&format!("{} HEAD", text(head).trim()), "");
        }
        Some(Self(names))
    }

    /// Gives every commit a name of ours.
    pub(crate) fn pin(&self, root: &Path, id: &str) -> bool {
        let mut oids: Vec<&String> = self.0.values().collect();
        oids.sort();
        oids.dedup();
        let lines: Vec<String> =
            oids.iter().enumerate().map(|(at, oid)| format!("create {}/{at} {oid}\n", ours(id))).collect();
        Git::at(root)
            .run(ContentRules::Bytes, &["update-ref", "--stdin"], Some(lines.concat().into_bytes()))
            .is_some()
    }

    /// The names that lead elsewhere in `now`, or are gone.
    pub(crate) fn lost(&self, now: &Self) -> Vec<KeptRef> {
        let changed = self.0.iter().filter(|(name, oid)| now.0.get(*name) != Some(oid));
        changed
            .map(|(name, before)| KeptRef {
                name: name.clone(),
                before: before.clone(),
                after: now.0.get(name).cloned(),
            })
            .collect()
    }
}

fn ours(id: &str) -> String {
    format!("refs/lathe/kept/{id}")
}

/// Drops our names for an entry.
pub(crate) fn unpin(root: &Path, id: &str) {
    let git = Git::at(root);
    let found =
        git.run(ContentRules::Bytes, &["for-each-ref", "--format=delete %(refname)", &ours(id)], None);
    if let Some(lines) = found.filter(|lines| !lines.is_empty()) {
        git.run(ContentRules::Bytes, &["update-ref", "--stdin"], Some(lines));
    }
}

/// Drops our names for an entry, if it has any.
pub(crate) fn unpin_all(kept: &crate::QuarantineEntry) {
    if !kept.refs.is_empty() {
        unpin(&kept.folder, &kept.id);
    }
}

/// Restores names that are still as the line left them. Returns the restored names, and the others with the reason.
pub(crate) fn restore(root: &Path, refs: &[KeptRef]) -> (Vec<String>, Vec<(String, String)>) {
    let git = Git::at(root);
    let Some(now) = RefNames::read(root) else { return (Vec::new(), Vec::new()) };
    let (mut done, mut left) = (Vec::new(), Vec::new());
    for kept in refs.iter().filter(|kept| kept.name != "HEAD") {
        let at = now.0.get(&kept.name);
        if at == Some(&kept.before) {
            continue;
        }
        if at != kept.after.as_ref() {
            left.push((kept.name.clone(), format!("somebody moved it meanwhile; it was {}", kept.before)));
            continue;
        }
        let nothing = "0".repeat(kept.before.len());
        let put = match kept.name.strip_prefix(STASH) {
            Some(rest) => {
                let about = rest.split_once(' ').map_or("kept by lathe", |(_, about)| about);
                git.run(ContentRules::Bytes, &["stash", "store", "-m", about, &kept.before], None)
            }
            None => {
                let old = kept.after.as_deref().unwrap_or(&nothing);
                git.run(
                    ContentRules::Bytes,
                    &["update-ref", "-m", "lathe: undo", &kept.name, &kept.before, old],
                    None,
                )
            }
        };
        match put {
            Some(_) => done.push(kept.name.clone()),
            None => left.push((kept.name.clone(), format!("git refused; it was {}", kept.before))),
        }
    }
    // A branch that is checked out moved under the index, which now shows the reverse of the change.
    if refs.iter().any(|kept| kept.name == "HEAD") && !done.is_empty() {
        git.run(ContentRules::Bytes, &["read-tree", "HEAD"], None);
    }
    (done, left)
}

/// Removes restored names that were not changed since. Returns the removed names, and the others with the reason.
pub(crate) fn remove_restored(
    root: &Path,
    id: &str,
    refs: &[KeptRef],
) -> (Vec<String>, Vec<(String, String)>) {
    let git = Git::at(root);
    let Some(now) = RefNames::read(root) else { return (Vec::new(), Vec::new()) };
    let (mut done, mut left) = (Vec::new(), Vec::new());
    let known = refs.iter().map(|kept| (kept.name.clone(), kept.before.clone())).collect();
    if !refs.is_empty() && !RefNames(known).pin(root, id) {
        left.extend(refs.iter().map(|kept| (kept.name.clone(), "git cannot keep its commit".to_owned())));
        return (done, left);
    }
    for kept in refs.iter().filter(|kept| kept.name != "HEAD") {
        let at = now.0.get(&kept.name);
        if at == kept.after.as_ref() {
            continue;
        }
        if at != Some(&kept.before) {
            left.push((kept.name.clone(), "somebody moved it meanwhile".to_owned()));
            continue;
        }
        let put = match (&kept.after, kept.name.starts_with(STASH)) {
            (_, true) => stash_of(&git, &kept.before)
                .and_then(|number| git.run(ContentRules::Bytes, &["stash", "drop", "-q", &number], None)),
            (Some(after), false) => git.run(
                ContentRules::Bytes,
                &["update-ref", "-m", "lathe: rewind", &kept.name, after, &kept.before],
                None,
            ),
            (None, false) => {
                git.run(ContentRules::Bytes, &["update-ref", "-d", &kept.name, &kept.before], None)
            }
        };
        match put {
            Some(_) => done.push(kept.name.clone()),
            None => left.push((kept.name.clone(), "git refused".to_owned())),
        }
    }
    if refs.iter().any(|kept| kept.name == "HEAD") && !done.is_empty() {
        git.run(ContentRules::Bytes, &["read-tree", "HEAD"], None);
    }
    (done, left)
}

/// The name by which git drops a stash.
fn stash_of(git: &Git, commit: &str) -> Option<String> {
    let all =
        text(git.run(ContentRules::Bytes, &["log", "-g", "--format=%H %gd", "refs/stash", "--"], None)?);
    let mut lines = all.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(oid, _)| *oid == commit).map(|(_, name)| name.to_owned())
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
