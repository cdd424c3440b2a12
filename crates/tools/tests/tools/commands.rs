//! The tools as commands in the session's bash: composed, judged, written down, and the same with and without bash.

use std::sync::Arc;

use lathe_protocol::{BoxFuture, Mode, Raw, ToolChoice, ToolErrorKind, ToolKind, Toolset, Verdict};
use lathe_tools::{Domain, Layer, OutsideTool, ToolProvider, Toolbox};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, bash};

async fn run(bench: &mut Bench, line: &str) -> String {
    bench.call("Bash", json!({ "command": line })).await.text.replace(&bench.root.display().to_string(), "/W")
}

/// Lines that are one literal agent command, with what stands in the folder before.
const LITERAL: [&str; 34] = [
    "view a.txt",
    "view a.txt --offset 2",
    "view a.txt --offset 2 --limit 1",
    "view --limit=1 a.txt",
    "view a.txt b.txt",
    "view .",
    "view missing.txt",
    "view a.txt --offset 99",
    "view --ofset 1 a.txt",
    "view",
    "view -h",
    "view --help",
    "view a.txt --raw",
    "write new.txt 'some text'",
    "write deep/er/new.txt x",
    "write f 'a -h b'",
    "write a.txt ''",
    "write",
    "edit a.txt two 2",
    "edit a.txt two ''",
    "edit a.txt two '$& $1'",
    "edit a.txt o 0",
    "edit a.txt o 0 --replace-all",
    "edit a.txt nowhere x",
    "edit a.txt",
    "search t",
    "search -i T --glob='*.txt'",
    "search nothing-like-this",
    "search '('",
    "glob 'a*.txt'",
    "glob 'nope*'",
    "list",
    "json_edit view d.json '$.a'",
    "commands view",
];

fn filled() -> Bench {
    let bench = bash();
    bench.put("a.txt", "one\ntwo\nthree\n");
    bench.put("b.txt", "bee\n");
    bench.put("d.json", "{ \"a\": [1, 2] }\n");
    bench
}

fn tree(bench: &Bench) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut folders = vec![bench.root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&bench.root).unwrap().display().to_string();
                all.push((name, std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    all.sort();
    all
}

#[tokio::test]
async fn one_literal_command_is_the_same_with_and_without_bash() {
    for line in LITERAL {
        let mut direct = filled();
        let mut through = filled();
        // From here on command names may have another meaning, so lines go through bash.
        run(&mut through, "set +o posix").await;
        let call = |line: &str| json!({ "command": line });
        let ours = direct.call("Bash", call(line)).await;
        let theirs = through.call("Bash", call(line)).await;
        let plain = |bench: &Bench, text: &str| text.replace(&bench.root.display().to_string(), "/W");
        assert_eq!(plain(&direct, &ours.text), plain(&through, &theirs.text), "{line}");
        assert_eq!(ours.error.map(|error| error.kind), theirs.error.map(|error| error.kind), "{line}");
        assert_eq!(tree(&direct), tree(&through), "{line}");
        let code = |data: Option<Raw>| data.unwrap().to_value().unwrap()["exit_code"].clone();
        assert_eq!(code(ours.data), code(theirs.data), "{line}");
        let traced = |bench: &Bench| {
            let ran = bench.ledger.ran.lock().unwrap();
            ran.iter().map(|ran| (ran.argv.clone(), ran.exit, ran.changes.len())).collect::<Vec<_>>()
        };
        assert_eq!(traced(&direct), traced(&through), "{line}");
        // The next line finds its exit code, and the folder is the session's.
        assert_eq!(run(&mut direct, "echo $?; pwd").await, run(&mut through, "echo $?; pwd").await, "{line}");
        for bench in [direct, through] {
            bench.toolbox.services().close().await;
        }
    }
}

#[tokio::test]
async fn without_bash_no_bash_is_started() {
    let mut bench = filled();
    run(&mut bench, "view a.txt").await;
    let children = || {
        let path = format!("/proc/self/task/{}/children", std::process::id());
        std::fs::read_to_string(path).unwrap_or_default().split_whitespace().count()
    };
    assert_eq!(children(), 0);
    run(&mut bench, "view a.txt | cat").await;
    bench.toolbox.services().close().await;
}

#[tokio::test]
async fn a_function_of_the_same_name_is_what_bash_says_it_is() {
    let mut bench = filled();
    assert_eq!(run(&mut bench, "view() { echo mine; }; view a.txt").await, "mine");
    assert_eq!(run(&mut bench, "view a.txt").await, "mine");
    bench.toolbox.services().close().await;
}

#[tokio::test]
async fn edits_are_exact_and_the_ambiguous_is_refused_with_the_file_unchanged() {
    let mut bench = filled();
    run(&mut bench, "edit a.txt two '$&'").await;
    assert_eq!(bench.get("a.txt"), "one\n$&\nthree\n");
    run(&mut bench, "edit a.txt '$&\n' ''").await;
    assert_eq!(bench.get("a.txt"), "one\nthree\n");
    let refused = run(&mut bench, "edit a.txt e E; echo rc $?").await;
    assert!(refused.contains("String appears 3 times in file. Use replace_all=true"), "{refused}");
    assert!(refused.contains("rc 1"), "{refused}");
    assert_eq!(bench.get("a.txt"), "one\nthree\n");
    let blocks = "edit a.txt <<'EOF'\n<<<<<<< SEARCH\none\n=======\n1 \\n \"$x\" `y`\n>>>>>>> REPLACE\n<<<<<<< SEARCH\nthree\n=======\n3\n>>>>>>> REPLACE\nEOF";
    let told = run(&mut bench, blocks).await;
    assert_eq!(bench.get("a.txt"), "1 \\n \"$x\" `y`\n3\n", "{told}");
    bench.toolbox.services().close().await;
}

#[tokio::test]
async fn each_command_of_a_line_is_written_down_and_no_more_than_two_hundred() {
    let mut bench = filled();
    let finished = bench
        .call(
            "Bash",
            json!({ "command": "cd / && cd - >/dev/null; view a.txt | cat; edit a.txt two 2; view none" }),
        )
        .await;
    assert_eq!(finished.changes.len(), 1, "{finished:?}");
    let ran = std::mem::take(&mut *bench.ledger.ran.lock().unwrap());
    let rows: Vec<_> = ran.iter().map(|ran| (ran.argv.join(" "), ran.exit, ran.changes.len())).collect();
    assert_eq!(
        rows,
        [
            ("view a.txt".to_owned(), 0, 0),
            ("edit a.txt two 2".to_owned(), 0, 1),
            ("view none".to_owned(), 1, 0)
        ]
    );
    assert!(ran.iter().all(|ran| ran.cwd == bench.root.display().to_string()), "{ran:?}");
    assert!(ran.iter().all(|ran| ran.decision.verdict == Verdict::Allow), "{ran:?}");
    let many = json!({ "command": "for i in $(seq 215); do think $i >/dev/null; done" });
    let finished = bench.call("Bash", many).await;
    // A thought has a memory, which is never lost; what has none is only counted.
    assert!(bench.ledger.ran.lock().unwrap().len() >= 200);
    let many = json!({ "command": "for i in $(seq 215); do view a.txt >/dev/null; done" });
    bench.ledger.ran.lock().unwrap().clear();
    let counted = bench.call("Bash", many).await;
    assert_eq!(bench.ledger.ran.lock().unwrap().len(), 200, "{finished:?}");
    assert_eq!(counted.data.unwrap().to_value().unwrap()["commands_not_traced"], 15);
    bench.toolbox.services().close().await;
}

#[tokio::test]
async fn what_the_mode_denies_is_denied_inside_a_line_too() {
    let mut bench = filled();
    bench.mode = Mode::Plan;
    let told =
        run(&mut bench, "view b.txt; write b.txt x || echo fallback $?; edit a.txt two 2; echo rc $?").await;
    assert!(told.contains("bee"), "{told}");
    assert!(told.contains("fallback 126") && told.contains("rc 126"), "{told}");
    assert!(told.contains("write: Tool execution denied by policy."), "{told}");
    assert_eq!(bench.get("b.txt"), "bee\n");
    let told = run(&mut bench, "write b.txt x").await;
    assert!(told.contains("denied by policy") && bench.get("b.txt") == "bee\n", "{told}");
    bench.mode = Mode::FullAuto;
    // A name in there that shows keeps the whole line from running; one that does not, its command.
    let told = run(&mut bench, "write .git/config x; echo rc $?").await;
    assert!(told.contains("denied by policy") && !told.contains("rc"), "{told}");
    let told = run(&mut bench, "write $(printf .g; printf it)/config x; echo rc $?").await;
    assert!(told.contains("rc 126"), "{told}");
    bench.toolbox.services().close().await;
}

#[tokio::test]
async fn a_list_and_thoughts_are_kept_from_command_to_command() {
    let mut bench = filled();
    run(&mut bench, "todo <<'EOF'\n[x] read\n- [>] mend\n3. [ ] test\nEOF").await;
    let shown = run(&mut bench, "todo").await;
    assert_eq!(shown, "The list is now:\n1. [completed] read\n2. [in_progress] mend\n3. [pending] test");
    let wrong = run(&mut bench, "todo '[?] what'").await;
    assert!(wrong.contains("`[?]` is none of"), "{wrong}");
    bench.toolbox.services().close().await;
}

#[tokio::test]
async fn the_end_of_a_task_is_judged_when_it_is_said() {
    let mut bench = filled();
    *bench.ledger.unfinished.lock().unwrap() = Some("There is no patch.".to_owned());
    let told = run(&mut bench, "task_done all; echo rc $?").await;
    assert!(told.contains("task_done: There is no patch.") && told.contains("rc 1"), "{told}");
    assert!(bench.ledger.ran.lock().unwrap().iter().all(|ran| ran.summary.is_none()));
    *bench.ledger.unfinished.lock().unwrap() = None;
    run(&mut bench, "task_done 'all of it'").await;
    run(&mut bench, "\\done <<< quoted").await;
    let ran = bench.ledger.ran.lock().unwrap().clone();
    let said: Vec<_> = ran.iter().filter_map(|ran| ran.summary.clone()).collect();
    assert_eq!(said, ["all of it", "quoted"]);
    bench.toolbox.services().close().await;
}

#[tokio::test]
async fn mistakes_of_the_tool_call_are_corrected() {
    let mut bench = filled();
    let refused = bench.call("Bash", json!({ "command": "Bash(command=\"ls\")" })).await;
    assert_eq!(refused.error.unwrap().kind, ToolErrorKind::InvalidToolParams);
    assert!(refused.text.contains("Bash is the name of this tool"), "{}", refused.text);
    let unknown = bench.call("view", json!({ "file_path": "a" })).await;
    assert!(unknown.text.starts_with("Unknown tool: view\nCORRECTION:"), "{}", unknown.text);
    assert!(unknown.text.contains("Bash(command=\"view <args>\")"), "{}", unknown.text);
    let silent = run(&mut bench, "grep nothing a.txt").await;
    assert_eq!(silent, "Command failed with exit code 1");
    assert_eq!(run(&mut bench, "true").await, "(Command executed successfully with no output)");
    let missing = run(&mut bench, "cd . && viw a.txt").await;
    assert!(
        missing.starts_with("[stderr]\nbash: line ") && missing.contains("viw: command not found"),
        "{missing}"
    );
    assert!(missing.contains("Next step: run Bash(command=\"commands viw\")"), "{missing}");
    let usage = run(&mut bench, "cd . && view --nope").await;
    assert!(usage.contains("Next step: run Bash(command=\"view --help\")"), "{usage}");
    bench.toolbox.services().close().await;
}

/// Answers with what it was given.
struct Echo;

impl ToolProvider for Echo {
    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: Raw,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            match name {
                "fail" => Err("it failed".to_owned()),
                _ => Ok(format!("{name} {}", arguments.get())),
            }
        })
    }

    fn program(&self) -> String {
        "echo".to_owned()
    }
}

fn with_fields() -> Bench {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" },
            "days": { "type": "integer" },
            "units": { "type": "string", "enum": ["metric", "imperial"] },
            "tags": { "type": "array", "items": { "type": "string" } },
            "detailed": { "type": "boolean" },
        },
        "required": ["city"],
    });
    let tool = |layer, name: &str| OutsideTool {
        name: format!("weather_{name}"),
        original: name.to_owned(),
        description: "Tell the weather.\nMore about it.".to_owned(),
        schema: Raw::from_serialize(&schema).unwrap(),
        kind: ToolKind::Other,
        failure: ToolErrorKind::DiscoveredToolExecutionError,
        provider: Arc::new(Echo),
        domain: Domain { layer, name: "weather".to_owned(), about: "Skies.".to_owned() },
    };
    Bench::with(|services| {
        let outside =
            vec![tool(Layer::Field, "forecast"), tool(Layer::Field, "fail"), tool(Layer::Mcp, "radar")];
        Toolbox::for_session(Toolset::Bash, Arc::new(services), ToolChoice::default(), outside)
    })
}

#[tokio::test]
async fn field_commands_are_typed_by_their_schema() {
    let mut bench = with_fields();
    for (line, expected) in [
        ("field:weather:forecast Rome", r#"forecast {"city":"Rome"}"#),
        ("field:weather:forecast Rome --days 3", r#"forecast {"city":"Rome","days":3}"#),
        ("field:weather:forecast --city Rome --days -3", r#"forecast {"city":"Rome","days":-3}"#),
        ("field:weather:forecast --city=a=b --detailed", r#"forecast {"city":"a=b","detailed":true}"#),
        ("field:weather:forecast 1", r#"forecast {"city":"1"}"#),
        ("field:weather:forecast x --tags a --tags b", r#"forecast {"city":"x","tags":["a","b"]}"#),
        (
            "echo '{\"city\":\"Oslo\",\"days\":2}' | field:weather:forecast --json -",
            r#"forecast {"city":"Oslo","days":2}"#,
        ),
        ("field:weather:forecast Rome | tr a-z A-Z", r#"FORECAST {"CITY":"ROME"}"#),
        ("for c in A B; do field:weather:forecast $c; done | wc -l", "2"),
        ("bash -c 'field:weather:forecast Rome'", r#"forecast {"city":"Rome"}"#),
        ("echo Rome | xargs field:weather:forecast", r#"forecast {"city":"Rome"}"#),
        ("mcp:weather:radar Rome", r#"radar {"city":"Rome"}"#),
        ("field:weather:radar Rome", r#"radar {"city":"Rome"}"#),
        ("field:weather:forecast -h", "field:weather:forecast: Tell the weather."),
        ("field", "field:weather (3 tools): Skies."),
        ("commands forecast", "field:weather:forecast: Tell the weather."),
        ("commands 'mcp:.*'", "mcp:weather:radar: Tell the weather."),
    ] {
        assert_eq!(run(&mut bench, line).await, expected, "{line}");
    }
    for (line, expected, code) in [
        ("field:weather:forecast", "Missing required parameter: city", "rc 2"),
        ("field:weather:forecast R --days x", "--days: a whole number is wanted", "rc 2"),
        ("field:weather:forecast R --units k", "is none of metric, imperial", "rc 2"),
        ("field:weather:forcast R", "Did you mean field:weather:forecast?", "rc 127"),
        ("field:nope -h", "there is no domain nope", "rc 127"),
        ("field:weather:fail R", "it failed", "rc 1"),
        ("field:a:b:c", "Expected format: field:domain:tool", "rc 2"),
        ("field:weather:forecast R 3", "Unexpected argument: 3", "rc 2"),
    ] {
        let told = run(&mut bench, &format!("{line}; echo rc $?")).await;
        assert!(told.contains(expected) && told.contains(code), "{line}: {told}");
    }
    let whole = run(&mut bench, "field:weather:forecast --help").await;
    assert!(whole.contains("Usage: field:weather:forecast <city> [OPTIONS]"), "{whole}");
    assert!(whole.contains("city* (string)") && whole.contains("--days (integer)"), "{whole}");
    bench.toolbox.services().close().await;
}

/// A domain whose tool takes a list, prints much, or fails with streams of its own.
#[tokio::test]
async fn commands_take_lists_and_words_mean_one_thing() {
    let mut bench = filled();
    for (line, expected) in [
        ("printf 'True\\n' > t; search -i true t", "t:1:True"),
        ("list sub c; echo rc $?", "rc 2"),
        ("edit a.txt one 1 more; echo rc $?", "Unexpected argument: more"),
        ("view --json '{\"file_path\":5}'; echo rc $?", "rc 2"),
        ("view --json '{\"file_path\":[]}'; echo rc $?", "rc 2"),
        ("view --json '{\"file_path\":\"b.txt\"}'", "bee"),
        ("view --json '{\"file\":\"b.txt\"}' ; echo rc $?", "Did you mean --file_path?"),
        ("write f --json '{\"content\":5}'; echo rc $?", "content must be string, not 5"),
        ("commands 'fie*'", "field: List"),
        ("for i in $(seq 205); do write f $i; done > /dev/null 2>&1; write f x; cat f", "x"),
        ("write g a; echo b >> g; write g c && edit g c d && cat g", "d"),
        ("touch 'notes - draft.txt'; read 'notes - draft.txt' && echo fine", "fine"),
    ] {
        let told = run(&mut bench, line).await;
        assert!(told.contains(expected), "{line}: {told}");
    }
    assert!(!run(&mut bench, "commands 'fie*'").await.contains("view"));
    bench.toolbox.services().close().await;
}

#[tokio::test]
async fn what_lines_leave_running_is_listed_read_and_ended() {
    let mut bench = filled();
    run(&mut bench, "(echo begun; sleep 0.2; echo later; sleep 60) & echo started").await;
    let mut listed = String::new();
    for _ in 0..200 {
        listed = run(&mut bench, "jobs").await;
        if listed.contains("running") && run(&mut bench, "jobs read 1").await.contains("later") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(listed.starts_with("1  running"), "{listed}");
    assert!(run(&mut bench, "jobs read 1").await.contains("later"));
    assert_eq!(run(&mut bench, "jobs kill 1").await.lines().next(), Some("Job 1 was ended."));
    let listed = run(&mut bench, "jobs").await;
    assert!(listed.starts_with("1  ended"), "{listed}");
    assert!(run(&mut bench, "jobs kill 77; echo rc $?").await.contains("rc 1"));
    assert!(run(&mut bench, "jobs -p | wc -l").await.trim().parse::<u32>().is_ok());
    bench.toolbox.services().close().await;
}
