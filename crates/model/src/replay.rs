//! A model that answers from a cassette, and reports whether the request is the recorded one.
//!
//! *Exact*: the same digest. *Drift*: the same position and shape with other content; reported, and the replay
//! continues. *Divergence*: anything else; both sides are shown and the run ends.

use std::sync::Arc;
use std::time::Duration;

use lathe_protocol::{
    Block, BoxFuture, Message, ReplayDrifted, ReplayPace, ReplayStrictness, StopReason, calls_of,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::cassette::{Cassette, CassetteEntry, RecordedAnswer};
use crate::form::{Form, Wire};
use crate::request::{Delta, ModelAnswer, ModelClient, ModelError, WireRequest};
use crate::rope::neutral_json;
use crate::variables::Variables;

pub struct ReplayClient {
    cassette: Cassette,
    variables: Arc<Variables>,
    pace: ReplayPace,
    strictness: ReplayStrictness,
}

impl ReplayClient {
    pub fn new(
        cassette: Cassette,
        variables: Arc<Variables>,
        pace: ReplayPace,
        strictness: ReplayStrictness,
    ) -> Self {
        Self { cassette, variables, pace, strictness }
    }

    fn answer(&self, request: &WireRequest) -> Result<ModelAnswer, ModelError> {
        let lane = self.cassette.lane(&request.agent, request.purpose);
        let Some(entry) = usize::try_from(request.turn).ok().and_then(|turn| lane.get(turn)) else {
            let now = request.fresh.last().map(|message| self.json(message)).unwrap_or_default();
            return Err(ModelError::Diverged(format!(
                "the replay diverged at step {}: the recording ends after {} answers\n  recorded: nothing\n  now:      {}",
                request.step,
                lane.len(),
                excerpt(&now, 0)
            )));
        };
        let drift = self.compare(entry, request)?;
        if let (ReplayStrictness::Strict, Some(drift)) = (self.strictness, &drift) {
            return Err(ModelError::Diverged(format!(
                "the replay drifted at step {}: {}\n  recorded: {}\n  now:      {}",
                request.step, drift.place, drift.recorded, drift.now
            )));
        }
        let text = self.variables.fill(entry.answer.get());
        let recorded: RecordedAnswer = serde_json::from_str(&text).map_err(|error| {
            ModelError::Diverged(format!(
                "the recorded answer of step {} cannot be filled in: {error}",
                request.step
            ))
        })?;
        let has_calls = calls_of(&recorded.blocks).next().is_some();
        let stop =
            recorded.stop.unwrap_or(if has_calls { StopReason::ToolCalls } else { StopReason::EndTurn });
        Ok(ModelAnswer { blocks: recorded.blocks, stop, usage: recorded.usage, model: recorded.model, drift })
    }

    fn compare(
        &self,
        entry: &CassetteEntry,
        request: &WireRequest,
    ) -> Result<Option<ReplayDrifted>, ModelError> {
        let Some(asked) = &entry.asked else {
            return Ok(self.digest_drift(entry, request));
        };
        if asked.len() != request.fresh.len()
            || !asked.iter().zip(request.fresh.iter()).all(|(a, b)| same_shape(a, b))
        {
            return Err(ModelError::Diverged(format!(
                "the replay diverged at step {}: the messages have another shape\n  recorded: {}\n  now:      {}",
                request.step,
                shape(asked),
                shape(&request.fresh)
            )));
        }
        for (recorded, now) in asked.iter().zip(request.fresh.iter()) {
            // The recorded text was masked when it was written.
            let then = serde_json::to_string(recorded).unwrap_or_default();
            let today = self.json(now);
            if then != today {
                let at = then.bytes().zip(today.bytes()).take_while(|(a, b)| a == b).count();
                return Ok(Some(ReplayDrifted {
                    place: place_of(now),
                    recorded: excerpt(&then, at),
                    now: excerpt(&today, at),
                }));
            }
        }
        Ok(self.digest_drift(entry, request))
    }

    /// The new messages are equal, so the difference is older: an answer in the cassette was edited by hand, or an
    /// earlier drift is still in the chain.
    fn digest_drift(&self, entry: &CassetteEntry, request: &WireRequest) -> Option<ReplayDrifted> {
        let recorded = entry.digest.as_ref().filter(|digest| **digest != request.digest)?;
        Some(ReplayDrifted {
            place: "history before this step".to_owned(),
            recorded: format!("digest {}", recorded.short()),
            now: format!("digest {}", request.digest.short()),
        })
    }

    fn json(&self, message: &Message) -> String {
        neutral_json(message, &self.variables)
    }

    async fn show(&self, blocks: &[Block], deltas: &mpsc::Sender<Delta>) {
        for block in blocks {
            match block {
                Block::Text(text) => self.show_text(&text.text, Delta::Text, deltas).await,
                Block::Thinking(text) => self.show_text(&text.text, Delta::Thinking, deltas).await,
                Block::Call(call) => {
                    let _ = deltas.send(Delta::CallForming(call.name.clone())).await;
                    self.pause(Duration::from_millis(350)).await;
                }
                Block::Opaque(_) => {}
            }
        }
    }

    async fn show_text(&self, text: &str, form: fn(String) -> Delta, deltas: &mpsc::Sender<Delta>) {
        match self.pace {
            ReplayPace::Instant | ReplayPace::Each(_) => {
                let _ = deltas.send(form(text.to_owned())).await;
            }
            ReplayPace::Slow => {
                for word in text.split_inclusive(' ') {
                    let _ = deltas.send(form(word.to_owned())).await;
                    self.pause(Duration::from_millis(28)).await;
                }
            }
        }
    }

    async fn pause(&self, time: Duration) {
        match self.pace {
            ReplayPace::Instant | ReplayPace::Each(_) => {}
            ReplayPace::Slow => tokio::time::sleep(time).await,
        }
    }
}

impl ModelClient for ReplayClient {
    fn form(&self) -> Form {
        Wire::Chat.into()
    }

    fn ask<'a>(
        &'a self,
        request: WireRequest,
        deltas: &'a mpsc::Sender<Delta>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        Box::pin(async move {
            let answer = self.answer(&request)?;
            let showing = async {
                if let ReplayPace::Each(time) = self.pace {
                    tokio::time::sleep(time).await;
                }
                self.show(&answer.blocks, deltas).await;
            };
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(ModelError::Cancelled),
                () = showing => Ok(answer),
            }
        })
    }
}

fn same_shape(a: &Message, b: &Message) -> bool {
    match (a, b) {
        (Message::User(_), Message::User(_)) | (Message::Assistant(_), Message::Assistant(_)) => true,
        (Message::Tool(a), Message::Tool(b)) => a.call == b.call && a.name == b.name,
        (Message::User(_) | Message::Assistant(_) | Message::Tool(_), _) => false,
    }
}

fn shape(messages: &[Message]) -> String {
    let words: Vec<String> = messages.iter().map(place_of).collect();
    if words.is_empty() { "no new message".to_owned() } else { words.join(", ") }
}

fn place_of(message: &Message) -> String {
    match message {
        Message::User(_) => "user text".to_owned(),
        Message::Assistant(_) => "answer".to_owned(),
        Message::Tool(tool) => format!("result of call {} ({})", tool.call, tool.name),
    }
}

/// A part of `text` around byte `at`.
fn excerpt(text: &str, at: usize) -> String {
    let mut from = at.saturating_sub(60).min(text.len());
    while !text.is_char_boundary(from) {
        from -= 1;
    }
    let piece: String = text.get(from..).unwrap_or_default().chars().take(240).collect();
    let (before, after) =
        (if from > 0 { "…" } else { "" }, if from + piece.len() < text.len() { "…" } else { "" });
    format!("{before}{piece}{after}")
}
