//! The event: one durable fact of a session, with its place.
//!
//! On the wire and in the store an event is `{seq, at, run, agent, step?, call?, cause?, kind, v, body}`. A macro
//! writes the dispatch on `(kind, v)` out, instead of serde's enum tags, because a body may hold raw JSON (which
//! serde cannot read back from buffered forms) and because an unknown kind must be kept, not refused.

use jiff::Timestamp;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::approval::{ApprovalAsked, ApprovalExpired, ApprovalGiven};
use crate::facts::*;
use crate::{AgentId, CallId, Raw, RunNo, Seq, StepNo};

/// A durable fact and its place in the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub seq: Seq,
    pub at: Timestamp,
    pub place: EventPlace,
    pub fact: Fact,
}

/// The place of an event in the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPlace {
    pub run: RunNo,
    pub agent: AgentId,
    pub step: Option<StepNo>,
    pub call: Option<CallId>,
    /// The event that led to this one, where the order alone does not show it.
    pub cause: Option<Seq>,
}

impl EventPlace {
    pub fn in_run(run: RunNo) -> Self {
        Self { run, agent: AgentId::main(), step: None, call: None, cause: None }
    }

    pub fn at_step(self, step: StepNo) -> Self {
        Self { step: Some(step), ..self }
    }

    pub fn at_call(self, call: CallId) -> Self {
        Self { call: Some(call), ..self }
    }
}

/// An event without number and time: the journal gives both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub place: EventPlace,
    pub fact: Fact,
}

#[derive(Debug, thiserror::Error)]
#[error("event {kind} v{version} cannot be read: {source}")]
pub struct DecodeError {
    pub kind: String,
    pub version: u16,
    pub source: serde_json::Error,
}

macro_rules! facts {
    ($($name:ident = $kind:literal v $version:literal;)*) => {
        /// The body of an event.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(clippy::large_enum_variant)] // Events are held behind an Arc; boxing each body would only cost.
        pub enum Fact {
            $($name($name),)*
            Unknown(UnknownFact),
        }

        impl Fact {
            /// The kinds of events that this version knows.
            pub const KINDS: &[&str] = &[$($kind,)*];

            pub fn kind(&self) -> &str {
                match self {
                    $(Fact::$name(_) => $kind,)*
                    Fact::Unknown(unknown) => &unknown.kind,
                }
            }

            pub fn version(&self) -> u16 {
                match self {
                    $(Fact::$name(_) => $version,)*
                    Fact::Unknown(unknown) => unknown.version,
                }
            }

            /// The body as JSON.
            pub fn body(&self) -> Result<Raw, serde_json::Error> {
                match self {
                    $(Fact::$name(body) => Raw::from_serialize(body),)*
                    Fact::Unknown(unknown) => Ok(unknown.body.clone()),
                }
            }

            /// Reads a body. A kind or version of a newer Lathe is kept as it is.
            pub fn decode(kind: &str, version: u16, body: &str) -> Result<Self, DecodeError> {
                let broken = |source| DecodeError { kind: kind.to_owned(), version, source };
                match (kind, version) {
                    $(($kind, $version) => serde_json::from_str(body).map(Fact::$name).map_err(broken),)*
                    _ => Ok(Fact::Unknown(UnknownFact {
                        kind: kind.to_owned(),
                        version,
                        body: Raw::parse(body).map_err(broken)?,
                    })),
                }
            }
        }

        $(impl From<$name> for Fact {
            fn from(body: $name) -> Self {
                Fact::$name(body)
            }
        })*
    };
}

facts! {
    SessionOpened = "session_opened" v 1;
    OptionsChanged = "options_changed" v 1;
    EpochStarted = "epoch_started" v 1;
    TaskGiven = "task_given" v 1;
    RunResumed = "run_resumed" v 1;
    BaselineTaken = "baseline_taken" v 1;
    CancelAsked = "cancel_asked" v 1;
    ModelAsked = "model_asked" v 1;
    ModelAnswered = "model_answered" v 1;
    ModelFailed = "model_failed" v 1;
    ReplayDrifted = "replay_drifted" v 1;
    CallDecided = "call_decided" v 1;
    CallStarted = "call_started" v 1;
    CallFinished = "call_finished" v 1;
    Reflected = "reflected" v 1;
    Reminded = "reminded" v 1;
    TaskFinished = "task_finished" v 1;
    Rewound = "rewound" v 1;
    RewindUndone = "rewind_undone" v 1;
    FilesRestored = "files_restored" v 1;
    QuestionAsked = "question_asked" v 1;
    CommandRan = "command_ran" v 1;
    ApprovalAsked = "approval_asked" v 1;
    ApprovalGiven = "approval_given" v 1;
    ApprovalExpired = "approval_expired" v 1;
    Steered = "steered" v 1;
    SessionNamed = "session_named" v 1;
    StepSummarised = "step_summarised" v 1;
    EditsReviewed = "edits_reviewed" v 1;
    CommandTaken = "command_taken" v 1;
}

#[derive(Serialize, Deserialize)]
struct Envelope {
    seq: Seq,
    at: Timestamp,
    run: RunNo,
    agent: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<StepNo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<CallId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<Seq>,
    kind: String,
    v: u16,
    body: Raw,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let place = self.place.clone();
        Envelope {
            seq: self.seq,
            at: self.at,
            run: place.run,
            agent: place.agent,
            step: place.step,
            call: place.call,
            cause: place.cause,
            kind: self.fact.kind().to_owned(),
            v: self.fact.version(),
            body: self.fact.body().map_err(S::Error::custom)?,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Envelope { seq, at, run, agent, step, call, cause, kind, v, body } =
            Envelope::deserialize(deserializer)?;
        let fact = Fact::decode(&kind, v, body.get()).map_err(D::Error::custom)?;
        Ok(Event { seq, at, place: EventPlace { run, agent, step, call, cause }, fact })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(fact: impl Into<Fact>) -> Event {
        Event {
            seq: Seq(7),
            at: "2026-11-15T08:00:00.123Z".parse().unwrap(),
            place: EventPlace::in_run(RunNo(1)).at_step(StepNo(2)).at_call(CallId::new("c1")),
            fact: fact.into(),
        }
    }

    #[test]
    fn an_event_is_one_flat_line_with_the_kind_before_the_body() {
        let event = event(CallStarted {});
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(
            line,
            r#"{"seq":7,"at":"2026-11-15T08:00:00.123Z","run":1,"agent":"main","step":2,"call":"c1","kind":"call_started","v":1,"body":{}}"#
        );
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }

    #[test]
    fn a_kind_from_the_future_is_kept_as_it_is() {
        let line = r#"{"seq":1,"at":"2026-11-15T08:00:00Z","run":0,"agent":"main","kind":"dreamt","v":9,"body":{"of":1e2}}"#;
        let event: Event = serde_json::from_str(line).unwrap();
        assert!(matches!(&event.fact, Fact::Unknown(unknown) if unknown.kind == "dreamt"));
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
    }

    #[test]
    fn a_known_kind_in_a_newer_version_is_kept_too() {
        let fact = Fact::decode("call_started", 2, r#"{"new":true}"#).unwrap();
        assert_eq!((fact.kind(), fact.version()), ("call_started", 2));
    }
}
