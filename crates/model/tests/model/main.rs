//! The clients against servers, as a session uses them.

// Helpers of tests are not inside `#[test]` functions, where these are allowed anyway.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod allocations;
mod asking;
#[cfg(feature = "real-server")]
mod real;

use std::sync::Arc;
use std::time::Duration;

use lathe_model::{
    Address, Auth, ClientOptions, Delivery, Delta, Form, Head, HttpClient, ModelAnswer, ModelClient,
    ModelError, Outage, Params, Patience, Rope, Variables, Wire,
};
use lathe_protocol::{AgentId, Message, NetworkReach, StepNo};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) fn options(wire: Wire, base_url: &str, delivery: Delivery) -> ClientOptions {
    ClientOptions {
        form: Form::new(wire, Params { delivery, max_tokens: Some(24), ..Params::default() }),
        base_url: base_url.to_owned(),
        model: "fake".to_owned(),
        address: Address::Usual,
        auth: Auth::None,
        headers: Vec::new(),
        key_hint: "set a key".to_owned(),
        patience: Patience { attempts: 2, longest_wait: Duration::from_millis(50), ..Patience::default() },
        outage: Outage::Fail,
        reach: NetworkReach::Anywhere,
    }
}

/// One question, one answer, and everything that was shown on the way.
pub(crate) async fn ask(
    options: ClientOptions,
    question: &str,
    cancel: CancellationToken,
) -> (Result<ModelAnswer, ModelError>, Vec<Delta>) {
    ask_until(options, question, cancel, |_| false).await
}

/// The same, cancelled as soon as something is shown that is the sign for it.
pub(crate) async fn ask_until(
    options: ClientOptions,
    question: &str,
    cancel: CancellationToken,
    is_sign: impl Fn(&Delta) -> bool,
) -> (Result<ModelAnswer, ModelError>, Vec<Delta>) {
    let client = HttpClient::new(options);
    let mut rope = Rope::new(client.form(), AgentId::main(), Arc::new(Variables::none()));
    let system = "Answer in one short sentence.".to_owned();
    rope.set_head(&Head { model: "fake".to_owned(), system, tools: Vec::new() });
    rope.push(Message::user(question));
    let (sender, mut deltas) = mpsc::channel(1024);
    let asking = async {
        let answer = client.ask(rope.request(StepNo(1)), &sender, &cancel).await;
        drop(sender);
        answer
    };
    let watching = async {
        let mut shown = Vec::new();
        while let Some(delta) = deltas.recv().await {
            if is_sign(&delta) {
                cancel.cancel();
            }
            shown.push(delta);
        }
        shown
    };
    tokio::join!(asking, watching)
}

pub(crate) fn text_of(deltas: &[Delta]) -> String {
    deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::Text(text) => Some(text.as_str()),
            Delta::Thinking(_) | Delta::CallForming(_) | Delta::Retry { .. } | Delta::Lost(_) => None,
        })
        .collect()
}
