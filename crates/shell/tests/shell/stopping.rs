//! Time-outs and cancelling.

use std::time::Duration;

use lathe_shell::{LineExit, LineLimits};
use tokio_util::sync::CancellationToken;

use crate::harness::{eventually, shell, started, text, with_argument};

const SHORT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_time_out_ends_the_tree_of_this_line_only() {
    let mut sh = shell().await;
    sh.run("export A=1; mkdir d; sleep 98730 &").await;
    let line =
        "cd d; b=2; setsid -f sleep 98731; (sleep 98732 &) ; nohup sleep 98733 & bash -c 'sleep 98734; :'";
    let end = sh.run_for(line, SHORT).await;
    assert_eq!((end.exit, end.respawned, end.jobs), (LineExit::TimedOut { code: 143 }, false, 1));
    for gone in ["98731", "98732", "98733", "98734"] {
        assert!(with_argument(gone).is_empty(), "{gone}");
    }
    assert_eq!(with_argument("98730").len(), 1);
    assert_eq!(sh.out("echo $A $b; pwd").await, format!("1 2\n{}\n", sh.folder().join("d").display()));
    sh.close().await;
    assert!(with_argument("98730").is_empty());
}

#[tokio::test]
async fn partial_output_is_kept() {
    let mut sh = shell().await;
    let end = sh.run_for("echo before; sleep 98735", SHORT).await;
    assert_eq!((text(&end).0.as_str(), end.exit.code()), ("before\n", 143));
}

#[tokio::test]
async fn children_that_ignore_term_are_killed() {
    let mut sh = shell().await;
    let end = sh.run_for("bash -c 'trap \"\" TERM; sleep 98736; sleep 98736'", SHORT).await;
    assert_eq!((end.exit, end.respawned), (LineExit::TimedOut { code: 137 }, false));
    assert!(with_argument("98736").is_empty());
    sh.run("trap '' TERM; x=1").await;
    let end = sh.run_for("sleep 98736", SHORT).await;
    assert_eq!((end.exit, end.respawned), (LineExit::TimedOut { code: 137 }, false));
    assert_eq!(sh.out("echo $x").await, "1\n");
}

#[tokio::test]
async fn stopped_processes_are_ended_too() {
    let mut sh = shell().await;
    let end = sh.run_for("bash -c 'kill -STOP $$; sleep 98737'", SHORT).await;
    assert_eq!(end.exit.code(), 143);
    let end = sh.run_for("kill -STOP $$; echo woken", SHORT).await;
    assert!(matches!(end.exit, LineExit::TimedOut { .. }));
    assert_eq!(sh.out("echo on").await, "on\n");
}

#[tokio::test]
async fn a_busy_shell_is_replaced_with_its_state() {
    let mut sh = shell().await;
    sh.run("export A=1; cd /usr").await;
    for (line, is_busy) in [
        ("while :; do :; done", true),
        ("trap '' INT; while :; do :; done", true),
        ("while :; do sleep 98738; done", false),
    ] {
        let end = sh.run_for(line, SHORT).await;
        assert!(matches!(end.exit, LineExit::TimedOut { .. }), "{line}: {:?}", end.exit);
        assert_eq!(end.respawned, is_busy, "{line}");
        assert_eq!(sh.out("echo $A $PWD").await, "1 /usr\n", "{line}");
    }
    assert!(with_argument("98738").is_empty());
}

#[tokio::test]
async fn a_silenced_shell_is_replaced() {
    let mut sh = shell().await;
    for line in ["set -n", "builtin() { :; }", "set -r", "exec sleep 98739"] {
        assert!(sh.run_for(line, SHORT).await.respawned, "{line}");
        assert_eq!(sh.out("echo on").await, "on\n", "{line}");
    }
}

#[tokio::test]
async fn cancelling_ends_the_line_quickly_with_what_it_printed() {
    let mut sh = shell().await;
    let cancel = CancellationToken::new();
    let limits = LineLimits { timeout: Duration::from_secs(600), ..LineLimits::default() };
    let stop = cancel.clone();
    let canceller = tokio::spawn(async move {
        started("98740").await;
        stop.cancel();
    });
    let end = sh
        .shell
        .run(b"echo partly; sleep 98740; echo never >/dev/null", limits, None, &cancel)
        .await
        .unwrap();
    canceller.await.unwrap();
    assert!(matches!(end.exit, LineExit::Cancelled { .. }), "{:?}", end.exit);
    assert_eq!(text(&end).0, "partly\n");
    assert!(with_argument("98740").is_empty());
    // Already cancelled: nothing is run at all.
    let end = sh.shell.run(b"touch ran", limits, None, &cancel).await.unwrap();
    assert!(matches!(end.exit, LineExit::Cancelled { .. }) && !sh.folder().join("ran").exists());
}

#[tokio::test]
async fn a_dropped_run_is_ended_before_the_next_line() {
    let mut sh = shell().await;
    let run = sh.try_run(b"x=1; echo lost; sleep 98741", Duration::from_secs(600));
    tokio::select! {
        end = run => panic!("{end:?}"),
        () = started("98741") => {}
    }
    assert_eq!(sh.out("echo $x").await, "1\n");
    assert!(with_argument("98741").is_empty());
}

#[tokio::test]
async fn many_processes_at_once_are_ended() {
    let mut sh = shell().await;
    let end = sh
        .run_for(
            "for i in {1..100}; do (trap '' TERM; setsid sleep 98742) & done; wait",
            Duration::from_secs(1),
        )
        .await;
    assert!(matches!(end.exit, LineExit::TimedOut { .. }));
    eventually("all are gone", || with_argument("98742").is_empty()).await;
    assert_eq!(sh.run("true").await.jobs, 0);
}

#[tokio::test]
async fn a_line_that_prints_nothing_for_too_long_is_ended_with_what_it_printed() {
    let mut sh = shell().await;
    let limits =
        LineLimits { timeout: Duration::from_secs(600), silence: Some(SHORT), ..LineLimits::default() };
    let end =
        sh.shell.run(b"echo begun; sleep 98740", limits, None, &CancellationToken::new()).await.unwrap();
    assert!(matches!(end.exit, LineExit::Silent { limit: SHORT, .. }), "{:?}", end.exit);
    assert_eq!(text(&end).0, "begun\n");
    assert!(with_argument("98740").is_empty());
    assert_eq!(sh.out("echo on").await, "on\n");
}
