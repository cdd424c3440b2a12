//! A known value is found however it is written, and ordinary text stays as it is.

use std::borrow::Cow;

use lathe_redact::Redactor;

const VALUE: &str = "sk-live-0123456789abcdef";

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn redactor(value: &str) -> Redactor {
    Redactor::new([("KEY".to_owned(), value.to_owned())])
}

fn base64(bytes: &[u8]) -> String {
    let group = |three: &[u8]| -> String {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(three.get(at).copied().unwrap_or(0)));
        let letter = |at: usize| char::from(ALPHABET[(bits >> (18 - 6 * at) & 63) as usize]);
        (0..4).map(|at| if at <= three.len() { letter(at) } else { '=' }).collect()
    };
    bytes.chunks(3).map(group).collect()
}

fn wrapped(text: &str, width: usize, end: &str) -> String {
    let lines: Vec<&[u8]> = text.as_bytes().chunks(width).collect();
    String::from_utf8_lossy(&lines.join(end.as_bytes())).into_owned()
}

/// The output of a stream for a text that comes in pieces of a size.
fn streamed(redactor: &Redactor, text: &[u8], size: usize) -> String {
    let mut stream = redactor.stream();
    let mut out: Vec<u8> = text.chunks(size).flat_map(|piece| stream.push(piece)).collect();
    out.extend(stream.finish());
    String::from_utf8_lossy(&out).into_owned()
}

/// The whole text and every way to cut it come to the same.
fn assert_hidden(redactor: &Redactor, text: &str, expected: &str) {
    assert_eq!(redactor.redact_text(text), expected, "{text:?}");
    for size in [1, 2, 3, 7, 1000] {
        assert_eq!(streamed(redactor, text.as_bytes(), size), expected, "{text:?} by {size}");
    }
}

#[test]
fn percent_encoding_is_known_whatever_it_leaves() {
    let redactor = redactor("it's (a/b)~c&d");
    for text in [
        "k=it%27s%20%28a%2Fb%29~c%26d",
        "k=it's%20(a%2Fb)~c%26d",
        "k=it's%20(a/b)~c&d",
        "k=it%27s%20%28a/b%29~c%26d",
        "k=it%27s+%28a%2Fb%29%7Ec%26d",
    ] {
        assert_hidden(&redactor, text, "k=«secret:KEY»");
    }
}

#[test]
fn what_is_not_seen_hides_no_secret() {
    let redactor = redactor(VALUE);
    let (one, two) = VALUE.split_at(9);
    for between in [
        "\u{1b}[1m",
        "\u{1b}[0m\u{1b}[38;5;1m",
        "\u{1b}]0;a title\u{7}",
        "\u{1b}]8;;http://x\u{1b}\\",
        "\u{1b}P1;2\u{1b}\\",
        "\u{1b}(B\u{1b}[m",
        "\u{1b}7",
        "\u{1b}ä",
        "\r",
        "\r\r",
        "\u{8}",
        "\0",
        "\u{7f}",
        "\u{85}",
        "\u{ad}",
        "\u{200b}",
        "\u{feff}",
        "\u{fe0f}",
        "\u{e0041}",
    ] {
        assert_hidden(&redactor, &format!("a {one}{between}{two} z"), "a «secret:KEY» z");
    }
    let lines = format!("a {one}\u{1b}]0;over\nlines\u{7}{two} z\nb");
    assert_hidden(&redactor, &lines, "a «secret:KEY»\n z\nb");
    let sown: String = VALUE.chars().flat_map(|c| [c, '\0']).collect();
    assert_hidden(&redactor, &format!("a {sown}"), "a «secret:KEY»\0");
}

#[test]
fn what_only_a_terminal_takes_away_hides_no_secret() {
    let redactor = redactor(VALUE);
    let (one, two) = VALUE.split_at(9);
    for between in ["X\u{8}", "ä\u{8}", "XY\u{8}\u{8}", "X\u{1b}[1m\u{8}", "\u{9b}1m", "\u{9d}0;t\u{9c}"] {
        let text = format!("a {one}{between}{two} z");
        assert_eq!(redactor.redact_text(&text), "a «secret:KEY» z", "{text:?}");
        // What was given out is not taken back, but the other half is not given too.
        assert!(!streamed(&redactor, text.as_bytes(), 1).contains(two), "{text:?}");
    }
}

#[test]
fn a_sequence_without_an_end_hides_no_secret_after_it() {
    let redactor = redactor(VALUE);
    let (one, two) = VALUE.split_at(9);
    for before in ["\u{1b}]0;\n", "\u{1b}[\n", "\u{1b}P", "\u{1b}]0;x \u{1b}[0m"] {
        assert_hidden(&redactor, &format!("{before}{one}\u{1b}[1m{two}."), &format!("{before}«secret:KEY»."));
    }
    // Readers who drop controls line by line see it here.
    let text = format!("\u{1b}]x\n{one}\u{9b}{two}");
    assert_eq!(redactor.redact_text(&text), "\u{1b}]x\n«secret:KEY»");
}

#[test]
fn only_the_secret_changes_in_a_coloured_text() {
    let (one, two) = VALUE.split_at(3);
    let filler = "\u{1b}[32mok\u{1b}[0m and so on\r\n".repeat(2000);
    let long = "no colours here ".repeat(1000);
    let text = |middle: &str| format!("{filler}{long}{middle}{long}\u{1b}[0m{middle}{filler}");
    let redactor = redactor(VALUE);
    let dirty = text(&format!("{one}\u{1b}[1m{two}"));
    let clean = text("«secret:KEY»");
    assert_eq!(redactor.redact_text(&dirty), clean);
    for size in [100, 4096] {
        assert_eq!(streamed(&redactor, dirty.as_bytes(), size), clean);
    }
    assert!(matches!(redactor.redact_text(&filler), Cow::Borrowed(_)));
}

#[test]
fn a_secret_that_is_stretched_far_is_found_and_not_held_for_ever() {
    let redactor = redactor(VALUE);
    let (one, two) = VALUE.split_at(9);
    let text = format!("a {one}{}{two} z", "\u{1b}[1m".repeat(100_000));
    assert_eq!(redactor.redact_text(&text), "a «secret:KEY» z");
    assert_eq!(streamed(&redactor, text.as_bytes(), 8192), "a «secret:KEY» z");
}

#[test]
fn much_that_is_not_seen_takes_no_long_time() {
    let redactor = redactor(VALUE);
    for piece in ["\u{1b}]", "\u{9d}", "\u{8}", "a\u{8}", "\u{1b}[", "\u{1b}[1;", "\0", "sk-live\u{1b}]"] {
        let text = piece.repeat(200_000 / piece.len());
        assert!(matches!(redactor.redact_text(&text), Cow::Borrowed(_)), "{piece:?}");
        assert!(streamed(&redactor, text.as_bytes(), 65536).len() <= text.len(), "{piece:?}");
    }
}

#[test]
fn wrapped_base64_is_found_at_every_place() {
    let redactor = redactor(VALUE);
    for width in [20, 57, 64, 76] {
        for before in (0..90).step_by(7) {
            let body = "x".repeat(before) + VALUE + "\nand more of it, so that lines follow";
            for end in ["\n", "\r\n"] {
                let text =
                    format!("it is:\n{}{end}that was it{end}", wrapped(&base64(body.as_bytes()), width, end));
                let clean = redactor.redact_text(&text);
                assert!(clean.contains("«secret:KEY»"), "{width} {before}: {text}");
                assert_eq!(clean.lines().count(), text.lines().count(), "lines keep their numbers");
                assert!(clean.starts_with("it is:\n") && clean.ends_with(&format!("{end}that was it{end}")));
                for size in [1, 10, 1000] {
                    assert_eq!(
                        streamed(&redactor, text.as_bytes(), size),
                        clean,
                        "{width} {before} by {size}"
                    );
                }
            }
        }
    }
}

#[test]
fn wrapped_hex_is_found() {
    let redactor = redactor(VALUE);
    for before in 0..40 {
        let body = "x".repeat(before) + VALUE + "more";
        let hex: String = body.bytes().map(|byte| format!("{byte:02x}")).collect();
        for text in [hex.clone(), hex.to_uppercase(), wrapped(&hex, 60, "\n")] {
            assert!(redactor.redact_text(&text).contains("«secret:KEY»"), "{text}");
        }
    }
}

#[test]
fn base64_of_base64_is_found() {
    for value in [VALUE, "pa55w0rd", "a?b>c~d/e+f==g??"] {
        let redactor = redactor(value);
        for before in 0..7 {
            let inner = base64(("u:abcdefg"[..before].to_owned() + value + ":x").as_bytes());
            for text in [base64(inner.as_bytes()), base64(format!("k={inner}\n").as_bytes())] {
                assert!(redactor.redact_text(&text).contains("«secret:KEY»"), "{value} {before} {text}");
            }
        }
    }
}

#[test]
fn what_json_html_and_shells_make_of_a_value_is_found() {
    for (value, texts) in [
        (
            "it's \"a\"/b\\c<d>&ä🙂\n$e",
            &[
                r#"{"k":"it's \"a\"/b\\c<d>&ä🙂\n$e"}"#,
                r#"{"k":"it's \"a\"\/b\\c<d>&\u00e4\ud83d\ude42\n$e"}"#,
                r#"{"k":"it's \"a\"/b\\c<d>&\u00E4\uD83D\uDE42\n$e"}"#,
                r#"{"k":"it's \"a\"/b\\c\u003cd\u003e\u0026\u00e4\ud83d\ude42\n$e"}"#,
                r#"{"k":"{\"k\":\"it's \\\"a\\\"/b\\\\c<d>&ä🙂\\n$e\"}"}"#,
                "<p>it&#39;s &quot;a&quot;/b\\c&lt;d&gt;&amp;ä🙂\n$e</p>",
                "<p>it&#x27;s &quot;a&quot;/b\\c&lt;d&gt;&amp;ä🙂\n$e</p>",
                "<p>it's \"a\"/b\\c&lt;d&gt;&amp;ä🙂\n$e</p>",
                "<p>it&apos;s &quot;a&quot;/b\\c&lt;d&gt;&amp;ä🙂\n$e</p>",
                "K='it'\\''s \"a\"/b\\c<d>&ä🙂\n$e'",
                "K='it'\"'\"'s \"a\"/b\\c<d>&ä🙂\n$e'",
                r#"K=$'it\'s "a"/b\\c<d>&ä🙂\n$e'"#,
                r#"K=$'it\'s "a"/b\\c<d>&\303\244\360\237\231\202\n$e'"#,
                "K=\"it's \\\"a\\\"/b\\\\c<d>&ä🙂\n\\$e\"",
            ][..],
        ),
        ("a b'c$d,e=f~g#h", &["echo a\\ b\\'c\\$d\\,e=f~g#h", "echo a\\ b\\'c\\$d,e\\=f\\~g\\#h"]),
        ("a\"bcde", &[r#"{"k":"a\"bcde"}"#, "a&quot;bcde"]),
        ("a?b>c~d/e+f==g??", &[r#"{"k":"YT9iPmN+ZC9lK2Y9PWc\/Pw=="}"#, "k=YT9iPmN%2BZC9lK2Y9PWc%2FPw%3D%3D"]),
    ] {
        let redactor = redactor(value);
        for text in texts {
            let clean = redactor.redact_text(text);
            assert!(clean.contains("«secret:KEY»"), "{text}: {clean}");
            assert!(!clean.contains("c<d") && !clean.contains("b\\'c"), "{clean}");
            assert_eq!(streamed(&redactor, text.as_bytes(), 1), clean);
        }
    }
}

#[test]
fn base64_of_wrapped_base64_is_found() {
    let value = VALUE.repeat(5);
    let inner = wrapped(&base64(value.as_bytes()), 76, "\n") + "\n";
    let text = wrapped(&base64(inner.as_bytes()), 76, "\n");
    assert!(redactor(&value).redact_text(&text).starts_with("«secret:KEY»"));
}

fn pem() -> (String, Vec<String>) {
    let body: Vec<u8> = (0..700_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let lines: Vec<String> = wrapped(&base64(&body), 64, "\n").lines().map(str::to_owned).collect();
    let text = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"));
    (text, lines)
}

#[test]
fn a_key_of_many_lines_is_found_whole_by_line_and_joined() {
    let (key, lines) = pem();
    let redactor = redactor(&key);
    let whole = key.trim_end();
    for text in [
        whole.to_owned(),
        whole.replace('\n', "\r\n"),
        whole.replace('\n', "\\n"),
        base64(key.as_bytes()),
        wrapped(&base64(key.as_bytes()), 76, "\n"),
        base64(key.replace('\n', "\r\n").as_bytes()),
    ] {
        let clean = redactor.redact_text(&text);
        assert!(clean.starts_with("«secret:KEY»") && clean.replace('\n', "").len() < 24, "{clean}");
    }
    for text in [lines[3].clone(), lines.join(""), wrapped(&lines.join(""), 76, "\n"), lines.join("\n> ")] {
        let clean = redactor.redact_text(&text);
        assert!(clean.contains("«secret:KEY»"), "{clean}");
        assert!(lines.iter().all(|line| line.len() < 20 || !clean.contains(&line[..20])), "{clean}");
    }
    let other = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n";
    assert_eq!(redactor.redact_text(other), other);
}

#[test]
fn ordinary_text_stays_as_it_is() {
    let (key, _) = pem();
    let known = [VALUE, &key, "it's \"a\"/b\\c", "pa55w0rd", "letmein"];
    let redactor = Redactor::new(known.map(|value| ("KEY".to_owned(), value.to_owned())));
    let data: Vec<u8> = (0..20_000_u32).map(|at| (at.wrapping_mul(2_246_822_519) >> 11) as u8).collect();
    let hex: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
    let dump: String = data
        .chunks(16)
        .enumerate()
        .map(|(at, line)| {
            let bytes: String = line.iter().map(|byte| format!(" {byte:02x}")).collect();
            format!("{:08x} {bytes}\n", at * 16)
        })
        .collect();
    let json: String = (0..500).map(|at| format!(r#"{{"id":{at},"k":"v\n\"{at}\"\u00e4\/x"}},"#)).collect();
    let texts = [
        hex.clone(),
        wrapped(&hex, 60, "\n"),
        dump,
        base64(&data),
        wrapped(&base64(&data), 76, "\n"),
        wrapped(&base64(&data), 64, "\r\n"),
        json,
        "\u{1b}[1mbold\u{1b}[0m, a\r\nb\rc, \u{1b}]0;title\u{7} l\u{8}\u{8}\u{1b}(B\u{1b}[m\n".repeat(300),
        "sk-live and sk-\u{1b}[1mlive-01\u{1b}[0m, «secret:KEY», 👩\u{200d}💻 — “quoted”…\n".repeat(100),
        "crates/tools/src/bash/mod\ncrates/tools/src/bash/printed\n".repeat(100),
    ];
    for text in texts {
        assert!(matches!(redactor.redact_text(&text), Cow::Borrowed(_)), "{}", &text[..60]);
        for size in [1000, 4096] {
            assert_eq!(streamed(&redactor, text.as_bytes(), size), text);
        }
    }
    assert!(matches!(redactor.redact_bytes(&data), Cow::Borrowed(_)));
}

/// As our screens do it.
fn dropped(text: &str) -> String {
    let (mut out, mut chars) = (String::new(), text.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\u{1b}' => match chars.next() {
                Some('[') => {
                    chars.find(|c| ('@'..='~').contains(c));
                }
                Some(']' | 'P') => {
                    while let Some(c) = chars.next() {
                        if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                            break;
                        }
                    }
                }
                Some(_) | None => {}
            },
            c if c.is_control() || c == '\u{200b}' => {}
            c => out.push(c),
        }
    }
    out
}

#[test]
fn of_many_made_up_texts_none_shows_a_secret() {
    let redactor = redactor("pa55w0rd");
    let parts = [
        "pa55",
        "w0rd",
        "pa",
        "55w0",
        "rd",
        "p",
        "pa55w0rd",
        "\u{1b}",
        "[",
        "]",
        "m",
        "1",
        ";",
        "\u{7}",
        "\\",
        "\r",
        "\n",
        "\u{8}",
        "\u{200b}",
        "\u{9b}",
        "ä",
        "x",
        " ",
        "\u{1b}[1m",
        "\u{1b}]0;t\u{7}",
        "cGE1NXcw",
        "cmQ=",
        "abcdefghijklmnopqrst\n",
        "\0",
    ];
    let mut state = 18_172_645_463_325_257_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for _ in 0..20_000 {
        let length = 1 + next(12);
        let text: String = (0..length).map(|_| parts[next(parts.len())]).collect();
        let clean = redactor.redact_text(&text);
        for shown in
            [clean.to_string(), dropped(&clean), clean.lines().map(dropped).collect::<Vec<_>>().join("\n")]
        {
            assert!(!shown.contains("pa55w0rd"), "{text:?}: {clean:?}");
        }
        assert_eq!(redactor.redact_text(&clean), clean, "once is enough for {text:?}");
        let shown = streamed(&redactor, text.as_bytes(), 1 + next(5));
        assert!(!dropped(&shown).contains("pa55w0rd"), "{text:?}: {shown:?}");
    }
}
