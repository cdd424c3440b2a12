//! Any text as a shell line: no panic, no hang, and no permission for text that bash does not read as text.
#![no_main]

use std::sync::LazyLock;

use lathe_policy::{Gate, OnDisk, Rulebook, ShellSwitches};
use lathe_protocol::{Actor, Mode, Verdict};
use libfuzzer_sys::fuzz_target;

static RULES: LazyLock<Rulebook> = LazyLock::new(Rulebook::builtin);

fuzz_target!(|line: &str| {
    let gate = Gate {
        home: "/h/.lathe".into(),
        root: "/w".into(),
        user_home: Some("/home/me".into()),
        here: Some("/w".into()),
        outputs: None,
        headless: false,
        disk: OnDisk::default(),
        switched: ShellSwitches::default(),
    };
    let decided = gate.decide_line(&RULES, Actor::Model, Mode::Default, line);
    let hidden = line.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
    assert!(!hidden || decided.decision.verdict > Verdict::Allow);
});
