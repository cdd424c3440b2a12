//! The folder of this session's agent commands. The host makes and removes it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// The host's lock may exist a moment longer than its end of our pipe.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

pub struct CommandFolder {
    path: PathBuf,
}

impl CommandFolder {
    pub fn new(path: Vec<u8>) -> Self {
        Self { path: PathBuf::from(OsString::from_vec(path)) }
    }

    /// The functions that bash starts with.
    pub fn rc(&self) -> PathBuf {
        self.path.join("rc")
    }

    /// The functions for a line that may change PATH.
    pub fn without_path(&self) -> PathBuf {
        self.path.join("path")
    }

    /// The function for a line that uses `jobs`.
    pub fn jobs(&self) -> PathBuf {
        self.path.join("jobs")
    }

    /// The folder of the commands.
    pub fn commands(&self) -> PathBuf {
        self.path.join("bin")
    }

    /// Removes the folder if the host was killed: a live host holds a lock on it.
    pub fn remove_if_left(&self) {
        for _ in 0..LOCK_TRIES {
            match File::open(&self.path).map(|folder| folder.try_lock()) {
                Err(_) => return,
                Ok(Ok(())) => {
                    let _ = fs::remove_dir_all(&self.path);
                    return;
                }
                Ok(Err(_)) => thread::sleep(LOCK_PAUSE),
            }
        }
    }
}
