//! The store on a real file, and the service against a server of this machine.

// Helpers of tests are not inside `#[test]` functions, where these are allowed anyway.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use lathe_documents::{DocumentError, DocumentService, DocumentStore, ServiceOptions};

fn store() -> (tempfile::TempDir, DocumentStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = DocumentStore::open(&folder.path().join("docs.db")).unwrap();
    (folder, store)
}

#[test]
fn every_edit_keeps_what_was_there_before() {
    let (folder, store) = store();
    let made = store.create("Plan", "<p>one</p>", "the plan").unwrap();
    let (edited, changed) = store.edit(&made.document_id, "<p>two</p>", None).unwrap();
    assert_eq!((edited.version, edited.title.as_str(), changed), (2, "Plan", false));
    let (edited, changed) = store.edit(&made.document_id, "<p>three</p>", Some("New plan")).unwrap();
    assert_eq!((edited.version, edited.title.as_str(), changed), (3, "New plan", true));
    // Another process sees the same.
    let again = DocumentStore::open(&folder.path().join("docs.db")).unwrap();
    let versions: Vec<(u32, String, u64)> = again
        .versions(&made.document_id)
        .unwrap()
        .into_iter()
        .map(|version| (version.version, version.title, version.bytes))
        .collect();
    assert_eq!(
        versions,
        [(3, "New plan".to_owned(), 12), (2, "Plan".to_owned(), 10), (1, "Plan".to_owned(), 10)]
    );
    let first = again.get(&made.document_id, Some(1)).unwrap().unwrap();
    assert_eq!((first.content.as_str(), first.description.as_str()), ("<p>one</p>", "the plan"));
    let mode = std::fs::metadata(folder.path().join("docs.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn what_is_not_there_says_so() {
    let (_folder, store) = store();
    assert_eq!(
        store.detail("nothing").unwrap_err().to_string(),
        "HTTP 404 at /online/docs/detail: there is no such document"
    );
    assert_eq!(
        store.edit("nothing", "x", None).unwrap_err().to_string(),
        "HTTP 404 at /online/report/edit: there is no such document"
    );
    assert!(store.versions("nothing").unwrap().is_empty());
    let large = "x".repeat((4 << 20) + 1);
    assert!(matches!(store.create("t", &large, "d"), Err(DocumentError::Answered { code: 413, .. })));
}

#[test]
fn documents_are_found_by_words_of_their_latest_version() {
    let (_folder, store) = store();
    let one = store.create("Apples", "<p>red</p>", "fruit").unwrap();
    let two = store.create("Pears", "<p>green 100%</p>", "fruit").unwrap();
    store.edit(&one.document_id, "<p>yellow</p>", None).unwrap();
    let ids = |word: &str| -> Vec<String> {
        store.search(word, 0, 10).unwrap().into_iter().map(|found| found.document_id).collect()
    };
    assert_eq!(ids("FRUIT").len(), 2);
    assert_eq!(ids("yellow"), std::slice::from_ref(&one.document_id));
    assert_eq!(ids("red"), Vec::<String>::new());
    assert_eq!(ids("100%"), std::slice::from_ref(&two.document_id));
    assert_eq!(ids("").len(), 2);
    assert_eq!(store.search("", 1, 10).unwrap().len(), 1);
}

/// Answers each request with the next of these; gives the address and, at the end, the requests.
fn served(answers: Vec<(u16, &'static str)>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let task = std::thread::spawn(move || {
        let mut requests = Vec::new();
        for (code, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut piece) = (Vec::new(), [0u8; 4096]);
            loop {
                let read = stream.read(&mut piece).unwrap();
                request.extend_from_slice(&piece[..read]);
                let text = String::from_utf8_lossy(&request).into_owned();
                let length = text
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
                let whole = text.split_once("\r\n\r\n").zip(length);
                if read == 0 || whole.is_some_and(|((_, body), length)| body.len() >= length) {
                    requests.push(text);
                    break;
                }
            }
            let answer = format!(
                "HTTP/1.1 {code} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).unwrap();
        }
        requests
    });
    (url, task)
}

fn service(url: &str) -> DocumentService {
    DocumentService::new(&ServiceOptions { base_url: url.to_owned(), key: Some("k-123".to_owned()) }).unwrap()
}

#[tokio::test]
async fn a_service_that_cannot_answer_is_asked_three_times() {
    let (url, task) =
        served(vec![(500, "no"), (503, "no"), (200, r#"{"code":0,"data":{"documentId":"d1"}}"#)]);
    let made = service(&url).create("T", "<p>c</p>", "D").await.unwrap();
    assert_eq!((made.document_id.as_str(), made.title.as_str()), ("d1", "T"));
    let requests = task.join().unwrap();
    assert_eq!(requests.len(), 3);
    assert!(requests[0].starts_with("POST /ai/report/add HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[0].contains("authorization: Bearer k-123\r\n"));
    let body = requests[0].split_once("\r\n\r\n").unwrap().1;
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(body).unwrap(),
        serde_json::json!({ "content": "<p>c</p>", "description": "D", "title": "T", "userId": "user" })
    );
}

#[tokio::test]
async fn a_no_is_a_no_and_a_redirect_is_not_followed() {
    let (url, task) = served(vec![(404, "gone"), (302, "elsewhere")]);
    let service = service(&url);
    assert_eq!(service.detail("d1").await.unwrap_err().to_string(), "HTTP 404 at /ai/report/detail: gone");
    assert_eq!(
        service.detail("d1").await.unwrap_err().to_string(),
        "HTTP 302 at /ai/report/detail: elsewhere"
    );
    assert_eq!(task.join().unwrap().len(), 2);
}

#[tokio::test]
async fn answers_are_read_with_and_without_a_wrapper() {
    let (url, task) = served(vec![
        (200, r#"{"document_id":"d2","title":"T","content":"C","updatedAt":"now"}"#),
        (200, r#"{"data":{"items":[{"id":7,"title":"Seven"}]}}"#),
        (200, r#"{"success":true}"#),
    ]);
    let service = service(&url);
    let found = service.detail("d2").await.unwrap();
    assert_eq!((found.content.as_str(), found.updated_at.as_str()), ("C", "now"));
    let list = service.search("x", 1, 10).await.unwrap();
    assert_eq!((list[0].document_id.as_str(), list[0].title.as_str()), ("7", "Seven"));
    let (edited, changed) = service.edit("d2", "C2", Some("T2")).await.unwrap();
    assert_eq!((edited.document_id.as_str(), changed), ("d2", true));
    task.join().unwrap();
}

#[test]
fn an_address_that_is_none_is_refused() {
    for url in ["ftp://a", "not an address", "http://user:key@host/", "file:///etc/passwd"] {
        let options = ServiceOptions { base_url: url.to_owned(), key: None };
        assert!(DocumentService::new(&options).is_err(), "{url}");
    }
}
