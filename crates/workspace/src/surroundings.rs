//! The context that a program inherits from its caller.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::Spawn;

/// Folder, variables and umask of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    pub folder: PathBuf,
    /// Exported variables, and those assigned before the command. Empty if the caller is not a process.
    pub variables: Vec<(OsString, OsString)>,
    pub umask: Option<u32>,
}

/// Variables that decide which program or code runs. A program was trusted with the values of the user who trusted
/// it.
const CODE: [&str; 14] = [
    "PATH",
    "ENV",
    "IFS",
    "PS4",
    "PROMPT_COMMAND",
    "SHELLOPTS",
    "CDPATH",
    "GCONV_PATH",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "PHPRC",
    "R_PROFILE",
    "R_PROFILE_USER",
];

/// Prefixes of further variables of this kind.
const CODE_PREFIXES: [&str; 11] =
    ["LD_", "DYLD_", "BASH", "PYTHON", "PERL", "RUBY", "NODE_", "GIT_", "LUA_", "DOTNET_", "LATHE_"];

/// Keeps Python from importing files in its working folder, or next to its script: otherwise a process with write
/// access there could run code. Versions before 3.11 ignore the variable.
#[must_use]
pub fn without_imports(mut env: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
    env.retain(|(name, _)| name != "PYTHONSAFEPATH");
    env.push(("PYTHONSAFEPATH".into(), "1".into()));
    // Bytecode next to a script would be read in its place.
    if !env.iter().any(|(name, _)| name == "PYTHONDONTWRITEBYTECODE") {
        env.push(("PYTHONDONTWRITEBYTECODE".into(), "1".into()));
    }
    env
}

impl Surroundings {
    /// Runs the program in this context.
    #[must_use]
    pub fn apply_to(&self, mut what: Spawn) -> Spawn {
        what.cwd.clone_from(&self.folder);
        what.fence.set_umask(self.umask);
        if !self.variables.is_empty() {
            what.env.retain(|(name, _)| decides_code(name));
            what.env.extend(self.variables.iter().filter(|(name, _)| !decides_code(name)).cloned());
        }
        what
    }
}

fn decides_code(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    CODE.contains(&&*name) || CODE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fence;

    #[test]
    fn variables_of_the_caller_count_but_for_those_that_decide_what_runs() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
            pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
        };
        let caller = Surroundings {
            folder: "/there".into(),
            variables: pairs(&[("A", "caller"), ("PATH", "/evil"), ("LD_PRELOAD", "x.so"), ("Z", "1")]),
            umask: Some(0o077),
        };
        let env = pairs(&[("A", "own"), ("B", "unset by the caller"), ("PATH", "/bin")]);
        let what =
            Spawn { argv: Vec::new(), cwd: "/here".into(), env, fence: Fence::default(), shown: Vec::new() };
        let given = caller.apply_to(what);
        assert_eq!(given.cwd, PathBuf::from("/there"));
        assert_eq!(given.env, pairs(&[("PATH", "/bin"), ("A", "caller"), ("Z", "1")]));
    }
}
