//! Calls before they run: names, arguments, effects and lanes.

use lathe_protocol::{CallFinished, Effects, Lane, ToolErrorKind};
use serde_json::json;

use crate::bench::{Bench, lathe, trae};

#[test]
fn an_unknown_tool_is_refused_with_the_names_nearest_to_it() {
    let finished = lathe().prepare("bsh", json!({})).map(|_| ()).unwrap_err();
    assert_eq!(
        *finished,
        CallFinished::failed(
            "bsh",
            ToolErrorKind::ToolNotRegistered,
            "Tool \"bsh\" not found. Did you mean one of: \"bash\", \"view\", \"glob\"?"
        )
    );
}

#[test]
fn trae_lists_all_tools_when_a_name_is_unknown() {
    let finished = trae().prepare("grep", json!({})).map(|_| ()).unwrap_err();
    assert_eq!(
        *finished,
        CallFinished::failed(
            "grep",
            ToolErrorKind::ToolNotRegistered,
            "Tool 'grep' not found. Available tools: ['bash', 'str_replace_based_edit_tool', 'json_edit_tool', 'sequentialthinking', 'ckg', 'task_done']"
        )
    );
}

#[test]
fn trae_compares_names_without_case_and_underscores_and_lathe_exactly() {
    for (name, tool) in
        [("Ba_sh", Some("bash")), ("taskdone", Some("done")), ("TASK_DONE", Some("done")), ("bas", None)]
    {
        let found = trae().prepare(name, json!({ "command": "ls" })).ok();
        assert_eq!(found.map(|prepared| prepared.tool), tool, "{name}");
    }
    assert!(lathe().prepare("Ba_sh", json!({ "command": "ls" })).is_err());
}

#[test]
fn arguments_that_do_not_fit_are_refused_with_the_place() {
    let wrong = |text: &str| format!("The arguments are wrong: {text}.");
    for (name, arguments, expected) in [
        (
            "bash",
            r#"{"command": "ls"#,
            "The arguments of bash are not valid JSON: EOF while parsing a string at line 1 column 15."
                .to_owned(),
        ),
        (
            "bash",
            r#"{"command": ls}"#,
            "The arguments of bash are not valid JSON: expected value at line 1 column 13.".to_owned(),
        ),
        ("bash", "[1]", "The arguments of bash must be a JSON object, not an array.".to_owned()),
        ("bash", "\"ls\"", "The arguments of bash must be a JSON object, not a string.".to_owned()),
        ("bash", "7", "The arguments of bash must be a JSON object, not a number.".to_owned()),
        ("bash", r#"{"command": 5}"#, wrong("command: invalid type: integer `5`, expected a string")),
        (
            "bash",
            r#"{"command": "ls", "timeout": "soon"}"#,
            wrong("timeout: invalid type: string \"soon\", expected a whole number, 0 or more"),
        ),
        ("bash", r#"{"comand": "ls"}"#, wrong("comand: there is no parameter `comand`")),
        ("view", r#"{"path": ["a"]}"#, wrong("path: invalid type: sequence, expected a string")),
        ("view", "{}", wrong("missing field `path`")),
        ("view", r#"{"path": "a", "limit": 0}"#, wrong("limit: it must be at least 1")),
        ("write", r#"{"path": "a", "content": {}}"#, wrong("content: invalid type: map, expected a string")),
        ("edit", r#"{"path": "a", "new_str": "b"}"#, wrong("give either old_str or insert_line")),
        (
            "edit",
            r#"{"path": "a", "new_str": "b", "old_str": "c", "insert_line": 1}"#,
            wrong("give either old_str or insert_line"),
        ),
        ("think", r#"{"thought": null}"#, wrong("thought: invalid type: null, expected a string")),
    ] {
        let finished = lathe().prepare_text(name, arguments).map(|_| ()).unwrap_err();
        assert_eq!(
            *finished,
            CallFinished::failed(name, ToolErrorKind::InvalidToolParams, expected),
            "{arguments}"
        );
    }
}

#[test]
fn no_arguments_and_null_are_an_empty_object() {
    for arguments in ["", "null", "{}"] {
        assert!(lathe().prepare_text("task_done", arguments).is_ok(), "{arguments}");
        assert!(trae().prepare_text("task_done", arguments).is_ok(), "{arguments}");
    }
}

#[test]
fn an_optional_argument_may_be_null() {
    let arguments = json!({ "path": "a", "offset": null, "limit": null });
    assert!(lathe().prepare("view", arguments).is_ok());
    let arguments = json!({ "command": "ls", "restart": null });
    assert!(trae().prepare("bash", arguments).is_ok());
}

#[test]
fn each_call_says_what_it_would_do_and_beside_what_it_may_run() {
    let opaque = || Effects { opaque: true, ..Effects::default() };
    let reading = |bench: &Bench| Effects::reading(bench.path("a"));
    let editing =
        |bench: &Bench| Effects { reads: vec![bench.path("a")], ..Effects::writing(bench.path("a")) };
    let bench = lathe();
    for (name, arguments, tool, about, effects, lane) in [
        ("bash", json!({ "command": "ls\npwd" }), "bash", "ls\npwd", opaque(), Lane::Alone),
        ("bash", json!({ "restart": true }), "bash", "restart the shell", opaque(), Lane::Alone),
        ("view", json!({ "path": "./a" }), "view", "view a", reading(&bench), Lane::Reader),
        (
            "view",
            json!({ "path": "a", "offset": 3, "limit": 2 }),
            "view",
            "view a lines 3-4",
            reading(&bench),
            Lane::Reader,
        ),
        (
            "view",
            json!({ "path": "a", "offset": 3 }),
            "view",
            "view a from line 3",
            reading(&bench),
            Lane::Reader,
        ),
        (
            "edit",
            json!({ "path": "a", "old_str": "x", "new_str": "y" }),
            "edit",
            "edit a",
            editing(&bench),
            Lane::Alone,
        ),
        (
            "edit",
            json!({ "path": "a", "insert_line": 2, "new_str": "y" }),
            "edit",
            "insert into a after line 2",
            editing(&bench),
            Lane::Alone,
        ),
        (
            "write",
            json!({ "path": "/etc/x", "content": "y" }),
            "write",
            "write /etc/x",
            Effects::writing("/etc/x"),
            Lane::Alone,
        ),
        ("think", json!({ "thought": "hm" }), "think", "hm", Effects::default(), Lane::Alone),
        ("task_done", json!({ "summary": "s" }), "done", "task done", Effects::default(), Lane::Last),
    ] {
        let prepared = bench.prepare(name, arguments.clone()).unwrap_or_else(|f| panic!("{}", f.text));
        assert_eq!(
            (prepared.tool, prepared.about.as_str(), &prepared.effects, prepared.lane),
            (tool, about, &effects, lane),
            "{name} {arguments}"
        );
    }
}

#[test]
fn traes_edit_tool_has_the_effects_of_its_command() {
    let bench = trae();
    let path = bench.path("a");
    let tool = "str_replace_based_edit_tool";
    for (arguments, id, writes, lane) in [
        (json!({ "command": "view", "path": path }), "view", false, Lane::Reader),
        (json!({ "command": "create", "path": path, "file_text": "" }), "write", true, Lane::Alone),
        (json!({ "command": "str_replace", "path": path, "old_str": "a" }), "edit", true, Lane::Alone),
        (
            json!({ "command": "insert", "path": path, "insert_line": 0, "new_str": "a" }),
            "edit",
            true,
            Lane::Alone,
        ),
        (json!({ "command": "undo", "path": path }), "check", false, Lane::Reader),
    ] {
        let prepared = bench.prepare(tool, arguments).unwrap_or_else(|f| panic!("{}", f.text));
        let written: &[String] = if writes { std::slice::from_ref(&path) } else { &[] };
        assert_eq!((prepared.tool, prepared.effects.writes.as_slice(), prepared.lane), (id, written, lane));
    }
}
