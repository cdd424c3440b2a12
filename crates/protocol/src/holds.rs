//! What an event holds beside its own words: changes of files, and blobs. Asked by everything that takes changes back,
//! shows them or collects what nobody names any more, so it is said once, for every kind of event.

use crate::{Change, Digest, Fact};

impl Fact {
    /// Changes of files that this event records. What a command of a line changed is told again by the result of the
    /// line's call, which holds all of it, so [`CommandRan`](crate::CommandRan) has none of its own.
    pub fn changes(&self) -> &[Change] {
        match self {
            Fact::CallFinished(finished) => &finished.changes,
            Fact::FilesRestored(restored) => &restored.changes,
            Fact::CommandRan(_)
            | Fact::SessionOpened(_)
            | Fact::OptionsChanged(_)
            | Fact::EpochStarted(_)
            | Fact::TaskGiven(_)
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
            | Fact::Unknown(_) => &[],
        }
    }

    /// What changed and cannot be taken back, each with the reason.
    pub fn not_undoable(&self) -> &[String] {
        match self {
            Fact::CallFinished(finished) => &finished.not_undoable,
            Fact::FilesRestored(_)
            | Fact::CommandRan(_)
            | Fact::SessionOpened(_)
            | Fact::OptionsChanged(_)
            | Fact::EpochStarted(_)
            | Fact::TaskGiven(_)
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
            | Fact::Unknown(_) => &[],
        }
    }

    /// Blobs that must stay as long as the event does.
    pub fn blobs(&self) -> Vec<&Digest> {
        match self {
            Fact::CallFinished(finished) => {
                let attached = finished.attachments.iter().map(|attached| &attached.blob);
                let cut = finished.truncated.iter().map(|cut| &cut.blob);
                sides(&finished.changes).chain(attached).chain(cut).collect()
            }
            Fact::FilesRestored(restored) => sides(&restored.changes).collect(),
            Fact::CommandRan(ran) => sides(&ran.changes).collect(),
            Fact::SessionOpened(_)
            | Fact::OptionsChanged(_)
            | Fact::EpochStarted(_)
            | Fact::TaskGiven(_)
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
            | Fact::Unknown(_) => Vec::new(),
        }
    }
}

/// What was there before and after.
fn sides(changes: &[Change]) -> impl Iterator<Item = &Digest> {
    changes.iter().flat_map(|change| change.before.iter().chain(&change.after))
}
