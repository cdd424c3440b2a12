//! A model client whose texts pass the redactor. Text enters here as it does from tools, and a key that the provider
//! or the model repeats must reach neither screen, journal nor cassette.

use std::borrow::Cow;
use std::sync::Arc;

use lathe_model::{Delta, Form, ModelAnswer, ModelClient, ModelError, WireRequest};
use lathe_protocol::{Arguments, Block, BoxFuture, Raw, TextBlock, ToolCall};
use lathe_redact::{Redactor, Stream};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) struct GuardedClient {
    inner: Arc<dyn ModelClient>,
    redactor: Redactor,
}

impl GuardedClient {
    pub(crate) fn new(inner: Arc<dyn ModelClient>, redactor: Redactor) -> Self {
        Self { inner, redactor }
    }

    fn text(&self, text: String) -> String {
        self.redactor.redact_text(&text).into_owned()
    }

    /// Redacts an error: it repeats a server's text, and servers repeat keys.
    fn error(&self, error: ModelError) -> ModelError {
        let clean = |text: String| redacted_excerpt(&self.redactor, &text);
        match error {
            ModelError::Refused(text) => ModelError::Refused(clean(text)),
            ModelError::TooLong(text) => ModelError::TooLong(clean(text)),
            ModelError::Unavailable(text) => ModelError::Unavailable(clean(text)),
            ModelError::Diverged(text) => ModelError::Diverged(clean(text)),
            ModelError::Cancelled => ModelError::Cancelled,
            ModelError::OutOfTime => ModelError::OutOfTime,
        }
    }

    /// Redacts signed data. It stays unchanged unless it holds a secret. JSON escapes hide no secret, because the
    /// decoded texts are checked.
    fn raw(&self, raw: Option<Raw>) -> Option<Raw> {
        let raw = raw?;
        let Ok(mut value) = serde_json::from_str::<Value>(raw.get()) else {
            return Raw::parse(&self.redactor.redact_text(raw.get())).ok();
        };
        if self.clean(&mut value) { Raw::from_serialize(&value).ok() } else { Some(raw) }
    }

    /// Redacts a value in place. Returns whether something was replaced.
    fn clean(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => {
                // Some wires carry arguments as JSON in a text.
                let inner = text.trim_start().starts_with(['{', '[']).then(|| serde_json::from_str(text));
                let mut found = false;
                if let Some(Ok(mut inner)) = inner
                    && self.clean(&mut inner)
                {
                    *text = inner.to_string();
                    found = true;
                }
                if let Cow::Owned(clean) = self.redactor.redact_text(text) {
                    *text = clean;
                    found = true;
                }
                found
            }
            Value::Array(values) => values.iter_mut().fold(false, |found, value| self.clean(value) | found),
            Value::Object(members) => {
                let found = members.values_mut().fold(false, |found, value| self.clean(value) | found);
                let named =
                    members.keys().any(|name| matches!(self.redactor.redact_text(name), Cow::Owned(_)));
                if named {
                    let all = std::mem::take(members).into_iter();
                    *members = all.map(|(name, value)| (self.text(name), value)).collect();
                }
                found | named
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn block(&self, block: Block) -> Block {
        match block {
            Block::Text(TextBlock { text, raw }) => {
                Block::Text(TextBlock { text: self.text(text), raw: self.raw(raw) })
            }
            Block::Thinking(TextBlock { text, raw }) => {
                Block::Thinking(TextBlock { text: self.text(text), raw: self.raw(raw) })
            }
            Block::Call(call) => {
                let arguments = match call.arguments {
                    Arguments::Json(raw) => Arguments::Json(self.raw(Some(raw)).unwrap_or_else(Raw::null)),
                    Arguments::Malformed(text) => Arguments::Malformed(self.text(text)),
                };
                Block::Call(ToolCall { arguments, raw: self.raw(call.raw), ..call })
            }
            Block::Opaque(raw) => Block::Opaque(self.raw(Some(raw)).unwrap_or_else(Raw::null)),
        }
    }
}

/// Characters of a server's text that are shown.
const LONGEST_TEXT: usize = 2000;

/// The text of a server: redacted first, then cut.
pub(crate) fn redacted_excerpt(redactor: &Redactor, words: &str) -> String {
    let clean = redactor.redact_text(words);
    match clean.char_indices().nth(LONGEST_TEXT) {
        Some((at, _)) => format!("{}…", clean.get(..at).unwrap_or_default()),
        None => clean.into_owned(),
    }
}

/// Redacts text on its way to a screen.
struct StreamRedactor<'a> {
    redactor: &'a Redactor,
    text: Stream<'a>,
    thinking: Stream<'a>,
}

impl<'a> StreamRedactor<'a> {
    fn new(redactor: &'a Redactor) -> Self {
        Self { redactor, text: redactor.stream(), thinking: redactor.stream() }
    }

    fn take(&mut self, delta: Delta) -> Option<Delta> {
        let words = |bytes: Vec<u8>| {
            Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|text| !text.is_empty())
        };
        match delta {
            Delta::Text(text) => words(self.text.push(text.as_bytes())).map(Delta::Text),
            Delta::Thinking(text) => words(self.thinking.push(text.as_bytes())).map(Delta::Thinking),
            Delta::CallForming(name) => Some(Delta::CallForming(name)),
            Delta::Retry { attempt, wait_ms, reason } => {
                Some(Delta::Retry { attempt, wait_ms, reason: redacted_excerpt(self.redactor, &reason) })
            }
            Delta::Lost(usage) => Some(Delta::Lost(usage)),
        }
    }

    /// The text that was held back, thinking first, as a model sends it.
    fn finish(self) -> impl Iterator<Item = Delta> {
        let rest = |bytes: Vec<u8>| {
            Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|text| !text.is_empty())
        };
        let thinking = rest(self.thinking.finish()).map(Delta::Thinking);
        thinking.into_iter().chain(rest(self.text.finish()).map(Delta::Text))
    }
}

impl ModelClient for GuardedClient {
    fn form(&self) -> Form {
        self.inner.form()
    }

    fn ask<'a>(
        &'a self,
        request: WireRequest,
        deltas: &'a mpsc::Sender<Delta>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        Box::pin(async move {
            let (sender, mut coming) = mpsc::channel(256);
            let asking = async {
                let answer = self.inner.ask(request, &sender, cancel).await;
                drop(sender);
                answer
            };
            let passing = async {
                let mut shown = StreamRedactor::new(&self.redactor);
                while let Some(delta) = coming.recv().await {
                    if let Some(delta) = shown.take(delta) {
                        let _ = deltas.send(delta).await;
                    }
                }
                for delta in shown.finish() {
                    let _ = deltas.send(delta).await;
                }
            };
            let (answer, ()) = tokio::join!(asking, passing);
            let answer = answer.map_err(|error| self.error(error))?;
            let blocks = answer.blocks.into_iter().map(|block| self.block(block)).collect();
            Ok(ModelAnswer { blocks, ..answer })
        })
    }
}

#[cfg(test)]
mod tests {
    use lathe_model::{Head, Rope, Variables, Wire};
    use lathe_protocol::{AgentId, StepNo};

    use super::*;

    const KEY: &str = "sk-planted-0123456789";

    /// A client that sends some text and fails.
    struct Failing(fn(String) -> ModelError);

    impl ModelClient for Failing {
        fn form(&self) -> Form {
            Wire::Chat.into()
        }

        fn ask<'a>(
            &'a self,
            _: WireRequest,
            deltas: &'a mpsc::Sender<Delta>,
            _: &'a CancellationToken,
        ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
            Box::pin(async move {
                let half = KEY.get(..12).unwrap_or_default().to_owned();
                let _ = deltas.send(Delta::Thinking(half.clone())).await;
                let _ = deltas.send(Delta::Text(half)).await;
                // The key stands where the text is cut.
                Err(self.0(format!("{}{KEY} is not my key", "x".repeat(LONGEST_TEXT - 9))))
            })
        }
    }

    #[tokio::test]
    async fn errors_lose_their_secrets_before_they_are_cut_and_thinking_is_not_held_back() {
        let kinds: [fn(String) -> ModelError; 4] =
            [ModelError::Refused, ModelError::TooLong, ModelError::Unavailable, ModelError::Diverged];
        for kind in kinds {
            let redactor = Redactor::new([("KEY".to_owned(), KEY.to_owned())]);
            let client = GuardedClient::new(Arc::new(Failing(kind)), redactor);
            let mut rope = Rope::new(client.form(), AgentId::main(), Arc::new(Variables::none()));
            rope.set_head(&Head { model: "m".to_owned(), system: String::new(), tools: Vec::new() });
            let (sender, mut deltas) = mpsc::channel(16);
            let error = client
                .ask(rope.request(StepNo(1)), &sender, &CancellationToken::new())
                .await
                .map(|_| ())
                .unwrap_err()
                .to_string();
            drop(sender);
            assert!(!error.contains("sk-planted"), "{error}");
            assert!(error.ends_with("«secret:K…"), "{error}");
            let mut shown = Vec::new();
            while let Some(delta) = deltas.recv().await {
                shown.push(format!("{delta:?}"));
            }
            let half = KEY.get(..12).unwrap();
            assert_eq!(shown, [format!("Thinking({half:?})"), format!("Text({half:?})")]);
        }
    }
}
