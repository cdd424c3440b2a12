//! Texts that a program puts together and prints: `awk '{print "a" "b"}'`, `jq '"a"+"b"'`, `find -printf a -printf
//! b`, `git log --format=a%x62`. For denials only.
//!
//! None of these languages is parsed. Literals are joined in their order, with nothing and with blanks between them,
//! and with a format among them filled in; a text that is hidden better than this is not found.

use crate::escapes::{self, Decoder};
use crate::script::{SimpleCommand, Word};
use crate::{foreign, wrap};

/// The most formats in one program that are filled in, each with all the texts that follow it.
const MOST_FORMATS: usize = 16;

/// The texts that a command may put together, the likeliest first.
pub(crate) fn texts(command: &SimpleCommand) -> Vec<String> {
    let Some(name) = command.program_name() else { return Vec::new() };
    let words = || command.words.iter().skip(1).filter_map(Word::literal);
    let mut found = Vec::new();
    match name {
        "echo" | "printf" => return found,
        "find" => {
            let pairs =
                command.words.windows(2).filter_map(|pair| match (pair.first()?.literal()?, pair.get(1)?) {
                    ("-printf", format) => format.literal(),
                    _ => None,
                });
            let format: String = pairs.collect();
            found.push(without_marks(&escapes::decoded(&format, Decoder::Format)));
        }
        _ if composes(name) => {
            let given = given(command);
            let programs = words().filter(|word| word.contains(['"', '\'']));
            for program in programs {
                // Text that jq inserts into the middle of another.
                let program = match name {
                    _ if name.ends_with('q') => program.replace("\\(\"", "").replace("\")", ""),
                    _ => program.to_owned(),
                };
                found.extend(joined(&filled(program, &given)));
            }
        }
        _ => {}
    }
    for word in words().filter(|word| word.contains('%')) {
        let value = word.split_once('=').filter(|_| word.starts_with('-')).map_or(word, |(_, value)| value);
        let value = value.trim_start_matches('+');
        let value = value.strip_prefix("tformat:").or_else(|| value.strip_prefix("format:")).unwrap_or(value);
        found.push(without_marks(value));
    }
    found
}

/// Tells whether a program prints a text that is put together in its words.
pub(crate) fn composes(name: &str) -> bool {
    name.ends_with("awk") || matches!(name, "jq" | "gojq" | "jaq" | "yq") || foreign::is_interpreter(name)
}

/// Tells whether a program of awk's pipes a text to a shell: `print x | "sh"`.
pub(crate) fn pipes_to_shell(command: &SimpleCommand) -> bool {
    let awk = command.program_name().is_some_and(|name| name.ends_with("awk"));
    let is_shell = |text: &str| {
        let program = text.split_whitespace().next().unwrap_or_default();
        wrap::SHELLS.contains(&crate::script::base_name(program))
    };
    let runs = |word: &str| word.contains('|') && foreign::literals(word).into_iter().any(is_shell);
    awk && command.words.iter().skip(1).filter_map(Word::literal).any(runs)
}

/// The variables that the words of awk or jq give to the program: `-v a=b`, `a=b`, `--arg a b`.
fn given(command: &SimpleCommand) -> Vec<(&str, &str)> {
    let literal = |at: usize| command.words.get(at).and_then(Word::literal);
    let awk = command.program_name().is_some_and(|name| name.ends_with("awk"));
    let name_of =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let one = |at: usize| {
        let word = literal(at)?;
        if matches!(word, "--arg" | "--argjson") {
            return Some((literal(at + 1)?, literal(at + 2)?));
        }
        let word = word.strip_prefix("-v").unwrap_or(word);
        word.split_once('=').filter(|(name, _)| awk && name_of(name))
    };
    (1..command.words.len()).filter_map(one).take(MOST_FORMATS).collect()
}

/// A program with the texts in place of the variables that it was given, where these stand outside of its own texts.
fn filled(program: String, given: &[(&str, &str)]) -> String {
    if given.is_empty() {
        return program;
    }
    let (mut out, mut rest, mut quoted) = (String::with_capacity(program.len()), program.as_str(), false);
    while let Some(c) = rest.chars().next() {
        let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        let (token, behind) = rest.split_at(if length > 0 { length } else { c.len_utf8() });
        rest = behind;
        quoted ^= token == "\"";
        match given.iter().find(|(name, _)| !quoted && *name == token) {
            Some((_, value)) => {
                out.truncate(out.trim_end_matches('$').len());
                out.push('"');
                out.push_str(value);
                out.push('"');
            }
            None => out.push_str(token),
        }
    }
    out
}

/// The literals of a program joined into one text, in each way that is likely.
fn joined(program: &str) -> Vec<String> {
    let spelled = escapes::spelled_out(program);
    let whole = foreign::concatenated(&spelled);
    let literals = foreign::literals(&whole);
    let plain = || literals.iter().filter(|literal| !literal.contains('%')).copied();
    let mut found = vec![literals.concat()];
    found.extend(literals.iter().map(|literal| (*literal).to_owned()));
    if literals.len() > 1 {
        found.push(literals.join(" "));
        found.push(plain().collect::<String>());
    }
    let formats = literals.iter().enumerate().filter(|(_, literal)| literal.contains('%'));
    for (at, format) in formats.take(MOST_FORMATS) {
        let rest: Vec<String> = literals.iter().skip(at + 1).map(|literal| (*literal).to_owned()).collect();
        found.push(escapes::formatted(format, &rest));
    }
    found
}

/// A format in which characters written as numbers (`%x75`, `%75`) are decoded, and all other directives are removed:
/// their value may be empty.
fn without_marks(format: &str) -> String {
    let mut out = Vec::with_capacity(format.len());
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        out.extend_from_slice(before.as_bytes());
        let hex =
            |from: usize| after.get(from..from + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let number = after.strip_prefix('x').and_then(|_| hex(1).map(|byte| (byte, 3)));
        rest = match number.or_else(|| hex(0).map(|byte| (byte, 2))) {
            Some((byte, length)) => {
                out.push(byte);
                after.get(length..).unwrap_or_default()
            }
            None => behind_mark(after, &mut out),
        };
    }
    out.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

/// The text after a mark that is not a number.
fn behind_mark<'a>(text: &'a str, out: &mut Vec<u8>) -> &'a str {
    let text = text.trim_start_matches(['+', '-', ' ', '.', '#', '>', '<', '|']);
    let text = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let bare = text.strip_prefix(['C', 'w']).unwrap_or(text);
    if let Some((_, behind)) = bare.strip_prefix('(').and_then(|inside| inside.split_once(')')) {
        return behind;
    }
    let Some(c) = text.chars().next() else { return "" };
    match c {
        '%' => out.push(b'%'),
        'n' => out.push(b'\n'),
        't' => out.push(b'\t'),
        _ => {}
    }
    text.get(c.len_utf8()..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_read_without_its_marks() {
        for (format, expected) in [
            ("to%x75ch x", "touch x"),
            ("to%75ch x", "touch x"),
            ("to%C(auto)uch%(if)%n%%", "touch\n%"),
            ("%xzz %", "zz "),
            ("a%", "a"),
            ("%é%x", "é".trim_start_matches('é')),
        ] {
            assert_eq!(without_marks(format), expected, "{format}");
        }
    }

    #[test]
    fn literals_are_joined_in_each_way() {
        let made = |words: &[&str]| {
            let words = words.iter().map(|word| Word::text(*word)).collect();
            texts(&SimpleCommand { words, ..SimpleCommand::default() })
        };
        for words in [
            vec!["awk", "BEGIN{print \"to\" \"uch x\"}"],
            vec!["awk", "BEGIN{printf \"%s%s\",\"to\",\"uch x\"}"],
            vec!["awk", "BEGIN{printf \"to\"; print \"uch x\"}"],
            vec!["gawk", "-va=to", "BEGIN{print a \"uch x\"}"],
            vec!["jq", "-rn", "\"to\"+\"uch x\""],
            vec!["jq", "-rn", "[\"to\",\"uch x\"]|add"],
            vec!["jq", "-rn", "\"to\\(\"uch x\")\""],
            vec!["jq", "-rn", "--arg", "a", "to", "$a+\"uch x\""],
            vec!["python3", "-c", "print('to','uch x',sep='')"],
            vec!["find", ".", "-printf", "tou", "-printf", "ch x"],
            vec!["git", "log", "--pretty=format:to%x75ch x"],
            vec!["date", "+to%%%x"],
        ] {
            let wanted = if words[0] == "date" { "to%" } else { "touch x" };
            assert!(made(&words).iter().any(|text| text == wanted), "{words:?}: {:?}", made(&words));
        }
    }
}
