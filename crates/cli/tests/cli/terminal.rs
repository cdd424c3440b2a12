//! Output on a terminal: no control character that is not Lathe's own, whatever files, names and commands contain.

use std::io::Write;
use std::process::{Command, Stdio};

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::json;

use crate::lathe;

/// Runs a line in a terminal of its own, and gives all that reached it.
fn on_a_terminal(repo: &TempRepo, home: &std::path::Path, line: &str) -> Vec<u8> {
    let mut shell = Command::new("script")
        .args(["-qefc", line, "/dev/null"])
        .current_dir(repo.path())
        .env("LATHE_HOME", home)
        .env("LATHE_SANDBOX", "off")
        .env("TERM", "xterm")
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A terminal without a user who types: questions get no answer.
    shell.stdin.take().unwrap().flush().unwrap();
    shell.wait_with_output().unwrap().stdout
}

/// Everything but line ends, tabs and Lathe's own colours.
fn foreign_controls(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut found = Vec::new();
    let mut rest = text.as_ref();
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("\u{1b}[") {
            let end = after.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(after.len());
            if after[end..].starts_with('m') {
                rest = &after[end + 1..];
                continue;
            }
        }
        if (c.is_control() && !matches!(c, '\n' | '\t' | '\r'))
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{200b}'..='\u{200f}')
        {
            found.push(format!("{c:?} before {:?}", rest.chars().skip(1).take(20).collect::<String>()));
        }
        rest = &rest[c.len_utf8()..];
    }
    found
}

#[test]
fn no_control_of_a_file_a_name_or_a_command_reaches_the_terminal() {
    let nasty = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[1;1H\u{9b}31m\u{202e}txet\u{200b}\u{8}\u{b}\0end";
    let repo = TempRepo::new(&[("a.txt", &format!("first\n{nasty}\nlast\n"))]);
    let name = "odd\u{1b}]0;name\u{7}\u{202e}.txt";
    std::fs::write(repo.path().join(name), "x\n").unwrap();
    let model = FakeModel::serving(
        Script::new()
            .answer(call("c1", "bash", json!({ "command": "cat a.txt; ls; echo new > odd*; cat a.txt >&2" })))
            .answer(call("c2", "view", json!({ "path": "." })).call(
                "c3",
                "search",
                json!({ "pattern": "end|x" }),
            ))
            .answer(call("c4", "edit", json!({ "path": "a.txt", "old_str": "last", "new_str": nasty })))
            .answer(done(nasty)),
    );
    let lathe_home = lathe();
    std::fs::create_dir_all(lathe_home.home()).unwrap();
    let binary = env!("CARGO_BIN_EXE_lathe");
    let run = format!(
        "exec {binary} run 'look' --mode full-auto --model-base-url {} --model fake --api-key {}",
        model.base_url(),
        model.key()
    );
    let task = format!("exec {binary} show");
    for line in [
        run.as_str(),
        task.as_str(),
        &format!("exec {binary} diff"),
        &format!("exec {binary} sessions"),
        &format!("exec {binary} rewind --to 0 --preview"),
        &format!("exec {binary} tool run bash --json '{{\"command\": \"cat a.txt; ls\"}}'"),
        &format!("exec {binary} tool run view --json '{{\"path\": \"a.txt\"}}'"),
        &format!("exec {binary} tool run glob --json '{{\"pattern\": \"*\"}}'"),
        &format!("exec {binary} policy check \"$(cat a.txt | tr -d '\\\\0')\""),
        &format!("exec {binary} tool run \"$(cat a.txt | tr -d '\\\\0')\" --json '{{}}'"),
    ] {
        let seen = on_a_terminal(&repo, &lathe_home.home(), line);
        assert!(!seen.is_empty(), "{line}");
        assert_eq!(
            foreign_controls(&seen),
            Vec::<String>::new(),
            "{line}\n{}",
            String::from_utf8_lossy(&seen).escape_debug()
        );
    }
    assert_eq!(model.violations(), Vec::<String>::new());
}
