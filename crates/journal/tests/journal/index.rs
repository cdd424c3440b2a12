//! The list of sessions.

use std::fs;

use lathe_journal::{Index, summarise};
use lathe_protocol::{
    Draft, Ending, Event, ModelChoice, OptionsChanged, Seq, SessionId, SessionState, SessionSummary,
};

use crate::make::*;

fn events(drafts: impl IntoIterator<Item = Draft>) -> Vec<Event> {
    let number = |(draft, n): (Draft, i64)| Event {
        seq: Seq(n.unsigned_abs()),
        at: at(n),
        place: draft.place,
        fact: draft.fact,
    };
    drafts.into_iter().zip(1..).map(number).collect()
}

fn summary(id: &str, updated: i64) -> SessionSummary {
    SessionSummary {
        id: SessionId::new(id),
        created: at(0),
        updated: at(updated),
        workspace: "/w".into(),
        title: "Fix".into(),
        model: "m".into(),
        state: SessionState::Interrupted,
        steps: 3,
        input_tokens: 1 << 40,
        output_tokens: 2,
        forked: None,
    }
}

fn ids(list: &[SessionSummary]) -> Vec<&str> {
    list.iter().map(|summary| summary.id.as_str()).collect()
}

/// A session with one finished task, in the journal folder.
fn worked(home: &Home, id: &str, second: i64) {
    let mut journal = home.create(id);
    for draft in
        [draft(opened(id)), draft(task("Fix\nit")), at_step(1, answer(&[])), draft(ended(Ending::Done))]
    {
        journal.append(at(second), draft).unwrap();
    }
    journal.close().unwrap();
}

#[test]
fn a_session_is_summed_up_from_its_live_branch() {
    let mut other = opened("s").options;
    other.model = ModelChoice { provider: "p".into(), model: "other".into(), base_url: None, key: None };
    let drafts = [
        draft(opened("s")),
        draft(task("First\n task")),
        at_step(1, answer(&[])),
        draft(ended(Ending::Answered)),
        draft(OptionsChanged { options: other }),
        draft(task("Second task")),
        at_step(2, answer(&[])),
        draft(ended(Ending::Cancelled)),
        draft(rewound(1)),
    ];
    let expect = |count: usize, state, steps, tokens: u64, model: &str| {
        let found = summarise(&events(drafts.clone().into_iter().take(count))).unwrap();
        let expected = SessionSummary {
            id: SessionId::new("s"),
            created: at(1),
            updated: at(count.try_into().unwrap()),
            workspace: "/work/repo".into(),
            title: if count > 1 { "First task" } else { "" }.into(),
            model: model.into(),
            state,
            steps,
            input_tokens: 10 * tokens,
            output_tokens: 3 * tokens,
            forked: None,
        };
        assert_eq!(found, expected, "after {count} events");
    };
    expect(1, SessionState::New, 0, 0, "m");
    expect(2, SessionState::Running, 0, 0, "m");
    expect(3, SessionState::Running, 1, 1, "m");
    expect(4, SessionState::Completed, 1, 1, "m");
    expect(5, SessionState::Completed, 1, 1, "other");
    expect(6, SessionState::Running, 1, 1, "other");
    expect(7, SessionState::Running, 2, 2, "other");
    expect(8, SessionState::Cancelled, 2, 2, "other");
    expect(9, SessionState::Completed, 1, 1, "other");
    assert_eq!(summarise(&[]), None);
    assert_eq!(summarise(&events([note("no opening")])), None);
}

#[test]
fn sessions_are_listed_newest_first_and_replaced_by_their_id() {
    let home = Home::new();
    let index = Index::open(home.path()).unwrap();
    assert_eq!(index.list(None).unwrap(), []);
    for (id, updated) in [("a", 10), ("b", 30), ("c", 20)] {
        index.upsert(&summary(id, updated)).unwrap();
    }
    assert_eq!(ids(&index.list(None).unwrap()), ["b", "c", "a"]);
    assert_eq!(ids(&index.list(Some(2)).unwrap()), ["b", "c"]);
    // Half a second after a whole one: the order of times, not of texts as they are printed.
    let mut later = summary("a", 30);
    later.updated = "2027-01-15T08:00:30.5Z".parse().unwrap();
    assert_eq!(later.updated.as_second(), at(30).as_second());
    index.upsert(&later).unwrap();
    let list = index.list(None).unwrap();
    assert_eq!((ids(&list), &list[0]), (vec!["a", "b", "c"], &later));
    assert_eq!(mode(&home.path().join("index.db")), 0o600);
}

#[test]
fn several_may_open_it_at_once_from_the_first_moment_on() {
    let home = Home::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let home = &home;
            scope.spawn(move || {
                let index = Index::open(home.path()).unwrap();
                for n in 0..25 {
                    index.upsert(&summary(&format!("{thread}-{n}"), n)).unwrap();
                }
            });
        }
    });
    assert_eq!(Index::open(home.path()).unwrap().list(None).unwrap().len(), 100);
}

#[test]
fn a_rebuild_takes_what_the_journals_say_and_names_what_it_cannot_read() {
    let home = Home::new();
    worked(&home, "old", 1);
    worked(&home, "new", 2);
    home.create("empty").close().unwrap();
    fs::write(home.file("broken.db"), b"garbage").unwrap();
    let mut index = Index::open(home.path()).unwrap();
    index.upsert(&summary("gone", 99)).unwrap();
    let rebuilt = index.rebuild(&home.sessions(), &home.blobs()).unwrap();
    assert_eq!((rebuilt.sessions, rebuilt.skipped.len()), (2, 1));
    assert_eq!(rebuilt.skipped[0].0, SessionId::new("broken"));
    let list = index.list(None).unwrap();
    assert_eq!(ids(&list), ["new", "old"]);
    assert_eq!(
        (list[0].title.as_str(), list[0].state, list[0].steps, list[0].input_tokens),
        ("Fix it", SessionState::Completed, 1, 10)
    );
}

#[test]
fn an_index_that_is_missing_damaged_or_of_another_version_is_made_anew() {
    let home = Home::new();
    worked(&home, "s", 1);
    let path = home.path().join("index.db");
    let check = |why: &str| {
        let index = Index::open(home.path()).unwrap();
        assert_eq!(ids(&index.list(None).unwrap()), ["s"], "{why}");
    };
    let change = |sql: &str| {
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch(sql).unwrap();
    };
    check("missing");
    for content in [&b""[..], b"garbage", noise(30_000, 5).as_bytes()] {
        fs::write(&path, content).unwrap();
        check("damaged");
    }
    change("PRAGMA user_version = 99; DROP TABLE sessions; CREATE TABLE sessions(other);");
    check("newer");
    change("PRAGMA user_version = 0");
    check("half made");
    change("DROP TABLE sessions");
    check("without its table");
    change("UPDATE sessions SET updated = 'noon'");
    check("with a foreign value");
    let mut bytes = fs::read(&path).unwrap();
    for page in bytes.chunks_mut(4096).skip(1) {
        page.fill(0xa5);
    }
    fs::write(&path, bytes).unwrap();
    check("damaged in the middle");
}
