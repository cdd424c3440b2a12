//! What an event holds beside its own words: changes of files, and blobs. Asked by everything that takes changes back,
//! shows them or collects what nobody names any more, so it is said once, for every kind of event.

use crate::{Attachment, CallFinished, Change, CommandId, Digest, Fact};

/// The parts of an event that others hold on to.
#[derive(Default)]
struct Held<'a> {
    /// Recorded by the event.
    changes: &'a [Change],
    /// Told once more by another event, which records them.
    repeated: &'a [Change],
    result: Option<&'a CallFinished>,
    /// Images given with a task.
    images: &'a [Attachment],
}

impl Fact {
    fn held(&self) -> Held<'_> {
        match self {
            Fact::CallFinished(finished) => {
                Held { changes: &finished.changes, result: Some(finished), ..Held::default() }
            }
            Fact::FilesRestored(restored) => Held { changes: &restored.changes, ..Held::default() },
            Fact::CommandRan(ran) if ran.between_lines => Held { changes: &ran.changes, ..Held::default() },
            // The result of the line's call holds all that the line changed.
            Fact::CommandRan(ran) => Held { repeated: &ran.changes, ..Held::default() },
            Fact::TaskGiven(given) => Held { images: &given.images, ..Held::default() },
            Fact::SessionOpened(_)
            | Fact::OptionsChanged(_)
            | Fact::EpochStarted(_)
            | Fact::RunResumed(_)
            | Fact::BaselineTaken(_)
            | Fact::CancelAsked(_)
            | Fact::ModelAsked(_)
            | Fact::ModelAnswered(_)
            | Fact::ModelFailed(_)
            | Fact::ReplayDrifted(_)
            | Fact::CallDecided(_)
            | Fact::CallStarted(_)
            | Fact::Reflected(_)
            | Fact::Reminded(_)
            | Fact::TaskFinished(_)
            | Fact::Rewound(_)
            | Fact::RewindUndone(_)
            | Fact::QuestionAsked(_)
            | Fact::ApprovalAsked(_)
            | Fact::ApprovalGiven(_)
            | Fact::ApprovalExpired(_)
            | Fact::Steered(_)
            | Fact::SessionNamed(_)
            | Fact::StepSummarised(_)
            | Fact::EditsReviewed(_)
            | Fact::CommandTaken(_)
            | Fact::Unknown(_) => Held::default(),
        }
    }

    /// The command that led to this event. A repeated command is known by it.
    pub fn command(&self) -> Option<&CommandId> {
        match self {
            Fact::TaskGiven(given) => Some(&given.command),
            Fact::RunResumed(resumed) => Some(&resumed.command),
            Fact::Steered(steered) => Some(&steered.command),
            Fact::CancelAsked(asked) => Some(&asked.command),
            Fact::ApprovalGiven(given) => Some(&given.command),
            Fact::CommandTaken(taken) => Some(&taken.command),
            Fact::SessionNamed(named) => named.command.as_ref(),
            Fact::StepSummarised(summary) => summary.command.as_ref(),
            Fact::EditsReviewed(reviewed) => reviewed.command.as_ref(),
            Fact::SessionOpened(_)
            | Fact::OptionsChanged(_)
            | Fact::EpochStarted(_)
            | Fact::BaselineTaken(_)
            | Fact::ModelAsked(_)
            | Fact::ModelAnswered(_)
            | Fact::ModelFailed(_)
            | Fact::ReplayDrifted(_)
            | Fact::CallDecided(_)
            | Fact::CallStarted(_)
            | Fact::CallFinished(_)
            | Fact::Reflected(_)
            | Fact::Reminded(_)
            | Fact::TaskFinished(_)
            | Fact::Rewound(_)
            | Fact::RewindUndone(_)
            | Fact::FilesRestored(_)
            | Fact::QuestionAsked(_)
            | Fact::CommandRan(_)
            | Fact::ApprovalAsked(_)
            | Fact::ApprovalExpired(_)
            | Fact::Unknown(_) => None,
        }
    }

    /// Changes of files that this event records.
    pub fn changes(&self) -> &[Change] {
        self.held().changes
    }

    /// Changes that cannot be taken back, each with the reason. An event of a newer Lathe may hold some that this one
    /// cannot see.
    pub fn not_undoable(&self) -> Vec<String> {
        match self {
            Fact::Unknown(unknown) => vec![format!("{} (if it changed a file)", unknown.words())],
            _ => self.held().result.map_or_else(Vec::new, |result| result.not_undoable.clone()),
        }
    }

    /// Blobs that must stay as long as the event does.
    pub fn blobs(&self) -> Vec<&Digest> {
        let held = self.held();
        let attached = held
            .result
            .into_iter()
            .flat_map(|result| &result.attachments)
            .chain(held.images)
            .map(|attached| &attached.blob);
        let cut = held.result.into_iter().flat_map(|result| &result.truncated).map(|cut| &cut.blob);
        held.changes.iter().chain(held.repeated).flat_map(Change::blobs).chain(attached).chain(cut).collect()
    }
}
