//! Trust in what a project brings along: its instructions to the model, its programs.
//!
//! Trust depends on content, not on a folder. Each thing that names a program or is shown to the model is a
//! [`TrustItem`] with the hash of everything that counts about it; a person accepts items, and one changed byte makes
//! that item unknown again while the others stay. Trust is kept for the real path of a folder, compared part by part,
//! so that a link to the folder is the same folder and a copy or a neighbour of a similar name is not. Keys, modes
//! and sandboxes are not a kind of item: a project cannot bring them at all. Endpoints are not either, except those
//! of a Trae file that is trusted by its name.

use std::path::{Path, PathBuf};

use lathe_protocol::{Digest, ItemKind, ItemState, TrustAnswer};
use serde::{Deserialize, Serialize};

/// Something a project brings along that counts only with trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustItem {
    pub kind: ItemKind,
    /// The file, the glob of a check, the name of a domain.
    pub name: String,
    /// The file it stands in, below the root.
    pub path: PathBuf,
    /// The hash of everything that counts about it.
    pub hash: Digest,
    /// The text that the user is shown before they decide.
    pub shows: String,
}

/// An entry of the trust record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustEntry {
    pub kind: ItemKind,
    pub name: String,
    pub hash: Digest,
    #[serde(rename = "said")]
    pub choice: TrustAnswer,
    pub by: String,
    pub at: String,
}

/// The trust record of one folder: the user's answers about its items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustRecord {
    /// The real path of the folder.
    pub root: PathBuf,
    pub entries: Vec<TrustEntry>,
}

impl TrustRecord {
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), entries: Vec::new() }
    }

    /// Tells whether this record is about a folder, given by its real path.
    pub fn is_about(&self, root: &Path) -> bool {
        self.root.is_absolute() && self.root.components().eq(root.components())
    }

    pub fn state(&self, item: &TrustItem) -> ItemState {
        match self.entry(item.kind, &item.name) {
            None => ItemState::New,
            Some(entry) if entry.hash != item.hash => ItemState::Changed,
            Some(TrustEntry { choice: TrustAnswer::Trusted, .. }) => ItemState::Trusted,
            Some(TrustEntry { choice: TrustAnswer::Refused, .. }) => ItemState::Refused,
        }
    }

    /// The trusted items that are not among these items.
    pub fn missing_items(&self, items: &[TrustItem]) -> Vec<&TrustEntry> {
        let is_there =
            |entry: &TrustEntry| items.iter().any(|item| item.kind == entry.kind && item.name == entry.name);
        self.entries.iter().filter(|entry| entry.choice == TrustAnswer::Trusted && !is_there(entry)).collect()
    }

    /// Records an answer about an item as it is now.
    pub fn record_answer(&mut self, item: &TrustItem, choice: TrustAnswer, by: &str, at: &str) {
        self.entries.retain(|entry| !(entry.kind == item.kind && entry.name == item.name));
        self.entries.push(TrustEntry {
            kind: item.kind,
            name: item.name.clone(),
            hash: item.hash.clone(),
            choice,
            by: by.to_owned(),
            at: at.to_owned(),
        });
        self.entries.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    }

    fn entry(&self, kind: ItemKind, name: &str) -> Option<&TrustEntry> {
        self.entries.iter().find(|entry| entry.kind == kind && entry.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(kind: ItemKind, name: &str, content: &str) -> TrustItem {
        let hash = Digest::of(content.as_bytes());
        TrustItem { kind, name: name.to_owned(), path: name.into(), hash, shows: content.to_owned() }
    }

    fn record(items: &[(&TrustItem, TrustAnswer)]) -> TrustRecord {
        let mut record = TrustRecord::new(Path::new("/w/project"));
        for (item, choice) in items {
            record.record_answer(item, *choice, "me", "2026-11-15T00:00:00Z");
        }
        record
    }

    #[test]
    fn one_changed_byte_of_one_item_leaves_the_others_trusted() {
        let (a, b) =
            (item(ItemKind::Instructions, "AGENTS.md", "be brief"), item(ItemKind::Check, "*.py", "x"));
        let record = record(&[(&a, TrustAnswer::Trusted), (&b, TrustAnswer::Trusted)]);
        assert_eq!((record.state(&a), record.state(&b)), (ItemState::Trusted, ItemState::Trusted));
        let other = item(ItemKind::Instructions, "AGENTS.md", "be briez");
        assert_eq!((record.state(&other), record.state(&b)), (ItemState::Changed, ItemState::Trusted));
    }

    #[test]
    fn the_same_content_under_another_name_or_kind_is_new() {
        let known = item(ItemKind::Check, "*.py", "run");
        let record = record(&[(&known, TrustAnswer::Trusted)]);
        assert_eq!(record.state(&item(ItemKind::Check, "*.rs", "run")), ItemState::New);
        assert_eq!(record.state(&item(ItemKind::Field, "*.py", "run")), ItemState::New);
        assert_eq!(record.state(&item(ItemKind::Check, "*.PY", "run")), ItemState::New);
    }

    #[test]
    fn a_refusal_holds_for_as_long_as_the_item_is_the_same() {
        let known = item(ItemKind::Instructions, "AGENTS.md", "one");
        let mut record = record(&[(&known, TrustAnswer::Refused)]);
        assert_eq!(record.state(&known), ItemState::Refused);
        assert_eq!(record.state(&item(ItemKind::Instructions, "AGENTS.md", "two")), ItemState::Changed);
        record.record_answer(&known, TrustAnswer::Trusted, "me", "later");
        assert_eq!((record.state(&known), record.entries.len()), (ItemState::Trusted, 1));
        // An item that was only refused is not lost.
        record.record_answer(&known, TrustAnswer::Refused, "me", "later");
        assert!(record.missing_items(&[]).is_empty());
    }

    #[test]
    fn what_was_trusted_and_is_not_there_is_gone() {
        let (a, b) = (item(ItemKind::Instructions, "AGENTS.md", "1"), item(ItemKind::Field, "db", "2"));
        let record = record(&[(&a, TrustAnswer::Trusted), (&b, TrustAnswer::Trusted)]);
        let gone: Vec<&str> =
            record.missing_items(std::slice::from_ref(&a)).iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(gone, ["db"]);
    }

    #[test]
    fn a_folder_is_its_path_part_by_part() {
        let record = record(&[]);
        for (path, same) in [
            ("/w/project", true),
            ("/w/project/", true),
            ("/w//project", true),
            ("/w/project-evil", false),
            ("/w/project/sub", false),
            ("/w", false),
            ("w/project", false),
            ("/W/project", false),
        ] {
            assert_eq!(record.is_about(Path::new(path)), same, "{path}");
        }
        assert!(!TrustRecord::new(Path::new("w")).is_about(Path::new("w")));
    }
}
