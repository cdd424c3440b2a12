//! The services of a session that its tools share: the workspace, the one shell, the blobs, the secrets.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use lathe_blobs::Blobs;
use lathe_changes::Pledges;
use lathe_edit::syntax::SyntaxCache;
use lathe_policy::ShellSwitches;
use lathe_protocol::{CallId, OutputStream, Toolset};
use lathe_redact::Redactor;
use lathe_search::UnreadRules;
use lathe_shell::{CommandHost, Jobs, Shell, ShellError, ShellOptions, StartFolder, place_ax};
use lathe_workspace::{Level, Workspace};
use parking_lot::Mutex;

use crate::bash::{LateChanges, LineWithProcesses};
use crate::built_in::special_faces;
use crate::commands::{AgentCommands, LineContext};
use crate::faces::Face;
use crate::files::Checks;
use crate::files::LastWritten;
use crate::files::without_unseen;
use crate::line::Tracking;
use crate::line::secure::Keeper;
use crate::online::Documents;
use crate::outputs::OutputFiles;
use crate::review::Reviewer;

/// The receiver of live output.
pub type LiveOutput = Arc<dyn Fn(OutputStream, &str) + Send + Sync>;

/// The options with which the session's shell is started when it is first needed.
#[derive(Debug, Clone)]
pub struct ShellPlan {
    /// Lathe's folder, where the supervisor program is placed.
    pub home: PathBuf,
    pub shell: PathBuf,
    /// The folder that the shell must begin in.
    pub start: StartFolder,
    pub env: Vec<(OsString, OsString)>,
    /// The file of the user's remembered facts.
    pub memory: Option<PathBuf>,
}

/// The number of lines that are kept by their number.
const LINES: usize = 64;

/// The calls whose lines have run.
#[derive(Default)]
struct LineHistory {
    last: Option<Arc<LineContext>>,
    numbered: BTreeMap<u64, Arc<LineContext>>,
}

pub struct Services {
    /// The workspace, without the files that no model may see.
    pub workspace: Workspace,
    pub blobs: Blobs,
    pub redactor: Arc<Redactor>,
    pub plan: ShellPlan,
    /// The tracker of changes that shell lines make.
    pub tracking: Tracking,
    /// Outputs of earlier calls. None if there is no session that has them.
    pub outputs: Option<OutputFiles>,
    /// The quarantine for what a line removes. None if nothing is kept.
    pub keeper: Option<Keeper>,
    /// The place where file tools record a change before they make it. None if no session would look there.
    pub pledges: Option<Pledges>,
    /// The user's checks, which inspect files after they were changed.
    pub checks: Checks,
    /// The judge of edits, in a session with review rules.
    pub reviewer: Option<Arc<dyn Reviewer>>,
    /// The store of documents, in a session that has them.
    pub documents: Option<Arc<dyn Documents>>,
    /// Unusable ignore files that calls met. Each is reported to the model once.
    pub unread: UnreadRules,
    /// The content that was written last.
    pub(crate) last_written: LastWritten,
    /// Syntax trees of recently changed files.
    pub(crate) syntax: Arc<Mutex<SyntaxCache>>,
    /// The code graph that was queried last; opened on first use.
    pub(crate) graph: Arc<Mutex<Option<lathe_graph::Graph>>>,
    shell: Mutex<Option<Shell>>,
    /// The agent commands of the shell; set once, before it starts.
    commands: OnceLock<AgentCommands>,
    /// The background jobs of the shell, which can be queried while a line runs.
    jobs: Mutex<Option<Jobs>>,
    code: Mutex<Option<i32>>,
    /// True if a line may have changed the meaning of command names.
    renamed: AtomicBool,
    /// Options that lines may have switched on in the shell.
    switched: Mutex<ShellSwitches>,
    /// The calls whose lines have run or run now.
    lines: Mutex<LineHistory>,
    /// Lines whose processes still run, the oldest first.
    pub(crate) background_lines: Mutex<Vec<LineWithProcesses>>,
}

impl Services {
    pub fn new(workspace: Workspace, blobs: Blobs, redactor: Arc<Redactor>, plan: ShellPlan) -> Self {
        let unread = UnreadRules::default();
        let tracking = if workspace.local().is_some() { Tracking::off() } else { Tracking::absent() };
        Self {
            workspace: without_unseen(workspace, unread.clone()),
            unread,
            blobs,
            redactor,
            plan,
            tracking,
            outputs: None,
            keeper: None,
            pledges: None,
            checks: Checks::default(),
            reviewer: None,
            documents: None,
            last_written: LastWritten::default(),
            syntax: Arc::default(),
            graph: Arc::default(),
            shell: Mutex::new(None),
            commands: OnceLock::new(),
            jobs: Mutex::default(),
            code: Mutex::default(),
            renamed: AtomicBool::new(false),
            switched: Mutex::default(),
            lines: Mutex::default(),
            background_lines: Mutex::default(),
        }
    }

    /// Turns on tracking: changes of shell lines become known and can be undone. A tree that is not on this machine
    /// is not tracked, and the result of each line says so.
    pub fn with_tracking(self, tracking: Tracking) -> Self {
        let is_local = self.workspace.local().is_some();
        let tracking = match self.workspace.level() {
            Level::Off | Level::Limits => tracking,
            Level::Filters | Level::Walls => tracking.protecting(self.blobs.clone()),
        };
        Self { tracking: if is_local { tracking } else { Tracking::absent() }, ..self }
    }

    /// Turns on the quarantine for what lines remove. Files are kept by their real paths, which only a tree of this
    /// machine has.
    pub fn with_keeper(self, keeper: Keeper) -> Self {
        Self { keeper: self.workspace.local().is_some().then_some(keeper), ..self }
    }

    /// Turns on pledges: a record of what file tools are about to change outlives the process. This is done only
    /// where the content could be restored.
    pub fn with_pledges(self, pledges: Pledges) -> Self {
        Self { pledges: self.workspace.local().is_some().then_some(pledges), ..self }
    }

    /// Discards what is kept for a call, because the journal has its result.
    pub fn discard_pledges(&self, call: &CallId) {
        if let Some(pledges) = &self.pledges {
            pledges.settle(call.as_str());
        }
    }

    /// The folder the next line runs in, as far as that is known. None if it is not a folder of the host.
    pub fn cwd(&self) -> Option<PathBuf> {
        self.workspace.host(&self.inside_cwd()?)
    }

    /// The same folder as processes of the workspace know it. None if they have no path for the root.
    pub fn inside_cwd(&self) -> Option<PathBuf> {
        let held = self.shell.lock();
        match &*held {
            Some(shell) => Some(shell.cwd().to_owned()),
            None => self.workspace.inside(self.workspace.root()),
        }
    }

    /// Sets the checks that inspect files after they were changed.
    pub fn with_checks(self, checks: Checks) -> Self {
        Self { checks, ..self }
    }

    /// The faces of tools that this session has and others do not. The `gemini` and `bash` toolsets have none.
    pub(crate) fn own_faces(&self, toolset: Toolset) -> Vec<&'static Face> {
        match toolset {
            Toolset::Lathe | Toolset::Trae => special_faces(|is_met| is_met(self)).collect(),
            Toolset::Gemini | Toolset::Bash => Vec::new(),
        }
    }

    /// Offers the tools as commands of the shell. Only the first offer counts.
    pub(crate) fn offer(&self, commands: AgentCommands) {
        let _ = self.commands.set(commands);
    }

    pub(crate) fn commands(&self) -> Option<&AgentCommands> {
        self.commands.get()
    }

    /// Tells whether a line could run a command of this name.
    pub(crate) fn has_command(&self, name: &str) -> bool {
        let own = self.commands().is_some_and(|commands| commands.names().iter().any(|own| own == name));
        let path = self.plan.env.iter().find(|(variable, _)| variable == "PATH");
        let is_plain = !name.is_empty() && !name.contains('/');
        let has = |folder: std::path::PathBuf| is_plain && folder.join(name).is_file();
        own || path.is_some_and(|(_, path)| std::env::split_paths(path).any(has))
    }

    pub(crate) fn jobs(&self) -> Option<Jobs> {
        self.jobs.lock().clone()
    }

    /// The call whose line has this number in the shell; otherwise the one whose line runs or ran last.
    pub(crate) fn line(&self, number: Option<u64>) -> Option<Arc<LineContext>> {
        let lines = self.lines.lock();
        let numbered = number.and_then(|number| lines.numbered.get(&number)).cloned();
        numbered.or_else(|| lines.last.clone())
    }

    pub(crate) fn begin_line(&self, line: Arc<LineContext>) {
        self.lines.lock().last = Some(line);
    }

    /// Gives the line that has begun its number. Its background processes may run agent commands long after it has
    /// ended.
    pub(crate) fn number_line(&self, number: u64) {
        let mut lines = self.lines.lock();
        if let Some(last) = lines.last.clone() {
            lines.numbered.insert(number, last);
        }
        while lines.numbered.len() > LINES {
            lines.numbered.pop_first();
        }
    }

    /// The number of the line that ran last, or runs.
    pub(crate) fn last_number(&self) -> u64 {
        self.lines.lock().numbered.last_key_value().map_or(0, |(number, _)| *number)
    }

    /// Tells whether command names mean in bash what Lathe takes them to mean.
    pub(crate) fn names_are_plain(&self) -> bool {
        !self.renamed.load(Ordering::Relaxed)
    }

    pub(crate) fn mark_names_changed(&self) {
        self.renamed.store(true, Ordering::Relaxed);
    }

    /// Options that may be on in the shell, judged by the text of the lines it ran.
    pub fn switched_options(&self) -> ShellSwitches {
        *self.switched.lock()
    }

    /// Notes the options that a line may switch on, before it runs.
    pub(crate) fn note_options(&self, line: &str) {
        let mut switched = self.switched.lock();
        *switched = switched.after(line);
    }

    /// Sets `$?` for the next line of the shell, which may not have been started yet.
    pub(crate) fn set_last_code(&self, code: i32) {
        *self.code.lock() = Some(code);
    }

    /// Takes the shell, if it is running. The caller puts it back.
    pub(crate) fn take_running_shell(&self) -> Option<Shell> {
        self.held()
    }

    /// Takes the shell, started if there is none. The caller owns it until it is put back: the lanes of the scheduler
    /// make sure that no two calls want it at once.
    pub(crate) async fn take_shell(&self) -> Result<Shell, ShellError> {
        let mut shell = match self.held() {
            Some(shell) => shell,
            None => self.start_shell().await?,
        };
        if let Some(code) = self.code.lock().take() {
            shell.set_code(code);
        }
        Ok(shell)
    }

    async fn start_shell(&self) -> Result<Shell, ShellError> {
        let ax = place_ax(&self.plan.home)?;
        let root = self.workspace.root();
        let options = ShellOptions {
            cwd: self.workspace.inside(root).ok_or_else(|| unknown_inside(root))?,
            start: self.plan.start,
            env: self.plan.env.clone(),
            ax,
            shell: self.plan.shell.clone(),
            commands: self.commands.get().map(|commands| Arc::new(commands.clone()) as Arc<dyn CommandHost>),
        };
        let shell = Shell::start(Arc::clone(self.workspace.processes()), options).await?;
        *self.jobs.lock() = Some(shell.jobs());
        Ok(shell)
    }

    pub(crate) fn put_shell(&self, shell: Shell) {
        *self.shell.lock() = Some(shell);
    }

    /// Puts a fresh shell in the place of the current one, if there is one, or starts one.
    pub(crate) async fn restart_shell(&self) -> Result<(), ShellError> {
        let shell = match self.held() {
            Some(mut shell) => {
                shell.restart().await?;
                shell
            }
            None => self.start_shell().await?,
        };
        self.put_shell(shell);
        self.renamed.store(false, Ordering::Relaxed);
        *self.switched.lock() = ShellSwitches::default();
        *self.code.lock() = None;
        Ok(())
    }

    /// Ends the shell and everything it started. Returns the changes that background processes made since the last
    /// scan.
    pub async fn close(&self) -> Option<LateChanges> {
        // The last line refers to these services and to the receiver of live output: a cycle, and a receiver that
        // would wait forever.
        *self.lines.lock() = LineHistory::default();
        let mut late = None;
        if let Some(shell) = self.held() {
            shell.close().await;
            // No later line scans for what a process wrote after the last line.
            late = self.find_late_changes().await;
            self.tracking.set_programs_aside(0).await;
        }
        // These refer to the services: another cycle.
        self.background_lines.lock().clear();
        if late.is_none() {
            self.tracking.release_copies();
        }
        if let Some(outputs) = &self.outputs {
            outputs.discard();
        }
        late
    }

    fn held(&self) -> Option<Shell> {
        self.shell.lock().take()
    }
}

fn unknown_inside(folder: &Path) -> ShellError {
    ShellError::Bash(format!("processes of this workspace have no path for {}", folder.display()))
}
