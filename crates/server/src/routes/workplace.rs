//! The folder of a request.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::app::App;
use crate::error::ApiError;

/// A folder of the server or the one of a session. The first root if neither is named.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct Workplace {
    #[serde(default)]
    workspace: Option<String>,
    #[serde(default)]
    session_id: Option<String>,
}

impl Workplace {
    pub fn of_session(id: String) -> Self {
        Self { workspace: None, session_id: Some(id) }
    }

    pub fn folder(&self, app: &App) -> Result<PathBuf, ApiError> {
        let workspace = self.workspace.as_deref().filter(|folder| !folder.is_empty());
        let asked = match (workspace, &self.session_id) {
            (Some(_), Some(_)) => return Err(ApiError::bad("Give `workspace` or `session_id`, not both.")),
            (Some(folder), None) if folder.contains('\0') => return app.folder(Path::new("..")),
            (Some(folder), None) => folder.into(),
            (None, Some(id)) => app.host.archive().workspace(&app.session(id)?)?,
            (None, None) => PathBuf::new(),
        };
        app.folder(&asked)
    }
}
