//! The options of a client: the server, the key, and the time limits of an answer.

use std::fmt;
use std::time::Duration;

use lathe_protocol::{NetworkReach, plain_address};

use crate::form::{Delivery, Form, Wire};
use crate::reach::address_refusal;

/// The server, and the form and limits of requests to it.
#[derive(Clone)]
pub struct ClientOptions {
    pub form: Form,
    pub base_url: String,
    /// The model, for addresses that contain its name.
    pub model: String,
    pub address: Address,
    pub auth: Auth,
    /// Headers in addition to the key.
    pub headers: Vec<(String, String)>,
    /// Advice about the key: `set OPENAI_API_KEY, or give --api-key`.
    pub key_hint: String,
    pub patience: Patience,
    pub outage: Outage,
    pub reach: NetworkReach,
}

/// The ways to make the address of a request from the base URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Usual,
    /// By deployment and version.
    Azure {
        api_version: String,
    },
}

/// The key and its position. It is never displayed.
#[derive(Clone)]
pub enum Auth {
    None,
    Bearer(String),
    Header { name: &'static str, key: String },
}

impl Auth {
    pub fn key(&self) -> Option<&str> {
        match self {
            Auth::None => None,
            Auth::Bearer(key) | Auth::Header { key, .. } => Some(key),
        }
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.key().is_some() { "key" } else { "no key" })
    }
}

/// The time limits of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patience {
    /// The number of attempts, including the first.
    pub attempts: u32,
    pub connect: Duration,
    /// The time until the answer begins. Models that think long send nothing meanwhile.
    pub first_byte: Duration,
    /// The silence after which a stream counts as broken.
    pub stall: Duration,
    /// The duration of one attempt.
    pub total: Duration,
    /// The longest time that a provider may make us wait before the next attempt.
    pub longest_wait: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            attempts: 6,
            connect: Duration::from_secs(20),
            first_byte: Duration::from_secs(600),
            stall: Duration::from_secs(120),
            total: Duration::from_secs(3600),
            longest_wait: Duration::from_secs(120),
        }
    }
}

/// The end of a request whose attempts are used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outage {
    #[default]
    Fail,
    /// Wait, check now and then whether the server is back, and continue.
    Park,
}

impl ClientOptions {
    /// The reason why a request could never work, reported before anything is sent.
    pub fn check(&self) -> Result<(), String> {
        let url = reqwest::Url::parse(&self.base_url)
            .map_err(|error| format!("`{}` is not an address: {error}", plain_address(&self.base_url)))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(format!(
                "`{}` is not the address of a server: it must begin with http:// or https://",
                plain_address(&self.base_url)
            ));
        }
        if let Some(reason) = address_refusal(self.reach, &self.base_url) {
            return Err(reason);
        }
        match self.auth.key() {
            Some(key) if key.chars().any(|c| c.is_control() || !c.is_ascii()) => {
                Err("the key holds characters that no key has (a line break, perhaps)".to_owned())
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn url(&self) -> String {
        let base = self.base_url.trim_end_matches('/');
        let bare = base.strip_suffix("/v1").unwrap_or(base);
        match (self.form.wire, &self.address) {
            (Wire::Chat, Address::Azure { api_version }) => {
                let place = if base.contains("/deployments/") {
                    base.to_owned()
                } else {
                    format!("{base}/openai/deployments/{}", self.model)
                };
                format!("{place}/chat/completions?api-version={api_version}")
            }
            (Wire::Responses, Address::Azure { api_version }) => {
                format!("{base}/openai/responses?api-version={api_version}")
            }
            (Wire::Chat, Address::Usual) => format!("{base}/chat/completions"),
            (Wire::Responses, Address::Usual) => format!("{base}/responses"),
            (Wire::Messages, _) => format!("{bare}/v1/messages"),
            (Wire::Gemini, _) => {
                let versioned = base.rsplit('/').next().is_some_and(|last| {
                    last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
                });
                let version = if versioned { "" } else { "/v1beta" };
                let method = match self.form.params.delivery {
                    Delivery::Streamed => "streamGenerateContent?alt=sse",
                    Delivery::Whole => "generateContent",
                };
                format!("{base}{version}/models/{}:{method}", self.model)
            }
            (Wire::Ollama, _) => format!("{bare}/api/chat"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(wire: Wire, base_url: &str, address: Address) -> String {
        ClientOptions {
            form: wire.into(),
            base_url: base_url.to_owned(),
            model: "m".to_owned(),
            address,
            auth: Auth::None,
            headers: Vec::new(),
            key_hint: String::new(),
            patience: Patience::default(),
            outage: Outage::Fail,
            reach: NetworkReach::Anywhere,
        }
        .url()
    }

    #[test]
    fn each_wire_has_its_address_with_and_without_a_version_in_the_base() {
        use Address::Usual;
        let azure = || Address::Azure { api_version: "2025-03-01-preview".to_owned() };
        let table = [
            (url(Wire::Chat, "http://x/v1/", Usual), "http://x/v1/chat/completions"),
            (
                url(Wire::Chat, "http://x", azure()),
                "http://x/openai/deployments/m/chat/completions?api-version=2025-03-01-preview",
            ),
            (url(Wire::Responses, "http://x/v1", Usual), "http://x/v1/responses"),
            (url(Wire::Messages, "http://x", Usual), "http://x/v1/messages"),
            (url(Wire::Messages, "http://x/anthropic/v1", Usual), "http://x/anthropic/v1/messages"),
            (url(Wire::Gemini, "http://x", Usual), "http://x/v1beta/models/m:streamGenerateContent?alt=sse"),
            (url(Wire::Gemini, "http://x/v1", Usual), "http://x/v1/models/m:streamGenerateContent?alt=sse"),
            (url(Wire::Ollama, "http://x:11434", Usual), "http://x:11434/api/chat"),
            (url(Wire::Ollama, "http://x:11434/v1", Usual), "http://x:11434/api/chat"),
        ];
        for (made, expected) in table {
            assert_eq!(made, expected);
        }
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", Auth::Bearer("sk-secret".to_owned())), "key");
    }
}
