use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lathe_workspace::{FileInfo, FileKind, Files as _, LocalFiles, WalkBounds, WalkEntry, WorkspaceError};
use nix::sys::stat::Mode;

use crate::support::{Folder, hash, write};

#[tokio::test]
async fn stat_tells_kind_size_and_permissions() {
    let folder = Folder::new();
    let file = folder.with("a", "12345");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
    symlink("a", folder.path("link")).unwrap();
    let wanted = FileInfo { kind: FileKind::File, bytes: 5, mode: 0o750 };
    assert_eq!(folder.files.stat(&file).await.unwrap(), wanted);
    assert_eq!(folder.files.stat(&folder.path("link")).await.unwrap(), wanted);
    assert_eq!(folder.files.stat(folder.dir.path()).await.unwrap().kind, FileKind::Directory);
    assert!(matches!(folder.files.stat(Path::new("/dev/null")).await, Err(WorkspaceError::Outside(_))));
    let missing = folder.path("none");
    assert!(
        matches!(folder.files.stat(&missing).await, Err(WorkspaceError::NotFound(path)) if path == missing)
    );
    assert_eq!(folder.files.root(), folder.dir.path());
}

#[tokio::test]
async fn a_file_is_read_whole_or_in_part() {
    let folder = Folder::new();
    let file = folder.with("a", "0123456789");
    let rows: &[(Option<std::ops::Range<u64>>, &str)] = &[
        (None, "0123456789"),
        (Some(0..4), "0123"),
        (Some(3..6), "345"),
        (Some(8..100), "89"),
        (Some(3..3), ""),
        (Some(10..20), ""),
        (Some(50..60), ""),
        (Some(0..u64::MAX), "0123456789"),
        (Some(5..u64::MAX), "56789"),
    ];
    for (range, wanted) in rows {
        let bytes = folder.files.read(&file, range.clone()).await.unwrap();
        assert_eq!(bytes, wanted.as_bytes(), "{range:?}");
    }
    assert_eq!(folder.files.read(Path::new("a"), None).await.unwrap(), b"0123456789");
}

#[tokio::test]
async fn a_large_file_is_read_whole_and_in_part() {
    let folder = Folder::new();
    let content: String = (0..400_000).map(|n| format!("{n:08}")).collect();
    let file = folder.with("a", &content);
    assert_eq!(folder.files.read(&file, None).await.unwrap(), content.as_bytes());
    let part = folder.files.read(&file, Some(8..2_000_000)).await.unwrap();
    assert_eq!(part, content.as_bytes()[8..2_000_000]);
}

#[tokio::test]
async fn a_file_of_proc_is_read_although_it_says_it_is_empty() {
    let files = LocalFiles::new("/proc".into());
    assert!(!files.read(Path::new("/proc/version"), None).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_no_file_is_refused_without_blocking() {
    let folder = Folder::new();
    let fifo = folder.path("fifo");
    nix::unistd::mkfifo(&fifo, Mode::from_bits_truncate(0o600)).unwrap();
    let socket = folder.path("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let link = folder.path("link");
    symlink("fifo", &link).unwrap();
    let all = async {
        for special in [&fifo, &socket, &link] {
            let read = folder.files.read(special, None).await;
            assert!(matches!(read, Err(WorkspaceError::Special(path)) if path == *special), "{special:?}");
            let written = folder.apply(vec![write(special, hash(""), "x")]).await;
            assert!(matches!(written, Err(WorkspaceError::Special(path)) if path == *special), "{special:?}");
        }
        let read = folder.files.read(folder.dir.path(), None).await;
        assert!(matches!(read, Err(WorkspaceError::IsDirectory(_))));
    };
    tokio::time::timeout(Duration::from_secs(120), all).await.unwrap();
}

#[tokio::test]
async fn a_walk_lists_odd_names_in_order_without_hidden_ones() {
    let folder = Folder::new();
    let odd = OsStr::from_bytes(b"z\xff");
    for name in
        ["a/deep/deeper/x", "a/b", "a b", "a;touch hacked", "new\nline", ".hidden/x", "a/.git", "\u{e9}"]
    {
        folder.with(name, "");
    }
    folder.with(odd, "");
    symlink("a", folder.path("link")).unwrap();
    symlink("nowhere", folder.path("lost")).unwrap();
    nix::unistd::mkfifo(&folder.path("pipe"), Mode::from_bits_truncate(0o600)).unwrap();

    let entry = |path: &OsStr, kind| WalkEntry { path: PathBuf::from(path), kind };
    let at = |path: &str, kind| entry(OsStr::new(path), kind);
    use FileKind::{Directory, File, Special};
    let first = |below: Vec<WalkEntry>| {
        let mut entries = vec![at("a", Directory)];
        entries.extend(below);
        entries.extend([
            at("a b", File),
            at("a;touch hacked", File),
            at("link", Directory),
            at("lost", Special),
            at("new\nline", File),
            at("pipe", Special),
            entry(odd, File),
            at("\u{e9}", File),
        ]);
        entries
    };
    let walk = async |depth| folder.files.walk(folder.dir.path(), depth).await.unwrap();
    assert_eq!(walk(0).await, vec![]);
    assert_eq!(walk(1).await, first(vec![]));
    assert_eq!(walk(2).await, first(vec![at("a/b", File), at("a/deep", Directory)]));
    let all = vec![
        at("a/b", File),
        at("a/deep", Directory),
        at("a/deep/deeper", Directory),
        at("a/deep/deeper/x", File),
    ];
    assert_eq!(walk(usize::MAX).await, first(all));
}

#[tokio::test]
async fn a_walk_needs_a_folder() {
    let folder = Folder::new();
    let file = folder.with("a", "");
    assert!(matches!(folder.files.walk(&file, 2).await, Err(WorkspaceError::Io { .. })));
    let missing = folder.path("none");
    assert!(matches!(folder.files.walk(&missing, 2).await, Err(WorkspaceError::NotFound(_))));
}

/// Attack on the server, F5.
#[test]
fn a_walk_ends_at_its_bound_and_when_nobody_waits_for_it() {
    let folder = Folder::new();
    for name in [".h", "a/b/c", "a/d", "e", "f"] {
        folder.with(name, "");
    }
    let stop = AtomicBool::new(false);
    let walk = |most| {
        let bounds = WalkBounds { most, stop: &stop };
        let entries = folder.files.walk_hidden(Path::new("."), 9, bounds).unwrap();
        entries.into_iter().map(|entry| entry.path.display().to_string()).collect::<Vec<_>>()
    };
    let all = [".h", "a", "a/b", "a/b/c", "a/d", "e", "f"];
    for most in 0..all.len() {
        assert_eq!(walk(most), all[..most], "{most}");
    }
    assert_eq!(walk(usize::MAX), all);
    stop.store(true, Ordering::Relaxed);
    assert_eq!(walk(usize::MAX), Vec::<String>::new());
}
