//! A folder with files for one test, with git if wanted.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A temporary folder with files; gone when dropped.
#[derive(Debug)]
pub struct TempRepo {
    dir: TempDir,
}

impl TempRepo {
    /// A plain folder.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let repo = Self { dir: TempDir::new().expect("a temporary folder can be made") };
        for (path, content) in files {
            repo.write(path, content);
        }
        repo
    }

    /// A git repository with the files in its first commit.
    pub fn with_git(files: &[(&str, &str)]) -> Self {
        let repo = Self::new(files);
        repo.git(&["init", "--quiet", "--initial-branch=main"]);
        repo.commit("first");
        repo
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn join(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Writes a file and the folders above it.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.join(path);
        std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("folders can be made");
        std::fs::write(&path, content).unwrap_or_else(|error| panic!("write {}: {error}", path.display()));
    }

    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        let path = self.join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()))
    }

    pub fn exists(&self, path: &str) -> bool {
        self.join(path).exists()
    }

    /// Commits everything, also if nothing changed.
    pub fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
    }

    /// Runs git here, out of reach of the user's and the machine's configuration; returns what it printed.
    #[track_caller]
    pub fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false", "-c", "gc.auto=0"])
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .envs([
                ("LANG", "C.UTF-8"),
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_TERMINAL_PROMPT", "0"),
                ("GIT_AUTHOR_NAME", "Test"),
                ("GIT_AUTHOR_EMAIL", "test@example.invalid"),
                ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
                ("GIT_COMMITTER_NAME", "Test"),
                ("GIT_COMMITTER_EMAIL", "test@example.invalid"),
                ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
            ])
            .output()
            .expect("git can be run");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_repositories_of_the_same_files_have_the_same_commit() {
        let files = [("a.txt", "one\n"), ("src/b.rs", "fn b() {}\n")];
        let head = || TempRepo::with_git(&files).git(&["rev-parse", "HEAD"]);
        assert_eq!(head(), head());
        let repo = TempRepo::with_git(&files);
        assert_eq!(repo.git(&["ls-files"]), "a.txt\nsrc/b.rs\n");
        assert_eq!(repo.git(&["status", "--porcelain"]), "");
        assert_eq!(repo.read("src/b.rs"), "fn b() {}\n");
    }
}
