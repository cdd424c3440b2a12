//! Splits a command into words, with the quoting of a shell and no other shell syntax: no variables, no globs, no
//! operators. Their characters are ordinary ones here.

use crate::ExtendError;

/// Splits a command into its words; there is at least one.
pub fn split_command(command: &str) -> Result<Vec<String>, ExtendError> {
    let wrong = |reason| ExtendError::Words { command: command.to_owned(), reason };
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = command.chars();
    while let Some(c) = letters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"'), '\\') => {
                let next = letters.next().ok_or_else(|| wrong("it ends with a backslash"))?;
                let word = word.get_or_insert_default();
                if !matches!(next, '"' | '\\' | '$' | '`') {
                    word.push('\\');
                }
                word.push(next);
            }
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') => {
                let next = letters.next().ok_or_else(|| wrong("it ends with a backslash"))?;
                word.get_or_insert_default().push(next);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(wrong("a quote is not closed"));
    }
    words.extend(word);
    if words.first().is_none_or(String::is_empty) {
        return Err(wrong("it is empty"));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::split_command;

    #[test]
    fn words_are_split_as_a_shell_quotes_them() {
        for (command, expected) in [
            ("a b  c", &["a", "b", "c"][..]),
            ("'a b' \"c d\"e", &["a b", "c de"]),
            (r#"a\ b "c\"d\n" '\'"#, &["a b", "c\"d\\n", "\\"]),
            ("a ''", &["a", ""]),
            ("a $HOME *;|&", &["a", "$HOME", "*;|&"]),
            (" a ", &["a"]),
        ] {
            assert_eq!(split_command(command).unwrap(), expected, "{command}");
        }
        for (command, reason) in [
            ("", "it is empty"),
            ("  ", "it is empty"),
            ("''", "it is empty"),
            ("a 'b", "a quote is not closed"),
            ("a\\", "it ends with a backslash"),
        ] {
            assert!(split_command(command).unwrap_err().to_string().ends_with(reason), "{command}");
        }
    }
}
