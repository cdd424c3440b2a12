//! The conversation, fed from events: the same journal always gives the same request.
//!
//! Results are held until the answer's last call has one, then go in by the order of the calls, whatever order they came in.
//! So every request that can be made at all is one in which each call has exactly one result.

use std::sync::Arc;

use lathe_blobs::Blobs;
use lathe_model::{Form, Head, ImageStore, Request, Rope, Variables};
use lathe_protocol::{
    AgentId, AssistantMessage, CallFinished, CallId, Digest, Event, Fact, Image, Message, Persona, Seq,
    SessionOptions, StepNo, ToolMessage, ToolSpec, Toolset, UserMessage, calls_of,
};

/// Images of the blob store.
pub struct StoredImages(pub Blobs);

impl ImageStore for StoredImages {
    fn read(&self, blob: &Digest) -> Result<Vec<u8>, String> {
        match self.0.get(blob) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err("its content is no longer stored".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

pub struct History {
    rope: Rope,
    toolset: Toolset,
    model: String,
    workspace: String,
    persona: Option<Persona>,
    /// Whether the session was given a task.
    has_task: bool,
    /// The calls of the last answer, with the results that are there.
    open: Vec<(CallId, Option<ToolMessage>)>,
    /// What a person said since the last request. It waits, because nothing may come between calls and their results.
    said: Vec<String>,
    /// Up to this event the chain is known, so messages need not be digested again.
    known: Option<(Seq, Digest)>,
}

impl History {
    pub fn new(form: impl Into<Form>, agent: AgentId, variables: Arc<Variables>) -> Self {
        Self {
            rope: Rope::new(form, agent, variables),
            toolset: Toolset::Lathe,
            model: String::new(),
            workspace: String::new(),
            persona: None,
            has_task: false,
            open: Vec::new(),
            said: Vec::new(),
            known: None,
        }
    }

    /// Says where images are. Without it none is shown.
    pub fn with_images(self, images: Arc<dyn ImageStore>) -> Self {
        Self { rope: self.rope.with_images(images), ..self }
    }

    /// Spares digesting what was digested before a snapshot; `chain` is what it came to at event `upto`.
    pub fn trust(&mut self, upto: Seq, chain: Digest) {
        self.known = Some((upto, chain));
    }

    /// The chain over all messages so far.
    pub fn chain(&self) -> &Digest {
        self.rope.chain()
    }

    fn push(&mut self, message: Message) {
        if self.known.is_some() { self.rope.push_known(message) } else { self.rope.push(message) }
    }

    /// Begins a session. This and the next two are what a first request is made of, for the actor and for what only shows
    /// that request.
    pub fn begin(&mut self, toolset: Toolset, model: &str, workspace: &str, persona: Option<Persona>) {
        self.toolset = toolset;
        self.model = model.to_owned();
        self.workspace = workspace.to_owned();
        self.persona = persona;
    }

    /// Gives every request from now on this system text and these tools.
    pub fn start_epoch(&mut self, system: String, tools: Vec<ToolSpec>) {
        self.rope.set_head(&Head { model: self.model.clone(), system, tools });
    }

    /// Adds a task as the model is told it.
    pub fn give_task(&mut self, text: &str, images: Vec<Image>) {
        let is_first = !std::mem::replace(&mut self.has_task, true);
        let task = Persona::task_text(self.persona.as_ref(), text, is_first);
        self.push(Message::User(UserMessage { text: self.task_text(&task), images }));
    }

    pub fn take(&mut self, event: &Event) {
        self.take_fact(event);
        if let Some((_, chain)) = self.known.take_if(|(upto, _)| *upto <= event.seq) {
            self.rope.set_chain(chain);
        }
    }

    fn take_fact(&mut self, event: &Event) {
        match &event.fact {
            Fact::SessionOpened(opened) => {
                let SessionOptions { toolset, model, persona, .. } = &opened.options;
                self.begin(*toolset, &model.model, &opened.workspace, persona.clone());
            }
            Fact::OptionsChanged(changed) => {
                self.toolset = changed.options.toolset;
                self.model.clone_from(&changed.options.model.model);
            }
            Fact::EpochStarted(epoch) => self.start_epoch(epoch.system.clone(), epoch.tools.clone()),
            Fact::TaskGiven(given) => {
                self.give_task(&given.text, given.images.iter().map(Image::from).collect());
            }
            Fact::ModelAnswered(answered) => {
                self.open = calls_of(&answered.blocks).map(|call| (call.id.clone(), None)).collect();
                // A provider refuses an assistant message with nothing in it.
                if answered.blocks.is_empty() {
                    self.rope.skip_turn();
                } else {
                    self.push(Message::Assistant(AssistantMessage { blocks: answered.blocks.clone() }));
                }
            }
            Fact::CallFinished(finished) => self.result(event.place.call.as_ref(), finished),
            Fact::Reflected(reflected) => self.push(Message::user(&reflected.text)),
            Fact::Reminded(reminded) => self.push(Message::user(&reminded.text)),
            Fact::Steered(steered) => self.said.push(steered.text.clone()),
            Fact::ModelAsked(_) => self.settle(),
            Fact::BaselineTaken(_)
            | Fact::RunResumed(_)
            | Fact::CancelAsked(_)
            | Fact::SessionNamed(_)
            | Fact::StepSummarised(_)
            | Fact::EditsReviewed(_)
            | Fact::CommandTaken(_)
            | Fact::ModelFailed(_)
            | Fact::ReplayDrifted(_)
            | Fact::CallDecided(_)
            | Fact::CallStarted(_)
            | Fact::TaskFinished(_)
            | Fact::Rewound(_)
            | Fact::RewindUndone(_)
            | Fact::FilesRestored(_)
            | Fact::QuestionAsked(_)
            | Fact::CommandRan(_)
            | Fact::ApprovalAsked(_)
            | Fact::ApprovalGiven(_)
            | Fact::ApprovalExpired(_)
            | Fact::Unknown(_) => {}
        }
    }

    /// Puts what a person said before the model. To be called before a request is made.
    pub fn settle(&mut self) {
        for text in std::mem::take(&mut self.said) {
            self.push(Message::user(text));
        }
    }

    pub fn request(&self, step: StepNo) -> Request {
        self.rope.request(step)
    }

    fn result(&mut self, call: Option<&CallId>, finished: &CallFinished) {
        let Some(slot) = self.open.iter_mut().find(|(id, result)| Some(id) == call && result.is_none())
        else {
            return;
        };
        slot.1 = Some(ToolMessage {
            call: slot.0.clone(),
            name: finished.name.clone(),
            text: finished.text.clone(),
            error: finished.error.is_some(),
            images: finished.attachments.iter().map(Image::from).collect(),
        });
        if self.open.iter().all(|(_, result)| result.is_some()) {
            for (_, result) in std::mem::take(&mut self.open) {
                if let Some(message) = result {
                    self.push(Message::Tool(message));
                }
            }
            self.rope.end_results();
        }
    }

    fn task_text(&self, task: &str) -> String {
        match self.toolset {
            Toolset::Lathe | Toolset::Gemini | Toolset::Bash => task.to_owned(),
            Toolset::Trae => format!(
                "[Project root path]:\n{}\n\n[Problem statement]: We're currently solving the following issue within our repository. Here's the issue text:\n{task}\n",
                self.workspace
            ),
        }
    }
}
