//! The fast path for a line that is nothing but one literal agent command: it needs no bash and runs here, and no
//! caller can tell the difference.
//!
//! That holds only as long as command names mean in bash what they mean here, so a session in which a line may have
//! changed that (functions, aliases, PATH, options) goes through bash from then on. The test looks for words in the
//! text and may err on the side of bash only.

/// Words by which a line may change the meaning of a later line. A descriptor, a folder or a variable does not.
const CHANGES: [&str; 22] = [
    "alias", "function", "()", "PATH", "hash", "enable", "source", ". ", "eval", "exec", "set", "shopt",
    "trap", "umask", "exit", "return", "builtin", "command", "ulimit", "$'", "POSIX", "BASH",
];

/// Tells whether a line leaves the names of commands as they were.
pub(crate) fn leaves_names(line: &str) -> bool {
    !CHANGES.iter().any(|word| line.contains(word))
}

/// The words of a line that bash would take literally, with nothing to expand and nothing to chain.
pub(crate) fn literal_words(line: &str) -> Option<Vec<String>> {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let quoted = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => quoted.push(c),
                    }
                }
            }
            '"' => {
                let quoted = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '$' | '`' | '\\' | '!' => return None,
                        c => quoted.push(c),
                    }
                }
            }
            _ if c.is_alphanumeric() || "/._-,:@%+".contains(c) => word.get_or_insert_default().push(c),
            // An assignment before the command, or a value after it: only the latter is harmless.
            '=' if !words.is_empty() => word.get_or_insert_default().push(c),
            _ => return None,
        }
    }
    words.extend(word);
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_literal_words_are_taken() {
        for (line, expected) in [
            ("view a.txt", Some(vec!["view", "a.txt"])),
            ("  view  a.txt\n", Some(vec!["view", "a.txt"])),
            ("write f 'a -h b'", Some(vec!["write", "f", "a -h b"])),
            ("edit f \"x y\" ''", Some(vec!["edit", "f", "x y", ""])),
            ("edit f 'it'\"'\"'s' b", Some(vec!["edit", "f", "it's", "b"])),
            ("edit f '$&' '\\n'", Some(vec!["edit", "f", "$&", "\\n"])),
            ("search --glob='*.rs' x", Some(vec!["search", "--glob=*.rs", "x"])),
            ("", None),
            ("   ", None),
            ("view *.md", None),
            ("view $x", None),
            ("view \"$x\"", None),
            ("view `ls`", None),
            ("view a | wc", None),
            ("view a; ls", None),
            ("view a && ls", None),
            ("view a > b", None),
            ("view a &", None),
            ("view a # note", None),
            ("view ~/a", None),
            ("view {a,b}", None),
            ("view a\nls", None),
            ("view 'open", None),
            ("X=1 view a", None),
            ("view a\\ b", None),
            ("! view a", None),
        ] {
            let expected = expected.map(|words| words.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(literal_words(line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_line_that_may_rename_commands_is_seen() {
        for line in
            ["view() { :; }", "alias view=ls", "PATH=/bin", "set -e", ". ./env", "eval x", "trap x DEBUG"]
        {
            assert!(!leaves_names(line), "{line}");
        }
        for line in ["ls", "cargo test 2>&1 | tail", "cd sub && view a", "export A=1"] {
            assert!(leaves_names(line), "{line}");
        }
    }
}
