//! Death at any moment: the next process that opens the folder finds all old or all new.
//!
//! The test starts itself as a child that changes files without end, and kills it when a given number of events has
//! happened in the folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lathe_testkit::size;
use lathe_workspace::{Expect, FileOp, Files as _, LocalFiles};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use crate::support::{hash, picture, remove, write};

const CHILD: &str = "LATHE_TEST_KILL";
const FILES: usize = 8;

fn content(generation: u64, file: usize) -> String {
    format!("{generation} {file}\n").repeat(200)
}

/// The operations that lead from one generation to the next. Every second one has a file more, in a folder of its own.
fn step(root: &Path, files: usize, from: u64) -> Vec<FileOp> {
    let at = |file: usize| root.join(format!("f{file}"));
    let mut ops: Vec<FileOp> = (0..files)
        .map(|file| write(&at(file), hash(&content(from, file)), &content(from + 1, file)))
        .collect();
    if files > 1 {
        let more = root.join("m/n/more");
        let more = match from % 2 {
            0 => write(&more, Expect::Absent, &content(from + 1, files)),
            _ => remove(&more, hash(&content(from, files))),
        };
        ops.insert(files / 2, more);
    }
    ops
}

fn generation(root: &Path) -> u64 {
    let text = fs::read_to_string(root.join("f0")).unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn child() {
    let Ok(plan) = std::env::var(CHILD) else { return };
    let [how, files, base] = plan.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
    let (count, base) = (files.parse().unwrap(), PathBuf::from(base));
    let root = base.join("ws");
    let open = if how == "plain" { LocalFiles::stepwise } else { LocalFiles::new };
    let files = open(root.clone()).recovering(base.join("notes")).unwrap();
    loop {
        files.apply(step(&root, count, generation(&root))).await.unwrap();
    }
}

fn start(how: &str, files: usize, base: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child", "--nocapture"])
        .env(CHILD, format!("{how} {files} {}", base.display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills the child after so many things happened in the folder.
fn kill_after(events: usize, root: &Path, child: impl FnOnce() -> Child) {
    let watch = Inotify::init(InitFlags::IN_CLOEXEC).unwrap();
    let flags = AddWatchFlags::IN_CREATE
        | AddWatchFlags::IN_MOVED_TO
        | AddWatchFlags::IN_DELETE
        | AddWatchFlags::IN_CLOSE_WRITE
        | AddWatchFlags::IN_ATTRIB;
    watch.add_watch(root, flags).unwrap();
    let mut child = child();
    let mut seen = 0;
    while seen < events {
        seen += watch.read_events().unwrap().len();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

async fn kill(how: &str, files: usize) {
    // Memory syncs at once, so that most of the time names are changing.
    let shm = Path::new("/dev/shm");
    let dir = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() }.unwrap();
    let base = dir.path().canonicalize().unwrap();
    let (root, notes) = (base.join("ws"), base.join("notes"));
    fs::create_dir(&root).unwrap();
    for file in 0..files {
        fs::write(root.join(format!("f{file}")), content(0, file)).unwrap();
    }
    let (mut put_back, mut mixed) = (0, 0);
    let points = size(50, 1000);
    let mut point = 0;
    // On a busy machine a kill comes late: then more of them are tried until one falls into the middle.
    while point < points || files > 1 && mixed == 0 && point < 20 * points {
        point += 1;
        kill_after(3 + point * 3 % 190, &root, || start(how, files, &base));
        let generations = |root: &Path| -> Vec<u64> {
            let text = |file| fs::read_to_string(root.join(format!("f{file}"))).unwrap();
            (0..files)
                .map(|file| {
                    let text = text(file);
                    let generation = text.split(' ').next().unwrap().parse().unwrap();
                    assert_eq!(text, content(generation, file), "a file is old or new, and whole");
                    generation
                })
                .collect()
        };
        let dead = generations(&root);
        mixed += usize::from(dead.iter().any(|generation| *generation != dead[0]));
        let opened = LocalFiles::new(root.clone()).recovering(notes.clone()).unwrap();
        put_back += usize::from(!opened.recovered().is_empty());
        let now = generations(&root);
        assert!(now.iter().all(|generation| *generation == now[0]), "point {point}: {dead:?} became {now:?}");
        let more = fs::read_to_string(root.join("m/n/more")).ok();
        let wanted = (files > 1 && now[0] % 2 == 1).then(|| content(now[0], files));
        assert_eq!(more, wanted, "point {point}, generation {}", now[0]);
        let left = picture(&root);
        assert!(!left.iter().any(|(path, ..)| path.to_string_lossy().contains(".lathe-")), "{left:?}");
        let left: Vec<_> = fs::read_dir(&notes).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.iter().all(|path| path.extension().is_some_and(|ending| ending == "draft")), "{left:?}");
    }
    eprintln!("{point} deaths at generation {}: {mixed} mixed, {put_back} put back", generation(&root));
    if files > 1 {
        assert!(mixed > 0, "no death was in the middle");
    }
}

#[tokio::test]
async fn an_edit_that_is_killed_is_old_or_new() {
    kill("best", 1).await;
}

#[tokio::test]
async fn a_transaction_that_is_killed_is_all_old_or_all_new() {
    kill("best", FILES).await;
}

/// On file systems without an exchange in one step.
#[tokio::test]
async fn a_transaction_that_is_killed_is_whole_without_renameat2() {
    kill("plain", FILES).await;
}

#[tokio::test]
async fn an_edit_that_is_killed_is_whole_without_renameat2() {
    kill("plain", 1).await;
}

/// A note of a transaction that still runs is not touched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebody_who_opens_the_folder_disturbs_no_living_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let (root, notes) = (dir.path().join("ws"), dir.path().join("notes"));
    fs::create_dir(&root).unwrap();
    for file in 0..FILES {
        fs::write(root.join(format!("f{file}")), content(0, file)).unwrap();
    }
    let files = LocalFiles::new(root.clone()).recovering(notes.clone()).unwrap();
    let writer = tokio::spawn({
        let root = root.clone();
        async move {
            for from in 0..30 {
                files.apply(step(&root, FILES, from)).await.unwrap();
            }
        }
    });
    while !writer.is_finished() {
        let opened = LocalFiles::new(root.clone()).recovering(notes.clone()).unwrap();
        assert_eq!(opened.recovered(), [] as [PathBuf; 0]);
    }
    writer.await.unwrap();
    assert_eq!(generation(&root), 30);
}

/// Changes by others between the death and the next start stay, and so does the content that they replaced.
#[tokio::test]
async fn a_file_changed_after_the_death_is_left_alone() {
    let dir = tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" }).unwrap();
    let base = dir.path().canonicalize().unwrap();
    let root = base.join("ws");
    fs::create_dir(&root).unwrap();
    for file in 0..FILES {
        fs::write(root.join(format!("f{file}")), content(0, file)).unwrap();
    }
    for point in 0..40 {
        kill_after(40 + point, &root, || start("best", FILES, &base));
        let theirs = format!("theirs {point}");
        fs::write(root.join("f0"), &theirs).unwrap();
        LocalFiles::new(root.clone()).recovering(base.join("notes")).unwrap();
        assert_eq!(fs::read_to_string(root.join("f0")).unwrap(), theirs);
        let first = fs::read_to_string(root.join("f1")).unwrap();
        let now: u64 = first.split(' ').next().unwrap().parse().unwrap();
        for file in 1..FILES {
            assert_eq!(fs::read_to_string(root.join(format!("f{file}"))).unwrap(), content(now, file));
        }
        for (path, ..) in picture(&root) {
            if path.to_string_lossy().contains(".lathe-") {
                assert!(fs::read_to_string(&path).unwrap().ends_with(" 0\n"), "{path:?}");
                fs::remove_file(path).unwrap();
            }
        }
        fs::write(root.join("f0"), content(now, 0)).unwrap();
    }
}
