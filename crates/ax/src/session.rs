//! The folder that the agent commands of this session live in. The host has made it and removes it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// The host's lock may live a moment longer than its end of our pipe.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

pub struct Session {
    path: PathBuf,
}

impl Session {
    pub fn new(path: Vec<u8>) -> Self {
        Self { path: PathBuf::from(OsString::from_vec(path)) }
    }

    /// The functions that bash starts with.
    pub fn rc(&self) -> PathBuf {
        self.path.join("rc")
    }

    /// The functions for a line that may give PATH another value.
    pub fn without_path(&self) -> PathBuf {
        self.path.join("path")
    }

    /// The function for a line that speaks of jobs.
    pub fn jobs(&self) -> PathBuf {
        self.path.join("jobs")
    }

    /// The folder of the commands.
    pub fn commands(&self) -> PathBuf {
        self.path.join("bin")
    }

    /// The host holds a lock on the folder. One that was killed cannot remove it.
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
