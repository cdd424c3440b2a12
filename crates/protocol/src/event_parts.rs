//! The changes of files and the blobs of an event. Undo, displays and the collection of unused blobs all need them,
//! so they are listed here once, for every kind of event.

use crate::{Attachment, CallFinished, Change, CommandId, Digest, Fact};

/// The parts of an event that other code refers to.
#[derive(Default)]
struct EventParts<'a> {
    /// Recorded by the event.
    changes: &'a [Change],
    /// Repeated from another event, which records them.
    repeated: &'a [Change],
    result: Option<&'a CallFinished>,
    /// Images given with a task.
    images: &'a [Attachment],
}

impl Fact {
    fn parts(&self) -> EventParts<'_> {
        match self {
            Fact::CallFinished(finished) => {
                EventParts { changes: &finished.changes, result: Some(finished), ..EventParts::default() }
            }
            Fact::FilesRestored(restored) => {
                EventParts { changes: &restored.changes, ..EventParts::default() }
            }
            Fact::CommandRan(ran) if ran.between_lines => {
                EventParts { changes: &ran.changes, ..EventParts::default() }
            }
            // The result of the line's call contains all changes of the line.
            Fact::CommandRan(ran) => EventParts { repeated: &ran.changes, ..EventParts::default() },
            Fact::TaskGiven(given) => EventParts { images: &given.images, ..EventParts::default() },
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
            | Fact::Unknown(_) => EventParts::default(),
        }
    }

    /// The command that led to this event. A repeated command is recognised by it.
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
        self.parts().changes
    }

    /// Changes that cannot be undone, each with the reason. An event of a newer Lathe may contain some that this one
    /// cannot see.
    pub fn not_undoable(&self) -> Vec<String> {
        match self {
            Fact::Unknown(unknown) => vec![format!("{} (if it changed a file)", unknown.description())],
            _ => self.parts().result.map_or_else(Vec::new, |result| result.not_undoable.clone()),
        }
    }

    /// Blobs that must stay as long as the event does.
    pub fn blobs(&self) -> Vec<&Digest> {
        let held = self.parts();
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
