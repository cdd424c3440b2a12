//! The top of the page: the task, its result, and the numbers that matter.

use std::fmt::Write as _;

use lathe_protocol::grouped;

use super::Page;
use super::escape::EscapedText;
use super::parts::short;
use crate::cost::Money;
use crate::messages::{Say, Tell};
use crate::time::duration;

/// A task longer than this is folded below its first line.
const TITLE_MAX: usize = 160;

impl Page<'_> {
    pub(super) fn head(&self, out: &mut String) {
        let last = self.session.runs.last();
        out.push_str("<header>\n<p class=\"eyebrow\">");
        let _ = write!(out, "<b>Lathe</b> {}", self.say(Say::Report));
        if let Some(id) = self.session.id() {
            let _ = write!(out, " <code>{}</code>", EscapedText(id.as_str()));
        }
        out.push_str("</p>\n");
        let title = self.title();
        let line = short(title, TITLE_MAX);
        let _ = write!(out, "<h1>{}</h1>\n<p class=\"status\">", EscapedText(&line));
        self.badge(last.and_then(|run| run.finished).map(|finished| finished.ending), out);
        if let Some(first) = self.session.runs.first() {
            let _ = write!(
                out,
                " <span>{} {}</span>",
                self.say(Say::Began),
                EscapedText(&self.when(first.began))
            );
        }
        out.push_str("</p>\n");
        // With several runs each shows its own task.
        let task = self.task();
        if line != task {
            let _ = write!(out, "<details class=\"task\"><summary>{}</summary>", self.say(Say::TaskLabel));
            self.block("prose", task, out);
            out.push_str("</details>\n");
        }
        if let [run] = &self.session.runs[..] {
            self.result(run, out);
        }
        self.tiles(out);
        self.facts(out);
        out.push_str("</header>\n");
    }

    fn tiles(&self, out: &mut String) {
        let took: u64 = self.session.runs.iter().map(|run| run.duration_ms()).sum();
        let calls: Vec<_> = self.session.steps().flat_map(|step| &step.calls).collect();
        let failed = calls.iter().filter(|call| call.failed()).count();
        let usage = self.session.usage();
        out.push_str("<ul class=\"tiles\">\n");
        tile(out, self.say(Say::Duration), &duration(took), "");
        tile(out, self.say(Say::PageSteps), &self.session.steps().count().to_string(), "");
        let note = match failed {
            0 => String::new(),
            failed => format!("{failed} {}", self.say(Say::FailedLower)),
        };
        tile(out, self.say(Say::Calls), &calls.len().to_string(), &note);
        let note = match usage.cache_read_input_tokens.saturating_mul(100).checked_div(usage.input_tokens) {
            None | Some(0) => String::new(),
            Some(percent) => format!("{percent} % {}", self.say(Say::Cached)),
        };
        tile(out, self.say(Say::InputTokens), &grouped(usage.input_tokens), &note);
        let note = match usage.reasoning_tokens {
            0 => String::new(),
            reasoning => format!("{} {}", grouped(reasoning), self.say(Say::Reasoning)),
        };
        tile(out, self.say(Say::OutputTokens), &grouped(usage.output_tokens), &note);
        let (cost, note) = self.cost();
        tile(out, self.say(Say::Cost), &cost, &note);
        out.push_str("</ul>\n");
    }

    /// The whole cost, and what it leaves out.
    fn cost(&self) -> (String, String) {
        let answered = || self.session.steps().filter(|step| step.answer.is_some());
        let known: Vec<Money> = answered().filter_map(|step| self.cost_of(step)).collect();
        let mut unknown: Vec<&str> = answered()
            .filter(|step| self.cost_of(step).is_none())
            .filter_map(|step| step.answer.map(|answer| answer.model.as_str()))
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        let total = known.iter().copied().sum::<Money>().to_string();
        match (known.is_empty(), unknown.is_empty()) {
            (_, true) => (total, self.say(Say::PricesAsOf).to_owned()),
            (true, false) => (self.say(Say::Unknown).to_owned(), self.unpriced(&unknown)),
            (false, false) => (format!("≥ {total}"), self.unpriced(&unknown)),
        }
    }

    fn unpriced(&self, models: &[&str]) -> String {
        Tell::PriceUnknown { models: &models.join(", ") }.text(self.language)
    }

    fn facts(&self, out: &mut String) {
        let Some(opened) = self.session.opened else { return };
        let options = self.session.runs.last().and_then(|run| run.options).unwrap_or(&opened.options);
        out.push_str("<dl class=\"facts\">\n");
        let mut fact = |name: Say, value: &str| {
            let _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", self.say(name), EscapedText(value));
        };
        fact(Say::Workspace, &opened.workspace);
        fact(Say::PageModel, &format!("{} / {}", options.model.provider, options.model.model));
        fact(Say::PageMode, options.mode.as_str());
        fact(Say::PageSandbox, options.sandbox.as_str());
        fact(Say::Toolset, options.toolset.as_str());
        if let Some(forked) = &opened.forked {
            fact(Say::ForkedFrom, &format!("{} @ {}", forked.from, forked.at));
        }
        fact(Say::Version, &opened.lathe);
        out.push_str("</dl>\n");
    }
}

fn tile(out: &mut String, name: &str, value: &str, note: &str) {
    let _ = write!(out, "<li><span>{name}</span><strong>{}</strong>", EscapedText(value));
    if !note.is_empty() {
        let _ = write!(out, "<small>{}</small>", EscapedText(note));
    }
    out.push_str("</li>\n");
}
