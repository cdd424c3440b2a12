//! Statements in a row, and a short way to read those in which every character means itself.
//!
//! Most lines of most texts are plain words, variables, quotes with nothing else to expand in them, pipes, `&&`, `||`
//! and a redirection or two to nowhere. Bash reads these by a handful of rules, so they are read here by the same
//! rules from the text alone; the tree only says where the statement begins and ends. At the first character that
//! could mean more, the walk over the tree reads the whole statement. Both ways must find the same, and a test
//! compares them.

use lathe_grammars::Node;

use crate::read::{CommandContext, TextWalk};
use crate::script::{FloorRule, Piece, Redirect, RedirectKind, SimpleCommand, Stage, Word};
use crate::simple::is_reserved;
use crate::syntax::Child;
use crate::word_scan::is_plain;

impl<'t> TextWalk<'t, '_> {
    /// Visits everything. Statements in a row at the top are read one by one: in a long text these are nearly all of
    /// it, and they would all lie on the stack.
    pub(crate) fn all(&mut self, root: Node<'t>, around: CommandContext) {
        let whole = Child::new(root);
        if whole.kind == "program" {
            let children = self.parts(root);
            for (index, child) in children.iter().enumerate().filter(|(_, child)| child.named) {
                let background = around.background || is_amp(children.get(index + 1));
                let around = CommandContext { background, ..around.clone() };
                if !self.read_flat(*child, &around) {
                    self.stack.push((child.node, around));
                    self.drain();
                }
            }
        } else {
            self.stack.push((root, around));
            self.drain();
        }
    }

    fn drain(&mut self) {
        while let Some((node, around)) = self.stack.pop() {
            self.visit(node, around);
        }
    }

    pub(crate) fn statements(&mut self, node: Node<'t>, around: &CommandContext) {
        let children = self.parts(node);
        for (index, child) in children.iter().enumerate().rev().filter(|(_, child)| child.named) {
            let left = is_amp(children.get(index + 1));
            if left && around.looped {
                self.reader.floor(FloorRule::State, "a loop that may not end leaves jobs in the background");
            }
            let background = around.background || left;
            self.stack.push((child.node, CommandContext { background, ..around.clone() }));
        }
        self.spare(children);
    }

    /// The children of a node that holds statements.
    fn parts(&mut self, node: Node<'t>) -> Vec<Child<'t>> {
        let children = self.children(node);
        // `{ }` and `do done` are errors to bash, and only to bash.
        let mut keyword = false;
        for child in children.iter().filter(|child| child.kind != "comment") {
            let opens =
                matches!(child.kind, "{" | "do" | "then" | "else" | "if" | "elif" | "while" | "until" | "(");
            let part = || matches!(child.kind, "elif_clause" | "else_clause" | "do_group");
            if std::mem::replace(&mut keyword, opens) && (!child.named || part()) {
                self.differs("an empty part");
            }
        }
        if keyword {
            self.differs("an empty part");
        }
        children
    }

    /// Adds the commands of a statement by its text alone, if it is flat. Returns true if it was.
    pub(crate) fn read_flat(&mut self, statement: Child<'t>, around: &CommandContext) -> bool {
        let (start, end) = (statement.node.start_byte(), statement.node.end_byte());
        let known = matches!(statement.kind, "command" | "pipeline" | "list" | "redirected_statement");
        let alone = self.hung.is_empty() && around.stage.is_none() && !around.broken;
        if !known || !alone || !self.parted(start) || !self.ends_word(end) {
            return false;
        }
        let mut line = FlatStatement { rest: self.source(statement.node), found: Vec::new() };
        if line.read().is_none() {
            return false;
        }
        let mut stage = None;
        let mut found = line.found.into_iter().peekable();
        while let Some((command, _)) = found.next() {
            let goes_on = found.peek().is_some_and(|(_, piped)| *piped);
            stage = match stage {
                None if goes_on => {
                    self.reader.pipes += 1;
                    Some(Stage { pipe: self.reader.pipes, index: 0, alone: true })
                }
                stage => stage,
            };
            self.reader.add(command, &CommandContext { stage, ..around.clone() });
            stage = stage.filter(|_| goes_on).map(|stage| Stage { index: stage.index + 1, ..stage });
        }
        true
    }
}

/// A flat statement while it is read: the rest of it, and its commands, each with true if a pipe brings it input.
struct FlatStatement<'t> {
    rest: &'t str,
    found: Vec<(SimpleCommand, bool)>,
}

impl<'t> FlatStatement<'t> {
    /// Reads all commands; `None` if the statement is not flat.
    fn read(&mut self) -> Option<()> {
        let mut piped = false;
        loop {
            let command = self.command()?;
            self.found.push((command, piped));
            (piped, self.rest) = match self.rest.as_bytes() {
                [] => return Some(()),
                [b'&', b'&', ..] | [b'|', b'|', ..] => (false, self.rest.get(2..)?),
                [b'|', next, ..] if *next != b'&' => (true, self.rest.get(1..)?),
                _ => return None,
            };
        }
    }

    /// One simple command, up to the operator or the end.
    fn command(&mut self) -> Option<SimpleCommand> {
        let mut command = SimpleCommand::default();
        loop {
            self.rest = self.rest.trim_start_matches(' ');
            match self.rest.as_bytes().first() {
                None | Some(b'|' | b'&') => break,
                Some(b'$') if !command.words.is_empty() => {
                    let name = name_length(self.rest.get(1..)?)?;
                    let written = self.take(name + 1)?;
                    command.words.push(variable(written.get(1..)?, false));
                }
                Some(b'"') if !command.words.is_empty() && self.rest.starts_with("\"$") => {
                    let name = name_length(self.rest.get(2..)?)?;
                    let written = self.take(name + 3)?.strip_suffix('"')?;
                    command.words.push(variable(written.get(2..)?, true));
                }
                Some(quote @ (b'\'' | b'"')) if !command.words.is_empty() => {
                    let inside = self.rest.get(1..)?;
                    let length = inside.bytes().position(|byte| byte == *quote)?;
                    let text = self.take(length + 2)?.get(1..=length)?;
                    let more =
                        |byte| byte == b'\n' || (*quote == b'"' && matches!(byte, b'$' | b'`' | b'\\'));
                    if text.bytes().any(more) {
                        return None;
                    }
                    command.words.push(Word::text(text));
                }
                Some(_) => self.word_or_redirect(&mut command)?,
            }
        }
        (!command.words.is_empty()).then_some(command)
    }

    fn word_or_redirect(&mut self, command: &mut SimpleCommand) -> Option<()> {
        let length = self.rest.bytes().position(|byte| !is_plain(byte)).unwrap_or(self.rest.len());
        if matches!(self.rest.as_bytes().get(length), Some(b'>')) {
            let found = NOWHERE.iter().find(|(written, ..)| self.rest.starts_with(written));
            let (written, kind, target) = *found?;
            self.take(written.len())?;
            command.redirects.reserve_exact(1);
            command.redirects.push(Redirect { kind, word: Word::text(target) });
            return Some(());
        }
        let word = self.take(length).filter(|word| !word.is_empty())?;
        if command.words.is_empty() {
            if is_reserved(word) || DECLARING.contains(&word) {
                return None;
            }
            command.words.reserve(4);
        }
        command.words.push(Word::text(word));
        Some(())
    }

    /// Takes this many bytes, if a word ends there.
    fn take(&mut self, length: usize) -> Option<&'t str> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        matches!(rest.as_bytes().first(), None | Some(b' ' | b'|' | b'&')).then_some(taken)
    }
}

/// The length of a variable's name, where one begins.
fn name_length(text: &str) -> Option<usize> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = text.bytes().take_while(is_name).count();
    (length > 0 && !text.starts_with(|c: char| c.is_ascii_digit())).then_some(length)
}

fn variable(name: &str, quoted: bool) -> Word {
    Word::of(Piece::Variable { name: name.into(), quoted })
}

/// Redirections that write no file, and that stand in nearly every line.
pub(crate) const NOWHERE: [(&str, RedirectKind, &str); 7] = [
    ("2>&1", RedirectKind::Duplicate, "1"),
    (">&2", RedirectKind::Duplicate, "2"),
    ("1>&2", RedirectKind::Duplicate, "2"),
    (">/dev/null", RedirectKind::Write, "/dev/null"),
    ("> /dev/null", RedirectKind::Write, "/dev/null"),
    ("2>/dev/null", RedirectKind::Write, "/dev/null"),
    ("2> /dev/null", RedirectKind::Write, "/dev/null"),
];

/// The grammar has a form of its own for these.
const DECLARING: [&str; 7] = ["declare", "typeset", "export", "readonly", "local", "unset", "unsetenv"];

/// Tells whether the statement before this goes into the background.
fn is_amp(next: Option<&Child<'_>>) -> bool {
    next.is_some_and(|next| !next.named && next.kind == "&")
}
