//! A run ends at a random instant of a random kind of line or tool, by a signal or a closed terminal, with git and
//! without. At every such instant diff and show know the changes, and undo and rewind undo them.

use std::path::Path;
use std::time::Duration;

use lathe_testkit::{
    FakeAnswer, FakeModel, Lathe, RunningLathe, Script, TempRepo, call, differing_paths, done, eventually,
    size,
};
use serde_json::json;

use crate::damage::dice;
use crate::interrupted::{ENDS, End, Tree, at_home, comes_back, diff_agrees, end, repo};
use crate::lathe;
use crate::rewinds::tree;

/// The way in which a run is ended.
#[derive(Debug, Clone, Copy)]
enum Ends {
    By(End),
    /// The terminal that it runs in is closed.
    TerminalClosed,
}

/// A line in which `p` tells of progress, or a call of a tool.
enum Kind {
    Line(&'static str),
    /// Only in a repository.
    GitLine(&'static str),
    Tool(&'static str, fn() -> serde_json::Value),
}

use Kind::{GitLine, Line, Tool};

const PATCH: &str = "*** Begin Patch\n*** Update File: over.txt\n@@\n-old text\n+new text\n*** Add File: added.txt\n+x\n\
                     *** Delete File: folder/b.txt\n*** End Patch\n";

const KINDS: [(&str, Kind); 24] = [
    ("write", Tool("write", || json!({ "path": "precious.txt", "content": "over\n" }))),
    ("write anew", Tool("write", || json!({ "path": "some/new/place.txt", "content": "new\n" }))),
    ("edit", Tool("edit", || json!({ "path": "over.txt", "old_str": "old", "new_str": "new" }))),
    ("patch", Tool("apply_patch", || json!({ "patch": PATCH }))),
    ("appended", Line("for i in $(seq 20); do echo $i >> over.txt; p; done")),
    ("removed", Line("p; rm precious.txt; p; rm -r folder; p; rm untracked.bin; p")),
    (
        "moved",
        Line("mv folder moved; p; mv moved/a.txt top; p; mv precious.txt moved/; p; mv over.txt link2; p"),
    ),
    (
        "edited in place",
        Line("sed -i s/old/new/ over.txt; p; sed -i s/a/b/ folder/a.txt; p; sed -i 1d precious.txt; p"),
    ),
    ("made", Line("for i in $(seq 20); do mkdir -p n/$i; echo $i > n/$i/f; p; done")),
    (
        "modes",
        Line("chmod 600 over.txt; p; chmod 700 folder; p; chmod +x precious.txt; p; chmod 555 folder; p"),
    ),
    (
        "second names",
        Line("ln precious.txt hard; p; echo x >> hard; p; rm precious.txt; p; ln hard third; p"),
    ),
    ("links", Line("ln -sfn nowhere link; p; rm link; p; mkdir link; p; echo x > link/x; p")),
    (
        "commands of the agent's",
        Line(
            "write over.txt --content one; p; edit over.txt one two; p; write new.txt --content x; p; rm new.txt; p",
        ),
    ),
    (
        "a patch in a line",
        Line(
            "apply_patch <<'E'\n*** Begin Patch\n*** Delete File: precious.txt\n*** Add File: q\n+q\n*** End Patch\nE\np; echo more >> q; p",
        ),
    ),
    (
        "copied and swapped",
        Line("cp -r folder copy; p; rm -r folder; p; mv copy folder; p; echo x > folder/a.txt; p"),
    ),
    ("cut", Line("truncate -s 0 precious.txt; p; truncate -s 50000 over.txt; p; truncate -s 3 over.txt; p")),
    (
        "another program",
        Line(
            "python3 -c 'import os; os.remove(\"precious.txt\"); open(\"over.txt\", \"w\").write(\"x\")'; p; p",
        ),
    ),
    (
        "found",
        Line(
            "find . -name '*.txt' -not -path './.git/*' -exec sed -i s/t/T/ {} +; p; find folder -delete; p",
        ),
    ),
    ("in the background", Line("(rm precious.txt; p; echo b > bg.txt; p) & wait; p")),
    (
        "deaf to signals",
        Line(
            "trap '' HUP INT QUIT TERM; for i in $(seq 10); do echo $i > over.txt; p; rm -f f$((i-1)); echo > f$i; done",
        ),
    ),
    ("packed", Line("tar cf folder.tar folder; p; rm -r folder; p; tar xf folder.tar; p; rm folder.tar; p")),
    (
        "checked out",
        GitLine("echo dirty > over.txt; p; git checkout -q -- over.txt; p; git rm -q folder/a.txt; p"),
    ),
    (
        "stashed",
        GitLine("echo dirty > over.txt; p; git stash -q; p; rm precious.txt; p; git stash pop -q; p"),
    ),
    ("cleaned", GitLine("git clean -qfd; p; git mv over.txt moved.txt; p; echo x > over.txt; p")),
];

/// Runs the program of its arguments on a terminal of its own, and closes the terminal when a file is there.
const TERMINAL: &str = "
import os, pty, select, sys
trigger, *program = sys.argv[1:]
pid, master = pty.fork()
if pid == 0: os.execv(program[0], program)
while not os.path.exists(trigger):
    ready, _, _ = select.select([master], [], [], 0.005)
    if ready:
        try: out = os.read(master, 65536)
        except OSError: break
        os.write(1, out)
os.close(master)
os.waitpid(pid, 0)
";

/// The progress of a run: what it said, or what its line told.
fn progress(running: &RunningLathe, told: &Path, is_line: bool) -> usize {
    if is_line {
        std::fs::read(told).map_or(0, |told| told.len())
    } else {
        running.stdout_so_far().lines().count()
    }
}

fn has_ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}

/// Tells whether no process works in a folder.
fn is_deserted(folder: &Path) -> bool {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let inside = |process: std::fs::DirEntry| {
        std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
    };
    !all.into_iter().any(inside)
}

/// Checks what must hold, by two of the four commands; all of them, back and forth, in the full run.
fn agrees(about: &str, run: &Lathe, repo: &TempRepo, first: &Tree, round: usize) {
    if size(0, 1) == 1 {
        return comes_back(about, run, repo, first);
    }
    let at = |args: &[&str]| at_home(run).in_dir(repo.path()).args(args).run();
    // The first look finishes or puts back what a file tool had half done.
    at(&["show"]);
    if tree(repo.path()) == *first {
        return;
    }
    let back: &[&str] = if round.is_multiple_of(2) {
        diff_agrees(about, run, repo, first);
        &["undo"]
    } else {
        at(&["show"]).expect_code(0);
        &["rewind", "--to", "0", "--files"]
    };
    let ran = at(back);
    assert_eq!(ran.code, 0, "{about}: {back:?}: {}{}", ran.stdout, ran.stderr);
    assert_eq!(differing_paths(&tree(repo.path()), first), Vec::<String>::new(), "{about}: {back:?}");
}

// Four shares of 40 instants, or of 200 in the full run.

#[test]
fn a_run_may_end_at_any_instant_of_anything_1() {
    end_at_random_instants(1);
}

#[test]
fn a_run_may_end_at_any_instant_of_anything_2() {
    end_at_random_instants(2);
}

#[test]
fn a_run_may_end_at_any_instant_of_anything_3() {
    end_at_random_instants(3);
}

#[test]
fn a_run_may_end_at_any_instant_of_anything_4() {
    end_at_random_instants(4);
}

fn end_at_random_instants(share: usize) {
    let mut dice = dice(share as u64);
    let first = share * KINDS.len() / 4;
    for round in first..first + size(10, 50) {
        let (name, kind) = &KINDS[round % KINDS.len()];
        let git = matches!(kind, GitLine(_)) || dice(2) == 0;
        let ends = match dice(ENDS.len() + 1) {
            at if at < ENDS.len() => Ends::By(ENDS[at]),
            _ => Ends::TerminalClosed,
        };
        let repo = repo(git);
        let before = tree(repo.path());
        let beside = TempRepo::new(&[]);
        let (told, trigger) = (beside.join("told"), beside.join("close"));
        let (answer, most): (FakeAnswer, usize) = match kind {
            Line(text) | GitLine(text) => {
                let line = format!("p() {{ printf . >> {}; }}; {text}", told.display());
                let most = if text.contains("seq") { 20 } else { text.matches("p;").count() + 1 };
                (call("c1", "bash", json!({ "command": line })), most)
            }
            Tool(tool, arguments) => (call("c1", tool, arguments()), 24),
        };
        let is_line = !matches!(kind, Tool(..));
        let instant = dice(most + 2);
        let model = FakeModel::serving(Script::new().answer(answer).answer(done("ok")));
        let words = ["run", "x", "--mode", "full-auto", "--output", "stream-json"];
        let run = match ends {
            Ends::By(_) => lathe().args(words),
            Ends::TerminalClosed => {
                let python = Lathe::new("/usr/bin/env").args(["python3", "-c", TERMINAL]).arg(&trigger);
                python.arg(env!("CARGO_BIN_EXE_lathe")).args(words)
            }
        };
        let run = run.in_dir(repo.path()).with_model(&model);
        let running = run.spawn();
        let pid = running.pid();
        eventually(Duration::from_secs(120), "the run comes so far, or ends", || {
            progress(&running, &told, is_line) >= instant || has_ended(pid)
        });
        match ends {
            Ends::By(how) => end(&running, how),
            Ends::TerminalClosed => std::fs::write(&trigger, "").unwrap(),
        }
        running.wait();
        eventually(Duration::from_secs(120), "no process is left in the folder", || is_deserted(repo.path()));
        let about = format!("round {round}: {name}, {ends:?} at {instant} of {most}, git: {git}");
        agrees(&about, &run, &repo, &before, round);
    }
}
