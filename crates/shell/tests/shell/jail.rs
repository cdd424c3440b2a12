//! Escapes from a jail, tried for real by `attempts.py`, at each level, as root and as another user.
//!
//! The targets are listeners, processes and folders of the test's own. A test that lacks a tool, or a kernel without
//! what a level needs, fails and names it.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use lathe_shell::place_ax;
use lathe_workspace::{
    CaptureEnd, CaptureLimits, Captured, Ended, Fence, Jail, JailPlan, JailProfile, Level, Spawn, WallsFound,
    capture, find_program, find_walls,
};

const ATTEMPTS: &str = include_str!("jail/attempts.py");
const LIMITS: CaptureLimits = CaptureLimits { time: Duration::from_secs(500), keep: 1 << 20 };

/// The user of the second round.
const NOBODY: u32 = 65534;

/// The variable with the folder for worlds of another user.
const PARENT: &str = "LATHE_TEST_WORLDS";

/// A folder that a jail shows as it is: not below `/tmp`, which it replaces.
fn place() -> std::io::Result<tempfile::TempDir> {
    let make = |parent: &str| tempfile::Builder::new().prefix("lathe-world-").tempdir_in(parent);
    match std::env::var(PARENT) {
        Ok(parent) => make(&parent),
        Err(_) => make("/srv").or_else(|_| make("/opt")).or_else(|_| make(env!("CARGO_TARGET_TMPDIR"))),
    }
}

/// A world with targets around a workspace.
struct World {
    /// Removed with the world.
    _folder: tempfile::TempDir,
    root: PathBuf,
    tcp: TcpListener,
    tcp6: Option<TcpListener>,
    udp: UdpSocket,
    sockets: Vec<UnixListener>,
    host: std::process::Child,
    nap: String,
}

impl World {
    fn new() -> Self {
        let folder = place().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["ws", "out", "home/.ssh", "lathe/sessions"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in
            ["out/file", "home/.ssh/key", "home/.profile", "lathe/sessions/journal", "lathe/config.toml"]
        {
            fs::write(root.join(name), format!("content of {name}")).unwrap();
        }
        let unix = |name: &str| UnixListener::bind(root.join(name)).unwrap();
        let abstract_name = {
            use std::os::linux::net::SocketAddrExt as _;
            let name =
                std::os::unix::net::SocketAddr::from_abstract_name(root.as_os_str().as_encoded_bytes())
                    .unwrap();
            UnixListener::bind_addr(&name).unwrap()
        };
        let sockets = vec![unix("out/socket"), unix("ws/socket"), abstract_name];
        sockets.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        for name in ["out/socket", "ws/socket"] {
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o777)).unwrap();
        }
        let tcp = TcpListener::bind("0.0.0.0:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        let tcp6 = TcpListener::bind("[::1]:0").ok();
        tcp6.iter().for_each(|tcp6| tcp6.set_nonblocking(true).unwrap());
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        let host = Command::new("sleep").arg("3600").spawn().unwrap();
        let nap = format!("36{:08}", std::process::id());
        Self { _folder: folder, root, tcp, tcp6, udp, sockets, host, nap }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    async fn jail(&self, level: Level) -> Jail {
        let ax = place_ax(&self.at("lathe")).unwrap();
        let bubblewrap = find_program("bwrap", &self.at("ws"));
        let found = match level {
            Level::Walls => {
                assert!(bubblewrap.is_some(), "bubblewrap is not installed: scripts/test installs it");
                find_walls(&ax, bubblewrap).await
            }
            Level::Filters | Level::Limits | Level::Off => find_walls(&ax, None).await,
        };
        assert_eq!(found.level, level, "{:?}", found.missing);
        Jail::new(self.plan(ax), found).unwrap()
    }

    fn plan(&self, ax: PathBuf) -> JailPlan {
        fs::create_dir_all(self.at("layer/upper")).unwrap();
        fs::create_dir_all(self.at("layer/work")).unwrap();
        JailPlan {
            profile: JailProfile::Workspace,
            root: self.at("ws"),
            ax,
            writable: Vec::new(),
            hidden: vec![self.at("lathe"), self.at("home/.ssh")],
            home: Some(self.at("home")),
            layer: Some(self.at("layer")),
        }
    }

    async fn run(&self, jail: &Jail, words: &[&str]) -> Captured {
        let mut env = self.variables();
        if jail.level() < Level::Walls {
            // Only a process namespace ends a daemon.
            env.iter_mut().filter(|(name, _)| name == "NAP").for_each(|(_, value)| value.clear());
        }
        let what = Spawn {
            argv: words.iter().map(Into::into).collect(),
            cwd: self.at("ws"),
            env,
            fence: Fence::default(),
            shown: Vec::new(),
        };
        capture(jail, what, b"", LIMITS, std::future::pending()).await.unwrap()
    }

    fn variables(&self) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
        let address = "".to_owned();
        let tcp6 = self.tcp6.as_ref().map_or(0, |tcp6| tcp6.local_addr().unwrap().port());
        let own = [
            ("OUT", self.at("out").display().to_string()),
            ("WS", self.at("ws").display().to_string()),
            ("KEY", self.at("home/.ssh/key").display().to_string()),
            ("LATHE", self.at("lathe").display().to_string()),
            ("HOME", self.at("home").display().to_string()),
            ("AX", place_ax(&self.at("lathe")).unwrap().display().to_string()),
            ("HOST", self.host.id().to_string()),
            ("TCP", self.tcp.local_addr().unwrap().port().to_string()),
            ("TCP6", tcp6.to_string()),
            ("UDP", self.udp.local_addr().unwrap().port().to_string()),
            ("ADDRESS", address),
            ("ABSTRACT", self.root.display().to_string()),
            ("SOCK", self.at("out/socket").display().to_string()),
            ("WSOCK", self.at("ws/socket").display().to_string()),
            ("NAP", self.nap.clone()),
            ("SSH_AUTH_SOCK", self.at("out/socket").display().to_string()),
            ("PATH", std::env::var("PATH").unwrap()),
        ];
        own.map(|(name, value)| (name.into(), value.into())).to_vec()
    }

    /// The content, mode and times of everything outside the workspace.
    fn outside(&self) -> BTreeMap<PathBuf, (u32, u32, i64, i64, Vec<u8>)> {
        let mut found = BTreeMap::new();
        let mut left = ["out", "home", "lathe"].map(|name| self.at(name)).to_vec();
        while let Some(path) = left.pop() {
            let data = path.symlink_metadata().unwrap();
            let content = if data.is_file() { fs::read(&path).unwrap_or_default() } else { Vec::new() };
            if data.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
            found.insert(path, (data.mode(), data.uid(), data.mtime(), data.nlink() as i64, content));
        }
        found
    }

    /// The connections that reached a listener outside.
    fn visitors(&self) -> usize {
        let unix = self.sockets.iter().filter(|socket| socket.accept().is_ok()).count();
        let tcp = usize::from(self.tcp.accept().is_ok());
        let tcp6 = self.tcp6.iter().filter(|tcp6| tcp6.accept().is_ok()).count();
        let udp = usize::from(self.udp.recv(&mut [0; 16]).is_ok());
        unix + tcp + tcp6 + udp
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.host.kill();
        let _ = self.host.wait();
    }
}

/// The attempts that succeeded, and the number of those that were tried.
async fn escapes(level: Level) -> (Vec<String>, usize) {
    let world = World::new();
    let jail = world.jail(level).await;
    let before = world.outside();
    let script = world.at("ws/attempts.py");
    fs::write(&script, ATTEMPTS).unwrap();
    let python =
        find_program("python3", &world.at("ws")).unwrap_or_else(|| panic!("python3 is needed for this test"));
    let ran = world.run(&jail, &[python.to_str().unwrap(), script.to_str().unwrap()]).await;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(ran.end, CaptureEnd::Ended(Ended::Code(0)), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    let lines: Vec<&str> = said.lines().collect();
    let mut escaped: Vec<String> =
        lines.iter().filter(|line| line.contains("\tESCAPED\t")).map(|line| (*line).to_owned()).collect();
    if level == Level::Walls {
        // A level without namespaces leaves the process, and may change modes and times.
        let after = world.outside();
        let differs = |path: &&PathBuf| before.get(*path) != after.get(*path);
        escaped.extend(
            before
                .keys()
                .chain(after.keys())
                .filter(differs)
                .map(|path| format!("changed {}", path.display())),
        );
        assert!(!is_running(&world.nap), "a daemon outlives its jail");
    }
    let visitors = world.visitors();
    if visitors > 0 && level == Level::Walls {
        escaped.push(format!("{visitors} visitors at listeners outside"));
    }
    (escaped, lines.len())
}

fn is_running(word: &str) -> bool {
    let has = |entry: &fs::DirEntry| {
        fs::read(entry.path().join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(word))
    };
    fs::read_dir("/proc").unwrap().flatten().any(|entry| has(&entry))
}

/// Runs a test of this binary as another user. True if there is none here, because this user may not become one.
fn as_nobody(test: &str) {
    // Only root can become another user; any other user is one already.
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let folder = place().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let binary = folder.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
    let user = NOBODY.to_string();
    let done = Command::new("setpriv")
        .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
        .arg(&binary)
        .args(["--exact", test, "--nocapture"])
        .env("HOME", folder.path())
        .env(PARENT, folder.path())
        .current_dir("/")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("1 passed"), "as nobody: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attempt_leaves_a_jail_of_level_3() {
    let (escaped, tried) = escapes(Level::Walls).await;
    assert_eq!(escaped, Vec::<String>::new());
    assert!(tried >= 60, "{tried}");
}

#[test]
fn no_attempt_of_another_user_leaves_a_jail_of_level_3() {
    as_nobody("jail::no_attempt_leaves_a_jail_of_level_3");
}

/// The gaps of level 2, as `docs/sandbox.md` lists them.
const GAPS: [&str; 8] = [
    "chmod_outside",
    "chown_outside",
    "times_outside",
    "xattr_outside",
    "path_socket",
    "workspace_socket",
    "list_key_folder",
    "see_host_processes",
];

#[tokio::test(flavor = "multi_thread")]
async fn only_the_documented_gaps_leave_a_jail_of_level_2() {
    let (escaped, tried) = escapes(Level::Filters).await;
    let is_new = |line: &&String| !GAPS.contains(&line.split('\t').next().unwrap());
    assert_eq!(escaped.iter().filter(is_new).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(tried >= 60, "{tried}");
}

#[test]
fn only_the_documented_gaps_leave_a_jail_of_level_2_of_another_user() {
    as_nobody("jail::only_the_documented_gaps_leave_a_jail_of_level_2");
}

/// Without walls the same attempts succeed, so that a row that can never succeed shows.
#[tokio::test(flavor = "multi_thread")]
async fn the_attempts_succeed_where_there_are_no_walls() {
    let world = World::new();
    let script = world.at("ws/attempts.py");
    fs::write(&script, ATTEMPTS).unwrap();
    let python =
        find_program("python3", &world.at("ws")).unwrap_or_else(|| panic!("python3 is needed for this test"));
    let names = [
        "create_outside",
        "append_outside",
        "move_out",
        "hard_link_in",
        "chmod_outside",
        "times_outside",
        "through_link",
        "through_proc_root",
        "read_key",
        "read_journal",
        "write_policy",
        "host_environment",
        "setuid_file",
        "setuid_by_open",
        "setuid_by_fchmod",
        "signal_host",
        "tcp",
        "netlink",
        "abstract",
        "path_socket",
        "workspace_socket",
        "agents",
        "memfd_program",
    ];
    let ran = Command::new(python)
        .arg(&script)
        .args(names)
        .env_clear()
        .envs(world.variables())
        .current_dir(world.at("ws"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let held: Vec<&str> = said.lines().filter(|line| !line.contains("\tESCAPED\t")).collect();
    let may_hold = |line: &&str| !line.starts_with("through_proc_root");
    assert_eq!(held.into_iter().filter(may_hold).collect::<Vec<_>>(), Vec::<&str>::new());
    assert_eq!(said.lines().count(), names.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn work_inside_goes_on_as_usual_and_the_home_stays_clean() {
    let world = World::new();
    let jail = world.jail(Level::Walls).await;
    let before = world.outside();
    let line = "set -e; echo a > file; mkdir -p sub; mv file sub/; ln -s sub/file link; cat link; chmod 755 sub/file; \
        echo x > $HOME/.profile; mkdir -p $HOME/.cache/tool; echo y > $HOME/.cache/tool/z; cat $HOME/.cache/tool/z; \
        echo t > /tmp/t; cat /tmp/t; python3 -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen(); \
        c = socket.create_connection(s.getsockname()); print(\"loopback\")'; echo ok > /dev/null; echo done";
    let ran = world.run(&jail, &["/bin/bash", "-c", line]).await;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(said, "a\ny\nt\nloopback\ndone\n", "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(world.outside(), before);
    assert_eq!(fs::read_to_string(world.at("ws/sub/file")).unwrap(), "a\n");
    // The layer is there for the next process.
    let again = world.run(&jail, &["/bin/cat", world.at("home/.cache/tool/z").to_str().unwrap()]).await;
    assert_eq!(again.stdout, b"y\n");
    // The private temporary folder too, and it goes with the jail.
    assert_eq!(world.run(&jail, &["/bin/cat", "/tmp/t"]).await.stdout, b"t\n");
    let temporary = jail.temporary_folder();
    assert!(temporary.join("t").exists());
    drop(jail);
    assert!(!temporary.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_workspace_in_the_home_is_the_real_one() {
    let world = World::new();
    let root = world.at("home/project");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("file"), "real\n").unwrap();
    let ax = place_ax(&world.at("lathe")).unwrap();
    let found = find_walls(&ax, find_program("bwrap", &root)).await;
    let plan = JailPlan { profile: JailProfile::ReadOnly, root: root.clone(), ..world.plan(ax) };
    let jail = Jail::new(plan, found).unwrap();
    let line = format!(
        "cd {0}; echo layer > file || cat file; echo x > $HOME/other && cat $HOME/other",
        root.display()
    );
    let ran = world.run(&jail, &["/bin/bash", "-c", &line]).await;
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "real\nx\n", "{}", String::from_utf8_lossy(&ran.stderr));
    fs::write(root.join("file"), "changed outside\n").unwrap();
    let ran = world.run(&jail, &["/bin/cat", root.join("file").to_str().unwrap()]).await;
    assert_eq!(ran.stdout, b"changed outside\n");
    assert!(!world.at("home/other").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jail_that_cannot_be_built_starts_nothing() {
    let world = World::new();
    let ax = place_ax(&world.at("lathe")).unwrap();
    let found = find_walls(&ax, Some("/bin/false".into())).await;
    assert!(found.level < Level::Walls, "{found:?}");
    assert!(!found.missing.is_empty());
    let whole = JailPlan { root: "/".into(), ..world.plan(ax) };
    assert!(Jail::new(whole, WallsFound::none("test")).is_err());
}

/// The wall is broken on purpose: with the workspace's parent writable, the attempts outside succeed, so the table
/// would notice.
#[tokio::test(flavor = "multi_thread")]
async fn a_hole_in_the_walls_is_noticed() {
    let world = World::new();
    let ax = place_ax(&world.at("lathe")).unwrap();
    let found = find_walls(&ax, find_program("bwrap", &world.at("ws"))).await;
    let plan = JailPlan { writable: vec![world.at("out")], ..world.plan(ax) };
    let jail = Jail::new(plan, found).unwrap();
    let script = world.at("ws/attempts.py");
    fs::write(&script, ATTEMPTS).unwrap();
    let python = find_program("python3", &world.at("ws")).unwrap();
    let words = [python.to_str().unwrap(), script.to_str().unwrap(), "create_outside", "through_link", "etc"];
    let ran = world.run(&jail, &words).await;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(said.matches("ESCAPED").count(), 2, "{said}");
}
