//! The first request of a run, shown instead of sent.
//!
//! It is made by the code that makes it in a session: the same model, the same redaction, the same history. Only the
//! key may be missing, because the body does not contain it.

use std::path::Path;
use std::sync::Arc;

use lathe_agent::{History, PromptFacts, SessionLimits, system_prompt};
use lathe_model::{Form, Variables, Wire};
use lathe_protocol::{AgentId, StepNo, ToolSpec, Toolset};
use lathe_tools::Toolbox;

use crate::error::HostError;
use crate::models::keys::Marks;
use crate::session::folder::working_folder;
use crate::session::images::{ReadImages, TaskImage};
use crate::session::machine::{prompt_facts, surroundings};
use crate::session::secrets::{project_secrets as found_secrets, project_texts, redactor as secrets};
use crate::session::{Attended, Host, ModelSearch, ModelSource, SessionPlan, ShownRequest, ready_model};
use crate::walls::{SandboxWish, mode_behind};

/// Stands for the key of a request that is not sent.
const NO_KEY: &str = "no key";
/// Stands for a model if none is named.
const NO_MODEL: &str = "MODEL";

/// The properties of a request that is shown.
struct RequestShape {
    form: Form,
    model: String,
    toolset: Toolset,
    /// Secrets that are redacted in it.
    known: Vec<(String, String)>,
}

impl Host {
    /// The request that a task would begin with. Nothing is sent or stored.
    pub async fn first_request(
        &self,
        plan: &SessionPlan,
        task: &str,
        images: &[TaskImage],
    ) -> Result<ShownRequest, HostError> {
        let root = working_folder(&plan.folder)?;
        let variables = Arc::new(Variables::new(&surroundings(&root)));
        let mut known = plan.extras.secrets(self.home().path())?;
        known.extend(found_secrets(&root));
        let (stored, marks) = (self.models().stored_keys()?, Marks::none());
        let search = ModelSearch {
            variables: &variables,
            stored: &stored,
            marks: &marks,
            workspace: &root,
            known: &known,
        };
        let RequestShape { form, model, toolset, known } = request_shape(plan, &search)?;
        let redactor = secrets(None, &known);
        let (workspace, walls) = self.sandboxed(&root, SandboxWish::of_plan(plan)).await?;
        let facts = prompt_facts(&workspace, Path::new("/bin/bash"), &self.home().memory(), &redactor);
        let project = project_texts(&plan.extras.instructions, &redactor);
        let persona = plan.extras.persona.clone();
        let outside = plan.extras.outside_tools(&workspace, self.home().path()).await?;
        let listed = Toolbox::about_session(toolset, plan.tools.clone(), outside);
        let tools: Vec<ToolSpec> = listed.into_iter().map(|tool| tool.spec).collect();
        let limits = SessionLimits {
            mode: mode_behind(plan.mode, plan.attended, &walls),
            is_attended: plan.attended == Attended::Person,
            tools: tools.iter().map(|tool| tool.name.clone()).collect(),
        };
        let own = persona.as_ref().and_then(|persona| persona.system.clone());
        let system =
            own.unwrap_or_else(|| system_prompt(toolset, &PromptFacts { project, ..facts }, Some(&limits)));
        let chars = |text: &str| text.chars().count();
        let size = |tool: &ToolSpec| chars(&tool.name) + chars(&tool.description) + chars(tool.schema.get());
        let (system_chars, tools_chars) = (chars(&system), tools.iter().map(size).sum());
        let mut history =
            History::new(form, AgentId::main(), variables).with_images(Arc::new(ReadImages::new(images)));
        history.begin(toolset, &model, &root.display().to_string(), persona);
        history.give_task(
            &redactor.redact_text(task),
            images.iter().map(|image| (&image.attachment).into()).collect(),
        );
        history.start_epoch(system, tools);
        let body = history.request(StepNo(1)).body().unwrap_or_default();
        Ok(ShownRequest { body, system_chars, tools_chars })
    }
}

/// Finds the model of a plan. If no model is configured, or its key is missing, the request is shown as it would be
/// with one.
fn request_shape(plan: &SessionPlan, search: &ModelSearch<'_>) -> Result<RequestShape, HostError> {
    let missing = match ready_model(&plan.source, plan.toolset, None, search, None) {
        Ok(ready) => {
            let mut known = search.known.to_vec();
            known.extend(ready.key.clone().map(|key| ("API_KEY".to_owned(), key)));
            known.extend(ready.known.iter().cloned());
            let (form, toolset) = (ready.client.form(), ready.toolset);
            return Ok(RequestShape { form, model: ready.choice.model, toolset, known });
        }
        Err(error) => error,
    };
    let ModelSource::Ask(request) = &plan.source else { return Err(missing) };
    let toolset = plan.toolset.unwrap_or(Toolset::Lathe);
    let mut request = request.clone();
    let model = request.model.get_or_insert_with(|| NO_MODEL.to_owned()).clone();
    request.api_key.get_or_insert_with(|| NO_KEY.to_owned());
    let form = match missing {
        HostError::NoKey { .. } | HostError::NoModelName => search.find(&request)?.client.form,
        HostError::NoModel => Wire::Chat.into(),
        other => return Err(other),
    };
    Ok(RequestShape { form, model, toolset, known: search.known.to_vec() })
}
