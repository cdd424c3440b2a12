//! The grammar's view of blanks, line feeds, comments and keywords, checked against bash's own rules.

use lathe_grammars::Node;

use crate::read::TextWalk;
use crate::script::{FloorRule, Piece, Word};
use crate::syntax::{Child, kind};

/// The most children of a node that are found one by one.
pub(crate) const FEW: u32 = 8;

impl<'t> TextWalk<'t, '_> {
    /// Checks a word that is only data: it may hold anything but operators that can run something by themselves.
    pub(crate) fn data(&mut self, word: &Word) {
        for piece in word.pieces.iter() {
            match piece {
                Piece::Operator { name, .. } => {
                    self.reader
                        .floor(FloorRule::Dynamic, format!("${{{name}…}} is more than a plain variable"));
                }
                Piece::Arithmetic { constant: false } => {
                    self.reader.floor(FloorRule::Dynamic, "arithmetic on variables can run commands");
                }
                _ => {}
            }
        }
    }

    /// Checks the gap between two tokens: only blanks and continued lines may be there, and these must really
    /// separate them.
    pub(crate) fn gap(&mut self, from: usize, to: usize) {
        let gap = self.text.get(from..to).unwrap_or("");
        if gap.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\n')) {
            return;
        }
        let rest = gap.replace("\\\n", "");
        if rest.bytes().any(|byte| !matches!(byte, b' ' | b'\t' | b'\n')) {
            self.differs("something stands between two words");
        } else if rest.is_empty() {
            self.differs("a line is continued inside a word");
        }
    }

    /// The children, with the checks that hold for all of them.
    pub(crate) fn children(&mut self, node: Node<'t>) -> Vec<Child<'t>> {
        let mut children = self.taken_spare();
        // Positioning the cursor costs more than counting from the first child each time, while there are few.
        match node.child_count() {
            count @ ..=FEW => {
                children.extend((0..count).filter_map(|index| node.child(index)).map(Child::new))
            }
            _ => children.extend(node.children(&mut self.cursor).map(Child::new)),
        }
        let above = kind(node);
        let mut end = node.start_byte();
        // To the grammar a line feed is a blank wherever it does not need one; to bash it ends a command unless a
        // sign before it calls for more. A comment does not.
        let one = is_one_command(above);
        let mut open = true;
        for child in &children {
            let (begin, sort) = (child.node.start_byte(), child.kind);
            // Nearly every gap is one blank.
            if begin > end && !(begin == end + 1 && self.byte(end) == Some(b' ')) {
                self.gap(end, begin);
                let line_feed = || self.text.get(end..begin).is_some_and(|gap| gap.contains('\n'));
                if one && !open && sort != "do_group" && line_feed() {
                    self.line_feed(end, begin);
                }
            }
            end = end.max(child.node.end_byte());
            if sort == "comment" {
                if !self.parted(begin) {
                    self.differs("a comment inside a word");
                }
                continue;
            }
            open = match sort {
                "&&" | "||" | "|" | "|&" | ")" | "case_item" => true,
                "in" => above == "case_statement",
                _ => false,
            };
            if !child.named {
                self.sign(above, child.node, sort);
            }
        }
        self.gap(end, node.end_byte());
        children
    }

    /// Checks operators and keywords.
    fn sign(&mut self, above: &str, child: Node<'t>, sign: &str) {
        match sign {
            "|" | "&&" | "||" | "&" | ";" if self.begins_line(child.start_byte()) => {
                self.differs("a sign that begins a line");
            }
            "|" | "&&" | "\n" => {}
            // To the grammar one sign ends what another sign ends.
            ";" if holds_statements(above) || matches!(above, "for_statement" | "c_style_for_statement") => {}
            "&" if holds_statements(above) => {}
            ";" | "&" => self.differs("a sign where no command ends"),
            ";;" if above != "case_item" => self.differs("`;;` outside of case"),
            "{" | "!" | "case" | "for" | "select" | "in" if !self.blank_at(child.end_byte()) => {
                self.differs("a word begins with a sign");
            }
            word if word.bytes().all(|byte| byte.is_ascii_lowercase())
                && !(self.parted(child.start_byte()) && self.ends_word(child.end_byte())) =>
            {
                self.differs("a keyword inside a word");
            }
            _ => {}
        }
    }

    /// Tells whether only blanks and escaped line feeds stand before this in its line. The grammar forgets the line
    /// feed before an escaped one.
    fn begins_line(&self, at: usize) -> bool {
        let before = self.text.get(..at).unwrap_or("");
        let mut before = before.trim_end_matches([' ', '\t']);
        while let Some(rest) = before.strip_suffix("\\\n") {
            // The end of a comment escapes nothing.
            let line = rest.rfind('\n').map_or(rest, |at| rest.get(at..).unwrap_or(""));
            if line.contains('#') {
                return true;
            }
            before = rest.trim_end_matches([' ', '\t']);
        }
        before.is_empty() || before.ends_with('\n')
    }

    /// Reports a line feed that is not escaped.
    fn line_feed(&mut self, from: usize, to: usize) {
        let gap = self.text.get(from..to).unwrap_or("");
        if gap.replace("\\\n", "").contains('\n') {
            self.differs("a command that goes on in the next line");
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn blank_at(&self, at: usize) -> bool {
        matches!(self.byte(at), None | Some(b' ' | b'\t' | b'\n'))
    }

    /// Tells whether a word can begin here.
    pub(crate) fn parted(&self, at: usize) -> bool {
        at.checked_sub(1).and_then(|before| self.byte(before)).is_none_or(ends_a_word)
    }

    /// Tells whether a word ends here.
    pub(crate) fn ends_word(&self, at: usize) -> bool {
        self.byte(at).is_none_or(ends_a_word)
    }
}

/// Tells whether the parts of a node of this kind belong to one command; in all others a line feed separates commands
/// for bash as well.
fn is_one_command(kind: &str) -> bool {
    matches!(
        kind,
        "command"
            | "redirected_statement"
            | "file_redirect"
            | "herestring_redirect"
            | "declaration_command"
            | "unset_command"
            | "variable_assignments"
            | "negated_command"
            | "for_statement"
            | "pipeline"
            | "list"
            | "function_definition"
            | "case_statement"
    )
}

/// Tells whether a node of this kind contains commands in a row, each with a sign that ends it.
fn holds_statements(kind: &str) -> bool {
    matches!(
        kind,
        "program"
            | "subshell"
            | "compound_statement"
            | "do_group"
            | "if_statement"
            | "elif_clause"
            | "else_clause"
            | "while_statement"
            | "case_item"
            | "command_substitution"
            | "process_substitution"
    )
}

fn ends_a_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}
