//! The variables that count as secrets, and secrets in the model's own text, which are stored nowhere.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, done, say};
use serde_json::{Value, json};

use crate::{bodies, lathe, result, run_in};

/// Name, value, and what of it is secret.
const SECRET: [(&str, &str, &str); 12] = [
    ("STRIPE_KEY", "rk_live_51Hq8d", "rk_live_51Hq8d"),
    ("STRIPEKEY", "rk_live_77Zq8d", "rk_live_77Zq8d"),
    ("AUTH", "dXNlcjpwYXNzd29yZDE", "dXNlcjpwYXNzd29yZDE"),
    ("NPM_AUTH", "bm9ib2R5OnBhc3N3b3Jk", "bm9ib2R5OnBhc3N3b3Jk"),
    ("SENTRY_DSN", "https://9c1f27a0b3@sentry.example/4", "9c1f27a0b3"),
    ("DATABASE_URL", "postgres://app:h7Jk2mQ9@db.example/x", "app:h7Jk2mQ9"),
    ("SOME_PLACE", "amqp://guest:w9Tr4xZ2@mq.example", "w9Tr4xZ2"),
    ("GITLAB_PAT", "glpat_9k3jd83j", "glpat_9k3jd83j"),
    ("PASSPHRASE", "correct horse battery", "correct horse battery"),
    ("COOKIE", "sid=8f7a6b5c4d", "sid=8f7a6b5c4d"),
    ("AWS_SESSION_TOKEN", "IQoJb3JpZ2luX2Vj", "IQoJb3JpZ2luX2Vj"),
    ("PGPASSWORD", "hunter22", "hunter22"),
];

/// Ordinary variables, whose values stay what they are, also for programs.
const ORDINARY: [(&str, &str); 9] = [
    ("KEYMAP", "qwertz-layout"),
    ("MONKEY", "a-monkey-99"),
    ("KEYBOARD", "keyboard-us-1"),
    ("SSH_AUTH_SOCK", "/tmp/agent.sock.9"),
    ("SSL_KEY", "/etc/ssl/some/key.pem"),
    ("USE_AUTH", "true"),
    ("KEY", "production"),
    ("MAX_TOKENS", "4096000"),
    ("PLAIN_URL", "https://example.org/x1"),
];

fn planted(run: Lathe) -> Lathe {
    let run = SECRET.iter().fold(run, |run, (name, value, _)| run.env(name, value));
    ORDINARY.iter().fold(run, |run, (name, value)| run.env(name, value))
}

fn holds(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holds(&path, text));
        } else if std::fs::read(&path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(text)) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn variables_are_secrets_by_name_and_value_and_others_stay() {
    let all: String = SECRET.iter().map(|(_, value, _)| format!("{value}\n")).collect();
    let plain: String = ORDINARY.iter().map(|(_, value)| format!("{value}\n")).collect();
    let repo = TempRepo::new(&[("all.txt", &all), ("plain.txt", &plain)]);
    let script = Script::new()
        .answer(call("read", "bash", json!({ "command": "cat all.txt plain.txt" })))
        .answer(call("view", "view", json!({ "path": "all.txt" })))
        .answer(call("env", "bash", json!({ "command": "env" })))
        .answer(done("ok"));
    let model = FakeModel::serving(script);
    let run = planted(run_in(repo.path(), &model));
    let ran = run.run().expect_code(0);
    let events = ran.events();
    let shown = result(&events, "read");
    for (name, _, secret) in SECRET {
        assert!(!ran.stdout.contains(secret), "{name} in the events");
        assert!(shown.contains(&format!("«secret:{name}»")), "{name}: {shown}");
        assert_eq!(holds(&run.home(), secret), Vec::<String>::new(), "{name}");
    }
    for (name, value) in ORDINARY {
        assert!(shown.lines().any(|line| line == value), "{name}: {shown}");
        let set = format!("{name}={value}");
        assert!(result(&events, "env").lines().any(|line| line == set), "{set}: {}", result(&events, "env"));
    }
    for (name, ..) in SECRET {
        assert!(!result(&events, "env").contains(&format!("\n{name}=")), "{name} for a program");
    }
}

/// With characters that JSON writes otherwise.
const ODD: &str = "pa\"ss\\wörd/9é-x";

#[test]
fn what_the_model_itself_writes_of_a_secret_is_a_placeholder_everywhere() {
    let repo = TempRepo::new(&[]);
    let write = json!({ "path": "out.txt", "content": format!("key = {ODD}\n") });
    let script = Script::new()
        .answer(say(&format!("I know {ODD}.")).call("w", "write", write))
        .answer(call("look", "bash", json!({ "command": format!("grep -c '{ODD}' out.txt") })))
        .answer(done(&format!("It is {ODD}.")));
    let model = FakeModel::serving(script);
    let record = repo.path().join("run.cassette");
    let run =
        run_in(repo.path(), &model).env("SOME_SECRET", ODD).args(["--record", record.to_str().unwrap()]);
    let ran = run.run();
    let events = ran.events();
    let answers = bodies(&events, "model_answered");
    let text = serde_json::to_string(&answers).unwrap();
    assert!(text.contains("«secret:SOME_SECRET»"), "{text}");
    // Every string of every event, as it means.
    fn strings(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => {
                found.push(text.clone());
                if let Ok(inner) = serde_json::from_str::<Value>(text)
                    && !inner.is_string()
                {
                    strings(&inner, found);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| strings(value, found)),
            Value::Object(members) => members.values().for_each(|value| strings(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut found = Vec::new();
    events.iter().for_each(|event| strings(event, &mut found));
    let raw: Vec<&String> = found.iter().filter(|text| text.contains(ODD)).collect();
    assert_eq!(raw, Vec::<&String>::new());
    // What would put the placeholder into a file is refused, so nothing is spoiled.
    assert!(result(&events, "w").contains("«secret:SOME_SECRET»"), "{}", result(&events, "w"));
    assert!(!repo.exists("out.txt"));
    let escaped = serde_json::to_string(ODD).unwrap();
    for form in [ODD, escaped.trim_matches('"')] {
        assert_eq!(holds(&run.home(), form), Vec::<String>::new());
        assert!(!std::fs::read_to_string(&record).unwrap().contains(form));
    }
}

#[test]
fn a_recorded_model_is_guarded_like_any_other() {
    let repo = TempRepo::new(&[]);
    let cassette = repo.path().join("answers.cassette");
    let said = json!({ "answer": { "blocks": [{ "text": { "text": "the key is rk_live_51Hq8d" } }] } });
    // The first is reminded of how a task ends.
    let lines = [json!({ "cassette": 1, "toolset": "lathe" }), said.clone(), said];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&cassette, text).unwrap();
    let run = lathe().in_dir(repo.path()).env("STRIPE_KEY", "rk_live_51Hq8d");
    let run = run.args(["run", "go", "--output", "stream-json", "--replay"]).arg(&cassette);
    let ran = run.run();
    assert!(ran.stdout.contains("the key is «secret:STRIPE_KEY»"), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(holds(&run.home(), "rk_live_51Hq8d"), Vec::<String>::new());
}

#[test]
fn a_file_of_secrets_that_is_not_there_stops_lathe_before_anything_is_sent() {
    let repo = TempRepo::new(&[]);
    let model = FakeModel::serving(Script::new().answer(done("ok")));
    for (files, words) in [("[\"missing.env\"]", "missing.env"), ("[\".\"]", "cannot be read")] {
        let run = run_in(repo.path(), &model);
        std::fs::create_dir_all(run.home()).unwrap();
        std::fs::write(run.home().join("config.toml"), format!("[secrets]\nfiles = {files}\n")).unwrap();
        let ran = run.run().expect_code(2);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        for words in [words, "the secrets in ", "[secrets]"] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn the_files_of_the_code_graph_are_for_their_user_only() {
    let repo = TempRepo::with_git(&[("a.py", "def f():\n    return 1\n")]);
    let lathe = lathe().in_dir(repo.path()).args(["graph", "build"]);
    // A file of an earlier version.
    lathe.run().expect_code(0);
    let folder = lathe.home().join("graph");
    let files = || {
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file())
    };
    let modes =
        || files().map(|path| path.metadata().unwrap().permissions().mode() & 0o777).collect::<Vec<_>>();
    assert!(!modes().is_empty() && modes().iter().all(|mode| *mode == 0o600), "{:?}", modes());
    for path in files() {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    lathe.run().expect_code(0);
    let databases = files().filter(|path| path.extension().is_some_and(|ending| ending == "db"));
    for path in databases {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
}

/// A value that only a file of the workspace and the place named by each test hold.
const HIDDEN: &str = "tok_live_93kd02mf";

#[test]
fn what_a_line_changes_is_shown_without_its_secrets() {
    let name = format!("n-{HIDDEN}.txt");
    let repo = TempRepo::new(&[("leak.txt", &format!("A1={HIDDEN}\n")), (&name, "x\n")]);
    let change = "sed -i s/1=/11=/ leak.txt; echo y > n-*.txt";
    let script = Script::new().answer(call("c", "bash", json!({ "command": change }))).answer(done("ok"));
    let model = FakeModel::serving(script);
    let words = ["run", "go", "--mode", "full-auto"];
    let run = lathe().in_dir(repo.path()).args(words).with_model(&model).env("SOME_TOKEN", HIDDEN);
    let ran = run.run().expect_code(0);
    assert!(ran.stdout.contains("A11=«secret:SOME_TOKEN»"), "{}", ran.stdout);
    assert!(!ran.stdout.contains(HIDDEN), "{}", ran.stdout);
    let again = |words: &[&str]| {
        let again = lathe().env("LATHE_HOME", run.home()).in_dir(repo.path()).env("SOME_TOKEN", HIDDEN);
        again.args(words).run().expect_code(0).stdout
    };
    for words in [
        &["show"][..],
        &["show", "--format", "html"],
        &["diff"],
        &["diff", "--json"],
        &["rewind", "--to", "0", "--preview"],
        &["undo", "--json"],
    ] {
        let shown = again(words);
        assert!(shown.contains("«secret:SOME_TOKEN»") && !shown.contains(HIDDEN), "{words:?}: {shown}");
    }
    // Nor does the journal have it, of a file's name either; blobs are the files themselves.
    assert_eq!(holds(&run.home().join("sessions"), HIDDEN), Vec::<String>::new());
    // What was undone is the truth.
    assert_eq!(repo.read("leak.txt"), format!("A1={HIDDEN}\n"));
    assert_eq!(repo.read(&name), "x\n");
}

/// A recorded model that says a secret and has a line print it.
fn leaking(repo: &TempRepo) -> std::path::PathBuf {
    let cassette = repo.path().join("answers.cassette");
    let arguments = json!({ "command": "cat leak.txt" });
    let said = json!({ "answer": { "blocks": [
        { "text": { "text": format!("the key is {HIDDEN}") } },
        { "call": { "id": "c", "name": "bash", "arguments": arguments } },
    ] } });
    let end = json!({ "answer": { "blocks": [
        { "call": { "id": "d", "name": "task_done", "arguments": { "summary": "ok" } } },
    ] } });
    let lines = [json!({ "cassette": 1, "toolset": "lathe" }), said, end];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&cassette, text).unwrap();
    cassette
}

#[test]
fn every_key_of_the_configuration_is_a_secret_also_of_a_recorded_session() {
    let repo = TempRepo::new(&[("leak.txt", &format!("{HIDDEN}\n"))]);
    let cassette = leaking(&repo);
    let run = lathe().in_dir(repo.path());
    let run = run.args(["run", "go", "--output", "stream-json", "--replay"]).arg(&cassette);
    std::fs::create_dir_all(run.home()).unwrap();
    let config = format!("[providers.other]\napi_key = \"{HIDDEN}\"\n");
    std::fs::write(run.home().join("config.toml"), config).unwrap();
    let ran = run.run();
    assert!(ran.stdout.contains("the key is «secret:OTHER_API_KEY»"), "{}{}", ran.stdout, ran.stderr);
    assert!(result(&ran.events(), "c").contains("«secret:OTHER_API_KEY»"), "{}", ran.stdout);
    assert!(!ran.stdout.contains(HIDDEN), "{}", ran.stdout);
    // One tool alone says as much as a session would, and a person's own shell is theirs.
    let one = json!({ "command": "cat leak.txt" }).to_string();
    let tool = lathe()
        .env("LATHE_HOME", run.home())
        .in_dir(repo.path())
        .args(["tool", "run", "bash", "--json", &one])
        .run();
    assert!(tool.stdout.contains("«secret:OTHER_API_KEY»"), "{}{}", tool.stdout, tool.stderr);
    assert!(!tool.stdout.contains(HIDDEN), "{}", tool.stdout);
}

#[test]
fn keys_of_other_files_are_secrets_too() {
    let repo = TempRepo::new(&[("leak.txt", &format!("{HIDDEN}\n"))]);
    let cassette = leaking(&repo);
    let ours = format!("[providers.other]\napi_key = \"{HIDDEN}\"\n");
    let traes = format!(
        "agents:\n  trae_agent:\n    model: m\n    max_steps: 5\n    tools: [bash]\nmodels:\n  m:\n    model_provider: p\n    model: x\nmodel_providers:\n  p:\n    provider: openai\n    api_key: k\n  other:\n    provider: openai\n    api_key: {HIDDEN}\n"
    );
    for (name, text) in [("mine.toml", ours), ("trae_config.yaml", traes)] {
        let file = repo.path().join(name);
        std::fs::write(&file, text).unwrap();
        let words = ["run", "go", "--toolset", "lathe", "--output", "stream-json", "--config-file"];
        let run = lathe().in_dir(repo.path()).args(words);
        let ran = run.arg(&file).arg("--replay").arg(&cassette).run();
        assert!(
            ran.stdout.contains("the key is «secret:OTHER_API_KEY»"),
            "{name}: {}{}",
            ran.stdout,
            ran.stderr
        );
        assert!(!ran.stdout.contains(HIDDEN), "{name}: {}", ran.stdout);
    }
}
