//! Paths that a client names, checked for git: literal, in the folder, and outside of Lathe's own.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::Ordering;

use lathe_host::{FileProblem, HostError};
use lathe_workspace::WorkspaceError;

use super::{GitPlace, excluded};
use crate::browse::until_dropped;
use crate::own::OwnOfMany;

/// Files that one request names.
const NAMED_MAX: usize = 10_000;
/// Bytes of all these names together.
const NAMED_BYTES: usize = 1 << 20;

impl GitPlace {
    /// The paths of a request. They become arguments of one call of git, so there are not too many.
    pub(super) async fn checked_paths(&self, files: &[String]) -> Result<Vec<PathBuf>, HostError> {
        if files.is_empty() {
            return Err(HostError::Git("no file is named".to_owned()));
        }
        if files.len() > NAMED_MAX || files.iter().map(String::len).sum::<usize>() > NAMED_BYTES {
            let reason =
                format!("one request names at most {NAMED_MAX} files, in {NAMED_BYTES} bytes together");
            return Err(HostError::File { problem: FileProblem::TooLarge, reason });
        }
        let (place, files) = (self.clone(), files.to_vec());
        until_dropped(move |stop| {
            let mut own = place.own.for_many();
            let wanted = files.iter().take_while(|_| !stop.load(Ordering::Relaxed));
            wanted.map(|file| place.checked_path_of(file, &mut own)).collect()
        })
        .await
    }

    /// A path relative to the folder: one that leads elsewhere, or into Lathe's own folder, is refused.
    pub(super) fn checked_path(&self, file: &str) -> Result<PathBuf, HostError> {
        self.checked_path_of(file, &mut self.own.for_many())
    }

    /// The same for one of many.
    fn checked_path_of(&self, file: &str, own: &mut OwnOfMany<'_>) -> Result<PathBuf, HostError> {
        let outside = || WorkspaceError::Outside(file.into());
        let path = Path::new(file);
        let below = if path.is_absolute() { path.strip_prefix(self.browser.root()).ok() } else { Some(path) };
        let mut plain = PathBuf::new();
        for part in below.ok_or_else(outside)?.components() {
            match part {
                Component::Normal(name) => plain.push(name),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(outside().into());
                }
            }
        }
        let fits = !plain.as_os_str().is_empty() && !file.contains('\0') && file.len() < 4096;
        if !fits || own.holds(&self.browser.root().join(&plain)) {
            return Err(outside().into());
        }
        Ok(plain)
    }

    /// Pathspecs of the folder for git, without what lies in Lathe's own folder.
    pub(super) fn specs(&self, plain: &[PathBuf]) -> Vec<OsString> {
        let literal = |plain: &PathBuf| {
            let mut spec = OsString::from(":(literal)");
            spec.push(self.repository.prefix().join(plain));
            spec
        };
        plain.iter().map(literal).chain(self.without_own()).collect()
    }

    /// The whole folder.
    pub(super) fn all(&self) -> Vec<OsString> {
        match self.repository.prefix().as_os_str().is_empty() {
            true => [OsString::from(".")].into_iter().chain(self.without_own()).collect(),
            false => self.specs(&[PathBuf::new()]),
        }
    }

    fn without_own(&self) -> Option<OsString> {
        self.own.below(self.repository.top()).map(|below| excluded(below.as_os_str()))
    }
}
