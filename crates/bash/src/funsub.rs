//! Function substitutions of bash 5.3: `${ cmd; }` and `${| cmd; }`, which run commands in the shell itself.
//!
//! The grammar does not know them and makes different mistakes in each place, so they are found in the text. The end
//! of one is not known without reading it, so each is read up to the last brace of the text: the part that is read
//! too much counts for denials only.

use lathe_grammars::Node;

use crate::syntax::kind;

/// The most substitutions of one text that are read.
const MOST: usize = 64;

/// The commands of each function substitution; `None` where there are too many.
pub(crate) fn texts(text: &str, root: Node<'_>) -> Vec<Option<String>> {
    let mut found = Vec::new();
    for (at, sign) in text.match_indices("${") {
        let rest = text.get(at + sign.len()..).unwrap_or_default();
        let Some(inside) =
            rest.strip_prefix([' ', '\t', '\n', '|', '(']).filter(|_| !is_quoted(text, at, root))
        else {
            continue;
        };
        if found.len() == MOST {
            found.push(None);
            break;
        }
        let end = inside.rfind('}').unwrap_or(inside.len());
        let inside = inside.get(..end).unwrap_or(inside);
        // `${(cmd)}` is a subshell.
        let inside = if rest.starts_with('(') { inside.trim_end().trim_end_matches(')') } else { inside };
        found.push(Some(inside.to_owned()));
    }
    found
}

/// Tells whether nothing is expanded at a position. Only a tree without errors shows that.
fn is_quoted(text: &str, at: usize, root: Node<'_>) -> bool {
    if root.has_error() {
        return false;
    }
    let mut node = root.descendant_for_byte_range(at, at + 1);
    while let Some(inner) = node {
        match kind(inner) {
            "raw_string" | "ansi_c_string" | "comment" => return true,
            "heredoc_redirect" => {
                let mut cursor = inner.walk();
                let start = inner.children(&mut cursor).find(|child| kind(*child) == "heredoc_start");
                let start = start.and_then(|start| text.get(start.start_byte()..start.end_byte()));
                let body = || text.get(inner.start_byte()..at).is_some_and(|before| before.contains('\n'));
                return start.is_some_and(|start| start.contains(['\'', '"', '\\'])) && body();
            }
            _ => node = inner.parent(),
        }
    }
    false
}
