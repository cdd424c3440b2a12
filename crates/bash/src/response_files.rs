//! Response files: programs that read more of their words from a file, `strings @x`.
//!
//! A word in such a file may be an option or the name of any file. The sign counts wherever the word stands, after
//! `--` too, so a word that may begin with it is asked about like one that does.

use crate::script::{Piece, Word};

/// Programs that replace `@x` by the words in the file `x`.
const TAKE: [&str; 48] = [
    "strings",
    "nm",
    "size",
    "readelf",
    "objdump",
    "objcopy",
    "elfedit",
    "ar",
    "ranlib",
    "strip",
    "ld",
    "ld.bfd",
    "ld.gold",
    "ld.lld",
    "lld",
    "gold",
    "mold",
    "as",
    "addr2line",
    "c++filt",
    "gprof",
    "gcov",
    "windres",
    "dlltool",
    "gcc",
    "g++",
    "cc",
    "c++",
    "c99",
    "cpp",
    "gfortran",
    "clang",
    "clang++",
    "rustc",
    "swiftc",
    "javac",
    "java",
    "javadoc",
    "jar",
    "kotlinc",
    "scalac",
    "ruff",
    "mypy",
    "pytest",
    "py.test",
    "tsc",
    "dotnet",
    "csc",
];

/// Tells whether a program takes words from files that are named with `@`.
pub fn takes_response_files(program: &str) -> bool {
    let plain = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    TAKE.contains(&program) || TAKE.contains(&plain)
}

/// Tells whether a word may begin with `@` after bash expanded it.
pub(crate) fn may_be_list(word: &Word) -> bool {
    let first = match word.pieces.first() {
        Some(Piece::Text(text)) => text.starts_with('@'),
        Some(Piece::Tilde(_) | Piece::Process(_) | Piece::Arithmetic { .. }) | None => false,
        Some(_) => true,
    };
    let cuts = |piece: &Piece| match piece {
        Piece::Variable { name, quoted } => !quoted || matches!(&**name, "@" | "*"),
        Piece::Operator { .. } | Piece::Substitution(_) | Piece::Brace { .. } => true,
        Piece::Text(_) | Piece::Process(_) | Piece::Arithmetic { .. } | Piece::Glob(_) | Piece::Tilde(_) => {
            false
        }
    };
    first || word.pieces.iter().any(cuts)
}
