//! The arguments of bubblewrap for a jail.
//!
//! Their order matters: each one is done on top of those before it. First the root, read-only; then fresh `/dev`,
//! `/proc`, `/run` and `/tmp`; then what may be written; then what is hidden; last what a process needs in spite of
//! that.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Folders below `/run` that hold programs and no sockets, on systems that have them.
const RUN_PROGRAMS: [&str; 4] =
    ["/run/current-system", "/run/booted-system", "/run/opengl-driver", "/run/wrappers"];

/// The view that the processes of a jail have. All paths are real ones.
pub(super) struct View<'a> {
    pub(super) tmp: &'a Path,
    pub(super) var_tmp: &'a Path,
    /// The folders that can be written, from the outer to the inner.
    pub(super) writable: &'a [PathBuf],
    /// Folders below those that cannot be written.
    pub(super) read_only: &'a [PathBuf],
    /// Files and folders that are covered.
    pub(super) hidden: &'a [PathBuf],
    /// Files and folders that can be read although one above is covered.
    pub(super) shown: &'a [PathBuf],
}

/// The arguments, each ended by a zero byte.
pub(super) fn arguments(view: &View<'_>) -> Vec<u8> {
    let mut words: Vec<OsString> = [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--disable-userns",
        "--cap-drop",
        "ALL",
        "--new-session",
        "--die-with-parent",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
    ]
    .map(OsString::from)
    .to_vec();
    let mut add = |option: &str, paths: &[&Path]| {
        words.push(option.into());
        words.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
    };
    for run in real(&["/run", "/var/run"]) {
        add("--tmpfs", &[&run]);
    }
    for program in real(&RUN_PROGRAMS) {
        add("--ro-bind", &[&program, &program]);
    }
    for (path, source) in [("/tmp", view.tmp), ("/var/tmp", view.var_tmp)] {
        for place in real(&[path]) {
            add("--bind", &[source, &place]);
        }
    }
    for path in view.writable {
        add("--bind", &[path, path]);
    }
    for path in view.read_only {
        add("--ro-bind", &[path, path]);
    }
    for path in view.hidden {
        if path.is_dir() {
            add("--tmpfs", &[path]);
        } else {
            add("--ro-bind", &[Path::new("/dev/null"), path]);
        }
    }
    for path in view.shown {
        add("--ro-bind", &[path, path]);
    }
    for path in view.hidden.iter().filter(|path| path.is_dir()) {
        add("--remount-ro", &[path]);
    }
    words.iter().flat_map(|word| word.as_bytes().iter().copied().chain([0])).collect()
}

/// The real places of these paths that exist, each once.
fn real(paths: &[&str]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        paths.iter().filter_map(|path| Path::new(path).canonicalize().ok()).collect();
    found.dedup();
    found
}

/// The words of a program that is started by bubblewrap with the arguments in a descriptor.
pub(super) fn command(bubblewrap: &Path, arguments: i32, program: &[OsString]) -> Vec<OsString> {
    let head =
        [bubblewrap.as_os_str(), OsStr::new("--args"), OsStr::new(&arguments.to_string()), OsStr::new("--")]
            .map(OsStr::to_owned);
    head.into_iter().chain(program.iter().cloned()).collect()
}
