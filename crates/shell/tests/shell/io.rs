//! Input, output and text.

use std::time::Duration;

use lathe_shell::{LineLimits, LiveChunk, ShellError, Stream};
use tokio_util::sync::CancellationToken;

use crate::harness::{all, shell, text};

#[tokio::test]
async fn stdout_and_stderr_are_apart() {
    let mut sh = shell().await;
    assert_eq!(all(&sh.run("echo out; echo err >&2; false").await), (1, "out\n".into(), "err\n".into()));
}

#[tokio::test]
async fn stdin_is_empty() {
    let mut sh = shell().await;
    assert_eq!(
        all(&sh.run("cat; read x; echo got-$x; bash -c cat").await),
        (0, "got-\n".into(), String::new())
    );
}

#[tokio::test]
async fn an_unclosed_quote_is_an_error_at_once() {
    let mut sh = shell().await;
    let (code, out, err) = all(&sh.run("echo \"never closed").await);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.starts_with("bash: eval: line") && err.contains("unexpected EOF"), "{err}");
    let (code, _, err) = all(&sh.run("if true; then").await);
    assert!(code == 2 && err.contains("syntax error"), "{err}");
    assert_eq!(sh.out("cat <<EOF\nopen").await, "open\n");
    assert_eq!(sh.out("echo on").await, "on\n");
}

#[tokio::test]
async fn redirected_and_closed_outputs_do_not_poison_the_next_line() {
    let mut sh = shell().await;
    for line in ["exec >/dev/null", "exec 1>&-", "exec 2>&1 >&-", "exec 0<&- 1>&- 2>&-", "exec < /dev/zero"] {
        sh.run(line).await;
        assert_eq!(
            all(&sh.run("cat; echo out; echo err >&2").await),
            (0, "out\n".into(), "err\n".into()),
            "{line}"
        );
    }
}

#[tokio::test]
async fn answers_cannot_be_forged() {
    let mut sh = shell().await;
    let end = sh
        .run("echo x 0 >&199; for f in /proc/$PPID/fd/*; do case $(readlink $f) in */ax.*/a) echo 'x 0' >$f; echo done;; esac; done; (exit 5)")
        .await;
    assert_eq!((end.exit.code(), text(&end).0.as_str()), (5, "done\n"));
    assert_eq!(
        sh.out("echo '\u{1}d\u{5}'; echo 0123456789abcdef0123456789abcdef 0").await,
        "\u{1}d\u{5}\n0123456789abcdef0123456789abcdef 0\n"
    );
    // The saved descriptors of the enclosing redirection lead nowhere.
    assert_eq!(
        sh.run("for n in 10 11 12 13 198 199; do echo 'x 0' >&$n; done 2>/dev/null; (exit 6)")
            .await
            .exit
            .code(),
        6
    );
    let inherited = sh.out("ls -l /proc/self/fd").await;
    let is_control = |line: &str| line.ends_with("/a") || line.ends_with("/bash");
    assert!(!inherited.lines().any(is_control), "{inherited}");
}

#[tokio::test]
async fn output_is_byte_exact() {
    let mut sh = shell().await;
    let end = sh.run(r"printf '\377\376\000\001\r\n\xc3\x28no newline'").await;
    assert_eq!(end.stdout.read_all().unwrap(), b"\xff\xfe\0\x01\r\n\xc3\x28no newline");
    let end = sh
        .try_run(b"printf %s '\xff\xc3\x28'; x=\xfe; printf %s \"$x\"", Duration::from_secs(20))
        .await
        .unwrap();
    assert_eq!(end.stdout.read_all().unwrap(), b"\xff\xc3\x28\xfe");
}

#[tokio::test]
async fn a_nul_is_refused_and_the_shell_lives() {
    let mut sh = shell().await;
    sh.run("x=1").await;
    let error = sh.try_run(b"echo a\0b", Duration::from_secs(5)).await.unwrap_err();
    assert!(matches!(error, ShellError::NulInLine));
    assert_eq!(sh.out("echo $x").await, "1\n");
}

#[tokio::test]
async fn line_ends_of_windows_are_understood() {
    let mut sh = shell().await;
    assert_eq!(sh.out("for i in 1 2; do\r\n  echo $i\r\ndone\r\n").await, "1\n2\n");
    assert_eq!(sh.out("echo a\r\nprintf '%s\\n' 'b\r'\n").await, "a\r\nb\r\n");
}

#[tokio::test]
async fn long_lines_arrive_whole() {
    let mut sh = shell().await;
    for size in [2000, 2046, 4096, 5000, 300_000] {
        let line = format!("x='{}'; echo ${{#x}}; (exit 3)", "é'\\''\n".repeat(size / 5));
        assert_eq!(all(&sh.run(&line).await), (3, format!("{}\n", size / 5 * 3), String::new()), "{size}");
    }
    let line = format!("cat <<'EOF' | wc -c\n{}EOF\n", "0123456789\n".repeat(30_000));
    assert_eq!(sh.out(&line).await, "330000\n");
    assert_eq!(sh.out("echo $x | tail -c 3 | wc -c").await, "3\n");
}

#[tokio::test]
async fn late_output_of_background_jobs_stays_out_of_later_lines() {
    let mut sh = shell().await;
    assert_eq!(sh.out("(sleep 0.2; echo late; echo late >&2) & echo now").await, "now\n");
    let end = sh.run("sleep 0.5; echo mine").await;
    assert_eq!(all(&end), (0, "mine\n".into(), String::new()));
    assert_eq!(end.jobs, 0);
}

#[tokio::test]
async fn a_background_flood_delays_nothing_and_is_not_blocked() {
    let mut sh = shell().await;
    let end = sh.run("yes & (head -c 1000000 /dev/zero; touch written) & echo hi").await;
    assert!(end.stdout.total() >= 3);
    let folder = sh.folder();
    crate::harness::eventually("the writer was not blocked", || folder.join("written").exists()).await;
    assert_eq!(sh.out("echo mine").await, "mine\n");
    sh.run("kill %1 %2 2>/dev/null; pkill -P $$ yes").await;
}

#[tokio::test]
async fn output_comes_live() {
    let mut sh = shell().await;
    let (sender, mut receiver) = tokio::sync::mpsc::channel(16);
    let cancel = CancellationToken::new();
    let limits = LineLimits { timeout: Duration::from_secs(60), ..LineLimits::default() };
    let run = sh.shell.run(b"echo first; sleep 98760", limits, Some(&sender), &cancel);
    tokio::pin!(run);
    let first = tokio::select! {
        chunk = receiver.recv() => chunk.unwrap(),
        end = &mut run => panic!("ended before its output was seen: {end:?}"),
    };
    assert_eq!(first, LiveChunk { stream: Stream::Stdout, at: 0, bytes: b"first\n".to_vec() });
    cancel.cancel();
    let end = run.await.unwrap();
    assert_eq!(text(&end).0, "first\n");
}

#[tokio::test]
async fn great_volume_is_capped_in_flat_memory() {
    let mut sh = shell().await;
    let before = resident();
    let limits = LineLimits { timeout: Duration::from_secs(120), keep: 1024 * 1024, ..LineLimits::default() };
    let cancel = CancellationToken::new();
    let end = sh.shell.run(b"yes | head -c 200000000", limits, None, &cancel).await.unwrap();
    assert_eq!((end.exit.code(), end.stdout.total()), (0, 200_000_000));
    assert_eq!(end.stdout.omitted(), 200_000_000 - 1024 * 1024);
    let kept = end.stdout.head_tail(10).unwrap();
    assert_eq!((kept.head.as_slice(), kept.tail.as_slice()), (b"y\ny\ny".as_slice(), b"\ny\ny\n".as_slice()));
    let end = sh
        .shell
        .run(
            b"head -c 100000000 /dev/zero | tr '\\0' x",
            LineLimits { keep: 64 << 20, ..limits },
            None,
            &cancel,
        )
        .await
        .unwrap();
    assert_eq!(end.stdout.total(), 100_000_000);
    assert_eq!(end.stdout.omitted(), 100_000_000 - (64 << 20));
    let growth = resident().saturating_sub(before);
    assert!(growth < 64 * 1024, "{growth} KiB more");
}

/// KiB of memory of this process.
pub fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}
