//! Queries to git about a copy of a repository, which must not refer to anything outside of itself.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use lathe_workspace::{find_program, program_command};

/// The folders that git would use when started in a folder, in this environment: its repository, the part shared with
/// other work trees, and the work tree. Git itself is asked, because settings may come from files that a setting
/// names. None if git is not installed; a folder that git does not have is left out.
pub fn git_folders(folder: &Path, env: &[(OsString, OsString)]) -> io::Result<Option<Vec<PathBuf>>> {
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

/// Sets a value in a configuration file, or removes it. Returns false if git fails.
pub fn set_in_file(file: &Path, key: &str, value: Option<&str>) -> io::Result<bool> {
    let Some(program) = find_program("git", Path::new("/nowhere")) else { return Ok(false) };
    let mut git = program_command(program);
    git.current_dir("/").args(["config", "--file"]).arg(file);
    match value {
        Some(value) => git.args(["--replace-all", key, value]),
        None => git.args(["--unset-all", key]),
    };
    // 5: the key does not exist.
    Ok(matches!(git.output()?.status.code(), Some(0 | 5)))
}
