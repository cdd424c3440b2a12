//! The folder of a session, the environment of its shell, and its id.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use lathe_protocol::{Event, Fact, FolderIdentity, SessionId, SessionOpened, Toolset, random_number};
use lathe_redact::{is_secret_name, secrets_in};
use lathe_workspace::{absolute_path, open_exact};

use crate::error::HostError;
use crate::session::extras::Extras;

/// The environment of the session's shell: the user's without its secrets, and set so that no program waits for a
/// user.
pub(crate) fn shell_env() -> Vec<(OsString, OsString)> {
    let held_back = |(name, value): &(OsString, OsString)| {
        let name = name.to_string_lossy();
        is_secret_name(&name)
            || name.starts_with("LATHE_")
            || !secrets_in(&name, &value.to_string_lossy()).is_empty()
    };
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().filter(|pair| !held_back(pair)).collect();
    for (name, value) in [
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("GIT_TERMINAL_PROMPT", "0"),
        // A status must not write the index, because that would run a hook.
        ("GIT_OPTIONAL_LOCKS", "0"),
        // Git must not fetch a missing object on the way: the program that fetches is named by the repository.
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_EDITOR", "true"),
        ("TERM", "dumb"),
    ] {
        env.retain(|(known, _)| known != name);
        env.push((name.into(), value.into()));
    }
    // The meaning of `ls` must not depend on the current folder.
    for (_, value) in env.iter_mut().filter(|(name, _)| name == "PATH") {
        *value = absolute_path(value);
    }
    harden_git(&mut env);
    env
}

/// Sets the variable that scripts written for Gemini CLI check.
pub(crate) fn set_toolset_variable(env: &mut Vec<(OsString, OsString)>, toolset: Toolset) {
    if toolset == Toolset::Gemini {
        env.retain(|(known, _)| known != "GEMINI_CLI");
        env.push(("GEMINI_CLI".into(), "1".into()));
    }
}

/// Removes the variables that the user declared secret from the environment of the session's programs, except those
/// that the user passes on.
pub(crate) fn filter_env(env: &mut Vec<(OsString, OsString)>, extras: &Extras) {
    let is_in = |names: &[String], name: &OsString| names.iter().any(|known| name == known.as_str());
    env.retain(|(name, _)| !is_in(&extras.secret_variables, name));
    let passed = std::env::vars_os().filter(|(name, _)| is_in(&extras.passed_variables, name));
    for (name, value) in passed {
        env.retain(|(known, _)| *known != name);
        env.push((name, value));
    }
    if let Some(replica) = &extras.replica {
        *env = replica.environment(std::mem::take(env));
    }
}

/// Git settings that take precedence over those of a repository: commands that only read run nothing that the
/// repository names, and a folder that only looks like a repository is not one. A driver or a filter cannot be
/// switched off like this; the gate asks about those.
fn harden_git(env: &mut Vec<(OsString, OsString)>) {
    let count = |env: &[(OsString, OsString)]| {
        let found = env.iter().find(|(name, _)| name == "GIT_CONFIG_COUNT")?;
        found.1.to_str()?.parse::<usize>().ok()
    };
    let mut at = count(env).unwrap_or(0);
    for (key, value) in [
        ("core.fsmonitor", "false"),
        ("core.pager", "cat"),
        ("safe.bareRepository", "explicit"),
        // Otherwise a diff writes the index, and so runs a hook.
        ("diff.autoRefreshIndex", "false"),
    ] {
        env.push((format!("GIT_CONFIG_KEY_{at}").into(), key.into()));
        env.push((format!("GIT_CONFIG_VALUE_{at}").into(), value.into()));
        at += 1;
    }
    env.retain(|(name, _)| name != "GIT_CONFIG_COUNT");
    env.push(("GIT_CONFIG_COUNT".into(), at.to_string().into()));
}

pub(crate) fn working_folder(folder: &Path) -> Result<PathBuf, HostError> {
    let wrong = |reason: String| HostError::Folder { path: folder.to_owned(), reason };
    let root = folder.canonicalize().map_err(|error| wrong(error.to_string()))?;
    if !root.is_dir() {
        return Err(wrong("it is not a folder".to_owned()));
    }
    Ok(root)
}

/// The identity of a folder that is reached without a link.
pub fn identity(folder: &Path) -> Option<FolderIdentity> {
    let found = File::from(open_exact(folder).ok()?).metadata().ok()?;
    Some(FolderIdentity { device: found.dev(), inode: found.ino() })
}

/// The identity of a root whose path has no links. If it has one by now, it is not the folder that was chosen.
pub(crate) fn exact_identity(root: &Path) -> Result<FolderIdentity, HostError> {
    identity(root).ok_or_else(|| HostError::Folder {
        path: root.to_owned(),
        reason: "it is gone, or a link on the way leads elsewhere now: put the folder back in its place"
            .to_owned(),
    })
}

/// The folder that a session worked in, which was recorded without links. One that is reached through a link by now
/// is a different folder, and so is one that was put in its place. The number of the device alone proves nothing: it
/// may differ after a restart.
pub(crate) fn same_folder(opened: &SessionOpened) -> Result<PathBuf, HostError> {
    let recorded = Path::new(&opened.workspace);
    let root = working_folder(recorded)?;
    let wrong = |reason: String| Err(HostError::Folder { path: recorded.to_owned(), reason });
    if root != recorded {
        return wrong(format!(
            "a link on the way leads to {} now, which is not the folder this session worked in; put the folder back in its place",
            root.display()
        ));
    }
    match (opened.folder, identity(&root)) {
        (Some(before), Some(now)) if before.inode != now.inode => wrong(format!(
            "this is a different folder from the one session {0} worked in: that one was moved, or removed and made again. Put it back in its place, or work in this one with `lathe fork {0}`",
            opened.session
        )),
        _ => Ok(root),
    }
}

/// The same for a rewind or undo, which makes a missing folder again.
pub(crate) fn same_or_missing_folder(opened: &SessionOpened) -> Result<PathBuf, HostError> {
    let recorded = Path::new(&opened.workspace);
    match recorded.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(recorded.to_owned()),
        Ok(_) | Err(_) => same_folder(opened),
    }
}

/// The opening of a session, with the present identity of its folder.
pub(crate) fn current_opening(events: &[Event]) -> Result<SessionOpened, HostError> {
    let Some(Fact::SessionOpened(opened)) = events.first().map(|event| &event.fact) else {
        return Err(lathe_agent::AgentError::NoBeginning.into());
    };
    let remade = events.iter().rev().find_map(|event| match &event.fact {
        Fact::FilesRestored(restored) => restored.folder,
        _ => None,
    });
    Ok(SessionOpened { folder: remade.or(opened.folder), ..opened.clone() })
}

/// A session id: sorts by time, and its beginning is short enough to type.
pub(crate) fn new_id() -> SessionId {
    let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    SessionId::new(format!("{now}-{:06x}", random_number() & 0xff_ffff))
}
