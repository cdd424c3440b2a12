//! The options that a surface was given.

use lathe_config::{Flag, option_of_key};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Options by key, each with the name under which it was given: a flag, or a member of a request.
#[derive(Clone, Default)]
pub struct GivenOptions(Vec<Flag>);

impl std::fmt::Debug for GivenOptions {
    /// Values may be keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(Flag::key)).finish()
    }
}

impl FromIterator<Flag> for GivenOptions {
    fn from_iter<I: IntoIterator<Item = Flag>>(flags: I) -> Self {
        Self(flags.into_iter().collect())
    }
}

impl GivenOptions {
    /// Overwrites an option with the value of a request. A key that no request may set is ignored.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.unset(key);
        self.0.extend(option_of_key(key).map(|row| row.from_member(value.into())));
    }

    pub fn unset(&mut self, key: &str) {
        self.0.retain(|flag| flag.key() != key);
    }

    pub fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    pub fn value(&self, key: &str) -> Option<&Value> {
        self.0.iter().rev().find(|flag| flag.key() == key).map(Flag::value)
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        self.value(key).and_then(Value::as_str)
    }

    /// An option as its type; none if it was not given or does not fit, which loading the settings reports.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        serde_json::from_value(self.value(key)?.clone()).ok()
    }

    /// Tells whether the session gets an address or a key that the configuration does not give it.
    pub fn names_own_model(&self) -> bool {
        self.has("model.base_url") || self.has("model.api_key")
    }

    /// Everything that was given, for the settings.
    pub fn flags(&self) -> Vec<Flag> {
        self.0.clone()
    }
}
