//! The folder that the path table is about. It is shared with the tests of those who reach files in other ways.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use nix::sys::stat::{Mode, SFlag, makedev, mknod};

pub const CANARY: &str = "CANARY: this lies outside";

pub struct World {
    _dir: Option<tempfile::TempDir>,
    pub base: PathBuf,
    pub root: PathBuf,
    pub has_device: bool,
    _listener: std::os::unix::net::UnixListener,
}

impl World {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        Self { _dir: Some(dir), ..Self::at(base) }
    }

    /// The same in a folder that another process removes.
    pub fn at(base: PathBuf) -> Self {
        let root = base.join("ws");
        let put = |path: &str, content: &str| {
            let path = base.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        for canary in
            ["out/canary", "out/sub/canary", "ws-evil/canary", "WS/canary", "ws /canary", "ws./canary"]
        {
            put(canary, CANARY);
        }
        put("out/linked", "linked\n");
        for (path, content) in [
            ("a.txt", "inside\n"),
            ("d/b.txt", "inner\n"),
            ("d/e/c.txt", "deep\n"),
            ("new\nline", "newline\n"),
            (" sp ", "blanks\n"),
            ("~/t.txt", "tilde\n"),
            ("-rf", "dash\n"),
            ("...", "dots\n"),
            ("\u{e9}", "composed\n"),
            (".git/config", "git\n"),
            (".git/hooks/pre-commit", "hook\n"),
            ("wt/.git", "gitdir: ../.git\n"),
            ("realgit/config", "inner git\n"),
            (".vscode/settings.json", "{}\n"),
            (".gitignore", "ignore\n"),
        ] {
            put(&format!("ws/{path}"), content);
        }
        fs::write(root.join(OsStr::from_bytes(b"z\xff")), "bytes\n").unwrap();
        fs::hard_link(base.join("out/linked"), root.join("hard")).unwrap();
        fs::create_dir(root.join("linked")).unwrap();
        let (inside, outside) = (root.display(), base.join("out").display().to_string());
        for (link, to) in [
            ("l_file", "a.txt".into()),
            ("l_abs", format!("{inside}/a.txt")),
            ("l_dir", "d".into()),
            ("l_dir_abs", format!("{inside}/d")),
            ("d/l_e", "e".into()),
            ("d/l_e_abs", format!("{inside}/d/e")),
            ("d/l_up", "../a.txt".into()),
            ("l_two", "l_file".into()),
            ("l_through", "l_dir/b.txt".into()),
            ("l_root", ".".into()),
            ("l_root_abs", inside.to_string()),
            ("l_e", "d/e".into()),
            ("l_out", "../out/canary".into()),
            ("l_out_abs", format!("{outside}/canary")),
            ("l_outdir", "../out".into()),
            ("l_outdir_abs", outside.clone()),
            ("d/l_out", "../../out".into()),
            ("l_evil", "../ws-evil/canary".into()),
            ("l_slash", "/".into()),
            ("l_leave", "../ws/a.txt".into()),
            ("l_back", "../out/into".into()),
            ("../out/into", inside.to_string()),
            ("../out/into_file", "../ws/a.txt".into()),
            ("l_dangle", "nothing".into()),
            ("l_dangle_abs", format!("{inside}/nothing")),
            ("l_dangle_deep", "x/y/z".into()),
            ("l_dangle_out", "../out/nothing".into()),
            ("l_dangle_out_abs", format!("{outside}/nothing")),
            ("self", "self".into()),
            ("loop1", "loop2".into()),
            ("loop2", "loop1".into()),
            ("l_proc_in", format!("/proc/self/root{inside}/a.txt")),
            ("l_proc_out", "/proc/self/root".into()),
            ("l_stdin", "/dev/stdin".into()),
            ("l_zero", "/dev/zero".into()),
            ("l_fifo", "fifo".into()),
            ("l_fifo_abs", format!("{inside}/fifo")),
            ("l_dev", "dev".into()),
            ("l_git", ".git".into()),
            ("l_git_abs", format!("{inside}/.git")),
            ("l_gitcfg", ".git/config".into()),
            ("l_hook", ".git/hooks/post-merge".into()),
            ("linked/.git", "../realgit".into()),
            ("c1", "a.txt".into()),
        ] {
            symlink(to, root.join(link)).unwrap();
        }
        for n in 2..=41 {
            symlink(format!("c{}", n - 1), root.join(format!("c{n}"))).unwrap();
        }
        nix::unistd::mkfifo(&root.join("fifo"), Mode::from_bits_truncate(0o600)).unwrap();
        let listener = std::os::unix::net::UnixListener::bind(root.join("sock")).unwrap();
        let zero = mknod(&root.join("dev"), SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), makedev(1, 5));
        Self { _dir: None, base, root, has_device: zero.is_ok(), _listener: listener }
    }

    pub fn path(&self, text: &str) -> PathBuf {
        let text = text
            .replace("{W}", &self.root.display().to_string())
            .replace("{B}", &self.base.display().to_string())
            .replace("{LONGER}", &"x/".repeat(2500))
            .replace("{LONG}", &"x".repeat(300));
        let mut bytes = Vec::new();
        for (n, part) in text.split("{FF}").enumerate() {
            bytes.extend(if n > 0 { &b"\xff"[..] } else { b"" });
            bytes.extend(part.as_bytes());
        }
        PathBuf::from(std::ffi::OsString::from_vec(bytes))
    }

    /// Everything that lies outside.
    pub fn outside(&self) -> Vec<(PathBuf, u64, u32, Vec<u8>)> {
        let folders = ["out", "ws-evil", "WS", "ws ", "ws."].map(|name| picture(&self.base.join(name)));
        let mut around: Vec<_> = folders.into_iter().flatten().collect();
        let names = fs::read_dir(&self.base).unwrap().map(|entry| (entry.unwrap().path(), 0, 0, vec![]));
        around.extend(names);
        around.sort();
        around
    }
}

/// Everything below a folder, hidden names too: path, inode, mode and content. Two
/// equal pictures mean that nothing was changed, not even a file by its own copy.
pub fn picture(folder: &Path) -> Vec<(PathBuf, u64, u32, Vec<u8>)> {
    let mut seen = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let found = fs::symlink_metadata(&path).unwrap();
        let content = if found.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        seen.push((path.clone(), found.ino(), found.mode(), content));
        if found.is_dir() {
            seen.extend(picture(&path));
        }
    }
    seen.sort();
    seen
}
