//! The filters around a call: one ordered list of what happens before a call runs and after it has run.
//!
//! A call of the model and a command in a shell line pass the same list. The gate comes first and is not a filter:
//! its decision is an event of its own and may become a question, so the session asks the gate. Later additions
//! (hooks, walls) become a named filter at their place in the list, never a line of code next to it.

use std::sync::Arc;

use lathe_protocol::{BoxFuture, CallFinished, Effects, ToolKind};
use tokio_util::sync::CancellationToken;

use crate::commands::Ledger;
use crate::files::syntax;
use crate::outcome::Outcome;
use crate::outputs;
use crate::review::{ReviewRole, review_changes};
use crate::services::Services;
use crate::tool::RunContext;

/// A call as its filters see it.
pub(crate) struct FilteredCall {
    kind: ToolKind,
    effects: Effects,
    /// Remarks about how the arguments were read.
    notes: Vec<String>,
    /// True if it is an agent command in a shell line.
    is_command: bool,
    review: Option<ReviewRole>,
    services: Arc<Services>,
    ledger: Arc<dyn Ledger>,
    cancel: CancellationToken,
}

impl FilteredCall {
    pub(crate) fn call(kind: ToolKind, effects: Effects, notes: Vec<String>, context: &RunContext) -> Self {
        Self {
            kind,
            effects,
            notes,
            is_command: false,
            review: context.review,
            services: Arc::clone(&context.services),
            ledger: Arc::clone(&context.ledger),
            cancel: context.cancel.clone(),
        }
    }

    pub(crate) fn command(kind: ToolKind, effects: Effects, context: &RunContext) -> Self {
        Self { is_command: true, review: None, ..Self::call(kind, effects, Vec::new(), context) }
    }

    pub(crate) async fn before(&self, context: &RunContext) {
        for filter in FILTERS {
            filter.before(self, context).await;
        }
    }

    pub(crate) async fn after(&self, result: &mut CallFinished) {
        for filter in FILTERS {
            filter.after(self, result).await;
        }
    }

    /// The text that the filters add to the output of a command that has run.
    pub(crate) async fn after_command(&self, outcome: &Outcome) -> String {
        let mut words = String::new();
        for filter in FILTERS {
            words += &filter.after_command(self, outcome).await;
        }
        words
    }
}

/// A filter. Each method does nothing by default.
trait Filter: Sync {
    fn before<'a>(&'a self, _: &'a FilteredCall, _: &'a RunContext) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    fn after<'a>(&'a self, _: &'a FilteredCall, _: &'a mut CallFinished) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    fn after_command<'a>(&'a self, _: &'a FilteredCall, _: &'a Outcome) -> BoxFuture<'a, String> {
        Box::pin(async { String::new() })
    }
}

/// The filters in their order, before a call and after it.
static FILTERS: [&dyn Filter; 5] =
    [&ProvideHandles, &RecordBackground, &RunChecks, &AddRemarks, &ReviewEdits];

/// Writes outputs of earlier calls to files if the call reads them by their handles.
struct ProvideHandles;

impl Filter for ProvideHandles {
    fn before<'a>(&'a self, call: &'a FilteredCall, context: &'a RunContext) -> BoxFuture<'a, ()> {
        Box::pin(async { outputs::provide_outputs(context, &call.effects.reads).await })
    }
}

/// Records changes of background processes before this call changes the same files. Within a line, the line's own
/// scan of the tree does that.
struct RecordBackground;

impl Filter for RecordBackground {
    fn before<'a>(&'a self, call: &'a FilteredCall, _: &'a RunContext) -> BoxFuture<'a, ()> {
        Box::pin(async {
            if call.is_command || !call.services.has_background_lines() {
                return;
            }
            let late = call.services.find_late_changes().await;
            let changed = late.is_some();
            if let Some(late) = late {
                call.ledger.record(&late.call, late.ran).await;
            }
            call.services.hold_background(changed).await;
        })
    }
}

/// Runs the user's checks before and after an edit, and reports what they print now and did not print before.
struct RunChecks;

impl RunChecks {
    async fn new_output(call: &FilteredCall, has_changes: bool) -> String {
        match call.kind == ToolKind::Edit && has_changes {
            true => call.services.checks.run_after(&call.services, &call.effects.writes, &call.cancel).await,
            false => String::new(),
        }
    }
}

impl Filter for RunChecks {
    fn before<'a>(&'a self, call: &'a FilteredCall, _: &'a RunContext) -> BoxFuture<'a, ()> {
        Box::pin(async {
            if call.kind == ToolKind::Edit {
                call.services.checks.run_before(&call.services, &call.effects.writes, &call.cancel).await;
            }
        })
    }

    fn after<'a>(&'a self, call: &'a FilteredCall, result: &'a mut CallFinished) -> BoxFuture<'a, ()> {
        Box::pin(async { result.text += &Self::new_output(call, !result.changes.is_empty()).await })
    }

    fn after_command<'a>(&'a self, call: &'a FilteredCall, outcome: &'a Outcome) -> BoxFuture<'a, String> {
        Box::pin(async {
            if call.kind != ToolKind::Edit || outcome.changes.is_empty() {
                return String::new();
            }
            let said = Self::new_output(call, true).await;
            format!("{}{said}", syntax::new_error_lines(&call.services, &outcome.files).await)
        })
    }
}

/// Reports arguments that were read as another type than they were written in.
struct AddRemarks;

impl Filter for AddRemarks {
    fn after<'a>(&'a self, call: &'a FilteredCall, result: &'a mut CallFinished) -> BoxFuture<'a, ()> {
        Box::pin(async {
            for note in &call.notes {
                result.text = format!("{}\nNote: {note}", result.text);
            }
        })
    }
}

/// Has the judge review an edit by the rules of the session. The review is part of the result, so it is never asked
/// for again.
struct ReviewEdits;

impl Filter for ReviewEdits {
    fn after<'a>(&'a self, call: &'a FilteredCall, result: &'a mut CallFinished) -> BoxFuture<'a, ()> {
        Box::pin(async {
            match call.review {
                Some(ReviewRole::Asked(left)) => {
                    if let Some(reviewed) = &result.review {
                        result.text = left.result_text(reviewed);
                    }
                }
                Some(ReviewRole::AfterEdit(left)) if result.error.is_none() && !result.changes.is_empty() => {
                    let reviewed = review_changes(&call.services, &result.changes, &call.cancel).await;
                    if let Some(reviewed) = reviewed {
                        result.text = format!("{}\n\n{}", result.text, left.result_text(&reviewed));
                        result.review = Some(reviewed);
                    }
                }
                Some(ReviewRole::AfterEdit(_)) | None => {}
            }
        })
    }
}
