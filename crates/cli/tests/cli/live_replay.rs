//! A replay with live tools decides every call by the rules, the mode and the home of here and now, regardless of the
//! journal's origin.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use lathe_testkit::{FakeModel, FinishedLathe, Lathe, Script, TempRepo, call, done};
use serde_json::json;

use crate::{lathe, run_in};

/// A session in mode full-auto that ran these lines, one in each step. Names in the folder of temporary files are those of
/// the replay then, so both have the same.
fn ran_lines(repo: &TempRepo, temporary: &TempRepo, lines: &[&str]) -> Lathe {
    let each = lines.iter().enumerate();
    let script = each.fold(Script::new(), |script, (at, line)| {
        script.answer(call(&format!("c{at}"), "bash", json!({ "command": line })))
    });
    let model = FakeModel::serving(script.answer(done("ok")));
    let run = run_in(repo.path(), &model).env("TMPDIR", temporary.path());
    run.run().expect_code(0);
    run
}

fn replay(home: &Path, temporary: &TempRepo, flags: &[&str]) -> FinishedLathe {
    let replay = lathe().env("LATHE_HOME", home).env("TMPDIR", temporary.path());
    replay.args(["replay", "--tools", "live"]).args(flags).run()
}

fn kept(ran: &FinishedLathe) -> PathBuf {
    let last = ran.stdout.lines().last().unwrap();
    last.strip_prefix("the copy is kept for inspection: ").expect(&ran.stdout).into()
}

fn rule(home: &Path, text: &str) {
    std::fs::create_dir_all(home.join("policy")).unwrap();
    std::fs::write(home.join("policy/late.toml"), format!("[[rule]]\ndecision = \"deny\"\n{text}\n"))
        .unwrap();
}

#[test]
fn a_call_that_a_rule_denies_by_now_is_a_difference_and_does_not_run() {
    let (repo, temporary) = (TempRepo::new(&[("a.txt", "a\n")]), TempRepo::new(&[]));
    let run = ran_lines(&repo, &temporary, &["touch made", "cat a.txt"]);
    let same = replay(&run.home(), &temporary, &["--mode", "full-auto"]).expect_code(0);
    assert!(same.stdout.contains("0 differences"), "{}", same.stdout);
    let before = std::fs::read_dir(run.home()).unwrap().count();
    rule(&run.home(), "command = [\"touch\"]\nreason = \"not any more\"");
    let denied = replay(&run.home(), &temporary, &["--mode", "full-auto"]).expect_code(1);
    let said = "step 1: call c0 (bash) differs\n  recorded: it was not denied\n  now:      denied now by ";
    assert!(denied.stdout.contains(said) && denied.stdout.contains("not any more"), "{}", denied.stdout);
    assert!(!denied.stdout.contains("call c1 (bash) differs\n  recorded: it was not"), "{}", denied.stdout);
    let copy = kept(&denied);
    assert!(copy.join("a.txt").exists() && !copy.join("made").exists());
    // Only this user can read the copy, and nothing is left of the replay's own journal.
    let mode = copy.parent().unwrap().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let now = std::fs::read_dir(run.home()).unwrap().count();
    assert_eq!(now, before + 1, "only the folder of rules is new");
    let listed = lathe().env("LATHE_HOME", run.home()).args(["sessions", "--json"]).run().expect_code(0);
    assert_eq!(serde_json::from_str::<Vec<serde_json::Value>>(&listed.stdout).unwrap().len(), 1);
}

#[test]
fn what_was_denied_when_it_was_recorded_is_no_difference() {
    let (repo, temporary) = (TempRepo::new(&[("a.txt", "a\n")]), TempRepo::new(&[]));
    let script = Script::new().answer(call("c0", "bash", json!({ "command": "touch made" })));
    let model = FakeModel::serving(script.answer(done("ok")));
    let run = lathe().in_dir(repo.path()).args(["run", "do it", "--mode", "plan"]).with_model(&model);
    run.run();
    let same = replay(&run.home(), &temporary, &[]);
    assert!(same.stdout.contains("0 differences"), "{}", same.stdout);
}

#[test]
fn the_smaller_mode_counts_unless_the_flag_names_one() {
    let (repo, outside, temporary) = (TempRepo::new(&[]), TempRepo::new(&[]), TempRepo::new(&[]));
    let mark = outside.join("mark");
    let run = ran_lines(&repo, &temporary, &[&format!("touch {}", mark.display())]);
    for config in ["", "[run]\nmode = \"plan\"\n", "[run]\nmode = \"default\"\n"] {
        std::fs::remove_file(&mark).unwrap_or_default();
        std::fs::write(run.home().join("config.toml"), config).unwrap();
        let denied = replay(&run.home(), &temporary, &[]).expect_code(1);
        assert!(denied.stdout.contains("denied now by "), "{config}{}", denied.stdout);
        assert!(denied.stderr.contains("worked in mode full-auto"), "{config}{}", denied.stderr);
        assert!(!mark.exists(), "{config}");
    }
    replay(&run.home(), &temporary, &["--mode", "full-auto"]).expect_code(0);
    assert!(mark.exists());
    // A configuration that cannot be read does not mean that there are no limits.
    std::fs::remove_file(&mark).unwrap();
    std::fs::write(run.home().join("config.toml"), "[run\n").unwrap();
    replay(&run.home(), &temporary, &["--mode", "full-auto"]).expect_code(2);
    assert!(!mark.exists());
}

/// Brings a journal from one home to another.
fn bring(from: &Path, to: &Path) {
    for part in ["sessions", "blobs", "baselines"] {
        let copied =
            std::process::Command::new("cp").arg("-a").arg(from.join(part)).arg(to).status().unwrap();
        assert!(copied.success() || !from.join(part).exists());
    }
}

#[test]
fn a_foreign_journal_reaches_neither_the_home_nor_what_a_rule_forbids() {
    let (repo, victim, temporary) = (TempRepo::new(&[]), TempRepo::new(&[]), TempRepo::new(&[]));
    let (config, stolen) = (victim.join("config.toml"), victim.join("../").canonicalize().unwrap());
    let stolen = stolen.join(format!("{}.stolen", victim.path().file_name().unwrap().to_str().unwrap()));
    std::fs::write(victim.join("auth.json"), "{}\n").unwrap();
    std::fs::write(&config, "# mine\n").unwrap();
    let line = |text: &str| {
        text.replace("HOME", victim.path().to_str().unwrap()).replace("OUT", stolen.to_str().unwrap())
    };
    let lines = [
        line("echo '# theirs' > HOME/config.toml"),
        line("rm HOME/auth.json"),
        line("touch OUT"),
        line("cat HOME/config.toml"),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let run = ran_lines(&repo, &temporary, &lines);
    assert_eq!(std::fs::read_to_string(&config).unwrap(), "# theirs\n");
    std::fs::write(&config, "# mine\n").unwrap();
    std::fs::write(victim.join("auth.json"), "{}\n").unwrap();
    std::fs::remove_file(&stolen).unwrap();
    bring(&run.home(), victim.path());
    rule(victim.path(), "command = [\"touch\"]");
    let denied = replay(victim.path(), &temporary, &["--mode", "full-auto"]).expect_code(1);
    // The model gets the denial, so the conversation differs from here on, and the replay ends.
    assert!(denied.stdout.contains("denied now by guard.home"), "{}", denied.stdout);
    assert_eq!(std::fs::read_to_string(&config).unwrap(), "# mine\n");
    assert!(victim.join("auth.json").exists() && !stolen.exists());
}

#[test]
fn the_projects_rules_of_now_hold_in_the_copy_too() {
    let (repo, temporary) = (TempRepo::new(&[("a.txt", "a\n")]), TempRepo::new(&[]));
    let rules = "[[rule]]\ndecision = \"deny\"\ncommand = [\"touch\"]\n";
    let run = ran_lines(&repo, &temporary, &["touch made"]);
    assert!(repo.exists("made"));
    repo.write(".lathe/policy.toml", rules);
    // The copy has the state before the run, without the file.
    let denied = replay(&run.home(), &temporary, &["--mode", "full-auto"]).expect_code(1);
    assert!(denied.stdout.contains("call c0 (bash) differs"), "{}", denied.stdout);
    assert!(!kept(&denied).join("made").exists());
}
