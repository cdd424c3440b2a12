//! What a call would do, shown before it is done.
//!
//! A person who looks at a proposed text may change it. The contract has three parts, as in Gemini CLI: the current text, the
//! proposed text, and the arguments that the model would have had to give for what the person made of it.

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
    },
    /// Several files, as they would be changed together.
    Patch {
        paths: Vec<String>,
        /// Unified, one file after the other.
        diff: String,
    },
    /// A command that would run.
    Exec { command: String },
    /// Anything else: in words.
    Info { text: String },
}

impl Preview {
    /// The digest of all that is shown, so that an answer can be tied to it.
    pub fn digest(&self) -> Digest {
        Digest::of(&serde_json::to_vec(self).unwrap_or_default())
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
        }
    }
}
