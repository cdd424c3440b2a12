//! However Lathe ends in the middle of a call, the changes of the call are known afterwards and can be undone.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use lathe_testkit::{
    FakeAnswer, FakeModel, Lathe, Script, Signal, TempRepo, call, differing_paths, done, eventually, is_full,
    size,
};
use serde_json::json;

use crate::lathe;
use crate::rewinds::tree;

/// The way in which a run is ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Kill,
    Hangup,
    Quit,
    TwiceInterrupted,
    Terminated,
}

pub(crate) const ENDS: [End; 5] = [End::Kill, End::Hangup, End::Quit, End::TwiceInterrupted, End::Terminated];

/// Lines and calls that change something and then wait, or take long. `started` is made when the first change is done.
fn calls() -> Vec<(&'static str, FakeAnswer)> {
    let line = |name: &'static str, text: &str| {
        (name, call("c1", "bash", json!({ "command": format!("{text}; touch started; sleep 60") })))
    };
    vec![
        line("removed", "rm precious.txt"),
        line("written over", "echo new > over.txt"),
        line("both", "rm precious.txt; echo new > over.txt"),
        line("appended", "echo more >> over.txt"),
        line("moved", "mv precious.txt elsewhere.txt"),
        line("a folder", "rm -r folder"),
        line("a mode", "chmod 755 over.txt"),
        line("a link", "rm link; ln -s nowhere link"),
        line("made", "mkdir -p new/deep; echo x > new/deep/x"),
        line("swapped", "rm -r folder; echo x > folder"),
        line("in place", "sed -i s/old/new/ over.txt"),
        line("emptied", ": > precious.txt"),
        line("a command of the agent's", "write over.txt --content agent"),
        line("truncated", "truncate -s 3 precious.txt"),
        line("cleaned", "rm -rf untracked* folder/*"),
        line("in the background", "(rm precious.txt &) ; sleep 0.2"),
        line("in a script", "printf 'rm precious.txt\\n' > s.sh; sh s.sh"),
        line("another program", "python3 -c 'import os; os.remove(\"precious.txt\")'"),
        line("copied over", "cp folder/a.txt precious.txt"),
        line("hard links", "ln precious.txt hard.txt; echo x > hard.txt"),
    ]
}

pub(crate) fn repo(git: bool) -> TempRepo {
    let files = [("over.txt", "old text\n"), ("folder/a.txt", "a\n"), ("folder/b.txt", "b\n")];
    let repo = if git { TempRepo::with_git(&files) } else { TempRepo::new(&files) };
    // Git does not have this one.
    repo.write("precious.txt", "the only copy\n");
    repo.write("untracked.bin", [0, 1, 2, 255]);
    std::os::unix::fs::symlink("over.txt", repo.join("link")).unwrap();
    repo
}

fn wait_for(path: &Path) {
    eventually(Duration::from_secs(60), &format!("{} is there", path.display()), || path.exists());
}

pub(crate) fn at_home(run: &Lathe) -> Lathe {
    lathe().env("LATHE_HOME", run.home())
}

pub(crate) type Tree = BTreeMap<String, (u32, Vec<u8>)>;

/// Checks a diff against the tree: it names every file whose content is another one, and nothing that is as it was.
pub(crate) fn diff_agrees(about: &str, run: &Lathe, repo: &TempRepo, first: &Tree) {
    const FILES: u32 = 0o100_000;
    let now = tree(repo.path());
    let diff = at_home(run).in_dir(repo.path()).args(["diff", "--json"]).run();
    assert_eq!(diff.code, 0, "{about}: {}", diff.stderr);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&diff.stdout).unwrap();
    let named: Vec<&str> = rows.iter().map(|row| row["path"].as_str().unwrap()).collect();
    let apart = differing_paths(&now, first);
    for name in &named {
        assert!(apart.iter().any(|path| path == name), "{about}: {name} is as it was: {}", diff.stdout);
    }
    let content = |tree: &Tree, path: &str| {
        tree.get(path).filter(|(mode, _)| mode & 0o170_000 == FILES).map(|(_, content)| content.clone())
    };
    for path in apart.iter().filter(|path| content(&now, path) != content(first, path)) {
        assert!(named.contains(&path.as_str()), "{about}: {path} is another one: {}", diff.stdout);
    }
}

/// The conditions after an end: every view agrees, and every file can be restored.
pub(crate) fn comes_back(about: &str, run: &Lathe, repo: &TempRepo, first: &Tree) {
    let at = |args: &[&str]| at_home(run).in_dir(repo.path()).args(args).run();
    let diff = at(&["diff"]);
    let shown = at(&["show"]);
    // The first look finishes or puts back what a file tool had half done.
    let left = tree(repo.path());
    if left == *first {
        return;
    }
    assert!(!diff.stdout.contains("no file is changed"), "{about}: {}", diff.stdout);
    assert_eq!(shown.code, 0, "{about}: {}", shown.stderr);
    diff_agrees(about, run, repo, first);
    let undone = at(&["undo"]);
    assert_eq!(undone.code, 0, "{about}: undo: {}{}", undone.stdout, undone.stderr);
    assert_eq!(differing_paths(&tree(repo.path()), first), Vec::<String>::new(), "{about}: undo");
    // The way back that it names works, and then the other way does.
    let hint = format!("{}{}", undone.stdout, undone.stderr);
    let hint = hint.split('`').find(|part| part.starts_with("lathe rewind")).unwrap().to_owned();
    let words: Vec<&str> = hint.split(' ').skip(1).collect();
    let redone = at(&words);
    assert_eq!(redone.code, 0, "{about}: {hint}: {}{}", redone.stdout, redone.stderr);
    assert_eq!(differing_paths(&tree(repo.path()), &left), Vec::<String>::new(), "{about}: {hint}");
    let rewound = at(&["rewind", "--to", "0", "--files"]);
    assert_eq!(rewound.code, 0, "{about}: rewind: {}{}", rewound.stdout, rewound.stderr);
    assert_eq!(differing_paths(&tree(repo.path()), first), Vec::<String>::new(), "{about}: rewind");
}

pub(crate) fn end(run: &lathe_testkit::RunningLathe, how: End) {
    match how {
        End::Kill => run.kill9(),
        End::Hangup => run.kill(Signal::Hangup),
        End::Quit => run.kill(Signal::Quit),
        End::TwiceInterrupted => {
            run.kill(Signal::Interrupt);
            run.kill(Signal::Interrupt);
        }
        End::Terminated => run.kill(Signal::Terminate),
    }
}

fn ended_in(how: End, name: &str, answer: &FakeAnswer, git: bool) {
    let repo = repo(git);
    let first = tree(repo.path());
    let model = FakeModel::serving(Script::new().answer(answer.clone()).answer(done("ok")));
    let run = lathe().in_dir(repo.path()).args(["run", "x", "--mode", "full-auto"]).with_model(&model);
    let running = run.spawn();
    wait_for(&repo.join("started"));
    end(&running, how);
    running.wait();
    comes_back(&format!("{name}, {how:?}, git: {git}"), &run, &repo, &first);
}

#[test]
fn nothing_is_lost_in_the_middle_of_a_line() {
    for (index, (name, answer)) in calls().iter().enumerate() {
        // Every way to end meets every kind of line in the full run.
        let ends: Vec<End> = if is_full() { ENDS.to_vec() } else { vec![End::Kill, ENDS[1 + index % 4]] };
        for how in ends {
            ended_in(how, name, answer, index % 2 == 0);
        }
    }
}

/// Names of ours that a killed process left in the tree.
fn litter(tree: &Tree) -> Vec<&String> {
    tree.keys().filter(|name| name.contains(".lathe-")).collect()
}

#[test]
fn a_killed_undo_or_rewind_is_finished_at_the_next_look() {
    let files: Vec<(String, String)> =
        (0..150).map(|n| (format!("d{}/f{n}.txt", n % 7), format!("file {n}\n").repeat(50))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let repo = TempRepo::new(&files);
    let first = tree(repo.path());
    let line =
        "for f in d*/*.txt; do echo new > $f; done; rm -r d3; mkdir made; echo x > made/x; chmod 700 d1";
    let answers = Script::new().answer(call("c1", "bash", json!({ "command": line }))).answer(done("ok"));
    let model = FakeModel::serving(answers);
    let run = lathe().in_dir(repo.path()).args(["run", "x", "--mode", "full-auto"]).with_model(&model);
    run.run().expect_code(0);
    let left = tree(repo.path());
    let at = |args: &[&str]| at_home(&run).in_dir(repo.path()).args(args);
    let begun = Instant::now();
    at(&["undo"]).run().expect_code(0);
    let whole = begun.elapsed();
    at(&["rewind", "--to", "2", "--files"]).run().expect_code(0);
    assert_eq!(differing_paths(&tree(repo.path()), &left), Vec::<String>::new());
    let kills = u32::try_from(size(12, 60)).unwrap();
    let mut finished = 0;
    for kill in 0..kills {
        let undo: &[&str] = if kill % 2 == 0 { &["undo"] } else { &["rewind", "--to", "0", "--files"] };
        let running = at(undo).spawn();
        let share = (f64::from(kill) + f64::from((kill * 7919) % 97) / 97.0) / f64::from(kills);
        std::thread::sleep(whole.mul_f64(share));
        running.kill9();
        running.wait();
        at(&["show"]).run().expect_code(0);
        let now = tree(repo.path());
        assert_eq!(litter(&now), Vec::<&String>::new(), "kill {kill}");
        if now == left {
            continue;
        }
        // Once it began it is finished, and recorded whole: the way back leads to where it was.
        finished += 1;
        assert_eq!(differing_paths(&now, &first), Vec::<String>::new(), "kill {kill}");
        at(&["rewind", "--to", "2", "--files"]).run().expect_code(0);
        assert_eq!(differing_paths(&tree(repo.path()), &left), Vec::<String>::new(), "kill {kill}");
    }
    assert!(finished > 0, "no kill came after the beginning");
}
