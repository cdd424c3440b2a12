//! The choice of the model: flags and configuration first, then keys in the environment, then servers on this
//! machine. `keys.rs` decides which key goes to which address.

use lathe_model::{Address, ClientOptions, Form, Outage, Params, Patience, ToolForm, takes_text_only};
use lathe_protocol::{KeyMark, ModelChoice, NetworkReach, plain_address};

use crate::error::{HostError, KeySource};
use crate::models::keys::{
    AddressFrom, Env, FROM_ENTRY, FROM_STORE, FROM_VARIABLE, GIVEN, KeyRing, ModelEndpoint, NotTheSameKey,
    OfferedKeys, key_for,
};
use crate::models::local;
use crate::models::providers::{CUSTOM, PROVIDERS, Provider, provider, variable};

/// The version of Azure's interface, unless one is named.
const AZURE_VERSION: &str = "2024-10-21";

/// The provider of a session that was answered from a cassette.
pub(crate) const RECORDED: &str = "cassette";

/// The reason why a server at this address may not be contacted with such a reach; none if it may.
pub fn address_refusal(reach: NetworkReach, base_url: &str) -> Option<String> {
    lathe_model::address_refusal(reach, base_url)
}

/// Tells whether a session was answered from a cassette, so that its model cannot be asked again.
pub fn is_recorded_model(choice: &ModelChoice) -> bool {
    choice.provider == RECORDED
}

/// The user's settings for the model.
#[derive(Clone, Default)]
pub struct ModelRequest {
    pub provider: Option<String>,
    pub model: Option<String>,
    pub base_url: Option<String>,
    /// The source that named the address.
    pub address_from: AddressFrom,
    /// The key that came with the address.
    pub api_key: Option<String>,
    /// Other keys of the user. A resumed session gets one of them if it was sent to its address before.
    pub other_keys: Vec<String>,
    /// The source of its key that a resumed session has recorded.
    pub recorded_key: Option<KeyMark>,
    /// The name under which a server stores this model. A session records it in place of its key's source.
    pub server_model: Option<String>,
    pub patience: Patience,
    /// The version of the interface (Azure).
    pub api_version: Option<String>,
    pub params: Params,
    pub outage: Outage,
    /// The networks that the server may be on.
    pub reach: NetworkReach,
}

impl std::fmt::Debug for ModelRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key is left out.
        let Self { provider, model, base_url, .. } = self;
        f.debug_struct("ModelRequest")
            .field("provider", provider)
            .field("model", model)
            .field("base_url", &base_url.as_deref().map(plain_address))
            .finish_non_exhaustive()
    }
}

impl ModelRequest {
    /// The request completed with an earlier session's choice where it says nothing itself.
    pub(crate) fn completed_with(self, choice: &ModelChoice) -> Self {
        // A recorded model cannot be asked again.
        if is_recorded_model(choice) {
            return self;
        }
        let recorded = choice.base_url.clone().filter(|_| self.provider.is_none() && self.base_url.is_none());
        let address_from = match &recorded {
            Some(_) => AddressFrom::Session(choice.key.clone()),
            // The address is new and the provider comes from the journal: the provider's key is not sent there.
            None if self.provider.is_none() && self.base_url.is_some() => AddressFrom::Unnamed,
            None => self.address_from,
        };
        // The mark belongs to the recorded provider; at another address it fits no key.
        let is_same = self.provider.as_ref().is_none_or(|name| name.eq_ignore_ascii_case(&choice.provider));
        Self {
            recorded_key: choice.key.clone().filter(|_| is_same),
            provider: self.provider.or_else(|| Some(choice.provider.clone())),
            model: self.model.or_else(|| Some(choice.model.clone())),
            base_url: recorded.or(self.base_url),
            address_from,
            ..self
        }
    }
}

/// A model that can be asked.
pub(crate) struct FoundModel {
    pub(crate) choice: ModelChoice,
    pub(crate) client: ClientOptions,
}

/// A provider, under the name that the user gave it.
struct ChosenProvider {
    name: String,
    provider: &'static Provider,
    /// A model that the server offers, if it was asked.
    offers: Option<String>,
}

pub(crate) fn find_model(request: &ModelRequest, ring: &KeyRing<'_>) -> Result<FoundModel, HostError> {
    let env = ring.env;
    let ChosenProvider { name, provider, offers } = choose_provider(request, ring)?;
    let (base_url, from) = match &request.base_url {
        Some(url) => (Some(url.clone()), &request.address_from),
        None => (url_of(provider, &name, env), &AddressFrom::Owner),
    };
    let url = match &base_url {
        Some(url) => url.clone(),
        None if name == "azure" => {
            return Err(HostError::BadModel("base_url is required for AzureClient".to_owned()));
        }
        None if provider.base_url.is_empty() => return Err(HostError::UnknownProvider(name)),
        None => provider.base_url.to_owned(),
    };
    let endpoint = ModelEndpoint { address: &url, from };
    let offered = OfferedKeys {
        given: request.api_key.as_deref(),
        others: &request.other_keys,
        recorded: request.recorded_key.as_ref(),
    };
    let key = key_for(&endpoint, provider, &name, &offered, ring).map_err(|NotTheSameKey| {
        let source_of_key = source_of_key(from, &name);
        HostError::OtherAddress { address: plain_address(&url), provider: name.clone(), source_of_key }
    })?;
    // A user's own server often needs no key.
    if key.is_none() && base_url.is_none() && provider.needs_key {
        return Err(HostError::NoKey { variable: variable(&name, "API_KEY"), provider: name });
    }
    if request.model.as_ref().is_some_and(|model| model.trim().is_empty()) {
        return Err(HostError::NoModelName);
    }
    let model = request.model.clone().or(offers).ok_or(HostError::NoModelName)?;
    let address = if name == "azure" {
        let version = request.api_version.clone().or_else(|| env("AZURE_API_VERSION"));
        let version = version.or_else(|| env("OPENAI_API_VERSION"));
        Address::Azure { api_version: version.unwrap_or_else(|| AZURE_VERSION.to_owned()) }
    } else {
        Address::Usual
    };
    let images = request.params.images.or_else(|| takes_text_only(&model).then_some(false));
    let params = Params { quirks: provider.quirks, images, ..request.params.clone() };
    let mark = ring.marks.mark(&url, key.as_ref()).map(|mark| match &request.server_model {
        Some(name) => KeyMark { source: format!("{FROM_ENTRY}{name}"), ..mark },
        None => mark,
    });
    let client = ClientOptions {
        form: Form::new(provider.wire, params),
        base_url: url,
        model: model.clone(),
        address,
        auth: provider.auth(key.map(|key| key.value)),
        headers: headers(&name, env),
        key_hint: key_hint(&name, provider, from),
        patience: request.patience.clone(),
        outage: request.outage,
        reach: request.reach,
    };
    client.check().map_err(HostError::BadModel)?;
    // An address may hold a password, which is not stored with the session.
    let base_url = base_url.as_deref().map(plain_address);
    Ok(FoundModel { choice: ModelChoice { provider: name, model, base_url, key: mark }, client })
}

/// The source of a session's key, from what the session has recorded.
fn source_of_key(from: &AddressFrom, provider: &str) -> KeySource {
    let mark = match from {
        AddressFrom::Session(mark) => mark.as_ref(),
        AddressFrom::Owner | AddressFrom::Unnamed | AddressFrom::Wire | AddressFrom::Project => None,
    };
    let Some(mark) = mark else { return KeySource::Unknown };
    let source: String = mark.source.chars().filter(|c| !c.is_control()).take(80).collect();
    match (source.strip_prefix(FROM_VARIABLE), source.strip_prefix(FROM_STORE)) {
        (Some(variable), _) if provider == CUSTOM.name => KeySource::ProvidersVariable(variable.to_owned()),
        (Some(variable), _) => KeySource::Variable(variable.to_owned()),
        (None, Some(_)) => KeySource::Store,
        (None, None) if source == GIVEN => KeySource::Given,
        (None, None) => KeySource::Named(source),
    }
}

/// The advice about a missing or wrong key.
fn key_hint(name: &str, known: &Provider, from: &AddressFrom) -> String {
    if name == CUSTOM.name {
        return "give --api-key or set LATHE_API_KEY; a provider's own key is sent to another address only with \
                --provider NAME"
            .to_owned();
    }
    if *from == AddressFrom::Project {
        return "the address stands in a Trae file of the project, which gets only a key from that file or from the \
                `.env` next to it; to send another one, name the file with --config-file"
            .to_owned();
    }
    if *from == AddressFrom::Unnamed {
        return format!(
            "give --api-key or set LATHE_API_KEY; the key of {name} is sent to another address only with --provider {name}"
        );
    }
    match provider(name).is_some() || name == known.name {
        true => format!(
            "set {}, store one with `lathe auth login {name}`, or give --api-key",
            variable(name, "API_KEY")
        ),
        false => format!(
            "give --api-key, store one with `lathe auth login {name}`, or name its variable in `[providers.{name}] key_variable`"
        ),
    }
}

fn choose_provider(request: &ModelRequest, ring: &KeyRing<'_>) -> Result<ChosenProvider, HostError> {
    if let Some(name) = &request.provider {
        let name = name.to_lowercase();
        let known = provider(&name).unwrap_or(&CUSTOM);
        return Ok(ChosenProvider { name, provider: known, offers: None });
    }
    if request.base_url.is_some() {
        return Ok(ChosenProvider { name: CUSTOM.name.to_owned(), provider: &CUSTOM, offers: None });
    }
    let has_key = |provider: &&Provider| !ring.find(provider, provider.name).is_empty();
    if let Some(provider) = PROVIDERS.iter().find(has_key) {
        return Ok(ChosenProvider { name: provider.name.to_owned(), provider, offers: None });
    }
    let local = PROVIDERS.iter().filter(|provider| provider.is_local()).find_map(|provider| {
        let url = url_of(provider, provider.name, ring.env).unwrap_or_else(|| provider.base_url.to_owned());
        local::offered_models(&url).into_iter().next().map(|model| (provider, model))
    });
    let (provider, model) = local.ok_or(HostError::NoModel)?;
    Ok(ChosenProvider { name: provider.name.to_owned(), provider, offers: Some(model) })
}

fn url_of(provider: &Provider, name: &str, env: Env<'_>) -> Option<String> {
    let mut names = vec![variable(name, "BASE_URL")];
    names.extend(provider.url_variables());
    let url = names.iter().find_map(|name| env(name))?;
    // Ollama's own variable leaves out the scheme.
    Some(if url.contains("://") { url } else { format!("http://{url}") })
}

/// The headers by which OpenRouter identifies its clients.
fn headers(provider: &str, env: Env<'_>) -> Vec<(String, String)> {
    if provider != "openrouter" {
        return Vec::new();
    }
    let header = |name: &str, variable: &str| env(variable).map(|value| (name.to_owned(), value));
    header("HTTP-Referer", "OPENROUTER_SITE_URL")
        .into_iter()
        .chain(header("X-Title", "OPENROUTER_SITE_NAME"))
        .collect()
}

impl ModelRequest {
    /// Describes the tools in the prompt, for models that cannot call tools.
    pub fn describe_tools(&mut self) {
        self.params.tools = ToolForm::Described;
    }
}

#[cfg(test)]
mod tests {
    use lathe_model::Wire;

    use super::*;
    use crate::models::auth::Stored;
    use crate::models::keys::Marks;

    fn found(request: ModelRequest, env: &[(&str, &str)]) -> Result<FoundModel, &'static str> {
        let env =
            |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let (stored, marks) = (Stored::new(), Marks::none());
        find_model(&request, &KeyRing { env: &env, stored: &stored, marks: &marks })
            .map_err(|error| error.code())
    }

    fn seen(
        found: Result<FoundModel, &'static str>,
    ) -> Result<(String, String, Option<String>), &'static str> {
        found.map(|found| {
            (found.choice.provider, found.client.base_url, found.client.auth.key().map(str::to_owned))
        })
    }

    fn request(provider: Option<&str>, base_url: Option<&str>, api_key: Option<&str>) -> ModelRequest {
        let own = |text: Option<&str>| text.map(str::to_owned);
        ModelRequest {
            provider: own(provider),
            model: Some("m".into()),
            base_url: own(base_url),
            api_key: own(api_key),
            ..ModelRequest::default()
        }
    }

    #[test]
    fn flags_come_before_the_environment_and_nothing_is_guessed() {
        let own = |text: &str| text.to_owned();
        let seen_of = |request, env: &[(&str, &str)]| seen(found(request, env));
        assert_eq!(seen_of(request(Some("openai"), None, None), &[]), Err("no-key"));
        assert_eq!(seen_of(request(Some("nobody"), None, None), &[]), Err("unknown-provider"));
        assert_eq!(seen_of(request(Some("azure"), None, Some("k")), &[]), Err("bad-model"));
        assert_eq!(
            seen_of(request(None, None, None), &[("OPENROUTER_API_KEY", "k")]),
            Ok((own("openrouter"), own("https://openrouter.ai/api/v1"), Some(own("k"))))
        );
        assert_eq!(
            seen_of(
                request(Some("openai"), Some("http://x/v1"), Some("flag")),
                &[("OPENAI_API_KEY", "env"), ("OPENAI_BASE_URL", "http://y")]
            ),
            Ok((own("openai"), own("http://x/v1"), Some(own("flag"))))
        );
        assert_eq!(
            seen_of(request(Some("nobody"), None, None), &[("NOBODY_BASE_URL", "http://y")]),
            Ok((own("nobody"), own("http://y"), None))
        );
        assert_eq!(
            seen_of(request(Some("ollama"), None, None), &[("OLLAMA_HOST", "10.0.0.1:11434")]),
            Ok((own("ollama"), own("http://10.0.0.1:11434"), None))
        );
    }

    #[test]
    fn each_provider_speaks_its_wire_and_a_bare_address_speaks_chat() {
        let wire = |name: &str| {
            found(request(Some(name), None, Some("k")), &[]).ok().map(|found| found.client.form.wire)
        };
        assert_eq!(wire("openai"), Some(Wire::Responses));
        assert_eq!((wire("anthropic"), wire("minimax")), (Some(Wire::Messages), Some(Wire::Messages)));
        assert_eq!((wire("google"), wire("gemini")), (Some(Wire::Gemini), Some(Wire::Gemini)));
        assert_eq!((wire("ollama"), wire("deepseek")), (Some(Wire::Ollama), Some(Wire::Chat)));
        let bare = found(request(None, Some("http://x/v1"), None), &[("OPENAI_API_KEY", "k")]).unwrap();
        assert_eq!((bare.client.form.wire, bare.choice.provider.as_str()), (Wire::Chat, "custom"));
        assert_eq!(bare.client.auth.key(), None);
    }

    #[test]
    fn azure_has_a_version_and_openrouter_is_told_who_asks() {
        let azure = found(request(Some("azure"), Some("http://x"), Some("k")), &[]).unwrap();
        assert_eq!(azure.client.address, Address::Azure { api_version: AZURE_VERSION.to_owned() });
        let env = [("OPENROUTER_SITE_URL", "http://me"), ("OPENROUTER_SITE_NAME", "Me")];
        let router = found(request(Some("openrouter"), None, Some("k")), &env).unwrap();
        let own = |text: &str| text.to_owned();
        assert_eq!(
            router.client.headers,
            [(own("HTTP-Referer"), own("http://me")), (own("X-Title"), own("Me"))]
        );
    }

    #[test]
    fn a_model_without_a_name_is_an_error() {
        let request = ModelRequest { base_url: Some("http://x".into()), ..ModelRequest::default() };
        assert_eq!(found(request, &[]).err(), Some("no-model-name"));
    }
}
