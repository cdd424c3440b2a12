//! Rules by regular expressions of commands and arguments, and rules that allow redirections (issue 16).

use lathe_policy::{Gate, GateCall, Rulebook, Tier};
use lathe_protocol::{Actor, Effects, Mode, ToolKind, Verdict};
use serde_json::{Value, json};

use crate::corpus::gate;

fn book(text: &str) -> Rulebook {
    Rulebook::empty().with_file(Tier::User, "mine.toml", text).unwrap()
}

fn line(rules: &Rulebook, mode: Mode, line: &str) -> Verdict {
    gate().decide_line(rules, Actor::Model, mode, line).decision.verdict
}

fn call(rules: &Rulebook, tool: &str, kind: ToolKind, effects: &Effects, arguments: Value) -> Verdict {
    let given = [arguments];
    let call = GateCall { tool, also: &[], kind, kinds: &[], effects, arguments: &given };
    gate().decide_call(rules, Actor::Model, Mode::Default, &call).verdict
}

#[test]
fn a_command_is_allowed_where_the_whole_of_it_fits() {
    let rules = book("[[rule]]\ndecision = \"allow\"\ncommand_regex = 'git (status|log)( --?[a-z-]+)*'\n");
    for (text, verdict) in [
        ("git status", Verdict::Allow),
        ("git log --oneline", Verdict::Allow),
        ("'git' status", Verdict::Allow),
        ("git status && git log", Verdict::Allow),
        ("git statusx", Verdict::Ask),
        ("git log HEAD", Verdict::Ask),
        ("echo git status", Verdict::Ask),
        ("git status; make", Verdict::Ask),
        // A blank in a word is none between two.
        ("git 'status --short'", Verdict::Ask),
        ("git status $x", Verdict::Ask),
        ("git status > out", Verdict::Ask),
        ("git log --output=x", Verdict::Ask),
    ] {
        assert_eq!(line(&rules, Mode::Default, text), verdict, "{text}");
    }
}

#[test]
fn a_command_is_denied_where_the_expression_is_found() {
    let rules = book("[[rule]]\ndecision = \"deny\"\ncommand_regex = '^git push\\b.*--force'\n");
    for (text, verdict) in [
        ("git push --force", Verdict::Deny),
        ("git push origin main --force-with-lease", Verdict::Deny),
        ("/usr/bin/git push --force", Verdict::Deny),
        ("ls; git push --force", Verdict::Deny),
        ("bash -c 'git push --force'", Verdict::Deny),
        ("x=push; git $x --force", Verdict::Deny),
        ("$git push", Verdict::Deny),
        ("git push", Verdict::Allow),
        ("git pull --force", Verdict::Allow),
    ] {
        assert_eq!(line(&rules, Mode::FullAuto, text), verdict, "{text}");
    }
    // A line that is not bash is matched as it is written.
    let rules = book("[[rule]]\ndecision = \"deny\"\ncommand_regex = 'rm'\n");
    assert_eq!(line(&rules, Mode::FullAuto, "if; rm ((("), Verdict::Deny);
}

#[test]
fn arguments_are_compared_one_by_one() {
    let rules = book(concat!(
        "[[rule]]\ndecision = \"deny\"\ntool = [\"write_file\"]\nargs_pattern = '\"content\":.*password'\n",
        "match = ['{\"content\":\"my password\"}']\nnot_match = ['{\"file_path\":\"password\"}']\n",
        "[[rule]]\ndecision = \"allow\"\ntool = [\"write\"]\nargs_pattern = '\"file_path\":\"docs/[a-z]+[.]md\"'\n",
    ));
    let effects = Effects::writing("/w/docs/a.md");
    for (path, content, verdict) in [
        ("docs/a.md", "text", Verdict::Allow),
        ("docs/a.md", "a password", Verdict::Deny),
        ("docs/a.md.rs", "text", Verdict::Ask),
        ("src/a.rs", "text", Verdict::Ask),
        ("password", "text", Verdict::Ask),
    ] {
        let arguments = json!({ "file_path": path, "content": content });
        assert_eq!(call(&rules, "write", ToolKind::Edit, &effects, arguments), verdict, "{path} {content}");
    }
    // No argument reaches into another: each stands for itself.
    let arguments = json!({ "content": "x", "file_path": "password" });
    assert_eq!(call(&rules, "write", ToolKind::Edit, &effects, arguments), Verdict::Ask);
    // The shell has one argument, its line. Leave for it is given by commands only.
    let rules = book(concat!(
        "[[rule]]\ndecision = \"deny\"\ntool = [\"bash\"]\nargs_pattern = 'secret'\n",
        "[[rule]]\ndecision = \"allow\"\ntool = [\"bash\"]\nargs_pattern = '.*make.*'\n",
    ));
    assert_eq!(line(&rules, Mode::FullAuto, "cat secret.txt"), Verdict::Deny);
    assert_eq!(line(&rules, Mode::FullAuto, "cat other.txt"), Verdict::Allow);
    assert_eq!(line(&rules, Mode::Default, "make"), Verdict::Ask);
}

#[test]
fn a_rule_may_allow_to_redirect_into_the_workspace() {
    let rules = book("[[rule]]\ndecision = \"allow\"\ncommand = [\"ls\"]\nallow_redirection = true\n");
    let here = Gate { here: Some("/w".into()), ..gate() };
    for (text, verdict) in [
        ("ls > out.txt", Verdict::Allow),
        ("ls >> sub/out.txt 2>&1", Verdict::Allow),
        ("ls > ../out.txt", Verdict::Ask),
        ("ls > /etc/motd", Verdict::Ask),
        ("ls > $x", Verdict::Ask),
        ("ls > /dev/tcp/h/1", Verdict::Ask),
        ("ls > .git/config", Verdict::Deny),
        ("cat a > out.txt", Verdict::Ask),
    ] {
        let root = Gate { root: "/w".into(), ..here.clone() };
        let decided = root.decide_line(&rules, Actor::Model, Mode::Default, text).decision;
        assert_eq!(decided.verdict, verdict, "{text}: {decided:?}");
    }
    assert_eq!(line(&rules, Mode::Plan, "ls > out.txt"), Verdict::Deny);
    let plain = book("[[rule]]\ndecision = \"allow\"\ncommand = [\"ls\"]\n");
    assert_eq!(line(&plain, Mode::Default, "ls > out.txt"), Verdict::Ask);
}

#[test]
fn fields_that_do_not_go_together_are_refused_with_their_place() {
    for (text, words) in [
        ("command_regex = '('", "is not a regular expression"),
        ("command_regex = ''", "1 to 2048 characters"),
        ("command = ['ls']\ncommand_regex = 'ls'", "not both"),
        ("args_pattern = 'x'\npath = ['x']", "needs `tool` or `kind`"),
        ("args_pattern = 'x'\ncommand = ['ls']", "about the call of a tool"),
        ("tool = ['view']\nallow_redirection = true", "allows a command"),
        ("command = ['ls']\nallow_redirection = 'yes'", "true or false"),
        ("commandRegex = 'x'", "Lathe's word is `command_regex`"),
        ("toolName = 'x'", "Lathe's word is `tool`"),
        ("priority = 5", "no `priority`"),
    ] {
        let text = format!("[[rule]]\ndecision = \"allow\"\n{text}\n");
        let error = Rulebook::empty().with_file(Tier::User, "mine.toml", &text).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("mine.toml:"), "{text}: {error}");
    }
}
