//! Trust in what a project brings along: its instructions to the model, its programs.
//!
//! Trust hangs on content, not on a folder. Each thing that names a program or is said to the model is an [`Item`] with the
//! hash of everything that counts about it; a person accepts items, and one changed byte makes that item unknown again
//! while the others stay. It is kept for the real path of a folder, compared part by part, so that a link to the folder is
//! the same folder and a copy or a neighbour of a similar name is not. Keys, modes and sandboxes are no kind of item: a
//! project cannot bring them at all. Endpoints are none either, except those of a Trae file that is trusted by its name.

use std::path::{Path, PathBuf};

use lathe_protocol::{Digest, ItemKind, ItemState, TrustAnswer};
use serde::{Deserialize, Serialize};

/// Something a project brings along that counts only with trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub kind: ItemKind,
    /// The file, the glob of a check, the name of a domain.
    pub name: String,
    /// The file it stands in, below the root.
    pub path: PathBuf,
    /// Of everything that counts about it.
    pub hash: Digest,
    /// What a person is shown before they decide.
    pub shows: String,
}

/// An entry of the book.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub kind: ItemKind,
    pub name: String,
    pub hash: Digest,
    pub said: TrustAnswer,
    pub by: String,
    pub at: String,
}

/// What was said about the items of one folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustBook {
    /// The real path of the folder.
    pub root: PathBuf,
    pub entries: Vec<Entry>,
}

impl TrustBook {
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), entries: Vec::new() }
    }

    /// Whether this book speaks of a folder, given by its real path.
    pub fn is_of(&self, root: &Path) -> bool {
        self.root.is_absolute() && self.root.components().eq(root.components())
    }

    pub fn state(&self, item: &Item) -> ItemState {
        match self.entry(item.kind, &item.name) {
            None => ItemState::New,
            Some(entry) if entry.hash != item.hash => ItemState::Changed,
            Some(Entry { said: TrustAnswer::Trusted, .. }) => ItemState::Trusted,
            Some(Entry { said: TrustAnswer::Refused, .. }) => ItemState::Refused,
        }
    }

    /// What was trusted and is not among these items.
    pub fn gone(&self, items: &[Item]) -> Vec<&Entry> {
        let is_there =
            |entry: &Entry| items.iter().any(|item| item.kind == entry.kind && item.name == entry.name);
        self.entries.iter().filter(|entry| entry.said == TrustAnswer::Trusted && !is_there(entry)).collect()
    }

    /// Writes down what somebody said about an item as it is now.
    pub fn say(&mut self, item: &Item, said: TrustAnswer, by: &str, at: &str) {
        self.entries.retain(|entry| !(entry.kind == item.kind && entry.name == item.name));
        self.entries.push(Entry {
            kind: item.kind,
            name: item.name.clone(),
            hash: item.hash.clone(),
            said,
            by: by.to_owned(),
            at: at.to_owned(),
        });
        self.entries.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    }

    fn entry(&self, kind: ItemKind, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.kind == kind && entry.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(kind: ItemKind, name: &str, content: &str) -> Item {
        let hash = Digest::of(content.as_bytes());
        Item { kind, name: name.to_owned(), path: name.into(), hash, shows: content.to_owned() }
    }

    fn book(items: &[(&Item, TrustAnswer)]) -> TrustBook {
        let mut book = TrustBook::new(Path::new("/w/project"));
        for (item, said) in items {
            book.say(item, *said, "me", "2026-11-15T00:00:00Z");
        }
        book
    }

    #[test]
    fn one_changed_byte_of_one_item_leaves_the_others_trusted() {
        let (a, b) =
            (item(ItemKind::Instructions, "AGENTS.md", "be brief"), item(ItemKind::Check, "*.py", "x"));
        let book = book(&[(&a, TrustAnswer::Trusted), (&b, TrustAnswer::Trusted)]);
        assert_eq!((book.state(&a), book.state(&b)), (ItemState::Trusted, ItemState::Trusted));
        let other = item(ItemKind::Instructions, "AGENTS.md", "be briez");
        assert_eq!((book.state(&other), book.state(&b)), (ItemState::Changed, ItemState::Trusted));
    }

    #[test]
    fn the_same_content_under_another_name_or_kind_is_new() {
        let known = item(ItemKind::Check, "*.py", "run");
        let book = book(&[(&known, TrustAnswer::Trusted)]);
        assert_eq!(book.state(&item(ItemKind::Check, "*.rs", "run")), ItemState::New);
        assert_eq!(book.state(&item(ItemKind::Field, "*.py", "run")), ItemState::New);
        assert_eq!(book.state(&item(ItemKind::Check, "*.PY", "run")), ItemState::New);
    }

    #[test]
    fn a_refusal_holds_for_as_long_as_the_item_is_the_same() {
        let known = item(ItemKind::Instructions, "AGENTS.md", "one");
        let mut book = book(&[(&known, TrustAnswer::Refused)]);
        assert_eq!(book.state(&known), ItemState::Refused);
        assert_eq!(book.state(&item(ItemKind::Instructions, "AGENTS.md", "two")), ItemState::Changed);
        book.say(&known, TrustAnswer::Trusted, "me", "later");
        assert_eq!((book.state(&known), book.entries.len()), (ItemState::Trusted, 1));
        // What was only refused is no loss.
        book.say(&known, TrustAnswer::Refused, "me", "later");
        assert!(book.gone(&[]).is_empty());
    }

    #[test]
    fn what_was_trusted_and_is_not_there_is_gone() {
        let (a, b) = (item(ItemKind::Instructions, "AGENTS.md", "1"), item(ItemKind::Field, "db", "2"));
        let book = book(&[(&a, TrustAnswer::Trusted), (&b, TrustAnswer::Trusted)]);
        let gone: Vec<&str> =
            book.gone(std::slice::from_ref(&a)).iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(gone, ["db"]);
    }

    #[test]
    fn a_folder_is_its_path_part_by_part() {
        let book = book(&[]);
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
            assert_eq!(book.is_of(Path::new(path)), same, "{path}");
        }
        assert!(!TrustBook::new(Path::new("w")).is_of(Path::new("w")));
    }
}
