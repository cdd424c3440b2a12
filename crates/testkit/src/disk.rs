//! A small disk of a test's own.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system in memory, unmounted however the test ends.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a disk of this size (`4m`) over a folder, which is created.
    ///
    /// A test that cannot have its disk has shown nothing, so it fails. On a machine where mounting is not allowed,
    /// `LATHE_TEST_WITHOUT_MOUNTS=1` lets such tests pass without trying: then there is no disk.
    pub fn mount(at: &Path, size: &str) -> Option<Self> {
        if std::env::var("LATHE_TEST_WITHOUT_MOUNTS").is_ok_and(|value| value == "1") {
            return None;
        }
        std::fs::create_dir_all(at).unwrap();
        let options = format!("size={size},mode=755");
        let ran = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).output();
        let why = match &ran {
            Ok(ran) if ran.status.success() => return Some(Self(at.to_owned())),
            Ok(ran) => String::from_utf8_lossy(&ran.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        panic!(
            "no disk can be mounted here, so this test shows nothing: {why}\n\
             Run it as root, or set LATHE_TEST_WITHOUT_MOUNTS=1 to go without."
        );
    }

    /// Mounts it again with other options (`ro`, `size=8m`).
    pub fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        let ran = Command::new("mount").args(["-o", &options]).arg(&self.0).status();
        assert!(ran.unwrap().success(), "{options}");
    }

    /// Fills all that is left of it.
    pub fn fill(&self) {
        let mut file = std::fs::File::create(self.filler()).unwrap();
        for size in [65536, 4096, 512, 1] {
            while file.write_all(&vec![0u8; size]).is_ok() {}
        }
    }

    /// Fills it until only about so many bytes are left.
    pub fn fill_except(&self, left: u64) {
        self.fill();
        let file = std::fs::OpenOptions::new().write(true).open(self.filler()).unwrap();
        let filled = file.metadata().unwrap().len();
        file.set_len(filled.saturating_sub(left)).unwrap();
    }

    /// Takes away what filled it.
    pub fn free(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
