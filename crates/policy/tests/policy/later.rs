//! Issue 15: a line does not decide what later lines run. Functions that the shell calls by itself, variables by
//! which it runs a file first, its own names; and a file that is sourced is a program that runs.

use lathe_policy::{Gate, Rulebook, Tier};
use lathe_protocol::{Actor, Mode, Verdict};

use crate::corpus::gate as anywhere;

fn decided(rules: &Rulebook, line: &str) -> (Verdict, String) {
    let gate = Gate { here: Some("/w".into()), user_home: Some("/home/me".into()), ..anywhere() };
    let decided = gate.decide_line(rules, Actor::Model, Mode::FullAuto, line).decision;
    (decided.verdict, decided.rule)
}

/// Lines that change what later lines mean. They are only read here.
const CHANGES: &[&str] = &[
    "command_not_found_handle() { ./x; }; zz",
    "command_not_found_handle() ( ./x )",
    "function command_not_found_handle { ./x; }",
    "command_not_found_handler() { ./x; }",
    "eval 'command_not_found_handle() { ./x; }'",
    "preexec() { ./x; }",
    "PROMPT_COMMAND=./x",
    "export PROMPT_COMMAND=./x",
    "trap ./x DEBUG",
    "trap ./x debug",
    "trap -- ./x SIGDEBUG",
    "BASH_ENV=./x",
    "export BASH_ENV=./x",
    "declare -x BASH_ENV=./x",
    "ENV=./x",
    "PS4='$(./x)'; set -x",
    "PS1='`./x`'",
    "export LD_PRELOAD=./x.so",
    "export GIT_CONFIG_GLOBAL=./x",
    "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.pager GIT_CONFIG_VALUE_0=./x",
    "export GIT_EXEC_PATH=./x",
    "cd() { builtin cd ..; }",
    "builtin() { ./x; }",
    "source() { ./x; }",
    "alias cd='cd ..'",
];

/// Lines that do not.
const KEEPS: &[&str] = &[
    "BASH_ENV=./x bash run.sh",
    "LD_PRELOAD=./x.so ls",
    "GIT_CONFIG_GLOBAL=./x git status",
    "export GIT_CONFIG_GLOBAL=/dev/null",
    "export ENV=production",
    "PS4='+ '; set -x",
    "trap 'rm -f a' EXIT",
    "trap - DEBUG",
    "handle() { ./x; }",
    "alias ll='ls -la'",
];

#[test]
fn no_line_decides_what_later_lines_run() {
    let rules = Rulebook::builtin();
    let wrong: Vec<_> = CHANGES
        .iter()
        .map(|line| (line, decided(&rules, line)))
        .filter(|(_, said)| *said != (Verdict::Deny, "guard.meaning".to_owned()))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let wrong: Vec<_> = KEEPS
        .iter()
        .map(|line| (line, decided(&rules, line)))
        .filter(|(_, said)| said.0 != Verdict::Allow)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_sourced_file_is_a_program_that_runs() {
    let rule = "[[rule]]\ndecision = \"deny\"\ncommand = \"./f.sh\"\nreason = \"not run\"\n";
    let rules = Rulebook::builtin().with_file(Tier::User, "rules.toml", rule).unwrap();
    for line in [
        "./f.sh",
        "/w/f.sh",
        "sub/../f.sh a",
        ". ./f.sh; zz",
        ". f.sh",
        "source f.sh",
        "source /w/f.sh a b",
        "bash ./f.sh",
        "bash -x f.sh",
        "sh < f.sh",
        "env ./f.sh",
        "timeout 5 bash f.sh",
        "f=f.sh; . ./$f",
    ] {
        assert_eq!(decided(&rules, line).0, Verdict::Deny, "{line}");
    }
    for line in ["cat f.sh", "bash g.sh", ". ./g.sh", "grep x f.sh"] {
        assert_eq!(decided(&rules, line).0, Verdict::Allow, "{line}");
    }
}
