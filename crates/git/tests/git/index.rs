//! An index with paths out of the work tree: no call reads it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use lathe_git::{Boundary, CallFolder, ContentRules, IndexUse, Repository, Snapshots};
use lathe_workspace::LocalProcesses;

use crate::bounds::World;

/// An index as an attacker writes it, since git does not add such paths.
fn plant(file: &Path, paths: &[&str]) {
    let mut bytes = [&b"DIRC\0\0\0\x02"[..], &(paths.len() as u32).to_be_bytes()].concat();
    for path in paths {
        let begin = bytes.len();
        bytes.extend([0; 24]);
        bytes.extend(0o100_644_u32.to_be_bytes());
        bytes.extend([0; 12]);
        bytes.extend([0xaa; 20]);
        bytes.extend((path.len() as u16).to_be_bytes());
        bytes.extend(path.as_bytes());
        bytes.extend(vec![0; 8 - (bytes.len() - begin) % 8]);
    }
    // Git does not compare a checksum of zeros.
    bytes.extend([0; 20]);
    fs::write(file, bytes).unwrap();
}

/// Paths that are planted: one out of the roots, one by its whole name, and parts of the repository itself.
fn planted(world: &World) -> [String; 5] {
    let whole = world.join("outside/private/a.txt").display().to_string();
    [
        "../../outside/private/a.txt".to_owned(),
        whole,
        ".git/config".to_owned(),
        ".GIT/HEAD".to_owned(),
        "a/../../x".to_owned(),
    ]
}

#[test]
fn an_index_with_paths_out_of_the_work_tree_is_refused_and_no_other_call_is() {
    let world = World::new();
    for path in planted(&world) {
        plant(&world.join("root/repo/.git/index"), &[path.as_str()]);
        for boundary in [Boundary::Anywhere, Boundary::Roots(vec![world.join("root")])] {
            let repository = Repository::find(&world.join("root/repo"), &boundary).unwrap();
            for index in [IndexUse::Read, IndexUse::Write] {
                let error =
                    repository.indexed(index, ContentRules::Tree, CallFolder::Top).unwrap_err().to_string();
                assert!(error.contains("not a path of the work tree"), "{path}: {error}");
            }
            let call = |words: &[&str]| {
                repository.call(ContentRules::Tree, CallFolder::Top).args(words).output().unwrap()
            };
            assert!(call(&["ls-files"]).is_empty(), "{path}");
            assert!(!call(&["log", "--format=%s"]).is_empty(), "{path}");
        }
    }
}

#[tokio::test]
async fn a_snapshot_takes_nothing_that_an_index_names_outside() {
    let world = World::new();
    for path in planted(&world) {
        plant(&world.join("root/repo/.git/index"), &[path.as_str()]);
        let scratch = world.join("scratch");
        let snapshots =
            Snapshots::find(Arc::new(LocalProcesses), &world.join("root/repo"), scratch.clone()).unwrap();
        assert!(snapshots.snapshot().await.is_err(), "{path}");
        let objects = fs::read_dir(scratch.join("objects")).unwrap();
        assert_eq!(objects.count(), 0, "{path}");
    }
}

#[test]
fn a_reading_call_has_the_index_that_was_checked() {
    let world = World::new();
    let repository = world.find("root/repo").unwrap();
    let call = repository.indexed(IndexUse::Read, ContentRules::Tree, CallFolder::Top).unwrap();
    plant(&world.join("root/repo/.git/index"), &["../../outside/private/a.txt"]);
    assert_eq!(call.args(["ls-files"]).output().unwrap(), b"a.txt\n");
}

#[test]
fn every_kind_of_index_that_git_writes_is_read() {
    for version in ["2", "3", "4"] {
        for split in [false, true] {
            let world = World::new();
            let repo = |words: &[&str]| world.world.git(&[&["-C", "root/repo"], words].concat());
            for name in ["b.txt", "deep/er/c.txt", "deep/er/d.txt", "ü.txt"] {
                world.world.write(&format!("root/repo/{name}"), name);
            }
            repo(&["add", "."]);
            repo(&["commit", "-qm", "more"]);
            repo(&["update-index", "--index-version", version]);
            if split {
                repo(&["update-index", "--split-index"]);
            }
            world.world.write("root/repo/b.txt", "other");
            world.world.write("root/repo/e.txt", "new");
            repo(&["add", "."]);
            let repository = world.find("root/repo").unwrap();
            for index in [IndexUse::Read, IndexUse::Write] {
                let call = repository.indexed(index, ContentRules::Tree, CallFolder::Top).unwrap();
                let said = call.args(["status", "--porcelain"]).output().unwrap();
                assert_eq!(
                    String::from_utf8_lossy(&said),
                    "M  b.txt\nA  e.txt\n",
                    "{version} {split} {index:?}"
                );
            }
        }
    }
}

#[test]
fn a_shared_index_with_paths_out_of_the_work_tree_is_refused() {
    let world = World::new();
    world.world.git(&["-C", "root/repo", "update-index", "--split-index"]);
    let entries = fs::read_dir(world.join("root/repo/.git")).unwrap().map(|entry| entry.unwrap().path());
    let shared = entries.filter(|path| path.display().to_string().contains("sharedindex.")).last().unwrap();
    world.find("root/repo").unwrap().check_index().unwrap();
    plant(&shared, &["../../outside/private/a.txt"]);
    let error = world.find("root/repo").unwrap().check_index().unwrap_err().to_string();
    assert!(error.contains("sharedindex") && error.contains("not a path of the work tree"), "{error}");
}

#[test]
fn an_index_is_made_anew_without_reading_the_old_one() {
    let world = World::new();
    plant(&world.join("root/repo/.git/index"), &["../../outside/private/a.txt"]);
    let repository = world.find("root/repo").unwrap();
    let call = repository.indexed(IndexUse::Replace, ContentRules::Bytes, CallFolder::Top).unwrap();
    call.args(["read-tree", "HEAD"]).output().unwrap();
    assert_eq!(world.world.git(&["-C", "root/repo", "ls-files"]), "a.txt\n");
}
