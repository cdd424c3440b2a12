//! Files of the user that exist and cannot be used: every command names the file and ends with 2. Defaults in their
//! place would be other rules, other keys or unknown tokens.

use std::os::unix::fs::symlink;
use std::path::Path;

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, done};

use crate::lathe;

/// Commands that read the configuration.
const COMMANDS: [&[&str]; 8] = [
    &["policy", "check", "ls"],
    &["policy", "replay", "/dev/null"],
    &["config", "check"],
    &["config", "show"],
    &["tools"],
    &["serve", "--port", "0"],
    &["shell", "-c", "true"],
    &["tool", "run", "view", "--json", "{\"path\":\"a.txt\"}"],
];

fn repo() -> TempRepo {
    TempRepo::new(&[("a.txt", "one\n")])
}

fn at_home(lathe: &Lathe, name: &str) -> std::path::PathBuf {
    let path = lathe.home().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

#[test]
fn every_command_refuses_a_configuration_that_is_broken_or_leads_nowhere() {
    type Break = fn(&Path);
    let breaks: [(Break, &str); 3] = [
        (|at| std::fs::write(at, "[run]\nmax_stepss = 3\n").unwrap(), "config.toml:2"),
        (|at| std::fs::write(at, "[run\n").unwrap(), "config.toml:1"),
        (|at| symlink("nowhere.toml", at).unwrap(), "leads nowhere"),
    ];
    for (make, said) in breaks {
        for command in COMMANDS {
            let repo = repo();
            let lathe = lathe().in_dir(repo.path()).args(command);
            make(&at_home(&lathe, "config.toml"));
            let ran = lathe.run().expect_code(2);
            assert!(
                ran.stderr.contains("config.toml") && ran.stderr.contains(said),
                "{command:?}: {}",
                ran.stderr
            );
        }
    }
}

#[test]
fn a_link_that_leads_nowhere_is_never_taken_for_a_file_that_is_not_there() {
    // Where the link is, below the home or the project, and a command that reads it.
    let cases: [(bool, &str, &[&str]); 11] = [
        (true, "policy", &["policy", "check", "ls"]),
        (true, "policy/mine.toml", &["policy", "check", "ls"]),
        (true, "policy/answers.toml", &["policy", "check", "ls"]),
        (true, "auth.json", &["models"]),
        (true, "auth.json", &["run", "x"]),
        (true, "auth.json", &["auth", "login", "openai"]),
        (true, "server/tokens.json", &["serve", "--port", "0"]),
        (true, "server/tokens.json", &["serve", "token", "add", "x"]),
        (true, "trust", &["trust", "list"]),
        (false, ".lathe/config.toml", &["tools"]),
        (false, ".lathe/policy.toml", &["policy", "check", "ls"]),
    ];
    for (is_home, name, command) in cases {
        let repo = repo();
        let lathe = lathe().in_dir(repo.path()).args(command).stdin("key");
        let at = if is_home { at_home(&lathe, name) } else { repo.join(name) };
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        // A link that leads out of a project is refused for that.
        symlink(if is_home { "/nowhere/at/all" } else { "gone" }, &at).unwrap();
        let model = FakeModel::serving(Script::new().answer(done("x")));
        let lathe = if command[0] == "run" { lathe.with_model(&model) } else { lathe };
        let ran = lathe.run();
        let file = at.file_name().unwrap().to_str().unwrap();
        let case = format!("{name} {command:?}: {} {}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(file) && ran.stderr.contains("leads nowhere"), "{case}");
        assert_eq!(ran.code, 2, "{case}");
        assert!(at.is_symlink() && model.requests().is_empty(), "{case}");
    }
}

#[test]
fn a_home_that_is_a_link_to_nowhere_is_refused() {
    let (repo, outside) = (repo(), tempfile::tempdir().unwrap());
    let link = outside.path().join("home");
    symlink("/nowhere/at/all", &link).unwrap();
    for command in COMMANDS {
        let ran = lathe().in_dir(repo.path()).env("LATHE_HOME", &link).args(command).run().expect_code(2);
        assert!(ran.stderr.contains("leads nowhere"), "{}", ran.stderr);
    }
}

#[test]
fn damaged_keys_and_tokens_are_told_and_never_written_over() {
    for (name, texts, commands) in [
        (
            "auth.json",
            ["{", "[]", "{\"OPENAI_API_KEY\": 7}", "\u{0}"],
            [&["models"][..], &["auth", "login", "groq"], &["auth", "logout", "groq"], &["run", "x"]],
        ),
        (
            "server/tokens.json",
            ["{", "[]x", "{\"tokens\": 7}", "\u{0}"],
            [
                &["serve", "--port", "0"],
                &["serve", "token", "list"],
                &["serve", "token", "add", "x"],
                &["serve", "token", "remove", "x"],
            ],
        ),
    ] {
        for text in texts {
            for command in commands {
                let repo = repo();
                let lathe = lathe().in_dir(repo.path()).args(command).stdin("key");
                let at = at_home(&lathe, name);
                std::fs::write(&at, text).unwrap();
                let model = FakeModel::serving(Script::new().answer(done("x")));
                let lathe = if command[0] == "run" { lathe.with_model(&model) } else { lathe };
                let ran = lathe.run().expect_code(2);
                let file = at.file_name().unwrap().to_str().unwrap();
                assert!(ran.stderr.contains(file), "{text:?} {command:?}: {}", ran.stderr);
                assert!(ran.stderr.contains("remove it"), "what to do: {}", ran.stderr);
                assert_eq!(std::fs::read_to_string(&at).unwrap(), text, "{command:?}");
            }
        }
    }
}

#[test]
fn a_file_of_rules_is_read_or_told() {
    let repo = repo();
    let deny = "[[rule]]\ndecision = \"deny\"\ncommand = [\"ls\"]\nreason = \"not here\"\n";
    // An ending in large letters is an ending all the same.
    let lathe = lathe().in_dir(repo.path());
    std::fs::write(at_home(&lathe, "policy/a.TOML"), deny).unwrap();
    let ran = lathe.clone().args(["policy", "check", "ls"]).run().expect_code(0);
    assert!(ran.stdout.starts_with("deny") && ran.stderr.is_empty(), "{} {}", ran.stdout, ran.stderr);
    for name in ["b.tom", "README", "c.toml.bak"] {
        std::fs::write(at_home(&lathe, &format!("policy/{name}")), deny).unwrap();
    }
    let model = FakeModel::serving(Script::new().answer(done("x")));
    for command in [&["policy", "check", "ls"][..], &["config", "check"], &["doctor"], &["run", "x"]] {
        let lathe = lathe.clone().args(command);
        let lathe = if command[0] == "run" { lathe.with_model(&model) } else { lathe };
        let ran = lathe.run();
        let told: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("not read")).collect();
        assert_eq!(told.len(), 1, "{command:?}: {}", ran.stderr);
        for name in ["b.tom", "README", "c.toml.bak"] {
            assert!(told[0].contains(name) && !told[0].contains("a.TOML"), "{command:?}: {}", told[0]);
        }
    }
}
