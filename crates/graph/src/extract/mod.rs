//! One walk over the tree of a file, applying the rules of its language.
//!
//! The walk is a loop over a cursor, so nesting costs memory and never the stack. It keeps its own list of ancestors:
//! asking tree-sitter for a parent or a sibling starts at the root each time.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use lathe_grammars::{Language, Node, ParseOptions, Parser, Tree};

mod define;
mod sites;
mod special;

use crate::build_facts::Builder;
use crate::facts::{Facts, Gap, Kind, NONE, Use};
use crate::hash::QuickMap;
use crate::rules::{AT_FILE, AT_FUNCTION, AT_TYPE, Rule, Rules, Verb};
use crate::text::dotted;

/// A parse that takes longer is given up: some grammars are quadratic on broken text.
const PARSE_LIMIT: Duration = Duration::from_secs(5);

/// The language a file is in, where its name alone does not tell.
pub fn language_of(path: &str, source: &str) -> Option<Language> {
    let language = Language::of_path(path)?;
    if language == Language::C && path.ends_with(".h") {
        let cpp =
            ["class ", "namespace ", "template", "public:", "private:", "std::", "virtual ", "constexpr "];
        let is_cpp = source
            .lines()
            .map(str::trim_start)
            .any(|line| cpp.iter().any(|word| line.starts_with(word)) || line.contains("std::"));
        return Some(if is_cpp { Language::Cpp } else { Language::C });
    }
    // Types of Flow are errors in JavaScript, and nearly all of them can be read as TypeScript.
    if language == Language::JavaScript {
        let comments = source.lines().take(40).take_while(|line| {
            let line = line.trim_start();
            line.is_empty() || line.starts_with(['/', '*', '#', '\'', '"'])
        });
        if comments.into_iter().any(|line| line.contains("@flow")) {
            return Some(Language::Tsx);
        }
    }
    Some(language)
}

fn parse(language: Language, source: &str) -> Option<Tree> {
    thread_local! {
        static PARSERS: RefCell<QuickMap<u8, Parser>> = RefCell::default();
    }
    PARSERS.with_borrow_mut(|parsers| {
        let key = language as u8;
        let parser = match parsers.entry(key) {
            Entry::Occupied(had) => had.into_mut(),
            Entry::Vacant(free) => free.insert(language.parser()?),
        };
        parser.reset();
        let started = Instant::now();
        let mut watch = |_: &lathe_grammars::ParseState| {
            if started.elapsed() > PARSE_LIMIT { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let bytes = source.as_bytes();
        let options = ParseOptions::new().progress_callback(&mut watch);
        parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))
    })
}

/// The facts of a text in a language; without any for a language that has no rules.
pub fn extract(language: Language, source: &str) -> Facts {
    let Some(rules) = Rules::of(language) else { return Facts::empty(Gap::None) };
    let Some(tree) = parse(language, source) else { return Facts::empty(Gap::TooSlow) };
    let root = tree.root_node();
    let gap = if root.has_error() { Gap::SyntaxErrors } else { Gap::None };
    let mut walk = Walk {
        source,
        rules,
        language,
        built: Builder::default(),
        scopes: Vec::new(),
        frames: Vec::new(),
        taken: vec![0; source.len() / 64 + 1],
        bases: Vec::new(),
        small: Vec::new(),
        plain_until: 0,
        type_until: 0,
        broken: gap == Gap::SyntaxErrors,
    };
    walk.run(root);
    let lines = source.bytes().filter(|byte| *byte == b'\n').count() + usize::from(!source.ends_with('\n'));
    walk.built.finish(lines as u32, gap)
}

/// Comments and attributes that stand directly before a node.
#[derive(Clone, Copy)]
struct Before {
    doc: Option<(usize, usize)>,
    /// Where attributes, decorators or `export` begin.
    marks: usize,
    end_row: usize,
    /// Handed down by a wrapper: it holds for every child.
    kept: bool,
}

struct Frame<'t> {
    node: Node<'t>,
    before: Option<Before>,
}

struct Scope {
    def: u32,
    depth: usize,
    kind: Kind,
}

struct Base {
    start: usize,
    end: usize,
    used: Use,
}

/// A name that is bound in a part of a function: a parameter of a lambda, the variable of a comprehension.
struct Small<'a> {
    name: &'a str,
    start: usize,
    end: usize,
}

struct Walk<'a, 't> {
    source: &'a str,
    rules: &'static Rules,
    language: Language,
    built: Builder<'a>,
    scopes: Vec<Scope>,
    frames: Vec<Frame<'t>>,
    /// One bit per byte: a name begins here and has been accounted for.
    taken: Vec<u64>,
    bases: Vec<Base>,
    small: Vec<Small<'a>>,
    plain_until: usize,
    type_until: usize,
    /// The text has syntax errors: statements can look like definitions.
    broken: bool,
}

impl<'a, 't> Walk<'a, 't> {
    fn run(&mut self, root: Node<'t>) {
        let mut cursor = root.walk();
        loop {
            let node = cursor.node();
            let (descend, before) = self.enter(node);
            if descend && cursor.goto_first_child() {
                self.frames.push(Frame { node, before });
                continue;
            }
            loop {
                while self.scopes.last().is_some_and(|scope| scope.depth >= self.frames.len()) {
                    self.scopes.pop();
                }
                if cursor.goto_next_sibling() {
                    break;
                }
                if !cursor.goto_parent() || self.frames.pop().is_none() {
                    return;
                }
            }
        }
    }

    fn text(&self, node: Node<'_>) -> &'a str {
        self.source.get(node.byte_range()).unwrap_or("")
    }

    fn take(&mut self, node: Node<'_>) {
        let at = node.start_byte();
        if let Some(word) = self.taken.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    /// Takes a name with its parts: the last of a path, the inside of `~K` or `$x`.
    fn take_name(&mut self, node: Node<'t>) {
        self.take(node);
        if let Some((_, _, last)) = self.target(node) {
            self.take(last);
        }
        if node.named_child_count() == 1
            && let Some(inner) = node.named_child(0)
        {
            self.take(inner);
        }
    }

    fn is_taken(&self, node: Node<'_>) -> bool {
        let at = node.start_byte();
        self.taken.get(at / 64).is_some_and(|word| word & 1 << (at % 64) != 0)
    }

    fn scope(&self) -> u32 {
        self.scopes.last().map_or(NONE, |scope| scope.def)
    }

    fn place(&self) -> u8 {
        match self.scopes.iter().rev().map(|scope| scope.kind).find(|kind| *kind != Kind::Module) {
            None => AT_FILE,
            Some(kind) if kind.is_type() => AT_TYPE,
            Some(_) => AT_FUNCTION,
        }
    }

    /// What to do with a node: whether to look inside, and what its children inherit as comments.
    fn enter(&mut self, node: Node<'t>) -> (bool, Option<Before>) {
        if !node.is_named() {
            return (false, None);
        }
        let rules = self.rules.of_kind(node.kind_id());
        let first = rules.first().map(|rule| rule.verb);
        if let Some(Verb::Comment | Verb::Attribute) = first {
            self.comment(node, first == Some(Verb::Comment));
            return (first == Some(Verb::Attribute), None);
        }
        let before = self.before(node);
        let mut handed = None;
        let place = self.place();
        let parent = self.frames.last().map(|frame| frame.node);
        for rule in rules {
            if !rule.holds(node, parent, place) || !self.own_and_word(rule, node) {
                continue;
            }
            match rule.verb {
                Verb::Def => {
                    if self.define(rule, node, before) {
                        break;
                    }
                }
                Verb::Bind => {
                    self.bind(rule, node);
                    break;
                }
                Verb::Call => {
                    self.call(rule, node);
                    break;
                }
                Verb::Member => {
                    self.member(node);
                    break;
                }
                Verb::Ref | Verb::Type => {
                    self.mention(rule, node);
                    break;
                }
                Verb::Ignore => {
                    for name in rule.name.find_all(node) {
                        self.take(name);
                    }
                }
                Verb::Import => return (self.import(rule, node), handed),
                Verb::Plain => self.plain_until = self.plain_until.max(node.end_byte()),
                Verb::Base => self.base(node, Use::Inherit),
                Verb::Wrapper => {
                    let marks = before.map_or(node.start_byte(), |had| had.marks.min(node.start_byte()));
                    let doc = before.and_then(|had| had.doc);
                    handed = Some(Before { doc, marks, end_row: 0, kept: true });
                }
                Verb::Package => {
                    if let Some(name) = rule.name.find(node) {
                        self.built.package = dotted(self.text(name)).into_owned();
                        self.take(name);
                    }
                    // A namespace with braces holds the file's definitions.
                    return (node.child_by_field_name("body").is_some(), None);
                }
                Verb::Skip => return (false, None),
                Verb::Tokens => self.tokens(node),
                Verb::Comment | Verb::Attribute | Verb::Unwrap => {}
            }
        }
        (node.child_count() > 0, handed)
    }

    fn own_and_word(&self, rule: &Rule, node: Node<'t>) -> bool {
        if let Some(own) = &rule.own {
            let Some(object) = own.find(node) else { return false };
            if !self.rules.settings.own.iter().any(|word| word == self.text(object)) {
                return false;
            }
        }
        if let Some(word) = &rule.word {
            let until = rule.name.find(node).map_or(node.end_byte(), |name| name.start_byte());
            let text = self.source.get(node.start_byte()..until).unwrap_or("");
            return text.split_whitespace().any(|had| had == word);
        }
        true
    }

    fn comment(&mut self, node: Node<'t>, is_doc: bool) {
        let Some(frame) = self.frames.last_mut() else { return };
        let (start, end) = (node.start_byte(), node.end_byte());
        let rows = (node.start_position().row, node.end_position().row);
        let near = frame.before.filter(|had| had.kept || rows.0 <= had.end_row + 1);
        let mut now = near.unwrap_or(Before { doc: None, marks: usize::MAX, end_row: rows.1, kept: false });
        if is_doc {
            now.doc = Some((now.doc.map_or(start, |(from, _)| from), end));
        } else {
            now.marks = now.marks.min(start);
        }
        // A Rust line comment ends with its newline, in the next row.
        now.end_row = if self.source[..end].ends_with('\n') { rows.1.saturating_sub(1) } else { rows.1 };
        frame.before = Some(now);
    }

    fn before(&mut self, node: Node<'t>) -> Option<Before> {
        let frame = self.frames.last_mut()?;
        if frame.before.is_some_and(|had| had.kept) {
            return frame.before;
        }
        let before = frame.before.take()?;
        (node.start_position().row <= before.end_row + 1).then_some(before)
    }

    fn base(&mut self, node: Node<'t>, used: Use) {
        self.bases.push(Base { start: node.start_byte(), end: node.end_byte(), used });
    }
}
