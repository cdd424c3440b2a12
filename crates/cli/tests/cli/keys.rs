//! Keys are found in no file and no output.

use std::path::Path;
use std::time::Duration;

use lathe_testkit::{FakeModel, Fault, Options, Script, TempRepo, Wire, call, done, say};
use serde_json::json;

use crate::lathe;

/// Fifty keys, each of another shape.
fn keys() -> Vec<String> {
    let shapes = ["sk-proj-", "sk-ant-api03-", "AIza", "ghp_", "xai-", "gsk_", "hf_", "AKIA", "key", "tok."];
    (0..50).map(|n| format!("{}{:06}Zq{}", shapes[n % shapes.len()], n * 7919, "abcDEF0123456789")).collect()
}

/// The output of `base64` for a text, without the part that depends on the bytes after it.
fn base64(text: &str) -> String {
    let line = format!("printf %s '{text}' | base64 -w0");
    let out = std::process::Command::new("bash").args(["-c", &line]).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    text.trim_end_matches('=').chars().rev().skip(1).collect::<String>().chars().rev().collect()
}

fn files_with(folder: &Path, keys: &[String], found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_with(&path, keys, found);
        } else if let Ok(bytes) = std::fs::read(&path) {
            let text = String::from_utf8_lossy(&bytes);
            found.extend(
                keys.iter()
                    .filter(|key| text.contains(*key))
                    .map(|key| format!("{key} in {}", path.display())),
            );
        }
    }
}

#[test]
fn fifty_planted_keys_are_in_no_file_no_screen_and_no_process_line() {
    let keys = keys();
    let repo = TempRepo::new(&[]);
    // The model's key is the first; the server repeats it in an error, a careless tool prints all others.
    let script = Script::new()
        .answer(say("I look around.").call("c1", "bash", json!({ "command": "env; sleep 1; echo $SHOWN; for k in $(cat keys.txt); do printf %s \"$k\" | base64 -w0; printf '\\n%s\\n' \"https://h/?k=${k//-/%2D}&x=$k\"; printf %s \"u:$k:p\" | base64 -w0; echo; done" })))
        .answer(
            call("c2", "bash", json!({ "command": format!("echo {} > /dev/null; cat keys.txt", keys[3]) }))
                .fails(
                    1,
                    Fault::status(500, &format!("bad key {} and header {}", keys[0], keys[1]))
                        .header("retry-after-ms", "1"),
                ),
        )
        .answer(done(&format!("I saw {} and {}.", keys[0], keys[5])));
    let options = Options { require_key: Some(keys[0].clone()), ..Options::default() };
    let model = FakeModel::start(script, options);
    let home = lathe().in_dir(repo.path()).timeout(Duration::from_secs(90));
    std::fs::create_dir_all(home.home()).unwrap();
    let config: String = (1..11)
        .map(|n| format!("[providers.p{n}]\nprovider = \"openai\"\napi_key = \"{}\"\n", keys[10 + n]))
        .collect();
    // Some are secrets only because the user says so: two by the names of variables, three in files.
    let config = format!(
        "{config}[secrets]\nvariables = [\"HARMLESS_45\", \"HARMLESS_46\"]\nfiles = [\"mine.env\", \"lines.txt\"]\n"
    );
    std::fs::write(home.home().join("config.toml"), &config).unwrap();
    std::fs::write(
        home.home().join("mine.env"),
        format!("# mine\nexport A_47=\"{}\"\nB={}\n", keys[47], keys[48]),
    )
    .unwrap();
    std::fs::write(home.home().join("lines.txt"), format!("{}\n", keys[49])).unwrap();
    std::fs::write(repo.path().join("keys.txt"), keys.join("\n")).unwrap();
    let mut run = home.clone().env("ANTHROPIC_API_KEY", &keys[0]);
    for (n, key) in keys.iter().enumerate().skip(1) {
        let name = match n % 5 {
            _ if n == 45 || n == 46 => format!("HARMLESS_{n}"),
            _ if n > 46 => continue,
            0 => format!("SERVICE_{n}_API_KEY"),
            1 => format!("SERVICE_{n}_TOKEN"),
            2 => format!("SERVICE_{n}_SECRET"),
            3 => format!("SERVICE_{n}_PASSWORD"),
            _ => format!("SERVICE_{n}_ACCESS_KEY"),
        };
        run = run.env(name, key);
    }
    let record = repo.path().join("run.cassette");
    let trajectory = repo.path().join("run.json");
    let running = run
        .env("ANTHROPIC_BASE_URL", model.base_url_for(Wire::Messages))
        .args(["run", &format!("use {} well", keys[2]), "--mode", "full-auto", "--provider", "anthropic"])
        .args(["--model", "m", "--output", "stream-json"])
        .args(["--record", record.to_str().unwrap(), "--trajectory-file", trajectory.to_str().unwrap()])
        .spawn();
    model.wait_for_requests(1, Duration::from_secs(30));
    std::thread::sleep(Duration::from_millis(400));
    // Only the task itself, which the user typed, may stand in a command line.
    let lines: String = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
        .filter(|line| !line.contains(&format!("use {} well", keys[2])))
        .collect();
    let ran = running.wait();
    let encoded = keys.iter().flat_map(|key| {
        let inside = base64(&format!("u:{key}:p"));
        [base64(key), inside.get(4..inside.len() - 4).unwrap().to_owned()]
    });
    let keys: Vec<String> = keys.iter().cloned().chain(encoded).collect();
    let seen: Vec<&String> = keys.iter().filter(|key| lines.contains(*key)).collect();
    assert!(seen.is_empty(), "in a process line: {seen:?}");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let mut found = Vec::new();
    let screens = format!("{}{}", ran.stdout, ran.stderr);
    found.extend(keys.iter().filter(|key| screens.contains(*key)).map(|key| format!("{key} on the screen")));
    for words in
        [&["show"][..], &["show", "--format", "json"], &["show", "--format", "html"], &["config", "show"]]
    {
        let shown = home.clone().args(words).run();
        let text = format!("{}{}", shown.stdout, shown.stderr);
        found.extend(keys.iter().filter(|key| text.contains(*key)).map(|key| format!("{key} in {words:?}")));
    }
    // Where they were planted they are, of course.
    for name in ["config.toml", "mine.env", "lines.txt"] {
        std::fs::remove_file(home.home().join(name)).unwrap();
    }
    std::fs::remove_file(repo.path().join("keys.txt")).unwrap();
    files_with(&home.home(), &keys, &mut found);
    files_with(repo.path(), &keys, &mut found);
    assert!(found.is_empty(), "{}", found.join("\n"));
    // Nor does the model see them: what went to the server is what the journal has.
    for request in model.requests() {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let sent: Vec<&String> = keys.iter().filter(|key| body.contains(*key)).collect();
        assert!(sent.is_empty(), "sent to the model: {sent:?}");
    }
}
