//! Trae's result and error strings.

use lathe_edit::number_lines;
use lathe_shell::LineExit;
use serde_json::json;

use crate::bash::stream_text;
use crate::outcome::{Data, EditKind, EditedData, FileData, FolderData, ShellData, ThoughtData};
use crate::problem::Problem;

const CLIPPED: &str = "<response clipped><NOTE>To save on context only part of this file has been shown to you. You should retry this tool after you have searched inside the file with `grep -n` in order to find the line numbers of what you are looking for.</NOTE>";

pub(super) fn data(data: &Data, cap: usize) -> String {
    match data {
        Data::Shell(shell) => shell_words(shell, cap),
        Data::ShellRestarted => "tool has been restarted.".to_owned(),
        Data::File(file) => file_words(file, cap),
        Data::Folder(folder) => folder_words(folder),
        Data::Written(written) => format!("File created successfully at: {}", written.path),
        Data::Edited(edited) => edited_words(edited),
        Data::Thought(thought) => thought_words(thought),
        Data::Done { .. } => "Task done.".to_owned(),
    }
}

fn shell_words(shell: &ShellData, cap: usize) -> String {
    let text = |spool| {
        let text = stream_text(spool, cap);
        text.strip_suffix('\n').unwrap_or(&text).to_owned()
    };
    let mut out = text(&shell.stdout);
    let mut error = text(&shell.stderr);
    match shell.exit {
        LineExit::Code(0) => {}
        LineExit::ShellKilled { .. } => {
            error.push_str(&format!(
                "bash has exited with returncode {}; it was started again",
                shell.exit.code()
            ));
        }
        LineExit::Code(code) => error.push_str(&format!(
            "{}exit code {code}",
            if error.is_empty() { "" } else { "\n" }
        )),
        LineExit::TimedOut { .. } => error.push_str(&format!(
            "{}timed out: bash has not returned in {}.0 seconds; the command was killed, the shell goes on",
            if error.is_empty() { "" } else { "\n" },
            shell.seconds
        )),
        LineExit::Cancelled { .. } => error.push_str("cancelled by the user"),
    }
    if !error.is_empty() {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str("Error: ");
        out.push_str(&error);
    }
    out
}

/// The first `cap` characters, with Trae's note if there were more.
fn clipped(text: &str, cap: usize) -> String {
    match text.char_indices().nth(cap) {
        Some((at, _)) => format!("{}{CLIPPED}", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn cat_n(text: &str, what: &str, first: usize) -> String {
    let numbered = number_lines(text, first);
    format!(
        "Here's the result of running `cat -n` on {what}:\n{}\n",
        numbered.trim_end_matches('\n')
    )
}

fn file_words(file: &FileData, cap: usize) -> String {
    let mut text = cat_n(&clipped(&file.text, cap), &file.path, file.first);
    let shown = file.first + file.text.lines().count().saturating_sub(1);
    if !file.asked_part && shown < file.lines {
        text.push_str(CLIPPED);
    }
    text
}

fn folder_words(folder: &FolderData) -> String {
    // As `find` prints them: the folder itself first, every entry with it, no mark on folders.
    let mut lines = vec![folder.path.clone()];
    let base = folder.path.trim_end_matches('/');
    lines.extend(
        folder
            .entries
            .iter()
            .map(|entry| format!("{base}/{}", entry.trim_end_matches('/'))),
    );
    format!(
        "Here's the files and directories up to 2 levels deep in {}, excluding hidden items:\n{}\n",
        folder.path,
        lines.join("\n")
    )
}

fn edited_words(edited: &EditedData) -> String {
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
        .map(|snippet| cat_n(&snippet.text, &what, snippet.first))
        .collect();
    format!(
        "The file {} has been edited. {}{review}",
        edited.path,
        snippets.join("")
    )
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

pub(super) fn problem(problem: &Problem) -> String {
    match problem {
        Problem::Arguments(text) => text.clone(),
        Problem::NotFound(path) => format!(
            "The path {} does not exist. Please provide a valid path.",
            path.display()
        ),
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
        Problem::Range { start, end, lines } => format!(
            "Invalid `view_range`: [{start}, {}]. Its first element `{start}` should be within the range of lines of the file: [1, {lines}]",
            end.unwrap_or(-1)
        ),
        Problem::NoMatch { path, old, .. } => {
            format!(
                "No replacement was performed, old_str `{old}` did not appear verbatim in {}.",
                path.display()
            )
        }
        Problem::Ambiguous { old, lines, .. } => format!(
            "No replacement was performed. Multiple occurrences of old_str `{old}` in lines {lines:?}. Please ensure it is unique"
        ),
        Problem::Line { line, lines } => format!(
            "Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, {lines}]"
        ),
        Problem::Read { path, reason } => {
            format!("Ran into {reason} while trying to read {}", path.display())
        }
        Problem::Write { path, reason } => {
            format!("Ran into {reason} while trying to write to {}", path.display())
        }
        Problem::Thinking(reason) => {
            let details = json!({ "error": reason, "status": "failed" });
            format!("Sequential thinking failed: {reason}\n\nDetails:\n{details:#}")
        }
        Problem::Shell(reason) => format!("Error running bash command: {reason}"),
        Problem::NotSeen(_)
        | Problem::Binary(_)
        | Problem::TooLarge { .. }
        | Problem::EmptyOld
        | Problem::NoChange(_)
        | Problem::Stale(_)
        | Problem::Denied(_)
        | Problem::NoSpace(_) => problem.words(),
    }
}
