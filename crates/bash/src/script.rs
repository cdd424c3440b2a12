//! The result of reading: commands with their words, and the reasons to doubt them.

use std::collections::BTreeMap;

use lathe_protocol::Effects;

use crate::pieces::Pieces;
use crate::text::InlineText;

/// Everything that can run when bash is given a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// Every simple command, in the order of the text; the commands that a wrapper runs follow it.
    pub commands: Vec<SimpleCommand>,
    /// Doubts about the text as a whole, and changes of the shell's state outside any command.
    pub floors: Vec<Floor>,
    /// The values that each variable may hold, as far as this text assigns it.
    pub values: BTreeMap<String, Vec<Word>>,
    /// The words of tests that are syntax and run nothing: `[[ -e x ]]`.
    pub tested: Vec<Word>,
    /// The names of the functions that are defined.
    pub functions: Vec<String>,
    /// Functions that start themselves twice or in the background.
    pub bombs: Vec<String>,
    /// True if the text is wrapped so often in itself that following it would take longer than reading it. That does
    /// not happen by accident, and a command could be hidden in it, so it is refused rather than asked about.
    pub endless: bool,
}

/// One simple command, or an assignment that stands alone (then there are no words).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    pub words: Vec<Word>,
    pub assignments: Vec<Assignment>,
    pub redirects: Vec<Redirect>,
    /// The wrapper in front of it, as an index into the commands of the script.
    pub wrapper: Option<usize>,
    /// Its place in a pipe.
    pub stage: Option<Stage>,
    /// True if the text is broken around it: it may never run, so it counts for denials only.
    pub broken: bool,
    /// True if it stands in a text that the line may evaluate: it may never run, so it counts for denials only.
    pub evaluated: bool,
    /// Reasons why it may not be allowed without a question, whatever the rules say.
    pub floors: Vec<Floor>,
}

impl SimpleCommand {
    /// The program as written, if that can be known.
    pub fn program(&self) -> Option<&str> {
        self.words.first().and_then(Word::literal)
    }

    /// Its effects. Computed on each call: a long text has thousands of commands, and not every caller needs them.
    pub fn effects(&self) -> Effects {
        crate::programs::effects(self)
    }

    /// The program without its folder.
    pub fn program_name(&self) -> Option<&str> {
        self.program().map(base_name)
    }
}

pub(crate) fn base_name(path: &str) -> &str {
    // Names are short: a loop back over the bytes is quicker than a search made for long text.
    let slash = path.bytes().rposition(|byte| byte == b'/');
    slash.and_then(|slash| path.get(slash + 1..)).unwrap_or(path)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub name: String,
    /// `None` where it is an array or cannot be read.
    pub value: Option<Word>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    pub pipe: usize,
    pub index: usize,
    /// True if it is the only command of its stage, and only its output goes on: no group or loop stands around it,
    /// and the pipe does not carry errors.
    pub alone: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    pub kind: RedirectKind,
    /// The target, the herestring, or the body of a heredoc.
    pub word: Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    Read,
    Write,
    /// `2>&1`, `>&-`: moves or closes a descriptor.
    Duplicate,
    /// A heredoc or herestring: text on the standard input.
    Text,
}

/// One word as bash will see it: text without its quotes, and parts that are known only when it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    pub pieces: Pieces,
    /// True if an expansion in it stands outside of quotes, so that bash splits its value into words.
    pub splits: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(InlineText),
    /// `$name` or `${name}`.
    Variable {
        name: Box<str>,
        quoted: bool,
    },
    /// `${name…}` with an operator.
    Operator {
        name: Box<str>,
        /// The operator and the rest of the expansion.
        how: Box<String>,
    },
    /// `$(…)` and backquotes, with the text inside if it is short.
    Substitution(Option<Box<str>>),
    /// `<(…)`: the name of a pipe, which is never an option; with the text inside if it is short.
    Process(Option<Box<str>>),
    /// `$((…))`.
    Arithmetic {
        constant: bool,
    },
    Glob(char),
    /// Braces that could not be expanded here; `endless` if they make more words than are read.
    Brace {
        endless: bool,
    },
    /// `~`, with the name that follows.
    Tilde(String),
}

/// The text that `:-` and similar operators put in the place of a variable.
pub fn fallback_text(how: &str) -> Option<&str> {
    let or = ["-", "=", "+", ":-", ":=", ":+"].iter().find_map(|operator| how.strip_prefix(operator));
    or.map(|or| or.trim_matches(['"', '\'']))
}

impl Word {
    pub fn text(text: impl Into<InlineText>) -> Self {
        Self::of(Piece::Text(text.into()))
    }

    /// A word of one piece.
    pub(crate) fn of(piece: Piece) -> Self {
        let splits = matches!(
            piece,
            Piece::Variable { quoted: false, .. } | Piece::Operator { .. } | Piece::Substitution(_)
        );
        Self { pieces: piece.into(), splits }
    }

    /// The text, if it is known before it runs.
    pub fn literal(&self) -> Option<&str> {
        match &*self.pieces {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    pub(crate) fn push_text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Text(text.into())),
        }
    }

    pub(crate) fn push_char(&mut self, c: char) {
        self.push_text(c.encode_utf8(&mut [0; 4]));
    }

    pub(crate) fn starts_with_glob(&self) -> bool {
        matches!(self.pieces.first(), Some(Piece::Glob(_)))
    }

    /// The word for people and rules: the text, with its unknown parts in their usual spelling.
    pub fn show(&self) -> String {
        let mut out = String::new();
        for piece in self.pieces.iter() {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Variable { name, .. } => out.push_str(&format!("${name}")),
                Piece::Operator { name, .. } => out.push_str(&format!("${{{name}…}}")),
                Piece::Substitution(_) => out.push_str("$(…)"),
                Piece::Process(_) => out.push_str("<(…)"),
                Piece::Arithmetic { .. } => out.push_str("$((…))"),
                Piece::Glob(c) => out.push(*c),
                Piece::Brace { .. } => out.push_str("{…}"),
                Piece::Tilde(user) => out.push_str(&format!("~{user}")),
            }
        }
        out
    }
}

/// The rules by which a command is asked about whatever the rule files say. The names are those of the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FloorRule {
    /// R1: a program that is not a plain name.
    Program,
    /// R2: a text that is not bash as it is understood here.
    Syntax,
    /// R3
    Redirection,
    /// R4
    State,
    /// R5
    Wrapper,
    /// R6
    Option,
    /// R7
    Character,
    /// R8
    Dynamic,
    /// R9
    Glob,
}

impl FloorRule {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Program => "R1.program",
            Self::Syntax => "R2.syntax",
            Self::Redirection => "R3.redirection",
            Self::State => "R4.state",
            Self::Wrapper => "R5.wrapper",
            Self::Option => "R6.option",
            Self::Character => "R7.character",
            Self::Dynamic => "R8.dynamic",
            Self::Glob => "R9.glob",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Floor {
    pub rule: FloorRule,
    pub why: String,
    /// The word that causes it; a rule that names this very word covers it.
    pub word: Option<usize>,
}

impl Floor {
    pub(crate) fn new(rule: FloorRule, why: impl Into<String>) -> Self {
        Self { rule, why: why.into(), word: None }
    }

    pub(crate) fn at(rule: FloorRule, why: impl Into<String>, word: usize) -> Self {
        Self { rule, why: why.into(), word: Some(word) }
    }
}
