//! State that lasts from line to line.

use crate::harness::{all, shell, text};

#[tokio::test]
async fn folder_variables_and_functions_last() {
    let mut sh = shell().await;
    let end = sh.run("mkdir sub; cd sub; export A=1; b=2; f() { echo f-$1; }").await;
    assert_eq!(end.cwd, sh.folder().join("sub"));
    assert_eq!(sh.cwd(), sh.folder().join("sub"));
    assert_eq!(
        sh.out("pwd; echo $A $b; f x; env | grep ^A=").await,
        format!("{}\n1 2\nf-x\nA=1\n", sh.folder().join("sub").display())
    );
}

#[tokio::test]
async fn the_exit_code_of_the_last_line_is_seen() {
    let mut sh = shell().await;
    for code in [1, 0, 7, 255, 130] {
        assert_eq!(sh.run(&format!("(exit {code})")).await.exit.code(), code);
        assert_eq!(sh.out("echo $?").await, format!("{code}\n"));
    }
    sh.run("trap 'echo failed' ERR").await;
    assert_eq!(all(&sh.run("(exit 4)").await), (4, "failed\n".into(), String::new()));
    assert_eq!(sh.out("echo $?").await, "4\n");
}

#[tokio::test]
async fn loop_words_and_readonly_are_harmless_outside_of_loops() {
    let mut sh = shell().await;
    for line in ["break", "continue", "return 3", "readonly x=1; x=2", "break 9; continue 9", "echo $((1/0))"]
    {
        sh.run(line).await;
        assert_eq!(sh.out("echo on").await, "on\n", "{line}");
    }
    assert_eq!(sh.out("for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done").await, "1\n3\n");
}

#[tokio::test]
async fn functions_and_aliases_cannot_take_the_place_of_builtins() {
    let mut sh = shell().await;
    sh.run("printf() { :; }; eval() { :; }; export() { :; }; cd() { :; }").await;
    assert_eq!(sh.out("echo on").await, "on\n");
    sh.run("unset -f printf eval export cd; shopt -s expand_aliases; alias builtin=false eval=false printf=false").await;
    assert_eq!(sh.out("echo on; unalias -a").await, "on\n");
}

#[tokio::test]
async fn a_made_up_pwd_does_not_fool_anybody() {
    let mut sh = shell().await;
    let folder = sh.folder();
    assert_eq!(sh.run("PWD=/fake").await.cwd, folder);
    assert_eq!(sh.run("exit 1").await.cwd, folder);
    assert_eq!(sh.run("true").await.cwd, folder);
}

#[tokio::test]
async fn a_deleted_folder_is_told_by_its_parent() {
    let mut sh = shell().await;
    let folder = sh.folder();
    let end = sh.run("mkdir -p a/b; cd a/b; rmdir ../b").await;
    assert_eq!(end.cwd, folder.join("a"));
    assert_eq!(sh.run("exit 1").await.cwd, folder.join("a"));
    assert_eq!(sh.out("pwd").await, format!("{}\n", folder.join("a").display()));
}

#[tokio::test]
async fn shell_options_do_not_disturb_the_driver() {
    let mut sh = shell().await;
    sh.run("set -C; set -u; set -f; set -o pipefail; set -o posix; umask 777; IFS=0123").await;
    assert_eq!(sh.out("echo on").await, "on\n");
    assert_eq!(sh.run("set -x; echo on").await.exit.code(), 0);
    let (out, err) = text(&sh.run("echo x").await);
    assert_eq!((out.as_str(), err.as_str()), ("x\n", "++ echo x\n"));
}

#[tokio::test]
async fn descriptors_opened_by_a_line_last_and_hurt_nobody() {
    let mut sh = shell().await;
    sh.run("exec 3>three 10>ten 11>eleven 12>twelve 199>more; exec 255>&-").await;
    assert_eq!(sh.out("echo deep >&3; cat three; echo on").await, "deep\non\n");
}

#[tokio::test]
async fn traps_outside_of_lines_can_neither_read_the_script_nor_print() {
    let mut sh = shell().await;
    sh.run("trap 'cat; echo noise' DEBUG; trap 'cat; echo noise' CHLD").await;
    sh.run("sleep 0.05 &").await;
    tokio::time::sleep(std::time::Duration::from_millis(150)).await;
    assert!(sh.out("trap - DEBUG CHLD; echo on").await.ends_with("on\n"));
    assert_eq!(sh.out("echo on").await, "on\n");
}

#[tokio::test]
async fn restart_gives_the_first_folder_and_environment_and_ends_old_processes() {
    let mut sh = shell().await;
    sh.run("export A=1; mkdir d; cd d; f() { :; }; nohup sleep 98710 & setsid -f sleep 98710").await;
    crate::harness::started("98710").await;
    sh.restart().await.unwrap();
    assert!(crate::harness::with_argument("98710").is_empty());
    assert_eq!(sh.cwd(), sh.shell.cwd());
    let end = sh.run("pwd; echo ${A-none}; type -t f; echo $0").await;
    assert_eq!(text(&end).0, format!("{}\nnone\nbash\n", sh.folder().display()));
    assert!(!end.respawned);
}

#[tokio::test]
async fn two_shells_do_not_mix() {
    let (mut one, mut two) = (shell().await, shell().await);
    one.run("X=one; cd /").await;
    two.run("X=two; cd /usr").await;
    let both = tokio::join!(one.run("sleep 0.1; echo $X $PWD"), two.run("sleep 0.1; echo $X $PWD"));
    assert_eq!((text(&both.0).0.as_str(), text(&both.1).0.as_str()), ("one /\n", "two /usr\n"));
    one.close().await;
    assert_eq!(two.out("echo $X").await, "two\n");
}
