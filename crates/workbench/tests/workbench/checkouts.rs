//! Git that writes files while other requests create names.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use lathe_host::Home;
use lathe_workbench::Workbench;
use lathe_workspace::lock_naming;

fn git(folder: &Path, arguments: &[&str]) {
    let who = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
    let mut git = Command::new("git");
    git.args(arguments).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let ran = git.envs(who.map(|name| (name, "x"))).output().unwrap();
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// Attack on the server, F2: git waited for a thread of the pool under the lock that all threads of the pool waited for.
#[test]
fn a_checkout_ends_while_every_thread_of_the_runtime_waits_for_its_lock() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join("repo");
    std::fs::create_dir(&root).unwrap();
    git(&root, &["init", "-q", "-b", "main"]);
    std::fs::write(root.join("a.txt"), "one\n").unwrap();
    git(&root, &["add", "a.txt"]);
    git(&root, &["commit", "-q", "-m", "one"]);
    std::fs::write(root.join("a.txt"), "two\n").unwrap();
    let bench = Workbench::new(Home::at(folder.path().join("home")));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(4)
        .enable_all()
        .build()
        .unwrap();
    let place = runtime.block_on(bench.git(&root, std::slice::from_ref(&root))).unwrap();
    let one = lock_naming();
    let checkout = runtime.spawn(async move { place.checkout(&["a.txt".to_owned()]).await });
    // What is there is taken away right before the lock is waited for.
    while root.join("a.txt").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let folders: Vec<_> = (0..64)
        .map(|number| {
            let browser = bench.browse(&root).unwrap();
            runtime.spawn(async move { browser.make_folder(&format!("d{number}")).await })
        })
        .collect();
    // They need not all wait by now: those that come later wait for git itself.
    std::thread::sleep(Duration::from_millis(100));
    drop(one);
    assert_eq!(runtime.block_on(checkout).unwrap().unwrap().len(), 1);
    for made in folders {
        runtime.block_on(made).unwrap().unwrap();
    }
    assert_eq!(std::fs::read_to_string(root.join("a.txt")).unwrap(), "one\n");
    assert!((0..64).all(|number| root.join(format!("d{number}")).is_dir()));
}
