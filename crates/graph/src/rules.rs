//! The rules of a language, as data: the meaning of each kind of node in its grammar.
//!
//! Tree-sitter's own query language was considered and rejected: a query that also captures every identifier costs
//! about as much as the parse, and half of what is needed (scopes, the value a name was bound to) cannot be expressed
//! in it. A rule here names a node kind and the fields to read, is compiled to a table by kind, and one walk of the
//! tree applies it: a tenth of the cost, and a language is still a folder without code.
//!
//! ```text
//! !setting word word                      a setting of the language
//! kind|kind verb word key=path key=path   the meaning of such a node
//! ```
//! A path is a series of steps joined by dots: a field's name, `@kind` for the first child of that kind, `#0` and
//! `#last` for named children, `^` for the parent, `~` down the declarators of C, `fn` for the function declarator
//! among them; `a/b` tries one after the other.

use std::sync::OnceLock;

use lathe_grammars::{Grammar, Language, Node};

use crate::facts::DefKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleVerb {
    Def,
    Bind,
    Call,
    Member,
    Ref,
    Type,
    Ignore,
    Import,
    Plain,
    Comment,
    Attribute,
    Wrapper,
    Unwrap,
    Skip,
    Tokens,
    Package,
    Base,
}

#[derive(Debug, Clone)]
enum NodeStep {
    Field(u16),
    /// A name can stand for several symbols.
    Child(Vec<u16>),
    Last,
    Nth(usize),
    Parent,
    Declarator,
    Function,
}

#[derive(Debug, Clone, Default)]
pub struct NodePath(Vec<Vec<NodeStep>>);

#[derive(Debug, Clone)]
struct NodeCondition {
    path: NodePath,
    kinds: Vec<u16>,
    wanted: bool,
}

/// The places where a rule applies: bits of [`NodeRule::at`].
pub const AT_FILE: u8 = 1;
pub const AT_TYPE: u8 = 2;
pub const AT_FUNCTION: u8 = 4;

#[derive(Debug, Clone)]
pub struct NodeRule {
    pub verb: RuleVerb,
    pub kind: DefKind,
    pub words: Vec<String>,
    pub name: NodePath,
    pub body: NodePath,
    pub ty: NodePath,
    pub value: NodePath,
    pub owner: NodePath,
    pub object: NodePath,
    pub bases: Vec<NodePath>,
    pub implements: Vec<NodePath>,
    /// The text before the name must contain this word.
    pub word: Option<String>,
    /// The name must be this text.
    pub text: Option<String>,
    /// The node at this path must be the object itself (`self`, `this`).
    pub own: Option<NodePath>,
    /// The name is bound only inside the nearest such node, not in the function around it.
    within: Vec<u16>,
    conditions: Vec<NodeCondition>,
    under: Vec<u16>,
    at: u8,
}

impl NodeRule {
    pub fn is_within(&self) -> bool {
        !self.within.is_empty()
    }

    /// Tells whether a node is the one that its names are bound in.
    pub fn ends_at(&self, node: Node<'_>) -> bool {
        self.within.contains(&node.kind_id())
    }

    pub fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|had| had == word)
    }

    pub fn applies_to(&self, node: Node<'_>, parent: Option<Node<'_>>, at: u8) -> bool {
        self.at & at != 0
            && (self.under.is_empty() || parent.is_some_and(|parent| self.under.contains(&parent.kind_id())))
            && self.conditions.iter().all(|condition| {
                let found = condition.path.find(node).is_some_and(|found| {
                    condition.kinds.is_empty() || condition.kinds.contains(&found.kind_id())
                });
                found == condition.wanted
            })
    }
}

impl NodePath {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All nodes at the path: several declarators of one declaration, several names of one field.
    pub fn find_all<'t>(&self, node: Node<'t>) -> Vec<Node<'t>> {
        match self.0.first().map(Vec::as_slice) {
            Some([NodeStep::Field(field)]) => {
                let mut cursor = node.walk();
                let Some(field) = std::num::NonZero::new(*field) else { return Vec::new() };
                let all: Vec<_> =
                    node.children_by_field_id(field, &mut cursor).filter(Node::is_named).collect();
                if all.is_empty() { self.find(node).into_iter().collect() } else { all }
            }
            Some([NodeStep::Declarator]) => {
                let mut cursor = node.walk();
                node.children_by_field_name("declarator", &mut cursor)
                    .filter_map(|declarator| declared(declarator, false).or(Some(declarator)))
                    .collect()
            }
            _ => self.find(node).into_iter().collect(),
        }
    }

    /// All nodes at the path below every child that its first step matches, not only below the first.
    pub fn find_each<'t>(&self, node: Node<'t>) -> Vec<Node<'t>> {
        match self.0.first().map(Vec::as_slice) {
            Some([NodeStep::Child(kinds), rest @ ..]) => {
                let rest = Self(vec![rest.to_vec()]);
                let mut cursor = node.walk();
                let children =
                    node.named_children(&mut cursor).filter(|child| kinds.contains(&child.kind_id()));
                children.filter_map(|child| rest.find(child)).collect()
            }
            _ => self.find_all(node),
        }
    }

    pub fn find<'t>(&self, node: Node<'t>) -> Option<Node<'t>> {
        self.0.iter().find_map(|steps| {
            let mut at = node;
            for step in steps {
                at = match step {
                    NodeStep::Field(field) => at.child_by_field_id(*field)?,
                    NodeStep::Child(kinds) => (0..at.named_child_count())
                        .filter_map(|i| at.named_child(i as u32))
                        .find(|child| kinds.contains(&child.kind_id()))?,
                    NodeStep::Last => at.named_child(at.named_child_count().checked_sub(1)? as u32)?,
                    NodeStep::Parent => at.parent()?,
                    NodeStep::Nth(index) => at.named_child(*index as u32)?,
                    NodeStep::Declarator => declared(at, false)?,
                    NodeStep::Function => declared(at, true)?,
                };
            }
            Some(at)
        })
    }
}

/// Follows the declarators to the name, or to the function declarator on the way.
fn declared(node: Node<'_>, function: bool) -> Option<Node<'_>> {
    let mut at = node;
    for _ in 0..64 {
        // `operator bool()` is a name itself, and its declarator is the rest of its type.
        if at.kind() == "operator_cast" {
            return Some(at);
        }
        if function && at.kind() == "function_declarator" {
            // `int (*f)(int)` declares a variable.
            let inner = at.child_by_field_name("declarator")?;
            return (inner.kind() != "parenthesized_declarator").then_some(at);
        }
        let next = at.child_by_field_name("declarator").or_else(|| match at.kind() {
            "reference_declarator"
            | "parenthesized_declarator"
            | "attributed_declarator"
            | "variadic_declarator" => (0..at.named_child_count())
                .filter_map(|i| at.named_child(i as u32))
                .find(|child| !child.kind().starts_with("attribute") && !child.kind().starts_with("ms_")),
            _ => None,
        });
        match next {
            Some(next) => at = next,
            None => return (!function && at != node).then_some(at),
        }
    }
    None
}

#[derive(Debug, Default, Clone)]
pub struct LanguageSettings {
    pub own: Vec<String>,
    pub parent: Vec<String>,
    pub constructor: Vec<String>,
    pub import_call: Vec<String>,
    pub base_call: Vec<String>,
    pub field_call: Vec<String>,
    pub test_call: Vec<String>,
    pub test_name: Vec<String>,
    pub test_mark: Vec<String>,
    pub public_mark: Vec<String>,
    pub doc_inside: bool,
    /// True if a bare name in a method can be a member of its class.
    pub implicit_own: bool,
    /// True if files of one folder see each other's names.
    pub folder_scope: bool,
}

#[derive(Debug)]
pub struct LanguageRules {
    pub settings: LanguageSettings,
    by_kind: Vec<Vec<NodeRule>>,
    /// Node kinds in the rule files that the grammar does not have. Shared files may name nodes that only one of the
    /// languages has, so this is for a test and not an error.
    pub unknown: Vec<String>,
}

impl LanguageRules {
    pub fn of_kind(&self, kind: u16) -> &[NodeRule] {
        self.by_kind.get(kind as usize).map_or(&[], Vec::as_slice)
    }

    pub fn with_verb(&self, kind: u16, verb: RuleVerb) -> Option<&NodeRule> {
        self.of_kind(kind).iter().find(|rule| rule.verb == verb)
    }

    /// The rules of a language. None for a language without a graph (CSS, HTML, JSON).
    pub fn of(language: Language) -> Option<&'static Self> {
        static TABLE: [OnceLock<Option<LanguageRules>>; Language::ALL.len()] =
            [const { OnceLock::new() }; Language::ALL.len()];
        let at = Language::ALL.iter().position(|known| *known == language)?;
        TABLE[at]
            .get_or_init(|| language.graph_rules().map(|text| compile(text, &language.grammar())))
            .as_ref()
    }
}

fn compile(text: &[&str], grammar: &Grammar) -> LanguageRules {
    let mut rules = LanguageRules {
        settings: LanguageSettings::default(),
        by_kind: vec![Vec::new(); grammar.node_kind_count()],
        unknown: Vec::new(),
    };
    // The language's own file comes first, and its rules take precedence over those it shares.
    for part in text {
        for line in part.lines() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(setting) = line.strip_prefix('!') {
                set(&mut rules.settings, setting);
                continue;
            }
            compile_line(&mut rules, line, grammar);
        }
    }
    rules
}

fn set(settings: &mut LanguageSettings, line: &str) {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let list = match name {
        "self" => &mut settings.own,
        "super" => &mut settings.parent,
        "constructor" => &mut settings.constructor,
        "import_call" => &mut settings.import_call,
        "base_call" => &mut settings.base_call,
        "field_call" => &mut settings.field_call,
        "test_call" => &mut settings.test_call,
        "test_name" => &mut settings.test_name,
        "test_mark" => &mut settings.test_mark,
        "public_mark" => &mut settings.public_mark,
        "doc_inside" => {
            settings.doc_inside = true;
            return;
        }
        "implicit_self" => {
            settings.implicit_own = true;
            return;
        }
        "folder_scope" => {
            settings.folder_scope = true;
            return;
        }
        _ => return,
    };
    list.extend(words.map(str::to_owned));
}

fn kind_ids(names: &str, grammar: &Grammar, unknown: &mut Vec<String>) -> Vec<u16> {
    let mut ids = Vec::new();
    for name in names.split('|') {
        let before = ids.len();
        // A name can stand for several symbols of a grammar (aliases).
        for id in 0..grammar.node_kind_count() as u16 {
            if grammar.node_kind_is_named(id) && grammar.node_kind_for_id(id) == Some(name) {
                ids.push(id);
            }
        }
        let id = grammar.id_for_node_kind(name, true);
        if id != 0 && !ids.contains(&id) {
            ids.push(id);
        }
        if ids.len() == before {
            unknown.push(name.to_owned());
        }
    }
    ids
}

fn path(text: &str, grammar: &Grammar, unknown: &mut Vec<String>) -> NodePath {
    let mut all = Vec::new();
    'ways: for way in text.split('/') {
        let mut steps = Vec::new();
        for step in way.split('.').filter(|step| !step.is_empty()) {
            steps.push(match step {
                "~" => NodeStep::Declarator,
                "fn" => NodeStep::Function,
                "^" => NodeStep::Parent,
                "#last" => NodeStep::Last,
                _ if step.starts_with('#') => NodeStep::Nth(step[1..].parse().unwrap_or(0)),
                _ if step.starts_with('@') => {
                    let kinds = kind_ids(&step[1..], grammar, unknown);
                    if kinds.is_empty() {
                        continue 'ways;
                    }
                    NodeStep::Child(kinds)
                }
                _ => match grammar.field_id_for_name(step) {
                    Some(id) => NodeStep::Field(id.get()),
                    None => {
                        unknown.push(format!("field {step}"));
                        continue 'ways;
                    }
                },
            });
        }
        all.push(steps);
    }
    NodePath(all)
}

fn compile_line(rules: &mut LanguageRules, line: &str, grammar: &Grammar) {
    let mut unknown = Vec::new();
    let mut words = line.split_whitespace();
    let kinds = kind_ids(words.next().unwrap_or_default(), grammar, &mut unknown);
    let verb = match words.next().unwrap_or_default() {
        "def" => RuleVerb::Def,
        "bind" => RuleVerb::Bind,
        "call" => RuleVerb::Call,
        "member" => RuleVerb::Member,
        "ref" => RuleVerb::Ref,
        "type" => RuleVerb::Type,
        "ignore" => RuleVerb::Ignore,
        "import" => RuleVerb::Import,
        "plain" => RuleVerb::Plain,
        "comment" => RuleVerb::Comment,
        "attribute" => RuleVerb::Attribute,
        "wrapper" => RuleVerb::Wrapper,
        "unwrap" => RuleVerb::Unwrap,
        "skip" => RuleVerb::Skip,
        "tokens" => RuleVerb::Tokens,
        "package" => RuleVerb::Package,
        "base" => RuleVerb::Base,
        other => {
            rules.unknown.push(format!("verb {other}"));
            return;
        }
    };
    let mut rule = NodeRule {
        verb,
        kind: DefKind::Function,
        words: Vec::new(),
        name: NodePath::default(),
        body: NodePath::default(),
        ty: NodePath::default(),
        value: NodePath::default(),
        owner: NodePath::default(),
        object: NodePath::default(),
        bases: Vec::new(),
        implements: Vec::new(),
        word: None,
        text: None,
        own: None,
        within: Vec::new(),
        conditions: Vec::new(),
        under: Vec::new(),
        at: AT_FILE | AT_TYPE | AT_FUNCTION,
    };
    for word in words {
        if let Some(wanted) = word.strip_prefix("word:") {
            rule.word = Some(wanted.to_owned());
            continue;
        }
        let Some((key, value)) = word.split_once('=') else {
            match DefKind::parse(word).filter(|_| verb == RuleVerb::Def && rule.words.is_empty()) {
                Some(kind) => rule.kind = kind,
                None => rule.words.push(word.to_owned()),
            }
            continue;
        };
        match key {
            "name" => rule.name = path(value, grammar, &mut unknown),
            "body" => rule.body = path(value, grammar, &mut unknown),
            "type" => rule.ty = path(value, grammar, &mut unknown),
            "value" => rule.value = path(value, grammar, &mut unknown),
            "owner" => rule.owner = path(value, grammar, &mut unknown),
            "object" => rule.object = path(value, grammar, &mut unknown),
            "own" => rule.own = Some(path(value, grammar, &mut unknown)),
            "bases" => rule.bases.extend(value.split(',').map(|v| path(v, grammar, &mut unknown))),
            "implements" => rule.implements.extend(value.split(',').map(|v| path(v, grammar, &mut unknown))),
            "text" => rule.text = Some(value.to_owned()),
            "in" => rule.within = kind_ids(value, grammar, &mut unknown),
            "under" => rule.under = kind_ids(value, grammar, &mut unknown),
            "at" => {
                rule.at = value.split(',').fold(0, |bits, place| {
                    bits | match place {
                        "file" => AT_FILE,
                        "type" => AT_TYPE,
                        "function" => AT_FUNCTION,
                        _ => 0,
                    }
                });
            }
            "if" | "not" => {
                let (at, kinds) = value.split_once(':').unwrap_or((value, ""));
                rule.conditions.push(NodeCondition {
                    path: path(at, grammar, &mut unknown),
                    kinds: if kinds.is_empty() { Vec::new() } else { kind_ids(kinds, grammar, &mut unknown) },
                    wanted: key == "if",
                });
            }
            other => rules.unknown.push(format!("key {other}")),
        }
    }
    rules.unknown.append(&mut unknown);
    for kind in kinds {
        if let Some(list) = rules.by_kind.get_mut(kind as usize) {
            list.push(rule.clone());
        }
    }
}
