//! The bodies of events: facts in the past tense, nothing that can be derived from others.
//!
//! The meaning of a `(kind, version)` never changes. A new meaning is a new version, and the old one is converted
//! when it is read ([`crate::Fact::decode`]).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Actor, Block, CallId, Change, CommandDecided, CommandId, Decision, Digest, Effects, Question, Raw,
    Reviewed, SeenFile, Seq, SessionId, SessionOptions, StepNo, StopReason, ToolSpec, Truncation, Usage,
};

/// The first event of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionOpened {
    pub session: SessionId,
    /// The folder worked in.
    pub workspace: String,
    /// The identity of that folder: another folder may have its name later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<FolderIdentity>,
    pub options: SessionOptions,
    /// The session that started this one, for a sub-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// The session this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<Forked>,
    /// The values that are masked before requests are compared. Stored, so that a digest means the same on any later
    /// day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<Surroundings>,
    /// The version of Lathe that wrote it.
    pub lathe: String,
}

/// The identity of a folder, independent of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FolderIdentity {
    pub device: u64,
    pub inode: u64,
}

/// The origin of a fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Forked {
    pub from: SessionId,
    /// The last step that both sessions have.
    pub at: StepNo,
    /// The command that made the fork, if a client gave it an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandId>,
}

/// The values that differ between machines and runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Surroundings {
    pub workspace: String,
    pub home: String,
    pub tmp: String,
    pub host: String,
    pub date: String,
}

/// New options, given when a session was resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OptionsChanged {
    pub options: SessionOptions,
}

/// The head of the prompt was made (again): from here on, requests begin with these bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EpochStarted {
    pub cause: EpochCause,
    pub system: String,
    pub tools: Vec<ToolSpec>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EpochCause {
    SessionOpened,
    OptionsChanged,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskGiven {
    pub text: String,
    /// Images that the model is shown with the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Attachment>,
    pub command: CommandId,
    pub actor: Actor,
}

/// A run that had ended without success was resumed, in the same conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunResumed {
    pub command: CommandId,
    pub actor: Actor,
}

/// A person sent a message to a run under way. The model reads it with the next request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Steered {
    pub text: String,
    pub command: CommandId,
    pub actor: Actor,
}

/// The session was given a title.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionNamed {
    pub title: String,
    /// The command that led to it; journals of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandId>,
}

/// The summary of a step, in a few words (Lakeview). Made outside the run, perhaps long after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepSummarised {
    pub task: String,
    pub details: String,
    /// One of eight: `WRITE_TEST`, `VERIFY_TEST`, `EXAMINE_CODE`, `WRITE_FIX`, `VERIFY_FIX`, `REPORT`, `THINK`,
    /// `OUTLIER`.
    pub tags: Vec<String>,
    /// The model that made the summary, and the tokens it used.
    pub model: String,
    pub usage: Usage,
    /// The command that led to it; journals of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandId>,
}

/// A person accepted or rejected edits of a file. The effect of a rejection on the file is the `files_restored` that
/// follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditsReviewed {
    /// The path, relative to the workspace.
    pub path: String,
    /// Names of the hunks: digests of the lines they remove and add.
    pub hunks: Vec<String>,
    pub accepted: bool,
    /// The command that led to it; journals of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandId>,
}

/// The work tree was recorded at the start of a run, for its patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineTaken {
    /// The tree or commit to compare with; `None` where there is no git and the recorded changes count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// A request to stop the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CancelAsked {
    pub command: CommandId,
    pub actor: Actor,
    /// True if the run was interrupted before, by the end of its process, and is closed now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

/// A command was accepted whose effect no other event names: the answer to a model's question, the end of one call,
/// resuming a parked run, an undo over the server. By this event a repeated command is recognised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandTaken {
    pub command: CommandId,
    pub actor: Actor,
    /// The reply to the command as JSON, where a repetition could not be answered without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
}

/// A request was sent. Its body is not stored: it is recomputed from the journal and checked by this digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelAsked {
    pub digest: Digest,
    pub messages: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelAnswered {
    pub blocks: Vec<Block>,
    pub stop: StopReason,
    pub usage: Usage,
    pub model: String,
    pub took_ms: u64,
}

/// There is no answer of the model for this step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelFailed {
    pub kind: ModelFailure,
    pub message: String,
    /// An estimate of the tokens of answers that began and broke off.
    #[serde(default, skip_serializing_if = "Usage::is_nothing")]
    pub lost: Usage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelFailure {
    /// The provider refused: key, name, request.
    Refused,
    /// The conversation is longer than the model accepts.
    TooLong,
    /// No answer after all attempts.
    Unavailable,
    /// The recording differs from the request.
    Diverged,
    Cancelled,
    /// The run's time is used up.
    OutOfTime,
    /// Lathe was stopped while it waited; the request for the step is repeated.
    Interrupted,
}

/// A replayed request differed from the recorded one in content but not in shape; the replay continued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayDrifted {
    /// The part that differed, for example `result of call c2 (bash)`.
    pub place: String,
    pub recorded: String,
    pub now: String,
}

/// The gate decided about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallDecided {
    pub tool: String,
    /// The act of the call, in one line.
    pub about: String,
    pub effects: Effects,
    pub decision: Decision,
    pub lane: Lane,
    /// For a shell line: each command that can run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<CommandDecided>,
}

/// The order in which a call runs relative to others of the same answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Only reads: runs in parallel with other readers.
    Reader,
    /// Alone, in the order of the calls.
    Alone,
    /// After all others.
    Last,
}

/// The intent to run a call; written before its effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallStarted {}

/// The one result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallFinished {
    /// The name the model called.
    pub name: String,
    /// The text the model sees.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Raw>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncation>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// Changes that cannot be undone, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_undoable: Vec<String>,
    /// Paths that a person or another process changed while the call ran: they are not part of its changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// Repositories that are damaged after the call, and files that were set aside, with the possible remedies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<SeenFile>,
    /// Content that belongs to the text and is not text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The value that the tool gets back at its next call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Raw>,
    /// The judge's review of the edit, or of the subject that the call asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Reviewed>,
    pub took_ms: u64,
}

/// Content that a model may see in addition to the text: an image, stored as it is in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// Its media type, such as `image/png`.
    pub mime: String,
    pub blob: Digest,
    /// The name of the file it came from.
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolError {
    pub kind: ToolErrorKind,
    pub message: String,
}

/// The reasons why a call failed, in the words of Gemini CLI's taxonomy where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorKind {
    InvalidToolParams,
    ToolNotRegistered,
    PolicyViolation,
    ExecutionFailed,
    /// The tool itself failed.
    UnhandledException,
    FileNotFound,
    FileWriteFailure,
    ReadContentFailure,
    AttemptToCreateExistingFile,
    FileTooLarge,
    PermissionDenied,
    NoSpaceLeft,
    TargetIsDirectory,
    PathNotInWorkspace,
    SearchPathNotFound,
    SearchPathNotADirectory,
    PathIsNotADirectory,
    GlobExecutionError,
    GrepExecutionError,
    LsExecutionError,
    ReadManyFilesSearchError,
    MemoryToolExecutionError,
    DiscoveredToolExecutionError,
    /// A change could not be computed: a patch that does not apply, a file in an encoding that cannot hold the text.
    EditPreparationFailure,
    EditNoOccurrenceFound,
    EditExpectedOccurrenceMismatch,
    EditNoChange,
    /// The file is no longer what the model saw.
    FileChanged,
    ShellExecuteError,
    TimedOut,
    Cancelled,
    /// Lathe was stopped while the call was under way.
    Interrupted,
    /// A kind that this version has no name for: of a later version, or of none.
    #[serde(other)]
    Unknown,
}

/// Text that the model gets after failed results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reflected {
    pub text: String,
}

/// Text that the model gets after an answer without calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reminded {
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskFinished {
    pub ending: Ending,
    /// The result as the user reads it.
    pub result: String,
}

/// The ways in which a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The model called `task_done`.
    Done,
    /// The model's text is the result.
    Answered,
    /// The task could not be done.
    Failed,
    ModelUnavailable,
    StepsUsedUp,
    /// The budget of the run is used up.
    BudgetUsedUp,
    Denied,
    DiskFull,
    Cancelled,
}

impl Ending {
    pub fn is_success(self) -> bool {
        match self {
            Ending::Done | Ending::Answered => true,
            Ending::Failed
            | Ending::ModelUnavailable
            | Ending::StepsUsedUp
            | Ending::BudgetUsedUp
            | Ending::Denied
            | Ending::DiskFull
            | Ending::Cancelled => false,
        }
    }
}

/// The live branch continues from the end of step `to`; the events after it are kept, but are no longer live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rewound {
    pub to: StepNo,
}

/// The live branch is again the one before that rewind; the events in between are kept, but are no longer live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RewindUndone {
    /// The number of the rewind.
    pub rewind: Seq,
}

/// Files were restored. This changes files like any call, and can be undone like one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesRestored {
    /// The step whose state was restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<StepNo>,
    /// The event whose changes were undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<Seq>,
    pub changes: Vec<Change>,
    /// Paths that were changed in the meantime, and that were left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// The identity of the workspace from here on, where the folder itself had to be created again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<FolderIdentity>,
}

/// A call waits for the user's answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAsked {
    pub questions: Vec<Question>,
}

/// A command of the agent, inside the shell line of a call, has ended. Its changes are part of the call's changes,
/// unless it made them after the line and before the next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandRan {
    /// Its words as bash expanded them; long ones are cut.
    pub argv: Vec<String>,
    pub cwd: String,
    pub decision: Decision,
    pub exit: u8,
    pub took_ms: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// True if it ran in the background and changed files while no line ran, so that no result of a call contains its
    /// changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub between_lines: bool,
    /// The canonical name of the tool that it runs, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<SeenFile>,
    /// The value that the tool gets back at its next use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Raw>,
    /// The summary of the work, where this was the command that ends the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// A kind or version that this program does not know. It is kept and skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownFact {
    pub kind: String,
    pub version: u16,
    pub body: Raw,
}

impl UnknownFact {
    /// A description of the event for people.
    pub fn description(&self) -> String {
        format!("an event that only a newer Lathe knows: {} v{}", self.kind, self.version)
    }
}

/// The result with which a dangling call is closed when a journal is opened again.
pub fn interrupted_result(name: &str, started: bool) -> CallFinished {
    let message = if started {
        "Interrupted: Lathe was stopped while this call was running. It may have taken effect in part: look before you repeat it."
    } else {
        "Interrupted: Lathe was stopped before this call began. Nothing was done."
    };
    CallFinished::failed(name, ToolErrorKind::Interrupted, message)
}

impl CallFinished {
    /// A result that is only an error.
    pub fn failed(name: &str, kind: ToolErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            name: name.to_owned(),
            text: message.clone(),
            error: Some(ToolError { kind, message }),
            data: None,
            truncated: None,
            changes: Vec::new(),
            not_undoable: Vec::new(),
            others: Vec::new(),
            broken: Vec::new(),
            seen: Vec::new(),
            attachments: Vec::new(),
            memory: None,
            review: None,
            took_ms: 0,
        }
    }
}

/// A call that has no result yet, found when a journal is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dangling {
    pub step: StepNo,
    pub call: CallId,
    pub name: String,
    pub started: bool,
}
