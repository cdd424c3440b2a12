//! Problems in the words of a command.

use crate::problem::Problem;

/// The words of the design document where it has some; else Lathe's own.
pub(super) fn words(problem: &Problem) -> String {
    match problem {
        Problem::NotFound(path) => format!("File does not exist: {}", path.display()),
        Problem::Missing { path, near } => {
            let mut words = format!("File does not exist: {}", path.display());
            if !near.is_empty() {
                words.push_str(&format!("\nDid you mean {}?", near.join(", ")));
            }
            words
        }
        Problem::NoMatch { old, .. } => format!("String not found in file: {old}\n{}", problem.words()),
        Problem::Ambiguous { lines, .. } => format!(
            "String appears {} times in file. Use replace_all=true (--replace-all) to replace all of them, or more text around it to name one.\n{}",
            lines.len(),
            problem.words()
        ),
        other => other.words(),
    }
}
