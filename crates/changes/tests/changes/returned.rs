//! A file that was restored from the quarantine is removed again by the undo, after any events in between, but never
//! with changes of the user.

use std::fs;
use std::path::{Path, PathBuf};

use lathe_blobs::Blobs;
use lathe_changes::{LineOrigin, Quarantine, QuarantineEntry};

struct Place {
    _dir: tempfile::TempDir,
    base: PathBuf,
    quarantine: Quarantine,
    blobs: Blobs,
    kept: QuarantineEntry,
}

/// A file and a folder that a line of a session removed.
fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    fs::create_dir_all(base.join("o/deep")).unwrap();
    fs::write(base.join("o/deep/f"), "deep").unwrap();
    fs::write(base.join("file"), "file").unwrap();
    let quarantine = Quarantine::new(base.join("q"));
    let mut keeping = quarantine.begin().unwrap();
    keeping.keep(&base.join("o")).unwrap();
    keeping.keep(&base.join("file")).unwrap();
    fs::remove_dir_all(base.join("o")).unwrap();
    fs::remove_file(base.join("file")).unwrap();
    let session = Some("s".to_owned());
    let note = LineOrigin { line: "rm".to_owned(), folder: base.clone(), session, call: "c".to_owned() };
    let kept = keeping.finish(note, Vec::new()).unwrap().unwrap();
    let blobs = Blobs::open(base.join("blobs")).unwrap();
    Place { _dir: dir, base, quarantine, blobs, kept }
}

impl Place {
    fn entry(&self) -> PathBuf {
        self.base.join("q").join(&self.kept.id)
    }

    fn there(&self) -> (bool, bool) {
        (self.base.join("o/deep/f").exists(), self.base.join("file").exists())
    }

    fn acts(&self) -> (Vec<Vec<u64>>, Vec<Vec<u64>>) {
        let kept = self.quarantine.entries().into_iter().map(|kept| kept.acts);
        (kept.collect(), self.quarantine.restored().into_iter().map(|one| one.kept.acts).collect())
    }
}

#[test]
fn things_go_back_and_away_as_often_as_one_likes() {
    let place = place();
    for round in 0..3 {
        let by = round * 2 + 1;
        let back = place.quarantine.restore_undoably(&place.kept.id, by, &place.blobs).unwrap();
        assert_eq!((back.done.len(), back.left.len()), (2, 0), "{back:?}");
        assert_eq!(place.there(), (true, true));
        assert_eq!(place.acts(), (vec![], vec![(1..=by).collect()]));
        let back = place.quarantine.undo_restore(&place.kept.id, by + 1).unwrap();
        assert_eq!((back.done.len(), back.left.len()), (2, 0), "{back:?}");
        assert_eq!(place.there(), (false, false));
        assert_eq!(place.acts(), (vec![(1..=by + 1).collect()], vec![]));
    }
}

#[test]
fn an_act_that_was_cut_off_is_done_again_and_can_still_be_taken_back() {
    let place = place();
    let id = &place.kept.id;
    let entry = fs::read(place.entry().join("entry.json")).unwrap();
    place.quarantine.restore_undoably(id, 7, &place.blobs).unwrap();
    // Killed right before the entry was removed.
    fs::write(place.entry().join("entry.json"), &entry).unwrap();
    place.quarantine.restore_undoably(id, 7, &place.blobs).unwrap();
    assert_eq!((place.there(), place.acts()), ((true, true), (vec![], vec![vec![7]])));
    // Killed after half of it was removed again.
    let returned = fs::read(place.entry().join("returned.json")).unwrap();
    fs::rename(place.base.join("file"), place.entry().join("1")).unwrap();
    fs::write(place.entry().join("returned.json"), returned).unwrap();
    let back = place.quarantine.undo_restore(id, 9).unwrap();
    assert_eq!((back.done.len(), back.left.len()), (1, 0), "{back:?}");
    assert_eq!((place.there(), place.acts()), ((false, false), (vec![vec![7, 9]], vec![])));
    place.quarantine.restore_undoably(id, 11, &place.blobs).unwrap();
    assert_eq!(place.there(), (true, true));
}

#[test]
fn what_somebody_changed_stays() {
    type Way = (&'static str, fn(&Path), (bool, bool));
    let ways: [Way; 5] = [
        ("written into", |base| fs::write(base.join("file"), "mine").unwrap(), (false, true)),
        ("a new file inside", |base| fs::write(base.join("o/mine"), "mine").unwrap(), (true, false)),
        ("one removed inside", |base| fs::remove_file(base.join("o/deep/f")).unwrap(), (false, false)),
        (
            "replaced by a folder",
            |base| {
                fs::remove_file(base.join("file")).unwrap();
                fs::create_dir(base.join("file")).unwrap();
            },
            (false, true),
        ),
        (
            "a link on the way",
            |base| {
                fs::rename(base.join("o"), base.join("p")).unwrap();
                std::os::unix::fs::symlink(base.join("p"), base.join("o")).unwrap();
            },
            (true, false),
        ),
    ];
    for (name, change, there) in ways {
        let place = place();
        place.quarantine.restore_undoably(&place.kept.id, 1, &place.blobs).unwrap();
        change(&place.base);
        let back = place.quarantine.undo_restore(&place.kept.id, 2).unwrap();
        assert_eq!((back.done.len(), back.left.len()), (1, 1), "{name}: {back:?}");
        assert_eq!(place.there(), there, "{name}: {back:?}");
        // The rest is restored once more.
        let back = place.quarantine.restore_undoably(&place.kept.id, 3, &place.blobs).unwrap();
        assert_eq!((back.done.len(), back.left.len()), (1, 0), "{name}: {back:?}");
    }
}

#[test]
fn a_name_that_is_no_text_comes_back_and_is_taken_away_again() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = place();
    let name = std::ffi::OsStr::from_bytes(b"\xff");
    fs::create_dir(place.base.join("p")).unwrap();
    fs::write(place.base.join("p").join(name), "odd").unwrap();
    let mut keeping = place.quarantine.begin().unwrap();
    keeping.keep(&place.base.join("p")).unwrap();
    fs::remove_file(place.base.join("p").join(name)).unwrap();
    let session = Some("s".to_owned());
    let note =
        LineOrigin { line: "rm".to_owned(), folder: place.base.clone(), session, call: "d".to_owned() };
    let kept = keeping.finish(note, Vec::new()).unwrap().unwrap();
    let back = place.quarantine.restore_undoably(&kept.id, 1, &place.blobs).unwrap();
    assert!(place.base.join("p").join(name).exists(), "{back:?}");
    assert_eq!((back.done.len(), back.stays.len()), (1, 0), "{back:?}");
    let back = place.quarantine.undo_restore(&kept.id, 2).unwrap();
    assert_eq!((back.done.len(), back.left.len()), (1, 0), "{back:?}");
    assert!(!place.base.join("p").join(name).exists(), "{back:?}");
    place.quarantine.restore_undoably(&kept.id, 3, &place.blobs).unwrap();
    assert_eq!(fs::read(place.base.join("p").join(name)).unwrap(), b"odd");
}
