//! Copies of repositories: kept up to date, cheap, and whole when they are needed.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use lathe_blobs::Blobs;
use lathe_changes::{LineOrigin, Quarantine, Repositories};

pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(place.root()).unwrap();
        place.git(&["init", "-q", "-b", "main"]);
        for (name, value) in [("user.name", "t"), ("user.email", "t@e.org"), ("gc.auto", "0")] {
            place.git(&["config", name, value]);
        }
        place.commit("one");
        place
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn git(&self, words: &[&str]) -> String {
        let ran = Command::new("git").args(words).current_dir(self.root()).output().unwrap();
        assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    }

    pub(crate) fn commit(&self, text: &str) {
        fs::write(self.root().join("a.txt"), text).unwrap();
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", text]);
    }

    pub(crate) fn quarantine(&self) -> Quarantine {
        Quarantine::new(self.folder.path().join("quarantine"))
    }

    /// The copy of `.git`, of which there is one.
    pub(crate) fn copy(&self) -> PathBuf {
        let folder = self.folder.path().join("quarantine/.repositories");
        let mut all = fs::read_dir(folder).unwrap();
        all.next().unwrap().unwrap().path().join("copy")
    }

    pub(crate) fn secure(&self, copies: &mut Repositories) {
        copies.secure(&self.root(), &[self.root().join(".git")]);
        assert_eq!(copies.not_kept(), []);
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_copy_is_a_repository_and_follows_what_git_does() {
    let place = Place::new();
    let mut copies = place.quarantine().repositories();
    let of_copy = |words: &[&str]| {
        let ran = Command::new("git").arg("--git-dir").arg(place.copy()).args(words).output().unwrap();
        assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    let everything: [&dyn Fn(); 8] = [
        &|| {},
        &|| place.commit("two"),
        &|| drop(place.git(&["branch", "objects/odd"])),
        &|| drop(place.git(&["gc", "-q", "--prune=now"])),
        &|| place.commit("three"),
        &|| drop(place.git(&["branch", "-D", "objects/odd"])),
        &|| drop(place.git(&["reset", "-q", "--hard", "HEAD~1"])),
        &|| {
            place.git(&["reflog", "expire", "--expire=now", "--all"]);
            place.git(&["prune", "--expire=now"]);
        },
    ];
    for (at, act) in everything.into_iter().enumerate() {
        act();
        assert_eq!(copies.broken(), [], "{at}");
        place.secure(&mut copies);
        for words in [&["log", "--all", "--format=%H %s"][..], &["for-each-ref"], &["ls-files", "-s"]] {
            assert_eq!(of_copy(words), place.git(words), "{at}: {words:?}");
        }
        of_copy(&["fsck", "--full", "--no-dangling", "--no-progress"]);
        // What git has dropped is not held on to.
        let count = |folder: PathBuf| files(&folder).len();
        assert_eq!(count(place.copy().join("objects")), count(place.root().join(".git/objects")), "{at}");
    }
}

#[test]
fn objects_are_linked_and_what_changes_is_copied() {
    let place = Place::new();
    place.git(&["branch", "objects/odd"]);
    place.secure(&mut place.quarantine().repositories());
    for path in files(&place.copy()) {
        let rel = path.strip_prefix(place.copy()).unwrap().to_owned();
        let theirs = fs::metadata(place.root().join(".git").join(&rel)).unwrap();
        let linked = fs::metadata(&path).unwrap().ino() == theirs.ino();
        assert_eq!(linked, rel.starts_with("objects"), "{}", rel.display());
    }
}

#[test]
fn a_second_process_goes_on_with_the_copy_and_a_broken_repository_never_becomes_one() {
    let place = Place::new();
    place.secure(&mut place.quarantine().repositories());
    place.commit("two");
    let log = place.git(&["log", "--format=%H"]);
    let mut copies = place.quarantine().repositories();
    place.secure(&mut copies);
    fs::remove_dir_all(place.root().join(".git/refs")).unwrap();
    // Another session, and this one before its next line.
    place.quarantine().repositories().secure(&place.root(), &[place.root().join(".git")]);
    copies.secure(&place.root(), &[]);
    let broken = copies.broken();
    assert_eq!(broken.len(), 1);
    assert_eq!(broken[0].why, "has lost refs");
    // The user writes a file there meanwhile; it stays.
    let mut keeping = place.quarantine().begin().unwrap();
    keeping.keep_repositories(&broken);
    let note = LineOrigin { line: "x".into(), folder: place.root(), session: None, call: "c".into() };
    let kept = keeping.finish(note, Vec::new()).unwrap().unwrap();
    fs::write(place.root().join(".git/description"), "mine\n").unwrap();
    let blobs = Blobs::open(place.folder.path().join("blobs")).unwrap();
    let back = place.quarantine().restore(&kept, &blobs).unwrap();
    let left: Vec<&str> = back.left.iter().map(|(_, why)| why.as_str()).collect();
    assert_eq!(left, ["somebody changed it meanwhile"], "{back:?}");
    assert_eq!(place.git(&["log", "--format=%H"]), log);
    assert_eq!(fs::read_to_string(place.root().join(".git/description")).unwrap(), "mine\n");
}
