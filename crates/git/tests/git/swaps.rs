//! Parts of a repository that are swapped for links after it was opened: git reads and writes nothing outside of the roots.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use lathe_git::{Boundary, CallFolder, ContentRules, IndexUse, Init, Repository, prepare_init};

use crate::bounds::World;

/// Parts of the work tree that are swapped.
const PARTS: [&str; 10] = [
    ".",
    ".git",
    ".git/objects",
    ".git/objects/pack",
    ".git/refs",
    ".git/refs/heads",
    ".git/refs/heads/main",
    ".git/HEAD",
    ".git/index",
    ".git/logs",
];

const CALLS: [&[&str]; 7] = [
    &["log", "--format=%s %H", "--all"],
    &["show", "HEAD"],
    &["cat-file", "-p", "HEAD:a.txt"],
    &["diff", "4b825dc642cb6eb9a060e54bf8d69288fbee4904"],
    &["status", "--porcelain", "--untracked-files=all"],
    &["commit", "--quiet", "--allow-empty", "--no-gpg-sign", "--message=by us"],
    &["add", "--all", "."],
];

/// Every file below a folder, with its content.
fn picture(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut seen = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.symlink_metadata().unwrap().is_dir() {
            true => seen.extend(picture(&path)),
            false => seen.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
    seen.sort();
    seen
}

/// Puts a link to the same part of the private repository in the place of a part.
fn swap(world: &World, part: &str) {
    let (own, foreign) = (world.join("root/repo").join(part), world.join("outside/private").join(part));
    let own = own.components().collect::<PathBuf>();
    fs::rename(&own, world.join("root/aside")).unwrap();
    symlink(foreign, own).unwrap();
}

fn said(repository: &Repository, words: &[&str]) -> String {
    let mut call = match repository.indexed(IndexUse::Write, ContentRules::Tree, CallFolder::Top) {
        Ok(call) => call,
        Err(error) => return error.to_string(),
    };
    for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
        call.variable(name, "x");
    }
    let done = call.args(words).command().output().unwrap();
    String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned()
}

/// Tells whether the kernel can keep a process in a folder, as it does here if it does at all.
fn has_fence(world: &World) -> bool {
    let repository = world.find("root/repo").unwrap();
    let is_closed = repository
        .indexed(IndexUse::Write, ContentRules::Tree, CallFolder::Top)
        .unwrap()
        .spawn()
        .fence
        .is_closed();
    assert!(!repository.without_fence().call(ContentRules::Tree, CallFolder::Top).spawn().fence.is_closed());
    is_closed
}

#[test]
fn a_part_swapped_after_it_was_opened_leads_nowhere() {
    for part in PARTS {
        for words in CALLS {
            let world = World::new();
            if !has_fence(&world) {
                return;
            }
            let secret = world.world.git(&["-C", "outside/private", "rev-parse", "HEAD"]);
            let before = picture(&world.join("outside"));
            let repository = world.find("root/repo").unwrap();
            swap(&world, part);
            let said = said(&repository, words);
            assert!(!said.contains("SECRET") && !said.contains(secret.trim()), "{part} {words:?}: {said}");
            assert_eq!(picture(&world.join("outside")), before, "{part} {words:?}");
        }
    }
}

#[test]
fn without_a_fence_an_answer_of_a_changed_repository_is_thrown_away() {
    for part in PARTS {
        let world = World::new();
        let repository = world.find("root/repo").unwrap().without_fence();
        said(&repository, &["status"]);
        repository.check_again().unwrap();
        swap(&world, part);
        let error = repository.check_again().unwrap_err().to_string();
        assert!(error.contains("repo") && !error.contains("outside"), "{part}: {error}");
    }
}

#[test]
fn folders_named_by_files_are_held_too() {
    let world = World::new();
    if !has_fence(&world) {
        return;
    }
    world.world.git(&["-C", "root/repo", "worktree", "add", "-q", "../tree"]);
    world.world.git(&["-C", "outside/private", "worktree", "add", "-q", "../foreign"]);
    let secret = world.world.git(&["-C", "outside/private", "rev-parse", "HEAD"]);
    let before = picture(&world.join("outside"));
    // The folder of the work tree inside of the repository, and the repository itself.
    for part in ["repo/.git/worktrees/tree", "repo/.git", "repo"] {
        let repository = world.find("root/tree").unwrap();
        let own = world.join("root").join(part);
        let foreign = world.join("outside/private").join(".git/worktrees/foreign");
        let foreign = match part {
            "repo/.git/worktrees/tree" => foreign,
            "repo/.git" => world.join("outside/private/.git"),
            _ => world.join("outside/private"),
        };
        fs::rename(&own, world.join("root/aside")).unwrap();
        symlink(foreign, &own).unwrap();
        for words in CALLS {
            let said = said(&repository, words);
            assert!(!said.contains("SECRET") && !said.contains(secret.trim()), "{part} {words:?}: {said}");
        }
        fs::remove_file(&own).unwrap();
        fs::rename(world.join("root/aside"), &own).unwrap();
    }
    assert_eq!(picture(&world.join("outside")), before);
}

#[test]
fn a_repository_is_not_made_outside() {
    let world = World::new();
    let boundary = Boundary::Roots(vec![world.join("root")]);
    for link in ["new", "new/.git"] {
        fs::create_dir_all(world.join("root/new")).unwrap();
        fs::create_dir_all(world.join("outside/empty")).unwrap();
        let Init::Call(call) = prepare_init(&world.join("root/new"), &boundary).unwrap() else { panic!() };
        let place = world.join("root").join(link);
        let _ = fs::remove_dir(&place);
        symlink(world.join("outside/empty"), &place).unwrap();
        let _ = call.call.command().output().unwrap();
        let is_fenced = call.call.spawn().fence.is_closed();
        assert!(!is_fenced || fs::read_dir(world.join("outside/empty")).unwrap().next().is_none(), "{link}");
        fs::remove_file(&place).unwrap();
    }
}

#[test]
fn errors_name_folders_and_not_handles() {
    let world = World::new();
    let repository = world.find("root/repo").unwrap();
    fs::write(world.join("root/repo/.git/index.lock"), "").unwrap();
    let said = repository.readable(&said(&repository, &["add", "--all", "."]));
    let lock = world.join("root/repo/.git/index.lock");
    assert!(said.contains(lock.to_str().unwrap()) && !said.contains("/proc/"), "{said}");
}
