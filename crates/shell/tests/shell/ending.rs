//! The end of lines and of the shell: nothing is left.

use std::sync::Arc;
use std::time::Duration;

use lathe_shell::{LineLimits, Shell, ShellError};
use lathe_workspace::LocalProcesses;
use tokio_util::sync::CancellationToken;

use crate::harness::{
    ax_of, descriptors, eventually, options, parent, pids, shell, started, stat, text, with_argument,
};

/// All the ways to get away: a plain job, its own session, no hangup, double fork, deaf to TERM.
fn escapees(argument: &str) -> String {
    format!(
        "sleep {argument} & setsid sleep {argument} & nohup sleep {argument} & sleep {argument} & disown; \
         (sleep {argument} &); setsid -f sleep {argument}; bash -c 'trap \"\" TERM; sleep {argument}; :' & \
         until [ $(pgrep -fc '^sleep {argument}$') = 7 ]; do sleep 0.01; done; echo hi"
    )
}

#[tokio::test]
async fn a_background_job_does_not_hold_up_the_end() {
    let mut sh = shell().await;
    let end = sh.run("sleep 98750 & echo hi").await;
    assert_eq!((text(&end).0.as_str(), end.jobs), ("hi\n", 1));
    assert_eq!(sh.run("nohup sleep 98750 & disown; echo ho").await.jobs, 2);
}

#[tokio::test]
async fn nothing_is_left_after_close() {
    let mut sh = shell().await;
    assert_eq!(sh.out(&escapees("98751")).await, "hi\n");
    let ax = ax_of(&mut sh).await;
    sh.close().await;
    assert!(with_argument("98751").is_empty());
    assert!(stat(ax).1 == 0);
}

#[tokio::test]
async fn nothing_is_left_after_a_drop() {
    let mut sh = shell().await;
    sh.run(&escapees("98752")).await;
    drop(sh);
    eventually("all are gone", || with_argument("98752").is_empty()).await;
}

#[test]
fn nothing_is_left_after_the_runtime_is_gone() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (sh, ax) = runtime.block_on(async {
        let mut sh = shell().await;
        sh.run(&escapees("98753")).await;
        let ax = ax_of(&mut sh).await;
        (sh, ax)
    });
    runtime.spawn(async move {
        let _sh = sh;
        std::future::pending::<()>().await;
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    let wait = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    wait.block_on(eventually("all are gone", || with_argument("98753").is_empty()));
    wait.block_on(eventually("ax is gone", || matches!(stat(ax).0.as_str(), "" | "Z")));
}

/// Not a test by itself: the host that the next test kills.
#[tokio::test]
async fn host_to_be_killed() {
    if std::env::var_os("LATHE_TEST_HOST").is_none() {
        return;
    }
    let mut shell = Shell::start(Arc::new(LocalProcesses), options("/".as_ref())).await.unwrap();
    let limits = LineLimits { timeout: Duration::from_secs(600), ..LineLimits::default() };
    let line = escapees("98754") + "; sleep 98755";
    shell.run(line.as_bytes(), limits, None, &CancellationToken::new()).await.unwrap();
}

#[tokio::test]
async fn nothing_is_left_when_the_host_is_killed() {
    let mut host = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ending::host_to_be_killed", "--nocapture"])
        .env("LATHE_TEST_HOST", "1")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    started("98755").await;
    host.kill().unwrap();
    host.wait().unwrap();
    eventually("all are gone", || with_argument("98754").is_empty() && with_argument("98755").is_empty())
        .await;
}

#[tokio::test]
async fn nothing_is_left_when_the_supervisor_is_told_to_end() {
    let mut sh = shell().await;
    sh.run(&escapees("98756")).await;
    let ax = ax_of(&mut sh).await;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(ax), nix::sys::signal::SIGTERM).unwrap();
    eventually("all are gone", || with_argument("98756").is_empty()).await;
}

#[tokio::test]
async fn no_zombies_gather() {
    let mut sh = shell().await;
    let ax = ax_of(&mut sh).await;
    sh.run("for i in {1..50}; do (true & true &) ; setsid -f true; done; sleep 0.1").await;
    eventually("no zombie", || !pids().iter().any(|pid| parent(*pid) == ax && stat(*pid).0 == "Z")).await;
    assert_eq!(sh.run("true").await.jobs, 0);
}

#[tokio::test]
async fn descriptors_do_not_leak() {
    let mut sh = shell().await;
    let ax = ax_of(&mut sh).await;
    let bash: i32 = sh.out("echo $$").await.trim().parse().unwrap();
    let me = std::process::id() as i32;
    let (host, before) = (descriptors(me), (descriptors(ax), descriptors(bash)));
    for number in 0..300 {
        let line = if number % 10 == 0 { "sleep 0.01 & echo x" } else { "echo x; echo y >&2" };
        assert_eq!(text(&sh.run(line).await).0, "x\n");
    }
    // Bash may be saving its state at either moment; a leak would be one per line at least.
    let few = 6;
    eventually("descriptors are back", || {
        descriptors(ax) <= before.0 + few && descriptors(bash) <= before.1 + few
    })
    .await;
    // Other tests of this process come and go; a leak would be one per line at least.
    assert!(descriptors(me) < host + 150);
}

#[tokio::test]
async fn bash_inherits_no_blocked_or_ignored_signals() {
    let mut sh = shell().await;
    let masks = sh.out("sed -n 's/^Sig[BI][lg][kn]:.//p' /proc/self/status").await;
    let masks: Vec<u64> = masks.lines().map(|mask| u64::from_str_radix(mask, 16).unwrap()).collect();
    // Only the classic signals: this test's own parent may ignore others.
    assert_eq!(masks.iter().map(|mask| mask & 0x7fff_ffff).collect::<Vec<_>>(), [0, 0]);
}

#[tokio::test]
async fn the_private_folder_goes_too() {
    let mut sh = shell().await;
    let ax = ax_of(&mut sh).await;
    let links = std::fs::read_dir(format!("/proc/{ax}/fd")).unwrap().flatten();
    let answers =
        links.filter_map(|fd| std::fs::read_link(fd.path()).ok()).find(|to| to.ends_with("a")).unwrap();
    assert!(answers.exists());
    sh.close().await;
    assert!(!answers.parent().unwrap().exists());
}

#[tokio::test]
async fn the_folder_of_a_killed_supervisor_is_swept() {
    let mut sh = shell().await;
    let ax = ax_of(&mut sh).await;
    let links = std::fs::read_dir(format!("/proc/{ax}/fd")).unwrap().flatten();
    let answers =
        links.filter_map(|fd| std::fs::read_link(fd.path()).ok()).find(|to| to.ends_with("a")).unwrap();
    let folder = answers.parent().unwrap();
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    std::fs::File::open(folder).unwrap().set_modified(long_ago).unwrap();
    shell().await.close().await;
    assert!(folder.exists(), "it is in use");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(ax), nix::sys::signal::SIGKILL).unwrap();
    eventually("ax is gone", || matches!(stat(ax).0.as_str(), "" | "Z")).await;
    shell().await.close().await;
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_killed_supervisor_leaves_no_process_either() {
    let mut sh = shell().await;
    let (inner, outer) = (format!("7{}1", std::process::id()), format!("7{}2", std::process::id()));
    let line = format!("setsid sleep {inner} & (setsid sleep {outer} &); sleep 0.2; kill -9 $PPID; sleep 5");
    let lost = sh.shell.run(line.as_bytes(), LineLimits::default(), None, &CancellationToken::new()).await;
    assert!(matches!(lost, Err(ShellError::SupervisorGone(_))), "{lost:?}");
    assert!(with_argument(&inner).is_empty() && with_argument(&outer).is_empty());
    assert_eq!(sh.out("echo again").await, "again\n");
    sh.close().await;
}
