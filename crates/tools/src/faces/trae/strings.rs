//! Trae's result and error strings.

use std::path::Path;

use lathe_edit::data::DataError;
use lathe_edit::number_lines;
use lathe_shell::LineExit;
use serde_json::json;

use crate::bash::split_cap;
use crate::edit::looseness;
use crate::outcome::{
    Data, EditKind, EditedData, FileData, FolderData, ShellData, ThoughtData, ValuesData, ValuesResult,
};
use crate::problem::{FileAccess, Problem, line_list};
use crate::view::clip;

const CLIPPED: &str = "<response clipped><NOTE>To save on context only part of this file has been shown to you. You should retry this tool after you have searched inside the file with `grep -n` in order to find the line numbers of what you are looking for.</NOTE>";

pub(super) fn data(outcome: &Data, cap: usize) -> String {
    match outcome {
        Data::Shell(shell) => shell_words(shell, cap),
        Data::ShellRestarted => "tool has been restarted.".to_owned(),
        Data::File(file) => file_words(file, cap),
        Data::Folder(folder) => folder_words(folder, cap),
        Data::Written(written) => format!("File created successfully at: {}", written.path),
        Data::Edited(edited) => edited_words(edited, cap),
        Data::Thought(thought) => thought_words(thought),
        Data::Done { .. } => "Task done.".to_owned(),
        Data::Text(text) => clipped(text, cap),
        // The search itself clipped it, with Trae's count.
        Data::Code(text) => text.clone(),
        Data::Found(_)
        | Data::Files(_)
        | Data::Listing(_)
        | Data::Many(_)
        | Data::Todos(_)
        | Data::Document(_)
        | Data::Image(_)
        | Data::Remembered(_)
        | Data::Patched(_)
        | Data::Reviewed(_)
        | Data::Online { .. }
        | Data::Answers(_) => crate::faces::words(outcome, cap),
        Data::Values(values) => values_words(values, cap),
    }
}

/// Standard output, then the errors. Trae has strings for a shell that must be restarted. Here the shell has been
/// restarted by the time the model reads them, and the strings say so.
fn shell_words(shell: &ShellData, cap: usize) -> String {
    let (out, err) = split_cap(&shell.stdout, &shell.stderr, cap);
    let mut parts = vec![shell.stdout.cut(out).text];
    let mut errors = vec![shell.stderr.cut(err).text];
    for text in parts.iter_mut().chain(&mut errors) {
        if text.ends_with('\n') {
            text.pop();
        }
    }
    if let Some(breach) = shell.background {
        errors.push(format!("the background processes were stopped by the sandbox: {breach}"));
    }
    match shell.exit {
        LineExit::Code(code) if shell.respawned => errors.push(exited(code)),
        LineExit::Code(0) | LineExit::TimedOut { .. } => {}
        LineExit::Code(code) => errors.push(format!("exit code {code}")),
        LineExit::ShellKilled { signal } => errors.push(exited(-signal)),
        LineExit::Silent { limit, .. } => errors.push(format!(
            "the command printed nothing for {} seconds and was killed; bash is ready.",
            limit.as_secs()
        )),
        LineExit::Cancelled { .. } => errors.push("cancelled by the user".to_owned()),
        LineExit::Limited { code, breach } => {
            errors.push(format!("stopped by the sandbox: {breach}; exit code {code}"));
        }
    }
    errors.retain(|text| !text.is_empty());
    if !errors.is_empty() {
        parts.push(format!("Error: {}", errors.join("\n")));
    }
    if let LineExit::TimedOut { .. } = shell.exit {
        parts.push(format!(
            "Error running bash command: timed out: bash has not returned in {}.0 seconds and must be restarted\nThis was done: the command was killed, and bash is ready.",
            shell.seconds
        ));
    }
    parts.retain(|text| !text.is_empty());
    parts.join("\n")
}

fn exited(code: i32) -> String {
    format!("bash has exited with returncode {code}. tool must be restarted.\nThis was done: bash is ready.")
}

/// The first `cap` characters, with Trae's note if there were more.
pub(crate) fn clipped(text: &str, cap: usize) -> String {
    match lathe_redact::first_chars(text, cap) {
        Some(shown) => format!("{shown}{CLIPPED}"),
        None => text.to_owned(),
    }
}

fn cat_n(text: &str, what: &str, first: usize) -> String {
    format!("Here's the result of running `cat -n` on {what}:\n{}\n", number_lines(text, first))
}

fn file_words(file: &FileData, cap: usize) -> String {
    let encoding = file.encoding.map_or(String::new(), |name| format!("Note: the file is in {name}.\n"));
    cat_n(&clipped(&file.text, cap), &file.path, file.first) + &encoding
}

/// Lists as `find` prints: the folder itself first, every entry with the folder's path, no mark on folders.
fn folder_words(folder: &FolderData, cap: usize) -> String {
    let mut lines = vec![folder.path.clone()];
    let base = folder.path.trim_end_matches('/');
    lines.extend(folder.entries.iter().map(|entry| format!("{base}/{}", entry.trim_end_matches('/'))));
    let listed = lines.join("\n");
    let shown = clip(&listed, cap);
    let rest = lines.len() - 1 - shown.matches('\n').count();
    let note = if rest > 0 {
        format!("<response clipped><NOTE>{}</NOTE>\n", crate::files::hidden::not_shown_note(rest, "entry"))
    } else {
        String::new()
    };
    format!(
        "Here's the files and directories up to 2 levels deep in {}, excluding hidden items:\n{shown}\n{note}",
        folder.path,
    )
}

fn edited_words(edited: &EditedData, cap: usize) -> String {
    let (what, review) = match edited.kind {
        EditKind::Replaced => (
            format!("a snippet of {}", edited.path),
            "Review the changes and make sure they are as expected. Edit the file again if necessary.",
        ),
        EditKind::Inserted => (
            "a snippet of the edited file".to_owned(),
            "Review the changes and make sure they are as expected (correct indentation, no duplicate lines, etc). Edit the file again if necessary.",
        ),
    };
    let snippets: Vec<String> = edited
        .snippets
        .iter()
        .map(|snippet| cat_n(&clipped(&snippet.text, cap), &what, snippet.first))
        .collect();
    let loose = looseness(edited.matched).map_or(String::new(), |text| format!(" Note: {text}"));
    format!("The file {} has been edited. {}{review}{loose}", edited.path, snippets.join(""))
}

fn thought_words(thought: &ThoughtData) -> String {
    let status = json!({
        "thought_number": thought.number,
        "total_thoughts": thought.total,
        "next_thought_needed": thought.next_needed,
        "branches": thought.branches,
        "thought_history_length": thought.history,
    });
    format!("Sequential thinking step completed.\n\nStatus:\n{status:#}")
}

fn values_words(data: &ValuesData, cap: usize) -> String {
    let ValuesData { path, json_path, done } = data;
    let place = json_path.as_deref().unwrap_or("$");
    match done {
        ValuesResult::Whole { text } => clipped(&format!("JSON content of {path}:\n{text}"), cap),
        ValuesResult::Found { count: 0, .. } => format!("No matches found for JSONPath: {place}"),
        ValuesResult::Found { text, .. } => clipped(&format!("JSONPath '{place}' matches:\n{text}"), cap),
        ValuesResult::Set { count, value } => {
            format!("Successfully updated {count} location(s) at JSONPath '{place}' with value: {value}")
        }
        ValuesResult::Added => format!("Successfully added value at JSONPath '{place}'"),
        ValuesResult::Removed { count } => {
            format!("Successfully removed {count} element(s) at JSONPath '{place}'")
        }
    }
}

fn data_problem(path: &Path, json_path: &str, error: &DataError) -> String {
    let path = path.display();
    match error {
        DataError::Empty => format!("JSON edit tool error: Error reading file {path}: File is empty: {path}"),
        DataError::Invalid { .. } => format!("JSON edit tool error: Invalid JSON in file {path}: {error}"),
        DataError::Path { .. } => {
            format!("JSON edit tool error: Invalid JSONPath expression '{json_path}': {error}")
        }
        DataError::NoMatches { .. } => format!("No matches found for JSONPath: {json_path}"),
        DataError::NoParent { parent } => format!("Parent path not found: {parent}"),
        DataError::NotAnObject { parent } => format!("Cannot add key to non-object at path: {parent}"),
        DataError::NotAnArray { parent } => format!("Cannot add element to non-array at path: {parent}"),
        DataError::Target { segment } => format!("Unsupported add operation for path type: {segment}"),
        DataError::Root => format!("Unsupported operation for path type: {json_path}: {error}"),
        DataError::Unsupported { .. } => format!("JSON edit tool error: {error}"),
    }
}

/// The problem in the JSON tool's own words for files.
pub(super) fn json_problem(about: &Problem) -> String {
    match about {
        Problem::NotFound(path) => format!("JSON edit tool error: File does not exist: {}", path.display()),
        Problem::Binary(path) => {
            format!("JSON edit tool error: Invalid JSON in file {}: binary content", path.display())
        }
        other => problem(other),
    }
}

pub(super) fn problem(problem: &Problem) -> String {
    match problem {
        Problem::Arguments(text) | Problem::Schema(text) => text.clone(),
        Problem::Foreign { message, .. } | Problem::Cancelled(message) => message.clone(),
        Problem::NotFound(path) | Problem::Missing { path, .. } => {
            format!("The path {} does not exist. Please provide a valid path.", path.display())
        }
        Problem::Exists(path) => {
            format!(
                "File already exists at: {}. Cannot overwrite files using command `create`.",
                path.display()
            )
        }
        Problem::IsFolder(path) => {
            format!(
                "The path {} is a directory and only the `view` command can be used on directories",
                path.display()
            )
        }
        Problem::RangeOnFolder => {
            "The `view_range` parameter is not allowed when `path` points to a directory.".to_owned()
        }
        Problem::Range { first, last, pieces, .. } => format!(
            "Invalid `view_range`: [{first}, {}]. Its first element `{first}` should be within the range of lines of the file: [1, {pieces}]",
            last.unwrap_or(-1)
        ),
        Problem::Reversed { first, last } => format!(
            "Invalid `view_range`: [{first}, {last}]. Its second element `{last}` should be larger or equal than its first `{first}`"
        ),
        Problem::NoMatch { path, old, .. } => {
            format!(
                "No replacement was performed, old_str `{old}` did not appear verbatim in {}.",
                path.display()
            )
        }
        Problem::Ambiguous { old, lines, .. } => {
            // Trae names a line once, however often the text occurs in it.
            let mut lines = lines.clone();
            lines.dedup();
            format!(
                "No replacement was performed. Multiple occurrences of old_str `{old}` in lines [{}]. Please ensure it is unique",
                line_list(&lines)
            )
        }
        Problem::EmptyOld => "old_str is empty. To add text, use the command `insert`.".to_owned(),
        Problem::Line { line, lines } => format!(
            "Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, {lines}]"
        ),
        Problem::Read { path, reason } => ran_into(reason, path, FileAccess::Reading),
        Problem::Write { path, reason } => ran_into(reason, path, FileAccess::Writing),
        Problem::Binary(path) | Problem::NotText { path, .. } => {
            ran_into("binary content", path, FileAccess::Reading)
        }
        Problem::Denied { path, doing } => ran_into("permission denied", path, *doing),
        Problem::NoSpace(path) => ran_into("no space left on the disk", path, FileAccess::Writing),
        Problem::Thinking(reason) => {
            let details = json!({ "error": reason, "status": "failed" });
            format!("Sequential thinking failed: {reason}\n\nDetails:\n{details:#}")
        }
        Problem::Data { path, json_path, error } => data_problem(path, json_path, error),
        Problem::NoCommand => "No command provided for the bash tool".to_owned(),
        Problem::ShellStart(reason) => format!("Error starting bash session: {reason}"),
        Problem::Shell(reason) => format!("Error running bash command: {reason}"),
        Problem::Placeholder(_)
        | Problem::Unclear { .. }
        | Problem::LeftOut { .. }
        | Problem::NotSeen(_)
        | Problem::Ignored(_)
        | Problem::Unseen(_)
        | Problem::TooLarge { .. }
        | Problem::NoChange(_)
        | Problem::Stale(_)
        | Problem::NotAsShown(_)
        | Problem::NoLocalTree(_)
        | Problem::Outside(_)
        | Problem::Protected(_)
        | Problem::SearchNotFound(_)
        | Problem::SearchNotFolder(_)
        | Problem::NotFolder(_)
        | Problem::Prepare { .. }
        | Problem::Pattern(_)
        | Problem::Search(_)
        | Problem::Glob(_)
        | Problem::List(_)
        | Problem::ManySearch(_)
        | Problem::Memory(_)
        | Problem::Nobody
        | Problem::Dismissed => problem.words(),
    }
}

fn ran_into(what: &str, path: &Path, doing: FileAccess) -> String {
    let doing = match doing {
        FileAccess::Reading => "read",
        FileAccess::Writing => "write to",
    };
    format!("Ran into {what} while trying to {doing} {}", path.display())
}
