//! Secrets among the words of a command, where an option marks the next word or the rest of its own as one.

use std::borrow::Cow;

use crate::{is_secret_name, mask_shapes};

/// The placeholder of a value.
const HIDDEN: &str = "«secret»";

/// Options whose value is a secret although their name alone does not say so.
const OPTIONS: [&str; 7] = ["key", "auth", "bearer", "cookie", "credential", "credentials", "pat"];

/// The words of a command with its secrets masked. A value after `--password` or `--token=` is one however short it
/// is; all other text is masked by its shape.
pub fn mask_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let words: Vec<&str> = words.into_iter().collect();
    let mut masked = Vec::with_capacity(words.len());
    let mut before = "";
    for (at, word) in words.iter().copied().enumerate() {
        let hidden = match (is_secret_option(before), word.split_once('=')) {
            (true, _) if !word.is_empty() => HIDDEN.to_owned(),
            (_, Some((name, value))) if is_secret_option(name) || is_secret_name(name) => {
                if value.is_empty() { word.to_owned() } else { format!("{name}={HIDDEN}") }
            }
            _ => by_shape(words.get(at.saturating_sub(BEFORE)..at).unwrap_or_default(), word),
        };
        masked.push(hidden);
        before = word;
    }
    masked
}

/// A command line, or any text of a setting, with its secrets masked.
pub fn mask_command(text: &str) -> String {
    let masked = mask_words(text.split(' ')).join(" ");
    mask_shapes(&masked).into_owned()
}

fn is_secret_option(word: &str) -> bool {
    let name = word.trim_start_matches('-');
    name.len() < word.len() && (is_secret_name(name) || OPTIONS.contains(&name.to_ascii_lowercase().as_str()))
}

/// The most words before a word that may mark it: `sshpass -p WORD`.
const BEFORE: usize = 3;

/// Longer words are texts: a list may contain these too.
const LONGEST: usize = 4096;

/// The word, masked by its shape after the words before it: `-u`, `user:password`.
fn by_shape(before: &[&str], word: &str) -> String {
    // A text does not mark the next word, and is not marked by the words before it.
    let is_word = |word: &&str| word.len() <= LONGEST;
    let is_said = before.iter().chain([&word]).all(is_word);
    for from in (0..before.len()).filter(|_| is_said) {
        let context = format!(" {} ", before.get(from..).unwrap_or_default().join(" "));
        let both = format!("{context}{word}");
        // Where the words before are masked themselves, fewer of them are used.
        if let Cow::Owned(masked) = mask_shapes(&both)
            && let Some(rest) = masked.strip_prefix(&context)
        {
            return rest.to_owned();
        }
    }
    mask_shapes(word).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_options_are_hidden_and_other_words_stay() {
        for (words, wanted) in [
            (vec!["--password=abc", "x"], vec!["--password=«secret»", "x"]),
            (vec!["--token", "X1", "-v"], vec!["--token", "«secret»", "-v"]),
            (vec!["--db-password", "x"], vec!["--db-password", "«secret»"]),
            (vec!["--api-key=k", "--verbose"], vec!["--api-key=«secret»", "--verbose"]),
            (vec!["-pass", "x"], vec!["-pass", "«secret»"]),
            (vec!["--auth", "a"], vec!["--auth", "«secret»"]),
            (vec!["--bearer", "X1", "x"], vec!["--bearer", "«secret»", "x"]),
            (vec!["PGPASSWORD=x", "psql"], vec!["PGPASSWORD=«secret»", "psql"]),
            (vec!["sshpass", "-p", "Zk4bR81v", "ssh"], vec!["sshpass", "-p", "«secret»", "ssh"]),
            (
                vec!["tool", "--auth", "Bearer", "B3dE97G2fFd6M78D", "x"],
                vec!["tool", "--auth", "«secret»", "«secret»", "x"],
            ),
            (vec!["-u", "me:hunter2"], vec!["-u", "me:«secret»"]),
            (vec!["postgres://me:hunter2@db/x"], vec!["postgres://me:«secret»@db/x"]),
            (
                vec!["--header", "Authorization: Bearer abcdefghijkl"],
                vec!["--header", "Authorization: Bearer «secret»"],
            ),
            (vec!["ghp_abcdefghijklmnopqrstuvwxyz"], vec!["«secret»"]),
            (vec!["--token", "--next"], vec!["--token", "«secret»"]),
            (vec!["--max-tokens", "5", "--port=80", "a"], vec!["--max-tokens", "5", "--port=80", "a"]),
            (vec!["-y", "@mcp/server-files", "/srv"], vec!["-y", "@mcp/server-files", "/srv"]),
        ] {
            assert_eq!(mask_words(words.clone()), wanted, "{words:?}");
        }
    }

    #[test]
    fn a_command_line_is_masked_word_by_word() {
        for (line, wanted) in [
            ("mypy --strict {file}", "mypy --strict {file}"),
            ("lint --token abc  {file}", "lint --token «secret»  {file}"),
            ("curl -u me:pw x", "curl -u me:«secret» x"),
            ("DB_PASSWORD=x check {file}", "DB_PASSWORD=«secret» check {file}"),
        ] {
            assert_eq!(mask_command(line), wanted);
        }
    }
}
