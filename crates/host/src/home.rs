//! Lathe's own folder: sessions, blobs, rules, keys and settings.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use lathe_blobs::Blobs;
use lathe_workspace::{dangling_link_error, is_dangling};

use crate::error::HostError;

/// Folders of the home whose entries decide what is allowed, and for which clients.
const LINKED: [&str; 3] = ["policy", "server", "trust"];

#[derive(Debug, Clone)]
pub struct Home {
    path: PathBuf,
    /// The folder to which a replayed session writes; None for every other session, which writes to the home itself.
    store: Option<PathBuf>,
}

impl Home {
    /// `$LATHE_HOME`, or the platform's data folder. Nothing is created yet.
    pub fn find() -> Result<Self, HostError> {
        if let Some(path) = std::env::var_os("LATHE_HOME").filter(|path| !path.is_empty()) {
            let path = PathBuf::from(path);
            let wrong = |reason: &str| HostError::Home { path: path.clone(), reason: reason.to_owned() };
            if path.to_str().is_some_and(|text| text.trim().is_empty()) {
                return Err(wrong("LATHE_HOME is blank; give it the absolute path of a folder, or unset it"));
            }
            // From another current folder it would be another home, and in a repository one that the repository made.
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
        let usual = Self::default_home()?;
        match is_dangling(usual.path()) {
            true => Err(usual.unusable(dangling_link_error().to_string())),
            false => Ok(usual),
        }
    }

    /// Returns an error if the home does not exist and cannot be created: such a home has no sessions, but not
    /// because there were none.
    pub(crate) fn check_makeable(&self) -> Result<(), HostError> {
        let above = self.path().ancestors().find(|folder| folder.is_dir());
        let Some(above) = above.filter(|above| *above != self.path()) else { return Ok(()) };
        let probe = above.join(format!(".lathe-{}", std::process::id()));
        match std::fs::create_dir(&probe) {
            Ok(()) => drop(std::fs::remove_dir(&probe)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(self.unusable(error.to_string())),
        }
        Ok(())
    }

    /// The home that is used when no variable names one.
    pub(crate) fn default_home() -> Result<Self, HostError> {
        let base = etcetera::choose_base_strategy()
            .map_err(|error| HostError::Home { path: PathBuf::from("~"), reason: error.to_string() })?;
        Ok(Self::at(base.data_dir().join("lathe")))
    }

    /// A home by its real path, as far as that exists: the checks that guard it compare with that path.
    pub fn at(path: PathBuf) -> Self {
        Self { path: real_prefix(&path), store: None }
    }

    /// The same home, with its rules, its keys and its guard, for a session that writes only to `store`.
    pub(crate) fn storing_in(&self, store: PathBuf) -> Self {
        Self { path: self.path.clone(), store: Some(store) }
    }

    /// The folder to which sessions write what they store.
    pub(crate) fn store(&self) -> &Path {
        self.store.as_deref().unwrap_or(&self.path)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tells whether a folder contains this one or lies in it, by name or as a second mount of the same folder.
    pub fn overlaps(&self, folder: &Path) -> bool {
        overlap(&self.path, folder)
    }

    /// Tells whether a folder overlaps this one or a target of its links.
    pub fn shares_with(&self, folder: &Path) -> bool {
        self.overlaps(folder) || self.link_targets().iter().any(|own| overlap(own, folder))
    }

    /// The targets of links among the entries of this folder, and in its folders that hold rules, trust and tokens.
    fn link_targets(&self) -> Vec<PathBuf> {
        let folders = std::iter::once(self.path.clone()).chain(LINKED.map(|name| self.path.join(name)));
        let entries = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        // A dangling link counts by the place it names.
        let leads = |link: std::fs::DirEntry| {
            let path = link.path();
            path.canonicalize().ok().or_else(|| {
                let folder = path.parent()?;
                Some(real_prefix(&folder.join(std::fs::read_link(&path).ok()?)))
            })
        };
        links.filter_map(leads).collect()
    }

    /// Rules that deny the targets of links in this folder: files there are this folder's content, and a model that
    /// could write them would write its own rules. None if there are no such links.
    pub(crate) fn linked_rules(&self) -> Option<String> {
        let places = crate::rules::line_check::path_patterns(&self.link_targets());
        (!places.is_empty()).then(|| {
            format!(
                "[[rule]]\ndecision = \"deny\"\npath = [{}]\nreason = \"a link in Lathe's own folder leads there\"\n",
                places.join(", ")
            )
        })
    }

    /// The folder of the journals.
    pub(crate) fn sessions(&self) -> PathBuf {
        self.store().join("sessions")
    }

    /// The user's remembered facts.
    pub(crate) fn memory(&self) -> PathBuf {
        self.store().join("memory.md")
    }

    /// The folder of large texts and file contents, named by their digests.
    pub(crate) fn blob_folder(&self) -> PathBuf {
        self.store().join("blobs")
    }

    pub(crate) fn blobs(&self) -> Result<Blobs, HostError> {
        Blobs::open(self.blob_folder())
            .map_err(|error| HostError::of_blob(&error, |reason| self.unusable(reason)))
    }

    /// Copies of what no journal holds: large files, files outside of a workspace, repositories.
    pub(crate) fn quarantine(&self) -> PathBuf {
        self.store().join("quarantine")
    }

    /// The folder with the state of each session's workspace before its lines.
    pub(crate) fn baselines(&self) -> PathBuf {
        self.store().join("baselines")
    }

    /// The folder of the code graphs, one for each workspace.
    pub(crate) fn graphs(&self) -> PathBuf {
        self.store().join("graph")
    }

    /// The user's settings.
    pub fn config(&self) -> PathBuf {
        self.path.join("config.toml")
    }

    /// The folder of the user's rules and standing approvals.
    pub(crate) fn policy(&self) -> PathBuf {
        self.path.join("policy")
    }

    /// The folder with the record of trust for each project.
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

    /// Sessions and files that were removed and can be restored.
    pub(crate) fn removed(&self) -> PathBuf {
        self.path.join("removed")
    }

    /// The folder for trajectories of runs that name no other file.
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

    /// Notes by which a later process finishes or undoes a change of files that a crash cut off.
    pub(crate) fn recovery(&self) -> PathBuf {
        self.store().join("recovery")
    }

    /// The key of the hash by which sessions recognise the keys of models.
    pub(crate) fn mark_key(&self) -> PathBuf {
        self.path.join("marks.key")
    }

    /// The folder for tokens, settings and logs of the server.
    pub fn server(&self) -> PathBuf {
        self.path.join("server")
    }

    /// Creates the folders, for this user only.
    pub(crate) fn make(&self) -> Result<(), HostError> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(self.sessions()).map_err(|error| self.disk_error(&error))?;
        self.make_private()
    }

    /// Removes the access that an older version gave to other users. The home folder itself is left alone: the user may
    /// have shared it.
    fn make_private(&self) -> Result<(), HostError> {
        for folder in [self.sessions(), self.graphs()] {
            let Ok(found) = folder.symlink_metadata() else { continue };
            let is_open =
                found.is_dir() && found.mode() & 0o077 != 0 && found.uid() == nix::unistd::geteuid().as_raw();
            if is_open {
                std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700))
                    .map_err(|error| self.disk_error(&error))?;
            }
        }
        Ok(())
    }

    fn disk_error(&self, error: &std::io::Error) -> HostError {
        HostError::of_disk(error, error.to_string(), |reason| self.unusable(reason))
    }

    pub(crate) fn unusable(&self, reason: String) -> HostError {
        HostError::Home { path: self.path.clone(), reason }
    }
}

/// Tells whether one of two folders contains the other, by name or as a second mount of it.
fn overlap(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    let is_in = |inner: &Path, outer: &Path| {
        let same = |above: &Path| id(outer).is_some() && id(above) == id(outer);
        inner.starts_with(outer) || inner.ancestors().any(same)
    };
    is_in(one, other) || is_in(other, one)
}

/// The real path, as far as the path exists.
fn real_prefix(path: &Path) -> PathBuf {
    let real = path.ancestors().find_map(|above| {
        let rest = path.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.components().chain(rest.components()).collect())
    });
    real.unwrap_or_else(|| path.to_owned())
}
