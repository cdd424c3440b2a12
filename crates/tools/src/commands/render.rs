//! The output of a command: words if a model or person reads it, plain lines or bytes if another program does.

use std::path::Path;

use lathe_search::LineKind;
use lathe_shell::OutputTarget;

use crate::faces;
use crate::outcome::Data;

/// The text for the two streams, and the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Printout {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: u8,
}

impl Printout {
    fn out(out: impl Into<String>) -> Self {
        Self { out: out.into(), err: String::new(), code: 0 }
    }

    /// A search without a match, as grep reports it.
    fn nothing(words: &str) -> Self {
        Self { out: String::new(), err: format!("{words}\n"), code: 1 }
    }
}

/// Characters of a matching line that a model is shown.
const LINE: usize = 500;

/// Bytes of one command's output for a model.
const CAP: usize = 48_000;

pub(crate) fn print(data: &Data, output: OutputTarget, cwd: &Path) -> Printout {
    let plain = output == OutputTarget::Elsewhere;
    match data {
        Data::Written(written) => Printout::out(format!("File written successfully: {}\n", written.path)),
        Data::Edited(edited) if plain => {
            Printout::out(format!("File edited successfully: {}\n", edited.path))
        }
        Data::Edited(edited) => {
            let words = faces::words(data, CAP);
            let said = format!("Edited {}. ", edited.path);
            let words = words.strip_prefix(said.as_str()).unwrap_or(&words);
            let is_tag = |line: &&str| line.starts_with("<file path=") || *line == "</file>";
            let words: Vec<&str> = words.lines().filter(|line| !is_tag(line)).collect();
            Printout::out(format!("File edited successfully: {}\n{}\n", edited.path, words.join("\n")))
        }
        Data::Found(found) => {
            let mut out = String::new();
            for file in &found.found.files {
                let name = near(&file.path, cwd);
                if found.query.names_only {
                    out.push_str(&format!("{name}\n"));
                }
                for line in &file.lines {
                    let mark = if line.kind == LineKind::Context { '-' } else { ':' };
                    let cut = line.text.char_indices().nth(LINE).filter(|_| !plain);
                    let text = cut.and_then(|(at, _)| line.text.get(..at)).unwrap_or(&line.text);
                    let more = if cut.is_some() { "..." } else { "" };
                    out.push_str(&format!("{name}{mark}{}{mark}{text}{more}\n", line.number));
                }
            }
            if out.is_empty() {
                return Printout::nothing("No matches found");
            }
            let left = found.found.left_out;
            let err = if left > 0 && !plain {
                format!(
                    "{}; narrow the search, or give --limit\n",
                    lathe_protocol::counted(left, "more matching line")
                )
            } else {
                String::new()
            };
            Printout { out, err, code: 0 }
        }
        Data::Files(files) => {
            let found = &files.found;
            if found.files.is_empty() {
                return Printout::nothing("No files found matching pattern");
            }
            let out: String = found.files.iter().map(|file| format!("{}\n", near(&file.path, cwd))).collect();
            let hidden = found.total - found.files.len();
            let err = if hidden > 0 {
                format!("{}; give --limit\n", lathe_protocol::counted(hidden, "more file"))
            } else {
                String::new()
            };
            Printout { out, err, code: 0 }
        }
        Data::Listing(listing) if plain => {
            Printout::out(listing.entries.iter().map(|entry| format!("{}\n", entry.name)).collect::<String>())
        }
        Data::Folder(folder) if plain => {
            Printout::out(folder.entries.iter().map(|entry| format!("{entry}\n")).collect::<String>())
        }
        Data::Text(text) | Data::Code(text) => Printout::out(ended(text)),
        Data::Answers(answers) => Printout::out(ended(&answers.join("\n"))),
        Data::Done { .. } => Printout::out("Task done.\n"),
        Data::Reviewed(reviewed) => Printout::out(ended(&crate::review::words(reviewed))),
        Data::Online { text, .. } => Printout::out(ended(text)),
        Data::Shell(_)
        | Data::ShellRestarted
        | Data::File(_)
        | Data::Folder(_)
        | Data::Document(_)
        | Data::Image(_)
        | Data::Thought(_)
        | Data::Listing(_)
        | Data::Many(_)
        | Data::Todos(_)
        | Data::Remembered(_)
        | Data::Values(_)
        | Data::Patched(_) => untagged(&faces::words(data, CAP)),
    }
}

/// Lathe's words without the tags that mark foreign text: everything that a shell line prints is marked as such
/// already. Text after the tags is a note, and goes to standard error, where it disturbs no pipe.
fn untagged(words: &str) -> Printout {
    let inside = || {
        let (open, rest) = words.split_once('\n')?;
        let tag = open.strip_prefix('<')?.strip_suffix('>')?.split(' ').next()?;
        let (body, notes) = rest.rsplit_once(&format!("\n</{tag}>"))?;
        Some(Printout { out: ended(body), err: ended(notes.trim_start_matches('\n')), code: 0 })
    };
    inside().unwrap_or_else(|| Printout::out(ended(words)))
}

fn ended(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// A path as the caller would write it.
fn near(path: &Path, cwd: &Path) -> String {
    path.strip_prefix(cwd).unwrap_or(path).display().to_string()
}
