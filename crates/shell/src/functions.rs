//! The functions that bash has from its start, where there are agent commands.
//!
//! PATH cannot come before builtins, so two names need a function that tells which one is meant; nested shells do not get
//! these two, so scripts are untouched. A function uses no variable of its own: `read` would set it instead of its
//! caller's. Names with a colon are no files at all, and asked for when bash does not find them.
//!
//! One thing is lost: bash empties its list of jobs for a function in a pipe, so `jobs -p | wc -l` counts none.

/// The text bash evaluates. `bin` is the folder of the links.
pub(crate) fn text(bin: &[u8], names: &[String]) -> Vec<u8> {
    let mut text = NOT_FOUND.to_owned();
    let has = |name: &str| names.iter().any(|known| known == name);
    if has("view") {
        text.push_str(READ);
    }
    if has("jobs") {
        text.push_str(JOBS);
    }
    let mut quoted = vec![b'\''];
    for byte in bin {
        match byte {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'\'');
    let mut parts = text.split("BIN").map(str::as_bytes);
    let mut whole = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        whole.extend_from_slice(&quoted);
        whole.extend_from_slice(part);
    }
    whole
}

/// Bash calls it in a child of its own, which may become the command; a line that calls it by name may not.
const NOT_FOUND: &str = r#"
command_not_found_handle() {
  case $1 in
  *:*) [[ $BASHPID == "$$" ]] || \builtin exec BIN/ax run "$@"; BIN/ax run "$@" ;;
  *)
    \builtin printf '%s: line %s: %s: command not found\n' "${BASH_SOURCE[1]:-$0}" "${BASH_LINENO[0]}" "$1" >&2
    \builtin return 127
    ;;
  esac
}
\builtin export -f command_not_found_handle
"#;

/// Bash's own options are one dash and a letter; it has none with two dashes.
const READ: &str = r#"
read() {
  case " $@" in
  *' -'[a-zA-Z]*) \builtin read "$@" ;;
  *' --'[a-z]* | *[./]* | *' ~'*) BIN/ax run read "$@" ;;
  *) \builtin read "$@" ;;
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
        let text = String::from_utf8(text(b"/a b/it's", &names)).unwrap();
        assert!(!text.contains("BIN"), "{text}");
        assert!(text.contains("exec '/a b/it'\\''s'/ax run \"$@\""), "{text}");
        let known = ["command_not_found_handle() {", "read() {", "jobs() {"];
        known.into_iter().filter(|function| text.contains(&format!("\n{function}\n"))).collect()
    }

    #[test]
    fn only_names_that_exist_take_the_place_of_a_builtin() {
        assert_eq!(defined(&[]), ["command_not_found_handle() {"]);
        assert_eq!(defined(&["write", "view"]), ["command_not_found_handle() {", "read() {"]);
        assert_eq!(defined(&["jobs"]), ["command_not_found_handle() {", "jobs() {"]);
    }
}
