//! Removed items that can be restored: `$LATHE_HOME/removed`, with a folder for each.

use std::path::{Path, PathBuf};

use lathe_workspace::{FileKind, LocalTree, WorkspaceError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{FileProblem, HostError};
use crate::home::Home;
use crate::session::folder::new_id;
use crate::session::now;

const ABOUT: &str = "about.json";
const CONTENT: &str = "content";

/// Something that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemovedItem {
    /// The name to restore it by.
    pub id: String,
    /// Its former path, relative to its folder; for a session, the session's id.
    pub path: String,
    /// The folder it was removed from.
    pub workspace: String,
    /// `file`, `directory`, `link` or `session`.
    pub kind: String,
    /// Time of the removal, in UTC.
    pub removed_at: String,
}

pub struct Removals {
    folder: PathBuf,
}

impl Removals {
    pub fn new(home: &Home) -> Self {
        Self { folder: home.removed() }
    }

    /// Moves what is at a path of a root here.
    pub fn remove_path(&self, tree: &LocalTree, root: &Path, path: &Path) -> Result<RemovedItem, HostError> {
        let (id, place) = self.make_folder()?;
        let kind = match tree.move_out(path, &place.join(CONTENT)) {
            Ok(kind) => kind,
            Err(error) => {
                let _ = std::fs::remove_dir(&place);
                return Err(error.into());
            }
        };
        let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
        let kind = match kind {
            FileKind::File => "file",
            FileKind::Directory => "directory",
            FileKind::Special => "link",
        };
        self.write_note(id, shown, root, kind, &place).inspect_err(|_| {
            // Without its note it could never be restored.
            if tree.move_in(&place.join(CONTENT), path).is_ok() {
                let _ = std::fs::remove_dir_all(&place);
            }
        })
    }

    /// Moves a removed item back to its place, if that place is free.
    pub fn restore_path(&self, tree: &LocalTree, root: &Path, id: &str) -> Result<RemovedItem, HostError> {
        let kept = self.get(id)?;
        if Path::new(&kept.workspace) != root || kept.kind == "session" {
            return Err(not_found());
        }
        let place = self.folder.join(id);
        tree.move_in(&place.join(CONTENT), Path::new(&kept.path))?;
        let _ = std::fs::remove_dir_all(place);
        Ok(kept)
    }

    /// Moves files of a session here, under their own names.
    pub(crate) fn remove_session(
        &self,
        id: &str,
        workspace: &Path,
        files: &[PathBuf],
    ) -> Result<RemovedItem, HostError> {
        let (name, place) = self.make_folder()?;
        for file in files.iter().filter(|file| file.exists()) {
            let to = place.join(file.file_name().unwrap_or_default());
            std::fs::rename(file, &to).map_err(|error| WorkspaceError::io(file, error))?;
        }
        self.write_note(name, id.to_owned(), workspace, "session", &place).inspect_err(|_| {
            for file in files {
                let _ = std::fs::rename(place.join(file.file_name().unwrap_or_default()), file);
            }
            let _ = std::fs::remove_file(place.join(ABOUT));
            let _ = std::fs::remove_dir(&place);
        })
    }

    /// The folder that holds the files of a removed session.
    pub(crate) fn session_folder(&self, removal: &str) -> Result<PathBuf, HostError> {
        let kept = self.get(removal)?;
        if kept.kind != "session" {
            return Err(not_found());
        }
        Ok(self.folder.join(removal))
    }

    /// Moves the files of a removed session back. The session is named by its removal, so that exactly what the
    /// caller has inspected is restored.
    pub(crate) fn restore_session(&self, removal: &str, sessions: &Path) -> Result<RemovedItem, HostError> {
        let place = self.session_folder(removal)?;
        let kept = self.get(removal)?;
        // The journal last: the session exists once that is there.
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(&place).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.file_name().is_some_and(|name| name != ABOUT));
        files.sort_by_key(|file| file.extension().is_some_and(|ending| ending == "db"));
        for file in files {
            let to = sessions.join(file.file_name().unwrap_or_default());
            if to.exists() {
                return Err(WorkspaceError::Exists(to).into());
            }
            std::fs::rename(&file, &to).map_err(|error| WorkspaceError::io(&to, error))?;
        }
        let _ = std::fs::remove_dir_all(place);
        Ok(kept)
    }

    /// All removed items, newest first; only those of one folder, if one is named.
    pub fn list(&self, root: Option<&Path>) -> Vec<RemovedItem> {
        let names = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let mut kept: Vec<RemovedItem> = names.filter_map(|name| self.get(&name).ok()).collect();
        kept.retain(|kept| root.is_none_or(|root| Path::new(&kept.workspace) == root));
        kept.sort_by(|a, b| b.removed_at.cmp(&a.removed_at).then_with(|| b.id.cmp(&a.id)));
        kept
    }

    /// The folders of removed sessions.
    pub(crate) fn session_folders(&self) -> Vec<PathBuf> {
        let kept = self.list(None).into_iter().filter(|kept| kept.kind == "session");
        kept.map(|kept| self.folder.join(kept.id)).collect()
    }

    fn get(&self, id: &str) -> Result<RemovedItem, HostError> {
        let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let text = is_id.then(|| std::fs::read(self.folder.join(id).join(ABOUT)).ok()).flatten();
        text.and_then(|text| serde_json::from_slice(&text).ok()).ok_or_else(not_found)
    }

    fn make_folder(&self) -> Result<(String, PathBuf), HostError> {
        let mut builder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let failed = |error| WorkspaceError::io(&self.folder, error);
        builder.recursive(true).create(&self.folder).map_err(failed)?;
        builder.recursive(false);
        let (id, place) = loop {
            let id = new_id().to_string();
            let place = self.folder.join(&id);
            match builder.create(&place) {
                Ok(()) => break (id, place),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error).into()),
            }
        };
        Ok((id, place))
    }

    fn write_note(
        &self,
        id: String,
        path: String,
        root: &Path,
        kind: &str,
        place: &Path,
    ) -> Result<RemovedItem, HostError> {
        let kept = RemovedItem {
            id,
            path,
            workspace: root.display().to_string(),
            kind: kind.to_owned(),
            removed_at: now().to_string(),
        };
        let text = serde_json::to_vec(&kept).unwrap_or_default();
        std::fs::write(place.join(ABOUT), text).map_err(|error| WorkspaceError::io(place, error))?;
        Ok(kept)
    }
}

fn not_found() -> HostError {
    HostError::File {
        problem: FileProblem::NotFound,
        reason: "nothing with that id was removed from here".to_owned(),
    }
}
