//! The leash, tried on a shell: it knows nothing of the program it runs.

use std::time::Duration;

use lathe_testkit::{FakeModel, Lathe, Script, Signal, TempRepo, events, eventually, no_process_with};
use serde_json::json;

fn sh(line: &str) -> Lathe {
    Lathe::new("/bin/sh").args(["-c", line])
}

#[test]
fn the_environment_is_the_minimum_and_what_was_added() {
    let ran = sh("env | cut -d= -f1 | sort | tr '\\n' ' '").env("EXTRA", "1").run().expect_code(0);
    // PWD and the underscore are the shell's own.
    let names: Vec<&str> = ran
        .stdout
        .split_whitespace()
        .filter(|name| !matches!(*name, "PWD" | "_" | "OLDPWD" | "SHLVL"))
        .collect();
    assert_eq!(names, ["EXTRA", "HOME", "LANG", "LATHE_HOME", "LATHE_SANDBOX", "NO_COLOR", "PATH"]);
}

#[test]
fn clones_share_a_home_and_others_do_not() {
    let lathe = Lathe::new("/bin/sh");
    let first = lathe.clone().args(["-c", "echo $LATHE_HOME $HOME"]).run();
    let again = lathe.args(["-c", "echo $LATHE_HOME $HOME"]).run();
    assert_eq!(first.stdout, again.stdout);
    assert_ne!(first.stdout, sh("echo $LATHE_HOME $HOME").run().stdout);
}

#[test]
fn code_output_input_and_folder_are_passed_on() {
    let repo = TempRepo::new(&[("a.txt", "in the file\n")]);
    let ran = sh("cat a.txt -; echo err >&2; exit 4")
        .in_dir(repo.path())
        .stdin("from stdin\n")
        .run()
        .expect_code(4);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("in the file\nfrom stdin\n", "err\n"));
    assert_eq!(events("{\"a\":1}\n[2]\n"), [json!({"a": 1}), json!([2])], "JSON lines");
}

#[test]
fn the_flags_of_a_model_are_added() {
    let model = FakeModel::serving(Script::new());
    let ran = sh("echo \"$@\"").arg("sh").with_model(&model).run();
    assert_eq!(
        ran.stdout,
        format!("--model-base-url {} --model fake --api-key fake-key\n", model.base_url())
    );
}

#[test]
fn signals_reach_it() {
    let running = sh("trap 'exit 7' INT; echo ready; while :; do sleep 0.01; done").spawn();
    running.wait_for_stdout("ready", Duration::from_secs(5));
    running.kill(Signal::Interrupt);
    assert_eq!(running.wait().code, 7);
    let running = sh("exec sleep 60").spawn();
    running.kill9();
    assert_eq!(running.wait().code, 137);
}

#[test]
#[should_panic(expected = "did not end in time")]
fn what_runs_too_long_is_killed_and_fails_the_test() {
    let _ = Lathe::new("/bin/sleep").arg("61").timeout(Duration::from_millis(100)).run();
}

#[test]
fn dropped_it_is_killed() {
    let marker = format!("62.{}", std::process::id());
    let running = Lathe::new("/bin/sleep").arg(&marker).spawn();
    // Between fork and exec it still has the command line of the test.
    eventually(Duration::from_secs(5), "it runs", || !no_process_with(&marker));
    drop(running);
    assert!(no_process_with(&marker));
}
