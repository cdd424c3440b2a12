//! Files that a search, a list or a read of many files leaves out, because a rule would not let them be read by name.
//!
//! A rule about paths must hold for every reader. A call that names a folder is allowed for the folder; its content
//! is judged file by file before anything is read, and left out as ignored files are.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use lathe_policy::{Depth, Disk as _, GateCall, Region};
use lathe_protocol::{Actor, Effects, ToolKind, Verdict};
use lathe_workspace::{Files, LocalTree, Workspace};

use crate::line::{LinkPolicy, LocalDisk, each_beneath};
use crate::problem::Problem;
use crate::tool::RunContext;

/// Paths beneath a folder that must not be read.
#[derive(Debug, Clone, Default)]
pub(crate) struct HiddenPaths {
    paths: HashSet<PathBuf>,
    /// The number of files among them beneath the folder. Folders, and the targets of links, are not counted as
    /// files.
    files: usize,
}

impl HiddenPaths {
    /// Scans everything beneath a folder, whose links are resolved. `tool` is the canonical name of the reading tool.
    pub(crate) async fn scan(
        context: &RunContext,
        tool: &'static str,
        kind: ToolKind,
        folder: &Path,
    ) -> Result<Self, Problem> {
        let call_gate = context.call_gate.clone();
        if call_gate.actor == Actor::Person {
            return Ok(Self::default());
        }
        let keys = call_gate.gate.region(folder, Depth::All) > Region::Elsewhere;
        if !call_gate.rules.limits_paths() && !keys {
            return Ok(Self::default());
        }
        let folder = folder.to_owned();
        let look = move || {
            let mut hidden = HashSet::new();
            let whole = each_beneath(&folder, LinkPolicy::Named, &mut |path| {
                if call_gate.hides_path(tool, kind, path) {
                    hidden.insert(path.to_owned());
                }
                true
            });
            let is_file = |path: &&PathBuf| path.starts_with(&folder) && !path.is_dir();
            let files = hidden.iter().filter(is_file).count();
            whole.map(|()| Self { paths: hidden, files })
        };
        let looked =
            tokio::task::spawn_blocking(look).await.map_err(|error| Problem::Search(error.to_string()))?;
        looked.map_err(|_| {
            Problem::Search(
                "a rule limits which files may be read, and there are too many here to look at each; name a smaller folder"
                    .to_owned(),
            )
        })
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.paths.iter()
    }

    pub(crate) fn count(&self) -> usize {
        self.files
    }

    pub(crate) fn has(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.paths.contains(above))
    }

    /// Globs that leave them out of a walk that starts at this folder.
    pub(crate) fn globs(&self, start: &Path) -> Vec<String> {
        let inside = self.paths.iter().filter_map(|path| path.strip_prefix(start).ok());
        inside.map(|path| format!("/{}", globset::escape(&path.display().to_string()))).collect()
    }
}

/// The place of a read: the files of the workspace, or, for a path that is spelled outside of it and that the gate
/// lets be read, those of the real folder it lies in. There nothing leads out of that folder, so the file that was
/// decided about is the file that is read.
pub(crate) struct ReadPlace {
    pub(crate) files: Arc<dyn Files>,
    /// The path by which `files` know it.
    pub(crate) path: PathBuf,
    /// The folder that the files do not leave.
    pub(crate) root: PathBuf,
    /// The same folder as a tree of this machine, if it is one.
    pub(crate) tree: Option<LocalTree>,
}

impl ReadPlace {
    pub(crate) fn of(context: &RunContext, path: &Path, tool: &str, kind: ToolKind) -> Self {
        let services = &context.services;
        let workspace = || Self {
            files: Arc::clone(services.workspace.files()),
            path: path.to_owned(),
            root: services.workspace.root().to_owned(),
            tree: services.workspace.local().cloned(),
        };
        // If lines and calls are judged for no folder, there is no rule about reading outside of one.
        let judged = context.call_gate.gate.here.is_some();
        let outside = judged && !is_below(path, services.workspace.root()) && !is_of_a_process(path);
        // A path outside of a workspace elsewhere is not a path of this machine.
        let Some(tree) = services.workspace.local().filter(|_| outside) else { return workspace() };
        let real = LocalDisk.real(path);
        let effects = Effects::reading(real.display().to_string());
        let call = GateCall { tool, also: &[], kind, kinds: &[], effects: &effects, arguments: &[] };
        let call_gate = &context.call_gate;
        let decided = call_gate.gate.decide_call(&call_gate.rules, call_gate.actor, call_gate.mode, &call);
        // A read that no approval could allow is left to the files of the workspace, which refuse it.
        if real.starts_with(services.workspace.root())
            || decided.verdict == Verdict::Deny && decided.rule != "headless"
        {
            return workspace();
        }
        let folder = match real.parent() {
            Some(folder) if !real.is_dir() => folder.to_owned(),
            Some(_) | None => real.clone(),
        };
        // The facts for every project are shown to the model anyway. Nothing else of Lathe's folder is.
        let closed = tree.closed().filter(|closed| real != closed.join("memory.md"));
        let place = Workspace::folder(folder.clone(), closed);
        Self { files: Arc::clone(place.files()), path: real, root: folder, tree: place.local().cloned() }
    }
}

/// Tells whether a path, by its spelling, lies in a folder.
pub(crate) fn is_below(path: &Path, folder: &Path) -> bool {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain.starts_with(folder)
}

/// Names by which a process knows its own files. Here they would mean Lathe's files, not those of the command that
/// was given them.
const OF_A_PROCESS: [&str; 6] =
    ["/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/proc/self", "/proc/thread-self"];

fn is_of_a_process(path: &Path) -> bool {
    OF_A_PROCESS.iter().any(|name| is_below(path, Path::new(name)))
}

/// A note on how many more there are than are shown: `1 more entry is not shown.`
pub(crate) fn not_shown_note(count: usize, one: &str) -> String {
    let verb = if count == 1 { "is" } else { "are" };
    format!("{} {verb} not shown.", lathe_protocol::counted(count, &format!("more {one}")))
}

/// The note where git's ignore files should be respected and cannot be.
pub(crate) const IGNORE_FILES_NOT_READ: &str =
    "ignore files are only read in a folder of this machine: none is respected here";

/// The note on files that were left out.
pub(crate) fn left_out_note(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "1 file is left out: a rule does not let it be read.".to_owned(),
        count => format!("{count} files are left out: a rule does not let them be read."),
    }
}
