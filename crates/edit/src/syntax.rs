//! Syntax errors, as far as a grammar sees them, and those among them that an edit caused.
//!
//! A grammar is not a compiler: it misses errors and finds some in new syntax. So a file is never judged by itself;
//! only the errors that an edit added count. The tree of the content before is kept for a while, and the content
//! after is parsed from it, which takes time in proportion to the edit, not to the file.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ops::ControlFlow;

pub use lathe_grammars::Language;
use lathe_grammars::{InputEdit, Node, ParseOptions, Point, Tree};

use crate::TextContent;

/// The largest content that is parsed.
const LARGEST: usize = 2 * 1024 * 1024;
/// The most errors that are counted: a file with more is in another language, or broken.
const MOST: usize = 100;
/// The most progress reports of tree-sitter, one every hundred steps or so, before it is stopped. A bound in steps
/// gives the same result on every machine.
const STEPS: usize = 60_000;
/// The length of the text next to an error that is shown.
const NEAR: usize = 40;
/// The number of trees that are kept.
const KEPT: usize = 16;

/// A place where a grammar does not understand the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// The text there, or the token that is missing there.
    pub near: String,
}

/// The result of a check of a content's syntax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Syntax {
    Checked(Vec<SyntaxError>),
    /// It was not parsed, with the reason.
    Skipped(SkipReason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    TooLarge,
    Binary,
    /// The grammar took too many steps.
    TooHard,
}

/// The errors of a content, in order, at most a hundred.
pub fn syntax_errors(language: Language, content: &[u8]) -> Syntax {
    SyntaxCache::default().check(language, content)
}

/// The errors that an edit added: those after it, if there are more than before, without those that existed before at
/// any place.
pub fn added_errors(before: &[SyntaxError], after: &[SyntaxError]) -> Vec<SyntaxError> {
    if after.len() <= before.len() {
        return Vec::new();
    }
    let mut old: Vec<&str> = before.iter().map(|error| error.near.as_str()).collect();
    let mut new: Vec<SyntaxError> = Vec::new();
    for error in after {
        match old.iter().position(|near| *near == error.near) {
            Some(at) => {
                old.swap_remove(at);
            }
            None => new.push(error.clone()),
        }
    }
    new
}

/// Trees of recent contents, so that an edited one is parsed from the last.
#[derive(Default)]
pub struct SyntaxCache {
    /// The newest last.
    trees: Vec<CachedTree>,
}

struct CachedTree {
    language: Language,
    hash: u64,
    tree: Tree,
    errors: Vec<SyntaxError>,
}

impl SyntaxCache {
    /// The errors of a content.
    pub fn check(&mut self, language: Language, content: &[u8]) -> Syntax {
        match readable(content) {
            Ok(text) => self.errors(language, text.body(), None),
            Err(skip) => Syntax::Skipped(skip),
        }
    }

    /// The errors of a content before and after an edit.
    pub fn check_edit(&mut self, language: Language, before: &[u8], after: &[u8]) -> (Syntax, Syntax) {
        let first = self.check(language, before);
        let (Ok(old), Ok(new)) = (readable(before), readable(after)) else {
            return (first, self.check(language, after));
        };
        let second = self.errors(language, new.body(), Some(old.body()));
        (first, second)
    }

    fn errors(&mut self, language: Language, text: &[u8], before: Option<&[u8]>) -> Syntax {
        let hash = hash(text);
        if let Some(at) = self.position(language, hash) {
            let kept = self.trees.remove(at);
            let errors = kept.errors.clone();
            self.trees.push(kept);
            return Syntax::Checked(errors);
        }
        let old = before.and_then(|before| {
            let at = self.position(language, self::hash(before))?;
            let mut tree = self.trees[at].tree.clone();
            tree.edit(&difference(before, text));
            Some(tree)
        });
        let Some(tree) = parse(language, text, old.as_ref()) else {
            return Syntax::Skipped(SkipReason::TooHard);
        };
        let errors = collect(&tree, text);
        if self.trees.len() == KEPT {
            self.trees.remove(0);
        }
        self.trees.push(CachedTree { language, hash, tree, errors: errors.clone() });
        Syntax::Checked(errors)
    }

    fn position(&self, language: Language, hash: u64) -> Option<usize> {
        self.trees.iter().position(|kept| kept.language == language && kept.hash == hash)
    }
}

fn readable(content: &[u8]) -> Result<TextContent<'_>, SkipReason> {
    if content.len() > LARGEST {
        return Err(SkipReason::TooLarge);
    }
    TextContent::decode(content).map_err(|_| SkipReason::Binary)
}

fn hash(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn parse(language: Language, text: &[u8], old: Option<&Tree>) -> Option<Tree> {
    let mut parser = language.parser()?;
    let mut steps = 0;
    let mut progress = |_: &lathe_grammars::ParseState| {
        steps += 1;
        if steps > STEPS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    parser.parse_with_options(&mut |at, _| text.get(at..).unwrap_or_default(), old, Some(options))
}

/// The one range in which two contents differ.
fn difference(before: &[u8], after: &[u8]) -> InputEdit {
    let head = before.iter().zip(after).take_while(|(old, new)| old == new).count();
    let tail = before[head..]
        .iter()
        .rev()
        .zip(after[head..].iter().rev())
        .take_while(|(old, new)| old == new)
        .count();
    let (old_end, new_end) = (before.len() - tail, after.len() - tail);
    InputEdit {
        start_byte: head,
        old_end_byte: old_end,
        new_end_byte: new_end,
        start_position: point(before, head),
        old_end_position: point(before, old_end),
        new_end_position: point(after, new_end),
    }
}

fn point(text: &[u8], at: usize) -> Point {
    let row = crate::text::newlines(&text[..at]);
    let start = text[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    Point { row, column: at - start }
}

/// The errors of a tree. Only branches with errors are walked.
fn collect(tree: &Tree, text: &[u8]) -> Vec<SyntaxError> {
    let mut errors = Vec::new();
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        let own = node.is_error() || node.is_missing();
        if own {
            errors.push(describe(&node, text));
            if errors.len() == MOST {
                return errors;
            }
        }
        if !own && node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return errors;
            }
        }
    }
}

fn describe(node: &Node<'_>, text: &[u8]) -> SyntaxError {
    let Point { row, column } = node.start_position();
    let start = node.start_byte();
    let before = text.get(start.saturating_sub(column)..start).unwrap_or_default();
    let column = String::from_utf8_lossy(before).chars().count() + 1;
    let near = if node.is_missing() {
        format!("missing {}", node.kind())
    } else {
        let rest = String::from_utf8_lossy(text.get(node.byte_range()).unwrap_or_default()).into_owned();
        let line = rest.lines().next().unwrap_or_default();
        line.chars().take(NEAR).collect()
    };
    SyntaxError { line: row + 1, column, near }
}
