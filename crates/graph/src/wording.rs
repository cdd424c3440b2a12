//! Words answers for a model: symbol, signature, place, one line of source, within a budget, with the number of
//! omitted lines.

use crate::graph::Graph;
use crate::hash::QuickMap;
use crate::query::{GraphReply, HitList, Query, ReplyItem};
use crate::snapshot::Snapshot;

/// The approximate size of a token, for budgets.
const BYTES_PER_TOKEN: usize = 4;

pub fn tokens(text: &str) -> usize {
    text.len().div_ceil(BYTES_PER_TOKEN)
}

/// Sources that have been read, by file.
type Sources = QuickMap<u32, Vec<u8>>;

fn context(graph: &Graph, snapshot: &Snapshot, sources: &mut Sources, item: &mut ReplyItem) {
    let Some(file) = snapshot.files.get(item.file as usize) else { return };
    let source = sources.entry(item.file).or_insert_with(|| graph.bytes(file.content));
    // The line is counted from the definition around it, because files can be long.
    let around = item.at.and_then(|at| file.facts.def(at.def)).filter(|def| def.start_line <= item.line);
    let (from, skip) = around.map_or((0, item.line.saturating_sub(1)), |def| {
        let before = source.get(..def.start_byte as usize).unwrap_or_default();
        let from = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        (from, item.line - def.start_line)
    });
    let rest = source.get(from..).unwrap_or_default();
    let line = rest.split(|byte| *byte == b'\n').nth(skip as usize);
    let text = line.map(String::from_utf8_lossy).unwrap_or_default();
    let text = text.trim();
    item.context = (!text.is_empty()).then(|| crate::text::one_line(text, 160));
}

/// Fills in the source line at each place.
pub fn add_context(graph: &Graph, snapshot: &Snapshot, answer: &mut GraphReply) {
    let mut sources = Sources::default();
    for item in answer.items.iter_mut().take(400) {
        context(graph, snapshot, &mut sources, item);
    }
}

/// As much of an answer as fits into `budget` tokens. The rest is only counted, and costs nothing.
pub(crate) fn worded_within(graph: &Graph, query: &Query<'_>, found: HitList, budget: usize) -> GraphReply {
    let mut sources = Sources::default();
    let mut answer =
        GraphReply { title: found.title, items: Vec::new(), left_out: found.left_out, notes: found.notes };
    let mut used = answer.title.len() + 1;
    for hit in &found.hits {
        let mut item = query.item_of(hit);
        context(graph, query.snapshot, &mut sources, &mut item);
        let line = line_of(&item).len();
        if !answer.items.is_empty()
            && used.div_ceil(BYTES_PER_TOKEN) + line.div_ceil(BYTES_PER_TOKEN) > budget
        {
            break;
        }
        used += line;
        answer.items.push(item);
    }
    answer.left_out += found.hits.len() - answer.items.len();
    answer
}

/// The answer as text, within `budget` tokens.
pub fn render(answer: &GraphReply, budget: usize) -> String {
    let mut out = format!("{}\n", answer.title);
    let mut shown = 0;
    for item in &answer.items {
        let line = line_of(item);
        if tokens(&out) + tokens(&line) > budget && shown > 0 {
            break;
        }
        out.push_str(&line);
        shown += 1;
    }
    let left = answer.left_out + answer.items.len() - shown;
    if left > 0 {
        out.push_str(&format!("{left} more left out.\n"));
    }
    for note in &answer.notes {
        out.push_str(&format!("note: {note}\n"));
    }
    out
}

fn line_of(item: &ReplyItem) -> String {
    let mut line = format!("{}{}:{}", "  ".repeat(item.depth as usize), item.path, item.line);
    if item.end_line > item.line && item.used.is_none() && item.kind != "file" {
        line.push_str(&format!("-{}", item.end_line));
    }
    if item.kind != "file" {
        line.push_str(&format!(" {} {}", item.kind, item.symbol));
    }
    let mut marks = Vec::new();
    if let Some(used) = item.used {
        marks.push(used.to_owned());
    }
    if let Some(distance) = item.distance {
        marks.push(format!("distance {distance}"));
    }
    if let Some(confidence) = item.confidence {
        marks.push(confidence.name().to_owned());
    }
    if !marks.is_empty() {
        line.push_str(&format!(" [{}]", marks.join(", ")));
    }
    line.push('\n');
    let pad = "  ".repeat(item.depth as usize + 1);
    let signature = item.signature.as_str();
    match item.context.as_deref() {
        Some(context) if context.starts_with(signature) || signature.is_empty() => {
            line.push_str(&format!("{pad}{context}\n"));
        }
        Some(context) if item.used.is_some() || item.confidence.is_some() => {
            line.push_str(&format!("{pad}{context}\n"))
        }
        _ if !signature.is_empty() => line.push_str(&format!("{pad}{signature}\n")),
        _ => {}
    }
    if !item.doc.is_empty() && item.used.is_none() && item.confidence.is_none() {
        line.push_str(&format!("{pad}  {}\n", crate::text::one_line(&item.doc, 120)));
    }
    line
}
