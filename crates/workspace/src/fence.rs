//! A fence around a child: the folders that it may use, under any name.
//!
//! A program that is given names resolves them again, and a link that is swapped in between leads it elsewhere. With
//! landlock the kernel compares the real location of each file that the child opens with folders that were opened
//! before it was started. A kernel without landlock has no fence: the caller checks [`Fence::is_closed`] and takes
//! its own precautions.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;

use nix::libc;

/// The use that a child may make of a file, or of everything below a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceRight {
    Read,
    /// Reading and starting programs.
    Run,
    /// Reading, writing, creating and removing.
    Write,
}

/// Limits and descriptors that a child gets before its program begins. The default has none.
#[derive(Debug, Clone, Default)]
pub struct Fence {
    inherited: Vec<Arc<OwnedFd>>,
    rules: Option<Arc<OwnedFd>>,
    umask: Option<u32>,
}

impl Fence {
    /// A fence that lets a child use only these places. Open if the kernel has no landlock.
    pub fn around(places: &[(BorrowedFd<'_>, FenceRight)]) -> io::Result<Self> {
        let rules = system::ruleset(places)?.map(Arc::new);
        Ok(Self { rules, ..Self::default() })
    }

    /// Lets the child inherit a descriptor, under its number.
    pub fn inherit(&mut self, descriptor: &Arc<OwnedFd>) {
        self.inherited.push(Arc::clone(descriptor));
    }

    /// The umask of the child, if it has one of its own.
    pub(crate) fn umask(&self) -> Option<u32> {
        self.umask
    }

    /// The numbers of the inherited descriptors.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = i32> {
        self.inherited.iter().map(|descriptor| descriptor.as_raw_fd())
    }

    /// The same descriptors, without limits and umask.
    pub(crate) fn descriptors_only(&self) -> Self {
        Self { rules: None, umask: None, ..self.clone() }
    }

    /// The same descriptors, without the limits.
    #[must_use]
    pub fn opened(&self) -> Self {
        Self { rules: None, ..self.clone() }
    }

    /// Sets the umask of the child. None: that of this process.
    pub fn set_umask(&mut self, umask: Option<u32>) {
        self.umask = umask;
    }

    /// Tells whether the kernel keeps the child inside.
    pub fn is_closed(&self) -> bool {
        self.rules.is_some()
    }

    /// Puts the fence around the process that a command starts.
    pub fn apply(&self, command: &mut Command) {
        if self.inherited.is_empty() && self.rules.is_none() && self.umask.is_none() {
            return;
        }
        let fence = self.clone();
        let enter = move || {
            if let Some(umask) = fence.umask {
                nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(umask));
            }
            for descriptor in &fence.inherited {
                // SAFETY: the number is that of an open descriptor, which `fence` owns.
                if unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, 0) } < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            fence.rules.as_ref().map_or(Ok(()), |rules| system::enter(rules))
        };
        // SAFETY: between fork and exec only system calls are made: nothing is allocated or locked.
        unsafe { command.pre_exec(enter) };
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

    use nix::libc;

    use super::FenceRight;

    const EXECUTE: u64 = 1;
    const WRITE_FILE: u64 = 1 << 1;
    const READ_FILE: u64 = 1 << 2;
    const READ_FOLDER: u64 = 1 << 3;
    const REMOVE: u64 = 0b11 << 4;
    const MAKE_FOLDER: u64 = 1 << 7;
    const MAKE_FILE: u64 = 1 << 8;
    const MAKE_LINK: u64 = 1 << 12;
    const MOVE: u64 = 1 << 13;
    const TRUNCATE: u64 = 1 << 14;
    /// The rights of the first version.
    const FIRST: u64 = (1 << 13) - 1;
    const DEVICE_CONTROL: u64 = 1 << 15;
    /// The rights that a rule about a single file can give.
    const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE;
    /// Binding and connecting. Neither is ever allowed.
    const NETWORK: u64 = 0b11;

    const ASK_VERSION: libc::c_uint = 1;
    const RULE_BENEATH: libc::c_uint = 1;

    #[repr(C)]
    struct Handled {
        files: u64,
        network: u64,
    }

    #[repr(C, packed)]
    struct Beneath {
        allowed: u64,
        place: libc::c_int,
    }

    fn rights(right: FenceRight) -> u64 {
        let read = READ_FILE | READ_FOLDER;
        match right {
            FenceRight::Read => read,
            FenceRight::Run => read | EXECUTE,
            FenceRight::Write => {
                read | WRITE_FILE | REMOVE | MAKE_FOLDER | MAKE_FILE | MAKE_LINK | MOVE | TRUNCATE
            }
        }
    }

    fn version() -> Option<libc::c_long> {
        let none = std::ptr::null::<Handled>();
        // SAFETY: with this flag the kernel reads no attributes and only returns a number.
        let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, ASK_VERSION) };
        (version > 0).then_some(version)
    }

    /// The rules as a kernel object. None if the kernel has no landlock.
    pub(super) fn ruleset(places: &[(BorrowedFd<'_>, FenceRight)]) -> io::Result<Option<OwnedFd>> {
        let Some(version) = version() else { return Ok(None) };
        let mut files = FIRST;
        for (since, right) in [(2, MOVE), (3, TRUNCATE), (5, DEVICE_CONTROL)] {
            files |= if version >= since { right } else { 0 };
        }
        let handled = Handled { files, network: if version >= 4 { NETWORK } else { 0 } };
        // Before the fourth version the kernel knows only the first field.
        let size = if version >= 4 { size_of::<Handled>() } else { size_of::<u64>() };
        // SAFETY: `handled` lives through the call and has at least `size` bytes.
        let made = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, size, 0) };
        let made = libc::c_int::try_from(made).ok().filter(|made| *made >= 0);
        let made = made.ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
        let rules = unsafe { OwnedFd::from_raw_fd(made) };
        for (place, right) in places {
            let kind = nix::sys::stat::fstat(place)?.st_mode & libc::S_IFMT;
            let of_kind = if kind == libc::S_IFDIR { u64::MAX } else { OF_FILES };
            let rule = Beneath { allowed: rights(*right) & files & of_kind, place: place.as_raw_fd() };
            // SAFETY: `rule` lives through the call, and both descriptors are open.
            let added = unsafe {
                libc::syscall(
                    libc::SYS_landlock_add_rule,
                    rules.as_raw_fd(),
                    RULE_BENEATH,
                    &raw const rule,
                    0,
                )
            };
            if added < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Some(rules))
    }

    /// Closes the fence around this process permanently.
    pub(super) fn enter(rules: &OwnedFd) -> io::Result<()> {
        // SAFETY: system calls with numbers only.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) == 0
        };
        if done { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;
    use std::os::fd::{BorrowedFd, OwnedFd};

    use super::FenceRight;

    pub(super) fn ruleset(_: &[(BorrowedFd<'_>, FenceRight)]) -> io::Result<Option<OwnedFd>> {
        Ok(None)
    }

    pub(super) fn enter(_: &OwnedFd) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsFd as _;

    use super::*;

    /// The output of a script that may read `in`, write `out`, and run programs of the system.
    fn run(folder: &std::path::Path, script: &str) -> (bool, String) {
        let system: Vec<File> = ["/usr", "/bin", "/lib", "/lib64", "/etc"]
            .iter()
            .filter_map(|place| File::open(place).ok())
            .collect();
        let (read, write) = (File::open(folder.join("in")).unwrap(), File::open(folder.join("out")).unwrap());
        let mut places: Vec<_> = system.iter().map(|place| (place.as_fd(), FenceRight::Run)).collect();
        places.extend([(read.as_fd(), FenceRight::Read), (write.as_fd(), FenceRight::Write)]);
        let mut fence = Fence::around(&places).unwrap();
        let held = Arc::new(OwnedFd::from(read.try_clone().unwrap()));
        fence.inherit(&held);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).current_dir(folder).env("HELD", held.as_raw_fd().to_string());
        fence.apply(&mut command);
        let done = command.output().unwrap();
        (fence.is_closed(), String::from_utf8_lossy(&done.stdout).into_owned())
    }

    #[test]
    fn a_child_uses_only_the_places_it_is_given() {
        let world = tempfile::tempdir().unwrap();
        let folder = world.path();
        for name in ["in", "out", "away"] {
            fs::create_dir(folder.join(name)).unwrap();
            fs::write(folder.join(name).join("file"), name).unwrap();
        }
        std::os::unix::fs::symlink("../away/file", folder.join("in/link")).unwrap();
        std::os::unix::fs::symlink("../away", folder.join("out/link")).unwrap();
        let (_, said) = run(folder, "cat in/file /proc/self/fd/$HELD/file; echo x > out/new && cat out/new");
        assert_eq!(said, "inin".to_owned() + "x\n");
        let (is_closed, said) = run(
            folder,
            "cat in/link away/file; ls away; echo x > in/new; echo x > out/link/new; ln away/file out/hard; cat out/hard",
        );
        if is_closed {
            assert_eq!(said, "");
            assert!(!folder.join("in/new").exists() && !folder.join("away/new").exists());
        }
    }
}
