//! Which model to ask, from flags and environment. Keys never leave this module but for the client and the redactor.

use lathe_model::ChatOptions;
use lathe_protocol::ModelChoice;

use crate::error::HostError;

/// A provider on the Chat wire, as data.
pub struct Provider {
    pub name: &'static str,
    pub base_url: &'static str,
    pub needs_key: bool,
}

pub const PROVIDERS: [Provider; 5] = [
    Provider { name: "openai", base_url: "https://api.openai.com/v1", needs_key: true },
    Provider { name: "openrouter", base_url: "https://openrouter.ai/api/v1", needs_key: true },
    Provider { name: "deepseek", base_url: "https://api.deepseek.com/v1", needs_key: true },
    Provider { name: "doubao", base_url: "https://ark.cn-beijing.volces.com/api/v3", needs_key: true },
    Provider { name: "ollama", base_url: "http://127.0.0.1:11434/v1", needs_key: false },
];

/// Attempts for one answer.
const ATTEMPTS: u32 = 6;

/// The provider of a session that was answered from a cassette.
pub(crate) const RECORDED: &str = "cassette";

/// What the user said about the model.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    pub provider: Option<String>,
    pub model: Option<String>,
    pub base_url: Option<String>,
    pub api_key: Option<String>,
    /// Attempts for one answer.
    pub attempts: Option<u32>,
}

impl ModelRequest {
    /// The same request as an earlier session's, where nothing else is said now.
    pub(crate) fn or(self, choice: &ModelChoice) -> Self {
        // A recorded model is nobody who could be asked again.
        if choice.provider == RECORDED {
            return self;
        }
        let same = self.provider.is_none() && self.base_url.is_none();
        Self {
            provider: self.provider.or_else(|| Some(choice.provider.clone())),
            model: self.model.or_else(|| Some(choice.model.clone())),
            base_url: self.base_url.or_else(|| choice.base_url.clone().filter(|_| same)),
            api_key: self.api_key,
            attempts: self.attempts,
        }
    }
}

/// A model that can be asked.
pub(crate) struct FoundModel {
    pub(crate) choice: ModelChoice,
    pub(crate) chat: ChatOptions,
}

/// Flags first, then the environment: `<PROVIDER>_API_KEY` and `<PROVIDER>_BASE_URL`.
pub(crate) fn find(
    request: &ModelRequest,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<FoundModel, HostError> {
    let name = match &request.provider {
        Some(name) => name.to_lowercase(),
        None if request.base_url.is_some() => "openai".to_owned(),
        None => PROVIDERS
            .iter()
            .find(|provider| env(&variable(provider.name, "API_KEY")).is_some())
            .map(|provider| provider.name.to_owned())
            .ok_or(HostError::NoModel)?,
    };
    let known = PROVIDERS.iter().find(|provider| provider.name == name);
    let base_url = request.base_url.clone().or_else(|| env(&variable(&name, "BASE_URL")));
    let url = match (&base_url, known) {
        (Some(url), _) => url.clone(),
        (None, Some(provider)) => provider.base_url.to_owned(),
        (None, None) => return Err(HostError::UnknownProvider(name)),
    };
    let api_key = request.api_key.clone().or_else(|| env(&variable(&name, "API_KEY")));
    // A server of one's own often wants no key.
    if api_key.is_none() && base_url.is_none() && known.is_some_and(|provider| provider.needs_key) {
        return Err(HostError::NoKey { variable: variable(&name, "API_KEY"), provider: name });
    }
    let model = request.model.clone().ok_or(HostError::NoModelName)?;
    let choice = ModelChoice { provider: name, model, base_url };
    let found = FoundModel {
        choice,
        chat: ChatOptions { base_url: url, api_key, attempts: request.attempts.unwrap_or(ATTEMPTS) },
    };
    found.chat.check().map_err(HostError::BadModel)?;
    Ok(found)
}

fn variable(provider: &str, suffix: &str) -> String {
    format!("{}_{suffix}", provider.to_uppercase())
}

/// Names of variables whose values are secrets, by their ending.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_SECRET_KEY", "_ACCESS_KEY"]
        .iter()
        .any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(
        request: ModelRequest,
        env: &[(&str, &str)],
    ) -> Result<(String, String, Option<String>), &'static str> {
        let env =
            |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        find(&request, &env)
            .map(|found| (found.choice.provider, found.chat.base_url, found.chat.api_key))
            .map_err(|error| error.code())
    }

    fn request(provider: Option<&str>, base_url: Option<&str>, api_key: Option<&str>) -> ModelRequest {
        let own = |text: Option<&str>| text.map(str::to_owned);
        ModelRequest {
            provider: own(provider),
            model: Some("m".into()),
            base_url: own(base_url),
            api_key: own(api_key),
            attempts: None,
        }
    }

    #[test]
    fn flags_come_before_the_environment_and_nothing_is_guessed() {
        let own = |text: &str| text.to_owned();
        assert_eq!(found(request(None, None, None), &[]), Err("no-model"));
        assert_eq!(found(request(Some("openai"), None, None), &[]), Err("no-key"));
        assert_eq!(found(request(Some("nobody"), None, None), &[]), Err("unknown-provider"));
        assert_eq!(
            found(request(None, None, None), &[("OPENROUTER_API_KEY", "k")]),
            Ok((own("openrouter"), own("https://openrouter.ai/api/v1"), Some(own("k"))))
        );
        assert_eq!(
            found(
                request(Some("openai"), Some("http://x/v1"), Some("flag")),
                &[("OPENAI_API_KEY", "env"), ("OPENAI_BASE_URL", "http://y")]
            ),
            Ok((own("openai"), own("http://x/v1"), Some(own("flag"))))
        );
        assert_eq!(
            found(request(Some("nobody"), None, None), &[("NOBODY_BASE_URL", "http://y")]),
            Ok((own("nobody"), own("http://y"), None))
        );
    }

    #[test]
    fn a_model_without_a_name_is_an_error() {
        let request = ModelRequest { base_url: Some("http://x".into()), ..ModelRequest::default() };
        assert!(matches!(find(&request, &|_| None), Err(HostError::NoModelName)));
    }
}
