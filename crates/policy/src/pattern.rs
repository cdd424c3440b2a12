//! Programs whose first operand is a pattern or a program text of their own: grep, awk, sed, jq and similar ones.
//!
//! The word that is the text decides which words are files, so the options are read as these programs read them:
//! letters in a row, values in the same word or the next, long names abbreviated, words after `--`. Only a word that
//! surely is the text is not a file; a value of any other option may be one.

/// The rules by which such a program reads its words.
struct Spec {
    /// Letters whose option has a value.
    valued: &'static str,
    /// Letters whose value is the text.
    texts: &'static str,
    /// Letters whose option makes the first operand a file, because the text comes from elsewhere.
    instead: &'static str,
    /// Long options with a value, and the meaning of the value.
    long: &'static [(&'static str, Takes)],
    /// True if the first operand ends the options.
    stops: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// The text itself.
    Text,
    /// Something that makes the first operand a file.
    Instead,
    /// Something else.
    Value,
    /// Two values.
    Two,
    /// Nothing; the first operand is a file nevertheless.
    Nothing,
}

use Takes::{Instead, Nothing, Text, Two, Value};

const GREP: Spec = Spec {
    valued: "efmABCDd",
    texts: "e",
    instead: "f",
    long: &[
        ("regexp", Text),
        ("file", Instead),
        ("max-count", Value),
        ("after-context", Value),
        ("before-context", Value),
        ("context", Value),
        ("label", Value),
        ("binary-files", Value),
        ("devices", Value),
        ("directories", Value),
        ("include", Value),
        ("exclude", Value),
        ("exclude-from", Value),
        ("exclude-dir", Value),
        ("group-separator", Value),
    ],
    stops: false,
};

const RG: Spec = Spec {
    valued: "efgtTABCmMjdEr",
    texts: "e",
    instead: "f",
    long: &[
        ("regexp", Text),
        ("file", Instead),
        ("files", Nothing),
        ("type-list", Nothing),
        ("glob", Value),
        ("iglob", Value),
        ("type", Value),
        ("type-not", Value),
        ("type-add", Value),
        ("after-context", Value),
        ("before-context", Value),
        ("context", Value),
        ("max-count", Value),
        ("max-columns", Value),
        ("max-depth", Value),
        ("max-filesize", Value),
        ("threads", Value),
        ("encoding", Value),
        ("replace", Value),
        ("ignore-file", Value),
        ("pre", Value),
        ("pre-glob", Value),
        ("sort", Value),
        ("sortr", Value),
        ("color", Value),
        ("colors", Value),
        ("path-separator", Value),
        ("engine", Value),
    ],
    stops: false,
};

const FD: Spec = Spec {
    valued: "detEoxXjcSC",
    texts: "",
    instead: "",
    long: &[
        ("max-depth", Value),
        ("min-depth", Value),
        ("exact-depth", Value),
        ("type", Value),
        ("extension", Value),
        ("exclude", Value),
        ("size", Value),
        ("changed-within", Value),
        ("changed-before", Value),
        ("changed-after", Value),
        ("change-newer-than", Value),
        ("change-older-than", Value),
        ("newer", Value),
        ("older", Value),
        ("owner", Value),
        ("exec", Value),
        ("exec-batch", Value),
        ("threads", Value),
        ("color", Value),
        ("base-directory", Value),
        ("search-path", Value),
        ("ignore-file", Value),
        ("path-separator", Value),
    ],
    stops: false,
};

const AWK: Spec = Spec {
    valued: "fFveEilW",
    texts: "e",
    instead: "fE",
    long: &[
        ("file", Instead),
        ("exec", Instead),
        ("source", Text),
        ("field-separator", Value),
        ("assign", Value),
        ("include", Value),
        ("load", Value),
    ],
    stops: true,
};

const SED: Spec = Spec {
    valued: "efl",
    texts: "e",
    instead: "f",
    long: &[("expression", Text), ("file", Instead), ("line-length", Value)],
    stops: false,
};

const JQ: Spec = Spec {
    valued: "fL",
    texts: "",
    instead: "f",
    long: &[
        ("from-file", Instead),
        ("run-tests", Nothing),
        ("arg", Two),
        ("argjson", Two),
        ("slurpfile", Two),
        ("rawfile", Two),
        ("argfile", Two),
        ("indent", Value),
        ("expression", Text),
        ("library-path", Value),
    ],
    stops: false,
};

fn spec(name: &str) -> Option<&'static Spec> {
    Some(match name {
        "grep" | "egrep" | "fgrep" | "zgrep" | "zegrep" | "zfgrep" | "bzgrep" | "xzgrep" | "ag" | "ack" => {
            &GREP
        }
        "rg" | "ripgrep" => &RG,
        "fd" | "fdfind" => &FD,
        "awk" | "gawk" | "mawk" | "nawk" => &AWK,
        "sed" | "gsed" => &SED,
        "jq" | "gojq" | "jaq" | "yq" => &JQ,
        _ => return None,
    })
}

/// The roles of the words of such a program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WordRoles {
    /// Indexes of words that surely are the text, alone or in one word with their option.
    pub(crate) texts: Vec<usize>,
    /// Indexes of operands that surely are files.
    pub(crate) files: Vec<usize>,
}

/// Reads the words of a program, without its name; `None` where it takes no text of its own.
pub(crate) fn word_roles(name: &str, words: &[&str]) -> Option<WordRoles> {
    let spec = spec(name)?;
    let (mut texts, mut operands) = (Vec::new(), Vec::new());
    let (mut given, mut ended, mut index) = (false, false, 0);
    while let Some(word) = words.get(index) {
        let at = index;
        index += 1;
        if ended || *word == "-" || !word.starts_with('-') {
            operands.push(at);
            ended |= spec.stops;
            continue;
        }
        if *word == "--" {
            ended = true;
        } else if let Some(long) = word.strip_prefix("--") {
            let (key, value) = long.split_once('=').map_or((long, None), |(key, value)| (key, Some(value)));
            let exact = spec.long.iter().filter(|(name, _)| *name == key);
            let begun = spec.long.iter().filter(|(name, _)| name.starts_with(key));
            let meant: Vec<Takes> = match exact.clone().next() {
                Some(_) => exact.map(|(_, takes)| *takes).collect(),
                None => begun.map(|(_, takes)| *takes).collect(),
            };
            given |= meant.iter().any(|takes| matches!(takes, Text | Instead | Nothing));
            let next = match meant.as_slice() {
                [] | [Nothing, ..] => 0,
                [Two, ..] => 2,
                [Text | Instead | Value, ..] if value.is_some() => 0,
                [Text | Instead | Value, ..] => 1,
            };
            // An abbreviated name that may be two options says nothing for certain.
            if meant == [Text] {
                texts.push(if value.is_some() { at } else { at + 1 });
            }
            index += next;
        } else {
            let letters = word.get(1..).unwrap_or_default();
            let valued = letters.char_indices().find(|(_, letter)| spec.valued.contains(*letter));
            if let Some((place, letter)) = valued {
                given |= spec.texts.contains(letter) || spec.instead.contains(letter);
                let glued = place + letter.len_utf8() < letters.len();
                if spec.texts.contains(letter) {
                    texts.push(if glued { at } else { at + 1 });
                }
                index += usize::from(!glued);
            }
        }
    }
    let first = usize::from(!given);
    texts.extend(operands.iter().take(first));
    Some(WordRoles { texts, files: operands.into_iter().skip(first).collect() })
}

/// Parts of a script of sed that may be files which it reads: the text after an `r` or `R`, with or without a blank.
pub(crate) fn files_read_by_sed(script: &str) -> impl Iterator<Item = &str> {
    let begins = script.char_indices().filter(|(_, c)| matches!(c, 'r' | 'R'));
    begins.filter_map(move |(at, _)| {
        let rest = script.get(at + 1..)?;
        let line = rest.lines().next().unwrap_or_default().trim();
        // After a name with a blank, something else may follow; a file name ends where its line does.
        (line.len() > 1 && !line.ends_with('/')).then_some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(line: &str) -> Vec<&str> {
        let all: Vec<&str> = line.split(' ').collect();
        let (name, words) = all.split_first().unwrap();
        word_roles(name, words).unwrap().files.into_iter().map(|at| words[at]).collect()
    }

    #[test]
    fn only_the_text_is_no_file() {
        for (line, expected) in [
            ("grep x a b", vec!["a", "b"]),
            ("grep -e x a", vec!["a"]),
            ("grep -ex a", vec!["a"]),
            ("grep -rne x a", vec!["a"]),
            ("grep -A 3 x a", vec!["a"]),
            ("grep . --label -e F", vec!["F"]),
            ("grep . --lab -e F", vec!["F"]),
            ("grep --regex=. F", vec!["F"]),
            ("grep --reg=. F", vec!["F"]),
            ("grep --fil=a.txt F", vec!["F"]),
            ("grep -- . -e F", vec!["-e", "F"]),
            ("grep . --group-separator -e F", vec!["F"]),
            ("grep -m1 x F", vec!["F"]),
            ("grep -f pats F", vec!["F"]),
            ("awk 1 -e F", vec!["-e", "F"]),
            ("awk -F: -- 1 -e F", vec!["-e", "F"]),
            ("awk -F : 1 F", vec!["F"]),
            ("awk --source=1 F", vec!["F"]),
            ("awk -e1 F", vec!["F"]),
            ("awk -f p.awk F", vec!["F"]),
            ("sed -n -- p -e F", vec!["-e", "F"]),
            ("sed -n p F", vec!["F"]),
            ("sed -ne p F", vec!["F"]),
            ("sed --expr=p F", vec!["F"]),
            ("sed -f s F", vec!["F"]),
            ("jq . F", vec!["F"]),
            ("jq -r . F", vec!["F"]),
            ("jq --arg a b . F", vec!["F"]),
            ("jq --run-tests F", vec!["F"]),
            ("jq -f p.jq F", vec!["F"]),
            ("rg x F", vec!["F"]),
            ("rg --files F", vec!["F"]),
            ("rg -tpy x F", vec!["F"]),
            ("rg -g *.rs x F", vec!["F"]),
            ("fd -e rs x F", vec!["F"]),
        ] {
            assert_eq!(files(line), expected, "{line}");
        }
    }

    #[test]
    fn what_a_script_of_sed_reads_is_found() {
        let seen = |script: &'static str| files_read_by_sed(script).collect::<Vec<_>>();
        assert!(seen("1rsecret.txt").contains(&"secret.txt"));
        assert!(seen("/x/ r /etc/x").contains(&"/etc/x"));
        assert!(seen("p\nRf.txt").contains(&"f.txt"));
    }
}
