//! The private folder: FIFOs between bash and us, and the state of bash.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::bash::quote;
use crate::system::{O_NONBLOCK, make_fifo};

pub struct PrivateFolder {
    path: PathBuf,
    random: File,
    /// A lock that shows that the folder is in use.
    lock: File,
    /// The FIFO for bash's answers. Opened for reading and writing, so it never ends.
    pub answers: File,
}

/// The two state files, written in turn: one of them is always complete.
const STATES: [&str; 2] = ["s0", "s1"];

const SWEEP_AGE: Duration = Duration::from_secs(60);

impl PrivateFolder {
    /// Makes the folder with a short path; in memory if possible, since bash writes there after every line.
    pub fn make() -> io::Result<Self> {
        let mut random = File::open("/dev/urandom")?;
        let name = format!("ax.{}", &token(&mut random)?[..8]);
        let given = std::env::var_os("TMPDIR").map(PathBuf::from);
        let given = given.filter(|dir| dir.is_absolute() && dir.as_os_str().len() < 80);
        let usual = ["/dev/shm", "/tmp", "/var/tmp"].map(PathBuf::from);
        let mut last = io::Error::from(ErrorKind::NotFound);
        for parent in usual.iter().take(1).chain(&given).chain(usual.iter().skip(1)) {
            let path = parent.join(&name);
            match make_content(&path) {
                Ok((answers, lock)) => {
                    sweep(parent);
                    return Ok(Self { path, random, lock, answers });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Repairs the folder if it was removed in a cleanup of temporary files.
    pub fn repair(&mut self) -> io::Result<()> {
        if fs::symlink_metadata(self.path.join("a")).is_err() {
            let _ = fs::remove_dir_all(&self.path);
            (self.answers, self.lock) = make_content(&self.path)?;
        }
        Ok(())
    }

    pub fn remove(&self) {
        let _ = fs::remove_dir_all(&self.path);
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The quoted path of a file, as part of a statement.
    pub fn quoted(&self, name: &str) -> Vec<u8> {
        quote(self.path.join(name).as_os_str().as_bytes())
    }

    /// Writes a file such that bash finds either the old content or the new one.
    pub fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let new = self.path.join("new");
        fs::write(&new, content)?;
        fs::rename(new, self.path.join(name))
    }

    pub fn delete(&self, name: &str) {
        let _ = fs::remove_file(self.path.join(name));
    }

    pub fn quoted_state(&self, slot: usize) -> Vec<u8> {
        self.quoted(STATES[slot])
    }

    /// A state, if bash wrote it completely.
    pub fn state(&self, slot: usize, token: &str) -> Option<Vec<u8>> {
        let state = fs::read(self.path.join(STATES[slot])).ok()?;
        state.ends_with(format!("\n#{token}\n").as_bytes()).then_some(state)
    }

    /// The FIFO that bash reads its script from. Opened for reading and writing, so that neither side waits for the
    /// other, and non-blocking: a statement that does not fit into the pipe is an error.
    pub fn new_script(&self) -> io::Result<File> {
        let path = self.path.join("bash");
        let _ = fs::remove_file(&path);
        make_fifo(&path)?;
        OpenOptions::new().read(true).write(true).custom_flags(O_NONBLOCK).open(path)
    }

    /// Opened again for each line: otherwise "no writer yet" looks like "all writers gone".
    pub fn open_output(&self, name: &str) -> io::Result<File> {
        let path = self.path.join(name);
        let open = || OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(&path);
        match open() {
            Err(error) if error.kind() == ErrorKind::NotFound => make_fifo(&path).and_then(|()| open()),
            result => result,
        }
    }

    pub fn token(&mut self) -> io::Result<String> {
        token(&mut self.random)
    }
}

fn token(random: &mut File) -> io::Result<String> {
    let mut bytes = [0; 8];
    random.read_exact(&mut bytes)?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

/// Makes the folder. The state files are made here, so that bash's umask does not affect them.
fn make_content(dir: &Path) -> io::Result<(File, File)> {
    DirBuilder::new().mode(0o700).create(dir)?;
    let lock = File::open(dir)?;
    lock.lock()?;
    for name in STATES {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(dir.join(name))?;
    }
    let answers = dir.join("a");
    make_fifo(&answers)?;
    let answers = OpenOptions::new().read(true).write(true).custom_flags(O_NONBLOCK).open(answers)?;
    Ok((answers, lock))
}

/// Removes folders of supervisors that were killed: they contain environments, which may contain secrets. A new
/// folder is left alone for a while, since it is made before it is locked.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().as_bytes().starts_with(b"ax.");
        let age = entry.metadata().and_then(|data| data.modified()).map(|time| time.elapsed());
        if is_ours
            && matches!(age, Ok(Ok(age)) if age > SWEEP_AGE)
            && File::open(entry.path()).is_ok_and(|dir| dir.try_lock().is_ok())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
