//! Replay with recorded tools: checks that this program, given the same answers and results, would have done the
//! same.
//!
//! The journal is walked with the same two functions that made it. At each event that the loop itself produced,
//! `next` must have wanted exactly that event, and each recomputed request must have the recorded digest. It uses no
//! model, no process and no file.

use lathe_protocol::{CallId, Event, Fact, Seq, StepNo};

use crate::history::History;
use crate::next::{Action, next};
use crate::state::{CallStage, State};

/// A place where this program would have acted differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    pub seq: Seq,
    pub step: Option<StepNo>,
    pub recorded: String,
    pub now: String,
}

/// The result of verifying a journal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verification {
    /// Requests that were recomputed.
    pub requests: u32,
    /// The number of events that were compared with the loop.
    pub events: u32,
    pub divergences: Vec<Divergence>,
}

/// Verifies the live branch of a journal. None if it does not begin with its opening.
pub fn verify(events: &[Event], mut history: History) -> Option<Verification> {
    let (first, rest) = events.split_first()?;
    let mut state = State::from_opening(first)?;
    history.take(first);
    let mut verified = Verification::default();
    for event in rest {
        if let Some((recorded, matches)) = expectation(event, &state) {
            verified.events += 1;
            let wanted = next(&state);
            if !wanted.iter().any(matches) {
                let now = if wanted.is_empty() { "nothing".to_owned() } else { format!("{wanted:?}") };
                verified.divergences.push(Divergence {
                    seq: event.seq,
                    step: event.place.step,
                    recorded,
                    now,
                });
            }
        }
        if let Fact::ModelAsked(asked) = &event.fact {
            verified.requests += 1;
            let now = history.request(event.place.step.unwrap_or_default());
            if now.digest != asked.digest || now.messages != asked.messages {
                verified.divergences.push(Divergence {
                    seq: event.seq,
                    step: event.place.step,
                    recorded: format!(
                        "request of {} messages, digest {}",
                        asked.messages,
                        asked.digest.short()
                    ),
                    now: format!("request of {} messages, digest {}", now.messages, now.digest.short()),
                });
            }
        }
        state.apply(event);
        history.take(event);
    }
    Some(verified)
}

type Matches = Box<dyn Fn(&Action) -> bool>;

/// The action that `next` must have wanted for this event. None for an event caused from outside.
fn expectation(event: &Event, state: &State) -> Option<(String, Matches)> {
    let call = event.place.call.clone();
    let of_call = |name: &str| format!("{name} {}", call.as_ref().map(CallId::as_str).unwrap_or_default());
    match &event.fact {
        Fact::EpochStarted(_) => {
            Some(("a new epoch".into(), Box::new(|action| matches!(action, Action::StartEpoch(_)))))
        }
        Fact::ModelAsked(_) => {
            let step = event.place.step.unwrap_or_default();
            Some((format!("ask for step {step}"), Box::new(move |action| *action == Action::Ask(step))))
        }
        Fact::CallDecided(_) => {
            let words = of_call("decide on");
            Some((
                words,
                // A call that needed an approval may be allowed by the answer to another question.
                Box::new(
                    move |action| matches!(action, Action::Decide(id) | Action::AskApproval(id) if Some(id) == call.as_ref()),
                ),
            ))
        }
        Fact::ApprovalAsked(_) => match stage(state, call.as_ref()) {
            Some(CallStage::Decided { .. }) => Some((
                of_call("ask about"),
                Box::new(
                    move |action| matches!(action, Action::AskApproval(id) if Some(id) == call.as_ref()),
                ),
            )),
            // A command of a running line asks when it runs.
            Some(_) | None => None,
        },
        Fact::CallStarted(_) => {
            let words = of_call("run");
            Some((
                words,
                Box::new(move |action| matches!(action, Action::Run(id) if Some(id) == call.as_ref())),
            ))
        }
        Fact::CallFinished(finished) => match stage(state, call.as_ref()) {
            Some(CallStage::Decided { .. }) if !is_interrupted(finished) => {
                let (words, text) = (of_call("close"), finished.text.clone());
                Some((
                    words,
                    Box::new(
                        move |action| matches!(action, Action::Close { message, .. } if *message == text),
                    ),
                ))
            }
            // The result of an effect, of a call that could not be built, or of a repair.
            Some(_) | None => None,
        },
        Fact::Reflected(reflected) => {
            let text = reflected.text.clone();
            Some((
                format!("reflect: {text}"),
                Box::new(move |action| *action == Action::Reflect(text.clone())),
            ))
        }
        Fact::Reminded(reminded) => {
            let text = reminded.text.clone();
            Some((format!("remind: {text}"), Box::new(move |action| *action == Action::Remind(text.clone()))))
        }
        Fact::BaselineTaken(_) => {
            Some(("note the work tree down".into(), Box::new(|action| *action == Action::TakeBaseline)))
        }
        Fact::TaskFinished(finished) => {
            let wanted = Action::Finish { ending: finished.ending, result: finished.result.clone() };
            let words = format!("{wanted:?}");
            // The check for a patch depends on the outside.
            Some((words, Box::new(move |action| *action == wanted || matches!(action, Action::Judge { .. }))))
        }
        Fact::SessionOpened(_)
        | Fact::OptionsChanged(_)
        | Fact::TaskGiven(_)
        | Fact::RunResumed(_)
        | Fact::CancelAsked(_)
        | Fact::ModelAnswered(_)
        | Fact::ModelFailed(_)
        | Fact::ReplayDrifted(_)
        | Fact::Rewound(_)
        | Fact::RewindUndone(_)
        | Fact::FilesRestored(_)
        | Fact::QuestionAsked(_)
        | Fact::CommandRan(_)
        | Fact::ApprovalGiven(_)
        | Fact::ApprovalExpired(_)
        | Fact::Steered(_)
        | Fact::SessionNamed(_)
        | Fact::StepSummarised(_)
        | Fact::EditsReviewed(_)
        | Fact::CommandTaken(_)
        | Fact::Unknown(_) => None,
    }
}

fn is_interrupted(finished: &lathe_protocol::CallFinished) -> bool {
    finished.error.as_ref().is_some_and(|error| error.kind == lathe_protocol::ToolErrorKind::Interrupted)
}

fn stage<'a>(state: &'a State, call: Option<&CallId>) -> Option<&'a CallStage> {
    state.calls.iter().find(|known| Some(&known.id) == call).map(|known| &known.stage)
}
