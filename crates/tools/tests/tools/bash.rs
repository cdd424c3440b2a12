//! The shell: state, endings and words, in both toolsets.

use lathe_protocol::{CallFinished, OutputStream, ToolError, ToolErrorKind};
use serde_json::{Value, json};

use crate::bench::{lathe, trae};

fn line(command: &str) -> Value {
    json!({ "command": command })
}

/// Without what bash itself says about a killed child, which depends on who is reaped first.
fn quiet(text: &str) -> String {
    text.replace("\n<stderr>\nTerminated\n</stderr>", "")
        .replace("Error: Terminated\n", "Error: ")
        .replace("bad\nTerminated\n", "bad\n")
}

#[tokio::test]
async fn folder_variables_and_functions_stay_in_both_toolsets() {
    for mut bench in [lathe(), trae()] {
        bench.put("sub/file", "");
        bench.call("bash", line("cd sub; export A=1; B=2; greet() { echo \"hello $1\"; }")).await;
        let text = bench.told("bash", line("pwd; echo $A$B; greet you")).await;
        assert!(text.contains("/W/sub\n12\nhello you"), "{text}");
    }
}

#[tokio::test]
async fn a_result_is_data_words_and_nothing_else() {
    let mut bench = lathe();
    let mut finished = bench.call("bash", line("echo out; echo err >&2; (exit 3)")).await;
    let data = finished.data.take().map(|data| bench.short(data.get()));
    assert_eq!(
        data.as_deref(),
        Some(
            r#"{"exit_code":3,"ended":"exited","cwd":"/W","stdout_bytes":4,"stderr_bytes":4,"failure_category":"execution_error","base_command":"echo"}"#
        )
    );
    assert_eq!(
        finished,
        CallFinished {
            name: "bash".to_owned(),
            text: "exit code 3\n<stdout>\nout\n</stdout>\n<stderr>\nerr\n</stderr>".to_owned(),
            error: None,
            data: None,
            truncated: None,
            changes: Vec::new(),
            not_undoable: Vec::new(),
            others: Vec::new(),
            broken: Vec::new(),
            seen: Vec::new(),
            attachments: Vec::new(),
            memory: None,
            review: None,
            took_ms: 0,
        }
    );
}

#[tokio::test]
async fn lathe_tells_code_output_and_where_it_is_now() {
    let mut bench = lathe();
    bench.put("sub/file", "");
    for (command, expected) in [
        ("true", "exit code 0"),
        ("false", "exit code 1"),
        ("echo a; echo", "exit code 0\n<stdout>\na\n\n</stdout>"),
        ("printf a", "exit code 0\n<stdout>\na\n</stdout>"),
        ("echo a >&2", "exit code 0\n<stderr>\na\n</stderr>"),
        ("cd sub", "exit code 0; now in /W/sub"),
        ("cat", "exit code 0"),
        (
            "exit 4",
            "exit code 4; the shell was started again: variables that were not exported are lost; now in /W/sub",
        ),
        (
            "kill -9 $$",
            "the shell itself was killed by signal 9; the shell was started again: variables that were not exported are lost; now in /W/sub",
        ),
        ("echo still here", "exit code 0\n<stdout>\nstill here\n</stdout>"),
    ] {
        assert_eq!(bench.told("bash", line(command)).await, expected, "{command}");
    }
}

#[tokio::test]
async fn trae_tells_output_then_what_went_wrong() {
    let mut bench = trae();
    for (command, expected) in [
        ("true", ""),
        ("echo a; echo", "a\n"),
        ("false", "Error: exit code 1"),
        ("echo out; echo err >&2", "out\nError: err"),
        ("echo out; echo err >&2; (exit 3)", "out\nError: err\nexit code 3"),
        (
            "echo out; exit 3",
            "out\nError: bash has exited with returncode 3. tool must be restarted.\nThis was done: bash is ready.",
        ),
        (
            "kill -9 $$",
            "Error: bash has exited with returncode -9. tool must be restarted.\nThis was done: bash is ready.",
        ),
        ("echo still here", "still here"),
    ] {
        assert_eq!(bench.told("bash", line(command)).await, expected, "{command}");
    }
}

#[tokio::test]
async fn background_processes_are_counted() {
    let mut bench = lathe();
    assert_eq!(
        bench.told("bash", line("sleep 97101 & echo hi")).await,
        "exit code 0; 1 background process running; this command left job 1: `jobs read 1` shows what it prints\n<stdout>\nhi\n</stdout>"
    );
    assert_eq!(
        bench.told("bash", line("sleep 97102 &")).await,
        "exit code 0; 2 background processes running; this command left job 2: `jobs read 2` shows what it prints"
    );
    bench.toolbox.services().close().await;
}

#[tokio::test]
async fn a_time_out_is_an_error_keeps_the_output_and_the_shell_goes_on() {
    let mut bench = lathe();
    let call = json!({ "command": "export A=1; echo before; sleep 97201", "timeout": 2 });
    let finished = bench.call("bash", call).await;
    assert_eq!(
        finished.error,
        Some(ToolError {
            kind: ToolErrorKind::TimedOut,
            message: "the command took longer than 2 seconds".to_owned(),
        })
    );
    assert!(
        finished.text.starts_with("timed out after 2 seconds: the command and its children were killed"),
        "{}",
        finished.text
    );
    assert!(
        quiet(&finished.text)
            .ends_with(". Give a larger timeout, or run it in the background.\n<stdout>\nbefore\n</stdout>"),
        "{}",
        finished.text
    );
    assert_eq!(bench.told("bash", line("echo on")).await, "exit code 0\n<stdout>\non\n</stdout>");
}

#[tokio::test]
async fn traes_time_out_has_its_words_and_does_not_poison_the_session() {
    let mut bench = trae();
    bench.line_seconds = 2;
    let finished = bench.call("bash", line("echo before; echo bad >&2; sleep 97202")).await;
    assert_eq!(finished.error.map(|error| error.kind), Some(ToolErrorKind::TimedOut));
    assert_eq!(
        quiet(&finished.text),
        "before\nError: bad\nError running bash command: timed out: bash has not returned in 2.0 seconds and must be restarted\nThis was done: the command was killed, and bash is ready."
    );
    bench.line_seconds = 60;
    assert_eq!(bench.told("bash", line("echo on")).await, "on");
}

#[tokio::test]
async fn a_cancelled_command_ends_and_keeps_what_it_printed() {
    for (mut bench, expected) in [
        (lathe(), "cancelled by the user: the command and its children were killed\n<stdout>\ngo\n</stdout>"),
        (trae(), "go\nError: cancelled by the user"),
    ] {
        bench.cancel_at = Some("go");
        // The child itself prints: between a builtin and the next child, bash could only be ended with the line.
        let finished = bench.call("bash", line("bash -c 'echo go; exec sleep 97301'")).await;
        assert_eq!(
            finished.error,
            Some(ToolError { kind: ToolErrorKind::Cancelled, message: "cancelled by the user".to_owned() })
        );
        assert_eq!(quiet(&finished.text), expected);
    }
}

#[tokio::test]
async fn a_restart_gives_a_fresh_shell_in_the_start_folder() {
    for (mut bench, expected) in [
        (lathe(), "The shell was restarted: a fresh one in the start folder; what the old one ran is ended."),
        (trae(), "tool has been restarted."),
    ] {
        bench.put("sub/file", "");
        // Also before there is a shell.
        for _ in 0..2 {
            assert_eq!(bench.told("bash", json!({ "restart": true })).await, expected);
            bench.call("bash", line("cd sub; export A=1; sleep 97401 &")).await;
        }
        bench.told("bash", json!({ "restart": true, "command": "" })).await;
        let text = bench.told("bash", line("pwd; echo A=$A; jobs")).await;
        assert!(text.contains("/W\nA=") && !text.contains("97401"), "{text}");
    }
}

#[tokio::test]
async fn a_call_without_a_command_is_refused() {
    for arguments in [json!({}), json!({ "command": " \n" }), json!({ "restart": false })] {
        assert_eq!(
            lathe().refused("bash", arguments.clone()).await,
            (
                ToolErrorKind::InvalidToolParams,
                "The arguments are wrong: give a command, or restart.".to_owned()
            )
        );
        assert_eq!(
            trae().refused("bash", arguments).await,
            (ToolErrorKind::InvalidToolParams, "No command provided for the bash tool".to_owned())
        );
    }
}

#[tokio::test]
async fn a_line_bash_cannot_take_is_an_error_and_the_next_one_runs() {
    let mut bench = trae();
    assert_eq!(
        bench.refused("bash", line("echo \0")).await,
        (
            ToolErrorKind::ShellExecuteError,
            "Error running bash command: the line holds a NUL byte, which bash cannot take".to_owned()
        )
    );
    assert_eq!(bench.told("bash", line("echo fine")).await, "fine");
}

#[tokio::test]
async fn output_is_shown_while_it_appears_in_whole_characters() {
    let mut bench = lathe();
    // The first half of a character, a pause long enough for a chunk of its own, then the rest.
    let command = r"printf 'gr\303'; sleep 0.2; printf '\274n\n'; echo bad >&2";
    let text = bench.told("bash", line(command)).await;
    assert_eq!(bench.shown(OutputStream::Stdout), "grün\n");
    assert_eq!(bench.shown(OutputStream::Stderr), "bad\n");
    assert!(text.contains("grün"), "{text}");
}
