//! Sessions by their ids.

use lathe_host::{Home, Host, HostError};

#[test]
fn a_session_that_is_named_is_found_without_a_look_at_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = folder.path().join("sessions");
    std::fs::create_dir_all(&sessions).unwrap();
    for id in ["20260101-000000-aaaa", "20260101-000000-bbbb", "20270101-000000-cccc"] {
        std::fs::write(sessions.join(format!("{id}.db")), "").unwrap();
    }
    let host = Host::new(Home::at(folder.path().to_owned()));
    assert_eq!(host.archive().find(Some("20260101-000000-a")).unwrap().as_str(), "20260101-000000-aaaa");
    assert_eq!(host.archive().find(Some("20270101-000000-cccc")).unwrap().as_str(), "20270101-000000-cccc");
    assert!(matches!(host.archive().find(Some("2026")), Err(HostError::ManySessions { .. })));
    assert!(matches!(host.archive().find(Some("2028")), Err(HostError::NoSuchSession(_))));
    // A list opens every journal that has not ended, and writes the index.
    assert!(!folder.path().join("index.db").exists());
}
