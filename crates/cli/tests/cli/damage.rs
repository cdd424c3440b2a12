//! Flipped bytes and cuts in every file that Lathe keeps of a session: journal, log, mark, blobs, index, snapshots,
//! copies for undo, standing approvals. A command then reports the damage, or does what it would have done without
//! it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lathe_testkit::{
    FakeModel, FinishedLathe, Lathe, ListingEntry, Script, TempRepo, call, done, eventually, listing, size,
};
use serde_json::json;

use crate::lathe;

/// Steps through the same numbers on every machine.
pub(crate) fn dice(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    }
}

/// A session that ended, and one that was killed in the middle of a line, each with its tree.
struct Sample {
    home: PathBuf,
    /// The tree as the run left it, next to the one that the test works in.
    left: TempRepo,
    repo: TempRepo,
    model: FakeModel,
    _run: Lathe,
}

fn copy(from: &Path, to: &Path) {
    let ran = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

fn sample(killed: bool) -> Sample {
    let files = [("a.txt", "one\n"), ("b.txt", "two\n"), ("d/c.txt", "three\n")];
    let repo = TempRepo::new(&files);
    let mut script = Script::new()
        .answer(call("c1", "edit", json!({ "path": "a.txt", "old_str": "one", "new_str": "ONE" })))
        .answer(call("c2", "bash", json!({ "command": "rm b.txt; seq 30000; echo more >> d/c.txt" })));
    if killed {
        let line = "rm a.txt; mkdir made; echo x > made/x; touch ../started; sleep 600";
        let line = line.replace("../started", &repo.path().with_extension("started").display().to_string());
        script = script.answer(call("c3", "bash", json!({ "command": line })));
    }
    // One for the run, and one for each time that it is resumed.
    let model = FakeModel::serving(script.then(Script::repeat(300, |_| done("ok"))));
    let run = lathe().in_dir(repo.path()).args(["run", "x", "--mode", "full-auto"]).with_model(&model);
    std::fs::create_dir_all(run.home().join("policy")).unwrap();
    if killed {
        let running = run.spawn();
        let started = repo.path().with_extension("started");
        eventually(Duration::from_secs(60), "the line has begun", || started.exists());
        running.kill9();
        running.wait();
        std::fs::remove_file(started).unwrap();
        assert!(files_of(&run.home()).iter().any(|file| file.ends_with("db-wal")));
    } else {
        run.run().expect_code(0);
    }
    let left = TempRepo::new(&[]);
    copy(repo.path(), left.path());
    Sample { home: run.home(), left, repo, model, _run: run }
}

/// The files of sessions in Lathe's home, named from the home on.
fn files_of(home: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![home.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                found.push(path.strip_prefix(home).unwrap().display().to_string());
            }
        }
    }
    let kept = |name: &String| {
        ["sessions/", "blobs/", "index", "baselines/", "recovery/"].iter().any(|part| name.starts_with(part))
            && !name.ends_with(".lock")
            && !name.ends_with("-shm")
    };
    found.retain(kept);
    found.sort();
    found
}

/// The output and effect of a command, without what is another in each run: times, and the home's own name.
#[derive(Debug, PartialEq)]
struct Seen {
    code: i32,
    said: String,
    tree: BTreeMap<String, ListingEntry>,
}

/// The last one is for a session that has not ended.
const COMMANDS: [&[&str]; 8] = [
    &["show"],
    &["show", "--format", "json"],
    &["diff"],
    &["undo"],
    &["rewind", "--to", "0", "--files"],
    &["replay"],
    &["sessions", "--json"],
    &["resume", "--mode", "full-auto"],
];

fn without_times(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_inclusive([' ', '\n', ',', '"']) {
        let is_time =
            word.starts_with("2026-") || word.starts_with("20") && word.contains('T') && word.contains(':');
        let is_span = word.trim_end().trim_end_matches(['s', 'm', ',']).parse::<f64>().is_ok();
        out.push_str(if is_time || is_span { "T" } else { word });
    }
    out
}

fn play(sample: &Sample, home: &Path, command: &[&str]) -> (FinishedLathe, Seen) {
    // The tree as it was left, under the name that the session knows.
    for entry in std::fs::read_dir(sample.repo.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap()
        } else {
            std::fs::remove_file(path).unwrap()
        }
    }
    copy(sample.left.path(), sample.repo.path());
    let run = lathe().env("LATHE_HOME", home).in_dir(sample.repo.path()).args(command);
    let asked = sample.model.bodies().len();
    let run = if command[0] == "resume" { run.with_model(&sample.model) } else { run };
    let ran = run.run();
    // What a model is asked is what counts of a resumed session.
    let said = match sample.model.bodies().get(asked) {
        Some(request) => String::from_utf8(request.clone()).unwrap(),
        None => ran.stdout.clone(),
    };
    let said = without_times(&said.replace(&home.display().to_string(), "HOME"));
    let seen = Seen { code: ran.code, said, tree: listing(sample.repo.path()) };
    (ran, seen)
}

#[test]
fn damage_in_what_is_kept_of_a_session_is_told_or_harmless() {
    flip_and_cut(&sample(false), &COMMANDS[..COMMANDS.len() - 1], 16);
}

#[test]
fn damage_in_what_a_killed_session_left_is_told_or_harmless() {
    flip_and_cut(&sample(true), &COMMANDS, 17);
}

fn flip_and_cut(sample: &Sample, commands: &[&[&str]], seed: u64) {
    let fresh = || {
        let home = TempRepo::new(&[]);
        copy(&sample.home, home.path());
        home
    };
    let reference = |command: &&[&str]| {
        let (ran, seen) = play(sample, fresh().path(), command);
        assert_eq!(ran.code, 0, "{command:?}: {}{}", ran.stdout, ran.stderr);
        seen
    };
    let right: Vec<Seen> = commands.iter().map(reference).collect();
    let mut dice = dice(seed);
    let (mut told, mut harmless) = (0, 0);
    for round in 0..size(30, 100) {
        let command = dice(commands.len());
        let home = fresh();
        let files = files_of(home.path());
        // Half of the time the files of the session itself, which are few among many blobs.
        let own: Vec<&String> = files.iter().filter(|name| name.starts_with("sessions/")).collect();
        let name = if dice(2) == 0 { own[dice(own.len())].clone() } else { files[dice(files.len())].clone() };
        let path = home.path().join(&name);
        let mut bytes = std::fs::read(&path).unwrap();
        let place = dice(bytes.len().max(1));
        let how = match bytes.get_mut(place) {
            None => "nothing in it".to_owned(),
            Some(_) if dice(4) == 0 => {
                bytes.truncate(place);
                format!("cut at {place}")
            }
            Some(byte) => {
                let bit = dice(8);
                *byte ^= 1 << bit;
                format!("bit {bit} of byte {place}")
            }
        };
        std::fs::write(&path, bytes).unwrap();
        let (ran, seen) = play(sample, home.path(), commands[command]);
        if seen == right[command] {
            harmless += 1;
            continue;
        }
        told += 1;
        let about = format!("round {round}, {name}: {how}, {:?}", commands[command]);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.code != 101 && ran.code < 128, "{about}: {said}");
        let words = [
            "damaged",
            "cannot be",
            "lost",
            "missing",
            "could not",
            "no longer",
            "not what was written",
            "left out",
        ];
        assert!(words.iter().any(|word| said.contains(word)), "{about}: code {}: {said}", ran.code);
    }
    assert!(told > 0 && harmless > 0, "{told} told, {harmless} harmless");
}

/// Changes the newest saved state in a journal: a bit of it, its end, or its place in the session.
const MISTREAT_STATE: &str = "
import sqlite3, sys
path, how, place = sys.argv[1], sys.argv[2], int(sys.argv[3])
db = sqlite3.connect(path)
upto, state = db.execute('SELECT upto, state FROM snapshots ORDER BY upto DESC LIMIT 1').fetchone()
state = bytearray(state)
if how == 'flip': state[place // 8 % len(state)] ^= 1 << place % 8
elif how == 'cut': del state[place % len(state):]
if how == 'upto': db.execute('UPDATE snapshots SET upto = upto - 1 WHERE upto = ?', (upto,))
else: db.execute('UPDATE snapshots SET state = ? WHERE upto = ?', (bytes(state), upto))
db.commit()
db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
";

#[test]
fn a_saved_state_that_is_damaged_changes_nothing_of_what_a_model_is_asked() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let script = Script::repeat(45, |k| {
        let view = json!({ "path": "a.txt" });
        call(&format!("a{k}"), "view", view.clone()).call(&format!("b{k}"), "view", view)
    });
    let model = FakeModel::serving(script.then(Script::repeat(100, |_| done("ok"))));
    let run = lathe().in_dir(repo.path()).args(["run", "x"]).with_model(&model);
    run.run().expect_code(0);
    let asked_of = |home: &Path| {
        let resumed = lathe().env("LATHE_HOME", home).in_dir(repo.path());
        let before = model.bodies().len();
        let ran = resumed.args(["resume", "and more"]).with_model(&model).run();
        (ran, model.bodies().get(before).map(|body| without_times(&String::from_utf8_lossy(body))))
    };
    let fresh = || {
        let home = TempRepo::new(&[]);
        copy(&run.home(), home.path());
        home
    };
    let (ran, right) = asked_of(fresh().path());
    ran.expect_code(0);
    let mut dice = dice(18);
    for round in 0..size(8, 40) {
        let home = fresh();
        let journal = files_of(home.path())
            .into_iter()
            .find(|name| name.starts_with("sessions/") && name.ends_with(".db"))
            .unwrap();
        let how = ["flip", "flip", "flip", "cut", "upto"][round % 5];
        let place = dice(1 << 30).to_string();
        let mistreated = Command::new("python3")
            .args(["-c", MISTREAT_STATE])
            .arg(home.path().join(&journal))
            .args([how, &place])
            .output()
            .unwrap();
        assert!(mistreated.status.success(), "{}", String::from_utf8_lossy(&mistreated.stderr));
        let (ran, asked) = asked_of(home.path());
        let said = format!("{}{}", ran.stdout, ran.stderr);
        let told = ran.code != 0 && said.contains("damaged");
        assert!(told || asked == right, "{how} at {place}: {said}");
    }
}
