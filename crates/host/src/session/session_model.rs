//! The search for a session's model, and its client.

use std::path::Path;
use std::sync::Arc;

use lathe_model::{
    Cassette, CassetteError, Form, HttpClient, ModelClient, Params, RecordingClient, ReplayClient, Variables,
};
use lathe_protocol::{Digest, ModelChoice, ReplayPace, ReplayStrictness, Toolset};
use lathe_redact::secrets_in_address;

use super::plan::ModelSource;
use crate::error::HostError;
use crate::files::output::output_path;
use crate::models::auth::Stored;
use crate::models::guarded::GuardedClient;
use crate::models::keys::{KeyRing, Marks};
use crate::models::request::{self, FoundModel, ModelRequest};
use crate::session::secrets::redactor as secrets;

/// The model of a session, ready to be asked.
pub(crate) struct ReadyModel {
    pub(crate) client: Arc<dyn ModelClient>,
    pub(crate) choice: ModelChoice,
    pub(crate) toolset: Toolset,
    pub(crate) key: Option<String>,
    /// Secrets that the user named, and others known to be secret.
    pub(crate) known: Vec<(String, String)>,
}

/// The places in which to search for a model, and the session that needs it.
pub(crate) struct ModelSearch<'a> {
    pub(crate) variables: &'a Arc<Variables>,
    pub(crate) stored: &'a Stored,
    pub(crate) marks: &'a Marks,
    pub(crate) workspace: &'a Path,
    /// Secrets that the user named, and others known to be secret.
    pub(crate) known: &'a [(String, String)],
}

impl ModelSearch<'_> {
    /// The model of a request, as a session in this folder asks it.
    pub(crate) fn find(&self, request: &ModelRequest) -> Result<FoundModel, HostError> {
        let ring = KeyRing { env: &environment, stored: self.stored, marks: self.marks };
        let mut found = request::find_model(request, &ring)?;
        let Form { wire, params } = found.client.form;
        let params = Params { cache_key: Some(self.cache_key()), ..(*params).clone() };
        found.client.form = Form::new(wire, params);
        Ok(found)
    }

    /// Key of the provider's cache, one for all sessions of a folder: their prompts begin alike, so they share what a
    /// provider has cached.
    fn cache_key(&self) -> String {
        let digest = Digest::of(self.workspace.display().to_string().as_bytes());
        format!("lathe-{}", digest.short())
    }
}

/// A variable of the environment, if it is not empty.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

pub(crate) fn ready_model(
    source: &ModelSource,
    toolset: Option<Toolset>,
    record: Option<&Path>,
    search: &ModelSearch<'_>,
    before: Option<&ModelChoice>,
) -> Result<ReadyModel, HostError> {
    let variables = search.variables;
    let replay = |cassette: Cassette,
                  pace: ReplayPace,
                  strictness: ReplayStrictness|
     -> Result<ReadyModel, HostError> {
        let toolset = match toolset {
            Some(asked) if asked != cassette.toolset() => {
                return Err(HostError::OtherToolset { cassette: cassette.toolset(), asked });
            }
            Some(_) | None => cassette.toolset(),
        };
        let choice = ModelChoice {
            provider: request::RECORDED.into(),
            model: "recorded".into(),
            base_url: None,
            key: None,
        };
        let client = Arc::new(ReplayClient::new(cassette, Arc::clone(variables), pace, strictness));
        let client = Arc::new(GuardedClient::new(client, secrets(None, search.known)));
        Ok(ReadyModel { client, choice, toolset, key: None, known: search.known.to_vec() })
    };
    let mut ready = match source {
        ModelSource::Replay { cassette, pace, strictness } => {
            replay(Cassette::load(cassette)?, *pace, *strictness)?
        }
        ModelSource::Given { cassette, strictness } => {
            replay(Cassette::parse(cassette)?, ReplayPace::Instant, *strictness)?
        }
        ModelSource::BuiltIn { cassette, pace } => {
            replay(Cassette::parse(cassette)?, *pace, ReplayStrictness::Lenient)?
        }
        ModelSource::Ask(request) => {
            let request =
                before.map_or_else(|| request.clone(), |choice| request.clone().completed_with(choice));
            let found = search.find(&request)?;
            let key = found.client.auth.key().map(str::to_owned);
            // A password inside the address is a secret like the key.
            let mut known = search.known.to_vec();
            let inside = secrets_in_address(&found.client.base_url);
            known.extend(inside.into_iter().map(|secret| ("BASE_URL".to_owned(), secret)));
            let client = Arc::new(HttpClient::new(found.client));
            let client = Arc::new(GuardedClient::new(client, secrets(key.clone(), &known)));
            ReadyModel {
                client,
                choice: found.choice,
                toolset: toolset.unwrap_or(Toolset::Lathe),
                key,
                known,
            }
        }
    };
    if let Some(path) = record {
        let real = output_path(path, search.workspace)
            .map_err(|source| CassetteError::Write { path: path.display().to_string(), source })?;
        let recording = RecordingClient::create(&real, ready.toolset, ready.client, Arc::clone(variables))?;
        ready.client = Arc::new(recording);
    }
    Ok(ready)
}
