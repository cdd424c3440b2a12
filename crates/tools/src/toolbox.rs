//! The toolbox of a session: finds the face a call names, prepares it for the gate, runs it, and words its result.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use lathe_policy::Permit;
use lathe_protocol::{
    Arguments, CallFinished, Effects, Lane, ToolCall, ToolErrorKind, ToolSpec, Toolset, edit_distance,
};
use serde_json::Value;

use crate::face::{Face, faces};
use crate::finish::finish;
use crate::placeholder;
use crate::problem::Problem;
use crate::services::Services;
use crate::tool::{Invocation, RunContext, Tool};
use crate::{bash, done, edit, think, trae, view, write};

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

impl Prepared {
    /// The name the model called.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Toolbox {
    pub fn new(toolset: Toolset, services: Arc<Services>) -> Self {
        let all: [Box<dyn Tool>; 7] = [
            Box::new(bash::BashTool),
            Box::new(view::ViewTool),
            Box::new(edit::EditTool),
            Box::new(write::WriteTool),
            Box::new(think::ThinkTool),
            Box::new(done::DoneTool),
            Box::new(trae::CheckTool),
        ];
        Self { toolset, tools: all.into_iter().map(|tool| (tool.id(), tool)).collect(), services }
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
        let value = object(&call.arguments).map_err(|reason| {
            failed(ToolErrorKind::InvalidToolParams, format!("The arguments of {} {reason}.", call.name))
        })?;
        let problem = |problem: Problem| failed(problem.kind(), (face.words)(&problem));
        let placeholder = placeholder::find(&value);
        let (id, arguments) = (face.adapt)(value).map_err(problem)?;
        let Some(tool) = self.tools.get(id) else {
            return Err(failed(ToolErrorKind::ToolNotRegistered, self.unknown(&call.name)));
        };
        let invocation = tool.build(arguments, &self.services.root).map_err(problem)?;
        let effects = invocation.effects();
        if let Some(placeholder) = placeholder.filter(|_| effects.change_something()) {
            return Err(problem(Problem::Placeholder(placeholder)));
        }
        Ok(Prepared {
            tool: id,
            about: self.clean(&invocation.describe()),
            effects,
            lane: invocation.lane(),
            name: call.name.clone(),
            face,
            invocation,
        })
    }

    /// Runs a prepared call. Whatever happens, there is one result.
    pub async fn run(&self, prepared: Prepared, permit: Permit, context: RunContext) -> CallFinished {
        let began = Instant::now();
        let Prepared { name, face, invocation, .. } = prepared;
        let by = context.call.clone();
        let outcome = invocation.run(permit, context).await;
        let mut finished = finish(&self.services, &name, face, outcome, by).await;
        finished.took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        finished
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
            Toolset::Trae => {
                let known: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
                format!("Tool '{name}' not found. Available tools: [{}]", known.join(", "))
            }
            Toolset::Lathe => {
                names.sort_by_key(|known| edit_distance(known, name));
                let nearest: Vec<String> = names.iter().take(3).map(|name| format!("\"{name}\"")).collect();
                format!("Tool \"{name}\" not found. Did you mean one of: {}?", nearest.join(", "))
            }
        }
    }
}

/// The arguments as an object, or what is wrong with them. Models that have nothing to say send null.
fn object(arguments: &Arguments) -> Result<Value, String> {
    let not_json = |error: serde_json::Error| format!("are not valid JSON: {error}");
    let other = |what: &str| Err(format!("must be a JSON object, not {what}"));
    let value = match arguments {
        Arguments::Json(raw) => raw.to_value().map_err(not_json)?,
        Arguments::Malformed(text) => serde_json::from_str(text).map_err(not_json)?,
    };
    match value {
        Value::Object(_) => Ok(value),
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        Value::Bool(_) => other("a boolean"),
        Value::Number(_) => other("a number"),
        Value::String(_) => other("a string"),
        Value::Array(_) => other("an array"),
    }
}

fn folded(name: &str) -> String {
    name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}
