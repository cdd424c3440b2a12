//! Documents next to a workspace, in the form for lists and readers.

use serde::Serialize;

/// One version of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    pub document_id: String,
    pub version: u32,
    pub title: String,
    pub description: String,
    pub content: String,
    pub updated_at: String,
}

/// A version without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DocumentVersion {
    pub version: u32,
    pub title: String,
    pub updated_at: String,
    pub bytes: u64,
}

/// A document in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DocumentRow {
    pub document_id: String,
    pub version: u32,
    pub title: String,
    pub description: String,
    pub updated_at: String,
}
