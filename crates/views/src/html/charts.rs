//! Charts of the time, the tokens and the cost of each step.
//!
//! Places and widths are percentages, heights are pixels, and words stand next to the drawing rather than in it: so a
//! chart is as readable on a narrow screen as on a wide one. Tokens and dollars have a drawing each, one above the
//! other with the same columns; two scales in one drawing would invite a comparison that means nothing.

use std::fmt::Write as _;

use lathe_protocol::grouped;

use super::Page;
use super::escape::{Attr, EscapedText};
use super::parts::{anchor, compact, fresh};
use crate::cost::Money;
use crate::messages::Say;
use crate::session::StepView;
use crate::time::duration;

/// Width of a column at most, in percent: a few steps should not become slabs.
const COLUMN_MAX: f64 = 2.6;
const LANE: u32 = 22;
const TOKENS_HEIGHT: u32 = 140;
const COST_HEIGHT: u32 = 70;

/// One part of a column.
struct Part {
    class: &'static str,
    amount: u64,
}

impl Page<'_> {
    pub(super) fn charts(&self, out: &mut String) {
        let steps: Vec<&StepView<'_>> = self.session.steps().collect();
        if steps.is_empty() {
            return;
        }
        self.timeline(&steps, out);
        self.tokens(&steps, out);
    }

    fn timeline(&self, steps: &[&StepView<'_>], out: &mut String) {
        let model: u64 = steps.iter().map(|step| step.model_ms()).sum();
        let tools: u64 = steps.iter().map(|step| step.tool_ms()).sum();
        let whole = (model + tools).max(1) as f64;
        let percent = |ms: u64| format!("{:.0} %", 100.0 * ms as f64 / whole);
        self.section_head(Say::Time, Say::TimeAbout, out);
        out.push_str("<ul class=\"legend\">");
        for (class, word, ms) in [("model", Say::PageModel, model), ("tool", Say::ToolTime, tools)] {
            let _ = write!(
                out,
                "<li><i class=\"{class}\"></i>{} <b>{}</b> {}</li>",
                self.say(word),
                duration(ms),
                percent(ms)
            );
        }
        let _ = write!(
            out,
            "</ul>\n<div class=\"chart lanes\"><div class=\"axis\"><span>{}</span><span>{}</span></div>\
             <svg width=\"100%\" height=\"{}\" role=\"img\" aria-label=\"{}\">",
            self.say(Say::PageModel),
            self.say(Say::ToolTime),
            2 * LANE + 8,
            Attr(self.say(Say::Time)),
        );
        for top in [0, LANE + 8] {
            let _ = write!(
                out,
                "<rect class=\"lane\" x=\"0\" y=\"{top}\" width=\"100%\" height=\"{LANE}\" rx=\"3\"/>"
            );
        }
        let mut before = 0;
        for step in steps {
            let (model, tools) = (step.model_ms(), step.tool_ms());
            let about = format!(
                "{} {}: {} {}, {} {}",
                self.say(Say::PageStep),
                step.step,
                self.say(Say::PageModel),
                duration(model),
                self.say(Say::ToolTime),
                duration(tools)
            );
            self.link(step, &about, out);
            for (class, top, from, ms) in
                [("model", 0, before, model), ("tool", LANE + 8, before + model, tools)]
            {
                if ms > 0 {
                    // The least that can be seen is drawn for the shortest call.
                    let width = (100.0 * ms as f64 / whole).max(0.15);
                    let _ = write!(
                        out,
                        "<rect class=\"{class}\" x=\"{:.3}%\" y=\"{top}\" width=\"{width:.3}%\" height=\"{LANE}\" rx=\"2\"/>",
                        (100.0 * from as f64 / whole).min(100.0 - width)
                    );
                }
            }
            out.push_str("</a>");
            before += model + tools;
        }
        out.push_str("</svg></div>\n</section>\n");
    }

    fn tokens(&self, steps: &[&StepView<'_>], out: &mut String) {
        self.section_head(Say::Tokens, Say::TokensAbout, out);
        out.push_str("<ul class=\"legend\">");
        for (class, word) in
            [("cached", Say::CachedInput), ("fresh", Say::FreshInput), ("output", Say::Output)]
        {
            let _ = write!(out, "<li><i class=\"{class}\"></i>{}</li>", self.say(word));
        }
        out.push_str("</ul>\n");
        let tokens: Vec<Vec<Part>> = steps.iter().map(|step| token_parts(step)).collect();
        let about = |at: usize| {
            let usage = steps[at].usage();
            format!(
                "{} {} {}, {} {}, {} {}",
                self.column_name(steps[at]),
                grouped(usage.cache_read_input_tokens),
                self.say(Say::CachedInput),
                grouped(fresh(&usage)),
                self.say(Say::FreshInput),
                grouped(usage.output_tokens),
                self.say(Say::Output)
            )
        };
        self.columns(steps, &tokens, TOKENS_HEIGHT, self.say(Say::Tokens), &compact, &about, out);
        let costs: Vec<Option<Money>> = steps.iter().map(|step| self.cost_of(step)).collect();
        if costs.iter().any(Option::is_some) {
            let parts = costs
                .iter()
                .map(|cost| vec![Part { class: "cost", amount: cost.unwrap_or_default().micro_dollars() }]);
            let parts: Vec<Vec<Part>> = parts.collect();
            let dollars = |micro: u64| Money(micro).to_string();
            let about = |at: usize| {
                let cost = costs[at].map_or(self.say(Say::Unknown).to_owned(), |cost| cost.to_string());
                format!("{} {cost}", self.column_name(steps[at]))
            };
            self.columns(steps, &parts, COST_HEIGHT, self.say(Say::Cost), &dollars, &about, out);
        }
        self.step_axis(steps, out);
        out.push_str("</section>\n");
    }

    #[allow(clippy::too_many_arguments)] // One call for each of the two drawings; a struct would only name them twice.
    fn columns(
        &self,
        steps: &[&StepView<'_>],
        columns: &[Vec<Part>],
        height: u32,
        label: &str,
        scale: &dyn Fn(u64) -> String,
        about: &dyn Fn(usize) -> String,
        out: &mut String,
    ) {
        let sums = columns.iter().map(|parts| parts.iter().map(|part| part.amount).sum::<u64>());
        let top = sums.max().unwrap_or(0).max(1);
        let _ = write!(
            out,
            "<div class=\"chart\"><div class=\"axis\"><span>{}</span><span>{}</span><span>0</span></div>\
             <svg width=\"100%\" height=\"{height}\" role=\"img\" aria-label=\"{}\">",
            EscapedText(&scale(top)),
            EscapedText(&scale(top / 2)),
            Attr(label)
        );
        for line in [1, height / 2, height - 1] {
            let _ = write!(out, "<rect class=\"grid\" x=\"0\" y=\"{line}\" width=\"100%\" height=\"1\"/>");
        }
        let each = 100.0 / columns.len() as f64;
        let width = (each * 0.72).min(COLUMN_MAX);
        for (at, (step, parts)) in steps.iter().zip(columns).enumerate() {
            self.link(step, &about(at), out);
            let _ = write!(
                out,
                "<rect class=\"hit\" x=\"{:.3}%\" y=\"0\" width=\"{each:.3}%\" height=\"{height}\"/>",
                each * at as f64
            );
            let left = each * (at as f64 + 0.5) - width / 2.0;
            let mut bottom = f64::from(height - 1);
            for part in parts.iter().filter(|part| part.amount > 0) {
                let tall = (f64::from(height - 2) * part.amount as f64 / top as f64).max(1.0);
                bottom -= tall;
                let _ = write!(
                    out,
                    "<rect class=\"{}\" x=\"{left:.3}%\" y=\"{bottom:.1}\" width=\"{width:.3}%\" height=\"{tall:.1}\"/>",
                    part.class
                );
            }
            out.push_str("</a>");
        }
        out.push_str("</svg></div>\n");
    }

    /// The numbers of the steps, as many as fit.
    fn step_axis(&self, steps: &[&StepView<'_>], out: &mut String) {
        let every = steps.len().div_ceil(20).max(1);
        let each = 100.0 / steps.len() as f64;
        let _ = write!(
            out,
            "<div class=\"chart\"><div class=\"axis\"><span>{}</span></div><svg width=\"100%\" height=\"18\" aria-hidden=\"true\">",
            self.say(Say::PageStep)
        );
        for (at, step) in steps.iter().enumerate().filter(|(at, _)| at % every == 0) {
            let _ = write!(out, "<text x=\"{:.3}%\" y=\"13\">{}</text>", each * (at as f64 + 0.5), step.step);
        }
        out.push_str("</svg></div>\n");
    }

    fn section_head(&self, name: Say, about: Say, out: &mut String) {
        let _ = write!(
            out,
            "<section class=\"card\">\n<h2>{}</h2>\n<p class=\"about\">{}</p>\n",
            self.say(name),
            self.say(about)
        );
    }

    /// The opening tag of a link to a step, with its tooltip.
    fn link(&self, step: &StepView<'_>, about: &str, out: &mut String) {
        let _ =
            write!(out, "<a href=\"#{}\" tabindex=\"-1\"><title>{}</title>", anchor(step.step), Attr(about));
    }

    fn column_name(&self, step: &StepView<'_>) -> String {
        format!("{} {}:", self.say(Say::PageStep), step.step)
    }
}

/// The parts from the bottom: cached input, new input, output.
fn token_parts(step: &StepView<'_>) -> Vec<Part> {
    let usage = step.usage();
    let part = |class, amount| Part { class, amount };
    vec![
        part("cached", usage.cache_read_input_tokens),
        part("fresh", fresh(&usage)),
        part("output", usage.output_tokens),
    ]
}
