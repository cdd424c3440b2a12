//! Who is asked beside the conversation: for summaries of steps, and for reviews of edits.

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
use crate::session::{Host, ModelSearch, ModelSource, Ready, ready};

/// How edits of a session are judged.
#[derive(Debug, Clone, Default)]
pub struct ReviewPlan {
    /// Nothing is judged without rules.
    pub rule: Option<ReviewRule>,
    /// Who judges; the model of the session if left out.
    pub source: Option<ModelSource>,
}

impl Host {
    /// The model that was named, or the session's own.
    fn aside(
        &self,
        source: Option<&ModelSource>,
        own: &Ready,
        variables: &Arc<Variables>,
        root: &Path,
    ) -> Result<Aside, HostError> {
        let Some(source) = source else {
            return Ok(Aside::new(Arc::clone(&own.client), own.choice.model.clone(), Arc::clone(variables)));
        };
        let stored = self.models().stored_keys()?;
        let marks = self.models().marks();
        let asking =
            ModelSearch { variables, stored: &stored, marks: &marks, workspace: root, known: &own.known };
        let named = ready(source, Some(own.toolset), None, &asking, Some(&own.choice))?;
        Ok(Aside::new(named.client, named.choice.model, Arc::clone(variables)))
    }

    /// Who sums up the steps of a session.
    pub(crate) fn lakeview(
        &self,
        plan: &LakeviewPlan,
        own: &Ready,
        variables: &Arc<Variables>,
        (id, root): (&SessionId, &Path),
    ) -> Result<Arc<Lakeview>, HostError> {
        let aside = self.aside(plan.source.as_ref(), own, variables, root)?;
        Ok(Arc::new(Lakeview::new(aside, plan.max_tokens, self.unkept(id))))
    }

    /// Who judges the edits of a session that has rules for it.
    pub(crate) fn reviewer(
        &self,
        rule: Option<&ReviewRule>,
        source: Option<&ModelSource>,
        own: &Ready,
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
