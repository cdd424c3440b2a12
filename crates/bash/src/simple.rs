//! Simple commands and their parts: words, assignments, redirections, tests.

use lathe_grammars::Node;

use crate::read::{CommandContext, TextWalk};
use crate::script::{
    Assignment, Floor, FloorRule, Piece, Redirect, RedirectKind, SimpleCommand, Stage, Word,
};
use crate::statements::NOWHERE;
use crate::syntax::{Child, kind};
use crate::word_scan;

/// Tells whether a word has a meaning of its own to bash where a command begins. `time` and `coproc` are wrappers
/// here.
pub(crate) fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "if" | "then"
            | "else"
            | "elif"
            | "fi"
            | "do"
            | "done"
            | "case"
            | "esac"
            | "while"
            | "until"
            | "for"
            | "select"
            | "function"
            | "{"
            | "}"
            | "!"
            | "[["
            | "]]"
            | "in"
    )
}

/// The redirections that may bring something to the standard input.
fn input(command: &SimpleCommand) -> Option<std::rc::Rc<[Redirect]>> {
    let brought: Vec<Redirect> =
        command.redirects.iter().filter(|redirect| crate::input::brings(redirect)).cloned().collect();
    (!brought.is_empty()).then(|| brought.into())
}

/// The parts of a simple command, gathered from wherever the grammar attaches them.
#[derive(Default)]
struct Parts<'t> {
    words: Vec<Node<'t>>,
    command: SimpleCommand,
    /// A pipe that follows a heredoc on its line.
    pipes: Vec<Node<'t>>,
}

impl<'t> TextWalk<'t, '_> {
    pub(crate) fn command(&mut self, node: Node<'t>, mut around: CommandContext) {
        let mut parts = Parts::default();
        let plain = if around.broken { None } else { self.plain_words(node) };
        // Plain words contain nothing to search for, and the search takes most of the time.
        let children = if plain.is_some() { Vec::new() } else { self.children(node) };
        parts.command.words = plain.unwrap_or_default();
        for Child { node: child, kind, named } in &children {
            let (child, named) = (*child, *named);
            match *kind {
                "command_name" | "word" => parts.words.push(child),
                "variable_assignment" => {
                    let assignment = self.assignment(child, &around);
                    parts.command.assignments.push(assignment);
                }
                "file_redirect" | "heredoc_redirect" | "herestring_redirect" => {
                    self.redirect(child, &around, &mut parts);
                }
                "subshell" | "regex" => {
                    self.differs("a word in brackets");
                    self.stack.push((child, around.clone()));
                }
                "comment" => {}
                "==" | "=~" | "$" => parts.words.push(child),
                _ if named => parts.words.push(child),
                _ => self.differs("a sign among words"),
            }
        }
        self.spare(children);
        while let Some(at) = self.hung.iter().rposition(|(id, _)| *id == node.id()) {
            let (_, redirect) = self.hung.remove(at);
            self.redirect(redirect, &around, &mut parts);
        }
        self.complete(parts, &mut around);
    }

    /// The words of a command that consists of plain words with blanks between them: bash reads them as they stand.
    fn plain_words(&self, node: Node<'t>) -> Option<Vec<Word>> {
        let source = self.source(node);
        if !source.bytes().all(|byte| byte == b' ' || word_scan::is_plain(byte)) {
            return None;
        }
        let (start, end) = (node.start_byte(), node.end_byte());
        let last = source.rsplit(' ').next().unwrap_or("");
        let descriptor = last.bytes().all(|byte| byte.is_ascii_digit())
            && matches!(self.text.as_bytes().get(end), Some(b'<' | b'>'));
        let first = source.split(' ').next().unwrap_or("");
        if descriptor || first.is_empty() || is_reserved(first) || !self.parted(start) || !self.ends_word(end)
        {
            return None;
        }
        let mut found = Vec::with_capacity(1 + source.bytes().filter(|byte| *byte == b' ').count());
        found.extend(source.split(' ').filter(|word| !word.is_empty()).map(Word::text));
        Some(found)
    }

    pub(crate) fn redirected(&mut self, node: Node<'t>, mut around: CommandContext) {
        let children = self.children(node);
        let body = children.iter().rfind(|child| !child.is_redirect() && child.kind != "comment").copied();
        let redirects = children.iter().filter(|child| child.is_redirect()).map(|child| child.node);
        let Some(body) = body else {
            let _ = self.redirects_alone(redirects, &around);
            return;
        };
        // `a | rm > x -rf y`: the words after the target belong to the last command.
        let mut last = body;
        while matches!(last.kind, "list" | "pipeline" | "negated_command") {
            let count = u32::try_from(last.node.named_child_count()).unwrap_or(0);
            match count.checked_sub(1).and_then(|index| last.node.named_child(index)) {
                Some(child) => last = Child::new(child),
                None => break,
            }
        }
        if last.kind == "command" {
            // They are popped from the end.
            let id = last.node.id();
            self.hung.extend(redirects.rev().map(|redirect| (id, redirect)));
        } else {
            let mut parts = Parts::default();
            for redirect in redirects {
                self.redirect(redirect, &around, &mut parts);
            }
            if !parts.words.is_empty() {
                self.differs("words after a redirection");
            }
            let input = input(&parts.command);
            self.complete(parts, &mut around);
            around.input = input.or(around.input);
        }
        self.spare(children);
        self.stack.push((body.node, around));
    }

    /// Adds redirections that belong to no simple command to the list, and returns those that bring input.
    pub(crate) fn redirects_alone(
        &mut self,
        redirects: impl Iterator<Item = Node<'t>>,
        around: &CommandContext,
    ) -> Option<std::rc::Rc<[Redirect]>> {
        let (mut parts, mut around) = (Parts::default(), around.clone());
        for redirect in redirects {
            self.redirect(redirect, &around, &mut parts);
        }
        let input = input(&parts.command);
        self.complete(parts, &mut around);
        input
    }

    /// Puts the words in the order of the text, which is bash's, and adds the command to the list.
    fn complete(&mut self, mut parts: Parts<'t>, around: &mut CommandContext) {
        parts.words.sort_by_key(Node::start_byte);
        let begun = !parts.command.words.is_empty();
        for (index, node) in parts.words.iter().enumerate() {
            let source = self.source(*node);
            let index = if begun { index + 1 } else { index };
            if index == 0 && (is_reserved(source) || looks_assigned(source)) {
                self.differs(&format!("`{source}` is not a program"));
            }
            self.descriptor(*node);
            self.words_into(*node, around, &mut parts.command.words);
            if index == 0 && parts.command.words.len() != 1 {
                let why = "braces give the program";
                parts.command.floors.push(Floor::at(FloorRule::Program, why, 0));
            }
        }
        if !parts.pipes.is_empty() {
            let stage = around.stage.unwrap_or_else(|| {
                self.reader.pipes += 1;
                Stage { pipe: self.reader.pipes, index: 0, alone: false }
            });
            around.stage = Some(stage);
            for pipe in parts.pipes {
                self.pipeline(pipe, &CommandContext { stage: None, ..around.clone() }, Some(stage));
            }
        }
        for redirect in &parts.command.redirects {
            if let Some(why) = doubt(redirect) {
                parts.command.floors.reserve_exact(1);
                parts.command.floors.push(Floor::new(FloorRule::Redirection, why));
            }
            if redirect.kind == RedirectKind::Text {
                self.data(&redirect.word);
            }
        }
        self.reader.add(parts.command, around);
    }

    fn redirect(&mut self, node: Node<'t>, around: &CommandContext, parts: &mut Parts<'t>) {
        match kind(node) {
            "heredoc_redirect" => return self.heredoc(node, around, parts),
            "herestring_redirect" => {
                for child in self.children(node) {
                    if child.named && child.kind != "file_descriptor" {
                        self.descriptor(child.node);
                        for word in self.words(child.node, around) {
                            parts.command.redirects.push(Redirect { kind: RedirectKind::Text, word });
                        }
                    }
                }
                return;
            }
            _ => {}
        }
        if let Some(common) = self.common_redirect(node) {
            // There is mostly one, and a list that grows by itself starts with room for four.
            parts.command.redirects.reserve_exact(1);
            return parts.command.redirects.push(common);
        }
        let (mut operator, mut targets) = ("", Vec::new());
        for child in self.children(node) {
            match child.kind {
                "file_descriptor" | "comment" => {
                    if child.kind == "file_descriptor" && !self.parted(child.node.start_byte()) {
                        self.differs("a descriptor inside a word");
                    }
                }
                _ if child.named => targets.push(child.node),
                sign => operator = sign,
            }
        }
        if operator.ends_with('-') {
            // `>&-` closes; `>&-x` moves, which the grammar sees as a word.
            parts.words.extend(targets);
            return;
        }
        let mut targets = targets.into_iter();
        if let Some(target) = targets.next() {
            let source = self.source(target);
            self.descriptor(target);
            // `<<(` begins a heredoc, not the reading of `<(`.
            let glued = self.text.as_bytes().get(target.start_byte().wrapping_sub(1));
            if source.starts_with(['<', '>']) && !matches!(glued, Some(b' ' | b'\t')) {
                self.differs("two redirections without a blank");
            }
            let duplicate = operator.ends_with('&') && source.bytes().all(|byte| byte.is_ascii_digit());
            let way = match operator {
                _ if duplicate => RedirectKind::Duplicate,
                "<" => RedirectKind::Read,
                _ => RedirectKind::Write,
            };
            let words = self.words(target, around);
            if words.len() != 1 {
                self.differs("a redirection with several targets");
            }
            parts.command.redirects.reserve_exact(words.len());
            parts.command.redirects.extend(words.into_iter().map(|word| Redirect { kind: way, word }));
        } else {
            self.differs("a redirection without a target");
        }
        parts.words.extend(targets);
    }

    /// Reads the few redirections that stand in nearly every line by their text alone.
    fn common_redirect(&self, node: Node<'t>) -> Option<Redirect> {
        let source = self.source(node);
        let (_, way, target) = *NOWHERE.iter().find(|(written, ..)| *written == source)?;
        let parted = self.parted(node.start_byte()) && self.ends_word(node.end_byte());
        parted.then(|| Redirect { kind: way, word: Word::text(target) })
    }

    /// Checks digits right before a redirection: to bash they are its descriptor, whatever the grammar takes them
    /// for.
    fn descriptor(&mut self, word: Node<'t>) {
        let source = self.source(word);
        let next = self.text.as_bytes().get(word.end_byte());
        let numbered = source.bytes().all(|byte| byte.is_ascii_digit())
            || (source.starts_with('{') && source.ends_with('}'));
        if numbered && matches!(next, Some(b'<' | b'>')) {
            self.differs("a descriptor of a redirection");
        }
    }

    fn heredoc(&mut self, node: Node<'t>, around: &CommandContext, parts: &mut Parts<'t>) {
        let children: Vec<Node<'t>> = node.children(&mut self.cursor).collect();
        let (mut start, mut end, mut body, mut dash) = (None, None, None, false);
        // The end of the line that the heredoc is on.
        let mut last = 0;
        for child in children {
            if !matches!(kind(child), "heredoc_body" | "heredoc_end" | "\n") {
                last = child.end_byte();
            }
            match kind(child) {
                "heredoc_start" => start = Some(child),
                "heredoc_end" => end = Some(child),
                "heredoc_body" => body = Some(child),
                "<<-" => dash = true,
                "pipeline" => parts.pipes.push(child),
                "file_redirect" | "herestring_redirect" => self.redirect(child, around, parts),
                "file_descriptor" | "comment" | "<<" | "\n" | "&&" | "||" | "|" | "|&" => {}
                "word"
                | "string"
                | "raw_string"
                | "concatenation"
                | "number"
                | "simple_expansion"
                | "expansion"
                | "command_substitution" => parts.words.push(child),
                _ if child.is_named() => self.stack.push((child, around.clone())),
                _ => self.differs("a sign after a heredoc"),
            }
        }
        let (Some(start), Some(end)) = (start, end) else {
            return self.differs("a heredoc without its end");
        };
        let line = self.text.get(node.start_byte()..start.start_byte()).unwrap_or("");
        if line.contains('\n') {
            self.differs("a heredoc without a delimiter");
        }
        let written = self.source(start);
        let bare = written.trim_matches(['\'', '"']).trim_start_matches('\\');
        let quoted = bare != written;
        let plain = [bare.to_owned(), format!("'{bare}'"), format!("\"{bare}\""), format!("\\{bare}")];
        if bare.is_empty()
            || !self.ends_word(start.end_byte())
            || !plain.iter().any(|plain| plain == written)
            || !bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
        {
            self.differs("the delimiter of a heredoc");
        }
        let found = heredoc_lines(self.text, start.end_byte(), bare, dash);
        if let Some((from, to)) = found {
            if last > from {
                self.differs("a line with a heredoc that goes on in the next");
            }
            // Old versions of bash search for the end of the brackets first.
            let brackets = |body: &str| body.contains([')', '(', '\'', '"', '`']);
            if around.substituted && self.text.get(from..to).is_some_and(brackets) {
                self.differs("brackets or quotes in a heredoc inside a substitution");
            }
        }
        let Some((from, to)) = found.filter(|(_, to)| self.line_of(end.end_byte()) == self.line_of(*to))
        else {
            return self.differs("the end of a heredoc");
        };
        // Bash joins the lines of such a body before it reads anything in it, even a part in quotes of its own.
        if !quoted && self.text.get(from..to).is_some_and(|body| body.contains("\\\n")) {
            self.differs("a line is continued in a heredoc");
        }
        let word = if quoted {
            Word::text(self.text.get(from..to).unwrap_or(""))
        } else {
            let spans = body.map(|body| self.spans(body, around)).unwrap_or_default();
            word_scan::body(self.text, from, to, &spans).unwrap_or_else(|why| {
                self.differs(why);
                Word::of(Piece::Substitution(None))
            })
        };
        parts.command.redirects.push(Redirect { kind: RedirectKind::Text, word });
    }

    /// The beginning of the line that holds this position.
    fn line_of(&self, at: usize) -> usize {
        self.text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
    }

    pub(crate) fn assignments(&mut self, node: Node<'t>, around: CommandContext) {
        let mut command = SimpleCommand::default();
        if kind(node) == "variable_assignment" {
            let assignment = self.assignment(node, &around);
            command.assignments.push(assignment);
        } else {
            for child in self.children(node) {
                if child.kind == "variable_assignment" {
                    let assignment = self.assignment(child.node, &around);
                    command.assignments.push(assignment);
                } else if child.named {
                    self.stack.push((child.node, around.clone()));
                }
            }
        }
        self.reader.add(command, &around);
    }

    fn assignment(&mut self, node: Node<'t>, around: &CommandContext) -> Assignment {
        let source = self.source(node);
        let name: String = source.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let value = node.child_by_field_name("value");
        match value {
            Some(value) if kind(value) == "array" => {
                let mut cursor = value.walk();
                let members: Vec<Node<'t>> = value.named_children(&mut cursor).collect();
                for member in members {
                    for word in self.words(member, around) {
                        self.reader.assign(&name, Some(word));
                    }
                }
                Assignment { name, value: None }
            }
            Some(value) => {
                let spans = self.spans(value, around);
                // Braces and blanks do not matter here, and an assignment asks in any case.
                let word = word_scan::words(self.text, value.start_byte(), value.end_byte(), &spans)
                    .ok()
                    .and_then(|words| words.into_iter().next());
                if word.is_none() {
                    self.differs("the value of an assignment");
                }
                if let Some(index) =
                    node.child_by_field_name("name").filter(|name| kind(*name) == "subscript")
                {
                    self.stack.push((index, around.clone()));
                }
                // `x+=y`
                let plus = source.get(name.len()..).is_some_and(|rest| {
                    rest.split_once('=').is_some_and(|(before, _)| before.ends_with('+'))
                });
                let value =
                    word.map(|word| if plus { self.reader.appended_value(&name, word) } else { word });
                Assignment { name, value }
            }
            None => Assignment { name, value: Some(Word::default()) },
        }
    }

    pub(crate) fn declaration(&mut self, node: Node<'t>, around: CommandContext) {
        let mut command = SimpleCommand::default();
        for child in self.children(node) {
            match child.kind {
                "variable_assignment" => {
                    let assignment = self.assignment(child.node, &around);
                    command.words.push(Word::text(self.source(child.node)));
                    // `declare -n x=y`: `x` is the variable `y`.
                    let mut words = command.words.iter().skip(1).filter_map(Word::literal);
                    let refers = words.any(|word| word.starts_with('-') && word.contains('n'));
                    let other = assignment.value.as_ref().and_then(Word::literal).filter(|_| refers);
                    let other =
                        other.map(|name| Word::of(Piece::Variable { name: name.into(), quoted: true }));
                    self.reader.assign(&assignment.name, other.or(assignment.value));
                }
                "comment" => {}
                _ if child.named => {
                    let words = self.words(child.node, &around);
                    command.words.extend(words);
                }
                keyword => command.words.push(Word::text(keyword)),
            }
        }
        self.reader.record_declaration(&command);
        self.reader.add(command, &around);
    }

    /// Reads loose words in a broken text as a command, so that a superfluous bracket does not hide one from a
    /// denial.
    pub(crate) fn broken(&mut self, node: Node<'t>, around: &CommandContext) {
        let around = CommandContext { broken: true, ..around.clone() };
        let children: Vec<Node<'t>> = node.children(&mut self.cursor).collect();
        let mut words: Vec<Word> = Vec::new();
        for child in children {
            match kind(child) {
                "word" | "string" | "raw_string" | "concatenation" | "number" | "command_name"
                | "ansi_c_string" | "simple_expansion" | "expansion" => {
                    let found = self.words(child, &around);
                    words.extend(found);
                }
                _ => {
                    if child.is_named() {
                        self.stack.push((child, around.clone()));
                    } else if !words.is_empty() {
                        let words = std::mem::take(&mut words);
                        self.reader.add(SimpleCommand { words, ..SimpleCommand::default() }, &around);
                    }
                }
            }
        }
        if !words.is_empty() {
            self.reader.add(SimpleCommand { words, ..SimpleCommand::default() }, &around);
        }
    }
}

/// Says why a redirection may do more than read a file.
fn doubt(redirect: &Redirect) -> Option<String> {
    let target = redirect.word.literal();
    let network = |path: &str| path.starts_with("/dev/tcp") || path.starts_with("/dev/udp");
    match (redirect.kind, target) {
        (RedirectKind::Duplicate | RedirectKind::Text, _) | (RedirectKind::Write, Some("/dev/null")) => None,
        (RedirectKind::Read, Some(path)) if !network(path) => None,
        (RedirectKind::Read, Some(path)) => Some(format!("{path} is a connection")),
        (RedirectKind::Write, Some(path)) => Some(format!("it writes {path}")),
        // `< <(…)`: the input is the output of a command, and that command is in the list.
        (RedirectKind::Read, None) if matches!(&*redirect.word.pieces, [Piece::Process(_)]) => None,
        (RedirectKind::Read, None) => Some(format!("{} may be a connection", redirect.word.show())),
        (RedirectKind::Write, None) => Some(format!("it writes {}", redirect.word.show())),
    }
}

fn looks_assigned(source: &str) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = source.bytes().take_while(is_name).count();
    let begins = source.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    let rest = source.get(length..).unwrap_or("");
    length > 0 && begins && (rest.starts_with(['=', '[']) || rest.starts_with("+="))
}

/// The bounds of the body of a heredoc, by bash's own rule: up to the first line that is the delimiter.
fn heredoc_lines(text: &str, after: usize, delimiter: &str, dash: bool) -> Option<(usize, usize)> {
    let from = after + text.get(after..)?.find('\n')? + 1;
    let mut at = from;
    for line in text.get(from..)?.split_inclusive('\n') {
        let bare = line.strip_suffix('\n').unwrap_or(line);
        let bare = if dash { bare.trim_start_matches('\t') } else { bare };
        if bare == delimiter {
            return Some((from, at));
        }
        at += line.len();
    }
    None
}
