//! Changes that a call made in the workspace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallId, Digest};

/// The words before changes by a person or another process, in the text for the model.
pub const CHANGED_BY_OTHERS: &str = "[Changed by somebody else while this ran:";

/// One changed path. `before` and `after` name blobs; `None` means that there was nothing at the path.
///
/// Modes are whole `st_mode` values, as git keeps them: the file type is part of the mode. The content of a link is
/// its target, the content of a folder is empty. Records of older versions have permissions only, and mean files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The path for people and the model. Where it differs from the real one, `raw_path` has the real one.
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Digest>,
    /// The mode afterwards; if the path is gone, the mode it had.
    pub mode: u32,
    /// The mode before, where it was different.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_before: Option<u32>,
    /// Names a blob with owner and extended attributes afterwards; if the path is gone, those it had. `None` means
    /// that they are those of any file of the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Digest>,
    /// The attributes before, where they were different.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes_before: Option<Digest>,
    /// Names a blob with the file's other names (hard links) in the workspace afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Digest>,
    /// The file's other names before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links_before: Option<Digest>,
    /// The bytes of a path that is not UTF-8, or that holds a secret, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_path: Option<String>,
    pub by: CallId,
}

impl Change {
    /// The change with another path for people and the model.
    pub fn shown_as(self, path: String) -> Self {
        let hex = || self.path.bytes().map(|byte| format!("{byte:02x}")).collect();
        Self { raw_path: Some(self.raw_path.unwrap_or_else(hex)), path, ..self }
    }

    /// The blobs that the record names.
    pub fn blobs(&self) -> impl Iterator<Item = &Digest> {
        let attributes = self.attributes.iter().chain(&self.attributes_before);
        self.before.iter().chain(&self.after).chain(attributes).chain(&self.links).chain(&self.links_before)
    }

    /// True if a folder was created, removed or changed in its mode, and nothing else changed.
    pub fn is_folder(&self) -> bool {
        const TYPE: u32 = 0o170_000;
        const FOLDER: u32 = 0o040_000;
        self.mode & TYPE == FOLDER && self.mode_before.is_none_or(|before| before & TYPE == FOLDER)
    }
}

/// A file whose content the model has seen, by the hash of that content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeenFile {
    pub path: String,
    pub hash: Digest,
}

/// A text that was cut for the model: the whole text is in `blob`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Truncation {
    pub blob: Digest,
    /// The bytes that the model was shown.
    pub shown: u64,
    /// All bytes of the text.
    pub total: u64,
    /// The bytes in the blob; fewer than `total` when the output was larger than the limit for blobs.
    pub kept: u64,
}
