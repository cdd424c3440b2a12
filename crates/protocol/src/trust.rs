//! Trust in what a project brings along: kinds of items, the user's answers, and the states of an item.

use serde::{Deserialize, Serialize};

/// The kinds of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// Text for the model.
    Instructions,
    /// A command that checks changed files.
    Check,
    /// A program that runs field commands.
    Field,
    /// A Trae file: providers with their addresses, models, tools.
    TraeConfig,
}

impl ItemKind {
    pub fn label(self) -> &'static str {
        match self {
            ItemKind::Instructions => "instructions",
            ItemKind::Check => "check command",
            ItemKind::Field => "field program",
            ItemKind::TraeConfig => "Trae configuration",
        }
    }
}

/// The answer of a user who was asked about an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustAnswer {
    Trusted,
    /// Not to be used; and not to be asked about again while it stays as it is.
    Refused,
}

/// The state of an item, compared with the answer about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    Trusted,
    Refused,
    /// There is an answer about it, but the item has changed since.
    Changed,
    /// There is no answer about it.
    New,
    /// It was trusted and no longer exists.
    Gone,
}
