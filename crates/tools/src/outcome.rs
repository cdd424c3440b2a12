//! What a run of a tool came to: data, from which each toolset makes its own words.

use std::path::PathBuf;

use lathe_blobs::BlobError;
use lathe_changes::TreeChange;
use lathe_edit::MatchKind;
use lathe_protocol::{Raw, Reviewed, SeenFile, ToolError, ToolErrorKind};
use lathe_redact::Redactor;
use lathe_search::{Found, FoundFiles, TextQuery};
use lathe_shell::LineExit;
use lathe_workspace::Applied;
use serde_json::{Value, json};

use crate::bash::{Printed, category};
use crate::problem::Problem;
use crate::todo::Todo;

pub(crate) struct Outcome {
    pub(crate) data: Result<Data, Problem>,
    /// What is another in the tree.
    pub(crate) changes: Vec<TreeChange>,
    /// What a file tool wrote, with what was there before.
    pub(crate) files: Vec<Applied>,
    /// The files were written while no line ran.
    pub(crate) between_lines: bool,
    /// Why a change that was made is not among them.
    pub(crate) unrecorded: Option<BlobError>,
    pub(crate) not_undoable: Vec<String>,
    /// Paths that somebody else changed while it ran.
    pub(crate) others: Vec<String>,
    /// The entry of the quarantine that holds what the line took away.
    pub(crate) kept: Option<String>,
    /// Repositories that are no longer whole, with what can be done.
    pub(crate) broken: Vec<String>,
    pub(crate) seen: Vec<SeenFile>,
    pub(crate) memory: Option<Raw>,
    pub(crate) attached: Vec<Attached>,
    /// Files that a rule keeps out of the result.
    pub(crate) left_out: usize,
    /// What else has to be said of it.
    pub(crate) notes: Vec<&'static str>,
}

/// Content that goes beside the text.
pub(crate) struct Attached {
    pub(crate) mime: &'static str,
    pub(crate) content: Vec<u8>,
    pub(crate) name: String,
}

impl From<Result<Data, Problem>> for Outcome {
    fn from(data: Result<Data, Problem>) -> Self {
        Self {
            data,
            changes: Vec::new(),
            files: Vec::new(),
            between_lines: false,
            unrecorded: None,
            not_undoable: Vec::new(),
            others: Vec::new(),
            kept: None,
            broken: Vec::new(),
            seen: Vec::new(),
            memory: None,
            attached: Vec::new(),
            left_out: 0,
            notes: Vec::new(),
        }
    }
}

pub(crate) enum Data {
    Shell(ShellData),
    ShellRestarted,
    File(FileData),
    Folder(FolderData),
    Document(DocumentData),
    Image(ImageData),
    Written(WrittenData),
    Edited(EditedData),
    Thought(ThoughtData),
    Done {
        summary: String,
    },
    /// What a tool that is not ours answered.
    Text(String),
    Found(FoundData),
    Files(FilesData),
    Listing(ListingData),
    Many(ManyData),
    Todos(Vec<Todo>),
    Remembered(RememberedData),
    /// In the order of the questions.
    Answers(Vec<String>),
    Values(DataData),
    /// What the code graph answered, in words and within its budget.
    Code(String),
    Patched(PatchedData),
    Reviewed(Reviewed),
    /// What became of a document, in the words of the server fork.
    Online {
        text: String,
        id: String,
    },
}

pub(crate) struct PatchedData {
    pub(crate) files: Vec<PatchedFile>,
}

pub(crate) struct PatchedFile {
    pub(crate) path: String,
    pub(crate) moved_from: Option<String>,
    pub(crate) existed: bool,
    pub(crate) exists: bool,
    pub(crate) added: usize,
    pub(crate) removed: usize,
    pub(crate) notes: Vec<String>,
}

pub(crate) struct DataData {
    pub(crate) path: String,
    pub(crate) json_path: Option<String>,
    pub(crate) done: DataDone,
}

pub(crate) enum DataDone {
    Whole { text: String },
    Found { count: usize, text: String },
    Set { count: usize, value: String },
    Added,
    Removed { count: usize },
}

pub(crate) struct FoundData {
    /// Where it was looked for, as the model said it.
    pub(crate) start: String,
    /// Names are shown from here on.
    pub(crate) base: PathBuf,
    pub(crate) filter: Option<String>,
    pub(crate) query: TextQuery,
    pub(crate) found: Found,
}

pub(crate) struct FilesData {
    pub(crate) start: String,
    pub(crate) base: PathBuf,
    pub(crate) pattern: String,
    pub(crate) found: FoundFiles,
}

pub(crate) struct ListingData {
    pub(crate) path: String,
    pub(crate) entries: Vec<Listed>,
    /// Names that were to be ignored.
    pub(crate) left_out: usize,
}

pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) folder: bool,
    pub(crate) bytes: u64,
}

#[derive(Default)]
pub(crate) struct ManyData {
    pub(crate) files: Vec<ManyFile>,
    /// Paths that were not read, with the reason.
    pub(crate) skipped: Vec<(String, String)>,
    /// Files for which there was no room.
    pub(crate) unread: usize,
}

pub(crate) struct ManyFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

pub(crate) struct RememberedData {
    pub(crate) fact: String,
    pub(crate) path: String,
    /// Set if a person changed the whole file instead.
    pub(crate) modified: bool,
}

pub(crate) struct ShellData {
    pub(crate) command: String,
    pub(crate) exit: LineExit,
    pub(crate) stdout: Printed,
    pub(crate) stderr: Printed,
    /// The shell's folder afterwards.
    pub(crate) cwd: String,
    /// Where the line was run, if the call named a folder.
    pub(crate) ran_in: Option<String>,
    /// Set when the line ended in another folder than it began in.
    pub(crate) moved: bool,
    pub(crate) respawned: bool,
    pub(crate) jobs: usize,
    /// The processes that this line left behind.
    pub(crate) left: Vec<u32>,
    /// The number by which `jobs` knows them.
    pub(crate) job: Option<u64>,
    /// Their process group.
    pub(crate) group: Option<i32>,
    pub(crate) seconds: u32,
    /// Commands of the agent in the line that were not written down one by one.
    pub(crate) untraced: usize,
    /// The seconds the call asked for.
    pub(crate) asked: Option<u32>,
    /// The file by which all of the output can be read, whatever is shown of it.
    pub(crate) whole: Option<PathBuf>,
}

pub(crate) struct FileData {
    pub(crate) path: String,
    /// The lines asked for, without the line break after the last.
    pub(crate) text: String,
    /// Number of the first of them.
    pub(crate) first: usize,
    /// Lines of the whole file, as people count them.
    pub(crate) lines: usize,
    /// Lines as `split('\n')` counts them: a final newline opens one more, empty, line.
    pub(crate) pieces: usize,
    /// Whether the model said where to stop.
    pub(crate) limited: bool,
    /// The file goes on after the lines that were counted.
    pub(crate) open: bool,
    /// Where it is not UTF-8.
    pub(crate) encoding: Option<&'static str>,
}

/// A file that is shown as something else than its lines.
pub(crate) struct DocumentData {
    pub(crate) path: String,
    pub(crate) kind: DocumentKind,
    /// Cells or pages.
    pub(crate) parts: Vec<String>,
    /// Number of the first of them.
    pub(crate) first: usize,
    pub(crate) total: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DocumentKind {
    Notebook,
    Pdf,
}

pub(crate) struct ImageData {
    pub(crate) path: String,
    /// Of the format.
    pub(crate) name: &'static str,
    pub(crate) pixels: Option<(u32, u32)>,
    pub(crate) bytes: u64,
    pub(crate) attached: bool,
}

pub(crate) struct FolderData {
    pub(crate) path: String,
    pub(crate) entries: Vec<String>,
    /// Entries that ignore files leave out; what lies in such a folder is not counted.
    pub(crate) ignored: usize,
}

pub(crate) struct WrittenData {
    pub(crate) path: String,
    pub(crate) existed: bool,
    pub(crate) lines: usize,
}

pub(crate) struct EditedData {
    pub(crate) path: String,
    pub(crate) kind: EditKind,
    pub(crate) matched: MatchKind,
    pub(crate) places: usize,
    pub(crate) snippets: Vec<Snippet>,
    /// Changed stretches that are not among the snippets.
    pub(crate) more: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditKind {
    Replaced,
    Inserted,
}

/// Lines around a change, as they now are.
pub(crate) struct Snippet {
    pub(crate) first: usize,
    pub(crate) text: String,
    /// The last line break of `text` is the last of the file.
    pub(crate) final_newline: bool,
}

pub(crate) struct ThoughtData {
    pub(crate) number: i64,
    pub(crate) total: i64,
    pub(crate) next_needed: bool,
    pub(crate) branches: Vec<String>,
    pub(crate) history: usize,
}

impl Data {
    /// Takes secrets out of the content of files: before a face cuts it, because half a secret is not recognised.
    /// Output of commands came without them.
    pub(crate) fn redact(&mut self, redactor: &Redactor) {
        let clean = |text: &mut String| {
            if let std::borrow::Cow::Owned(clean) = redactor.text(text) {
                *text = clean;
            }
        };
        match self {
            Data::File(file) => clean(&mut file.text),
            Data::Text(text) | Data::Code(text) => clean(text),
            Data::Document(document) => document.parts.iter_mut().for_each(clean),
            Data::Found(data) => {
                let lines = data.found.files.iter_mut().flat_map(|file| &mut file.lines);
                lines.for_each(|line| clean(&mut line.text));
            }
            Data::Many(many) => many.files.iter_mut().for_each(|file| clean(&mut file.text)),
            Data::Listing(listing) => listing.entries.iter_mut().for_each(|entry| clean(&mut entry.name)),
            Data::Answers(answers) => answers.iter_mut().for_each(clean),
            Data::Values(data) => match &mut data.done {
                DataDone::Whole { text } | DataDone::Found { text, .. } => clean(text),
                DataDone::Set { value, .. } => clean(value),
                DataDone::Added | DataDone::Removed { .. } => {}
            },
            Data::Folder(folder) => folder.entries.iter_mut().for_each(clean),
            Data::Online { text, .. } => clean(text),
            Data::Edited(edited) => edited.snippets.iter_mut().for_each(|snippet| clean(&mut snippet.text)),
            Data::Shell(_)
            | Data::ShellRestarted
            | Data::Image(_)
            | Data::Written(_)
            | Data::Files(_)
            | Data::Todos(_)
            | Data::Remembered(_)
            | Data::Patched(_)
            | Data::Thought(_)
            | Data::Reviewed(_)
            | Data::Done { .. } => {}
        }
    }

    /// The data as the journal keeps it: what a view may want to know and the text does not say plainly.
    pub(crate) fn summary(&self) -> Value {
        match self {
            Data::Shell(shell) => {
                let how = match shell.exit {
                    LineExit::Code(_) => "exited",
                    LineExit::ShellKilled { .. } => "shell_killed",
                    LineExit::TimedOut { .. } => "timed_out",
                    LineExit::Silent { .. } => "silent",
                    LineExit::Cancelled { .. } => "cancelled",
                };
                let mut summary = json!({ "exit_code": shell.exit.code(), "ended": how, "cwd": shell.cwd, "stdout_bytes": shell.stdout.total, "stderr_bytes": shell.stderr.total });
                if shell.exit.code() != 0
                    && let Value::Object(summary) = &mut summary
                {
                    let stderr = String::from_utf8_lossy(&shell.stderr.bytes);
                    let (category, base) = category(&shell.command, shell.exit.code(), &stderr);
                    summary.insert("failure_category".to_owned(), Value::from(category.as_str()));
                    summary.insert("base_command".to_owned(), Value::from(base));
                }
                if shell.untraced > 0
                    && let Value::Object(summary) = &mut summary
                {
                    summary.insert("commands_not_traced".to_owned(), Value::from(shell.untraced));
                }
                summary
            }
            Data::ShellRestarted => json!({ "restarted": true }),
            Data::File(file) => json!({ "path": file.path, "lines": file.lines }),
            Data::Document(document) => json!({ "path": document.path, "parts": document.total }),
            Data::Image(image) => json!({ "path": image.path, "pixels": image.pixels, "bytes": image.bytes }),
            Data::Folder(folder) => json!({ "path": folder.path, "entries": folder.entries.len() }),
            Data::Written(written) => {
                json!({ "path": written.path, "created": !written.existed, "lines": written.lines })
            }
            Data::Edited(edited) => {
                json!({ "path": edited.path, "places": edited.places, "exact": edited.matched == MatchKind::Exact })
            }
            Data::Thought(thought) => {
                json!({ "thought_number": thought.number, "total_thoughts": thought.total })
            }
            Data::Done { summary } => json!({ "summary": summary }),
            Data::Text(text) | Data::Code(text) => json!({ "bytes": text.len() }),
            Data::Found(data) => {
                json!({ "matches": data.found.matches, "files": data.found.matching_files, "left_out": data.found.left_out })
            }
            Data::Files(data) => json!({ "files": data.found.total }),
            Data::Listing(listing) => json!({ "path": listing.path, "entries": listing.entries.len() }),
            Data::Many(many) => json!({ "files": many.files.len(), "skipped": many.skipped.len() }),
            Data::Todos(todos) => json!({ "todos": todos }),
            Data::Remembered(remembered) => json!({ "path": remembered.path, "fact": remembered.fact }),
            Data::Answers(answers) => json!({ "answers": answers }),
            Data::Values(data) => json!({ "path": data.path, "json_path": data.json_path }),
            Data::Patched(patched) => {
                let paths: Vec<&str> = patched.files.iter().map(|file| file.path.as_str()).collect();
                json!({ "paths": paths })
            }
            Data::Reviewed(reviewed) => json!(reviewed.verdict),
            Data::Online { id, .. } => json!({ "document_id": id }),
        }
    }

    /// A run that gave data and failed all the same.
    pub(crate) fn failure(&self) -> Option<ToolError> {
        if let Data::Reviewed(Reviewed { verdict: None, failure, .. }) = self {
            let message = failure.clone().unwrap_or_default();
            return Some(ToolError { kind: ToolErrorKind::ExecutionFailed, message });
        }
        let Data::Shell(shell) = self else { return None };
        let (kind, message) = match shell.exit {
            LineExit::Code(_) | LineExit::ShellKilled { .. } => return None,
            LineExit::TimedOut { .. } => {
                (ToolErrorKind::TimedOut, format!("the command took longer than {} seconds", shell.seconds))
            }
            LineExit::Silent { limit, .. } => (
                ToolErrorKind::TimedOut,
                format!("the command printed nothing for {} seconds", limit.as_secs()),
            ),
            LineExit::Cancelled { .. } => (ToolErrorKind::Cancelled, "cancelled by the user".to_owned()),
        };
        Some(ToolError { kind, message })
    }
}
