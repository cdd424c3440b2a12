//! Records requests to a model and its answers in a cassette, while they happen.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use lathe_protocol::{AgentId, Block, BoxFuture, Digest, Message, TextBlock, ToolCall, Toolset};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::cassette::{CassetteError, FORMAT, Header, RecordedAnswer};
use crate::form::Form;
use crate::request::{Delta, ModelAnswer, ModelClient, ModelError, Purpose, WireRequest};
use crate::rope::Neutral;
use crate::variables::Variables;

/// Wraps any client and records its answers in a cassette.
pub struct RecordingClient {
    inner: Arc<dyn ModelClient>,
    variables: Arc<Variables>,
    path: String,
    file: Mutex<File>,
}

impl RecordingClient {
    pub fn create(
        path: &Path,
        toolset: Toolset,
        inner: Arc<dyn ModelClient>,
        variables: Arc<Variables>,
    ) -> Result<Self, CassetteError> {
        let shown = path.display().to_string();
        let write = |source| CassetteError::Write { path: shown.clone(), source };
        let mut options = std::fs::OpenOptions::new();
        // An earlier recording is never overwritten, least of all the one being replayed.
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(write)?;
        file.write_all(cassette_header(toolset).as_bytes()).map_err(write)?;
        Ok(Self { inner, variables, path: shown, file: Mutex::new(file) })
    }

    fn write(&self, request: &WireRequest, answer: &ModelAnswer) -> Result<(), ModelError> {
        let line = cassette_line(request, answer, &self.variables);
        let mut file = self.file.lock();
        file.write_all(line.as_bytes()).map_err(|error| {
            ModelError::Unavailable(format!("cannot write the cassette {}: {error}", self.path))
        })
    }
}

/// The first line of a cassette.
pub fn cassette_header(toolset: Toolset) -> String {
    let header = Header { cassette: FORMAT, toolset, note: None };
    format!("{}\n", serde_json::to_string(&header).unwrap_or_default())
}

/// One request and its answer as a line of a cassette, with the machine's own values masked.
pub fn cassette_line(request: &WireRequest, answer: &ModelAnswer, variables: &Variables) -> String {
    #[derive(Serialize)]
    struct RecordedRequest<'a> {
        agent: &'a AgentId,
        purpose: Purpose,
        digest: &'a Digest,
        asked: Vec<Message>,
    }
    let asked = RecordedRequest {
        agent: &request.agent,
        purpose: request.purpose,
        digest: &request.digest,
        asked: request.fresh.iter().map(|message| message.neutral().into_owned()).collect(),
    };
    let recorded = RecordedAnswer {
        blocks: answer.blocks.iter().filter_map(without_raw).collect(),
        stop: Some(answer.stop.clone()),
        usage: answer.usage,
        model: answer.model.clone(),
    };
    let asked = serde_json::to_string(&asked).unwrap_or_default();
    let asked = variables.mask(&asked);
    let recorded = serde_json::to_string(&recorded).unwrap_or_default();
    let recorded = variables.mask_fillable(&recorded);
    format!("{},\"answer\":{recorded}}}\n", asked.strip_suffix('}').unwrap_or(&asked))
}

fn without_raw(block: &Block) -> Option<Block> {
    match block {
        Block::Text(text) => Some(Block::Text(TextBlock { text: text.text.clone(), raw: None })),
        Block::Thinking(text) => Some(Block::Thinking(TextBlock { text: text.text.clone(), raw: None })),
        Block::Call(call) => Some(Block::Call(ToolCall { raw: None, ..call.clone() })),
        Block::Opaque(_) => None,
    }
}

impl ModelClient for RecordingClient {
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
            let answer = self.inner.ask(request.clone(), deltas, cancel).await?;
            self.write(&request, &answer)?;
            Ok(answer)
        })
    }
}
