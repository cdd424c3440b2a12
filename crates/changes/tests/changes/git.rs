//! Files whose content git has: they are not copied, and can be restored all the same.

use std::fs;
use std::time::Duration;

use lathe_changes::{Compared, NotUndoable, NotUndoableReason, TrackerOptions};

use crate::tree::{Tree, after_in};

/// The usual tree, committed, with a dirty, an untracked and an ignored file. The pause lets time stamps age: a file
/// touched a moment ago is copied, even if git has it.
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
            not_undoable: vec![
                lost(".git", NotUndoableReason::Git),
                lost("a.txt", NotUndoableReason::ObjectGone)
            ]
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

#[test]
fn an_index_of_every_form_is_read() {
    for form in [
        "git update-index --index-version 4",
        "git update-index --index-version 3",
        "git update-index --split-index; echo more > more; git add more; git commit -qm more",
        "git add -N untracked",
    ] {
        let tree = repository();
        tree.sh(form);
        std::thread::sleep(Duration::from_millis(120));
        let first = tree.picture();
        let mut tracker = tree.tracker();
        let more = usize::from(form.contains("more"));
        assert_eq!(tracker.secured().by_reference, 4 + more, "{form}");
        tree.sh("rm -rf * .gitignore");
        tree.undo_all(&tracker.compare().unwrap().changes);
        assert_eq!(tree.picture(), first, "{form}");
    }
}

#[test]
fn a_damaged_index_makes_every_file_a_copy() {
    let tree = repository();
    tree.sh("head -c 200 .git/index > cut; mv cut .git/index");
    assert_eq!(tree.tracker().secured().by_reference, 0);
}

/// Git looks at the time of a file in seconds and at its size, so a change in the second of the commit that keeps both is
/// only seen in the content.
#[test]
fn a_file_as_young_as_the_index_is_compared_by_its_content() {
    let tree = Tree::new();
    tree.write("same", "aaaa\n");
    tree.write("other", "aaaa\n");
    tree.sh("touch -d '2020-01-01 00:00:00' same other");
    commit(&tree, "");
    // The same size and times as before: git's record of the file is out of date.
    tree.sh("echo bbbb > other; touch -d '2020-01-01 00:00:00' other; touch -d '2020-01-01 00:00:00.5' .git/index");
    std::thread::sleep(Duration::from_millis(120));
    let mut tracker = tree.tracker();
    assert_eq!(tracker.secured().by_reference, 1);
    let first = tree.picture();
    tree.sh("rm same other");
    tree.undo_all(&tracker.compare().unwrap().changes);
    assert_eq!(tree.picture(), first);
}

/// In a copy of a repository no file has the number and the times that the index knows.
#[test]
fn files_that_git_would_have_to_read_are_references_if_they_are_the_objects() {
    let tree = repository();
    let copy = Tree::new();
    copy.sh(&format!("cp -r {}/. .", tree.at("").display()));
    std::thread::sleep(Duration::from_millis(120));
    let first = copy.picture();
    let mut tracker = copy.tracker();
    assert_eq!(tracker.secured().by_reference, 4);
    copy.sh("rm -rf * .gitignore");
    copy.undo_all(&tracker.compare().unwrap().changes);
    assert_eq!(copy.picture(), first);
}

#[test]
fn attributes_that_only_the_index_has_are_asked_for() {
    let tree = Tree::new();
    tree.write(".gitattributes", "*.txt text eol=crlf\n");
    tree.write("a.txt", "a\r\n");
    tree.write("b.bin", "b\n");
    commit(&tree, "");
    tree.sh("rm .gitattributes");
    std::thread::sleep(Duration::from_millis(120));
    // The object of a.txt has another line end.
    let mut tracker = tree.tracker();
    assert_eq!(tracker.secured().by_reference, 1);
    let first = tree.picture();
    tree.sh("rm *");
    tree.undo_all(&tracker.compare().unwrap().changes);
    assert_eq!(tree.picture(), first);
}

/// The second tracker of a tree uses what the first knows, as far as it is still so; each goes back to its own beginning.
#[test]
fn trackers_of_one_tree_do_not_mix_their_states() {
    let tree = Tree::new();
    (0..200).for_each(|number| tree.write(format!("d{}/f{number}", number % 7), format!("{number}\n")));
    commit(&tree, "");
    std::thread::sleep(Duration::from_millis(120));
    let mut first = tree.tracker();
    let before = tree.picture();
    tree.sh("echo more >> d0/f7; rm d1/f1 d6/f6; echo new > a; echo new > d3/f3.x; echo new > z");
    std::thread::sleep(Duration::from_millis(120));
    let home = tempfile::tempdir().unwrap();
    let mut second =
        lathe_changes::Tracker::secure(TrackerOptions { scratch: home.path().join("s"), ..tree.options() })
            .unwrap();
    assert_eq!(second.secured().by_reference, 197);
    let between = tree.picture();
    tree.sh("rm -rf *");
    let told = second.compare().unwrap();
    tree.undo_all(&told.changes);
    assert_eq!(tree.picture(), between);
    assert_eq!(second.full_check().unwrap().changes.len(), told.changes.len());
    let told = first.full_check().unwrap();
    assert_eq!(tree.told(&told), ["+a", "*d0/f7", "-d1/f1", "+d3/f3.x", "-d6/f6", "+z"]);
    tree.undo_all(&told.changes);
    assert_eq!(tree.picture(), before);
}
