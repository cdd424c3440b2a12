//! The page of a session needs nothing but a browser.
//!
//! The gate checks the text of the page; `scripts/test --full` opens it in Chromium too, and leaves the picture in
//! `target/tmp/page.png` for inspection.

use std::path::Path;
use std::process::Command;

use lathe_testkit::{FakeModel, Script, TempRepo, call, done, size};
use serde_json::{Value, json};

use crate::lathe;

/// Texts that would be fetched, run or shown as markup if they were not kept as text.
const HOSTILE: &str = "<img src=\"http://127.0.0.1:9/task\"><script src='http://127.0.0.1:9/s'></script><style>@import url(http://127.0.0.1:9/c)</style>";

/// `show --format html` of a session with an edit, failures and hostile texts everywhere.
fn page_of_a_session() -> String {
    let repo = TempRepo::new(&[("a.html", HOSTILE)]);
    let edit = json!({ "path": "a.html", "old_str": "<img", "new_str": "<iframe src=\"//127.0.0.1:9/new\"></iframe>\n<img" });
    let script = Script::new()
        .answer(call("c1", "view", json!({ "path": "a.html" })).call(
            "c2",
            "view",
            json!({ "path": HOSTILE }),
        ))
        .answer(call("c3", "edit", edit))
        .answer(call("c4", "bash", json!({ "command": "cat a.html; exit 3" })))
        .answer(done(HOSTILE));
    let model = FakeModel::serving(script);
    let lathe = lathe();
    let run =
        lathe.clone().in_dir(repo.path()).args(["run", &format!("mend {HOSTILE}"), "--mode", "full-auto"]);
    run.with_model(&model).run().expect_code(0);
    assert_eq!(model.violations(), Vec::<String>::new());
    lathe.args(["show", "--format", "html"]).run().expect_code(0).stdout
}

#[test]
fn the_page_refers_to_nothing_but_itself() {
    let page = page_of_a_session();
    let (before, style, after) = around(&page, "<style>", "</style>");
    let (body, script, end) = around(after, "<script>", "</script>");
    for tag in [before, body, end].into_iter().flat_map(tags) {
        check_tag(tag);
    }
    // A resource that the policy does not allow is not fetched, whatever the rest of the page contains.
    assert!(
        before.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "),
        "{before}"
    );
    for word in ["url(", "@import", "src(", "image-set(", "expression(", "</"] {
        assert!(!style.contains(word), "{word} in the style");
    }
    for word in [
        "fetch",
        "XMLHttpRequest",
        "WebSocket",
        "EventSource",
        "sendBeacon",
        "Worker",
        "import",
        "eval",
        "Function(",
        "innerHTML",
        ".src",
        ".href",
        "open(",
        "location =",
        "location.assign",
        "location.replace",
        "</",
        "<!--",
    ] {
        assert!(!script.contains(word), "{word} in the script");
    }
    check_balance(script);
}

/// The text around a part that is there exactly once.
fn around<'a>(text: &'a str, open: &str, close: &str) -> (&'a str, &'a str, &'a str) {
    assert_eq!((text.matches(open).count(), text.matches(close).count()), (1, 1), "{open}");
    let (before, rest) = text.split_once(open).unwrap();
    let (inside, after) = rest.split_once(close).unwrap();
    (before, inside, after)
}

/// Everything a browser would take for a tag. A `<` that is text is written `&lt;`.
fn tags(text: &str) -> Vec<&str> {
    text.split('<').skip(1).map(|piece| piece.split_once('>').expect("every tag is closed").0).collect()
}

fn check_tag(tag: &str) {
    let name = tag.split([' ', '\n', '/']).find(|word| !word.is_empty()).unwrap();
    let silent = "!doctype html head meta link title body main header footer section article h1 h2 h3 h4 h5 p b i small strong \
        span div a button code pre del ins dl dt dd ul li details summary svg rect text";
    assert!(silent.split_whitespace().any(|known| known == name), "<{tag}>");
    // Attributes as they are written here: a name, `="`, a value without quotes or angles in it, `"`.
    let mut rest = tag;
    while let Some((head, tail)) = rest.split_once("=\"") {
        let attribute = head.rsplit(' ').next().unwrap();
        let (value, after) = tail.split_once('"').expect("every value is closed");
        match attribute {
            "href" => assert!(value == "data:," || value.starts_with('#'), "<{tag}>"),
            "src" | "srcset" | "xlink:href" | "action" | "formaction" | "data" | "poster" | "background"
            | "ping" | "style" | "srcdoc" | "manifest" => panic!("<{tag}>"),
            other => assert!(!other.starts_with("on"), "<{tag}>"),
        }
        assert!(attribute != "http-equiv" || value == "Content-Security-Policy", "<{tag}>");
        rest = after;
    }
}

/// Checks what can be checked without a JavaScript engine, of which the gate has none: brackets, and strings that
/// end.
fn check_balance(script: &str) {
    let mut open = Vec::new();
    let mut chars = script.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                assert!(chars.by_ref().find(|c| matches!(c, '"' | '\n')) == Some('"'), "a string has no end")
            }
            '\'' | '`' | '\\' => panic!("{c}: the script is to have plain strings only"),
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' => assert_eq!(open.pop(), Some(c)),
            _ => {}
        }
    }
    assert_eq!(open, Vec::<char>::new());
}

#[test]
fn chromium_opens_the_page_without_a_request_and_without_a_word() {
    if size(0, 1) == 0 {
        return;
    }
    // What would be seen is seen: a page that asks for something and complains.
    let bad =
        "<!doctype html><img src=\"http://127.0.0.1:9/pixel\"><script>console.warn(1); nope();</script>";
    let seen = Seen::of(bad);
    assert_eq!(seen.requests, ["http://127.0.0.1:9/pixel"]);
    assert!(seen.console.len() == 2 && seen.console[1].contains("nope is not defined"), "{:?}", seen.console);
    let blank = seen.picture;

    let seen = Seen::of(&page_of_a_session());
    assert_eq!((seen.requests, seen.console), (Vec::<String>::new(), Vec::<String>::new()));
    std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("page.png"), &seen.picture).unwrap();
    for picture in [&blank, &seen.picture] {
        assert_eq!(picture[..8], *b"\x89PNG\r\n\x1a\n");
        assert_eq!(picture[16..24], [0, 0, 4, 176, 0, 0, 6, 64], "1200 by 1600");
    }
    // One colour packs into next to nothing.
    assert!(seen.picture.len() > 5 * blank.len(), "{} bytes, blank {}", seen.picture.len(), blank.len());
}

/// The actions of Chromium with a page.
struct Seen {
    /// The requests of the page to the network; the browser itself requests other things.
    requests: Vec<String>,
    console: Vec<String>,
    picture: Vec<u8>,
}

impl Seen {
    fn of(page: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("page.html"), page).unwrap();
        let flag = |name: &str, file: &str| format!("{name}={}", at(file).display());
        let output = Command::new("timeout")
            .args(["60", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            // Nothing leaves this machine, whatever the browser requests for itself.
            .arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
            .args(["--enable-logging=stderr", "--v=0", "--window-size=1200,1600"])
            .args([
                flag("--user-data-dir", "profile"),
                flag("--log-net-log", "net.json"),
                flag("--screenshot", "page.png"),
            ])
            .arg(format!("file://{}", at("page.html").display()))
            .env("HOME", folder.path())
            .output()
            .expect("scripts/test --full installs chromium");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let log: Value = serde_json::from_slice(&std::fs::read(at("net.json")).unwrap()).unwrap();
        let mut requests: Vec<String> = log["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| &event["params"])
            .filter(|params| {
                params["initiator"].as_str().is_some_and(|initiator| initiator != "not an origin")
            })
            .map(|params| params["url"].as_str().unwrap_or_default().to_owned())
            .collect();
        requests.dedup();
        Self {
            requests,
            console: said.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect(),
            picture: std::fs::read(at("page.png")).unwrap(),
        }
    }
}
