//! Scripts inside words: `sed` and `awk` read a program that can write files and run commands.
//!
//! Not parsed in full: only the few forms in common use for reading text are known; any other is a doubt.

use crate::script::Word;

/// Says why this `sed` may do more than print.
pub(crate) fn sed(words: &[Word]) -> Option<String> {
    let (mut scripts, mut operands, mut explicit) = (Vec::new(), Vec::new(), false);
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let Some(text) = word.literal() else {
            operands.push(None);
            continue;
        };
        match text {
            "-n" | "-E" | "-r" | "-u" | "-z" | "--quiet" | "--silent" | "--regexp-extended" | "-nE"
            | "-En" | "-nr" => {}
            "-e" | "--expression" | "-ne" | "-Ee" | "-nEe" => {
                explicit = true;
                scripts.push(rest.next().and_then(Word::literal));
            }
            _ if text.starts_with("--expression=") => {
                explicit = true;
                scripts.push(text.strip_prefix("--expression="));
            }
            _ if text.starts_with('-') && text.len() > 1 => {
                return Some(format!("{text} of sed is not known to only read"));
            }
            _ => operands.push(Some(text)),
        }
    }
    if !explicit {
        scripts.push(operands.first().copied().flatten());
    }
    for script in scripts {
        match script {
            Some(script) if script.split([';', '\n']).all(|part| sed_prints(part.trim())) => {}
            _ => return Some("the script of sed may write or run something".to_owned()),
        }
    }
    None
}

/// Tells whether a part of a script only prints: `10,20p`, `/a/d`, `$p`, `s/a/b/g` and similar forms.
fn sed_prints(part: &str) -> bool {
    if let Some(rest) = part.strip_prefix('s') {
        let Some(mark) = rest.chars().next().filter(|mark| "/|#,:@!".contains(*mark)) else { return false };
        let mut fields = rest.get(1..).unwrap_or("").split(mark);
        let (Some(from), Some(to), Some(flags), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return false;
        };
        return !from.ends_with('\\')
            && !to.ends_with('\\')
            && flags.chars().all(|c| c.is_ascii_digit() || "gpiI".contains(c));
    }
    let Some(command) = part.chars().last() else { return true };
    let address = part.get(..part.len() - command.len_utf8()).unwrap_or("").trim();
    let plain = |one: &str| {
        let one = one.trim().trim_end_matches('!');
        one.chars().all(|c| c.is_ascii_digit() || "$+~".contains(c))
            || (one.len() > 1
                && one.starts_with('/')
                && one.ends_with('/')
                && one.matches('/').count() == 2
                && !one.contains('\\'))
    };
    "pdq=lPD".contains(command) && address.split(',').all(plain)
}

/// Says why this `awk` may do more than print.
pub(crate) fn awk(given: &[Word]) -> Option<String> {
    let mut rest = given.iter().skip(1).peekable();
    while let Some(text) = rest.peek().map(|word| word.literal().unwrap_or("$")) {
        match text {
            "-F" => {
                rest.next();
                rest.next();
            }
            _ if text.starts_with("-F") => {
                rest.next();
            }
            "-v" => {
                rest.next();
                if !rest.next().and_then(Word::literal).is_some_and(is_assigned) {
                    return Some("-v of awk without a plain value".to_owned());
                }
            }
            _ if text.strip_prefix("-v").is_some_and(is_assigned) => {
                rest.next();
            }
            "--" => {
                rest.next();
                break;
            }
            _ if text.starts_with('-') => return Some(format!("{text} of awk is not known to only read")),
            _ => break,
        }
    }
    let script = rest.next().and_then(Word::literal);
    let words = [
        "system", "getline", "printf >", "close", "fflush", "@", "ENVIRON", "func", "ARGV", "SYMTAB",
        "PROCINFO",
    ];
    // A file of this name is a network connection.
    if given.iter().any(|word| word.show().contains("/inet")) {
        return Some("/inet reaches elsewhere".to_owned());
    }
    match script {
        Some(script)
            if !script.contains(['|', '`'])
                && !escapes(script)
                && !redirects(script)
                && !words.iter().any(|word| script.contains(word)) =>
        {
            None
        }
        _ => Some("the script of awk may write or run something".to_owned()),
    }
}

/// `NAME=value`.
fn is_assigned(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, value)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !value.contains('@')
    })
}

/// Tells whether a backslash stands before a character other than those commonly escaped in a text or a pattern.
fn escapes(script: &str) -> bool {
    let mut rest = script;
    while let Some((_, after)) = rest.split_once('\\') {
        let next = after.chars().next();
        if !next.is_some_and(|c| "ntr\"/\\.*+?()[]{}^$-".contains(c)) {
            return true;
        }
        rest = after.get(1..).unwrap_or("");
    }
    false
}

/// Without a `print` before it, `>` compares.
fn redirects(script: &str) -> bool {
    script.rsplit_once('>').is_some_and(|(before, _)| before.contains("print"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<Word> {
        words.iter().map(|word| Word::text(*word)).collect()
    }

    #[test]
    fn sed_that_prints_is_told_from_sed_that_acts() {
        for script in
            ["10,20p", "$p", "/a b/d", "s/a/b/g", "s|a|b|", "1!d", "5q", "1p;2p", "/a/,/b/p", "s/x/y/2gI"]
        {
            assert_eq!(sed(&words(&["sed", "-n", script, "f"])), None, "{script}");
        }
        for script in [
            "w out",
            "e id",
            "s/a/b/e",
            "s/a/b/w x",
            "1e",
            "r /etc/passwd",
            "s/a/b\\/e",
            "1w x",
            "y/a/b/",
            "/x/w y/p",
        ] {
            assert!(sed(&words(&["sed", script, "f"])).is_some(), "{script}");
        }
        assert!(sed(&words(&["sed", "-i", "s/a/b/", "f"])).is_some());
        assert!(sed(&words(&["sed", "-n", "-i.bak", "p", "f"])).is_some());
        assert!(sed(&words(&["sed", "p", "-i"])).is_some());
        assert!(sed(&words(&["sed", "-f", "x"])).is_some());
    }

    #[test]
    fn awk_that_prints_is_told_from_awk_that_acts() {
        assert_eq!(awk(&words(&["awk", "{print $1}", "f"])), None);
        assert_eq!(awk(&words(&["awk", "-F:", "NR==2 {print $1, $2}"])), None);
        for script in ["BEGIN{system(\"id\")}", "{print > \"x\"}", "{print | \"sh\"}", "{\"id\" | getline}"] {
            assert!(awk(&words(&["awk", script])).is_some(), "{script}");
        }
        assert!(awk(&words(&["awk", "-f", "x"])).is_some());
    }
}
