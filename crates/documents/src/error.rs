use std::io::ErrorKind;

/// Errors of stores and services. The texts are for the model as well: `HTTP CODE at ENDPOINT…`.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("HTTP {code} at {endpoint}{}", if .reason.is_empty() { String::new() } else { format!(": {}", .reason) })]
    Answered { code: u16, endpoint: String, reason: String },
    #[error("{endpoint} cannot be reached: {reason}")]
    Unreachable { endpoint: String, reason: String },
    #[error("{host} may not be asked: {reason}")]
    Address { host: String, reason: String },
    #[error("the store of documents cannot be used: {0}")]
    Store(#[from] rusqlite::Error),
    #[error("the store of documents cannot be used: {0}")]
    File(#[from] std::io::Error),
}

impl DocumentError {
    /// Tells whether the disk or the quota is full.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Store(error) => error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull),
            Self::File(error) => {
                matches!(
                    error.kind(),
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
                )
            }
            Self::Answered { .. } | Self::Unreachable { .. } | Self::Address { .. } => false,
        }
    }

    pub(crate) fn missing(endpoint: &str) -> Self {
        Self::Answered {
            code: 404,
            endpoint: endpoint.to_owned(),
            reason: "there is no such document".to_owned(),
        }
    }

    pub(crate) fn too_large(endpoint: &str) -> Self {
        Self::Answered {
            code: 413,
            endpoint: endpoint.to_owned(),
            reason: "a document may have 4 MiB".to_owned(),
        }
    }
}
