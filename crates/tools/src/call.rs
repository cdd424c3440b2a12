//! Typed calls: the parameters that a face or a command makes of the arguments or words it was given. A tool is built
//! from nothing else.
//!
//! Each tool has one type for its parameters ([`Parameters`]). Where a model gives exactly these, the same type is
//! its schema and its parser. A toolset with other names, or a command with its words, has a type of its own
//! ([`FaceArguments`], [`CommandWords`]) that is schema and parser in the same way and ends as the tool's parameters, so
//! nothing between a face and its tool is spelled as JSON. Rejected: one enum over all tools, to which every tool
//! would have to be added.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::problem::Problem;
use crate::tool::{Invocation, read_arguments};

/// The parameters of one tool.
pub(crate) trait Parameters: Serialize + Send + Sync + 'static {
    /// The canonical name of the tool.
    const TOOL: &'static str;

    /// Checks the parameters and determines their effects. Nothing has run yet.
    fn invocation(self, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem>;

    /// The file or folder that a command prints as a heading if it was given several.
    fn heading(&self) -> Option<&str> {
        None
    }

    /// Resolves what a shell line means from the folder that it runs in.
    fn resolve(&mut self, _folder: &Path) {}

    /// The same call with its pattern taken as literal text. None if there is no pattern, or if it is literal
    /// already.
    fn literal(&self) -> Option<TypedCall> {
        None
    }
}

/// The context in which a call is built.
pub(crate) struct BuildContext<'a> {
    /// The folder in which relative paths begin.
    pub(crate) root: &'a Path,
    pub(crate) setup: &'a ToolSetup,
}

/// The settings that tools of a session are built with.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolSetup {
    /// The file of the user's facts. None where there is no place for it.
    pub(crate) memory: Option<PathBuf>,
    /// The host that keeps the session's documents. None if they are kept on this machine.
    pub(crate) documents: Option<String>,
}

/// The parameters of a toolset for one of its tools, as a model gives them.
pub(crate) trait FaceArguments: DeserializeOwned + JsonSchema {
    fn call(self) -> Result<TypedCall, Problem>;
}

/// A tool whose own parameters the model gives.
impl<P: Parameters + DeserializeOwned + JsonSchema> FaceArguments for P {
    fn call(self) -> Result<TypedCall, Problem> {
        Ok(TypedCall { parameters: Box::new(self), is_translated: false })
    }
}

/// The words of a command in the shell. They may be several calls, one for each file.
pub(crate) trait CommandWords: DeserializeOwned + JsonSchema {
    fn calls(self) -> Result<Vec<TypedCall>, Problem>;
}

impl<F: FaceArguments> CommandWords for F {
    fn calls(self) -> Result<Vec<TypedCall>, Problem> {
        Ok(vec![self.call()?])
    }
}

/// Reads the arguments of a model.
pub(crate) fn face_call<F: FaceArguments>(value: Value) -> Result<TypedCall, Problem> {
    read_arguments::<F>(value)?.call()
}

/// Reads the words of a command.
pub(crate) fn command_calls<C: CommandWords>(value: Value) -> Result<Vec<TypedCall>, Problem> {
    read_arguments::<C>(value)?.calls()
}

/// A call of any tool.
pub(crate) struct TypedCall {
    parameters: Box<dyn AnyParameters>,
    /// True if the parameters have other names than those that were given.
    is_translated: bool,
}

impl TypedCall {
    /// A call whose parameters were given in another form.
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

    /// The parameters as JSON, for rules about arguments. Parameters that were not given are absent.
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

    pub(crate) fn build(self, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        self.parameters.build(ground)
    }
}

/// The object-safe form of [`Parameters`].
trait AnyParameters: Send + Sync {
    fn tool(&self) -> &'static str;
    fn json(&self) -> Value;
    fn heading(&self) -> Option<&str>;
    fn resolve(&mut self, folder: &Path);
    fn literal(&self) -> Option<TypedCall>;
    fn build(self: Box<Self>, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem>;
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

    fn build(self: Box<Self>, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        self.invocation(ground)
    }
}
