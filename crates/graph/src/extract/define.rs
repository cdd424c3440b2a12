//! Definitions: names, owners, kinds, signatures, documentation.

use std::borrow::Cow;

use lathe_grammars::{Language, Node};

use super::{LeadingMarks, Scope, TreeWalk};
use crate::build_facts::RawDef;
use crate::facts::{Def, DefKind, Sym, UseKind, def_flag};
use crate::rules::{NodeRule, RuleVerb};
use crate::text::{
    clean_name, doc, dotted, names_operator, one_line, split_path, type_name, without_comment,
};

/// Words that begin a statement in languages with braces.
const STATEMENTS: [&str; 8] = ["if", "for", "while", "switch", "return", "catch", "function", "with"];

impl<'a, 't> TreeWalk<'a, 't> {
    /// Collects the names that are bound or defined: the node itself, or the identifiers in a pattern.
    pub(super) fn names_in(&self, node: Node<'t>, out: &mut Vec<Node<'t>>, depth: usize) {
        if out.len() > 64 || depth > 12 {
            return;
        }
        if node.named_child_count() == 0 || self.is_name_with_parts(node) {
            if node.is_named() && node.end_byte() > node.start_byte() {
                out.push(node);
            }
            return;
        }
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            let verb = self.rules.of_kind(child.kind_id()).first().map(|rule| rule.verb);
            // `a.b = 1` and `a[0] = 1` bind nothing, and a default value is not a name.
            if matches!(verb, Some(RuleVerb::Call))
                || child.kind() == "property_identifier"
                || child.kind().contains("subscript")
                || child.kind().contains("literal")
            {
                continue;
            }
            if self.rules.with_verb(child.kind_id(), RuleVerb::Member).is_some()
                || child.kind().starts_with("type_")
            {
                continue;
            }
            self.names_in(child, out, depth + 1);
        }
    }

    pub(super) fn is_name_with_parts(&self, node: Node<'t>) -> bool {
        matches!(
            node.kind(),
            "destructor_name"
                | "operator_name"
                | "operator_cast"
                | "template_function"
                | "variable_name"
                | "user_type"
                | "nested_namespace_specifier"
                | "dotted_name"
                | "scope_resolution"
                | "qualified_name"
                | "setter"
                | "generic_type"
                | "scoped_type_identifier"
                | "namespace_name"
                | "package_identifier"
                | "string"
        ) || self.rules.with_verb(node.kind_id(), RuleVerb::Member).is_some()
            || (self.rules.with_verb(node.kind_id(), RuleVerb::Type).is_some())
    }

    pub(super) fn define(&mut self, rule: &NodeRule, node: Node<'t>, before: Option<LeadingMarks>) -> bool {
        let (mut parent, depth) = (self.scope(), self.frames.len());
        if rule.has_word("member") {
            match self.scopes.iter().rev().find(|scope| scope.kind.is_type()) {
                Some(scope) => parent = scope.def,
                None => return false,
            }
        }
        let mut names = Vec::new();
        if rule.text.is_none() {
            let plain = !matches!(rule.kind, DefKind::Variable | DefKind::Constant | DefKind::Field);
            let mut found = rule.name.find_all(node);
            if found.is_empty() {
                return false;
            }
            // In Swift's grammar the result of a function is its second `name`.
            if plain && rule.kind != DefKind::Variant {
                found.truncate(1);
            }
            for name in found {
                if plain { names.push(name) } else { self.names_in(name, &mut names, 0) }
            }
        }
        let body =
            rule.body.find(node).filter(|body| !rule.body.is_empty() && body.end_byte() <= node.end_byte());
        let opens = rule.kind.is_callable()
            || rule.kind.is_type()
            || matches!(rule.kind, DefKind::Module | DefKind::Type);
        let first = self.built.defs.len() as u32;
        if let Some(text) = &rule.text {
            let name =
                self.source.get(node.start_byte()..node.start_byte() + text.len()).filter(|had| had == text);
            let name = name.map_or_else(|| Cow::Owned(text.clone()), Cow::Borrowed);
            self.add_def(rule, node, node.start_position().row, name, "", parent, body, before);
        }
        for name_node in names {
            let mut text = self.text(name_node);
            if rule.kind == DefKind::Impl {
                // `impl Read for &mut T` adds to the type that is referred to.
                text = text.trim_start_matches(['&', ' ']);
                if text.starts_with('\'') {
                    text = text.split_once(' ').map_or(text, |(_, rest)| rest);
                }
                text = text.trim_start_matches("mut ").trim_start_matches("dyn ").trim_start();
                text = text.split(" + ").next().unwrap_or(text);
            }
            // `operator bool() const` is cut after the name.
            if names_operator(text) && !text.contains("operator()") && !text.contains("operator ()") {
                text = text.split('(').next().unwrap_or(text).trim_end();
            }
            let cleaned = if rule.has_word("operator") {
                let apart = if text.starts_with(char::is_alphabetic) { " " } else { "" };
                Cow::Owned(format!("operator{apart}{text}"))
            } else if rule.kind == DefKind::Impl && text.starts_with('[') {
                Cow::Borrowed(text)
            } else {
                let Some(cleaned) = clean_name(text) else { continue };
                cleaned
            };
            let (owner, name) = match &cleaned {
                Cow::Borrowed(text) if !names_operator(text) => {
                    let (owner, name) = split_path(text);
                    (owner.to_owned(), Cow::Borrowed(name))
                }
                Cow::Borrowed(text) => match text.rfind("::operator") {
                    Some(at) => (text[..at].to_owned(), Cow::Borrowed(&text[at + 2..])),
                    None => (String::new(), Cow::Borrowed(*text)),
                },
                Cow::Owned(text) if rule.has_word("operator") => (String::new(), Cow::Owned(text.clone())),
                Cow::Owned(text) => {
                    let (owner, name) = split_path(text);
                    (owner.to_owned(), Cow::Owned(name.to_owned()))
                }
            };
            // Keys that are strings or numbers define nothing that can be named.
            let apart = name.contains(char::is_whitespace) && rule.kind != DefKind::Impl;
            if name.is_empty() || apart && !name.starts_with("operator") {
                continue;
            }
            // In text with syntax errors, a method with such a name is a statement.
            if self.broken && rule.kind.is_callable() && STATEMENTS.contains(&&*name) {
                continue;
            }
            self.take_name(name_node);
            let row = name_node.start_position().row;
            self.add_def(rule, node, row, name, &owner, parent, body, before);
        }
        let made = self.built.defs.len() as u32;
        if made == first {
            return false;
        }
        for path in &rule.bases {
            if let Some(found) = path.find(node) {
                self.base(found, UseKind::Inherit);
            }
        }
        for path in &rule.implements {
            if let Some(found) = path.find(node) {
                self.base(found, UseKind::Implement);
            }
        }
        if opens {
            let kind = self.built.defs[first as usize].def.kind;
            self.scopes.push(Scope { def: first, depth, kind });
        }
        true
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn add_def(
        &mut self,
        rule: &NodeRule,
        node: Node<'t>,
        name_row: usize,
        name: Cow<'a, str>,
        owner: &str,
        parent: u32,
        body: Option<Node<'t>>,
        before: Option<LeadingMarks>,
    ) {
        let receiver = if rule.has_word("extension") { self.receiver(node) } else { None };
        let mut owner = match receiver {
            Some(receiver) => type_name(self.text(receiver)).rsplit('.').next().unwrap_or("").to_owned(),
            None => self.owner(rule, node, owner),
        };
        if owner == "exports" || owner == "module.exports" {
            owner.clear();
        }
        let around = self.built.defs.get(parent as usize).map(|raw| raw.def.kind);
        let marks = before.map_or(node.start_byte(), |had| had.marks.min(node.start_byte()));
        let head_end = body.map_or(node.end_byte(), |body| body.start_byte()).max(node.start_byte());
        let marked = self.source.get(marks..head_end).unwrap_or("");
        let head = self.source.get(node.start_byte()..head_end).unwrap_or("");
        let kind = self.kind(rule.kind, &name, &owner, around, parent);
        if kind == DefKind::Field && rule.has_word("member") && !self.built.new_member(parent, &name) {
            return;
        }
        let mut flags = 0;
        if self.is_exported(&name, marked, around) {
            flags |= def_flag::EXPORTED;
        }
        if marked.starts_with("export default") {
            flags |= def_flag::DEFAULT;
        }
        if kind.is_callable() && self.is_test(&name, marked) {
            flags |= def_flag::TEST;
        }
        if rule.has_word("decl") {
            flags |= def_flag::DECLARED;
        }
        if rule.has_word("static") || marked.contains("static ") || marked.contains("@staticmethod") {
            flags |= def_flag::STATIC;
        }
        let result = match receiver {
            Some(receiver) => self.result_of(node, receiver),
            None => rule.ty.find(node).filter(|_| !rule.ty.is_empty()),
        };
        let ty = match result {
            Some(found) => type_name(self.text(found)),
            None => rule
                .value
                .find(node)
                .filter(|_| !rule.value.is_empty())
                .map_or_else(String::new, |v| self.infer(v)),
        };
        let limit = if kind.is_callable() || kind.is_type() { 240 } else { 120 };
        let mut doc_text =
            before.and_then(|had| had.doc).and_then(|(from, to)| self.source.get(from..to)).map(doc);
        if self.rules.settings.doc_inside
            && let Some(inside) = body.and_then(|body| self.docstring(body))
        {
            doc_text = Some(doc(inside));
        }
        self.built.defs.push(RawDef {
            name,
            owner,
            signature: one_line(
                if self.rules.settings.doc_inside { without_comment(head) } else { head },
                limit,
            ),
            doc: doc_text.unwrap_or_default(),
            ty,
            def: Def {
                name: Sym(0),
                kind,
                flags,
                parent,
                owner: Sym(0),
                start_line: node.start_position().row as u32 + 1,
                end_line: self.end_row(node) as u32 + 1,
                line: name_row as u32 + 1,
                start_byte: node.start_byte() as u32,
                end_byte: node.end_byte() as u32,
                signature: Sym(0),
                doc: Sym(0),
                ty: Sym(0),
            },
        });
    }

    /// The type that a Kotlin extension is written for: `String` of `fun String.shout()`.
    fn receiver(&self, node: Node<'t>) -> Option<Node<'t>> {
        let name = node.child_by_field_name("name")?;
        let mut cursor = node.walk();
        let mut before =
            node.named_children(&mut cursor).take_while(|child| child.start_byte() < name.start_byte());
        before.find(|child| child.kind().ends_with("_type"))
    }

    fn result_of(&self, node: Node<'t>, receiver: Node<'t>) -> Option<Node<'t>> {
        let mut cursor = node.walk();
        let mut types = node.named_children(&mut cursor).filter(|child| child.kind().ends_with("_type"));
        types.find(|child| child.start_byte() > receiver.start_byte())
    }

    /// The last row of a node. A node that contains its newline ends in the row before.
    pub(super) fn end_row(&self, node: Node<'t>) -> usize {
        let end = node.end_position();
        if end.column == 0 && end.row > node.start_position().row { end.row - 1 } else { end.row }
    }

    pub(super) fn owner(&self, rule: &NodeRule, node: Node<'t>, written: &str) -> String {
        if let Some(found) = rule.owner.find(node).filter(|_| !rule.owner.is_empty()) {
            // `(s *Server[T])`
            let text = self.text(found).trim_matches(['(', ')']);
            let text = text.split('[').next().unwrap_or(text);
            return text.rsplit([' ', '*', '.']).next().unwrap_or("").to_owned();
        }
        dotted(written).trim_end_matches(".prototype").to_owned()
    }

    pub(super) fn kind(
        &self,
        kind: DefKind,
        name: &str,
        owner: &str,
        around: Option<DefKind>,
        parent: u32,
    ) -> DefKind {
        let in_type = around.is_some_and(DefKind::is_type);
        match kind {
            DefKind::Function | DefKind::Method => {
                let container = if owner.is_empty() {
                    self.built.defs.get(parent as usize).map_or("", |raw| &*raw.name)
                } else {
                    owner
                };
                let is_member = in_type || !owner.is_empty() || kind == DefKind::Method;
                if !is_member {
                    // Ruby's modules and Kotlin's objects contain methods too; a nested function is a function.
                    return if self.language == Language::Ruby && around == Some(DefKind::Module) {
                        DefKind::Method
                    } else {
                        DefKind::Function
                    };
                }
                let named_so = self.rules.settings.constructor.iter().any(|word| word == name);
                let as_type =
                    self.language == Language::Cpp && container.rsplit(['.', ':']).next() == Some(name);
                if named_so || as_type { DefKind::Constructor } else { DefKind::Method }
            }
            DefKind::Variable if in_type => DefKind::Field,
            DefKind::Variable => {
                let capital = name.len() > 1
                    && name.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit());
                let constant = self.frames.last().is_some_and(|frame| {
                    self.source.get(frame.node.start_byte()..).is_some_and(|text| text.starts_with("const "))
                });
                if capital || constant { DefKind::Constant } else { DefKind::Variable }
            }
            other => other,
        }
    }

    pub(super) fn is_exported(&self, name: &str, marked: &str, around: Option<DefKind>) -> bool {
        match self.language {
            Language::Go => name.starts_with(|c: char| c.is_uppercase()),
            Language::Python | Language::Lua => !name.starts_with('_'),
            Language::Bash | Language::Ruby => true,
            Language::C | Language::Cpp => !marked.contains("static "),
            Language::Kotlin | Language::Scala => !marked.contains("private "),
            Language::Swift => !marked.contains("private ") && !marked.contains("fileprivate "),
            _ => {
                self.rules
                    .settings
                    .public_mark
                    .iter()
                    .any(|mark| marked.split(|c: char| !c.is_alphanumeric()).any(|word| word == mark))
                    || around == Some(DefKind::Interface)
                    || around == Some(DefKind::Trait)
            }
        }
    }

    pub(super) fn is_test(&self, name: &str, marked: &str) -> bool {
        let settings = &self.rules.settings;
        settings.test_name.iter().any(|prefix| name.starts_with(prefix.as_str()))
            || settings.test_mark.iter().any(|mark| marked.contains(mark.as_str()))
    }

    pub(super) fn docstring(&self, body: Node<'t>) -> Option<&'a str> {
        let first = body.named_child(0)?;
        let string = if first.kind() == "expression_statement" { first.named_child(0)? } else { first };
        (string.kind() == "string").then(|| self.text(string))
    }
}
