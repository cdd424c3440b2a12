//! The preview of a call: its effect, shown before it runs.
//!
//! The user may edit a proposed text. The contract has three parts, as in Gemini CLI: the current text, the proposed
//! text, and the arguments that the model would have had to give for the text that the user made of it.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use lathe_edit::{TextContent, unified_diff};
use lathe_protocol::Digest;
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Preview {
    /// A file as it is and as it would be.
    Edit {
        path: String,
        current: String,
        proposed: String,
        /// Unified diff.
        diff: String,
        /// The digest of the file as it is; that of empty content if there is no file.
        #[serde(skip)]
        before: Digest,
    },
    /// Several files, as they would be changed together.
    Patch {
        paths: Vec<String>,
        /// Unified diffs, one file after the other.
        diff: String,
        /// The same paths, absolute.
        #[serde(skip)]
        places: Vec<PathBuf>,
    },
    /// A command that would run.
    Exec { command: String },
    /// Any other call, in words.
    Info { text: String },
}

impl Preview {
    /// The digest of everything that is shown, and of the real paths of the files that would be changed. An approval
    /// is tied to it, and becomes void once a name leads elsewhere.
    pub fn digest(&self) -> Digest {
        let mut shown = serde_json::to_vec(self).unwrap_or_default();
        let places: Vec<&Path> = match self {
            Self::Edit { path, .. } => vec![Path::new(path)],
            Self::Patch { places, .. } => places.iter().map(PathBuf::as_path).collect(),
            Self::Exec { .. } | Self::Info { .. } => Vec::new(),
        };
        for place in places {
            shown.push(0);
            shown.extend_from_slice(real(place).as_os_str().as_bytes());
        }
        Digest::of(&shown)
    }

    /// The difference between two texts of a file; empty if there is none.
    pub fn diff(path: &str, from: &str, to: &str) -> String {
        unified_diff(Some(from.as_bytes()), Some(to.as_bytes()), path)
    }

    /// The preview of an edit: the file as it is, none if there is no file, and as it would be.
    pub(crate) fn edit(path: &str, current: Option<&[u8]>, proposed: &[u8]) -> Self {
        let text = |bytes: &[u8]| {
            TextContent::decode(bytes).map(|text| text.lossy().into_owned()).unwrap_or_default()
        };
        Self::Edit {
            path: path.to_owned(),
            current: current.map(text).unwrap_or_default(),
            proposed: text(proposed),
            diff: unified_diff(current, Some(proposed), path),
            before: Digest::of(current.unwrap_or_default()),
        }
    }
}

/// The real path. For a path that does not exist yet, the rest is appended to the real path of the nearest folder
/// above it.
fn real(path: &Path) -> PathBuf {
    let above = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, real)) = above else { return path.to_owned() };
    path.strip_prefix(above).map_or(real.clone(), |rest| real.join(rest))
}
