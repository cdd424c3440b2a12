//! Questions to git about a copy of a repository, which must be whole in itself.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use lathe_workspace::{find_program, program_command};

/// The places in which git would work from a folder, in this environment: its repository, what that shares with others, and
/// the work tree. Git itself says it, because settings may come from files that a setting names. None where there is no
/// program; a place that git does not have is left out.
pub fn places(folder: &Path, env: &[(OsString, OsString)]) -> io::Result<Option<Vec<PathBuf>>> {
    let Some(program) = find_program("git", folder) else { return Ok(None) };
    let mut places = Vec::new();
    for question in ["--absolute-git-dir", "--git-common-dir", "--show-toplevel"] {
        let mut asked = program_command(&program);
        asked.args(["-c", "safe.directory=*", "rev-parse", question]).current_dir(folder);
        let said = asked.env_clear().envs(env.iter().cloned()).output()?;
        if said.status.success() {
            places.push(folder.join(OsStr::from_bytes(said.stdout.trim_ascii_end())));
        }
    }
    Ok(Some(places))
}

/// Sets a value in a file of settings, or takes it away. False if git cannot.
pub fn set_in_file(file: &Path, key: &str, value: Option<&str>) -> io::Result<bool> {
    let Some(program) = find_program("git", Path::new("/nowhere")) else { return Ok(false) };
    let mut git = program_command(program);
    git.current_dir("/").args(["config", "--file"]).arg(file);
    match value {
        Some(value) => git.args(["--replace-all", key, value]),
        None => git.args(["--unset-all", key]),
    };
    // 5: there is no such key.
    Ok(matches!(git.output()?.status.code(), Some(0 | 5)))
}
