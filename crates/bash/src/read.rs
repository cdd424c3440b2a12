//! The walk over the tree, which finds the commands.
//!
//! The walk keeps its own stack, so nesting cannot overflow the real one, and text that is wrapped in text (`bash
//! -c`, `eval`, backquotes) is put into a queue and read like the first one.

use std::collections::HashMap;

use lathe_grammars::{Node, TreeCursor};

use crate::checks::FEW;
use crate::script::{Floor, FloorRule, Piece, Redirect, RedirectKind, Script, SimpleCommand, Stage, Word};
use crate::syntax::{Child, kind, parse};
use crate::word_scan::{self, Span, SpanKind};
use crate::{hidden, loose, names, predicted_output, programs, wrap};

/// Statements up to this long are read by their text alone wherever they stand.
const SHORT_STATEMENT: usize = 200;

/// A text to read, and its surroundings.
pub(crate) struct ReadJob {
    pub(crate) text: String,
    pub(crate) around: CommandContext,
    /// True if its lines are also read one by one if it is broken.
    pub(crate) lines: bool,
}

/// The surroundings of a command.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandContext {
    pub(crate) wrapper: Option<usize>,
    pub(crate) stage: Option<Stage>,
    pub(crate) broken: bool,
    /// The function that is being defined.
    pub(crate) function: Option<std::rc::Rc<str>>,
    pub(crate) background: bool,
    /// True if it stands in `$(…)` or another substitution.
    pub(crate) substituted: bool,
    /// True if it stands in a loop that may never end.
    pub(crate) looped: bool,
    /// The standard input of the compound command around it: `{ bash; } <<< x`.
    pub(crate) input: Option<std::rc::Rc<[Redirect]>>,
    /// True if the text that this one is a part of was already searched for function substitutions.
    pub(crate) searched: bool,
}

pub(crate) struct ScriptReader {
    pub(crate) script: Script,
    pub(crate) queue: Vec<ReadJob>,
    pub(crate) budget: usize,
    pub(crate) pipes: usize,
    /// The functions that are defined, each with the commands it calls: how often, and true if in a pipe or the
    /// background.
    pub(crate) functions: HashMap<std::rc::Rc<str>, HashMap<String, (usize, bool)>>,
    /// Commands that can turn the content of a pipe into a command. Recorded when they are read: going through all
    /// commands again costs as much as reading them.
    pub(crate) receivers: Vec<(usize, Stage)>,
    /// Variables whose declaration changes the values they are given.
    pub(crate) shapes: Vec<(String, crate::declared_variables::DeclaredShape)>,
    /// The numbers of commands and floors before texts were read again.
    pub(crate) again: Option<(usize, usize)>,
}

/// One text while it is walked.
pub(crate) struct TextWalk<'t, 'r> {
    pub(crate) text: &'t str,
    pub(crate) reader: &'r mut ScriptReader,
    pub(crate) stack: Vec<(Node<'t>, CommandContext)>,
    /// Redirections that the grammar attaches around a command.
    pub(crate) hung: Vec<(usize, Node<'t>)>,
    /// True if the grammar and our own reading disagreed.
    doubtful: bool,
    /// Kept, because making one for each node costs as much as the rest of the walk.
    pub(crate) cursor: TreeCursor<'t>,
    /// Emptied lists of children, for reuse.
    spares: Vec<Vec<Child<'t>>>,
}

impl ScriptReader {
    pub(crate) fn floor(&mut self, rule: FloorRule, why: impl Into<String>) {
        let floor = Floor::new(rule, why);
        // A long text may have the same fault in every line; reporting it a few times is enough.
        if self.script.floors.len() < 32 && !self.script.floors.contains(&floor) {
            self.script.floors.push(floor);
        }
    }

    pub(crate) fn text(&mut self, text: &str, mut around: CommandContext, lines: bool) {
        let searched = std::mem::take(&mut around.searched);
        let Some(tree) = parse(text) else {
            self.script.endless = true;
            return;
        };
        let root = tree.root_node();
        if root.has_error() {
            self.floor(FloorRule::Syntax, "this is not bash as Lathe understands it");
            around.broken = true;
            if lines && text.contains('\n') {
                // Bash runs the lines before the one it cannot read.
                for line in text.lines().rev() {
                    self.queue.push(ReadJob { text: line.to_owned(), around: around.clone(), lines: false });
                }
            }
        }
        if !searched {
            for text in crate::funsub::texts(text, root) {
                self.floor(FloorRule::Syntax, "`${ …; }` runs commands in newer versions of bash only");
                let around = CommandContext { searched: true, ..around.clone() };
                match text {
                    Some(text) => self.queue.push(ReadJob { text, around, lines: true }),
                    None => self.script.endless = true,
                }
            }
        }
        let mut walk = TextWalk {
            text,
            reader: self,
            stack: Vec::new(),
            hung: Vec::new(),
            doubtful: around.broken,
            cursor: root.walk(),
            spares: Vec::new(),
        };
        let outside = around.clone();
        walk.gap(0, root.start_byte());
        walk.gap(root.end_byte(), text.len());
        walk.all(root, around);
        if walk.doubtful {
            // A part that the grammar cannot read may still be a command that is denied.
            for command in loose::commands(text) {
                self.add(command, &CommandContext { broken: true, ..outside.clone() });
            }
            // Continued lines, as bash joins them.
            if text.contains("\\\n") {
                let (text, around) = (text.replace("\\\n", ""), CommandContext { broken: true, ..outside });
                self.queue.push(ReadJob { text, around, lines: true });
            }
        }
    }

    /// Adds a finished command to the list, with all commands after it that it runs.
    pub(crate) fn add(&mut self, mut command: SimpleCommand, around: &CommandContext) {
        self.take_input(&mut command, around);
        let printed: Vec<Redirect> = command.redirects.iter().filter_map(wrap::as_text_redirect).collect();
        command.redirects.extend(printed);
        command.wrapper = around.wrapper;
        command.stage = around.stage;
        command.broken = around.broken;
        if let (Some(function), Some(program)) = (&around.function, command.program()) {
            let calls = self.functions.entry(function.clone()).or_default();
            let entry = calls.entry(program.to_owned()).or_default();
            entry.0 += 1;
            entry.1 |= around.background || around.stage.is_some();
        }
        for assignment in &command.assignments {
            self.assign(&assignment.name, assignment.value.clone());
        }
        // `: ${x:=y}`
        for piece in command.words.iter().flat_map(|word| word.pieces.iter()) {
            if let Piece::Operator { name, how } = piece
                && how.trim_start_matches(':').starts_with('=')
                && let Some(or) = crate::script::fallback_text(how)
            {
                self.assign(name, Some(Word::text(or)));
            }
        }
        let (mut first, mut pending) = (Some(command), Vec::new());
        while let Some(mut command) = first.take().or_else(|| pending.pop()) {
            let meaning = command.program_name().map(names::meaning).unwrap_or_default();
            programs::add_floors(&mut command);
            let wrapped = wrap::unwrap_command(&command);
            if let Some(wrapped) = &wrapped {
                command.floors.push(Floor::new(FloorRule::Wrapper, wrapped.why.clone()));
            }
            for (name, value) in wrapped.iter().flat_map(|wrapped| &wrapped.bound) {
                self.assign(name, Some(value.clone()));
            }
            let index = self.script.commands.len();
            let (stage, broken) = (command.stage, command.broken);
            if let Some(stage) = stage
                .filter(|stage| stage.index > 0 && meaning.may_receive() && wrap::may_run_input(&command))
            {
                self.receivers.push((index, stage));
            }
            if command.program_name() == Some("shift") {
                self.bind_shifted();
            }
            if meaning.binds {
                for (name, value) in predicted_output::bound_variables(&command) {
                    self.assign(&name, Some(value));
                }
            }
            match wrap::with_text(&command) {
                Some(wrap::InnerCommand::Words(words)) => {
                    pending.push(SimpleCommand {
                        words,
                        wrapper: Some(index),
                        stage,
                        broken,
                        ..SimpleCommand::default()
                    });
                }
                Some(wrap::InnerCommand::Text(_)) | None => {}
                Some(wrap::InnerCommand::Endless) => self.script.endless = true,
            }
            // The command after a wrapper reads the wrapper's input.
            let given = |redirect: &&Redirect| wrapped.is_some() && redirect.kind == RedirectKind::Text;
            let texts: Vec<Redirect> = command.redirects.iter().filter(given).cloned().collect();
            self.script.commands.push(command);
            for inner in wrapped.into_iter().flat_map(|wrapped| wrapped.inner) {
                match inner {
                    wrap::InnerCommand::Words(words) => {
                        if !self.afford(&words) {
                            return;
                        }
                        let redirects = texts.clone();
                        pending.push(SimpleCommand {
                            words,
                            redirects,
                            wrapper: Some(index),
                            stage,
                            broken,
                            ..SimpleCommand::default()
                        });
                    }
                    wrap::InnerCommand::Text(text) => {
                        let around =
                            CommandContext { wrapper: Some(index), stage: None, broken, ..around.clone() };
                        self.queue.push(ReadJob { text, around, lines: true });
                    }
                    wrap::InnerCommand::Endless => self.script.endless = true,
                }
            }
        }
    }

    /// Charges the cost of one more command to the budget; returns false, and marks the text as endless, if too
    /// little is left.
    pub(crate) fn afford(&mut self, words: &[Word]) -> bool {
        let left = self.budget.checked_sub(words.len() * 16);
        self.script.endless |= left.is_none();
        self.budget = left.unwrap_or(self.budget);
        left.is_some()
    }

    pub(crate) fn assign(&mut self, name: &str, value: Option<Word>) {
        // Bash expands the values of these variables by itself, and runs the commands in them.
        if matches!(name, "PS0" | "PS1" | "PS2" | "PS4" | "PROMPT_COMMAND" | "BASH_ENV" | "ENV")
            && let Some(text) = value.as_ref().map(Word::show)
        {
            let text = if name == "PROMPT_COMMAND" { text } else { format!(": \"{text}\"") };
            self.queue.push(ReadJob { text, around: CommandContext::default(), lines: true });
        }
        // A file that bash, git or the runtime of a program writes without another word that names it.
        if predicted_output::is_written(name)
            && let Some(text) =
                value.as_ref().map(Word::show).filter(|text| text.contains('/') || name == "HISTFILE")
            && text != "/dev/null"
        {
            let text = format!("tee \"{}\"", text.replace('"', ""));
            self.queue.push(ReadJob { text, around: CommandContext::default(), lines: true });
        }
        // Bash also runs the commands in the index of an array, where a variable is computed with.
        for text in value.as_ref().and_then(Word::literal).map(hidden::subscripts).into_iter().flatten() {
            self.queue.push(ReadJob { text, around: CommandContext::default(), lines: true });
        }
        let values = match self.script.values.get_mut(name) {
            Some(values) => values,
            None => self.script.values.entry(name.to_owned()).or_default(),
        };
        // Every value counts, even the last of thousands: each costs no more than the text it is written in.
        values.extend(value);
    }
}

impl<'t> TextWalk<'t, '_> {
    pub(crate) fn source(&self, node: Node<'t>) -> &'t str {
        self.text.get(node.start_byte()..node.end_byte()).unwrap_or("")
    }

    pub(crate) fn differs(&mut self, why: &str) {
        self.doubtful = true;
        self.reader.floor(FloorRule::Syntax, format!("bash may read this differently: {why}"));
    }

    pub(crate) fn visit(&mut self, node: Node<'t>, around: CommandContext) {
        let child = Child::new(node);
        // Nested ones are tried again at each depth, so only short ones are.
        if node.end_byte() - node.start_byte() <= SHORT_STATEMENT && self.read_flat(child, &around) {
            return;
        }
        match child.kind {
            // The commonest kinds come first: names are compared one after the other.
            "command" => self.command(node, around),
            "pipeline" => self.pipeline(node, &around, None),
            "redirected_statement" => self.redirected(node, around),
            "program" | "list" | "subshell" | "do_group" | "if_statement" | "elif_clause" | "else_clause"
            | "negated_command" => {
                if kind(node) == "subshell" && self.source(node).starts_with("((") {
                    self.differs("`((` begins arithmetic");
                }
                self.statements(node, &around);
            }
            "while_statement" => self.statements(node, &CommandContext { looped: true, ..around }),
            "compound_statement" => {
                if self.source(node).starts_with("((") {
                    self.reader.floor(FloorRule::State, "arithmetic can change variables and run commands");
                    self.descend(node, &around);
                } else {
                    self.statements(node, &around);
                }
            }
            "variable_assignment" | "variable_assignments" => self.assignments(node, around),
            "declaration_command" | "unset_command" => self.declaration(node, around),
            "test_command" => {
                for text in hidden::subscripts(self.source(node)) {
                    self.reader.queue.push(ReadJob { text, around: around.clone(), lines: true });
                }
                self.test(node, around);
            }
            "for_statement" => self.for_loop(node, &around),
            "case_statement" | "case_item" => self.case(node, &around),
            "function_definition" => self.function(node, around),
            "command_substitution" | "process_substitution" => self.substitution(node, &around),
            "c_style_for_statement" => {
                self.reader.floor(FloorRule::State, "arithmetic can change variables and run commands");
                self.descend(node, &CommandContext { looped: true, ..around });
            }
            "ERROR" => self.broken(node, &around),
            "comment" | "heredoc_start" | "heredoc_end" | "file_descriptor" => {}
            "expansion" => {
                self.hidden(node, &around);
                self.descend(node, &around);
            }
            // Inside expansions, whose words are read as a whole; here only commands are searched for.
            "simple_expansion"
            | "arithmetic_expansion"
            | "string"
            | "concatenation"
            | "heredoc_body"
            | "array"
            | "subscript"
            | "word"
            | "raw_string"
            | "ansi_c_string"
            | "string_content"
            | "heredoc_content"
            | "variable_name"
            | "special_variable_name"
            | "number"
            | "regex"
            | "extglob_pattern"
            | "binary_expression"
            | "unary_expression"
            | "ternary_expression"
            | "postfix_expression"
            | "parenthesized_expression"
            | "test_operator"
            | "translated_string"
            | "brace_expression" => self.descend(node, &around),
            other => {
                if node.is_named() {
                    self.differs(&format!("`{other}` is not understood"));
                }
                self.descend(node, &around);
            }
        }
    }

    /// Reads the pattern or replacement of `${x#…}`, which is one token to the grammar, whatever it contains.
    fn hidden(&mut self, node: Node<'t>, around: &CommandContext) {
        let mut cursor = node.walk();
        let read = node.named_children(&mut cursor).any(|child| {
            matches!(
                kind(child),
                "expansion" | "command_substitution" | "string" | "concatenation" | "process_substitution"
            )
        });
        let source = self.source(node);
        if read || !(source.contains("$(") || source.contains('`')) {
            return;
        }
        let ticks = source.split('`').skip(1).step_by(2);
        let brackets =
            source.split("$(").skip(1).map(|text| text.rsplit_once(')').map_or(text, |(inside, _)| inside));
        let texts: Vec<String> = ticks.chain(brackets).take(64).map(str::to_owned).collect();
        for text in texts {
            self.reader.queue.push(ReadJob { text, around: around.clone(), lines: true });
        }
    }

    /// Stores a list of children for reuse.
    pub(crate) fn spare(&mut self, mut children: Vec<Child<'t>>) {
        children.clear();
        self.spares.push(children);
    }

    pub(crate) fn taken_spare(&mut self) -> Vec<Child<'t>> {
        self.spares.pop().unwrap_or_default()
    }

    /// Searches the nodes below for commands, and for nothing else.
    pub(crate) fn descend(&mut self, node: Node<'t>, around: &CommandContext) {
        let children: Vec<Node<'t>> = node.named_children(&mut self.cursor).collect();
        for child in children.into_iter().rev() {
            self.stack.push((child, around.clone()));
        }
    }

    /// Reads a pipe; `first` is the stage of a command that stands before it, as after a heredoc.
    pub(crate) fn pipeline(&mut self, node: Node<'t>, around: &CommandContext, first: Option<Stage>) {
        let children = self.children(node);
        let mut stage = first.map_or_else(
            || {
                self.reader.pipes += 1;
                Stage { pipe: self.reader.pipes, index: 0, alone: true }
            },
            |first| Stage { index: first.index + 1, ..first },
        );
        let from = self.stack.len();
        let takes_errors = children.iter().any(|child| child.kind == "|&");
        for child in children.iter().filter(|child| child.named) {
            if child.kind == "negated_command" && stage.index > 0 {
                self.differs("`!` in the middle of a pipe");
            }
            let body = child.node.child_by_field_name("body").map(|body| body.kind());
            let simple =
                child.kind == "command" || (child.kind == "redirected_statement" && body == Some("command"));
            stage.alone = simple && !takes_errors;
            self.stack.push((child.node, CommandContext { stage: Some(stage), ..around.clone() }));
            stage.index += 1;
        }
        self.stack.get_mut(from..).unwrap_or_default().reverse();
        self.spare(children);
    }

    fn function(&mut self, node: Node<'t>, around: CommandContext) {
        let name = node.child_by_field_name("name").map_or("", |name| self.source(name));
        self.reader.floor(FloorRule::State, format!("it defines the function {name}"));
        let name: std::rc::Rc<str> = name.into();
        self.reader.functions.entry(name.clone()).or_default();
        let mut inner = CommandContext { function: Some(name), background: false, stage: None, ..around };
        let children = self.children(node);
        // A redirection of the definition is opened at each call: `f() { cat; } < x`.
        let redirects = children.iter().filter(|child| child.is_redirect()).map(|child| child.node);
        let redirects: Vec<Node<'t>> = redirects.collect();
        if !redirects.is_empty() {
            inner.input = self.redirects_alone(redirects.into_iter(), &inner);
        }
        for child in children.iter().rev().filter(|child| !child.is_redirect()) {
            if child.named && child.kind != "word" {
                self.stack.push((child.node, inner.clone()));
            }
        }
        self.spare(children);
    }

    fn substitution(&mut self, node: Node<'t>, around: &CommandContext) {
        let around = CommandContext { stage: None, background: false, substituted: true, ..around.clone() };
        let source = self.source(node);
        if let Some(inner) = source.trim_start_matches('$').strip_prefix('`') {
            // Bash removes one layer of backslashes and then reads the text from the beginning.
            let inner = inner.strip_suffix('`').unwrap_or(inner);
            if inner.contains('\\') {
                self.differs("a backslash inside backquotes");
            }
            let text = inner.replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\");
            self.reader.queue.push(ReadJob { text, around, lines: true });
            return;
        }
        if source.starts_with("$((") {
            self.differs("`$((` begins arithmetic");
        }
        for child in self.children(node).into_iter().rev() {
            if child.kind == "file_redirect" {
                // `$(< file)` is bash's own way to read a file.
                let _ = self.redirects_alone(std::iter::once(child.node), &around);
            } else if child.named {
                self.stack.push((child.node, around.clone()));
            }
        }
    }

    /// The words of one node, with the commands inside it put on the stack.
    pub(crate) fn words(&mut self, node: Node<'t>, around: &CommandContext) -> Vec<Word> {
        let mut words = Vec::new();
        self.words_into(node, around, &mut words);
        words
    }

    pub(crate) fn words_into(&mut self, node: Node<'t>, around: &CommandContext, into: &mut Vec<Word>) {
        let (start, end) = (node.start_byte(), node.end_byte());
        if !self.parted(start) || !self.ends_word(end) {
            self.differs("the ends of a word");
        }
        if let Some(plain) = word_scan::plain(self.source(node)) {
            return into.push(plain);
        }
        if word_scan::may_cut(self.source(node)) {
            self.reader.floor(FloorRule::Character, "an escape that gives a NUL cuts a word off");
        }
        let spans = self.spans(node, around);
        match word_scan::words(self.text, start, end, &spans) {
            Ok(words) => into.extend(words),
            Err(why) => {
                self.differs(why);
                into.push(Word::of(Piece::Substitution(None)));
            }
        }
    }

    /// The positions of expansions in a word; the nodes inside them are put on the stack.
    pub(crate) fn spans(&mut self, node: Node<'t>, around: &CommandContext) -> Vec<Span> {
        let mut spans = Vec::new();
        if !self.source(node).contains(['$', '`', '(']) {
            return spans;
        }
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            let found = match kind(node) {
                "simple_expansion" => SpanKind::Name,
                "expansion" => SpanKind::Parameter,
                "command_substitution" => SpanKind::Command,
                "process_substitution" => SpanKind::Process,
                "arithmetic_expansion" => SpanKind::Arithmetic,
                "concatenation" | "string" | "command_name" | "heredoc_body" | "translated_string" => {
                    if kind(node) == "translated_string" {
                        self.differs("a translated string");
                    }
                    let from = open.len();
                    match node.child_count() {
                        count @ ..=FEW => open.extend((0..count).filter_map(|index| node.child(index))),
                        _ => open.extend(node.children(&mut self.cursor)),
                    }
                    open.get_mut(from..).unwrap_or_default().reverse();
                    continue;
                }
                _ => continue,
            };
            // In a string the grammar may count the blanks before an expansion as part of it.
            let source = self.source(node);
            let blanks = source.len() - source.trim_start_matches([' ', '\t', '\n']).len();
            spans.push(Span { start: node.start_byte() + blanks, end: node.end_byte(), kind: found });
            if found != SpanKind::Name {
                self.stack.push((node, around.clone()));
            }
        }
        spans
    }
}
