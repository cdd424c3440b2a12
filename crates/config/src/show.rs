//! The configuration as users see it.

use lathe_protocol::plain_address;
use serde_json::Value as Json;

use crate::load::Config;
use crate::problem::{Origin, ValueSource};
use crate::sections::Settings;
use crate::tree::under;

/// A line of `config show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownRow {
    pub key: String,
    /// The value as text; a key is masked.
    pub value: String,
    pub source: Origin,
}

impl Config {
    /// Every value there is, in the order of the reference. Keys, and passwords inside addresses, are masked.
    pub fn rows(&self) -> Vec<ShownRow> {
        let row = |(key, value): (String, Json)| {
            let source = self
                .origins
                .get(&key)
                .cloned()
                .unwrap_or(Origin { source: ValueSource::Default, line: None });
            let value = plain(&value);
            let value = if is_address(&key) { plain_address(&value) } else { value };
            ShownRow { key, value, source }
        };
        flatten(&self.settings).into_iter().map(row).collect()
    }

    /// The origin of the value of a key, if it has one.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        self.origins.get(key)
    }
}

/// Whole keys and values. A [`crate::Secret`] serialises as its mask, so none can come out here.
pub(crate) fn flatten(settings: &Settings) -> Vec<(String, Json)> {
    fn walk(key: &str, value: Json, found: &mut Vec<(String, Json)>) {
        match value {
            Json::Null => {}
            Json::Object(members) => {
                for (part, value) in members {
                    walk(&under(key, &part), value, found);
                }
            }
            value => found.push((key.to_owned(), value)),
        }
    }
    let mut found = Vec::new();
    walk("", serde_json::to_value(settings).unwrap_or_default(), &mut found);
    found
}

/// Tells whether a key holds an address, which may hold a password.
fn is_address(key: &str) -> bool {
    let last = key.rsplit('.').next().unwrap_or_default();
    matches!(last, "base_url" | "url" | "http_url" | "tcp")
}

fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// The output of `trae-cli show-config` as plain text, with our masks instead of its half-open keys.
pub fn trae_show_config(config: &Config) -> String {
    let settings = &config.settings;
    let model = &settings.model;
    let provider = settings.provider_kind();
    let text = |value: &Option<String>| value.clone();
    let number = |value: Option<f64>| value.map(|value| value.to_string());
    let key = model.api_key.as_ref().map(|key| capital(&key.mask()));

    let general = vec![
        ("Default Provider", provider.map(str::to_owned)),
        ("Max Steps", Some(settings.run.limits().steps().to_string())),
    ];
    let mut own = vec![
        ("Model", text(&model.name)),
        ("Base URL", model.base_url.as_deref().map(plain_address)),
        ("API Version", text(&model.api_version)),
        ("API Key", key),
        ("Max Tokens", model.output_limit().map(|limit| limit.to_string())),
        ("Temperature", number(model.temperature)),
        ("Top P", number(model.top_p)),
    ];
    if provider == Some("anthropic") {
        own.push(("Top K", model.top_k.map(|top_k| top_k.to_string())));
    }
    let title = format!("{} Configuration", capital(provider.unwrap_or("model")));
    format!("{}\n{}", table("General Settings", general), table(&title, own))
}

fn table(title: &str, rows: Vec<(&str, Option<String>)>) -> String {
    let mut table = format!("{title}\n");
    for (label, value) in rows {
        let value = value.unwrap_or_else(|| "Not set".to_owned());
        table.push_str(&format!("  {label:<18}{value}\n"));
    }
    table
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
