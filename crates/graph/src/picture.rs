//! Draws a symbol and its neighbours as a page with one picture, and all calls for Graphviz.
//!
//! The page needs no script and no network. Callers are on the left, callees on the right.

use std::fmt::Write as _;

use crate::facts::UseKind;
use crate::query::{Query, ReplyItem};
use crate::resolve::Confidence;
use crate::select::select;
use crate::snapshot::Symbol;

const WIDE: i32 = 330;
const HIGH: i32 = 46;
const GAP: i32 = 12;
const MOST: usize = 24;

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most - 1).collect();
    format!("{kept}…")
}

fn boxed(out: &mut String, x: i32, y: i32, item: &ReplyItem, class: &str) {
    let place = format!("{}:{}", item.path, item.line);
    let place = if place.chars().count() > 44 {
        let tail: String = place.chars().rev().take(43).collect::<Vec<_>>().into_iter().rev().collect();
        format!("…{tail}")
    } else {
        place
    };
    let _ = writeln!(
        out,
        "<g class=\"{class}\"><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{WIDE}\" height=\"{HIGH}\" rx=\"7\"/>\
         <text x=\"{}\" y=\"{}\" class=\"name\">{}</text><text x=\"{}\" y=\"{}\">{}</text></g>",
        escape(&item.signature),
        x + 10,
        y + 19,
        escape(&short(&format!("{} {}", item.kind, item.symbol), 40)),
        x + 10,
        y + 36,
        escape(&place)
    );
}

impl Query<'_> {
    /// A page about a symbol. None if nothing has that name.
    pub fn picture(&self, of: &str) -> Option<String> {
        let centre = *select(self.snapshot, of).first()?;
        let item = self.item(centre);
        let full = format!("{}:{}", item.path, item.line);
        let (mut callers, mut callees) = (self.callers(&full).items, self.callees(&full).items);
        if callers.is_empty() {
            callers = self.refs(&full).items;
        }
        let hidden = callers.len().saturating_sub(MOST) + callees.len().saturating_sub(MOST);
        callers.truncate(MOST);
        callees.truncate(MOST);
        let rows = callers.len().max(callees.len()).max(1) as i32;
        let height = rows * (HIGH + GAP) + GAP;
        let middle = height / 2 - HIGH / 2;
        let (left, centre_x, right) = (10, WIDE + 110, 2 * WIDE + 210);
        let mut out = String::new();
        let name = escape(&item.symbol);
        let _ = write!(
            out,
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{name}</title><style>\
             body{{font:15px/1.5 system-ui,sans-serif;margin:24px;background:#fff;color:#1c2430}}\
             svg text{{font:11px ui-monospace,monospace;fill:#55606e}}svg .name{{font-size:12px;fill:#1c2430}}\
             rect{{fill:#f4f6f9;stroke:#9aa7b6}}.centre rect{{fill:#e3efff;stroke:#2f6fd0;stroke-width:2}}\
             .test rect{{fill:#e9f7ec;stroke:#3a9b55}}path{{fill:none;stroke:#2f6fd0;stroke-width:1.5}}\
             path.likely{{stroke:#c98a17}}path.guess{{stroke:#b9c1ca;stroke-dasharray:4 4}}</style>\
             <h1>{name}</h1><p><code>{}</code></p><p>{}</p>\
             <p>Left: who uses it ({}). Right: what it calls ({}). Blue is exact, yellow likely, dashed a guess by name; \
             green boxes are tests.{}</p>",
            escape(&item.signature),
            escape(&item.doc),
            callers.len(),
            callees.len(),
            if hidden > 0 { format!(" {hidden} more are not drawn.") } else { String::new() }
        );
        let _ = writeln!(
            out,
            "<svg role=\"img\" aria-label=\"neighbours of {name}\" viewBox=\"0 0 {} {height}\" width=\"{}\">",
            right + WIDE + 10,
            right + WIDE + 10
        );
        let top = |count: usize| (height - (count as i32) * (HIGH + GAP) + GAP) / 2;
        let class = |item: &ReplyItem| match item.confidence {
            Some(Confidence::Exact) | None => "exact",
            Some(Confidence::Likely) => "likely",
            Some(Confidence::NameOnly) => "guess",
        };
        let curve = |out: &mut String, from: (i32, i32), to: (i32, i32), class: &str| {
            let bend = (to.0 - from.0) / 2;
            let _ = writeln!(
                out,
                "<path class=\"{class}\" d=\"M{} {} C{} {} {} {} {} {}\"/>",
                from.0,
                from.1,
                from.0 + bend,
                from.1,
                to.0 - bend,
                to.1,
                to.0,
                to.1
            );
        };
        for (items, x, is_left) in [(&callers, left, true), (&callees, right, false)] {
            for (at, item) in items.iter().enumerate() {
                let y = top(items.len()) + at as i32 * (HIGH + GAP);
                let (edge, end) = ((x, y + HIGH / 2), middle + HIGH / 2);
                if is_left {
                    curve(&mut out, (edge.0 + WIDE, edge.1), (centre_x, end), class(item));
                } else {
                    curve(&mut out, (centre_x + WIDE, end), edge, class(item));
                }
                let is_test = item.at.is_some_and(|at| self.is_test(at));
                boxed(&mut out, x, y, item, if is_test { "test" } else { "other" });
            }
        }
        boxed(&mut out, centre_x, middle, &item, "centre");
        out.push_str("</svg></html>\n");
        Some(out)
    }

    /// Every call and its targets, one JSON object per line.
    pub fn calls(&self) -> String {
        let mut out = String::new();
        for file in 0..self.snapshot.files.len() as u32 {
            let facts = self.snapshot.facts(file);
            for site in facts.sites.iter().filter(|site| site.used == UseKind::Call) {
                let (targets, confidence) = self.resolver.site(file, site);
                let to: Vec<serde_json::Value> = targets
                    .iter()
                    .map(|to| {
                        let line = self.snapshot.def(*to).line;
                        serde_json::json!({ "path": self.snapshot.path(to.file), "line": line, "name": self.snapshot.name(*to) })
                    })
                    .collect();
                let confidence = (!to.is_empty()).then(|| confidence.name());
                let line = serde_json::json!({
                    "path": self.snapshot.path(file), "line": site.line, "name": facts.str(site.name),
                    "confidence": confidence, "to": to,
                });
                out.push_str(&format!("{line}\n"));
            }
        }
        out
    }

    /// All calls that are exact or likely, for Graphviz.
    pub fn dot(&self) -> String {
        let mut lines = Vec::new();
        let name = |symbol: Symbol| {
            let facts = self.snapshot.facts(symbol.file);
            let path = self.snapshot.path(symbol.file);
            format!("\"{path}:{}\"", facts.path_of(self.snapshot.def(symbol)).replace(['"', '\\'], "'"))
        };
        for file in 0..self.snapshot.files.len() as u32 {
            for site in self.snapshot.facts(file).sites.iter().filter(|site| site.used == UseKind::Call) {
                let (targets, confidence) = self.resolver.site(file, site);
                if confidence == Confidence::NameOnly || self.snapshot.facts(file).def(site.def).is_none() {
                    continue;
                }
                for target in targets {
                    lines.push(format!("  {} -> {};", name(Symbol { file, def: site.def }), name(target)));
                }
            }
        }
        lines.sort();
        lines.dedup();
        format!("digraph calls {{\n{}\n}}\n", lines.join("\n"))
    }
}
