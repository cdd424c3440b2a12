//! One question by its name, as the tool, the command and the shell ask it.

use serde_json::{Value, json};

use crate::error::GraphError;
use crate::graph::Graph;
use crate::query::Query;
use crate::rank::MapWish;
use crate::select::select;
use crate::words::{add_context, render};

pub const QUESTIONS: [&str; 11] = [
    "find",
    "def",
    "refs",
    "callers",
    "callees",
    "implements",
    "imports",
    "tests-of",
    "outline",
    "map",
    "impact",
];

/// An answer in words and as data.
#[derive(Debug, Clone)]
pub struct Asked {
    pub text: String,
    pub json: Value,
}

/// Steps that `impact` follows.
const REACH: u32 = 6;

/// Asks about the files as they are now.
pub fn ask(graph: &mut Graph, question: &str, target: &str, budget: usize) -> Result<Asked, GraphError> {
    let (snapshot, refreshed) = graph.present()?;
    let query = Query::new(&snapshot);
    let of = target.trim();
    let mut notes: Vec<String> = refreshed.partial().into_iter().chain(graph.take_words()).collect();
    if !snapshot.left_out.is_empty() {
        notes.push(format!(
            "{} files are not in the graph (too large, minified, binary or too many)",
            snapshot.left_out.len()
        ));
    }
    let is_diff = of.starts_with("diff ") || of.starts_with("--- ") || of.contains("\n+++ ");
    let mut answer = match question {
        "find" => query.find(of, 200),
        "def" => query.def(of),
        "refs" => query.refs(of),
        "callers" => query.callers(of),
        "callees" => query.callees(of),
        "implements" => query.implements(of),
        "imports" => query.imports(of),
        "tests-of" => query.tests_of(of),
        "outline" => query.outline(of),
        "impact" if is_diff => query.impact(target, REACH),
        "impact" => query.impact_of(&select(&snapshot, of), REACH),
        "map" => {
            let words = of.split_whitespace().map(str::to_owned).collect();
            let (mut text, files) = query.map(&MapWish { budget, words, in_view: Vec::new() });
            for note in &notes {
                text.push_str(&format!("note: {note}\n"));
            }
            return Ok(Asked { json: json!({ "map": text, "files": files, "notes": notes }), text });
        }
        other => {
            let known = QUESTIONS.join(", ");
            return Err(GraphError::Question(format!("there is no question `{other}`; there are {known}")));
        }
    };
    add_context(graph, &snapshot, &mut answer);
    answer.notes.append(&mut notes);
    let mut value = serde_json::to_value(&answer).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.insert("walk_ms".into(), json!(refreshed.walk.as_secs_f64() * 1000.0));
        object.insert("parsed".into(), json!(refreshed.parsed));
    }
    Ok(Asked { text: render(&answer, budget), json: value })
}
