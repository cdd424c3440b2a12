//! The outcome of a tool's run: data, which each toolset puts into its own words.

use std::borrow::Cow;
use std::path::PathBuf;

use lathe_blobs::BlobError;
use lathe_changes::TreeChange;
use lathe_edit::MatchKind;
use lathe_protocol::{Raw, Reviewed, SeenFile, ToolError, ToolErrorKind};
use lathe_redact::Redactor;
use lathe_search::{FoundFiles, TextFindings, TextQuery};
use lathe_shell::LineExit;
use lathe_workspace::{Applied, Breach};
use serde_json::{Value, json};

use crate::bash::{CapturedStream, category};
use crate::problem::Problem;
use crate::todo::Todo;

pub(crate) struct Outcome {
    pub(crate) data: Result<Data, Problem>,
    /// The changes to the tree.
    pub(crate) changes: Vec<TreeChange>,
    /// The files that a file tool wrote, with their content before.
    pub(crate) files: Vec<Applied>,
    /// True if the files were written while no line ran.
    pub(crate) between_lines: bool,
    /// The reason why a change that was made is not in `changes`.
    pub(crate) unrecorded: Option<BlobError>,
    pub(crate) not_undoable: Vec<String>,
    /// Paths that others changed while it ran.
    pub(crate) others: Vec<String>,
    /// The quarantine entry that holds what the line removed.
    pub(crate) kept: Option<String>,
    /// Repositories that are no longer intact, each with what can be done.
    pub(crate) broken: Vec<String>,
    pub(crate) seen: Vec<SeenFile>,
    pub(crate) memory: Option<Raw>,
    pub(crate) attached: Vec<AttachedContent>,
    /// The number of files that a rule keeps out of the result.
    pub(crate) left_out: usize,
    /// Further notes for the text.
    pub(crate) notes: Vec<Cow<'static, str>>,
}

/// Content that accompanies the text, such as an image.
pub(crate) struct AttachedContent {
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
    /// A plain text: that of an outside tool, or of a tool of our own whose result no surface must understand.
    Text(String),
    Found(FoundData),
    Files(FilesData),
    Listing(ListingData),
    Many(ManyData),
    Todos(Vec<Todo>),
    Remembered(RememberedData),
    /// The user's replies, in the order of the questions.
    Answers(Vec<String>),
    Values(ValuesData),
    /// The reply of the code graph, in words and within its budget.
    Code(String),
    Patched(PatchedData),
    Reviewed(Reviewed),
    /// The outcome for a document, in the words of the server fork.
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

pub(crate) struct ValuesData {
    pub(crate) path: String,
    pub(crate) json_path: Option<String>,
    pub(crate) done: ValuesResult,
}

pub(crate) enum ValuesResult {
    Whole { text: String },
    Found { count: usize, text: String },
    Set { count: usize, value: String },
    Added,
    Removed { count: usize },
}

pub(crate) struct FoundData {
    /// The path that was searched, as the model gave it.
    pub(crate) start: String,
    /// The folder that shown names are relative to.
    pub(crate) base: PathBuf,
    pub(crate) filter: Option<String>,
    pub(crate) query: TextQuery,
    pub(crate) found: TextFindings,
}

pub(crate) struct FilesData {
    pub(crate) start: String,
    pub(crate) base: PathBuf,
    pub(crate) pattern: String,
    pub(crate) found: FoundFiles,
}

pub(crate) struct ListingData {
    pub(crate) path: String,
    pub(crate) entries: Vec<ListedName>,
    /// The number of names that were to be ignored.
    pub(crate) left_out: usize,
}

pub(crate) struct ListedName {
    pub(crate) name: String,
    pub(crate) folder: bool,
    pub(crate) bytes: u64,
}

#[derive(Default)]
pub(crate) struct ManyData {
    pub(crate) files: Vec<ManyFile>,
    /// Paths that were not read, each with the reason.
    pub(crate) skipped: Vec<(String, String)>,
    /// The number of files for which there was no room.
    pub(crate) unread: usize,
}

pub(crate) struct ManyFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

pub(crate) struct RememberedData {
    pub(crate) fact: String,
    pub(crate) path: String,
    /// True if the user changed the whole file instead.
    pub(crate) modified: bool,
}

pub(crate) struct ShellData {
    pub(crate) command: String,
    pub(crate) exit: LineExit,
    pub(crate) stdout: CapturedStream,
    pub(crate) stderr: CapturedStream,
    /// The shell's folder afterwards.
    pub(crate) cwd: String,
    /// The folder that the line ran in, if the call named one.
    pub(crate) ran_in: Option<String>,
    /// True if the line ended in another folder than it began in.
    pub(crate) moved: bool,
    pub(crate) respawned: bool,
    /// The limit that background processes passed before this line.
    pub(crate) background: Option<Breach>,
    pub(crate) jobs: usize,
    /// The processes that this line left running.
    pub(crate) left: Vec<u32>,
    /// The number by which `jobs` knows them.
    pub(crate) job: Option<u64>,
    /// Their process group.
    pub(crate) group: Option<i32>,
    pub(crate) seconds: u32,
    /// The number of agent commands in the line that were not recorded one by one.
    pub(crate) untraced: usize,
    /// The seconds the call asked for.
    pub(crate) asked: Option<u32>,
    /// The file from which the whole output can be read, whatever is shown of it.
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
    /// True if the model gave a limit.
    pub(crate) limited: bool,
    /// True if the file continues after the lines that were counted.
    pub(crate) open: bool,
    /// The encoding, if it is not UTF-8.
    pub(crate) encoding: Option<&'static str>,
}

/// A file that is shown as something other than its lines.
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
    /// The name of the format.
    pub(crate) name: &'static str,
    pub(crate) pixels: Option<(u32, u32)>,
    pub(crate) bytes: u64,
    pub(crate) attached: bool,
}

pub(crate) struct FolderData {
    pub(crate) path: String,
    pub(crate) entries: Vec<String>,
    /// The number of entries that ignore files leave out. The content of such a folder is not counted.
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
    /// The number of changed stretches that are not among the snippets.
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
    /// True if the last line break of `text` is the last of the file.
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
    /// Redacts the content of files, before a face cuts it, because half a secret is not recognised. The output of
    /// commands is redacted already.
    pub(crate) fn redact(&mut self, redactor: &Redactor) {
        let clean = |text: &mut String| {
            if let std::borrow::Cow::Owned(clean) = redactor.redact_text(text) {
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
                ValuesResult::Whole { text } | ValuesResult::Found { text, .. } => clean(text),
                ValuesResult::Set { value, .. } => clean(value),
                ValuesResult::Added | ValuesResult::Removed { .. } => {}
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

    /// The data as the journal keeps it: details that a view may need and that the text does not state plainly.
    pub(crate) fn summary(&self) -> Value {
        match self {
            Data::Shell(shell) => {
                let how = match shell.exit {
                    LineExit::Code(_) => "exited",
                    LineExit::ShellKilled { .. } => "shell_killed",
                    LineExit::TimedOut { .. } => "timed_out",
                    LineExit::Silent { .. } => "silent",
                    LineExit::Cancelled { .. } => "cancelled",
                    LineExit::Limited { .. } => "limited",
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

    /// The error of a run that returned data and failed nevertheless.
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
            LineExit::Limited { breach, .. } => {
                (ToolErrorKind::ExecutionFailed, format!("stopped by the sandbox: {breach}"))
            }
        };
        Some(ToolError { kind, message })
    }
}
