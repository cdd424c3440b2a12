//! Searches in real trees.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bounds;
mod names;
mod text;

use std::path::{Path, PathBuf};

use lathe_search::Scope;

pub struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self { folder: tempfile::tempdir().unwrap() };
        for (name, content) in files {
            tree.put(name, content.as_bytes());
        }
        tree
    }

    pub fn put(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub fn scope(&self) -> Scope {
        Scope::new(self.root(), self.root())
    }

    pub fn inside(&self, path: &Path) -> String {
        path.strip_prefix(self.root()).unwrap().display().to_string()
    }
}
