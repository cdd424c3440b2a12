//! Plans for a server: made from the configuration files, the flags of `serve` and the wish of a client.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_config::{Config, NamedFile, ValueSource};
use lathe_host::{
    AddressFrom, Attended, CUSTOM_PROVIDER, Host, ModelRequest, ModelSource, OnlinePlan, Overrides,
    SessionPlan, same_address,
};
use lathe_protocol::{NetworkReach, SessionOptions};
use serde_json::{Value, json};

use crate::endpoints::{KnownEndpoint, endpoints};
use crate::given::GivenOptions;
use crate::model::CassetteWish;
use crate::session::Wish;
use crate::settle::{Absent, ConfigPlace, Settled, settle};

/// A configuration file that a client named, as it was read when it was checked.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigText {
    pub path: PathBuf,
    pub text: String,
}

impl std::fmt::Debug for ConfigText {
    /// The text may hold keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfigText").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The planner as a server holds it.
pub trait Plans: Send + Sync {
    fn plan(&self, wish: &Wish) -> Result<SessionPlan, String>;
    /// The plan by which a session that was left is resumed. It asks the same model as before.
    fn overrides(&self, folder: &Path, before: &SessionOptions) -> Result<Overrides, String>;
    /// The place of documents.
    fn online(&self) -> Result<OnlinePlan, String> {
        Ok(OnlinePlan::default())
    }
    /// Reach of a model that a client names. An address of the owner's may be anywhere; the rest is outside.
    fn reach(&self, base_url: &str) -> NetworkReach {
        let _ = base_url;
        NetworkReach::Outside
    }
    /// Owner of an address that came over the wire for this provider. Where the configuration has the same address it
    /// is the owner there, with the owner's key for it; otherwise it is the wire, which has only the key it sent.
    fn named_address(&self, provider: &str, base_url: &str) -> (AddressFrom, Option<String>) {
        let _ = (provider, base_url);
        (AddressFrom::Wire, None)
    }
    /// The settings of a folder, each with its source; secrets are not in it.
    fn settings(&self, folder: &Path) -> Result<Value, String>;
}

/// Plans made from the configuration files, the flags of `serve` and the wish of a client.
pub struct Configured {
    pub host: Arc<Host>,
    /// The flags of `serve`.
    pub flags: GivenOptions,
    pub cassette: Option<CassetteWish>,
    /// Hosts with ports that clients may name as a model's address, on whatever network they are.
    pub model_hosts: Vec<String>,
}

impl Configured {
    fn settled(
        &self,
        folder: &Path,
        file: Option<&ConfigText>,
        given: &GivenOptions,
    ) -> Result<Settled, String> {
        let file = file.map(|file| NamedFile::Read { path: &file.path, text: &file.text });
        settle(&self.host, ConfigPlace { folder, file }, given, &Absent).map_err(|error| error.to_string())
    }

    /// The settings of the user's own files and the flags, independent of the folder in which the server was started.
    fn owner_settings(&self) -> Result<Settled, String> {
        self.settled(self.host.home().path(), None, &self.flags)
    }

    /// Options of a client, and for all that it leaves out, the flags of `serve`.
    fn joined(&self, wished: &GivenOptions) -> GivenOptions {
        let mut joined = wished.clone();
        let ours = &self.flags;
        // An address and a key of the flags are for the provider of the flags.
        let provider = wished.text("model.provider");
        let is_ours = provider.is_none_or(|provider| {
            ours.text("model.provider").is_some_and(|ours| ours.eq_ignore_ascii_case(provider))
        });
        let has_address = wished.has("model.base_url");
        for (key, counts) in [
            ("model.provider", true),
            ("model.name", true),
            ("model.base_url", is_ours),
            ("model.api_key", is_ours && !has_address),
        ] {
            if let Some(value) = ours.value(key).filter(|_| counts && !wished.has(key)) {
                joined.set(key, value.clone());
            }
        }
        joined
    }

    /// Removes from a request every key that does not belong to its address. An address that a client names, directly
    /// or in a file that it names and may have written, is one of the wire; all others are the owner's.
    fn guard_key(&self, request: &mut ModelRequest, config: &Config, wish: &Wish) {
        let of_file = |key: &str| {
            let source = config.origin(key).map(|origin| &origin.source);
            wish.config_file.as_ref().is_some_and(|file| match source {
                Some(ValueSource::Trae(_)) => true,
                Some(ValueSource::User(path)) => file.path == *path,
                Some(
                    ValueSource::Default
                    | ValueSource::Project(_)
                    | ValueSource::Environment(_)
                    | ValueSource::Flag(_),
                )
                | None => false,
            })
        };
        let given = &wish.given;
        let names_address = given.has("model.base_url");
        let (url_of_file, key_of_file) = (of_file("model.base_url"), of_file("model.api_key"));
        if let Some(url) = request.base_url.clone().filter(|_| names_address || url_of_file) {
            let provider = request.provider.clone().unwrap_or_default();
            let (from, owners) = self.named_address(&provider, &url);
            request.reach = self.reach(&url);
            request.address_from = from;
            let came_with = given.has("model.api_key") || (key_of_file && !names_address);
            request.api_key = request.api_key.take().filter(|_| came_with).or(owners);
            return;
        }
        // `LATHE_BASE_URL` and `LATHE_API_KEY` are for the provider that the owner chose.
        let own = self.settled(&wish.folder, None, &self.flags);
        let own = own.ok().and_then(|own| own.config.settings.provider_kind().map(str::to_lowercase));
        if given.has("model.provider") && own != request.provider.as_ref().map(|name| name.to_lowercase()) {
            let is_ours = |key: &str, variable: &str| {
                matches!(config.origin(key).map(|origin| &origin.source),
                    Some(ValueSource::Environment(name)) if name == variable)
            };
            if is_ours("model.base_url", "LATHE_BASE_URL") {
                request.base_url = None;
            }
            if is_ours("model.api_key", "LATHE_API_KEY") && !given.has("model.api_key") {
                request.api_key = None;
            }
        }
    }
}

impl Plans for Configured {
    fn plan(&self, wish: &Wish) -> Result<SessionPlan, String> {
        let settled = self.settled(&wish.folder, wish.config_file.as_ref(), &self.joined(&wish.given))?;
        // A client that names a model of its own does not want the server's cassette.
        let names_model =
            ["model.base_url", "model.provider", "model.name"].iter().any(|key| wish.given.has(key));
        let cassette = self.cassette.clone().filter(|_| !names_model);
        let mut plan = settled.plan(&Wish { cassette, ..wish.clone() });
        // The cassette answers every request, regardless of the model that the client names.
        if self.cassette.is_some() {
            (plan.extras.lakeview.source, plan.extras.review.source) = (None, None);
        }
        if let ModelSource::Ask(request) = &mut plan.source {
            self.guard_key(request, &settled.config, wish);
        }
        Ok(plan)
    }

    fn overrides(&self, folder: &Path, before: &SessionOptions) -> Result<Overrides, String> {
        let settled = self.settled(folder, None, &self.flags)?;
        let wish = Wish { cassette: self.cassette.clone(), attended: Attended::Person, ..Wish::task(folder) };
        Ok(settled.overrides(&wish, before, None))
    }

    fn online(&self) -> Result<OnlinePlan, String> {
        Ok(self.settled(self.host.home().path(), None, &GivenOptions::default())?.extras().online)
    }

    fn reach(&self, base_url: &str) -> NetworkReach {
        let Some(asked) = host_and_port(base_url) else { return NetworkReach::Outside };
        let named = self.model_hosts.iter().filter_map(|host| host_and_port(&format!("http://{host}")));
        // A project names no addresses.
        let settings = self.owner_settings().ok().map(|settled| settled.config.settings);
        let configured = settings.iter().flat_map(|settings| {
            let kept = settings.providers.values().filter_map(|provider| provider.base_url.as_deref());
            let models = settings.models.values().filter_map(|model| model.base_url.as_deref());
            settings.model.base_url.as_deref().into_iter().chain(kept).chain(models).filter_map(host_and_port)
        });
        match named.chain(configured).any(|known| known == asked) {
            true => NetworkReach::Anywhere,
            false => NetworkReach::Outside,
        }
    }

    fn named_address(&self, provider: &str, base_url: &str) -> (AddressFrom, Option<String>) {
        let Ok(settings) = self.owner_settings().map(|settled| settled.config.settings) else {
            return (AddressFrom::Wire, None);
        };
        let provider = if provider.is_empty() { CUSTOM_PROVIDER } else { provider };
        let is_it = |known: &KnownEndpoint| {
            let is_there = |url: &String| same_address(url, base_url) && !settings.foreign.has_address(url);
            known.kind.eq_ignore_ascii_case(provider) && known.model.base_url.as_ref().is_some_and(is_there)
        };
        match endpoints(&settings).into_iter().find(is_it) {
            Some(known) => (AddressFrom::Owner, known.model.api_key.map(|key| key.expose().to_owned())),
            None => (AddressFrom::Wire, None),
        }
    }

    fn settings(&self, folder: &Path) -> Result<Value, String> {
        let config = self.settled(folder, None, &self.flags)?.config;
        let rows = config.rows();
        let rows = rows
            .iter()
            .map(|row| json!({ "key": row.key, "value": row.value, "source": row.source.to_string() }));
        Ok(rows.collect())
    }
}

/// Host and port of an address, as they are compared.
fn host_and_port(url: &str) -> Option<(String, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    // User information before the host is not compared, so such an address has no owner.
    if authority.contains('@') {
        return None;
    }
    let usual = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => (authority, usual),
    };
    Some((host.trim_end_matches('.').to_ascii_lowercase(), port))
}
