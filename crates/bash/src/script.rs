//! What was read: commands with their words, and the reasons to doubt them.

use std::collections::BTreeMap;

use lathe_protocol::Effects;

use crate::pieces::Pieces;
use crate::text::Text;

/// Everything that can run when bash is given a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// Every simple command, in the order of the text; what stands behind a wrapper follows it.
    pub commands: Vec<Command>,
    /// What makes the text as a whole uncertain, or changes the state of the shell outside any command.
    pub floors: Vec<Floor>,
    /// What each variable may hold, as far as this text assigns it.
    pub values: BTreeMap<String, Vec<Word>>,
    /// The words of tests that are syntax and run nothing: `[[ -e x ]]`.
    pub tested: Vec<Word>,
    /// The names of the functions that are defined.
    pub functions: Vec<String>,
    /// Functions that start themselves twice or in the background.
    pub bombs: Vec<String>,
    /// The text is wrapped so often in itself that following it would take longer than reading it. Nobody writes this
    /// by accident, and a command could be hidden in it, so it is refused rather than asked about.
    pub endless: bool,
}

/// One simple command, or an assignment that stands alone (then there are no words).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    pub words: Vec<Word>,
    pub assignments: Vec<Assignment>,
    pub redirects: Vec<Redirect>,
    /// The wrapper in front of it: index into the commands of the script.
    pub behind: Option<usize>,
    /// Its place in a pipe.
    pub stage: Option<Stage>,
    /// The text is broken around it: it may never run, so it counts for denials only.
    pub broken: bool,
    /// It stands in a text that the line may evaluate: it may never run, so it counts for denials only.
    pub again: bool,
    /// Why it may not be allowed without a question, whatever the rules say.
    pub floors: Vec<Floor>,
}

impl Command {
    /// The program as written, if that can be known.
    pub fn program(&self) -> Option<&str> {
        self.words.first().and_then(Word::literal)
    }

    /// What it does. Found anew each time: a long text has thousands of commands, and not everybody asks.
    pub fn effects(&self) -> Effects {
        crate::programs::effects(self)
    }

    /// The program without its folder.
    pub fn program_name(&self) -> Option<&str> {
        self.program().map(base_name)
    }
}

pub(crate) fn base_name(path: &str) -> &str {
    // Names are short: going back byte by byte is quicker than a search made for long text.
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
    /// True if it is the only command in its place, and only what it prints goes on: no group or loop stands around it,
    /// and the pipe takes no errors.
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

/// One word as bash will see it: text whose quotes are gone, and parts only known when it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    pub pieces: Pieces,
    /// Tells whether an expansion in it stands outside of quotes, so that bash cuts what comes of it into words.
    pub splits: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(Text),
    /// `$name` or `${name}`.
    Variable {
        name: Box<str>,
        quoted: bool,
    },
    /// `${name…}` with an operator.
    Operator {
        name: Box<str>,
        /// The operator with all that follows it.
        how: Box<String>,
    },
    /// `$(…)` and backquotes, with the text inside where it is short.
    Substitution(Option<Box<str>>),
    /// `<(…)`: the name of a pipe, which is never an option; with the text inside where it is short.
    Process(Option<Box<str>>),
    /// `$((…))`.
    Arithmetic {
        constant: bool,
    },
    Glob(char),
    /// Braces that could not be multiplied out here; `endless` are more words than are looked at.
    Brace {
        endless: bool,
    },
    /// `~`, with the name that follows.
    Tilde(String),
}

/// What `:-` and its like put in the place of a variable.
pub fn instead(how: &str) -> Option<&str> {
    let or = ["-", "=", "+", ":-", ":=", ":+"].iter().find_map(|operator| how.strip_prefix(operator));
    or.map(|or| or.trim_matches(['"', '\'']))
}

impl Word {
    pub fn text(text: impl Into<Text>) -> Self {
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

    /// For people and rules: the text, with what is not known in its usual spelling.
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

/// Why something is asked about whatever the rules say. The names are those of the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FloorRule {
    /// R1: a program that is not a plain name.
    Program,
    /// R2: not bash as it is understood here.
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
