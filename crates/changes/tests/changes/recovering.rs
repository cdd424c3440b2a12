//! A process that is killed in the middle of a line leaves enough behind to say what the line changed.

use std::fs;

use lathe_changes::{Compared, Tracker, TrackerOptions, Watch, recover};
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
        tracker.begin("c1").unwrap();
        tree.sh(
            "rm a.txt; echo new > made.txt; mkdir deep; echo x > deep/x; chmod 600 b.txt 2>/dev/null || true",
        );
        kill(tracker);
        let (line, compared) = recovered(&tree).unwrap();
        assert_eq!(line, "c1");
        assert!(compared.not_undoable.is_empty(), "{compared:?}");
        // The same as often as it is asked for.
        assert_eq!(recovered(&tree).unwrap().1, compared);
        tree.undo_all(&compared.changes);
        assert_eq!(tree.picture(), first, "git: {git}");
    }
}

#[test]
fn only_the_last_line_is_told() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tracker.begin("c1").unwrap();
    tree.write("one.txt", "1");
    assert_eq!(tree.told(&tracker.compare().unwrap()), ["+one.txt"]);
    // What others do between two lines belongs to neither.
    tree.write("person.txt", "p");
    tree.write("one.txt", "person");
    tracker.refresh().unwrap();
    tracker.begin("c2").unwrap();
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
    tracker.begin("c1").unwrap();
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
    tracker.begin("c1").unwrap();
    drop(tracker);
    assert_eq!(recovered(&tree), None);
    assert!(!tree.options().scratch.join("tree").exists());
}

#[test]
fn a_torn_end_and_a_flipped_bit_cost_what_follows_and_no_more() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tracker.begin("c1").unwrap();
    tree.write("new.txt", "x");
    kill(tracker);
    let book = tree.options().scratch.join("tree/book");
    let whole = fs::read(&book).unwrap();
    let told = recovered(&tree).unwrap();
    for cut in (0..whole.len()).step_by(7) {
        fs::write(&book, &whole[..cut]).unwrap();
        // The mark of the line is the last frame, so a torn book knows of no line.
        assert_eq!(recovered(&tree), None, "cut at {cut}");
        let mut flipped = whole.clone();
        flipped[cut] ^= 4;
        fs::write(&book, &flipped).unwrap();
        assert_eq!(recovered(&tree), None, "flipped at {cut}");
    }
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
        tracker.begin("0").unwrap();
        let mut start = tree.picture();
        for (index, act) in acts.iter().enumerate() {
            perform(&tree.root, act);
            if let Act::Look | Act::HardLink(..) = act {
                tracker.compare().unwrap();
                tracker.refresh().unwrap();
                tracker.begin(&index.to_string()).unwrap();
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
