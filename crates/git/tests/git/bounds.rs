//! Repositories with parts outside of the roots are refused, and folders that only resemble a repository are not
//! used.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use lathe_git::{Boundary, CallFolder, ContentRules, GitError, IndexUse, Repository};
use lathe_testkit::TempRepo;

pub(crate) struct World {
    pub(crate) world: TempRepo,
}

impl World {
    /// A root with a repository in it, and a private repository outside.
    pub(crate) fn new() -> Self {
        let world = TempRepo::new(&[]);
        for (folder, text) in [("root/repo", "one\n"), ("outside/private", "OUTSIDE SECRET\n")] {
            world.git(&["init", "-q", "-b", "main", folder]);
            world.write(&format!("{folder}/a.txt"), text);
            world.git(&["-C", folder, "add", "."]);
            world.git(&["-C", folder, "commit", "-q", "-m", text.trim()]);
        }
        Self { world }
    }

    pub(crate) fn join(&self, path: &str) -> PathBuf {
        self.world.path().canonicalize().unwrap().join(path)
    }

    pub(crate) fn find(&self, folder: &str) -> Result<Repository, GitError> {
        Repository::find(&self.join(folder), &Boundary::Roots(vec![self.join("root")]))
    }
}

/// Lets the repository borrow objects of `root/store/objects`, through that many folders.
fn borrow(world: &World, far: usize) {
    std::fs::create_dir_all(world.join("root/store/objects")).unwrap();
    let mut from = world.join("root/repo/.git/objects");
    for at in 1..=far {
        let next =
            if at == far { world.join("root/store/objects") } else { world.join(&format!("root/way{at}")) };
        std::fs::create_dir_all(from.join("info")).unwrap();
        std::fs::write(from.join("info/alternates"), format!("{}\n", next.display())).unwrap();
        from = next;
    }
}

#[test]
fn what_leads_out_of_the_roots_is_refused_and_named() {
    type Make = fn(&World);
    let cases: [(&str, &str, Make); 23] = [
        ("a .git file", "repo/.git", |world| {
            std::fs::remove_dir_all(world.join("root/repo/.git")).unwrap();
            std::fs::write(
                world.join("root/repo/.git"),
                format!("gitdir: {}\n", world.join("outside/private/.git").display()),
            )
            .unwrap();
        }),
        ("a relative .git file", "repo/.git", |world| {
            std::fs::remove_dir_all(world.join("root/repo/.git")).unwrap();
            std::fs::write(world.join("root/repo/.git"), "gitdir: ../../outside/private/.git").unwrap();
        }),
        ("a .git link", "repo/.git", |world| {
            std::fs::remove_dir_all(world.join("root/repo/.git")).unwrap();
            symlink(world.join("outside/private/.git"), world.join("root/repo/.git")).unwrap();
        }),
        ("a .git link inside", "repo/.git", |world| {
            std::fs::rename(world.join("root/repo/.git"), world.join("root/repo/real")).unwrap();
            symlink("real", world.join("root/repo/.git")).unwrap();
        }),
        ("a .git file through a link", "repo/.git", |world| {
            std::fs::remove_dir_all(world.join("root/repo/.git")).unwrap();
            symlink(world.join("outside/private"), world.join("root/way")).unwrap();
            std::fs::write(world.join("root/repo/.git"), "gitdir: ../way/.git").unwrap();
        }),
        ("a common folder", "commondir", |world| {
            std::fs::write(world.join("root/repo/.git/commondir"), "../../../outside/private/.git\n")
                .unwrap();
        }),
        ("a linked work tree of a repository outside", "work/.git", |world| {
            let (private, tree) = (world.join("outside/private"), world.join("root/work"));
            world.world.git(&[
                "-C",
                private.to_str().unwrap(),
                "worktree",
                "add",
                "-q",
                tree.to_str().unwrap(),
            ]);
            std::fs::remove_dir_all(world.join("root/repo")).unwrap();
            std::fs::create_dir(world.join("root/repo")).unwrap();
            std::fs::copy(world.join("root/work/.git"), world.join("root/repo/.git")).unwrap();
        }),
        ("alternates", "objects/info/alternates", |world| {
            let objects = format!("{}\n", world.join("outside/private/.git/objects").display());
            std::fs::write(world.join("root/repo/.git/objects/info/alternates"), objects).unwrap();
        }),
        ("alternates, relative and quoted", "objects/info/alternates", |world| {
            let objects = "# comment\n\"../../../../outside/private/.git/objects\"\n";
            std::fs::write(world.join("root/repo/.git/objects/info/alternates"), objects).unwrap();
        }),
        ("alternates of alternates", "borrowed/info/alternates", |world| {
            std::fs::create_dir_all(world.join("root/borrowed/info")).unwrap();
            let objects = world.join("outside/private/.git/objects");
            std::fs::write(world.join("root/borrowed/info/alternates"), objects.to_str().unwrap()).unwrap();
            std::fs::write(world.join("root/repo/.git/objects/info/alternates"), "../../../borrowed\n")
                .unwrap();
        }),
        ("objects", ".git/objects", |world| {
            std::fs::remove_dir_all(world.join("root/repo/.git/objects")).unwrap();
            symlink(world.join("outside/private/.git/objects"), world.join("root/repo/.git/objects"))
                .unwrap();
        }),
        ("one folder of objects", "objects/zz", |world| {
            symlink(world.join("outside"), world.join("root/repo/.git/objects/zz")).unwrap();
        }),
        ("one object", "objects/ab/cdef", |world| {
            std::fs::create_dir_all(world.join("root/repo/.git/objects/ab")).unwrap();
            symlink(world.join("outside/private/a.txt"), world.join("root/repo/.git/objects/ab/cdef"))
                .unwrap();
        }),
        ("one pack", "objects/pack/pack-1.pack", |world| {
            symlink(
                world.join("outside/private/a.txt"),
                world.join("root/repo/.git/objects/pack/pack-1.pack"),
            )
            .unwrap();
        }),
        ("packs of borrowed objects", "store/objects/pack", |world| {
            borrow(world, 1);
            symlink(world.join("outside/private/.git/objects/pack"), world.join("root/store/objects/pack"))
                .unwrap();
        }),
        ("one folder of borrowed objects", "store/objects/ab", |world| {
            borrow(world, 1);
            symlink(world.join("outside"), world.join("root/store/objects/ab")).unwrap();
        }),
        ("one borrowed object, three folders away", "store/objects/ab/cdef", |world| {
            borrow(world, 3);
            std::fs::create_dir_all(world.join("root/store/objects/ab")).unwrap();
            symlink(world.join("outside/private/a.txt"), world.join("root/store/objects/ab/cdef")).unwrap();
        }),
        ("a link between borrowed objects", "store/objects/info", |world| {
            borrow(world, 1);
            symlink(world.join("outside"), world.join("root/store/objects/info")).unwrap();
        }),
        ("branches", "refs/heads", |world| {
            std::fs::remove_dir_all(world.join("root/repo/.git/refs/heads")).unwrap();
            symlink(world.join("outside/private/.git/refs/heads"), world.join("root/repo/.git/refs/heads"))
                .unwrap();
        }),
        ("one branch", "refs/heads/x", |world| {
            symlink(world.join("outside/private/a.txt"), world.join("root/repo/.git/refs/heads/x")).unwrap();
        }),
        ("packed references", "packed-refs", |world| {
            symlink(world.join("outside/private/a.txt"), world.join("root/repo/.git/packed-refs")).unwrap();
        }),
        ("the index", ".git/index", |world| {
            std::fs::remove_file(world.join("root/repo/.git/index")).unwrap();
            symlink(world.join("outside/private/.git/index"), world.join("root/repo/.git/index")).unwrap();
        }),
        ("the configuration", ".git/config", |world| {
            std::fs::remove_file(world.join("root/repo/.git/config")).unwrap();
            symlink(world.join("outside/private/.git/config"), world.join("root/repo/.git/config")).unwrap();
        }),
    ];
    for (name, file, make) in cases {
        let world = World::new();
        assert!(world.find("root/repo").is_ok(), "{name}");
        make(&world);
        let error = world.find("root/repo").map(drop).unwrap_err();
        let named = file.strip_prefix("work/").map_or(file, |_| "repo/.git");
        assert!(
            matches!(&error, GitError::Refused { file, .. } if file.to_string_lossy().contains(named)),
            "{name}: {error}"
        );
        assert!(!error.to_string().contains("outside/private"), "{name}: {error}");
    }
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    for file in [
        ".git/config",
        ".git/HEAD",
        ".git/packed-refs",
        ".git/index",
        ".git/info/exclude",
        ".git/commondir",
        ".gitignore",
    ] {
        for (name, boundary) in [("roots", true), ("anywhere", false)] {
            let world = World::new();
            let path = world.join("root/repo").join(file);
            let _ = std::fs::remove_file(&path);
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            let boundary =
                if boundary { Boundary::Roots(vec![world.join("root")]) } else { Boundary::Anywhere };
            assert!(Repository::find(&world.join("root/repo"), &boundary).is_err(), "{file} {name}");
        }
    }
}

#[test]
fn only_a_folder_with_a_git_of_its_own_is_a_repository() {
    let world = World::new();
    // A committed folder that is laid out as a repository belongs to the repository around it.
    let bare = world.join("root/repo/docs");
    for (path, text) in [
        ("HEAD", "ref: refs/heads/main\n"),
        ("config", "[core]\nworktree = .\nfsmonitor = false\n"),
        ("objects/x", ""),
        ("refs/x", ""),
        ("modules/sub/HEAD", "ref: refs/heads/main\n"),
    ] {
        std::fs::create_dir_all(bare.join(path).parent().unwrap()).unwrap();
        std::fs::write(bare.join(path), text).unwrap();
    }
    assert_eq!(world.find("root/repo/docs").unwrap().top(), world.join("root/repo"));
    assert_eq!(world.find("root/repo/docs").unwrap().prefix(), Path::new("docs"));
    // Nor is it one where nothing is around it.
    std::fs::rename(&bare, world.join("root/docs")).unwrap();
    for folder in ["root/docs", "root/docs/modules/sub", "root", "root/repo/.git", "root/repo/.git/refs"] {
        assert!(matches!(world.find(folder).map(drop), Err(GitError::NoRepository)), "{folder}");
    }
    // An empty `.git` does not hide the one above.
    std::fs::create_dir_all(world.join("root/repo/sub/.git")).unwrap();
    assert_eq!(world.find("root/repo/sub").unwrap().top(), world.join("root/repo"));
}

#[test]
fn the_walk_ends_at_the_root_also_where_its_name_holds_a_colon() {
    for name in ["plain", "with:colon", ":"] {
        let world = World::new();
        std::fs::create_dir_all(world.join("outside/private").join(name).join("deep")).unwrap();
        let root = world.join("outside/private").join(name);
        let boundary = Boundary::Roots(vec![root.clone()]);
        for folder in [root.clone(), root.join("deep")] {
            let found = Repository::find(&folder, &boundary).map(drop);
            assert!(matches!(found, Err(GitError::NoRepository)), "{name}");
        }
    }
}

/// The folder is exchanged for a link to another repository after it was opened: git still works in the first one.
#[test]
fn a_folder_that_is_swapped_for_a_link_leads_nowhere() {
    let world = World::new();
    let repository = world.find("root/repo").unwrap();
    std::fs::rename(world.join("root/repo"), world.join("root/moved")).unwrap();
    symlink(world.join("outside/private"), world.join("root/repo")).unwrap();
    for words in [
        &["log", "--format=%s"][..],
        &["diff", "4b825dc642cb6eb9a060e54bf8d69288fbee4904"],
        &["show", "HEAD"],
    ] {
        let said = repository
            .indexed(IndexUse::Write, ContentRules::Tree, CallFolder::Top)
            .unwrap()
            .args(words)
            .output()
            .unwrap();
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("one") && !said.contains("SECRET"), "{words:?}: {said}");
    }
    assert!(world.find("root/repo").is_err());
}

#[test]
fn a_person_may_have_linked_work_trees_and_borrowed_objects_anywhere() {
    let world = World::new();
    let objects = format!("{}\n", world.join("outside/private/.git/objects").display());
    std::fs::write(world.join("root/repo/.git/objects/info/alternates"), objects).unwrap();
    let tree = world.join("root/work");
    world.world.git(&["-C", "outside/private", "worktree", "add", "-q", tree.to_str().unwrap()]);
    for folder in ["root/repo", "root/work"] {
        let repository = Repository::find(&world.join(folder), &Boundary::Anywhere).unwrap();
        let said = repository
            .indexed(IndexUse::Write, ContentRules::Tree, CallFolder::Top)
            .unwrap()
            .args(["status", "--porcelain"])
            .output();
        assert_eq!(said.as_deref(), Some(&b""[..]), "{folder}");
    }
}
