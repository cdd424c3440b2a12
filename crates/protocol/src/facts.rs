//! The bodies of events: facts in the past tense, nothing that can be derived from others.
//!
//! The meaning of a `(kind, version)` never changes. A new meaning is a new version, and the old one is lifted
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
    /// What is masked before requests are compared. Kept, so that a digest means the same on any later day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<Surroundings>,
    /// The version of Lathe that wrote it.
    pub lathe: String,
}

/// A folder, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FolderIdentity {
    pub device: u64,
    pub inode: u64,
}

/// Where a fork left its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Forked {
    pub from: SessionId,
    /// The last step both have.
    pub at: StepNo,
    /// The command that made the fork, if a client gave it an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandId>,
}

/// What differs between machines and runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Surroundings {
    pub workspace: String,
    pub home: String,
    pub tmp: String,
    pub host: String,
    pub date: String,
}

/// Options given anew when a session was resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OptionsChanged {
    pub options: SessionOptions,
}

/// The head of the prompt was made (again): from here on requests begin with these bytes.
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

/// A run that had ended without success goes on, in the same conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunResumed {
    pub command: CommandId,
    pub actor: Actor,
}

/// A person said something while a run was under way. The model reads it with the next request.
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
    /// The command that led to it; journals of earlier versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandId>,
}

/// What a step was about, in a few words (Lakeview). Made beside the run, perhaps long after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepSummarised {
    pub task: String,
    pub details: String,
    /// Of the eight: `WRITE_TEST`, `VERIFY_TEST`, `EXAMINE_CODE`, `WRITE_FIX`, `VERIFY_FIX`, `REPORT`, `THINK`, `OUTLIER`.
    pub tags: Vec<String>,
    /// The model that was asked, and what that took.
    pub model: String,
    pub usage: Usage,
    /// The command that led to it; journals of earlier versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandId>,
}

/// A person accepted or rejected edits of a file. What a rejection did to the file is the `files_restored` that follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditsReviewed {
    /// From the workspace on.
    pub path: String,
    /// Names of the hunks: digests of what they take away and put there.
    pub hunks: Vec<String>,
    pub accepted: bool,
    /// The command that led to it; journals of earlier versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandId>,
}

/// The work tree was noted down at the start of a run, for its patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineTaken {
    /// The tree or commit to compare with; none where there is no git, and the recorded changes count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// Somebody wants the run to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CancelAsked {
    pub command: CommandId,
    pub actor: Actor,
    /// The run was interrupted before, by the end of its process, and is closed now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

/// A command was accepted whose effect no other event names: the answer to a model's question, the end of one call, the
/// continuation of a parked run, an undo over the server. It makes a repeated command known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandTaken {
    pub command: CommandId,
    pub actor: Actor,
    /// The answer of the command as JSON, where a repetition could not be answered without it.
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

/// The model could not be had for this step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelFailed {
    pub kind: ModelFailure,
    pub message: String,
    /// Estimate of what answers came to that began and broke off.
    #[serde(default, skip_serializing_if = "Usage::is_nothing")]
    pub lost: Usage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelFailure {
    /// The provider refused: key, name, request.
    Refused,
    /// The conversation is longer than the model takes.
    TooLong,
    /// No answer after all attempts.
    Unavailable,
    /// The recording says something else.
    Diverged,
    Cancelled,
    /// The run may take no longer.
    OutOfTime,
    /// Lathe was stopped while it waited; the step is asked for again.
    Interrupted,
}

/// A replayed request differed from the recorded one in content but not in shape; the replay went on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayDrifted {
    /// What differed, for example `result of call c2 (bash)`.
    pub place: String,
    pub recorded: String,
    pub now: String,
}

/// The gate looked at a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallDecided {
    pub tool: String,
    /// What the call does, in one line.
    pub about: String,
    pub effects: Effects,
    pub decision: Decision,
    pub lane: Lane,
    /// For a shell line: each command that can run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<CommandDecided>,
}

/// When a call may run beside others of the same answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Only reads: beside other readers.
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
    /// What changed and cannot be taken back, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_undoable: Vec<String>,
    /// Paths that somebody else changed while the call ran: no part of its changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// Repositories that are no longer whole after the call, and files that were set aside, with what can be done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<SeenFile>,
    /// What belongs to the text and is not text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// What the tool wants to be given at its next call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Raw>,
    /// What a judge said about the edit, or about what the call asked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Reviewed>,
    pub took_ms: u64,
}

/// Content a model may look at beside the text: an image, stored as it is in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// Its type, as `image/png`.
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

/// Why a call failed, in the words of Gemini CLI's taxonomy where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorKind {
    InvalidToolParams,
    ToolNotRegistered,
    PolicyViolation,
    ExecutionFailed,
    /// The tool itself broke.
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
    /// A change could not be worked out: a patch that does not fit, a file in an encoding that cannot hold the text.
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
    /// A kind that this version has no name for: of a later version, or of nobody.
    #[serde(other)]
    Unknown,
}

/// Text put before the model after failed results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reflected {
    pub text: String,
}

/// Text put before the model after an answer that called nothing.
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

/// How a run ended.
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
    /// What the run may spend is spent.
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

/// The live branch goes on from the end of step `to`; what came after is kept, but no longer live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rewound {
    pub to: StepNo,
}

/// The live branch is again what it was before that rewind; what came between is kept, but no longer live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RewindUndone {
    /// The number of the rewind.
    pub rewind: Seq,
}

/// Files were put back to what they were. This changes files like any call, and can be taken back like one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesRestored {
    /// The state after this step was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<StepNo>,
    /// What that event changed was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<Seq>,
    pub changes: Vec<Change>,
    /// Paths that somebody had changed meanwhile, and that were left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// The identity of the workspace from here on, where the folder itself had to be made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<FolderIdentity>,
}

/// A call waits for the user's answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAsked {
    pub questions: Vec<Question>,
}

/// A command of the agent, inside the shell line of a call, has ended. Its changes are a part of those of the call, unless
/// it made them after the line and before the next one.
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
    /// It ran in the background and changed files while no line did, so that no result of a call holds its changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub between_lines: bool,
    /// The canonical name of the tool behind it, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<SeenFile>,
    /// What the tool wants to be given at its next use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Raw>,
    /// What was said to be done, where this was the word that the task is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// A kind or version this program does not know. It is kept and skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownFact {
    pub kind: String,
    pub version: u16,
    pub body: Raw,
}

impl UnknownFact {
    /// The event as people are told of it.
    pub fn words(&self) -> String {
        format!("an event that only a newer Lathe knows: {} v{}", self.kind, self.version)
    }
}

/// What a dangling call is closed with when a journal is opened again.
pub fn interrupted(name: &str, started: bool) -> CallFinished {
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
