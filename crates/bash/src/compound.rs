//! Loops over words, `case` and tests: their words are data, and the end that the grammar sees is checked.

use lathe_grammars::Node;

use crate::read::{CommandContext, TextWalk};
use crate::script::{FloorRule, Piece, SimpleCommand, Word};
use crate::syntax::{Child, kind};
use crate::{loose, word_scan};

impl<'t> TextWalk<'t, '_> {
    pub(crate) fn for_loop(&mut self, node: Node<'t>, around: &CommandContext) {
        let name = node.child_by_field_name("variable").map_or("", |name| self.source(name));
        let children = self.children(node);
        for child in &children {
            match child.kind {
                "do_group" => self.stack.push((child.node, around.clone())),
                "select" => self.reader.floor(FloorRule::State, "select reads an answer into a variable"),
                "variable_name" | "comment" => {}
                _ if child.named => {
                    for word in self.words(child.node, around) {
                        self.data(&word);
                        self.reader.assign(name, Some(word));
                    }
                }
                _ => {}
            }
        }
        if !children.iter().any(|child| child.kind == "in") {
            let all = Piece::Variable { name: "@".into(), quoted: true };
            self.reader.assign(name, Some(Word::of(all)));
        }
        // With few exceptions, no environment variable has small letters; PATH, IFS or GIT_PAGER in a loop is a
        // trick.
        let plain =
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !plain || name.ends_with("_proxy") || name.starts_with("npm_") {
            self.reader.floor(FloorRule::State, format!("the loop assigns {name}"));
        }
    }

    pub(crate) fn case(&mut self, node: Node<'t>, around: &CommandContext) {
        let mut cursor = node.walk();
        let mut values: Vec<usize> =
            node.children_by_field_name("value", &mut cursor).map(|value| value.id()).collect();
        values.sort_unstable();
        let children = self.children(node);
        let pattern_end = children
            .iter()
            .find(|child| child.kind == ")")
            .map_or(node.start_byte(), |end| end.node.start_byte());
        if self.text.get(node.start_byte()..pattern_end).is_some_and(|pattern| pattern.contains('\n')) {
            self.differs("a line feed in a pattern of case");
        }
        // `x) ls;; cat;;` is one item to the grammar.
        let ends = |child: &&Child<'_>| matches!(child.kind, ";;" | ";&" | ";;&");
        let parts = || children.iter().filter(|child| child.kind != "comment");
        if parts().rev().skip(1).any(|child| ends(&child)) {
            self.differs("an end inside an item of case");
        }
        let items = children.iter().rfind(|child| child.kind == "case_item");
        for Child { node: child, kind: sort, named } in children.iter().rev().copied() {
            if values.binary_search(&child.id()).is_ok() {
                if sort == "extglob_pattern" {
                    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.*?/:=".contains(c);
                    if !self.source(child).chars().all(plain) {
                        self.differs("a pattern of case");
                    }
                } else {
                    let spans = self.spans(child, around);
                    match word_scan::words(self.text, child.start_byte(), child.end_byte(), &spans) {
                        Ok(words) => words.iter().for_each(|word| self.data(word)),
                        Err(why) => self.differs(why),
                    }
                }
            } else if named {
                self.stack.push((child, around.clone()));
            } else if sort == "esac" {
                // `ls esac` is a command with a word to bash, and the end of the case to the grammar.
                let before = unblanked(self.text.get(..child.start_byte()).unwrap_or(""));
                let ended = before.ends_with(['\n', ';', '&'])
                    || items.map_or(before.ends_with("in"), |item| self.is_empty_item(item.node));
                if !ended {
                    self.differs("the end of a case");
                }
            } else if kind(node) == "case_statement" && !matches!(sort, "case" | "in") {
                self.differs("a sign inside case");
            }
        }
    }

    /// Tells whether an item is `x)` with nothing after it.
    fn is_empty_item(&mut self, item: Node<'t>) -> bool {
        let last = item.children(&mut self.cursor).filter(|child| kind(*child) != "comment").last();
        last.is_some_and(|last| kind(last) == ")")
    }

    /// `[ … ]` is a command like any other; `[[ … ]]` is syntax that runs nothing if it is plain.
    pub(crate) fn test(&mut self, node: Node<'t>, around: CommandContext) {
        let source = self.source(node);
        self.descend(node, &around);
        let double = source.starts_with("[[");
        let mut words = Vec::new();
        for part in source.split([' ', '\t', '\n']).filter(|part| !part.is_empty()) {
            // Words with blanks in quotes are split here; then it is only known that there are some.
            match word_scan::words(part, 0, part.len(), &loose::plain_names(part)) {
                _ if ["[[", "]]"].contains(&part) => words.push(Word::text(part)),
                Ok(found) => words.extend(found),
                Err(_) if double && ["&&", "||", "<", ">", "(", ")"].contains(&part) => {}
                Err(_) => words.push(Word::of(Piece::Substitution(None))),
            }
        }
        let (open, close) = if double { ("[[", "]]") } else { ("[", "]") };
        let blank = [' ', '\t', '\n'];
        let inside = source.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)).unwrap_or("");
        if !inside.starts_with(blank) || !inside.ends_with(blank) || inside.contains('\n') {
            self.differs("the ends of a test");
        }
        if !double {
            return self.reader.add(SimpleCommand { words, ..SimpleCommand::default() }, &around);
        }
        if !plain_test(inside) {
            self.differs("a test that is not plain");
        }
        self.reader.script.tested.extend(words.iter().cloned());
        let counts = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R", "=~"];
        if words.iter().any(|word| word.literal().is_some_and(|word| counts.contains(&word))) {
            self.reader.floor(FloorRule::Dynamic, "this test computes, which can run commands");
        }
        if source.contains("${") || source.contains("$[") || source.contains("$((") {
            self.reader
                .floor(FloorRule::Dynamic, "an expansion in a test that is more than a plain variable");
        }
    }
}

/// The text without the blanks at its end; a continued line is such a blank.
fn unblanked(text: &str) -> &str {
    let bare = text.trim_end_matches([' ', '\t']);
    bare.strip_suffix("\\\n").map_or(bare, unblanked)
}

/// Tells whether a test is of the common form: one word, an operator before it or between two, joined by `&&` and
/// `||`.
fn plain_test(inside: &str) -> bool {
    let parts: Vec<&str> = inside.split_whitespace().collect();
    let unary = |part: &str| {
        part.len() == 2 && part.starts_with('-') && "abcdefghknprstuwxzGLNOS".contains(&part[1..])
    };
    let word = |part: &str| {
        !unary(part)
            && !["&&", "||", "!", "(", ")"].contains(&part)
            && !part.starts_with(['<', '>', '|', '&', '=', ']'])
    };
    parts.split(|part| *part == "&&" || *part == "||").all(|test| {
        let test = test.strip_prefix(&["!"]).unwrap_or(test);
        match test {
            [one] => word(one),
            [operator, one] => unary(operator) && word(one),
            [one, "=" | "==" | "!=" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-nt" | "-ot", two] => {
                word(one) && word(two)
            }
            _ => false,
        }
    })
}
