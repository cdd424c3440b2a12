//! Protection of this process from other programs of the same user, which include the session's own shell.
//!
//! The kernel shows the command line and the initial environment of a process in `/proc`, and keys may stand in both.
//! So they are moved: the environment to memory of its own, where this program still finds it, and the places that
//! the kernel shows are overwritten. Then the process is made unreadable, so that its memory is not another such
//! place. Root can read memory all the same; the rules about `/proc` are for that.
//!
//! Core files are covered too: the kernel writes none for a process that is not dumpable. A limit on core files would
//! be inherited by every program of the session, which may want core files of its own.

/// Hides keys of this process from `/proc`: its whole environment, and the parts of its command line that `is_secret`
/// finds in a word, given the word before it.
///
/// It must be called before the first thread is started. Without `/proc` it does nothing: there is nothing to hide.
pub fn seal_process(is_secret: impl Fn(&[u8], &[u8]) -> Option<usize>) {
    #[cfg(target_os = "linux")]
    linux::seal(is_secret);
    #[cfg(not(target_os = "linux"))]
    let _ = is_secret;
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::OpenOptions;
    use std::io::{Seek as _, SeekFrom, Write as _};
    use std::os::unix::ffi::OsStrExt as _;

    /// The places from which the kernel reads the command line and the environment.
    struct KernelView {
        arguments: (u64, u64),
        environment: (u64, u64),
    }

    pub(super) fn seal(is_secret: impl Fn(&[u8], &[u8]) -> Option<usize>) {
        if let Some(shown) = kernel_view() {
            move_environment();
            let (begin, end) = shown.environment;
            overwrite(begin, &vec![0; usize::try_from(end.saturating_sub(begin)).unwrap_or(0)]);
            hide_arguments(shown.arguments, is_secret);
        }
        let _ = nix::sys::prctl::set_dumpable(false);
    }

    fn kernel_view() -> Option<KernelView> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The name of the program, in parentheses, may hold anything; the third field follows it.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<u64> = rest.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        let field = |number: usize| fields.get(number - 3).copied();
        let shown = KernelView { arguments: (field(48)?, field(49)?), environment: (field(50)?, field(51)?) };
        (shown.environment.0 != 0 && shown.arguments.0 != 0).then_some(shown)
    }

    /// Gives every variable memory of its own.
    fn move_environment() {
        for (name, value) in std::env::vars_os() {
            // A variable with an impossible name cannot be set.
            if name.is_empty() || name.as_bytes().contains(&b'=') {
                continue;
            }
            // SAFETY: `seal_process` is called before the first thread is started, so nothing else reads or writes the
            // environment meanwhile.
            unsafe { std::env::set_var(&name, &value) };
        }
    }

    fn hide_arguments((begin, end): (u64, u64), is_secret: impl Fn(&[u8], &[u8]) -> Option<usize>) {
        let words: Vec<_> = std::env::args_os().collect();
        let length: usize = words.iter().map(|word| word.len() + 1).sum();
        // A different length means that other text stands there; unknown text is not overwritten.
        if u64::try_from(length).ok() != end.checked_sub(begin) {
            return;
        }
        let mut at = begin;
        let mut before: &[u8] = b"";
        for word in &words {
            let bytes = word.as_bytes();
            if let Some(from) = is_secret(before, bytes).filter(|from| *from < bytes.len()) {
                let offset = u64::try_from(from).unwrap_or(0);
                overwrite(at + offset, &vec![b'*'; bytes.len() - from]);
            }
            at += u64::try_from(bytes.len() + 1).unwrap_or(0);
            before = bytes;
        }
    }

    /// Writes into this process. The kernel gave the place; it holds strings that nothing refers to any more.
    fn overwrite(at: u64, bytes: &[u8]) {
        let Ok(mut memory) = OpenOptions::new().write(true).open("/proc/self/mem") else { return };
        if memory.seek(SeekFrom::Start(at)).is_ok() {
            let _ = memory.write_all(bytes);
        }
    }
}
