//! The wording of messages and help: bad numbers name the allowed ones, small caps are shown as they are, one thing
//! is counted as one.

use lathe_testkit::{FakeModel, Options, Script, TempRepo, Wire, call, done};
use serde_json::json;

use crate::{lathe, result, run_in};

#[test]
fn a_number_that_is_not_allowed_is_answered_with_what_is() {
    for (flag, values, allowed) in [
        ("--max-cost", &["-1", "nan", "inf", "1e400", "a", "-0.5", ""][..], "a number that is 0 or more"),
        ("--max-tokens", &["-1", "1.5", "a", ""], "a whole number that is 1 or more"),
        ("--max-time", &["-1", "-5m", "5d", ""], "a time that is 1 second or more"),
        ("--max-steps", &["-1", "0", "1.5", "4294967296"], "a whole number from 1 to"),
    ] {
        for value in values {
            for command in ["run", "resume"] {
                let ran = lathe().args([command, "x", flag, value]).run().expect_code(2);
                assert!(ran.stderr.contains(allowed), "{command} {flag} {value}: {}", ran.stderr);
            }
        }
    }
}

#[test]
fn a_small_cap_is_shown_as_it_holds() {
    let repo = TempRepo::new(&[]);
    let home = lathe();
    std::fs::create_dir_all(home.home()).unwrap();
    let prices = json!({ "fake": { "input": 1, "output": 1 } });
    std::fs::write(home.home().join("prices.json"), prices.to_string()).unwrap();
    for (cap, shown) in [("0.00004", "$0.00004"), ("0.000001", "$0.000001"), ("0.5", "$0.50"), ("2", "$2.00")]
    {
        let model = FakeModel::start(Script::new().answer(done("x")), Options::default());
        let run = home.clone().in_dir(repo.path()).args(["run", "x", "--max-cost", cap]).with_model(&model);
        let ran = run.run();
        let first = ran.stdout.lines().next().unwrap_or_default();
        assert!(first.contains(&format!(", {shown}")), "{cap}: {first} {}", ran.stderr);
        assert!(!ran.stdout.contains("$0.0000 ") && !ran.stdout.contains("$0.00 "), "{}", ran.stdout);
    }
}

#[test]
fn the_words_that_leave_are_never_a_task() {
    for word in ["exit", "quit", "/exit", "/quit", "EXIT", " /Exit "] {
        let repo = TempRepo::new(&[]);
        let model = FakeModel::serving(Script::new().answer(done("x")));
        let talk = lathe().in_dir(repo.path()).arg("interactive").with_model(&model);
        let ran = talk.stdin(format!("/help\n{word}\nnot any more\n")).run().expect_code(0);
        assert!(model.requests().is_empty() && ran.stdout.contains("Goodbye!"), "{word}: {}", ran.stdout);
    }
}

#[test]
fn an_address_is_spoken_to_as_its_provider_is() {
    for (provider, wire, path) in [
        (&[][..], Wire::Chat, "/chat/completions"),
        (&["-p", "mine"], Wire::Chat, "/chat/completions"),
        (&["-p", "openai"], Wire::Responses, "/responses"),
    ] {
        let repo = TempRepo::new(&[]);
        let model = FakeModel::serving(Script::new().answer(done("x")));
        let flags =
            ["--model-base-url", &model.base_url_for(wire), "--model", "fake", "--api-key", model.key()];
        lathe().in_dir(repo.path()).args(["run", "x"]).args(provider).args(flags).run().expect_code(0);
        assert!(model.requests()[0].path.ends_with(path), "{provider:?}: {}", model.requests()[0].path);
    }
    let help = lathe().args(["run", "--help"]).run().stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("It is spoken to as --provider is"), "{help}");
}

#[test]
fn files_that_a_rule_hides_are_counted_without_their_folders() {
    let repo = TempRepo::new(&[("seen.txt", "needle\n")]);
    for at in 0..5 {
        repo.write(&format!("kept/deep/{at}.txt"), "needle\n");
    }
    std::os::unix::fs::symlink("kept", repo.join("link")).unwrap();
    let script = Script::new().answer(call("a", "search", json!({ "pattern": "needle" }))).answer(done("x"));
    let model = FakeModel::serving(script);
    let run = run_in(repo.path(), &model);
    std::fs::create_dir_all(run.home().join("policy")).unwrap();
    let rules = "[[rule]]\ndecision = \"deny\"\ntool = \"*\"\npath = [\"kept\", \"kept/**\"]\n";
    std::fs::write(run.home().join("policy/mine.toml"), rules).unwrap();
    let text = result(&run.run().expect_code(0).events(), "a");
    assert!(text.contains("(5 files are left out: a rule does not let them be read.)"), "{text}");
}

#[test]
fn one_thing_is_told_as_one() {
    let repo = TempRepo::new(&[("a.py", "def f():\n    pass\n")]);
    let model = FakeModel::serving(Script::new().answer(done("x")));
    let run = lathe().in_dir(repo.path()).args(["run", "x", "--max-steps", "1"]);
    let home = run.home();
    let first = run.with_model(&model).run().expect_code(0).stdout.lines().next().unwrap().to_owned();
    assert!(first.contains("at most 1 step") && !first.contains("1 steps"), "{first}");
    for command in [&["replay"][..], &["gc", "--dry-run"], &["doctor"], &["graph", "stats"]] {
        let ran = lathe().in_dir(repo.path()).env("LATHE_HOME", &home).args(command).run();
        for word in ["steps", "sessions", "requests", "events", "files", "definitions", "calls", "blobs"] {
            let wrong = format!("1 {word}");
            let is_wrong = ran.stdout.match_indices(&wrong).any(|(at, _)| {
                !ran.stdout[..at].ends_with(|before: char| before.is_ascii_digit() || before == '.')
            });
            assert!(!is_wrong, "{command:?}: {}", ran.stdout);
        }
    }
}
