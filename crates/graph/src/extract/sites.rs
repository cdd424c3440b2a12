//! Uses of names: bindings, calls, members, mentions, imports.

use std::borrow::Cow;

use lathe_grammars::Node;

use super::{PartBinding, TreeWalk};
use crate::build_facts::RawSite;
use crate::facts::{Site, Sym, UseKind, site_flag};
use crate::imports;
use crate::rules::{NodeRule, RuleVerb};
use crate::text::{dotted, is_path, split_path, type_name};

impl<'a, 't> TreeWalk<'a, 't> {
    /// The type of a value that is made here: `Foo()` gives `Foo()`, `new Foo` gives `Foo`.
    pub(super) fn infer(&self, value: Node<'t>) -> String {
        let mut value = value;
        for _ in 0..3 {
            match value.kind() {
                "await"
                | "await_expression"
                | "parenthesized_expression"
                | "expression_list"
                | "unary_expression" => match value.named_child(0) {
                    Some(inner) => value = inner,
                    None => break,
                },
                // `make().unwrap()` has the type that `make` gives.
                "call_expression" => match self.unwrapped(value) {
                    Some(inner) => value = inner,
                    None => break,
                },
                _ => break,
            }
        }
        if matches!(value.kind(), "composite_literal" | "struct_expression") {
            return type_name(self.text(value));
        }
        let Some(rule) = self.rules.with_verb(value.kind_id(), RuleVerb::Call) else {
            // `self.a = a` has the declared type of the parameter.
            let named = value.named_child_count() == 0 && is_path(self.text(value));
            return if named { self.built.bound(self.scope(), self.text(value)) } else { String::new() };
        };
        let Some(callee) = rule.name.find(value) else { return String::new() };
        if rule.has_word("new") {
            return type_name(self.text(callee));
        }
        let (start, end) = match rule.object.find(value).filter(|_| !rule.object.is_empty()) {
            Some(object) => (object.start_byte(), callee.end_byte()),
            None => (callee.start_byte(), callee.end_byte()),
        };
        match self.source.get(start..end) {
            Some(text) if is_path(text) => format!("{}()", dotted(text)),
            _ => String::new(),
        }
    }

    fn unwrapped(&self, call: Node<'t>) -> Option<Node<'t>> {
        let callee =
            call.child_by_field_name("function").filter(|callee| callee.kind() == "field_expression")?;
        let method = self.text(callee.child_by_field_name("field")?);
        let inner = callee.child_by_field_name("value")?;
        matches!(method, "unwrap" | "expect" | "unwrap_or_default").then_some(inner)
    }

    pub(super) fn bind(&mut self, rule: &NodeRule, node: Node<'t>) {
        let ty = match rule.ty.find(node).filter(|_| !rule.ty.is_empty()) {
            Some(found) => type_name(self.text(found)),
            None => String::new(),
        };
        let ty = if ty.is_empty() || ty == "auto" || ty == "var" {
            rule.value
                .find(node)
                .filter(|_| !rule.value.is_empty())
                .map_or_else(String::new, |value| self.infer(value))
        } else {
            ty
        };
        let part = rule.is_within().then(|| self.part(rule, node)).flatten();
        let mut names = Vec::new();
        let mut all = if part.is_some() { rule.name.find_each(node) } else { rule.name.find_all(node) };
        if rule.has_word("one") {
            all.truncate(1);
        }
        for found in all {
            self.names_in(found, &mut names, 0);
        }
        let ty = if names.len() == 1 { ty } else { String::new() };
        let def = self.scope();
        for name in names {
            if rule.has_word("lower") && self.text(name).starts_with(|c: char| c.is_uppercase()) {
                continue;
            }
            if self.rules.with_verb(name.kind_id(), RuleVerb::Member).is_some() {
                continue;
            }
            self.take_name(name);
            // The receiver of a method is looked up in its class.
            if self.rules.settings.own.iter().any(|own| own == self.text(name)) {
                continue;
            }
            let text = self.text(name).trim_start_matches('$');
            if let Some((start, end)) = part {
                self.small.retain(|small| small.end > start);
                self.small.push(PartBinding { name: text, start, end });
                if !rule.has_word("leaks") {
                    continue;
                }
            }
            self.built.bind(def, text, ty.clone());
        }
    }

    /// The part of the text in which a rule binds its names.
    fn part(&self, rule: &NodeRule, node: Node<'t>) -> Option<(usize, usize)> {
        let around = self.frames.iter().rev().map(|frame| frame.node);
        let found = std::iter::once(node).chain(around).find(|around| rule.ends_at(*around))?;
        Some((found.start_byte(), found.end_byte()))
    }

    fn is_small(&self, name: &str, at: usize) -> bool {
        self.small.iter().any(|small| small.start <= at && at < small.end && small.name == name)
    }

    pub(super) fn unwrap(&self, mut node: Node<'t>) -> Node<'t> {
        for _ in 0..4 {
            match self.rules.with_verb(node.kind_id(), RuleVerb::Unwrap).and_then(|rule| rule.name.find(node))
            {
                Some(inner) => node = inner,
                None => break,
            }
        }
        node
    }

    pub(super) fn site(&mut self, name: &'a str, qualifier: Cow<'a, str>, used: UseKind, at: Node<'t>) {
        let name = name.trim_start_matches(['$', '@']);
        if name.is_empty() || name.len() > 120 {
            return;
        }
        let start = at.start_byte();
        let (mut qualifier, mut flags) = (qualifier, 0);
        if !self.small.is_empty() {
            let root = qualifier.split(['.', '(']).next().unwrap_or("");
            if !root.is_empty() && self.is_small(root, start) {
                qualifier = Cow::Borrowed("?");
            } else if root.is_empty() && self.is_small(name, start) {
                if used != UseKind::Call {
                    return;
                }
                flags = site_flag::LOCAL;
            }
        }
        while self.bases.last().is_some_and(|base| base.end <= start) {
            self.bases.pop();
        }
        let mut used = used;
        if start >= self.plain_until
            && let Some(base) = self.bases.iter().rev().find(|base| base.start <= start && start < base.end)
        {
            used = base.used;
        } else if used == UseKind::Read && start < self.type_until {
            used = UseKind::Type;
        }
        let position = at.start_position();
        self.built.sites.push(RawSite {
            name: Cow::Borrowed(name),
            qualifier,
            site: Site {
                name: Sym(0),
                qualifier: Sym(0),
                line: position.row as u32 + 1,
                def: self.scope(),
                column: position.column.min(u16::MAX as usize) as u16,
                used,
                flags,
            },
        });
    }

    /// The text of a receiver, if it can be parsed: `a.b`, `f()`; `?` for anything else.
    pub(super) fn qualifier(&self, object: Node<'t>) -> Cow<'a, str> {
        let object = self.unwrap(object);
        let text = self.text(object);
        if is_path(text) {
            return dotted(text);
        }
        if text.len() < 200 && self.rules.with_verb(object.kind_id(), RuleVerb::Call).is_some() {
            let inferred = self.infer(object);
            if !inferred.is_empty() {
                return Cow::Owned(inferred);
            }
        }
        Cow::Borrowed("?")
    }

    /// The name, the qualifier and the name's node of something that is called or read.
    pub(super) fn target(&self, node: Node<'t>) -> Option<(&'a str, Cow<'a, str>, Node<'t>)> {
        let node = self.unwrap(node);
        if let Some(rule) = self.rules.with_verb(node.kind_id(), RuleVerb::Member) {
            let mut last = rule.name.find(node)?;
            for _ in 0..8 {
                let inner = self.unwrap(last);
                match self
                    .rules
                    .with_verb(inner.kind_id(), RuleVerb::Member)
                    .and_then(|rule| rule.name.find(inner))
                {
                    Some(next) => last = next,
                    None => {
                        last = inner;
                        break;
                    }
                }
            }
            let name = self.text(last);
            let before = self.source.get(node.start_byte()..last.start_byte()).unwrap_or("");
            let before = before.trim_end().trim_end_matches(['.', ':', '>', '-', '?', '!', '\\']).trim_end();
            if before.is_empty() {
                return Some((name, Cow::Borrowed("?"), last));
            }
            if is_path(before) {
                return Some((name, dotted(before), last));
            }
            let object = rule.object.find(node).filter(|_| !rule.object.is_empty());
            return Some((name, object.map_or(Cow::Borrowed("?"), |object| self.qualifier(object)), last));
        }
        let text = self.text(node);
        if !is_path(text) {
            return None;
        }
        let (before, name) = split_path(text);
        Some((name, dotted(before), node))
    }

    pub(super) fn call(&mut self, rule: &NodeRule, node: Node<'t>) {
        let Some(callee) = rule.name.find(node) else { return };
        if rule.has_word("construct") {
            return self.construct(callee);
        }
        let found = match rule.object.find(node).filter(|_| !rule.object.is_empty()) {
            Some(object) => Some((self.text(callee), self.qualifier(object), callee)),
            None => self.target(callee),
        };
        let Some((name, qualifier, name_node)) = found else {
            if self.text(callee) == "." {
                self.special_call(".", "", node);
            }
            return;
        };
        if rule.has_word("upper") && qualifier.is_empty() && !name.starts_with(|c: char| c.is_uppercase()) {
            self.take(name_node);
            return;
        }
        if name.contains(char::is_whitespace) {
            return;
        }
        self.take(name_node);
        self.site(name, qualifier.clone(), UseKind::Call, name_node);
        self.special_call(name, &qualifier, node);
    }

    /// Handles `this(1)` and `super(1)` in Java, which make an object of the class or of its superclass.
    fn construct(&mut self, callee: Node<'t>) {
        let class = self.frames.iter().rev().map(|frame| frame.node).find(|node| {
            node.kind().ends_with("_declaration")
                && node
                    .child_by_field_name("body")
                    .is_some_and(|body| body.kind() == "class_body" || body.kind() == "enum_body")
        });
        let Some(class) = class else { return };
        let own = self.rules.settings.own.iter().any(|own| own == self.text(callee));
        let made = if own {
            class.child_by_field_name("name")
        } else {
            class.child_by_field_name("superclass").and_then(|found| found.named_child(0))
        };
        if let Some((name, qualifier, _)) = made.and_then(|made| self.target(made)) {
            self.site(name, qualifier, UseKind::Call, callee);
        }
    }

    pub(super) fn member(&mut self, node: Node<'t>) {
        let Some((name, qualifier, name_node)) = self.target(node) else { return };
        if self.is_taken(name_node) || name.contains(char::is_whitespace) {
            return;
        }
        self.take(name_node);
        self.site(name, qualifier, UseKind::Read, name_node);
        // The part of a base before its last name is a path, not a base.
        self.plain_until = self.plain_until.max(name_node.start_byte());
    }

    pub(super) fn mention(&mut self, rule: &NodeRule, node: Node<'t>) {
        let used = if rule.verb == RuleVerb::Type { UseKind::Type } else { UseKind::Read };
        if used == UseKind::Type && node.named_child_count() > 0 {
            self.type_until = self.type_until.max(node.end_byte());
            return;
        }
        let settings = &self.rules.settings;
        let text = self.text(node);
        if self.is_taken(node) || settings.own.iter().chain(&settings.parent).any(|own| own == text) {
            return;
        }
        self.site(self.text(node), Cow::Borrowed(""), used, node);
    }

    pub(super) fn import(&mut self, rule: &NodeRule, node: Node<'t>) -> bool {
        let style = rule.words.first().map_or("", String::as_str);
        let line = node.start_position().row as u32 + 1;
        let def = self.scope();
        for brought in imports::parse_import(style, node, self.source) {
            self.built.import(brought, line, def);
        }
        // `export const a = …` is not an import, so its content is walked.
        style == "es" && self.text(node).starts_with("export") && node.child_by_field_name("source").is_none()
    }
}
