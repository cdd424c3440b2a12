//! What can run when bash is given a text: every simple command, its words and its effects.
//!
//! Pure, and never executed: the text is parsed with tree-sitter's grammar, and what the grammar says is checked against
//! a reading of our own of words, blanks, comments and heredocs ([`words`], [`read`]). A parser of our own instead was
//! rejected because two readings that must agree are safer than one. Invariants: only an allow-list of syntax is
//! understood, everything else leaves a [`Floor`]; a command that can run is in the list or the text has a floor; the
//! time is linear in the text, and nothing is cut off (see [`Script::endless`]).

mod again;
mod awk;
mod braces;
mod carried;
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
mod known;
mod listed;
mod loose;
mod made;
mod names;
mod other_shells;
mod pieces;
mod pipes;
mod programs;
mod read;
mod script;
mod shaped;
mod shells;
mod shifted;
mod simple;
mod special;
mod statements;
mod syntax;
mod text;
mod toolchains;
mod whole;
mod words;
mod wrap;

pub use foreign::joined_literals;
pub use known::prints;
pub use listed::takes_lists;
pub use pieces::Pieces;
pub use programs::normal_words;
pub use script::{
    Assignment, Command, Floor, FloorRule, Piece, Redirect, RedirectKind, Script, Stage, Word, instead,
};
pub use text::Text;
pub use whole::{OtherWords, read, read_with};
