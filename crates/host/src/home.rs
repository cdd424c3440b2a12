//! Lathe's own folder: where sessions, blobs and the supervisor program are.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use lathe_blobs::Blobs;
use lathe_workspace::{dangling_link_error, is_dangling};

use crate::error::HostError;

/// Folders of the home whose entries decide what is allowed, and for whom.
const LINKED: [&str; 3] = ["policy", "server", "trust"];

#[derive(Debug, Clone)]
pub struct Home {
    path: PathBuf,
    /// The place where a session that is only tried writes; the folder itself for every other.
    store: Option<PathBuf>,
}

impl Home {
    /// `$LATHE_HOME`, or the platform's data folder. Nothing is made yet.
    pub fn find() -> Result<Self, HostError> {
        if let Some(path) = std::env::var_os("LATHE_HOME").filter(|path| !path.is_empty()) {
            let path = PathBuf::from(path);
            let wrong = |reason: &str| HostError::Home { path: path.clone(), reason: reason.to_owned() };
            if path.to_str().is_some_and(|text| text.trim().is_empty()) {
                return Err(wrong("LATHE_HOME is blank; give it the absolute path of a folder, or unset it"));
            }
            // From another folder it would be another home, and in a repository one of the repository's making.
            if path.is_relative() {
                return Err(wrong("LATHE_HOME is a relative path; give it an absolute one, or unset it"));
            }
            if path.metadata().is_ok_and(|found| !found.is_dir()) {
                return Err(wrong(
                    "LATHE_HOME is not a folder; give it the absolute path of one, or unset it",
                ));
            }
            if is_dangling(&path) {
                return Err(wrong("LATHE_HOME is a link that leads nowhere; make the folder, or unset it"));
            }
            return Ok(Self::at(path));
        }
        let usual = Self::usual()?;
        match is_dangling(usual.path()) {
            true => Err(usual.broken(dangling_link_error().to_string())),
            false => Ok(usual),
        }
    }

    /// Tells whether a home that is not there yet can be made: one that cannot has no sessions, but not because there were
    /// none.
    pub(crate) fn check_makeable(&self) -> Result<(), HostError> {
        let above = self.path().ancestors().find(|folder| folder.is_dir());
        let Some(above) = above.filter(|above| *above != self.path()) else { return Ok(()) };
        let probe = above.join(format!(".lathe-{}", std::process::id()));
        match std::fs::create_dir(&probe) {
            Ok(()) => drop(std::fs::remove_dir(&probe)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(self.broken(error.to_string())),
        }
        Ok(())
    }

    /// The home where no variable names one.
    pub(crate) fn usual() -> Result<Self, HostError> {
        let base = etcetera::choose_base_strategy()
            .map_err(|error| HostError::Home { path: PathBuf::from("~"), reason: error.to_string() })?;
        Ok(Self::at(base.data_dir().join("lathe")))
    }

    /// The folder by its real name, as far as it exists: whatever guards it compares with that.
    pub fn at(path: PathBuf) -> Self {
        Self { path: real_beginning(&path), store: None }
    }

    /// The same folder, with its rules, its keys and its guard, for a session that leaves nothing in it but in `store`.
    pub(crate) fn storing_in(&self, store: PathBuf) -> Self {
        Self { path: self.path.clone(), store: Some(store) }
    }

    /// The place where sessions write what they keep.
    pub(crate) fn store(&self) -> &Path {
        self.store.as_deref().unwrap_or(&self.path)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a folder holds this one or lies in it, by name or as a second mount of the same folder.
    pub fn overlaps(&self, folder: &Path) -> bool {
        overlap(&self.path, folder)
    }

    /// The same for this folder and whatever links in it lead to.
    pub fn shares_with(&self, folder: &Path) -> bool {
        self.overlaps(folder) || self.linked().iter().any(|own| overlap(own, folder))
    }

    /// Where the entries of this folder that are links lead, and links in those of its folders that hold rules and tokens.
    fn linked(&self) -> Vec<PathBuf> {
        let folders = std::iter::once(self.path.clone()).chain(LINKED.map(|name| self.path.join(name)));
        let entries = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        // A link that leads nowhere yet counts by the place it names.
        let leads = |link: std::fs::DirEntry| {
            let path = link.path();
            path.canonicalize().ok().or_else(|| {
                let folder = path.parent()?;
                Some(real_beginning(&folder.join(std::fs::read_link(&path).ok()?)))
            })
        };
        links.filter_map(leads).collect()
    }

    /// Denials of the places that links in this folder lead to, as rules: what stands there is this folder's content, and
    /// a model that wrote it would write its own rules. None if there are no such links.
    pub(crate) fn linked_rules(&self) -> Option<String> {
        let places = crate::rules::line_check::path_patterns(&self.linked());
        (!places.is_empty()).then(|| {
            format!(
                "[[rule]]\ndecision = \"deny\"\npath = [{}]\nreason = \"a link in Lathe's own folder leads there\"\n",
                places.join(", ")
            )
        })
    }

    /// The journals.
    pub(crate) fn sessions(&self) -> PathBuf {
        self.store().join("sessions")
    }

    /// The user's remembered facts.
    pub(crate) fn memory(&self) -> PathBuf {
        self.store().join("memory.md")
    }

    /// The folder of large texts and of contents of files, by their digests.
    pub(crate) fn blob_folder(&self) -> PathBuf {
        self.store().join("blobs")
    }

    pub(crate) fn blobs(&self) -> Result<Blobs, HostError> {
        Blobs::open(self.blob_folder())
            .map_err(|error| HostError::of_blob(&error, |reason| self.broken(reason)))
    }

    /// Copies of what no journal holds: large files, files outside of a workspace, repositories.
    pub(crate) fn quarantine(&self) -> PathBuf {
        self.store().join("quarantine")
    }

    /// The state of each session's workspace before its lines.
    pub(crate) fn baselines(&self) -> PathBuf {
        self.store().join("baselines")
    }

    /// The code graphs, one for each workspace.
    pub(crate) fn graphs(&self) -> PathBuf {
        self.store().join("graph")
    }

    /// The user's settings.
    pub fn config(&self) -> PathBuf {
        self.path.join("config.toml")
    }

    /// The user's rules, and the persistent approvals.
    pub(crate) fn policy(&self) -> PathBuf {
        self.path.join("policy")
    }

    /// The projects that the user trusts.
    pub(crate) fn trust(&self) -> PathBuf {
        self.path.join("trust")
    }

    /// The keys of providers.
    pub(crate) fn auth(&self) -> PathBuf {
        self.path.join("auth.json")
    }

    /// The user's prices of models.
    pub(crate) fn prices(&self) -> PathBuf {
        self.path.join("prices.json")
    }

    /// Sessions that were removed and can be brought back.
    pub(crate) fn removed(&self) -> PathBuf {
        self.path.join("removed")
    }

    /// Trajectories, where a run names no other file.
    pub(crate) fn trajectories(&self) -> PathBuf {
        self.path.join("trajectories")
    }

    /// The local store of documents.
    pub(crate) fn documents(&self) -> PathBuf {
        self.path.join("docs.db")
    }

    /// The lines typed into `lathe shell`.
    pub fn shell_history(&self) -> PathBuf {
        self.path.join("shell_history")
    }

    /// Tokens, settings and logs of the server.
    pub fn server(&self) -> PathBuf {
        self.path.join("server")
    }

    /// Makes the folders, for this user only.
    pub(crate) fn make(&self) -> Result<(), HostError> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(self.sessions()).map_err(|error| self.failed(&error))?;
        self.make_private()
    }

    /// Takes from others what an older version let them see. The folder above is the user's, who may have shared it.
    fn make_private(&self) -> Result<(), HostError> {
        for folder in [self.sessions(), self.graphs()] {
            let Ok(found) = folder.symlink_metadata() else { continue };
            let is_open =
                found.is_dir() && found.mode() & 0o077 != 0 && found.uid() == nix::unistd::geteuid().as_raw();
            if is_open {
                std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700))
                    .map_err(|error| self.failed(&error))?;
            }
        }
        Ok(())
    }

    fn failed(&self, error: &std::io::Error) -> HostError {
        HostError::of_disk(error, error.to_string(), |reason| self.broken(reason))
    }

    pub(crate) fn broken(&self, reason: String) -> HostError {
        HostError::Home { path: self.path.clone(), reason }
    }
}

/// Whether one of two folders holds the other, by name or as a second mount of it.
fn overlap(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    let is_in = |inner: &Path, outer: &Path| {
        let same = |above: &Path| id(outer).is_some() && id(above) == id(outer);
        inner.starts_with(outer) || inner.ancestors().any(same)
    };
    is_in(one, other) || is_in(other, one)
}

/// A path by its real name, as far as it exists.
fn real_beginning(path: &Path) -> PathBuf {
    let real = path.ancestors().find_map(|above| {
        let rest = path.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.components().chain(rest.components()).collect())
    });
    real.unwrap_or_else(|| path.to_owned())
}
