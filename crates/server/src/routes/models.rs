//! Models under names of the user's own. A key goes in and never comes out: it is in the key store of the host, and
//! the file here says only that there is one.
//!
//! A key is stored under a name made of the model's name and of the address it is for, and all of a change happens
//! under one lock. So a key is found only with the address it was given for, even if two admins write at the same
//! time.

use std::collections::BTreeMap;

use axum::extract::State;
use lathe_host::{ModelRequest, ModelSource, Overrides, address_refusal, blocking, server_model_name};
use lathe_plan::GivenOptions;
use lathe_protocol::{Digest, ModelChoice, NetworkReach, plain_address};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fields;
use crate::access::Role;
use crate::api::{Api, ApiResult, Endpoint, Input, Json, PathOf, parse};
use crate::app::App;
use crate::error::ApiError;
use crate::settings::{good_name, unknown_setting};

const FILE: &str = "models.json";
const MODELS_MAX: usize = 200;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredModel {
    provider: String,
    model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_url: Option<String>,
}

type StoredModels = BTreeMap<String, StoredModel>;

#[derive(Debug, Deserialize, JsonSchema)]
struct ModelInput {
    provider: String,
    model: String,
    #[serde(default)]
    base_url: Option<String>,
    /// Stored, and never returned. If it is left out, the stored one stays.
    #[serde(default)]
    api_key: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ModelRow {
    name: String,
    provider: String,
    model: String,
    base_url: Option<String>,
    api_key_set: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ProviderRow {
    name: &'static str,
    /// The place of its key: `environment`, `stored`, `not_needed`, `missing`.
    key: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Models {
    models: Vec<ModelRow>,
    /// The built-in entries.
    providers: Vec<ProviderRow>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Tested {
    ok: bool,
    detail: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Deleted {
    deleted: bool,
}

pub(crate) fn add(api: &mut Api) {
    api.add(Endpoint::get("/api/models", "The models and providers").response::<Models>(), list)
        .add(Endpoint::get("/api/models/{name}", "One model").response::<ModelRow>(), get)
        .add(
            Endpoint::put("/api/models/{name}", "Store a model under a name")
                .role(Role::Admin)
                .body::<ModelInput>()
                .response::<ModelRow>(),
            put,
        )
        .add(
            Endpoint::post("/api/models/{name}/test", "Test a model with a small question")
                .role(Role::Admin)
                .response::<Tested>(),
            test,
        )
        .add(
            Endpoint::delete("/api/models/{name}", "Delete a model and its key")
                .role(Role::Admin)
                .response::<Deleted>(),
            delete,
        );
}

/// The name of a model's key in the key store. It holds the provider and the address: a key belongs to the place it was
/// given for.
fn key_name(name: &str, kept: &StoredModel) -> String {
    // Two names never share a key: a character that is not a letter or digit is written by its number.
    let word: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_lowercase() || c.is_ascii_digit() {
                c.to_string()
            } else {
                format!("_{:x}_", u32::from(c))
            }
        })
        .collect();
    let place = format!("{}\n{}", kept.provider, kept.base_url.as_deref().unwrap_or_default());
    format!("server_model_{word}_at_{}", Digest::of(place.as_bytes()).short())
}

fn row(app: &App, name: &str, kept: &StoredModel) -> Result<ModelRow, ApiError> {
    Ok(ModelRow {
        name: name.to_owned(),
        provider: kept.provider.clone(),
        model: kept.model.clone(),
        base_url: kept.base_url.as_deref().map(plain_address),
        api_key_set: app.host.models().stored_key(&key_name(name, kept))?.is_some(),
    })
}

fn stored_model(app: &App, name: &str) -> Result<StoredModel, ApiError> {
    let kept: StoredModels = app.settings.read(FILE)?;
    kept.get(name).cloned().ok_or_else(|| ApiError::not_found("There is no model of that name."))
}

/// Chooses the model of this name. An admin has stored its address and key, so every client that may run may use it.
pub(crate) fn choose(app: &App, name: &str, given: &mut GivenOptions) -> Result<(), ApiError> {
    let all: StoredModels = app.settings.read(FILE)?;
    let kept =
        all.get(name).cloned().ok_or_else(|| unknown_setting("model_config_name", name, all.keys()))?;
    let key = app.host.models().stored_key(&key_name(name, &kept))?;
    for (option, value) in [
        ("model.api_key", key),
        ("model.provider", Some(kept.provider)),
        ("model.name", Some(kept.model)),
        ("model.base_url", kept.base_url),
    ] {
        match value {
            Some(value) => given.set(option, value),
            None => given.unset(option),
        }
    }
    Ok(())
}

/// Sets the model of a resumed session, if it is one of these: its key is not in the journal.
///
/// A session of a stored model has recorded the name, and gets the key of that model and of no other. A session that
/// has not is given the keys of models like its own: it takes the key that it had, or none.
pub(crate) fn restore_model(
    app: &App,
    choice: &ModelChoice,
    overrides: &mut Overrides,
) -> Result<(), ApiError> {
    let ModelSource::Ask(request) = &mut overrides.source else { return Ok(()) };
    let all: StoredModels = app.settings.read(FILE)?;
    if let Some(name) = server_model_name(choice) {
        let kept =
            all.get(name).filter(|kept| is_model_of(kept, choice)).ok_or_else(|| no_longer_stored(name))?;
        return use_stored(app, name, kept, request);
    }
    for (name, kept) in all.iter().filter(|(_, kept)| is_model_of(kept, choice)) {
        request.other_keys.extend(app.host.models().stored_key(&key_name(name, kept))?);
    }
    Ok(())
}

/// The refusal of a session whose model is no longer stored: no other key is for it.
fn no_longer_stored(name: &str) -> ApiError {
    let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    ApiError::conflict(format!(
        "This session asks the model that was stored as `{name}`, which is gone or has another address, provider or model by now. Store it again under that name, with its key, or begin another session."
    ))
}

fn is_model_of(kept: &StoredModel, choice: &ModelChoice) -> bool {
    kept.provider.to_lowercase() == choice.provider
        && kept.model == choice.model
        && kept.base_url.as_deref().map(plain_address) == choice.base_url
}

/// Makes the stored model of this name the model of a new session: without an address of its own it is at its
/// provider's, regardless of settings for other models.
pub(crate) fn use_named(app: &App, name: &str, request: &mut ModelRequest) -> Result<(), ApiError> {
    let kept = stored_model(app, name)?;
    use_stored(app, name, &kept, request)
}

/// Makes a request use a stored model: its address, and the key that was given for it.
fn use_stored(app: &App, name: &str, kept: &StoredModel, request: &mut ModelRequest) -> Result<(), ApiError> {
    request.provider = Some(kept.provider.clone());
    request.model = Some(kept.model.clone());
    request.base_url.clone_from(&kept.base_url);
    let owners = kept.base_url.as_ref().map(|url| app.plans.named_address(&kept.provider, url));
    let (from, key) = owners.unwrap_or_default();
    request.address_from = from;
    request.server_model = Some(name.to_owned());
    request.api_key = app.host.models().stored_key(&key_name(name, kept))?.or(key);
    Ok(())
}

/// Refuses an address that a client over the wire may not make this server connect to.
pub(crate) fn check_address(app: &App, base_url: &str) -> Result<NetworkReach, ApiError> {
    let reach = app.plans.reach(base_url);
    match address_refusal(reach, base_url) {
        None => Ok(reach),
        Some(reason) => Err(ApiError::unprocessable(format!(
            "The model's address is refused: {reason}. Whoever starts the server may allow it: `lathe serve --model-host HOST:PORT`, or a configuration file that names it."
        ))),
    }
}

async fn list(State(app): State<App>) -> ApiResult<Models> {
    blocking(|| {
        let kept: StoredModels = app.settings.read(FILE)?;
        let providers =
            app.host.models().key_states()?.into_iter().map(|(name, key)| ProviderRow { name, key });
        Ok(Json(Models {
            models: kept.iter().map(|(name, kept)| row(&app, name, kept)).collect::<Result<_, _>>()?,
            providers: providers.collect(),
        }))
    })
}

async fn get(State(app): State<App>, PathOf(name): PathOf<String>) -> ApiResult<ModelRow> {
    blocking(|| Ok(Json(row(&app, &name, &stored_model(&app, &name)?)?)))
}

async fn put(
    State(app): State<App>,
    PathOf(name): PathOf<String>,
    Input(given): Input<Map<String, Value>>,
) -> ApiResult<ModelRow> {
    good_name(&name)?;
    let given = Value::Object(given);
    // A stored entry is used later, where no one reads warnings.
    if let Some(unknown) = fields::unknown_of_stored::<ModelInput>(&given).into_iter().next() {
        return Err(ApiError::unprocessable(unknown));
    }
    let asked: ModelInput = parse(given.to_string().as_bytes())?;
    let ModelInput { provider, model, base_url, api_key } = asked;
    let wrong =
        |text: &str| text.trim().is_empty() || text.len() > 1000 || text.chars().any(char::is_control);
    if wrong(&provider) || wrong(&model) || base_url.as_deref().is_some_and(wrong) {
        return Err(ApiError::unprocessable("`provider`, `model` and `base_url` are one line each."));
    }
    if base_url.as_ref().is_some_and(|url| !url.starts_with("http://") && !url.starts_with("https://")) {
        return Err(ApiError::unprocessable("`base_url` begins with http:// or https://."));
    }
    if let Some(url) = &base_url {
        no_secret_inside(url)?;
        check_address(&app, url)?;
    }
    blocking(|| {
        let kept = StoredModel { provider, model, base_url };
        // Reading, the key and writing are one change: two writers cannot mix.
        app.settings.change(FILE, |all: &mut StoredModels| {
            if all.len() >= MODELS_MAX && !all.contains_key(&name) {
                return Err(ApiError::conflict(format!("There are {MODELS_MAX} models already.")));
            }
            let now = key_name(&name, &kept);
            if let Some(before) =
                all.get(&name).map(|before| key_name(&name, before)).filter(|before| *before != now)
            {
                app.host.models().logout(&before)?;
            }
            if let Some(key) = api_key.filter(|key| !key.trim().is_empty()) {
                app.host.models().login(&now, &key)?;
            }
            let shown = row(&app, &name, &kept)?;
            all.insert(name, kept);
            Ok(Json(shown))
        })
    })
}

/// Refuses an address with a user, a password or a query: a key has a field of its own, which is never shown.
pub(crate) fn no_secret_inside(base_url: &str) -> Result<(), ApiError> {
    if plain_address(base_url) == base_url {
        return Ok(());
    }
    Err(ApiError::unprocessable(
        "`base_url` is a scheme, a host, a port and a path: no user, no password, no query. The key belongs into `api_key`.",
    ))
}

async fn test(State(app): State<App>, PathOf(name): PathOf<String>) -> ApiResult<Tested> {
    let kept = blocking(|| stored_model(&app, &name))?;
    let reach = kept.base_url.as_ref().map_or(Ok(NetworkReach::Anywhere), |url| check_address(&app, url));
    let reach = match reach {
        Ok(reach) => reach,
        Err(error) => return Ok(Json(Tested { ok: false, detail: error.detail })),
    };
    let mut request = ModelRequest { reach, ..ModelRequest::default() };
    blocking(|| use_stored(&app, &name, &kept, &mut request))?;
    let (ok, detail) = app.host.models().test_model(&request).await;
    Ok(Json(Tested { ok, detail }))
}

async fn delete(State(app): State<App>, PathOf(name): PathOf<String>) -> ApiResult<Deleted> {
    blocking(|| {
        app.settings.change(FILE, |all: &mut StoredModels| {
            let Some(kept) = all.remove(&name) else {
                return Err(ApiError::not_found("There is no model of that name."));
            };
            app.host.models().logout(&key_name(&name, &kept))?;
            Ok(Json(Deleted { deleted: true }))
        })
    })
}
