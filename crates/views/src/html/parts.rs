//! Small pieces of the page.

use std::fmt::Write as _;

use lathe_protocol::{Ending, StepNo, StepState, Usage, grouped};

use super::Page;
use super::escape::EscapedText;
use crate::cost::Money;
use crate::lengths::shortened;
use crate::messages::Say;
use crate::session::StepView;

/// The part of a text that is shown before the reader unfolds it.
const LINES_SHOWN: usize = 24;
const CHARS_SHOWN: usize = 4000;

/// The outcome of something, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Bad,
    Warn,
    Plain,
}

impl Tone {
    pub(super) fn class(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Warn => "warn",
            Tone::Plain => "plain",
        }
    }
}

impl Page<'_> {
    /// The ending of a run as a badge: colour and words, never colour alone.
    pub(super) fn badge(&self, ending: Option<Ending>, out: &mut String) {
        let (tone, word) = match ending {
            None => (Tone::Plain, Say::Running),
            Some(Ending::Done) => (Tone::Good, Say::EndDone),
            Some(Ending::Answered) => (Tone::Good, Say::EndAnswered),
            Some(Ending::Failed) => (Tone::Bad, Say::EndFailed),
            Some(Ending::ModelUnavailable) => (Tone::Bad, Say::EndModel),
            Some(Ending::StepsUsedUp) => (Tone::Bad, Say::EndSteps),
            Some(Ending::BudgetUsedUp) => (Tone::Bad, Say::EndBudget),
            Some(Ending::Denied) => (Tone::Bad, Say::EndDenied),
            Some(Ending::DiskFull) => (Tone::Bad, Say::EndDisk),
            Some(Ending::Cancelled) => (Tone::Warn, Say::EndCancelled),
        };
        let _ = write!(out, "<span class=\"badge {}\">{}</span>", tone.class(), self.say(word));
    }

    pub(super) fn chip(&self, tone: Tone, text: &str, out: &mut String) {
        let _ = write!(out, "<span class=\"chip {}\">{}</span>", tone.class(), EscapedText(text));
    }

    /// The state of a step, where it is not the ordinary one.
    pub(super) fn state_word(&self, state: StepState) -> Option<(Tone, &'static str)> {
        match state {
            StepState::Completed => None,
            StepState::Thinking => Some((Tone::Plain, self.say(Say::StateThinking))),
            StepState::CallingTool => Some((Tone::Plain, self.say(Say::StateCalling))),
            StepState::Reflecting => Some((Tone::Plain, self.say(Say::StateReflecting))),
            StepState::Error => Some((Tone::Bad, self.say(Say::PageStateError))),
        }
    }

    /// A text as it is, the later part of a long one folded.
    pub(super) fn block(&self, class: &str, text: &str, out: &mut String) {
        let (head, rest) = clip(text);
        let _ = write!(out, "<pre class=\"{class}\">{}</pre>", EscapedText(head));
        if rest.is_empty() {
            return;
        }
        let lines = rest.lines().count();
        let more = if head.ends_with('\n') {
            format!("{} {}", grouped(lines as u64), self.say(Say::PageMoreLines))
        } else {
            self.say(Say::MoreText).to_owned()
        };
        let _ = write!(
            out,
            "<details class=\"more\"><summary>{} ({more})</summary><pre class=\"{class}\">{}</pre></details>",
            self.say(Say::ShowAll),
            EscapedText(rest),
        );
    }

    pub(super) fn cost_of(&self, step: &StepView<'_>) -> Option<Money> {
        let answer = step.answer?;
        self.prices.cost_of_answer(&answer.model, step.model, &answer.usage)
    }

    /// A path without the workspace it lies in.
    pub(super) fn path<'p>(&self, path: &'p str) -> &'p str {
        let workspace = self.session.opened.map_or("", |opened| &opened.workspace);
        path.strip_prefix(workspace)
            .and_then(|rest| rest.strip_prefix('/'))
            .filter(|rest| !rest.is_empty())
            .unwrap_or(path)
    }
}

/// The anchor of a step on the page.
pub(super) fn anchor(step: StepNo) -> String {
    format!("step-{step}")
}

/// The part of a text that is shown at once, and the rest.
fn clip(text: &str) -> (&str, &str) {
    let by_lines = text.match_indices('\n').nth(LINES_SHOWN - 1).map_or(text.len(), |(at, _)| at + 1);
    let by_chars = text.char_indices().nth(CHARS_SHOWN).map_or(text.len(), |(at, _)| at);
    let at = by_lines.min(by_chars);
    // A fold that hides next to nothing is only in the way.
    if text.len() - at < 200 && text[at..].lines().count() <= 4 {
        return (text, "");
    }
    text.split_at(at)
}

/// The first line, at most `most` characters of it.
pub(super) fn short(text: &str, most: usize) -> String {
    shortened(text.trim().lines().next().unwrap_or_default(), most)
}

/// A number in three digits or so.
pub(super) fn compact(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..10_000 => format!("{:.1}k", number as f64 / 1e3),
        10_000..1_000_000 => format!("{}k", (number + 500) / 1_000),
        1_000_000..10_000_000 => format!("{:.1}M", number as f64 / 1e6),
        _ => format!("{}M", (number + 500_000) / 1_000_000),
    }
}

/// Input that was paid in full.
pub(super) fn fresh(usage: &Usage) -> u64 {
    usage.input_tokens.saturating_sub(usage.cache_read_input_tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_line_or_within_a_long_one_and_nothing_is_lost() {
        let lines = "line\n".repeat(100);
        let (head, rest) = clip(&lines);
        assert_eq!((head.lines().count(), rest.lines().count()), (24, 76));
        let long = "é".repeat(10_000);
        let (head, rest) = clip(&long);
        assert_eq!((head.chars().count(), rest.chars().count()), (4_000, 6_000));
        assert_eq!(clip("short\n"), ("short\n", ""));
        let almost = "x\n".repeat(26);
        assert_eq!(clip(&almost).1, "");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            [999, 1_234, 45_678, 2_500_000, 12_000_000].map(compact),
            ["999", "1.2k", "46k", "2.5M", "12M"]
        );
        assert_eq!(short("  a\u{e9}bc\nd", 3), "aéb…");
    }
}
