//! The rules as they hold at this moment: what a person allowed for ever can be taken back by another process, and then it
//! holds no longer in a session that runs either. So before each decision the file of answers is looked at.

use std::sync::Arc;

use lathe_policy::{Grant, Rulebook, Tier};
use lathe_tools::Fresh;
use parking_lot::Mutex;

/// Keeps answers that hold for ever.
pub trait Answers: Send + Sync {
    fn remember(&self, grants: &[Grant]) -> Result<(), String>;

    /// Another text whenever the answers are others.
    fn mark(&self) -> String;

    /// The answers as rules, with the name of their file.
    fn rules(&self) -> Result<(String, String), String>;
}

pub(super) struct Remembered {
    base: Arc<Rulebook>,
    kept: Arc<dyn Answers>,
    /// What holds for this session, as rules.
    session: String,
    /// What was put together last, and for which mark.
    last: Mutex<Option<(String, Arc<Rulebook>)>>,
}

impl Remembered {
    pub(super) fn new(base: Arc<Rulebook>, kept: Arc<dyn Answers>) -> Self {
        Self { base, kept, session: String::new(), last: Mutex::default() }
    }

    /// What holds now, and a way to ask later whether it still does.
    pub(super) fn now(&self) -> (Arc<Rulebook>, Fresh) {
        let mark = self.kept.mark();
        let (kept, was) = (Arc::clone(&self.kept), mark.clone());
        let fresh = Fresh::new(move || kept.mark() == was);
        let mut last = self.last.lock();
        if let Some((_, rules)) = last.as_ref().filter(|(known, _)| *known == mark) {
            return (Arc::clone(rules), fresh);
        }
        let rules = Arc::new(self.together());
        *last = Some((mark, Arc::clone(&rules)));
        (rules, fresh)
    }

    /// Answers that cannot be read allow nothing.
    fn together(&self) -> Rulebook {
        let mut rules = self.base.as_ref().clone();
        let kept = self.kept.rules().ok();
        let session = ("answers of this session".to_owned(), self.session.clone());
        for (name, text) in kept.into_iter().chain([session]) {
            if let Ok(more) = rules.clone().with(Tier::User, &name, &text) {
                rules = more;
            }
        }
        rules
    }

    pub(super) fn for_ever(&mut self, grants: &[Grant]) -> Result<(), String> {
        self.kept.remember(grants)?;
        self.forget_last();
        Ok(())
    }

    pub(super) fn for_session(&mut self, grants: &[Grant]) {
        self.session.extend(grants.iter().map(|grant| format!("{}\n", grant.rule())));
        self.forget_last();
    }

    fn forget_last(&mut self) {
        *self.last.get_mut() = None;
    }
}
