//! Additions of the configuration to a session: checks of changed files, tools of a program, a project's
//! instructions.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lathe_extend::{Program, RedactText, ToolRan};
use lathe_protocol::{BoxFuture, Persona, Raw, ToolChoice, ToolErrorKind, ToolKind};
use lathe_tools::{CheckRule, Checks, Domain, Layer, OutsideTool, ProviderOutput, ToolProvider};
use lathe_workspace::{Pin, Surroundings, Workspace};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::archive::replica::Replica;
use crate::aside::ReviewPlan;
use crate::aside::lakeview::LakeviewPlan;
use crate::documents::OnlinePlan;
use crate::error::HostError;
use crate::files::own::required_text;
use crate::network::HostLists;
use crate::rules::trust::ProjectText;
use crate::session::folder::shell_env;
use crate::walls::SandboxLimits;

/// The additions that the user's own files name, and those of a project's that the user trusts.
#[derive(Debug, Clone, Default)]
pub struct Extras {
    /// Commands that check changed files.
    pub checks: Vec<CheckRule>,
    pub check_seconds: u32,
    pub discovery: Option<ToolDiscovery>,
    pub fields: Vec<FieldDomain>,
    /// Domains that the project's file names, trusted or not: rules may name their tools.
    pub project_fields: Vec<String>,
    /// The workspace that the current folder is a copy of: its rules apply, and nothing leads back into it.
    pub replica: Option<Replica>,
    /// Tools and commands that are removed, from a resumed session too.
    pub exclude: Vec<String>,
    /// If not empty: the only tools that a resumed session keeps of those it was begun with.
    pub core: Vec<String>,
    /// Tools and commands that are allowed without a question.
    pub allowed: Vec<String>,
    /// Messages about the tools that were found.
    pub notices: Notices,
    pub instructions: Vec<ProjectText>,
    /// Files that are written for the user while a session works: they are not changes of the model's.
    pub outputs: Vec<PathBuf>,
    /// Variables whose values are secrets, and files of such values.
    pub secret_variables: Vec<String>,
    pub secret_files: Vec<PathBuf>,
    /// Keys of the configuration, from any file of it, each with its name.
    pub keys: Vec<(String, String)>,
    /// Variables that programs get although they are secrets.
    pub passed_variables: Vec<String>,
    /// Settings for summaries of steps.
    pub lakeview: LakeviewPlan,
    /// Settings for the review of edits.
    pub review: ReviewPlan,
    /// The persona of the agent.
    pub persona: Option<Persona>,
    /// Documents: switched on or off, and their place.
    pub online: OnlinePlan,
    /// Limits of the processes in the sandbox.
    pub sandbox_limits: SandboxLimits,
    /// Hosts that the processes in the sandbox can reach.
    pub sandbox_hosts: HostLists,
}

/// Messages for the user who started a session; shared, because they arise when its tools are found.
#[derive(Debug, Clone, Default)]
pub struct Notices(Arc<Mutex<Vec<String>>>);

impl Notices {
    fn add(&self, words: Vec<String>) {
        self.0.lock().extend(words);
    }

    /// Takes the messages that were not shown yet.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Tools of one domain, declared in a file and run by a program.
#[derive(Debug, Clone)]
pub struct FieldDomain {
    pub name: String,
    pub about: String,
    /// The file of their schemas; a relative path begins at Lathe's folder.
    pub tools: PathBuf,
    /// For a project's domain: the content of that file when it was trusted.
    pub schemas: Option<String>,
    pub command: String,
    /// For a project's domain: the files that its command named when it was trusted.
    pub pins: Vec<Pin>,
    pub seconds: u32,
}

/// A program that offers tools.
#[derive(Debug, Clone)]
pub struct ToolDiscovery {
    pub discovery_command: String,
    pub call_command: Option<String>,
    pub call_seconds: u32,
}

impl Extras {
    /// The reason why a rule of `[check]` cannot be used; none if it can.
    pub fn check_error(glob: &str, command: &str) -> Option<String> {
        let rule = CheckRule { glob: glob.to_owned(), command: command.to_owned(), pins: Vec::new() };
        Checks::new(vec![rule], Duration::ZERO).err()
    }

    /// The secrets that the user named and those of the configuration, each with its name. A file that cannot be read
    /// is an error: its content would not be hidden.
    pub(crate) fn secrets(&self, home: &Path) -> Result<Vec<(String, String)>, HostError> {
        let set = |name: &String| Some((name.clone(), std::env::var(name).ok()?));
        let mut secrets: Vec<(String, String)> = self.secret_variables.iter().filter_map(set).collect();
        secrets.extend(crate::session::secrets::configured_secrets(home));
        secrets.extend(self.keys.iter().cloned());
        for file in &self.secret_files {
            let path = home.join(file);
            let text = required_text(&path)
                .map_err(|error| HostError::Secrets { path: path.clone(), reason: error.to_string() })?;
            let named = file
                .file_stem()
                .map_or_else(|| "FILE".to_owned(), |name| name.to_string_lossy().to_uppercase());
            for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
            {
                let is_name =
                    |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                match line.trim_start_matches("export ").split_once('=').filter(|(name, _)| is_name(name)) {
                    Some((name, value)) => {
                        secrets.push((name.to_owned(), value.trim_matches(['"', '\'']).to_owned()));
                    }
                    None => secrets.push((named.clone(), line.to_owned())),
                }
            }
        }
        Ok(secrets)
    }

    /// Checks what every session with these additions needs, without starting a program: a mistake in it would stop
    /// each of them. Mistakes in checks are reported separately, with their lines.
    pub(crate) fn check(&self, workspace: &Workspace, home: &Path) -> Result<(), HostError> {
        self.secrets(home)?;
        self.declared_tools(workspace, home)?;
        self.discovery.as_ref().map_or(Ok(()), |discovery| discovery.required_call_command().map(drop))
    }

    /// The tools of a resumed session. They are computed from the tools it was begun with, not from those it had
    /// last: a tool that is no longer excluded is available again.
    pub(crate) fn narrowed_tools(&self, begun: ToolChoice) -> ToolChoice {
        lathe_tools::narrow_choice(
            begun,
            &ToolChoice { core: self.core.clone(), exclude: self.exclude.clone() },
        )
    }

    pub(crate) fn checks(&self) -> Result<Checks, HostError> {
        let time = Duration::from_secs(self.check_seconds.into());
        Checks::new(self.checks.clone(), time).map_err(HostError::Check)
    }

    /// The domains whose tools rules may name as the model does.
    pub(crate) fn field_names(&self) -> impl Iterator<Item = String> {
        self.fields.iter().map(|field| field.name.clone()).chain(self.project_fields.iter().cloned())
    }

    /// A function that redacts all secrets known in a folder from the output of a program.
    fn redact_output(&self, root: &Path, home: &Path) -> Result<RedactText, HostError> {
        let mut known = self.secrets(home)?;
        known.extend(crate::session::secrets::project_secrets(root));
        let redactor = crate::session::secrets::redactor(None, &known);
        Ok(Arc::new(move |text| redactor.redact_text(text).into_owned()))
    }

    /// All tools that are not Lathe's own.
    pub(crate) async fn outside_tools(
        &self,
        workspace: &Workspace,
        home: &Path,
    ) -> Result<Vec<OutsideTool>, HostError> {
        let mut tools = self.discovered_tools(workspace, home).await?;
        tools.extend(self.declared_tools(workspace, home)?);
        self.notices.add(duplicate_names(&tools));
        Ok(tools)
    }

    /// The tools that files declare. No program is started for them.
    pub(crate) fn declared_tools(
        &self,
        workspace: &Workspace,
        home: &Path,
    ) -> Result<Vec<OutsideTool>, HostError> {
        let mut tools = Vec::new();
        for field in &self.fields {
            tools.extend(field.read(workspace, home, self.redact_output(workspace.root(), home)?)?);
        }
        Ok(tools)
    }

    /// Starts the discovery program, if there is one, and asks it for its tools.
    async fn discovered_tools(
        &self,
        workspace: &Workspace,
        home: &Path,
    ) -> Result<Vec<OutsideTool>, HostError> {
        let Some(discovery) = &self.discovery else { return Ok(Vec::new()) };
        let wrong = |reason: String| HostError::Discovery(reason);
        let program = Program {
            discovery_command: discovery.discovery_command.clone(),
            call_command: discovery.required_call_command()?.to_owned(),
            call_time: Duration::from_secs(discovery.call_seconds.into()),
            workspace: workspace.clone(),
            env: shell_env(),
            pins: Vec::new(),
            redact: self.redact_output(workspace.root(), home)?,
        };
        let found = program.discover(&CancellationToken::new()).await;
        let found = found.map_err(|error| wrong(error.to_string()))?;
        self.notices.add(found.warnings());
        let provider: Arc<dyn ToolProvider> = Arc::new(ProgramTools(program));
        let tool = |found: lathe_extend::DiscoveredTool| OutsideTool {
            name: found.model_name(),
            original: found.name,
            description: found.description,
            schema: found.schema,
            kind: ToolKind::Other,
            failure: ToolErrorKind::DiscoveredToolExecutionError,
            provider: Arc::clone(&provider),
            domain: Domain { layer: Layer::Field, name: "tools".to_owned(), about: String::new() },
        };
        Ok(found.tools.into_iter().map(tool).collect())
    }
}

/// Messages about names that more than one tool has. The first tool keeps the name, so that no program takes the
/// place of another.
fn duplicate_names(tools: &[OutsideTool]) -> Vec<String> {
    let mut known: BTreeSet<String> = lathe_tools::every_tool_name().map(str::to_owned).collect();
    let taken = tools.iter().filter(|tool| !known.insert(tool.name.clone()));
    let words = |tool: &OutsideTool| {
        format!(
            "more than one tool has the name `{}`; the first one keeps it, the others are left out",
            tool.name
        )
    };
    taken.map(words).collect()
}

impl ToolDiscovery {
    /// The command that runs the tools: without it they could be found but not called.
    fn required_call_command(&self) -> Result<&str, HostError> {
        let missing =
            || HostError::Discovery("`tools.discovery_command` needs `tools.call_command`".to_owned());
        self.call_command.as_deref().ok_or_else(missing)
    }
}

impl FieldDomain {
    fn read(
        &self,
        workspace: &Workspace,
        home: &Path,
        clean: RedactText,
    ) -> Result<Vec<OutsideTool>, HostError> {
        let name = &self.name;
        let wrong = |reason: String| HostError::Field { domain: name.clone(), reason };
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        {
            return Err(wrong("a domain is named with letters, digits, `_`, `-` and `.`".to_owned()));
        }
        if self.command.trim().is_empty() {
            return Err(wrong("`command` is missing: the program that runs its tools".to_owned()));
        }
        if self.schemas.is_none() && self.tools.as_os_str().is_empty() {
            return Err(wrong("`tools` is missing: the file with the schemas of its tools".to_owned()));
        }
        let path = home.join(&self.tools);
        let text = match &self.schemas {
            Some(schemas) => schemas.clone(),
            None => required_text(&path)
                .map_err(|error| wrong(format!("`tools`: {}: {error}", path.display())))?,
        };
        let declared = lathe_extend::parse_declarations(&text)
            .map_err(|reason| wrong(format!("`tools`: {}: {reason}", path.display())))?;
        let program = Program {
            discovery_command: String::new(),
            call_command: self.command.clone(),
            call_time: Duration::from_secs(self.seconds.into()),
            workspace: workspace.clone(),
            env: shell_env(),
            pins: self.pins.clone(),
            redact: clean,
        };
        let provider: Arc<dyn ToolProvider> = Arc::new(ProgramTools(program));
        let tool = |declared: lathe_extend::DiscoveredTool| OutsideTool {
            name: format!("{name}_{}", declared.name).replace('.', "_"),
            original: declared.name,
            description: declared.description,
            schema: declared.schema,
            kind: ToolKind::Other,
            failure: ToolErrorKind::DiscoveredToolExecutionError,
            provider: Arc::clone(&provider),
            domain: Domain { layer: Layer::Field, name: name.clone(), about: self.about.clone() },
        };
        Ok(declared.into_iter().map(tool).collect())
    }
}

/// The program as a provider of tools.
struct ProgramTools(Program);

impl ToolProvider for ProgramTools {
    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: Raw,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move { self.0.call(name, &arguments, cancel).await })
    }

    fn run<'a>(
        &'a self,
        name: &'a str,
        arguments: Raw,
        caller: &'a Surroundings,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ProviderOutput, String>> {
        Box::pin(async move {
            let ToolRan { stdout, stderr, code } = self.0.run(name, &arguments, caller, cancel).await?;
            Ok(ProviderOutput { stdout, stderr, code })
        })
    }

    fn program(&self) -> String {
        self.0.call_program()
    }
}
