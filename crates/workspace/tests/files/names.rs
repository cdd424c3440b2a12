//! Changes of names by the user: removing and restoring, on this disk and another one, and files in pieces.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use lathe_workspace::{FileKind, WorkspaceError};

use crate::support::{Folder, picture};

/// Everything below, without what a copy cannot keep.
fn content(folder: &Path) -> Vec<(std::path::PathBuf, u32, Vec<u8>)> {
    picture(folder).into_iter().map(|(path, _, mode, bytes)| (path, mode, bytes)).collect()
}

fn goes_and_comes_back(kept: &Path) {
    let folder = Folder::new();
    folder.with("d/e/x.txt", "x\n");
    fs::set_permissions(folder.path("d/e/x.txt"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::set_permissions(folder.path("d/e"), fs::Permissions::from_mode(0o710)).unwrap();
    symlink("../../outside", folder.path("d/link")).unwrap();
    folder.with("a.txt", "a\n");
    let before = content(folder.dir.path());
    let place = kept.join("content");
    assert_eq!(folder.files.move_out(Path::new("d"), &place).unwrap(), FileKind::Directory);
    assert!(!folder.path("d").exists() && place.join("e/x.txt").exists());
    assert_eq!(content(folder.dir.path()).len(), 1, "nothing of it is left");
    folder.files.move_in(&place, Path::new("d")).unwrap();
    assert_eq!(content(folder.dir.path()), before);
    assert!(!place.exists());
    assert_eq!(folder.files.move_out(Path::new("a.txt"), &place).unwrap(), FileKind::File);
    folder.with("a.txt", "somebody else's\n");
    let refused = folder.files.move_in(&place, Path::new("a.txt"));
    assert!(matches!(refused, Err(WorkspaceError::Exists(_))), "{refused:?}");
    assert_eq!(fs::read_to_string(folder.path("a.txt")).unwrap(), "somebody else's\n");
    assert_eq!(fs::read_to_string(&place).unwrap(), "a\n");
}

#[test]
fn what_is_taken_away_comes_back_as_it_was() {
    goes_and_comes_back(tempfile::tempdir().unwrap().path());
}

#[test]
fn what_is_taken_to_another_disk_comes_back_as_it_was() {
    // If memory is not a disk of its own, this is the same as above.
    let base = Path::new("/dev/shm");
    let kept = if base.is_dir() { tempfile::tempdir_in(base) } else { tempfile::tempdir() }.unwrap();
    let here = tempfile::tempdir().unwrap();
    if fs::metadata(here.path()).unwrap().dev() == fs::metadata(kept.path()).unwrap().dev() {
        eprintln!("there is no other disk here");
    }
    goes_and_comes_back(kept.path());
}

#[test]
fn a_file_in_pieces_is_there_when_it_is_whole_and_not_before() {
    let folder = Folder::new();
    let mut incoming = folder.files.receive(Path::new("n/e/w.txt")).unwrap();
    incoming.write(b"one ").unwrap();
    assert!(!folder.path("n").exists());
    incoming.write(b"two").unwrap();
    incoming.finish().unwrap();
    assert_eq!(fs::read_to_string(folder.path("n/e/w.txt")).unwrap(), "one two");
    // One that is given up leaves nothing, and a name that was taken meanwhile is not taken over.
    drop(folder.files.receive(Path::new("n/other.txt")).unwrap());
    let late = folder.files.receive(Path::new("late.txt")).unwrap();
    folder.with("late.txt", "first\n");
    assert!(matches!(late.finish(), Err(WorkspaceError::Exists(_))));
    let left: Vec<_> = picture(folder.dir.path()).into_iter().map(|(path, ..)| path).collect();
    assert_eq!(left.len(), 4, "{left:?}");
}
