//! Questions to a model outside the conversation: for summaries of steps, and for reviews of edits.

pub(crate) mod lakeview;

use std::path::Path;
use std::sync::Arc;

use lathe_agent::{EditJudge, Lakeview};
use lathe_journal::Journal;
use lathe_model::{Aside, Variables};
use lathe_protocol::{ReviewRule, SessionId};
use lathe_tools::Reviewer;

use crate::aside::lakeview::LakeviewPlan;
use crate::error::HostError;
use crate::session::{Host, ModelSearch, ModelSource, ReadyModel, ready_model};

/// Settings for the review of edits by a model.
#[derive(Debug, Clone, Default)]
pub struct ReviewPlan {
    /// The rules; without them no edit is reviewed.
    pub rule: Option<ReviewRule>,
    /// The judge; the model of the session if left out.
    pub source: Option<ModelSource>,
}

impl Host {
    /// The model that was named, or the session's own.
    fn aside(
        &self,
        source: Option<&ModelSource>,
        own: &ReadyModel,
        variables: &Arc<Variables>,
        root: &Path,
    ) -> Result<Aside, HostError> {
        let Some(source) = source else {
            return Ok(Aside::new(Arc::clone(&own.client), own.choice.model.clone(), Arc::clone(variables)));
        };
        let stored = self.models().stored_keys()?;
        let marks = self.models().marks();
        let search =
            ModelSearch { variables, stored: &stored, marks: &marks, workspace: root, known: &own.known };
        let named = ready_model(source, Some(own.toolset), None, &search, Some(&own.choice))?;
        Ok(Aside::new(named.client, named.choice.model, Arc::clone(variables)))
    }

    /// The summariser for the steps of a session.
    pub(crate) fn lakeview(
        &self,
        plan: &LakeviewPlan,
        own: &ReadyModel,
        variables: &Arc<Variables>,
        (id, root): (&SessionId, &Path),
    ) -> Result<Arc<Lakeview>, HostError> {
        let aside = self.aside(plan.source.as_ref(), own, variables, root)?;
        Ok(Arc::new(Lakeview::new(aside, plan.max_tokens, self.unrecorded_tokens(id))))
    }

    /// The judge of a session's edits; none if the session has no rules for it.
    pub(crate) fn reviewer(
        &self,
        rule: Option<&ReviewRule>,
        source: Option<&ModelSource>,
        own: &ReadyModel,
        (variables, root): (&Arc<Variables>, &Path),
        journal: &Journal,
    ) -> Result<Option<Arc<dyn Reviewer>>, HostError> {
        let Some(rule) = rule else { return Ok(None) };
        let mut asked = 0;
        journal.reader()?.live_each(|event| asked += EditJudge::questions_in(&event))?;
        let aside = self.aside(source, own, variables, root)?;
        Ok(Some(Arc::new(EditJudge::new(aside, rule.rules.clone(), asked))))
    }
}
