//! The watcher narrows, and is never trusted with more.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use lathe_changes::Compared;

use crate::tree::Tree;

#[test]
fn a_queue_that_ran_over_costs_time_and_nothing_else() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    let (mut one, mut two) =
        (fs::File::create(tree.at("one")).unwrap(), fs::File::create(tree.at("two")).unwrap());
    let limit: usize =
        fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    // Two events of the same kind in a row are one, so they alternate.
    for _ in 0..limit {
        one.write_all(b"1").unwrap();
        two.write_all(b"2").unwrap();
    }
    tree.sh("rm a.txt; mkdir -p later/deep; mv src moved");
    let told = tree.told(&tracker.compare().unwrap());
    assert!(
        ["-a.txt", "+later/deep", "+moved/main.rs", "+one", "-src"]
            .iter()
            .all(|one| told.iter().any(|told| told == one)),
        "{told:?}"
    );
    assert_eq!(tracker.full_check().unwrap(), Compared::default());
    // And the watcher is back.
    assert!(tracker.secured().watched);
    tree.sh("echo x > later/deep/x; echo y > moved/main.rs");
    assert_eq!(tree.told(&tracker.compare().unwrap()), ["+later/deep/x", "*moved/main.rs"]);
    assert_eq!(tracker.full_check().unwrap(), Compared::default());
}

#[test]
fn new_folders_are_watched_at_every_depth() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tree.sh("mkdir -p x/y/z");
    tracker.compare().unwrap();
    tree.sh("echo 1 > x/y/z/f; mkdir x/y/z/w; echo 2 > x/y/z/w/g");
    assert_eq!(tree.told(&tracker.compare().unwrap()), ["+x/y/z/f", "+x/y/z/w", "+x/y/z/w/g"]);
    tree.sh("echo 3 > x/y/z/w/g");
    assert_eq!(tree.told(&tracker.compare().unwrap()), ["*x/y/z/w/g"]);
}

#[test]
fn a_file_written_twice_in_one_tick_is_seen_twice() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    for round in 0..200 {
        tree.write("a.txt", format!("{:03}", round % 7));
        let compared = tracker.compare().unwrap();
        assert_eq!(tree.told(&compared), ["*a.txt"], "round {round}");
    }
}

#[test]
fn a_file_that_is_still_open_is_seen() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    let mut file = fs::File::create(tree.at("log")).unwrap();
    for _ in 0..3 {
        file.write_all(b"line\n").unwrap();
        assert_eq!(tracker.compare().unwrap().changes.len(), 1);
    }
}

#[test]
fn a_root_that_was_replaced_is_looked_at_anew() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tree.sh("mkdir ../other; echo x > ../other/x; mv ../tree ../old; mv ../other ../tree");
    let told = tree.told(&tracker.compare().unwrap());
    assert!(told.contains(&"+x".to_owned()) && told.contains(&"-src/main.rs".to_owned()), "{told:?}");
    tree.write("x", "y");
    assert_eq!(tree.told(&tracker.compare().unwrap()), ["*x"]);
}

#[test]
fn changes_while_everything_is_secured_are_taken_over() {
    let tree = Tree::usual();
    for number in 0..600 {
        tree.write(format!("many/{}/{number}", number % 20), format!("{number}"));
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut tracker = std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                let number = round % 600;
                fs::write(tree.at(format!("many/{}/{number}", number % 20)), format!("r{round}")).unwrap();
            }
        });
        let tracker = tree.tracker();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        tracker
    });
    tracker.refresh().unwrap();
    let first = tree.picture();
    assert_eq!(tracker.refresh().unwrap(), Vec::<PathBuf>::new());
    tree.sh("rm -r many");
    tree.undo_all(&tracker.compare().unwrap().changes);
    assert_eq!(tree.picture(), first);
}

#[test]
fn a_root_behind_a_link_is_refused() {
    let tree = Tree::usual();
    tree.sh("ln -s tree ../link; mkdir ../above; ln -s ../tree ../above/link");
    let base = tree.at("..").canonicalize().unwrap();
    for root in ["link", "link/src", "above/link", "above/link/src"] {
        let mut options = tree.options();
        options.root = base.join(root);
        options.scratch = tree.at("own");
        let refused = lathe_changes::Tracker::secure(options).map(drop).unwrap_err();
        assert!(refused.to_string().contains("link"), "{root}: {refused}");
    }
}

#[test]
fn what_the_watcher_cannot_hear_the_full_check_finds() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tree.sh("ln a.txt ../second; echo through the second name > ../second");
    assert_eq!(tracker.compare().unwrap(), Compared::default());
    assert_eq!(tree.told(&tracker.full_check().unwrap()), ["*a.txt"]);
}

#[test]
fn a_tracker_may_go_to_another_thread() {
    fn may_go<T: Send + Sync>() {}
    may_go::<lathe_changes::Tracker>();
}
