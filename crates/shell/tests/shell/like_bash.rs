//! A line behaves as it would in bash alone, and says so where it cannot (issue 16).

use std::process::Command;

use lathe_shell::LineExit;

use crate::harness::{all, shell};
use crate::host::commands;

/// The line in a bash of its own, in a folder of its own.
fn plain(line: &str) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let ran = Command::new("bash").args(["--norc", "-c", line]).current_dir(folder.path()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    // The name that `bash -c` has for the place of a function.
    (ran.status.code().unwrap(), text(ran.stdout), text(ran.stderr).replace("environment: ", "bash: "))
}

#[tokio::test]
async fn messages_number_the_lines_of_the_line_itself() {
    let (mut with, mut without) = (commands().await, shell().await);
    for line in [
        "nosuch",
        "echo a\nnosuch\n\n\nnosuch; echo $LINENO",
        "f() {\n  nosuch\n}\nf",
        "false; cat /no/such; cd /no/such",
        "for i in 1 2; do\n  nosuch $i\ndone",
        "exit_code() { return 3; }; exit_code",
        "nosuch",
        "(exit 7)",
        "\n\nnosuch",
    ] {
        let expected = plain(line);
        for sh in [&mut with, &mut without] {
            assert_eq!(all(&sh.run(line).await), expected, "{line}");
        }
    }
}

#[tokio::test]
async fn a_break_outside_of_a_loop_is_told() {
    let mut sh = shell().await;
    for line in ["break; echo x", "while :; do break 5; done; echo z", "echo a >/dev/null\ncontinue\necho x"]
    {
        let (code, out, err) = all(&sh.run(line).await);
        assert!(
            code == 1 && out.is_empty() && err.contains("the rest of the line did not run"),
            "{line}: {code} {out} {err}"
        );
    }
    for (line, expected) in [
        ("for i in 1 2; do echo $i; break; done; echo z", "1\nz\n"),
        ("for i in 1 2; do for j in 1 2; do continue 2; done; done; echo z", "z\n"),
    ] {
        assert_eq!(all(&sh.run(line).await), (0, expected.to_owned(), String::new()), "{line}");
    }
}

#[tokio::test]
async fn a_shell_that_runs_nothing_any_more_is_started_again() {
    let mut sh = shell().await;
    sh.run("export kept=1; cd /").await;
    for line in ["set -n; echo x", "set -o noexec\necho x"] {
        let end = sh.run(line).await;
        assert!(end.respawned && end.exit == LineExit::Code(0), "{line}: {end:?}");
        assert!(all(&end).2.contains("set -n"), "{line}: {end:?}");
        assert_eq!(sh.out("echo $kept $PWD").await, "1 /\n");
    }
    // So is one that has no descriptor left to say that it is done.
    let end = sh.run("ulimit -n 4; echo x").await;
    assert!(end.respawned && all(&end).1 == "x\n" && all(&end).2.contains("ulimit -n"), "{end:?}");
    assert_eq!(sh.out("echo $kept $PWD").await, "1 /\n");
    // It only checks a script.
    assert_eq!(sh.out("bash -nc 'echo x'; echo $?").await, "0\n");
}

#[tokio::test]
async fn commands_are_found_whatever_a_line_makes_of_path() {
    let mut sh = commands().await;
    for (line, expected) in [
        ("export PATH=/usr/bin:/bin; args x; true", "<args> <x>\n"),
        ("args y", "<args> <y>\n"),
        ("PATH=/usr/bin:/bin; bash -c 'args z'", "<args> <z>\n"),
        ("bash -lc 'args login'", "<args> <login>\n"),
        ("export PATH=/usr/bin:/bin; view mine; declare -F view", "<view> <mine>\nview\n"),
        ("command -v view | grep -c /bin/view; declare -F view; true", "1\n"),
        ("PATH=/usr/bin:/bin:$PATH; type -P args | grep -c .", "1\n"),
    ] {
        assert_eq!(all(&sh.run(line).await), (0, expected.to_owned(), String::new()), "{line}");
    }
}

#[tokio::test]
async fn a_child_sees_no_function_in_its_environment() {
    let mut sh = commands().await;
    assert_eq!(sh.out("env -0 | tr '\\n' x | grep -zc '()'; true").await, "0\n");
}
