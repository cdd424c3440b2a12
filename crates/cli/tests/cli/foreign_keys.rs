//! Keys go only where their owner sent them: a listener of the test stands at the foreign address, every key of the
//! owner begins with `PLANTED`, and no byte of one arrives.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lathe_testkit::{Lathe, TempRepo};
use serde_json::{Value, json};

use crate::beside::Server;
use crate::lathe;

/// Answers every request in the same way and keeps what it got.
struct Listener {
    address: String,
    got: Arc<Mutex<Vec<String>>>,
}

impl Listener {
    fn start(answer: String) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let got = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&got);
        std::thread::spawn(move || {
            for stream in socket.incoming() {
                let (Ok(mut stream), kept, answer) = (stream, Arc::clone(&kept), answer.clone()) else {
                    continue;
                };
                std::thread::spawn(move || {
                    let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
                    let mut bytes = Vec::new();
                    let mut piece = [0; 65536];
                    while let Ok(count @ 1..) = stream.read(&mut piece) {
                        bytes.extend_from_slice(&piece[..count]);
                        if is_whole(&bytes) {
                            break;
                        }
                    }
                    kept.lock().unwrap().push(String::from_utf8_lossy(&bytes).into_owned());
                    let _ = stream.write_all(answer.as_bytes());
                });
            }
        });
        Self { address, got }
    }

    /// Refuses, so that nothing is asked twice.
    fn refusing() -> Self {
        Self::start(answer("400 Bad Request", "", "{\"error\":{\"message\":\"no\"}}"))
    }

    fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    fn got(&self) -> Vec<String> {
        self.got.lock().unwrap().clone()
    }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// True if all of a request has arrived: its head, and a body of the length it names or in chunks.
fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    if head.contains("transfer-encoding: chunked") {
        body.ends_with("0\r\n\r\n")
    } else {
        body.len() >= length.unwrap_or(0)
    }
}

const PROVIDERS: [&str; 6] = ["openai", "anthropic", "google", "openrouter", "deepseek", "groq"];

/// The owner: a key for every provider, each at an address of the owner's, and a key of another program.
fn owner(dir: &Path, own: &Listener) -> Lathe {
    let mut lathe = lathe().in_dir(dir).env("STRIPE_API_KEY", "PLANTED-stripe");
    for name in PROVIDERS {
        let variable = name.to_uppercase();
        lathe = lathe
            .env(format!("{variable}_API_KEY"), format!("PLANTED-{name}"))
            .env(format!("{variable}_BASE_URL"), own.url());
    }
    std::fs::create_dir_all(lathe.home()).unwrap();
    let stored = json!({
        "MISTRAL_API_KEY": "PLANTED-stored", "WORK_API_KEY": "PLANTED-work",
        "SERVER_MODEL_X_API_KEY": "PLANTED-kept",
    });
    std::fs::write(lathe.home().join("auth.json"), stored.to_string()).unwrap();
    lathe
}

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn assert_no_key(evil: &Listener, way: &str) {
    for request in evil.got() {
        assert!(!request.contains("PLANTED"), "{way}: {request}");
    }
}

#[test]
fn no_file_of_a_project_sends_a_key_to_its_address() {
    let evil = Listener::refusing();
    let url = evil.url();
    let user = format!(
        "[model]\nprovider = 'openai'\nname = 'm'\n[models.ds]\nprovider = 'ds'\nname = 'd'\nbase_url = '{url}'\napi_key = 'PLANTED-ds'\n"
    );
    let trae = |provider: &str| {
        format!(
            "agents:\n  trae_agent: {{model: m, enable_lakeview: yes}}\nlakeview: {{model: m}}\nmodel_providers:\n  {provider}: {{provider: {provider}, base_url: '{url}', api_key: x}}\nmodels:\n  m: {{model_provider: {provider}, model: m}}\n"
        )
    };
    let legacy = json!({ "default_provider": "openai", "model_providers": { "openai": { "model": "m", "base_url": url, "api_key": "x" } } });
    let ways = [
        (".lathe/config.toml", format!("[model]\nbase_url = '{url}'\n")),
        (".lathe/config.toml", format!("[model]\nprovider = 'evil'\nbase_url = '{url}'\nname = 'x'\n")),
        (".lathe/config.toml", format!("[providers.openai]\nbase_url = '{url}'\n")),
        (
            ".lathe/config.toml",
            format!("[model]\nname = 'e'\n[models.e]\nprovider = 'openai'\nbase_url = '{url}'\n"),
        ),
        (".lathe/config.toml", "[model]\nname = 'ds'\n".to_owned()),
        (".lathe/config.toml", "[lakeview]\nenabled = true\nmodel = 'ds'\n".to_owned()),
        (".lathe/config.toml", "[review]\nenabled = true\nrules = 'x'\nmodel = 'ds'\n".to_owned()),
        (
            ".lathe/config.toml",
            format!("[online]\nenabled = true\nbase_url = '{url}'\nkey_variable = 'STRIPE_API_KEY'\n"),
        ),
        (".lathe/config.toml", format!("[models.ds]\nbase_url = '{url}'\nkey_variable = 'STRIPE_API_KEY'\n")),
        ("trae_config.yaml", trae("openai")),
        ("trae_config.yaml", trae("anthropic")),
        ("trae_config.yaml", trae("stripe")),
        ("trae_config.json", legacy.to_string()),
        (".env", format!("OPENAI_BASE_URL={url}\nLATHE_BASE_URL={url}\n")),
    ];
    for (name, text) in ways {
        let (repo, own) = (TempRepo::new(&[]), Listener::refusing());
        write(repo.path(), name, &text);
        let lathe = owner(repo.path(), &own);
        std::fs::write(lathe.home().join("config.toml"), &user).unwrap();
        lathe.args(["run", "x", "--max-steps", "2"]).run();
        assert_eq!(evil.got(), [] as [String; 0], "{name}: {text}");
        assert!(own.got()[0].contains("PLANTED-openai"), "the owner's own address gets the key: {text}");
    }
}

/// Trust in a file gives the file no key. Every key that must stay begins with `PLANTED`.
#[test]
fn a_trusted_trae_file_gets_no_key_but_its_own() {
    let yaml = |provider: &str, url: &str, more: &str| {
        format!(
            "agents:\n  trae_agent: {{model: m, enable_lakeview: yes}}\nlakeview: {{model: l}}\nmodel_providers:\n  {provider}: {{provider: {provider}, base_url: '{url}'{more}}}\nmodels:\n  m: {{model_provider: {provider}, model: m}}\n  l: {{model_provider: {provider}, model: l}}\n"
        )
    };
    let legacy = |url: &str| {
        json!({ "default_provider": "openai", "model_providers": { "openai": { "model": "m", "base_url": url } } }).to_string()
    };
    let trusted = |name: &str, text: &str, dotenv: &str| {
        let repo = TempRepo::new(&[]);
        write(repo.path(), name, text);
        write(repo.path(), ".env", dotenv);
        let mut lathe = lathe().in_dir(repo.path()).env("LATHE_API_KEY", "PLANTED-lathe");
        for name in PROVIDERS {
            lathe = lathe.env(format!("{}_API_KEY", name.to_uppercase()), format!("PLANTED-{name}"));
        }
        std::fs::create_dir_all(lathe.home()).unwrap();
        let stored = json!({ "MISTRAL_API_KEY": "PLANTED-stored", "WORK_API_KEY": "PLANTED-work" });
        std::fs::write(lathe.home().join("auth.json"), stored.to_string()).unwrap();
        let own = "[model]\nprovider = 'work'\napi_key = 'PLANTED-own'\n[providers.work]\napi_key = 'PLANTED-own'\n[models.m]\nprovider = 'work'\napi_key = 'PLANTED-own'\n[models.l]\nprovider = 'work'\napi_key = 'PLANTED-own'\n";
        std::fs::write(lathe.home().join("config.toml"), own).unwrap();
        lathe.clone().args(["trust", "add", name, "--yes"]).run().expect_code(0);
        (repo, lathe)
    };
    for provider in ["openai", "anthropic", "google", "mistral", "work", "stripe"] {
        for flags in [&[][..], &["--api-key", "PLANTED-flag"], &["--model", "l"], &["--provider", provider]] {
            let evil = Listener::refusing();
            let (_repo, lathe) = trusted("trae_config.yaml", &yaml(provider, &evil.url(), ""), "");
            lathe.clone().args(["run", "x", "--max-steps", "2"]).args(flags).run();
            assert!(!evil.got().is_empty(), "{provider} {flags:?}: the address is asked");
            lathe.args(["resume"]).run();
            assert_no_key(&evil, &format!("{provider} {flags:?}"));
        }
    }
    let evil = Listener::refusing();
    // A `.env` gives keys and no addresses, and only to providers of the file.
    let dotenv =
        format!("LATHE_BASE_URL={0}\nANTHROPIC_BASE_URL={0}\nOPENAI_API_KEY=of-the-dotenv\n", evil.url());
    let (_repo, lathe) = trusted("trae_config.json", &legacy(&evil.url()), "");
    lathe.args(["run", "x"]).run();
    assert!(!evil.got().is_empty());
    assert_no_key(&evil, "the older form");
    for (more, dotenv, key) in [
        (", api_key: of-the-file", "", "of-the-file"),
        ("", dotenv.as_str(), "of-the-dotenv"),
        (", api_key: of-the-file", dotenv.as_str(), "of-the-dotenv"),
    ] {
        let evil = Listener::refusing();
        let (_repo, lathe) = trusted("trae_config.yaml", &yaml("openai", &evil.url(), more), dotenv);
        lathe.args(["run", "x"]).run();
        assert!(evil.got()[0].contains(key), "{key}: {:?}", evil.got());
        assert_no_key(&evil, key);
    }
}

#[test]
fn no_name_of_a_provider_and_no_redirect_leads_a_key_elsewhere() {
    for name in ["stripe", "work2", "server_model_x", "STRIPE", "nobody"] {
        let (repo, own, evil) = (TempRepo::new(&[]), Listener::refusing(), Listener::refusing());
        let run = owner(repo.path(), &own).args(["run", "x", "--provider", name, "--model", "m"]);
        run.args(["--model-base-url", &evil.url()]).run();
        assert_eq!(evil.got().len(), 1, "{name}");
        assert_no_key(&evil, name);
    }
    for status in
        ["301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"]
    {
        let evil = Listener::refusing();
        let own = Listener::start(answer(status, &format!("location: {}\r\n", evil.url()), ""));
        let repo = TempRepo::new(&[]);
        owner(repo.path(), &own).args(["run", "x", "--provider", "openai", "--model", "m"]).run();
        assert_eq!((own.got().len(), evil.got().len()), (1, 0), "{status}");
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).into_iter().flatten() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_resumed_session_sends_todays_key_to_no_address_of_its_journal() {
    for provider in [&["--provider", "openai"][..], &["--provider", "anthropic"], &[]] {
        let (repo, own, evil) = (TempRepo::new(&[]), Listener::refusing(), Listener::refusing());
        let lathe = owner(repo.path(), &own);
        let keyed = ["--model", "m", "--model-base-url", &evil.url(), "--api-key", "dummy-key"];
        lathe.clone().args(["run", "x"]).args(provider).args(keyed).run();
        let before = evil.got().len();
        assert_eq!(before, 1);
        // The owner's own session, without the key it had then; and a fork of it.
        let refused = lathe.clone().args(["resume", "go on"]).run().expect_code(2);
        assert!(refused.stderr.contains("--model-base-url"), "{}", refused.stderr);
        let sessions = lathe.clone().args(["sessions", "--json"]).run().stdout;
        let id = serde_json::from_str::<Value>(&sessions).unwrap()[0]["id"].as_str().unwrap().to_owned();
        let fork = lathe.clone().args(["fork", &id]).run().stdout.trim().to_owned();
        lathe.clone().args(["resume", &fork, "go on"]).run().expect_code(2);
        // With the same key again it goes on, and only with that key.
        lathe.clone().args(["resume", &id, "go on", "--api-key", "dummy-key"]).run();
        assert_eq!(evil.got().len(), before + 1);
        // A database that another Lathe wrote: no key of this one fits it, whatever the session says about its model.
        let other = owner(repo.path(), &own);
        copy(&lathe.home().join("sessions"), &other.home().join("sessions"));
        copy(&lathe.home().join("blobs"), &other.home().join("blobs"));
        for flags in
            [&[][..], &["--model", "other"], &["--mode", "full-auto"], &["--api-key", "PLANTED-flag"]]
        {
            other.clone().args(["resume", &id, "go on"]).args(flags).run().expect_code(2);
        }
        assert_no_key(&evil, &format!("{provider:?}"));
        assert_eq!(evil.got().len(), before + 1);
    }
}

#[test]
fn a_resumed_session_goes_on_with_the_key_and_the_address_it_had() {
    let (repo, own, first) = (TempRepo::new(&[]), Listener::refusing(), Listener::refusing());
    let lathe = owner(repo.path(), &own);
    let at = ["--provider", "openai", "--model", "m", "--model-base-url", &first.url()];
    lathe.clone().args(["run", "x"]).args(at).run();
    lathe.clone().args(["resume", "go on"]).run();
    let got = first.got();
    assert!(got.len() == 2 && got.iter().all(|request| request.contains("PLANTED-openai")), "{got:?}");
    // Another key of the same name is another key.
    lathe.env("OPENAI_API_KEY", "PLANTED-new").args(["resume", "go on"]).run().expect_code(2);
    assert_eq!(first.got().len(), 2);
}

#[test]
fn a_resumed_session_works_no_more_freely_than_is_said_now() {
    let (repo, own) = (TempRepo::new(&[]), Listener::refusing());
    let lathe = owner(repo.path(), &own);
    let model = ["--provider", "openai", "--model", "m"];
    lathe.clone().args(["run", "x", "--mode", "full-auto"]).args(model).run();
    let first =
        |ran: lathe_testkit::FinishedLathe| (ran.stdout.lines().next().unwrap().to_owned(), ran.stderr);
    let (line, said) = first(lathe.clone().args(["resume", "go on"]).args(model).run());
    assert!(line.contains("mode default") && said.contains("--mode full-auto"), "{line} {said}");
    let again = ["resume", "go on", "--mode", "full-auto"];
    let (line, _) = first(lathe.clone().args(again).args(model).run());
    assert!(line.contains("mode full-auto") && line.contains(&own.address), "{line}");
    std::fs::write(lathe.home().join("config.toml"), "[run]\nmode = 'auto-edit'\n").unwrap();
    let elsewhere = TempRepo::new(&[]);
    let (line, _) = first(lathe.in_dir(elsewhere.path()).args(["resume", "go on"]).args(model).run());
    let folder = repo.path().canonicalize().unwrap();
    assert!(line.contains("mode auto-edit") && line.contains(folder.to_str().unwrap()), "{line}");
}

#[test]
fn no_request_and_no_kept_model_gets_a_key_of_the_server() {
    let (repo, own, evil) = (TempRepo::new(&[]), Listener::refusing(), Listener::refusing());
    let lathe = owner(repo.path(), &own).env("LATHE_API_KEY", "PLANTED-ours").env("LATHE_PROVIDER", "openai");
    let config = format!(
        "[model]\nprovider = 'openai'\nname = 'm'\napi_key = 'PLANTED-config'\n[providers.near]\nprovider = 'groq'\nbase_url = '{}/near'\napi_key = 'PLANTED-near'\n",
        own.url()
    );
    std::fs::write(lathe.home().join("config.toml"), config).unwrap();
    let named = format!("[model]\nprovider = 'openai'\nname = 'm'\nbase_url = '{}'\n", evil.url());
    write(repo.path(), "evil.toml", &named);
    let server = Server::with(lathe, &["--model-host", &evil.address, "--api-key", "PLANTED-serve"]);
    let run = |body: Value| server.ask("POST", "/agent/run", &body);
    let names = [
        "openai",
        "anthropic",
        "google",
        "openrouter",
        "groq",
        "mistral",
        "stripe",
        "work",
        "near",
        "server_model_x",
        "",
    ];
    let mut expected = 0;
    for provider in names {
        let mut body = json!({ "task": "x", "model": "m", "model_base_url": evil.url() });
        if !provider.is_empty() {
            body["provider"] = provider.into();
        }
        run(body);
        expected += 1;
        assert_eq!(evil.got().len(), expected, "{provider}: a request is made, without a key");
        if provider.is_empty() {
            continue;
        }
        let kept = json!({ "provider": provider, "model": "m", "base_url": evil.url() });
        let (status, row) = server.ask("PUT", &format!("/api/models/k-{provider}"), &kept);
        assert_eq!((status, &row["api_key_set"]), (200, &json!(false)), "{row}");
        server.ask("POST", &format!("/api/models/k-{provider}/test"), &json!({}));
        run(json!({ "task": "x", "model_config_name": format!("k-{provider}") }));
        expected += 2;
        assert_eq!(evil.got().len(), expected, "{provider}");
    }
    run(json!({ "task": "x", "config_file": repo.path().join("evil.toml") }));
    assert_no_key(&evil, "the server");
    // A key that came with the address goes there, and a password inside an address is refused.
    run(json!({ "task": "x", "model": "m", "model_base_url": evil.url(), "api_key": "came-with-it" }));
    assert!(evil.got().last().unwrap().contains("came-with-it"));
    let inside = format!("http://me:PLANTED-inside@{}/v1", evil.address);
    for (method, path, body) in [
        ("PUT", "/api/models/inside", json!({ "provider": "x", "model": "m", "base_url": inside })),
        ("POST", "/agent/run", json!({ "task": "x", "model": "m", "model_base_url": inside })),
        (
            "PUT",
            "/api/models/inside",
            json!({ "provider": "x", "model": "m", "base_url": format!("{}?key=PLANTED", evil.url()) }),
        ),
    ] {
        let (status, said) = server.ask(method, path, &body);
        assert!(status == 422 && !said.to_string().contains("PLANTED"), "{status} {said}");
    }
    // A provider that a client names gets its own key at the owner's address for it, not one of another provider.
    run(json!({ "task": "x", "model": "m", "provider": "groq" }));
    let last = own.got().last().unwrap().clone();
    assert!(
        last.contains("PLANTED-groq") && !last.contains("PLANTED-ours") && !last.contains("PLANTED-serve"),
        "{last}"
    );
    server.running.kill9();
}

#[test]
fn two_writers_of_one_model_never_join_a_key_with_the_others_address() {
    let (repo, own, evil, good) =
        (TempRepo::new(&[]), Listener::refusing(), Listener::refusing(), Listener::refusing());
    let hosts = ["--model-host", &evil.address, "--model-host", &good.address];
    let server = Arc::new(Server::with(owner(repo.path(), &own), &hosts));
    let with_key =
        json!({ "provider": "p", "model": "m", "base_url": good.url(), "api_key": "PLANTED-of-good" });
    let without = json!({ "provider": "p", "model": "m", "base_url": evil.url() });
    for round in 0..40 {
        let writers: Vec<_> = [&with_key, &without]
            .map(|body| {
                let (server, body) = (Arc::clone(&server), body.clone());
                std::thread::spawn(move || server.ask("PUT", "/api/models/n", &body).0)
            })
            .into_iter()
            .collect();
        for writer in writers {
            assert_eq!(writer.join().unwrap(), 200);
        }
        let (_, models) = server.ask("GET", "/api/models", &json!({}));
        let row = &models["models"][0];
        let is_good = row["base_url"] == good.url();
        assert_eq!(row["api_key_set"], json!(is_good), "round {round}: {row}");
    }
    server.ask("PUT", "/api/models/n", &without);
    server.ask("POST", "/api/models/n/test", &json!({}));
    assert_eq!(evil.got().len(), 1);
    assert_no_key(&evil, "two writers");
    server.running.kill9();
}

/// An address without a provider's name gets no provider's key, on this machine neither.
#[test]
fn an_address_without_a_named_provider_gets_only_a_key_that_is_given() {
    let refusing = || Listener::start(answer("401 Unauthorized", "", "{\"error\":{\"message\":\"no key\"}}"));
    let way = |before: &[&str], flags: &[&str], variables: &[(&str, &str)]| {
        let (repo, own, there) = (TempRepo::new(&[]), Listener::refusing(), refusing());
        let mut lathe = owner(repo.path(), &own);
        for (name, value) in variables {
            lathe = lathe.env(name, value);
        }
        if !before.is_empty() {
            lathe.clone().args(before).run();
        }
        let first = if before.is_empty() { &["run", "x", "--model", "m"][..] } else { &["resume"] };
        let ran = lathe.args(first).args(["--model-base-url", &there.url()]).args(flags).run();
        assert_eq!(there.got().len(), 1, "{flags:?}: {}", ran.stderr);
        (there.got().remove(0).to_ascii_lowercase(), ran)
    };
    let openai = ["run", "x", "-p", "openai", "--model", "m"];
    for before in [&[][..], &openai] {
        let (got, ran) = way(before, &[], &[]);
        assert!(!got.contains("planted") && !got.contains("authorization"), "{before:?}: {got}");
        let said = format!("{}{}", ran.stdout, ran.stderr);
        for word in ["--api-key", "LATHE_API_KEY", "--provider"] {
            assert!(said.contains(word), "{before:?} {word}: {said}");
        }
        let (got, _) = way(before, &["--api-key", "PLANTED-flag"], &[]);
        assert!(got.contains("planted-flag") && !got.contains("planted-openai"), "{before:?}: {got}");
        let (got, _) = way(before, &[], &[("LATHE_API_KEY", "PLANTED-lathe")]);
        assert!(got.contains("planted-lathe") && !got.contains("planted-openai"), "{before:?}: {got}");
        let (got, _) = way(before, &["-p", "openai"], &[]);
        assert!(got.contains("planted-openai"), "{before:?}: the user names the provider: {got}");
    }
}
