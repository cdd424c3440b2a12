//! Places that a jail hides: sockets of services, keys, and Lathe's own folder.
//!
//! A socket with a path is reached through any mount, also a read-only one, so each one that exists is covered, and
//! the folders where services put theirs (`/run`, `/tmp`) are replaced as a whole.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Sockets through which a process gets the rights of another user or another process, relative to `/`, to the folder
/// of the user's run time files (`RUNTIME/`), or to the user's home (`~/`).
const PRIVILEGED: [(&str, &str); 16] = [
    ("docker", "/run/docker.sock"),
    ("docker", "~/.docker/run/docker.sock"),
    ("docker", "RUNTIME/docker.sock"),
    ("containerd", "/run/containerd/containerd.sock"),
    ("podman", "/run/podman/podman.sock"),
    ("podman", "RUNTIME/podman/podman.sock"),
    ("crio", "/run/crio/crio.sock"),
    ("systemd", "/run/systemd/private"),
    ("systemd", "RUNTIME/systemd/private"),
    ("D-Bus", "/run/dbus/system_bus_socket"),
    ("D-Bus", "RUNTIME/bus"),
    ("snapd", "/run/snapd.socket"),
    ("libvirt", "/run/libvirt/libvirt-sock"),
    ("gpg-agent", "RUNTIME/gnupg/S.gpg-agent"),
    ("gpg-agent", "~/.gnupg/S.gpg-agent"),
    ("ssh-agent", "RUNTIME/openssh_agent"),
];

/// Variables that lead to such sockets, or to a screen.
pub(super) const LEADING: [&str; 20] = [
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "GPG_TTY",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "CONTAINER_HOST",
    "KUBECONFIG",
    "XDG_RUNTIME_DIR",
    "NOTIFY_SOCKET",
    "LISTEN_FDS",
    "LISTEN_PID",
    "TMUX",
    "TMUX_PANE",
    "STY",
];

/// Services whose sockets this user can connect to: each once, by its name.
pub fn privileged_sockets(home: Option<&Path>) -> Vec<String> {
    let user = nix::unistd::geteuid().as_raw();
    let runtime =
        std::env::var_os("XDG_RUNTIME_DIR").map_or_else(|| format!("/run/user/{user}").into(), PathBuf::from);
    let place = |path: &str| match (path.strip_prefix("RUNTIME/"), path.strip_prefix("~/")) {
        (Some(rest), _) => Some(runtime.join(rest)),
        (None, Some(rest)) => home.map(|home| home.join(rest)),
        (None, None) => Some(path.into()),
    };
    let mut found: Vec<(String, PathBuf)> =
        PRIVILEGED.iter().filter_map(|(name, path)| Some(((*name).to_owned(), place(path)?))).collect();
    let agent = std::env::var_os("SSH_AUTH_SOCK").map(PathBuf::from);
    found.extend(agent.map(|path| ("ssh-agent".to_owned(), path)));
    let host = std::env::var("DOCKER_HOST").ok();
    let host = host.as_deref().and_then(|host| host.strip_prefix("unix://")).map(PathBuf::from);
    found.extend(host.map(|path| ("docker".to_owned(), path)));
    let reached = found.into_iter().filter(|(_, path)| can_be_reached(path)).map(|(name, _)| name);
    let each_once: BTreeSet<String> = reached.collect();
    each_once.into_iter().collect()
}

/// Tells whether a socket exists and would let this user connect. Only the rights of the file are inspected: nothing
/// is connected to.
fn can_be_reached(path: &Path) -> bool {
    let is_socket = fs::metadata(path).is_ok_and(|found| found.file_type().is_socket());
    is_socket && nix::unistd::access(path, nix::unistd::AccessFlags::W_OK).is_ok()
}

/// The sockets that have a path on this machine now.
pub(super) fn sockets() -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let path = |line: &str| line.split_ascii_whitespace().nth(7).map(str::to_owned);
    let named: BTreeSet<String> = table.lines().skip(1).filter_map(path).collect();
    let is_there =
        |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    named.into_iter().filter(|path| path.starts_with('/')).map(PathBuf::from).filter(is_there).collect()
}

/// Sockets directly in a tree's few upper levels: those of other mount namespaces are not in the table.
pub(super) fn sockets_in(root: &Path) -> Vec<PathBuf> {
    const DEPTH: usize = 2;
    const MOST: usize = 2_000;
    let (mut found, mut left, mut seen) = (Vec::new(), vec![(root.to_owned(), 0)], 0);
    while let Some((folder, depth)) = left.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_socket() {
                found.push(entry.path());
            } else if kind.is_dir() && depth < DEPTH && seen < MOST {
                left.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

/// Folders that a jail replaces as a whole.
const REPLACED: [&str; 6] = ["/run", "/var/run", "/tmp", "/var/tmp", "/dev", "/proc"];

/// The real places of these paths that exist, without those below another one of them, and without those that a
/// replaced folder hides already: there only the real folders of a jail are the machine's own.
pub(super) fn outermost(paths: impl IntoIterator<Item = PathBuf>, real_folders: &[PathBuf]) -> Vec<PathBuf> {
    let real: BTreeSet<PathBuf> = paths.into_iter().filter_map(|path| path.canonicalize().ok()).collect();
    let is_needed = |path: &&PathBuf| {
        let is_below = path.ancestors().skip(1).any(|above| real.contains(above));
        let is_replaced = REPLACED.iter().any(|replaced| path.starts_with(replaced));
        let is_own = real_folders.iter().any(|folder| path.starts_with(folder));
        !is_below && (!is_replaced || is_own)
    };
    real.iter().filter(is_needed).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_outermost_places_that_exist_are_left() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in ["keys/deep", "other"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        std::os::unix::fs::symlink(at("keys"), at("link")).unwrap();
        let all = ["keys", "keys/deep", "link", "other", "missing"].map(at);
        assert_eq!(outermost(all.clone(), &[at("")]), [at("keys"), at("other")]);
        // The folder of the test is below /tmp, which is replaced.
        assert_eq!(outermost(all, &[at("other")]), [at("other")]);
    }

    #[test]
    fn a_listening_socket_is_found_by_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(sockets().contains(&path));
        assert_eq!(sockets_in(folder.path()), [path]);
    }
}
