//! Faults that no other file here has: what programs do to a shell without meaning it.

use std::time::Duration;

use lathe_shell::LineExit;

use crate::harness::{all, eventually, shell, text, with_argument};
use crate::host::commands;

const SHORT: Duration = Duration::from_millis(500);

#[tokio::test]
async fn programs_for_a_screen_end_without_one() {
    let mut sh = shell().await;
    sh.run("seq 1000 > f; export TERM=xterm").await;
    for line in ["less f", "more f", "man ls", "vi f", "vim f", "nano f", "top", "watch ls", "less < f"] {
        let line = format!("type -P {} >/dev/null || exit 0; {line}", line.split(' ').next().unwrap());
        sh.run_for(&format!("({line})"), Duration::from_secs(2)).await;
        assert_eq!(sh.out("echo on").await, "on\n", "{line}");
    }
}

#[tokio::test]
async fn nobody_can_be_asked_for_a_password() {
    let mut sh = shell().await;
    let (code, out, err) = all(&sh.run("read -rsp 'Password: ' p < /dev/tty; echo $?; tty").await);
    assert_eq!((code, out.as_str()), (1, "1\nnot a tty\n"));
    assert!(err.contains("/dev/tty: No such device or address"), "{err}");
    let line = "bash -c 'exec 3<>/dev/tty; read -u 3 p'; setsid -c cat < /dev/null; bash -c 'read -p Name: n; echo $?'";
    assert_eq!(sh.out(line).await, "1\n");
}

#[tokio::test]
async fn colours_and_progress_bars_are_bytes() {
    let mut sh = shell().await;
    let line = r"for i in {1..20000}; do printf '\e[31m\e[2K\r%5d%%\e[?1049h\a' $i; done";
    let end = sh.run(line).await;
    let out = end.stdout.read_all().unwrap();
    assert!(
        out.starts_with(b"\x1b[31m\x1b[2K\r    1%\x1b[?1049h\x07") && out.len() == 20_000 * 25,
        "{}",
        out.len()
    );
}

#[tokio::test]
async fn a_tree_of_forks_is_ended() {
    let mut sh = shell().await;
    let line = "f() { if (($1)); then f $(($1 - 1)) & f $(($1 - 1)) & fi; sleep 98801; }; f 6";
    let end = sh.run_for(line, Duration::from_secs(2)).await;
    assert!(matches!(end.exit, LineExit::TimedOut { .. }) && end.jobs == 0, "{end:?}");
    assert!(with_argument("98801").is_empty());
    assert_eq!(sh.out("echo on").await, "on\n");
}

/// Each process forks its successor and goes: no two looks find the same one.
const CHAIN: &str = "f() { : > beat; (f &); }; f";

fn beat(path: &std::path::Path) -> Option<std::time::SystemTime> {
    std::fs::metadata(path).and_then(|file| file.modified()).ok()
}

#[tokio::test]
async fn a_chain_of_forks_is_ended() {
    let mut sh = shell().await;
    let beats = sh.folder().join("beat");
    let still = async |what: &str| {
        let before = beat(&beats);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(before.is_some() && beat(&beats) == before, "{what}");
    };
    let end = sh.run_for(&format!("{CHAIN}; sleep 98802"), SHORT).await;
    assert!(matches!(end.exit, LineExit::TimedOut { .. }), "{end:?}");
    still("stopped").await;
    sh.run(CHAIN).await;
    let jobs = sh.jobs();
    let job = jobs.list().await.pop().unwrap();
    assert!(!job.pids.is_empty() && jobs.kill(job.id).await, "{job:?}");
    still("killed").await;
    sh.run(CHAIN).await;
    let folder = sh.close().await;
    still("closed").await;
    drop(folder);
}

#[tokio::test]
async fn what_runs_out_of_memory_is_alone_in_that() {
    let mut sh = shell().await;
    sh.run("export A=1").await;
    let hog = "x=$(head -c 300000000 /dev/zero | tr '\\0' x)";
    assert_ne!(sh.run(&format!("(ulimit -v 150000; {hog})")).await.exit.code(), 0);
    let end = sh.run(&format!("ulimit -v 150000; {hog}; true")).await;
    assert!(end.respawned, "{end:?}");
    assert_eq!(sh.out("echo $A; ulimit -v").await, "1\nunlimited\n");
}

#[tokio::test]
async fn what_is_printed_while_it_ends_is_not_the_next_lines() {
    let mut sh = shell().await;
    let line = "bash -c 'trap \"echo dying; sleep 0.05; echo dead >&2; exit\" TERM; echo up; while :; do sleep 0.02; done'";
    let end = sh.run_for(line, SHORT).await;
    assert!(text(&end).0.starts_with("up\n") && matches!(end.exit, LineExit::TimedOut { .. }), "{end:?}");
    assert_eq!(all(&sh.run("sleep 0.2; echo mine").await), (0, "mine\n".into(), String::new()));
}

#[tokio::test]
async fn a_poisoned_environment_harms_itself_only() {
    let mut sh = commands().await;
    let bin = sh.out("printf %s \"${PATH%%:*}\"").await;
    for poison in [
        "export PATH=/nowhere",
        "unset HOME USER",
        "export LD_PRELOAD=/nowhere/lib.so LD_LIBRARY_PATH=/nowhere",
        "export BASH_ENV=/nowhere ENV=/nowhere; echo 'touch poisoned' > rc; export BASH_ENV=$PWD/rc",
        "export PS4='$(touch poisoned)' PROMPT_COMMAND='touch poisoned'; set -x; set +x",
        "export IFS=abcdef/. LC_ALL=nowhere TMPDIR=/nowhere SHELL=/nowhere TERM=$'\\e'",
        "export POSIXLY_CORRECT=1 GLOBIGNORE='*' FIGNORE=x TMOUT=1 LINENO=7 OPTIND=9",
        "shopt -s expand_aliases; alias echo=false if=false; printf() { false; }; builtin() { command builtin \"$@\"; }",
        "export LATHE_SHELL=mine BASH_XTRACEFD=1 EXECIGNORE='*'",
    ] {
        sh.run(poison).await;
        let out = sh.run(&format!("unalias -a; {bin}/args on; a:b 2>/dev/null")).await;
        assert_eq!(text(&out).0, "<args> <on>\n<a:b>\n", "{poison}");
        sh.run("exit 1").await;
        let out = sh.run(&format!("{bin}/args again")).await;
        assert_eq!(text(&out).0, "<args> <again>\n", "{poison}");
        sh.restart().await.unwrap();
        assert_eq!(sh.out("args fresh; ls -d / | cat").await, "<args> <fresh>\n/\n", "{poison}");
    }
}

#[tokio::test]
async fn text_is_bytes_whatever_the_locale() {
    let mut sh = commands().await;
    for locale in ["C", "POSIX", "C.UTF-8", "nowhere"] {
        let line =
            format!("export LC_ALL={locale} 2>/dev/null; x='é€'; echo $x; args \"$x\" ü; echo ß | upper");
        assert_eq!(sh.out(&line).await, "é€\n<args> <é€> <ü>\nß\n", "{locale}");
    }
}

#[tokio::test]
async fn holders_of_the_output_do_not_delay_the_end() {
    let mut sh = shell().await;
    for line in [
        "sleep 98803 & echo hi",
        "setsid -f sleep 98803; echo hi",
        "(sleep 98803 &) ; echo hi",
        "nohup sleep 98803 & disown; echo hi",
        "bash -c 'sleep 98803 & kill -STOP $!'; echo hi",
    ] {
        let end = sh.run(line).await;
        assert_eq!(text(&end).0, "hi\n", "{line}");
    }
    sh.close().await;
    eventually("all are gone", || with_argument("98803").is_empty()).await;
}
