//! Every key of the configuration is read by something, or refused by name.

use std::path::{Path, PathBuf};

use lathe_testkit::TempRepo;

use crate::lathe;

/// The name by which the code reads a section, and the type whose own methods read it too.
const SECTIONS: [(&str, &[&str], &str); 13] = [
    ("", &["settings"], "Settings"),
    ("model", &["model", "section"], "ModelSection"),
    ("models", &["model", "section"], "ModelSection"),
    ("run", &["run"], "RunSection"),
    ("sandbox", &["sandbox"], "SandboxSection"),
    ("lakeview", &["lakeview"], "LakeviewSection"),
    ("review", &["review", "section"], "ReviewSection"),
    ("online", &["online", "section"], "OnlineSection"),
    ("providers", &["provider", "entry", "section"], "ProviderSection"),
    ("mcp_servers", &["server"], "McpServerSection"),
    ("tools", &["tools"], "ToolsSection"),
    ("secrets", &["secrets"], "SecretsSection"),
    ("field", &["field", "section"], "FieldSection"),
];

struct Key {
    section: String,
    name: String,
    not_yet: bool,
}

/// The keys of the reference.
fn keys(reference: &str) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut whole_section = false;
    for line in reference.lines() {
        if line.starts_with("## ") {
            whole_section = false;
        }
        whole_section |= line == "Not available in this version.";
        let Some((key, rest)) = line.strip_prefix("| `").and_then(|row| row.split_once("` |")) else {
            continue;
        };
        let (section, name) = key.split_once('.').unwrap_or(("", key));
        let name = name.strip_prefix("NAME.").unwrap_or(name);
        keys.push(Key {
            section: section.to_owned(),
            name: name.to_owned(),
            not_yet: whole_section || rest.contains("Not available in this version."),
        });
    }
    keys
}

fn sources(folder: &Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            into.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

/// Tells whether a code reads `receiver.name`.
fn reads(code: &str, receiver: &str, name: &str) -> bool {
    let wanted = format!("{receiver}.{name}");
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(&wanted).any(|(at, _)| {
        !code[..at].ends_with(is_word) && !code[at + wanted.len()..].starts_with(|c| is_word(c) || c == '(')
    })
}

/// The methods of a type.
fn methods(code: &str, name: &str) -> String {
    let head = format!("\nimpl {name} {{");
    let parts = code.split(&head).skip(1);
    parts.map(|part| part.split("\n}\n").next().unwrap_or_default()).collect()
}

#[test]
fn every_key_has_a_reader_or_is_refused_by_name() {
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut code = String::new();
    for name in ["host", "plan", "cli", "server"] {
        sources(&crates.join(name).join("src"), &mut code);
    }
    // Calls are written over several lines.
    let code: String = code.split_whitespace().collect::<Vec<_>>().join(" ").replace(" .", ".");
    let own = std::fs::read_to_string(crates.join("config/src/sections.rs")).unwrap();
    let of_all = methods(&own, "Settings");
    let keys = keys(&lathe().args(["config", "reference"]).run().expect_code(0).stdout);
    assert!(keys.len() > 60, "{}", keys.len());
    let mut wrong = Vec::new();
    for Key { section, name, not_yet } in &keys {
        let Some((_, receivers, own_type)) = SECTIONS.iter().find(|(known, ..)| known == section) else {
            wrong.push(format!("[{section}] is not in the table of this test"));
            continue;
        };
        let read =
            receivers.iter().any(|receiver| reads(&code, receiver, name) || reads(&of_all, receiver, name))
                || reads(&methods(&own, own_type), "self", name);
        match (read, not_yet) {
            (true, true) => wrong.push(format!("{section}.{name} has a reader: take `x-not-yet` away")),
            (false, false) => wrong.push(format!("nothing reads {section}.{name}")),
            (true, false) | (false, true) => {}
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_key_without_a_reader_is_refused_in_our_files_and_left_out_of_traes() {
    let repo = TempRepo::new(&[("README.md", "x\n")]);
    for (text, key) in [
        ("[run]\nconsole = 'rich'\n", "run.console"),
        ("[mcp_servers.a]\ncommand = 'x'\n", "mcp_servers"),
        ("allow_mcp_servers = ['a']\n", "allow_mcp_servers"),
    ] {
        let lathe = lathe().in_dir(repo.path());
        std::fs::create_dir_all(lathe.home()).unwrap();
        std::fs::write(lathe.home().join("config.toml"), text).unwrap();
        let words = format!("`{key}` is not available in this version");
        for command in [&["config", "check"][..], &["run", "x"]] {
            let ran = lathe.clone().args(command).run().expect_code(2);
            assert!(
                ran.stderr.contains(&words) || ran.stdout.contains(&words),
                "{text}: {}{}",
                ran.stdout,
                ran.stderr
            );
        }
    }
    let trae = "agents: {trae_agent: {model: m, max_steps: 3, tools: [bash]}}
model_providers: {p: {provider: openai, api_key: k}}
models: {m: {model_provider: p, model: x}}
mcp_servers: {a: {command: sh}}
allow_mcp_servers: [a]
";
    repo.write("trae.yaml", trae);
    let ran = lathe().in_dir(repo.path()).args(["config", "check", "--config-file", "trae.yaml"]).run();
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(said.matches("not available in this version").count(), 1, "{said}");
    assert!(said.contains("mcp_servers, allow_mcp_servers"), "{said}");
}

#[test]
fn flags_of_trae_that_change_nothing_are_told_in_one_line() {
    let repo = TempRepo::new(&[("README.md", "x\n")]);
    for (flags, told) in [
        (&["-ct", "simple"][..], ""),
        (&["-ct", "rich"], "--console-type rich"),
        (&["--agent-type", "trae_agent"], "--agent-type"),
        (&["-ct", "rich", "-at", "trae_agent"], "--console-type rich and --agent-type change nothing"),
    ] {
        for command in [&["run", "x"][..], &["interactive"]] {
            // Without a model the command ends before it does anything.
            let ran = lathe().in_dir(repo.path()).args(command).args(flags).stdin("").run();
            let lines: Vec<&str> =
                ran.stderr.lines().filter(|line| line.contains(" nothing: this version")).collect();
            assert_eq!(lines.len(), usize::from(!told.is_empty()), "{flags:?}: {}", ran.stderr);
            assert!(ran.stderr.contains(told), "{flags:?}: {}", ran.stderr);
        }
    }
}
