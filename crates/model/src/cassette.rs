//! The cassette: a recorded model as JSON lines.
//!
//! The first line is the header: `{"cassette":1,"toolset":"lathe"}`. Every other line is one answer of one lane
//! (agent and purpose), in order: `{"agent","purpose","digest","asked","answer"}`. `asked` holds the messages since
//! the lane's last answer and `digest` the chain over all messages. Both are for comparison and may be omitted, so a
//! cassette can be written by hand. Nothing in it is specific to one provider's wire.

use std::collections::HashMap;

use lathe_protocol::{AgentId, Block, Digest, Message, Raw, StopReason, Toolset, Usage};
use serde::{Deserialize, Serialize};

use crate::request::Purpose;

/// The format this program reads and writes.
pub(crate) const FORMAT: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub(crate) cassette: u32,
    pub(crate) toolset: Toolset,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CassetteEntry {
    #[serde(default = "AgentId::main")]
    pub(crate) agent: AgentId,
    #[serde(default)]
    pub(crate) purpose: Purpose,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<Vec<Message>>,
    pub(crate) answer: Raw,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedAnswer {
    pub(crate) blocks: Vec<Block>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<StopReason>,
    #[serde(default)]
    pub(crate) usage: Usage,
    #[serde(default = "recorded_model")]
    pub(crate) model: String,
}

fn recorded_model() -> String {
    "recorded".to_owned()
}

/// A well-formed cassette that was read.
#[derive(Debug, Clone)]
pub struct Cassette {
    toolset: Toolset,
    lanes: HashMap<(AgentId, Purpose), Vec<CassetteEntry>>,
}

#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    #[error("cannot read the cassette {path}: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("cannot write the cassette {path}: {source}")]
    Write { path: String, source: std::io::Error },
    #[error("line {line} of the cassette is wrong: {reason}")]
    Line { line: usize, reason: String },
    #[error("the cassette is of format {found}; this program knows {FORMAT}")]
    Format { found: u32 },
    #[error("the cassette is empty: its first line must be like {{\"cassette\":1,\"toolset\":\"lathe\"}}")]
    Empty,
}

impl Cassette {
    pub fn parse(text: &str) -> Result<Self, CassetteError> {
        let wrong = |line: usize, reason: String| CassetteError::Line { line, reason };
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let (at, first) = lines.next().ok_or(CassetteError::Empty)?;
        let header: Header = serde_json::from_str(first).map_err(|error| wrong(at + 1, error.to_string()))?;
        if header.cassette != FORMAT {
            return Err(CassetteError::Format { found: header.cassette });
        }
        let mut lanes: HashMap<(AgentId, Purpose), Vec<CassetteEntry>> = HashMap::new();
        for (at, line) in lines {
            let entry: CassetteEntry =
                serde_json::from_str(line).map_err(|error| wrong(at + 1, error.to_string()))?;
            serde_json::from_str::<RecordedAnswer>(entry.answer.get())
                .map_err(|error| wrong(at + 1, format!("answer: {error}")))?;
            lanes.entry((entry.agent.clone(), entry.purpose)).or_default().push(entry);
        }
        Ok(Self { toolset: header.toolset, lanes })
    }

    pub fn load(path: &std::path::Path) -> Result<Self, CassetteError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| CassetteError::Read { path: path.display().to_string(), source })?;
        Self::parse(&text)
    }

    /// The toolset of the recorded calls.
    pub fn toolset(&self) -> Toolset {
        self.toolset
    }

    pub(crate) fn lane(&self, agent: &AgentId, purpose: Purpose) -> &[CassetteEntry] {
        self.lanes.get(&(agent.clone(), purpose)).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_line_is_named() {
        let text = "{\"cassette\":1,\"toolset\":\"lathe\"}\n\n{\"answer\":{\"blocks\":[{\"texd\":1}]}}\n";
        let error = Cassette::parse(text).unwrap_err();
        assert!(
            error.to_string().starts_with("line 3 of the cassette is wrong: answer: unknown variant `texd`"),
            "{error}"
        );
    }

    #[test]
    fn another_format_is_refused() {
        let error = Cassette::parse("{\"cassette\":2,\"toolset\":\"lathe\"}").unwrap_err();
        assert!(matches!(error, CassetteError::Format { found: 2 }));
    }
}
