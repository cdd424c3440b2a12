//! The conversation, built from events: the same journal always gives the same request.
//!
//! Results are held until the answer's last call has one. Then they are added in the order of the calls, whatever
//! order they arrived in. So in every request that can be made at all, each call has exactly one result.

use std::sync::Arc;

use lathe_blobs::Blobs;
use lathe_model::{Form, Head, ImageStore, Rope, Variables, WireRequest};
use lathe_protocol::{
    AgentId, AssistantMessage, CallFinished, CallId, Digest, Event, Fact, Image, Message, Persona, Seq,
    SessionOptions, StepNo, ToolMessage, ToolSpec, Toolset, UserMessage, calls_of,
};

/// Images from the blob store.
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
    /// True if the session was given a task.
    has_task: bool,
    /// The calls of the last answer, with the results so far.
    open: Vec<(CallId, Option<ToolMessage>)>,
    /// Messages of the user since the last request. They wait, because nothing may come between calls and their
    /// results.
    waiting_messages: Vec<String>,
    /// The event up to which the chain is known, so that messages need not be digested again.
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
            waiting_messages: Vec::new(),
            known: None,
        }
    }

    /// Sets the source of images. Without it no image is shown.
    pub fn with_images(self, images: Arc<dyn ImageStore>) -> Self {
        Self { rope: self.rope.with_images(images), ..self }
    }

    /// Skips digesting messages up to event `upto`, which a snapshot covers; `chain` is the digest there.
    pub fn trust_chain(&mut self, upto: Seq, chain: Digest) {
        self.known = Some((upto, chain));
    }

    /// The chain over all messages so far.
    pub fn chain(&self) -> &Digest {
        self.rope.chain()
    }

    fn push(&mut self, message: Message) {
        if self.known.is_some() { self.rope.push_known(message) } else { self.rope.push(message) }
    }

    /// Begins a session. This and the next two methods make up a first request, for the actor and for callers that
    /// only show that request.
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

    /// Adds a task in the words for the model.
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
                // Providers refuse an assistant message without content.
                if answered.blocks.is_empty() {
                    self.rope.skip_turn();
                } else {
                    self.push(Message::Assistant(AssistantMessage { blocks: answered.blocks.clone() }));
                }
            }
            Fact::CallFinished(finished) => self.add_result(event.place.call.as_ref(), finished),
            Fact::Reflected(reflected) => self.push(Message::user(&reflected.text)),
            Fact::Reminded(reminded) => self.push(Message::user(&reminded.text)),
            Fact::Steered(steered) => self.waiting_messages.push(steered.text.clone()),
            Fact::ModelAsked(_) => self.push_user_messages(),
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

    /// Adds the user's waiting messages. It must be called before a request is made.
    pub fn push_user_messages(&mut self) {
        for text in std::mem::take(&mut self.waiting_messages) {
            self.push(Message::user(text));
        }
    }

    pub fn request(&self, step: StepNo) -> WireRequest {
        self.rope.request(step)
    }

    fn add_result(&mut self, call: Option<&CallId>, finished: &CallFinished) {
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
