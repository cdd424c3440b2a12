//! Lines that destroy the home folder, the workspace or `.git` are denied in every mode and by every route; work that
//! a line removes can be restored byte for byte. Home and workspace are folders that the test made, and a line runs
//! only after it was shown to touch nothing outside of them.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::{bodies, lathe, result};

/// Denied by any name. If one were allowed, a folder of this test would be lost, and nothing more.
const DENIED: [&str; 38] = [
    "rm -rf ~",
    "rm -rf ~/",
    "rm -rf ~/*",
    "rm -rf \"$HOME\"",
    "rm -rf ${HOME}/*",
    "cd && rm -rf *",
    "cd ~; rm -rf .",
    "rm -fr -- ~",
    "\\rm -r -f ~",
    "r''m -rf ~",
    "command rm -rf ~",
    "env rm -rf ~",
    "eval 'rm -rf ~'",
    "bash -c 'rm -rf ~'",
    "bash -c 'rm -rf \"$1\"' _ ~",
    "echo 'rm -rf ~' | sh",
    "bash <<< 'rm -rf ~'",
    "echo ~ | xargs rm -rf",
    "x='rm -rf'; $x ~",
    "a=(rm -rf ~); \"${a[@]}\"",
    "IFS=,; x=\"rm,-rf,$HOME\"; $x",
    "set -- ~; rm -rf \"$1\"",
    "f() { rm -rf \"$1\"; }; f ~",
    "for d in ~; do rm -rf $d; done",
    "$(echo rm) -rf ~",
    "coproc N { rm -rf ~; }",
    "env -C ~ rm -rf .",
    "find ~ -delete",
    "python3 -c 'import shutil, os; shutil.rmtree(os.path.expanduser(\"~\"))'",
    "rm -rf .",
    "rm -rf \"$PWD\"",
    "rm -rf ../repo",
    "cd .. && rm -rf repo",
    "rm -rf $(git rev-parse --show-toplevel)",
    "find . -delete",
    "rm -rf .git",
    "rm -rf .*",
    "mv .git ../git",
];

/// Allowed in full-auto, and brought back.
const LOST: [&str; 20] = [
    "rm -rf *",
    "rm -rf ./*",
    "rm -rf sub other.txt",
    "rm -f a.txt sub/*",
    "find . -name '*.txt' -delete",
    "find sub -delete",
    "cd sub && rm -rf *",
    "git reset -q --hard",
    "git reset -q --hard HEAD~1",
    "git clean -qfdx",
    "git checkout -q -- .",
    "git checkout -q -f",
    "git restore .",
    "git stash -q -u",
    "git stash drop -q",
    "git stash clear",
    "git branch -q -D side",
    "git rm -qrf sub",
    "rm -rf ../beside",
    "rm -rf huge.bin sub",
];

/// A workspace with work in it that exists nowhere else, a folder next to it, and a home.
pub(crate) struct Place {
    pub(crate) base: TempRepo,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self {
            base: TempRepo::new(&[("home/me/notes.txt", "mine\n"), ("work/beside/b.txt", "beside\n")]),
        };
        let files =
            [("a.txt", "one\n"), ("sub/b.txt", "bee\n"), ("other.txt", "o\n"), (".gitignore", "ignored*\n")];
        for (name, text) in files {
            place.write(name, text);
        }
        place.git(&["init", "-q", "-b", "main"]);
        for (name, value) in
            [("user.name", "t"), ("user.email", "t@example.org"), ("commit.gpgsign", "false")]
        {
            place.git(&["config", name, value]);
        }
        place.git(&["add", "."]);
        place.git(&["commit", "-qm", "first"]);
        place.git(&["branch", "side"]);
        place.write("a.txt", "two\n");
        place.git(&["commit", "-qam", "second"]);
        place.write("other.txt", "stashed\n");
        place.git(&["stash", "-q"]);
        place.write("a.txt", "not committed\n");
        place.write("untracked.txt", "mine\n");
        place.write("ignored.txt", "mine too\n");
        // Larger than what is copied; it has no blocks, so it costs nothing.
        std::fs::File::create(place.repo().join("huge.bin")).unwrap().set_len(70 << 20).unwrap();
        place
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.base.join("work/repo")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        self.base.write(&format!("work/repo/{name}"), text);
    }

    pub(crate) fn git(&self, words: &[&str]) -> String {
        let ran = Command::new("git").args(words).current_dir(self.repo()).output().unwrap();
        assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    }

    /// Branches and stashes.
    pub(crate) fn names(&self) -> String {
        let format = "--format=%(objectname) %(refname)";
        self.git(&["for-each-ref", format, "refs/heads"]) + &self.git(&["stash", "list", "--format=%H %gs"])
    }

    pub(crate) fn lathe(&self) -> Lathe {
        lathe().in_dir(self.repo()).env("HOME", self.base.join("home/me"))
    }

    /// Every file outside of `.git`: mode, size, and what is in it.
    pub(crate) fn tree(&self) -> BTreeMap<PathBuf, (u32, u64, Vec<u8>)> {
        fn add(folder: &Path, found: &mut BTreeMap<PathBuf, (u32, u64, Vec<u8>)>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let meta = path.symlink_metadata().unwrap();
                if path.ends_with(".git") {
                    continue;
                }
                let small = meta.is_file() && meta.len() < 1 << 20;
                let content = if small { std::fs::read(&path).unwrap() } else { Vec::new() };
                found.insert(
                    path.clone(),
                    (meta.mode(), if meta.is_file() { meta.len() } else { 0 }, content),
                );
                if meta.is_dir() {
                    add(&path, found);
                }
            }
        }
        let mut found = BTreeMap::new();
        add(self.base.path(), &mut found);
        found
    }

    /// A run of the model's with these lines, one call each, in one answer. The home of Lathe stays for what follows.
    pub(crate) fn run(&self, mode: &str, lines: &[&str]) -> (Lathe, Vec<Value>) {
        let arguments = |line: &str| json!({ "command": line });
        let mut answer = call("c0", "bash", arguments(lines[0]));
        for (at, line) in lines.iter().enumerate().skip(1) {
            answer = answer.call(&format!("c{at}"), "bash", arguments(line));
        }
        let model = FakeModel::serving(Script::new().answer(answer).answer(done("ok")));
        let words = ["run", "go", "--mode", mode, "--output", "stream-json"];
        let run = self.lathe().args(words).with_model(&model);
        let events = run.run().events();
        (run, events)
    }
}

#[test]
fn the_shell_of_these_tests_is_at_home_in_their_own_folder() {
    let place = Place::new();
    let ran = place.lathe().args(["shell", "-c", "echo ~ $HOME $PWD"]).run().expect_code(0);
    let home = place.base.join("home/me").display().to_string();
    assert_eq!(ran.stdout, format!("{home} {home} {}\n", place.repo().display()));
}

#[test]
fn what_destroys_a_home_or_the_workspace_is_denied_in_every_mode_by_every_route() {
    let place = Place::new();
    let (before, names) = (place.tree(), place.names());
    // First without running anything.
    let asked: String = DENIED.iter().map(|line| format!("{}\n", json!(line))).collect();
    for mode in ["plan", "default", "auto-edit", "full-auto"] {
        let ran = place
            .lathe()
            .args(["policy", "check", "--json", "--mode", mode])
            .stdin(asked.as_str())
            .run()
            .expect_code(0);
        let weak: Vec<&str> =
            ran.stdout.lines().filter(|line| !line.contains("\"decision\":\"deny\"")).collect();
        assert_eq!(weak, Vec::<&str>::new(), "{mode}");
    }
    for mode in ["plan", "default", "auto-edit", "full-auto"] {
        let (_, events) = place.run(mode, &DENIED);
        for (at, line) in DENIED.iter().enumerate() {
            let told = result(&events, &format!("c{at}"));
            assert!(told.contains("denied by policy"), "{mode}: {line}: {told}");
        }
        assert_eq!((place.tree(), place.names()), (before.clone(), names.clone()), "{mode}");
    }
    for line in DENIED {
        let ran = place.lathe().args(["shell", "-c", line]).run();
        assert_eq!(ran.code, 126, "{line}: {}{}", ran.stdout, ran.stderr);
    }
    for line in DENIED.iter().step_by(6) {
        let arguments = json!({ "command": line }).to_string();
        let ran = place.lathe().args(["tool", "run", "bash", "--json", &arguments]).run();
        assert!(ran.code != 0 && ran.stdout.contains("denied by policy"), "{line}: {}", ran.stdout);
    }
    assert_eq!((place.tree(), place.names()), (before, names));
}

#[test]
fn what_a_line_of_the_model_takes_away_is_brought_back_by_undo() {
    for line in LOST {
        let place = Place::new();
        let (before, names) = (place.tree(), place.names());
        for mode in ["plan", "default", "auto-edit"] {
            place.run(mode, &[line]);
            assert_eq!((place.tree(), place.names()), (before.clone(), names.clone()), "{mode}: {line}");
        }
        let (run, events) = place.run("full-auto", &[line]);
        assert_ne!((place.tree(), place.names()), (before.clone(), names.clone()), "{line}: {events:#?}");
        assert_eq!(bodies(&events, "call_finished")[0]["not_undoable"], Value::Null, "{line}");
        let undone = place.lathe().env("LATHE_HOME", run.home()).arg("undo").run();
        assert_eq!(undone.code, 0, "{line}: {}{}", undone.stdout, undone.stderr);
        assert_eq!(place.tree(), before, "{line}");
        // A stash that the line made may stay; what was there is there.
        let now = place.names();
        assert!(names.lines().all(|name| now.contains(name)), "{line}: {now} {names}");
    }
}

#[test]
fn what_a_persons_line_takes_away_is_brought_back_from_the_quarantine() {
    for (at, line) in LOST.into_iter().enumerate() {
        let place = Place::new();
        let (before, names) = (place.tree(), place.names());
        let ran = if at % 4 == 3 {
            let arguments = json!({ "command": line }).to_string();
            place.lathe().args(["tool", "run", "bash", "--json", &arguments])
        } else {
            place.lathe().args(["shell", "-c", line])
        };
        let said = ran.run().expect_code(0);
        assert_ne!((place.tree(), place.names()), (before.clone(), names.clone()), "{line}");
        let words = format!("{}{}", said.stdout, said.stderr);
        assert!(words.contains("lathe quarantine restore "), "{line}: {words}");
        let at_home = || place.lathe().env("LATHE_HOME", ran.home());
        let listed = at_home().args(["quarantine", "list", "--json"]).run().expect_code(0);
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        assert_eq!((listed.as_array().unwrap().len(), listed[0]["line"].as_str()), (1, Some(line)));
        let back = at_home().args(["quarantine", "restore"]).run();
        assert_eq!(back.code, 0, "{line}: {}{}", back.stdout, back.stderr);
        assert_eq!(place.tree(), before, "{line}");
        // A stash that the line made may stay; what was there is there.
        let now = place.names();
        assert!(names.lines().all(|name| now.contains(name)), "{line}: {now} {names}");
        let listed = at_home().args(["quarantine", "list"]).run().expect_code(0);
        assert_eq!(listed.stdout, "nothing is kept\n", "{line}");
    }
}

#[test]
fn a_link_or_an_earlier_line_hides_nothing_from_the_guard() {
    let place = Place::new();
    std::os::unix::fs::symlink(place.base.join("home"), place.repo().join("homes")).unwrap();
    std::os::unix::fs::symlink(place.base.join("home/me"), place.repo().join("me")).unwrap();
    let before = place.tree();
    let lines = ["rm -rf homes/me", "rm -rf me/*", "cd ..", "rm -rf repo", "cd ~", "rm -rf *", "rm -rf ./*"];
    let (_, events) = place.run("full-auto", &lines);
    for at in [0, 1, 3, 5, 6] {
        let told = result(&events, &format!("c{at}"));
        assert!(told.contains("denied by policy"), "{}: {told}", lines[at]);
    }
    assert_eq!(place.tree(), before);
}

#[test]
fn nothing_is_kept_of_a_line_that_takes_nothing_away() {
    let place = Place::new();
    let lathe =
        place.lathe().args(["shell", "-c", "rm -f nothing; git checkout -q main; git status --short"]);
    let ran = lathe.run().expect_code(0);
    assert!(!ran.stderr.contains("kept"), "{}", ran.stderr);
    let at_home = place.lathe().env("LATHE_HOME", lathe.home()).args(["quarantine", "list"]).run();
    assert_eq!(at_home.stdout, "nothing is kept\n");
    assert_eq!(place.git(&["for-each-ref", "refs/lathe"]), "");
}

#[test]
fn old_entries_are_removed_and_their_blobs_with_them() {
    let place = Place::new();
    let lathe = place.lathe().args(["shell", "-c", "rm -rf sub ../beside"]);
    lathe.run().expect_code(0);
    let at_home =
        |words: &[&str]| place.lathe().env("LATHE_HOME", lathe.home()).args(words).run().expect_code(0);
    at_home(&["gc", "--days", "30"]);
    assert!(!at_home(&["quarantine", "list"]).stdout.contains("nothing"));
    at_home(&["gc", "--days", "0"]);
    assert_eq!(at_home(&["quarantine", "list"]).stdout, "nothing is kept\n");
}
