//! Planted secrets: in files that are found and not used, in failures, in JSON, in `/proc`.

use std::time::Duration;

use lathe_testkit::{FakeModel, Fault, Options, Script, TempRepo, call, done, eventually, say};
use serde_json::json;

use crate::{lathe, run_in};

const WITHIN: Duration = Duration::from_secs(60);

#[test]
fn keys_of_files_that_were_found_and_not_used_are_secrets() {
    let files = [
        ("trae_config.yaml", "model_providers:\n  a: {api_key: sk-planted-yaml-1, provider: a}\n"),
        ("trae_config.json", "{\"model_providers\": {\"a\": {\"api_key\": \"sk-planted-json-2\"}}}"),
        (
            ".lathe/config.toml",
            "[model]\napi_key = 'sk-planted-toml-3'\nbase_url = 'https://me:sk-planted-pass-4@h/v1'\n",
        ),
        ("sub/keep.txt", "x"),
    ];
    let repo = TempRepo::new(&files);
    let show = "cat ../trae_config.yaml ../trae_config.json ../.lathe/config.toml";
    let script = Script::new().answer(call("c1", "bash", json!({ "command": show }))).answer(done("ok"));
    let model = FakeModel::serving(script);
    let ran = run_in(&repo.path().join("sub"), &model).run().expect_code(0);
    let seen = model.requests().iter().map(|request| request.json().to_string()).collect::<String>();
    assert!(seen.contains("model_providers") && ran.stdout.contains("model_providers"));
    for (place, text) in [("the model", &seen), ("the screen", &ran.stdout)] {
        assert!(!text.contains("sk-planted"), "{place}: {text}");
    }
}

#[test]
fn a_failing_model_judge_and_summary_repeat_no_key() {
    let repo = TempRepo::new(&[]);
    let echo = |key: &str| Fault::status(400, &format!("{} your key is {key}", "x".repeat(1980)));
    let judge_key = "sk-planted-judge-0123456789";
    let options = || Options { require_key: Some(judge_key.to_owned()), ..Options::default() };
    let judge = FakeModel::start(Script::new().answer(say("no").fails(9, echo(judge_key))), options());
    let script = Script::new()
        .answer(call("w1", "write", json!({ "path": "a.txt", "content": "a\n" })))
        .answer(done("ok"));
    let model = FakeModel::serving(script);
    let lathe = lathe().in_dir(repo.path());
    std::fs::create_dir_all(lathe.home()).unwrap();
    let config = format!(
        "[review]\nenabled = true\nrules = 'x'\nmodel = 'judge'\n[models.judge]\nprovider = 'judge'\nname = 'j'\nbase_url = '{}'\napi_key = '{judge_key}'\n",
        judge.base_url()
    );
    std::fs::write(lathe.home().join("config.toml"), config).unwrap();
    let run = lathe.clone().args(["run", "x", "--mode", "full-auto", "--output", "stream-json"]);
    let ran = run.with_model(&model).run().expect_code(0);
    assert!(ran.stdout.contains("your key is") || ran.stdout.contains("xxxx"), "the failure is told");
    let sent: String = model.requests().iter().map(|request| request.json().to_string()).collect();
    for text in [&ran.stdout, &ran.stderr, &sent] {
        assert!(!text.contains("sk-planted-judge"), "{text}");
    }
}

#[test]
fn json_for_others_holds_no_character_that_acts_unseen() {
    let repo = TempRepo::new(&[]);
    let odd = "a\u{9b}31m\u{202e}b\u{2066}c\u{200b}d\u{7f}\u{feff}e";
    let script = Script::new()
        .answer(say(odd).call("c1", "bash", json!({ "command": format!("printf '%s' '{odd}'") })))
        .answer(done(odd));
    let model = FakeModel::serving(script);
    let home = lathe().in_dir(repo.path());
    let args = ["run", odd, "--mode", "full-auto", "--output", "stream-json"];
    let mut texts = vec![home.clone().args(args).with_model(&model).run().expect_code(0).stdout];
    for words in [
        &["show", "--format", "json"][..],
        &["show", "--format", "trajectory"],
        &["sessions", "--json"],
        &["watch", "--output", "stream-json"],
        &["cost", "--json"],
    ] {
        texts.push(home.clone().args(words).run().expect_code(0).stdout);
    }
    for text in &texts {
        let acts = |c: &char| odd.contains(*c) && !c.is_ascii_alphanumeric() && !matches!(c, ' ' | 'm');
        assert_eq!(text.chars().find(acts), None, "{text}");
    }
    assert!(texts[0].contains("\\u202e") && texts[1].contains("\\u009b"));
}

#[test]
#[cfg(target_os = "linux")]
fn neither_the_environment_nor_the_command_line_of_a_running_lathe_shows_a_key() {
    let repo = TempRepo::new(&[]);
    let line = "sleep 60 & echo started; tr '\\0' '\\n' < /proc/$PPID/environ | rev; ps -eo args | rev; wait";
    let script = Script::new().answer(call("c1", "bash", json!({ "command": line }))).answer(done("ok"));
    let key = "sk-planted-process-0123456789";
    let model = FakeModel::start(script, Options { require_key: Some(key.to_owned()), ..Options::default() });
    let running = lathe()
        .in_dir(repo.path())
        .env("MY_API_KEY", "sk-planted-variable-1")
        .env("HARMLESS", "still-here")
        .args(["run", "x", "--mode", "full-auto", "--model-base-url", &model.base_url(), "--model", "m"])
        .args([&format!("--api-key={key}"), "--output", "stream-json"])
        .spawn();
    eventually(WITHIN, "a line that runs", || running.stdout_so_far().contains("call_started"));
    for file in ["environ", "cmdline"] {
        // Who may not read it sees nothing either.
        let bytes = std::fs::read(format!("/proc/{}/{file}", running.pid())).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains("sk-planted"), "{file}: {text}");
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    assert!(status.contains("Name:\tlathe"), "{status}");
    running.kill9();
    // Programs still get what is not secret.
    let script =
        Script::new().answer(call("c1", "bash", json!({ "command": "echo $HARMLESS" }))).answer(done("ok"));
    let model = FakeModel::serving(script);
    let ran = run_in(repo.path(), &model).env("HARMLESS", "still-here").run().expect_code(0);
    assert!(ran.stdout.contains("still-here\\n"), "{}", ran.stdout);
}

#[test]
fn a_token_stands_in_no_command_line() {
    let repo = TempRepo::new(&[]);
    let bin = repo.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let opener = bin.join("xdg-open");
    std::fs::write(&opener, "#!/bin/sh\nprintf '%s ' \"$@\" > \"$HOME_OF_TEST/opened\"\ncat \"$1\" > \"$HOME_OF_TEST/page\"\nstat -c %a \"$1\" > \"$HOME_OF_TEST/mode\"\n").unwrap();
    std::fs::set_permissions(&opener, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let home = lathe().in_dir(repo.path());
    let running = home
        .clone()
        .env("PATH", path)
        .env("HOME_OF_TEST", repo.path())
        .args(["serve", "--port", "0", "--json", "--open"])
        .spawn();
    running.wait_for_stdout("\"token\"", WITHIN);
    let read = |name: &str| std::fs::read_to_string(repo.path().join(name)).unwrap_or_default();
    eventually(WITHIN, "the browser", || !read("mode").is_empty());
    let said: serde_json::Value =
        serde_json::from_str(running.stdout_so_far().lines().next().unwrap()).unwrap();
    let token = said["token"].as_str().unwrap();
    assert!(!read("opened").contains(token), "{}", read("opened"));
    // What the file holds is a code: it signs in once, and is not the token.
    assert!(!read("page").contains(token), "{}", read("page"));
    let code = read("page").split("#code=").nth(1).unwrap().chars().take(64).collect::<String>();
    let address = said["address"].as_str().unwrap();
    assert_eq!(sign_in(address, &json!({ "code": "0".repeat(64) })), 401);
    assert_eq!(sign_in(address, &json!({ "code": code, "token": token })), 422);
    assert_eq!(sign_in(address, &json!({})), 422);
    assert_eq!(sign_in(address, &json!({ "code": code })), 200);
    assert_eq!(sign_in(address, &json!({ "code": code })), 401);
    let kept = std::process::Command::new("grep").args(["-rlF", token]).arg(home.home()).output().unwrap();
    assert!(kept.stdout.is_empty(), "{}", String::from_utf8_lossy(&kept.stdout));
    assert_eq!(read("mode").trim(), "600");
    // The client takes the token from a file, and says what is wrong with an address that holds it.
    write_token(&repo, token);
    let address = format!("http://{}", said["address"].as_str().unwrap());
    let file = repo.path().join("token");
    let listed = lathe().args(["connect", &address, "--token-file"]).arg(&file).run().expect_code(0);
    assert!(!listed.stderr.contains("warning"), "{}", listed.stderr);
    let listed = lathe().args(["connect", &format!("{address}/#token={token}")]).run().expect_code(0);
    assert!(listed.stderr.contains("--token-file") && !listed.stderr.contains(token), "{}", listed.stderr);
    running.kill9();
}

/// The status of a sign-in.
fn sign_in(address: &str, body: &serde_json::Value) -> u16 {
    use std::io::{Read as _, Write as _};
    let body = body.to_string();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let head = format!("POST /auth HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n");
    write!(stream, "{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

fn write_token(repo: &TempRepo, token: &str) {
    std::fs::write(repo.path().join("token"), format!("{token}\n")).unwrap();
}

#[test]
fn passwords_among_addresses_and_commands_of_the_configuration_are_not_shown() {
    let repo = TempRepo::new(&[]);
    let home = lathe().in_dir(repo.path());
    std::fs::create_dir_all(home.home()).unwrap();
    let config = "[online]\nbase_url = 'https://me:planted-8@h/x?key=planted-9'\n\
         [providers.web]\nbase_url = 'https://me:planted-7@h/x'\napi_key = 'planted-10-abcdefgh'\n\
         [check]\n'*.db' = 'db-server --password=pl4 --token pl5 -u me:pl6 --port 80 {file}'\n'*.py' = 'lint --api-key pl11 --strict {file}'\n\
         [tools]\ndiscovery_command = 'tools --secret=pl12'\n";
    std::fs::write(home.home().join("config.toml"), config).unwrap();
    let running = home.clone().args(["serve", "--port", "0", "--json"]).spawn();
    running.wait_for_stdout("\"token\"", WITHIN);
    let said: serde_json::Value =
        serde_json::from_str(running.stdout_so_far().lines().next().unwrap()).unwrap();
    let (address, token) = (said["address"].as_str().unwrap(), said["token"].as_str().unwrap());
    let sent = get(address, token, "/api/config");
    running.kill9();
    let shown = home.clone().args(["config", "show"]).run().expect_code(0).stdout;
    let json = home.args(["config", "show", "--json"]).run().expect_code(0).stdout;
    for text in [&sent, &shown, &json] {
        for kept in ["db-server", "--port", "--strict", "«secret»"] {
            assert!(text.contains(kept), "{kept}: {text}");
        }
        for secret in ["pl4", "pl5", "pl6", "planted", "pl11", "pl12"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
}

/// The whole answer to a request.
fn get(address: &str, token: &str, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
    write!(stream, "{head}Connection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_failing_lakeview_repeats_no_key_in_journal_frames_or_console() {
    let repo = TempRepo::new(&[]);
    // It looks like nothing, so it is masked only where it is known.
    let key = "planted-lakeview-0123456789";
    // The text is cut for display: the cut falls before, into or after the key.
    for before in [0, 1_975, 1_990, 4_000] {
        let echo = Fault::status(400, &format!("{} your key is {key}", "x".repeat(before)));
        let options = Options { require_key: Some(key.to_owned()), ..Options::default() };
        let summary = FakeModel::start(Script::new().answer(say("no").fails(99, echo)), options);
        let script = Script::new()
            .answer(call("w1", "write", json!({ "path": "a.txt", "content": "a\n" })))
            .answer(done("ok"));
        let model = FakeModel::serving(script);
        let lathe = lathe().in_dir(repo.path());
        std::fs::create_dir_all(lathe.home()).unwrap();
        let config = format!(
            "[lakeview]\nenabled = true\nmodel = 'lake'\n[models.lake]\nprovider = 'lake'\nname = 'l'\nbase_url = '{}'\napi_key = '{key}'\n",
            summary.base_url()
        );
        std::fs::write(lathe.home().join("config.toml"), config).unwrap();
        let mut texts = Vec::new();
        for output in ["stream-json", "text"] {
            let model = FakeModel::serving(
                Script::new()
                    .answer(call("w1", "write", json!({ "path": "a.txt", "content": "a\n" })))
                    .answer(done("ok")),
            );
            let run = lathe.clone().args(["run", "x", "--mode", "full-auto", "--output", output]);
            let ran = run.with_model(&model).run().expect_code(0);
            texts.extend([ran.stdout, ran.stderr]);
        }
        let running = lathe.clone().args(["serve", "--port", "0", "--json"]).with_model(&model).spawn();
        running.wait_for_stdout("\"token\"", WITHIN);
        let said: serde_json::Value =
            serde_json::from_str(running.stdout_so_far().lines().next().unwrap()).unwrap();
        let (address, token) = (said["address"].as_str().unwrap(), said["token"].as_str().unwrap());
        let body = json!({ "task": "x", "mode": "full-auto", "lakeview": true });
        let answer = post(address, token, "/agent/run", &body);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let session = answer.split("\"session_id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        texts.push(answer);
        let summed = post(address, token, "/lakeview/summary", &json!({ "session_id": session }));
        assert!(summed.contains("\"errors\":[{"), "the failure is told: {summed}");
        assert!(!summary.requests().is_empty(), "the summary is asked for");
        texts.push(summed);
        for format in ["jsonl", "html", "trajectory", "text"] {
            texts.push(get(address, token, &format!("/api/sessions/{session}/export?format={format}")));
        }
        running.kill9();
        texts.push(lathe.clone().args(["show", "--format", "json"]).run().expect_code(0).stdout);
        for text in &texts {
            assert!(!text.contains("planted-l"), "{before}: {text}");
        }
        // No file but the configuration, the journals' own bytes among them.
        let kept = std::process::Command::new("grep").args(["-rlaF", "planted-l"]).arg(lathe.home()).output();
        let kept = String::from_utf8(kept.unwrap().stdout).unwrap();
        assert!(kept.lines().all(|file| file.ends_with("config.toml")), "{kept}");
    }
}

/// The whole answer to a request with a body.
fn post(address: &str, token: &str, path: &str, body: &serde_json::Value) -> String {
    use std::io::{Read as _, Write as _};
    let body = body.to_string();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
    let kind = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    write!(stream, "{head}{kind}Connection: close\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
