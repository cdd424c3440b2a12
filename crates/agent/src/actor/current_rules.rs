//! The rules that apply at this moment. Another process can withdraw a standing approval, which then no longer
//! applies in a running session either. So the file of standing approvals is checked before each decision.

use std::sync::Arc;

use lathe_policy::{Rulebook, StandingApproval, Tier};
use lathe_tools::FreshnessCheck;
use parking_lot::Mutex;

/// Keeps standing approvals.
pub trait ApprovalStore: Send + Sync {
    fn remember(&self, grants: &[StandingApproval]) -> Result<(), String>;

    /// A text that changes whenever the approvals change.
    fn mark(&self) -> String;

    /// The approvals as rules, with the name of their file.
    fn rules(&self) -> Result<(String, String), String>;
}

pub(super) struct CurrentRules {
    base: Arc<Rulebook>,
    kept: Arc<dyn ApprovalStore>,
    /// The approvals for this session, as rules.
    session: String,
    /// The rules that were assembled last, and their mark.
    last: Mutex<Option<(String, Arc<Rulebook>)>>,
}

impl CurrentRules {
    pub(super) fn new(base: Arc<Rulebook>, kept: Arc<dyn ApprovalStore>) -> Self {
        Self { base, kept, session: String::new(), last: Mutex::default() }
    }

    /// The rules that apply now, and a check to ask later whether they still do.
    pub(super) fn current(&self) -> (Arc<Rulebook>, FreshnessCheck) {
        let mark = self.kept.mark();
        let (kept, was) = (Arc::clone(&self.kept), mark.clone());
        let fresh = FreshnessCheck::new(move || kept.mark() == was);
        let mut last = self.last.lock();
        if let Some((_, rules)) = last.as_ref().filter(|(known, _)| *known == mark) {
            return (Arc::clone(rules), fresh);
        }
        let rules = Arc::new(self.assemble());
        *last = Some((mark, Arc::clone(&rules)));
        (rules, fresh)
    }

    /// Approvals that cannot be read allow nothing.
    fn assemble(&self) -> Rulebook {
        let mut rules = self.base.as_ref().clone();
        let kept = self.kept.rules().ok();
        let session = ("answers of this session".to_owned(), self.session.clone());
        for (name, text) in kept.into_iter().chain([session]) {
            if let Ok(more) = rules.clone().with_file(Tier::User, &name, &text) {
                rules = more;
            }
        }
        rules
    }

    pub(super) fn remember_always(&mut self, grants: &[StandingApproval]) -> Result<(), String> {
        self.kept.remember(grants)?;
        self.discard_last();
        Ok(())
    }

    pub(super) fn remember_for_session(&mut self, grants: &[StandingApproval]) {
        self.session.extend(grants.iter().map(|grant| format!("{}\n", grant.to_rule())));
        self.discard_last();
    }

    fn discard_last(&mut self) {
        *self.last.get_mut() = None;
    }
}
