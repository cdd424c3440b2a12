//! The table of common lines in `docs/policy.md` says what is decided.

use lathe_policy::Rulebook;
use lathe_protocol::{Actor, Mode, Verdict};

use crate::corpus::gate;

const DOCS: &str = include_str!("../../../../docs/policy.md");

#[test]
fn the_hundred_common_lines_are_decided_as_documented() {
    let table = DOCS.split("<!-- common lines -->").nth(1).unwrap();
    let (rules, mut count, mut wrong) = (Rulebook::builtin(), 0, Vec::new());
    for row in table.lines().filter(|row| row.starts_with("| `")) {
        let (line, said) = row[3..].split_once("` | ").unwrap();
        let line = line.replace("\\|", "|");
        let decided = gate().decide_line(&rules, Actor::Model, Mode::Default, &line).decision;
        let word = match decided.verdict {
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
        };
        if !said.starts_with(word) {
            wrong.push(format!("{line}: {said} but {word} by {} ({})", decided.rule, decided.reason));
        }
        count += 1;
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(count >= 100, "{count}");
}

#[test]
fn the_built_in_rules_are_in_the_documentation() {
    assert!(
        DOCS.contains(Rulebook::builtin_text().trim()),
        "copy crates/policy/rules/builtin.toml into docs/policy.md"
    );
}
