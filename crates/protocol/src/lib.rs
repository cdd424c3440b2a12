//! The types that all parts of Lathe share: ids, events, commands, messages, effects. No I/O.

mod address;
mod approval;
mod budget;
mod change;
mod command;
mod digest;
mod document;
mod event;
mod event_parts;
mod facts;
mod gate;
mod ids;
mod json;
mod message;
mod nearest;
mod options;
mod question;
mod random;
mod raw;
mod replay;
mod review;
mod state;
mod summary;
mod trust;
mod visible_text;
mod warning_list;

pub use address::{NetworkReach, plain_address};
pub use approval::{ApprovalAnswer, ApprovalAsked, ApprovalExpired, ApprovalGiven, Proposal, ProposedText};
pub use budget::{Budget, TokenPrice, dollars};
pub use change::{CHANGED_BY_OTHERS, Change, SeenFile, Truncation};
pub use command::{
    BoxFuture, Command, CommandBody, EventStream, Frame, FrameBody, OutputStream, Receipt, ReceiptAnswer,
    SESSION_ENDED, SessionHandle, Update,
};
pub use digest::{Digest, DigestBuilder};
pub use document::{Document, DocumentRow, DocumentVersion};
pub use event::{DecodeError, Draft, Event, EventPlace, Fact};
pub use facts::{
    Attachment, BaselineTaken, CallDecided, CallFinished, CallStarted, CancelAsked, CommandRan, CommandTaken,
    Dangling, EditsReviewed, Ending, EpochCause, EpochStarted, FilesRestored, FolderIdentity, Forked, Lane,
    ModelAnswered, ModelAsked, ModelFailed, ModelFailure, OptionsChanged, QuestionAsked, Reflected, Reminded,
    ReplayDrifted, RewindUndone, Rewound, RunResumed, SessionNamed, SessionOpened, Steered, StepSummarised,
    Surroundings, TaskFinished, TaskGiven, ToolError, ToolErrorKind, UnknownFact, interrupted_result,
};
pub use gate::{Actor, CommandDecided, Decision, Effects, Mode, ToolKind, Verdict};
pub use ids::SessionId;
pub use ids::{AgentId, CallId, CommandId, RunNo, Seq, StepNo};
pub use jiff::Timestamp;
pub use json::{escape_unseen, json_text};
pub use message::{
    Arguments, AssistantMessage, Block, Image, Message, StopReason, TextBlock, ToolCall, ToolMessage,
    ToolSpec, Usage, UserMessage, calls_of, text_of,
};
pub use nearest::{edit_distance, nearest};
pub use options::{
    EndingRule, KeyMark, LimitChanges, Limits, ModelChoice, PatchRule, Persona, Sandbox, SandboxWalls,
    SessionOptions, ToolChoice, Toolset,
};
pub use question::{Question, QuestionKind, QuestionOption};
pub use random::random_number;
pub use raw::Raw;
pub use replay::{ReplayPace, ReplayStrictness};
pub use review::{ReviewLocation, ReviewRule, ReviewVerdict, Reviewed};
pub use state::{AgentState, CallState, StepState};
pub use summary::{SessionState, SessionSummary};
pub use trust::{ItemKind, ItemState, TrustAnswer};
pub use visible_text::{clean, is_hidden, is_odd, push_visible, visible};
pub use warning_list::{counted, grouped, list_warnings};
