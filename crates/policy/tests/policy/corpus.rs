//! The corpus: lines with the decision that is right under `corpus/rules.toml`.

use lathe_policy::{Gate, Rulebook, Tier};
use lathe_protocol::{Actor, Mode, Verdict};
use serde_json::Value;

pub(crate) fn gate() -> Gate {
    Gate {
        home: "/h/.lathe".into(),
        root: "/w".into(),
        user_home: None,
        here: None,
        outputs: None,
        headless: false,
        disk: lathe_policy::OnDisk::default(),
        switched: lathe_policy::ShellSwitches::default(),
        walls: lathe_policy::Walls::None,
    }
}

pub(crate) fn rules() -> Rulebook {
    Rulebook::empty().with_file(Tier::User, "rules.toml", include_str!("../corpus/rules.toml")).unwrap()
}

/// The result for a list of lines: decisions that are too weak, decisions that are too strict, and the number of
/// lines.
fn compare(rules: &Rulebook, corpus: &str) -> (Vec<String>, Vec<String>, usize) {
    let (mut weaker, mut stricter, mut all) = (Vec::new(), Vec::new(), 0);
    for entry in corpus.lines() {
        let entry: Value = serde_json::from_str(entry).unwrap();
        let right = match entry["decision"].as_str().unwrap() {
            "allow" => Verdict::Allow,
            "ask" => Verdict::Ask,
            _ => Verdict::Deny,
        };
        let line = entry["command"].as_str().unwrap();
        let decided = gate().decide_line(rules, Actor::Model, Mode::Default, line).decision;
        let told = format!(
            "{:?} instead of {right:?} by {} ({}): {line:?}",
            decided.verdict, decided.rule, decided.reason
        );
        all += 1;
        match decided.verdict.cmp(&right) {
            std::cmp::Ordering::Less => weaker.push(told),
            std::cmp::Ordering::Greater => stricter.push(told),
            std::cmp::Ordering::Equal => {}
        }
    }
    (weaker, stricter, all)
}

/// Found by attacking the built-in rules: options that write or run, by program, and the oddities of bash's syntax.
#[test]
fn no_attack_on_the_built_in_rules_is_decided_weaker() {
    let (weaker, stricter, all) = compare(&Rulebook::builtin(), include_str!("../corpus/builtin.jsonl"));
    assert!(all >= 900, "{all}");
    assert_eq!(weaker, Vec::<String>::new());
    assert!(stricter.len() * 50 <= all, "{} of {all} are stricter: {stricter:#?}", stricter.len());
}

#[test]
fn no_line_of_the_corpus_is_decided_weaker_and_few_are_stricter() {
    let (weaker, stricter, all) = compare(&rules(), include_str!("../corpus/lines.jsonl"));
    assert!(all >= 450, "{all}");
    assert_eq!(weaker, Vec::<String>::new());
    assert!(stricter.len() * 50 <= all, "{} of {all} are stricter: {stricter:#?}", stricter.len());
}
