//! `lathe policy check`. It only reads: none of the lines runs.

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::lathe;

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../policy/tests/corpus/rules.toml");
const CORPUS: &str = include_str!("../../../policy/tests/corpus/lines.jsonl");

fn answers(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn ten_thousand_commands_are_answered_in_order_in_one_call() {
    let entries: Vec<Value> = CORPUS.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let asked: Vec<&Value> = entries.iter().cycle().take(10_000).collect();
    let mut input = String::new();
    for (index, entry) in asked.iter().enumerate() {
        // Both forms: a text, and an object with more in it than is needed.
        let line = if index % 2 == 0 { entry["command"].clone() } else { (*entry).clone() };
        input.push_str(&format!("{line}\n"));
    }
    let ran = lathe().args(["policy", "check", "--json", "--rules", RULES]).stdin(input).run().expect_code(0);
    let answers = answers(&ran.stdout);
    assert_eq!(answers.len(), asked.len());
    for (answer, entry) in answers.iter().zip(asked) {
        assert_eq!(answer["command"], entry["command"]);
        assert!(answer["because"].as_str().is_some_and(|because| !because.is_empty()), "{answer}");
        for command in answer["commands"].as_array().unwrap() {
            assert!(command["words"].is_array() && command["effects"].is_object(), "{answer}");
            assert!(command["rule"].is_string() && command["decision"].is_string(), "{answer}");
        }
    }
    let right = |(answer, entry): &(&Value, &Value)| answer["decision"] == entry["decision"];
    let count = answers.iter().zip(&entries).filter(right).count();
    assert!(count * 100 >= entries.len() * 98, "{count} of {}", entries.len());
}

#[test]
fn each_command_is_told_with_its_rule_and_effects() {
    let ran = lathe()
        .args(["policy", "check", "--json", "--rules", RULES, "ls > out && git push"])
        .run()
        .expect_code(0);
    let answer = &answers(&ran.stdout)[0];
    assert_eq!(answer["decision"], "deny");
    assert_eq!(answer["commands"][0]["words"], json!(["ls"]));
    assert_eq!(answer["commands"][0]["decision"], "ask");
    assert_eq!(answer["commands"][0]["rule"], "R3.redirection");
    assert_eq!(answer["commands"][0]["effects"], json!({ "writes": ["out"] }));
    assert_eq!(answer["commands"][1]["decision"], "deny");
    assert!(answer["commands"][1]["rule"].as_str().unwrap().ends_with("rules.toml:11"), "{answer}");
}

#[test]
fn people_get_one_line_each_with_what_does_not_show() {
    let ran = lathe()
        .args(["policy", "check", "--rules", RULES])
        .stdin("ls\nrm x\u{200b}\n\nls | grep y\n")
        .run()
        .expect_code(0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{}", ran.stdout);
    assert!(lines[0].starts_with("allow  ls  ("));
    assert!(lines[1].starts_with("ask    rm x<U+200B>  ("), "{}", lines[1]);
    assert!(lines[2].contains("(nothing to run)"), "{}", lines[2]);
    assert!(lines[3].starts_with("allow  ls | grep y"));
}

#[test]
fn the_mode_has_the_last_word() {
    for (mode, word) in [("plan", "deny"), ("default", "ask"), ("auto-edit", "ask"), ("full-auto", "allow")] {
        let ran = lathe().args(["policy", "check", "--mode", mode, "make deploy"]).run().expect_code(0);
        assert!(ran.stdout.starts_with(word), "{mode}: {}", ran.stdout);
    }
}

#[test]
fn a_line_that_is_no_command_keeps_the_answers_in_step() {
    let ran =
        lathe().args(["policy", "check", "--json"]).stdin("\"ls\"\n{oops\n7\n\"pwd\"\n").run().expect_code(2);
    assert!(
        ran.stderr.contains("line 2 is neither a JSON text") && ran.stderr.contains("line 3"),
        "{}",
        ran.stderr
    );
    let decisions: Vec<Value> =
        answers(&ran.stdout).iter().map(|answer| answer["decision"].clone()).collect();
    assert_eq!(decisions, ["allow", "deny", "deny", "allow"]);
}

#[test]
fn rules_that_cannot_be_used_are_exit_2_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.toml");
    for (text, told) in [
        ("default = \"ask\"\n[[rule]]\ndecision = \"alow\"\ncommand = \"ls\"\n", "r.toml:3: rule 1"),
        (
            "[[rule]]\ndecision = \"allow\"\ncommand = \"ls\"\nmatch = [\"cat\"]\n",
            "r.toml:1: rule 1 should match `cat`",
        ),
        ("default =\n", "r.toml:1:"),
    ] {
        std::fs::write(&file, text).unwrap();
        let ran = lathe().args(["policy", "check", "ls", "--rules"]).arg(&file).run().expect_code(2);
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
    lathe().args(["policy", "check", "--rules", "/nonexistent", "ls"]).run().expect_code(2);
}

#[test]
fn a_rule_file_is_tried_on_past_sessions() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
    let answer = call("c1", "bash", json!({ "command": "git status --short" }))
        .call("c2", "bash", json!({ "command": "make deploy" }))
        .call("c3", "view", json!({ "path": "a.txt" }))
        .call("c4", "bash", json!({ "command": "view a.txt | head -1" }));
    let model = FakeModel::serving(Script::new().answer(answer).answer(done("ok")));
    let run = lathe().in_dir(repo.path()).args(["run", "go", "--mode", "default"]).with_model(&model);
    run.run();
    repo.write(
        "new.toml",
        "[[rule]]\ndecision = \"allow\"\ncommand = [\"make deploy\"]\n\n[[rule]]\ndecision = \"deny\"\ncommand = [\"git status\"]\nreason = \"no\"\n",
    );
    let replay = |words: &[&str]| {
        lathe().in_dir(repo.path()).env("LATHE_HOME", run.home()).args(["policy", "replay"]).args(words).run()
    };
    let ran = replay(&["new.toml", "--json"]).expect_code(0);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(told["counts"], json!({ "allow -> deny": 1, "deny -> allow": 1 }), "{told}");
    assert_eq!((&told["replay"]["calls"], &told["replay"]["sessions"]), (&json!(5), &json!(1)), "{told}");
    let ways: Vec<(&str, &str, &str)> = told["replay"]["changed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let text = |key: &str| one[key].as_str().unwrap();
            (text("about"), text("was"), text("would_be"))
        })
        .collect();
    assert_eq!(ways, [("git status --short", "allow", "deny"), ("make deploy", "deny", "allow")]);
    let ran = replay(&["new.toml"]).expect_code(0);
    assert!(ran.stdout.contains("5 calls of 1 session: 3 as before"), "{}", ran.stdout);
    repo.write("wrong.toml", "nonsense");
    replay(&["wrong.toml"]).expect_code(2);
    replay(&["new.toml", "nosuchsession"]).expect_code(2);
}

#[test]
fn an_empty_line_has_an_answer_of_its_own() {
    let ran = lathe().args(["policy", "check", "--json"]).stdin("\"ls\"\n\n\"pwd\"\n").run().expect_code(0);
    let answers = answers(&ran.stdout);
    let told: Vec<_> = answers.iter().map(|answer| answer["command"].as_str().unwrap()).collect();
    assert_eq!(told, ["ls", "", "pwd"]);
    assert_eq!(answers[1]["decision"], "allow");
    assert_eq!(answers[1]["because"], "nothing to run");
    let ran = lathe().args(["policy", "check"]).stdin("ls\n\npwd\n").run().expect_code(0);
    assert_eq!(ran.stdout.lines().count(), 3, "{}", ran.stdout);
}

#[test]
fn a_commands_own_streams_are_no_secrets() {
    let lines = "echo x > /dev/stderr\nls | tee /dev/stderr\nls | cat /dev/stdin\nwc -l < /dev/stdin\ncat a /dev/fd/0\n";
    let ran = lathe().args(["policy", "check", "--mode", "full-auto"]).stdin(lines).run().expect_code(0);
    for line in ran.stdout.lines() {
        assert!(line.starts_with("allow"), "{}", ran.stdout);
    }
}
