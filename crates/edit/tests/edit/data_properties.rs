//! Random data files with comments and odd spacing, changed at random.

use lathe_edit::data::{DataDocument, DataError, DataLanguage};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A member of an object: the gaps before its key, around its colon and after its
/// value, which may hold comments, and the raw text of the value.
#[derive(Debug, Clone)]
struct Member {
    gaps: [String; 4],
    raw: String,
}

fn gap() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(String::new()),
        4 => Just(" ".to_owned()),
        3 => Just("\n  ".to_owned()),
        1 => Just("\t\n".to_owned()),
        1 => Just("\r\n    ".to_owned()),
        2 => Just(" /*#*/".to_owned()),
        2 => Just(" //#\n  ".to_owned()),
    ]
}

fn raw() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("1".to_owned()),
        Just("1.50e+3".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        Just("\"x, } // y\"".to_owned()),
        Just("[1 ,2,/*in*/ 3]".to_owned()),
        Just("{ \"in\" :null }".to_owned()),
        Just("{\n      \"a\": [\n]\n  }".to_owned()),
        Just("true".to_owned()),
    ]
}

fn member() -> impl Strategy<Value = Member> {
    ([gap(), gap(), gap(), gap()], raw()).prop_map(|(gaps, raw)| Member { gaps, raw })
}

/// The text of an object of the members, where each value begins, and what belongs
/// to each member. Comments are numbered, so that each can be found again.
fn written(members: &[Member], trailing: bool) -> (String, Vec<usize>, Vec<String>) {
    let mut text = String::from("// head\n{");
    let mut number = 0;
    let mut gap = |text: &mut String, gap: &str| {
        number += 1;
        text.push_str(&gap.replace('#', &format!("c{number}c")));
    };
    let (mut starts, mut own) = (Vec::new(), Vec::new());
    for (at, member) in members.iter().enumerate() {
        gap(&mut text, &member.gaps[0]);
        let begin = text.len();
        text.push_str(&format!("\"k{at}\""));
        gap(&mut text, &member.gaps[1]);
        text.push(':');
        gap(&mut text, &member.gaps[2]);
        starts.push(text.len());
        text.push_str(&member.raw);
        own.push(text[begin..].to_owned());
        gap(&mut text, &member.gaps[3]);
        if at + 1 < members.len() || trailing {
            text.push(',');
        }
    }
    text.push_str("\n}\n// tail\n");
    (text, starts, own)
}

fn is_subsequence(short: &str, long: &str) -> bool {
    let mut rest = long.bytes();
    short.bytes().all(|wanted| rest.any(|byte| byte == wanted))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn json_keeps_every_untouched_byte(
        members in proptest::collection::vec(member(), 1..6),
        trailing in any::<bool>(),
        pick in 0..6_usize,
        new in prop_oneof![Just(json!(null)), Just(json!("n")), Just(json!([])), Just(json!(7))],
    ) {
        let (text, starts, own) = written(&members, trailing);
        let at = pick % members.len();
        let original = DataDocument::parse(DataLanguage::Json, &text).unwrap();

        // A value set is the text before, the new value, the text after.
        let mut document = original.clone();
        prop_assert_eq!(document.set(&format!("$.k{at}"), &new), Ok(1));
        let end = starts[at] + members[at].raw.len();
        let wanted = format!("{}{new}{}", &text[..starts[at]], &text[end..]);
        prop_assert_eq!(document.text(), wanted);

        // A key added leaves every byte, in order, and changes no other value.
        let mut document = original.clone();
        prop_assert_eq!(document.add("$.fresh", &new), Ok(1));
        prop_assert!(is_subsequence(&text, document.text()), "{}\n{}", text, document.text());
        let mut wanted = original.value().clone();
        wanted["fresh"] = new.clone();
        prop_assert_eq!(document.value(), &wanted);
        // What was added can be taken out, and the values are as they were.
        prop_assert_eq!(document.remove("$.fresh"), Ok(1));
        prop_assert_eq!(document.value(), original.value());

        // A key removed only takes bytes, and none of another member's.
        let mut document = original.clone();
        prop_assert_eq!(document.remove(&format!("$.k{at}")), Ok(1));
        prop_assert!(is_subsequence(document.text(), &text), "{}\n{}", text, document.text());
        let mut from = 0;
        for (index, own) in own.iter().enumerate().filter(|(index, _)| *index != at) {
            let found = document.text()[from..].find(own.as_str());
            prop_assert!(found.is_some(), "k{}: {}\n{}", index, text, document.text());
            from += found.unwrap_or(0);
        }
        // Comments are removed only with the part that contains them or stands next to them.
        let line_end = |at: usize| text[at..].find('\n').map_or(text.len(), |ahead| at + ahead);
        let gone_from = starts[at] + members[at].raw.len() - own[at].len();
        // The comma may stand further down, after comments.
        let comma = end + members[at].gaps[3].replace('#', "c00c").len() + 1;
        let gone = gone_from..line_end(comma.min(text.len()));
        for (place, _) in text.match_indices("c*/").chain(text.match_indices("c\n")) {
            let name_start = text[..place].rfind('c').unwrap();
            let name = &text[name_start..=place];
            if !gone.contains(&name_start) {
                prop_assert!(document.text().contains(name), "{}: {}\n{}", name, text, document.text());
            }
        }
    }

    /// For any request to a TOML or YAML file, the result is right or a refusal.
    #[test]
    fn toml_and_yaml_change_only_what_is_asked(
        rows in proptest::collection::vec(("[a-c]", 0..6_usize, any::<bool>()), 1..6),
        pick in 0..8_usize,
        new in prop_oneof![Just(json!("n")), Just(json!([1, 2])), Just(json!({"k": "v"})), Just(json!(7))],
    ) {
        let yaml_values = ["1", "'q' # c", "[1, 2]", "{x: 1}", "\n  - 1\n  - 2", "\n  x: |\n    t\n  y: 2"];
        let toml_values = ["1", "'q' # c", "[1, 2]", "{ x = 1 }", "[\n  1, # one\n  2,\n]", "1979-05-27"];
        let (mut yaml, mut toml) = (String::new(), String::new());
        for (at, (name, value, blank)) in rows.iter().enumerate() {
            let blank = if *blank { "\n# about\n" } else { "" };
            yaml.push_str(&format!("{blank}{name}{at}: {}\n", yaml_values[*value]));
            toml.push_str(&format!("{blank}{name}{at} = {}\n", toml_values[*value]));
        }
        let (name, at) = (&rows[pick % rows.len()].0, pick % rows.len());
        for (kind, text) in [(DataLanguage::Yaml, &yaml), (DataLanguage::Toml, &toml)] {
            let original = DataDocument::parse(kind, text).unwrap();
            let key = format!("{name}{at}");
            let path = format!("$.{key}");
            let untouched = |document: &DataDocument| {
                let lines: Vec<&str> = document.text().lines().collect();
                text.lines().filter(|line| line.starts_with('#')).all(|line| lines.contains(&line))
            };
            let mut document = original.clone();
            prop_assert_eq!(document.set(&path, &new), Ok(1), "{}", text);
            let mut wanted = original.value().clone();
            wanted[&key] = new.clone();
            prop_assert_eq!(document.value(), &wanted);
            prop_assert!(untouched(&document));

            let mut document = original.clone();
            prop_assert_eq!(document.add("$.fresh", &new), Ok(1), "{}", text);
            prop_assert!(is_subsequence(text, document.text()));
            let mut wanted = original.value().clone();
            wanted["fresh"] = new.clone();
            prop_assert_eq!(document.value(), &wanted);

            let mut document = original.clone();
            prop_assert_eq!(document.remove(&path), Ok(1), "{}", text);
            prop_assert!(untouched(&document) && is_subsequence(document.text(), text) || rows.len() == 1);
            prop_assert_eq!(document.value().get(&key), None::<&Value>);
            prop_assert_eq!(document.value().as_object().unwrap().len(), rows.len() - 1);
        }
    }

    /// No text and no path makes it panic.
    #[test]
    fn nothing_panics(text in "[\u{e9}{}\\[\\]:,\"'a1 \\n\\t#&*!|>=.~/-]{0,40}", path in "[$.\\[\\]'a1*?@:, -]{1,10}") {
        for kind in [DataLanguage::Json, DataLanguage::Toml, DataLanguage::Yaml] {
            if let Ok(document) = DataDocument::parse(kind, &text) {
                for path in [path.as_str(), "$.a", "$[0]", "$", "$..*", "$.*"] {
                    let all: [Result<usize, DataError>; 3] = [
                        document.clone().set(path, &json!({"n": [1]})),
                        document.clone().add(path, &json!("x")),
                        document.clone().remove(path),
                    ];
                    let _ = (all, document.view(path), document.find(path));
                }
            }
        }
    }
}

#[test]
fn many_matches_in_a_large_file_do_not_take_long() {
    let items: Vec<Value> =
        (0..20_000).map(|at| json!({"id": at, "name": "some name", "drop": [at]})).collect();
    for text in [serde_json::to_string_pretty(&items).unwrap(), serde_json::to_string(&items).unwrap()] {
        let mut document = DataDocument::parse(DataLanguage::Json, &text).unwrap();
        assert_eq!(document.set("$[*].name", &json!("x")), Ok(20_000));
        assert_eq!(document.remove("$[*].drop"), Ok(20_000));
        assert_eq!(document.remove("$[1:]"), Ok(19_999));
        assert_eq!(document.value(), &json!([{"id": 0, "name": "x"}]));
    }
}
