//! Calls with a special meaning (`require`, `include`, `attr_reader`, `describe`), and calls inside Rust macros.

use std::borrow::Cow;

use lathe_grammars::{Language, Node};

use super::{Scope, TreeWalk};
use crate::build_facts::RawDef;
use crate::facts::{Def, DefKind, Sym, UseKind, def_flag};
use crate::imports::ImportedName;
use crate::text::{dotted, one_line};

impl<'a, 't> TreeWalk<'a, 't> {
    pub(super) fn special_call(&mut self, name: &'a str, qualifier: &str, node: Node<'t>) {
        let settings = &self.rules.settings;
        let is = |list: &[String]| list.iter().any(|word| word == name);
        if qualifier.is_empty() && is(&settings.import_call) {
            self.import_call(node);
        } else if qualifier.is_empty() && is(&settings.base_call) {
            if let Some(arguments) = node.child_by_field_name("arguments") {
                self.base(arguments, UseKind::Implement);
            }
        } else if qualifier.is_empty() && is(&settings.field_call) {
            self.field_call(node);
        } else if is(&settings.test_call) && qualifier.is_empty()
            || settings.test_call.iter().any(|word| word == qualifier)
        {
            self.test_call(name, node);
        }
    }

    fn arguments(&self, node: Node<'t>) -> Option<Node<'t>> {
        node.child_by_field_name("arguments").or_else(|| {
            // For `it("…")(() => …)` and `it.each([…])("…", …)`, the arguments of the inner call.
            node.child_by_field_name("function")?.child_by_field_name("arguments")
        })
    }

    fn first_string(&self, node: Node<'t>) -> Option<&'a str> {
        let holder = self.arguments(node).or(Some(node))?;
        let mut cursor = holder.walk();
        let found = holder.named_children(&mut cursor).find(|child| {
            child.kind().contains("string") || (self.language == Language::Bash && child.kind() == "word")
        })?;
        Some(self.text(found).trim_matches(['"', '\'', '`']))
    }

    fn import_call(&mut self, node: Node<'t>) {
        let Some(module) = self.first_string(node).filter(|module| !module.is_empty() && module.len() < 300)
        else {
            return;
        };
        let line = node.start_position().row as u32 + 1;
        let def = self.scope();
        let module =
            if self.language == Language::Lua { dotted(module).into_owned() } else { module.to_owned() };
        let mut add = |name: &str, alias: &str| {
            let brought = ImportedName {
                module: module.clone(),
                name: name.to_owned(),
                alias: alias.to_owned(),
                exported: false,
            };
            self.built.import(brought, line, def);
        };
        let around = self.frames.iter().rev().take(4).find_map(|frame| match frame.node.kind() {
            "variable_declarator" => frame.node.child_by_field_name("name"),
            "assignment_statement" => frame.node.named_child(0),
            _ => None,
        });
        let text = around.and_then(|found| self.source.get(found.byte_range())).unwrap_or("");
        match text.strip_prefix('{') {
            Some(list) => {
                for part in list.trim_end_matches('}').split(',') {
                    let (name, alias) = part.split_once(':').unwrap_or((part, part));
                    if !name.trim().is_empty() {
                        add(name.trim(), alias.trim());
                    }
                }
            }
            None if text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$') => {
                let whole = matches!(self.language, Language::Bash | Language::Ruby);
                add(if whole { "*" } else { "" }, if whole { "*" } else { text });
            }
            None => add("", ""),
        }
    }

    fn field_call(&mut self, node: Node<'t>) {
        let Some(arguments) = self.arguments(node) else { return };
        let Some(parent) = self.scopes.iter().rev().find(|scope| scope.kind.is_type()).map(|scope| scope.def)
        else {
            return;
        };
        let mut cursor = arguments.walk();
        for argument in arguments.named_children(&mut cursor) {
            let name = self.text(argument).trim_start_matches(':').trim_matches(['"', '\'']);
            let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
            if plain && self.built.new_member(parent, name) {
                self.add_plain(DefKind::Field, name, node, argument, parent, 0);
            }
        }
    }

    /// Defines a test named by a sentence: `it("adds", () => …)`.
    fn test_call(&mut self, name: &'a str, node: Node<'t>) {
        let title = match self.language {
            // `TEST(Suite, Name)`
            Language::Cpp => self.arguments(node).map(|found| self.text(found).trim_matches(['(', ')'])),
            _ => self.first_string(node).or_else(|| {
                let first = self.arguments(node)?.named_child(0)?;
                (first.kind() == "constant" || first.kind() == "scope_resolution").then(|| self.text(first))
            }),
        };
        let Some(title) = title.filter(|title| !title.is_empty() && title.len() < 200) else { return };
        let parent = self.scope();
        let group = matches!(name, "describe" | "context" | "suite" | "feature" | "fdescribe" | "xdescribe");
        let at = self.built.defs.len() as u32;
        self.add_plain(DefKind::Test, title, node, node, parent, if group { 0 } else { def_flag::TEST });
        self.scopes.push(Scope { def: at, depth: self.frames.len(), kind: DefKind::Test });
    }

    fn add_plain(
        &mut self,
        kind: DefKind,
        name: &'a str,
        node: Node<'t>,
        at: Node<'t>,
        parent: u32,
        flags: u8,
    ) {
        let head = self.text(node).lines().next().unwrap_or("");
        self.built.defs.push(RawDef {
            name: Cow::Borrowed(name),
            owner: String::new(),
            signature: one_line(head, 160),
            doc: String::new(),
            ty: String::new(),
            def: Def {
                name: Sym(0),
                kind,
                flags,
                parent,
                owner: Sym(0),
                start_line: node.start_position().row as u32 + 1,
                end_line: node.end_position().row as u32 + 1,
                line: at.start_position().row as u32 + 1,
                start_byte: node.start_byte() as u32,
                end_byte: node.end_byte() as u32,
                signature: Sym(0),
                doc: Sym(0),
                ty: Sym(0),
            },
        });
    }

    /// Finds calls in the arguments of a Rust macro, which are tokens and not expressions: tokens that look like a
    /// call count as one.
    pub(super) fn tokens(&mut self, tree: Node<'t>) {
        let mut cursor = tree.walk();
        let all: Vec<Node<'t>> = tree.children(&mut cursor).collect();
        for (at, node) in all.iter().enumerate() {
            if node.kind() != "identifier" || at > 0 && self.text(all[at - 1]) == "fn" {
                continue;
            }
            let opens = |next: Option<&Node<'t>>| {
                next.is_some_and(|next| next.kind() == "token_tree" && self.text(*next).starts_with('('))
            };
            let is_macro = all.get(at + 1).is_some_and(|next| self.text(*next) == "!");
            let calls_macro = is_macro && all.get(at + 2).is_some_and(|next| next.kind() == "token_tree");
            if !calls_macro && !opens(all.get(at + 1)) {
                continue;
            }
            let mut start = at;
            while start >= 2
                && matches!(self.text(all[start - 1]), "::" | ".")
                && matches!(all[start - 2].kind(), "identifier" | "self" | "super" | "crate")
            {
                start -= 2;
            }
            let qualifier = if start < at {
                let text = self.source.get(all[start].start_byte()..all[at - 1].start_byte()).unwrap_or("");
                dotted(text)
            } else if at >= 1 && matches!(self.text(all[at - 1]), "." | "::") {
                Cow::Borrowed("?")
            } else {
                Cow::Borrowed("")
            };
            let name = self.text(*node);
            self.take(*node);
            self.site(name, qualifier, UseKind::Call, *node);
        }
    }
}
