//! Gemini CLI's result and error strings.

use lathe_protocol::{ToolErrorKind, grouped};
use lathe_search::LineKind;
use lathe_shell::LineExit;
use serde_json::{Map, Value, json};

use crate::edit::looseness;
use crate::faces;
use crate::outcome::{
    Data, EditedData, FileData, FilesData, FoundData, ListingData, ManyData, ShellData, WrittenData,
};
use crate::problem::{Problem, did_you_mean};
use crate::search::lines;
use crate::todo;
use crate::view::{clip, image_words};

/// Lines of a file that are shown at once.
const LINES: usize = 2000;

/// Characters of a line that are shown.
const LINE: usize = 2000;

pub(super) fn data(data: &Data, cap: usize) -> String {
    match data {
        Data::File(file) => file_words(file, cap),
        Data::Image(image) => {
            format!("Binary content provided (1 item(s)).\n{}", image_words(image))
        }
        Data::Written(written) => written_words(written),
        Data::Edited(edited) => edited_words(edited),
        Data::Shell(shell) => shell_words(shell, cap),
        Data::Found(found) => found_words(found, cap),
        Data::Files(files) => files_words(files, cap),
        Data::Listing(listing) => listing_words(listing, cap),
        Data::Many(many) => many_words(many, cap),
        Data::Todos(todos) if todos.is_empty() => "Successfully cleared the todo list.".to_owned(),
        Data::Todos(todos) => {
            format!("Successfully updated the todo list. The current list is now:\n{}", todo::rows(todos))
        }
        Data::Remembered(remembered) => {
            // The file need not contain the fact then.
            let message = match remembered.modified {
                true => "Okay, I've updated the memory file with your modifications.".to_owned(),
                false => format!("Okay, I've remembered that: \"{}\"", remembered.fact),
            };
            json!({ "success": true, "message": message }).to_string()
        }
        Data::Answers(answers) => {
            let answers: Map<String, Value> = answers
                .iter()
                .enumerate()
                .map(|(at, answer)| (at.to_string(), answer.as_str().into()))
                .collect();
            json!({ "answers": answers }).to_string()
        }
        Data::ShellRestarted
        | Data::Values(_)
        | Data::Patched(_)
        | Data::Reviewed(_)
        | Data::Online { .. }
        | Data::Code(_)
        | Data::Folder(_)
        | Data::Document(_)
        | Data::Thought(_)
        | Data::Done { .. }
        | Data::Text(_) => faces::words(data, cap),
    }
}

/// Plain text. If it is not the whole file, a header says so.
fn file_words(file: &FileData, cap: usize) -> String {
    let mut shown = String::new();
    let (mut count, mut cut) = (0, false);
    for line in file.text.split('\n') {
        if (!file.limited && count == LINES) || shown.len() > cap {
            break;
        }
        let line = line.strip_suffix('\r').unwrap_or(line);
        if count > 0 {
            shown.push('\n');
        }
        match lathe_redact::first_chars(line, LINE) {
            Some(beginning) => {
                cut = true;
                shown.push_str(beginning);
                shown.push_str("... [truncated]");
            }
            None => shown.push_str(line),
        }
        count += 1;
    }
    let last = (file.first + count).saturating_sub(1).min(file.lines);
    let encoding = file.encoding.map_or(String::new(), |name| format!("\n[The file is in {name}.]"));
    if file.first <= 1 && last >= file.lines && !cut && !file.open {
        return shown + &encoding;
    }
    let least = if file.open { "at least " } else { "" };
    format!(
        "IMPORTANT: The file content has been truncated.\nStatus: Showing lines {}-{last} of {least}{} total lines.\nAction: To read more of the file, use the 'offset' and 'limit' parameters in a subsequent 'read_file' call. For example, to read the next section of the file, use offset: {last}.\n\n--- FILE CONTENT (truncated) ---\n{shown}{encoding}",
        file.first, file.lines,
    )
}

fn written_words(written: &WrittenData) -> String {
    if written.existed {
        format!("Successfully overwrote file: {}.", written.path)
    } else {
        format!("Successfully created and wrote to new file: {}.", written.path)
    }
}

/// The result of `replace`, which creates a file if `old_string` is empty.
pub(super) fn replace_result(data: &Data, cap: usize) -> String {
    match data {
        Data::Written(written) if !written.existed => {
            format!("Created new file: {} with provided content.", written.path)
        }
        other => self::data(other, cap),
    }
}

fn edited_words(edited: &EditedData) -> String {
    let loose = looseness(edited.matched).map_or(String::new(), |text| format!("\n{}", in_its_names(text)));
    let snippets: Vec<&str> = edited.snippets.iter().map(|snippet| snippet.text.as_str()).collect();
    format!(
        "Successfully modified file: {} ({} replacements).{loose}\nHere is the updated code:\n{}",
        edited.path,
        edited.places,
        snippets.join("\n...\n")
    )
}

/// The eight lines. A long output is shown by both ends, after the name of the file that has all of it.
fn shell_words(shell: &ShellData, cap: usize) -> String {
    let is_long = shell.stdout.total + shell.stderr.total > cap as u64;
    let Some(file) = shell.whole.as_ref().filter(|_| is_long) else { return eight_lines(shell, cap) };
    let text = eight_lines(shell, usize::MAX / 2);
    let (head, tail) = (cap / 5, cap - cap / 5);
    let count = text.chars().count();
    if count <= cap {
        return text;
    }
    let at = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let first = text.get(..lathe_redact::cut_before(text.as_bytes(), at(head))).unwrap_or_default();
    let last = text.get(lathe_redact::cut_after(text.as_bytes(), at(count - tail))..).unwrap_or_default();
    let (head, tail) = (first.chars().count(), last.chars().count());
    format!(
        "Output too large. Showing first {} and last {} characters. For full output see: {}\n{}\n\n... [{} characters omitted] ...\n\n{}",
        grouped(head),
        grouped(tail),
        file.display(),
        first,
        grouped(count - head - tail),
        last,
    )
}

/// The words for a command that was ended, and for one that continues in the background.
fn stopped_or_left(shell: &ShellData, output: &str) -> Option<String> {
    let why = match shell.exit {
        LineExit::Cancelled { .. } => "Command was cancelled by user before it could complete.".to_owned(),
        LineExit::Silent { limit, .. } => format!(
            "Command was automatically cancelled because it exceeded the timeout of {:.1} minutes without output.",
            limit.as_secs_f64() / 60.0
        ),
        LineExit::Code(0) if background(&shell.command).is_some() && !shell.left.is_empty() => {
            let pid = shell.left.first().map(u32::to_string).unwrap_or_default();
            let output = if output.is_empty() { "(empty)" } else { output };
            return Some(format!("Command is running in background. PID: {pid}. Initial output:\n{output}"));
        }
        LineExit::Code(_)
        | LineExit::ShellKilled { .. }
        | LineExit::TimedOut { .. }
        | LineExit::Limited { .. } => return None,
    };
    // A message of bash about the signal is not output of the command.
    let (before, last) = output.rsplit_once('\n').unwrap_or(("", output));
    let output = if matches!(last.trim(), "Terminated" | "Killed") { before } else { output };
    Some(match output {
        "" => format!("{why} There was no output before it was cancelled."),
        output => format!("{why} Below is the output before it was cancelled:\n{output}"),
    })
}

/// The command that was asked to run in the background, if the line is one.
fn background(command: &str) -> Option<&str> {
    command.strip_prefix("{ ")?.strip_suffix("\n} &")
}

/// The process group of the processes that continue. Without job control it is the shell's own, which a signal would
/// end too.
fn group(shell: &ShellData) -> String {
    let Some(group) = shell.group else { return "(none)".to_owned() };
    match shell.left.iter().any(|pid| i64::from(*pid) == i64::from(group)) {
        true => group.to_string(),
        false => format!("{group} (shared with the shell: end the processes by their PIDs)"),
    }
}

fn eight_lines(shell: &ShellData, cap: usize) -> String {
    let (out, err) = crate::bash::split_cap(&shell.stdout, &shell.stderr, cap);
    let mut output = shell.stdout.cut(out).text;
    let stderr = shell.stderr.cut(err).text;
    if !output.is_empty() && !output.ends_with('\n') && !stderr.is_empty() {
        output.push('\n');
    }
    output.push_str(&stderr);
    let output = output.trim_end_matches('\n');
    if let Some(words) = stopped_or_left(shell, output) {
        return words;
    }
    let or = |text: String, none: &str| if text.is_empty() { none.to_owned() } else { text };
    let error = match shell.exit {
        LineExit::Limited { breach, .. } => format!("stopped by the sandbox: {breach}"),
        LineExit::Code(_) if shell.respawned => "the shell was started again".to_owned(),
        LineExit::Code(_)
        | LineExit::ShellKilled { .. }
        | LineExit::Silent { .. }
        | LineExit::Cancelled { .. } => String::new(),
        LineExit::TimedOut { .. } => {
            format!("timed out after {} seconds; the command and its children were killed", shell.seconds)
        }
    };
    let error = match shell.background {
        Some(breach) => format!("the background processes were stopped by the sandbox: {breach}; {error}"),
        None => error,
    };
    let error = error.trim_end_matches("; ").to_owned();
    let (code, signal) = match shell.exit {
        LineExit::Code(code) => (code.to_string(), String::new()),
        LineExit::ShellKilled { signal } => (String::new(), signal.to_string()),
        LineExit::TimedOut { .. } | LineExit::Silent { .. } | LineExit::Cancelled { .. } => {
            (String::new(), "9".to_owned())
        }
        LineExit::Limited { code, .. } => (code.to_string(), String::new()),
    };
    let pids: Vec<String> = shell.left.iter().map(u32::to_string).collect();
    let lines = [
        ("Command", background(&shell.command).unwrap_or(&shell.command).to_owned()),
        ("Directory", shell.ran_in.as_ref().unwrap_or(&shell.cwd).clone()),
        ("Output", or(output.to_owned(), "(empty)")),
        ("Error", or(error, "(none)")),
        ("Exit Code", or(code, "(none)")),
        ("Signal", or(signal, "(none)")),
        ("Background PIDs", or(pids.join(", "), "(none)")),
        ("Process Group PGID", group(shell)),
    ];
    lines.map(|(name, text)| format!("{name}: {text}")).join("\n")
}

fn found_words(data: &FoundData, cap: usize) -> String {
    let FoundData { found, query, start, filter, .. } = data;
    let filter = filter.as_ref().map_or(String::new(), |filter| format!(" (filter: \"{filter}\")"));
    let place = format!("for pattern \"{}\" in path \"{start}\"{filter}", query.pattern);
    if found.files.is_empty() {
        return format!("No matches found {place}.");
    }
    let term = if found.matches == 1 { "match" } else { "matches" };
    let (mut out, mut shown) = (String::new(), 0);
    let mut limited = found.left_out > 0;
    for (at, file) in found.files.iter().enumerate() {
        let name = file.relative(&data.base).display();
        let rows = lines(found, at, |number, kind| {
            format!("L{number}{} ", if kind == LineKind::Context { '-' } else { ':' })
        });
        let block = if query.names_only {
            format!("{name}\n")
        } else {
            format!("File: {name}\n{}\n---\n", rows.join("\n"))
        };
        if !out.is_empty() && out.len() + block.len() > cap {
            limited = true;
            break;
        }
        out.push_str(&block);
        let kept = file.lines.iter().filter(|line| line.kind == LineKind::Match).count();
        shown += if query.names_only { file.matches } else { kept };
    }
    let note = if limited {
        format!(" (results limited to {shown} matches for performance)")
    } else {
        String::new()
    };
    format!("Found {} {term} {place}{note}:\n---\n{}", found.matches, out.trim_end())
}

fn files_words(data: &FilesData, cap: usize) -> String {
    let FilesData { found, pattern, start, .. } = data;
    let ignored = |words: &str| match found.ignored {
        0 => String::new(),
        ignored => format!(" ({ignored} {words})"),
    };
    if found.files.is_empty() {
        return format!(
            "No files found matching pattern \"{pattern}\" within {start}{}",
            ignored("files were ignored")
        );
    }
    let paths: Vec<String> = found.files.iter().map(|file| file.path.display().to_string()).collect();
    let listed = paths.join("\n");
    let shown = clip(&listed, cap);
    // A name may contain a line break.
    let hidden = found.total.saturating_sub(1 + shown.matches('\n').count());
    let more = if hidden > 0 {
        format!("\n... {}", crate::files::hidden::not_shown_note(hidden, "file").trim_end_matches('.'))
    } else {
        String::new()
    };
    format!(
        "Found {} file(s) matching \"{pattern}\" within {start}{}, sorted by modification time (newest first):\n{shown}{more}",
        found.total,
        ignored("additional files were ignored"),
    )
}

fn listing_words(data: &ListingData, cap: usize) -> String {
    let ignored = if data.left_out > 0 { format!("\n\n({} ignored)", data.left_out) } else { String::new() };
    if data.entries.is_empty() {
        return format!("Directory {} is empty.{ignored}", data.path);
    }
    let row = |entry: &crate::outcome::ListedName| {
        if entry.folder { format!("[DIR] {}", entry.name) } else { entry.name.clone() }
    };
    let listed = data.entries.iter().map(row).collect::<Vec<_>>().join("\n");
    let shown = clip(&listed, cap);
    let hidden = data.entries.len() - 1 - shown.matches('\n').count();
    let more = if hidden > 0 {
        format!("\n... {}", crate::files::hidden::not_shown_note(hidden, "entry").trim_end_matches('.'))
    } else {
        String::new()
    };
    format!("Directory listing for {}:\n{shown}{more}{ignored}", data.path)
}

fn many_words(data: &ManyData, cap: usize) -> String {
    if data.files.is_empty() {
        let reasons: Vec<String> =
            data.skipped.iter().take(5).map(|(path, reason)| format!("\n- {path} ({reason})")).collect();
        return format!("No files matching the criteria were found or all were skipped.{}", reasons.concat());
    }
    let mut out = String::new();
    let mut left_out = data.unread;
    for file in &data.files {
        let text = clip(&file.text, cap / 4);
        let warning = if text.len() < file.text.len() {
            "[WARNING: This file was truncated. To view the full content, use the 'read_file' tool on this specific file.]\n\n"
        } else {
            ""
        };
        let block = format!("--- {} ---\n\n{warning}{text}\n\n", file.path);
        if out.len() + block.len() > cap {
            left_out += 1;
            continue;
        }
        out.push_str(&block);
    }
    if left_out > 0 {
        out.push_str(&format!(
            "[WARNING: {left_out} more files did not fit. Read them with 'read_file'.]\n\n"
        ));
    }
    out + "--- End of content ---"
}

pub(super) fn list_problem(problem: &Problem) -> String {
    match problem {
        Problem::NotFolder(path) => format!("Error: Path is not a directory: {}", path.display()),
        Problem::NotFound(path) => format!("Error: Directory not found or inaccessible: {}", path.display()),
        Problem::List(reason) => format!("Error listing directory: {reason}"),
        other => general(other),
    }
}

pub(super) fn search_problem(problem: &Problem) -> String {
    match problem {
        Problem::SearchNotFound(path) => format!("Search path does not exist {}", path.display()),
        Problem::SearchNotFolder(path) => format!("Search path is not a directory: {}", path.display()),
        Problem::Pattern(reason) => format!(
            "Error: Invalid parameters provided. Reason: Invalid regular expression pattern: {reason}"
        ),
        Problem::Search(reason) => format!("Error during grep search operation: {reason}"),
        Problem::Glob(reason) => format!("Error during glob search operation: {reason}"),
        Problem::ManySearch(reason) => format!("Error during file search: {reason}"),
        other => general(other),
    }
}

pub(super) fn memory_problem(problem: &Problem) -> String {
    match problem {
        Problem::Memory(reason) => {
            json!({ "success": false, "error": format!("Failed to save memory. Detail: {reason}") })
                .to_string()
        }
        other => general(other),
    }
}

pub(super) fn ask_problem(problem: &Problem) -> String {
    match problem {
        Problem::Nobody => "Tool execution for \"ask_user\" requires user confirmation, which is not supported in non-interactive mode.".to_owned(),
        Problem::Dismissed => "User dismissed ask_user dialog without answering.".to_owned(),
        other => general(other),
    }
}

const NO_FILE: &str = "Could not read file because no file was found at the specified path.";

pub(super) fn read_problem(problem: &Problem) -> String {
    match problem {
        Problem::NotFound(_) => NO_FILE.to_owned(),
        Problem::Missing { near, .. } => format!("{NO_FILE}{}", did_you_mean(near)),
        Problem::IsFolder(path) => {
            format!(
                "Could not read file because the provided path is a directory, not a file: {}",
                path.display()
            )
        }
        Problem::Binary(path) => format!("Cannot display content of binary file: {}", path.display()),
        Problem::NotText { shown, .. } => format!("Cannot display content of binary file: {shown}"),
        Problem::TooLarge { path, .. }
            if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("svg")) =>
        {
            format!("Cannot display content of SVG file larger than 1MB: {}", path.display())
        }
        Problem::TooLarge { .. } => "File size exceeds the 20MB limit.".to_owned(),
        other => general(other),
    }
}

pub(super) fn edit_problem(problem: &Problem) -> String {
    match problem {
        Problem::NotFound(path) => {
            format!("File not found: {}. Use an empty old_string to create a new file.", path.display())
        }
        Problem::Exists(path) => format!("File already exists, cannot create: {}", path.display()),
        Problem::IsFolder(path) => format!("Path is a directory, not a file: {}", path.display()),
        Problem::NoMatch { path, nearest, .. } => {
            let near = nearest.as_ref().map_or(String::new(), |near| {
                format!("\nThe nearest place is at line {}:\n{}", near.line, near.text)
            });
            format!(
                "Failed to edit, 0 occurrences found for old_string in {}. Ensure you're not escaping content incorrectly and check whitespace, indentation, and context. Use read_file tool to verify.{near}",
                path.display()
            )
        }
        Problem::Unclear { path, place } => format!(
            "Failed to edit, 0 occurrences found for old_string in {}: it stands at line {} with other whitespace, and it is not clear how new_string is to be indented there. Quote the lines exactly:\n{}",
            path.display(),
            place.line,
            place.text
        ),
        Problem::LeftOut { line, .. } => format!(
            "`new_string` contains an omission placeholder (`{line}`). Write the exact text that is to stand there."
        ),
        Problem::Ambiguous { path, lines, expected, .. } => format!(
            "Failed to edit, expected {expected} occurrence{} but found {} for old_string in file: {} (at lines {})",
            if *expected == 1 { "" } else { "s" },
            lines.len(),
            path.display(),
            crate::problem::line_list(lines),
        ),
        Problem::NoChange(path) => format!(
            "No changes to apply. The new content is identical to the current content in file: {}",
            path.display()
        ),
        other => general(other),
    }
}

pub(super) fn write_problem(problem: &Problem) -> String {
    match problem {
        Problem::IsFolder(path) => format!("Path is a directory, not a file: {}", path.display()),
        Problem::Denied { path, .. } => {
            format!("Permission denied writing to file: {} (EACCES)", path.display())
        }
        Problem::NoSpace(path) => format!("No space left on device: {} (ENOSPC)", path.display()),
        other => general(other),
    }
}

pub(super) fn run_problem(problem: &Problem) -> String {
    general(problem)
}

fn general(problem: &Problem) -> String {
    match problem {
        Problem::Schema(text) | Problem::Arguments(text) => {
            format!("Error: Invalid parameters provided. Reason: {text}")
        }
        Problem::Outside(path) => format!(
            "Error: Invalid parameters provided. Reason: File path must be within the workspace: {}",
            path.display()
        ),
        Problem::Ignored(_) => problem.words(),
        other if other.kind() == ToolErrorKind::InvalidToolParams => {
            format!("Error: Invalid parameters provided. Reason: {}", in_its_names(&other.words()))
        }
        other => in_its_names(&other.words()),
    }
}

/// Lathe's words with the names that the model of this toolset knows.
fn in_its_names(text: &str) -> String {
    const NAMES: [(&str, &str); 8] = [
        ("old_str ", "old_string "),
        ("new_str ", "new_string "),
        ("`edit`", "`replace`"),
        ("`search`", "`search_file_content`"),
        ("`many`", "`read_many_files`"),
        ("only `view` works on folders", "`list_directory` lists it"),
        ("View it", "Read it"),
        ("since you viewed it", "since you read it"),
    ];
    NAMES.iter().fold(text.to_owned(), |text, (ours, its)| text.replace(ours, its))
}

/// The result of an outside tool.
pub(super) fn outside_result(data: &Data, cap: usize) -> String {
    match data {
        Data::Text(text) => {
            let shown = clip(text, cap);
            match text.len() - shown.len() {
                0 => text.clone(),
                more => format!("{shown}\n({more} more bytes are not shown)"),
            }
        }
        other => self::data(other, cap),
    }
}
