//! Keys in the text of a configuration file of any format, even a broken one.
//!
//! A file that cannot be used is not parsed, and its keys are secrets nevertheless. So names and values are searched
//! for in the text itself: `name = "value"`, `name: value`, `"name": "value"`, in lines, in flow mappings and as
//! block scalars.

use std::sync::LazyLock;

use regex::Regex;

use crate::names::{is_secret_name, secrets_in_address};

const PAIR: &str = r#"(?m)["']?([A-Za-z0-9_.-]{2,64})["']?[ \t]*[:=][ \t]*(?:[|>][+-]?[ \t]*\n\s*)?(?:"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|([^\s"',}\]#][^\s"',}\]]*))"#;

const ADDRESS: &str = r#"[a-z][a-z0-9+.-]*://[^\s"'<>]+"#;

static PAIRS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(PAIR).ok());
static ADDRESSES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(ADDRESS).ok());

/// The secrets in a configuration file, each with the name it has there.
pub fn keys_in_file(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for pair in PAIRS.iter().flat_map(|pairs| pairs.captures_iter(text)) {
        let name = pair.get(1).map_or("", |name| name.as_str());
        let value = [2, 3, 4].into_iter().find_map(|part| pair.get(part)).map_or("", |value| value.as_str());
        if is_secret_name(name) && !is_stand_in(value) {
            found.push((name.to_uppercase(), value.replace("\\/", "/")));
        }
    }
    for address in ADDRESSES.iter().flat_map(|addresses| addresses.find_iter(text)) {
        let inside = secrets_in_address(address.as_str());
        found.extend(inside.into_iter().map(|secret| ("URL".to_owned(), secret)));
    }
    found
}

/// Tells whether a value only says that a key belongs here, as in samples.
fn is_stand_in(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    value.starts_with(['$', '<', '{'])
        || value.ends_with(':')
        || ["your", "my", "the", "an"].iter().any(|word| {
            value.strip_prefix(word).is_some_and(|rest| {
                rest.starts_with(['_', '-', ' '])
                    && rest.bytes().all(|byte| byte.is_ascii_lowercase() || b"_- ".contains(&byte))
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_in_every_format_and_in_broken_files() {
        for text in [
            "model_providers:\n  a:\n    api_key: sk-planted-1\n",
            "model_providers: {a: {api_key: sk-planted-1, provider: x}}",
            "a:\n  api_key: |\n    sk-planted-1\n",
            "a:\n  api_key: 'sk-planted-1'  # mine\n",
            "{\"model_providers\": {\"a\": {\"api_key\": \"sk-planted-1\"}}}",
            "[providers.a]\napi_key = \"sk-planted-1\"",
            "api_key = 'sk-planted-1'\n[[[ broken",
            "DB_PASSWORD=sk-planted-1",
            "base_url: https://me:sk-planted-1@gw/v1",
            "base_url: https://gw/v1?api-key=sk-planted-1",
        ] {
            let found = keys_in_file(text);
            assert!(found.iter().any(|(_, value)| value == "sk-planted-1"), "{text}: {found:?}");
        }
    }

    #[test]
    fn settings_and_samples_are_no_keys() {
        for text in [
            "max_tokens: 4096",
            "model: claude",
            "api_key: your_anthropic_api_key",
            "api_key: ${KEY}",
            "api_key:\n  provider: x",
            "key_variable = \"WORK_KEY\"",
            "base_url: https://api.openai.com/v1",
        ] {
            assert_eq!(keys_in_file(text), [], "{text}");
        }
    }
}
