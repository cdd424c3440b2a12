//! Processes that lines leave running: listed, read and ended.

use std::time::Duration;

use lathe_shell::{BackgroundJob, Jobs};

use crate::harness::{TestShell, eventually, shell, text, with_argument};

async fn ids(jobs: &Jobs) -> Vec<(u64, usize)> {
    jobs.list().await.iter().map(|job| (job.id, job.pids.len())).collect()
}

async fn job(jobs: &Jobs, id: u64) -> BackgroundJob {
    jobs.list().await.into_iter().find(|job| job.id == id).unwrap()
}

async fn read(jobs: &Jobs, id: u64) -> String {
    String::from_utf8(jobs.read(id).await.unwrap()).unwrap()
}

/// Waits until a job has printed this.
async fn printed(jobs: &Jobs, id: u64, expected: &str) {
    for _ in 0..1000 {
        if read(jobs, id).await == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", read(jobs, id).await);
}

async fn gone(jobs: &Jobs, id: u64) {
    for _ in 0..1000 {
        if job(jobs, id).await.pids.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", jobs.list().await);
}

#[tokio::test]
async fn a_line_that_leaves_nothing_is_no_job() {
    let mut sh = shell().await;
    let jobs = sh.jobs();
    sh.run("true; echo x | cat; (true); true & wait").await;
    assert_eq!((jobs.list().await, jobs.read(1).await, jobs.kill(1).await), (vec![], None, false));
}

#[tokio::test]
async fn what_is_printed_later_is_the_jobs() {
    let mut sh = shell().await;
    let jobs = sh.jobs();
    let end = sh.run("(until [ -e go ]; do sleep 0.01; done; echo late; sleep 0.2; echo err >&2; sleep 0.2; printf '\\377'; sleep 98781) & echo now").await;
    assert_eq!(text(&end), ("now\n".into(), String::new()));
    let before = job(&jobs, 1).await;
    assert_eq!(before.printed, 0);
    assert!(before.line.starts_with("(until [ -e go ]") && !before.pids.is_empty(), "{before:?}");
    // It can be asked while a line runs, and does not mix with it.
    let folder = sh.folder();
    let asked = sh.run("touch go; until [ -e on ]; do sleep 0.01; done; echo mine");
    let asking = async {
        loop {
            if jobs.read(1).await.unwrap() == b"late\nerr\n\xff" {
                break std::fs::write(folder.join("on"), "").unwrap();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let (end, ()) = tokio::join!(asked, asking);
    assert_eq!(text(&end), ("mine\n".into(), String::new()));
    assert_eq!((job(&jobs, 1).await.printed, ids(&jobs).await.len()), (10, 1));
    sh.close().await;
    assert!(job(&jobs, 1).await.pids.is_empty());
    assert!(with_argument("98781").is_empty());
    assert!(!jobs.kill(1).await);
}

/// Line 1 leaves one sleep, line 3 four of another kind in five processes.
async fn run_jobs(sh: &mut TestShell, one: &str, many: &str) -> Jobs {
    let jobs = sh.jobs();
    sh.run(&format!("sleep {one} &")).await;
    sh.run("true").await;
    sh.run(&format!(
        "setsid -f sleep {many}; nohup sleep {many} >/dev/null 2>&1 &
        bash -c 'trap \"\" TERM; sleep {many}; sleep {many}' & (sleep {many} &)"
    ))
    .await;
    eventually("all have started", || with_argument(many).len() == 4).await;
    jobs
}

#[tokio::test]
async fn a_kill_hits_all_of_one_job() {
    let mut sh = shell().await;
    let jobs = run_jobs(&mut sh, "98782", "98783").await;
    assert_eq!(ids(&jobs).await, [(1, 1), (3, 5)]);
    assert!(jobs.kill(3).await);
    assert!(with_argument("98783").is_empty());
    assert_eq!(ids(&jobs).await, [(1, 1), (3, 0)]);
    assert!(!jobs.kill(3).await && !jobs.kill(2).await && !jobs.kill(9).await);
    assert_eq!(with_argument("98782").len(), 1);
    assert!(jobs.kill(1).await && with_argument("98782").is_empty());
    assert_eq!(sh.out("echo on").await, "on\n");
}

#[tokio::test]
async fn a_kill_works_while_a_line_runs_and_spares_it() {
    let mut sh = shell().await;
    let jobs = run_jobs(&mut sh, "98776", "98777").await;
    let folder = sh.folder();
    let kill = async {
        eventually("the line runs", || folder.join("runs").exists()).await;
        assert!(jobs.kill(3).await && with_argument("98777").is_empty());
        std::fs::write(folder.join("go"), "").unwrap();
    };
    let line = "touch runs; sleep 98784 & until [ -e go ]; do sleep 0.01; done; echo on";
    let (end, ()) = tokio::join!(sh.run(line), kill);
    assert_eq!((text(&end).0.as_str(), end.jobs), ("on\n", 2));
    assert_eq!(ids(&jobs).await, [(1, 1), (3, 0), (4, 1)]);
}

#[tokio::test]
async fn jobs_outlive_bash_and_end_with_a_restart() {
    let mut sh = shell().await;
    let jobs = sh.jobs();
    sh.run("(while sleep 0.01; do echo tick; done) & exit 3").await;
    assert_eq!(job(&jobs, 1).await.id, 1);
    let mut last = 0;
    for _ in 0..3 {
        let now = loop {
            let now = job(&jobs, 1).await.printed;
            if now > last {
                break now;
            }
        };
        last = now;
        sh.run("exit 1").await;
    }
    assert!(read(&jobs, 1).await.starts_with("tick\ntick\n"));
    sh.restart().await.unwrap();
    assert_eq!(jobs.list().await, [], "a fresh shell has left nothing behind");
    sh.run("sleep 98785 & kill -9 $$").await;
    assert_eq!(job(&jobs, 5).await.pids.len(), 1);
    sh.try_run(b"kill -9 $PPID; sleep 5", Duration::from_secs(20)).await.unwrap_err();
    assert!(jobs.list().await.iter().all(|job| job.pids.is_empty()));
    sh.run("sleep 98786 &").await;
    assert_eq!(job(&jobs, 7).await.pids.len(), 1);
}

#[tokio::test]
async fn orphans_stay_with_their_job() {
    let mut sh = shell().await;
    let jobs = sh.jobs();
    // It forks twice after the end of its line: once while nothing runs, once while another line does.
    let job_line = |number: u32| {
        format!("(until [ -e go{number} ]; do sleep 0.01; done; setsid -f sleep 9879{number}; echo forked) &")
    };
    sh.run(&job_line(1)).await;
    sh.run(&job_line(2)).await;
    std::fs::write(sh.folder().join("go2"), "").unwrap();
    printed(&jobs, 2, "forked\n").await;
    eventually("it has forked", || with_argument("98792").len() == 1).await;
    sh.run("touch go1; until pgrep -fx 'sleep 98791'; do sleep 0.01; done; sleep 0.1").await;
    let list = jobs.list().await;
    let pids = |argument: &str| with_argument(argument).iter().map(|pid| *pid as u32).collect::<Vec<_>>();
    assert_eq!(list.iter().find(|job| job.id == 1).unwrap().pids, pids("98791"), "{list:?}");
    assert_eq!(list.iter().find(|job| job.id == 2).unwrap().pids, pids("98792"), "{list:?}");
    assert!(!list.iter().any(|job| job.id == 3), "{list:?}");
    assert!(jobs.kill(1).await && pids("98791").is_empty() && pids("98792").len() == 1);
}

#[tokio::test]
async fn a_flood_is_kept_at_both_ends_only() {
    let mut sh = shell().await;
    let jobs = sh.jobs();
    sh.run(
        "(until [ -e go ]; do sleep 0.01; done; echo first; head -c 3000000 /dev/zero; echo last) & touch go",
    )
    .await;
    gone(&jobs, 1).await;
    // It may have ended before all that it printed was read.
    for _ in 0..12_000 {
        if job(&jobs, 1).await.printed == 3_000_011 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let output = jobs.read(1).await.unwrap();
    assert!(output.starts_with(b"first\n") && output.ends_with(b"last\n"));
    assert_eq!(job(&jobs, 1).await.printed, 3_000_011);
    let mark = b"bytes left out]\n";
    assert!(output.windows(mark.len()).any(|text| text == mark) && output.len() < 300_000);
}

#[tokio::test]
async fn old_jobs_are_forgotten_and_outputs_go_round() {
    let mut sh = shell().await;
    let jobs = sh.jobs();
    sh.run("sleep 98788 &").await;
    for id in 2..=81 {
        sh.run("sleep 0.02 & true").await;
        // On a busy machine an early one may outlive later ones, and is kept then.
        gone(&jobs, id).await;
    }
    let list = jobs.list().await;
    assert_eq!((list.len(), list[0].id, list[0].pids.len(), list[1].id), (65, 1, 1, 18));
}
