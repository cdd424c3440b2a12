//! A shell begins in the very folder that was chosen for it, or not at all.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::sync::Arc;

use lathe_protocol::FolderIdentity;
use lathe_shell::{LineLimits, Shell, ShellError, ShellOptions, StartFolder};
use lathe_workspace::LocalProcesses;
use tokio_util::sync::CancellationToken;

use crate::harness::options;

struct Place {
    folder: tempfile::TempDir,
    options: ShellOptions,
}

impl Place {
    /// A folder that is chosen, and another one that a link can lead to.
    fn new() -> Self {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        for name in ["chosen/deep", "other/deep"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let chosen = folder.path().join("chosen");
        let found = chosen.metadata().unwrap();
        let start = StartFolder::Is(FolderIdentity { device: found.dev(), inode: found.ino() });
        Self { options: ShellOptions { start, ..options(&chosen) }, folder }
    }

    fn swap(&self) {
        fs::rename(self.folder.path().join("chosen"), self.folder.path().join("aside")).unwrap();
        symlink("other", self.folder.path().join("chosen")).unwrap();
    }

    async fn start(&self) -> Result<Shell, ShellError> {
        Shell::start(Arc::new(LocalProcesses), self.options.clone()).await
    }

    /// Nothing of a line that must not run.
    fn check(&self, result: Result<(), ShellError>) {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("is not the folder that it was"), "{error}");
        for name in ["other/mark", "other/deep/mark", "mark"] {
            assert!(!self.folder.path().join(name).exists(), "{name}");
        }
    }
}

async fn run(shell: &mut Shell, line: &str) -> Result<(), ShellError> {
    let limits = LineLimits { timeout: crate::harness::SOON, keep: 4096, ..LineLimits::default() };
    shell.run(line.as_bytes(), limits, None, &CancellationToken::new()).await.map(drop)
}

#[tokio::test]
async fn a_shell_begins_in_its_folder() {
    let place = Place::new();
    let mut shell = place.start().await.unwrap();
    run(&mut shell, "touch mark").await.unwrap();
    assert!(place.folder.path().join("chosen/mark").exists());
    shell.restart().await.unwrap();
    run(&mut shell, "exit 3").await.unwrap();
    run(&mut shell, "cd deep").await.unwrap();
    run(&mut shell, "exit 3").await.unwrap();
    run(&mut shell, "touch mark").await.unwrap();
    assert!(place.folder.path().join("chosen/deep/mark").exists());
    shell.close().await;
}

#[tokio::test]
async fn a_folder_that_was_swapped_before_the_start_runs_no_line() {
    let place = Place::new();
    place.swap();
    place.check(place.start().await.map(drop));
}

#[tokio::test]
async fn a_folder_that_is_gone_is_not_replaced_by_the_one_above() {
    let place = Place::new();
    let before = place.options.clone();
    fs::remove_dir_all(place.folder.path().join("chosen")).unwrap();
    assert!(Shell::start(Arc::new(LocalProcesses), before).await.is_err());
}

#[tokio::test]
async fn a_folder_that_was_swapped_later_runs_no_line_of_a_new_bash() {
    for (first, how) in
        [("true", "restart"), ("cd deep", "lost"), ("true", "lost"), ("cd deep", "exit"), ("true", "exit")]
    {
        let place = Place::new();
        let mut shell = place.start().await.unwrap();
        run(&mut shell, first).await.unwrap();
        let result = match how {
            "restart" => {
                place.swap();
                shell.restart().await
            }
            "lost" => {
                // The supervisor is the parent of bash.
                assert!(run(&mut shell, "kill -9 $PPID; sleep 20").await.is_err());
                place.swap();
                run(&mut shell, "touch mark").await
            }
            _ => {
                // The line itself does it, so that bash starts again after the swap.
                let aside = place.folder.path().join("aside");
                let chosen = place.folder.path().join("chosen");
                let line =
                    format!("mv {0} {1} && ln -s other {0} && exit 1", chosen.display(), aside.display());
                run(&mut shell, &line).await.unwrap();
                run(&mut shell, "touch mark").await
            }
        };
        place.check(result);
    }
}

/// No link is in the place of the folder but another folder of exactly its path.
#[tokio::test]
async fn another_folder_of_the_same_path_runs_no_line_of_a_new_bash() {
    for how in ["lost", "exit"] {
        let place = Place::new();
        let (chosen, aside) = (place.folder.path().join("chosen"), place.folder.path().join("aside"));
        let mut shell = place.start().await.unwrap();
        run(&mut shell, "cd deep").await.unwrap();
        match how {
            "lost" => {
                assert!(run(&mut shell, "kill -9 $PPID; sleep 20").await.is_err());
                fs::rename(&chosen, &aside).unwrap();
                fs::create_dir_all(chosen.join("deep")).unwrap();
            }
            _ => {
                let (chosen, aside) = (chosen.display(), aside.display());
                let line = format!("mv {chosen} {aside} && mkdir -p {chosen}/deep && exit 1");
                run(&mut shell, &line).await.unwrap();
            }
        }
        place.check(run(&mut shell, "touch mark").await);
        assert!(!chosen.join("deep/mark").exists(), "{how}");
    }
}

/// A folder that is removed and made again is not another one that was put in its place.
#[tokio::test]
async fn a_folder_that_was_made_again_is_entered() {
    for how in ["lost", "exit"] {
        let place = Place::new();
        let deep = place.folder.path().join("chosen/deep");
        let mut shell = place.start().await.unwrap();
        run(&mut shell, "cd deep").await.unwrap();
        match how {
            "lost" => {
                assert!(run(&mut shell, "kill -9 $PPID; sleep 20").await.is_err());
                fs::remove_dir(&deep).unwrap();
                fs::create_dir(&deep).unwrap();
            }
            _ => run(&mut shell, "rmdir ../deep && mkdir ../deep && exit 1").await.unwrap(),
        }
        run(&mut shell, "touch mark").await.unwrap();
        assert!(deep.join("mark").exists(), "{how}");
        shell.close().await;
    }
}
