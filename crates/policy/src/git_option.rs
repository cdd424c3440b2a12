//! The options of git, as it reads them: letters in a row, long names, and any beginning of a long name that means one
//! option only.

/// Tells whether a word of git may be one of these options: a letter alone or among others, a long name, or the
/// beginning of one. A long name in the list also stands for all options that begin with it.
pub(crate) fn may_be_option(word: &str, options: &[&str]) -> bool {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    let name = word.split('=').next().unwrap_or(word);
    options.iter().any(|option| match option.strip_prefix("--") {
        Some(_) => word.starts_with(option) || (name.len() > 2 && option.starts_with(name)),
        None => option
            .chars()
            .nth(1)
            .is_some_and(|letter| letters.is_some_and(|letters| letters.contains(letter))),
    })
}

/// Tells whether a word is just this long option, with or without a value: for what makes a command harmless.
pub(crate) fn is_long_option(word: &str, option: &str) -> bool {
    word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

/// The words without the values of these options. After `--` there are no options.
pub(crate) fn without_values<'w>(words: &[&'w str], valued: &[&str]) -> Vec<&'w str> {
    let takes = |word: &str| match word.strip_prefix('-') {
        Some(long) if long.starts_with('-') => {
            let fits = |option: &&&str| word.len() > 2 && option.starts_with(word);
            valued.iter().filter(|option| option.starts_with("--")).any(|option| fits(&option))
        }
        // The last of several letters has its value in the next word.
        Some(letters) => {
            let last = letters.chars().last();
            let is_last = |option: &&str| !option.starts_with("--") && option.chars().nth(1) == last;
            last.is_some() && valued.iter().any(is_last)
        }
        None => false,
    };
    let (mut left, mut rest) = (Vec::new(), words.iter().copied());
    while let Some(word) = rest.next() {
        left.push(word);
        if word == "--" {
            left.extend(rest);
            break;
        }
        if takes(word) {
            rest.next();
        }
    }
    left
}

/// The words that are not options: everything after `--` or `--end-of-options`, and what does not begin with a dash.
pub(crate) fn operands<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let end = words.iter().position(|word| matches!(*word, "--" | "--end-of-options"));
    let (before, behind) = words.split_at(end.unwrap_or(words.len()));
    let before = before.iter().filter(|word| !word.starts_with('-'));
    before.chain(behind.iter().skip(1)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_known_by_any_beginning_of_their_name() {
        for (word, option, expected) in [
            ("--hard", "--hard", true),
            ("--har", "--hard", true),
            ("--h", "--hard", true),
            ("--", "--hard", false),
            ("--hello", "--hard", false),
            ("hard", "--hard", false),
            ("--outp=x", "--output", true),
            ("--batch-check", "--batch", true),
            ("-xf", "-f", true),
            ("-x", "-f", false),
            ("--f", "-f", false),
        ] {
            assert_eq!(may_be_option(word, &[option]), expected, "{word} {option}");
        }
        assert!(
            is_long_option("--batch-check=%(rest)", "--batch-check")
                && !is_long_option("--batch", "--batch-check")
        );
    }

    #[test]
    fn values_of_options_are_no_operands() {
        let words = ["push", "-qm", "msg", "--mess", "more", "a", "--", "-m", "b"];
        let left = without_values(&words, &["-m", "--message"]);
        assert_eq!(left, ["push", "-qm", "--mess", "a", "--", "-m", "b"]);
        assert_eq!(operands(&left), ["push", "a", "-m", "b"]);
    }
}
