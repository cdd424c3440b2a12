//! The toolbox of a session: finds the face a call names, prepares it for the gate, runs it, and words its result.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use lathe_blobs::BlobError;
use lathe_policy::Permit;
use lathe_protocol::{
    Arguments, CallFinished, Change, Digest, Effects, Lane, Raw, ToolCall, ToolError, ToolErrorKind,
    ToolSpec, Toolset, Truncation,
};
use lathe_workspace::Applied;
use serde_json::Value;

use crate::face::{Face, faces};
use crate::outcome::{Data, Outcome};
use crate::problem::Problem;
use crate::services::Services;
use crate::tool::{Invocation, RunContext, Tool};
use crate::{bash, done, edit, think, view, write};

pub struct Toolbox {
    toolset: Toolset,
    tools: HashMap<&'static str, Box<dyn Tool>>,
    services: Arc<Services>,
}

/// A call that is ready to be decided on and run.
pub struct Prepared {
    pub tool: &'static str,
    pub about: String,
    pub effects: Effects,
    pub lane: Lane,
    name: String,
    face: &'static Face,
    invocation: Box<dyn Invocation>,
}

impl Toolbox {
    pub fn new(toolset: Toolset, services: Arc<Services>) -> Self {
        let all: [Box<dyn Tool>; 6] = [
            Box::new(bash::BashTool),
            Box::new(view::ViewTool),
            Box::new(edit::EditTool),
            Box::new(write::WriteTool),
            Box::new(think::ThinkTool),
            Box::new(done::DoneTool),
        ];
        Self {
            toolset,
            tools: all.into_iter().map(|tool| (tool.id(), tool)).collect(),
            services,
        }
    }

    pub fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// What the model is told, always in the same order and bytes.
    pub fn specs(toolset: Toolset) -> Vec<ToolSpec> {
        let spec = |face: &Face| ToolSpec {
            name: face.name.to_owned(),
            description: face.description.trim_end().to_owned(),
            schema: (face.schema)(),
        };
        faces(toolset).iter().map(spec).collect()
    }

    /// Checks a call and says what it would do. A call that cannot be made comes back as its result.
    pub fn prepare(&self, call: &ToolCall) -> Result<Prepared, Box<CallFinished>> {
        let failed =
            |kind, message: String| Box::new(CallFinished::failed(&call.name, kind, self.clean(&message)));
        let Some(face) = self.face(&call.name) else {
            return Err(failed(ToolErrorKind::ToolNotRegistered, self.unknown(&call.name)));
        };
        let value = match &call.arguments {
            Arguments::Json(raw) => raw.to_value().map_err(|error| error.to_string()),
            Arguments::Malformed(text) => match serde_json::from_str::<Value>(text) {
                Ok(_) => Err("a JSON object is wanted, not a string".to_owned()),
                Err(error) => Err(error.to_string()),
            },
        };
        let value = value.map_err(|reason| {
            failed(
                ToolErrorKind::InvalidToolParams,
                format!("The arguments of {} are not valid JSON: {reason}.", call.name),
            )
        })?;
        let problem = |problem: Problem| failed(problem.kind(), (face.words)(&problem));
        let (id, arguments) = (face.adapt)(value).map_err(problem)?;
        let Some(tool) = self.tools.get(id) else {
            return Err(failed(ToolErrorKind::ToolNotRegistered, self.unknown(&call.name)));
        };
        let invocation = tool.build(arguments, &self.services.root).map_err(problem)?;
        Ok(Prepared {
            tool: id,
            about: self.clean(&invocation.describe()),
            effects: invocation.effects(),
            lane: invocation.lane(),
            name: call.name.clone(),
            face,
            invocation,
        })
    }

    /// Runs a prepared call. Whatever happens, there is one result.
    pub async fn run(&self, prepared: Prepared, permit: Permit, context: RunContext) -> CallFinished {
        let began = Instant::now();
        let Prepared {
            name,
            face,
            invocation,
            ..
        } = prepared;
        let by = context.call.clone();
        let outcome = invocation.run(permit, context).await;
        let mut finished = self.finish(&name, face, outcome, by);
        finished.took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        finished
    }

    fn finish(&self, name: &str, face: &Face, outcome: Outcome, by: lathe_protocol::CallId) -> CallFinished {
        let Outcome {
            data,
            changes,
            seen,
            memory,
        } = outcome;
        let recorded = changes
            .into_iter()
            .map(|applied| self.record(applied, by.clone()))
            .collect::<Result<_, _>>();
        let mut finished = match &data {
            Ok(data) => {
                let text = self.clean(&(face.render)(data, face.cap));
                let mut finished = CallFinished {
                    text,
                    error: data.failure(),
                    ..CallFinished::failed(name, ToolErrorKind::ExecutionFailed, "")
                };
                finished.data = Raw::from_serialize(&data.summary()).ok();
                finished.truncated = self.keep_whole(data, face.cap);
                finished
            }
            Err(problem) => CallFinished::failed(name, problem.kind(), self.clean(&(face.words)(problem))),
        };
        match recorded {
            Ok(changes) => finished.changes = changes,
            Err(error) => self.not_recorded(&mut finished, &error),
        }
        finished.seen = seen;
        finished.memory = memory;
        finished
    }

    /// The change is made but cannot be undone from the journal: said, never silent.
    fn not_recorded(&self, finished: &mut CallFinished, error: &BlobError) {
        let message =
            format!("The change was made, but its content could not be recorded (not undoable): {error}");
        finished.text = format!("{}\n{message}", finished.text);
        finished.error = Some(ToolError {
            kind: ToolErrorKind::NoSpaceLeft,
            message,
        });
    }

    fn record(&self, applied: Applied, by: lathe_protocol::CallId) -> Result<Change, BlobError> {
        let put = |bytes: Option<Vec<u8>>| -> Result<Option<Digest>, BlobError> {
            bytes.map(|bytes| self.services.blobs.put(&bytes)).transpose()
        };
        Ok(Change {
            path: applied.path.display().to_string(),
            before: put(applied.before)?,
            after: put(applied.after)?,
            mode: applied.mode,
            by,
        })
    }

    /// Output that was cut for the model is kept whole in a blob. If that fails, the run goes on without it.
    fn keep_whole(&self, data: &Data, cap: usize) -> Option<Truncation> {
        let Data::Shell(shell) = data else { return None };
        let total = shell.stdout.total() + shell.stderr.total();
        if shell.stdout.total() <= cap as u64 && shell.stderr.total() <= cap as u64 {
            return None;
        }
        let mut whole = shell.stdout.read_all().ok()?;
        whole.extend(shell.stderr.read_all().ok()?);
        let whole = self.services.redactor.bytes(&whole);
        let blob = self.services.blobs.put(&whole).ok()?;
        let shown = [&shell.stdout, &shell.stderr]
            .map(|spool| spool.total().min(cap as u64))
            .iter()
            .sum();
        Some(Truncation {
            blob,
            shown,
            total,
            kept: whole.len() as u64,
        })
    }

    fn clean(&self, text: &str) -> String {
        self.services.redactor.text(text).into_owned()
    }

    fn face(&self, name: &str) -> Option<&'static Face> {
        let faces = faces(self.toolset);
        let exact = faces.iter().find(|face| face.name == name);
        match self.toolset {
            Toolset::Lathe => exact,
            // Trae compares names without case and underscores.
            Toolset::Trae => exact.or_else(|| faces.iter().find(|face| folded(face.name) == folded(name))),
        }
    }

    fn unknown(&self, name: &str) -> String {
        let mut names: Vec<&str> = faces(self.toolset).iter().map(|face| face.name).collect();
        match self.toolset {
            Toolset::Trae => format!("Tool '{name}' not found. Available tools: {names:?}"),
            Toolset::Lathe => {
                names.sort_by_key(|known| distance(known, name));
                let nearest: Vec<String> = names.iter().take(3).map(|name| format!("\"{name}\"")).collect();
                format!(
                    "Tool \"{name}\" not found. Did you mean one of: {}?",
                    nearest.join(", ")
                )
            }
        }
    }
}

fn folded(name: &str) -> String {
    name.chars()
        .filter(|c| *c != '_')
        .flat_map(char::to_lowercase)
        .collect()
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (slot, y) in row.iter_mut().skip(1).zip(&b) {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = *slot;
            left = substituted.min(*slot + 1).min(left + 1);
            *slot = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_levenshteins() {
        for (a, b, expected) in [
            ("", "", 0),
            ("bash", "bash", 0),
            ("bash", "bsh", 1),
            ("view", "veiw", 2),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
