//! Lathe's own folder: where sessions, blobs and the supervisor program are.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use lathe_blobs::Blobs;

use crate::error::HostError;

#[derive(Debug, Clone)]
pub struct Home {
    path: PathBuf,
}

impl Home {
    /// `$LATHE_HOME`, or the platform's data folder. Nothing is made yet.
    pub fn find() -> Result<Self, HostError> {
        if let Some(path) = std::env::var_os("LATHE_HOME").filter(|path| !path.is_empty()) {
            let path = PathBuf::from(path);
            let absolute = std::path::absolute(&path)
                .map_err(|error| HostError::Home { path, reason: error.to_string() })?;
            return Ok(Self { path: absolute });
        }
        let base = etcetera::choose_base_strategy()
            .map_err(|error| HostError::Home { path: PathBuf::from("~"), reason: error.to_string() })?;
        Ok(Self { path: base.data_dir().join("lathe") })
    }

    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn sessions(&self) -> PathBuf {
        self.path.join("sessions")
    }

    /// The user's remembered facts.
    pub(crate) fn memory(&self) -> PathBuf {
        self.path.join("memory.md")
    }

    pub(crate) fn blobs(&self) -> Result<Blobs, HostError> {
        Blobs::open(self.path.join("blobs")).map_err(|error| self.broken(error.to_string()))
    }

    /// Makes the folders, for this user only.
    pub(crate) fn make(&self) -> Result<(), HostError> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(self.sessions()).map_err(|error| self.broken(error.to_string()))
    }

    fn broken(&self, reason: String) -> HostError {
        HostError::Home { path: self.path.clone(), reason }
    }
}
