//! What a call would do, shown before it is done.
//!
//! A person who looks at a proposed text may change it. The contract has three parts, as in Gemini CLI: the current text, the
//! proposed text, and the arguments that the model would have had to give for what the person made of it.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use lathe_edit::{Text, unified_diff};
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
        /// Unified.
        diff: String,
        /// The hash of the file as it is; that of nothing if there is none.
        #[serde(skip)]
        before: Digest,
    },
    /// Several files, as they would be changed together.
    Patch {
        paths: Vec<String>,
        /// Unified, one file after the other.
        diff: String,
        /// The same paths, absolute.
        #[serde(skip)]
        places: Vec<PathBuf>,
    },
    /// A command that would run.
    Exec { command: String },
    /// Anything else: in words.
    Info { text: String },
}

impl Preview {
    /// The digest of all that is shown, and of where the files that would be changed really are: an answer can be tied to it,
    /// and is worth nothing once a name leads elsewhere.
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

    /// A file as it is, none if there is none, and as it would be.
    pub(crate) fn edit(path: &str, current: Option<&[u8]>, proposed: &[u8]) -> Self {
        let text =
            |bytes: &[u8]| Text::decode(bytes).map(|text| text.lossy().into_owned()).unwrap_or_default();
        Self::Edit {
            path: path.to_owned(),
            current: current.map(text).unwrap_or_default(),
            proposed: text(proposed),
            diff: unified_diff(current, Some(proposed), path),
            before: Digest::of(current.unwrap_or_default()),
        }
    }
}

/// Where a path leads. Of one that is not there yet, where the nearest folder above it does.
fn real(path: &Path) -> PathBuf {
    let above = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, real)) = above else { return path.to_owned() };
    path.strip_prefix(above).map_or(real.clone(), |rest| real.join(rest))
}
