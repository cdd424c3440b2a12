//! A tree to change, a tracker on it, and a picture of it to compare.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use lathe_blobs::Blobs;
use lathe_changes::restore::{self, Planned, RestoreOutcome};
use lathe_changes::{
    Compared, RestoreTarget, Tracker, TrackerLimits, TrackerOptions, TreeChange, Watch, net,
};
use lathe_testkit::{ListingEntry, listing};

pub struct Tree {
    home: tempfile::TempDir,
    pub root: PathBuf,
    pub blobs: Blobs,
}

/// The full state of every path except git's own.
pub type Picture = BTreeMap<String, ListingEntry>;

impl Tree {
    pub fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("tree");
        fs::create_dir(&root).unwrap();
        let blobs = Blobs::open(home.path().join("blobs")).unwrap();
        Self { root, blobs, home }
    }

    /// With two files, one of them executable, in folders, a link, and an empty folder.
    pub fn usual() -> Self {
        let tree = Self::new();
        tree.write("a.txt", "one\n");
        tree.write("src/main.rs", "fn main() {}\n");
        tree.write("src/deep/er/run.sh", "#!/bin/sh\n");
        tree.chmod("src/deep/er/run.sh", 0o755);
        tree.write("bin.dat", [0u8, 255, 1, 254, 0, 10, 13]);
        tree.link("to-a", "a.txt");
        fs::create_dir(tree.at("empty")).unwrap();
        tree
    }

    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn chmod(&self, path: impl AsRef<Path>, mode: u32) {
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub fn link(&self, path: impl AsRef<Path>, target: &str) {
        symlink(target, self.at(path)).unwrap();
    }

    /// A line of bash in the root.
    pub fn sh(&self, line: &str) {
        let done = Command::new("bash")
            .args(["-ec", line])
            .current_dir(&self.root)
            .envs(
                ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"]
                    .map(|name| (name, "tests")),
            )
            .output()
            .unwrap();
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    }

    pub fn options(&self) -> TrackerOptions {
        TrackerOptions {
            root: self.root.clone(),
            blobs: self.blobs.clone(),
            scratch: self.home.path().join("scratch"),
            limits: TrackerLimits::default(),
            exclude: Vec::new(),
            watch: Watch::On,
        }
    }

    pub fn tracker(&self) -> Tracker {
        Tracker::secure(self.options()).unwrap()
    }

    pub fn picture(&self) -> Picture {
        listing(&self.root)
    }

    /// Paths of changes, without the root, each with what happened: `+`, `-`, `*` content or kind, `m` mode.
    pub fn told(&self, compared: &Compared) -> Vec<String> {
        assert_eq!(compared.not_undoable, []);
        compared.changes.iter().map(|change| self.tell(change)).collect()
    }

    fn tell(&self, change: &TreeChange) -> String {
        let mark = match (&change.before, &change.after) {
            (None, _) => '+',
            (_, None) => '-',
            (before, after) if before == after => 'm',
            _ => '*',
        };
        format!("{mark}{}", change.path.strip_prefix(&self.root).unwrap().display())
    }

    pub fn plan(&self, wanted: &[RestoreTarget]) -> Vec<Planned> {
        restore::plan(wanted, &self.blobs, &self.root).unwrap()
    }

    pub fn undo(&self, changes: &[TreeChange]) -> RestoreOutcome {
        restore::apply(&self.plan(&net(changes)), &self.blobs, &self.root).unwrap()
    }

    /// Undoes, and checks that there was no obstacle.
    pub fn undo_all(&self, changes: &[TreeChange]) -> Vec<TreeChange> {
        let applied = self.undo(changes);
        assert_eq!(applied.left, []);
        applied.changes
    }
}

/// Runs a line in the usual tree, once with the watcher and once without. Then checks the report, and that undo and
/// redo give the original trees.
pub fn after(act: impl Fn(&Tree)) -> Vec<String> {
    after_in(Tree::usual, act)
}

pub fn after_in(make: impl Fn() -> Tree, act: impl Fn(&Tree)) -> Vec<String> {
    let [on, off] = [Watch::On, Watch::Off].map(|watch| {
        let tree = make();
        let mut tracker = Tracker::secure(TrackerOptions { watch, ..tree.options() }).unwrap();
        assert_eq!(tracker.secured().watched, watch == Watch::On);
        assert_eq!(tracker.refresh().unwrap(), Vec::<PathBuf>::new());
        let first = tree.picture();
        act(&tree);
        let second = tree.picture();
        let compared = tracker.compare().unwrap();
        assert_eq!(tracker.compare().unwrap(), Compared::default());
        assert_eq!(tracker.full_check().unwrap(), Compared::default());
        let back = tree.undo_all(&compared.changes);
        assert_eq!(tree.picture(), first);
        assert_eq!(tracker.compare().unwrap().changes, back);
        let forth = tree.undo_all(&back);
        assert_eq!(tree.picture(), second);
        assert_eq!(forth, compared.changes);
        tree.told(&compared)
    });
    assert_eq!(on, off);
    on
}
