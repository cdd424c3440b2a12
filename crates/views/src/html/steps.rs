//! The steps, each a card that folds: what the model thought, said and called, and what came back.

use std::fmt::Write as _;

use lathe_protocol::{ApprovalAnswer, Arguments, Block, Verdict, grouped};
use serde_json::Value;

use super::Page;
use super::escape::EscapedText;
use super::parts::{Tone, anchor, compact, short};
use crate::messages::{Say, Tell};
use crate::session::{CallView, RunView, StepView};
use crate::time::duration;

/// Characters of the one line that stands for a step.
const GIST_MAX: usize = 280;
/// Up to this many steps the cards are open from the start.
const OPEN_UP_TO: usize = 12;

impl Page<'_> {
    pub(super) fn runs(&self, out: &mut String) {
        let count = self.session.steps().count();
        let open = if count <= OPEN_UP_TO { " open" } else { "" };
        let alone = self.session.runs.len() == 1;
        if count > 0 {
            let _ = writeln!(
                out,
                "<div class=\"bar\"><h2>{}</h2><button type=\"button\" id=\"open\">{}</button>\
                 <button type=\"button\" id=\"close\">{}</button></div>",
                self.say(Say::PageSteps),
                self.say(Say::OpenAll),
                self.say(Say::CloseAll)
            );
        }
        for run in &self.session.runs {
            if !alone {
                self.run_head(run, out);
            }
            for step in &run.steps {
                self.step(step, open, out);
            }
            if !alone {
                self.result(run, out);
            }
        }
    }

    fn run_head(&self, run: &RunView<'_>, out: &mut String) {
        let _ = write!(out, "<div class=\"run\"><h3>{} {}</h3> ", self.say(Say::Run), run.run);
        self.badge(run.finished.map(|finished| finished.ending), out);
        let _ = write!(out, "<span>{} {}</span>", run.steps.len(), self.say(Say::StepsLower));
        let _ = write!(out, "<span>{}</span>", duration(run.duration_ms()));
        self.block("prose", run.task, out);
        out.push_str("</div>\n");
    }

    /// The result of a run.
    pub(super) fn result(&self, run: &RunView<'_>, out: &mut String) {
        let Some(finished) = run.finished.filter(|finished| !finished.result.is_empty()) else {
            return;
        };
        let tone = if finished.ending.is_success() { Tone::Good } else { Tone::Bad };
        let _ = write!(
            out,
            "<section class=\"result {}\" aria-label=\"{}\">",
            tone.class(),
            self.say(Say::Result)
        );
        self.block("prose", &finished.result, out);
        out.push_str("</section>\n");
    }

    fn step(&self, step: &StepView<'_>, open: &str, out: &mut String) {
        let gist = gist(step);
        let _ = write!(
            out,
            "<details class=\"step\" id=\"{}\"{open}>\n<summary><span class=\"no\">{}</span><span class=\"gist\">{}</span><span class=\"meta\">",
            anchor(step.step),
            step.step,
            EscapedText(&gist),
        );
        if let Some((tone, word)) = self.state_word(step.state()) {
            self.chip(tone, word, out);
        }
        let failed = step.calls.iter().filter(|call| call.failed()).count();
        if failed > 0 {
            self.chip(Tone::Bad, &format!("{failed} {}", self.say(Say::FailedLower)), out);
        }
        let usage = step.usage();
        let _ = write!(
            out,
            "<span>{}</span><span>↑{} ↓{}</span>",
            duration(step.model_ms() + step.tool_ms()),
            compact(usage.input_tokens),
            compact(usage.output_tokens)
        );
        if let Some(cost) = self.cost_of(step) {
            let _ = write!(out, "<span>{}</span>", EscapedText(&cost.to_string()));
        }
        out.push_str("</span></summary>\n<div class=\"body\">\n");
        self.answer(step, &gist, out);
        for call in &step.calls {
            self.call(call, out);
        }
        for (word, text) in [(Say::Reflection, step.reflection), (Say::Reminder, step.reminder)] {
            if let Some(text) = text {
                let _ = write!(out, "<div class=\"told\"><h4>{}</h4>", self.say(word));
                self.block("prose", text, out);
                out.push_str("</div>\n");
            }
        }
        out.push_str("</div>\n</details>\n");
    }

    fn answer(&self, step: &StepView<'_>, gist: &str, out: &mut String) {
        if let Some(failure) = step.failure {
            let _ = write!(out, "<div class=\"failure\"><h4>{}</h4>", self.say(Say::Error));
            self.block("prose", &failure.message, out);
            out.push_str("</div>\n");
        }
        let Some(answer) = step.answer else {
            if step.failure.is_none() {
                let _ = write!(out, "<p class=\"note\">{}</p>", self.say(Say::Unanswered));
            }
            return;
        };
        for block in &answer.blocks {
            match block {
                Block::Thinking(thinking) if !thinking.text.trim().is_empty() => {
                    let _ = write!(
                        out,
                        "<details class=\"thinking\"><summary>{}</summary>",
                        self.say(Say::PageThinking)
                    );
                    self.block("prose", thinking.text.trim(), out);
                    out.push_str("</details>\n");
                }
                // A text that the line above shows in full is not repeated.
                Block::Text(text) if !text.text.trim().is_empty() && text.text.trim() != gist => {
                    self.block("prose said", text.text.trim(), out);
                }
                // Calls follow with their results; what is opaque has nothing to read in it.
                Block::Thinking(_) | Block::Text(_) | Block::Call(_) | Block::Opaque(_) => {}
            }
        }
    }

    fn call(&self, call: &CallView<'_>, out: &mut String) {
        let class = match (call.failed(), call.denied()) {
            (true, _) | (_, true) => "call bad",
            (false, false) => "call",
        };
        let _ = write!(out, "<article class=\"{class}\">\n<h4><code>{}</code>", EscapedText(&call.call.name));
        self.call_chips(call, out);
        out.push_str("</h4>\n");
        self.arguments(&call.call.arguments, out);
        if let Some(decided) = call.decided {
            let decision = &decided.decision;
            let (tone, word) = match (decision.verdict, call.answer) {
                (Verdict::Allow, _) => (Tone::Plain, Say::Allowed),
                (Verdict::Deny, _) | (Verdict::Ask, Some(ApprovalAnswer::No)) => (Tone::Bad, Say::Denied),
                (Verdict::Ask, Some(_)) => (Tone::Plain, Say::Approved),
                (Verdict::Ask, None) => (Tone::Warn, Say::Asked),
            };
            let _ = writeln!(
                out,
                "<p class=\"decision {}\"><b>{}</b> <code>{}</code> {}</p>",
                tone.class(),
                self.say(word),
                EscapedText(&decision.rule),
                EscapedText(&decision.reason)
            );
        }
        self.call_result(call, out);
        out.push_str("</article>\n");
    }

    fn call_chips(&self, call: &CallView<'_>, out: &mut String) {
        out.push_str("<span class=\"meta\">");
        if call.denied() {
            self.chip(Tone::Bad, self.say(Say::Denied), out);
        } else if call.failed() {
            self.chip(Tone::Bad, self.say(Say::Error), out);
        }
        if let Some(code) = call.exit_code() {
            let tone = if code == 0 { Tone::Good } else { Tone::Bad };
            self.chip(tone, &format!("{} {code}", self.say(Say::Exit)), out);
        }
        match (call.started, call.finished) {
            (Some(_), Some(finished)) => {
                let _ = write!(out, "<span>{}</span>", duration(finished.took_ms));
            }
            (None, Some(_)) => {
                let _ = write!(out, "<span>{}</span>", self.say(Say::NotRun));
            }
            (_, None) => {}
        }
        out.push_str("</span>");
    }

    fn arguments(&self, arguments: &Arguments, out: &mut String) {
        let fields = match arguments {
            Arguments::Json(raw) => raw.to_value().ok(),
            Arguments::Malformed(_) => None,
        };
        let Some(Value::Object(fields)) = fields else {
            let _ = write!(out, "<dl class=\"arguments\"><div><dt>{}</dt><dd>", self.say(Say::Malformed));
            self.block("value", arguments.as_text(), out);
            out.push_str("</dd></div></dl>\n");
            return;
        };
        if fields.is_empty() {
            return;
        }
        let _ = write!(out, "<dl class=\"arguments\" aria-label=\"{}\">", self.say(Say::Arguments));
        for (name, value) in &fields {
            let _ = write!(out, "<div><dt>{}</dt><dd>", EscapedText(name));
            match value {
                Value::String(text) => self.block("value", text, out),
                other => {
                    let text = serde_json::to_string_pretty(other).unwrap_or_default();
                    self.block("value", &text, out);
                }
            }
            out.push_str("</dd></div>");
        }
        out.push_str("</dl>\n");
    }

    fn call_result(&self, call: &CallView<'_>, out: &mut String) {
        let Some(finished) = call.finished else {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", self.say(Say::NoResult));
            return;
        };
        if let Some(error) = &finished.error
            && error.message.trim() != finished.text.trim()
        {
            self.block("error", &error.message, out);
        }
        for change in &finished.changes {
            let _ = write!(out, "<h5><code>{}</code></h5>", EscapedText(self.path(&change.path)));
            self.diff(&change.path, change.before.as_ref(), change.after.as_ref(), out);
        }
        let class = if finished.error.is_some() { "error" } else { "output" };
        match finished.text.trim_end() {
            "" => {
                let _ = writeln!(out, "<p class=\"note\">{}</p>", self.say(Say::Empty));
            }
            // If the diff is shown, the text only repeats it.
            text if finished.error.is_none() && !finished.changes.is_empty() => {
                let _ = write!(out, "<details class=\"more\"><summary>{}</summary>", self.say(Say::Result));
                self.block(class, text, out);
                out.push_str("</details>\n");
            }
            text => self.block(class, text, out),
        }
        if let Some(cut) = &finished.truncated {
            let (shown, all) = (&*grouped(cut.shown), &*grouped(cut.total));
            let text = Tell::ShownToModel { shown, all }.text(self.language);
            let _ = writeln!(out, "<p class=\"note\">{text}</p>");
        }
    }
}

/// A step in one line: what the model said, or what it called.
fn gist(step: &StepView<'_>) -> String {
    let first_text =
        step.answer.into_iter().flat_map(|answer| &answer.blocks).find_map(|block| match block {
            Block::Text(text) if !text.text.trim().is_empty() => Some(short(&text.text, GIST_MAX)),
            Block::Text(_) | Block::Thinking(_) | Block::Call(_) | Block::Opaque(_) => None,
        });
    first_text.unwrap_or_else(|| {
        let about: Vec<String> = step
            .calls
            .iter()
            .map(|call| match call.decided {
                Some(decided) => format!("{}: {}", call.call.name, short(&decided.about, 60)),
                None => call.call.name.clone(),
            })
            .collect();
        match (about.is_empty(), step.failure) {
            (false, _) => about.join(" · "),
            (true, Some(failure)) => short(&failure.message, GIST_MAX),
            (true, None) => "…".to_owned(),
        }
    })
}
