//! Reviews of edits by a judge: the rule of a session, and the result of one review.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::Usage;

/// The rule by which the edits of a session are judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewRule {
    pub rules: String,
    /// True if a failing last verdict refuses the end of the task.
    #[serde(default)]
    pub gate: bool,
    /// True if each successful edit of a file is judged by itself.
    #[serde(default)]
    pub after_edits: bool,
    /// The most reviews of one run.
    #[serde(default = "ReviewRule::max_reviews")]
    pub max_reviews: u32,
    /// The most tokens that the reviews of one run may use.
    #[serde(default = "ReviewRule::max_tokens")]
    pub max_tokens: u64,
}

impl ReviewRule {
    pub fn max_reviews() -> u32 {
        10
    }

    pub fn max_tokens() -> u64 {
        100_000
    }
}

/// The judge's verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewVerdict {
    pub pass: bool,
    pub reasons: Vec<String>,
    pub suggestions: Vec<String>,
    pub locations: Vec<ReviewLocation>,
}

/// A place that the judge wants changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewLocation {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// Text found at that place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<String>,
    /// The operation to do there: `replace`, `insert`, `delete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
}

/// The result of a requested review.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reviewed {
    /// `None` if there was no answer of the judge, or it could not be understood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ReviewVerdict>,
    /// The reason why there is no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    pub tokens: u64,
    /// The number of requests to the judge.
    pub asked: u32,
    /// The model that judged, and the tokens it used; journals of earlier versions do not have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl ReviewVerdict {
    /// The verdict as text for a reader.
    pub fn description(&self) -> String {
        let mut text = if self.pass { "pass" } else { "fail" }.to_owned();
        for (head, rows) in [("Reasons", &self.reasons), ("Suggestions", &self.suggestions)] {
            if !rows.is_empty() {
                text.push_str(&format!("\n{head}:"));
                rows.iter().for_each(|row| text.push_str(&format!("\n- {row}")));
            }
        }
        if !self.locations.is_empty() {
            text.push_str("\nWhere:");
            self.locations.iter().for_each(|place| text.push_str(&format!("\n- {}", place.description())));
        }
        text
    }
}

impl ReviewLocation {
    fn description(&self) -> String {
        let mut text = self.path.clone();
        match (self.start_line, self.end_line) {
            (Some(start), Some(end)) if end != start => text.push_str(&format!(":{start}-{end}")),
            (Some(line), _) | (None, Some(line)) => text.push_str(&format!(":{line}")),
            (None, None) => {}
        }
        if let Some(operation) = &self.operation {
            text.push_str(&format!(" {operation}"));
        }
        if let Some(anchor) = &self.anchor {
            text.push_str(&format!(" at `{anchor}`"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_reads_like_a_review() {
        let verdict: ReviewVerdict = serde_json::from_str(
            r#"{"pass":false,"reasons":["no test"],"suggestions":["add one"],"locations":[{"path":"a.py","start_line":3,"end_line":5,"operation":"replace"},{"path":"b.py","anchor":"def f"}]}"#,
        )
        .unwrap();
        assert_eq!(
            verdict.description(),
            "fail\nReasons:\n- no test\nSuggestions:\n- add one\nWhere:\n- a.py:3-5 replace\n- b.py at `def f`"
        );
    }

    #[test]
    fn a_verdict_is_read_strictly() {
        for wrong in [
            r#"{"pass":"yes","reasons":[],"suggestions":[],"locations":[]}"#,
            r#"{"pass":true}"#,
            r#"{"pass":true,"reasons":[],"suggestions":[],"locations":[],"mood":1}"#,
            r#"{"pass":true,"reasons":[],"suggestions":[],"locations":[{"line":1}]}"#,
        ] {
            assert!(serde_json::from_str::<ReviewVerdict>(wrong).is_err(), "{wrong}");
        }
    }
}
