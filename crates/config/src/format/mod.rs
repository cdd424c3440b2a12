//! Reading files into trees.

mod json;
mod toml;
mod yaml;

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use lathe_workspace::{
    LocalTree, WorkspaceError, content_of, dangling_link_error, is_dangling, open_regular,
};

pub(crate) use self::json::parse as parse_json;
pub(crate) use self::toml::parse as parse_toml;
pub(crate) use self::yaml::parse as parse_yaml;
use crate::problem::ConfigFault;

const LARGEST: u64 = 1024 * 1024;

/// A fault of a text, and its line.
pub(crate) struct Misread {
    pub(crate) line: Option<u32>,
    pub(crate) fault: ConfigFault,
}

impl Misread {
    fn syntax(line: Option<u32>, message: impl Into<String>) -> Self {
        Self { line, fault: ConfigFault::Syntax(message.into()) }
    }
}

/// The text of a file of the user's own, or none if there is no such file. A pipe is not waited for and a huge file
/// not read.
pub(crate) fn read(path: &Path) -> Result<Option<String>, ConfigFault> {
    match open_regular(path) {
        Ok(file) => text_of(file).map(Some),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(None),
            ErrorKind::InvalidInput => Err(not_a_file()),
            _ => Err(ConfigFault::Unreadable(error.to_string())),
        },
    }
}

/// The files of a project's folder. A project may put anything in their place: a link that leads out of the folder, or into
/// Lathe's own, is not followed.
pub struct ProjectFiles {
    folder: PathBuf,
    /// None if the folder does not exist.
    tree: Option<LocalTree>,
}

impl ProjectFiles {
    /// Those of `folder`. `home` is Lathe's own folder, in which there is no project.
    pub fn new(folder: &Path, home: &Path) -> Self {
        let own = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        let real = folder.canonicalize().ok().filter(|real| !real.starts_with(&own));
        Self { folder: folder.to_owned(), tree: real.map(|real| LocalTree::at(real, Some(home))) }
    }

    /// The text of a file below the folder, named as the folder is. None if there is no such file.
    pub(crate) fn read(&self, path: &Path) -> Result<Option<String>, ConfigFault> {
        let Some(tree) = &self.tree else { return Ok(None) };
        let below = path.strip_prefix(&self.folder).map_err(|_| leads_out())?;
        match tree.open(below) {
            Ok(file) => text_of(file).map(Some),
            Err(WorkspaceError::NotFound(_)) if is_dangling(path) => {
                Err(ConfigFault::Unreadable(dangling_link_error().to_string()))
            }
            Err(WorkspaceError::NotFound(_)) => Ok(None),
            Err(WorkspaceError::Io { source, .. }) if source.kind() == ErrorKind::NotADirectory => Ok(None),
            Err(WorkspaceError::IsDirectory(_) | WorkspaceError::Special(_)) => Err(not_a_file()),
            Err(WorkspaceError::Outside(_) | WorkspaceError::Stale(_)) => Err(leads_out()),
            Err(error) => Err(ConfigFault::Unreadable(error.to_string())),
        }
    }
}

fn not_a_file() -> ConfigFault {
    ConfigFault::Unreadable("it is not a file".to_owned())
}

fn leads_out() -> ConfigFault {
    ConfigFault::Unreadable(
        "it is a link that leads out of the project's folder, which is not followed: put the file itself there"
            .to_owned(),
    )
}

fn text_of(file: File) -> Result<String, ConfigFault> {
    let bytes = content_of(file, LARGEST).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => ConfigFault::TooLarge(LARGEST / 1024),
        _ => ConfigFault::Unreadable(error.to_string()),
    })?;
    let text =
        String::from_utf8(bytes).map_err(|_| ConfigFault::Unreadable("it is not UTF-8 text".to_owned()))?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// The line of a byte offset, counted from 1.
fn line_at(text: &str, offset: usize) -> Option<u32> {
    let before = text.as_bytes().get(..offset.min(text.len()))?;
    u32::try_from(before.iter().filter(|byte| **byte == b'\n').count() + 1).ok()
}
