//! Resolution of a path name by name, as the kernel does it, without opening anything.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;

use super::{Guard, Last};

/// The number of links that the kernel follows.
const MAX_LINKS: usize = 40;

pub(super) enum StepError {
    /// A link whose text is not a path: it only describes what the kernel would open.
    Magic,
    /// The folder that no path may lead into.
    Closed,
    Io(io::Error),
}

impl From<io::Error> for StepError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Errno> for StepError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

/// The state of a resolution.
pub(super) struct Steps<'a> {
    guard: &'a Guard,
    /// The resolved part: a path without links.
    pub(super) at: PathBuf,
    /// The remaining names, the next one last.
    todo: Vec<OsString>,
    links: usize,
    /// The number of names at the end of `at` that do not exist.
    pub(super) missing: usize,
}

impl<'a> Steps<'a> {
    pub(super) fn new(guard: &'a Guard, at: PathBuf, path: &Path) -> Self {
        let mut steps = Self { guard, at, todo: Vec::new(), links: 0, missing: 0 };
        steps.push(path);
        steps
    }

    fn push(&mut self, path: &Path) {
        let names = path.components().rev().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        });
        self.todo.extend(names);
    }

    pub(super) fn walk(&mut self, last: Last, folder: bool) -> Result<(), StepError> {
        while let Some(name) = self.todo.pop() {
            if name == ".." {
                // The kernel does not go back from a missing folder.
                if self.missing > 0 {
                    return Err(Errno::ENOENT.into());
                }
                self.at.pop();
                continue;
            }
            self.at.push(&name);
            if self.missing > 0 {
                self.missing += 1;
                continue;
            }
            let (found, leads) = match self.guard.step(&self.at) {
                Ok(step) => step,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.missing = 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if self.guard.is_closed(&found) {
                return Err(StepError::Closed);
            }
            match leads {
                Some(_) if self.todo.is_empty() && last == Last::Kept => {}
                Some(leads) => self.follow(Path::new(&leads))?,
                None if !found.is_folder() && (folder || !self.todo.is_empty()) => {
                    return Err(Errno::ENOTDIR.into());
                }
                None => {}
            }
        }
        Ok(())
    }

    fn follow(&mut self, leads: &Path) -> Result<(), StepError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Errno::ELOOP.into());
        }
        self.at.pop();
        if is_magic(&self.at) {
            return Err(StepError::Magic);
        }
        if leads.as_os_str().is_empty() {
            return Err(Errno::ENOENT.into());
        }
        if leads.is_absolute() {
            self.at = PathBuf::from("/");
        }
        self.push(leads);
        Ok(())
    }
}

/// Tells whether the kernel makes the links in this folder: those of `/proc` lead to open files and other roots.
#[cfg(target_os = "linux")]
fn is_magic(folder: &Path) -> bool {
    use nix::sys::statfs::{PROC_SUPER_MAGIC, statfs};
    statfs(folder).is_ok_and(|found| found.filesystem_type() == PROC_SUPER_MAGIC)
}

#[cfg(not(target_os = "linux"))]
fn is_magic(_: &Path) -> bool {
    false
}
