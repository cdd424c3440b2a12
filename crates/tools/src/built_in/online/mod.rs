//! `online_doc_tool`: documents outside the workspace, created, read and replaced as a whole.
//!
//! The storage is behind a trait: a store of Lathe's own, or a service that the user names. The strings are those of
//! the server fork, matched to the letter.

use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Effects, Lane, ToolErrorKind, ToolKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::built_in::BuiltIn;
use crate::call::{BuildContext, Parameters};
use crate::faces::Face;
use crate::outcome::{Data, Outcome};
use crate::problem::Problem;
use crate::tool::{Invocation, RunContext};

pub(crate) const ID: &str = "online";

/// The tool in the list of built-in tools.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: Some(
        Face::lathe::<OnlineParameters>(
            "online_doc_tool",
            "Documents",
            ToolKind::Fetch,
            include_str!("lathe.md"),
        )
        .with_cap(20_000),
    ),
    command: None,
    only_if: Some(|services| services.documents.is_some()),
};

/// Characters of a document that the model is shown.
const SHOWN: usize = 16_000;

/// An operation on documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentRequest {
    Create { title: String, content: String, description: String },
    Detail { id: String },
    Edit { id: String, content: String, title: Option<String> },
}

impl DocumentRequest {
    /// Tells whether the operation changes something.
    pub fn changes_something(&self) -> bool {
        match self {
            DocumentRequest::Create { .. } | DocumentRequest::Edit { .. } => true,
            DocumentRequest::Detail { .. } => false,
        }
    }
}

/// A document, or the outcome of an operation on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentReply {
    pub id: String,
    pub title: String,
    pub description: String,
    pub content: String,
    pub updated_at: String,
    pub title_changed: bool,
}

/// Keeps documents.
pub trait Documents: Send + Sync {
    /// The host that is called. None if the documents are kept on this machine.
    fn host(&self) -> Option<&str>;

    /// Performs an operation. The error is text for the model, such as `HTTP 404 at …`.
    fn perform<'a>(
        &'a self,
        ask: DocumentRequest,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<DocumentReply, String>>;
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum DocumentVerb {
    Create,
    Detail,
    Edit,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OnlineParameters {
    /// What to do.
    command: DocumentVerb,
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

impl Parameters for OnlineParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let OnlineParameters { command, title, content, description, document_id } = self;
        let need = |value: Option<String>, name: &str| {
            let given = value.filter(|text| !text.trim().is_empty());
            given.ok_or_else(|| Problem::Arguments(format!("`{name}` is needed for this command")))
        };
        let ask = match command {
            DocumentVerb::Create => DocumentRequest::Create {
                title: need(title, "title")?,
                content: need(content, "content")?,
                description: need(description, "description")?,
            },
            DocumentVerb::Detail => DocumentRequest::Detail { id: need(document_id, "document_id")? },
            DocumentVerb::Edit => DocumentRequest::Edit {
                id: need(document_id, "document_id")?,
                content: need(content, "content")?,
                title: title.filter(|title| !title.trim().is_empty()),
            },
        };
        Ok(Box::new(DocumentCall { ask, host: ground.setup.documents.clone() }))
    }
}

struct DocumentCall {
    ask: DocumentRequest,
    host: Option<String>,
}

impl Invocation for DocumentCall {
    fn describe(&self) -> String {
        match &self.ask {
            DocumentRequest::Create { title, .. } => format!("create document {title}"),
            DocumentRequest::Detail { id } => format!("read document {id}"),
            DocumentRequest::Edit { id, .. } => format!("replace document {id}"),
        }
    }

    /// Documents are not files of the workspace: the effect is the call to the host that keeps them.
    fn effects(&self) -> Effects {
        let kept_here = self.ask.changes_something().then(|| "localhost".to_owned());
        Effects { hosts: self.host.clone().or(kept_here).into_iter().collect(), ..Effects::default() }
    }

    fn lane(&self) -> Lane {
        if self.ask.changes_something() { Lane::Alone } else { Lane::Reader }
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let Some(documents) = context.services.documents.clone() else {
                return Err(failed("this session has no documents".to_owned())).into();
            };
            let ask = self.ask;
            match documents.perform(ask.clone(), &context.cancel).await {
                Ok(answer) => Ok(Data::Online { text: words(&ask, &answer), id: answer.id }).into(),
                Err(reason) => Err(failed(reason)).into(),
            }
        })
    }
}

fn failed(message: String) -> Problem {
    Problem::Foreign { kind: ToolErrorKind::ExecutionFailed, message }
}

fn words(ask: &DocumentRequest, answer: &DocumentReply) -> String {
    let id = &answer.id;
    match ask {
        DocumentRequest::Create { .. } => {
            let body = json!({ "documentId": id, "title": answer.title, "description": answer.description });
            format!("Create success: document created\n{body}")
        }
        DocumentRequest::Detail { .. } => {
            let content = crate::faces::trae::clipped(&answer.content, SHOWN);
            let body = json!({ "documentId": id, "title": answer.title, "content": content, "updatedAt": answer.updated_at });
            format!("Detail success: document fetched\n{body}")
        }
        DocumentRequest::Edit { .. } => {
            let body = json!({ "documentId": id, "success": true, "titleChanged": answer.title_changed });
            format!("Edit success: document updated\n{body}")
        }
    }
}
