//! A restored file lands at its own path, never at the target of a link that was put on the way since.

use std::fs;
use std::os::unix::fs::symlink;

use lathe_blobs::Blobs;
use lathe_changes::{LineOrigin, Quarantine};

#[test]
fn nothing_is_put_back_through_a_folder_that_became_a_link() {
    for (lost, swapped) in [("o/a/b", "o/a"), ("o/a/deep/b", "o/a"), ("o/a/b", "o")] {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (path, elsewhere) = (base.join(lost), base.join("x"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::create_dir_all(elsewhere.join("a/deep")).unwrap();
        fs::create_dir_all(elsewhere.join("deep")).unwrap();
        fs::write(&path, "mine").unwrap();
        let quarantine = Quarantine::new(base.join("q"));
        let mut keeping = quarantine.begin().unwrap();
        keeping.keep(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let note =
            LineOrigin { line: "rm".to_owned(), folder: base.join("o"), session: None, call: "c".to_owned() };
        let kept = keeping.finish(note, Vec::new()).unwrap().unwrap();
        fs::rename(base.join(swapped), base.join("away")).unwrap();
        symlink(&elsewhere, base.join(swapped)).unwrap();
        let blobs = Blobs::open(base.join("blobs")).unwrap();
        let back = quarantine.restore(&kept, &blobs).unwrap();
        assert_eq!(back.done, Vec::<String>::new(), "{lost} {swapped}");
        assert!(back.left.iter().any(|(_, why)| why.contains("link")), "{back:?}");
        for landed in ["b", "deep/b", "a/b", "a/deep/b"] {
            assert!(!elsewhere.join(landed).exists(), "{lost} {swapped}: {landed}");
        }
        // With the folder in its place again, or gone, the file is restored.
        fs::remove_file(base.join(swapped)).unwrap();
        let back = quarantine.restore(&kept, &blobs).unwrap();
        assert_eq!((back.done.len(), back.left.len()), (1, 0), "{back:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }
}
