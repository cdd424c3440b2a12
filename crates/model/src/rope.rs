//! The prompt as a rope: a head and one segment per message, each serialised once.
//!
//! A request is the list of these byte strings; sending it copies nothing, so a step costs the same after four
//! megabytes of history as after four kilobytes. Because segments are only ever appended, the bytes of one request up
//! to its last message are a prefix of the next, which provider caches require. In parallel runs a chain of digests
//! over the *neutral* form of the messages, with the variables of the machine masked: journals and cassettes compare
//! it, for any wire.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use lathe_protocol::{AgentId, AssistantMessage, Block, Digest, Message, StepNo, TextBlock, ToolCall};
use serde::Serialize;

use crate::encode::{self, LastSpeaker};
use crate::form::Form;
use crate::images::{self, ImageStore, NoImages, Picture, Pictures};
use crate::part::{Part, Spill};
use crate::request::{Head, Purpose, WireRequest};
use crate::variables::Variables;

pub struct Rope {
    form: Form,
    variables: Arc<Variables>,
    agent: AgentId,
    parts: Vec<Part>,
    before: LastSpeaker,
    /// The end of the user's messages before the last answer: the provider's cache was last filled there.
    mark: Option<usize>,
    spill: Spill,
    chain: Digest,
    messages: u32,
    turn: u32,
    fresh: Arc<Vec<Message>>,
    images: Arc<dyn ImageStore>,
    sent: Pictures,
    /// Pictures of results that wait for the last result of their answer.
    waiting: Vec<Picture>,
}

impl Rope {
    /// A rope without a head; no request may be sent before it has one.
    pub fn new(form: impl Into<Form>, agent: AgentId, variables: Arc<Variables>) -> Self {
        Self {
            form: form.into(),
            agent,
            parts: vec![Part::Held(Bytes::new())],
            before: LastSpeaker::Start,
            mark: None,
            spill: Spill::new(),
            chain: Digest::of(b""),
            messages: 0,
            turn: 0,
            fresh: Arc::new(Vec::new()),
            images: Arc::new(NoImages),
            sent: Pictures::default(),
            waiting: Vec::new(),
            variables,
        }
    }

    /// Sets the source of images. Without it none is shown.
    pub fn with_images(self, images: Arc<dyn ImageStore>) -> Self {
        Self { images, ..self }
    }

    /// Starts an epoch: the same messages with another head. The chain covers messages only, so a cassette recorded
    /// with another system prompt is still exact.
    pub fn set_head(&mut self, head: &Head) {
        let bytes = encode::head(&self.form, head);
        if let Some(first) = self.parts.first_mut() {
            *first = Part::Held(bytes);
        }
    }

    pub fn push(&mut self, message: Message) {
        self.chain = self.chain.chained(&self.digest(&message));
        self.append(message);
    }

    /// Adds a message whose position in the chain is already known: see [`Rope::set_chain`].
    pub fn push_known(&mut self, message: Message) {
        self.append(message);
    }

    /// Sets the chain over all messages so far, as it was recorded.
    pub fn set_chain(&mut self, chain: Digest) {
        self.chain = chain;
    }

    pub fn chain(&self) -> &Digest {
        &self.chain
    }

    fn append(&mut self, message: Message) {
        let is_result = matches!(message, Message::Tool(_));
        if !is_result {
            self.end_results();
        }
        let shown = images::prepare(&self.form, &message, &*self.images, &mut self.sent);
        let (told, pictures) = match &shown {
            Some(shown) => (&shown.message, shown.pictures.as_slice()),
            None => (&message, &[][..]),
        };
        let apart = is_result && encode::sends_pictures_apart(&self.form);
        let beside = if apart { &[] } else { pictures };
        if let Some(bytes) = encode::piece(&self.form, told, beside, self.before) {
            let now = LastSpeaker::after(&message);
            if (self.before, now) == (LastSpeaker::User, LastSpeaker::Assistant) {
                self.mark = Some(self.parts.len());
            }
            self.before = now;
            self.parts.push(self.spill.keep(bytes));
        }
        if apart && let Some(shown) = shown {
            self.waiting.extend(shown.pictures);
        }
        self.messages += 1;
        match message {
            Message::Assistant(_) => {
                self.turn += 1;
                self.fresh = Arc::new(Vec::new());
            }
            Message::User(_) | Message::Tool(_) => Arc::make_mut(&mut self.fresh).push(message),
        }
    }

    /// To be called after the last result of an answer. On wires whose results are text only, the pictures of all of
    /// them follow now: nothing may come between two results.
    pub fn end_results(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return;
        }
        let lines: Vec<String> = waiting.iter().map(Picture::caption).collect();
        if let Some(bytes) =
            encode::piece(&self.form, &Message::user(lines.join("\n")), &waiting, self.before)
        {
            self.before = LastSpeaker::User;
            self.parts.push(self.spill.keep(bytes));
        }
    }

    /// Counts an answer that left no message.
    pub fn skip_turn(&mut self) {
        self.turn += 1;
    }

    /// The request for the next answer.
    pub fn request(&self, step: StepNo) -> WireRequest {
        let (marked, rest) = self.parts.split_at(self.mark.unwrap_or(0).min(self.parts.len()));
        let mut parts = Vec::with_capacity(self.parts.len() + 2);
        parts.extend_from_slice(marked);
        if self.mark.is_some() {
            parts.extend(encode::cache_mark(&self.form).map(Part::Held));
        }
        parts.extend_from_slice(rest);
        parts.push(Part::Held(encode::tail(&self.form, self.before)));
        WireRequest {
            agent: self.agent.clone(),
            purpose: Purpose::Step,
            step,
            parts: Arc::new(parts),
            digest: self.chain.clone(),
            messages: self.messages,
            turn: self.turn,
            fresh: Arc::clone(&self.fresh),
            pictures: self.sent,
        }
    }

    fn digest(&self, message: &Message) -> Digest {
        Digest::of(neutral_json(message, &self.variables).as_bytes())
    }
}

/// A message as JSON without provider-specific parts, variables masked.
pub(crate) fn neutral_json<T: Serialize + Neutral>(message: &T, variables: &Variables) -> String {
    // Serialising our own types to a string cannot fail: keys are strings and raw JSON was checked when made.
    let text = serde_json::to_string(&message.neutral()).unwrap_or_default();
    match variables.mask(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(masked) => masked,
    }
}

/// Removes the raw forms of providers.
pub(crate) trait Neutral: Clone {
    fn neutral(&self) -> Cow<'_, Self>;
}

impl Neutral for Message {
    fn neutral(&self) -> Cow<'_, Self> {
        match self {
            Message::Assistant(message) => {
                Cow::Owned(Message::Assistant(AssistantMessage { blocks: neutral_blocks(&message.blocks) }))
            }
            Message::User(_) | Message::Tool(_) => Cow::Borrowed(self),
        }
    }
}

pub(crate) fn neutral_blocks(blocks: &[Block]) -> Vec<Block> {
    blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(Block::Text(TextBlock { text: text.text.clone(), raw: None })),
            Block::Call(call) => Some(Block::Call(ToolCall { raw: None, ..call.clone() })),
            Block::Thinking(_) | Block::Opaque(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Wire;
    use lathe_protocol::{Arguments, CallId, ToolMessage};

    fn rope() -> Rope {
        let head = Head { model: "m".into(), system: "be good".into(), tools: Vec::new() };
        let mut rope = Rope::new(Wire::Chat, AgentId::main(), Arc::new(Variables::none()));
        rope.set_head(&head);
        rope
    }

    fn joined(request: &WireRequest) -> Vec<u8> {
        request.body().unwrap()
    }

    fn call(id: &str) -> Block {
        Block::Call(ToolCall {
            id: CallId::new(id),
            name: "bash".into(),
            arguments: Arguments::from_text("{}"),
            raw: None,
        })
    }

    #[test]
    fn each_request_up_to_its_last_message_is_a_prefix_of_the_next() {
        let mut rope = rope();
        rope.push(Message::user("do it"));
        let mut last = joined(&rope.request(StepNo(1)));
        for n in 0..5 {
            rope.push(Message::Assistant(AssistantMessage { blocks: vec![call(&format!("c{n}"))] }));
            rope.push(Message::Tool(ToolMessage {
                call: CallId::new(format!("c{n}")),
                name: "bash".into(),
                text: "ok".into(),
                error: false,
                images: Vec::new(),
            }));
            let next = joined(&rope.request(StepNo(n + 2)));
            assert!(next.starts_with(&last[..last.len() - 2]));
            last = next;
        }
        serde_json::from_slice::<serde_json::Value>(&last).unwrap();
    }

    #[test]
    fn fresh_holds_what_came_since_the_last_answer() {
        let mut rope = rope();
        rope.push(Message::user("a"));
        rope.push(Message::Assistant(AssistantMessage { blocks: vec![Block::text("b")] }));
        rope.push(Message::user("c"));
        let request = rope.request(StepNo(2));
        assert_eq!((request.turn, request.messages), (1, 3));
        assert_eq!(*request.fresh, vec![Message::user("c")]);
    }

    #[test]
    fn the_chain_does_not_depend_on_the_head_but_on_every_message() {
        let (mut a, mut b) = (rope(), rope());
        b.set_head(&Head { model: "other".into(), system: "other".into(), tools: Vec::new() });
        a.push(Message::user("x"));
        b.push(Message::user("x"));
        assert_eq!(a.request(StepNo(1)).digest, b.request(StepNo(1)).digest);
        b.push(Message::user("y"));
        assert_ne!(a.request(StepNo(1)).digest, b.request(StepNo(1)).digest);
    }

    #[test]
    fn pictures_go_where_each_wire_has_a_place_for_them() {
        struct Abc;
        impl ImageStore for Abc {
            fn read(&self, _: &Digest) -> Result<Vec<u8>, String> {
                Ok(b"ABC".to_vec())
            }
        }
        let image = || lathe_protocol::Image {
            media_type: "image/png".into(),
            blob: Digest::of(b"ABC"),
            name: "a.png".into(),
        };
        for wire in Wire::ALL {
            let mut rope =
                Rope::new(wire, AgentId::main(), Arc::new(Variables::none())).with_images(Arc::new(Abc));
            rope.set_head(&Head { model: "m".into(), system: "s".into(), tools: Vec::new() });
            rope.push(Message::User(lathe_protocol::UserMessage {
                text: "look".into(),
                images: vec![image()],
            }));
            rope.push(Message::Assistant(AssistantMessage { blocks: vec![call("c1")] }));
            rope.push(Message::Tool(ToolMessage {
                call: CallId::new("c1"),
                name: "view".into(),
                text: "a picture".into(),
                error: true,
                images: vec![image()],
            }));
            rope.end_results();
            let body: serde_json::Value = serde_json::from_slice(&joined(&rope.request(StepNo(1)))).unwrap();
            let at = |pointer: &str| {
                body.pointer(pointer).unwrap_or_else(|| panic!("{pointer} in {body}")).clone()
            };
            let (asked, result) = match wire {
                Wire::Chat => {
                    (at("/messages/1/content/0/image_url/url"), at("/messages/4/content/0/image_url/url"))
                }
                Wire::Messages => (
                    at("/messages/0/content/0/source/data"),
                    at("/messages/2/content/0/content/1/source/data"),
                ),
                Wire::Responses => (at("/input/0/content/1/image_url"), at("/input/2/output/1/image_url")),
                Wire::Gemini => {
                    (at("/contents/0/parts/1/inlineData/data"), at("/contents/2/parts/2/inlineData/data"))
                }
                Wire::Ollama => (at("/messages/1/images/0"), at("/messages/4/images/0")),
            };
            assert!(asked.as_str().unwrap().contains("QUJD"), "{}", wire.as_str());
            assert!(result.as_str().unwrap().contains("QUJD"), "{}", wire.as_str());
            if wire == Wire::Messages {
                assert_eq!(at("/messages/2/content/0/is_error"), true);
            }
        }
    }
}
