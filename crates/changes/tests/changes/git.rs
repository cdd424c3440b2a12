//! Files that git has are not copied, and are there all the same.

use std::fs;
use std::time::Duration;

use lathe_changes::{Compared, NotUndoable, Why};

use crate::tree::{Tree, after_in};

/// The usual tree, committed, with a dirty, an untracked and an ignored file. The pause lets time stamps age: what was
/// touched a moment ago is copied, whatever git says.
fn repository() -> Tree {
    let tree = Tree::usual();
    tree.write(".gitignore", "*.log\n");
    commit(&tree, "");
    tree.write("src/main.rs", "fn main() { dirty() }\n");
    tree.write("untracked", "new\n");
    tree.write("x.log", "ignored\n");
    std::thread::sleep(Duration::from_millis(120));
    tree
}

fn commit(tree: &Tree, settings: &str) {
    tree.sh(&format!("git init -q . {settings}; git add -A; git commit -qm first"));
}

#[test]
fn clean_files_are_references_and_the_rest_is_copied() {
    let tree = repository();
    let secured = tree.tracker().secured();
    assert_eq!(secured.by_reference, 4);
    // Dirty, untracked, ignored, and the target of the link.
    assert_eq!(secured.copied_bytes, 22 + 4 + 8 + 5);
}

#[test]
fn everything_deleted_comes_back_from_objects_and_copies() {
    let told = after_in(repository, |tree| tree.sh("rm -rf * .gitignore"));
    assert_eq!(told.len(), 12);
    let told = after_in(repository, |tree| tree.sh("git stash -q; git rm -q bin.dat"));
    assert_eq!(told, ["-bin.dat", "*src/main.rs"]);
}

#[test]
fn a_checkout_is_a_change_like_any_other() {
    let told = after_in(repository, |tree| tree.sh("echo two > a.txt; git checkout -q -- src/main.rs"));
    assert_eq!(told, ["*a.txt", "*src/main.rs"]);
}

#[test]
fn a_root_inside_the_work_tree_is_enough() {
    let outer = repository();
    let mut options = outer.options();
    options.root = outer.at("src");
    let mut tracker = lathe_changes::Tracker::secure(options).unwrap();
    assert_eq!(tracker.secured().by_reference, 1);
    outer.sh("rm src/deep/er/run.sh");
    assert_eq!(outer.told(&tracker.compare().unwrap()), ["-src/deep/er/run.sh"]);
}

#[test]
fn files_that_git_converts_come_back_as_they_were() {
    let made = || {
        let tree = Tree::new();
        tree.write("crlf.txt", "a\r\nb\r\n");
        tree.write("lf.txt", "a\nb\n");
        commit(&tree, "; git config core.autocrlf true");
        tree.sh("rm *.txt; git checkout -q -- .");
        assert_eq!(fs::read(tree.at("lf.txt")).unwrap(), b"a\r\nb\r\n");
        std::thread::sleep(Duration::from_millis(120));
        assert_eq!(tree.tracker().secured().by_reference, 0);
        tree
    };
    assert_eq!(after_in(made, |tree| tree.sh("rm *.txt")), ["-crlf.txt", "-lf.txt"]);
}

#[test]
fn attributes_decide_file_by_file() {
    let tree = Tree::new();
    tree.write(
        ".gitattributes",
        "*.txt text=auto\n*.id ident\n*.up filter=upper\n*.u16 working-tree-encoding=UTF-16\n",
    );
    tree.write("plain", "plain\n");
    tree.write("crlf.txt", "a\r\n");
    tree.write("lf.txt", "a\n");
    tree.write("x.id", "$Id$\n");
    tree.write("y.id", "no keyword\n");
    tree.write("z.up", "shout\n");
    tree.write("w.u16", b"\xff\xfea\0\n\0");
    commit(&tree, "");
    tree.sh("git config filter.upper.smudge 'touch ../ran; tr a-z A-Z'; git config filter.upper.clean 'touch ../ran; tr A-Z a-z'; rm x.id z.up; git checkout -q -- x.id z.up; rm ../ran");
    std::thread::sleep(Duration::from_millis(120));
    let first = tree.picture();
    let mut tracker = tree.tracker();
    // .gitattributes, plain, lf.txt, y.id
    assert_eq!(tracker.secured().by_reference, 4);
    tree.sh("rm -r * .gitattributes");
    tree.undo_all(&tracker.compare().unwrap().changes);
    assert_eq!(tree.picture(), first);
    assert!(!tree.at("../ran").exists(), "a program that the repository names was run");
}

#[test]
fn files_git_was_told_not_to_look_at_are_copied() {
    let tree = repository();
    tree.sh("git update-index --assume-unchanged a.txt; git update-index --skip-worktree bin.dat; echo mine > a.txt");
    std::thread::sleep(Duration::from_millis(120));
    assert_eq!(tree.tracker().secured().by_reference, 2);
}

#[test]
fn an_object_that_is_gone_is_told() {
    let tree = repository();
    let mut tracker = tree.tracker();
    tree.sh("rm -rf .git a.txt");
    let compared = tracker.compare().unwrap();
    let lost = |path: &str, why| NotUndoable { path: tree.at(path), why };
    assert_eq!(
        compared,
        Compared {
            changes: vec![],
            not_undoable: vec![lost(".git", Why::Git), lost("a.txt", Why::ObjectGone)]
        }
    );
}

#[test]
fn a_replaced_object_does_not_deceive() {
    let tree = repository();
    let first = tree.picture();
    let mut tracker = tree.tracker();
    tree.sh(
        "new=$(echo two | git hash-object -w --stdin); git replace $(git rev-parse :a.txt) $new; rm a.txt",
    );
    tree.undo_all(&tracker.compare().unwrap().changes);
    assert_eq!(tree.picture(), first);
}
