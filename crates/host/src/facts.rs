//! What the place looks like: for the prompt, and for masking in cassettes.

use std::path::Path;

use lathe_agent::{Clock, Facts};
use lathe_protocol::{Surroundings, Timestamp};

/// The clock of this machine.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // Milliseconds are enough for people and keep events short.
        let now = Timestamp::now();
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }
}

/// Bytes of remembered facts that go into a prompt.
const MEMORY: usize = 8 * 1024;

pub(crate) fn facts(root: &Path, shell: &Path, memory: &Path) -> Facts {
    Facts {
        os: os(),
        shell: shell.display().to_string(),
        folder: root.display().to_string(),
        git: git(root),
        date: today(),
        memory: remembered(memory),
        project: Vec::new(),
    }
}

fn remembered(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let cut = text.get(..text.floor_char_boundary(MEMORY)).unwrap_or_default();
    Some(cut.to_owned()).filter(|text| !text.trim().is_empty())
}

pub(crate) fn surroundings(root: &Path) -> Surroundings {
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    Surroundings {
        workspace: root.display().to_string(),
        home: var("HOME"),
        tmp: std::env::temp_dir().display().to_string(),
        host: nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default(),
        date: today(),
    }
}

/// The local date.
pub(crate) fn today() -> String {
    jiff::Zoned::now().date().to_string()
}

fn os() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let pretty =
        release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).map(|name| name.trim_matches('"'));
    match pretty {
        Some(name) => format!("{} {} ({name})", std::env::consts::OS, std::env::consts::ARCH),
        None => format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
    }
}

/// Branch or commit, read from the file: git itself would run what the repository's configuration names.
fn git(root: &Path) -> Option<String> {
    let dot_git = root.ancestors().map(|folder| folder.join(".git")).find(|path| path.exists())?;
    // In a work tree or submodule `.git` is a file that names the real folder.
    let folder = match std::fs::read_to_string(&dot_git) {
        Ok(text) => dot_git.parent()?.join(text.strip_prefix("gitdir:")?.trim()),
        Err(_) => dot_git,
    };
    let head = std::fs::read_to_string(folder.join("HEAD")).ok()?;
    Some(match head.trim().strip_prefix("ref: refs/heads/") {
        Some(branch) => format!("repository, on branch {branch}"),
        None => format!("repository, at commit {}", head.trim().get(..12).unwrap_or_default()),
    })
}
