//! Secrets among the words of a command, where an option says that the next word or the rest of its own is one.

use std::borrow::Cow;

use crate::{is_secret_name, shape};

/// What stands where a value was.
const HIDDEN: &str = "«secret»";

/// Options whose value is a secret although their name alone does not say so.
const OPTIONS: [&str; 7] = ["key", "auth", "bearer", "cookie", "credential", "credentials", "pat"];

/// The words of a command without what is secret in them. A value after `--password` or `--token=` is one however short it is;
/// everything else is masked by its shape.
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

/// A command line, or any text of a setting, without what is secret in it.
pub fn mask_command(text: &str) -> String {
    let masked = mask_words(text.split(' ')).join(" ");
    shape(&masked).into_owned()
}

fn is_secret_option(word: &str) -> bool {
    let name = word.trim_start_matches('-');
    name.len() < word.len() && (is_secret_name(name) || OPTIONS.contains(&name.to_ascii_lowercase().as_str()))
}

/// Words before a word that say what it is: `sshpass -p WORD`.
const BEFORE: usize = 3;

/// Longer ones are texts: a list may be of these too.
const LONGEST: usize = 4096;

/// The word as its shape has it after the words before it: `-u`, `user:password`.
fn by_shape(before: &[&str], word: &str) -> String {
    // A text is not a word that says what the next one is, nor one that the words before it say anything about.
    let is_word = |word: &&str| word.len() <= LONGEST;
    let is_said = before.iter().chain([&word]).all(is_word);
    for from in (0..before.len()).filter(|_| is_said) {
        let context = format!(" {} ", before.get(from..).unwrap_or_default().join(" "));
        let both = format!("{context}{word}");
        // Where the words before are masked themselves, fewer of them are looked at.
        if let Cow::Owned(masked) = shape(&both)
            && let Some(rest) = masked.strip_prefix(&context)
        {
            return rest.to_owned();
        }
    }
    shape(word).into_owned()
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
