//! Questions from the model to the user.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The question itself.
    pub question: String,
    /// One or two words above it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub header: String,
    /// The kind of answer that is wanted; `text` if left out.
    #[serde(default, rename = "type")]
    pub kind: QuestionKind,
    /// For `choice`: 2 to 4 answers to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<QuestionOption>,
    /// For `choice`: more than one may be chosen.
    #[serde(default, rename = "multiSelect", skip_serializing_if = "std::ops::Not::not")]
    pub multi_select: bool,
    /// For `text`: an example of an answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub placeholder: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QuestionKind {
    Choice,
    #[default]
    Text,
    YesNo,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionOption {
    pub label: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}
