//! What tools work with: the workspace, the one shell, the blobs, the secrets.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use lathe_blobs::Blobs;
use lathe_changes::Pledges;
use lathe_edit::syntax::SyntaxCache;
use lathe_policy::Switched;
use lathe_protocol::{CallId, OutputStream, Toolset};
use lathe_redact::Redactor;
use lathe_search::UnreadRules;
use lathe_shell::{CommandHost, Jobs, Shell, ShellError, ShellOptions, StartFolder, place_ax};
use lathe_workspace::Workspace;
use parking_lot::Mutex;

use crate::bash::{LateChanges, LeftLine};
use crate::built_in::special_faces;
use crate::check::Checks;
use crate::commands::{AgentCommands, LineContext};
use crate::face::Face;
use crate::known::Known;
use crate::online::Documents;
use crate::outputs::Outputs;
use crate::review::Reviewer;
use crate::secure::Keeper;
use crate::tracking::Tracking;
use crate::unseen::without_unseen;

/// Where live output goes.
pub type LiveOutput = Arc<dyn Fn(OutputStream, &str) + Send + Sync>;

/// How the session's shell is started, when it is first needed.
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

/// Lines that are known by their number.
const LINES: usize = 64;

/// The calls whose lines have run.
#[derive(Default)]
struct Lines {
    last: Option<Arc<LineContext>>,
    numbered: BTreeMap<u64, Arc<LineContext>>,
}

pub struct Services {
    /// The place that is worked in, without the files that no model is to see.
    pub workspace: Workspace,
    pub blobs: Blobs,
    pub redactor: Arc<Redactor>,
    pub plan: ShellPlan,
    /// What shell lines change.
    pub tracking: Tracking,
    /// Outputs of earlier calls. None where there is no session that has them.
    pub outputs: Option<Outputs>,
    /// Where things are kept that a line takes away; none where nothing is.
    pub keeper: Option<Keeper>,
    /// Where file tools write down what they are about to change; none where no session would look there.
    pub pledges: Option<Pledges>,
    /// What looks at files after they were changed.
    pub checks: Checks,
    /// Who judges edits, in a session with rules for that.
    pub reviewer: Option<Arc<dyn Reviewer>>,
    /// Where documents are kept, in a session that has them.
    pub documents: Option<Arc<dyn Documents>>,
    /// Unusable ignore files that calls met; the model is told of each once.
    pub unread: UnreadRules,
    /// What was written last.
    pub(crate) known: Known,
    /// Trees of files that were changed lately.
    pub(crate) syntax: Arc<Mutex<SyntaxCache>>,
    /// The code graph that was asked last; opened when it is first asked.
    pub(crate) graph: Arc<Mutex<Option<lathe_graph::Graph>>>,
    shell: Mutex<Option<Shell>>,
    /// What the shell's own commands are; set once, before it starts.
    commands: OnceLock<AgentCommands>,
    /// What the shell has left running; it can be asked while a line runs.
    jobs: Mutex<Option<Jobs>>,
    code: Mutex<Option<i32>>,
    /// Whether a line may have changed what the names of commands mean.
    renamed: AtomicBool,
    /// Options that lines may have switched on in the shell.
    switched: Mutex<Switched>,
    /// The call whose line ran last, or runs.
    lines: Mutex<Lines>,
    /// Lines whose processes run on, the oldest first.
    pub(crate) left: Mutex<Vec<LeftLine>>,
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
            known: Known::default(),
            syntax: Arc::default(),
            graph: Arc::default(),
            shell: Mutex::new(None),
            commands: OnceLock::new(),
            jobs: Mutex::default(),
            code: Mutex::default(),
            renamed: AtomicBool::new(false),
            switched: Mutex::default(),
            lines: Mutex::default(),
            left: Mutex::default(),
        }
    }

    /// Lets changes of shell lines be known and taken back. A tree that is not of this machine is not tracked, and the result
    /// of each line says so.
    pub fn tracked(self, tracking: Tracking) -> Self {
        let is_local = self.workspace.local().is_some();
        Self { tracking: if is_local { tracking } else { Tracking::absent() }, ..self }
    }

    /// Lets things be kept that lines take away. They are kept by their real paths, which only a tree of this machine has.
    pub fn keeping(self, keeper: Keeper) -> Self {
        Self { keeper: self.workspace.local().is_some().then_some(keeper), ..self }
    }

    /// Lets what file tools are about to change outlive the process, where it could be put back.
    pub fn pledging(self, pledges: Pledges) -> Self {
        Self { pledges: self.workspace.local().is_some().then_some(pledges), ..self }
    }

    /// The journal has the result of a call: nothing has to be kept for it any more.
    pub fn settled(&self, call: &CallId) {
        if let Some(pledges) = &self.pledges {
            pledges.settled(call.as_str());
        }
    }

    /// The folder the next line runs in, as far as that is known. None: it is none of the host's.
    pub fn cwd(&self) -> Option<PathBuf> {
        self.workspace.host(&self.inside_cwd()?)
    }

    /// The same as processes of the workspace know it. None: they do not know its root.
    pub fn inside_cwd(&self) -> Option<PathBuf> {
        let held = self.shell.lock();
        match &*held {
            Some(shell) => Some(shell.cwd().to_owned()),
            None => self.workspace.inside(self.workspace.root()),
        }
    }

    /// Lets files be looked at after they were changed.
    pub fn checked(self, checks: Checks) -> Self {
        Self { checks, ..self }
    }

    /// The tools that this session has and others have not. One tool for everything, and Gemini's, stay as they are.
    pub(crate) fn own_faces(&self, toolset: Toolset) -> Vec<&'static Face> {
        match toolset {
            Toolset::Lathe | Toolset::Trae => special_faces(|is_met| is_met(self)).collect(),
            Toolset::Gemini | Toolset::Bash => Vec::new(),
        }
    }

    /// Lets the tools be commands of the shell. The first offer counts.
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

    /// The call whose line has this number in the shell; else the one whose line runs, or ran last.
    pub(crate) fn line(&self, number: Option<u64>) -> Option<Arc<LineContext>> {
        let lines = self.lines.lock();
        let numbered = number.and_then(|number| lines.numbered.get(&number)).cloned();
        numbered.or_else(|| lines.last.clone())
    }

    pub(crate) fn begin_line(&self, line: Arc<LineContext>) {
        self.lines.lock().last = Some(line);
    }

    /// The line that has begun gets its number: what it leaves in the background may ask long after it.
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

    /// Whether the names of commands mean in bash what they mean to us.
    pub(crate) fn names_are_plain(&self) -> bool {
        !self.renamed.load(Ordering::Relaxed)
    }

    pub(crate) fn names_changed(&self) {
        self.renamed.store(true, Ordering::Relaxed);
    }

    /// Options that may be on in the shell, by the text of the lines it ran.
    pub fn switched(&self) -> Switched {
        *self.switched.lock()
    }

    /// Notes the options that a line may switch on, before it runs.
    pub(crate) fn note_options(&self, line: &str) {
        let mut switched = self.switched.lock();
        *switched = switched.after(line);
    }

    /// What `$?` is for the next line of the shell, which may not have been started yet.
    pub(crate) fn ended_with(&self, code: i32) {
        *self.code.lock() = Some(code);
    }

    /// The shell, if it is running. The caller puts it back.
    pub(crate) fn held_shell(&self) -> Option<Shell> {
        self.held()
    }

    /// The shell, started if there is none. The caller owns it until it is put back: the lanes of the scheduler see to it
    /// that no two calls want it at once.
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

    /// A fresh shell in the place of the one there is, if there is one.
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
        *self.switched.lock() = Switched::default();
        *self.code.lock() = None;
        Ok(())
    }

    /// Ends the shell and everything it started. Gives what background processes changed since the last look.
    pub async fn close(&self) -> Option<LateChanges> {
        // The last line knows these services and whoever watches: a circle, and a watcher who would wait for ever.
        *self.lines.lock() = Lines::default();
        let mut late = None;
        if let Some(shell) = self.held() {
            shell.close().await;
            // What a process wrote after the last line is looked at by nobody else.
            late = self.look_late().await;
            self.tracking.set_programs_aside(0).await;
        }
        // These know the services: another circle.
        self.left.lock().clear();
        if late.is_none() {
            self.tracking.release();
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
