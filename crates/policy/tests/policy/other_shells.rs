//! Texts for shells that are not bash: a word that only they expand may be any denied file, or any denied program.

use lathe_policy::{Rulebook, Tier};
use lathe_protocol::Verdict;

use crate::reads::{Known, book, gate, wrong};

#[test]
fn a_denied_file_is_denied_by_the_patterns_of_other_shells() {
    let gate = gate(&[("/w/secret.txt", Known::Tracked, None), ("/w/a.txt", Known::Tracked, None)]);
    let lines = [
        "zsh -c 'cat s(e|x)cret.txt'",
        "zsh -c 'setopt extendedglob; cat ^a*'",
        "zsh -c 'cat *~a.txt'",
        "fish -c 'cat se\\x63ret.txt'",
        "fish -c 'cat sec(echo ret).txt'",
        "fish -c 'cat (ls)'",
        "echo 'cat se\\x63ret.txt' | fish",
        "fish <<< 'cat sec(echo ret).txt'",
        "tcsh -c 'cat ^a*'",
        "csh -c 'cat ^a*'",
        "ksh -c 'cat ~(i)SECRET.txt'",
        "mksh -c 'cat +(s|e|c|r|t).txt'",
        "nu -c 'open (ls | get 1.name)'",
        "pwsh -c 'cat sec`ret.txt'",
        "pwsh -Command 'cat (ls)'",
        "rc -c 'cat sec^ret.txt'",
        "elvish -c 'cat (ls)'",
        "xonsh -c 'cat @(x)'",
    ];
    assert_eq!(wrong(&gate, &book("secret.txt"), Verdict::Deny, &lines), [""; 0]);
    let free = [
        "zsh -c 'cat a.txt'",
        "fish -c 'cat a.txt; echo done'",
        "fish -c 'echo \"(a)\"'",
        "tcsh -c 'cat a.txt'",
        "ksh -c 'cat a.txt'",
        "nu -c 'open a.txt'",
        "pwsh -c 'cat a.txt'",
    ];
    assert_eq!(wrong(&gate, &book("secret.txt"), Verdict::Allow, &free), [""; 0]);
}

#[test]
fn a_denied_program_is_denied_by_the_spellings_of_other_shells() {
    let rule = "[[rule]]\ndecision = \"deny\"\ncommand = [\"touch\"]\n";
    let rules = Rulebook::builtin().with_file(Tier::User, "f.toml", rule).unwrap();
    let gate = gate(&[("/w/a.txt", Known::Tracked, None)]);
    let lines = [
        "fish -c 'tou\\x63h m'",
        "fish -c 'tou(echo ch) m'",
        "fish -c 'echo (touch m)'",
        "echo 'tou\\x63h m' | fish",
        "nu -c '^touch m'",
        "nu --commands '^touch m'",
        "pwsh -c 'tou`ch m'",
        "pwsh -NoProfile -Command 'tou`ch m'",
        "pwsh -EncodedCommand dABvAHUAYwBoAA==",
        "zsh -c '=touch m'",
        "rc -c 'tou^ch m'",
        "es -c 'tou^ch m'",
        "xonsh -c '@(x) m'",
    ];
    assert_eq!(wrong(&gate, &rules, Verdict::Deny, &lines), [""; 0]);
    let free =
        ["nu -c '^cat a.txt'", "fish -c 'cat a.txt'", "zsh -c 'ls *.txt'", "pwsh -c 'ls'", "tcsh -c 'ls'"];
    assert_eq!(wrong(&gate, &rules, Verdict::Allow, &free), [""; 0]);
}
