//! A rule about reading reaches the content of a file that git shows, `policy check` decides as a session does, and
//! links of a process lead nowhere that the file tools do not see (issue 15).

use lathe_policy::{Gate, GateCall, Rulebook, Tier};
use lathe_protocol::{Actor, Effects, Mode, ToolKind, Verdict};

use crate::corpus::gate as anywhere;

fn session() -> Gate {
    Gate { here: Some("/w".into()), user_home: Some("/home/me".into()), ..anywhere() }
}

fn rules(path: &str) -> Rulebook {
    let rule = format!("[[rule]]\ndecision = \"deny\"\nkind = \"read\"\n{path}reason = \"not read\"\n");
    Rulebook::builtin().with_file(Tier::User, "rules.toml", &rule).unwrap()
}

/// Commands that show the content of `secret.txt`.
const SHOWN: &[&str] = &[
    "cat secret.txt",
    "cat < secret.txt",
    "git show HEAD:secret.txt",
    "git show :secret.txt",
    "git show :0:secret.txt",
    "git show HEAD:./secret.txt",
    "git show HEAD -- secret.txt",
    "git blame secret.txt",
    "git annotate secret.txt",
    "git cat-file -p HEAD:secret.txt",
    "git cat-file blob HEAD:./secret.txt",
    "git diff -- secret.txt",
    "git diff secret.txt",
    "git log -p -- secret.txt",
    "git grep x -- secret.txt",
    "git archive HEAD secret.txt",
    "git checkout -p secret.txt",
    "git-show HEAD:secret.txt",
    "git --no-pager show HEAD:secret.txt",
    "cat /proc/self/cwd/secret.txt",
    "cat /proc/$$/cwd/secret.txt",
    "cd /proc/self/cwd; cat secret.txt",
];

#[test]
fn a_rule_about_reading_reaches_what_git_shows() {
    let rules = rules("path = \"/w/secret.txt\"\n");
    for line in SHOWN {
        let decided = session().decide_line(&rules, Actor::Model, Mode::FullAuto, line).decision;
        assert_eq!(decided.verdict, Verdict::Deny, "{line}: {}", decided.rule);
    }
    for line in ["git show HEAD:other.txt", "git blame other.txt", "git status", "git log", "cat other.txt"] {
        let decided = session().decide_line(&rules, Actor::Model, Mode::FullAuto, line).decision;
        assert_eq!(decided.verdict, Verdict::Allow, "{line}: {}", decided.rule);
    }
}

#[test]
fn a_check_without_a_session_says_the_same() {
    let nowhere = Gate { here: None, ..session() };
    for rules in [rules(""), rules("path = \"secret.txt\"\n")] {
        // Links of a process are refused before any rule is tried.
        let shown = SHOWN.iter().filter(|line| !line.contains("/proc"));
        for line in shown.chain(&["echo a", "ls", "git status", "make", "head -3 a", "sed -n 1p a"]) {
            let said = |gate: &Gate| {
                gate.decide_line(&rules, Actor::Model, Mode::FullAuto, line).decision.rule == "rules.toml:1"
            };
            assert_eq!(said(&nowhere), said(&session()), "{line}");
        }
    }
}

#[test]
fn links_of_a_process_are_one_thing_to_lines_and_file_tools() {
    let (gate, rules) = (session(), Rulebook::builtin());
    for path in [
        "/proc/self/cwd/a",
        "/proc/self/root/w/a",
        "/proc/1/cwd/a",
        "/proc/thread-self/cwd/a",
        "/proc/self/cwd/sub/../a",
        "/proc/self/fd/3",
        "/proc/self/environ",
        "/dev/fd/3",
        "/dev/fd/../cwd/a",
        "/w/a",
    ] {
        for mode in Mode::ALL {
            let effects = Effects::reading(path);
            let call = GateCall {
                tool: "read",
                also: &[],
                kind: ToolKind::Read,
                kinds: &[],
                effects: &effects,
                arguments: &[],
            };
            let tool = gate.decide_call(&rules, Actor::Model, mode, &call).verdict;
            for line in [format!("cat {path}"), format!("head -3 < {path}"), format!("grep x {path}")] {
                let decided = gate.decide_line(&rules, Actor::Model, mode, &line).decision;
                assert_eq!(decided.verdict, tool, "{line} in {mode:?}: {}", decided.rule);
            }
        }
    }
}
