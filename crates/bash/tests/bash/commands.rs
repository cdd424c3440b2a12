//! The commands that are found, and the doubts about them.

use lathe_bash::{FloorRule, RedirectKind, Script, Word, read};

fn shown(words: &[Word]) -> String {
    words.iter().map(Word::show).collect::<Vec<_>>().join(" ")
}

/// Commands in the order of their names, because nested ones may be found later. Texts that only may be evaluated are
/// not commands of the line.
fn found(script: &Script) -> Vec<String> {
    let mut found: Vec<String> = script
        .commands
        .iter()
        .filter(|command| !command.words.is_empty() && !command.evaluated)
        .map(|command| shown(&command.words))
        .collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn every_command_is_found_wherever_it_stands() {
    for (text, commands) in [
        ("a 1; b 2", vec!["a 1", "b 2"]),
        ("a && b || c & d", vec!["a", "b", "c", "d"]),
        ("a | b |& c", vec!["a", "b", "c"]),
        ("(a; b)", vec!["a", "b"]),
        ("{ a; b; }", vec!["a", "b"]),
        ("! a", vec!["a"]),
        ("if a; then b; elif c; then d; else e; fi", vec!["a", "b", "c", "d", "e"]),
        ("while a; do b; done", vec!["a", "b"]),
        ("for i in $(a) `b`; do c; done", vec!["a", "b", "c"]),
        ("for ((i=$(a); i<3; i++)); do b; done", vec!["a", "b"]),
        ("case $(a) in x) b;; *) c;; esac", vec!["a", "b", "c"]),
        ("f() { a; }", vec!["a"]),
        ("function f { a; }", vec!["a"]),
        ("x=$(a) b", vec!["a", "b"]),
        ("x=(1 $(a))", vec!["a"]),
        ("export x=$(a)", vec!["a", "export x=$(a)"]),
        ("b $(a)", vec!["a", "b $(…)"]),
        ("b \"x $(a) y\"", vec!["a", "b x $(…) y"]),
        ("b ${x:-$(a)}", vec!["a", "b ${x…}"]),
        ("b $((1 + $(a)))", vec!["a", "b $((…))"]),
        ("b <(a) >(c)", vec!["a", "b <(…) <(…)", "c"]),
        ("b < <(a)", vec!["a", "b"]),
        ("b > $(a)", vec!["a", "b"]),
        ("b <<< $(a)", vec!["a", "b"]),
        ("b <<E\n$(a)\nE", vec!["a", "b"]),
        ("b <<E | c\nx\nE", vec!["b", "c"]),
        ("b <<E && c\nx\nE", vec!["b", "c"]),
        ("b <<'E'\n$(a)\nE", vec!["b"]),
        ("[ -f $(a) ]", vec!["[ -f $(…) ]", "a"]),
        ("[[ -f $(a) ]]", vec!["a"]),
        ("((x = $(a)))", vec!["a"]),
        ("a > x b c", vec!["a b c"]),
        ("> x a b", vec!["a b"]),
        ("a 2>&1 | b", vec!["a", "b"]),
        ("eval 'a; b'", vec!["a", "b", "eval a; b"]),
        ("bash -c 'a | b'", vec!["a", "b", "bash -c a | b"]),
        ("sudo env X=1 a b", vec!["a b", "env X=1 a b", "sudo env X=1 a b"]),
        ("echo a b | sh", vec!["a b", "echo a b", "sh"]),
        ("echo x | xargs a -0", vec!["a -0", "a -0 x", "echo x", "xargs a -0"]),
    ] {
        assert_eq!(found(&read(text)), commands, "{text}");
    }
}

#[test]
fn words_lose_their_quotes_as_in_bash() {
    for (text, words) in [
        ("a 'b c' \"d e\" f\\ g", vec!["a", "b c", "d e", "f g"]),
        ("a 'it'\\''s'", vec!["a", "it's"]),
        ("a $'x\\ty\\x41\\101\\u0042'", vec!["a", "x\tyAAB"]),
        ("a \"\\$x \\` \\\" \\n\"", vec!["a", "$x ` \" \\n"]),
        ("a '' \"\"", vec!["a", "", ""]),
        ("a b''c\"\"d", vec!["a", "bcd"]),
        ("a x{1,2}y", vec!["a", "x1y", "x2y"]),
        ("a HEAD@{1} {} {x}", vec!["a", "HEAD@{1}", "{}", "{x}"]),
        ("a b#c", vec!["a", "b#c"]),
        ("a b # c", vec!["a", "b"]),
        ("a b==c --x=y", vec!["a", "b==c", "--x=y"]),
    ] {
        let script = read(text);
        let literal: Vec<&str> = script.commands[0].words.iter().filter_map(Word::literal).collect();
        assert_eq!(literal, words, "{text}");
        assert!(script.floors.is_empty(), "{text}: {:?}", script.floors);
    }
}

#[test]
fn what_bash_and_the_grammar_read_differently_is_doubted() {
    for text in [
        "l\\\ns",
        "\\ ls",
        "{ls;}",
        "echo $'a\\'",
        "echo {fd}>x",
        "ls ;; ls",
        "((ls))x",
        "echo $((ls) | cat)",
        "then ls",
        "cat <<\"E F\"\nx\nE F",
        "$\"x\"",
        "echo `echo \\`ls\\``",
        "ls <> x",
        "echo (",
        "if ls",
        "\u{b}ls",
        "ls\r\n",
    ] {
        assert!(!read(text).floors.is_empty(), "{text:?}");
    }
}

#[test]
fn redirections_are_told_apart() {
    let script = read("a <<< text < in > out 2>&1 >> log >&2");
    let kinds: Vec<RedirectKind> =
        script.commands[0].redirects.iter().map(|redirect| redirect.kind).collect();
    for kind in [RedirectKind::Read, RedirectKind::Write, RedirectKind::Duplicate, RedirectKind::Text] {
        assert!(kinds.contains(&kind), "{kind:?} in {kinds:?}");
    }
    let floors = &script.commands[0].floors;
    assert_eq!(floors.iter().filter(|floor| floor.rule == FloorRule::Redirection).count(), 2);
}

#[test]
fn effects_are_told() {
    let effects = |text: &str| read(text).commands[0].effects();
    assert_eq!(effects("cat a b").reads, ["a", "b"]);
    assert_eq!(effects("cp a b").writes, ["a", "b"]);
    assert_eq!(effects("ls > out").writes, ["out"]);
    assert_eq!(effects("cargo test").programs, ["cargo"]);
    assert_eq!(effects("curl http://x").hosts, ["http://x"]);
    assert_eq!(effects("X=1 ls").environment, ["X"]);
    assert!(!effects("git log --oneline").change_something());
    assert!(effects("git log --output=x").change_something());
    assert!(effects("unheard-of").change_something());
    assert!(effects("$x").change_something());
}

#[test]
fn nul_is_not_read_past() {
    let script = read("ls\0rm");
    assert!(script.commands.is_empty());
    assert!(script.floors.iter().any(|floor| floor.rule == FloorRule::Character));
}
