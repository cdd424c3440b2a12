//! Typed calls: what a face or a command makes of the words it was given, and the only thing that a tool is built from.
//!
//! Each tool has one type for its parameters ([`Parameters`]). Where a model gives exactly these, the same type is its
//! schema and its parser. A toolset with other names, or a command with its words, has a type of its own ([`FaceForm`],
//! [`CommandForm`]) that is schema and parser in the same way and ends as the tool's parameters, so nothing between a face
//! and its tool is spelled as JSON. Rejected: one enum over all tools, which every tool would have to be added to.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::problem::Problem;
use crate::tool::{Invocation, arguments};

/// The parameters of one tool.
pub(crate) trait Parameters: Serialize + Send + Sync + 'static {
    /// The canonical name of the tool.
    const TOOL: &'static str;

    /// Checks the parameters and names what they would do. Nothing has happened yet.
    fn invocation(self, ground: &Ground<'_>) -> Result<Box<dyn Invocation>, Problem>;

    /// The file or folder that a command prints as a heading where it was given several.
    fn heading(&self) -> Option<&str> {
        None
    }

    /// Resolves what a shell line means from the folder that it runs in.
    fn resolve(&mut self, _folder: &Path) {}

    /// The same call with its pattern taken as plain text, if it has a pattern that was not.
    fn literal(&self) -> Option<TypedCall> {
        None
    }
}

/// The ground that a call is built on.
pub(crate) struct Ground<'a> {
    /// The folder in which relative paths begin.
    pub(crate) root: &'a Path,
    pub(crate) setup: &'a ToolSetup,
}

/// The settings that tools of a session are built with.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolSetup {
    /// The file of the user's facts; none where there is no place for it.
    pub(crate) memory: Option<PathBuf>,
    /// The host that keeps the session's documents; none where they are kept here.
    pub(crate) documents: Option<String>,
}

/// The parameters of a toolset for one of its tools, as a model gives them.
pub(crate) trait FaceForm: DeserializeOwned + JsonSchema {
    fn call(self) -> Result<TypedCall, Problem>;
}

/// A tool whose own parameters are given.
impl<P: Parameters + DeserializeOwned + JsonSchema> FaceForm for P {
    fn call(self) -> Result<TypedCall, Problem> {
        Ok(TypedCall { parameters: Box::new(self), is_translated: false })
    }
}

/// The words of a command in the shell. They may be several calls, one for each file.
pub(crate) trait CommandForm: DeserializeOwned + JsonSchema {
    fn calls(self) -> Result<Vec<TypedCall>, Problem>;
}

impl<F: FaceForm> CommandForm for F {
    fn calls(self) -> Result<Vec<TypedCall>, Problem> {
        Ok(vec![self.call()?])
    }
}

/// Reads the arguments of a model.
pub(crate) fn face_call<F: FaceForm>(value: Value) -> Result<TypedCall, Problem> {
    arguments::<F>(value)?.call()
}

/// Reads the words of a command.
pub(crate) fn command_calls<C: CommandForm>(value: Value) -> Result<Vec<TypedCall>, Problem> {
    arguments::<C>(value)?.calls()
}

/// A call of one tool, whichever it is.
pub(crate) struct TypedCall {
    parameters: Box<dyn AnyParameters>,
    /// Set if the parameters have other names than those that were given.
    is_translated: bool,
}

impl TypedCall {
    /// A call made of parameters that nobody gave in this form.
    pub(crate) fn new(parameters: impl Parameters) -> Self {
        Self { parameters: Box::new(parameters), is_translated: true }
    }

    /// The canonical name of its tool.
    pub(crate) fn tool(&self) -> &'static str {
        self.parameters.tool()
    }

    pub(crate) fn is_translated(&self) -> bool {
        self.is_translated
    }

    /// The parameters for rules about arguments. One that is not given is not there.
    pub(crate) fn json(&self) -> Value {
        let mut value = self.parameters.json();
        if let Value::Object(members) = &mut value {
            members.retain(|_, value| !value.is_null());
        }
        value
    }

    pub(crate) fn heading(&self) -> Option<&str> {
        self.parameters.heading()
    }

    pub(crate) fn resolve(&mut self, folder: &Path) {
        self.parameters.resolve(folder);
    }

    pub(crate) fn literal(&self) -> Option<Self> {
        self.parameters.literal()
    }

    pub(crate) fn build(self, ground: &Ground<'_>) -> Result<Box<dyn Invocation>, Problem> {
        self.parameters.build(ground)
    }
}

/// [`Parameters`] behind a pointer.
trait AnyParameters: Send + Sync {
    fn tool(&self) -> &'static str;
    fn json(&self) -> Value;
    fn heading(&self) -> Option<&str>;
    fn resolve(&mut self, folder: &Path);
    fn literal(&self) -> Option<TypedCall>;
    fn build(self: Box<Self>, ground: &Ground<'_>) -> Result<Box<dyn Invocation>, Problem>;
}

impl<P: Parameters> AnyParameters for P {
    fn tool(&self) -> &'static str {
        P::TOOL
    }

    fn json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn heading(&self) -> Option<&str> {
        Parameters::heading(self)
    }

    fn resolve(&mut self, folder: &Path) {
        Parameters::resolve(self, folder);
    }

    fn literal(&self) -> Option<TypedCall> {
        Parameters::literal(self)
    }

    fn build(self: Box<Self>, ground: &Ground<'_>) -> Result<Box<dyn Invocation>, Problem> {
        self.invocation(ground)
    }
}
