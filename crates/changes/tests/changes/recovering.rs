//! A process that is killed in the middle of a line leaves enough to report what the line changed.

use std::fs;
use std::path::PathBuf;

use lathe_changes::{ChangesError, Compared, Tracker, TrackerOptions, Watch, recover};
use proptest::prelude::*;

use crate::property::{Act, act, perform};
use crate::tree::Tree;

/// Ends as a killed process does: nothing is tidied up.
fn kill(tracker: Tracker) {
    std::mem::forget(tracker);
}

fn recovered(tree: &Tree) -> Option<(String, Compared)> {
    recover(tree.options()).unwrap().map(|found| (found.line, found.compared))
}

#[test]
fn what_a_killed_line_changed_is_told_and_taken_back() {
    for git in [false, true] {
        let tree = Tree::usual();
        if git {
            tree.sh("git init -q; git add -A; git commit -qm x; echo dirty > dirty.txt");
        }
        let first = tree.picture();
        let mut tracker = tree.tracker();
        tracker.begin_line("c1").unwrap();
        tree.sh(
            "rm a.txt; echo new > made.txt; mkdir deep; echo x > deep/x; chmod 600 b.txt 2>/dev/null || true",
        );
        kill(tracker);
        let (line, compared) = recovered(&tree).unwrap();
        assert_eq!(line, "c1");
        assert!(compared.not_undoable.is_empty(), "{compared:?}");
        // The result is the same each time.
        assert_eq!(recovered(&tree).unwrap().1, compared);
        tree.undo_all(&compared.changes);
        assert_eq!(tree.picture(), first, "git: {git}");
    }
}

#[test]
fn only_the_last_line_is_told() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tracker.begin_line("c1").unwrap();
    tree.write("one.txt", "1");
    assert_eq!(tree.told(&tracker.compare().unwrap()), ["+one.txt"]);
    // Changes that others make between two lines belong to neither.
    tree.write("person.txt", "p");
    tree.write("one.txt", "person");
    tracker.refresh().unwrap();
    tracker.begin_line("c2").unwrap();
    let before = tree.picture();
    tree.sh("rm person.txt; echo 2 > two.txt; echo over > one.txt");
    kill(tracker);
    let (line, compared) = recovered(&tree).unwrap();
    assert_eq!(
        (line.as_str(), tree.told(&compared)),
        ("c2", vec!["*one.txt".into(), "-person.txt".into(), "+two.txt".into()])
    );
    tree.undo_all(&compared.changes);
    assert_eq!(tree.picture(), before);
}

#[test]
fn a_line_that_was_compared_and_not_written_down_is_told_again() {
    let tree = Tree::usual();
    tree.write("mine.txt", "the only copy");
    let mut tracker = tree.tracker();
    tracker.begin_line("c1").unwrap();
    tree.sh("rm mine.txt");
    let compared = tracker.compare().unwrap();
    kill(tracker);
    assert_eq!(recovered(&tree).unwrap(), ("c1".to_owned(), compared));
}

#[test]
fn without_a_line_there_is_nothing_to_tell() {
    let tree = Tree::usual();
    assert_eq!(recovered(&tree), None);
    kill(tree.tracker());
    tree.write("later.txt", "x");
    assert_eq!(recovered(&tree), None);
    // Ended in order: nothing is left.
    let mut tracker = tree.tracker();
    tracker.begin_line("c1").unwrap();
    drop(tracker);
    assert_eq!(recovered(&tree), None);
    assert!(!tree.options().scratch.join("tree").exists());
}

#[test]
fn a_book_torn_while_a_line_begins_knows_of_no_line_and_a_damaged_one_is_told() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tracker.begin_line("c1").unwrap();
    tree.write("new.txt", "x");
    kill(tracker);
    let book = tree.options().scratch.join("tree/book");
    let whole = fs::read(&book).unwrap();
    let told = recovered(&tree).unwrap();
    let begun = book.with_file_name("begun");
    let length = fs::read(&begun).unwrap();
    for cut in (0..whole.len()).step_by(7) {
        let mut flipped = whole.clone();
        flipped[cut] ^= 4;
        for damaged in [&whole[..cut], &flipped] {
            fs::write(&book, damaged).unwrap();
            fs::write(&begun, &length).unwrap();
            assert!(recover(tree.options()).is_err(), "at {cut}");
            // Killed before the book was whole, so no line began.
            fs::remove_file(&begun).unwrap();
            assert_eq!(recovered(&tree), None, "at {cut}");
        }
    }
    fs::write(&begun, &length).unwrap();
    let mut longer = whole.clone();
    longer.extend_from_slice(b"half a frame");
    fs::write(&book, &longer).unwrap();
    assert_eq!(recovered(&tree).unwrap(), told);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_lines_killed_anywhere_come_back(
        before in proptest::collection::vec(act(), 0..16),
        acts in proptest::collection::vec(act(), 1..40),
        watched in any::<bool>(),
    ) {
        let tree = Tree::new();
        before.iter().for_each(|act| perform(&tree.root, act));
        let watch = if watched { Watch::On } else { Watch::Off };
        let mut tracker = Tracker::secure(TrackerOptions { watch, ..tree.options() }).unwrap();
        tracker.begin_line("0").unwrap();
        let mut start = tree.picture();
        for (index, act) in acts.iter().enumerate() {
            perform(&tree.root, act);
            if let Act::Look | Act::HardLink(..) = act {
                tracker.compare().unwrap();
                tracker.refresh().unwrap();
                tracker.begin_line(&index.to_string()).unwrap();
                start = tree.picture();
            }
        }
        kill(tracker);
        let (_, compared) = recovered(&tree).unwrap();
        prop_assert_eq!(&compared.not_undoable, &vec![]);
        tree.undo_all(&compared.changes);
        prop_assert_eq!(tree.picture(), start);
    }
}

#[test]
fn damage_in_what_a_killed_process_left_is_told_or_harmless() {
    let tree = Tree::usual();
    tree.write("precious", "the only copy\n");
    let mut tracker = tree.tracker();
    tracker.begin_line("first").unwrap();
    tree.sh("echo x > made");
    tracker.compare().unwrap();
    tracker.begin_line("line").unwrap();
    tree.sh("rm precious; echo two > a.txt");
    let left = tree.options().scratch.join("tree");
    let files: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(&left)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(&path).unwrap()))
        .collect();
    kill(tracker);
    let right = recover(tree.options()).unwrap().unwrap();
    let told = |found: &Result<Option<lathe_changes::Recovered>, ChangesError>| match found {
        Err(_) => true,
        Ok(None) => false,
        Ok(Some(found)) => !found.compared.not_undoable.is_empty(),
    };
    for (path, bytes) in files.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        for at in (0..bytes.len()).step_by(7) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            for damaged in [flipped, bytes[..at].to_vec()] {
                fs::write(path, &damaged).unwrap();
                let found = recover(tree.options());
                let harmless = matches!(&found, Ok(Some(found)) if *found == right);
                assert!(harmless || told(&found), "{} at {at}: {found:?}", path.display());
            }
        }
        fs::write(path, bytes).unwrap();
    }
    assert_eq!(recover(tree.options()).unwrap().unwrap(), right);
}
