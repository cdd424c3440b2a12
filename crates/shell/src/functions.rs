//! Bash code for agent commands: functions for the session's own bash, and a file that every nested bash reads first.
//!
//! PATH cannot take precedence over builtins, so two names need a function that decides which one is meant; nested
//! shells do not get these two, so scripts are unaffected. A line may change PATH and continue: names that other
//! programs have too get a function for lines that mention PATH, and only for those, since `command -v` would show
//! it. The session's bash restores our folder before the next line, and a nested one (`bash -lc`) when it starts. A
//! function uses no variable of its own: `read` would set it instead of its caller's. Names with a colon are not
//! files, and are requested when bash does not find them.
//!
//! Bash empties its list of jobs for a function in a pipe, so `jobs` is a function only in lines that use it without
//! an option: a loop that waits while `$(jobs -rp | wc -l)` is large counts its children.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The names of the agent commands, and their folder.
pub(crate) struct AgentCommandNames<'a> {
    /// The folder of the links.
    pub(crate) bin: &'a OsStr,
    pub(crate) names: &'a [String],
    /// The names that also exist elsewhere on PATH.
    pub(crate) shared: &'a [String],
}

impl AgentCommandNames<'_> {
    /// The text that the session's bash evaluates.
    pub(crate) fn session(&self) -> Vec<u8> {
        let mut text = String::new();
        let has = |name: &str| self.names.iter().any(|known| known == name);
        if has("view") {
            // On the first line, since messages of `read` include the line number.
            text.push_str(&READ.trim().replace('\n', " "));
        }
        text.push_str(&self.not_found());
        self.with_folder(&text)
    }

    /// The functions for a line that may change PATH. `__ax_made` lists those that did not exist before.
    pub(crate) fn without_path(&self) -> Vec<u8> {
        let mut text = String::new();
        for name in self.shared.iter().filter(|name| is_plain(name)) {
            text.push_str(&for_one_line(name, &format!("{name}() {{ BIN/{name} \"$@\"; }}")));
        }
        self.with_folder(&text)
    }

    /// The function for a line that uses `jobs` without an option.
    pub(crate) fn jobs(&self) -> Vec<u8> {
        let has_jobs = self.names.iter().any(|name| name == "jobs");
        self.with_folder(&if has_jobs { for_one_line("jobs", JOBS.trim()) } else { String::new() })
    }

    /// The file for nested shells, named by BASH_ENV. `before` is the earlier value of BASH_ENV.
    pub(crate) fn nested(&self, before: Option<&OsStr>) -> Vec<u8> {
        let path = "case :$PATH: in *:BIN:*) ;; *) PATH=BIN:$PATH ;; esac\n";
        let mut text = self.with_folder(&format!("{path}{}", self.not_found()));
        if let Some(before) = before {
            text.extend([b"\\builtin . ", quoted(before.as_bytes()).as_slice(), b"\n"].concat());
        }
        text
    }

    fn not_found(&self) -> String {
        let names = self.names.iter().filter(|name| is_plain(name));
        let names: String = names.map(|name| format!(" | {name}")).collect();
        NOT_FOUND.replace("NAMES", &names)
    }

    fn with_folder(&self, text: &str) -> Vec<u8> {
        let bin = quoted(self.bin.as_bytes());
        let mut parts = text.split("BIN").map(str::as_bytes);
        let mut whole = parts.next().unwrap_or_default().to_vec();
        for part in parts {
            whole.extend_from_slice(&bin);
            whole.extend_from_slice(part);
        }
        whole
    }
}

/// A function that is removed after the line, unless a line has defined its own with that name.
fn for_one_line(name: &str, function: &str) -> String {
    format!("\\builtin declare -F {name} >/dev/null || {{ {function}; __ax_made+=({name}); }}\n")
}

fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        && !["read", "jobs", "done"].contains(&name)
}

fn quoted(bytes: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in bytes {
        match byte {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'\'');
    quoted
}

/// Bash calls it in a child of its own, which may become the command; a line that calls it by name may not.
const NOT_FOUND: &str = r#"
command_not_found_handle() {
  case $1 in
  *:*NAMES) [[ $BASHPID == "$$" ]] || \builtin exec BIN/ax run "$@"; BIN/ax run "$@" ;;
  *)
    \builtin printf '%s: line %s: %s: command not found\n' "${BASH_SOURCE[1]:-$0}" "${BASH_LINENO[0]}" "$1" >&2
    \builtin return 127
    ;;
  esac
}
"#;

/// Bash's own options come first, are one dash and a letter, and never `-h`. A single argument that is the name of a
/// file, with no standard input to read, means the file.
const READ: &str = r#"
read() {
  case ${1-} in
  -h | --[a-z]*) BIN/ax run read "$@" ;;
  -* | *\[*) \builtin read "$@" ;;
  *[./]* | '~'*) BIN/ax run read "$@" ;;
  *)
    case " $@" in
    *' --'[a-z]* | *[./]* | *' ~'*) BIN/ax run read "$@" ;;
    *)
      if [[ $# == 1 && -e $1 && /dev/stdin -ef /dev/null ]]; then BIN/ax run read "$1"; else \builtin read "$@"; fi
      ;;
    esac
    ;;
  esac
}
"#;

const JOBS: &str = r#"
jobs() {
  case ${1-list} in
  list | read | kill | -h | --?*) BIN/jobs "$@" ;;
  *) \builtin jobs "$@" ;;
  esac
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn defined(names: &[&str]) -> Vec<&'static str> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let shared: Vec<String> = names.iter().filter(|name| *name == "write").cloned().collect();
        let named = AgentCommandNames { bin: OsStr::new("/a b/it's"), names: &names, shared: &shared };
        let text = String::from_utf8([named.session(), named.without_path(), named.jobs()].concat()).unwrap();
        assert!(!text.contains("BIN") && !text.contains("NAMES"), "{text}");
        assert!(text.contains("exec '/a b/it'\\''s'/ax run \"$@\""), "{text}");
        let known = ["command_not_found_handle() {", "read() {", "write() {", "jobs() {"];
        known.into_iter().filter(|function| text.contains(function)).collect()
    }

    #[test]
    fn only_names_that_exist_take_the_place_of_a_builtin_or_a_program() {
        assert_eq!(defined(&[]), ["command_not_found_handle() {"]);
        assert_eq!(defined(&["write", "view"]), ["command_not_found_handle() {", "read() {", "write() {"]);
        assert_eq!(defined(&["jobs"]), ["command_not_found_handle() {", "jobs() {"]);
    }

    #[test]
    fn a_nested_shell_reads_what_it_would_have_read() {
        let named = AgentCommandNames { bin: OsStr::new("/b"), names: &[], shared: &[] };
        let text = String::from_utf8(named.nested(Some(OsStr::new("/my env")))).unwrap();
        assert!(text.starts_with("case :$PATH: in *:'/b':*) ;;"), "{text}");
        assert!(text.ends_with("\\builtin . '/my env'\n"), "{text}");
    }
}
