//! Hooks and settings of a repository that are links: what git would run is what counts, not the link.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::repository::Place;

const BEFORE: &str = "#!/bin/sh\nexit 0\n";
const AFTER: &str = "#!/bin/sh\nexit 1\n";

impl Place {
    fn put(&self, name: &str, text: &str, mode: u32) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn link(&self, name: &str, leads: impl AsRef<Path>) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        symlink(leads, path).unwrap();
    }

    /// The content and the mode that git finds by a name.
    fn found(&self, name: &str) -> Option<(String, u32)> {
        let path = self.root().join(name);
        let mode = path.metadata().ok()?.permissions().mode() & 0o777;
        Some((fs::read_to_string(path).ok()?, mode))
    }
}

/// A repository with links, the change of a line, the name by which git finds the part, and the one that is set aside.
type Case = (&'static str, fn(&Place), fn(&Place), &'static str, &'static str);

const CASES: [Case; 16] = [
    ("a hook", hook, |p| p.put("scripts/pc", AFTER, 0o755), HOOK, "scripts/pc"),
    (
        "a hook that becomes one that is run",
        |p| {
            hook(p);
            p.put("scripts/pc", BEFORE, 0o644);
        },
        |p| p.put("scripts/pc", BEFORE, 0o755),
        HOOK,
        "scripts/pc",
    ),
    (
        "a hook by an absolute link",
        |p| {
            p.put("scripts/pc", BEFORE, 0o755);
            p.link(HOOK, p.root().join("scripts/pc"));
        },
        |p| p.put("scripts/pc", AFTER, 0o755),
        HOOK,
        "scripts/pc",
    ),
    (
        "a hook that is not there yet",
        |p| p.link(HOOK, "../../scripts/pc"),
        |p| p.put("scripts/pc", AFTER, 0o755),
        HOOK,
        "scripts/pc",
    ),
    (
        "a second link on the way",
        |p| {
            p.put("scripts/pc", BEFORE, 0o755);
            p.link("way", "scripts/pc");
            p.link(HOOK, "../../way");
        },
        |p| {
            p.put("other", AFTER, 0o755);
            p.link("way", "other");
        },
        HOOK,
        HOOK,
    ),
    (
        "a link of a folder on the way",
        |p| {
            p.put("scripts/pc", BEFORE, 0o755);
            p.link("way", "scripts");
            p.link(HOOK, "../../way/pc");
        },
        |p| {
            p.put("other/pc", AFTER, 0o755);
            p.link("way", "other");
        },
        HOOK,
        HOOK,
    ),
    (
        "a hook elsewhere that the way to leads to another one",
        |p| {
            fs::write(p.folder.path().join("outside"), BEFORE).unwrap();
            p.link("way", "../outside");
            p.link(HOOK, "../../way");
        },
        |p| {
            p.put("other", AFTER, 0o755);
            p.link("way", "other");
        },
        HOOK,
        HOOK,
    ),
    (
        "a hook in the repository itself",
        |p| {
            p.put(".git/own", BEFORE, 0o755);
            p.link(HOOK, "../own");
        },
        |p| p.put(".git/own", AFTER, 0o755),
        HOOK,
        ".git/own",
    ),
    (
        "a hook of a folder that is named",
        |p| {
            p.git(&["config", "core.hooksPath", "hh"]);
            p.put("scripts/pc", BEFORE, 0o755);
            p.link("hh/pre-commit", "../scripts/pc");
        },
        |p| p.put("scripts/pc", AFTER, 0o755),
        "hh/pre-commit",
        "scripts/pc",
    ),
    (
        "hooks of a named folder in the repository",
        |p| {
            p.git(&["config", "core.hooksPath", ".git/mine"]);
            p.put(".git/mine/pre-commit", BEFORE, 0o755);
        },
        |p| p.put(".git/mine/pre-commit", AFTER, 0o755),
        ".git/mine/pre-commit",
        ".git/mine/pre-commit",
    ),
    (
        "a folder of hooks that is not there yet",
        |p| {
            fs::remove_dir_all(p.root().join(".git/hooks")).unwrap();
            p.link(".git/hooks", "../hk");
        },
        |p| p.put("hk/pre-commit", AFTER, 0o755),
        HOOK,
        "hk/pre-commit",
    ),
    (
        "settings",
        |p| {
            fs::rename(p.root().join(".git/config"), p.root().join("cfg")).unwrap();
            p.link(".git/config", "../cfg");
        },
        |p| p.put("cfg", "[core]\n\tpager = evil\n", 0o644),
        ".git/config",
        "cfg",
    ),
    (
        "settings in the repository itself",
        |p| {
            fs::rename(p.root().join(".git/config"), p.root().join(".git/cfg")).unwrap();
            p.link(".git/config", "cfg");
        },
        |p| p.put(".git/cfg", "[core]\n\tpager = evil\n", 0o644),
        ".git/config",
        ".git/cfg",
    ),
    (
        "settings that are included from the repository itself",
        |p| {
            p.git(&["config", "include.path", "more"]);
            p.put(".git/more", "[push]\n\tdefault = current\n", 0o644);
        },
        |p| p.put(".git/more", "[core]\n\tpager = evil\n", 0o644),
        ".git/more",
        ".git/more",
    ),
    (
        "settings of the work tree that are not there yet",
        |p| p.link(".git/config.worktree", "../cfg"),
        |p| p.put("cfg", "[core]\n\tpager = evil\n", 0o644),
        ".git/config.worktree",
        "cfg",
    ),
    (
        "commands of a rebase in a folder elsewhere",
        |p| {
            p.put("rebase/git-rebase-todo", "exec true\n", 0o644);
            p.link(".git/rebase-merge", "../rebase");
        },
        |p| p.put("rebase/git-rebase-todo", "exec evil\n", 0o644),
        ".git/rebase-merge/git-rebase-todo",
        "rebase/git-rebase-todo",
    ),
];

const HOOK: &str = ".git/hooks/pre-commit";

fn hook(place: &Place) {
    place.put("scripts/pc", BEFORE, 0o755);
    place.link(HOOK, "../../scripts/pc");
}

#[test]
fn what_a_link_leads_to_is_what_it_was_and_nothing_is_done_without_a_change() {
    for (name, make, change, part, aside) in CASES {
        let place = Place::new();
        fs::create_dir_all(place.root().join(".git/hooks")).unwrap();
        make(&place);
        let before = place.found(part);
        let mut copies = place.quarantine().repositories();
        for _ in 0..3 {
            place.secure(&mut copies);
            assert_eq!(copies.set_programs_aside(), [], "{name}: nothing changed");
        }
        change(&place);
        assert_ne!(place.found(part), before, "{name}");
        let told = copies.set_programs_aside();
        assert_eq!(place.found(part), before, "{name}: {told:?}");
        let aside = place.root().join(format!("{aside}.set-aside-by-lathe"));
        assert!(aside.symlink_metadata().is_ok(), "{name}: nothing is lost: {told:?}");
        assert_eq!(told.len(), 1, "{name}: {told:?}");
        place.secure(&mut copies);
        assert_eq!(copies.set_programs_aside(), [], "{name}: once is enough");
    }
}

#[test]
fn a_hook_that_is_too_large_for_a_copy_is_told_truthfully() {
    let place = Place::new();
    place.put("big", BEFORE, 0o755);
    fs::File::options().write(true).open(place.root().join("big")).unwrap().set_len(17 << 20).unwrap();
    place.link(HOOK, "../../big");
    let mut copies = place.quarantine().repositories();
    place.secure(&mut copies);
    assert_eq!(copies.set_programs_aside(), []);
    place.put("big", AFTER, 0o755);
    let told = copies.set_programs_aside();
    let [one] = told.as_slice() else { panic!("{told:?}") };
    assert!(one.path.ends_with(HOOK) && one.aside.as_ref().is_err_and(|why| why.contains("too large")));
    assert_eq!(place.found("big").unwrap().0, AFTER, "what cannot be put back is not taken away");
}

#[test]
fn what_lies_elsewhere_is_neither_copied_nor_renamed() {
    let place = Place::new();
    let outside = place.folder.path().join("outside");
    fs::write(&outside, "SECRET").unwrap();
    place.link(HOOK, &outside);
    let mut copies = place.quarantine().repositories();
    place.secure(&mut copies);
    let kept = place.copy().parent().unwrap().join("linked/0");
    assert!(kept.is_symlink());
    fs::write(&outside, "changed").unwrap();
    assert_eq!(copies.set_programs_aside(), []);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "changed");
}
