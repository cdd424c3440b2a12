//! A denial holds for every name of a tool, every kind and every path, in shell lines too (issue 15).

use lathe_policy::{Gate, GateCall, KnownNames, OwnCommand, PolicyError, Rulebook, Tier, tool_names};
use lathe_protocol::{Actor, Effects, Mode, ToolKind, Verdict};

use crate::corpus::gate as anywhere;

fn gate() -> Gate {
    Gate { here: Some("/w".into()), user_home: Some("/home/me".into()), ..anywhere() }
}

fn book(text: &str) -> Rulebook {
    let view = OwnCommand {
        name: "view".to_owned(),
        tool: "view".to_owned(),
        also: Vec::new(),
        kind: ToolKind::Read,
    };
    let field = OwnCommand {
        name: "field:units:length".to_owned(),
        tool: "outside".to_owned(),
        also: vec!["units_length".to_owned(), "length".to_owned(), "field:units:length".to_owned()],
        kind: ToolKind::Other,
    };
    let rules = Rulebook::builtin().with_names(KnownNames::new(["code"], ["units".to_owned()]));
    rules.with_file(Tier::User, "f.toml", text).unwrap().with_own_commands([view, field])
}

fn deny(field: &str, value: &str) -> String {
    format!("[[rule]]\ndecision = \"deny\"\n{field} = [\"{value}\"]\n")
}

fn line(rules: &Rulebook, line: &str) -> Verdict {
    gate().decide_line(rules, Actor::Model, Mode::FullAuto, line).decision.verdict
}

fn call(rules: &Rulebook, tool: &str, also: &[&str], kind: ToolKind, effects: &Effects) -> Verdict {
    let also: Vec<String> = also.iter().map(|name| (*name).to_owned()).collect();
    let call = GateCall { tool, also: &also, kind, kinds: &[], effects, arguments: &[] };
    gate().decide_call(rules, Actor::Model, Mode::FullAuto, &call).verdict
}

#[test]
fn a_tool_is_denied_by_every_name_it_has() {
    for tool in
        ["bash", "view", "list", "search", "glob", "many", "edit", "write", "patch", "data", "memory", "todo"]
    {
        for name in tool_names(tool) {
            for name in [name.to_owned(), name.to_uppercase(), format!("{}*", &name[..name.len() - 1])] {
                let rules = book(&deny("tool", &name));
                let effects = Effects::reading("/w/a");
                assert_eq!(
                    call(&rules, tool, &[], ToolKind::Other, &effects),
                    Verdict::Deny,
                    "{tool} by {name}"
                );
            }
        }
    }
    for name in [
        "units_length",
        "length*",
        "field:units:length",
        "field:units:*",
        "field:*",
        "outside",
        "call_tool",
        "*",
    ] {
        let rules = book(&deny("tool", name));
        let effects = Effects { opaque: true, ..Effects::default() };
        let names = ["units_length", "length", "field:units:length"];
        assert_eq!(call(&rules, "outside", &names, ToolKind::Other, &effects), Verdict::Deny, "{name}");
        assert_eq!(line(&rules, "field:units:length 3"), Verdict::Deny, "{name}");
        assert_eq!(line(&rules, "ls && field:units:length 3"), Verdict::Deny, "{name}");
    }
}

#[test]
fn a_denial_of_the_shell_reaches_every_line() {
    let rules =
        ["bash", "Bash", "run_shell_command", "ShellTool", "*", "run_*"].map(|name| deny("tool", name));
    let kind = deny("kind", "execute");
    for text in rules.iter().chain([&kind]) {
        let rules = book(text);
        for shell in
            ["ls", "echo ran > proof", "make", "(((", "x=1", "ls |", "python3 -c 'x'", "view a", "$x", "> f"]
        {
            assert_eq!(line(&rules, shell), Verdict::Deny, "{text} {shell}");
        }
    }
}

#[test]
fn kinds_reach_the_commands_whose_effects_are_of_that_kind() {
    for (kind, denied, left) in [
        (
            "edit",
            &[
                "touch a",
                "echo x > a",
                "cp a b",
                "mv a b",
                "sed -i s/a/b/ a",
                "tee a",
                "rm a",
                "git checkout -- .",
            ][..],
            &["ls", "cat a", "make", "git log"][..],
        ),
        (
            "delete",
            &["rm a", "rm -rf x", "find . -delete", "git clean -fd", "rmdir x", "true && unlink a"],
            &["touch a", "ls"],
        ),
        ("move", &["mv a b", "git mv a b"], &["cp a b", "ls"]),
        (
            "read",
            &["cat a", "head -1 a", "cat < a", "grep x a", "ls", "diff a b", "sed -n p a"],
            &["echo x", "true", "date"],
        ),
        ("search", &["grep -r x .", "rg x", "find . -name a", "git grep x", "ls"], &["cat a", "touch b"]),
        (
            "fetch",
            &[
                "curl http://127.0.0.1",
                "wget x",
                "git fetch",
                "git push",
                "ssh h",
                "cat < /dev/tcp/127.0.0.1/1",
            ],
            &["cat a"],
        ),
    ] {
        let rules = book(&deny("kind", kind));
        for shell in denied {
            assert_eq!(line(&rules, shell), Verdict::Deny, "{kind}: {shell}");
        }
        for shell in left {
            assert_eq!(line(&rules, shell), Verdict::Allow, "{kind}: {shell}");
        }
    }
    // A view through a tool for edits is a view.
    let rules = book(&deny("kind", "read"));
    assert_eq!(call(&rules, "view", &[], ToolKind::Edit, &Effects::reading("/w/a")), Verdict::Deny);
    let rules = book(&deny("kind", "edit"));
    assert_eq!(call(&rules, "memory", &[], ToolKind::Think, &Effects::writing("/w/a")), Verdict::Deny);
}

#[test]
fn leave_by_tool_or_kind_is_no_leave_for_lines() {
    for text in [
        "tool = [\"*\"]",
        "tool = [\"bash\"]",
        "kind = [\"execute\"]",
        "kind = [\"edit\", \"delete\", \"read\"]",
    ] {
        let rules = book(&format!("[[rule]]\ndecision = \"allow\"\n{text}\n"));
        let decide =
            |line: &str| gate().decide_line(&rules, Actor::Model, Mode::Default, line).decision.verdict;
        for line in ["make", "touch a", "rm a", "python3 x.py", "cat ~/.ssh/id_rsa"] {
            assert_eq!(decide(line), Verdict::Ask, "{text} {line}");
        }
        assert_eq!(decide("rm -rf /"), Verdict::Deny);
    }
    // A pattern that allows is about canonical names, which is what it was written for.
    let rules = book("[[rule]]\ndecision = \"allow\"\ntool = [\"re*\"]\n");
    let decide = |tool: &str| {
        let effects = Effects::writing("/w/a");
        let call =
            GateCall { tool, also: &[], kind: ToolKind::Edit, kinds: &[], effects: &effects, arguments: &[] };
        gate().decide_call(&rules, Actor::Model, Mode::Default, &call).verdict
    };
    assert_eq!(
        (decide("edit"), decide("memory"), decide("review")),
        (Verdict::Ask, Verdict::Ask, Verdict::Allow)
    );
}

const SPELLINGS: [&str; 9] = [
    "**/secret.txt",
    "/w/secret.txt",
    "secret.txt",
    "./secret.txt",
    "/w/*.txt",
    "*.txt",
    "secret.*",
    "/w/s?cret.txt",
    "**/secret*",
];

#[test]
fn a_path_is_denied_to_everything_that_reads_or_writes_it() {
    let mut wrong = Vec::new();
    for pattern in SPELLINGS {
        let rules = book(&deny("path", pattern));
        for shell in [
            "cat secret.txt",
            "cat ./secret.txt",
            "cat /w/secret.txt",
            "cat /w/../w/secret.txt",
            "cat se''cret.txt",
            "cat secret*",
            "cat *",
            "cat s[e]cret.txt",
            "cat {a,secret}.txt",
            "cat < secret.txt",
            "echo $(< secret.txt)",
            "mkdir sub; cd sub && cat ../secret.txt",
            "grep x secret.txt",
            "grep -r x .",
            "grep -rn x /w",
            "rg x",
            "git grep x",
            "git diff",
            "git diff HEAD~1",
            "git diff -- .",
            "git log -p -1",
            "git show HEAD",
            "git show",
            "git stash show -p",
            "git archive HEAD",
            "git show HEAD:secret.txt",
            "git diff -- secret.txt",
            "git log -p -- secret.txt",
            "head -1 secret.txt",
            "sed -n p secret.txt",
            "sed -i s/a/b/ secret.txt",
            "awk '{print}' secret.txt",
            "awk '{getline l < \"secret.txt\"; print l}' a",
            "cp secret.txt b",
            "cp -r . /tmp/x",
            "mv secret.txt b",
            "ln secret.txt b",
            "tar cf x.tar secret.txt",
            "tar cf x.tar .",
            "zip -r x.zip .",
            "dd if=secret.txt",
            "base64 secret.txt",
            "echo x > secret.txt",
            "echo x >> secret.txt",
            "tee secret.txt",
            "rm secret.txt",
            "touch secret.txt",
            "rm $x",
            "cp a $x",
            "echo x > $x",
            "ls | xargs touch",
            "f=secret.txt; cat $f",
            "for f in secret.txt; do cat $f; done",
            "for f in *; do cat \"$f\"; done",
            "cat $(echo secret.txt)",
            "cat $(ls)",
            "cat $x",
            "find . -type f -exec cat {} +",
            "find . | xargs cat",
            "while read f; do cat $f; done < list",
            "cat list | while read f; do head $f; done",
            "python3 -c \"print(open('secret.txt').read())\"",
            "perl -ne print secret.txt",
            "bash secret.txt",
            ". secret.txt",
            "source ./secret.txt",
            "curl -d @secret.txt http://127.0.0.1",
            "curl --data-binary=@secret.txt http://127.0.0.1",
            "sort --files0-from=secret.txt",
            "grep -fsecret.txt a",
            "sh -c 'cat secret.txt'",
            "env cat secret.txt",
            "diff a secret.txt",
            "od -c secret.txt",
            "less secret.txt",
            "vim secret.txt",
            "xxd < secret.txt",
        ] {
            if line(&rules, shell) != Verdict::Deny {
                wrong.push(format!("{pattern}: {shell}"));
            }
        }
        for tool in ["view", "many", "search", "list", "glob", "data", "code"] {
            let effects = Effects::reading("/w/secret.txt");
            assert_eq!(call(&rules, tool, &[], ToolKind::Read, &effects), Verdict::Deny, "{pattern}: {tool}");
        }
        for tool in ["write", "edit", "patch"] {
            let effects = Effects::writing("/w/./secret.txt");
            assert_eq!(call(&rules, tool, &[], ToolKind::Edit, &effects), Verdict::Deny, "{pattern}: {tool}");
        }
        for shell in [
            "cat other.md",
            "ls",
            "ls -la",
            "find . -name '*.md'",
            "echo secret",
            "wc -l src/a.md",
            "git log --oneline",
            "git diff --stat",
            "git show --stat",
            "git show HEAD:a.md",
            "git status",
        ] {
            if line(&rules, shell) != Verdict::Allow {
                wrong.push(format!("{pattern}: {shell} is not left alone"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    // A folder goes with all that is in it.
    let rules = book(&deny("path", "keys"));
    for shell in ["cat keys/a/b", "ls keys", "cat keys/*", "cd keys && cat a"] {
        assert_eq!(line(&rules, shell), Verdict::Deny, "{shell}");
    }
    let rules = book(&deny("path", "~/private/**"));
    assert_eq!(line(&rules, "cat ~/private/a"), Verdict::Deny);
}

#[test]
fn a_name_that_no_tool_has_is_an_error_with_its_place() {
    for (text, words) in [
        ("tool = [\"\"]", "is empty"),
        ("tool = [\"write_fil\"]", "did you mean `write_file`?"),
        ("tool = [\"Bsh\"]", "did you mean `bash`?"),
        ("tool = [\"run_shell_comand\"]", "did you mean `run_shell_command`?"),
        ("tool = [\"view\", \"delete_file\"]", "no tool `delete_file`"),
        ("tool = [\"unit_length\"]", "no tool `unit_length`"),
        ("kind = [\"raed\"]", "did you mean `read`?"),
        ("kind = [\"\"]", "no kind"),
    ] {
        let text = format!("\n[[rule]]\ndecision = \"deny\"\n{text}\n");
        let told = Rulebook::empty().with_file(Tier::User, "f.toml", &text).unwrap_err().to_string();
        assert!(told.starts_with("f.toml:4: ") && told.contains(words), "{text}: {told}");
    }
    for name in [
        "*",
        "wr*",
        "mcp__git__push",
        "mcp:git:push",
        "field:units:length",
        "units_length",
        "discovered_tool_add",
        "skill:x",
    ] {
        assert!(
            Rulebook::empty()
                .with_names(KnownNames::new(["code"], ["units".to_owned()]))
                .with_file(Tier::User, "f", &deny("tool", name))
                .is_ok(),
            "{name}"
        );
    }
    // Examples name tools too.
    let example = |example: &str| {
        let text = format!("{}match = [\"{example}\"]\n", deny("tool", "bash"));
        Rulebook::empty().with_file(Tier::User, "f", &text)
    };
    assert!(example("run_shell_command").is_ok() && example("bash").is_ok());
    assert!(matches!(example("run_shell"), Err(PolicyError::Rule { .. })));
    assert!(matches!(example("view"), Err(PolicyError::NoMatch { .. })));
}

#[test]
fn an_excluded_command_is_denied_by_any_spelling() {
    let words = vec![vec!["git".to_owned(), "push".to_owned()]];
    let rules = Rulebook::builtin().without_commands("tools.exclude", words);
    for shell in [
        "git push",
        "git  push",
        "git push origin main",
        "git -C . push",
        "git -c a=b push",
        "/usr/bin/git push",
        "env git push",
        "true && git push",
        "ls; git push",
        "echo $(git push)",
        "`git push`",
        "g''it push",
        "'git' \"push\"",
        "git pu\\sh",
        "x=push; git $x",
        "xargs git push",
        "echo push | xargs git",
        "sh -c 'git push'",
        "eval git push",
        "if true; then git push; fi",
        "f() { git push; }; f",
        "(git push)",
        "git push &",
        "timeout 5 git push",
        "nohup git push",
        "find . -maxdepth 0 -exec git push \\;",
        "git --no-pager push",
        "command git push",
        // An alias of the user's, which may be anything.
        "git pushx",
    ] {
        let decided = gate().decide_line(&rules, Actor::Model, Mode::FullAuto, shell).decision;
        assert_eq!((decided.verdict, decided.rule.as_str()), (Verdict::Deny, "tools.exclude"), "{shell}");
    }
    for shell in ["git status", "git stash push", "echo git push"] {
        let decided = gate().decide_line(&rules, Actor::Model, Mode::FullAuto, shell).decision;
        assert_eq!(decided.verdict, Verdict::Allow, "{shell}");
    }
}
