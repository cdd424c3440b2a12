//! The system calls of walls, as safe functions: namespaces, capabilities, landlock, seccomp.

use std::ffi::{CString, c_char, c_int, c_long, c_ulong, c_void};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn prctl(option: c_int, arg: c_ulong, a3: c_ulong, a4: c_ulong, a5: c_ulong) -> c_int;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn unshare(flags: c_int) -> c_int;
    fn mount(
        source: *const c_char,
        target: *const c_char,
        kind: *const c_char,
        flags: c_ulong,
        data: *const c_void,
    ) -> c_int;
    fn setrlimit(resource: c_int, limit: *const ResourceLimit) -> c_int;
    fn getrlimit(resource: c_int, limit: *mut ResourceLimit) -> c_int;
    fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
    fn sendmsg(socket: c_int, message: *const MessageHeader, flags: c_int) -> isize;
    fn umask(mask: u32) -> u32;
    fn geteuid() -> u32;
    fn getegid() -> u32;
}

#[repr(C)]
struct ResourceLimit {
    soft: u64,
    hard: u64,
}

const O_PATH: c_int = 0o10_000_000;
const O_CLOEXEC: c_int = 0o2_000_000;
const F_GETFD: c_int = 1;
const F_SETFD: c_int = 2;
const FD_CLOEXEC: c_int = 1;

const CLONE_NEWNS: c_int = 0x20_000;
const CLONE_NEWUSER: c_int = 0x1000_0000;
const MS_NOSUID: c_ulong = 2;
const MS_NODEV: c_ulong = 4;
const MS_BIND: c_ulong = 4096;
const MS_REC: c_ulong = 16_384;
const MS_PRIVATE: c_ulong = 1 << 18;

const PR_SET_SECCOMP: c_int = 22;
const PR_CAPBSET_DROP: c_int = 24;
const PR_SET_NO_NEW_PRIVS: c_int = 38;
const PR_CAP_AMBIENT: c_int = 47;
const PR_CAP_AMBIENT_CLEAR_ALL: c_ulong = 4;
const SECCOMP_MODE_FILTER: c_ulong = 2;
const CAPABILITY_VERSION: u32 = 0x2008_0522;

#[cfg(target_arch = "x86_64")]
const SYS_CAPGET: c_long = 125;
#[cfg(target_arch = "x86_64")]
const SYS_CAPSET: c_long = 126;
#[cfg(not(target_arch = "x86_64"))]
const SYS_CAPGET: c_long = 90;
#[cfg(not(target_arch = "x86_64"))]
const SYS_CAPSET: c_long = 91;
#[cfg(target_arch = "x86_64")]
const SYS_TRUNCATE: u32 = 76;
#[cfg(not(target_arch = "x86_64"))]
const SYS_TRUNCATE: u32 = 45;
// These have the same numbers on all architectures.
const SYS_LANDLOCK_CREATE_RULESET: c_long = 444;
const SYS_LANDLOCK_ADD_RULE: c_long = 445;
const SYS_LANDLOCK_RESTRICT_SELF: c_long = 446;

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_FOLDER: u64 = 1 << 3;
const MAKE_DEVICES: u64 = 1 << 6 | 1 << 11;
const MOVE: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const DEVICE_CONTROL: u64 = 1 << 15;
/// The rights of the first version.
const FIRST: u64 = (1 << 13) - 1;
/// The rights that a rule about a single file can give.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | DEVICE_CONTROL;
/// Binding and connecting over TCP.
const NETWORK: u64 = 0b11;
/// Abstract sockets and signals stay among the processes inside.
const SCOPES: u64 = 0b11;

/// The use of a place that landlock allows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Listing folders and starting programs.
    List,
    Read,
    /// Everything but making devices.
    Write,
    /// Reading, writing and controlling a device.
    Device,
}

impl Access {
    fn rights(self) -> u64 {
        match self {
            Self::List => EXECUTE | READ_FOLDER,
            Self::Read => EXECUTE | READ_FOLDER | READ_FILE,
            Self::Write => (FIRST | MOVE | TRUNCATE | DEVICE_CONTROL) & !MAKE_DEVICES,
            Self::Device => READ_FILE | WRITE_FILE | TRUNCATE | DEVICE_CONTROL,
        }
    }
}

#[repr(C)]
struct HandledRights {
    files: u64,
    network: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct BeneathRule {
    allowed: u64,
    place: c_int,
}

#[repr(C)]
struct FilterProgram {
    count: u16,
    code: *const u8,
}

#[repr(C)]
struct Piece {
    start: *const c_void,
    length: usize,
}

#[repr(C)]
struct MessageHeader {
    name: *const c_void,
    name_length: u32,
    pieces: *const Piece,
    count: usize,
    control: *const c_void,
    control_length: usize,
    flags: c_int,
}

/// A control message with one descriptor, padded to the size of a word.
#[repr(C)]
struct SentDescriptor {
    length: usize,
    level: c_int,
    kind: c_int,
    descriptor: c_int,
    padding: c_int,
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

fn done(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// A descriptor that was inherited under this number, and that this process alone uses.
pub fn inherited(number: c_int) -> io::Result<File> {
    // SAFETY: a system call without pointers.
    done(unsafe { fcntl(number, F_GETFD) }.into())?;
    // SAFETY: it is open, and nothing else in this process owns it.
    Ok(unsafe { File::from_raw_fd(number) })
}

/// A handle of a place, which can be mounted elsewhere.
pub fn open_place(path: &Path) -> io::Result<OwnedFd> {
    let path = c_path(path)?;
    // SAFETY: `path` is a terminated string that outlives the call.
    let place = done(unsafe { open(path.as_ptr(), O_PATH | O_CLOEXEC) }.into())?;
    // SAFETY: it was just made and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(place as c_int) })
}

/// Closes every descriptor when the program begins, except the standard ones and those in `kept`.
pub fn close_all_but(kept: &[c_int]) -> io::Result<()> {
    let name = |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let open: Vec<c_int> = std::fs::read_dir("/proc/self/fd")?.filter_map(name).collect();
    for fd in open.into_iter().filter(|fd| *fd > 2 && !kept.contains(fd)) {
        // SAFETY: system calls without pointers. The descriptor of the folder is closed already, which does no harm.
        unsafe { fcntl(fd, F_SETFD, FD_CLOEXEC) };
    }
    Ok(())
}

/// Sends a descriptor over a unix socket.
pub fn send_descriptor(socket: c_int, descriptor: c_int) -> io::Result<()> {
    const SOL_SOCKET: c_int = 1;
    const SCM_RIGHTS: c_int = 1;
    let byte = 0_u8;
    let piece = Piece { start: (&raw const byte).cast(), length: 1 };
    // The length does not include the padding.
    let length = size_of::<usize>() + 3 * size_of::<c_int>();
    let sent = SentDescriptor { length, level: SOL_SOCKET, kind: SCM_RIGHTS, descriptor, padding: 0 };
    let message = MessageHeader {
        name: std::ptr::null(),
        name_length: 0,
        pieces: &raw const piece,
        count: 1,
        control: (&raw const sent).cast(),
        control_length: size_of::<SentDescriptor>(),
        flags: 0,
    };
    // SAFETY: the message and what it points to live through the call.
    match unsafe { sendmsg(socket, &raw const message, 0) } {
        1 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

pub fn set_umask(mask: u32) {
    // SAFETY: a system call without pointers.
    unsafe { umask(mask) };
}

/// Limits a resource, unless its limit is lower already.
pub fn limit(resource: u32, most: u64) -> io::Result<()> {
    let mut limit = ResourceLimit { soft: 0, hard: 0 };
    // SAFETY: `limit` lives through both calls.
    unsafe {
        done(getrlimit(resource as c_int, &mut limit).into())?;
        limit.hard = limit.hard.min(most);
        limit.soft = limit.soft.min(limit.hard);
        done(setrlimit(resource as c_int, &limit).into())?;
    }
    Ok(())
}

/// Enters a user namespace with the same user and group, and a mount namespace.
pub fn enter_own_namespaces() -> io::Result<()> {
    // SAFETY: system calls without pointers; this process has one thread.
    let (user, group) = unsafe { (geteuid(), getegid()) };
    // SAFETY: as above.
    done(unsafe { unshare(CLONE_NEWUSER | CLONE_NEWNS) }.into())?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    let root = c"/".as_ptr();
    // SAFETY: the strings are constants; the others are null, which these flags allow.
    let private =
        unsafe { mount(std::ptr::null(), root, std::ptr::null(), MS_REC | MS_PRIVATE, std::ptr::null()) };
    done(private.into()).map(drop)
}

/// Mounts a layer over a folder.
pub fn mount_layer(folder: &Path, options: &[u8]) -> io::Result<()> {
    let (folder, options) = (c_path(folder)?, CString::new(options)?);
    let (name, flags) = (c"overlay".as_ptr(), MS_NOSUID | MS_NODEV);
    // SAFETY: all strings are terminated and outlive the call.
    done(unsafe { mount(name, folder.as_ptr(), name, flags, options.as_ptr().cast()) }.into()).map(drop)
}

/// Mounts a place that was opened before at a path.
pub fn mount_again(place: &OwnedFd, path: &Path) -> io::Result<()> {
    let from = CString::new(format!("/proc/self/fd/{}", place.as_raw_fd()))?;
    let to = c_path(path)?;
    let (kind, data) = (std::ptr::null(), std::ptr::null());
    // SAFETY: both strings are terminated and outlive the call; the rest may be null for a bind.
    done(unsafe { mount(from.as_ptr(), to.as_ptr(), kind, MS_BIND | MS_REC, data) }.into()).map(drop)
}

/// Gives up every capability for good. An error if one is left.
pub fn drop_capabilities() -> io::Result<()> {
    let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let mut held = [0_u32; 6];
    // SAFETY: system calls with numbers, and with pointers to values that live through the calls.
    unsafe {
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        // Without the right to do so there is nothing to give up that a program could get back.
        for capability in 0..64 {
            prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
        }
        done(syscall(SYS_CAPSET, &raw const header, held.as_ptr()))?;
        done(syscall(SYS_CAPGET, &raw const header, held.as_mut_ptr()))?;
        done(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
    }
    match held.iter().all(|bits| *bits == 0) {
        true => Ok(()),
        false => Err(io::Error::new(ErrorKind::PermissionDenied, "capabilities are left")),
    }
}

/// Lets this process use only these places from now on, and with `network` make no TCP connection.
pub fn limit_files(places: impl Iterator<Item = (PathBuf, Access)>, network: bool) -> io::Result<()> {
    /// The first version that limits `truncate` by path. Opening a file to empty it is limited by all versions.
    const LIMITS_TRUNCATE: c_long = 3;
    let none = std::ptr::null::<HandledRights>();
    // SAFETY: with this flag the kernel reads no attributes and only returns a number.
    let version = done(unsafe { syscall(SYS_LANDLOCK_CREATE_RULESET, none, 0_usize, 1_u32) })?;
    let mut files = FIRST;
    for (since, right) in [(2, MOVE), (3, TRUNCATE), (5, DEVICE_CONTROL)] {
        files |= if version >= since { right } else { 0 };
    }
    let handled = HandledRights {
        files,
        network: if network && version >= 4 { NETWORK } else { 0 },
        scoped: if version >= 6 { SCOPES } else { 0 },
    };
    let size = match version {
        ..4 => 8_usize,
        4..6 => 16,
        6.. => 24,
    };
    // SAFETY: `handled` lives through the call and has at least `size` bytes.
    let rules = done(unsafe { syscall(SYS_LANDLOCK_CREATE_RULESET, &raw const handled, size, 0_u32) })?;
    // SAFETY: it was just made and has no other owner.
    let rules = unsafe { OwnedFd::from_raw_fd(rules as c_int) };
    for (path, access) in places {
        let place = match open_place(&path) {
            Ok(place) => place,
            // A place that does not exist needs no rule.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let is_folder = std::fs::metadata(format!("/proc/self/fd/{}", place.as_raw_fd()))?.is_dir();
        let of_kind = if is_folder { u64::MAX } else { OF_FILES };
        let rule = BeneathRule { allowed: access.rights() & files & of_kind, place: place.as_raw_fd() };
        // SAFETY: `rule` lives through the call, and both descriptors are open.
        done(unsafe { syscall(SYS_LANDLOCK_ADD_RULE, rules.as_raw_fd(), 1_u32, &raw const rule, 0_u32) })?;
    }
    // SAFETY: a system call with numbers only.
    done(unsafe { syscall(SYS_LANDLOCK_RESTRICT_SELF, rules.as_raw_fd(), 0_u32) })?;
    if version < LIMITS_TRUNCATE { limit_calls(&without_truncate()) } else { Ok(()) }
}

/// A filter that refuses `truncate` by path.
fn without_truncate() -> Vec<u8> {
    // Load the number; if it is not the call, step over the refusal (EPERM); allow.
    let code: [(u16, u8, u8, u32); 4] =
        [(0x20, 0, 0, 0), (0x15, 0, 1, SYS_TRUNCATE), (0x06, 0, 0, 0x0005_0001), (0x06, 0, 0, 0x7fff_0000)];
    let bytes = |(code, yes, no, value): (u16, u8, u8, u32)| {
        let ([c0, c1], [v0, v1, v2, v3]) = (code.to_ne_bytes(), value.to_ne_bytes());
        [c0, c1, yes, no, v0, v1, v2, v3]
    };
    code.into_iter().flat_map(bytes).collect()
}

/// Lets this process make only the system calls that a filter allows.
pub fn limit_calls(filter: &[u8]) -> io::Result<()> {
    /// The size of one instruction.
    const INSTRUCTION: usize = 8;
    let count = u16::try_from(filter.len() / INSTRUCTION).ok().filter(|count| *count > 0);
    let count = count.ok_or(ErrorKind::InvalidData)?;
    // The kernel copies it from any address.
    let program = FilterProgram { count, code: filter.as_ptr() };
    let program: *const FilterProgram = &raw const program;
    // SAFETY: the program and its code live through the call.
    done(unsafe { prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program as c_ulong, 0, 0) }.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" {
        fn truncate(path: *const c_char, length: i64) -> c_int;
    }

    #[test]
    fn where_landlock_does_not_limit_truncate_a_filter_does() {
        let path = std::env::temp_dir().join(format!("ax-truncate-{}", std::process::id()));
        std::fs::write(&path, "content").unwrap();
        let name = c_path(&path).unwrap();
        // Filters belong to the thread.
        let refused = std::thread::spawn(move || {
            // SAFETY: a system call without pointers.
            done(unsafe { prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into()).unwrap();
            limit_calls(&without_truncate()).unwrap();
            // SAFETY: `name` is a terminated string.
            done(unsafe { truncate(name.as_ptr(), 0) }.into()).unwrap_err().kind()
        });
        let refused = refused.join().unwrap();
        assert_eq!(
            (refused, std::fs::read_to_string(&path).unwrap().as_str()),
            (ErrorKind::PermissionDenied, "content")
        );
        std::fs::remove_file(&path).unwrap();
    }
}
