//! Interpretation of a server's refusal: retry, or report what to change.

use std::time::Duration;

use serde_json::Value;

use crate::request::ModelError;
use crate::retry::retry_after;

/// The number of characters kept of a provider's message, for the code that redacts and cuts it.
pub(crate) const WORDS: usize = 1 << 20;

/// The failure of one attempt.
#[derive(Debug)]
pub(crate) enum Failure {
    Final(ModelError),
    Again { reason: String, after: Option<Duration> },
}

impl Failure {
    pub(crate) fn retryable(reason: impl Into<String>) -> Self {
        Self::Again { reason: reason.into(), after: None }
    }
}

/// The context of an error, for its message.
pub(crate) struct ErrorContext<'a> {
    /// The address of the request.
    pub(crate) server: &'a str,
    /// Advice on setting a key for it.
    pub(crate) key_hint: &'a str,
}

/// The failure for an HTTP status other than success.
pub(crate) fn status(
    place: &ErrorContext<'_>,
    code: u16,
    headers: &reqwest::header::HeaderMap,
    body: &str,
) -> Failure {
    let (words, kind) = error_words(body);
    let text = format!("{} answered {code}: {words}", place.server);
    if is_too_long(&words, &kind) {
        return Failure::Final(ModelError::TooLong(too_long(&text)));
    }
    let told = headers.get("x-should-retry").and_then(|value| value.to_str().ok());
    let out_of_money = code == 402 || kind.contains("insufficient_quota") || kind.contains("billing");
    let usual = matches!(code, 408 | 409 | 425 | 429 | 500..=599) && !out_of_money;
    let again = match told {
        Some("true") => true,
        Some("false") => false,
        Some(_) | None => usual,
    };
    if again {
        return Failure::Again { reason: text, after: retry_after(headers) };
    }
    let advice = match code {
        301..=308 => " The address leads elsewhere: give the right one with --model-base-url.".to_owned(),
        401 => format!(" Check the key: {}.", place.key_hint),
        403 => {
            format!(" This key may not use this model: choose another with --model, or {}.", place.key_hint)
        }
        404 => " Check the name of the model (--model) and the address (--model-base-url).".to_owned(),
        413 => " The request is too large for this server.".to_owned(),
        _ if out_of_money => " The account has nothing left to spend.".to_owned(),
        _ => String::new(),
    };
    Failure::Final(ModelError::Refused(format!("{text}{advice}")))
}

/// The failure for an error inside an answer that had begun.
pub(crate) fn in_stream(place: &ErrorContext<'_>, error: &Value) -> Failure {
    let (words, kind) = error_words(&error.to_string());
    let text = format!("{} broke its answer off: {words}", place.server);
    if is_too_long(&words, &kind) {
        return Failure::Final(ModelError::TooLong(too_long(&text)));
    }
    let hopeless = ["invalid_request", "authentication", "permission", "not_found", "insufficient_quota"];
    if hopeless.iter().any(|word| kind.contains(word)) {
        return Failure::Final(ModelError::Refused(text));
    }
    Failure::retryable(text)
}

fn too_long(text: &str) -> String {
    format!(
        "the conversation is too long for this model. Start the task again, or continue with a model with a larger context. {text}"
    )
}

/// The provider's message and its kinds of error, from the usual places of an error body.
fn error_words(body: &str) -> (String, String) {
    let value: Option<Value> = serde_json::from_str(body).ok();
    // Gemini sends a list with one error when a list was requested.
    let value = match value {
        Some(Value::Array(list)) => list.into_iter().next(),
        other => other,
    };
    let found = value.as_ref().and_then(|value| {
        let inner = value.get("error").filter(|error| error.is_object()).unwrap_or(value);
        let kind: Vec<&str> =
            ["type", "code", "status"].iter().filter_map(|name| inner.get(name)?.as_str()).collect();
        let words = inner.get("message").or_else(|| value.get("error")).or_else(|| value.get("detail"))?;
        Some((words.as_str().map_or_else(|| words.to_string(), str::to_owned), kind.join(" ")))
    });
    let (words, kind) = found.unwrap_or_else(|| (body.trim().to_owned(), String::new()));
    let words = if words.is_empty() { "no reason given".to_owned() } else { words };
    // The code that redacts this cuts it afterwards: half a secret is not recognised.
    (words.chars().take(WORDS).collect(), kind.to_lowercase())
}

/// Tells whether the conversation is too long. Every provider phrases that differently.
fn is_too_long(words: &str, kind: &str) -> bool {
    let words = words.to_lowercase();
    kind.contains("context_length_exceeded")
        || kind.contains("exceed_context_size")
        || [
            "prompt is too long",
            "maximum context length",
            "exceeds the maximum number of tokens",
            "exceed context limit",
            "exceeds the context window",
            "context length exceeded",
            "exceeds the available context size",
            "input is too long for requested model",
        ]
        .iter()
        .any(|sign| words.contains(sign))
}

/// An error with its causes, because the outermost often only says that something failed.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let more = inner.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderMap;

    use super::*;

    fn outcome(code: u16, body: &str) -> String {
        let place = ErrorContext { server: "http://x", key_hint: "set X_API_KEY" };
        match status(&place, code, &HeaderMap::new(), body) {
            Failure::Final(ModelError::TooLong(_)) => "too long".to_owned(),
            Failure::Final(error) => format!("final: {error}"),
            Failure::Again { reason, .. } => format!("again: {reason}"),
        }
    }

    #[test]
    fn each_status_is_asked_again_or_says_what_to_change() {
        for code in [408, 409, 429, 500, 502, 503, 529] {
            assert_eq!(outcome(code, "busy"), format!("again: http://x answered {code}: busy"));
        }
        assert!(outcome(401, r#"{"error":{"message":"bad"}}"#).contains("bad Check the key: set X_API_KEY."));
        assert!(outcome(404, r#"{"error":"model 'm' not found"}"#).contains("--model"));
        assert!(
            outcome(429, r#"{"error":{"message":"q","code":"insufficient_quota"}}"#)
                .starts_with("final: http://x answered 429: q The account")
        );
        assert!(
            outcome(400, r#"[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]"#)
                .contains(": m")
        );
    }

    #[test]
    fn too_long_is_known_in_every_providers_words() {
        for body in [
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            r#"{"error":{"code":400,"message":"The input token count (1) exceeds the maximum number of tokens allowed (0).","status":"INVALID_ARGUMENT"}}"#,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
        ] {
            assert_eq!(outcome(400, body), "too long", "{body}");
        }
    }
}
