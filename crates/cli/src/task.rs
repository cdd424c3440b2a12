//! The task as it is given: the words, the files they name with `@`, and what is piped in.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use lathe_host::is_image;

use crate::terminal;

/// Bytes taken of standard input or of one file.
const LARGEST: u64 = 1 << 20;

pub(crate) struct TaskInput<'a> {
    pub(crate) task: Option<&'a str>,
    pub(crate) file: Option<&'a Path>,
    /// Where `@file` is looked for.
    pub(crate) folder: &'a Path,
}

/// A task as the model is given it.
pub(crate) struct Task {
    pub(crate) text: String,
    /// Files that are shown and not read out.
    pub(crate) images: Vec<PathBuf>,
}

/// The whole task, or why there is none.
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
    // Only the user's own line names files: the text of a file may be anybody's.
    let names = input.task.map(named_files).unwrap_or_default();
    for name in names {
        let path = input.folder.join(name);
        if !path.is_file() {
            terminal::err(&format!("warning: @{name} is no file here; it is left as it stands\n"));
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
    if let Some(piped) = piped()? {
        text.push_str(&format!("\n\n<input>\n{}\n</input>", piped.trim_end_matches('\n')));
    }
    Ok(Task { text, images })
}

/// Words like `@src/main.rs`; a mail address is none, because its @ stands inside a word.
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
    limited(file).map_err(wrong)
}

/// Standard input, where it is a pipe or a file. A terminal or nothing gives nothing.
fn piped() -> Result<Option<String>, String> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() || !is_pipe_or_file() {
        return Ok(None);
    }
    // Whoever waits for a slow producer should know what for.
    let (sender, receiver) = mpsc::channel::<()>();
    let notice = std::thread::spawn(move || {
        if receiver.recv_timeout(Duration::from_secs(1)) == Err(mpsc::RecvTimeoutError::Timeout) {
            terminal::err(
                "reading standard input until it ends (close it with < /dev/null if it is not meant)\n",
            );
        }
    });
    let read = limited(stdin.lock());
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

/// Text up to a size; the rest is said to be missing.
fn limited(source: impl Read) -> Result<String, String> {
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
