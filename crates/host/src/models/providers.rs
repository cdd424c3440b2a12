//! The providers that Lathe knows, as data: a wire, an address, the variables of the key and the way it is sent.

use lathe_model::{Auth, Quirks, Wire};

/// A provider of models.
#[derive(Debug, Clone, Copy)]
pub struct Provider {
    pub name: &'static str,
    pub wire: Wire,
    /// Empty for a provider whose users have addresses of their own.
    pub base_url: &'static str,
    pub needs_key: bool,
    /// Variables in addition to `<NAME>_API_KEY` that hold its key.
    pub keys: &'static [&'static str],
    /// Variables in addition to `<NAME>_BASE_URL` that hold its address.
    pub urls: &'static [&'static str],
    pub sent: KeySent,
    pub quirks: Quirks,
}

/// The way a key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySent {
    Bearer,
    Header(&'static str),
}

impl Provider {
    const fn new(name: &'static str, wire: Wire, base_url: &'static str) -> Self {
        Self {
            name,
            wire,
            base_url,
            needs_key: true,
            keys: &[],
            urls: &[],
            sent: KeySent::Bearer,
            quirks: Quirks::USUAL,
        }
    }

    /// A server on this machine; it needs no key.
    const fn local(name: &'static str, wire: Wire, base_url: &'static str) -> Self {
        Self { needs_key: false, ..Self::new(name, wire, base_url) }
    }

    pub fn is_local(&self) -> bool {
        self.base_url.starts_with("http://127.0.0.1")
    }

    /// Every variable that may hold its key, the usual one first.
    pub fn key_variables(&self) -> Vec<String> {
        let usual = variable(self.name, "API_KEY");
        std::iter::once(usual).chain(self.keys.iter().map(|name| (*name).to_owned())).collect()
    }

    pub(crate) fn url_variables(&self) -> Vec<String> {
        let usual = variable(self.name, "BASE_URL");
        std::iter::once(usual).chain(self.urls.iter().map(|name| (*name).to_owned())).collect()
    }

    pub(crate) fn auth(&self, key: Option<String>) -> Auth {
        match (key, self.sent) {
            (None, _) => Auth::None,
            (Some(key), KeySent::Bearer) => Auth::Bearer(key),
            (Some(key), KeySent::Header(name)) => Auth::Header { name, key },
        }
    }
}

/// The name of the provider if an address was given and no provider.
pub const CUSTOM_PROVIDER: &str = "custom";

/// Any server of Chat Completions, at an address that was given. No variable holds its key: a provider's key is sent
/// to another address only if the user names the provider.
pub(crate) const CUSTOM: Provider = Provider::local(CUSTOM_PROVIDER, Wire::Chat, "");

const THINKS_ALOUD: Quirks = Quirks { reasoning_back: true, ..Quirks::USUAL };

/// All known providers, in the order in which to search for keys.
pub const PROVIDERS: [Provider; 18] = [
    Provider::new("openai", Wire::Responses, "https://api.openai.com/v1"),
    Provider {
        sent: KeySent::Header("x-api-key"),
        ..Provider::new("anthropic", Wire::Messages, "https://api.anthropic.com")
    },
    Provider {
        keys: &["GEMINI_API_KEY"],
        urls: &["GEMINI_BASE_URL"],
        sent: KeySent::Header("x-goog-api-key"),
        ..Provider::new("google", Wire::Gemini, "https://generativelanguage.googleapis.com/v1beta")
    },
    Provider {
        keys: &["AZURE_OPENAI_API_KEY"],
        urls: &["AZURE_OPENAI_ENDPOINT"],
        sent: KeySent::Header("api-key"),
        quirks: Quirks { limit_member: "max_completion_tokens", ..Quirks::USUAL },
        ..Provider::new("azure", Wire::Chat, "")
    },
    Provider::new("openrouter", Wire::Chat, "https://openrouter.ai/api/v1"),
    Provider {
        keys: &["ARK_API_KEY"],
        ..Provider::new("doubao", Wire::Chat, "https://ark.cn-beijing.volces.com/api/v3")
    },
    Provider { quirks: THINKS_ALOUD, ..Provider::new("deepseek", Wire::Chat, "https://api.deepseek.com/v1") },
    Provider {
        keys: &["DASHSCOPE_API_KEY"],
        ..Provider::new("qwen", Wire::Chat, "https://dashscope.aliyuncs.com/compatible-mode/v1")
    },
    Provider {
        keys: &["KIMI_API_KEY"],
        quirks: THINKS_ALOUD,
        ..Provider::new("moonshot", Wire::Chat, "https://api.moonshot.ai/v1")
    },
    Provider {
        sent: KeySent::Header("x-api-key"),
        ..Provider::new("minimax", Wire::Messages, "https://api.minimax.io/anthropic")
    },
    Provider {
        keys: &["ZAI_API_KEY"],
        ..Provider::new("zhipu", Wire::Chat, "https://open.bigmodel.cn/api/paas/v4")
    },
    // Mistral counts tokens without being asked, and refuses the request to do so.
    Provider {
        quirks: Quirks { stream_usage: false, ..Quirks::USUAL },
        ..Provider::new("mistral", Wire::Chat, "https://api.mistral.ai/v1")
    },
    Provider::new("groq", Wire::Chat, "https://api.groq.com/openai/v1"),
    Provider::new("xai", Wire::Chat, "https://api.x.ai/v1"),
    Provider {
        urls: &["OLLAMA_HOST"],
        quirks: Quirks { context: Some(32_768), ..Quirks::USUAL },
        ..Provider::local("ollama", Wire::Ollama, "http://127.0.0.1:11434")
    },
    Provider::local("lmstudio", Wire::Chat, "http://127.0.0.1:1234/v1"),
    Provider::local("vllm", Wire::Chat, "http://127.0.0.1:8000/v1"),
    Provider::local("llamacpp", Wire::Chat, "http://127.0.0.1:8080/v1"),
];

/// Common names of some providers, and the names they stand for.
const ALIASES: [(&str, &str); 3] = [("gemini", "google"), ("kimi", "moonshot"), ("claude", "anthropic")];

/// Every name of a provider that Lathe knows.
pub fn provider_names() -> Vec<&'static str> {
    let names = PROVIDERS.iter().map(|provider| provider.name);
    names.chain(ALIASES.iter().map(|(alias, _)| *alias)).collect()
}

pub(crate) fn provider(name: &str) -> Option<&'static Provider> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    PROVIDERS.iter().find(|provider| provider.name == name)
}

/// The keys of known providers in the text of a `.env`, each with the name of its provider. Everything else in it is
/// ignored.
pub(crate) fn dotenv_keys(text: &str) -> Vec<(String, String)> {
    let lines: Vec<(&str, String)> = text.lines().filter_map(dotenv_line).collect();
    let mut keys = Vec::new();
    for provider in &PROVIDERS {
        let mut names = provider.key_variables().into_iter();
        // The last line of a name counts.
        let found = names.find_map(|name| lines.iter().rev().find(|(known, _)| *known == name));
        let Some((_, key)) = found else { continue };
        let aliases = ALIASES.iter().filter(|(_, name)| *name == provider.name).map(|(alias, _)| *alias);
        keys.extend(aliases.chain([provider.name]).map(|name| (name.to_owned(), key.clone())));
    }
    keys
}

/// Parses `NAME=value`, perhaps after `export`, the value perhaps in quotes.
fn dotenv_line(line: &str) -> Option<(&str, String)> {
    let line = line.trim();
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let value = value.trim_start();
    let value = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => value.get(1..)?.split(quote).next()?,
        Some(_) | None => value.split(" #").next()?.trim_end(),
    };
    (!value.is_empty()).then(|| (name.trim(), value.to_owned()))
}

pub(crate) fn variable(provider: &str, suffix: &str) -> String {
    format!("{}_{suffix}", provider.to_uppercase().replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dotenv_gives_keys_of_known_providers_and_nothing_else() {
        let text = "# OPENAI_API_KEY=no\nOPENAI_API_KEY=first\nexport OPENAI_API_KEY = \"o=k #1\" # mine\n\
            GEMINI_API_KEY='g'\nGROQ_API_KEY=k # mine\nSTRIPE_API_KEY=s\nOPENAI_BASE_URL=http://evil\n\
            LATHE_API_KEY=l\nPATH=/evil\nMISTRAL_API_KEY=\n";
        let keys = dotenv_keys(text);
        let keys: Vec<(&str, &str)> = keys.iter().map(|(name, key)| (name.as_str(), key.as_str())).collect();
        assert_eq!(keys, [("openai", "o=k #1"), ("gemini", "g"), ("google", "g"), ("groq", "k")]);
    }

    #[test]
    fn every_provider_has_a_name_of_its_own_and_an_address_or_wants_one() {
        for provider in PROVIDERS {
            assert_eq!(PROVIDERS.iter().filter(|other| other.name == provider.name).count(), 1);
            let remote = provider.base_url.starts_with("https://");
            assert!(remote == provider.needs_key || provider.name == "azure", "{}", provider.name);
        }
    }
}
