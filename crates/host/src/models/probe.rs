//! One small question to the model, for `doctor`: how quickly it answers, and whether it streams, calls and caches.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lathe_model::{Delta, Head, HttpClient, ModelAnswer, ModelClient, Params, Rope, Variables};
use lathe_protocol::{AgentId, Message, Raw, StepNo, ToolSpec, calls_of};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::blocking::on_pool;
use crate::doctor::{Check, CheckState};
use crate::models::Models;
use crate::models::guarded::redacted_excerpt;
use crate::models::keys::{KeyRing, Marks};
use crate::models::request::{self, ModelRequest};
use crate::session::environment;
use crate::session::secrets::{configured_secrets, redactor};

/// Time limit of the question, which costs a few tokens.
const PATIENCE: Duration = Duration::from_secs(60);
const TOKENS: u32 = 64;

impl Models {
    /// Asks the model that would be used. None if no model is named.
    pub async fn probe(&self, request: &ModelRequest) -> Option<Check> {
        request.model.as_ref()?;
        let params = Params { max_tokens: Some(TOKENS), thinking_tokens: None, ..request.params.clone() };
        let mut request = ModelRequest { params, ..request.clone() };
        request.patience.attempts = 1;
        let stored = match self.stored_keys() {
            Ok(stored) => stored,
            Err(error) => return Some(check(CheckState::Broken, error.to_string())),
        };
        let found = request::find_model(
            &request,
            &KeyRing { env: &environment, stored: &stored, marks: &Marks::none() },
        );
        let found = match found {
            Ok(found) => found,
            Err(error) => return Some(check(CheckState::Broken, error.to_string())),
        };
        let key = found.client.auth.key().map(str::to_owned);
        let name = format!("{} ({})", found.choice.model, found.choice.provider);
        let reply = tokio::time::timeout(PATIENCE, ask(HttpClient::new(found.client), &found.choice.model));
        let words = match reply.await {
            Ok(Ok(seen)) => return Some(check(CheckState::Good, format!("{name} {}", seen.description()))),
            Ok(Err(words)) => words,
            Err(_) => format!("did not answer in {} seconds", PATIENCE.as_secs()),
        };
        // A server may repeat the key in its text, so the text is redacted.
        let home = self.home().path().to_owned();
        let redacted =
            on_pool(move || Ok(redacted_excerpt(&redactor(key, &configured_secrets(&home)), &words))).await;
        let words = redacted.unwrap_or_else(|error| error.to_string());
        Some(check(CheckState::Broken, format!("{name}: {words}")))
    }
}

impl Models {
    /// Tells whether a model answers, with a description of the result.
    pub async fn test_model(&self, request: &ModelRequest) -> (bool, String) {
        match self.probe(request).await {
            Some(check) => (check.state == CheckState::Good, check.detail),
            None => (false, "no model is named".to_owned()),
        }
    }
}

struct ProbeTimes {
    first: Option<Duration>,
    whole: Duration,
    pieces: usize,
    answer: ModelAnswer,
}

async fn ask(client: HttpClient, model: &str) -> Result<ProbeTimes, String> {
    let schema = r#"{"type":"object","properties":{"word":{"type":"string","description":"Any word."}},"required":["word"],"additionalProperties":false}"#;
    let tool = ToolSpec {
        name: "ping".to_owned(),
        description: "Says that calls work.".to_owned(),
        schema: Raw::parse(schema).map_err(|error| error.to_string())?,
    };
    let mut rope = Rope::new(client.form(), AgentId::main(), Arc::new(Variables::none()));
    let system = "You check a connection.".to_owned();
    rope.set_head(&Head { model: model.to_owned(), system, tools: vec![tool] });
    rope.push(Message::user("Call ping with the word \"ok\"."));
    let (sender, mut deltas) = mpsc::channel(64);
    let (began, cancel) = (Instant::now(), CancellationToken::new());
    let asking = async {
        let answer = client.ask(rope.request(StepNo(1)), &sender, &cancel).await;
        drop(sender);
        answer
    };
    let watching = async {
        let (mut first, mut pieces) = (None, 0);
        while let Some(delta) = deltas.recv().await {
            if !matches!(delta, Delta::Retry { .. }) {
                first.get_or_insert_with(|| began.elapsed());
                pieces += 1;
            }
        }
        (first, pieces)
    };
    let (answer, (first, pieces)) = tokio::join!(asking, watching);
    let answer = answer.map_err(|error| error.to_string())?;
    Ok(ProbeTimes { first, whole: began.elapsed(), pieces, answer })
}

impl ProbeTimes {
    fn description(&self) -> String {
        let ms = |duration: Duration| format!("{} ms", duration.as_millis());
        let first = self
            .first
            .map_or_else(|| "nothing shown".to_owned(), |first| format!("first word after {}", ms(first)));
        let streams = if self.pieces > 1 { "streamed" } else { "in one piece" };
        let calls = if calls_of(&self.answer.blocks).next().is_some() {
            "calls tools"
        } else {
            "took the tool, called none"
        };
        let usage = &self.answer.usage;
        let cache = match usage.cache_read_input_tokens.saturating_add(usage.cache_creation_input_tokens) {
            0 => "no caching reported for so short a prompt",
            _ => "caches",
        };
        format!("answered in {}: {first}, {streams}, {calls}, {cache}", ms(self.whole))
    }
}

fn check(state: CheckState, detail: String) -> Check {
    Check { name: "answer", state, detail }
}
