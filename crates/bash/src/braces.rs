//! `{a,b}` multiplied out, because bash does it before it looks at anything else: `{rm,-rf,/}` is three words.

/// More words than this are left as they stand: the caller treats them as unknown.
const MOST: usize = 256;

/// Whether the braces of a word may be a brace expansion.
pub(crate) fn may_multiply(text: &str) -> bool {
    text.contains('}') && (text.contains(',') || text.contains(".."))
}

/// Whether the brace at the beginning may begin one. Only a little of what follows is looked at, so that a word full of
/// braces stays linear; what is longer counts as one.
pub(crate) fn may_begin(text: &str) -> bool {
    if text.starts_with("{}") {
        return false;
    }
    let near = text.as_bytes().get(1..text.len().min(200)).unwrap_or(&[]);
    match near.iter().position(|byte| *byte == b'}') {
        Some(end) => near.get(..end).is_some_and(|inside| {
            inside.iter().any(|byte| b",{$".contains(byte)) || inside.windows(2).any(|two| two == b"..")
        }),
        None => near.len() + 1 < text.len(),
    }
}

/// The words that the braces of `raw` give, each still quoted; `None` if there are none to multiply out, or they are
/// beyond us.
pub(crate) fn multiply(raw: &str) -> Option<Vec<String>> {
    if raw.contains('$') { None } else { multiply_names(raw) }
}

/// The same where plain variables stand in the word: bash multiplies before it looks at them.
pub(crate) fn multiply_names(raw: &str) -> Option<Vec<String>> {
    if raw.contains('`') || !may_multiply(raw) {
        return None;
    }
    let mut work = vec![raw.to_owned()];
    let mut done: Vec<String> = Vec::new();
    let mut multiplied = false;
    // The first word with braces left is replaced by its alternatives, in order.
    while let Some(word) = work.pop() {
        match split(&word) {
            None => done.push(word),
            Some((before, parts, after)) => {
                multiplied = true;
                for part in parts.iter().rev() {
                    work.push(format!("{before}{part}{after}"));
                }
            }
        }
        if work.len() + done.len() > MOST || work.iter().map(String::len).sum::<usize>() > 64 * 1024 {
            return None;
        }
    }
    multiplied.then_some(done)
}

/// The first unquoted `{…,…}`: what stands before, its alternatives, what stands after.
fn split(word: &str) -> Option<(&str, Vec<&str>, &str)> {
    let mut from = 0;
    loop {
        let open = find_open(word, from)?;
        if let Some((parts, end)) = alternatives(word, open) {
            return Some((word.get(..open)?, parts, word.get(end..)?));
        }
        from = open + 1;
    }
}

fn find_open(word: &str, from: usize) -> Option<usize> {
    unquoted(word).find(|(at, c)| *at >= from && *c == '{').map(|(at, _)| at)
}

fn alternatives(word: &str, open: usize) -> Option<(Vec<&str>, usize)> {
    let (mut depth, mut begin, mut parts) = (0_usize, open + 1, Vec::new());
    for (at, c) in unquoted(word).filter(|(at, _)| *at >= open) {
        match c {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    if parts.is_empty() {
                        return None;
                    }
                    parts.push(word.get(begin..at)?);
                    return Some((parts, at + 1));
                }
            }
            ',' if depth == 1 => {
                parts.push(word.get(begin..at)?);
                begin = at + 1;
            }
            _ => {}
        }
    }
    None
}

/// The characters outside of quotes.
fn unquoted(word: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let (mut quote, mut escaped) = (None, false);
    word.char_indices().filter(move |(_, c)| {
        if escaped {
            escaped = false;
            return false;
        }
        match (quote, c) {
            (None | Some('"'), '\\') => {
                escaped = true;
                false
            }
            (None, '\'' | '"') => {
                quote = Some(*c);
                false
            }
            (Some(open), c) => {
                if open == *c {
                    quote = None;
                }
                false
            }
            (None, _) => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::multiply;

    #[test]
    fn braces_multiply_as_in_bash() {
        for (raw, words) in [
            ("{rm,-rf,/}", vec!["rm", "-rf", "/"]),
            ("a{b,c}d{e,f}", vec!["abde", "abdf", "acde", "acdf"]),
            ("{a,{b,c}}", vec!["a", "b", "c"]),
            ("x{,y}", vec!["x", "xy"]),
            ("{'a,b',c}", vec!["'a,b'", "c"]),
            ("~/{x,..}", vec!["~/x", "~/.."]),
            ("{1..3,x}", vec!["1..3", "x"]),
            ("{a,b}{1..3}", vec!["a{1..3}", "b{1..3}"]),
        ] {
            assert_eq!(multiply(raw).unwrap(), words, "{raw}");
        }
        for raw in ["{}", "{a}", "a,b", "'{a,b}'", "{a,b", "{$a,b}", "{1..3}"] {
            assert_eq!(multiply(raw), None, "{raw}");
        }
        assert_eq!(multiply(&"{a,b}".repeat(30)), None);
    }
}
