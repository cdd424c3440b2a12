//! Finds what can run when bash is given a text: every simple command, its words and its effects.
//!
//! Pure, and never executed: the text is parsed with tree-sitter's grammar, and the tree is checked against a reading
//! of our own of words, blanks, comments and heredocs ([`word_scan`], [`read`]). A parser of our own instead was
//! rejected because two readings that must agree are safer than one. Invariants: only an allow-list of syntax is
//! understood, everything else leaves a [`Floor`]; a command that can run is in the list or the text has a floor; the
//! time is linear in the text, and nothing is cut off (see [`Script::endless`]).

mod awk;
mod braces;
mod characters;
mod checks;
mod composed;
mod compound;
mod declared_variables;
mod embedded_commands;
mod env;
mod escapes;
mod evaluated_texts;
mod finish;
mod foreign;
mod funsub;
mod hidden;
mod input;
mod loose;
mod made_files;
mod names;
mod other_shells;
mod pieces;
mod pipes;
mod predicted_output;
mod programs;
mod read;
mod read_whole;
mod response_files;
mod script;
mod shells;
mod shifted;
mod simple;
mod special;
mod statements;
mod syntax;
mod text;
mod toolchains;
mod word_scan;
mod wrap;

pub use foreign::joined_literals;
pub use pieces::Pieces;
pub use predicted_output::printed_words;
pub use programs::normal_words;
pub use read_whole::{OtherWords, read, read_with_other_words};
pub use response_files::takes_response_files;
pub use script::{
    Assignment, Floor, FloorRule, Piece, Redirect, RedirectKind, Script, SimpleCommand, Stage, Word,
    fallback_text,
};
pub use text::InlineText;
