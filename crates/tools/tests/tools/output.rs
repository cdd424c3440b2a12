//! Output that is long, or no text.

use serde_json::{Value, json};

use crate::bench::{lathe, trae};

fn line(command: &str) -> Value {
    json!({ "command": command })
}

fn numbers(upto: u32) -> String {
    (1..=upto).map(|number| format!("{number}\n")).collect()
}

#[tokio::test]
async fn long_output_is_cut_in_the_middle_told_and_kept() {
    for (mut bench, cap) in [(lathe(), 30_000), (trae(), 16_000)] {
        let whole = numbers(20_000);
        let finished = bench.call("bash", line("seq 1 20000")).await;
        let (head, tail) = (&whole[..cap / 2], &whole[whole.len() - cap / 2..]);
        let omitted = whole.len() - cap;
        let middle = format!(
            "{}\n[... {omitted} of {} bytes left out; narrow the command down to see them ...]\n{}",
            head.trim_end_matches('\n'),
            whole.len(),
            tail.trim_end_matches('\n')
        );
        assert!(finished.text.contains(&middle), "{}", finished.text);
        assert!(finished.text.len() < cap + 200);
        let truncated = finished.truncated.unwrap();
        assert_eq!(
            (truncated.shown, truncated.total, truncated.kept),
            (cap as u64, whole.len() as u64, whole.len() as u64)
        );
        assert_eq!(bench.blob(&truncated.blob), whole.as_bytes());
    }
}

#[tokio::test]
async fn both_streams_share_the_space_and_the_blob() {
    let mut bench = lathe();
    let finished = bench.call("bash", line("seq 1 20000; seq 1 10 >&2")).await;
    let errors = numbers(10);
    assert!(finished.text.contains(&format!("<stderr>\n{errors}</stderr>")), "{}", finished.text);
    let truncated = finished.truncated.unwrap();
    let whole = numbers(20_000) + &errors;
    assert_eq!((truncated.shown, truncated.total), (30_000, whole.len() as u64));
    assert_eq!(bench.blob(&truncated.blob), whole.as_bytes());

    let finished = bench.call("bash", line("seq 1 20000; seq 1 20000 >&2")).await;
    assert!(finished.text.len() < 31_000, "{}", finished.text.len());
}

#[tokio::test]
async fn output_that_just_fits_is_whole() {
    let mut bench = lathe();
    let finished = bench.call("bash", line("head -c 29999 /dev/zero | tr '\\0' x; echo")).await;
    assert_eq!(finished.truncated, None);
    assert_eq!(finished.text, format!("exit code 0\n<stdout>\n{}\n</stdout>", "x".repeat(29_999)));
}

#[tokio::test]
async fn no_character_is_cut_in_two() {
    let mut bench = lathe();
    let finished =
        bench.call("bash", line("printf a; for i in {1..20000}; do printf '\u{20ac}'; done")).await;
    assert!(finished.truncated.is_some() && !finished.text.contains('\u{fffd}'));
}

#[tokio::test]
async fn bytes_that_are_no_text_are_shown_as_such_and_harm_nothing() {
    for (mut bench, expected) in
        [(lathe(), "exit code 0\n<stdout>\na\u{fffd}\u{fffd}b\n</stdout>"), (trae(), "a\u{fffd}\u{fffd}b")]
    {
        for _ in 0..2 {
            assert_eq!(bench.told("bash", line(r"printf 'a\377\376b\n'")).await, expected);
        }
    }
}
