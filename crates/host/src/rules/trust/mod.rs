//! What a project brings along, and what of it a person trusts.
//!
//! Only files that are named here or in the project's configuration are read, each up to a size, and only regular files
//! that really lie in the project: a pipe, a device or a link that leads out is said and left out. What is used later is
//! what was read when the hash was taken, never the file again. The book of trust is one file for each folder, in
//! Lathe's own folder, written whole under a lock, so that many processes at once lose nothing.

mod looked;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use lathe_policy::{TrustEntry, TrustItem, TrustRecord};
use lathe_protocol::{Digest, ItemKind, ItemState, TrustAnswer};
use lathe_workspace::{LocalTree, Pin};

use self::looked::of_part;
pub(crate) use self::looked::text_of;
use crate::error::HostError;
use crate::files::own::{own_folder, own_lock, own_text, own_write};
use crate::models::providers::dotenv_keys;
use crate::rules::Rules;
use crate::session::folder::working_folder;
use crate::session::now;

/// Trae files of a project, the first that is there counts.
pub const TRAE_FILES: [&str; 2] = ["trae_config.yaml", "trae_config.json"];

/// Files of a project that speak to the model, in the order they are told.
pub const INSTRUCTIONS: [&str; 4] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".lathe/instructions.md"];

/// Bytes of one file of instructions that reach the model.
pub(crate) const TOLD: usize = 32 * 1024;

/// Largest text that is read: instructions, or a file of schemas.
const LARGEST_TEXT: u64 = 1 << 20;

/// Words of a command that are looked for as files.
const WORDS: usize = 64;

/// An entry of a project's configuration that names a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectPart {
    pub kind: ItemKind,
    pub name: String,
    /// The file it stands in, below the root.
    pub path: PathBuf,
    /// All that the file says about it, as JSON.
    pub value: String,
    pub command: String,
    /// The file of schemas it names, below the root.
    pub tools: Option<PathBuf>,
}

/// Instructions that are told to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectText {
    pub name: String,
    pub text: String,
}

/// An item, how it stands, and what would be used of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    pub item: TrustItem,
    pub state: ItemState,
    /// The instructions, or the file of schemas.
    pub text: String,
    /// The files of the project that its command names, as they were looked at.
    pub pins: Vec<Pin>,
    /// What trust in it does not hold fast, told with it wherever it is shown or trusted.
    pub loose: Vec<String>,
}

/// What a project brings along.
#[derive(Debug, Clone)]
pub struct ProjectLook {
    pub root: PathBuf,
    pub items: Vec<Looked>,
    /// The Trae file. It is trusted by its own name only, so it is never among the items.
    pub trae: Option<Looked>,
    /// Keys in the `.env` beside a Trae file, each with the name of its provider.
    pub dotenv: Vec<(String, String)>,
    /// What was said about items here, those that are gone as well.
    book: TrustRecord,
    /// What cannot be an item, and why.
    pub unusable: Vec<String>,
}

impl ProjectLook {
    /// Items that nobody has decided about as they are.
    pub fn undecided(&self) -> impl Iterator<Item = &Looked> {
        self.items.iter().filter(|looked| matches!(looked.state, ItemState::New | ItemState::Changed))
    }

    /// Items that are not used.
    pub fn left_out(&self) -> impl Iterator<Item = &Looked> {
        self.items.iter().filter(|looked| looked.state != ItemState::Trusted)
    }

    /// As if everything were trusted, without writing anything down.
    pub fn all_trusted(mut self) -> Self {
        self.items.iter_mut().for_each(|looked| looked.state = ItemState::Trusted);
        self
    }

    /// As if those nobody had decided about were trusted, without writing anything down.
    pub fn undecided_trusted(mut self) -> Self {
        let undecided = |looked: &&mut Looked| matches!(looked.state, ItemState::New | ItemState::Changed);
        self.items.iter_mut().filter(undecided).for_each(|looked| looked.state = ItemState::Trusted);
        self
    }

    /// What was trusted and is not there any more.
    pub fn gone(&self) -> impl Iterator<Item = &TrustEntry> {
        let items = self.items.iter().chain(&self.trae);
        let items: Vec<TrustItem> = items.map(|looked| looked.item.clone()).collect();
        self.book.missing_items(&items).into_iter()
    }

    /// What was said about an item, and who said it.
    pub fn entry(&self, kind: ItemKind, name: &str) -> Option<&TrustEntry> {
        self.book.entries.iter().find(|entry| entry.kind == kind && entry.name == name)
    }

    /// What the model may be told.
    pub fn instructions(&self) -> Vec<ProjectText> {
        let used = self.items.iter().filter(|looked| {
            looked.state == ItemState::Trusted && looked.item.kind == ItemKind::Instructions
        });
        used.map(|looked| ProjectText { name: looked.item.name.clone(), text: looked.text.clone() }).collect()
    }

    /// The Trae file, if it is trusted as it is.
    pub fn trusted_trae(&self) -> Option<&Looked> {
        self.trae.as_ref().filter(|looked| looked.state == ItemState::Trusted)
    }

    /// The trusted item of a kind and name.
    pub fn trusted(&self, kind: ItemKind, name: &str) -> Option<&Looked> {
        let is_it = |looked: &&Looked| looked.item.kind == kind && looked.item.name == name;
        self.items.iter().chain(&self.trae).find(is_it).filter(|looked| looked.state == ItemState::Trusted)
    }
}

impl Looked {
    /// The files of the project that its command names, each by its word, with the text that was hashed or the reason why
    /// there is none to show.
    pub fn programs(&self) -> Vec<(&str, Result<String, String>)> {
        let mut known = BTreeSet::new();
        let each = self.pins.iter().filter(|pin| known.insert(&pin.path));
        each.map(|pin| (pin.word.as_str(), pin.text())).collect()
    }
}

/// As much of a text as the model is told, and that it is cut if it is.
pub(crate) fn told(text: &str) -> String {
    match text.get(..text.floor_char_boundary(TOLD)) {
        Some(head) if head.len() < text.len() => {
            format!("{head}\n[cut: the file has {} bytes, {} are shown]", text.len(), head.len())
        }
        Some(_) | None => text.to_owned(),
    }
}

impl Rules {
    /// Looks at what a project brings along. `parts` are those of its configuration.
    pub fn look_at_project(&self, folder: &Path, parts: &[ProjectPart]) -> Result<ProjectLook, HostError> {
        let root = working_folder(folder)?;
        let tree = LocalTree::at(root.clone(), None);
        let book = self.trust_book(&root)?;
        let mut look = ProjectLook {
            root,
            items: Vec::new(),
            trae: None,
            dotenv: Vec::new(),
            book,
            unusable: Vec::new(),
        };
        for name in INSTRUCTIONS {
            match text_of(&tree, Path::new(name)) {
                Ok(Some(text)) if text.trim().is_empty() => {}
                Ok(Some(text)) => look.add_instructions(name, text),
                Ok(None) => {}
                Err(reason) => look.unusable.push(format!("{name}: {reason}")),
            }
        }
        for part in parts {
            match of_part(&tree, &look.root, part) {
                Ok(looked) => look.items.push(looked),
                Err(reason) => {
                    look.unusable.push(format!("{} `{}`: {reason}", part.kind.label(), part.name));
                }
            }
        }
        look.add_trae(&tree);
        for looked in look.items.iter_mut().chain(&mut look.trae) {
            looked.state = look.book.state(&looked.item);
        }
        Ok(look)
    }

    /// Forgets what was said about one item of a folder. Returns whether anything was said.
    pub fn distrust_item(&self, root: &Path, kind: ItemKind, name: &str) -> Result<bool, HostError> {
        let mut was_there = false;
        self.change_book(root, |book| {
            let before = book.entries.len();
            book.entries.retain(|entry| !(entry.kind == kind && entry.name == name));
            was_there = book.entries.len() < before;
        })?;
        Ok(was_there)
    }

    /// Writes down what a person said about items as they were looked at.
    pub fn say_of_items<'a>(
        &self,
        root: &Path,
        items: impl IntoIterator<Item = &'a Looked>,
        said: TrustAnswer,
    ) -> Result<(), HostError> {
        let (by, at) = (user(), now().to_string());
        self.change_book(root, |book| {
            for looked in items {
                book.record_answer(&looked.item, said, &by, &at);
            }
        })
    }

    /// Forgets everything that was said about a folder; how many items that were. The folder need not be there any more.
    pub fn distrust(&self, folder: &Path) -> Result<usize, HostError> {
        self.home().refuse_inside_session("lathe trust remove")?;
        let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let root = folder.canonicalize().unwrap_or(absolute);
        let path = self.book_path(&root);
        let _lock = self.lock_books()?;
        let count = match read_book(&path) {
            Ok(None) => return Err(HostError::NotTrusted(root)),
            Ok(Some(book)) => book.entries.len(),
            // A book that cannot be read is not trusted either, and this is the way to be rid of it.
            Err(_) => 0,
        };
        std::fs::remove_file(&path).map_err(|error| wrong(&path, &error.to_string()))?;
        Ok(count)
    }

    /// The folders something was said about, with how many items are trusted there.
    pub fn trusted_folders(&self) -> Vec<(PathBuf, usize)> {
        let books = std::fs::read_dir(self.books()).into_iter().flatten().flatten();
        let read = books.filter_map(|entry| read_book(&entry.path()).ok().flatten());
        let mut folders: Vec<(PathBuf, usize)> = read
            .map(|book| {
                let trusted =
                    book.entries.iter().filter(|entry| entry.choice == TrustAnswer::Trusted).count();
                (book.root, trusted)
            })
            .collect();
        folders.sort();
        folders
    }

    fn books(&self) -> PathBuf {
        self.home().trust()
    }

    /// Named by the bytes of the path, which need not be text.
    fn book_path(&self, root: &Path) -> PathBuf {
        let name = Digest::of(root.as_os_str().as_bytes());
        self.books().join(format!("{name}.json"))
    }

    fn trust_book(&self, root: &Path) -> Result<TrustRecord, HostError> {
        let path = self.book_path(root);
        match read_book(&path) {
            Ok(Some(book)) if book.is_about(root) => Ok(book),
            Ok(_) => Ok(TrustRecord::new(root)),
            Err(reason) => Err(wrong(&path, &reason)),
        }
    }

    fn change_book(&self, root: &Path, change: impl FnOnce(&mut TrustRecord)) -> Result<(), HostError> {
        self.home().refuse_inside_session("lathe trust")?;
        let path = self.book_path(root);
        let _lock = self.lock_books()?;
        let mut book = self.trust_book(root)?;
        change(&mut book);
        let text = serde_json::to_string_pretty(&book).map_err(|error| wrong(&path, &error.to_string()))?;
        own_write(&path, text.as_bytes()).map_err(|error| wrong(&path, &error.to_string()))
    }

    /// One writer at a time. The lock is the kernel's, so a process that dies leaves none behind.
    fn lock_books(&self) -> Result<File, HostError> {
        let folder = self.books();
        let failed = |error: std::io::Error| wrong(&folder, &error.to_string());
        own_folder(&folder).map_err(failed)?;
        own_lock(&folder.join("lock")).map_err(failed)
    }
}

impl ProjectLook {
    /// The first Trae file that is there, with the keys of the `.env` beside it.
    fn add_trae(&mut self, tree: &LocalTree) {
        for name in TRAE_FILES {
            let text = match text_of(tree, Path::new(name)) {
                Ok(Some(text)) => text,
                Ok(None) => continue,
                // The configuration says what is wrong with it.
                Err(_) => return,
            };
            let item = TrustItem {
                kind: ItemKind::TraeConfig,
                name: name.to_owned(),
                path: name.into(),
                hash: Digest::of(text.as_bytes()),
                shows: String::new(),
            };
            self.trae =
                Some(Looked { item, state: ItemState::New, text, pins: Vec::new(), loose: Vec::new() });
            match text_of(tree, Path::new(".env")) {
                Ok(text) => self.dotenv = dotenv_keys(&text.unwrap_or_default()),
                Err(reason) => self.unusable.push(format!(".env: {reason}")),
            }
            return;
        }
    }

    /// A file that says what an earlier one says, as a link to it does, is told once.
    fn add_instructions(&mut self, name: &str, text: String) {
        let hash = Digest::of(text.as_bytes());
        if self.items.iter().any(|looked| looked.item.hash == hash) {
            return;
        }
        let item = TrustItem {
            kind: ItemKind::Instructions,
            name: name.to_owned(),
            path: name.into(),
            hash,
            shows: told(&text),
        };
        self.items.push(Looked { item, state: ItemState::New, text, pins: Vec::new(), loose: Vec::new() });
    }
}

fn read_book(path: &Path) -> Result<Option<TrustRecord>, String> {
    match own_text(path) {
        Ok(Some(text)) => serde_json::from_str(&text).map(Some).map_err(|error| error.to_string()),
        Ok(None) => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotADirectory => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn wrong(path: &Path, reason: &str) -> HostError {
    HostError::Trust { path: path.to_owned(), reason: reason.to_owned() }
}

/// Who decides, for the book.
fn user() -> String {
    let id = nix::unistd::getuid();
    match nix::unistd::User::from_uid(id) {
        Ok(Some(user)) => user.name,
        Ok(None) | Err(_) => id.to_string(),
    }
}
