//! Lines that take bash with them.

use lathe_shell::LineExit;

use crate::harness::{all, ax_of, eventually, shell, stat, text};

#[tokio::test]
async fn after_exit_the_next_line_finds_folder_environment_and_functions() {
    let mut sh = shell().await;
    sh.run("mkdir d; cd d; export A=$'two\\nlines \"and\" quotes'; f() { echo \"f: $A\"; }; export -f f; unset HOME; umask 027").await;
    let end = sh.run("echo last; exit 3").await;
    assert_eq!((end.exit, end.respawned, text(&end).0.as_str()), (LineExit::Code(3), true, "last\n"));
    let expected = format!("{}\nf: two\nlines \"and\" quotes\nnone 0027\n", sh.folder().join("d").display());
    let end = sh.run("pwd; bash -c f; echo ${HOME-none} $(umask)").await;
    assert_eq!((text(&end).0, end.respawned), (expected, false));
    assert_eq!(sh.out("cd - >/dev/null; pwd").await, format!("{}\n", sh.folder().display()));
}

#[tokio::test]
async fn state_survives_many_deaths_in_a_row() {
    let mut sh = shell().await;
    sh.run("export A=kept").await;
    for code in 0..20 {
        assert_eq!(sh.run(&format!("export N={code}; exit {code}")).await.exit, LineExit::Code(code));
    }
    assert_eq!(sh.out("echo $A ${N-none}").await, "kept none\n");
}

#[tokio::test]
async fn set_e_and_a_failure() {
    let mut sh = shell().await;
    sh.run("export A=1").await;
    let end = sh.run("set -e; echo before; false; echo after").await;
    assert_eq!((all(&end), end.respawned), ((1, "before\n".into(), String::new()), true));
    assert_eq!(sh.out("false; echo on $A").await, "on 1\n");
}

#[tokio::test]
async fn set_u_and_an_unset_variable() {
    let mut sh = shell().await;
    let end = sh.run("set -u; echo $nope; echo after").await;
    let (code, out, err) = all(&end);
    assert_eq!((code, out.as_str(), end.respawned), (1, "", true));
    assert!(err.contains("nope: unbound variable"), "{err}");
    assert_eq!(sh.out("echo on$nope").await, "on\n");
}

#[tokio::test]
async fn kill_9_of_the_shell() {
    let mut sh = shell().await;
    sh.run("export A=1").await;
    let end = sh.run("echo before; kill -9 $$; echo after").await;
    assert_eq!((end.exit, text(&end).0.as_str()), (LineExit::ShellKilled { signal: 9 }, "before\n"));
    assert_eq!(end.exit.code(), 137);
    assert_eq!(sh.out("echo $A").await, "1\n");
}

#[tokio::test]
async fn exec_of_a_program() {
    let mut sh = shell().await;
    assert_eq!(sh.run("exec true").await.exit, LineExit::Code(0));
    let end = sh.run("exec sh -c 'sleep 0.2; echo from exec; exit 9'").await;
    assert_eq!(all(&end), (9, "from exec\n".into(), String::new()));
    assert_eq!(sh.run("exec /no/such/program").await.exit, LineExit::Code(127));
    assert_eq!(sh.out("echo on").await, "on\n");
}

#[tokio::test]
async fn an_exit_trap_runs_and_prints() {
    let mut sh = shell().await;
    assert_eq!(all(&sh.run("trap 'echo bye' EXIT; exit 4").await), (4, "bye\n".into(), String::new()));
    sh.run("trap 'echo later' EXIT").await;
    assert_eq!(sh.out("exit").await, "later\n");
}

#[tokio::test]
async fn background_jobs_outlive_their_shell() {
    let mut sh = shell().await;
    sh.run("sleep 98720 &").await;
    let end = sh.run("exit 1").await;
    assert_eq!(end.jobs, 1);
    assert_eq!(sh.run("true").await.jobs, 1);
    sh.close().await;
    assert!(crate::harness::with_argument("98720").is_empty());
}

#[tokio::test]
async fn a_shell_that_dies_between_lines_is_replaced() {
    let mut sh = shell().await;
    sh.run("export A=1; cd /usr").await;
    let bash: i32 = sh.out("echo $$; (sleep 0.1; kill -9 $$) &").await.trim().parse().unwrap();
    eventually("bash is gone", || stat(bash).1 == 0).await;
    let end = sh.run("echo $A $PWD").await;
    assert_eq!((text(&end).0.as_str(), end.respawned), ("1 /usr\n", true));
}

#[tokio::test]
async fn a_lost_supervisor_is_said_and_replaced() {
    let mut sh = shell().await;
    sh.run("cd /usr").await;
    let ax = ax_of(&mut sh).await;
    let error =
        sh.try_run(format!("kill -9 {ax}; sleep 5").as_bytes(), crate::harness::SOON).await.unwrap_err();
    assert!(error.to_string().contains("supervisor ended"), "{error}");
    let end = sh.run("pwd").await;
    assert_eq!((text(&end).0.as_str(), end.respawned), ("/usr\n", true));
}

#[tokio::test]
async fn a_cleaned_up_temporary_folder_is_made_anew() {
    let mut sh = shell().await;
    let ax = ax_of(&mut sh).await;
    let answers = std::fs::read_dir(format!("/proc/{ax}/fd")).unwrap().flatten();
    let answers =
        answers.filter_map(|fd| std::fs::read_link(fd.path()).ok()).find(|to| to.ends_with("a")).unwrap();
    std::fs::remove_dir_all(answers.parent().unwrap()).unwrap();
    assert_eq!(sh.out("echo on").await, "on\n");
    sh.close().await;
    assert!(!answers.parent().unwrap().exists());
}
