//! Real programs in temporary folders.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lathe_extend::Program;
use lathe_protocol::Raw;
use lathe_workspace::Workspace;
use tokio_util::sync::CancellationToken;

fn program(folder: &Path, discovery: &str, call: &str) -> Program {
    for (name, text) in [("discover.sh", discovery), ("call.sh", call)] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    Program {
        discovery_command: "sh 'discover.sh' \"one word\"".to_owned(),
        call_command: "sh call.sh".to_owned(),
        call_time: Duration::from_secs(20),
        workspace: Workspace::folder(folder.to_owned(), None),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        pins: Vec::new(),
        redact: Arc::new(|text| text.replace(SECRET, "«secret»")),
    }
}

const SECRET: &str = "sk-planted-0123456789abcdef";

fn arguments() -> Raw {
    Raw::parse(r#"{"x": "a b; $(touch pwned)"}"#).unwrap()
}

#[tokio::test]
async fn tools_are_found_and_called_without_a_shell_between() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(
        folder.path(),
        r#"test "$#" = 1 && echo "[{\"name\": \"$1\", \"description\": \"A tool.\"}]""#,
        r#"printf '%s got ' "$1"; cat"#,
    );
    let cancel = CancellationToken::new();
    let tools = program.discover(&cancel).await.unwrap().tools;
    assert_eq!((tools.len(), tools[0].name.as_str()), (1, "one word"));
    assert_eq!(tools[0].model_name(), "discovered_tool_one_word");
    assert_eq!(
        program.call("one word", &arguments(), &cancel).await,
        Ok(r#"one word got {"x":"a b; $(touch pwned)"}"#.to_owned())
    );
    assert!(!folder.path().join("pwned").exists());
    assert_eq!(program.call_program(), "sh");
}

#[tokio::test]
async fn every_way_to_fail_has_the_five_lines() {
    let folder = tempfile::tempdir().unwrap();
    let call = r#"
case $1 in
  warns) echo out; echo err >&2;;
  fails) exit 3;;
  babbles) head -c 100000 /dev/zero | tr '\\0' x; exit 1;;
  dies) kill -9 $$;;
  hangs) echo begun; sleep 98195 & sleep 98195;;
esac"#;
    let mut program = program(folder.path(), "", call);
    program.call_time = Duration::from_millis(500);
    let cancel = CancellationToken::new();
    for (name, expected) in [
        ("warns", "Stdout: out\n\nStderr: err\n\nError: (none)\nExit Code: 0\nSignal: (none)"),
        ("fails", "Stdout: (empty)\nStderr: (empty)\nError: (none)\nExit Code: 3\nSignal: (none)"),
        ("dies", "Stdout: (empty)\nStderr: (empty)\nError: (none)\nExit Code: (none)\nSignal: 9"),
        (
            "hangs",
            "Stdout: begun\n\nStderr: (empty)\nError: timed out after 0 seconds; it and all it started was killed\nExit Code: (none)\nSignal: (none)",
        ),
    ] {
        assert_eq!(program.call(name, &arguments(), &cancel).await, Err(expected.to_owned()));
    }
    let text = program.call("babbles", &arguments(), &cancel).await.unwrap_err();
    assert!(
        text.len() < 17_000 && text.contains("\n... (84000 more bytes)\nStderr: (empty)"),
        "{}",
        text.len()
    );
    program.call_command = "/no/such/program".to_owned();
    let text = program.call("x", &arguments(), &cancel).await.unwrap_err();
    assert!(text.contains("\nError: cannot start /no/such/program: "), "{text}");
}

#[tokio::test]
async fn a_call_that_is_cancelled_ends_with_all_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "", "sh -c 'echo $$ > pid; sleep 96'");
    let cancel = CancellationToken::new();
    let (stop, pid) = (cancel.clone(), folder.path().join("pid"));
    let watching = tokio::spawn(async move {
        loop {
            let text = std::fs::read_to_string(&pid).unwrap_or_default();
            if text.ends_with('\n') {
                stop.cancel();
                return text.trim().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let text = program.call("x", &arguments(), &cancel).await.unwrap_err();
    assert!(text.contains("Error: cancelled by the user"), "{text}");
    let pid = watching.await.unwrap();
    for _ in 0..500 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if stat.is_empty() || stat.contains(") Z") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{pid} is still alive");
}

#[tokio::test]
async fn a_discovery_that_fails_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let cancel = CancellationToken::new();
    for (script, expected) in [
        ("echo oops >&2; exit 4", "failed: exit code 4: oops"),
        ("echo not json", "failed: its output is not JSON"),
        ("echo '{}'", "failed: its output is not a JSON list of functions"),
        ("head -c 11000000 /dev/zero", "failed: it printed more than 10 MB"),
    ] {
        let error = program(folder.path(), script, "").discover(&cancel).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let mut program = program(folder.path(), "echo '[]'", "");
    program.call_command = "'".to_owned();
    assert!(program.discover(&cancel).await.unwrap_err().to_string().contains("a quote is not closed"));
}

#[tokio::test]
async fn secrets_leave_a_text_before_it_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    // At any position, the cut falls into one of these.
    let prints = format!("yes {SECRET} | head -n 2000 | tr -d '\\n' >&2; exit 1");
    let program = program(folder.path(), &prints, &prints);
    let cancel = CancellationToken::new();
    let found = program.discover(&cancel).await.unwrap_err().to_string();
    let called = program.call("x", &arguments(), &cancel).await.unwrap_err();
    for text in [found, called] {
        assert!(text.contains("«secret»"), "{text}");
        assert!(!text.contains("sk-pl"), "{text}");
    }
}

#[tokio::test]
async fn the_text_of_an_inner_shell_is_no_path() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = program(folder.path(), "", "");
    program.call_command = "sh -c 'head -c 3 /dev/zero | wc -c; echo \"$0\"'".to_owned();
    let ran = program.call("name", &arguments(), &CancellationToken::new()).await.unwrap();
    assert_eq!(ran.split_whitespace().collect::<Vec<_>>(), ["3", "name"]);
    // A name with a space in it that is not there stays one of this folder.
    program.call_command = "sh 'my tools/run.sh'".to_owned();
    let told = program.call("name", &arguments(), &CancellationToken::new()).await.unwrap_err();
    assert!(told.contains(&folder.path().join("my tools/run.sh").display().to_string()), "{told}");
}

#[tokio::test]
async fn a_program_in_python_is_told_to_import_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = program(folder.path(), "", "");
    std::fs::write(folder.path().join("call.py"), "import os, sys\nprint(os.environ['PYTHONSAFEPATH'])\n")
        .unwrap();
    program.call_command = "python3 call.py".to_owned();
    assert_eq!(program.call("t", &arguments(), &CancellationToken::new()).await, Ok("1\n".to_owned()));
}
