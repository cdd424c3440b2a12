//! Restoring, and its obstacles.

use std::fs;

use lathe_changes::restore::{Planned, RestoreStep};
use lathe_changes::{PathState, RestoreTarget, TreeChange, net};
use lathe_protocol::Digest;

use crate::tree::{Tree, after};

/// The steps for each path; of what was found, content and mode.
fn steps(planned: &[Planned]) -> Vec<RestoreStep> {
    let plain = |state: PathState| PathState::new(state.digest, state.mode);
    let step = |planned: &Planned| match planned.step.clone() {
        RestoreStep::Conflict { found } => RestoreStep::Conflict { found: found.map(plain) },
        step => step,
    };
    planned.iter().map(step).collect()
}

fn file(text: &str) -> PathState {
    PathState::new(Digest::of(text.as_bytes()), 0o100_644)
}

#[test]
fn half_a_tree_deleted_a_folder_moved_a_binary_rewritten_a_mode_changed() {
    let made = || {
        let tree = Tree::usual();
        for number in 0..100 {
            tree.write(format!("half/{}/{number}.txt", number % 10), format!("content {number}\n"));
        }
        tree.link("half/link", "../src");
        tree
    };
    let told = crate::tree::after_in(made, |tree| {
        tree.sh("rm -r half/[0-4] half/link; mv src moved; head -c 100000 /dev/urandom > bin.dat; chmod 700 a.txt moved/deep");
    });
    assert_eq!(told.len(), 50 + 5 + 1 + 5 * 2 + 2);
}

#[test]
fn a_file_the_user_edited_meanwhile_is_a_conflict_and_stays() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tree.sh("echo line > a.txt; echo line > bin.dat");
    let changes = tracker.compare().unwrap().changes;
    tree.write("a.txt", "the user's\n");
    let planned = tree.plan(&net(&changes));
    assert_eq!(
        steps(&planned),
        [RestoreStep::Conflict { found: Some(file("the user's\n")) }, RestoreStep::Restore]
    );
    let applied = tree.undo(&changes);
    assert_eq!(applied.changes.len(), 1);
    assert_eq!(fs::read_to_string(tree.at("a.txt")).unwrap(), "the user's\n");
    assert_eq!(fs::read(tree.at("bin.dat")).unwrap()[..2], [0, 255]);
}

#[test]
fn an_edit_between_plan_and_apply_is_a_conflict_too() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tree.sh("echo line > a.txt; rm bin.dat; echo made > made; chmod 600 src/main.rs");
    let planned = tree.plan(&net(&tracker.compare().unwrap().changes));
    tree.sh("echo user > a.txt; echo user > bin.dat; echo user > made; chmod 640 src/main.rs");
    let before = tree.picture();
    let applied = lathe_changes::restore::apply(&planned, &tree.blobs, &tree.root).unwrap();
    assert_eq!(applied.changes, []);
    assert_eq!(applied.left.len(), 4);
    assert!(applied.left.iter().all(|left| matches!(left.step, RestoreStep::Conflict { found: Some(_) })));
    assert_eq!(tree.picture(), before);
}

#[test]
fn a_path_somebody_else_changed_in_between_is_a_conflict() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tree.write("a.txt", "line 1\n");
    let mut changes = tracker.compare().unwrap().changes;
    tree.write("a.txt", "the user's\n");
    assert_eq!(tracker.refresh().unwrap(), [tree.at("a.txt")]);
    tree.write("a.txt", "line 2\n");
    changes.extend(tracker.compare().unwrap().changes);
    assert_eq!(steps(&tree.plan(&net(&changes))), [RestoreStep::Conflict { found: Some(file("line 2\n")) }]);
    // The newest alone can go.
    tree.undo_all(&changes[1..]);
    assert_eq!(fs::read_to_string(tree.at("a.txt")).unwrap(), "the user's\n");
}

#[test]
fn a_folder_that_holds_the_files_of_others_stays() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tree.sh("mkdir -p made/deep; echo x > made/deep/x");
    let changes = tracker.compare().unwrap().changes;
    tree.write("made/users", "mine");
    let applied = tree.undo(&changes);
    assert_eq!(applied.left.iter().map(|left| &left.step).collect::<Vec<_>>(), [&RestoreStep::FolderInUse]);
    assert!(tree.at("made/users").exists() && !tree.at("made/deep").exists());
}

#[test]
fn what_is_there_already_is_left_alone() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tree.write("a.txt", "two\n");
    let changes = tracker.compare().unwrap().changes;
    tree.write("a.txt", "one\n");
    assert_eq!(steps(&tree.plan(&net(&changes))), [RestoreStep::AlreadyThere]);
    assert_eq!(tree.undo(&changes).changes, []);
}

#[test]
fn content_that_is_not_in_the_store_is_told() {
    let tree = Tree::usual();
    let digest = Digest::of(b"never stored");
    let want = Some(PathState::new(digest.clone(), 0o100_644));
    let wanted = RestoreTarget { path: tree.at("gone"), now: None, want, foreign: false };
    assert_eq!(steps(&tree.plan(&[wanted])), [RestoreStep::MissingBlob { digest }]);
}

#[test]
fn nothing_outside_behind_a_link_or_of_gits_own_is_touched() {
    let tree = Tree::usual();
    tree.sh("git init -q .; mkdir ../out; ln -s ../out behind");
    let digest = tree.blobs.put(b"bad").unwrap();
    let want = || Some(PathState::new(digest.clone(), 0o100_644));
    let refused = [".git/config", ".git/hooks/x", "src/.GIT/x", "../out/x", "src/../../out/x", ""];
    for path in refused.map(|path| tree.at(path)).into_iter().chain(["/etc/x".into(), "x".into()]) {
        let wanted = RestoreTarget { path, now: None, want: want(), foreign: false };
        let forced = Planned { wanted: wanted.clone(), step: RestoreStep::Restore };
        assert_eq!(steps(&tree.plan(&[wanted])), [RestoreStep::Refused]);
        let applied = lathe_changes::restore::apply(&[forced], &tree.blobs, &tree.root).unwrap();
        assert_eq!(applied.changes, []);
    }
    let wanted = RestoreTarget { path: tree.at("behind/x"), now: None, want: want(), foreign: false };
    let planned = tree.plan(&[wanted]);
    let applied = lathe_changes::restore::apply(&planned, &tree.blobs, &tree.root).unwrap();
    assert_eq!((applied.changes.len(), &applied.left[0].step), (0, &RestoreStep::Refused));
    assert_eq!(fs::read_dir(tree.at("../out")).unwrap().count(), 0);
}

#[test]
fn a_missing_folder_is_made_for_its_file_and_can_be_undone() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tree.sh("rm src/deep/er/run.sh");
    let changes = tracker.compare().unwrap().changes;
    tree.sh("rm -r src");
    let without = tree.picture();
    let back = tree.undo_all(&changes);
    assert_eq!(fs::read_to_string(tree.at("src/deep/er/run.sh")).unwrap(), "#!/bin/sh\n");
    assert_eq!(back.len(), 4);
    tree.undo_all(&back);
    assert_eq!(tree.picture(), without);
}

#[test]
fn many_lines_fold_into_one_way_back() {
    let tree = Tree::usual();
    let first = tree.picture();
    let mut tracker = tree.tracker();
    let mut changes: Vec<TreeChange> = Vec::new();
    for line in [
        "echo 1 > a.txt; mkdir x; echo x > x/x",
        "echo 2 > a.txt; mv x y; rm bin.dat",
        "echo one > a.txt; rm -r y; chmod 600 src/main.rs",
        "mkdir bin.dat; chmod 644 src/main.rs; rm -r src/deep; ln -s a.txt src/deep",
    ] {
        tree.sh(line);
        changes.extend(tracker.compare().unwrap().changes);
    }
    let wanted: Vec<_> = net(&changes).into_iter().map(|wanted| wanted.path).collect();
    assert_eq!(
        wanted,
        ["bin.dat", "src/deep", "src/deep/er", "src/deep/er/run.sh"].map(|path| tree.at(path))
    );
    tree.undo_all(&changes);
    assert_eq!(tree.picture(), first);
}

#[test]
fn records_of_older_versions_mean_files() {
    let old = TreeChange {
        path: "/x".into(),
        before: Some(Digest::of(b"a")),
        after: Some(Digest::of(b"b")),
        mode: 0o644,
        ..TreeChange::default()
    };
    assert_eq!(net(&[old])[0].want, Some(file("a")));
}

#[test]
fn nothing_of_ours_stays_behind() {
    after(|tree| tree.sh("rm -r src; echo x > a.txt; ln -sf x to-a"));
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tree.sh("rm -r src");
    tree.undo_all(&tracker.compare().unwrap().changes);
    let names = tree.picture();
    assert!(names.keys().all(|path| !path.contains(".lathe-restore")));
}

#[test]
fn hundreds_of_files_come_back_together() {
    let made = || {
        let tree = Tree::new();
        for number in 0..400 {
            tree.write(format!("{}/{number}", number % 7), format!("content {number}\n"));
        }
        tree
    };
    assert_eq!(crate::tree::after_in(made, |tree| tree.sh("rm -r *; echo x > 3")).len(), 407);
}
