//! `online_doc_tool`: documents beside the workspace, created, read and replaced as a whole.
//!
//! Where they are kept is behind a seam: a store of Lathe's own, or a service the user names. The strings are those of the
//! server fork, matched to the letter.

use lathe_policy::Permit;
use lathe_protocol::{Boxed, Effects, Kind, Lane, ToolErrorKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::built_in::BuiltIn;
use crate::call::{Ground, Parameters};
use crate::face::Face;
use crate::outcome::{Data, Outcome};
use crate::problem::Problem;
use crate::tool::{Invocation, RunContext};

pub(crate) const ID: &str = "online";

/// The tool in the list of all.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: Some(
        Face::lathe::<Arguments>("online_doc_tool", "Documents", Kind::Fetch, include_str!("lathe.md"))
            .capped(20_000),
    ),
    command: None,
    only_if: Some(|services| services.documents.is_some()),
};

/// Characters of a document that the model is shown.
const SHOWN: usize = 16_000;

/// Something to be done with documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentAsk {
    Create { title: String, content: String, description: String },
    Detail { id: String },
    Edit { id: String, content: String, title: Option<String> },
}

impl DocumentAsk {
    /// Whether something is other than before afterwards.
    pub fn changes_something(&self) -> bool {
        match self {
            DocumentAsk::Create { .. } | DocumentAsk::Edit { .. } => true,
            DocumentAsk::Detail { .. } => false,
        }
    }
}

/// A document, or what became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentAnswer {
    pub id: String,
    pub title: String,
    pub description: String,
    pub content: String,
    pub updated_at: String,
    pub title_changed: bool,
}

/// Keeps documents.
pub trait Documents: Send + Sync {
    /// The host that is asked; none where they are kept here.
    fn host(&self) -> Option<&str>;

    /// A failure is words for the model, as `HTTP 404 at …`.
    fn ask<'a>(
        &'a self,
        ask: DocumentAsk,
        cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<DocumentAnswer, String>>;
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Verb {
    Create,
    Detail,
    Edit,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// What to do.
    command: Verb,
    /// The title; needed for `create`, for `edit` only if it changes.
    #[serde(default)]
    title: Option<String>,
    /// The whole document as HTML; needed for `create` and `edit`.
    #[serde(default)]
    content: Option<String>,
    /// What the document is about; needed for `create`.
    #[serde(default)]
    description: Option<String>,
    /// Which document; needed for `detail` and `edit`.
    #[serde(default)]
    document_id: Option<String>,
}

impl Parameters for Arguments {
    const TOOL: &'static str = ID;

    fn invocation(self, ground: &Ground<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let Arguments { command, title, content, description, document_id } = self;
        let need = |value: Option<String>, name: &str| {
            let given = value.filter(|text| !text.trim().is_empty());
            given.ok_or_else(|| Problem::Arguments(format!("`{name}` is needed for this command")))
        };
        let ask = match command {
            Verb::Create => DocumentAsk::Create {
                title: need(title, "title")?,
                content: need(content, "content")?,
                description: need(description, "description")?,
            },
            Verb::Detail => DocumentAsk::Detail { id: need(document_id, "document_id")? },
            Verb::Edit => DocumentAsk::Edit {
                id: need(document_id, "document_id")?,
                content: need(content, "content")?,
                title: title.filter(|title| !title.trim().is_empty()),
            },
        };
        Ok(Box::new(Asked { ask, host: ground.setup.documents.clone() }))
    }
}

struct Asked {
    ask: DocumentAsk,
    host: Option<String>,
}

impl Invocation for Asked {
    fn describe(&self) -> String {
        match &self.ask {
            DocumentAsk::Create { title, .. } => format!("create document {title}"),
            DocumentAsk::Detail { id } => format!("read document {id}"),
            DocumentAsk::Edit { id, .. } => format!("replace document {id}"),
        }
    }

    /// Documents are no files of the workspace: whoever keeps them is what is reached.
    fn effects(&self) -> Effects {
        let kept_here = self.ask.changes_something().then(|| "localhost".to_owned());
        Effects { hosts: self.host.clone().or(kept_here).into_iter().collect(), ..Effects::default() }
    }

    fn lane(&self) -> Lane {
        if self.ask.changes_something() { Lane::Alone } else { Lane::Reader }
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> Boxed<'static, Outcome> {
        Box::pin(async move {
            let Some(documents) = context.services.documents.clone() else {
                return Err(failed("this session has no documents".to_owned())).into();
            };
            let ask = self.ask;
            match documents.ask(ask.clone(), &context.cancel).await {
                Ok(answer) => Ok(Data::Online { text: words(&ask, &answer), id: answer.id }).into(),
                Err(reason) => Err(failed(reason)).into(),
            }
        })
    }
}

fn failed(message: String) -> Problem {
    Problem::Foreign { kind: ToolErrorKind::ExecutionFailed, message }
}

fn words(ask: &DocumentAsk, answer: &DocumentAnswer) -> String {
    let id = &answer.id;
    match ask {
        DocumentAsk::Create { .. } => {
            let body = json!({ "documentId": id, "title": answer.title, "description": answer.description });
            format!("Create success: document created\n{body}")
        }
        DocumentAsk::Detail { .. } => {
            let content = crate::trae::clipped(&answer.content, SHOWN);
            let body = json!({ "documentId": id, "title": answer.title, "content": content, "updatedAt": answer.updated_at });
            format!("Detail success: document fetched\n{body}")
        }
        DocumentAsk::Edit { .. } => {
            let body = json!({ "documentId": id, "success": true, "titleChanged": answer.title_changed });
            format!("Edit success: document updated\n{body}")
        }
    }
}
