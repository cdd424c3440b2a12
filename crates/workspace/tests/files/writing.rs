use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;

use lathe_protocol::Digest;
use lathe_workspace::{Applied, Expect, Files as _, LocalFiles, WorkspaceError};

use crate::support::{Folder, hash, picture, remove, write};

#[tokio::test]
async fn a_write_replaces_the_content_and_tells_before_and_after() {
    let folder = Folder::new();
    let file = folder.with("a", "old");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let applied = folder.apply(vec![write(&file, hash("old"), "new")]).await.unwrap();
    let wanted = Applied {
        path: file.clone(),
        before: Some(b"old".to_vec().into()),
        after: Some(b"new".to_vec().into()),
        mode: 0o640,
    };
    assert_eq!(applied, vec![wanted]);
    assert_eq!(fs::read(&file).unwrap(), b"new");
    assert_eq!(picture(folder.dir.path()).len(), 1, "no temporary file is left");
}

#[tokio::test]
async fn mode_and_owner_are_kept() {
    let folder = Folder::new();
    for mode in [0o755, 0o600, 0o444, 0o4755] {
        let file = folder.with(format!("a{mode:o}"), "old");
        let root = nix::unistd::geteuid().is_root();
        if root {
            chown(&file, Some(1234), Some(1235)).unwrap();
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let applied = folder.apply(vec![write(&file, hash("old"), "new")]).await.unwrap();
        let found = fs::metadata(&file).unwrap();
        assert_eq!((found.mode() & 0o7777, applied[0].mode), (mode, mode));
        if root {
            assert_eq!((found.uid(), found.gid()), (1234, 1235));
        }
    }
}

#[tokio::test]
async fn a_new_file_gets_its_folders_and_the_usual_mode() {
    let folder = Folder::new();
    let file = folder.path("x/y/z");
    let applied = folder.apply(vec![write(&file, Expect::Absent, "new")]).await.unwrap();
    let usual = fs::metadata(folder.with("usual", "")).unwrap().mode() & 0o7777;
    let wanted =
        Applied { path: file.clone(), before: None, after: Some(b"new".to_vec().into()), mode: usual };
    assert_eq!(applied, vec![wanted]);
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, usual);
    assert_eq!(fs::read(&file).unwrap(), b"new");
}

#[tokio::test]
async fn a_removal_unlinks_the_file() {
    let folder = Folder::new();
    let file = folder.with("a", "old");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let applied = folder.apply(vec![remove(&file, hash("old"))]).await.unwrap();
    let wanted = Applied { path: file, before: Some(b"old".to_vec().into()), after: None, mode: 0o640 };
    assert_eq!(applied, vec![wanted]);
    assert_eq!(picture(folder.dir.path()), vec![]);
}

#[tokio::test]
async fn a_write_through_a_link_changes_the_file_behind_it() {
    let folder = Folder::new();
    let file = folder.with("real/a", "old");
    fs::create_dir(folder.path("links")).unwrap();
    symlink("../real/a", folder.path("links/one")).unwrap();
    symlink("links/one", folder.path("two")).unwrap();
    folder.apply(vec![write(&folder.path("two"), hash("old"), "new")]).await.unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"new");
    assert_eq!(fs::read_link(folder.path("two")).unwrap(), Path::new("links/one"));
    assert_eq!(fs::read_link(folder.path("links/one")).unwrap(), Path::new("../real/a"));
}

#[tokio::test]
async fn a_write_through_a_link_to_nothing_makes_the_file() {
    let folder = Folder::new();
    symlink("fresh/a", folder.path("link")).unwrap();
    folder.apply(vec![write(&folder.path("link"), Expect::Absent, "new")]).await.unwrap();
    assert_eq!(fs::read(folder.path("fresh/a")).unwrap(), b"new");
    assert!(folder.path("link").is_symlink());
}

#[tokio::test]
async fn a_removal_takes_the_link_and_not_the_file_behind_it() {
    let folder = Folder::new();
    let file = folder.with("a", "old");
    symlink("a", folder.path("link")).unwrap();
    folder.apply(vec![remove(&folder.path("link"), hash("old"))]).await.unwrap();
    assert!(!folder.path("link").is_symlink());
    assert_eq!(fs::read(&file).unwrap(), b"old");
}

#[tokio::test]
async fn another_hard_link_keeps_the_old_content() {
    let folder = Folder::new();
    let file = folder.with("a", "old");
    fs::hard_link(&file, folder.path("b")).unwrap();
    folder.apply(vec![write(&file, hash("old"), "new")]).await.unwrap();
    assert_eq!(fs::read(folder.path("b")).unwrap(), b"old");
}

#[tokio::test]
async fn several_operations_are_done_in_one_go() {
    let folder = Folder::new();
    let (a, b, c) = (folder.with("a", "1"), folder.with("b", "2"), folder.path("d/c"));
    let ops = vec![write(&a, hash("1"), "one"), remove(&b, hash("2")), write(&c, Expect::Absent, "")];
    let applied = folder.apply(ops).await.unwrap();
    assert_eq!(applied.iter().map(|applied| &applied.path).collect::<Vec<_>>(), [&a, &b, &c]);
    assert_eq!((fs::read(&a).unwrap(), b.exists(), fs::read(&c).unwrap()), (b"one".to_vec(), false, vec![]));
    assert_eq!(folder.apply(vec![]).await.unwrap(), vec![]);
}

#[tokio::test]
async fn of_many_writers_with_one_expectation_one_wins() {
    for _ in 0..20 {
        let folder = Folder::new();
        let file = folder.with("a", "old");
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..8 {
            let (files, file) = (folder.files.clone(), file.clone());
            tasks.spawn(async move {
                let content = format!("writer {n}");
                files.apply(vec![write(&file, hash("old"), &content)]).await.map(|_| content)
            });
        }
        let done = tasks.join_all().await;
        let won: Vec<&String> = done.iter().flatten().collect();
        assert_eq!(won.len(), 1);
        assert_eq!(&fs::read_to_string(&file).unwrap(), won[0]);
        assert!(
            done.iter().flat_map(|done| done.as_ref().err()).all(|e| matches!(e, WorkspaceError::Stale(_)))
        );
        assert_eq!(picture(folder.dir.path()).len(), 1);
    }
}

/// Two agents in two processes share no lock: the exchange itself must show the loser.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_writers_without_a_common_lock_one_wins() {
    for _ in 0..100 {
        let folder = Folder::new();
        let file = folder.with("a", "old");
        let writer = |content: &'static str| {
            let (files, file) = (LocalFiles::new(folder.dir.path().to_owned()), file.clone());
            async move { files.apply(vec![write(&file, hash("old"), content)]).await.map(|_| content) }
        };
        let (one, two) = tokio::join!(tokio::spawn(writer("one")), tokio::spawn(writer("two")));
        let won: Vec<&str> = [one.unwrap(), two.unwrap()].into_iter().flatten().collect();
        assert_eq!(won.len(), 1);
        assert_eq!(fs::read_to_string(&file).unwrap(), won[0]);
        assert_eq!(picture(folder.dir.path()).len(), 1);
    }
}

#[tokio::test]
async fn a_content_at_hand_is_compared_and_its_hash_made_sure_of() {
    let folder = Folder::new();
    let old = "old ".repeat(100_000);
    for (held, must_be, done) in [
        (old.clone(), None, true),
        (old.clone(), Some(old.as_str()), true),
        (old.clone(), Some("another"), false),
        (format!("{old}more"), None, false),
        (old[1..].to_owned(), None, false),
        (old.replacen('d', "D", 1), Some(old.as_str()), false),
    ] {
        let file = folder.with("a", &old);
        let must_be = must_be.map(|text| Digest::of(text.as_bytes()));
        let expect = Expect::Held(held.into_bytes().into(), must_be);
        let applied = folder.apply(vec![write(&file, expect, "new")]).await;
        match applied {
            Ok(applied) => {
                assert!(done);
                assert_eq!(applied[0].before.as_deref().map(Vec::as_slice), Some(old.as_bytes()));
                assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
            }
            Err(WorkspaceError::Stale(path)) => {
                assert!(!done);
                assert_eq!((path, std::fs::read_to_string(&file).unwrap()), (file, old.clone()));
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(picture(folder.dir.path()).len(), 1, "nothing is left behind");
    }
    let gone = Expect::Held(Default::default(), None);
    let error = folder.apply(vec![write(&folder.path("b"), gone, "new")]).await.unwrap_err();
    assert!(matches!(error, WorkspaceError::Stale(_)), "{error}");
}
