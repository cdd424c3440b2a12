//! The graph, from the facts of one file to answers about a repository.
#![allow(clippy::unwrap_used, clippy::panic, clippy::new_without_default, clippy::type_complexity)]

mod beside;
mod facts;
mod faults;
mod fresh;
mod index;
mod questions;
mod resolving;
mod unbound;

use std::path::Path;

use lathe_graph::{Graph, GraphLimits, RefreshReport, Snapshot};

/// A repository and a home for its graph, gone afterwards.
pub struct Place {
    pub root: tempfile::TempDir,
    pub home: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap(), home: tempfile::tempdir().unwrap() }
    }

    pub fn with(files: &[(&str, &str)]) -> Self {
        let place = Self::new();
        for (path, text) in files {
            place.write(path, text);
        }
        place
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn graph(&self) -> Graph {
        Graph::open(self.root.path(), self.home.path(), GraphLimits::default()).unwrap()
    }

    pub fn fresh(&self) -> (std::sync::Arc<Snapshot>, RefreshReport) {
        self.graph().fresh(&|_, _| ()).unwrap()
    }
}

pub fn names(snapshot: &Snapshot) -> Vec<String> {
    snapshot
        .symbols()
        .map(|symbol| format!("{}:{}", snapshot.path(symbol.file), snapshot.name(symbol)))
        .collect()
}

pub fn git(root: &Path, arguments: &[&str]) {
    let done = std::process::Command::new("git")
        .current_dir(root)
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
