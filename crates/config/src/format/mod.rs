//! Reading files into trees.

mod json;
mod toml;
mod yaml;

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

pub(crate) use self::json::parse as parse_json;
pub(crate) use self::toml::parse as parse_toml;
pub(crate) use self::yaml::parse as parse_yaml;
use crate::problem::Fault;

const LARGEST: u64 = 1024 * 1024;
/// Deeper than any configuration, shallow enough for every stack.
const DEEPEST: usize = 64;

/// What is wrong with a text, and on which line.
pub(crate) struct Misread {
    pub(crate) line: Option<u32>,
    pub(crate) fault: Fault,
}

impl Misread {
    fn syntax(line: Option<u32>, message: impl Into<String>) -> Self {
        Self { line, fault: Fault::Syntax(message.into()) }
    }
}

/// The text of a file, or nothing if there is no such file.
///
/// A project may put anything in this place, so a pipe is not waited for and a huge file not read.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Fault> {
    let unreadable = |error: std::io::Error| Fault::Unreadable(error.to_string());
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(Fault::Unreadable("it is not a file".to_owned())),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error)),
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(Fault::TooLarge(LARGEST / 1024));
    }
    let text = String::from_utf8(bytes).map_err(|_| Fault::Unreadable("it is not UTF-8 text".to_owned()))?;
    Ok(Some(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }))
}

/// The line of a byte offset, counted from 1.
fn line_at(text: &str, offset: usize) -> Option<u32> {
    let before = text.as_bytes().get(..offset.min(text.len()))?;
    u32::try_from(before.iter().filter(|byte| **byte == b'\n').count() + 1).ok()
}
