//! Answers one question by its name, as the tool, the command and the shell ask it.

use lathe_search::{unread_own_file, unread_sentence};
use serde_json::{Value, json};

use crate::error::GraphError;
use crate::graph::Graph;
use crate::query::Query;
use crate::rank::MapRequest;
use crate::wording::{render, worded_within};

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

/// A reply in words and as data.
#[derive(Debug, Clone)]
pub struct RenderedReply {
    pub text: String,
    pub json: Value,
}

/// The number of steps that `impact` follows.
const REACH: u32 = 6;

/// Answers a question about the present files.
pub fn ask(
    graph: &mut Graph,
    question: &str,
    target: &str,
    budget: usize,
) -> Result<RenderedReply, GraphError> {
    let asked = ask_once(graph, question, target, budget)?;
    // Facts that could not be read are missing in the reply: they are made again from the files, and the question is
    // asked again.
    if graph.repair()? { ask_once(graph, question, target, budget) } else { Ok(asked) }
}

fn ask_once(
    graph: &mut Graph,
    question: &str,
    target: &str,
    budget: usize,
) -> Result<RenderedReply, GraphError> {
    if !QUESTIONS.contains(&question) {
        let known = QUESTIONS.join(", ");
        return Err(GraphError::Question(format!("there is no question `{question}`; there are {known}")));
    }
    if target.trim().is_empty() && !matches!(question, "map" | "impact") {
        let wants = match question {
            "outline" => "a file",
            "imports" => "a file or a name",
            _ => "a name",
        };
        return Err(GraphError::Question(format!("`{question}` wants {wants}: `{question} WHAT`")));
    }
    let (snapshot, refreshed) = graph.present()?;
    let walk_ms = refreshed.walk.as_secs_f64() * 1000.0;
    let query = Query::new(&snapshot);
    let of = target.trim();
    let mut notes: Vec<String> = refreshed.partial().into_iter().chain(graph.take_messages()).collect();
    if !snapshot.left_out.is_empty() {
        notes.push(format!(
            "{} not in the graph (too large, minified, binary or too many)",
            match snapshot.left_out.len() {
                1 => "1 file is".to_owned(),
                count => format!("{count} files are"),
            }
        ));
    }
    if let Some(reason) = unread_own_file(&snapshot.root) {
        notes.push(unread_sentence(&snapshot.root, &snapshot.root, &reason));
    }
    let is_diff = of.starts_with("diff ") || of.starts_with("--- ") || of.contains("\n+++ ");
    let found = match question {
        "find" => query.find_hits(of, 200),
        "def" => query.def_hits(of),
        "refs" => query.refs_hits(of),
        "callers" => query.callers_hits(of),
        "callees" => query.callees_hits(of),
        "implements" => query.implements_hits(of),
        "imports" => query.imports_hits(of),
        "tests-of" => query.tests_of_hits(of),
        "outline" => query.outline_hits(of),
        "impact" if is_diff => query.impact_hits(target, REACH),
        "impact" => query.impact_named(of, REACH),
        _ => {
            let words = of.split_whitespace().map(str::to_owned).collect();
            let (mut text, files) = query.map(&MapRequest { budget, words, in_view: Vec::new() });
            for note in &notes {
                text.push_str(&format!("note: {note}\n"));
            }
            return Ok(RenderedReply {
                json: json!({ "map": text, "files": files, "notes": notes, "walk_ms": walk_ms }),
                text,
            });
        }
    };
    let mut answer = worded_within(graph, &query, found, budget);
    answer.notes.append(&mut notes);
    let mut value = serde_json::to_value(&answer).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.insert("walk_ms".into(), json!(walk_ms));
        object.insert("parsed".into(), json!(refreshed.parsed));
    }
    Ok(RenderedReply { text: render(&answer, budget), json: value })
}
