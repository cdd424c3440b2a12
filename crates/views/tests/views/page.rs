use std::collections::BTreeSet;

use lathe_protocol::{CallFinished, Change, Digest, Ending, Event, ModelFailure, ToolErrorKind};
use lathe_views::{Language, Page, Prices, html};

use crate::make::{Journal, call, demo, exited, long, result, text, thinking, usage};
use crate::markup::{Piece, read};

fn page(journal: &Journal) -> String {
    let page = html(&journal.events, &|digest| journal.blobs.get(digest).cloned(), Language::English);
    check(&page);
    page
}

fn without_blobs(events: &[Event], language: Language) -> String {
    let page = html(events, &|_| None, language);
    check(&page);
    page
}

const TAGS: &str = "!doctype a article b body button code dd del details div dl dt footer h1 h2 h3 h4 h5 head header \
    html i ins li link main meta p pre rect script section small span strong style summary svg text title ul";
const ATTRIBUTES: &str = "aria-hidden aria-label charset class content height href html http-equiv id lang name open rel role \
    rx tabindex type width x y";

/// Invariants of every page, for any journal: known tags and attributes only, links only within the page, one style
/// and one script, both ours, and the policy that forbids all others.
#[track_caller]
fn check(page: &str) {
    let tags: BTreeSet<&str> = TAGS.split_whitespace().collect();
    let known: BTreeSet<&str> = ATTRIBUTES.split_whitespace().collect();
    let (mut scripts, mut policy) = (0, false);
    for piece in read(page) {
        let Piece::Open { name, attributes } = piece else { continue };
        assert!(tags.contains(name), "tag {name}");
        scripts += usize::from(name == "script");
        for (attribute, value) in attributes {
            assert!(known.contains(attribute), "attribute {attribute} of {name}");
            if attribute == "href" {
                assert!(value == "data:," || value.starts_with("#step-"), "link to {value}");
            }
            policy |= value
                == "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
        }
    }
    assert!(scripts == 1 && policy);
    assert!(page.ends_with("</html>\n"));
    // A parser cannot take the text between the tags for markup, and hidden characters are gone.
    assert!(!page.contains(
        |c: char| (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{202e}').contains(&c)
    ));
}

fn texts(page: &str) -> String {
    let texts = read(page).into_iter().filter_map(|piece| match piece {
        Piece::Text(text) => Some(text),
        Piece::Open { .. } | Piece::Close(_) => None,
    });
    texts.collect::<Vec<_>>().join("|")
}

#[test]
fn the_page_tells_what_was_asked_what_was_done_and_what_it_cost() {
    let texts = texts(&page(&demo()));
    for expected in [
        "A test of this project fails. Find the cause and fix it.",
        "20261115-090000-b774",
        "/home/mira/till",
        "anthropic / claude-sonnet-4-5",
        "full-auto",
        "Done",
        "Padded the decimals; all tests pass.",
        "First the failure.",
        "I want to see the failure.",
        "bash tests/run.sh",
        "mode.full-auto",
        "exit 1",
        "expected 250, got 205 ¢",
        "floor.R4",
        "it deletes outside the workspace",
        "lib/money.sh",
        "+2",
        "−1",
        "Failed in this step: bash.",
        "Call `task_done`.",
        "$0.0132",
    ] {
        assert!(texts.contains(expected), "{expected} is not on the page");
    }
}

#[test]
fn every_step_has_its_card_and_its_column() {
    let page = page(&long(200));
    for step in 1..=200 {
        assert!(page.contains(&format!("<details class=\"step\" id=\"step-{step}\">")), "card {step}");
        assert!(page.matches(&format!("href=\"#step-{step}\"")).count() >= 3, "columns of {step}");
        assert!(page.contains(&format!("Step {step} says this.")));
    }
    assert_eq!(page.matches("class=\"chip bad\">1 failed").count(), 200 / 7);
    assert!(page.contains("Steps used up"));
}

#[test]
fn a_short_session_is_open_from_the_start() {
    assert_eq!(page(&demo()).matches("<details class=\"step\" id=\"step-").count(), 4);
    assert!(page(&demo()).contains("id=\"step-4\" open>"));
}

#[test]
fn the_page_asks_nothing_of_the_network() {
    let page = page(&demo());
    for word in ["http://", "https://", "src=", "@import", "url(", "fetch(", "XMLHttpRequest", "//#"] {
        assert!(!page.contains(word), "{word}");
    }
}

const HOSTILE: &str = "<script>alert(1)</script><img src=x onerror=alert(1)>\"onload=alert(1) x=\"'\u{202e}evil\u{1b}[31m\0\r</pre></title></style>\
    <a href=\"https://evil.example\">x</a>@import &lt;b&gt; javascript:alert(1) https://evil.example ]]><!-- ";

#[test]
fn hostile_text_stays_text_wherever_it_stands() {
    let mut journal = Journal::opened(
        {
            let mut options = crate::make::options(HOSTILE);
            options.model.provider = HOSTILE.into();
            options
        },
        None,
    );
    let arguments = serde_json::json!({ HOSTILE: HOSTILE, "list": [HOSTILE] }).to_string();
    let change = journal.change(HOSTILE, Some(HOSTILE), Some(&format!("{HOSTILE}\n{HOSTILE}")), "c");
    journal.model = HOSTILE.into();
    journal
        .task(HOSTILE)
        .epoch(HOSTILE, &[HOSTILE])
        .asked()
        .answered(
            vec![
                thinking(HOSTILE),
                text(HOSTILE),
                call("c", HOSTILE, &arguments),
                call(HOSTILE, HOSTILE, HOSTILE),
            ],
            usage(1, 1, 0),
        )
        .decided("c", lathe_protocol::Verdict::Deny, HOSTILE, HOSTILE)
        .add(
            Some("c"),
            CallFinished {
                text: HOSTILE.into(),
                changes: vec![change],
                ..CallFinished::failed(HOSTILE, ToolErrorKind::ExecutionFailed, format!("other {HOSTILE}"))
            },
        )
        .ran(HOSTILE, result(HOSTILE, HOSTILE))
        .reflected(HOSTILE)
        .reminded(HOSTILE)
        .asked()
        .failed(ModelFailure::Refused, HOSTILE)
        .finished(Ending::Failed, HOSTILE)
        .task(HOSTILE);
    let page = page(&journal);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("&quot;onload=alert(1)"));
    assert!(page.contains("<b class=\"hidden\">U+202E</b>evil<b class=\"hidden\">\u{241b}</b>[31m"));
    assert!(!page.contains("<script>alert") && !page.contains("<img") && !page.contains("\"onload"));
    check(&Page::new(&journal.events, &|_| None).language(Language::Chinese).html());
}

#[test]
fn a_long_result_is_folded_and_nothing_of_it_is_lost() {
    let lines: Vec<String> = (1..=300).map(|line| format!("line {line} of the output")).collect();
    let mut journal = Journal::new("m");
    journal
        .task("t")
        .asked()
        .answered(vec![call("c", "bash", "{}")], usage(1, 1, 0))
        .ran("c", exited(0, &lines.join("\n")));
    let page = page(&journal);
    assert!(page.contains("<summary>Show all (276 more lines)</summary>"));
    assert!(lines.iter().all(|line| page.contains(line.as_str())));
}

#[test]
fn changes_are_shown_as_coloured_lines_and_the_net_of_all_in_a_list() {
    let mut journal = Journal::new("m");
    journal.task("t");
    let mut change = |path: &str, before: Option<&str>, after: Option<&str>| {
        let change = journal.change(path, before, after, "c");
        journal
            .asked()
            .answered(vec![call("c", "edit", "{}")], usage(1, 1, 0))
            .ran("c", CallFinished { changes: vec![change], ..result("edit", "Edited.") });
    };
    change("a.txt", Some("1\n2\n"), Some("1\n3\n"));
    change("a.txt", Some("1\n3\n"), Some("1\n3\n4\n"));
    change("new.txt", None, Some("x\n"));
    change("gone.txt", Some("y\n"), None);
    change("back.txt", Some("z\n"), Some("w\n"));
    change("back.txt", Some("w\n"), Some("z\n"));
    let page = page(&journal);
    assert!(page.contains("<del>-2\n</del><ins>+3\n</ins><ins>+4\n</ins>"), "the net change");
    assert!(page.contains("<code>a.txt</code><span class=\"stat\"><ins>+2</ins> <del>−1</del></span>"));
    assert!(page.contains("<code>new.txt</code><span class=\"chip good\">created</span>"));
    assert!(page.contains("<code>gone.txt</code><span class=\"chip bad\">deleted</span>"));
    assert!(page.contains("<a href=\"#step-1\">1</a> <a href=\"#step-2\">2</a>"));
    assert!(!page.contains("<details class=\"file\"><summary><code>back.txt"));
}

#[test]
fn content_that_is_gone_binary_or_too_large_is_said_to_be_so() {
    let big = "x".repeat(2 << 20);
    let mut journal = Journal::new("m");
    let mut changes = vec![
        journal.change("binary", Some("\0\u{1}"), Some("\0\u{2}"), "c"),
        journal.change("big", Some("x"), Some(&big), "c"),
    ];
    changes.push(Change { before: Some(Digest::of(b"never kept")), ..changes[0].clone() });
    journal
        .task("t")
        .asked()
        .answered(vec![call("c", "bash", "{}")], usage(1, 1, 0))
        .ran("c", CallFinished { changes, ..exited(0, "ok") });
    let page = page(&journal);
    for said in ["Binary content differs.", "Too large to compare here.", "The content is no longer stored."]
    {
        assert!(page.contains(said), "{said}");
    }
    assert!(page.len() < 100_000);
}

#[test]
fn an_unknown_price_is_said_and_a_given_one_used() {
    let mut journal = Journal::new("house-model");
    journal.task("t").asked().answered(vec![text("x")], usage(1_000_000, 0, 0));
    let unknown = page(&journal);
    assert!(unknown.contains("No known price for house-model") && !unknown.contains("class=\"cost\""));
    let prices = Prices::built_in().with_json(r#"{"house-model": {"input": 2, "output": 4}}"#).unwrap();
    let known = Page::new(&journal.events, &|_| None).prices(prices).html();
    assert!(known.contains("<strong>$2.00</strong>") && known.contains("class=\"cost\""));
}

#[test]
fn the_page_speaks_chinese_too() {
    let page = without_blobs(&demo().events, Language::Chinese);
    assert!(page.contains("<html lang=\"zh-CN\">"));
    for word in ["会话报告", "步骤", "改动的文件", "已拒绝", "退出码 1", "完成"] {
        assert!(page.contains(word), "{word}");
    }
    assert!(!page.contains("Changed files") && !page.contains("denied</span>"));
}

#[test]
fn several_runs_stand_one_below_the_other_and_an_unfinished_one_says_so() {
    let mut journal = demo();
    journal.task("And now?").asked();
    let page = page(&journal);
    assert!(page.contains("<h3>Run 1</h3>") && page.contains("<h3>Run 2</h3>"));
    assert!(
        page.contains("And now?")
            && page.contains("Not finished")
            && page.contains("The model has not answered yet.")
    );
}

#[test]
fn a_page_of_nothing_is_a_page() {
    assert!(without_blobs(&[], Language::English).contains("No task yet"));
    assert!(without_blobs(&Journal::new("m").events, Language::English).contains("No task yet"));
}

#[test]
fn times_are_written_by_the_function_handed_in() {
    let journal = demo();
    let page = Page::new(&journal.events, &|_| None).time(&|_| "noon".to_owned()).html();
    assert!(page.contains("Began noon"));
}
