//! What a call changed in the workspace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallId, Digest};

/// One changed path. `before` and `after` name blobs; none means that there was no file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Digest>,
    pub mode: u32,
    pub by: CallId,
}

/// A file whose content the model has seen, by the hash of that content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeenFile {
    pub path: String,
    pub hash: Digest,
}

/// A text that was cut for the model: the whole is in `blob`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Truncation {
    pub blob: Digest,
    /// Bytes the model was shown.
    pub shown: u64,
    /// Bytes there were.
    pub total: u64,
    /// Bytes the blob holds; fewer than `total` when the output was larger than what is kept.
    pub kept: u64,
}
