//! The items that a project brings along, and the user's trust in them.
//!
//! Only files that are named here or in the project's configuration are read, each up to a size, and only regular
//! files that really lie in the project: a pipe, a device or a link that leads out is reported and left out. What is
//! used later is the content that was read when the hash was taken, never the file again. The record of trust is one
//! file for each folder, in Lathe's own folder, written whole under a lock, so that many processes at once lose
//! nothing.

mod inspection;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use lathe_policy::{TrustEntry, TrustItem, TrustRecord};
use lathe_protocol::{Digest, ItemKind, ItemState, TrustAnswer};
use lathe_workspace::{LocalTree, Pin};

use self::inspection::inspect_part;
pub(crate) use self::inspection::text_of;
use crate::error::HostError;
use crate::files::own::{own_folder, own_lock, own_text, own_write};
use crate::models::providers::dotenv_keys;
use crate::rules::Rules;
use crate::session::folder::working_folder;
use crate::session::now;

/// Trae files of a project; the first that exists counts.
pub const TRAE_FILES: [&str; 2] = ["trae_config.yaml", "trae_config.json"];

/// Files of a project with instructions for the model, in the order in which they are sent.
pub const INSTRUCTIONS: [&str; 4] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".lathe/instructions.md"];

/// Bytes of one file of instructions that reach the model.
pub(crate) const MODEL_BYTES: usize = 32 * 1024;

/// Largest text that is read, in bytes: instructions, or a file of schemas.
const LARGEST_TEXT: u64 = 1 << 20;

/// Number of words of a command that are checked for files.
const WORDS: usize = 64;

/// An entry of a project's configuration that names a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectPart {
    pub kind: ItemKind,
    pub name: String,
    /// The file it stands in, relative to the root.
    pub path: PathBuf,
    /// Everything that the file says about it, as JSON.
    pub value: String,
    pub command: String,
    /// The file of schemas it names, relative to the root.
    pub tools: Option<PathBuf>,
}

/// Instructions for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectText {
    pub name: String,
    pub text: String,
}

/// An inspected item: its state, and the content that would be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedItem {
    pub item: TrustItem,
    pub state: ItemState,
    /// The instructions, or the file of schemas.
    pub text: String,
    /// The files of the project that its command names, as they were when inspected.
    pub pins: Vec<Pin>,
    /// The parts that trust in the item does not pin down; reported wherever it is shown or trusted.
    pub unpinned: Vec<String>,
}

/// The inspection of a project.
#[derive(Debug, Clone)]
pub struct ProjectInspection {
    pub root: PathBuf,
    pub items: Vec<InspectedItem>,
    /// The Trae file. It is trusted by its own name only, so it is never among the items.
    pub trae: Option<InspectedItem>,
    /// Keys in the `.env` next to a Trae file, each with the name of its provider.
    pub dotenv: Vec<(String, String)>,
    /// The decisions about items here, including items that no longer exist.
    record: TrustRecord,
    /// Parts that cannot be items, with the reason.
    pub unusable: Vec<String>,
}

impl ProjectInspection {
    /// Items about whose present content the user has not decided.
    pub fn undecided(&self) -> impl Iterator<Item = &InspectedItem> {
        self.items.iter().filter(|inspected| matches!(inspected.state, ItemState::New | ItemState::Changed))
    }

    /// Items that are not used.
    pub fn left_out(&self) -> impl Iterator<Item = &InspectedItem> {
        self.items.iter().filter(|inspected| inspected.state != ItemState::Trusted)
    }

    /// The inspection with every item trusted. Nothing is stored.
    pub fn all_trusted(mut self) -> Self {
        self.items.iter_mut().for_each(|inspected| inspected.state = ItemState::Trusted);
        self
    }

    /// The inspection with every undecided item trusted. Nothing is stored.
    pub fn undecided_trusted(mut self) -> Self {
        let undecided =
            |inspected: &&mut InspectedItem| matches!(inspected.state, ItemState::New | ItemState::Changed);
        self.items.iter_mut().filter(undecided).for_each(|inspected| inspected.state = ItemState::Trusted);
        self
    }

    /// Items that were trusted and no longer exist.
    pub fn missing_items(&self) -> impl Iterator<Item = &TrustEntry> {
        let items = self.items.iter().chain(&self.trae);
        let items: Vec<TrustItem> = items.map(|inspected| inspected.item.clone()).collect();
        self.record.missing_items(&items).into_iter()
    }

    /// The decision about an item, and the user who made it.
    pub fn entry(&self, kind: ItemKind, name: &str) -> Option<&TrustEntry> {
        self.record.entries.iter().find(|entry| entry.kind == kind && entry.name == name)
    }

    /// The instructions that may be sent to the model.
    pub fn instructions(&self) -> Vec<ProjectText> {
        let used = self.items.iter().filter(|inspected| {
            inspected.state == ItemState::Trusted && inspected.item.kind == ItemKind::Instructions
        });
        used.map(|inspected| ProjectText { name: inspected.item.name.clone(), text: inspected.text.clone() })
            .collect()
    }

    /// The Trae file, if it is trusted with its present content.
    pub fn trusted_trae(&self) -> Option<&InspectedItem> {
        self.trae.as_ref().filter(|inspected| inspected.state == ItemState::Trusted)
    }

    /// The trusted item of a kind and name.
    pub fn trusted(&self, kind: ItemKind, name: &str) -> Option<&InspectedItem> {
        let is_it = |inspected: &&InspectedItem| inspected.item.kind == kind && inspected.item.name == name;
        self.items
            .iter()
            .chain(&self.trae)
            .find(is_it)
            .filter(|inspected| inspected.state == ItemState::Trusted)
    }
}

impl InspectedItem {
    /// The files of the project that its command names, each by its word, with the text that was hashed or the reason
    /// why there is none to show.
    pub fn programs(&self) -> Vec<(&str, Result<String, String>)> {
        let mut known = BTreeSet::new();
        let each = self.pins.iter().filter(|pin| known.insert(&pin.path));
        each.map(|pin| (pin.word.as_str(), pin.text())).collect()
    }
}

/// A text cut to the size that the model gets, with a note if it was cut.
pub(crate) fn cut_for_model(text: &str) -> String {
    match text.get(..text.floor_char_boundary(MODEL_BYTES)) {
        Some(head) if head.len() < text.len() => {
            format!("{head}\n[cut: the file has {} bytes, {} are shown]", text.len(), head.len())
        }
        Some(_) | None => text.to_owned(),
    }
}

impl Rules {
    /// Inspects what a project brings along. `parts` are those of its configuration.
    pub fn inspect_project(
        &self,
        folder: &Path,
        parts: &[ProjectPart],
    ) -> Result<ProjectInspection, HostError> {
        let root = working_folder(folder)?;
        let tree = LocalTree::at(root.clone(), None);
        let record = self.trust_record(&root)?;
        let mut inspection = ProjectInspection {
            root,
            items: Vec::new(),
            trae: None,
            dotenv: Vec::new(),
            record,
            unusable: Vec::new(),
        };
        for name in INSTRUCTIONS {
            match text_of(&tree, Path::new(name)) {
                Ok(Some(text)) if text.trim().is_empty() => {}
                Ok(Some(text)) => inspection.add_instructions(name, text),
                Ok(None) => {}
                Err(reason) => inspection.unusable.push(format!("{name}: {reason}")),
            }
        }
        for part in parts {
            match inspect_part(&tree, &inspection.root, part) {
                Ok(inspected) => inspection.items.push(inspected),
                Err(reason) => {
                    inspection.unusable.push(format!("{} `{}`: {reason}", part.kind.label(), part.name));
                }
            }
        }
        inspection.add_trae(&tree);
        for inspected in inspection.items.iter_mut().chain(&mut inspection.trae) {
            inspected.state = inspection.record.state(&inspected.item);
        }
        Ok(inspection)
    }

    /// Forgets the decision about one item of a folder. Returns whether there was one.
    pub fn distrust_item(&self, root: &Path, kind: ItemKind, name: &str) -> Result<bool, HostError> {
        let mut was_there = false;
        self.change_record(root, |record| {
            let before = record.entries.len();
            record.entries.retain(|entry| !(entry.kind == kind && entry.name == name));
            was_there = record.entries.len() < before;
        })?;
        Ok(was_there)
    }

    /// Records the user's decision about items as they were when inspected.
    pub fn record_answers<'a>(
        &self,
        root: &Path,
        items: impl IntoIterator<Item = &'a InspectedItem>,
        answer: TrustAnswer,
    ) -> Result<(), HostError> {
        let (by, at) = (user_name(), now().to_string());
        self.change_record(root, |record| {
            for inspected in items {
                record.record_answer(&inspected.item, answer, &by, &at);
            }
        })
    }

    /// Forgets all decisions about a folder and returns their number. The folder need not exist any more.
    pub fn distrust(&self, folder: &Path) -> Result<usize, HostError> {
        self.home().refuse_inside_session("lathe trust remove")?;
        let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let root = folder.canonicalize().unwrap_or(absolute);
        let path = self.record_path(&root);
        let _lock = self.lock_records()?;
        let count = match read_record(&path) {
            Ok(None) => return Err(HostError::NotTrusted(root)),
            Ok(Some(record)) => record.entries.len(),
            // A record that cannot be read is not trusted either, and this removes it.
            Err(_) => 0,
        };
        std::fs::remove_file(&path).map_err(|error| trust_error(&path, &error.to_string()))?;
        Ok(count)
    }

    /// The folders with decisions, each with the number of trusted items.
    pub fn trusted_folders(&self) -> Vec<(PathBuf, usize)> {
        let records = std::fs::read_dir(self.records_folder()).into_iter().flatten().flatten();
        let read = records.filter_map(|entry| read_record(&entry.path()).ok().flatten());
        let mut folders: Vec<(PathBuf, usize)> = read
            .map(|record| {
                let trusted =
                    record.entries.iter().filter(|entry| entry.choice == TrustAnswer::Trusted).count();
                (record.root, trusted)
            })
            .collect();
        folders.sort();
        folders
    }

    fn records_folder(&self) -> PathBuf {
        self.home().trust()
    }

    /// The file is named by the bytes of the path, which need not be text.
    fn record_path(&self, root: &Path) -> PathBuf {
        let name = Digest::of(root.as_os_str().as_bytes());
        self.records_folder().join(format!("{name}.json"))
    }

    fn trust_record(&self, root: &Path) -> Result<TrustRecord, HostError> {
        let path = self.record_path(root);
        match read_record(&path) {
            Ok(Some(record)) if record.is_about(root) => Ok(record),
            Ok(_) => Ok(TrustRecord::new(root)),
            Err(reason) => Err(trust_error(&path, &reason)),
        }
    }

    fn change_record(&self, root: &Path, change: impl FnOnce(&mut TrustRecord)) -> Result<(), HostError> {
        self.home().refuse_inside_session("lathe trust")?;
        let path = self.record_path(root);
        let _lock = self.lock_records()?;
        let mut record = self.trust_record(root)?;
        change(&mut record);
        let text =
            serde_json::to_string_pretty(&record).map_err(|error| trust_error(&path, &error.to_string()))?;
        own_write(&path, text.as_bytes()).map_err(|error| trust_error(&path, &error.to_string()))
    }

    /// Allows one writer at a time. The lock is the kernel's, so it disappears with a process that dies.
    fn lock_records(&self) -> Result<File, HostError> {
        let folder = self.records_folder();
        let failed = |error: std::io::Error| trust_error(&folder, &error.to_string());
        own_folder(&folder).map_err(failed)?;
        own_lock(&folder.join("lock")).map_err(failed)
    }
}

impl ProjectInspection {
    /// Adds the first Trae file that exists, with the keys of the `.env` next to it.
    fn add_trae(&mut self, tree: &LocalTree) {
        for name in TRAE_FILES {
            let text = match text_of(tree, Path::new(name)) {
                Ok(Some(text)) => text,
                Ok(None) => continue,
                // Reading the configuration reports what is wrong with it.
                Err(_) => return,
            };
            let item = TrustItem {
                kind: ItemKind::TraeConfig,
                name: name.to_owned(),
                path: name.into(),
                hash: Digest::of(text.as_bytes()),
                shows: String::new(),
            };
            self.trae = Some(InspectedItem {
                item,
                state: ItemState::New,
                text,
                pins: Vec::new(),
                unpinned: Vec::new(),
            });
            match text_of(tree, Path::new(".env")) {
                Ok(text) => self.dotenv = dotenv_keys(&text.unwrap_or_default()),
                Err(reason) => self.unusable.push(format!(".env: {reason}")),
            }
            return;
        }
    }

    /// Adds a file of instructions. A file with the same content as an earlier one, such as a link to it, is added
    /// only once.
    fn add_instructions(&mut self, name: &str, text: String) {
        let hash = Digest::of(text.as_bytes());
        if self.items.iter().any(|inspected| inspected.item.hash == hash) {
            return;
        }
        let item = TrustItem {
            kind: ItemKind::Instructions,
            name: name.to_owned(),
            path: name.into(),
            hash,
            shows: cut_for_model(&text),
        };
        self.items.push(InspectedItem {
            item,
            state: ItemState::New,
            text,
            pins: Vec::new(),
            unpinned: Vec::new(),
        });
    }
}

fn read_record(path: &Path) -> Result<Option<TrustRecord>, String> {
    match own_text(path) {
        Ok(Some(text)) => serde_json::from_str(&text).map(Some).map_err(|error| error.to_string()),
        Ok(None) => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotADirectory => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn trust_error(path: &Path, reason: &str) -> HostError {
    HostError::Trust { path: path.to_owned(), reason: reason.to_owned() }
}

/// The name of the user who decides, for the record.
fn user_name() -> String {
    let id = nix::unistd::getuid();
    match nix::unistd::User::from_uid(id) {
        Ok(Some(user)) => user.name,
        Ok(None) | Err(_) => id.to_string(),
    }
}
