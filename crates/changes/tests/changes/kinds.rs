//! Every kind of change is reported, and can be undone and redone.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;

use lathe_changes::{
    Compared, NotUndoable, NotUndoableReason, Tracker, TrackerLimits, TrackerOptions, TreeChange,
};
use lathe_protocol::{CallId, Digest};

use crate::tree::{Tree, after};

#[test]
fn a_written_file_has_both_sides_in_the_store() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tree.write("a.txt", "two\n");
    let Compared { changes, not_undoable } = tracker.compare().unwrap();
    let mode = fs::metadata(tree.at("a.txt")).unwrap().mode();
    let expected = TreeChange {
        path: tree.at("a.txt"),
        before: Some(Digest::of(b"one\n")),
        after: Some(Digest::of(b"two\n")),
        mode,
        ..TreeChange::default()
    };
    assert_eq!((changes, not_undoable), (vec![expected], vec![]));
    assert_eq!(tree.blobs.get(&Digest::of(b"one\n")).unwrap().as_deref(), Some(&b"one\n"[..]));
    assert_eq!(tree.blobs.get(&Digest::of(b"two\n")).unwrap().as_deref(), Some(&b"two\n"[..]));
}

#[test]
fn files_written_made_deleted_renamed() {
    assert_eq!(after(|tree| tree.write("a.txt", "two\n")), ["*a.txt"]);
    assert_eq!(after(|tree| tree.sh("echo more >> a.txt")), ["*a.txt"]);
    assert_eq!(after(|tree| tree.write("new", "")), ["+new"]);
    assert_eq!(after(|tree| tree.sh("rm a.txt")), ["-a.txt"]);
    assert_eq!(after(|tree| tree.sh("mv a.txt src/b.txt")), ["-a.txt", "+src/b.txt"]);
    assert_eq!(after(|tree| tree.sh("mv bin.dat a.txt")), ["*a.txt", "-bin.dat"]);
}

#[test]
fn a_binary_rewritten_in_place_at_the_same_size() {
    let told = after(|tree| tree.sh(r"printf '\001' | dd of=bin.dat bs=1 seek=2 conv=notrunc status=none"));
    assert_eq!(told, [] as [&str; 0]);
    let told = after(|tree| tree.sh(r"printf '\007' | dd of=bin.dat bs=1 seek=2 conv=notrunc status=none"));
    assert_eq!(told, ["*bin.dat"]);
}

#[test]
fn a_touched_file_is_no_change() {
    assert_eq!(after(|tree| tree.sh("touch a.txt; touch -d '1 Jan 2001' bin.dat")), [] as [&str; 0]);
    assert_eq!(after(|tree| tree.write("a.txt", "one\n")), [] as [&str; 0]);
    assert_eq!(after(|tree| tree.sh("cp a.txt x; mv x a.txt")), [] as [&str; 0]);
}

#[test]
fn a_content_put_back_with_its_old_time_is_still_seen() {
    let told = after(|tree| tree.sh("touch -r a.txt ../stamp; echo two > a.txt; touch -r ../stamp a.txt"));
    assert_eq!(told, ["*a.txt"]);
}

#[test]
fn modes_of_files_and_folders() {
    assert_eq!(after(|tree| tree.chmod("a.txt", 0o600)), ["ma.txt"]);
    assert_eq!(after(|tree| tree.chmod("src/deep", 0o700)), ["msrc/deep"]);
    assert_eq!(after(|tree| tree.sh("chmod 4711 a.txt; echo x >> a.txt; chmod 4711 a.txt")), ["*a.txt"]);
    let told = after(|tree| tree.sh("rm src/deep/er/run.sh; chmod 555 src/deep/er src/deep"));
    assert_eq!(told, ["msrc/deep", "msrc/deep/er", "-src/deep/er/run.sh"]);
}

#[test]
fn a_mode_alone_keeps_the_digest() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tree.chmod("a.txt", 0o640);
    let changes = tracker.compare().unwrap().changes;
    let [change] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!((&change.before, change.mode), (&change.after, 0o100_640));
    assert_eq!(change.mode_before, Some(0o100_644));
}

#[test]
fn links_made_retargeted_removed_and_replaced() {
    assert_eq!(after(|tree| tree.link("l", "nowhere")), ["+l"]);
    assert_eq!(after(|tree| tree.sh("ln -sfn src to-a")), ["*to-a"]);
    assert_eq!(after(|tree| tree.sh("rm to-a")), ["-to-a"]);
    assert_eq!(after(|tree| tree.sh("rm to-a; echo file > to-a")), ["*to-a"]);
    assert_eq!(after(|tree| tree.sh("rm a.txt; ln -s bin.dat a.txt")), ["*a.txt"]);
    assert_eq!(after(|tree| tree.sh("rm to-a; mkdir to-a; echo x > to-a/x")), ["*to-a", "+to-a/x"]);
}

#[test]
fn a_folder_replaced_by_a_link_is_not_followed() {
    let told = after(|tree| {
        tree.sh(
            "mkdir -p ../out/er; echo secret > ../out/er/run.sh; rm -r src/deep; ln -s ../../out src/deep",
        )
    });
    assert_eq!(told, ["*src/deep", "-src/deep/er", "-src/deep/er/run.sh"]);
}

#[test]
fn files_and_folders_take_each_others_place() {
    assert_eq!(after(|tree| tree.sh("rm a.txt; mkdir a.txt; echo x > a.txt/x")), ["*a.txt", "+a.txt/x"]);
    assert_eq!(
        after(|tree| tree.sh("rm -r src; echo file > src")),
        ["*src", "-src/deep", "-src/deep/er", "-src/deep/er/run.sh", "-src/main.rs"]
    );
}

#[test]
fn folders_made_removed_moved() {
    assert_eq!(after(|tree| tree.sh("mkdir -p x/y/z")), ["+x", "+x/y", "+x/y/z"]);
    assert_eq!(after(|tree| tree.sh("rmdir empty")), ["-empty"]);
    assert_eq!(
        after(|tree| tree.sh("mv src/deep moved; echo more >> moved/er/run.sh")),
        ["+moved", "+moved/er", "+moved/er/run.sh", "-src/deep", "-src/deep/er", "-src/deep/er/run.sh"]
    );
    assert_eq!(after(|tree| tree.sh("mv src x; mv x src")), [] as [&str; 0]);
    assert_eq!(
        after(|tree| {
            tree.sh("mv src/deep empty/deep; mkdir -p src/deep/er; echo '#!/bin/sh' > src/deep/er/run.sh; chmod 755 src/deep/er/run.sh")
        }),
        ["+empty/deep", "+empty/deep/er", "+empty/deep/er/run.sh"]
    );
}

#[test]
fn a_moved_folder_is_watched_where_it_went() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tree.sh("mv src/deep moved");
    tracker.compare().unwrap();
    tree.sh("echo x >> moved/er/run.sh; mkdir -p src/deep/er; echo y > src/deep/er/run.sh");
    let told = tree.told(&tracker.compare().unwrap());
    assert_eq!(told, ["*moved/er/run.sh", "+src/deep", "+src/deep/er", "+src/deep/er/run.sh"]);
    assert_eq!(tracker.full_check().unwrap(), Compared::default());
}

#[test]
fn names_that_are_no_text() {
    let told = after(|tree| {
        tree.write(OsStr::from_bytes(b"lat\xedn\xff"), "x");
        tree.write("new\nline", "y");
        tree.write("-rf *", "z");
        tree.write(" ", "blank");
    });
    assert_eq!(told.len(), 4);

    let tree = Tree::new();
    let mut tracker = tree.tracker();
    tree.write(OsStr::from_bytes(b"\xff"), "x");
    let change = tracker.compare().unwrap().changes.remove(0);
    let record = change.clone().into_change(CallId::new("call"));
    assert!(record.raw_path.as_ref().unwrap().ends_with("2fff"));
    assert_eq!(TreeChange::from(&record), change);
}

#[test]
fn deep_trees() {
    let path = ["d"; 300].join("/");
    let told = after(|tree| tree.write(format!("{path}/file"), "x"));
    assert_eq!(told.len(), 301);
}

#[test]
fn a_write_through_another_name_is_seen_at_both() {
    let made = || {
        let tree = Tree::usual();
        tree.sh("ln a.txt src/same; ln bin.dat ../outside");
        tree
    };
    let told = crate::tree::after_in(made, |tree| tree.sh("echo two > src/same"));
    assert_eq!(told, ["*a.txt", "*src/same"]);
    // The name outside is not restored.
    let tree = made();
    let mut tracker = tree.tracker();
    tree.sh("echo three > ../outside");
    let Compared { changes, not_undoable } = tracker.compare().unwrap();
    assert_eq!(changes.len(), 1);
    assert_eq!(not_undoable, [NotUndoable { path: tree.at("bin.dat"), why: NotUndoableReason::OtherNames }]);
    assert_eq!(after(|tree| tree.sh("ln a.txt b.txt")), ["+b.txt"]);
}

#[test]
fn names_of_one_file_are_names_of_one_file_again() {
    let made = || {
        let tree = Tree::usual();
        tree.sh("ln a.txt src/same; ln a.txt third; echo x > p; ln p q");
        tree
    };
    for (line, expected) in [
        ("rm third", vec!["-third"]),
        ("rm a.txt third src/same", vec!["-a.txt", "-src/same", "-third"]),
        ("echo more >> third", vec!["*a.txt", "*src/same", "*third"]),
        ("sed -i s/one/two/ a.txt", vec!["*a.txt"]),
        ("cp a.txt n; mv n a.txt", vec!["ma.txt"]),
        ("chmod 600 third", vec!["ma.txt", "msrc/same", "mthird"]),
        ("chmod 600 third; rm a.txt", vec!["-a.txt", "msrc/same", "mthird"]),
        ("ln -f third q", vec!["*q"]),
        ("rm p; mv third moved; echo y > q", vec!["+moved", "-p", "*q", "-third"]),
        ("mv src/same x; mv x src/same", vec![]),
        ("rm q; echo x > q", vec!["mq"]),
        (
            "rm -r src; echo one > third",
            vec!["-src", "-src/deep", "-src/deep/er", "-src/deep/er/run.sh", "-src/main.rs", "-src/same"],
        ),
    ] {
        assert_eq!(crate::tree::after_in(made, |tree| tree.sh(line)), expected, "{line}");
    }
}

/// Python for what the shell has no program for everywhere: `set(path, name, value)`, `acl(path)`, `unset(path, name)`.
const ATTRIBUTES: &str = "
import os, struct, sys
def set(path, name, value='v'): os.setxattr(path, name, value.encode(), follow_symlinks=False)
def unset(path, name): os.removexattr(path, name, follow_symlinks=False)
def acl(path, kind='access', user=4321, may=6):
    rows = [(1, 6, -1), (2, may, user), (4, 4, -1), (16, 6, -1), (32, 4, -1)]
    value = struct.pack('<I', 2) + b''.join(struct.pack('<HHi', *row) for row in rows)
    os.setxattr(path, 'system.posix_acl_' + kind, value)
def capable(path): os.setxattr(path, 'security.capability', struct.pack('<IIIII', 0x02000000, 1 << 10, 0, 0, 0))
";

#[test]
fn owners_and_extended_attributes_are_put_back() {
    let python = |tree: &Tree, program: &str| {
        let program = format!("{ATTRIBUTES}{program}");
        let ran =
            std::process::Command::new("python3").args(["-c", &program]).current_dir(&tree.root).output();
        let ran = ran.unwrap();
        assert!(ran.status.success(), "{program}: {}", String::from_utf8_lossy(&ran.stderr));
    };
    let made = || {
        let tree = Tree::usual();
        let program = "set('a.txt', 'user.tag', 'first'); acl('bin.dat'); set('src', 'user.on', 'folder')
acl('src/deep', 'default'); acl('src/deep/er/run.sh', user=99)
open('plain', 'w').write('p'); open('src/deep/er/child', 'w').write('c')";
        python(&tree, program);
        if nix::unistd::geteuid().is_root() {
            python(
                &tree,
                "os.chown('a.txt', 1234, 1235); os.chown('src', 1234, 1235)
os.chown('to-a', 1234, 1235, follow_symlinks=False); capable('src/main.rs')",
            );
        }
        tree
    };
    let mut rows = vec![
        (
            "set('a.txt', 'user.tag', 'second'); set('plain', 'user.new', 'x' * 3000); acl('bin.dat', may=7)
set('src', 'user.on', 'other'); acl('src/deep', 'default', user=77); os.remove('src/deep/er/child')",
            vec!["ma.txt", "mbin.dat", "mplain", "msrc", "msrc/deep", "-src/deep/er/child"],
        ),
        (
            "unset('a.txt', 'user.tag'); set('a.txt', 'user.other'); os.chmod('plain', 0o444); set('plain', 'user.new')
unset('bin.dat', 'system.posix_acl_access'); unset('src', 'user.on'); open('src/new', 'w')",
            vec!["ma.txt", "mbin.dat", "mplain", "msrc", "+src/new"],
        ),
        ("os.remove('a.txt'); os.chmod('bin.dat', 0o600)", vec!["-a.txt", "mbin.dat"]),
        (
            "os.remove('a.txt'); open('a.txt', 'w').write('new'); open('n', 'w').write('n'); os.replace('n', 'bin.dat')",
            vec!["*a.txt", "*bin.dat"],
        ),
        (
            "os.remove('a.txt'); open('a.txt', 'w').write('one\\n'); os.system('rm -r src')",
            vec![
                "ma.txt", "-src", "-src/deep", "-src/deep/er", "-src/deep/er/child", "-src/deep/er/run.sh",
                "-src/main.rs",
            ],
        ),
    ];
    if nix::unistd::geteuid().is_root() {
        rows.extend([
            (
                "os.chown('plain', 5, 6); os.chown('a.txt', 0, 0); os.chown('src', 0, 7); os.chown('src/deep', 8, 9)
os.chown('to-a', 0, 0, follow_symlinks=False); unset('src/main.rs', 'security.capability')",
                vec!["ma.txt", "mplain", "msrc", "msrc/deep", "msrc/main.rs", "mto-a"],
            ),
            (
                "os.chmod('plain', 0o4755); set('plain', 'trusted.of', 'root'); open('src/main.rs', 'w').write('no more')
os.system('rm to-a; ln -s elsewhere to-a')",
                vec!["mplain", "*src/main.rs", "*to-a"],
            ),
        ]);
    }
    for (program, expected) in rows {
        let told = crate::tree::after_in(made, |tree| python(tree, program));
        assert_eq!(told, expected, "{program}");
    }
}

#[test]
fn what_others_did_is_taken_over_and_not_told_as_the_lines() {
    let tree = Tree::usual();
    let mut tracker = tree.tracker();
    tree.sh("echo user > a.txt; mkdir made; echo u > made/u; rm bin.dat; touch src/main.rs; chmod 600 src/main.rs");
    let taken = tracker.refresh().unwrap();
    assert_eq!(taken, ["a.txt", "bin.dat", "made", "made/u", "src/main.rs"].map(|path| tree.at(path)));
    let first = tree.picture();
    tree.sh("echo line > a.txt; rm -r made");
    let compared = tracker.compare().unwrap();
    assert_eq!(tree.told(&compared), ["*a.txt", "-made", "-made/u"]);
    tree.undo_all(&compared.changes);
    assert_eq!(tree.picture(), first);
}

#[test]
fn what_cannot_be_undone_is_told() {
    let tree = Tree::usual();
    tree.write("large", vec![1; 5000]);
    tree.write("node_modules/p/index.js", "x");
    tree.write("target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55");
    tree.write("target/debug/x", "x");
    tree.write("sub/.git/config", "x");
    tree.sh("mkfifo pipe");
    let limits = TrackerLimits { file_bytes: 4000, ..TrackerLimits::default() };
    let mut tracker = Tracker::secure(TrackerOptions { limits, ..tree.options() }).unwrap();
    let not_undoable = |list: &[(&str, NotUndoableReason)]| {
        list.iter().map(|(path, why)| NotUndoable { path: tree.at(path), why: *why }).collect::<Vec<_>>()
    };
    assert_eq!(
        tracker.not_undoable(),
        not_undoable(&[
            ("large", NotUndoableReason::TooLarge),
            ("node_modules", NotUndoableReason::Cache),
            ("pipe", NotUndoableReason::Special),
            ("sub/.git", NotUndoableReason::Git),
            ("target", NotUndoableReason::Cache),
        ])
    );
    tree.sh("echo y > target/debug/y; echo y > sub/.git/y; echo y > node_modules/y");
    assert_eq!(tracker.compare().unwrap(), Compared::default());
    tree.sh("echo x >> large; rm -r sub/.git node_modules pipe; head -c 6000 /dev/zero > grown; mkdir made; echo > made/CACHEDIR.TAG; git init -q .");
    let compared = tracker.compare().unwrap();
    assert_eq!(compared.changes, []);
    assert_eq!(
        compared.not_undoable,
        not_undoable(&[
            (".git", NotUndoableReason::Git),
            ("grown", NotUndoableReason::TooLarge),
            ("large", NotUndoableReason::TooLarge),
            ("made", NotUndoableReason::Cache),
            ("node_modules", NotUndoableReason::Cache),
            ("pipe", NotUndoableReason::Special),
            ("sub/.git", NotUndoableReason::Git),
        ])
    );
    // A tag in a folder that is tracked does not make its files disappear.
    tree.sh("echo > src/CACHEDIR.TAG");
    assert_eq!(tree.told(&tracker.compare().unwrap()), ["+src/CACHEDIR.TAG"]);
    assert_eq!(tracker.full_check().unwrap(), Compared::default());
}

#[test]
fn limits_of_number_and_size_are_told() {
    let tree = Tree::usual();
    for number in 0..50 {
        tree.write(format!("many/{number}"), "x");
    }
    let limits = TrackerLimits { files: 20, ..TrackerLimits::default() };
    let tracker = Tracker::secure(TrackerOptions { limits, ..tree.options() }).unwrap();
    assert_eq!(
        tracker.not_undoable(),
        [NotUndoable { path: tree.at("many"), why: NotUndoableReason::TooMany }]
    );

    let limits = TrackerLimits { total_bytes: 40, ..TrackerLimits::default() };
    let mut tracker = Tracker::secure(TrackerOptions { limits, ..tree.options() }).unwrap();
    assert!(!tracker.not_undoable().is_empty());
    tree.sh("rm -r many");
    let compared = tracker.compare().unwrap();
    assert!(compared.not_undoable.iter().all(|one| one.why == NotUndoableReason::OverTotal));
    assert_eq!(compared.not_undoable.len() + compared.changes.len(), 51);
}

#[test]
fn our_own_folders_beneath_the_root_are_kept_out() {
    let tree = Tree::usual();
    let options =
        TrackerOptions { scratch: tree.at("home/scratch"), exclude: vec![tree.at("home")], ..tree.options() };
    let mut tracker = Tracker::secure(options).unwrap();
    tree.write("home/config", "x");
    assert_eq!(tracker.full_check().unwrap(), Compared::default());
}
