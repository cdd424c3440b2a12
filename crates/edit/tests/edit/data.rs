//! Data files changed by path.

use lathe_edit::data::{DataDocument, DataError, DataLanguage, Layout};
use lathe_edit::{TextContent, rewrite};
use serde_json::{Value, json};

enum Do {
    Set(&'static str, Value),
    Add(&'static str, Value),
    Remove(&'static str),
}
use Do::{Add, Remove, Set};

fn run(kind: DataLanguage, text: &str, what: &Do) -> Result<(usize, String), DataError> {
    let mut document = DataDocument::parse(kind, text)?;
    let count = match what {
        Set(path, value) => document.set(path, value)?,
        Add(path, value) => document.add(path, value)?,
        Remove(path) => document.remove(path)?,
    };
    Ok((count, document.text().to_owned()))
}

/// A row: description, text, change, new text.
type Row = (&'static str, &'static str, Do, &'static str);

fn check(kind: DataLanguage, rows: &[Row]) {
    for (name, text, what, wanted) in rows {
        let (_, got) = run(kind, text, what).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(got, *wanted, "{name}");
    }
}

#[test]
fn json_keeps_every_other_byte() {
    #[rustfmt::skip]
    let rows: &[Row] = &[
        ("a number", "{\"a\": 1, \"b\": 2}", Set("$.a", json!(3)), "{\"a\": 3, \"b\": 2}"),
        ("odd spacing stays", "{ \"a\" :1 ,\n\t\"b\":[ 1,2 ] }\n", Set("$.b[1]", json!("x")), "{ \"a\" :1 ,\n\t\"b\":[ 1,\"x\" ] }\n"),
        ("comments stay", "// top\n{\n  \"a\": 1, // one\n  /* two */ \"b\": 2\n}\n", Set("$.b", json!(null)), "// top\n{\n  \"a\": 1, // one\n  /* two */ \"b\": null\n}\n"),
        ("null is a value", "{\"a\": 1}", Set("$.a", Value::Null), "{\"a\": null}"),
        ("big numbers elsewhere stay", "{\"a\": 123456789012345678901234567890, \"b\": 1.10e+2, \"c\": 0}", Set("$.c", json!(1)), "{\"a\": 123456789012345678901234567890, \"b\": 1.10e+2, \"c\": 1}"),
        ("several places", "{\"a\": [{\"x\": 1}, {\"x\": 2}]}", Set("$.a[*].x", json!(0)), "{\"a\": [{\"x\": 0}, {\"x\": 0}]}"),
        ("descendants", "{\"x\": {\"x\": 1}}", Set("$..x", json!(0)), "{\"x\": 0}"),
        ("by filter", "[{\"n\": \"a\", \"v\": 1}, {\"n\": \"b\", \"v\": 2}]", Set("$[?@.n == 'b'].v", json!(9)), "[{\"n\": \"a\", \"v\": 1}, {\"n\": \"b\", \"v\": 9}]"),
        ("the root", "// c\n[1]\n", Set("$", json!({"a": 1})), "// c\n{\n  \"a\": 1\n}\n"),
        ("an object into lines", "{\n    \"a\": 1\n}\n", Set("$.a", json!({"b": [1, {}]})), "{\n    \"a\": {\n        \"b\": [\n            1,\n            {}\n        ]\n    }\n}\n"),
        ("an object into one line", "{\"a\": 1}", Set("$.a", json!({"b": [1, 2]})), "{\"a\": {\"b\": [1, 2]}}"),
        ("CRLF", "{\r\n  \"a\": 1\r\n}\r\n", Add("$.b", json!([1])), "{\r\n  \"a\": 1,\r\n  \"b\": [\r\n    1\r\n  ]\r\n}\r\n"),
        ("escaped keys", "{\"a\\u0062\": 1}", Set("$.ab", json!(2)), "{\"a\\u0062\": 2}"),
        ("add to lines", "{\n  \"a\": 1\n}", Add("$.b", json!(2)), "{\n  \"a\": 1,\n  \"b\": 2\n}"),
        ("add after a comment", "{\n  \"a\": 1 // one\n}", Add("$.b", json!(2)), "{\n  \"a\": 1, // one\n  \"b\": 2\n}"),
        ("add after a trailing comma", "{\n  \"a\": 1, // one\n}", Add("$.b", json!(2)), "{\n  \"a\": 1, // one\n  \"b\": 2,\n}"),
        ("add on one line", "{\"a\":1,\"b\":2}", Add("$.c", json!(3)), "{\"a\":1,\"b\":2,\"c\":3}"),
        ("add with blanks around", "{ \"a\" : 1 }", Add("$.c", json!(3)), "{ \"a\" : 1, \"c\" : 3 }"),
        ("add to an empty object", "{}", Add("$.a", json!(1)), "{\"a\": 1}"),
        ("add to an empty object in lines", "{\n  \"o\": {}\n}\n", Add("$.o.a", json!(1)), "{\n  \"o\": {\n    \"a\": 1\n  }\n}\n"),
        ("add to an open empty object", "{\n}\n", Add("$.a", json!(1)), "{\n  \"a\": 1\n}\n"),
        ("add overwrites a key", "{\"a\": 1 /* c */}", Add("$.a", json!(2)), "{\"a\": 2 /* c */}"),
        ("insert at an index", "[1, 3]", Add("$[1]", json!(2)), "[1, 2, 3]"),
        ("insert first in lines", "[\n  2\n]", Add("$[0]", json!(1)), "[\n  1,\n  2\n]"),
        ("past the end appends", "[1]", Add("$[7]", json!(2)), "[1, 2]"),
        ("negative index", "[1, 3]", Add("$[-1]", json!(2)), "[1, 2, 3]"),
        ("add to every parent", "{\"a\": {}, \"b\": {\"x\": 1}}", Add("$.*.k", json!(0)), "{\"a\": {\"k\": 0}, \"b\": {\"x\": 1, \"k\": 0}}"),
        ("add null", "[]", Add("$[0]", Value::Null), "[null]"),
        ("remove first", "{\"a\": 1, \"b\": 2}", Remove("$.a"), "{\"b\": 2}"),
        ("remove last", "{\"a\": 1, \"b\": 2}", Remove("$.b"), "{\"a\": 1}"),
        ("remove the only one", "{ \"a\": 1 }", Remove("$.a"), "{  }"),
        ("remove a line", "{\n  \"a\": 1,\n  \"b\": 2\n}\n", Remove("$.a"), "{\n  \"b\": 2\n}\n"),
        ("remove the last line", "{\n  \"a\": 1,\n  \"b\": 2\n}\n", Remove("$.b"), "{\n  \"a\": 1\n}\n"),
        ("remove the last line, comments", "{\n  \"a\": 1, // one\n  // about b\n  \"b\": 2 // two\n}\n", Remove("$.b"), "{\n  \"a\": 1 // one\n  // about b\n}\n"),
        ("remove with a trailing comma", "[\n  1,\n  2,\n]\n", Remove("$[1]"), "[\n  1,\n]\n"),
        ("remove several", "[1, 2, 3, 4]", Remove("$[1,3]"), "[1, 3]"),
        ("remove a tail", "[1, 2, 3, 4]", Remove("$[2:]"), "[1, 2]"),
        ("remove all", "[1, 2, 3]", Remove("$[*]"), "[]"),
        ("remove all in lines", "[\n  1,\n  2\n]", Remove("$[*]"), "[\n]"),
        ("remove inside and outside", "{\"x\": {\"x\": 1}, \"y\": 0}", Remove("$..x"), "{\"y\": 0}"),
    ];
    check(DataLanguage::Json, rows);
}

#[test]
fn toml_keeps_every_other_byte() {
    #[rustfmt::skip]
    let rows: &[Row] = &[
        ("a value", "# c\na = 1 # one\nb = 2\n", Set("$.a", json!("x")), "# c\na = \"x\" # one\nb = 2\n"),
        ("CRLF stays", "a = 1\r\n[t]\r\nb = 2\r\n", Set("$.t.b", json!(3)), "a = 1\r\n[t]\r\nb = 3\r\n"),
        ("quotes stay", "a = 'x'\n", Set("$.a", json!("y\\z")), "a = 'y\\z'\n"),
        ("dotted", "a.b = 1\na.c=2\n", Set("$.a.c", json!(3)), "a.b = 1\na.c=3\n"),
        ("inline table", "k = { a = 1, b=2 }\n", Set("$.k.b", json!(true)), "k = { a = 1, b=true }\n"),
        ("array element", "k = [ 1, 2 ] # c\n", Set("$.k[0]", json!(5)), "k = [ 5, 2 ] # c\n"),
        ("table in an array", "[[p]]\nn = 1\n[[p]]\nn = 2\n", Set("$.p[1].n", json!(3)), "[[p]]\nn = 1\n[[p]]\nn = 3\n"),
        ("add a key", "[a]\nx = 1 # c\n\n[b]\n", Add("$.a.y", json!(2)), "[a]\nx = 1 # c\ny = 2\n\n[b]\n"),
        ("add under an empty header", "[a]\n\n[b]\n", Add("$.a.y", json!({"k": "v"})), "[a]\ny = { k = \"v\" }\n\n[b]\n"),
        ("add the first root key", "# top\n\n# about a\n[a]\nx = 1\n", Add("$.r", json!(1)), "# top\n\nr = 1\n\n# about a\n[a]\nx = 1\n"),
        ("add to an empty file", "", Add("$.a", json!(1)), "a = 1\n"),
        ("add after dotted keys", "a.b = 1\n[t]\n", Add("$.z", json!(1)), "a.b = 1\nz = 1\n[t]\n"),
        ("add to an inline table", "k = { a = 1 }\n", Add("$.k.b", json!(2)), "k = { a = 1, b = 2 }\n"),
        ("add to an array in lines", "k = [\n  1, # one\n  2,\n]\n", Add("$.k[9]", json!(3)), "k = [\n  1, # one\n  2,\n  3,\n]\n"),
        ("odd key", "[a]\n", Add("$.a['x y']", json!(1)), "[a]\n\"x y\" = 1\n"),
        ("append a table", "[[p]]\nn = 1\n\n# about q\n[q]\n", Add("$.p[9]", json!({"n": 2, "m": [1]})), "[[p]]\nn = 1\n\n[[p]]\nn = 2\nm = [1]\n\n# about q\n[q]\n"),
        ("append a table at the end", "[[p]]\nn = 1\n[p.sub]\nx = 1\n", Add("$.p[1]", json!({"n": 2})), "[[p]]\nn = 1\n[p.sub]\nx = 1\n\n[[p]]\nn = 2\n"),
        ("insert a table", "# first\n[[p]]\nn = 1\n", Add("$.p[0]", json!({"n": 0})), "[[p]]\nn = 0\n\n# first\n[[p]]\nn = 1\n"),
        ("remove a key", "a = 1\nb = 2 # two\nc = 3\n", Remove("$.b"), "a = 1\nc = 3\n"),
        ("remove a dotted key", "a.b = 1\na.c = 2\n", Remove("$.a.b"), "a.c = 2\n"),
        ("remove a table", "[a]\nx = 1\n\n# b\n[b]\ny = 2\n[a.c]\nz = 3\n", Remove("$.a"), "# b\n[b]\ny = 2\n"),
        ("remove from an array of tables", "[[p]]\nn = 1\n\n[[p]]\nn = 2\n", Remove("$.p[0]"), "[[p]]\nn = 2\n"),
        ("remove from an array", "k = [1, 2, 3]\n", Remove("$.k[1]"), "k = [1, 3]\n"),
        ("remove from an inline table", "k = { a = 1, b = 2 }\n", Remove("$.k.b"), "k = { a = 1 }\n"),
    ];
    check(DataLanguage::Toml, rows);
}

#[test]
fn yaml_keeps_every_other_byte() {
    #[rustfmt::skip]
    let rows: &[Row] = &[
        ("a scalar", "a: 1   # one\nb: x\n", Set("$.a", json!(2)), "a: 2   # one\nb: x\n"),
        ("quotes stay", "a: 'x'\nb: \"y\"\n", Set("$.a", json!("it's")), "a: 'it''s'\nb: \"y\"\n"),
        ("plain where it can be", "a: x\n", Set("$.a", json!("hello world")), "a: hello world\n"),
        ("quoted where it must be", "a: x\n", Set("$.a", json!("yes")), "a: \"yes\"\n"),
        ("number as text", "a: x\n", Set("$.a", json!("12")), "a: \"12\"\n"),
        ("colon in text", "a: x\n", Set("$.a", json!("k: v # c")), "a: \"k: v # c\"\n"),
        ("an absent value", "a:\nb: 1\n", Set("$.a", json!(1)), "a: 1\nb: 1\n"),
        ("an absent item", "-\n- 1\n", Set("$[0]", json!(0)), "- 0\n- 1\n"),
        ("flow", "c: {a: 1, b: [1, 2]}\n", Set("$.c.b[1]", json!("z")), "c: {a: 1, b: [1, z]}\n"),
        ("a list item", "l:\n  - x\n  - y\n", Set("$.l[1]", json!(true)), "l:\n  - x\n  - true\n"),
        ("a list under its key", "l:\n- x\n- y\nz: 1\n", Set("$.l[0]", json!("w")), "l:\n- w\n- y\nz: 1\n"),
        ("scalar to block", "a: 1\nb: 2\n", Set("$.a", json!({"x": [1, {"k": 2}]})), "a:\n  x:\n    - 1\n    - k: 2\nb: 2\n"),
        ("block to scalar", "a:\n  x: 1\n  y: 2\nb: 2\n", Set("$.a", json!(0)), "a: 0\nb: 2\n"),
        ("block to scalar, comment", "a: # note\n  x: 1\nb: 2\n", Set("$.a", json!(0)), "a: # note\n  0\nb: 2\n"),
        ("literal", "a: |\n  text\n  more\nb: 1\n", Set("$.a", json!("x")), "a: \"x\"\nb: 1\n"),
        ("literal to literal", "a: |\n    text\n    more\n\nb: 1\n", Set("$.a", json!("x\n\n  y\n")), "a: |\n    x\n\n      y\n\nb: 1\n"),
        ("literal in a list", "- |\n  a\n- 1\n", Set("$[0]", json!("x\ny")), "- |-\n  x\n  y\n- 1\n"),
        ("several lines in quotes", "a: \"x\"\n", Set("$.a", json!("x\ny\n")), "a: \"x\\ny\\n\"\n"),
        ("several lines added", "a: 1\n", Add("$.b", json!("x\ny\n")), "a: 1\nb: |\n  x\n  y\n"),
        ("unused anchor", "a: &n 1\nb: 2\n", Set("$.a", json!(3)), "a: &n 3\nb: 2\n"),
        ("CRLF", "a: 1\r\nb: 2\r\n", Set("$.a", json!("q")), "a: q\r\nb: 2\r\n"),
        ("not ASCII", "\u{e9}: \"\u{fc}\"\nx: y\n", Set("$.x", json!("\u{4e2d}")), "\u{e9}: \"\u{fc}\"\nx: \u{4e2d}\n"),
        ("document marker", "---\na: 1\n...\n", Set("$.a", json!(2)), "---\na: 2\n...\n"),
        ("add a key", "a: 1 # c\nb:\n  c: 2\n", Add("$.d", json!(3)), "a: 1 # c\nb:\n  c: 2\nd: 3\n"),
        ("add a nested key", "b:\n    c: 2 # c\nx: 1\n", Add("$.b.d", json!({"k": 1})), "b:\n    c: 2 # c\n    d:\n        k: 1\nx: 1\n"),
        ("add to a map in a list", "- a: 1\n- a: 2\n", Add("$[0].b", json!(3)), "- a: 1\n  b: 3\n- a: 2\n"),
        ("append", "l:\n  - 1\n  - 2\nm: 0\n", Add("$.l[9]", json!("x")), "l:\n  - 1\n  - 2\n  - x\nm: 0\n"),
        ("insert", "l:\n  - 1\n  - 2\n", Add("$.l[1]", json!({"a": 1, "b": 2})), "l:\n  - 1\n  - a: 1\n    b: 2\n  - 2\n"),
        ("insert into a nested list", "- - 1\n  - 2\n", Add("$[0][0]", json!(0)), "- - 0\n  - 1\n  - 2\n"),
        ("add to flow", "a: {x: 1}\nb: []\n", Add("$.a.k", json!(2)), "a: {x: 1, k: 2}\nb: []\n"),
        ("add to an empty list", "b: []\n", Add("$.b[0]", json!(2)), "b: [2]\n"),
        ("no final newline", "a: 1", Add("$.b", json!(2)), "a: 1\nb: 2"),
        ("remove a key", "a: 1\nb: 2 # two\nc: 3\n", Remove("$.b"), "a: 1\nc: 3\n"),
        ("remove a block", "a:\n  x: 1\n  y:\n    - 1\nb: 2\n", Remove("$.a.y"), "a:\n  x: 1\nb: 2\n"),
        ("remove the first of a map in a list", "- a: 1\n  b: 2\n- c: 3\n", Remove("$[0].a"), "- b: 2\n- c: 3\n"),
        ("remove an item", "- 1\n- 2\n- 3\n", Remove("$[1]"), "- 1\n- 3\n"),
        ("remove the last, no newline", "a: 1\nb: 2", Remove("$.b"), "a: 1"),
        ("remove the only one", "a:\n  - 1\nb: 2\n", Remove("$.a[0]"), "a: []\nb: 2\n"),
        ("remove from flow", "a: [1, 2, 3]\n", Remove("$.a[0,2]"), "a: [2]\n"),
    ];
    check(DataLanguage::Yaml, rows);
}

#[test]
fn what_cannot_be_done_is_refused_with_a_reason() {
    let unsupported = |reason: &str| DataError::Unsupported { reason: reason.to_owned() };
    #[rustfmt::skip]
    let rows: &[(DataLanguage, &str, Do, DataError)] = &[
        (DataLanguage::Json, "", Set("$", json!(1)), DataError::Empty),
        (DataLanguage::Json, " \n", Set("$", json!(1)), DataError::Empty),
        (DataLanguage::Json, "{\"a\": 1}", Set("$.b", json!(1)), DataError::NoMatches { path: "$.b".to_owned() }),
        (DataLanguage::Json, "{\"a\": 1}", Remove("$.b"), DataError::NoMatches { path: "$.b".to_owned() }),
        (DataLanguage::Json, "{\"a\": 1}", Remove("$"), DataError::Root),
        (DataLanguage::Json, "{\"a\": 1}", Add("$", json!(1)), DataError::Root),
        (DataLanguage::Json, "{\"a\": 1}", Add("$.b.c", json!(1)), DataError::NoParent { parent: "$.b".to_owned() }),
        (DataLanguage::Json, "{\"a\": 1}", Add("$.a.c", json!(1)), DataError::NotAnObject { parent: "$.a".to_owned() }),
        (DataLanguage::Json, "[1]", Add("$.c", json!(1)), DataError::NotAnObject { parent: "$".to_owned() }),
        (DataLanguage::Json, "{\"a\": 1}", Add("$[0]", json!(1)), DataError::NotAnArray { parent: "$".to_owned() }),
        (DataLanguage::Json, "{\"a\": 1}", Add("$.*", json!(1)), DataError::Target { segment: ".*".to_owned() }),
        (DataLanguage::Json, "{\"a\": 1, \"a\": 2}", Set("$.a", json!(1)), unsupported("the key \"a\" stands there twice")),
        (DataLanguage::Toml, "a = 1\n", Set("$.a", Value::Null), unsupported("TOML has no null")),
        (DataLanguage::Toml, "[a]\nb = 1\n", Set("$.a", json!(1)), unsupported("a table with lines of its own is set key by key")),
        (DataLanguage::Toml, "[a.b]\nc = 1\n", Add("$.a.x", json!(1)), unsupported("the table has no header of its own to put a key under")),
        (DataLanguage::Yaml, "a: &n 1\nb: *n\n", Set("$.a", json!(2)), unsupported("other values would change with it")),
        (DataLanguage::Yaml, "a: &n 1\nb: *n\n", Set("$.b", json!(2)), unsupported("it is an alias of another value")),
        (DataLanguage::Yaml, "a: &n {x: 1}\nb: *n\n", Add("$.b.y", json!(2)), unsupported("it is an alias of another value")),
        (DataLanguage::Yaml, "a: !mine 1\n", Set("$.a", json!(2)), unsupported("it has a tag of its own")),
        (DataLanguage::Yaml, "a: 1\n---\nb: 2\n", Set("$.a", json!(2)), unsupported("the file holds several documents")),
    ];
    for (kind, text, what, wanted) in rows {
        assert_eq!(run(*kind, text, what).as_ref(), Err(wanted), "{text:?}");
    }
    for (kind, text) in [
        (DataLanguage::Json, "{\"a\": }"),
        (DataLanguage::Json, "{a: 1}"),
        (DataLanguage::Toml, "a = \n"),
        (DataLanguage::Yaml, "a: [1\n"),
    ] {
        assert!(
            matches!(DataDocument::parse(kind, text), Err(DataError::Invalid { line: 1.., .. })),
            "{text:?}"
        );
    }
    let document = DataDocument::parse(DataLanguage::Json, "{}").unwrap();
    assert!(matches!(document.view("$["), Err(DataError::Path { .. })));
    assert!(matches!(document.view("a"), Err(DataError::Path { .. })));
}

#[test]
fn matches_are_shown_with_the_text_they_stand_for() {
    let text = "{\"a\": 123456789012345678901234567890, \"b\": [1.50, /* c */ true]}";
    let document = DataDocument::parse(DataLanguage::Json, text).unwrap();
    assert_eq!(document.view("$.b[*]"), Ok(vec![json!(1.5), json!(true)]));
    assert_eq!(document.view("$.x"), Ok(vec![]));
    let texts: Vec<String> = document.find("$.*").unwrap().into_iter().map(|found| found.text).collect();
    assert_eq!(texts, ["123456789012345678901234567890", "[1.50, /* c */ true]"]);
    let yaml =
        DataDocument::parse(DataLanguage::Yaml, "a: &x {k: 0x1F}\nb: *x\nc: 1e3\nd: .inf\ne: |\n  t\nf: ~\n")
            .unwrap();
    let value = json!({"a": {"k": 31}, "b": {"k": 31}, "c": 1000.0, "d": ".inf", "e": "t\n", "f": null});
    assert_eq!(*yaml.value(), value);
    let toml =
        DataDocument::parse(DataLanguage::Toml, "d = 1979-05-27\n[a]\nb = [1, 2.0]\n[[c]]\nx = true\n")
            .unwrap();
    assert_eq!(*toml.value(), json!({"d": "1979-05-27", "a": {"b": [1, 2.0]}, "c": [{"x": true}]}));
}

#[test]
fn a_compact_layout_writes_new_values_on_one_line() {
    let mut document =
        DataDocument::parse(DataLanguage::Json, "{\n  \"a\": 1\n}\n").unwrap().with_layout(Layout::Compact);
    document.set("$.a", &json!({"b": [1, 2]})).unwrap();
    assert_eq!(document.text(), "{\n  \"a\": {\"b\":[1,2]}\n}\n");
}

#[test]
fn a_chain_of_aliases_is_bounded() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for at in 1..12 {
        let before = at - 1;
        text.push_str(&format!("a{at}: &a{at} [{}]\n", vec![format!("*a{before}"); 10].join(", ")));
    }
    assert!(matches!(DataDocument::parse(DataLanguage::Yaml, &text), Err(DataError::Invalid { .. })));
    let deep = "[".repeat(100_000);
    for kind in [DataLanguage::Json, DataLanguage::Toml, DataLanguage::Yaml] {
        let deep = if kind == DataLanguage::Toml { format!("a = {deep}") } else { deep.clone() };
        assert!(DataDocument::parse(kind, &deep).is_err());
    }
}

#[test]
fn a_changed_document_is_written_back_in_its_encoding() {
    let content = crate::encodings::bytes("utf-16le+bom", "{\r\n  \"a\": \"\u{e9}\"\r\n}\r\n");
    let text = TextContent::decode(&content).unwrap();
    let mut document = DataDocument::parse(DataLanguage::Json, text.as_str().unwrap()).unwrap();
    document.add("$.b", &json!(1)).unwrap();
    let wanted = "{\r\n  \"a\": \"\u{e9}\",\r\n  \"b\": 1\r\n}\r\n";
    let edited = rewrite(&content, document.text()).unwrap();
    assert_eq!(edited.content, crate::encodings::bytes("utf-16le+bom", wanted));
}
