//! Finds what can run when bash is given a text: every simple command, its words and its effects.
//!
//! Pure, and never executed: the text is parsed with tree-sitter's grammar, and the tree is checked against a reading
//! of our own of words, blanks, comments and heredocs ([`word_scan`], [`read`]). A parser of our own instead was
//! rejected because two readings that must agree are safer than one. Invariants: only an allow-list of syntax is
//! understood, everything else leaves a [`Floor`]; a command that can run is in the list or the text has a floor; the
//! time is linear in the text, and nothing is cut off (see [`Script::endless`]).

mod evaluated_texts;
mod awk;
mod braces;
mod embedded_commands;
mod characters;
mod checks;
mod composed;
mod compound;
mod env;
mod escapes;
mod finish;
mod foreign;
mod funsub;
mod hidden;
mod input;
mod predicted_output;
mod response_files;
mod loose;
mod made_files;
mod names;
mod other_shells;
mod pieces;
mod pipes;
mod programs;
mod read;
mod script;
mod declared_variables;
mod shells;
mod shifted;
mod simple;
mod special;
mod statements;
mod syntax;
mod text;
mod toolchains;
mod read_whole;
mod word_scan;
mod wrap;

pub use foreign::joined_literals;
pub use predicted_output::printed_words;
pub use response_files::takes_response_files;
pub use pieces::Pieces;
pub use programs::normal_words;
pub use script::{
    Assignment, SimpleCommand, Floor, FloorRule, Piece, Redirect, RedirectKind, Script, Stage, Word, fallback_text,
};
pub use text::InlineText;
pub use read_whole::{OtherWords, read, read_with_other_words};
