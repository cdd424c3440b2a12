//! The store through its public face, on real folders.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use lathe_blobs::{BlobError, Blobs};
use lathe_protocol::Digest;

fn store() -> (tempfile::TempDir, PathBuf, Blobs) {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("deep").join("blobs");
    let blobs = Blobs::open(dir.clone()).unwrap();
    (home, dir, blobs)
}

fn file_of(dir: &Path, digest: &Digest) -> PathBuf {
    dir.join(&digest.as_str()[..2]).join(&digest.as_str()[2..])
}

fn digest_of_text(text: &str) -> Digest {
    // The way a digest from a hostile event comes in.
    serde_json::from_value(serde_json::Value::String(text.to_owned())).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_was_put_is_got_whatever_its_size() {
    let (_home, _dir, blobs) = store();
    let noise: Vec<u8> = (0..200_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    for bytes in [&b""[..], b"x", &[0; 3_000_000], &noise] {
        let digest = blobs.put(bytes).unwrap();
        assert_eq!(digest, Digest::of(bytes));
        assert_eq!(blobs.get(&digest).unwrap().as_deref(), Some(bytes));
    }
}

#[test]
fn the_folder_is_made_by_the_first_put_and_nothing_is_open_to_others() {
    let (_home, dir, blobs) = store();
    assert!(!dir.exists());
    let digest = blobs.put(b"hello").unwrap();
    let file = file_of(&dir, &digest);
    assert_eq!((mode(&dir), mode(file.parent().unwrap()), mode(&file)), (0o700, 0o700, 0o600));
}

#[test]
fn putting_again_does_no_work_and_leaves_no_other_file() {
    let (_home, dir, blobs) = store();
    let digest = blobs.put(b"hello").unwrap();
    let file = file_of(&dir, &digest);
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    assert_eq!(blobs.put(b"hello").unwrap(), digest);
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), before);
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn large_text_is_packed() {
    let (_home, dir, blobs) = store();
    let digest = blobs.put("the same line\n".repeat(10_000).as_bytes()).unwrap();
    assert!(fs::metadata(file_of(&dir, &digest)).unwrap().len() < 10_000);
}

#[test]
fn a_blob_that_vanished_or_never_was_is_none() {
    let (_home, dir, blobs) = store();
    assert_eq!(blobs.get(&Digest::of(b"never")).unwrap(), None);
    let digest = blobs.put(b"hello").unwrap();
    fs::remove_file(file_of(&dir, &digest)).unwrap();
    assert_eq!(blobs.get(&digest).unwrap(), None);
}

#[test]
fn damage_is_an_error_and_never_other_bytes() {
    let (_home, dir, blobs) = store();
    let digest = blobs.put("hello hello hello hello".repeat(20).as_bytes()).unwrap();
    let file = file_of(&dir, &digest);
    let whole = fs::read(&file).unwrap();
    let other = blobs.put(b"other").unwrap();

    let mut huge_size = whole.clone();
    huge_size[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    let swapped = fs::read(file_of(&dir, &other)).unwrap();
    let mut cases = vec![huge_size, swapped, b"garbage".to_vec()];
    cases.extend((0..whole.len()).map(|len| whole[..len].to_vec()));
    cases.extend((0..whole.len()).map(|at| {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x55;
        flipped
    }));
    for case in cases {
        fs::write(&file, &case).unwrap();
        let error = blobs.get(&digest).unwrap_err();
        assert!(matches!(error, BlobError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(digest.short()), "{error}");
    }
}

#[test]
fn an_emptied_file_is_healed_by_the_next_put() {
    let (_home, dir, blobs) = store();
    let digest = blobs.put(b"hello").unwrap();
    fs::write(file_of(&dir, &digest), b"").unwrap();
    blobs.put(b"hello").unwrap();
    assert_eq!(blobs.get(&digest).unwrap().as_deref(), Some(&b"hello"[..]));
}

#[test]
fn a_hostile_digest_is_no_path() {
    let (home, _dir, blobs) = store();
    fs::write(home.path().join("secret"), b"s").unwrap();
    let upper = Digest::of(b"x").as_str().to_uppercase();
    let with_slash = format!("..{}", "/".repeat(62));
    let wide = "é".repeat(32);
    for text in ["", "..", "../../secret", "/etc/passwd", &with_slash, &upper, &wide, &"a".repeat(65)] {
        let error = blobs.get(&digest_of_text(text)).unwrap_err();
        assert!(matches!(error, BlobError::BadDigest { .. }), "{text:?}: {error}");
    }
}

#[test]
fn a_file_in_place_of_the_folder_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("blobs");
    fs::write(&path, b"").unwrap();
    let error = Blobs::open(path).unwrap_err();
    assert!(error.to_string().contains("blobs"), "{error}");
}

#[test]
fn many_threads_may_put_the_same_bytes() {
    let (_home, _dir, blobs) = store();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let blobs = blobs.clone();
            scope.spawn(move || {
                for n in 0..20u32 {
                    let digest = blobs.put(&n.to_le_bytes()).unwrap();
                    assert_eq!(blobs.get(&digest).unwrap().unwrap(), n.to_le_bytes());
                }
            });
        }
    });
}

#[test]
fn a_batch_is_readable_once_finished_and_leaves_no_other_file() {
    for number in [0, 1, 3, 200] {
        let (_home, dir, blobs) = store();
        let known = blobs.put(b"known").unwrap();
        let batch = blobs.batch();
        let mut names: Vec<Digest> =
            (0..number).map(|at| batch.put(format!("blob {at}").as_bytes()).unwrap()).collect();
        assert_eq!(batch.put(b"known").unwrap(), known);
        assert!(names.iter().all(|name| blobs.get(name).unwrap().is_none()));
        names.extend((0..number).map(|at| batch.put(format!("blob {at}").as_bytes()).unwrap()));
        batch.finish().unwrap();
        for (at, name) in names.iter().enumerate() {
            let expected = format!("blob {}", at % number);
            assert_eq!(blobs.get(name).unwrap().as_deref(), Some(expected.as_bytes()));
            assert!(blobs.has(name).unwrap());
            assert_eq!(mode(&file_of(&dir, name)), 0o600);
        }
        assert_eq!(files_in(&dir), number + 1);
    }
}

#[test]
fn a_batch_that_is_given_up_leaves_nothing() {
    let (_home, dir, blobs) = store();
    let batch = blobs.batch();
    let name = batch.put(b"given up").unwrap();
    drop(batch);
    assert!(!blobs.has(&name).unwrap());
    assert_eq!(files_in(&dir), 0);
}

#[test]
fn threads_share_a_batch() {
    let (_home, dir, blobs) = store();
    let batch = blobs.batch();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..100).for_each(|at| drop(batch.put(format!("{at}").as_bytes()).unwrap())));
        }
    });
    batch.finish().unwrap();
    assert_eq!(files_in(&dir), 100);
}

#[test]
fn a_large_blob_is_named_after_it_was_written_and_leaves_no_other_file() {
    let (_home, dir, blobs) = store();
    let large: Vec<u8> = (0..400_000_u32).flat_map(u32::to_le_bytes).collect();
    let digest = blobs.put(&large).unwrap();
    assert_eq!(digest, Digest::of(&large));
    assert_eq!(mode(&file_of(&dir, &digest)), 0o600);
    assert_eq!(blobs.put(&large).unwrap(), digest, "a second time");
    assert_eq!(blobs.get(&digest).unwrap(), Some(large.clone()));
    fs::remove_dir_all(file_of(&dir, &digest).parent().unwrap()).unwrap();
    assert_eq!(blobs.put(&large).unwrap(), digest, "in a store whose folder for it is missing");
    assert_eq!(blobs.get(&digest).unwrap(), Some(large));
    assert_eq!(files_in(&dir), 1, "and nothing beside it");
    let loose = fs::read_dir(&dir).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_file());
    assert_eq!(loose.count(), 0);
}

fn files_in(dir: &Path) -> usize {
    let shards = fs::read_dir(dir).unwrap().map(|shard| shard.unwrap().path());
    shards.map(|shard| fs::read_dir(shard).unwrap().count()).sum()
}
