//! Lines and calls behind walls: what is asked about at level 3, and what is not.

use lathe_policy::{Gate, GateCall, Rulebook, Tier, Walls};
use lathe_protocol::{Actor, Decision, Effects, Mode, ToolKind, Verdict};

const DOCS: &str = include_str!("../../../../docs/policy.md");
const DESTROYING: &str = include_str!("../corpus/destroying.txt");
const HARMLESS: &str = include_str!("../corpus/harmless.txt");

/// A session at level 3, in `/srv/work/repo`.
fn walled() -> Gate {
    Gate { walls: Walls::Around { writable: Vec::new() }, ..crate::gate(false) }
}

fn rules() -> Rulebook {
    Rulebook::builtin().with_own_commands(["view", "write", "edit"].map(str::to_owned))
}

fn decided_by(gate: &Gate, rules: &Rulebook, mode: Mode, line: &str) -> Decision {
    gate.decide_line(rules, Actor::Model, mode, line).decision
}

fn decided(line: &str) -> Decision {
    decided_by(&walled(), &rules(), Mode::Default, line)
}

/// The lines that are not decided in this way, each with the rule that decided.
fn others<'a>(lines: impl IntoIterator<Item = &'a str>, right: impl Fn(&Decision) -> bool) -> Vec<String> {
    let told = |line: &str| {
        let decided = decided(line);
        (!right(&decided))
            .then(|| format!("{line}: {:?} by {} ({})", decided.verdict, decided.rule, decided.reason))
    };
    lines.into_iter().filter_map(told).collect()
}

/// The rows of a table in the docs: each line with its decision.
fn table(begin: &str, end: &str) -> Vec<(String, String)> {
    let table = DOCS.split(begin).nth(1).unwrap().split(end).next().unwrap();
    let row = |row: &str| {
        let (line, said) = row[3..].split_once("` | ").unwrap();
        (line.replace("\\|", "|").replace('⏎', "\n"), said.trim_end_matches([' ', '|']).to_owned())
    };
    table.lines().filter(|row| row.starts_with("| `")).map(row).collect()
}

const EVERYDAY: &str = "<!-- everyday lines behind walls -->";
const REACHING: &str = "<!-- lines that reach out -->";
const END: &str = "<!-- end of the lines behind walls -->";

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask => "ask",
        Verdict::Deny => "deny",
    }
}

fn wrong_rows(rows: &[(String, String)]) -> Vec<String> {
    let told = |(line, said): &(String, String)| {
        let decided = decided(line);
        (word(decided.verdict) != said)
            .then(|| format!("{line}: {said}, but {:?} by {}", decided.verdict, decided.rule))
    };
    rows.iter().filter_map(told).collect()
}

#[test]
fn of_a_hundred_everyday_lines_in_the_docs_at_most_five_ask() {
    let rows = table(EVERYDAY, REACHING);
    assert_eq!(wrong_rows(&rows), [""; 0]);
    let allowed = rows.iter().filter(|(_, said)| said == "allow").count();
    assert_eq!((rows.len(), allowed >= 95), (100, true), "{allowed}");
}

#[test]
fn of_a_hundred_lines_in_the_docs_that_reach_out_none_is_allowed() {
    let rows = table(REACHING, END);
    assert_eq!(wrong_rows(&rows), [""; 0]);
    let allowed = rows.iter().filter(|(_, said)| said == "allow").count();
    assert_eq!((rows.len(), allowed), (100, 0));
}

#[test]
fn plan_full_auto_and_a_persons_own_lines_are_as_without_walls() {
    let (with, without, rules) = (walled(), crate::gate(false), rules());
    let rows = [table(EVERYDAY, REACHING), table(REACHING, END)].concat();
    let lines = rows.iter().map(|(line, _)| line.as_str()).chain(HARMLESS.lines());
    // Behind walls these are no longer denied; see below.
    let guesses = ["rm -rf \"$BUILD_DIR\"/*", "export PATH=\"$PWD/node_modules/.bin:$PATH\""];
    let mut wrong = Vec::new();
    for line in lines.filter(|line| !guesses.contains(line)) {
        for (actor, mode) in [
            (Actor::Model, Mode::Plan),
            (Actor::Model, Mode::FullAuto),
            (Actor::Person, Mode::Default),
            (Actor::Person, Mode::FullAuto),
        ] {
            let one = with.decide_line(&rules, actor, mode, line);
            if one != without.decide_line(&rules, actor, mode, line) {
                wrong.push(format!("{line} ({actor:?}, {mode:?}): {:?}", one.decision));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn a_project_and_auto_edit_are_eased_too() {
    for (actor, mode) in [(Actor::Project, Mode::Default), (Actor::Model, Mode::AutoEdit)] {
        for (line, verdict) in [("mytool > a.txt", Verdict::Allow), ("git push", Verdict::Ask)] {
            let decided = walled().decide_line(&rules(), actor, mode, line).decision;
            assert_eq!(decided.verdict, verdict, "{line} {actor:?} {mode:?}");
        }
    }
}

#[test]
fn without_a_user_a_question_is_a_denial() {
    let gate = Gate { headless: true, ..walled() };
    let decided = |line: &str| decided_by(&gate, &rules(), Mode::Default, line);
    assert_eq!(decided("./build.sh > log").verdict, Verdict::Allow);
    let push = decided("git push");
    assert_eq!((push.verdict, push.rule.as_str()), (Verdict::Deny, "headless"));
}

/// Lines that the guard denies without walls for what it can only guess.
const GUESSES: [&str; 5] = [
    "rm -rf \"$dir\"/*",
    "export PATH=$PWD/bin:$PATH",
    "export PATH=\"$(go env GOPATH)/bin:$PATH\"",
    "mytool --then 'lathe serve'",
    "eval \"$x\"; echo 'rm -rf /'",
];

#[test]
fn what_is_only_guessed_is_not_denied_where_the_walls_hold_it() {
    let (without, rules) = (crate::gate(false), rules());
    for line in GUESSES {
        for mode in [Mode::Default, Mode::FullAuto] {
            assert_eq!(decided_by(&without, &rules, mode, line).verdict, Verdict::Deny, "{line}");
            let behind = decided_by(&walled(), &rules, mode, line);
            assert_eq!(behind.verdict, Verdict::Allow, "{line}: {}", behind.reason);
        }
    }
    // These are questions behind walls, where questions are asked.
    for line in
        ["git $x", "git $(cat a)", "git config $(cat a) x", "grep -rn x ~", "find / -name x", "rm -rf ~/$x"]
    {
        assert_eq!(decided_by(&without, &rules, Mode::Default, line).verdict, Verdict::Deny, "{line}");
        assert_eq!(decided(line).verdict, Verdict::Ask, "{line}");
    }
}

#[test]
fn what_is_certain_or_about_the_repository_stays_denied() {
    let lines = [
        "rm -rf /",
        "rm -rf ~",
        "rm -rf $HOME",
        "sudo rm -rf /*",
        "rm -rf .git",
        "mv .git x",
        "rm -rf .",
        "cd .. && rm -rf repo",
        "echo x > .git/hooks/pre-commit",
        "t=$(mktemp -u); tee \"$t\" < .git/config; ls .git/hooks > \"$t\"",
        "echo x > ~/.local/share/lathe/config.toml",
        "cat ~/.local/share/lathe/config.toml",
        "git config core.hooksPath x",
        "git config alias.x '!sh'",
        "lathe serve",
        "kill -9 -1",
        ":(){ :|:& };:",
        "ls() { rm -rf \"$@\"; }",
        "export BASH_ENV=x",
        "HOME=/tmp/x",
    ];
    assert_eq!(others(lines, |decided| decided.verdict == Verdict::Deny), [""; 0]);
}

#[test]
fn destroying_lines_are_denied_behind_walls_too_unless_a_variable_would_have_to_be_empty() {
    let (without, rules) = (crate::gate(false), rules());
    let lines = DESTROYING.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let lines = lines.map(|line| line.replace("\\n", "\n"));
    let of = |gate: &Gate, line: &str| decided_by(gate, &rules, Mode::Default, line);
    let lines: Vec<String> = lines.filter(|line| of(&without, line).verdict == Verdict::Deny).collect();
    let eased = |line: &&String| of(&walled(), line).verdict != Verdict::Deny;
    let eased: Vec<String> = lines.iter().filter(eased).map(|line| of(&without, line).reason).collect();
    let others: Vec<&String> =
        eased.iter().filter(|reason| !reason.starts_with("without a value for")).collect();
    assert_eq!(others, [""; 0]);
    assert!(lines.len() > 1000 && eased.len() < 40, "{} of {}", eased.len(), lines.len());
}

#[test]
fn a_users_rules_come_before_the_walls() {
    let with = |text: &str| rules().with_file(Tier::User, "mine", text).unwrap();
    let by = |rules: &Rulebook, line: &str| decided_by(&walled(), rules, Mode::Default, line);
    let asks = with("[[rule]]\ndecision = \"ask\"\ncommand = [\"make\"]\nreason = \"slow\"\n");
    let made = by(&asks, "make > log");
    assert_eq!((made.verdict, made.rule.as_str()), (Verdict::Ask, "mine:1"));
    assert_eq!(by(&asks, "timeout 5 make").verdict, Verdict::Ask);
    assert_eq!(by(&asks, "./x > log").verdict, Verdict::Allow);
    let denies = with("[[rule]]\ndecision = \"deny\"\ncommand = [\"make\"]\n");
    assert_eq!(by(&denies, "env make").verdict, Verdict::Deny);
    let allows = with("[[rule]]\ndecision = \"allow\"\ncommand = [\"git push\"]\n");
    assert_eq!(by(&allows, "git push origin main").verdict, Verdict::Allow);
    assert_eq!(by(&allows, "git fetch").verdict, Verdict::Ask);
    let lines = with("[[rule]]\ndecision = \"ask\"\ntool = [\"bash\"]\n");
    assert_eq!(by(&lines, "ls").verdict, Verdict::Ask);
    // A file that says `default = "ask"` says nothing about a line in particular.
    assert_eq!(by(&with("default = \"ask\"\n"), "./x").verdict, Verdict::Allow);
    let nothing = with("default = \"deny\"\n");
    assert_eq!(by(&nothing, "./x").verdict, Verdict::Ask);
    assert_eq!(by(&nothing, "mytool").verdict, Verdict::Deny);
}

#[test]
fn what_cannot_be_read_or_seen_is_asked_about() {
    for (line, rule) in [
        ("if true; then", "R2.syntax"),
        ("echo 'a", "R2.syntax"),
        ("[[ $x =~ a ]]", "R2.syntax"),
        ("ls \u{202e}x", "R7.character"),
        ("echo a\u{200b}b > f", "R7.character"),
    ] {
        let decided = decided(line);
        assert_eq!((decided.verdict, decided.rule.as_str()), (Verdict::Ask, rule), "{line:?}");
    }
}

#[test]
fn each_question_names_what_reaches_out() {
    for (line, rule, part) in [
        ("ls; git push", "walls.network", "`git push`: it reaches other machines"),
        ("env curl example.org", "walls.network", "`curl example.org`"),
        ("git reset --hard", "walls.git", "it changes git's history"),
        ("git config a.b c", "walls.git", "the configuration of git"),
        ("docker ps", "walls.leaves", "docker leaves the walls"),
        ("cp a /etc/x", "walls.outside", "/etc/x is outside the workspace"),
        ("cat ~/x", "reading.outside", "~/x is outside the workspace"),
    ] {
        let decided = decided(line);
        assert_eq!((decided.verdict, decided.rule.as_str()), (Verdict::Ask, rule), "{line}");
        assert!(decided.reason.contains(part), "{}", decided.reason);
    }
}

#[test]
fn private_places_count_as_inside() {
    let inside = [
        "cat /tmp/x",
        "echo x > /tmp/a/b",
        "rm -rf /tmp/a",
        "cd /tmp && ./x > y",
        "cp a ~/.cargo/x",
        "ls ~/.m2/repository",
        "rm -rf ~/.npm",
        "cat /dev/null > x",
        "echo x > /dev/stderr",
        "cat /etc/hosts /usr/include/stdio.h",
        "cd sub && cat ../a.txt && cp x ../y",
        "mkdir -p build; cd build; cmake ..",
    ];
    assert_eq!(others(inside, |decided| decided.verdict == Verdict::Allow), [""; 0]);
    let outside = [
        "cat ~/.cargo/credentials.toml",
        "rm ~/.m2/settings.xml",
        "cp a /usr/lib/x",
        "cat /var/log/syslog",
        "cd sub && cat ../../x",
        "cd sub && cp a ../../x",
        "echo x > \"$HOME/a-$n\"",
        "echo x > /etc/$n",
        "cp a ~other/x",
        "echo x > /dev/sdb1x/..",
    ];
    assert_eq!(others(outside, |decided| decided.verdict == Verdict::Ask), [""; 0]);
    // A folder that the user added.
    let more = Gate { walls: Walls::Around { writable: vec!["/data/sets".into()] }, ..walled() };
    for (line, verdict) in [("cp a /data/sets/b", Verdict::Allow), ("cp a /data/b", Verdict::Ask)] {
        assert_eq!(decided_by(&more, &rules(), Mode::Default, line).verdict, verdict, "{line}");
        assert_eq!(decided(line).verdict, Verdict::Ask, "{line}");
    }
}

#[test]
fn beside_a_workspace_among_temporary_files_nothing_counts_as_inside() {
    for root in ["/tmp/t1/repo", "/tmp/repo"] {
        let gate = Gate { root: root.into(), here: Some(root.into()), ..walled() };
        let verdict = |line: &str| decided_by(&gate, &rules(), Mode::Default, line).verdict;
        for line in
            ["cat /tmp/x", "echo x > /tmp/a/b", "cat src/a.rs", "echo x > a.txt", "cd sub && cat ../a"]
        {
            assert_eq!(verdict(line), Verdict::Allow, "{line} in {root}");
        }
        for line in [
            "cat ../x",
            "rm -rf ../other",
            "cd .. && ls",
            "echo x > ../x",
            "git -C ../x log",
            "git worktree add ../x",
        ] {
            assert_eq!(verdict(line), Verdict::Ask, "{line} in {root}");
        }
    }
    let gate = Gate { root: "/tmp/t1/repo".into(), ..walled() };
    assert_eq!(decided_by(&gate, &rules(), Mode::Default, "cat /tmp/t1/x").verdict, Verdict::Ask);
}

#[test]
fn unknown_words_are_asked_about_after_programs_that_reach_out() {
    let asks = [
        "curl $x",
        "wget \"$URL\"",
        "ssh $host",
        "docker $x",
        "kubectl \"$@\"",
        "cargo $x",
        "npm $x",
        "git log; git $x",
        "gh $x",
        "pip $x",
    ];
    assert_eq!(others(asks, |decided| decided.verdict == Verdict::Ask), [""; 0]);
    let open = [
        "alias g=git",
        "alias gr='git reset'",
        "f() { git \"$@\"; }",
        "f() { git commit $*; }",
        "alias c=curl",
    ];
    assert_eq!(others(open, |decided| decided.verdict == Verdict::Ask), [""; 0]);
    let free = [
        "alias gst='git status'",
        "alias ga='git add'",
        "f() { git diff \"$@\"; }",
        "run() { echo \"+ $*\"; \"$@\"; }",
        "$x a",
        "eval \"$x\"",
        "bash -c \"$y\"",
        "sh script.sh",
        "cat \"$f\"",
        "cp \"$a\" \"$b\"",
        "rm -rf \"$d\"",
        "cd \"$d\" && make",
        "git commit -m \"$msg\"",
        "git add \"$f\"",
        "git log -\"$n\"",
        "git show \"$c:a.rs\"",
        "npm run $script",
        "make $target",
    ];
    assert_eq!(others(free, |decided| decided.verdict == Verdict::Allow), [""; 0]);
}

#[test]
fn words_of_texts_are_no_commands() {
    let lines = [
        "git commit -m 'document git push and docker run'",
        "echo 'git push' > todo.txt",
        "grep -rn 'curl https://example.org' docs",
        "echo see https://example.org >> README.md",
        "sed -i 's#https://a.org#https://b.org#' README.md",
        "cat > run.sh <<'EOF'\ncurl https://example.org\ngit push\nEOF",
        "python3 -c \"print('git push')\"",
        "python3 -c \"print('https://example.org')\"",
        "export URL=https://example.org",
        "touch curl docker.txt",
        "git log --grep=push",
        "which docker; command -v kubectl; type curl",
        "docker --version; curl --version",
        "rm -f docker-compose.yml",
        "mkdir git && ls git",
    ];
    assert_eq!(others(lines, |decided| decided.verdict == Verdict::Allow), [""; 0]);
}

#[test]
fn an_allowed_line_grants_nothing_to_the_commands_of_the_agent_in_it() {
    let of = |gate: &Gate, line: &str| gate.decide_line(&rules(), Actor::Model, Mode::Default, line);
    let line = "$x a; view ~/notes.txt";
    let allowed = of(&walled(), line);
    assert_eq!((allowed.decision.verdict, allowed.effects.opaque), (Verdict::Allow, false));
    assert!(of(&crate::gate(false), line).effects.opaque);
    // A line that a user approves grants as before.
    assert!(of(&walled(), "$x a; git push").effects.opaque);
    // What bash does around such a command counts.
    for (line, verdict) in [("view a > b.txt", Verdict::Allow), ("view a > ~/b.txt", Verdict::Ask)] {
        assert_eq!(of(&walled(), line).decision.verdict, verdict, "{line}");
    }
}

#[test]
fn only_a_command_that_was_shown_alone_can_be_allowed_for_ever() {
    let approvable = |line: &str| {
        let decided = walled().decide_line(&rules(), Actor::Model, Mode::Default, line);
        decided.approvable.iter().map(|one| one.words.join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(approvable("git push origin main"), ["git push origin main"]);
    assert_eq!(approvable("./x > log && git push"), ["git push"]);
    assert_eq!(approvable("git push; timeout 5 git fetch"), [""; 0]);
    assert_eq!(approvable("git push > log"), [""; 0]);
}

#[test]
fn edits_inside_are_allowed_and_the_rest_of_a_call_is_as_without_walls() {
    let call = |mode: Mode, effects: &Effects| {
        let call =
            GateCall { tool: "x", also: &[], kind: ToolKind::Other, kinds: &[], effects, arguments: &[] };
        walled().decide_call(&rules(), Actor::Model, mode, &call)
    };
    let edit = Effects::writing("/srv/work/repo/a.rs");
    let decided = call(Mode::Default, &edit);
    assert_eq!((decided.verdict, decided.rule.as_str()), (Verdict::Allow, "walls"));
    assert_eq!(call(Mode::Plan, &edit).verdict, Verdict::Deny);
    let host = Effects { hosts: vec!["example.org".to_owned()], ..Effects::default() };
    let opaque = Effects { opaque: true, ..Effects::default() };
    // A tool runs outside of the walls, so the private folders are not its own.
    for effects in [
        &host,
        &opaque,
        &Effects::writing("/srv/work/x"),
        &Effects::writing("/tmp/x"),
        &Effects::reading("/tmp/x"),
    ] {
        assert_eq!(call(Mode::Default, effects).verdict, Verdict::Ask, "{effects:?}");
    }
    for path in ["/srv/work/repo/.git/config", "/home/me/.local/share/lathe/x"] {
        assert_eq!(call(Mode::Default, &Effects::writing(path)).verdict, Verdict::Deny, "{path}");
    }
}
