use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use lathe_agent::AgentError;
use lathe_blobs::BlobError;
use lathe_changes::ChangesError;
use lathe_journal::JournalError;
use lathe_model::CassetteError;
use lathe_protocol::{RunNo, SessionId, StepNo, Toolset, nearest};
use lathe_workspace::WorkspaceError;
use nix::libc::{ELOOP, ENXIO};

/// A failure of the host, with a message that says what happened. The advice depends on the caller, so surfaces add
/// it.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// No model was named and none was found.
    #[error("no model is set up")]
    NoModel,
    #[error("no key for provider {provider}")]
    NoKey { provider: String, variable: String },
    #[error("provider {0} is not known")]
    UnknownProvider(String),
    #[error(
        "the session asked the model at {address}, and none of the keys found now is the one that it was asked with"
    )]
    OtherAddress { address: String, provider: String, source_of_key: KeySource },
    #[error("the model cannot be asked: {0}")]
    BadModel(String),
    #[error("no key was stored for {provider}: {reason}")]
    BadKey { provider: String, reason: String },
    #[error("the price of {model} is not known, so its cost cannot be limited")]
    NoPrice { model: String, file: PathBuf },
    #[error("no model name")]
    NoModelName,
    #[error("the sandbox cannot be set up here: {0}")]
    NoSandbox(String),
    #[error("the folder {} cannot be worked in: {reason}", shown(.path))]
    Folder { path: PathBuf, reason: String },
    #[error("{0}")]
    Graph(String),
    #[error("the cassette holds calls of toolset {}, but {} is asked for", .cassette.as_str(), .asked.as_str())]
    OtherToolset { cassette: Toolset, asked: Toolset },
    #[error(transparent)]
    Cassette(#[from] CassetteError),
    #[error("Lathe's folder {} cannot be used: {reason}", shown(.path))]
    Home { path: PathBuf, reason: String },
    #[error("there is no session yet")]
    NoSessions,
    #[error("no session worked in {}", shown(.0))]
    NoSessionHere(PathBuf),
    #[error("no session begins with `{0}`")]
    NoSuchSession(String),
    /// An id that is empty. It would be a prefix of every id.
    #[error("the id is empty")]
    EmptyId,
    #[error("the quarantine has no entry `{0}`")]
    NoSuchEntry(String),
    #[error("The id `{0}` was used for another command: use a new one.")]
    IdInUse(String),
    #[error("session {id} has no run {run}")]
    NoSuchRun { id: SessionId, run: RunNo },
    #[error("{} sessions begin with `{prefix}`, the newest of them {}: give more of the id", .found.len(), .found.iter().rev().take(3).cloned().collect::<Vec<_>>().join(", "))]
    ManySessions { prefix: String, found: Vec<String> },
    #[error("there is no tool `{name}`{} There are: {}", did_you_mean(.name, .known), .known.join(", "))]
    NoSuchTool { name: String, known: Vec<String> },
    #[error("the tool's arguments are not a JSON object: {0}")]
    ToolArguments(String),
    #[error("the proposal of `{0}` cannot be changed: it proposes no text")]
    NotModifiable(String),
    #[error("the tools of a program cannot be used: {0}")]
    Discovery(String),
    #[error("`[field.{domain}]` in the configuration is wrong: {reason}")]
    Field { domain: String, reason: String },
    #[error("the documents cannot be used: {0}")]
    Documents(String),
    #[error("the shell cannot continue: {reason}")]
    Shell { reason: String, disk_full: bool },
    #[error("the rules cannot be used: {0}")]
    Policy(String),
    #[error("what you trust cannot be read or written: {}: {reason}", shown(.path))]
    Trust { path: PathBuf, reason: String },
    #[error("nothing in {} is trusted", shown(.0))]
    NotTrusted(PathBuf),
    #[error("the secrets in {} cannot be read: {reason}", shown(.path))]
    Secrets { path: PathBuf, reason: String },
    #[error("`[check]` in the configuration is wrong: {0}")]
    Check(String),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error("the session has no step {at}: its last is {last}")]
    NoSuchStep { at: StepNo, last: StepNo },
    #[error("no commit `{name}` to compare with: {reason}")]
    BaseCommit { name: String, reason: String },
    #[error("prices.json in Lathe's folder is wrong: {0}")]
    Prices(String),
    #[error("the patch cannot be made: {0}")]
    Patch(String),
    #[error("the files cannot be restored: {0}")]
    Rewind(String),
    /// Files could not be restored because of a failure of the disk.
    #[error("the files cannot be restored: {reason}")]
    Restore { reason: String, disk_full: bool },
    /// The disk or the quota is full; the request itself is not at fault.
    #[error("{0}; free some space and try again")]
    NoSpace(String),
    #[error("nothing is left to undo in this session")]
    NothingToUndo,
    /// A file that a user or client named.
    #[error("{reason}")]
    File { problem: FileProblem, reason: String },
    #[error("{0}")]
    Git(String),
    #[error("{0}")]
    Review(String),
    #[error(
        "`{change}` was started by the shell of a Lathe session, and a session does not change what is the user's in {}",
        shown(.home)
    )]
    InsideSession { change: String, home: std::path::PathBuf },
    #[error("the replay is not possible: {0}")]
    Replay(String),
    #[error("{0}")]
    Demo(String),
    /// A fault of Lathe's own: the task that owns the session panicked.
    #[error("the session stopped by a fault of Lathe's own ({0})")]
    Crashed(String),
}

/// The place where a session's key came from, as far as the session remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    Unknown,
    /// A variable of a provider, for a model without a provider's name.
    ProvidersVariable(String),
    Variable(String),
    /// The keys that Lathe stores.
    Store,
    /// A flag or a configuration file, which is not recorded.
    Given,
    /// A place that is known by its name only.
    Named(String),
}

/// The problem with a file, for callers that must choose a status or exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileProblem {
    NotFound,
    /// A file exists that must not be replaced.
    Exists,
    /// It differs from what the caller has seen.
    Changed,
    /// Outside the folders allowed, protected, or not the user's.
    Forbidden,
    TooLarge,
    /// The disk has no room.
    Full,
    /// The disk failed, or the system did.
    Broken,
    Bad,
}

impl From<WorkspaceError> for HostError {
    fn from(error: WorkspaceError) -> Self {
        let problem = match &error {
            WorkspaceError::NotFound(_) => FileProblem::NotFound,
            WorkspaceError::Exists(_) => FileProblem::Exists,
            WorkspaceError::Stale(_) => FileProblem::Changed,
            WorkspaceError::Outside(_)
            | WorkspaceError::Protected(_)
            | WorkspaceError::Ignored(_)
            | WorkspaceError::Denied(_) => FileProblem::Forbidden,
            WorkspaceError::NoSpace(_) => FileProblem::Full,
            WorkspaceError::IsDirectory(_)
            | WorkspaceError::Special(_)
            | WorkspaceError::Jail(_)
            | WorkspaceError::Limit(_)
            | WorkspaceError::Spawn { .. } => FileProblem::Bad,
            // Some paths are not possible; any other failure is not the caller's fault.
            WorkspaceError::Io { source, .. } => match source.kind() {
                ErrorKind::NotADirectory
                | ErrorKind::IsADirectory
                | ErrorKind::InvalidInput
                | ErrorKind::InvalidFilename
                | ErrorKind::DirectoryNotEmpty
                | ErrorKind::CrossesDevices
                | ErrorKind::NotFound
                | ErrorKind::AlreadyExists
                | ErrorKind::ReadOnlyFilesystem
                | ErrorKind::PermissionDenied => FileProblem::Bad,
                // A loop of links or a socket, recognised by the error number alone.
                _ if matches!(source.raw_os_error(), Some(ELOOP | ENXIO)) => FileProblem::Bad,
                _ => FileProblem::Broken,
            },
        };
        Self::File { problem, reason: error.to_string() }
    }
}

impl From<ChangesError> for HostError {
    fn from(error: ChangesError) -> Self {
        Self::Restore { disk_full: error.is_full(), reason: error.to_string() }
    }
}

impl HostError {
    /// An error of the disk: `NoSpace` if it is full, otherwise the error that `other` makes of the reason.
    pub(crate) fn of_disk(error: &io::Error, reason: String, other: impl FnOnce(String) -> Self) -> Self {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                Self::NoSpace(reason)
            }
            _ => other(reason),
        }
    }

    /// The same for a blob.
    pub(crate) fn of_blob(error: &BlobError, other: impl FnOnce(String) -> Self) -> Self {
        match error {
            BlobError::NoSpace { .. } => Self::Restore { reason: error.to_string(), disk_full: true },
            _ => other(error.to_string()),
        }
    }

    /// A stable name of the error, for scripts and searches.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoModel => "no-model",
            Self::InsideSession { .. } => "inside-session",
            Self::NoKey { .. } => "no-key",
            Self::UnknownProvider(_) => "unknown-provider",
            Self::OtherAddress { .. } => "other-address",
            Self::BadModel(_) => "bad-model",
            Self::BadKey { .. } => "bad-key",
            Self::NoModelName => "no-model-name",
            Self::NoPrice { .. } => "no-price",
            Self::NoSandbox(_) => "no-sandbox",
            Self::Folder { .. } => "folder",
            Self::Graph(_) => "graph",
            Self::OtherToolset { .. } => "other-toolset",
            Self::Cassette(_) => "cassette",
            Self::Home { .. } => "home",
            Self::NoSessions => "no-sessions",
            Self::NoSessionHere(_) => "no-session-here",
            Self::NoSuchSession(_) => "no-such-session",
            Self::EmptyId => "empty-id",
            Self::NoSuchEntry(_) => "no-such-entry",
            Self::IdInUse(_) => "id-in-use",
            Self::NoSuchRun { .. } => "no-such-run",
            Self::ManySessions { .. } => "many-sessions",
            Self::NoSuchTool { .. } => "no-such-tool",
            Self::ToolArguments(_) => "tool-arguments",
            Self::Check(_) => "check",
            Self::Trust { .. } => "trust",
            Self::NotTrusted(_) => "not-trusted",
            Self::Policy(_) => "policy",
            Self::Secrets { .. } => "secrets",
            Self::Discovery(_) => "discovery",
            Self::Documents(_) => "documents",
            Self::Shell { disk_full: true, .. } => "disk-full",
            Self::Shell { disk_full: false, .. } => "shell",
            Self::Field { .. } => "field",
            Self::NotModifiable(_) => "not-modifiable",
            Self::Journal(JournalError::Held { .. }) => "session-held",
            Self::Journal(JournalError::NoSpace { .. })
            | Self::Agent(AgentError::Journal(JournalError::NoSpace { .. })) => "disk-full",
            Self::Journal(_) => "journal",
            Self::Agent(_) => "agent",
            Self::NoSuchStep { .. } => "no-such-step",
            Self::BaseCommit { .. } => "base-commit",
            Self::Prices(_) => "prices",
            Self::Patch(_) => "patch",
            Self::Rewind(_) => "rewind",
            Self::Restore { disk_full: true, .. } | Self::NoSpace(_) => "disk-full",
            Self::Restore { disk_full: false, .. } => "rewind",
            Self::NothingToUndo => "nothing-to-undo",
            Self::File { .. } => "file",
            Self::Git(_) => "git",
            Self::Review(_) => "review",
            Self::Replay(_) => "replay",
            Self::Demo(_) => "demo",
            Self::Crashed(_) => "crashed",
        }
    }

    pub fn is_disk_full(&self) -> bool {
        self.code() == "disk-full"
    }
}

/// A question that names the tool nearest to a mistyped name.
fn did_you_mean(name: &str, known: &[String]) -> String {
    let near = nearest(name, known.iter().map(String::as_str));
    near.map_or(".".to_owned(), |near| format!(". Did you mean `{near}`?"))
}

/// A path on one line: line breaks and other control characters in it are written out.
fn shown(path: &Path) -> String {
    let written_out = |c: char| match c {
        '\n' => "\u{23ce}".to_owned(),
        c if c.is_control() => format!("<U+{:04X}>", u32::from(c)),
        c => c.to_string(),
    };
    path.to_string_lossy().chars().map(written_out).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_break_stays_on_one_line() {
        let path = PathBuf::from("/w/A\nB\u{1b}C");
        for (error, name) in [
            (HostError::NoSessionHere(path.clone()), "/w/A\u{23ce}B<U+001B>C"),
            (HostError::NoSessionHere("/w/plain".into()), "/w/plain"),
        ] {
            let text = error.to_string();
            assert!(text.contains(name) && !text.contains(char::is_control), "{text}");
        }
    }
}
