//! Programs that search for a text in files, or for files by their names.

/// Programs that go through the folder they run in, or through a given one, without an option for it.
const DEEP: [&str; 16] = [
    "rg", "ripgrep", "rga", "ag", "ack", "ack-grep", "pt", "sift", "ugrep", "ug", "ast-grep", "semgrep",
    "hgrep", "csearch", "zipgrep", "cgrep",
];

/// Programs that find or list files by their names.
const NAMES: [&str; 28] = [
    "find", "gfind", "bfs", "fd", "fdfind", "locate", "plocate", "mlocate", "slocate", "glocate", "rlocate",
    "mdfind", "fselect", "ls", "gls", "dir", "vdir", "exa", "eza", "lsd", "tree", "du", "gdu", "ncdu",
    "dust", "fzf", "look", "broot",
];

/// Tells whether a program is a grep: `zgrep`, `bzgrep`, `pcre2grep`. `pgrep` looks for processes.
pub(crate) fn is_grep(name: &str) -> bool {
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    name.ends_with("grep") && name != "pgrep"
}

/// Tells whether a program goes through a whole folder to search for a text.
pub(crate) fn is_deep(name: &str) -> bool {
    DEEP.contains(&name)
}

/// Tells whether a program searches for text or for files.
pub(crate) fn searches(name: &str) -> bool {
    is_grep(name) || is_deep(name) || NAMES.contains(&name)
}
