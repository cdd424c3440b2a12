//! Machines that lack some of the walls: `doctor` names the level, the reason and the remedy, and `run` keeps what
//! `docs/sandbox.md` promises for that level. Each machine is made around the binary by a script, for the user of the
//! tests and for another one.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use lathe_testkit::{FakeModel, FinishedLathe, Lathe, Script, call, done};
use serde_json::json;

use crate::walls::{outside, path_without_bubblewrap, remove_layers};

/// The user of the second round.
const NOBODY: u32 = 65534;

/// The parts that a machine lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lack {
    Nothing,
    Bubblewrap,
    /// Bubblewrap is there and ends with an error.
    WorkingBubblewrap,
    Landlock,
    UserNamespaces,
    /// Lathe runs in a container, whose `/proc` cannot be mounted again.
    OuterMachine,
    BubblewrapAndLandlock,
}

/// A machine around a workspace, with targets outside of it.
struct Machine {
    folder: tempfile::TempDir,
    binary: PathBuf,
    listener: TcpListener,
    host: Child,
}

impl Machine {
    fn new(lack: Lack, user: Option<u32>) -> Self {
        let folder = outside();
        let at = |name: &str| folder.path().join(name);
        for name in ["ws", "out", "home/.ssh", "tools"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for name in ["out/precious", "home/.ssh/id_ed25519", "home/.profile"] {
            fs::write(at(name), "PRIVATE-CONTENT\n").unwrap();
        }
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut sleep = Command::new("sleep");
        sleep.arg("3600");
        if let Some(user) = user {
            use std::os::unix::process::CommandExt as _;
            sleep.uid(user).gid(user);
        }
        let host = sleep.spawn().unwrap();
        let attack = attack(&folder.path().join("out"), listener.local_addr().unwrap().port(), host.id());
        fs::write(at("ws/attack.sh"), attack).unwrap();
        // A user who may not enter the folder of the build needs the binary elsewhere.
        let real = at("tools/lathe");
        fs::hard_link(env!("CARGO_BIN_EXE_lathe"), &real)
            .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_lathe"), &real).map(drop))
            .unwrap();
        let binary = at("tools/around");
        fs::write(&binary, script(lack, user, folder.path(), &real)).unwrap();
        fs::set_permissions(&binary, Permissions::from_mode(0o755)).unwrap();
        if let Some(user) = user {
            for name in ["ws", "ws/attack.sh", "out", "out/precious", "home", "home/.profile", "home/.ssh"] {
                std::os::unix::fs::chown(at(name), Some(user), Some(user)).unwrap();
            }
            std::os::unix::fs::chown(at("home/.ssh/id_ed25519"), Some(user), Some(user)).unwrap();
        }
        Self { folder, binary, listener, host }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn lathe(&self) -> Lathe {
        Lathe::new(&self.binary)
            .behind_walls()
            .in_dir(self.at("ws"))
            .env("HOME", self.at("home"))
            // As users have it: below the home.
            .env("LATHE_HOME", self.at("home/.local/share/lathe"))
    }

    fn run(&self, flags: &[&str]) -> FinishedLathe {
        let line = json!({ "command": "bash attack.sh" });
        let model = FakeModel::serving(Script::new().answer(call("c1", "bash", line)).answer(done("ok")));
        self.lathe().args(["run", "do it"]).args(flags).with_model(&model).run()
    }

    /// Modes, owners and contents of what is outside the workspace, but for Lathe's own folder.
    fn outside(&self) -> BTreeMap<PathBuf, (u32, u32, Vec<u8>)> {
        let mut found = BTreeMap::new();
        let mut left = ["out", "home"].map(|name| self.at(name)).to_vec();
        while let Some(path) = left.pop() {
            if path == self.at("home/.local") {
                continue;
            }
            let data = path.symlink_metadata().unwrap();
            let content = if data.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            if data.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
            found.insert(path, (data.mode(), data.uid(), content));
        }
        found
    }

    /// The names in the workspace.
    fn workspace(&self) -> Vec<String> {
        let names = fs::read_dir(self.at("ws")).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        remove_layers(&self.at("ws"));
        let _ = self.host.kill();
        let _ = self.host.wait();
    }
}

/// A script that changes content outside, reads a key, connects to a listener and ends a process. What it could do is
/// named in a file of the workspace.
fn attack(out: &Path, port: u16, host: u32) -> String {
    let out = out.display();
    format!(
        "exec 2>/dev/null\n\
         PATH=/usr/local/bin:/usr/bin:/bin:$PATH\n\
         echo x >> {out}/precious && echo appended\n\
         : > {out}/new && echo created\n\
         python3 -c 'import os; os.truncate(\"{out}/precious\", 0)' && echo truncated\n\
         mv {out}/precious {out}/moved && echo moved\n\
         ln {out}/precious linked && echo linked\n\
         ln -s {out} way; echo x > way/through && echo through; rm -f way\n\
         grep PRIVATE \"$HOME/.ssh/id_ed25519\" && echo read\n\
         (exec 3<>/dev/tcp/127.0.0.1/{port}) && echo connected\n\
         kill -9 {host} && echo killed\n\
         echo x >> \"$HOME/.profile\"\n\
         rm -rf {out}/precious \"$HOME/.ssh\"\n\
         echo over > over.txt\n"
    )
}

/// The script that makes the machine and becomes the binary in it.
fn script(lack: Lack, user: Option<u32>, folder: &Path, real: &Path) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut add = |parts: &[&str]| words.extend(parts.iter().map(|word| format!("'{word}'")));
    if let Some(user) = user.map(|user| user.to_string()) {
        add(&[&needed("setpriv"), "--reuid", &user, "--regid", &user, "--clear-groups"]);
    }
    let without_bubblewrap = || path_without_bubblewrap(folder).display().to_string();
    let without_landlock = || {
        let path = folder.join("tools/without_landlock.py");
        fs::write(&path, WITHOUT_LANDLOCK).unwrap();
        [needed("python3"), path.display().to_string()]
    };
    match lack {
        Lack::Nothing => {
            needed("bwrap");
        }
        Lack::Bubblewrap => add(&["env", &format!("PATH={}", without_bubblewrap())]),
        Lack::WorkingBubblewrap => {
            let broken = folder.join("broken");
            fs::create_dir_all(&broken).unwrap();
            fs::write(broken.join("bwrap"), "#!/bin/sh\necho 'bwrap: broken on purpose' >&2\nexit 1\n")
                .unwrap();
            fs::set_permissions(broken.join("bwrap"), Permissions::from_mode(0o755)).unwrap();
            fs::set_permissions(&broken, Permissions::from_mode(0o755)).unwrap();
            let path = std::env::var("PATH").unwrap();
            add(&["env", &format!("PATH={}:{path}", broken.display())]);
        }
        Lack::Landlock => {
            needed("bwrap");
            add(&without_landlock().each_ref().map(String::as_str));
        }
        Lack::UserNamespaces => {
            needed("bwrap");
            add(&[&needed("unshare"), "-Ur"]);
            let none = folder.join("tools/no_namespaces");
            let line = "#!/bin/sh\necho 0 > /proc/sys/user/max_user_namespaces || exit 99\nexec \"$@\"\n";
            fs::write(&none, line).unwrap();
            fs::set_permissions(&none, Permissions::from_mode(0o755)).unwrap();
            add(&[&none.display().to_string()]);
        }
        Lack::OuterMachine => {
            let bubblewrap = needed("bwrap");
            add(&[&bubblewrap, "--dev-bind", "/", "/", "--unshare-user", "--unshare-pid", "--proc", "/proc"]);
            // Containers cover parts of it, and then the kernel lets nobody inside mount another one.
            add(&["--ro-bind", "/proc/sys", "/proc/sys", "--die-with-parent", "--"]);
        }
        Lack::BubblewrapAndLandlock => {
            add(&["env", &format!("PATH={}", without_bubblewrap())]);
            add(&without_landlock().each_ref().map(String::as_str));
        }
    }
    format!("#!/bin/sh\nexec {} '{}' \"$@\"\n", words.join(" "), real.display())
}

/// Installs a filter that answers to landlock's calls (444 to 446) as a kernel without them, and becomes a program.
const WITHOUT_LANDLOCK: &str = "\
import ctypes, os, struct, sys
code = [(0x20, 0, 0, 0), (0x35, 0, 2, 444), (0x25, 1, 0, 446), (0x06, 0, 0, 0x00050026), (0x06, 0, 0, 0x7fff0000)]
code_bytes = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *line) for line in code))
class Program(ctypes.Structure):
    _fields_ = [('count', ctypes.c_ushort), ('code', ctypes.c_void_p)]
program = Program(len(code), ctypes.addressof(code_bytes))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
";

/// A program that every user can start.
fn needed(name: &str) -> String {
    let usual = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap();
    let found = usual.into_iter().chain(std::env::split_paths(&path)).map(|folder| folder.join(name));
    let found = found.into_iter().find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} is not installed, which this test needs")).display().to_string()
}

/// Checks a machine for the user of the tests, and for another one if this one may become it.
fn check(lack: Lack, level: u8, said: &[&str]) {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    for user in [None].into_iter().chain(is_root.then_some(Some(NOBODY))) {
        check_as(lack, user, level, said);
    }
}

fn check_as(lack: Lack, user: Option<u32>, level: u8, said: &[&str]) {
    let mut machine = Machine::new(lack, user);
    let about = format!("without {lack:?} as {user:?}");
    let before = machine.outside();
    let doctor = machine.lathe().arg("doctor").run().stdout;
    let line = doctor.lines().find(|line| line.contains("sandbox")).unwrap_or_default();
    let has_all = |text: &str| said.iter().all(|said| text.contains(said));
    assert!(line.contains(&format!("level {level}")) && has_all(line), "{about}: {doctor}");

    // What a run does that is told nothing.
    let ran = machine.run(&[]);
    let first = format!("{}{}", ran.stderr, ran.stdout);
    let mode = match level {
        3 => first.contains("mode full-auto"),
        // Where a service with more rights can be reached, only edits are free.
        2 => {
            first.contains("mode full-auto")
                || (first.contains("mode auto-edit") && line.contains("can reach"))
        }
        _ => first.contains("mode default"),
    };
    assert!(mode && first.contains(&format!("(level {level})")) && has_all(&first), "{about}: {first}");
    assert_eq!(machine.outside(), before, "{about}: {first}");
    if level < 2 {
        assert_eq!(machine.workspace(), ["attack.sh"], "{about}: {first}");
        return;
    }

    // What the walls hold, whatever the mode.
    let ran = machine.run(&["--mode", "full-auto", "--output", "stream-json"]).expect_code(0);
    assert_eq!(machine.workspace(), ["attack.sh", "over.txt"], "{about}: {}", ran.stdout);
    assert_eq!(machine.outside(), before, "{about}: {}", ran.stdout);
    let could =
        ["appended", "created", "truncated", "moved", "linked", "through", "read", "connected", "killed"];
    let results: Vec<String> = crate::results(&ran.events()).into_iter().map(|(_, text)| text).collect();
    let done: Vec<&&str> =
        could.iter().filter(|word| results.iter().any(|text| text.contains(**word))).collect();
    assert_eq!(done, Vec::<&&str>::new(), "{about}: {results:?}");
    assert!(machine.listener.accept().is_err(), "{about}: a connection left the walls");
    assert!(machine.host.try_wait().unwrap().is_none(), "{about}: a process outside was ended: {results:?}");
}

#[test]
fn a_whole_machine_is_of_level_3() {
    check(Lack::Nothing, 3, &[]);
}

#[test]
fn a_machine_without_bubblewrap_is_of_level_2() {
    check(Lack::Bubblewrap, 2, &["bubblewrap is not installed", "apt-get install bubblewrap"]);
}

#[test]
fn a_machine_with_a_broken_bubblewrap_is_of_level_2() {
    check(Lack::WorkingBubblewrap, 2, &["bubblewrap cannot build a jail here (bwrap: broken on purpose)"]);
}

#[test]
fn a_machine_without_landlock_is_of_level_2() {
    check(Lack::Landlock, 2, &["landlock is missing in this kernel", "Linux 5.13 or newer"]);
}

#[test]
fn a_machine_without_user_namespaces_is_of_level_2() {
    check(Lack::UserNamespaces, 2, &["bubblewrap cannot build a jail here", "user.max_user_namespaces"]);
}

#[test]
fn a_container_is_of_level_2() {
    check(Lack::OuterMachine, 2, &["bubblewrap cannot build a jail here", "settings of the container"]);
}

#[test]
fn without_bubblewrap_and_landlock_a_run_changes_nothing() {
    check(
        Lack::BubblewrapAndLandlock,
        1,
        &["bubblewrap is not installed", "landlock or seccomp cannot be used"],
    );
}
