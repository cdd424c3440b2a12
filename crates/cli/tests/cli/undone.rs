//! Every kind of change to a file is undone by undo, or reported: before the call to user and model, and afterwards
//! by its path.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use lathe_testkit::{
    FakeModel, Lathe, ListingEntry, Script, TempRepo, call, differing_paths, done, listing, say,
};
use serde_json::json;

use crate::approvals::Terminal;
use crate::{bodies, lathe, result, run_in};

/// The fate of a kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Undo {
    /// Undo puts everything back.
    Restores,
    /// Path and reason are reported; the effect of undo is not checked.
    Tells(&'static str),
}

use Undo::{Restores, Tells};

/// A kind of change: its name, what is there before, what a line does, and what becomes of it. Each has a folder of its own.
type Row = (&'static str, &'static str, &'static str, Undo);

/// `x` sets what the shell has no program for everywhere: see [`TOOL`].
const ROWS: [Row; 64] = [
    ("written over", "echo old > f", "echo new > f", Restores),
    ("appended", "echo old > f", "echo more >> f", Restores),
    ("truncated", "echo old text > f", "truncate -s 3 f", Restores),
    ("emptied", "echo old > f", ": > f", Restores),
    (
        "one byte of a binary",
        "printf '\\0\\377\\1' > f",
        "printf '\\7' | dd of=f bs=1 seek=1 conv=notrunc status=none",
        Restores,
    ),
    ("removed", "echo old > f", "rm f", Restores),
    ("an empty file removed", ": > f", "rm f", Restores),
    ("moved", "echo old > f", "mv f g", Restores),
    ("moved over another", "echo f > f; echo g > g", "mv f g", Restores),
    ("made", ":", "echo new > f", Restores),
    ("edited in place", "echo old > f", "sed -i s/old/new/ f", Restores),
    ("copied over", "echo f > f; echo g > g", "cp f g", Restores),
    ("two files change names", "echo f > f; echo g > g", "mv f t; mv g f; mv t g", Restores),
    ("other letters in the name", "echo f > f", "mv f F", Restores),
    ("a name that is not text", "printf x > $'\\xff'", "rm $'\\xff'; echo y > $'\\xfe'", Restores),
    ("a name with a line end", "printf x > $'a\\nb'", "rm $'a\\nb'", Restores),
    ("a name that looks like an option", "printf x > -rf", "rm -- -rf", Restores),
    ("a deep path", "mkdir -p a/b/c/d/e; echo x > a/b/c/d/e/f", "rm -r a", Restores),
    ("less permission", "echo x > f", "chmod 600 f", Restores),
    ("more permission", "echo x > f", "chmod 755 f", Restores),
    ("no permission", "echo x > f", "chmod 000 f", Restores),
    ("set-user-id given", "echo x > f", "chmod 4755 f", Restores),
    ("set-user-id lost", "echo x > f; chmod 4755 f", "chmod 755 f", Restores),
    ("set-user-id removed with its file", "echo x > f; chmod 6711 f", "rm f", Restores),
    ("a read-only file removed", "echo x > f; chmod 444 f", "rm -f f", Restores),
    ("a folder made", ":", "mkdir -p d/e; echo x > d/e/f", Restores),
    ("an empty folder removed", "mkdir d", "rmdir d", Restores),
    ("a folder removed", "mkdir -p d/e; echo x > d/e/f; : > d/g", "rm -r d", Restores),
    ("a folder moved", "mkdir -p d/e; echo x > d/e/f", "mv d m", Restores),
    ("a folder's mode", "mkdir d", "chmod 700 d", Restores),
    ("a sticky folder", "mkdir d; chmod 1777 d", "chmod 755 d", Restores),
    (
        "a read-only folder emptied",
        "mkdir d; echo x > d/f; chmod 555 d",
        "chmod 755 d; rm d/f; chmod 500 d",
        Restores,
    ),
    ("a folder becomes a file", "mkdir d; echo x > d/f", "rm -r d; echo d > d", Restores),
    ("a file becomes a folder", "echo x > f", "rm f; mkdir f; echo x > f/f", Restores),
    ("a link made", ":", "ln -s nowhere l", Restores),
    ("a link's target", "ln -s one l", "ln -sfn two l", Restores),
    ("a link removed", "ln -s nowhere l", "rm l", Restores),
    ("a link becomes a file", "ln -s nowhere l", "rm l; echo x > l", Restores),
    ("a file becomes a link", "echo x > f", "rm f; ln -s nowhere f", Restores),
    ("a folder becomes a link", "mkdir d; echo x > d/f", "rm -r d; ln -s / d", Restores),
    ("a second name made", "echo x > f", "ln f g", Restores),
    ("one of two names removed", "echo x > f; ln f g", "rm f", Restores),
    ("both names removed", "echo x > f; ln f g", "rm f g", Restores),
    ("written through a second name", "echo x > f; ln f g", "echo more >> g", Restores),
    ("names parted by an edit", "echo x > f; ln f g", "sed -i s/x/y/ f", Restores),
    ("names parted with the same content", "echo x > f; ln f g", "cp f t; mv t f", Restores),
    ("names joined", "echo x > f; echo x > g", "ln -f f g", Restores),
    ("an owner", "echo x > f", "chown 1234:1235 f", Restores),
    ("an owner lost by an edit", "echo x > f; chown 1234:1235 f", "rm f; echo y > f", Restores),
    ("a folder's owner", "mkdir d; echo x > d/f", "chown -R 1234:1235 d", Restores),
    ("a link's owner", "ln -s nowhere l", "chown -h 1234:1235 l", Restores),
    ("an attribute given", "echo x > f", "x set f user.a one", Restores),
    ("an attribute changed", "echo x > f; x set f user.a one", "x set f user.a two", Restores),
    ("attributes lost by an edit", "echo x > f; x set f user.a one; x acl f", "rm f; echo y > f", Restores),
    ("an access control list", "echo x > f; x acl f", "x unset f system.posix_acl_access", Restores),
    ("a folder's list for new files", "mkdir d", "x default d; echo x > d/f", Restores),
    ("capabilities", "echo x > f; x capable f", "echo y > f", Restores),
    ("a file with holes", "truncate -s 1M f; echo x >> f", "rm f", Restores),
    ("a pipe", "mkfifo p", "rm p", Tells("a pipe, socket or device")),
    ("a socket", "x socket s", "rm s", Tells("a pipe, socket or device")),
    ("a device", "x device d", "rm -f d", Tells("a pipe, socket or device")),
    (
        "a large file",
        "echo f > .gitignore; truncate -s 65M f",
        "echo x > f",
        Tells("larger than the limit for one file"),
    ),
    ("a name outside", "echo x > f; ln f \"$OUTSIDE/f\"", "echo more >> f", Tells("hard link")),
    (
        "installed packages",
        "mkdir node_modules; echo x > node_modules/f",
        "rm -r node_modules",
        Tells("installed packages"),
    ),
];

/// The words that every question and description says beforehand.
const BEFOREHAND: [&str; 7] =
    ["64 MB", "pipes", "sockets", "devices", "times", "`node_modules`", "outside of the workspace"];

const TOOL: &str = r#"#!/usr/bin/env python3
import os, socket, struct, sys
act, path, *rest = sys.argv[1:]
def acl(kind):
    rows = [(1, 6, -1), (2, 6, 4321), (4, 4, -1), (16, 6, -1), (32, 4, -1)]
    value = struct.pack('<I', 2) + b''.join(struct.pack('<HHi', *row) for row in rows)
    os.setxattr(path, 'system.posix_acl_' + kind, value)
if act == 'set': os.setxattr(path, rest[0], rest[1].encode())
elif act == 'unset': os.removexattr(path, rest[0])
elif act == 'acl': acl('access')
elif act == 'default': acl('default')
elif act == 'capable': os.setxattr(path, 'security.capability', struct.pack('<IIIII', 0x02000000, 1 << 10, 0, 0, 0))
elif act == 'socket': socket.socket(socket.AF_UNIX).bind(path)
elif act == 'device':
    # Only root makes a device; for others a pipe stands for it.
    try: os.mknod(path, 0o600 | 0o020000, os.makedev(1, 3))
    except PermissionError: os.mkfifo(path)
"#;

/// Runs one part of each row in its folder. What needs root and is refused without it changes nothing.
fn script(outside: &Path, part: impl Fn(&Row) -> &'static str) -> String {
    let tool = outside.join("x");
    let mut text =
        format!("OUTSIDE={}; x() {{ {} \"$@\" 2>/dev/null || :; }}\n", outside.display(), tool.display());
    text.push_str("chown() { command chown \"$@\" 2>/dev/null || :; }\n");
    for (number, row) in ROWS.iter().enumerate() {
        writeln!(
            text,
            "mkdir -p {number}; (cd {number} && {{ {}; }}) || echo \"row {number} failed\"",
            part(row)
        )
        .unwrap();
    }
    text
}

fn of_row(tree: &BTreeMap<String, ListingEntry>, number: usize) -> BTreeMap<String, ListingEntry> {
    let inside = format!("{number}/");
    let rows = tree.iter().filter(|(name, _)| name.starts_with(&inside) || **name == number.to_string());
    rows.map(|(name, listed)| (name.clone(), listed.clone())).collect()
}

fn at_home(run: &Lathe, repo: &TempRepo) -> Lathe {
    lathe().env("LATHE_HOME", run.home()).in_dir(repo.path())
}

#[test]
fn every_kind_of_change_is_taken_back_or_told() {
    assert!(ROWS.len() >= 47);
    for git in [false, true] {
        let (repo, outside) = (TempRepo::new(&[]), TempRepo::new(&[]));
        outside.write("x", TOOL);
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(outside.join("x"), executable).unwrap();
        let made = Command::new("bash")
            .args(["-c", &script(outside.path(), |row| row.1)])
            .current_dir(repo.path())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&made.stdout), "", "{}", String::from_utf8_lossy(&made.stderr));
        repo.write("line.sh", script(outside.path(), |row| row.2));
        if git {
            repo.git(&["init", "-q", "."]);
            repo.commit("all that git can have");
        }
        let before = listing(repo.path());
        let line = call("c1", "bash", json!({ "command": "bash line.sh" }));
        let model = FakeModel::serving(Script::new().answer(line).answer(done("ok")));
        let run = run_in(repo.path(), &model);
        let events = run.run().expect_code(0).events();
        assert!(!result(&events, "c1").contains("failed"), "{}", result(&events, "c1"));
        let changed = listing(repo.path());
        let lost = bodies(&events, "call_finished")[0]["not_undoable"].to_string();
        let undone = at_home(&run, &repo).arg("undo").run();
        assert_eq!(undone.code, 0, "{}{}", undone.stdout, undone.stderr);
        let after = listing(repo.path());
        for (number, (name, _, _, undo)) in ROWS.iter().enumerate() {
            let about = format!("row {number} ({name}), git: {git}");
            match undo {
                Restores => {
                    let (was, is) = (of_row(&before, number), of_row(&after, number));
                    let apart = differing_paths(&was, &is);
                    let both = |name: &String| (was.get(name).cloned(), is.get(name).cloned());
                    assert!(apart.is_empty(), "{about}: {apart:?}: {:?}", both(&apart[0]));
                    assert!(!lost.contains(&format!("/{number}/")), "{about}: {lost}");
                }
                Tells(why) => {
                    let named = |text: &str| {
                        text.split([',', '\n'])
                            .any(|part| part.contains(&format!("/{number}/")) && part.contains(why))
                            || text.contains(&format!("/{number}/")) && text.contains(why)
                    };
                    assert!(named(&lost), "{about}: the record: {lost}");
                    let told = result(&events, "c1");
                    assert!(named(&told), "{about}: the model: {told}");
                    let shown = at_home(&run, &repo).arg("show").run().expect_code(0);
                    assert!(named(&shown.stdout), "{about}: show: {}", shown.stdout);
                }
            }
        }
        // And the other way: the change comes back too, but for what was told.
        at_home(&run, &repo).args(["rewind", "--to", "2", "--files"]).run().expect_code(0);
        let again = listing(repo.path());
        for (number, (name, _, _, undo)) in ROWS.iter().enumerate().filter(|(_, row)| row.3 == Restores) {
            let apart = differing_paths(&of_row(&changed, number), &of_row(&again, number));
            assert!(apart.is_empty(), "row {number} ({name}), {undo:?}, git: {git}: {apart:?}");
        }
    }
}

/// The model of every toolset reads it before it writes a line, and so does the person: in the question, or, where nothing is
/// asked, on the first screen.
#[test]
fn what_cannot_be_taken_back_is_told_before_the_first_line() {
    for (toolset, shell) in
        [("lathe", "bash"), ("trae", "bash"), ("gemini", "run_shell_command"), ("bash", "Bash")]
    {
        let repo = TempRepo::new(&[]);
        let line = call("c1", shell, json!({ "command": "touch made" }));
        let model = FakeModel::serving(Script::new().answer(line).answer(done("ok")).answer(say("ok")));
        let words = ["run", "x", "--mode", "full-auto", "--toolset", toolset];
        let ran = lathe().in_dir(repo.path()).args(words).with_model(&model).run();
        assert!(repo.exists("made"), "{toolset}: {}{}", ran.stdout, ran.stderr);
        let request = String::from_utf8(model.bodies()[0].clone()).unwrap();
        let shown = ran.stdout.split("touch made").next().unwrap();
        for word in BEFOREHAND {
            assert!(request.contains(word), "{toolset}: the description does not say {word}");
            assert!(shown.contains(word), "{toolset}: the first screen does not say {word}: {shown}");
        }
    }
    let (repo, home) = (TempRepo::new(&[]), TempRepo::new(&[]));
    let line = call("c1", "bash", json!({ "command": "touch made" }));
    let model = FakeModel::serving(Script::new().answer(line).answer(say("ok")));
    let mut terminal = Terminal::open(repo.path(), home.path(), &model, "");
    terminal.sees("Task", 1);
    terminal.types("go\n");
    terminal.sees("[y]es once", 1);
    let question = terminal.screen().replace("\r\n", " ");
    for word in BEFOREHAND {
        assert!(question.contains(word), "the question does not say {word}: {question}");
    }
    terminal.types("n\n");
    terminal.sees("ok", 1);
    terminal.leaves();
}

/// Tools that write files keep what the file has, and undo of a removal brings it back.
#[test]
fn file_tools_keep_attributes_and_tell_of_other_names() {
    let (repo, outside) =
        (TempRepo::new(&[("f", "old\n"), ("g", "old\n"), ("h", "old\n")]), TempRepo::new(&[]));
    outside.write("x", TOOL);
    let x = |words: &[&str]| {
        let mut command = Command::new("python3");
        let ran = command.arg(outside.join("x")).args(words).current_dir(repo.path()).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    for name in ["f", "g"] {
        x(&["set", name, "user.tag", "kept"]);
        x(&["acl", name]);
    }
    std::fs::hard_link(repo.join("h"), outside.join("h")).unwrap();
    let before = listing(repo.path());
    let patch = "*** Begin Patch\n*** Delete File: g\n*** End Patch\n";
    let model = FakeModel::serving(
        Script::new()
            .answer(call("c1", "edit", json!({ "path": "f", "old_str": "old", "new_str": "new" })))
            .answer(call("c2", "edit", json!({ "path": "h", "old_str": "old", "new_str": "new" })))
            .answer(call("c3", "apply_patch", json!({ "patch": patch })))
            .answer(done("ok")),
    );
    let run = run_in(repo.path(), &model);
    let events = run.run().expect_code(0).events();
    let after = listing(repo.path());
    assert_eq!(after["f"].content, b"new\n", "{}", result(&events, "c1"));
    assert!(!after.contains_key("g"), "{}", result(&events, "c3"));
    assert_eq!(after["f"].attributes, before["f"].attributes);
    assert!(result(&events, "c2").contains("it had another name (hard link)"), "{}", result(&events, "c2"));
    at_home(&run, &repo).args(["rewind", "--to", "0", "--files"]).run().expect_code(0);
    assert_eq!(differing_paths(&before, &listing(repo.path())), Vec::<String>::new());
}
