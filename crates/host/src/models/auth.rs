//! Keys stored by `lathe auth login`: one file in Lathe's folder, for this user only.
//!
//! A stored key counts as the variable of its provider, so all other code deals with variables only.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::HostError;
use crate::files::own::{own_lock, own_text, own_write};
use crate::models::Models;
use crate::models::keys::Marks;
use crate::models::providers::{PROVIDERS, Provider, provider, variable};

/// Keys by the names of their variables.
pub(crate) type Stored = BTreeMap<String, String>;

/// A provider and the source of its key.
pub struct ProviderRow {
    pub provider: &'static Provider,
    pub key: KeyFrom,
    /// Models that a local server offers now.
    pub offers: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyFrom {
    Environment(String),
    Stored,
    NotNeeded,
    Missing,
}

impl Models {
    fn auth_file(&self) -> PathBuf {
        self.home().auth()
    }

    /// The marks by which sessions recognise their keys. The home folder is created for them.
    pub(crate) fn marks(&self) -> Marks {
        let _ = self.home().make();
        Marks::load(&self.home().mark_key())
    }

    /// The stored keys. A file that cannot be read is an error: without it another key might be used, and writing it
    /// again would lose the keys in it.
    pub(crate) fn stored_keys(&self) -> Result<Stored, HostError> {
        let path = self.auth_file();
        let wrong = |reason: String| HostError::Home {
            path: path.clone(),
            reason: format!(
                "{reason}. Correct the file, or remove it and store the keys again with `lathe auth login`"
            ),
        };
        let Some(text) = own_text(&path).map_err(|error| wrong(error.to_string()))? else {
            return Ok(Stored::new());
        };
        // The reason in words of our own: the parser's message would show a key.
        serde_json::from_str(&text)
            .map_err(|error| wrong(format!("line {} is not part of a JSON object of texts", error.line())))
    }

    /// Stores a key for a provider. Only this user can read the file.
    pub fn login(&self, name: &str, key: &str) -> Result<PathBuf, HostError> {
        let key = key.trim();
        let wrong = |reason: &str| HostError::BadKey { provider: name.to_owned(), reason: reason.to_owned() };
        if key.is_empty() {
            return Err(wrong(
                "the standard input is empty; give the key there, as `lathe auth login openai < key.txt`",
            ));
        }
        if key.chars().any(|c| c.is_control() || !c.is_ascii()) {
            return Err(wrong("a key is one line of plain ASCII characters, and this is not"));
        }
        let _one = self.lock_keys()?;
        let mut stored = self.stored_keys()?;
        stored.insert(variable(canonical_name(name), "API_KEY"), key.to_owned());
        self.store(&stored)
    }

    /// Removes a stored key. Returns whether there was one.
    pub fn logout(&self, name: &str) -> Result<bool, HostError> {
        let variable = variable(canonical_name(name), "API_KEY");
        if !self.stored_keys()?.contains_key(&variable) {
            return Ok(false);
        }
        let _one = self.lock_keys()?;
        let mut stored = self.stored_keys()?;
        let had = stored.remove(&variable).is_some();
        if had {
            self.store(&stored)?;
        }
        Ok(had)
    }

    /// The stored key of a provider. It is for clients of models only and must never be shown.
    pub fn stored_key(&self, name: &str) -> Result<Option<String>, HostError> {
        Ok(self.stored_keys()?.remove(&variable(canonical_name(name), "API_KEY")))
    }

    /// The source of each provider's key, in a word. No server is contacted.
    pub fn key_states(&self) -> Result<Vec<(&'static str, &'static str)>, HostError> {
        let stored = self.stored_keys()?;
        let state = |provider: &'static Provider| match key_of(provider, &stored) {
            KeyFrom::Environment(_) => "environment",
            KeyFrom::Stored => "stored",
            KeyFrom::NotNeeded => "not_needed",
            KeyFrom::Missing => "missing",
        };
        Ok(PROVIDERS.iter().map(|provider| (provider.name, state(provider))).collect())
    }

    /// Locks the keys against other writers: two writers that read the same keys would undo each other's change.
    fn lock_keys(&self) -> Result<std::fs::File, HostError> {
        self.home().refuse_inside_session("lathe auth")?;
        self.home().make()?;
        let path = self.auth_file().with_extension("lock");
        own_lock(&path).map_err(|error| write_error(path, &error))
    }

    fn store(&self, stored: &Stored) -> Result<PathBuf, HostError> {
        let path = self.auth_file();
        let wrong = |error: std::io::Error| write_error(path.clone(), &error);
        // A full disk must not lose the other keys.
        let text = serde_json::to_string_pretty(stored).unwrap_or_default();
        own_write(&path, text.as_bytes()).map_err(wrong)?;
        Ok(path)
    }

    /// Every provider, with the source of its key. Servers on this machine are asked for the models they offer.
    pub fn providers(&self) -> Result<Vec<ProviderRow>, HostError> {
        let stored = self.stored_keys()?;
        let rows = PROVIDERS
            .iter()
            .map(|provider| {
                let key = key_of(provider, &stored);
                let offers = if provider.is_local() {
                    crate::models::local::offered_models(provider.base_url)
                } else {
                    Vec::new()
                };
                ProviderRow { provider, key, offers }
            })
            .collect();
        Ok(rows)
    }
}

fn key_of(provider: &Provider, stored: &Stored) -> KeyFrom {
    let variables = provider.key_variables();
    let set = |name: &&String| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match variables.iter().find(set) {
        Some(name) => KeyFrom::Environment(name.clone()),
        None if variables.iter().any(|name| stored.contains_key(name)) => KeyFrom::Stored,
        None if !provider.needs_key => KeyFrom::NotNeeded,
        None => KeyFrom::Missing,
    }
}

fn canonical_name(name: &str) -> &str {
    provider(name).map_or(name, |provider| provider.name)
}

fn write_error(path: PathBuf, error: &std::io::Error) -> HostError {
    let reason = format!("{} cannot be written: {error}", path.display());
    HostError::of_disk(error, reason, |_| HostError::Home { path, reason: error.to_string() })
}
