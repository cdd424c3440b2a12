//! Rule files, tiers, modes and actors.

use lathe_policy::{
    ApprovableCommand, Gate, GateCall, KnownNames, PolicyError, Rulebook, StandingApproval, Tier,
};
use lathe_protocol::{Actor, Effects, Mode, ToolKind, Verdict};
use serde_json::Value;

use crate::corpus::gate;

const ACTORS: [Actor; 3] = [Actor::Model, Actor::Person, Actor::Project];

fn rule(decision: &str, command: &str) -> String {
    format!("[[rule]]\ndecision = \"{decision}\"\ncommand = [\"{command}\"]\n")
}

fn decide(rules: &Rulebook, line: &str) -> (Verdict, String) {
    let decided = gate().decide_line(rules, Actor::Model, Mode::Default, line).decision;
    (decided.verdict, decided.rule)
}

fn book(tiers: &[(Tier, &str)]) -> Rulebook {
    tiers.iter().fold(Rulebook::empty(), |book, (tier, text)| {
        book.with_file(*tier, &format!("{tier:?}"), text).unwrap()
    })
}

#[test]
fn the_highest_tier_that_speaks_decides_and_the_strictest_within_it() {
    let (allow, ask) = (rule("allow", "make"), rule("ask", "make"));
    let both = format!("{allow}{ask}");
    for (tiers, verdict) in [
        (vec![(Tier::Builtin, ask.as_str()), (Tier::User, &allow)], Verdict::Allow),
        (vec![(Tier::Builtin, &allow), (Tier::User, &ask)], Verdict::Ask),
        (vec![(Tier::User, &allow), (Tier::Admin, &ask)], Verdict::Ask),
        (vec![(Tier::User, &ask), (Tier::Admin, &allow)], Verdict::Allow),
        (vec![(Tier::User, &both)], Verdict::Ask),
        (vec![(Tier::User, "")], Verdict::Ask),
    ] {
        assert_eq!(decide(&book(&tiers), "make").0, verdict, "{tiers:?}");
    }
}

#[test]
fn a_denial_of_any_tier_holds() {
    let (allow, deny) = (rule("allow", "make"), rule("deny", "make"));
    for tier in [Tier::Project, Tier::Builtin, Tier::User, Tier::Admin] {
        let book = book(&[(tier, &deny), (Tier::Admin, &allow)]);
        assert_eq!(decide(&book, "make").0, Verdict::Deny, "{tier:?}");
        assert_eq!(decide(&book, "nice make").0, Verdict::Deny, "{tier:?}");
    }
}

#[test]
fn no_rule_file_of_a_project_makes_any_line_of_the_corpus_weaker() {
    let allow = "default = \"allow\"\n[[rule]]\ndecision = \"allow\"\npath = \"**\"\n[[rule]]\ndecision = \"allow\"\nhost = \"**\"\n";
    let entries: Vec<Value> = include_str!("../corpus/lines.jsonl")
        .lines()
        .map(|entry| serde_json::from_str(entry).unwrap())
        .collect();
    let lines: Vec<&str> = entries.iter().map(|entry| entry["command"].as_str().unwrap()).collect();
    for ask in ["allow", "ask"] {
        // Every first word that occurs, allowed or asked about by name.
        let mut words: Vec<String> = (lines.iter())
            .filter_map(|line| line.split_whitespace().next())
            .filter(|word| word.chars().all(|c| c.is_ascii_alphanumeric()))
            .map(|word| format!("{word:?}"))
            .collect();
        words.sort();
        words.dedup();
        let text = format!("{allow}[[rule]]\ndecision = \"{ask}\"\ncommand = [{}]\n", words.join(", "));
        for base in [Rulebook::builtin(), crate::corpus::rules()] {
            let with = base.clone().with_file(Tier::Project, ".lathe/policy.toml", &text).unwrap();
            for (line, mode) in lines.iter().flat_map(|line| Mode::ALL.map(|mode| (line, mode))) {
                let decided = |rules: &Rulebook| gate().decide_line(rules, Actor::Model, mode, line).decision;
                let (before, after) = (decided(&base), decided(&with));
                assert!(after.verdict >= before.verdict, "{mode:?} {line:?}: {before:?} became {after:?}");
            }
        }
    }
}

#[test]
fn a_project_only_tightens() {
    let (allow, ask) = (rule("allow", "make"), rule("ask", "make"));
    assert_eq!(decide(&book(&[(Tier::Project, &allow)]), "make").0, Verdict::Ask);
    assert_eq!(decide(&book(&[(Tier::Project, &ask), (Tier::User, &allow)]), "make").0, Verdict::Ask);
    assert_eq!(decide(&book(&[(Tier::Project, "default = \"allow\"")]), "make").0, Verdict::Ask);
    assert_eq!(decide(&book(&[(Tier::Project, "default = \"deny\"")]), "make").0, Verdict::Deny);
}

#[test]
fn the_default_of_a_file_holds_where_no_rule_speaks_but_not_over_a_floor() {
    let book = book(&[(Tier::User, "default = \"allow\"")]);
    assert_eq!(decide(&book, "make").0, Verdict::Allow);
    assert_eq!(decide(&book, "make > x"), (Verdict::Ask, "R3.redirection".to_owned()));
    assert_eq!(decide(&book, "sudo make").0, Verdict::Ask);
    assert_eq!(decide(&book, "/bin/make").0, Verdict::Ask);
}

#[test]
fn a_rule_that_names_an_option_has_decided_about_it() {
    let book = book(&[(Tier::User, &rule("allow", "git -C sub status"))]);
    assert_eq!(decide(&book, "git -C sub status").0, Verdict::Allow);
    assert_eq!(decide(&book, "git -C sub status -s").0, Verdict::Allow);
    assert_eq!(decide(&book, "git -C other status").0, Verdict::Ask);
    assert_eq!(decide(&book, "git -C sub -c a=b status").0, Verdict::Ask);
    assert_eq!(decide(&book, "git -C sub status > x").0, Verdict::Ask);
}

#[test]
fn modes_and_actors_narrow_a_rule() {
    let text =
        "[[rule]]\ndecision = \"allow\"\ncommand = [\"make\"]\nmode = [\"auto-edit\"]\nactor = [\"model\"]\n";
    let book = book(&[(Tier::User, text)]);
    let verdict = |actor, mode| gate().decide_line(&book, actor, mode, "make").decision.verdict;
    assert_eq!(verdict(Actor::Model, Mode::AutoEdit), Verdict::Allow);
    assert_eq!(verdict(Actor::Model, Mode::Default), Verdict::Ask);
    assert_eq!(verdict(Actor::Project, Mode::AutoEdit), Verdict::Ask);
    assert_eq!(verdict(Actor::Person, Mode::Default), Verdict::Allow);
}

#[test]
fn each_mode_has_the_last_word_on_a_question() {
    let book = Rulebook::builtin();
    for (line, mode, headless, verdict) in [
        ("make deploy", Mode::Default, false, Verdict::Ask),
        ("make deploy", Mode::Default, true, Verdict::Deny),
        ("make deploy", Mode::AutoEdit, false, Verdict::Ask),
        ("make deploy", Mode::FullAuto, true, Verdict::Allow),
        ("make deploy", Mode::Plan, false, Verdict::Deny),
        ("cargo test", Mode::Plan, false, Verdict::Deny),
        ("cargo test", Mode::Default, true, Verdict::Allow),
        ("git log -3", Mode::Plan, true, Verdict::Allow),
        ("ls > x", Mode::Plan, false, Verdict::Deny),
        ("ls > x", Mode::FullAuto, false, Verdict::Allow),
        ("echo ${x:-y}", Mode::Plan, true, Verdict::Deny),
        ("( ls", Mode::Plan, false, Verdict::Deny),
        ("X=1 ls", Mode::Plan, false, Verdict::Deny),
        ("sed -n 1,5p x", Mode::Plan, false, Verdict::Allow),
        ("sed -i s/a/b/ x", Mode::Plan, false, Verdict::Deny),
        ("sort -o x y", Mode::Plan, false, Verdict::Deny),
        ("git config --get user.name", Mode::Plan, false, Verdict::Allow),
    ] {
        let gate = Gate {
            home: "/h/.lathe".into(),
            root: "/w".into(),
            user_home: None,
            here: None,
            outputs: None,
            disk: lathe_policy::OnDisk::default(),
            switched: lathe_policy::ShellSwitches::default(),
            walls: lathe_policy::Walls::None,
            headless,
        };
        assert_eq!(
            gate.decide_line(&book, Actor::Model, mode, line).decision.verdict,
            verdict,
            "{line} in {mode:?}"
        );
    }
}

/// Issue 7, point 7: the guard stands above rules, modes and actors.
#[test]
fn the_guard_holds_whatever_rules_modes_and_actors_say() {
    let everything = "default = \"allow\"\n[[rule]]\ndecision = \"allow\"\ncommand = [\"rm\", \"rm -rf /\", \"dd\", \"find\"]\n";
    let book = book(&[(Tier::Admin, everything)]);
    let mut count = 0;
    for entry in include_str!("../corpus/lines.jsonl").lines() {
        let entry: Value = serde_json::from_str(entry).unwrap();
        if entry["category"] != "hard deny" || entry["decision"] != "deny" {
            continue;
        }
        let line = entry["command"].as_str().unwrap();
        count += 1;
        for mode in Mode::ALL {
            for actor in ACTORS {
                let decided = gate().decide_line(&book, actor, mode, line).decision;
                assert_eq!(decided.verdict, Verdict::Deny, "{line:?} in {mode:?} by {actor:?}");
                assert!(decided.rule.starts_with("guard."), "{line:?}: {}", decided.rule);
            }
        }
    }
    assert!(count > 180, "{count}");
}

#[test]
fn always_is_as_narrow_as_what_was_asked_about() {
    let there = Gate { here: Some("/w/sub".into()), ..gate() };
    let narrowest =
        |line: &str| there.decide_line(&Rulebook::builtin(), Actor::Model, Mode::Default, line).approvable;
    let narrow = |words: &[&str], folder: Option<&str>| {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        vec![ApprovableCommand { words, folder: folder.map(str::to_owned) }]
    };
    // A name on a remote is the same everywhere; what a program does depends on where it is.
    assert_eq!(narrowest("git push origin main"), narrow(&["git", "push", "origin", "main"], None));
    assert_eq!(narrowest("ls && make deploy"), narrow(&["make", "deploy"], Some("/w/sub")));
    assert_eq!(narrowest("touch /w/k"), narrow(&["touch", "/w/k"], None));
    assert_eq!(narrowest("touch k"), narrow(&["touch", "k"], Some("/w/sub")));
    assert!(narrowest("cd a && touch k").is_empty());
    let grant = StandingApproval::Command {
        words: vec!["touch".to_owned(), "k".to_owned()],
        workspace: "/w".to_owned(),
        folder: Some("/w/sub".to_owned()),
    };
    assert_eq!(
        StandingApproval::parse_rules("f", &grant.to_rule(), &KnownNames::default()).unwrap(),
        std::slice::from_ref(&grant)
    );
    let book = book(&[(Tier::User, &grant.to_rule())]);
    let said = |here: Option<&str>, line: &str| {
        let gate = Gate { here: here.map(Into::into), ..gate() };
        gate.decide_line(&book, Actor::Model, Mode::Default, line).decision.verdict
    };
    assert_eq!(said(Some("/w/sub"), "touch k"), Verdict::Allow);
    for (here, line) in [
        (Some("/w"), "touch k"),
        (Some("/w"), "cd sub && touch k"),
        (Some("/w/sub"), "cd .. && touch k"),
        (Some("/w/sub"), "cd -; touch k"),
        (Some("/w/sub"), "popd; touch k"),
        (Some("/w/sub"), "command cd ..; touch k"),
        (Some("/w/sub"), "env -C .. touch k"),
        (None, "touch k"),
    ] {
        assert_eq!(said(here, line), Verdict::Ask, "{here:?}: {line}");
    }
    assert!(narrowest("cd $x && touch k").is_empty());
    assert!(
        gate()
            .decide_line(&Rulebook::builtin(), Actor::Model, Mode::Default, "touch k")
            .approvable
            .is_empty()
    );
    assert!(narrowest("make > x").is_empty());
    assert!(narrowest("sudo make").is_empty());
    assert!(narrowest("make $x").is_empty());
    let text = rule("allow", "git push origin main");
    let book = Rulebook::builtin().with_file(Tier::User, "always", &text).unwrap();
    assert_eq!(decide(&book, "git push origin main").0, Verdict::Allow);
    assert_eq!(decide(&book, "git push origin other").0, Verdict::Ask);
    assert_eq!(decide(&book, "git push").0, Verdict::Ask);
}

#[test]
fn rules_about_tools_look_at_name_kind_path_and_host() {
    let text = r#"
[[rule]]
decision = "deny"
path = ["**/secrets/**"]
match = ["/w/secrets/key"]
not_match = ["/w/src/x"]
[[rule]]
decision = "allow"
tool = ["write*"]
path = ["/w/docs/**"]
[[rule]]
decision = "allow"
kind = ["fetch"]
host = ["*.example.org"]
match = ["www.example.org"]
"#;
    let book = book(&[(Tier::User, text)]);
    let decide = |tool: &str, kind: ToolKind, effects: &Effects| {
        gate()
            .decide_call(
                &book,
                Actor::Model,
                Mode::Default,
                &GateCall { tool, also: &[], kind, kinds: &[], effects, arguments: &[] },
            )
            .verdict
    };
    assert_eq!(decide("write", ToolKind::Edit, &Effects::writing("/w/docs/a.md")), Verdict::Allow);
    assert_eq!(decide("edit", ToolKind::Edit, &Effects::writing("/w/docs/a.md")), Verdict::Ask);
    assert_eq!(decide("write", ToolKind::Edit, &Effects::writing("/w/src/a.rs")), Verdict::Ask);
    assert_eq!(decide("view", ToolKind::Read, &Effects::reading("/w/secrets/key")), Verdict::Deny);
    let mut both = Effects::writing("/w/docs/a.md");
    both.writes.push("/w/src/b".to_owned());
    assert_eq!(decide("write", ToolKind::Edit, &both), Verdict::Ask);
    let host = |host: &str| Effects { hosts: vec![host.to_owned()], ..Effects::default() };
    assert_eq!(decide("fetch", ToolKind::Fetch, &host("www.example.org")), Verdict::Allow);
    assert_eq!(decide("fetch", ToolKind::Fetch, &host("example.com")), Verdict::Ask);
    assert_eq!(decide("write", ToolKind::Edit, &Effects::writing("/h/.lathe/x")), Verdict::Deny);
}

#[test]
fn a_wrong_file_is_refused_with_its_place() {
    for (text, line, words) in [
        ("default = \"never\"", 1, "allow, ask, deny"),
        ("x = 1", 1, "no `x`"),
        ("\n\n[[rule]]\ncommand = [\"ls\"]", 3, "`decision` is missing"),
        ("[[rule]]\ndecision = \"allow\"", 1, "names nothing"),
        ("[[rule]]\ndecision = \"allow\"\ncommand = [\"ls; x\"]", 3, "plain words"),
        ("[[rule]]\ndecision = \"allow\"\ncommand = [\"\"]", 3, "plain words"),
        ("[[rule]]\ndecision = \"allow\"\ncommand = 3", 3, "list of texts"),
        ("[[rule]]\ndecision = \"allow\"\nmode = \"fast\"\ntool = \"view\"", 3, "no mode"),
        ("[[rule]]\ndecision = \"allow\"\nkind = \"x\"", 3, "no kind"),
        ("[[rule]]\ndecision = \"allow\"\nactor = \"x\"", 3, "no actor"),
        ("[[rule]]\ndecision = \"allow\"\ncomand = \"ls\"", 3, "no `comand`"),
        ("[[rule]]\ndecision = \"allow\"\ncommand = \"ls\"\nmatch = [\"cat\"]", 1, "should match `cat`"),
        (
            "\n[[rule]]\ndecision = \"allow\"\ncommand = \"ls\"\nnot_match = [\"ls -l\"]",
            2,
            "should not match",
        ),
        ("[[rule]\n", 1, ""),
    ] {
        let error = Rulebook::empty().with_file(Tier::User, "f.toml", text).unwrap_err();
        let told = error.to_string();
        assert!(told.starts_with(&format!("f.toml:{line}: ")) && told.contains(words), "{text:?}: {told}");
    }
    let error = Rulebook::empty().with_file(
        Tier::User,
        "f",
        "[[rule]]\ndecision = \"ask\"\ntool = \"view\"\nmatch = \"edit\"",
    );
    assert!(matches!(error, Err(PolicyError::NoMatch { rule: 1, .. })));
}

#[test]
fn the_guards_word_goes_before_another_denial_of_the_same_line() {
    let rules = book(&[(Tier::User, &rule("deny", "git push"))]);
    for actor in ACTORS {
        let decided = gate().decide_line(&rules, actor, Mode::FullAuto, "git push; rm -rf /").decision;
        assert_eq!((decided.verdict, decided.rule.as_str()), (Verdict::Deny, "guard.destroy"), "{actor:?}");
    }
}

#[test]
fn commands_of_the_agent_are_left_to_the_moment_they_run() {
    let own = ["view", "write", "read", "field:a:b"].map(str::to_owned);
    let rules = Rulebook::builtin().with_own_commands(own);
    for (line, mode, verdict) in [
        ("view a | head -3", Mode::Default, Verdict::Allow),
        ("view $x *.md \"$(ls)\"", Mode::Plan, Verdict::Allow),
        ("write f x", Mode::Plan, Verdict::Allow),
        ("field:a:b --x 1", Mode::Default, Verdict::Allow),
        // What bash does around it is not the command's.
        ("view a > b", Mode::Default, Verdict::Ask),
        ("X=1 view a", Mode::Default, Verdict::Ask),
        ("view \"$(make)\"", Mode::Default, Verdict::Ask),
        ("./view a", Mode::Default, Verdict::Ask),
        ("xargs write f", Mode::Default, Verdict::Ask),
        ("view() { make; }; view a", Mode::Default, Verdict::Deny),
        // Bash has one of its own.
        ("read x", Mode::Default, Verdict::Ask),
    ] {
        let decided = gate().decide_line(&rules, Actor::Model, mode, line).decision;
        assert_eq!(decided.verdict, verdict, "{line}: {decided:?}");
    }
    assert_eq!(decide(&Rulebook::builtin(), "view a").0, Verdict::Ask);
}

#[test]
fn a_rule_of_whole_words_allows_them_and_nothing_after_them() {
    for (words, allowed, asked) in [
        (vec!["git", "status"], "git 'status'", vec!["git status -s", "git push", "git", "/bin/git status"]),
        (
            vec!["make", "a b", "it's \"x\" \\"],
            "make 'a b' 'it'\\''s \"x\" \\'",
            vec!["make a b", "make 'a b'"],
        ),
    ] {
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let elsewhere = StandingApproval::Command {
            words: words.clone(),
            workspace: "/elsewhere".to_owned(),
            folder: None,
        };
        assert_eq!(decide(&book(&[(Tier::User, &elsewhere.to_rule())]), allowed).0, Verdict::Ask);
        let here = StandingApproval::Command { words, workspace: "/w".to_owned(), folder: None };
        assert_eq!(
            StandingApproval::parse_rules("f", &here.to_rule(), &KnownNames::default()).unwrap(),
            std::slice::from_ref(&here)
        );
        let rules = book(&[(Tier::User, &here.to_rule())]);
        assert_eq!(decide(&rules, allowed).0, Verdict::Allow, "{allowed}");
        for line in asked {
            assert_eq!(decide(&rules, line).0, Verdict::Ask, "{line}");
        }
    }
    let wrong =
        Rulebook::empty().with_file(Tier::User, "f", "[[rule]]\ndecision = \"allow\"\nwords = [\"a\"]\n");
    assert!(wrong.is_err());
}

#[test]
fn a_denial_names_the_command_and_the_rule() {
    let headless = Gate { headless: true, ..gate() };
    for (mode, line, words) in [
        (Mode::Default, "ls && make deploy", "`make deploy`: no rule speaks about it (default), and nobody"),
        (Mode::Plan, "ls; touch x", "`touch x`: mode plan changes nothing"),
        (Mode::Default, "ls > x\u{200b}", "`ls`: "),
    ] {
        let decided = headless.decide_line(&Rulebook::builtin(), Actor::Model, mode, line).decision;
        assert!(decided.reason.starts_with(words), "{line}: {}", decided.reason);
    }
}

#[test]
fn the_workspace_is_not_taken_away() {
    let gate = Gate { root: "/srv/work/repo".into(), ..gate() };
    for (line, guarded) in [
        ("rm -rf /srv/work/repo", true),
        ("rm -rf /srv/work/repo/", true),
        ("rm -fr /srv/work/./repo/*", true),
        ("rm -rf /srv/work", true),
        ("rm -rf /srv/work/repo/sub/..", true),
        ("d=/srv/work/repo; rm -rf \"$d\"", true),
        ("cd /srv/work && rm -rf repo", true),
        ("sudo rm -rf /srv/work/repo", true),
        ("mv /srv/work/repo /tmp/x", true),
        ("find /srv/work/repo -delete", true),
        ("rm -rf /srv/work/repo/target", false),
        ("rm -rf /srv/work/repository", false),
        ("rm /srv/work/repo", false),
        ("mv /tmp/x /srv/work/repo", false),
        ("find /srv/work/repo -name '*.o' -delete", false),
        ("cd /srv/work/repo && rm -rf target", false),
        ("cp -r /srv/work/repo /tmp/x", false),
    ] {
        for actor in ACTORS {
            let decided = gate.decide_line(&Rulebook::builtin(), actor, Mode::FullAuto, line).decision;
            assert_eq!(decided.rule == "guard.workspace", guarded, "{line}: {decided:?}");
        }
    }
}
