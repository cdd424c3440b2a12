//! The task as the user gives it: its text, the files it names with `@`, and piped input.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use lathe_host::is_image;
use lathe_views::Tell;

use crate::terminal;

/// Bytes that are read from standard input or from one file.
const LARGEST: u64 = 1 << 20;

pub(crate) struct TaskInput<'a> {
    pub(crate) task: Option<&'a str>,
    pub(crate) file: Option<&'a Path>,
    /// The folder in which `@file` is looked up.
    pub(crate) folder: &'a Path,
}

/// A task as it is sent to the model.
pub(crate) struct Task {
    pub(crate) text: String,
    /// Files that are shown to the model as images, not as text.
    pub(crate) images: Vec<PathBuf>,
}

/// The whole task, or the reason why there is none.
pub(crate) fn read(input: &TaskInput<'_>) -> Result<Task, String> {
    let words = match (input.task, input.file) {
        (Some(_), Some(_)) => return Err("give either a task or --file, not both".to_owned()),
        (None, None) => {
            return Err("what should be done? Give a task: lathe run \"...\", or --file FILE".to_owned());
        }
        (Some(task), None) => task.to_owned(),
        (None, Some(path)) => std::fs::read_to_string(path)
            .map_err(|error| format!("the task cannot be read from {}: {error}", path.display()))?,
    };
    if words.trim().is_empty() {
        return Err("the task is empty".to_owned());
    }
    let mut text = words.clone();
    let mut images = Vec::new();
    // Only the user's own line names files: the author of a file's text is unknown.
    let names = input.task.map(named_files).unwrap_or_default();
    for name in names {
        let path = input.folder.join(name);
        if !path.is_file() {
            terminal::err(&format!("warning: @{name} is not a file here; the word stays as it is\n"));
        } else if is_image(&path) {
            text.push_str(&format!("\n\n[The image {name} goes with the task.]"));
            images.push(path);
        } else {
            text.push_str(&format!(
                "\n\n<file path=\"{name}\">\n{}\n</file>",
                read_file(&path)?.trim_end_matches('\n')
            ));
        }
    }
    if let Some(piped) = piped_input()? {
        text.push_str(&format!("\n\n<input>\n{}\n</input>", piped.trim_end_matches('\n')));
    }
    Ok(Task { text, images })
}

/// Words like `@src/main.rs`. A mail address is not one, because its @ stands inside a word.
fn named_files(words: &str) -> Vec<&str> {
    let mut names: Vec<&str> = words
        .split_whitespace()
        .filter_map(|word| word.trim_start_matches(['(', '"', '\'', '`']).strip_prefix('@'))
        .map(|name| name.trim_end_matches([',', '.', ';', ':', '!', '?', ')', '"', '\'', '`']))
        .filter(|name| !name.is_empty())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn read_file(path: &PathBuf) -> Result<String, String> {
    let wrong = |reason: String| format!("@{} cannot be attached: {reason}", path.display());
    let file = std::fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
    read_limited(file).map_err(wrong)
}

/// Standard input, where it is a pipe or a file. A terminal gives nothing, and so does empty input.
fn piped_input() -> Result<Option<String>, String> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() || !is_pipe_or_file() {
        return Ok(None);
    }
    // A user who waits for a slow producer should know the reason.
    let (sender, receiver) = mpsc::channel::<()>();
    let notice = std::thread::spawn(move || {
        if receiver.recv_timeout(Duration::from_secs(1)) == Err(mpsc::RecvTimeoutError::Timeout) {
            let notice = Tell::ReadingInput { redirect: "< /dev/null" };
            terminal::err_line(&notice.text(terminal::language()));
        }
    });
    let read = read_limited(stdin.lock());
    drop(sender);
    let _ = notice.join();
    let text = read.map_err(|reason| format!("standard input cannot be attached: {reason}"))?;
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

fn is_pipe_or_file() -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata("/dev/stdin")
        .is_ok_and(|metadata| metadata.file_type().is_fifo() || metadata.file_type().is_file())
}

/// Reads text up to a size; longer text ends with a note that it was cut.
fn read_limited(source: impl Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    source.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let cut = bytes.len() as u64 > LARGEST;
    bytes.truncate(usize::try_from(LARGEST).unwrap_or(usize::MAX));
    if bytes.contains(&0) {
        return Err("it is binary".to_owned());
    }
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if cut {
        text.push_str(&format!("\n[cut after {LARGEST} bytes]"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::named_files;

    #[test]
    fn files_are_words_that_begin_with_an_at_sign() {
        assert_eq!(
            named_files("see @src/a.rs, (@b.md) and `@c` but not me@example.org or @ alone; @src/a.rs"),
            ["b.md", "c", "src/a.rs"]
        );
    }
}
