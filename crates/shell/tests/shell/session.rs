//! Agent commands and the session they belong to: names, faults, ends.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lathe_shell::{LineExit, LineLimits, Shell};
use lathe_workspace::LocalProcesses;
use tokio_util::sync::CancellationToken;

use crate::harness::{
    all, ax_of, descriptors, eventually, options, parent, pids, shell, started, text, with_argument,
};
use crate::host::{TestHost, commands, session_folder, shell_with_commands};
use crate::io::resident;

#[tokio::test]
async fn an_unknown_name_is_told_in_bashs_own_words() {
    let (mut with, mut without) = (commands().await, shell().await);
    for line in [
        "nope",
        "true\nnope 1 2; echo $?",
        "f() {\n  nope\n}\n\nf",
        "nope | cat; nope 2>/dev/null; echo ${PIPESTATUS[@]}",
        "(nope); x=$(nope); ! nope",
        "set -u; nope; set +u",
        "trap 'echo bye' EXIT; nope; trap - EXIT",
        "printf 'true\\nnope\\n' > script; . ./script; bash script",
        "/no/such/program; ./nope; ''",
        "set -o posix; nope; set +o posix",
        "nope & wait $!; echo $?",
        "set -e; nope; echo never",
    ] {
        assert_eq!(all(&with.run(line).await), all(&without.run(line).await), "{line}");
    }
    let (code, _, err) = all(&with.run("nope").await);
    assert!(
        code == 127 && err.starts_with("bash: line ") && err.ends_with(": nope: command not found\n"),
        "{err}"
    );
}

#[tokio::test]
async fn names_with_a_colon_need_no_file() {
    let mut sh = commands().await;
    for (line, expected) in [
        ("field:git:commit -m 'a b'", "<field:git:commit> <-m> <a b>\n"),
        ("a: ''", "<a:> <>\n"),
        ("echo x | a:b | upper", "<A:B>\n"),
        ("x=$(a:b 1); echo $x", "<a:b> <1>\n"),
        ("bash -c 'a:b nested; true'", "<a:b> <nested>\n"),
        ("bash -c 'bash -c a:b'", "<a:b>\n"),
        ("set -eu; a:b; set +eu", "<a:b>\n"),
        ("set -o posix; a:b; set +o posix", "<a:b>\n"),
        ("(a:b); for i in 1 2; do a:b $i; done", "<a:b>\n<a:b> <1>\n<a:b> <2>\n"),
        ("command_not_found_handle a:b 1; echo on", "<a:b> <1>\non\n"),
        ("a:b & wait $!", "<a:b>\n"),
    ] {
        assert_eq!(all(&sh.run(line).await), (0, expected.into(), String::new()), "{line}");
    }
}

#[tokio::test]
async fn read_is_bashs_own_unless_it_names_a_file() {
    let mut sh = commands().await;
    for (line, expected) in [
        ("read v <<< x; echo $v", "x\n"),
        ("read <<< x; echo $REPLY", "x\n"),
        ("printf 'a b\\nc d\\n' | while read -r l m; do echo \"$m $l\"; done", "b a\nd c\n"),
        ("IFS=, read -ra a <<< 1,2,3; echo ${#a[@]}; echo \"[$IFS]\"", "3\n[ \t\n]\n"),
        ("IFS=, read x y <<< 1,2; echo $y$x", "21\n"),
        ("IFS=/ read x y <<< 1/2; echo $y$x", "21\n"),
        ("read -p 'a.b/c ' v <<< x; echo $v", "x\n"),
        ("read -t 0.1 v < <(sleep 1); echo $?", "142\n"),
        ("read -t0.5 v <<< x; echo $v", "x\n"),
        ("read -d . v <<< x.y; echo $v", "x\n"),
        ("read -rd '' v <<< x; echo \"$? $v\"", "1 x\n"),
        ("read -n 1 v <<< xy; echo $v", "x\n"),
        ("read -u 3 v 3<<< x; echo $v", "x\n"),
        ("read -- v <<< x; echo $v", "x\n"),
        ("read v; echo $?", "1\n"),
        ("f() { local v; read v <<< in; echo $v; }; v=out; f; echo $v", "in\nout\n"),
        ("set -eu; read v <<< x; read || true; echo $v; set +eu", "x\n"),
        ("set -o posix; IFS=, read -ra a <<< 1,2; echo ${#a[@]} \"[$IFS]\"; set +o posix", "2 [ \t\n]\n"),
        ("printf 'read v\\necho $v\\n' > script; bash script <<< x; . ./script <<< y", "x\ny\n"),
        ("bash -c 'read a.b <<< x' 2>/dev/null; echo $?", "1\n"),
        ("read a.txt", "<read> <a.txt>\n"),
        ("read ./Makefile --offset 3 --limit 1", "<read> <./Makefile> <--offset> <3> <--limit> <1>\n"),
        ("read /etc/x a", "<read> </etc/x> <a>\n"),
        ("read ~nobody_such", "<read> <~nobody_such>\n"),
        ("read 'my file.txt' --offset=-5", "<read> <my file.txt> <--offset=-5>\n"),
        ("read a.b --offset -5", "<read> <a.b> <--offset> <-5>\n"),
        ("read Makefile --limit 2", "<read> <Makefile> <--limit> <2>\n"),
        ("IFS=,; read --help; unset IFS", "<read> <--help>\n"),
        ("IFS=,; read b a.c; unset IFS", "<read> <b> <a.c>\n"),
        ("read a.b | upper; x=$(read a.b); echo $x", "<READ> <A.B>\n<read> <a.b>\n"),
        ("set -o posix; read a.b; set +o posix", "<read> <a.b>\n"),
    ] {
        assert_eq!(all(&sh.run(line).await), (0, expected.into(), String::new()), "{line}");
    }
    let (code, _, err) = all(&sh.run("read -z").await);
    assert!(code == 2 && err.starts_with("bash: line ") && err.contains("read: -z: invalid option"), "{err}");
    let (code, _, err) = all(&sh.run("set -x; read -r v <<< x; set +x").await);
    assert!(code == 0 && err.lines().count() <= 5, "{err}");
}

#[tokio::test]
async fn jobs_with_options_is_bashs_own() {
    let mut sh = commands().await;
    for (line, expected) in [
        ("jobs", "<jobs>\n"),
        ("jobs list", "<jobs> <list>\n"),
        ("jobs read 3; jobs kill 3; jobs --help", "<jobs> <read> <3>\n<jobs> <kill> <3>\n<jobs> <--help>\n"),
        ("sleep 0.3 & [ $(jobs -p) = $! ] && echo same; jobs -l | grep -c sleep; wait", "same\n1\n"),
        ("sleep 0.1 & jobs %1 > f; wait; grep -c Running f", "1\n"),
        ("set -eu; jobs; jobs -l; set +eu", "<jobs>\n"),
        ("bash -c jobs", ""),
        ("sleep 971236 & n=$(jobs -rp | wc -l); echo $n; kill $!", "1\n"),
    ] {
        assert_eq!(all(&sh.run(line).await), (0, expected.into(), String::new()), "{line}");
    }
}

#[tokio::test]
async fn they_outlive_bash_and_its_supervisor() {
    let mut sh = commands().await;
    let folder = session_folder(&mut sh).await;
    let line = "face; args 1; a:b; read a.b; read v <<< x; echo $v; bash -c a:b";
    let expected = "Session Nothing 022\n<args> <1>\n<a:b>\n<read> <a.b>\nx\n<a:b>\n";
    assert_eq!(sh.out(line).await, expected);
    assert_eq!(sh.run("exit 3").await.exit, LineExit::Code(3));
    assert_eq!(all(&sh.run(line).await), (0, expected.into(), String::new()));
    sh.run("kill -9 $$").await;
    assert_eq!(sh.out(line).await, expected);
    sh.restart().await.unwrap();
    assert_eq!(sh.out(line).await, expected);
    sh.try_run(b"kill -9 $PPID; sleep 5", Duration::from_secs(20)).await.unwrap_err();
    assert_eq!(sh.out(line).await, expected);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(sh.out(line).await, expected);
    assert_eq!(session_folder(&mut sh).await, folder);
    // A function of the line's own lasts longer than bash.
    sh.run("read() { echo mine; }").await;
    sh.run("exit").await;
    assert_eq!(sh.out("read a.b").await, "mine\n");
    sh.close().await;
    assert!(!folder.exists());
}

#[tokio::test]
async fn the_folder_is_private_and_goes_with_the_shell() {
    let mut sh = commands().await;
    let folder = session_folder(&mut sh).await;
    let mode = |name: &str| std::fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("bin"), mode("s")), (0o700, 0o700, 0o600));
    assert!(folder.as_os_str().len() < 90);
    drop(sh);
    eventually("the folder is gone", || !folder.exists()).await;
}

#[tokio::test]
async fn only_descendants_of_the_session_are_served() {
    let (mut sh, seen) = shell_with_commands().await;
    let folder = session_folder(&mut sh).await;
    let args = folder.join("bin/args");
    let foreign =
        tokio::task::spawn_blocking(move || std::process::Command::new(args).arg("1").output().unwrap());
    let foreign = foreign.await.unwrap();
    assert_eq!((foreign.status.code(), foreign.stdout.as_slice()), (Some(126), b"".as_slice()));
    assert_eq!(foreign.stderr, b"args: refused: the caller does not belong to this session\n");
    assert_eq!(seen.begun.load(Ordering::SeqCst), 0);
    // Orphans and other sessions belong to it all the same.
    assert_eq!(
        sh.out("(setsid args 1 > f &); until [ -s f ]; do sleep 0.01; done; cat f").await,
        "<args> <1>\n"
    );
}

#[tokio::test]
async fn one_that_sees_other_files_is_told_so() {
    let mut sh = commands().await;
    if sh.run("unshare -m true").await.exit.code() != 0 {
        return;
    }
    let (code, out, err) = all(&sh.run("unshare -m args 1").await);
    assert_eq!((code, out.as_str()), (125, ""));
    assert!(err.starts_with("args: it cannot be used in another mount namespace"), "{err}");
    let line = "mkdir -p r; mount --rbind / r && { /usr/sbin/chroot r \"${PATH%%:*}/args\" 1; echo $?; umount -l r; }";
    let line = format!("unshare -m bash -c '{line}'");
    let (_, out, err) = all(&sh.run(&line).await);
    assert!(out.ends_with("125\n"), "{out}{err}");
}

#[tokio::test]
async fn nonsense_on_the_socket_hurts_nobody() {
    let (mut sh, seen) = shell_with_commands().await;
    let socket = session_folder(&mut sh).await.join("s");
    let say = |bytes: &'static [u8]| {
        let socket = socket.clone();
        tokio::task::spawn_blocking(move || {
            let mut stream = UnixStream::connect(socket).unwrap();
            stream.write_all(bytes).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut said = Vec::new();
            let _ = stream.read_to_end(&mut said);
            said
        })
    };
    for bytes in [b"".as_slice(), b"C", b"C\xff\xff\xff\xff", b"I\0\0\0\0", b"C\x01\0\0\0\x09", &[0xff; 4096]]
    {
        let said = say(bytes).await.unwrap();
        assert!(said.ends_with(&[b'X', 1, 0, 0, 0, 125]), "{said:?}");
    }
    // A silent one does not prevent others from being served.
    let _silent: Vec<UnixStream> = (0..100).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    assert_eq!(sh.out("args 1").await, "<args> <1>\n");
    assert_eq!(seen.begun.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_lost_session_is_an_exit_code() {
    let mut sh = commands().await;
    let folder = session_folder(&mut sh).await;
    let (code, out, err) = all(&sh.run(&format!("rm {}/s; args 1", folder.display())).await);
    assert_eq!((code, out.as_str()), (125, ""));
    assert!(err.starts_with("args: the session does not answer: "), "{err}");
    assert_eq!(sh.out("args 1").await, "<args> <1>\n", "mended by the next line");
    // One that is waiting when its host goes learns of it too.
    let line = format!(
        "(slow 2> err; echo $? > code) & until pgrep -x slow; do sleep 0.01; done; rm {}/s",
        folder.display()
    );
    sh.run(&line).await;
    assert_eq!(
        sh.out("until [ -s code ]; do sleep 0.01; done; cat code err").await.lines().next(),
        Some("125")
    );
    let line = format!("ln -s {}/bin/args elsewhere; ./elsewhere", folder.display());
    assert_eq!(sh.run(&line).await.exit.code(), 125);
    let ax = folder.join("bin/ax").display().to_string();
    assert_eq!(sh.run(&format!("{ax} 2>/dev/null")).await.exit.code(), 2);
    assert_eq!(sh.out(&format!("{ax} run any:thing 1")).await, "<any:thing> <1>\n");
}

#[tokio::test]
async fn a_dropped_shell_ends_its_commands() {
    let (mut sh, seen) = shell_with_commands().await;
    let line = "slow & slow | cat & (setsid slow &) ; until [ $(pgrep -cx slow) -ge 3 ]; do sleep 0.01; done; sleep 98771";
    let run = sh.try_run(line.as_bytes(), Duration::from_secs(600));
    tokio::select! {
        end = run => panic!("{end:?}"),
        () = started("98771") => {}
    }
    eventually("all have begun", || seen.begun.load(Ordering::SeqCst) == 3).await;
    sh.close().await;
    assert_eq!(seen.cancelled.load(Ordering::SeqCst), 3);
    assert!(with_argument("98771").is_empty());
}

/// Not a test by itself: the host that the next test kills.
#[tokio::test]
async fn host_with_commands_to_be_killed() {
    let Some(code) = std::env::var_os("LATHE_TEST_CODE") else { return };
    let mut options = options("/".as_ref());
    options.env.push(("CODE".into(), code));
    options.commands = Some(Arc::new(TestHost::default()));
    let mut shell = Shell::start(Arc::new(LocalProcesses), options).await.unwrap();
    let limits = LineLimits { timeout: Duration::from_secs(600), ..LineLimits::default() };
    // Deaf to TERM, so that it lives to see that its host has gone.
    let line =
        "(trap '' TERM; slow 2>/dev/null; echo $? > $CODE) & setsid slow 98772 & sleep 0.3; sleep 98773";
    shell.run(line.as_bytes(), limits, None, &CancellationToken::new()).await.unwrap();
}

#[tokio::test]
async fn commands_of_a_killed_host_end_and_so_does_the_folder() {
    let code = tempfile::NamedTempFile::new().unwrap();
    let mut host = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "session::host_with_commands_to_be_killed", "--nocapture"])
        .env("LATHE_TEST_CODE", code.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    started("98773").await;
    let slow = with_argument("98772")[0];
    let path = std::fs::read(format!("/proc/{slow}/cmdline")).unwrap();
    assert!(path.starts_with(b"slow\0"), "{path:?}");
    let environment = std::fs::read(format!("/proc/{slow}/environ")).unwrap();
    let path =
        environment.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(b"PATH=")).unwrap();
    let bin = std::str::from_utf8(path.split(|byte| *byte == b':').next().unwrap()).unwrap();
    let folder = std::path::Path::new(bin).parent().unwrap();
    assert!(folder.join("s").exists());
    host.kill().unwrap();
    host.wait().unwrap();
    eventually("all are gone", || with_argument("98772").is_empty() && with_argument("98773").is_empty())
        .await;
    eventually("the folder is gone", || !folder.exists()).await;
    assert_eq!(std::fs::read_to_string(code.path()).unwrap(), "125\n");
}

#[tokio::test]
async fn a_held_clock_does_not_run_out() {
    let mut sh = commands().await;
    let end = sh.run_for("hold 1200; args 1", Duration::from_millis(600)).await;
    assert_eq!((end.exit, text(&end).0.as_str()), (LineExit::Code(0), "<args> <1>\n"));
    let end = sh.run_for("hold 300; sleep 98774", Duration::from_millis(400)).await;
    assert!(matches!(end.exit, LineExit::TimedOut { .. }) && end.elapsed > Duration::from_millis(690));
    assert!(
        sh.run_for("hold 100 & hold 1000 & wait", Duration::from_millis(700)).await.exit == LineExit::Code(0)
    );
}

#[tokio::test]
async fn the_line_of_a_command_is_known() {
    let (mut sh, seen) = shell_with_commands().await;
    sh.run("args; args").await;
    sh.run("(sleep 0.2; args > /dev/null; touch late) &").await;
    let late = sh.folder().join("late");
    eventually("the background has asked", || late.exists()).await;
    sh.run("args").await;
    assert_eq!(*seen.lines.lock().unwrap(), [Some(1), Some(1), Some(2), Some(3)]);
}

#[tokio::test]
async fn more_commands_than_are_served_at_once_wait() {
    let (mut sh, seen) = shell_with_commands().await;
    let line = "for i in {1..600}; do hold 500 & done; for j in $(builtin jobs -p); do wait $j || echo failed; done; args on";
    let end = sh.run_for(line, Duration::from_secs(60)).await;
    assert_eq!(all(&end), (0, "<args> <on>\n".into(), String::new()));
    assert_eq!(seen.begun.load(Ordering::SeqCst), 601);
}

/// Shells at once, each with many commands, nothing mixed up and nothing left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_shells_at_once() {
    let count = lathe_testkit::size(50, 1000);
    let me = std::process::id() as i32;
    let before = descriptors(me);
    // What is made once is there after the first round.
    eight_shells(count).await;
    let warm = resident();
    eight_shells(count).await;
    let grown = resident().saturating_sub(warm);
    assert!(grown < 16 * 1024, "{grown} KiB more after as much again");
    let children = || pids().iter().filter(|pid| parent(**pid) == me).count();
    eventually("no child is left", || children() == 0).await;
    eventually("no descriptor is left", || descriptors(me) <= before + 2).await;
}

async fn eight_shells(count: usize) {
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        tasks.spawn(async move {
            let (mut sh, seen) = shell_with_commands().await;
            let ax = ax_of(&mut sh).await;
            let line = format!("for ((i = 0; i < {count}; i += 5)); do args {number} $i; args {number}-$i | upper; x=$(args $i); echo \"$x\"; (args sub); args bg & wait; done");
            let mut expected = String::new();
            for i in (0..count).step_by(5) {
                expected += &format!("<args> <{number}> <{i}>\n<ARGS> <{number}-{i}>\n<args> <{i}>\n<args> <sub>\n<args> <bg>\n");
            }
            let end = sh.try_run(line.as_bytes(), Duration::from_secs(300)).await.unwrap();
            assert_eq!(all(&end), (0, expected, String::new()));
            assert_eq!(seen.begun.load(Ordering::SeqCst), count / 5 * 6);
            assert_eq!(sh.run("true").await.jobs, 0);
            let held = descriptors(ax);
            assert!(held < 24, "{held}");
            sh.close().await;
        });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
}
