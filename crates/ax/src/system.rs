//! The system calls that std does not offer, as safe functions. All `unsafe` of this program is here and in
//! `confine`, which has the calls of walls.

use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_ulong};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

#[repr(C)]
pub struct PollFd {
    fd: c_int,
    events: i16,
    revents: i16,
}

/// `sigset_t` of glibc and musl: 1024 bits.
type SignalSet = [u64; 16];

unsafe extern "C" {
    fn poll(fds: *mut PollFd, count: c_ulong, timeout: c_int) -> c_int;
    fn prctl(option: c_int, arg: c_ulong, a3: c_ulong, a4: c_ulong, a5: c_ulong) -> c_int;
    fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn fork() -> c_int;
    fn close(fd: c_int) -> c_int;
    fn kill(pid: c_int, signal: c_int) -> c_int;
    fn signal(signal: c_int, handler: usize) -> usize;
    fn sigprocmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int;
    fn signalfd(fd: c_int, set: *const SignalSet, flags: c_int) -> c_int;
    fn setsid() -> c_int;
    fn mkfifo(path: *const c_char, mode: u32) -> c_int;
    fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
    fn getauxval(kind: c_ulong) -> c_ulong;
    fn umask(mask: u32) -> u32;
    fn isatty(fd: c_int) -> c_int;
}

pub const O_NONBLOCK: c_int = 0o4000;
pub const O_PATH: c_int = 0o10000000;
const O_CLOEXEC: c_int = 0o2_000_000;
const F_SETFL: c_int = 4;
const SIG_BLOCK: c_int = 0;
const SIG_SETMASK: c_int = 2;
const WNOHANG: c_int = 1;
const PR_SET_PDEATHSIG: c_int = 1;
const PR_SET_CHILD_SUBREAPER: c_int = 36;

const AT_EXECFN: c_ulong = 31;
const POLLNVAL: i16 = 0x20;
const SIG_IGN: usize = 1;

const SIGHUP: c_int = 1;
const SIGINT: c_int = 2;
const SIGQUIT: c_int = 3;
pub const SIGKILL: c_int = 9;
const SIGPIPE: c_int = 13;
pub const SIGTERM: c_int = 15;
pub const SIGSTKFLT: c_int = 16;
const SIGCHLD: c_int = 17;
pub const SIGCONT: c_int = 18;
pub const SIGSTOP: c_int = 19;
const SIGXFSZ: c_int = 25;

/// The entry, in place of Rust's: that one makes twenty more system calls, a twentieth of the run time of an agent
/// command. The necessary parts are done here: lost pipes are errors, and the standard descriptors are open.
// SAFETY: no other symbol of this name is in the program, and the C runtime calls it with a list of terminated strings.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn main(count: c_int, words: *const *const c_char) -> c_int {
    // SAFETY: a system call without pointers.
    unsafe { signal(SIGPIPE, SIG_IGN) };
    let mut standard = [0, 1, 2].map(PollFd::reader);
    if wait(&mut standard, Some(Duration::ZERO)).is_ok() {
        for _ in standard.iter().filter(|one| one.revents & POLLNVAL != 0) {
            // A new descriptor gets the lowest free number.
            let null = OpenOptions::new().read(true).write(true).open("/dev/null");
            let _ = null.map(IntoRawFd::into_raw_fd);
        }
    }
    let words = (0..count as usize).map(|index| {
        // SAFETY: there are `count` of them.
        let word = unsafe { CStr::from_ptr(*words.add(index)) };
        OsStr::from_bytes(word.to_bytes()).to_owned()
    });
    crate::run(&words.collect::<Vec<_>>()).into()
}

/// Tests have an entry of their own, and without this all of it would seem unused.
#[cfg(test)]
const _: extern "C" fn(c_int, *const *const c_char) -> c_int = main;

impl PollFd {
    pub fn reader(fd: c_int) -> Self {
        Self { fd, events: 1, revents: 0 }
    }

    pub fn writer(fd: c_int) -> Self {
        Self { fd, events: 4, revents: 0 }
    }

    pub fn is_ready(&self) -> bool {
        self.revents != 0
    }
}

/// Waits until one of them is ready. A negative descriptor is never ready.
pub fn wait(fds: &mut [PollFd], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map_or(-1, |time| time.as_millis() as c_int);
    // SAFETY: the pointer and the count describe `fds`.
    if unsafe { poll(fds.as_mut_ptr(), fds.len() as c_ulong, timeout) } >= 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.kind() == ErrorKind::Interrupted => Ok(()),
        error => Err(error),
    }
}

/// CHLD, TERM, HUP and INT as a readable file, instead of handlers.
pub struct Signals(pub File);

/// Makes this process the parent of every orphan below it, and redirects its signals.
pub fn become_supervisor() -> io::Result<Signals> {
    let mut set: SignalSet = [0; 16];
    for number in [SIGCHLD, SIGTERM, SIGHUP, SIGINT] {
        set[0] |= 1 << (number - 1);
    }
    // SAFETY: plain system calls on values that outlive them. Default dispositions are what bash must
    // inherit, whatever our parent ignored; `detach` clears the blocked set again.
    let fd = unsafe {
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        for number in [SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGSTKFLT, SIGXFSZ] {
            signal(number, 0);
        }
        sigprocmask(SIG_BLOCK, &set, std::ptr::null_mut());
        signalfd(-1, &set, O_NONBLOCK | O_CLOEXEC)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just made and has no other owner.
    Ok(Signals(unsafe { File::from_raw_fd(fd) }))
}

impl Signals {
    /// Reads the pending signals. Returns true if one of them requests our end.
    pub fn take(&mut self) -> bool {
        let mut asked = false;
        let mut info = [0u8; 128];
        while let Ok(128) = self.0.read(&mut info) {
            asked |= info.first_chunk().is_some_and(|number| i32::from_ne_bytes(*number) != SIGCHLD);
        }
        asked
    }
}

/// Stdin and stdout as unbuffered files; writing never blocks.
pub fn host_pipes() -> (File, File) {
    // SAFETY: 0 and 1 are open at the start and used through these two owners only.
    unsafe {
        fcntl(1, F_SETFL, O_NONBLOCK);
        (File::from_raw_fd(0), File::from_raw_fd(1))
    }
}

/// Gives the child its own session, no blocked signals, and KILL if we die.
pub fn detach(command: &mut Command) {
    // SAFETY: the calls are async-signal-safe and the set is a constant. The death signal follows the
    // thread that forked; this process has only one.
    unsafe {
        command.pre_exec(|| {
            setsid();
            sigprocmask(SIG_SETMASK, &[0; 16], std::ptr::null_mut());
            prctl(PR_SET_PDEATHSIG, SIGKILL as c_ulong, 0, 0, 0);
            Ok(())
        });
    }
}

pub enum Forked {
    Parent(c_int),
    Child,
}

/// Forks below this process, which becomes the parent of every orphan. The child gets TERM when this process dies.
pub fn fork_under_subreaper() -> io::Result<Forked> {
    // SAFETY: system calls without pointers. This process has one thread, so the child may do whatever its parent may.
    unsafe {
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        match fork() {
            0 => {
                prctl(PR_SET_PDEATHSIG, SIGTERM as c_ulong, 0, 0, 0);
                Ok(Forked::Child)
            }
            child if child > 0 => Ok(Forked::Parent(child)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Closes every descriptor and ignores the signals of a terminal. For a process that only waits.
pub fn close_everything() {
    let open: Vec<c_int> = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|fd| fd.file_name().to_str()?.parse().ok())
        .collect();
    // SAFETY: system calls without pointers; nothing in this process uses a descriptor after this.
    unsafe {
        for number in [SIGHUP, SIGINT, SIGQUIT] {
            signal(number, SIG_IGN);
        }
        for fd in open.into_iter().chain(0..3) {
            close(fd);
        }
    }
}

pub enum Waited {
    /// The process, and the exit code that a shell would report.
    Ended(c_int, c_int),
    NoChild,
}

/// Waits for the end of any child.
pub fn wait_for_child() -> Waited {
    let mut status = 0;
    loop {
        // SAFETY: `status` is valid for the call.
        let pid = unsafe { waitpid(-1, &mut status, 0) };
        if pid > 0 {
            let signal = status & 0x7f;
            return Waited::Ended(pid, if signal == 0 { (status >> 8) & 0xff } else { 128 + signal });
        }
        if io::Error::last_os_error().kind() != ErrorKind::Interrupted {
            return Waited::NoChild;
        }
    }
}

/// A child that has ended, with its wait status.
pub fn reap() -> Option<(c_int, c_int)> {
    let mut status = 0;
    // SAFETY: `status` is valid for the call; std waits for none of our children.
    let pid = unsafe { waitpid(-1, &mut status, WNOHANG) };
    (pid > 0).then_some((pid, status))
}

pub fn send(pid: c_int, signal: c_int) {
    // 0 and negative numbers would mean whole process groups.
    if pid > 0 {
        // SAFETY: a system call without pointers.
        unsafe { kill(pid, signal) };
    }
}

pub fn make_fifo(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `path` is a terminated string that outlives the call.
    match unsafe { mkfifo(path.as_ptr(), 0o600) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The path by which this program was started, with the name of the link in it.
pub fn exec_path() -> Option<OsString> {
    // SAFETY: the kernel puts the address of a terminated string there, which lives as long as the process.
    let path = unsafe {
        let path = getauxval(AT_EXECFN) as *const c_char;
        (!path.is_null()).then(|| CStr::from_ptr(path))
    };
    path.map(|path| OsStr::from_bytes(path.to_bytes()).to_owned())
}

/// A standard descriptor without a buffer.
pub fn standard(fd: c_int) -> ManuallyDrop<File> {
    // SAFETY: 0 to 2 are opened at the start where they were closed, and nothing closes them.
    ManuallyDrop::new(unsafe { File::from_raw_fd(fd) })
}

pub fn is_terminal(fd: c_int) -> bool {
    // SAFETY: a system call without pointers.
    unsafe { isatty(fd) == 1 }
}

pub fn current_umask() -> u32 {
    // SAFETY: system calls without pointers; there is no other thread that could make a file meanwhile.
    unsafe {
        let mask = umask(0o077);
        umask(mask);
        mask
    }
}

/// Waits until one is readable. Returns true if only the second is.
pub fn wait_for_either(first: c_int, second: c_int) -> io::Result<bool> {
    let mut fds = [PollFd::reader(first), PollFd::reader(second)];
    while !fds.iter().any(PollFd::is_ready) {
        wait(&mut fds, None)?;
    }
    Ok(!fds[0].is_ready())
}

/// Ends this process as SIGPIPE ends others. The signal is ignored at first, so that a lost host is an error.
pub fn die_of_broken_pipe() -> ! {
    // SAFETY: system calls without pointers.
    unsafe {
        signal(SIGPIPE, 0);
        kill(std::process::id() as c_int, SIGPIPE);
    }
    // It was blocked.
    std::process::exit(128 + SIGPIPE)
}
