//! The wording of problems for commands.

use crate::problem::Problem;

/// The wording of the design document where it has one; otherwise Lathe's own.
pub(super) fn problem_text(problem: &Problem) -> String {
    match problem {
        Problem::NotFound(path) => format!("File does not exist: {}", path.display()),
        Problem::Missing { path, near } => {
            let mut words = format!("File does not exist: {}", path.display());
            if !near.is_empty() {
                words.push_str(&format!("\nDid you mean {}?", near.join(", ")));
            }
            words
        }
        Problem::NoMatch { old, .. } => format!("String not found in file: {old}\n{}", by_options(problem)),
        Problem::Ambiguous { lines, .. } => format!(
            "String appears {} times in file. Use replace_all=true (--replace-all) to replace all of them, or more text around it to name one.\n{}",
            lines.len(),
            by_options(problem)
        ),
        Problem::EmptyOld | Problem::Unclear { .. } | Problem::Line { .. } => by_options(problem),
        other => other.words(),
    }
}

/// Lathe's own words, with the names of the tool's parameters replaced by the options of the command. Text of a file
/// is not touched: it comes after the first line.
fn by_options(problem: &Problem) -> String {
    let words = problem.words();
    let (first, rest) = words.split_at(words.find('\n').unwrap_or(words.len()));
    let names = [("old_str", "old_string"), ("new_str", "new_string"), ("insert_line", "--insert_line")];
    let first = names.iter().fold(first.to_owned(), |text, (parameter, option)| {
        let whole = |word: &str| if word == *parameter { (*option).to_owned() } else { word.to_owned() };
        text.split(' ').map(whole).collect::<Vec<_>>().join(" ")
    });
    format!("{}{rest}", first.replace("set replace_all.", "give --replace-all."))
}
