//! A disk that is full at every write in turn: all is done, or all is as it was.

use std::fs;
use std::path::Path;

use lathe_workspace::{Expect, Files as _, LocalFiles, WorkspaceError};

use crate::support::{Folder, Mount, hash, picture, remove, write};

const PAGE: usize = 4096;

#[tokio::test]
async fn whichever_write_finds_no_space_the_old_files_are_whole() {
    let folder = Folder::new();
    let small = folder.path("small");
    fs::create_dir(&small).unwrap();
    let Some(_mount) = Mount::new(&["-t", "tmpfs", "-o", "size=256k"], Path::new("tmpfs"), &small) else {
        return;
    };
    let root = small.join("ws");
    let (old, new) = ("o".repeat(2 * PAGE), "n".repeat(3 * PAGE));
    let (mut done, mut told) = (0, 0);
    for (notes, several) in [(false, false), (false, true), (true, false), (true, true)] {
        for free in 0..24 {
            fs::create_dir(&root).unwrap();
            let (a, b, c) = (root.join("a"), root.join("b"), root.join("c"));
            for file in [&a, &b, &c] {
                fs::write(file, &old).unwrap();
            }
            let mut files = LocalFiles::new(root.clone());
            if notes {
                files = files.recovering(small.join("notes")).unwrap();
            }
            fill(&small.join("filler"), free);
            let before = picture(&root);
            let mut ops = vec![write(&a, hash(&old), &new)];
            if several {
                ops.push(write(&root.join("x/y/z"), Expect::Absent, &new));
                ops.push(remove(&c, hash(&old)));
                ops.push(write(&b, hash(&old), &new));
            }
            match files.apply(ops).await {
                Ok(_) => {
                    assert_eq!(fs::read_to_string(&a).unwrap(), new);
                    if several {
                        assert_eq!(fs::read_to_string(&b).unwrap(), new);
                        assert_eq!(fs::read_to_string(root.join("x/y/z")).unwrap(), new);
                        assert!(!c.exists());
                    }
                    done += 1;
                }
                Err(WorkspaceError::NoSpace(_)) => {
                    assert_eq!(picture(&root), before, "free {free}");
                    told += 1;
                }
                Err(error) => panic!("{error:?}"),
            }
            if notes {
                assert_eq!(fs::read_dir(small.join("notes")).unwrap().count(), 0);
            }
            // Inside of the small disk that this test mounted.
            fs::remove_dir_all(&root).unwrap();
            fs::remove_file(small.join("filler")).unwrap();
        }
    }
    assert!(done > 20 && told > 10, "{done} done, {told} told");
}

/// Takes all space but so many pages.
fn fill(filler: &Path, free: usize) {
    let mut file = fs::File::create(filler).unwrap();
    let mut size = 0;
    while std::io::Write::write_all(&mut file, &[1; PAGE]).is_ok() {
        size += PAGE;
    }
    file.set_len(size.saturating_sub(free * PAGE) as u64).unwrap();
}
