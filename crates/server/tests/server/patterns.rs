//! Patterns of clients and of ignore files cannot end the server, nor use up its memory.

use lathe_protocol::Mode;
use lathe_server::{Role, Tokens};
use serde_json::json;

use crate::kit::{Server, cassette};

/// Bytes that this process held at most.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}

/// An attack on the server: nested braces overflowed the stack, and the process with all sessions was gone.
#[tokio::test(flavor = "multi_thread")]
async fn nested_patterns_are_refused_and_the_server_goes_on() {
    let server = Server::start(cassette([]), Mode::Default).await;
    let looks = Tokens::add(&server.home, "looks", Role::Viewer).unwrap();
    for (open, close) in [("%7B", "%7D"), ("%7Ba,", "%7D"), ("%5B", ""), ("(", ")"), ("!", ""), ("%7B", "")] {
        for deep in [200, 2_000, 20_000] {
            let pattern = format!("{}a{}", open.repeat(deep), close.repeat(deep));
            for kind in ["names=true", "regex=true", "regex=false"] {
                let path = format!("/api/files/search?{kind}&q={pattern}");
                let (status, body) = server.ask_as(&looks, "GET", &path, None).await;
                let allowed: &[u16] = if deep == 200 { &[200, 400] } else { &[400, 414, 431] };
                assert!(allowed.contains(&status), "{open} {deep} {kind}: {status} {body}");
                if deep == 200 && open.starts_with("%7B") && kind == "names=true" {
                    assert!(status == 400 && body.to_string().contains("braces"), "{status} {body}");
                }
            }
        }
    }
    assert_eq!(server.get("/health").await.0, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ignore_file_of_nested_patterns_does_not_end_the_server() {
    let server = Server::start(cassette([]), Mode::Default).await;
    std::fs::create_dir_all(server.root.join("sub")).unwrap();
    std::fs::create_dir_all(server.root.join(".git/info")).unwrap();
    std::fs::write(server.root.join("sub/kept.txt"), "needle\n").unwrap();
    std::fs::write(server.root.join("sub/out.txt"), "needle\n").unwrap();
    let line = format!("{}a{}\nout.*\n", "{".repeat(50_000), "}".repeat(50_000));
    for file in [".gitignore", ".ignore", ".geminiignore", ".git/info/exclude", "sub/.gitignore"] {
        std::fs::write(server.root.join(file), &line).unwrap();
        let (status, found) = server.get("/api/files/search?q=needle").await;
        assert_eq!(status, 200, "{file} {found}");
        assert_eq!(found["hits"], json!([{ "path": "sub/kept.txt", "line": 1, "text": "needle" }]), "{file}");
        let (status, found) = server.get("/api/files/search?q=.txt&names=true&relative_dir=sub").await;
        assert_eq!((status, &found["hits"]), (200, &json!([{ "path": "sub/kept.txt" }])), "{file}");
        assert_eq!(server.get("/api/files?depth=5").await.0, 200, "{file}");
    }
    let (status, started) = server.post("/agent/interactive/start", json!({})).await;
    assert_eq!(status, 200, "{started}");
    std::fs::write(server.root.join("sub/.latheignore"), &line).unwrap();
    assert_eq!(server.get("/api/files/search?q=needle").await.1["hits"], json!([]));
    assert_eq!(server.get("/health").await.0, 200);
    server.stop().await;
}

/// An attack on the server: one expression of 5,000 classes took 391 MB and six seconds.
#[tokio::test(flavor = "multi_thread")]
async fn an_expression_is_bounded_in_length_memory_and_time() {
    let server = Server::start(cassette([]), Mode::Default).await;
    let before = peak_memory();
    let find = async |pattern: &str| {
        let path = format!("/api/files/search?regex=true&q={pattern}");
        let (status, body) = server.get(&path).await;
        (status, body.to_string())
    };
    let (status, words) = find(&format!("(?i){}", "%5Cw".repeat(5_000))).await;
    assert!(status == 400 && words.contains("10004 characters") && words.contains("1000 at most"), "{words}");
    for pattern in ["%5Cw%7B5000%7D", "(?i)%5CpL%7B400%7D", "(%5Cw%7B50%7D)%7B50%7D"] {
        let (status, words) = find(pattern).await;
        assert!(status == 400 && words.contains("too large"), "{pattern} {status} {words}");
    }
    let grown = peak_memory().saturating_sub(before);
    assert!(grown < 100 << 20, "{} MB", grown >> 20);
    assert_eq!(find("o.e").await.0, 200);
    server.stop().await;
}
