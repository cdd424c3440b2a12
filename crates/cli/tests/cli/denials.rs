//! A denied path stays denied by any name, kind or route, and reading outside the workspace has one decision for
//! every reader. Through the real binary; all files are the test's own.

use std::os::unix::fs::symlink;

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, say};
use serde_json::{Value, json};

use crate::{lathe, result};

/// Text that must never be printed.
const SECRET: &str = "hunter-two-of-seventy";

fn repo() -> TempRepo {
    let repo = TempRepo::with_git(&[
        ("a.txt", "one\ntwo\n"),
        ("secret.txt", "hunter-two-of-seventy\n"),
        ("sub/b.txt", "bee\n"),
        ("data.json", "{\"a\": 1}\n"),
    ]);
    symlink("secret.txt", repo.path().join("link.md")).unwrap();
    symlink(repo.path(), repo.path().join("sub/up")).unwrap();
    repo
}

/// A command line with these rules of the user's.
fn with_rules(text: &str) -> Lathe {
    let lathe = lathe();
    std::fs::create_dir_all(lathe.home().join("policy")).unwrap();
    std::fs::write(lathe.home().join("policy/mine.toml"), text).unwrap();
    lathe
}

/// With a field of one tool, which leaves a file when it runs.
fn with_field(lathe: Lathe) -> Lathe {
    let home = lathe.home();
    let schema =
        r#"[{"name": "mark", "description": "Leaves a mark.", "parametersJsonSchema": {"type": "object"}}]"#;
    std::fs::write(home.join("units.json"), schema).unwrap();
    std::fs::write(home.join("units.sh"), "touch ran-field\necho marked\n").unwrap();
    let config =
        format!("[field.units]\ntools = \"units.json\"\ncommand = \"bash {}/units.sh\"\n", home.display());
    std::fs::write(home.join("config.toml"), config).unwrap();
    lathe
}

fn deny(field: &str, value: &str) -> String {
    format!("[[rule]]\ndecision = \"deny\"\n{field} = [{value:?}]\n")
}

fn tool(lathe: &Lathe, repo: &TempRepo, toolset: &str, name: &str, arguments: &Value) -> String {
    let ran = lathe
        .clone()
        .in_dir(repo.path())
        .args([
            "tool",
            "run",
            name,
            "--toolset",
            toolset,
            "--mode",
            "full-auto",
            "--json",
            &arguments.to_string(),
        ])
        .run();
    format!("{}{}", ran.stdout, ran.stderr)
}

fn shell(lathe: &Lathe, repo: &TempRepo, mode: &str, line: &str) -> (i32, String) {
    let ran = lathe.clone().in_dir(repo.path()).args(["shell", "--mode", mode, "-c", line]).run();
    (ran.code, format!("{}{}", ran.stdout, ran.stderr))
}

/// A rule's name, and calls by other names of the same tool.
fn by_other_names() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let line = json!({ "command": "touch ran" });
    vec![
        ("run_shell_command", "lathe", "bash", line.clone()),
        ("ShellTool", "bash", "Bash", line.clone()),
        ("Bash", "trae", "bash", line.clone()),
        ("bash", "gemini", "run_shell_command", line.clone()),
        ("*", "lathe", "bash", line),
        ("read_file", "lathe", "view", json!({ "path": "secret.txt" })),
        ("view", "gemini", "read_file", json!({ "file_path": "secret.txt" })),
        (
            "read",
            "trae",
            "str_replace_based_edit_tool",
            json!({ "command": "view", "path": "/R/secret.txt" }),
        ),
        ("write_file", "lathe", "write", json!({ "path": "ran", "content": "x" })),
        ("write", "gemini", "write_file", json!({ "file_path": "ran", "content": "x" })),
        (
            "write_file",
            "trae",
            "str_replace_based_edit_tool",
            json!({ "command": "create", "path": "/R/ran", "file_text": "x" }),
        ),
        ("search_file_content", "lathe", "search", json!({ "pattern": "hunter" })),
        ("search", "gemini", "search_file_content", json!({ "pattern": "hunter" })),
        ("many", "gemini", "read_many_files", json!({ "include": ["*.txt"] })),
        (
            "apply_patch",
            "lathe",
            "apply_patch",
            json!({ "patch": "*** Begin Patch\n*** Add File: ran\n+x\n*** End Patch" }),
        ),
        ("units_mark", "lathe", "units_mark", json!({})),
        ("field:units:*", "lathe", "units_mark", json!({})),
        ("outside", "lathe", "call_tool", json!({ "name": "units_mark", "arguments": {} })),
    ]
}

#[test]
fn a_denied_tool_does_not_run_by_any_other_name() {
    for (rule, toolset, name, arguments) in by_other_names() {
        let repo = repo();
        let lathe = with_field(with_rules(&deny("tool", rule)));
        let arguments = arguments.to_string().replace("/R/", &format!("{}/", repo.path().display()));
        let told = tool(&lathe, &repo, toolset, name, &serde_json::from_str(&arguments).unwrap());
        assert!(told.contains("denied by policy") && !told.contains(SECRET), "{rule} {name}: {told}");
        assert!(!repo.exists("ran") && !repo.exists("ran-field"), "{rule} {name}: {told}");
    }
}

#[test]
fn a_denied_tool_does_not_run_as_a_command_whoever_starts_it() {
    for (rule, line) in [
        ("read_file", "view secret.txt"),
        ("read_file", "view secret.txt | cat"),
        ("view", "env view secret.txt"),
        ("read_file", "sh -c 'view secret.txt'"),
        ("read_file", "find . -maxdepth 1 -name secret.txt -exec view {} \\;"),
        ("read_file", "echo secret.txt | xargs view"),
        ("write_file", "write ran x"),
        ("write_file", "echo x | bash -c 'write ran'"),
        ("search_file_content", "search hunter"),
        ("apply_patch", "printf '*** Begin Patch\\n*** Add File: ran\\n+x\\n*** End Patch\\n' | apply_patch"),
        ("units_mark", "field:units:mark"),
        ("field:units:mark", "sh -c field:units:mark"),
        ("field:units:*", "env field:units:mark"),
        ("run_shell_command", "touch ran"),
        ("Bash", "view secret.txt"),
        ("*", "view secret.txt"),
    ] {
        let repo = repo();
        let lathe = with_field(with_rules(&deny("tool", rule)));
        let (_, told) = shell(&lathe, &repo, "full-auto", line);
        assert!(!told.contains(SECRET) && told.contains("denied"), "{rule}: {line}: {told}");
        assert!(!repo.exists("ran") && !repo.exists("ran-field"), "{rule}: {line}: {told}");
    }
}

#[test]
fn a_denied_kind_is_denied_in_lines_and_calls() {
    for (kind, line) in [
        ("execute", "touch ran"),
        ("execute", "view secret.txt"),
        ("edit", "echo x > ran"),
        ("edit", "touch ran"),
        ("edit", "write ran x"),
        ("edit", "cp a.txt ran"),
        ("delete", "rm a.txt && touch ran"),
        (
            "delete",
            "printf '*** Begin Patch\\n*** Delete File: a.txt\\n*** End Patch\\n' | apply_patch && touch ran",
        ),
        ("move", "mv a.txt ran"),
        ("read", "cat secret.txt"),
        ("read", "view secret.txt"),
        ("read", "dd if=secret.txt && touch ran"),
        ("search", "grep -r hunter ."),
        ("search", "search hunter"),
        ("search", "ugrep hunter; touch ran"),
        ("search", "bzgrep hunter secret.txt; touch ran"),
        ("fetch", "mvn install; touch ran"),
        ("fetch", "./gradlew build; touch ran"),
        ("other", "field:units:mark"),
    ] {
        let repo = repo();
        let lathe = with_field(with_rules(&deny("kind", kind)));
        let (_, told) = shell(&lathe, &repo, "full-auto", line);
        assert!(!told.contains(SECRET) && told.contains("denied"), "{kind}: {line}: {told}");
        assert!(!repo.exists("ran") && !repo.exists("ran-field"), "{kind}: {line}: {told}");
    }
}

#[test]
fn a_denied_path_is_read_by_nothing() {
    let absolute =
        |repo: &TempRepo| repo.path().canonicalize().unwrap().join("secret.txt").display().to_string();
    for spelling in ["**/secret.txt", "ABSOLUTE", "secret.txt"] {
        let repo = repo();
        let path = spelling.replace("ABSOLUTE", &absolute(&repo));
        let lathe = with_rules(&deny("path", &path));
        for line in [
            "cat secret.txt",
            "cat ./secret.txt",
            "cat *",
            "cat s*",
            "cat link.md",
            "cat sub/up/secret.txt",
            "cd sub && cat ../secret.txt",
            "cat < secret.txt",
            "cat < link.md",
            "grep hunter secret.txt",
            "grep -r hunter .",
            "grep -r hunter sub/up/",
            "rg hunter || grep -rn hunter",
            "git grep hunter",
            "git show HEAD:secret.txt",
            "git show HEAD",
            "git log -p",
            "git diff 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            "cp secret.txt x && cat x",
            "tar cf - . | cat",
            "for f in *; do cat \"$f\"; done",
            "find . -type f -exec cat {} +",
            "find . -type f | xargs cat",
            "cat $(ls)",
            "x=$(echo secret.txt); cat $x",
            "python3 -c \"print(open('secret.txt').read())\"",
            "view secret.txt",
            "view link.md",
            "view secret.txt | cat",
            "search hunter",
            "search hunter . --all",
            "search hunter secret.txt",
            "search hunter link.md",
        ] {
            let (_, told) = shell(&lathe, &repo, "full-auto", line);
            assert!(!told.contains(SECRET), "{spelling}: {line}: {told}");
        }
        for line in [
            "cat a.txt",
            "git log --oneline",
            "git diff --stat",
            "grep -r bee sub/b.txt",
            "ls",
            "view a.txt",
            "search one a.txt",
        ] {
            let (code, told) = shell(&lathe, &repo, "full-auto", line);
            assert_eq!(code, 0, "{spelling}: {line}: {told}");
        }
        for (toolset, name, arguments) in [
            ("lathe", "view", json!({ "path": "secret.txt" })),
            ("lathe", "view", json!({ "path": "link.md" })),
            ("lathe", "search", json!({ "pattern": "hunter" })),
            ("lathe", "search", json!({ "pattern": "hunter", "all": true })),
            ("lathe", "search", json!({ "pattern": "hunter", "path": "secret.txt" })),
            ("lathe", "code", json!({ "command": "map" })),
            ("gemini", "read_file", json!({ "file_path": "secret.txt" })),
            ("gemini", "search_file_content", json!({ "pattern": "hunter" })),
            ("gemini", "search_file_content", json!({ "pattern": "hunter", "include": "*" })),
            ("gemini", "read_many_files", json!({ "include": ["**"] })),
            ("gemini", "read_many_files", json!({ "include": ["secret.txt"] })),
        ] {
            let told = tool(&lathe, &repo, toolset, name, &arguments);
            assert!(!told.contains(SECRET), "{spelling}: {name} {arguments}: {told}");
        }
        // What is left out is said, and the rest is there.
        let told = tool(&lathe, &repo, "lathe", "search", &json!({ "pattern": "one|hunter" }));
        assert!(told.contains("a.txt") && told.contains("left out"), "{spelling}: {told}");
        for (toolset, name, arguments) in [
            ("lathe", "glob", json!({ "pattern": "**/*.txt" })),
            ("gemini", "list_directory", json!({ "dir_path": "." })),
            ("lathe", "view", json!({ "path": "." })),
        ] {
            let told = tool(&lathe, &repo, toolset, name, &arguments);
            assert!(told.contains("a.txt") && !told.contains("secret.txt"), "{spelling}: {name}: {told}");
        }
    }
}

#[test]
fn a_misspelt_tool_or_kind_is_an_error_wherever_rules_are_read() {
    for (rule, words) in [
        (deny("tool", "write_fil"), "did you mean `write_file`?"),
        (deny("tool", ""), "is empty"),
        (deny("kind", "exekute"), "did you mean `execute`?"),
    ] {
        let (repo, lathe) = (repo(), with_rules(&rule));
        for args in [
            &["policy", "check", "ls"][..],
            &["shell", "--mode", "full-auto", "-c", "touch ran"],
            &["tool", "run", "view", "--json", "{\"path\": \"a.txt\"}"],
            &["run", "do it", "--mode", "full-auto"],
            &["config", "check"],
            &["serve", "--port", "0", "--root", "."],
        ] {
            let model = FakeModel::serving(Script::new().answer(say("hello")));
            let ran = lathe.clone().in_dir(repo.path()).args(args);
            let ran = if args[0] == "run" { ran.with_model(&model) } else { ran };
            let ran = ran.run();
            assert_eq!(ran.code, 2, "{args:?}: {}{}", ran.stdout, ran.stderr);
            assert!(
                ran.stderr.contains("mine.toml:3: ") && ran.stderr.contains(words),
                "{args:?}: {}",
                ran.stderr
            );
        }
        let file = lathe.home().join("policy/mine.toml").display().to_string();
        let ran = crate::lathe().args(["policy", "check", "--rules", &file, "ls"]).run();
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        let ran = lathe.clone().in_dir(repo.path()).args(["doctor", "--json"]).run();
        assert!(ran.stdout.contains("mine.toml:3: "), "{}", ran.stdout);
        assert!(!repo.exists("ran"));
    }
}

#[test]
fn names_that_come_and_go_are_told_by_the_doctor() {
    let text = ["field:units:mark", "units_mark", "mcp__git__push", "discovered_tool_add", "wr*", "zz*"]
        .map(|name| deny("tool", name))
        .concat();
    let lathe = with_field(with_rules(&text));
    let repo = repo();
    let (code, told) = shell(&lathe, &repo, "full-auto", "true");
    assert_eq!((code, told.as_str()), (0, ""));
    let ran = lathe.clone().in_dir(repo.path()).args(["doctor", "--json"]).run();
    let rows: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    let detail = rows.iter().find(|row| row["name"] == "policy").unwrap()["detail"].to_string();
    for (name, told) in [
        ("mcp__git__push", true),
        ("discovered_tool_add", true),
        ("zz*", true),
        ("units_mark", false),
        ("field:units:mark", false),
        ("wr*", false),
    ] {
        assert_eq!(detail.contains(&format!("`{name}`")), told, "{name}: {detail}");
    }
}

#[test]
fn an_excluded_command_does_not_run_by_any_spelling() {
    let lines = [
        "git push",
        "git  push",
        "git -C . push",
        "/usr/bin/git push",
        "env git push",
        "true && git push",
        "echo $(git push)",
        "g''it push",
        "x=push; git $x",
        "echo push | xargs git",
        "sh -c 'git push'",
        "command git push",
    ];
    for (toolset, name) in [("lathe", "bash"), ("gemini", "run_shell_command"), ("bash", "Bash")] {
        for entry in [
            "Tool(git push)",
            "ShellTool(git push)",
            "Bash(git push)",
            "bash(git push)",
            "run_shell_command(git push)",
            "BASH(git push:*)",
        ] {
            let lathe = lathe();
            std::fs::create_dir_all(lathe.home()).unwrap();
            std::fs::write(lathe.home().join("config.toml"), format!("[tools]\nexclude = [{entry:?}]\n"))
                .unwrap();
            let repo = repo();
            for lines in lines.chunks(2) {
                let script = lines.iter().enumerate().fold(Script::new(), |script, (index, line)| {
                    script.answer(call(&format!("c{index}"), name, json!({ "command": line })))
                });
                let model = FakeModel::serving(script.answer(say("ok")));
                let ran = lathe
                    .clone()
                    .in_dir(repo.path())
                    .args([
                        "run",
                        "do it",
                        "--mode",
                        "full-auto",
                        "--toolset",
                        toolset,
                        "--output",
                        "stream-json",
                    ])
                    .with_model(&model)
                    .run();
                for (index, line) in lines.iter().enumerate() {
                    let told = result(&ran.events(), &format!("c{index}"));
                    assert!(told.contains("excluded"), "{toolset} {entry}: {line}: {told}");
                }
            }
        }
    }
}

#[test]
fn an_excluded_tool_is_no_command_and_no_part_of_another_tool() {
    for (entry, toolset, name, arguments) in [
        ("write_file", "lathe", "bash", json!({ "command": "write ran x" })),
        ("write", "gemini", "run_shell_command", json!({ "command": "sh -c 'write ran x'" })),
        (
            "write",
            "trae",
            "str_replace_based_edit_tool",
            json!({ "command": "create", "path": "/R/ran", "file_text": "x" }),
        ),
    ] {
        let (repo, lathe) = (repo(), lathe());
        std::fs::create_dir_all(lathe.home()).unwrap();
        std::fs::write(lathe.home().join("config.toml"), format!("[tools]\nexclude = [{entry:?}]\n"))
            .unwrap();
        let arguments = arguments.to_string().replace("/R/", &format!("{}/", repo.path().display()));
        let arguments: Value = serde_json::from_str(&arguments).unwrap();
        let model = FakeModel::serving(Script::new().answer(call("c", name, arguments)).answer(say("ok")));
        lathe
            .in_dir(repo.path())
            .args(["run", "do it", "--mode", "full-auto", "--toolset", toolset, "--output", "stream-json"])
            .with_model(&model)
            .run();
        assert!(!repo.exists("ran"), "{entry} {toolset}");
    }
}

/// A path whose last letter is a set with one letter in it.
fn last_as_pattern(path: &str) -> String {
    let mut letters: Vec<char> = path.chars().collect();
    let last = letters.pop().unwrap_or_default();
    format!("{}[{last}]", letters.iter().collect::<String>())
}

/// Reads the same places by tools and lines, in every mode.
#[test]
fn reading_outside_has_one_decision_whatever_reads() {
    let (repo, lathe) = (repo(), lathe());
    let user = lathe.home().parent().unwrap().join("user");
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(user.join(".ssh")).unwrap();
    std::fs::create_dir_all(user.join(".cargo/registry")).unwrap();
    std::fs::create_dir_all(lathe.home()).unwrap();
    for file in [
        user.join(".ssh/id_rsa"),
        user.join(".cargo/registry/x"),
        user.join("notes"),
        outside.path().join("x"),
        lathe.home().join("x"),
    ] {
        std::fs::write(file, format!("{SECRET}\n")).unwrap();
    }
    let text = |path: std::path::PathBuf| path.canonicalize().unwrap().display().to_string();
    symlink(user.join(".ssh/id_rsa"), repo.path().join("key")).unwrap();
    for (path, seen) in [
        (text(user.join(".ssh/id_rsa")), [false, false, false, false]),
        (text(lathe.home().join("x")), [false, false, false, false]),
        (text(user.join(".cargo/registry/x")), [true, true, true, true]),
        (text(user.join("notes")), [false, false, false, true]),
        (text(outside.path().join("x")), [false, false, false, true]),
        ("key".to_owned(), [false, false, false, false]),
    ] {
        for (mode, seen) in ["plan", "default", "auto-edit", "full-auto"].into_iter().zip(seen) {
            for line in ["cat @", "head -1 @", "grep hunter @", "cat < @", "view @", "search hunter @"] {
                let line = line.replace('@', &path);
                let (_, told) = shell(&lathe, &repo, mode, &line);
                assert_eq!(told.contains(SECRET), seen, "{mode}: {line}: {told}");
            }
            for (toolset, name, arguments) in [
                ("lathe", "view", json!({ "path": path })),
                ("lathe", "search", json!({ "pattern": "hunter", "path": path })),
                ("gemini", "read_many_files", json!({ "include": [path] })),
            ] {
                let ran = lathe
                    .clone()
                    .in_dir(repo.path())
                    .args([
                        "tool",
                        "run",
                        name,
                        "--toolset",
                        toolset,
                        "--mode",
                        mode,
                        "--json",
                        &arguments.to_string(),
                    ])
                    .run();
                assert_eq!(
                    ran.stdout.contains(SECRET),
                    seen,
                    "{mode}: {name} {path}: {}{}",
                    ran.stdout,
                    ran.stderr
                );
            }
        }
    }
    // A pattern counts as the strictest place that its folder could hold.
    for (path, mode, seen) in [
        (text(outside.path().join("x")), "default", false),
        (text(outside.path().join("x")), "full-auto", true),
        (text(user.join("notes")), "full-auto", false),
        (text(user.join(".ssh/id_rsa")), "full-auto", false),
        (text(lathe.home().join("x")), "full-auto", false),
    ] {
        let arguments = json!({ "include": [last_as_pattern(&path)] }).to_string();
        let args =
            ["tool", "run", "read_many_files", "--toolset", "gemini", "--mode", mode, "--json", &arguments];
        let ran = lathe.clone().in_dir(repo.path()).args(args).run();
        assert_eq!(ran.stdout.contains(SECRET), seen, "{mode}: {path}: {}{}", ran.stdout, ran.stderr);
    }
    // The folder that a line is to run in is judged too.
    for (folder, mode, runs) in [
        (text(user.join(".ssh")), "full-auto", false),
        ("/etc".to_owned(), "plan", false),
        ("sub".to_owned(), "plan", true),
    ] {
        let arguments = json!({ "command": "ls", "dir_path": folder }).to_string();
        let args =
            ["tool", "run", "run_shell_command", "--toolset", "gemini", "--mode", mode, "--json", &arguments];
        let ran = lathe.clone().in_dir(repo.path()).args(args).run();
        assert_eq!(!ran.stdout.contains("denied by policy"), runs, "{folder} {mode}: {}", ran.stdout);
    }
}

/// Audit, bash E3: a rule about a command holds when a program starts it.
#[test]
fn a_denied_command_of_the_agent_is_denied_to_programs_too() {
    for (command, started) in [
        ("view", "['view', 'secret.txt']"),
        ("view secret.txt", "['view', 'secret.txt']"),
        ("field:units:mark", "['field:units:mark']"),
        ("write ran", "['write', 'ran', 'x']"),
    ] {
        let (repo, lathe) = (repo(), with_field(with_rules(&deny("command", command))));
        std::fs::write(
            repo.path().join("start.py"),
            format!("import subprocess\nsubprocess.run({started})\n"),
        )
        .unwrap();
        let (_, told) = shell(&lathe, &repo, "full-auto", "python3 start.py");
        assert!(!told.contains(SECRET) && !told.contains("marked"), "{command}: {told}");
        assert!(!repo.exists("ran") && !repo.exists("ran-field"), "{command}: {told}");
    }
}

/// Audit, bash E11.
#[test]
fn policy_check_knows_the_commands_of_the_agent() {
    let (repo, lathe) = (repo(), with_field(with_rules(&deny("tool", "apply_patch"))));
    for (line, mode, decision) in [
        ("view a.txt", "plan", "allow"),
        ("view a.txt", "default", "allow"),
        ("search one", "plan", "allow"),
        ("commands", "plan", "allow"),
        ("view a.txt | head -1", "default", "allow"),
        ("apply_patch < x", "default", "deny"),
        ("field:units:mark", "default", "ask"),
        ("field:units:mark", "plan", "deny"),
        ("field:units:mark", "full-auto", "allow"),
        ("cat ~/.ssh/id_rsa", "plan", "deny"),
        ("cat ~/.ssh/id_rsa", "default", "ask"),
        ("cat ~/.ssh/id_rsa", "full-auto", "deny"),
        ("cat /etc/shadow", "default", "ask"),
        ("cat /etc/hostname", "plan", "allow"),
    ] {
        let ran =
            lathe.clone().in_dir(repo.path()).args(["policy", "check", "--json", "--mode", mode, line]).run();
        let answer: Value = serde_json::from_str(ran.expect_code(0).stdout.trim()).unwrap();
        assert_eq!(answer["decision"], decision, "{mode} {line}: {answer}");
    }
    // The same holds for a field command, which runs where no question can be asked.
    for (mode, runs) in [("plan", false), ("default", false), ("full-auto", true)] {
        let _ = shell(&lathe, &repo, mode, "field:units:mark");
        assert_eq!(repo.exists("ran-field"), runs, "{mode}");
    }
}
