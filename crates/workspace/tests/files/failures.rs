//! After a failed `apply` everything is as it was, to the inode.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use lathe_workspace::{Expect, FileOp, WorkspaceError};

use crate::support::{Folder, Mount, hash, picture, remove, write};

/// Applies, checks that nothing changed, and returns the error.
async fn refused(folder: &Folder, ops: Vec<FileOp>) -> WorkspaceError {
    let before = picture(folder.dir.path());
    let error = folder.apply(ops).await.unwrap_err();
    assert_eq!(picture(folder.dir.path()), before, "{error:?}");
    error
}

#[tokio::test]
async fn an_expectation_that_does_not_hold_is_refused() {
    let folder = Folder::new();
    let file = folder.with("a", "theirs");
    let missing = folder.path("none/x");
    fs::create_dir(folder.path("d")).unwrap();
    let stale = refused(&folder, vec![write(&file, hash("ours"), "new")]).await;
    assert!(matches!(stale, WorkspaceError::Stale(path) if path == file));
    let stale = refused(&folder, vec![remove(&file, hash("ours"))]).await;
    assert!(matches!(stale, WorkspaceError::Stale(path) if path == file));
    let stale = refused(&folder, vec![write(&missing, hash("ours"), "new")]).await;
    assert!(matches!(stale, WorkspaceError::Stale(path) if path == missing));
    let exists = refused(&folder, vec![write(&file, Expect::Absent, "new")]).await;
    assert!(matches!(exists, WorkspaceError::Exists(path) if path == file));
    let is_folder = refused(&folder, vec![write(&folder.path("d"), Expect::Absent, "new")]).await;
    assert!(matches!(is_folder, WorkspaceError::IsDirectory(_)));
}

#[tokio::test]
async fn one_stale_file_of_several_stops_all() {
    let folder = Folder::new();
    let (a, b) = (folder.with("a", "1"), folder.with("b", "changed meanwhile"));
    let new = folder.path("x/y");
    let ops =
        vec![write(&a, hash("1"), "one"), write(&new, Expect::Absent, "n"), write(&b, hash("2"), "two")];
    assert!(matches!(refused(&folder, ops).await, WorkspaceError::Stale(path) if path == b));
}

#[tokio::test]
async fn a_file_used_as_a_folder_stops_all() {
    let folder = Folder::new();
    let (a, b) = (folder.with("a", "1"), folder.with("b", "2"));
    let ops = vec![write(&a, hash("1"), "one"), write(&b.join("x"), Expect::Absent, "n")];
    assert!(matches!(refused(&folder, ops).await, WorkspaceError::Io { .. }));
}

#[tokio::test]
async fn a_place_where_nothing_can_be_made_stops_all_and_made_folders_go() {
    let folder = Folder::new();
    let a = folder.with("a", "1");
    let ops = vec![
        write(&folder.path("x/y/z"), Expect::Absent, "n"),
        write(&a, hash("1"), "one"),
        write(Path::new("/proc/lathe/x"), Expect::Absent, "n"),
    ];
    refused(&folder, ops).await;
}

#[tokio::test]
async fn one_file_cannot_be_named_twice() {
    let folder = Folder::new();
    let a = folder.with("d/a", "1");
    symlink("d", folder.path("link")).unwrap();
    let ops = vec![write(&a, hash("1"), "one"), write(&folder.path("link/a"), hash("1"), "two")];
    assert!(matches!(refused(&folder, ops).await, WorkspaceError::Io { .. }));
}

#[tokio::test]
async fn a_circle_of_links_is_refused() {
    let folder = Folder::new();
    symlink("b", folder.path("a")).unwrap();
    symlink("a", folder.path("b")).unwrap();
    assert!(matches!(
        refused(&folder, vec![write(&folder.path("a"), Expect::Absent, "n")]).await,
        WorkspaceError::Io { .. }
    ));
}

/// The last file is a mount point, so its rename fails after the others were
/// already exchanged: they have to be put back.
#[tokio::test]
async fn a_failure_in_the_middle_puts_back_what_was_done() {
    let folder = Folder::new();
    let (a, b, busy) = (folder.with("a", "1"), folder.with("b", "2"), folder.with("busy", "3"));
    symlink("b", folder.path("link")).unwrap();
    let Some(_mount) = Mount::new(&["--bind"], &busy, &busy) else {
        return;
    };
    for last in [write(&busy, hash("3"), "three"), remove(&busy, hash("3"))] {
        let ops = vec![
            write(&a, hash("1"), "one"),
            write(&folder.path("x/y"), Expect::Absent, "n"),
            remove(&b, hash("2")),
            last,
        ];
        assert!(matches!(refused(&folder, ops).await, WorkspaceError::Io { path, .. } if path == busy));
    }
    let ops = vec![remove(&folder.path("link"), hash("2")), write(&busy, hash("3"), "three")];
    refused(&folder, ops).await;
}

#[tokio::test]
async fn a_read_only_place_is_denied() {
    let folder = Folder::new();
    let a = folder.with("a", "1");
    let locked = folder.with("locked/b", "2");
    let inside = folder.path("locked");
    let Some(_mount) = Mount::new(&["--bind"], &inside, &inside) else {
        return;
    };
    let Some(_read_only) = Mount::new(&["-o", "remount,bind,ro"], &inside, &inside) else {
        return;
    };
    let last = [
        write(&locked, hash("2"), "n"),
        remove(&locked, hash("2")),
        write(&inside.join("c/d"), Expect::Absent, "n"),
    ];
    for last in last {
        let ops = vec![write(&a, hash("1"), "one"), last];
        assert!(matches!(refused(&folder, ops).await, WorkspaceError::Denied(_)));
    }
}

#[tokio::test]
async fn a_full_disk_is_told_and_the_old_file_is_whole() {
    let folder = Folder::new();
    let a = folder.with("a", "1");
    let small = folder.path("small");
    fs::create_dir(&small).unwrap();
    let Some(_mount) = Mount::new(&["-t", "tmpfs", "-o", "size=64k"], Path::new("tmpfs"), &small) else {
        return;
    };
    let old = "x".repeat(40_000);
    let file = folder.with("small/b", &old);

    let large = "y".repeat(1_000_000);
    let ops = vec![write(&a, hash("1"), "one"), write(&file, hash(&old), &large)];
    assert!(matches!(refused(&folder, ops).await, WorkspaceError::NoSpace(path) if path == file));
    let new = small.join("n/o/p");
    let error = refused(&folder, vec![write(&new, Expect::Absent, &large)]).await;
    assert!(matches!(error, WorkspaceError::NoSpace(path) if path == new));

    // What frees space works on a full disk.
    fs::write(small.join("filler"), "z".repeat(24_000)).unwrap_or_default();
    folder.apply(vec![remove(&file, hash(&old))]).await.unwrap();
    folder.apply(vec![write(&file, Expect::Absent, "fits")]).await.unwrap();
}
