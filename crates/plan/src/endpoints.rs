//! The models that the settings know, each with its address and key, and the one of them that a resumed session asks.
//!
//! A session records its provider, model and address, so `resume` needs no flag that `run` was given. Only the key is
//! not recorded: it is searched for in the settings, by the same provider and address, and then in the places of
//! `host`'s `keys.rs`, which sends it only where its owner sent it.

use lathe_config::{ModelSection, Settings};
use lathe_host::{AddressFrom, CUSTOM_PROVIDER, ModelRequest, ModelSource, is_recorded_model, same_address};
use lathe_protocol::{ModelChoice, plain_address};

use crate::given::GivenOptions;
use crate::model::{self, CassetteWish, source};

/// A model of the settings.
pub(crate) struct KnownEndpoint {
    /// The provider, as a session records it.
    pub(crate) kind: String,
    pub(crate) model: ModelSection,
}

/// The models of the settings: the one of the task first, then the entries.
pub(crate) fn endpoints(settings: &Settings) -> Vec<KnownEndpoint> {
    let kind = |name: Option<&String>| {
        let entry = name.and_then(|name| settings.providers.get(name));
        let kind = entry.and_then(|entry| entry.provider.clone()).or_else(|| name.cloned());
        kind.unwrap_or_else(|| CUSTOM_PROVIDER.to_owned()).to_lowercase()
    };
    let models = settings.models.keys().filter_map(|name| settings.model_named(name));
    let providers = settings.providers.iter().map(|(name, entry)| ModelSection {
        provider: Some(name.clone()),
        api_key: entry.api_key.clone(),
        base_url: entry.base_url.clone(),
        api_version: entry.api_version.clone(),
        ..ModelSection::default()
    });
    std::iter::once(settings.model.clone())
        .chain(models)
        .chain(providers)
        // An address that no setting names belongs to a provider.
        .filter(|model| model.provider.is_some() || model.base_url.is_some())
        .map(|model| KnownEndpoint { kind: kind(model.provider.as_ref()), model })
        .collect()
}

/// The model that a resumed session asks: the recorded one, unless an option names another.
pub(crate) fn resumed_source(
    given: &GivenOptions,
    cassette: Option<&CassetteWish>,
    settings: &Settings,
    before: &ModelChoice,
) -> ModelSource {
    let names_entry = given.text("model.name").is_some_and(|name| settings.models.contains_key(name));
    let names_other = given.has("model.provider") || given.has("model.base_url") || names_entry;
    if cassette.is_some() || names_other || is_recorded_model(before) {
        return source(cassette, settings);
    }
    let known = recorded_endpoint(settings, before);
    let model = known.clone().unwrap_or_default();
    let key = given.text("model.api_key").map(str::to_owned);
    let key = key.or_else(|| settings.foreign.key_of(&model).map(|key| key.expose().to_owned()));
    let others = endpoints(settings).into_iter().map(|known| known.model).chain([settings.model.clone()]);
    // An address that the settings name is the owner's; one that only the journal names is not.
    let named = known.filter(|model| !settings.foreign.has_address_of(model));
    ModelSource::Ask(ModelRequest {
        provider: named.as_ref().map(|_| before.provider.clone()),
        model: given.text("model.name").map(str::to_owned),
        base_url: named.and_then(|model| model.base_url),
        address_from: AddressFrom::Owner,
        api_key: key,
        other_keys: others.filter_map(|model| model.api_key).map(|key| key.expose().to_owned()).collect(),
        api_version: model.api_version.clone(),
        outage: model::outage(settings.run.on_outage),
        ..model::request(&model)
    })
}

/// The model of the settings that a session asked: the same provider at the same address, and the same name if there is one.
fn recorded_endpoint(settings: &Settings, before: &ModelChoice) -> Option<ModelSection> {
    let is_there = |known: &KnownEndpoint| {
        known.kind == before.provider
            && match (&known.model.base_url, &before.base_url) {
                (None, None) => true,
                (Some(known), Some(before)) => plain_address(known) == *before || same_address(known, before),
                (Some(_), None) | (None, Some(_)) => false,
            }
    };
    let mut there: Vec<_> = endpoints(settings).into_iter().filter(is_there).collect();
    there.sort_by_key(|known| known.model.name.as_ref() != Some(&before.model));
    there.into_iter().next().map(|known| known.model)
}
