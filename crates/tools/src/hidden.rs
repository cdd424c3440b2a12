//! Files that a search, a list or a read of many files leaves out, because a rule would not let them be read by name.
//!
//! A rule about paths must hold whatever reads. A call that names a folder is allowed by the folder; what lies in it is
//! judged file by file before anything is read, and left out as ignored files are.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use lathe_policy::{Call, Depth, Disk as _, Region};
use lathe_protocol::{Actor, Effects, Kind, Verdict};
use lathe_workspace::{Files, LocalTree, Workspace};

use crate::disk::{Links, LocalDisk, each_beneath};
use crate::problem::Problem;
use crate::tool::RunContext;

/// Paths beneath a folder that are not to be read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hidden {
    paths: HashSet<PathBuf>,
    /// The number of files among them beneath the folder: folders, and what links lead to, are not told as files.
    files: usize,
}

impl Hidden {
    /// Looks at everything beneath a folder, whose links are resolved. `tool` is the canonical name of what reads.
    pub(crate) async fn beneath(
        context: &RunContext,
        tool: &'static str,
        kind: Kind,
        folder: &Path,
    ) -> Result<Self, Problem> {
        let judge = context.judge.clone();
        if judge.actor == Actor::Person {
            return Ok(Self::default());
        }
        let keys = judge.gate.region(folder, Depth::All) > Region::Elsewhere;
        if !judge.rules.limits_paths() && !keys {
            return Ok(Self::default());
        }
        let folder = folder.to_owned();
        let look = move || {
            let mut hidden = HashSet::new();
            let whole = each_beneath(&folder, Links::Named, &mut |path| {
                if judge.hides(tool, kind, path) {
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

    /// Globs that leave them out of a walk from this folder.
    pub(crate) fn globs(&self, start: &Path) -> Vec<String> {
        let inside = self.paths.iter().filter_map(|path| path.strip_prefix(start).ok());
        inside.map(|path| format!("/{}", globset::escape(&path.display().to_string()))).collect()
    }
}

/// Where something is read: the files of the workspace, or, for a path that is spelled outside of it and that the gate lets
/// be read, those of the folder it really lies in. There nothing leads out of that folder, so what was decided about is what
/// is read.
pub(crate) struct ReadPlace {
    pub(crate) files: Arc<dyn Files>,
    /// The path by which the files know it.
    pub(crate) path: PathBuf,
    /// The folder that the files do not leave.
    pub(crate) root: PathBuf,
    /// The same as a tree of this machine, if it is one.
    pub(crate) tree: Option<LocalTree>,
}

impl ReadPlace {
    pub(crate) fn of(context: &RunContext, path: &Path, tool: &str, kind: Kind) -> Self {
        let services = &context.services;
        let workspace = || Self {
            files: Arc::clone(services.workspace.files()),
            path: path.to_owned(),
            root: services.workspace.root().to_owned(),
            tree: services.workspace.local().cloned(),
        };
        // Where lines and calls are judged for no folder, there is no rule about reading outside of one.
        let judged = context.judge.gate.here.is_some();
        let outside = judged && !is_below(path, services.workspace.root()) && !is_of_a_process(path);
        // A path outside of a workspace elsewhere is none of this machine.
        let Some(tree) = services.workspace.local().filter(|_| outside) else { return workspace() };
        let real = LocalDisk.real(path);
        let effects = Effects::reading(real.display().to_string());
        let call = Call { tool, also: &[], kind, kinds: &[], effects: &effects, arguments: &[] };
        let judge = &context.judge;
        let decided = judge.gate.decide_call(&judge.rules, judge.actor, judge.mode, &call);
        // What nobody could allow is left to the files of the workspace, which refuse it.
        if real.starts_with(services.workspace.root())
            || decided.verdict == Verdict::Deny && decided.rule != "headless"
        {
            return workspace();
        }
        let folder = match real.parent() {
            Some(folder) if !real.is_dir() => folder.to_owned(),
            Some(_) | None => real.clone(),
        };
        // The facts for every project are shown to the model anyway; nothing else of Lathe's folder is.
        let closed = tree.closed().filter(|closed| real != closed.join("memory.md"));
        let place = Workspace::folder(folder.clone(), closed);
        Self { files: Arc::clone(place.files()), path: real, root: folder, tree: place.local().cloned() }
    }
}

/// Whether a path, by its spelling, lies in a folder.
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

/// Names by which a process knows its own files. Here they would mean Lathe's, not those of the command that was given them.
const OF_A_PROCESS: [&str; 6] =
    ["/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/proc/self", "/proc/thread-self"];

fn is_of_a_process(path: &Path) -> bool {
    OF_A_PROCESS.iter().any(|name| is_below(path, Path::new(name)))
}

/// Says how many more there are than are shown: `1 more entry is not shown.`
pub(crate) fn not_shown(count: usize, one: &str) -> String {
    let verb = if count == 1 { "is" } else { "are" };
    format!("{} {verb} not shown.", lathe_protocol::counted(count, &format!("more {one}")))
}

/// What is said where git's ignore files should be respected and cannot be.
pub(crate) const IGNORE_FILES_NOT_READ: &str =
    "ignore files are only read in a folder of this machine: none is respected here";

/// What is said of files that were left out.
pub(crate) fn note(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "1 file is left out: a rule does not let it be read.".to_owned(),
        count => format!("{count} files are left out: a rule does not let them be read."),
    }
}
