//! The grammar, bounded in time.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use lathe_grammars::{Language, Node, ParseOptions, Parser, Tree};

const LEAST_PATIENCE: Duration = Duration::from_secs(1);
const PATIENCE_PER_KILOBYTE: Duration = Duration::from_millis(30);

thread_local! {
    static PARSER: RefCell<Option<Parser>> = RefCell::new(Language::Bash.parser());
}

/// Kinds by their number. The library looks the name up for each node, which costs more than all of our walk.
static KINDS: LazyLock<Vec<(String, bool)>> = LazyLock::new(|| {
    let grammar = Language::Bash.grammar();
    let ids = (0..grammar.node_kind_count()).map(|id| u16::try_from(id).unwrap_or(u16::MAX));
    ids.map(|id| (grammar.node_kind_for_id(id).unwrap_or("").to_owned(), grammar.node_kind_is_named(id)))
        .collect()
});

/// The kind of a node.
pub(crate) fn kind(node: Node<'_>) -> &'static str {
    Child::new(node).kind
}

/// A node with the properties that are used again and again.
#[derive(Clone, Copy)]
pub(crate) struct Child<'t> {
    pub(crate) node: Node<'t>,
    pub(crate) kind: &'static str,
    pub(crate) named: bool,
}

impl<'t> Child<'t> {
    pub(crate) fn new(node: Node<'t>) -> Self {
        // The number of an error is not in the table.
        let found = KINDS.get(usize::from(node.kind_id()));
        let (kind, named) = found.map_or(("ERROR", true), |(kind, named)| (kind.as_str(), *named));
        debug_assert_eq!(named, node.is_named(), "{kind}");
        Self { node, kind, named }
    }

    pub(crate) fn is_redirect(&self) -> bool {
        matches!(self.kind, "file_redirect" | "heredoc_redirect" | "herestring_redirect")
    }
}

/// The most brackets inside of brackets. Each level is read once more by itself, and text written by hand has few.
const DEEPEST: usize = 100;

/// Tells whether brackets are nested deeper than in any text written by hand. Quotes are ignored.
pub(crate) fn is_too_deep(text: &str) -> bool {
    let mut depth = 0_usize;
    text.bytes().any(|byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > DEEPEST
    })
}

/// The tree; `None` if the text is so broken that error recovery would take too long.
///
/// The grammar takes a minute over 100 kB of stray brackets, and its own count of steps does not show it, so this is
/// the one place that uses a clock. Text written by hand stays two orders of magnitude below the limit.
pub(crate) fn parse(text: &str) -> Option<Tree> {
    let started = Instant::now();
    let most =
        LEAST_PATIENCE + PATIENCE_PER_KILOBYTE * u32::try_from(text.len() / 1024).unwrap_or(u32::MAX >> 8);
    let mut progress =
        |_: &_| if started.elapsed() > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    PARSER.with_borrow_mut(|parser| {
        let parser = parser.as_mut()?;
        let options = ParseOptions::new().progress_callback(&mut progress);
        let tree =
            parser.parse_with_options(&mut |at, _| text.get(at..).unwrap_or_default(), None, Some(options));
        if tree.is_none() {
            parser.reset();
        }
        tree
    })
}

#[cfg(test)]
mod tests {
    use super::is_too_deep;

    #[test]
    fn only_text_that_nobody_writes_is_too_deep() {
        for (text, expected) in [
            (format!("{}ls{}", "$(".repeat(99), ")".repeat(99)), false),
            (format!("{}ls{}", "$(".repeat(101), ")".repeat(101)), true),
            ("$(a) ".repeat(10_000), false),
            ("(((".repeat(40), true),
            (")".repeat(500), false),
        ] {
            assert_eq!(is_too_deep(&text), expected, "{}", &text[..20]);
        }
    }
}
