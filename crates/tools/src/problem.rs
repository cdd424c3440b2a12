//! The reason why a call failed, as data. Each toolset has its own words for it.

use std::path::{Path, PathBuf};

use lathe_edit::Nearest;
use lathe_edit::data::DataError;
use lathe_protocol::ToolErrorKind;
use lathe_workspace::WorkspaceError;

/// The number of line numbers that a message names.
const PLACES: usize = 20;

#[derive(Debug)]
pub(crate) enum Problem {
    /// The arguments do not fit; the text says where.
    Arguments(String),
    /// They do not fit the schema, in the words of a validator.
    Schema(String),
    /// They contain this placeholder of a secret.
    Placeholder(String),
    NoCommand,
    NotFound(PathBuf),
    /// The path does not exist; `near` holds paths that may have been meant.
    Missing {
        path: PathBuf,
        near: Vec<String>,
    },
    /// Left out by ignore files.
    Ignored(String),
    /// `.latheignore` names it.
    Unseen(PathBuf),
    Exists(PathBuf),
    /// The file exists, and the model has not viewed it.
    NotSeen(PathBuf),
    IsFolder(PathBuf),
    RangeOnFolder,
    /// The first line asked for is not in the file.
    Range {
        first: i64,
        last: Option<i64>,
        /// Lines as people count them.
        lines: usize,
        /// Lines as `split('\n')` counts them.
        pieces: usize,
    },
    Reversed {
        first: i64,
        last: i64,
    },
    Binary(PathBuf),
    /// Binary, with its path relative to the workspace, and its type if it is known.
    NotText {
        path: PathBuf,
        shown: String,
        what: Option<&'static str>,
    },
    TooLarge {
        path: PathBuf,
        bytes: u64,
    },
    NoMatch {
        path: PathBuf,
        old: String,
        nearest: Option<Nearest>,
    },
    /// The text occurs at the place with other whitespace, and the new text cannot be indented for it.
    Unclear {
        path: PathBuf,
        place: Nearest,
    },
    /// The new text contains this line, which only says that code was left out.
    LeftOut {
        path: PathBuf,
        line: String,
    },
    Ambiguous {
        path: PathBuf,
        old: String,
        lines: Vec<usize>,
        /// The number of occurrences that the model expected.
        expected: usize,
    },
    EmptyOld,
    NoChange(PathBuf),
    Line {
        line: i64,
        lines: usize,
    },
    /// The file is no longer what the model saw.
    Stale(PathBuf),
    /// One of these files changed while the user was looking at the preview.
    NotAsShown(Vec<PathBuf>),
    Denied {
        path: PathBuf,
        doing: FileAccess,
    },
    NoSpace(PathBuf),
    Read {
        path: PathBuf,
        reason: String,
    },
    Write {
        path: PathBuf,
        reason: String,
    },
    Thinking(&'static str),
    /// An outside tool failed.
    Foreign {
        kind: ToolErrorKind,
        message: String,
    },
    Cancelled(String),
    /// The tool of this canonical name reads a folder of this machine directly, and the workspace is not one.
    NoLocalTree(&'static str),
    /// The path leads out of the workspace.
    Outside(PathBuf),
    /// The path is protected: no tool writes it.
    Protected(PathBuf),
    /// A path to search does not exist.
    SearchNotFound(PathBuf),
    /// A path to search is not a folder.
    SearchNotFolder(PathBuf),
    /// A path to list is not a folder.
    NotFolder(PathBuf),
    /// The change could not be computed.
    Prepare {
        path: PathBuf,
        reason: String,
    },
    /// An error about the value at a path in a data file.
    Data {
        path: PathBuf,
        json_path: String,
        error: DataError,
    },
    Pattern(String),
    Search(String),
    Glob(String),
    List(String),
    ManySearch(String),
    Memory(String),
    /// No user is present to be asked.
    Nobody,
    Dismissed,
    /// The shell could not be started.
    ShellStart(String),
    Shell(String),
}

/// The kinds of access that the workspace can refuse.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FileAccess {
    Reading,
    Writing,
}

impl Problem {
    /// The file whose state prevents a call that could be done before.
    pub(crate) fn changed_file(&self) -> Option<&Path> {
        match self {
            Self::NotFound(path)
            | Self::Exists(path)
            | Self::NotSeen(path)
            | Self::IsFolder(path)
            | Self::Binary(path)
            | Self::NoChange(path)
            | Self::Stale(path)
            | Self::Missing { path, .. }
            | Self::NotText { path, .. }
            | Self::TooLarge { path, .. }
            | Self::NoMatch { path, .. }
            | Self::Ambiguous { path, .. }
            | Self::Prepare { path, .. }
            | Self::Data { path, .. } => Some(path),
            // Faults of the arguments, of the machine and of places are reported as they are.
            _ => None,
        }
    }

    pub(crate) fn from_workspace(error: WorkspaceError, path: &Path, doing: FileAccess) -> Self {
        let reason = match error {
            WorkspaceError::NotFound(path) => return Self::NotFound(path),
            WorkspaceError::Exists(path) => return Self::Exists(path),
            WorkspaceError::IsDirectory(path) => return Self::IsFolder(path),
            WorkspaceError::Denied(path) => return Self::Denied { path, doing },
            WorkspaceError::Stale(path) => return Self::Stale(path),
            WorkspaceError::NoSpace(path) => return Self::NoSpace(path),
            WorkspaceError::Outside(path) => return Self::Outside(path),
            WorkspaceError::Protected(path) => return Self::Protected(path),
            WorkspaceError::Ignored(path) => return Self::Unseen(path),
            WorkspaceError::Special(_) => return Self::special(path, doing),
            WorkspaceError::Jail(_) | WorkspaceError::Limit(_) | WorkspaceError::Spawn { .. } => {
                error.to_string()
            }
            WorkspaceError::Io { source, .. } => source.to_string(),
        };
        Self::failed(path, doing, reason)
    }

    /// A FIFO, socket or device.
    pub(crate) fn special(path: &Path, doing: FileAccess) -> Self {
        Self::failed(path, doing, "a FIFO, socket or device".to_owned())
    }

    fn failed(path: &Path, doing: FileAccess, reason: String) -> Self {
        let path = path.to_owned();
        match doing {
            FileAccess::Reading => Self::Read { path, reason },
            FileAccess::Writing => Self::Write { path, reason },
        }
    }

    pub(crate) fn kind(&self) -> ToolErrorKind {
        use ToolErrorKind as K;
        match self {
            Self::Arguments(_)
            | Self::Schema(_)
            | Self::Placeholder(_)
            | Self::NoCommand
            | Self::RangeOnFolder
            | Self::Range { .. }
            | Self::Reversed { .. }
            | Self::EmptyOld
            | Self::Line { .. }
            | Self::Ignored(_)
            | Self::Unseen(_)
            | Self::Thinking(_) => K::InvalidToolParams,
            Self::Foreign { kind, .. } => *kind,
            Self::Cancelled(_) => K::Cancelled,
            Self::Outside(_) => K::PathNotInWorkspace,
            Self::Protected(_) => K::PermissionDenied,
            Self::SearchNotFound(_) => K::SearchPathNotFound,
            Self::SearchNotFolder(_) => K::SearchPathNotADirectory,
            Self::NotFolder(_) => K::PathIsNotADirectory,
            Self::Prepare { .. } => K::EditPreparationFailure,
            Self::Data { error, .. } => match error {
                DataError::Empty | DataError::Invalid { .. } => K::ReadContentFailure,
                DataError::Path { .. } => K::InvalidToolParams,
                DataError::NoMatches { .. } | DataError::NoParent { .. } => K::EditNoOccurrenceFound,
                DataError::NotAnObject { .. }
                | DataError::NotAnArray { .. }
                | DataError::Target { .. }
                | DataError::Root
                | DataError::Unsupported { .. } => K::EditPreparationFailure,
            },
            Self::Pattern(_) => K::InvalidToolParams,
            Self::Search(_) => K::GrepExecutionError,
            Self::Glob(_) => K::GlobExecutionError,
            Self::List(_) => K::LsExecutionError,
            Self::ManySearch(_) => K::ReadManyFilesSearchError,
            Self::Memory(_) => K::MemoryToolExecutionError,
            Self::Nobody => K::PolicyViolation,
            Self::Dismissed | Self::NoLocalTree(_) => K::ExecutionFailed,
            Self::NotFound(_) | Self::Missing { .. } => K::FileNotFound,
            Self::Exists(_) => K::AttemptToCreateExistingFile,
            Self::NotSeen(_) | Self::Stale(_) | Self::NotAsShown(_) => K::FileChanged,
            Self::IsFolder(_) => K::TargetIsDirectory,
            Self::Binary(_) | Self::NotText { .. } | Self::Read { .. } => K::ReadContentFailure,
            Self::TooLarge { .. } => K::FileTooLarge,
            Self::NoMatch { .. } | Self::Unclear { .. } => K::EditNoOccurrenceFound,
            Self::LeftOut { .. } => K::InvalidToolParams,
            Self::Ambiguous { .. } => K::EditExpectedOccurrenceMismatch,
            Self::NoChange(_) => K::EditNoChange,
            Self::Denied { .. } => K::PermissionDenied,
            Self::NoSpace(_) => K::NoSpaceLeft,
            Self::Write { .. } => K::FileWriteFailure,
            Self::ShellStart(_) | Self::Shell(_) => K::ShellExecuteError,
        }
    }

    /// The problem in Lathe's own words: what happened, and what to do.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Arguments(reason) | Self::Schema(reason) => {
                // Some reasons have the wording of another toolset.
                let reason = reason.strip_prefix("Invalid parameters: ").unwrap_or(reason);
                format!("The arguments are wrong: {}.", reason.trim_end_matches('.'))
            }
            Self::Foreign { message, .. } | Self::Cancelled(message) => message.clone(),
            Self::NoLocalTree(tool) => {
                format!(
                    "`{tool}` needs a folder of this machine, and this workspace is none. Use programs of the shell instead."
                )
            }
            Self::Outside(path) => format!("{} is not in the workspace.", path.display()),
            Self::Protected(path) => format!(
                "{} is protected: what git, shells and editors run from inside a project is not written by tools. Ask the user to change it.",
                path.display()
            ),
            Self::SearchNotFound(path) => format!("{} does not exist.", path.display()),
            Self::SearchNotFolder(path) | Self::NotFolder(path) => {
                format!("{} is not a folder.", path.display())
            }
            Self::Data { path, json_path, error } => {
                format!("{json_path} in {}: {error}.", path.display())
            }
            Self::Prepare { path, reason } => {
                format!("{} cannot be changed like this: {reason}.", path.display())
            }
            Self::Pattern(reason) => {
                format!("The pattern is not a regular expression: {reason}. For plain text set literal.")
            }
            Self::Search(reason) => format!("The search failed: {reason}."),
            Self::Glob(reason) => format!("The files could not be looked for: {reason}."),
            Self::List(reason) => format!("The folder could not be listed: {reason}."),
            Self::ManySearch(reason) => format!("The files could not be found: {reason}."),
            Self::Memory(reason) => format!("The fact could not be saved: {reason}."),
            Self::Nobody => {
                "Nobody is there to be asked. Decide yourself, and say in the end what you assumed."
                    .to_owned()
            }
            Self::Dismissed => "The user dismissed the question without an answer.".to_owned(),
            Self::Placeholder(placeholder) => format!(
                "The arguments hold {placeholder}, which stands for a secret you are not shown. Placeholders are never written to files or given to commands: leave that text as it is and change only what is around it. A program that needs the secret has to read it where it is kept: its variable reaches programs only if the user passes it on."
            ),
            Self::NoCommand => "The arguments are wrong: give a command, or restart.".to_owned(),
            Self::NotFound(path) => format!("{} does not exist.", path.display()),
            Self::Missing { path, near } => {
                format!("{} does not exist.{}", path.display(), did_you_mean(near))
            }
            Self::Unseen(path) => {
                format!("{} is named by .latheignore: no tool shows or changes it.", path.display())
            }
            Self::Ignored(path) => format!("File path '{path}' is ignored by configured ignore patterns."),
            Self::NotText { path, what: Some(what), .. } => {
                format!("{} is a binary file ({what}); look at it with bash (`file`, `xxd`).", path.display())
            }
            Self::Exists(path) => format!("{} exists already.", path.display()),
            Self::NotSeen(path) => {
                format!("{} exists and you have not viewed it. View it first, or use `edit`.", path.display())
            }
            Self::IsFolder(path) => format!("{} is a folder; only `view` works on folders.", path.display()),
            Self::RangeOnFolder => "A folder has no lines: leave `offset` and `limit` out.".to_owned(),
            Self::Range { first, lines, .. } => {
                format!(
                    "Line {first} is not in the file, which has {}.",
                    lathe_protocol::counted(*lines, "line")
                )
            }
            Self::Reversed { first, last } => format!("Line {last} is before line {first}."),
            Self::Binary(path) | Self::NotText { path, what: None, .. } => {
                format!("{} is a binary file; look at it with bash (`file`, `xxd`).", path.display())
            }
            Self::TooLarge { path, bytes } => {
                format!(
                    "{} has {bytes} bytes, too many for this tool; use bash (`sed -n`, `head -c`).",
                    path.display()
                )
            }
            Self::NoMatch { path, nearest, .. } => match nearest {
                Some(near) => format!(
                    "old_str was not found in {}. The nearest place is at line {}:\n{}",
                    path.display(),
                    near.line,
                    near.text
                ),
                None => format!(
                    "old_str was not found in {}. View the file and copy the text exactly.",
                    path.display()
                ),
            },
            Self::Unclear { path, place } => format!(
                "old_str was found in {} only with other whitespace, and it is not clear how new_str is to be indented there. Nothing was changed. Copy the lines exactly, with their indentation. They begin at line {}:\n{}",
                path.display(),
                place.line,
                place.text
            ),
            Self::LeftOut { path, line } => format!(
                "The new text for {} has the line `{line}`, which only says that code was left out. Nothing was changed. Write the code itself, or replace less of the file.",
                path.display()
            ),
            Self::Ambiguous { path, lines, expected: 2.., .. } => format!(
                "old_str stands {} times in {}, not as often as you said: at lines {}.",
                lines.len(),
                path.display(),
                line_list(lines)
            ),
            Self::Ambiguous { path, lines, .. } => format!(
                "old_str is not unique in {}: it stands at lines {}. Add lines around it, or set replace_all.",
                path.display(),
                line_list(lines)
            ),
            Self::EmptyOld => "old_str is empty. To add text, give insert_line instead.".to_owned(),
            Self::NoChange(path) => format!("The edit would leave {} as it is.", path.display()),
            Self::Line { line, lines } => format!("insert_line {line} is outside of 0 to {lines}."),
            Self::Stale(path) => {
                format!("{} was changed since you viewed it. View it again first.", path.display())
            }
            Self::NotAsShown(paths) => {
                let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
                format!(
                    "{} was changed while the user was asked, so this would do something else than what they allowed. Nothing was done. View it again first.",
                    names.join(" or ")
                )
            }
            Self::Denied { path, .. } => {
                format!("No permission for {} (or it is on a read-only file system).", path.display())
            }
            Self::NoSpace(path) => format!("No space left on the disk for {}.", path.display()),
            Self::Read { path, reason } => format!("Cannot read {}: {reason}.", path.display()),
            Self::Write { path, reason } => format!("Cannot write {}: {reason}.", path.display()),
            Self::Thinking(reason) => format!("{reason}."),
            Self::ShellStart(reason) => format!("No command was run: {reason}."),
            Self::Shell(reason) => format!("The command could not be run to its end: {reason}."),
        }
    }
}

/// The names that may have been meant, as a question.
pub(crate) fn did_you_mean(near: &[String]) -> String {
    match near {
        [] => String::new(),
        [only] => format!(" Did you mean {only}?"),
        several => format!(" Did you mean one of: {}?", several.join(", ")),
    }
}

/// Line numbers with commas, at most `PLACES` of them.
pub(crate) fn line_list(lines: &[usize]) -> String {
    let mut named: Vec<String> = lines.iter().take(PLACES).map(usize::to_string).collect();
    if lines.len() > PLACES {
        named.push("...".to_owned());
    }
    named.join(", ")
}
