//! Reading outside the workspace: one rule for file tools and shell lines alike.
//!
//! A path has a class by the place it names, and the class and the mode give the decision. Nothing else counts:
//! neither the program or tool that reads, nor the spelling of the path. A folder that is read with all that is in it
//! has the strictest class that it could reach.

use std::path::{Component, Path};

use lathe_protocol::{Actor, Decision, Mode, Verdict};

use crate::gate::{Gate, MEMORY, decision};

/// The classes of places outside the workspace, from harmless to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Region {
    /// In the workspace.
    Inside,
    /// Places that every user may read, and the content of toolchains.
    Public,
    /// Everything else.
    Elsewhere,
    /// Keys, passwords, histories, other users' homes, and the memory of processes.
    Keys,
    /// Lathe's own folder.
    LatheHome,
}

/// The part of a place that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The file, or the names in the folder.
    One,
    /// The folder with all that is in it.
    All,
}

/// Folders that every user may read.
const PUBLIC: [&str; 14] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/etc",
    "/nix/store",
    "/snap",
    "/System/Library",
    "/Library/Developer",
    "/Applications",
];

/// Single files and devices that every user may read.
const PUBLIC_FILES: [&str; 23] = [
    "/",
    "/dev",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/fd",
    "/dev/tty",
    "/dev/random",
    "/dev/urandom",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/version",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/stat",
    "/proc/filesystems",
    "/proc/partitions",
    "/proc/swaps",
    "/proc/devices",
    "/proc/diskstats",
];

/// Folders of toolchains in a home folder.
const TOOLCHAINS: [&str; 25] = [
    ".cargo",
    ".rustup",
    "go",
    ".go",
    ".gopath",
    ".pyenv",
    ".nvm",
    ".npm",
    ".node_modules",
    "node_modules",
    ".nodenv",
    ".volta",
    ".local/lib",
    ".local/share/virtualenvs",
    ".virtualenvs",
    ".venv",
    "venv",
    ".cache/pip",
    ".cache/uv",
    ".cache/go-build",
    ".local/share/uv",
    ".local/pipx",
    ".local/share/pipx",
    ".npm-global",
    ".local/share/pnpm",
];

/// Parts of paths that only toolchains have.
const TOOLCHAIN_PARTS: [&str; 3] = ["site-packages", "dist-packages", "node_modules"];

/// Keys, passwords and histories in a home folder. `*` stands for the rest of a name.
const HOME_KEYS: [&str; 97] = [
    ".claude/.credentials.json",
    ".claude.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".config/github-copilot",
    ".ollama/id_*",
    ".Xauthority",
    ".ICEauthority",
    ".bitcoin",
    ".electrum",
    ".ethereum",
    ".monero",
    "id_rsa*",
    "id_ed25519*",
    "id_ecdsa*",
    "*.pem",
    "*.key",
    ".ssh",
    ".gnupg",
    ".gpg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".kube",
    ".docker",
    ".netrc",
    "_netrc",
    ".authinfo*",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".npmrc",
    ".yarnrc*",
    ".pypirc",
    ".gem/credentials",
    ".cargo/credentials*",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".terraform.d",
    ".terraformrc",
    ".vault-token",
    ".config/op",
    ".config/doctl",
    ".config/rclone",
    ".oci",
    ".bluemix",
    ".fly",
    ".heroku",
    ".config/heroku",
    ".config/netlify",
    ".config/stripe",
    ".config/sops",
    ".config/age",
    ".age",
    ".s3cfg",
    ".boto",
    ".config/containers",
    ".m2/settings*.xml",
    ".gradle/gradle.properties",
    ".nuget/NuGet",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".pip/pip.conf",
    ".config/pip/pip.conf",
    ".config/pypoetry",
    ".password-store",
    ".local/share/keyrings",
    ".gnome2/keyrings",
    ".local/share/kwalletd",
    ".kde",
    ".config/keepassxc",
    ".bitwarden",
    ".config/Bitwarden*",
    ".1password",
    ".lastpass",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome*",
    ".config/chromium*",
    ".config/BraveSoftware",
    ".config/microsoft-edge*",
    ".config/vivaldi*",
    ".config/opera*",
    "snap/firefox",
    "Library/Keychains",
    "Library/Application Support",
    "Library/Cookies",
    ".*_history",
    ".*history",
    ".local/share/fish/fish_history",
    ".rclone.conf",
    ".env*",
    ".lesshst",
    ".viminfo",
];

/// Password files and private keys of the system.
const SYSTEM_KEYS: [&str; 42] = [
    "/etc/shadow*",
    "/etc/gshadow*",
    "/etc/sudoers*",
    "/etc/sudoers.d",
    "/etc/security/opasswd*",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/pki/private",
    "/etc/letsencrypt",
    "/etc/krb5.keytab*",
    "/etc/ipsec.secrets",
    "/etc/ipsec.d",
    "/etc/ppp",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/NetworkManager/system-connections",
    "/etc/wpa_supplicant",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/docker/key.json",
    "/etc/mysql/debian.cnf",
    "/etc/postgresql",
    "/etc/cups/ssl",
    "/etc/master.passwd",
    "/etc/spwd.db",
    "/etc/tcb",
    "/etc/libvirt/secrets",
    "/etc/ceph",
    "/etc/vault*",
    "/etc/crypttab",
    "/run/secrets",
    "/run/user",
    "/run/credentials",
    "/run/keys",
    "/var/run/secrets",
    "/var/run/user",
    "/var/backups",
    "/var/lib/secrets",
    "/var/spool/cron",
    "/Library/Keychains",
    "/proc/kcore",
    "/proc/kmsg",
];

/// Patterns of the places where keys, passwords and histories are kept.
#[derive(Debug, Clone, Copy)]
pub struct KeyPatterns {
    /// Relative to a home folder. `*` stands for the rest of a name.
    pub home: &'static [&'static str],
    /// Absolute.
    pub system: &'static [&'static str],
}

/// The places that are never read without asking.
pub fn key_patterns() -> KeyPatterns {
    KeyPatterns { home: &HOME_KEYS, system: &SYSTEM_KEYS }
}

/// Files of the kernel about a process that contain nothing of its memory.
const PROCESS_FACTS: [&str; 16] = [
    "cgroup",
    "status",
    "stat",
    "statm",
    "mounts",
    "mountinfo",
    "limits",
    "comm",
    "loginuid",
    "oom_score",
    "oom_score_adj",
    "sched",
    "schedstat",
    "uid_map",
    "gid_map",
    "cpuset",
];

/// Folders in which each user has a home.
const HOMES: [&str; 3] = ["/home", "/Users", "/var/home"];

impl Gate {
    /// The class of a place, which is absolute and without `.` and `..`.
    pub fn region(&self, path: &Path, depth: Depth) -> Region {
        // On macOS these are the real names of /etc, /var and /tmp.
        let path = match path.strip_prefix("/private") {
            Ok(rest) if !self.root.starts_with("/private") => &Path::new("/").join(rest),
            Ok(_) | Err(_) => path,
        };
        let own = self.own_region(path);
        match depth {
            Depth::One => own,
            Depth::All => own.max(self.strictest_beneath(path)),
        }
    }

    /// The strictest class of a folder and all that is in it, as if Lathe's own folder were not there: behind walls it
    /// is masked.
    pub(crate) fn region_beside_home(&self, path: &Path) -> Region {
        self.own_region(path).max(self.strictest_beside_home(path))
    }

    fn own_region(&self, path: &Path) -> Region {
        if path.starts_with(&self.home) && path != self.home.join(MEMORY) {
            return Region::LatheHome;
        }
        if self.outputs.as_ref().is_some_and(|outputs| path.starts_with(outputs)) {
            return Region::Public;
        }
        // A user who works in such a folder has chosen it; a user who works above one has not.
        if self.is_key(path) && !self.is_key(&self.root) {
            return Region::Keys;
        }
        if path.starts_with(&self.root) {
            return Region::Inside;
        }
        if self.is_key(path) || self.is_foreign_home(path) {
            return Region::Keys;
        }
        let below = |folder: &str| path.starts_with(folder);
        let parts = |part: Component<'_>| TOOLCHAIN_PARTS.iter().any(|known| part.as_os_str() == *known);
        let file = |file: &str| path == Path::new(file) || (file == "/dev/fd" && below("/dev/fd"));
        let toolchain = |home: &Path| TOOLCHAINS.iter().any(|folder| path.starts_with(home.join(folder)));
        let public = PUBLIC.iter().any(|folder| below(folder))
            || PUBLIC_FILES.iter().any(|known| file(known))
            || path.components().any(parts)
            || self.user_home.as_deref().is_some_and(toolchain);
        if public {
            return Region::Public;
        }
        let device = below("/dev") && !below("/dev/shm") && !below("/dev/pts");
        if device { Region::Keys } else { Region::Elsewhere }
    }

    fn is_key(&self, path: &Path) -> bool {
        let at_home = |home: &Path| {
            let Ok(rest) = path.strip_prefix(home) else { return false };
            HOME_KEYS.iter().any(|key| begins(rest, Path::new(key)))
        };
        let host_key = || {
            let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            path.starts_with("/etc/ssh") && name.starts_with("ssh_host_") && !name.ends_with(".pub")
        };
        let process = || {
            let Ok(rest) = path.strip_prefix("/proc") else { return false };
            let first = rest.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
            let harmless = |name: &str| PROCESS_FACTS.contains(&name);
            let second = rest.components().nth(1).map(|part| part.as_os_str().to_string_lossy().into_owned());
            let fact = rest.components().count() == 2 && second.as_deref().is_some_and(harmless);
            !fact
                && first.is_some_and(|first| {
                    matches!(first.as_str(), "self" | "thread-self")
                        || first.bytes().all(|byte| byte.is_ascii_digit() || byte == b'*' || byte == b'?')
                })
        };
        let is_open = || {
            let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            name.ends_with(".pub") || name.starts_with("known_hosts")
        };
        (self.user_home.as_deref().is_some_and(at_home) && !is_open())
            || SYSTEM_KEYS.iter().any(|key| begins(path, Path::new(key)))
            || host_key()
            || process()
    }

    /// Tells whether a path is, or lies in, a home that is not the user's.
    fn is_foreign_home(&self, path: &Path) -> bool {
        let ours = |path: &Path| {
            self.user_home.as_deref().is_some_and(|home| path.starts_with(home) || home.starts_with(path))
        };
        let homes = HOMES.iter().filter(|homes| path.starts_with(homes) && path != Path::new(**homes));
        (homes.count() > 0 || path.starts_with("/root") || path.starts_with("/var/root")) && !ours(path)
    }

    /// The strictest class of the places in a folder.
    fn strictest_beneath(&self, folder: &Path) -> Region {
        match self.home != folder && self.home.starts_with(folder) {
            true => Region::LatheHome,
            false => self.strictest_beside_home(folder),
        }
    }

    fn strictest_beside_home(&self, folder: &Path) -> Region {
        let holds = |place: &Path| place != folder && place.starts_with(folder);
        let plain = |key: &str| key.split('*').next().unwrap_or_default().to_owned();
        let in_home = |home: &Path| {
            holds(home)
                || HOME_KEYS.iter().any(|key| folder.starts_with(home) && holds(&home.join(plain(key))))
        };
        let keys = SYSTEM_KEYS.iter().any(|key| holds(Path::new(&plain(key))))
            || self.user_home.as_deref().is_some_and(in_home)
            || HOMES.iter().any(|homes| holds(&Path::new(homes).join("x")))
            || holds(Path::new("/root"))
            || holds(Path::new("/proc/1"))
            || holds(Path::new("/etc/ssh/ssh_host_key"));
        if keys { Region::Keys } else { Region::Inside }
    }
}

/// Tells whether a path is, or lies in, a place. The names of the place may end in `*`; upper and lower case are the
/// same, as on some disks.
fn begins(path: &Path, place: &Path) -> bool {
    let mut parts = path.components();
    place.components().all(|wanted| {
        let (Some(part), wanted) = (parts.next(), wanted.as_os_str().to_string_lossy().to_lowercase()) else {
            return false;
        };
        let part = part.as_os_str().to_string_lossy().to_lowercase();
        crate::patterns::glob(&wanted, &part)
    })
}

/// The decision about reading a place in a mode; `None` where the rule does not apply. It does not limit a person.
/// `holds` is true if the place is not in Lathe's own folder, but above it.
pub(crate) fn reading(
    (region, holds): (Region, bool),
    actor: Actor,
    mode: Mode,
    shown: &str,
) -> Option<Decision> {
    if actor == Actor::Person {
        return None;
    }
    let (verdict, rule, what) = match (region, mode) {
        (Region::Inside | Region::Public, _) | (Region::Elsewhere, Mode::FullAuto) => return None,
        (Region::LatheHome, _) if holds => (
            Verdict::Deny,
            "reading.home",
            "holds Lathe's own folder, which the model never reads; name what is wanted in it",
        ),
        (Region::LatheHome, _) => {
            (Verdict::Deny, "reading.home", "is in Lathe's own folder, which the model never reads")
        }
        (Region::Keys, Mode::Plan | Mode::FullAuto) => (
            Verdict::Deny,
            "reading.keys",
            "may hold keys or passwords; a rule of yours with this `path` would allow it",
        ),
        (Region::Keys, Mode::Default | Mode::AutoEdit) => {
            (Verdict::Ask, "reading.keys", "may hold keys or passwords")
        }
        (Region::Elsewhere, Mode::Plan) => {
            (Verdict::Deny, "reading.outside", "is outside the workspace; mode plan does not read there")
        }
        (Region::Elsewhere, Mode::Default | Mode::AutoEdit) => {
            (Verdict::Ask, "reading.outside", "is outside the workspace")
        }
    };
    Some(decision(verdict, rule, &format!("{} {what}", lathe_protocol::visible(shown))))
}
