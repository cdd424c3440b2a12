//! The filters around a call: one ordered list of what happens before a call runs and after it has run.
//!
//! A call of the model and a command in a shell line pass the same list. The gate stands before it: a decision is an event of
//! its own and may be a question, so the session asks it. Whatever joins later (hooks, walls) is a filter with a name, at its
//! place in the list, and never a line of code beside it.

use std::sync::Arc;

use lathe_protocol::{Boxed, CallFinished, Effects, Kind};
use tokio_util::sync::CancellationToken;

use crate::commands::Ledger;
use crate::outcome::Outcome;
use crate::review::{Review, of_changes};
use crate::services::Services;
use crate::tool::RunContext;
use crate::{outputs, syntax};

/// The call that filters stand around.
pub(crate) struct Filtered {
    kind: Kind,
    effects: Effects,
    /// Remarks about how the arguments were read.
    notes: Vec<String>,
    /// Set if it is a command in a line.
    is_command: bool,
    review: Option<Review>,
    services: Arc<Services>,
    ledger: Arc<dyn Ledger>,
    cancel: CancellationToken,
}

impl Filtered {
    pub(crate) fn call(kind: Kind, effects: Effects, notes: Vec<String>, context: &RunContext) -> Self {
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

    pub(crate) fn command(kind: Kind, effects: Effects, context: &RunContext) -> Self {
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

    /// The words that filters have for a command that has run.
    pub(crate) async fn after_command(&self, outcome: &Outcome) -> String {
        let mut words = String::new();
        for filter in FILTERS {
            words += &filter.after_command(self, outcome).await;
        }
        words
    }
}

/// One filter. Each part does nothing unless the filter says otherwise.
trait Filter: Sync {
    fn before<'a>(&'a self, _: &'a Filtered, _: &'a RunContext) -> Boxed<'a, ()> {
        Box::pin(async {})
    }

    fn after<'a>(&'a self, _: &'a Filtered, _: &'a mut CallFinished) -> Boxed<'a, ()> {
        Box::pin(async {})
    }

    fn after_command<'a>(&'a self, _: &'a Filtered, _: &'a Outcome) -> Boxed<'a, String> {
        Box::pin(async { String::new() })
    }
}

/// The filters in their order, before a call and after it.
static FILTERS: [&dyn Filter; 5] = [&Handles, &Background, &Checked, &Remarks, &Reviewed];

/// Writes outputs of earlier calls to files where the call reads them by their handles.
struct Handles;

impl Filter for Handles {
    fn before<'a>(&'a self, call: &'a Filtered, context: &'a RunContext) -> Boxed<'a, ()> {
        Box::pin(async { outputs::provide(context, &call.effects.reads).await })
    }
}

/// Records what background processes changed, before this call changes the same. In a line its own look does that.
struct Background;

impl Filter for Background {
    fn before<'a>(&'a self, call: &'a Filtered, _: &'a RunContext) -> Boxed<'a, ()> {
        Box::pin(async {
            if call.is_command || !call.services.has_left_lines() {
                return;
            }
            let late = call.services.look_late().await;
            let changed = late.is_some();
            if let Some(late) = late {
                call.ledger.record(&late.call, late.ran).await;
            }
            call.services.hold_left(changed).await;
        })
    }
}

/// Runs the user's checks before and after an edit, and tells what they say now and did not say before.
struct Checked;

impl Checked {
    async fn said(call: &Filtered, has_changes: bool) -> String {
        match call.kind == Kind::Edit && has_changes {
            true => call.services.checks.after(&call.services, &call.effects.writes, &call.cancel).await,
            false => String::new(),
        }
    }
}

impl Filter for Checked {
    fn before<'a>(&'a self, call: &'a Filtered, _: &'a RunContext) -> Boxed<'a, ()> {
        Box::pin(async {
            if call.kind == Kind::Edit {
                call.services.checks.before(&call.services, &call.effects.writes, &call.cancel).await;
            }
        })
    }

    fn after<'a>(&'a self, call: &'a Filtered, result: &'a mut CallFinished) -> Boxed<'a, ()> {
        Box::pin(async { result.text += &Self::said(call, !result.changes.is_empty()).await })
    }

    fn after_command<'a>(&'a self, call: &'a Filtered, outcome: &'a Outcome) -> Boxed<'a, String> {
        Box::pin(async {
            if call.kind != Kind::Edit || outcome.changes.is_empty() {
                return String::new();
            }
            let said = Self::said(call, true).await;
            format!("{}{said}", syntax::told(&call.services, &outcome.files).await)
        })
    }
}

/// Tells how arguments were read that were written in another way.
struct Remarks;

impl Filter for Remarks {
    fn after<'a>(&'a self, call: &'a Filtered, result: &'a mut CallFinished) -> Boxed<'a, ()> {
        Box::pin(async {
            for note in &call.notes {
                result.text = format!("{}\nNote: {note}", result.text);
            }
        })
    }
}

/// Has an edit judged by the rules of the session. What a judge says belongs to the result, so it is never asked for again.
struct Reviewed;

impl Filter for Reviewed {
    fn after<'a>(&'a self, call: &'a Filtered, result: &'a mut CallFinished) -> Boxed<'a, ()> {
        Box::pin(async {
            match call.review {
                Some(Review::Asked(left)) => {
                    if let Some(reviewed) = &result.review {
                        result.text = left.told(reviewed);
                    }
                }
                Some(Review::AfterEdit(left)) if result.error.is_none() && !result.changes.is_empty() => {
                    let reviewed = of_changes(&call.services, &result.changes, &call.cancel).await;
                    if let Some(reviewed) = reviewed {
                        result.text = format!("{}\n\n{}", result.text, left.told(&reviewed));
                        result.review = Some(reviewed);
                    }
                }
                Some(Review::AfterEdit(_)) | None => {}
            }
        })
    }
}
