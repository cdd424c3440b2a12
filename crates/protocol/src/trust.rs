//! Trust in what a project brings along: kinds of items, what a person said, and how an item stands.

use serde::{Deserialize, Serialize};

/// Kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// Text for the model.
    Instructions,
    /// A command that looks at changed files.
    Check,
    /// A program that runs field commands.
    Field,
    /// A Trae file: providers with their addresses, models, tools.
    TraeConfig,
}

impl ItemKind {
    pub fn word(self) -> &'static str {
        match self {
            ItemKind::Instructions => "instructions",
            ItemKind::Check => "check command",
            ItemKind::Field => "field program",
            ItemKind::TraeConfig => "Trae configuration",
        }
    }
}

/// Answer of a person who was asked about an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustAnswer {
    Trusted,
    /// Not to be used, and not to be asked about again while it stays as it is.
    Refused,
}

/// State of an item beside what was said about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    Trusted,
    Refused,
    /// Something was said about it, but it is another now.
    Changed,
    /// Nobody said anything about it.
    New,
    /// It was trusted and is not there any more.
    Gone,
}

impl ItemState {
    pub fn word(self) -> &'static str {
        match self {
            ItemState::Trusted => "trusted",
            ItemState::Refused => "refused",
            ItemState::Changed => "changed",
            ItemState::New => "new",
            ItemState::Gone => "gone",
        }
    }
}
