//! Parts of `.git` that a line removes or damages: git's own removals do not count as loss, all other parts are
//! restored.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use lathe_blobs::Blobs;
use lathe_changes::{BrokenRepository, LineOrigin, Repositories};

use crate::repository::Place;

/// A line, by its name in a failure.
type Line = (&'static str, fn(&Place));

impl Place {
    /// With a side branch, a tag, a remote, a stash, another work tree and traces of work.
    fn full() -> Self {
        let place = Self::new();
        place.commit("two");
        place.git(&["branch", "side", "HEAD~1"]);
        place.git(&["tag", "old", "HEAD~1"]);
        place.git(&["tag", "-a", "-m", "x", "noted"]);
        place.git(&["config", "remote.origin.url", "https://example.org/x"]);
        place.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
        place.git(&["symbolic-ref", "-m", "x", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"]);
        fs::write(place.root().join("a.txt"), "stashed").unwrap();
        place.git(&["stash", "-q"]);
        place.git(&["worktree", "add", "-q", "-b", "tree", "../tree"]);
        place.git(&["reset", "-q", "--hard", "HEAD"]);
        assert!(place.dot("ORIG_HEAD").is_file());
        place
    }

    /// All names except the branch that is checked out, which moved.
    fn packed() -> Self {
        let place = Self::full();
        place.git(&["pack-refs", "--all"]);
        place.commit("three");
        place
    }

    fn dot(&self, rel: &str) -> PathBuf {
        self.root().join(".git").join(rel)
    }

    fn write(&self, rel: &str, text: &str) {
        fs::write(self.dot(rel), text).unwrap();
    }

    /// Out of the way, where the test may look at it.
    fn take(&self, rel: &str) {
        let away = self.folder.path().join("away");
        fs::create_dir_all(&away).unwrap();
        let count = fs::read_dir(&away).unwrap().count();
        fs::rename(self.dot(rel), away.join(count.to_string())).unwrap();
    }

    fn keep_and_restore(&self, broken: &[BrokenRepository]) {
        let mut keeping = self.quarantine().begin().unwrap();
        keeping.keep_repositories(broken);
        let note = LineOrigin { line: "x".into(), folder: self.root(), session: None, call: "c".into() };
        let kept = keeping.finish(note, Vec::new()).unwrap().unwrap();
        let blobs = Blobs::open(self.folder.path().join("blobs")).unwrap();
        let back = self.quarantine().restore(&kept, &blobs).unwrap();
        assert_eq!(back.left, [], "{broken:?}");
    }

    /// The names that git knows, and every file except objects.
    fn known(&self) -> (String, BTreeMap<PathBuf, Vec<u8>>) {
        let mut files = BTreeMap::new();
        add(&self.root().join(".git"), &mut files);
        let told = [
            &["for-each-ref"][..],
            &["stash", "list", "--format=%H %gs"],
            &["worktree", "list", "--porcelain"],
            &["log", "--all", "--format=%H"],
            &["-C", "../tree", "status", "--porcelain", "--branch"],
        ];
        (told.into_iter().map(|words| self.git(words)).collect(), files)
    }

    fn after(&self, line: fn(&Self)) -> Vec<BrokenRepository> {
        let mut copies: Repositories = self.quarantine().repositories();
        self.secure(&mut copies);
        line(self);
        copies.broken()
    }
}

fn add(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("objects") {
            add(&path, found);
        } else if path.is_file() {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
}

#[test]
fn what_is_taken_away_or_spoiled_comes_back() {
    let lines: [Line; 18] = [
        ("packed-refs taken", |place| place.take("packed-refs")),
        ("packed-refs emptied", |place| place.write("packed-refs", "")),
        ("packed-refs garbage", |place| place.write("packed-refs", "garbage\n")),
        ("packed-refs damaged", |place| {
            let text = fs::read_to_string(place.dot("packed-refs")).unwrap();
            place.write("packed-refs", &text.replacen("\n", "\ngarbage\n", 2));
        }),
        ("packed-refs and objects", |place| {
            let head = place.git(&["rev-parse", "HEAD"]);
            place.take("packed-refs");
            place.take("logs");
            place.write("refs/heads/main", &head);
            place.write("worktrees/tree/HEAD", &head);
            place.git(&["gc", "-q", "--prune=now"]);
        }),
        ("HEAD to nowhere, its branch gone", |place| {
            place.git(&["update-ref", "-d", "refs/heads/main"]);
            place.write("HEAD", "ref: refs/heads/nowhere\n");
        }),
        ("worktrees", |place| place.take("worktrees")),
        ("an entry of worktrees", |place| place.take("worktrees/tree")),
        ("HEAD of a work tree", |place| place.take("worktrees/tree/HEAD")),
        ("HEAD of a work tree spoiled", |place| place.write("worktrees/tree/HEAD", "x\n")),
        ("gitdir of a work tree", |place| place.take("worktrees/tree/gitdir")),
        ("index of a work tree", |place| place.take("worktrees/tree/index")),
        ("config of another", |place| place.write("config", "[core]\n\tbare = false\n")),
        ("config without the rest", |place| {
            let text = fs::read_to_string(place.dot("config")).unwrap();
            let at = text.find("[user]").unwrap();
            place.write("config", &text[..at]);
        }),
        ("config of comments", |place| place.write("config", "# mine\n")),
        ("HEAD and traces of work", |place| {
            for name in ["HEAD", "ORIG_HEAD", "MERGE_HEAD", "MERGE_MSG", "rebase-merge", "lfs", "mine"] {
                place.take(name);
            }
        }),
        ("everything but two", |place| {
            for entry in fs::read_dir(place.root().join(".git")).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                if !matches!(name.as_str(), "objects" | "config") {
                    place.take(&name);
                }
            }
        }),
        ("logs and traces of work", |place| {
            for name in ["logs", "ORIG_HEAD", "lfs", "mine"] {
                place.take(name);
            }
        }),
    ];

    for (name, line) in lines {
        let place = Place::packed();
        for folder in ["rebase-merge", "lfs/objects", "mine"] {
            fs::create_dir_all(place.dot(folder)).unwrap();
        }
        for file in ["MERGE_HEAD", "MERGE_MSG", "rebase-merge/done", "lfs/objects/a", "mine/own.txt"] {
            place.write(file, &place.git(&["rev-parse", "HEAD"]));
        }
        let known = place.known();
        let broken = place.after(line);
        assert_eq!(broken.len(), 1, "{name}: {broken:#?}");
        place.keep_and_restore(&broken);
        let now = place.known();
        assert_eq!(now.0, known.0, "{name}: {broken:?}");
        for (path, text) in known.1 {
            assert_eq!(now.1.get(&path), Some(&text), "{name}: {} {broken:?}", path.display());
        }
        place.git(&["fsck", "--full", "--no-dangling", "--no-progress"]);
    }
}

#[test]
fn a_packed_name_comes_back_alone_and_newer_ones_stay() {
    let place = Place::packed();
    let side = place.git(&["rev-parse", "side"]);
    let broken = place.after(|place| {
        place.commit("four");
        place.git(&["pack-refs", "--all"]);
        let text = fs::read_to_string(place.dot("packed-refs")).unwrap();
        let rest: Vec<&str> = text.lines().filter(|line| !line.ends_with("/side")).collect();
        place.write("packed-refs", &(rest.join("\n") + "\n"));
    });
    let newer = place.git(&["rev-parse", "HEAD"]);
    assert_eq!(broken.len(), 1);
    assert_eq!(broken[0].why, "has lost refs/heads/side");
    place.keep_and_restore(&broken);
    assert_eq!(place.git(&["rev-parse", "side"]), side);
    assert_eq!(place.git(&["rev-parse", "main"]), newer);
    place.git(&["fsck", "--full", "--no-dangling", "--no-progress"]);
}

#[test]
fn folders_of_names_that_are_not_packed_come_back() {
    for taken in ["refs/tags", "refs/remotes", "refs/remotes/origin"] {
        let place = Place::full();
        let log = fs::read(place.dot("logs/refs/heads/main")).unwrap();
        for name in ["main", "HEAD"] {
            fs::create_dir_all(place.dot("logs/refs/remotes/origin")).unwrap();
            fs::write(place.dot("logs/refs/remotes/origin").join(name), &log).unwrap();
        }
        let known = place.known();
        let mut copies = place.quarantine().repositories();
        place.secure(&mut copies);
        place.take(taken);
        let broken = copies.broken();
        assert_eq!(broken.len(), 1, "{taken}");
        place.keep_and_restore(&broken);
        assert_eq!(place.known(), known, "{taken}");
    }
}

#[test]
fn what_says_where_history_ends_and_where_objects_are_comes_back() {
    for (words, file) in [(["--depth", "1"], "shallow"), (["--shared", "-q"], "objects/info/alternates")] {
        let (origin, place) = (Place::full(), Place::new());
        let from = format!("file://{}", origin.root().display());
        let from = if file == "shallow" { from } else { origin.root().display().to_string() };
        place.git(&["clone", "-q", words[0], words[1], "--no-tags", &from, "../clone"]);
        let clone = place.folder.path().join("clone");
        let git = |words: &[&str]| place.git(&[&["-C", "../clone"], words].concat());
        let log = git(&["log", "--format=%H"]);
        let mut copies = place.quarantine().repositories();
        let mut lost = |line: &dyn Fn()| {
            copies.secure(&clone, &[clone.join(".git")]);
            line();
            copies.broken()
        };
        let broken = lost(&|| place.take(&format!("../../clone/.git/{file}")));
        assert_eq!(broken.len(), 1, "{file}");
        place.keep_and_restore(&broken);
        assert_eq!(git(&["log", "--format=%H"]), log, "{file}");
        // Git's own way to do without.
        let whole = lost(&|| {
            if file == "shallow" {
                git(&["fetch", "-q", "--unshallow"]);
            } else {
                git(&["repack", "-qad"]);
                place.take(&format!("../../clone/.git/{file}"));
            }
        });
        assert_eq!(whole, [], "{file}");
    }
}

#[test]
fn the_data_of_a_module_comes_back() {
    for taken in ["modules", "modules/module"] {
        let (place, other) = (Place::full(), Place::new());
        let from = other.root().display().to_string();
        place.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", &from, "module"]);
        place.git(&["commit", "-qm", "with a module"]);
        let known = place.known();
        let mut copies = place.quarantine().repositories();
        place.secure(&mut copies);
        place.take(taken);
        place.keep_and_restore(&copies.broken());
        assert_eq!(place.known(), known, "{taken}");
        place.git(&["-C", "module", "status"]);
    }
}

#[test]
fn what_git_does_is_no_loss() {
    no_loss(Place::full);
}

#[test]
fn what_git_does_to_packed_names_is_no_loss() {
    no_loss(Place::packed);
}

fn no_loss(place: fn() -> Place) {
    let lines: [(&str, &[&[&str]]); 25] = [
        ("pack-refs", &[&["pack-refs", "--all"]]),
        ("gc", &[&["gc", "-q", "--prune=now"]]),
        ("repack", &[&["repack", "-qad"]]),
        ("worktree remove", &[&["worktree", "remove", "../tree"]]),
        ("worktree move", &[&["worktree", "move", "../tree", "../moved"]]),
        ("worktree prune", &[&["worktree", "prune"]]),
        ("another worktree", &[&["worktree", "remove", "../tree"], &["worktree", "add", "-q", "../tree"]]),
        ("branch -D", &[&["branch", "-D", "side"]]),
        ("branch -D, packed", &[&["branch", "-D", "side"], &["pack-refs", "--all"]]),
        (
            "a folder of branches",
            &[
                &["branch", "-D", "side"],
                &["branch", "side/a"],
                &["branch", "-D", "side/a"],
                &["pack-refs", "--all"],
            ],
        ),
        ("branch -m", &[&["branch", "-m", "main", "trunk"]]),
        ("tag -d", &[&["tag", "-d", "old", "noted"]]),
        (
            "every name",
            &[
                &["worktree", "remove", "../tree"],
                &["stash", "clear"],
                &["branch", "-D", "side", "tree"],
                &["tag", "-d", "old", "noted"],
                &["remote", "remove", "origin"],
                &["pack-refs", "--all"],
            ],
        ),
        ("stash drop", &[&["stash", "drop", "-q"]]),
        ("stash clear", &[&["stash", "clear"]]),
        ("remote remove", &[&["remote", "remove", "origin"]]),
        ("remote set-head", &[&["remote", "set-head", "-d", "origin"]]),
        ("remove-section", &[&["config", "--remove-section", "user"]]),
        ("orphan", &[&["checkout", "-q", "--orphan", "fresh"]]),
        (
            "history erased",
            &[
                &["checkout", "-q", "--orphan", "fresh"],
                &["commit", "-qm", "only"],
                &["branch", "-D", "main"],
                &["branch", "-m", "main"],
            ],
        ),
        ("detached", &[&["checkout", "-q", "--detach"]]),
        ("rebase", &[&["commit", "-q", "--allow-empty", "-m", "x"], &["rebase", "-q", "HEAD~1"]]),
        ("reset", &[&["reset", "-q", "--hard", "HEAD~1"]]),
        ("merge", &[&["merge", "-q", "--no-ff", "-m", "x", "side"]]),
        ("reflog", &[&["reflog", "expire", "--expire=now", "--all"], &["gc", "-q", "--prune=now"]]),
    ];
    for (name, line) in lines {
        let place = place();
        let mut copies = place.quarantine().repositories();
        place.secure(&mut copies);
        for words in line {
            place.git(words);
        }
        assert_eq!(copies.broken(), [], "{name}");
    }
}

#[test]
fn what_git_deleted_is_in_the_copy_until_the_next_line() {
    let place = Place::full();
    let names = [place.git(&["rev-parse", "side"]), place.git(&["rev-parse", "stash"])];
    let lost = place.after(|place| {
        place.git(&["branch", "-D", "side"]);
        place.git(&["stash", "clear"]);
        place.git(&["gc", "-q", "--prune=now"]);
    });
    assert_eq!(lost, []);
    let copy = place.copy().display().to_string();
    place.git(&["fetch", "-q", &copy, "refs/heads/side:refs/heads/side"]);
    place.git(&["fetch", "-q", &copy, "refs/stash"]);
    place.git(&["stash", "store", "FETCH_HEAD"]);
    assert_eq!([place.git(&["rev-parse", "side"]), place.git(&["rev-parse", "stash"])], names);
}

#[test]
fn settings_that_git_takes_out_are_no_loss() {
    // The configuration of a clone: every section except `core` belongs to the remote, or to modules.
    let place = Place::new();
    for name in ["user", "gc"] {
        place.git(&["config", "--remove-section", name]);
    }
    for (name, value) in [
        ("remote.origin.url", "https://example.org/x"),
        ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
        ("branch.main.remote", "origin"),
        ("branch.main.merge", "refs/heads/main"),
    ] {
        place.git(&["config", name, value]);
    }
    place.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    let lost = place.after(|place| drop(place.git(&["remote", "remove", "origin"])));
    assert_eq!(lost, []);
    assert!(!fs::read_to_string(place.dot("config")).unwrap().contains("remote"));
    // Two modules that are no longer wanted.
    for name in ["submodule.a.url", "submodule.b.url"] {
        place.git(&["config", name, "https://example.org/x"]);
    }
    let lost = place.after(|place| {
        place.git(&["config", "--remove-section", "submodule.a"]);
        place.git(&["config", "--remove-section", "submodule.b"]);
    });
    assert_eq!(lost, []);
}

#[test]
fn the_entry_of_the_work_tree_that_is_worked_in_comes_back() {
    let place = Place::packed();
    let tree = place.folder.path().join("tree");
    let known = place.known();
    let mut copies = place.quarantine().repositories();
    copies.secure(&tree, &[tree.join(".git")]);
    place.take("worktrees/tree");
    let broken = copies.broken();
    assert_eq!(broken.len(), 2, "{broken:#?}");
    place.keep_and_restore(&broken);
    assert_eq!(place.known(), known);
}

#[test]
fn an_entry_that_tells_its_work_tree_from_itself_on_comes_back() {
    let place = Place::packed();
    place.write("worktrees/tree/gitdir", "../../../../tree/.git\n");
    fs::write(place.folder.path().join("tree/.git"), "gitdir: ../work/.git/worktrees/tree\n").unwrap();
    let broken = place.after(|place| place.take("worktrees"));
    let why: Vec<&str> = broken.iter().map(|one| one.why.as_str()).collect();
    assert_eq!(why, ["has lost worktrees/tree"]);
    place.keep_and_restore(&broken);
    assert!(place.dot("worktrees/tree/HEAD").is_file());
}

#[test]
fn nothing_is_taken_from_or_put_outside_of_the_repository() {
    // A folder of hooks that is shared, and a name that leads out of the folder of names.
    let place = Place::packed();
    let shared = place.folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("pre-push"), "#!/bin/sh\n").unwrap();
    place.take("hooks");
    std::os::unix::fs::symlink(&shared, place.dot("hooks")).unwrap();
    let text = fs::read_to_string(place.dot("packed-refs")).unwrap();
    place.write("packed-refs", &text.replace("refs/tags/old", "refs/../../../../evil"));
    let broken = place.after(|place| {
        place.take("hooks");
        let text = fs::read_to_string(place.dot("packed-refs")).unwrap();
        let rest: Vec<&str> = text.lines().filter(|line| !line.ends_with("evil")).collect();
        place.write("packed-refs", &(rest.join("\n") + "\n"));
    });
    let why: Vec<&str> = broken.iter().map(|one| one.why.as_str()).collect();
    assert_eq!(why, ["has lost hooks"]);
    place.keep_and_restore(&broken);
    assert_eq!(fs::read_link(place.dot("hooks")).unwrap(), shared);
    assert!(shared.join("pre-push").is_file());
    assert!(!place.folder.path().join("evil").exists());
}
