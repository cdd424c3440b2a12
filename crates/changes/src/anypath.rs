//! Paths in JSON, for any bytes: as text where they are UTF-8, else as `{"hex": "…"}`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::change::{from_hex, to_hex};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Bytes { hex: String },
}

impl Written {
    fn of(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes { hex: to_hex(path) },
        }
    }

    fn path(self) -> Option<PathBuf> {
        match self {
            Self::Text(text) => Some(text.into()),
            Self::Bytes { hex } => from_hex(&hex),
        }
    }
}

/// For `#[serde(with)]` on one path.
pub(crate) mod one {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        Written::of(path).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        let written = Written::deserialize(from)?;
        written.path().ok_or_else(|| serde::de::Error::custom("the bytes of a path are not in hex"))
    }
}

/// For `#[serde(with)]` on a list of paths.
pub(crate) mod many {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| Written::of(path)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        let written = Vec::<Written>::deserialize(from)?;
        let paths: Option<Vec<PathBuf>> = written.into_iter().map(Written::path).collect();
        paths.ok_or_else(|| serde::de::Error::custom("the bytes of a path are not in hex"))
    }
}
