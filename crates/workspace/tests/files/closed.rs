//! The folder that no path leads into, and folders that git would take for a repository.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use lathe_workspace::{Expect, Files as _, LocalFiles, WorkspaceError};

use crate::support::{Folder, hash, picture, write};

/// A root with Lathe's folder in it, and every way there that links can make.
fn world(dir: &Path) -> (PathBuf, PathBuf) {
    let base = dir.canonicalize().unwrap();
    let (root, own) = (base.join("ws"), base.join("ws/data/lathe"));
    fs::create_dir_all(own.join("server")).unwrap();
    fs::create_dir_all(root.join("src")).unwrap();
    fs::write(own.join("auth.json"), "KEY").unwrap();
    fs::write(own.join("server/tokens.json"), "KEY").unwrap();
    fs::write(root.join("src/a.txt"), "plain").unwrap();
    for (leads, link) in [
        (Path::new("data/lathe"), "lnk"),
        (own.as_path(), "absolute"),
        (Path::new("data"), "above"),
        (Path::new("data/lathe/auth.json"), "file"),
        (Path::new("lnk"), "twice"),
        (Path::new("data/lathe/server"), "inner"),
    ] {
        symlink(leads, root.join(link)).unwrap();
    }
    (root, own)
}

const WAYS: [&str; 12] = [
    "data/lathe/auth.json",
    "./data//lathe/./auth.json",
    "src/../data/lathe/auth.json",
    "lnk/auth.json",
    "absolute/auth.json",
    "above/lathe/auth.json",
    "file",
    "twice/auth.json",
    "inner/tokens.json",
    "lnk/../lathe/auth.json",
    "data/lathe/new/deep.txt",
    "lnk/new.txt",
];

#[tokio::test]
async fn no_path_leads_into_the_closed_folder() {
    let dir = tempfile::tempdir().unwrap();
    let (root, own) = world(dir.path());
    let before = picture(&own);
    // Also where the folder is named through a link.
    for named in [own.clone(), root.join("lnk"), root.join("above/lathe")] {
        let files = LocalFiles::confined(root.clone(), &named);
        for way in WAYS {
            for path in [PathBuf::from(way), root.join(way)] {
                let shown = path.display();
                let refused = |error| matches!(error, Some(WorkspaceError::Outside(_)));
                assert!(refused(files.stat(&path).await.err()), "stat {shown}");
                assert!(refused(files.read(&path, None).await.err()), "read {shown}");
                assert!(refused(files.real(&path).await.err()), "real {shown}");
                assert!(refused(files.open(&path).err()), "open {shown}");
                for expect in [Expect::Absent, hash("KEY")] {
                    assert!(files.apply(vec![write(&path, expect, "x")]).await.is_err(), "write {shown}");
                }
                // Received is a new file; a link that has the name already is seen when it is finished.
                let received = files.receive(&path).and_then(|incoming| incoming.finish());
                assert!(received.is_err(), "receive {shown}");
                assert!(files.rename(Path::new("src/a.txt"), &path).is_err(), "rename to {shown}");
            }
        }
        for folder in ["data/lathe", "lnk", "above/lathe", "inner", "data/lathe/server", "twice"] {
            assert!(files.list(Path::new(folder)).await.is_err(), "list {folder}");
            assert!(files.walk(Path::new(folder), 9).await.is_err(), "walk {folder}");
            assert!(files.exact_folder(&root.join(folder)).is_err(), "open {folder}");
            assert!(files.make_folder(&Path::new(folder).join("x")).is_err(), "make {folder}");
        }
        for taken in ["data", "data/lathe"] {
            assert!(files.rename(Path::new(taken), Path::new("moved")).is_err(), "{taken}");
            assert!(files.move_out(Path::new(taken), &dir.path().join("away")).is_err(), "{taken}");
        }
        let names = |entries: Vec<lathe_workspace::WalkEntry>| -> Vec<String> {
            entries.into_iter().map(|entry| entry.path.display().to_string()).collect()
        };
        let walked = names(files.walk(Path::new("."), 9).await.unwrap());
        assert_eq!(
            walked,
            ["above", "absolute", "data", "file", "inner", "lnk", "src", "src/a.txt", "twice"]
        );
        assert_eq!(files.list(Path::new("data")).await.unwrap(), []);
        assert_eq!(files.read(Path::new("src/a.txt"), None).await.unwrap(), b"plain");
    }
    assert_eq!(picture(&own), before);
}

#[tokio::test]
async fn a_hard_link_to_a_file_of_the_closed_folder_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (root, own) = world(dir.path());
    fs::create_dir_all(own.join("quarantine/1")).unwrap();
    fs::write(own.join("quarantine/1/big"), "plain").unwrap();
    for (name, from) in [("src/key", "auth.json"), ("src/token", "server/tokens.json")] {
        fs::hard_link(own.join(from), root.join(name)).unwrap();
    }
    // The quarantine has second names of files of the workspace.
    fs::hard_link(own.join("quarantine/1/big"), root.join("src/big")).unwrap();
    fs::hard_link(root.join("src/a.txt"), root.join("src/twin")).unwrap();
    symlink("key", root.join("src/to-key")).unwrap();
    let base = root.parent().unwrap();
    for files in [LocalFiles::confined(root.clone(), &own), LocalFiles::confined(base.to_owned(), &own)] {
        for name in ["src/key", "src/token", "src/to-key"] {
            let path = root.join(name);
            let refused = |error| matches!(error, Some(WorkspaceError::Outside(_)));
            assert!(refused(files.read(&path, None).await.err()), "{name}");
            assert!(refused(files.open(&path).err()), "{name}");
            assert!(files.apply(vec![write(&path, hash("KEY"), "x")]).await.is_err(), "{name}");
        }
        for name in ["src/big", "src/twin"] {
            assert_eq!(files.read(&root.join(name), None).await.unwrap(), b"plain", "{name}");
        }
    }
    assert_eq!(fs::read(own.join("auth.json")).unwrap(), b"KEY");
}

#[tokio::test]
async fn a_root_in_the_closed_folder_and_one_behind_a_link_hold_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (root, own) = world(dir.path());
    let inside = LocalFiles::confined(own.join("server"), &own);
    assert!(inside.read(Path::new("tokens.json"), None).await.is_err());
    assert!(inside.list(Path::new(".")).await.is_err());
    for behind in ["above", "above/lathe"] {
        let files = LocalFiles::confined(root.join(behind), Path::new("/nonexistent"));
        assert!(!files.is_there(), "{behind}");
        assert!(files.list(Path::new(".")).await.is_err(), "{behind}");
    }
}

#[tokio::test]
async fn no_file_tool_makes_a_folder_a_repository_or_steers_one() {
    let pieces = ["HEAD", "objects/x", "refs/heads/main"];
    // In any order, the last piece is refused; and with others in one transaction.
    for last in 0..pieces.len() {
        let folder = Folder::new();
        for (at, piece) in pieces.iter().enumerate() {
            let path = Path::new("docs").join(piece);
            let done = folder.apply(vec![write(&path, Expect::Absent, "x")]).await;
            let is_last = at == pieces.len() - 1;
            assert_eq!(done.is_err(), is_last, "{piece}: {done:?}");
        }
        let together = Folder::new();
        let ops = pieces.iter().map(|piece| write(&Path::new("docs").join(piece), Expect::Absent, "x"));
        let refused = together.apply(ops.collect()).await.unwrap_err();
        assert!(matches!(refused, WorkspaceError::Protected(_)), "{refused}");
        let rest = Folder::new();
        for piece in pieces.iter().enumerate().filter(|(at, _)| *at != last).map(|(_, piece)| piece) {
            rest.with(Path::new("docs").join(piece), "x");
        }
        for way in [pieces[last], &pieces[last].to_lowercase()] {
            let path = Path::new("docs").join(way);
            let made = rest.files.make_folder(&path.join("sub"));
            assert!(made.is_err() && rest.files.receive(&path).is_err(), "{way}");
        }
    }
    let bare = Folder::new();
    for piece in pieces {
        bare.with(Path::new("docs").join(piece), "x");
    }
    for name in ["config", "hooks/pre-commit", "packed-refs", "info/attributes", "CONFIG", "config.worktree"]
    {
        let done = bare.apply(vec![write(&Path::new("docs").join(name), Expect::Absent, "x")]).await;
        assert!(matches!(done, Err(WorkspaceError::Protected(_))), "{name}: {done:?}");
    }
    let linked = Folder::new();
    linked.with("docs/commondir", "../x");
    assert!(linked.apply(vec![write(Path::new("docs/HEAD"), Expect::Absent, "x")]).await.is_err());
    // Each alone is ordinary.
    let plain = Folder::new();
    for name in ["config", "HEAD", "hooks/x", "objects/a.rs", "src/refs/mod.rs", "info/x"] {
        plain.apply(vec![write(Path::new(name), Expect::Absent, "x")]).await.unwrap();
    }
}
