//! A question outside of the conversation: a request of its own, in a lane of its own, that leaves no trace in the
//! rope.

use std::sync::Arc;

use lathe_protocol::{AgentId, Message, StepNo, Usage, text_of};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::form::{Form, Params};
use crate::request::{Delta, Head, ModelAnswer, ModelClient, ModelError, Purpose, WireRequest};
use crate::rope::Rope;
use crate::variables::Variables;

/// A model for single questions.
#[derive(Clone)]
pub struct Aside {
    client: Arc<dyn ModelClient>,
    model: String,
    variables: Arc<Variables>,
}

pub struct AsideQuestion<'a> {
    pub purpose: Purpose,
    /// The step that the question is about.
    pub step: StepNo,
    /// The index of the answer in its lane, counted from 0.
    pub turn: u32,
    pub system: &'a str,
    pub text: &'a str,
    pub temperature: f64,
    pub max_tokens: u32,
}

/// The answer to a single question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsideAnswer {
    pub text: String,
    pub usage: Usage,
    pub model: String,
}

impl Aside {
    pub fn new(client: Arc<dyn ModelClient>, model: impl Into<String>, variables: Arc<Variables>) -> Self {
        Self { client, model: model.into(), variables }
    }

    pub async fn ask(
        &self,
        question: &AsideQuestion<'_>,
        cancel: &CancellationToken,
    ) -> Result<AsideAnswer, ModelError> {
        let (deltas, mut shown) = mpsc::channel(64);
        let request = self.request(question);
        let asking = async {
            let answer = self.client.ask(request, &deltas, cancel).await;
            drop(deltas);
            answer
        };
        // The deltas of an aside are not shown, but the channel must be drained.
        let mut lost = Usage::default();
        let taking = async {
            while let Some(delta) = shown.recv().await {
                match delta {
                    Delta::Lost(usage) => lost += usage,
                    Delta::Text(_) | Delta::Thinking(_) | Delta::CallForming(_) | Delta::Retry { .. } => {}
                }
            }
        };
        let (answer, ()) = tokio::join!(asking, taking);
        let ModelAnswer { blocks, mut usage, model, .. } = answer?;
        usage += lost;
        Ok(AsideAnswer { text: text_of(&blocks), usage, model })
    }

    fn request(&self, question: &AsideQuestion<'_>) -> WireRequest {
        let Form { wire, params } = self.client.form();
        let params = Params {
            temperature: Some(question.temperature),
            max_tokens: Some(question.max_tokens),
            top_p: None,
            top_k: None,
            thinking_tokens: None,
            stop_sequences: Vec::new(),
            ..(*params).clone()
        };
        let mut rope = Rope::new(Form::new(wire, params), AgentId::main(), Arc::clone(&self.variables));
        rope.set_head(&Head {
            model: self.model.clone(),
            system: question.system.to_owned(),
            tools: Vec::new(),
        });
        rope.push(Message::user(question.text));
        WireRequest { purpose: question.purpose, turn: question.turn, ..rope.request(question.step) }
    }
}
