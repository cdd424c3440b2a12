//! After a stop nothing more of the line runs, and what it did before lasts.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lathe_shell::{LineEnd, LineExit, LineLimits};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::harness::{TestShell, eventually, shell, text, with_argument};

#[derive(Clone, Copy)]
enum How {
    Timeout,
    Cancel,
}

/// A number of seconds that no other sleep has.
fn long() -> String {
    // Every test is a process of its own under nextest: the number must differ between them too.
    static LAST: AtomicU32 = AtomicU32::new(0);
    format!("9{}{:03}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed))
}

/// Runs a line until it is under way in `folder`, and stops it.
async fn stopped(sh: &mut TestShell, folder: &Path, line: &str, how: How) -> LineEnd {
    let started = folder.join("started");
    let line = format!("cd '{}'; : > started; {line}", folder.display());
    let cancel = CancellationToken::new();
    let limits = LineLimits {
        timeout: match how {
            How::Timeout => Duration::from_millis(1000),
            How::Cancel => Duration::from_secs(600),
        },
        ..LineLimits::default()
    };
    let canceller = async {
        eventually("started", || started.exists()).await;
        sleep(Duration::from_millis(150)).await;
        if let How::Cancel = how {
            cancel.cancel();
        }
    };
    let (end, ()) = tokio::join!(sh.shell.run(line.as_bytes(), limits, None, &cancel), canceller);
    std::fs::remove_file(started).unwrap();
    let end = end.unwrap();
    let is_right = match how {
        How::Timeout => matches!(end.exit, LineExit::TimedOut { .. }),
        How::Cancel => matches!(end.exit, LineExit::Cancelled { .. }),
    };
    assert!(is_right && matches!(end.exit.code(), 137 | 143), "{line}: {:?}", end.exit);
    end
}

/// Tells whether a line has got too far: all lines here do that by making a file whose name begins with `x`.
fn is_marked(folder: &Path) -> bool {
    let files = std::fs::read_dir(folder).unwrap().flatten();
    files.into_iter().any(|file| file.file_name().as_encoded_bytes().starts_with(b"x"))
}

async fn check(line: &str, how: How) {
    let mut sh = shell().await;
    let (old, new) = (long(), long());
    sh.run(&format!("mkdir sub; sleep {old} &")).await;
    let folder = sh.folder().join("sub");
    let line = line.replace("SLEEP", &format!("sleep {new}"));
    let line = format!("export A='1 2'; p=plain; g() {{ echo g; }}; {line}");
    let end = stopped(&mut sh, &folder, &line, how).await;
    assert!(with_argument(&new).is_empty(), "{line}");
    sleep(Duration::from_millis(1500)).await;
    assert!(!is_marked(&folder), "{line}");
    assert_eq!((end.cwd.as_path(), end.jobs), (folder.as_path(), 1), "{line}");
    let next = sh.run("echo $A, $p, $PWD; g").await;
    let expected = format!("1 2, plain, {}\ng\n", folder.display());
    assert_eq!(text(&next).0, expected, "{line}, respawned: {}", end.respawned);
    assert_eq!((next.jobs, next.respawned), (1, false), "{line}");
    assert_eq!(with_argument(&old).len(), 1, "{line}");
    sh.close().await;
    assert!(with_argument(&old).is_empty());
}

async fn check_all(lines: &'static [&'static str]) {
    let mut checks = JoinSet::new();
    for line in lines {
        checks.spawn(check(line, How::Timeout));
        checks.spawn(check(line, How::Cancel));
    }
    while let Some(result) = checks.join_next().await {
        result.unwrap();
    }
}

#[tokio::test]
async fn the_next_command_does_not_run() {
    check_all(&[
        "SLEEP; touch x",
        "SLEEP\ntouch x\n{ :; } > x2",
        "SLEEP || touch x; touch x",
        "! SLEEP && touch x",
        "if ! SLEEP; then touch x; fi; case a in a) touch x;; esac",
        "{ SLEEP; touch x; } > out; { :; } > x2",
        "time SLEEP; touch x",
        "set -e; SLEEP || true; touch x",
        "set -e; SLEEP; touch x",
        "eval 'SLEEP; touch x'; touch x",
        "echo 'SLEEP; touch x' > script; . ./script; touch x",
        "set -o pipefail -u; SLEEP; touch x",
    ])
    .await;
}

#[tokio::test]
async fn loops_and_functions_do_not_go_on() {
    check_all(&[
        "while SLEEP; do touch x; done; touch x",
        "until SLEEP; do touch x; done; touch x",
        "while :; do SLEEP; done; touch x",
        "for i in 1 2; do for ((;;)); do SLEEP; touch x; done; touch x; done; touch x",
        "while :; do :; done; touch x",
        "f() { SLEEP; touch x; }; f; touch x",
        "f() { while :; do SLEEP; done; touch x; }; f; { :; } > x2",
        "f() { local v=1; eval 'SLEEP; touch x'; touch x; }; h() { f; touch x; }; h; touch x",
        "f() { unset FUNCNAME; while :; do SLEEP; done; touch x; }; f; touch x",
    ])
    .await;
}

#[tokio::test]
async fn other_shells_of_the_line_do_not_go_on() {
    check_all(&[
        "(SLEEP; touch x); touch x",
        "(SLEEP; touch x) & (SLEEP; touch x); touch x",
        "((SLEEP; touch x); touch x); touch x",
        "bash -c 'SLEEP; touch x'; touch x",
        "sh -c 'SLEEP; touch x' || touch x",
        "setsid bash -c 'SLEEP; touch x'; touch x",
        "setsid -f bash -c 'SLEEP; touch x'; SLEEP; touch x",
        "nohup bash -c 'SLEEP; touch x'; touch x",
        "timeout 999 bash -c 'SLEEP; touch x'; touch x",
        "timeout 999 bash -c 'SLEEP; touch x' & wait; touch x",
        "echo 1 2 | xargs -n1 sh -c 'SLEEP; touch x'; touch x",
        "trap '' TERM; (SLEEP; touch x); touch x",
        "bash -ic 'SLEEP; touch x'; touch x",
        "bash -c 'trap exit TERM; SLEEP; touch x'; touch x",
    ])
    .await;
}

#[tokio::test]
async fn pipelines_and_waits_do_not_go_on() {
    check_all(&[
        "SLEEP | cat; touch x",
        "SLEEP | while read l; do touch x; done; touch x",
        "(SLEEP; touch x) | cat; touch x",
        "shopt -s lastpipe; echo 1 | while read l; do SLEEP; touch x; done; touch x",
        "SLEEP & wait; touch x",
        "SLEEP & wait $!; touch x",
        "coproc SLEEP; read -u ${COPROC[0]} l; touch x",
        "cat <(SLEEP; touch x); touch x",
        "read l < <(SLEEP); touch x",
        "while read l; do SLEEP; touch x; done < <(echo 1; SLEEP); touch x",
        "mkfifo fifo; cat fifo; touch x",
    ])
    .await;
}

#[tokio::test]
async fn a_command_whose_words_are_not_known_does_not_run() {
    check_all(&[
        "v=$(SLEEP); touch x",
        "touch x$(SLEEP)",
        "touch x \"$(SLEEP; echo 1)\" `touch x`",
        "touch x $(SLEEP >/dev/null)",
        "echo $(SLEEP) > x",
        "f() { local v=$(SLEEP); touch x; }; f; touch x",
        "for i in $(SLEEP) 1; do touch x; done",
        "case $(SLEEP) in *) touch x;; esac",
        "[[ $(SLEEP) ]] || touch x",
        "echo $(( $(SLEEP)1 + 1 )); touch x",
        "a=($(SLEEP)); touch x",
        "cat <<E > x$(SLEEP)\ntext\nE\ntouch x",
        "cat > out <<E\n$(SLEEP)\nE\ntouch x",
        "read l <<< $(SLEEP); touch x",
        "(touch x $(SLEEP)); touch x",
    ])
    .await;
}

#[tokio::test]
async fn traps_of_the_line_do_not_run() {
    check_all(&[
        "trap 'touch x' ERR; SLEEP; touch x",
        "trap 'touch x' INT; SLEEP; touch x",
        "trap 'touch x' INT EXIT TERM; SLEEP; trap - EXIT; touch x",
        "trap 'touch x' EXIT; f() { SLEEP; touch x; }; f; touch x",
        "trap 'touch x' CHLD; SLEEP; touch x",
    ])
    .await;
}

#[tokio::test]
async fn bash_is_not_replaced_for_a_command_outside_of_functions() {
    let mut sh = shell().await;
    let folder = sh.folder();
    sh.run("shopt -s nullglob; set -f; exec 3>three; trap 'echo bye' EXIT; true & wait").await;
    let pid = sh.out("echo $$").await;
    for line in ["sleep 987500; :", "while :; do sleep 987500; done", "sleep 987500 | cat"] {
        let end = stopped(&mut sh, &folder, line, How::Timeout).await;
        assert!(!end.respawned, "{line}");
        assert_eq!(sh.out("echo $?").await, format!("{}\n", end.exit.code()));
    }
    let end = sh.run("echo $$; shopt nullglob; echo $-; echo 3 >&3; cat three").await;
    let (out, err) = text(&end);
    assert!(out.starts_with(&pid) && out.ends_with("\n3\n") && err.is_empty(), "{out}{err}");
    assert!(out.contains("nullglob       \ton") && out.contains('f'), "{out}");
    assert_eq!(sh.out("exit").await, "bye\n");
}

#[tokio::test]
async fn what_is_local_to_a_function_does_not_outlive_it() {
    let mut sh = shell().await;
    let folder = sh.folder();
    let line = "export A=global B=global; p=global; m=(1 2); declare -A k=([a]=b); readonly r=1; n=$'x\ny'
        outer() { local -x A=local B=local only=1; local p=local m=local; inner; }
        inner() { local A=inner; local -r fixed=1; local -A k=([c]=d); sleep 987501; }
        B=temporary outer";
    let end = stopped(&mut sh, &folder, line, How::Timeout).await;
    assert!(end.respawned);
    assert_eq!(
        sh.out("echo $A $B $p ${m[@]} ${k[a]} $r \"$n\" ${only-no} ${fixed-no} ${k[c]-no}; declare -F; env | grep ^A")
            .await,
        "global global global 1 2 b 1 x\ny no no no\ndeclare -f inner\ndeclare -f outer\nA=global\n"
    );
}

#[tokio::test]
async fn a_line_that_takes_the_signal_away_costs_its_state_only() {
    for line in [
        "trap '' STKFLT; sleep 987502; touch x",
        "trap - STKFLT; sleep 987502; touch x",
        "exec bash -c 'sleep 987502; touch x'",
    ] {
        let mut sh = shell().await;
        sh.run("export A=before").await;
        let folder = sh.folder();
        let end = stopped(&mut sh, &folder, &format!("export A=after; {line}"), How::Cancel).await;
        assert!(end.respawned, "{line}");
        sleep(Duration::from_millis(500)).await;
        assert!(!is_marked(&folder) && with_argument("987502").is_empty(), "{line}");
        assert_eq!(sh.out("echo $A; pwd").await, format!("before\n{}\n", folder.display()));
    }
}

#[tokio::test]
async fn traps_work_in_ordinary_lines() {
    let mut sh = shell().await;
    assert_eq!(
        sh.out("trap 'echo int' INT; kill -INT $$; trap 'echo usr' USR1; kill -USR1 $$; echo on").await,
        "int\nusr\non\n"
    );
    assert_eq!(sh.out("kill -INT $$; (trap 'echo sub' EXIT)").await, "int\nsub\n");
    // Without a stop the signal of the driver does nothing.
    assert_eq!(sh.out("kill -STKFLT $$; echo on").await, "on\n");
}

#[tokio::test]
async fn a_stop_at_any_moment_is_safe() {
    let lines = [
        "while :; do /bin/true; echo > mark; done",
        "while :; do v=$(/bin/true; echo 1); /bin/echo $v > mark; done",
        "f() { local A=2; while :; do (/bin/true; echo) | cat > mark; done; }; f",
        "while :; do /bin/true & wait; echo > mark; done",
    ];
    let mut checks = JoinSet::new();
    for line in lines {
        checks.spawn(async move {
            let mut sh = shell().await;
            let (mark, begun) = (sh.folder().join("mark"), sh.folder().join("begun"));
            for number in 0..12 {
                let line = format!("export A={number}; echo {number} > begun; {line}");
                sh.run_for(&line, Duration::from_millis(200 + 7 * number)).await;
                let time = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
                let before = time(&mark);
                sleep(Duration::from_millis(60)).await;
                assert_eq!(time(&mark), before, "{line}");
                // On a busy machine the time may be up before the line has begun.
                let has_begun = std::fs::read_to_string(&begun).unwrap_or_default() == format!("{number}\n");
                let stays = sh.out("echo $A").await;
                assert!(!has_begun || stays == format!("{number}\n"), "{line}: {stays}");
            }
        });
    }
    while let Some(result) = checks.join_next().await {
        result.unwrap();
    }
}
