//! Documents outside the workspace: Lathe's own store, or a service that the user's configuration names. The tool of
//! a session and clients over HTTP use the same shelf.

use std::sync::Arc;

use lathe_documents::{DocumentError, DocumentService, DocumentStore, ServiceOptions};
use lathe_protocol::{BoxFuture, Document, DocumentRow, DocumentVersion};
use lathe_redact::Redactor;
use lathe_tools::{DocumentReply, DocumentRequest, Documents};
use tokio_util::sync::CancellationToken;

use crate::archive::Archive;
use crate::error::HostError;

/// The place of the documents, and the switch that gives them to a session.
#[derive(Debug, Clone, Default)]
pub struct OnlinePlan {
    pub enabled: bool,
    /// A service; Lathe's own store if left out.
    pub service: Option<ServiceOptions>,
}

/// Characters of a service's error text that are shown.
const LONGEST_REASON: usize = 300;

/// A place that holds documents.
pub struct Shelf {
    kind: ShelfKind,
    /// Redacts what a service sends.
    screen: Redactor,
}

enum ShelfKind {
    Own(Arc<DocumentStore>),
    Service(DocumentService),
}

/// The reason why nothing was read or stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShelfError {
    /// For the user, and for the model.
    pub message: String,
    pub disk_full: bool,
}

impl From<DocumentError> for ShelfError {
    fn from(error: DocumentError) -> Self {
        Self { disk_full: error.is_full(), message: error.to_string() }
    }
}

fn document_error(error: DocumentError) -> HostError {
    match ShelfError::from(error) {
        ShelfError { message: words, disk_full: true } => HostError::NoSpace(words),
        ShelfError { message: words, disk_full: false } => HostError::Documents(words),
    }
}

impl Archive {
    /// The shelf of documents, in Lathe's own store or at a service.
    pub fn shelf(&self, plan: &OnlinePlan) -> Result<Shelf, HostError> {
        let kind = match &plan.service {
            Some(options) => ShelfKind::Service(DocumentService::new(options).map_err(document_error)?),
            None => {
                self.home().make()?;
                ShelfKind::Own(Arc::new(
                    DocumentStore::open(&self.home().documents()).map_err(document_error)?,
                ))
            }
        };
        // A service may repeat the key that it was sent.
        let own = plan.service.as_ref().and_then(|options| options.key.clone());
        let own = own.map(|key| ("ONLINE_KEY".to_owned(), key));
        Ok(Shelf { kind, screen: self.display_redactor_with(own) })
    }
}

/// Runs work on the store on a thread that may block.
async fn on_store<T: Send + 'static>(
    store: &Arc<DocumentStore>,
    work: impl FnOnce(&DocumentStore) -> Result<T, DocumentError> + Send + 'static,
) -> Result<T, ShelfError> {
    let store = Arc::clone(store);
    match tokio::task::spawn_blocking(move || work(&store)).await {
        Ok(done) => Ok(done?),
        Err(error) => Err(ShelfError { message: error.to_string(), disk_full: false }),
    }
}

impl Shelf {
    /// The error of a service: redacted first, then cut.
    fn redacted_error(&self, error: &DocumentError) -> ShelfError {
        let words = error.to_string();
        let clean = self.screen.redact_text(&words);
        let mut shown: String = clean.chars().filter(|c| !c.is_control()).take(LONGEST_REASON).collect();
        if clean.chars().count() > LONGEST_REASON {
            shown.push('…');
        }
        ShelfError { message: shown, disk_full: false }
    }

    pub async fn create(
        &self,
        title: String,
        content: String,
        description: String,
    ) -> Result<Document, ShelfError> {
        match &self.kind {
            ShelfKind::Own(store) => {
                on_store(store, move |store| store.create(&title, &content, &description)).await
            }
            ShelfKind::Service(service) => service
                .create(&title, &content, &description)
                .await
                .map_err(|error| self.redacted_error(&error)),
        }
    }

    pub async fn detail(&self, id: String) -> Result<Document, ShelfError> {
        match &self.kind {
            ShelfKind::Own(store) => on_store(store, move |store| store.detail(&id)).await,
            ShelfKind::Service(service) => {
                service.detail(&id).await.map_err(|error| self.redacted_error(&error))
            }
        }
    }

    pub async fn edit(
        &self,
        id: String,
        content: String,
        title: Option<String>,
    ) -> Result<(Document, bool), ShelfError> {
        match &self.kind {
            ShelfKind::Own(store) => {
                on_store(store, move |store| store.edit(&id, &content, title.as_deref())).await
            }
            ShelfKind::Service(service) => service
                .edit(&id, &content, title.as_deref())
                .await
                .map_err(|error| self.redacted_error(&error)),
        }
    }

    /// Searches the documents. Pages count from 1.
    pub async fn search(
        &self,
        keyword: String,
        page: u32,
        size: u32,
    ) -> Result<Vec<DocumentRow>, ShelfError> {
        match &self.kind {
            ShelfKind::Own(store) => {
                let skip = page.saturating_sub(1).saturating_mul(size);
                on_store(store, move |store| store.search(&keyword, skip, size)).await
            }
            ShelfKind::Service(service) => {
                service.search(&keyword, page, size).await.map_err(|error| self.redacted_error(&error))
            }
        }
    }

    /// The versions of a document. A service does not offer its versions.
    pub async fn versions(&self, id: String) -> Result<Vec<DocumentVersion>, ShelfError> {
        match &self.kind {
            ShelfKind::Own(store) => on_store(store, move |store| store.versions(&id)).await,
            ShelfKind::Service(service) => Err(no_versions(service)),
        }
    }

    pub async fn version(&self, id: String, version: u32) -> Result<Option<Document>, ShelfError> {
        match &self.kind {
            ShelfKind::Own(store) => on_store(store, move |store| store.get(&id, Some(version))).await,
            ShelfKind::Service(service) => Err(no_versions(service)),
        }
    }

    async fn perform_request(&self, ask: DocumentRequest) -> Result<DocumentReply, ShelfError> {
        let (document, title_changed) = match ask {
            DocumentRequest::Create { title, content, description } => {
                (self.create(title, content, description).await?, false)
            }
            DocumentRequest::Detail { id } => (self.detail(id).await?, false),
            DocumentRequest::Edit { id, content, title } => self.edit(id, content, title).await?,
        };
        let Document { document_id, title, description, content, updated_at, .. } = document;
        Ok(DocumentReply { id: document_id, title, description, content, updated_at, title_changed })
    }
}

fn no_versions(service: &DocumentService) -> ShelfError {
    ShelfError { message: format!("{} gives no versions", service.host()), disk_full: false }
}

impl Documents for Shelf {
    fn host(&self) -> Option<&str> {
        match &self.kind {
            ShelfKind::Own(_) => None,
            ShelfKind::Service(service) => Some(service.host()),
        }
    }

    fn perform<'a>(
        &'a self,
        ask: DocumentRequest,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<DocumentReply, String>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err("cancelled by the user".to_owned()),
                done = self.perform_request(ask) => done.map_err(|error| error.message),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::Home;

    #[test]
    fn the_key_of_a_service_leaves_its_words_before_they_are_cut() {
        let home = tempfile::tempdir().unwrap();
        let key = "kq-planted-0123456789";
        let service = ServiceOptions { base_url: "http://127.0.0.1:1".to_owned(), key: Some(key.to_owned()) };
        let plan = OnlinePlan { enabled: true, service: Some(service) };
        let shelf = Archive::new(Home::at(home.path().to_owned())).shelf(&plan).unwrap();
        for before in 0..LONGEST_REASON {
            let reason = format!("{} {key}", "x".repeat(before));
            let error = DocumentError::Answered { code: 500, endpoint: "/e".to_owned(), reason };
            let shown = shelf.redacted_error(&error).message;
            assert!(!shown.contains("kq-p"), "{shown}");
            assert!(shown.chars().count() <= LONGEST_REASON + 1);
        }
    }
}
