//! Walks the tree of a file once and applies the rules of its language.
//!
//! The walk is a loop over a cursor, so nesting costs memory and never the stack. It keeps its own list of ancestors,
//! because tree-sitter starts at the root each time it is asked for a parent or a sibling.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use lathe_grammars::{Language, Node, ParseOptions, Parser, Tree};

mod define;
mod sites;
mod special;

use crate::build_facts::FactsBuilder;
use crate::facts::{DefKind, Facts, Gap, NONE, UseKind};
use crate::hash::QuickMap;
use crate::rules::{AT_FILE, AT_FUNCTION, AT_TYPE, LanguageRules, NodeRule, RuleVerb};
use crate::text::dotted;

/// The time after which a parse is given up: some grammars are quadratic on broken text.
const PARSE_LIMIT: Duration = Duration::from_secs(5);

/// The language of a file, if its name alone does not show it.
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
    // Types of Flow are errors in JavaScript, and nearly all of them can be parsed as TypeScript.
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

/// The facts of a text in a language. Empty for a language without rules.
pub fn extract(language: Language, source: &str) -> Facts {
    let Some(rules) = LanguageRules::of(language) else { return Facts::empty(Gap::None) };
    let Some(tree) = parse(language, source) else { return Facts::empty(Gap::TooSlow) };
    let root = tree.root_node();
    let gap = if root.has_error() { Gap::SyntaxErrors } else { Gap::None };
    let mut walk = TreeWalk {
        source,
        rules,
        language,
        built: FactsBuilder::default(),
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

/// Comments and attributes directly before a node.
#[derive(Clone, Copy)]
struct LeadingMarks {
    doc: Option<(usize, usize)>,
    /// The start of attributes, decorators or `export`.
    marks: usize,
    end_row: usize,
    /// True if a wrapper passed it down, so that it applies to every child.
    kept: bool,
}

struct Frame<'t> {
    node: Node<'t>,
    before: Option<LeadingMarks>,
}

struct Scope {
    def: u32,
    depth: usize,
    kind: DefKind,
}

struct BaseRange {
    start: usize,
    end: usize,
    used: UseKind,
}

/// A name that is bound in a part of a function: a parameter of a lambda, the variable of a comprehension.
struct PartBinding<'a> {
    name: &'a str,
    start: usize,
    end: usize,
}

struct TreeWalk<'a, 't> {
    source: &'a str,
    rules: &'static LanguageRules,
    language: Language,
    built: FactsBuilder<'a>,
    scopes: Vec<Scope>,
    frames: Vec<Frame<'t>>,
    /// One bit per byte, set if a name begins there and has been accounted for.
    taken: Vec<u64>,
    bases: Vec<BaseRange>,
    small: Vec<PartBinding<'a>>,
    plain_until: usize,
    type_until: usize,
    /// True if the text has syntax errors: then statements can look like definitions.
    broken: bool,
}

impl<'a, 't> TreeWalk<'a, 't> {
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

    /// Marks a name with its parts as accounted for: the last of a path, the inside of `~K` or `$x`.
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
        match self.scopes.iter().rev().map(|scope| scope.kind).find(|kind| *kind != DefKind::Module) {
            None => AT_FILE,
            Some(kind) if kind.is_type() => AT_TYPE,
            Some(_) => AT_FUNCTION,
        }
    }

    /// Applies the rules to a node. Returns whether to descend, and the comments that its children inherit.
    fn enter(&mut self, node: Node<'t>) -> (bool, Option<LeadingMarks>) {
        if !node.is_named() {
            return (false, None);
        }
        let rules = self.rules.of_kind(node.kind_id());
        let first = rules.first().map(|rule| rule.verb);
        if let Some(RuleVerb::Comment | RuleVerb::Attribute) = first {
            self.comment(node, first == Some(RuleVerb::Comment));
            return (first == Some(RuleVerb::Attribute), None);
        }
        let before = self.before(node);
        let mut handed = None;
        let place = self.place();
        let parent = self.frames.last().map(|frame| frame.node);
        for rule in rules {
            if !rule.applies_to(node, parent, place) || !self.matches_object_and_word(rule, node) {
                continue;
            }
            match rule.verb {
                RuleVerb::Def => {
                    if self.define(rule, node, before) {
                        break;
                    }
                }
                RuleVerb::Bind => {
                    self.bind(rule, node);
                    break;
                }
                RuleVerb::Call => {
                    self.call(rule, node);
                    break;
                }
                RuleVerb::Member => {
                    self.member(node);
                    break;
                }
                RuleVerb::Ref | RuleVerb::Type => {
                    self.mention(rule, node);
                    break;
                }
                RuleVerb::Ignore => {
                    for name in rule.name.find_all(node) {
                        self.take(name);
                    }
                }
                RuleVerb::Import => return (self.import(rule, node), handed),
                RuleVerb::Plain => self.plain_until = self.plain_until.max(node.end_byte()),
                RuleVerb::Base => self.base(node, UseKind::Inherit),
                RuleVerb::Wrapper => {
                    let marks = before.map_or(node.start_byte(), |had| had.marks.min(node.start_byte()));
                    let doc = before.and_then(|had| had.doc);
                    handed = Some(LeadingMarks { doc, marks, end_row: 0, kept: true });
                }
                RuleVerb::Package => {
                    if let Some(name) = rule.name.find(node) {
                        self.built.package = dotted(self.text(name)).into_owned();
                        self.take(name);
                    }
                    // A namespace with braces contains the file's definitions.
                    return (node.child_by_field_name("body").is_some(), None);
                }
                RuleVerb::Skip => return (false, None),
                RuleVerb::Tokens => self.tokens(node),
                RuleVerb::Comment | RuleVerb::Attribute | RuleVerb::Unwrap => {}
            }
        }
        (node.child_count() > 0, handed)
    }

    fn matches_object_and_word(&self, rule: &NodeRule, node: Node<'t>) -> bool {
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
        let mut now =
            near.unwrap_or(LeadingMarks { doc: None, marks: usize::MAX, end_row: rows.1, kept: false });
        if is_doc {
            now.doc = Some((now.doc.map_or(start, |(from, _)| from), end));
        } else {
            now.marks = now.marks.min(start);
        }
        // A Rust line comment includes its newline, and so ends in the next row.
        now.end_row = if self.source[..end].ends_with('\n') { rows.1.saturating_sub(1) } else { rows.1 };
        frame.before = Some(now);
    }

    fn before(&mut self, node: Node<'t>) -> Option<LeadingMarks> {
        let frame = self.frames.last_mut()?;
        if frame.before.is_some_and(|had| had.kept) {
            return frame.before;
        }
        let before = frame.before.take()?;
        (node.start_position().row <= before.end_row + 1).then_some(before)
    }

    fn base(&mut self, node: Node<'t>, used: UseKind) {
        self.bases.push(BaseRange { start: node.start_byte(), end: node.end_byte(), used });
    }
}
