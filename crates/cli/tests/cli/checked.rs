//! `lathe policy check` decides about each command of the agent as a session does when the command runs.

use lathe_testkit::{Lathe, TempRepo};
use serde_json::{Value, json};

use crate::lathe;

const FILES: [(&str, &str); 4] =
    [("a.txt", "one\n"), ("private/key", "k\n"), ("d.json", "{\"a\": 1}\n"), ("sub/b.rs", "fn main() {}\n")];

const PATCH: &str = "apply_patch <<'END'\n*** Begin Patch\n*** Add File: made.txt\n+x\n*** End Patch\nEND";
const PRIVATE: &str =
    "apply_patch <<'END'\n*** Begin Patch\n*** Add File: private/made.txt\n+x\n*** End Patch\nEND";

/// Lines of one command each, for every command there is.
const LINES: &[&str] = &[
    "view a.txt",
    "view a.txt sub/b.rs",
    "view --raw a.txt",
    "view .",
    "view private/key",
    "view a.txt private/key",
    "view priv*/key",
    "view /etc/hostname",
    "view /etc/shadow",
    "view /srv/elsewhere/x",
    "view --help",
    "view",
    "write new.txt x",
    "write ./sub/new.txt x",
    "write private/new x",
    "write .git/hooks/x x",
    "write --help",
    "edit a.txt one two",
    "edit private/key k l",
    "edit a.txt <<'END'\n<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE\nEND",
    "printf '<<<<<<< SEARCH\\none\\n=======\\ntwo\\n>>>>>>> REPLACE\\n' | edit a.txt",
    "echo 3 | write sub/piped.txt",
    "echo 3 | json_edit set d.json '$.a'",
    "json_edit view d.json '$.a'",
    "json_edit set d.json '$.a' 2",
    "json_edit set private/d.json '$.a' 2",
    PATCH,
    PRIVATE,
    "search one",
    "search one private",
    "search -l one sub",
    "glob '*.txt'",
    "glob '*' private",
    "list",
    "list private",
    "code map",
    "ckg search_function main",
    "think 'hm'",
    "todo",
    "todo 'a step'",
    "memory 'a fact'",
    "remember 'a fact'",
    "memory --scope project 'a fact'",
    "ask 'why?'",
    "commands",
    "jobs",
    "jobs list",
    "field",
    "task_done 'ok'",
];

const MODES: [&str; 4] = ["plan", "default", "auto-edit", "full-auto"];

fn checked(lathe: &Lathe, repo: &TempRepo, mode: &str, lines: &[&str]) -> Vec<Value> {
    let input: String = lines.iter().map(|line| format!("{}\n", json!(line))).collect();
    let words = ["policy", "check", "--json", "--mode", mode];
    let ran = lathe.clone().in_dir(repo.path()).args(words).stdin(input).run().expect_code(0);
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The exit codes of lines that run one after the other in one shell, without a user who could be asked.
fn ran(lathe: &Lathe, repo: &TempRepo, mode: &str, lines: &[&str]) -> Vec<i32> {
    let line: String = lines.iter().map(|line| format!("{line}\necho \"code=$?\"\n")).collect();
    let ran = lathe.clone().in_dir(repo.path()).args(["shell", "--mode", mode, "-c", &line]).run();
    let codes = ran.stdout.lines().filter_map(|line| line.strip_prefix("code=")?.parse().ok());
    let codes: Vec<i32> = codes.collect();
    assert_eq!(codes.len(), lines.len(), "{mode}\n{}\n{}", ran.stdout, ran.stderr);
    codes
}

#[test]
fn every_command_of_the_agent_is_checked_as_it_is_decided_when_it_runs() {
    let lathe = lathe();
    std::fs::create_dir_all(lathe.home().join("policy")).unwrap();
    let rule = "[[rule]]\ndecision = \"deny\"\npath = [\"private\"]\n";
    for rules in ["", rule] {
        std::fs::write(lathe.home().join("policy/mine.toml"), rules).unwrap();
        for mode in MODES {
            let repo = TempRepo::with_git(&FILES);
            let said = checked(&lathe, &repo, mode, LINES);
            let codes = ran(&lathe, &repo, mode, LINES);
            let differs = said
                .iter()
                .zip(&codes)
                .filter(|(said, code)| (said["decision"] == "allow") != (**code != 126));
            let differs: Vec<String> = differs.map(|(said, code)| format!("{code}: {said}")).collect();
            assert_eq!(differs, Vec::<String>::new(), "{mode} {rules:?}");
        }
    }
    // No command is left out.
    let repo = TempRepo::new(&[]);
    let listed =
        lathe.clone().in_dir(repo.path()).args(["shell", "-c", "commands"]).run().expect_code(0).stdout;
    let names: Vec<&str> =
        listed.lines().filter_map(|line| line.split_once(": ")).map(|(name, _)| name).collect();
    assert!(names.len() > 15, "{listed}");
    let tried = |name: &&str| LINES.iter().any(|line| line.split_whitespace().next() == Some(name));
    assert_eq!(names.iter().filter(|name| !tried(name)).collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn a_check_tells_the_question_from_the_denial_and_names_the_reason() {
    let (lathe, repo) = (lathe(), TempRepo::with_git(&FILES));
    std::fs::create_dir_all(lathe.home().join("policy")).unwrap();
    let rule = "[[rule]]\ndecision = \"deny\"\npath = [\"private\"]\n\n[[rule]]\ndecision = \"deny\"\ntool = [\"list\"]\n";
    std::fs::write(lathe.home().join("policy/mine.toml"), rule).unwrap();
    for (mode, line, decision, because) in [
        ("plan", "write f x", "deny", "mode.plan"),
        ("default", "write f x", "ask", "builtin.changes"),
        ("auto-edit", "write f x", "allow", "builtin.agent"),
        ("plan", "ls && write f x", "deny", "`write f x`"),
        ("plan", "echo x | write f", "deny", "mode.plan"),
        ("plan", "write \"$x\" y", "deny", "mode.plan"),
        ("plan", "ls | xargs write", "deny", "mode.plan"),
        ("plan", "for f in a b; do write $f x; done", "deny", "mode.plan"),
        ("plan", "view \"$x\"", "allow", "builtin.agent"),
        ("full-auto", "view private/key", "deny", "mine.toml:1"),
        ("full-auto", "cd private && view key", "deny", "mine.toml:1"),
        ("full-auto", "write private/x y", "deny", "mine.toml:1"),
        ("full-auto", "list", "deny", "mine.toml:5"),
        ("full-auto", "memory fact", "ask", "floor.memory"),
        ("default", "jobs", "allow", "only looks"),
        ("default", "jobs kill 1", "ask", "default"),
        ("plan", "jobs -x touch f", "deny", "touch f"),
    ] {
        let said = &checked(&lathe, &repo, mode, &[line])[0];
        assert_eq!(said["decision"], decision, "{mode}: {said}");
        assert!(said["because"].as_str().unwrap().contains(because), "{mode}: {said}");
    }
    // Each of these is what a session does, by itself.
    for (line, codes) in [("list", [126; 4]), ("jobs", [0; 4]), ("write f x", [126, 126, 0, 0])] {
        for (mode, code) in MODES.into_iter().zip(codes) {
            let ran = lathe.clone().in_dir(repo.path()).args(["shell", "--mode", mode, "-c", line]).run();
            assert_eq!(ran.code, code, "{mode}: {line}\n{}", ran.stderr);
        }
    }
}
