//! Patterns of bash that are patterns only with `extglob`: `@(a|b)`, `+(a)`, `!(a)`, `?(a)`, `*(a)`.

/// The signs that begin such a pattern.
const SIGNS: [&str; 5] = ["@(", "+(", "!(", "?(", "*("];

/// Tells whether a text holds such a pattern.
pub(crate) fn is_extended(text: &str) -> bool {
    SIGNS.iter().any(|sign| text.contains(sign))
}

/// The words of a line that hold such a pattern, each with `*` in the place of it, and with `.*` where a dot stands
/// in it: a star alone does not match names with a dot in front. Quotes and backslashes are dropped, as bash does.
pub(crate) fn patterns(line: &str) -> Vec<String> {
    let (mut found, mut word, mut depth, mut is_pattern) = (Vec::new(), String::new(), 0_usize, false);
    let mut is_dotted = false;
    let mut all = line.chars().chain([' ']).peekable();
    while let Some(c) = all.next() {
        match c {
            '@' | '+' | '!' | '?' | '*' if all.peek() == Some(&'(') => {
                all.next();
                if depth == 0 {
                    word.push('*');
                }
                depth += 1;
                is_pattern = true;
            }
            '(' if depth > 0 => depth += 1,
            ')' if depth > 0 => depth -= 1,
            c if depth > 0 => is_dotted |= c == '.',
            '\'' | '"' | '\\' => {}
            c if c.is_whitespace() || ";|&<>()=".contains(c) => {
                let word = std::mem::take(&mut word).replace("**", "*");
                let dotted = std::mem::take(&mut is_dotted).then(|| word.replace('*', ".*"));
                if std::mem::take(&mut is_pattern) {
                    found.extend(dotted.into_iter().chain([word]));
                }
            }
            c => word.push(c),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_brackets_may_be_anything() {
        for (line, expected) in [
            ("cp a .@(git)/hooks/x", vec![".*/hooks/x"]),
            ("tee .g+(i)t/x !(a)", vec![".g*t/x", "*"]),
            ("tee .@(g@(i|j)t)/x; ls", vec![".*/x"]),
            ("tee '.'@(git)/x", vec![".*/x"]),
            ("echo a > @(.git)/x", vec![".*/x", "*/x"]),
            ("ls a", vec![]),
        ] {
            assert_eq!(patterns(line), expected, "{line}");
        }
    }
}
