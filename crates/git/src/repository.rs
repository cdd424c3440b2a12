//! A repository that git is told about, with a configuration of our own.
//!
//! Git reads a repository's configuration from its common folder. With `GIT_COMMON_DIR` that is a folder of ours, which holds
//! the allowed settings and copies of what else git reads there. `GIT_DIR` is the real one, so HEAD and index are written
//! in their place; references are found through it too, and objects by `GIT_OBJECT_DIRECTORY`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use tempfile::TempDir;

use crate::call::Program;
use crate::config::{self, Setting};
use crate::discover::{self, Boundary, Found, dot_git, git_would_wait};
use crate::settings::{ObjectFormat, allowed};
use crate::{Content, GitCall, GitError, Place, alternates, layout, small};

/// Bytes of a file that is copied.
const LONGEST: u64 = 16 << 20;

/// A repository and its work tree.
#[derive(Debug)]
pub struct Repository {
    found: Found,
    folder: PathBuf,
    program: Program,
    /// The common folder that git is given.
    common: TempDir,
    /// The top of the work tree, where a handle can be the folder of a process.
    top: Option<File>,
    settings: Vec<Setting>,
    format: ObjectFormat,
}

impl Repository {
    /// Opens the repository around a folder.
    pub fn find(folder: &Path, boundary: &Boundary) -> Result<Self, GitError> {
        let folder = folder.canonicalize().map_err(|_| GitError::NoRepository)?;
        let found = discover::find(&folder, boundary)?;
        if git_would_wait(&folder) {
            return Err(GitError::refused(&found.top, "has a pipe or a device where git reads a file"));
        }
        let top = hold(&found.top, boundary)?;
        // Through the handle, so that all that is looked at is in the folder that git runs in.
        let seen = match &top {
            Some(top) if found.is_plain() => handle_path(top).join(".git"),
            _ => found.git_dir.clone(),
        };
        let program = Program::find(&found.top)?;
        Self::open(found, folder, &seen, top, program, boundary)
    }

    /// Opens a repository by its own folder, whatever it says about a work tree. That folder stands for the work tree.
    pub fn in_folder(git_dir: &Path) -> Result<Self, GitError> {
        let found = discover::in_folder(git_dir)?;
        let tree = if git_dir.ends_with(".git") { git_dir.parent() } else { None };
        let program = Program::find(tree.unwrap_or(git_dir))?;
        Self::open(found, git_dir.to_owned(), git_dir, None, program, &Boundary::Anywhere)
    }

    fn open(
        found: Found,
        folder: PathBuf,
        seen: &Path,
        top: Option<File>,
        program: Program,
        boundary: &Boundary,
    ) -> Result<Self, GitError> {
        let seen_common = if found.common == found.git_dir { seen } else { &found.common };
        layout::check(seen, &found.git_dir, boundary)?;
        if found.common != found.git_dir {
            layout::check(seen_common, &found.common, boundary)?;
        }
        if let Boundary::Roots(_) = boundary {
            alternates::check(&alternates::objects(seen_common), boundary)?;
        }
        let shown = found.common.join("config");
        let named = |error| match error {
            GitError::Config { line, why, .. } => GitError::Config { file: shown.clone(), line, why },
            error => error,
        };
        let mut settings = config::read(&seen_common.join("config")).map_err(named)?;
        let has_more = settings.iter().rfind(|setting| setting.is("extensions", "worktreeconfig"));
        if has_more
            .is_some_and(|more| more.value.as_deref().is_none_or(|value| value.eq_ignore_ascii_case("true")))
        {
            settings.extend(config::read(&seen.join("config.worktree")).map_err(named)?);
        }
        let allowed = allowed(&settings, &shown)?;
        let common = common_folder(&allowed.text, seen_common, &found)
            .map_err(|error| GitError::refused(&found.common, format!("cannot be opened: {error}")))?;
        Ok(Self { found, folder, program, common, top, settings, format: allowed.format })
    }

    /// The top of the work tree.
    pub fn top(&self) -> &Path {
        &self.found.top
    }

    /// The folder that the repository was looked for from.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The way from the top of the work tree to the folder that was asked for.
    pub fn prefix(&self) -> &Path {
        self.folder.strip_prefix(&self.found.top).unwrap_or(Path::new(""))
    }

    /// The file of the real index.
    pub fn index(&self) -> PathBuf {
        self.found.git_dir.join("index")
    }

    /// The folder of the real objects.
    pub fn objects(&self) -> PathBuf {
        alternates::objects(&self.found.common)
    }

    /// The name of the tree without files.
    pub fn empty_tree(&self) -> &'static str {
        self.format.empty_tree()
    }

    /// A setting of the repository, as it is written. It is data: nothing obeys it.
    pub fn setting(&self, section: &str, key: &str) -> Option<&str> {
        self.settings.iter().rfind(|setting| setting.is(section, key))?.value.as_deref()
    }

    /// The beginning of a call; the command and its arguments follow.
    pub fn call(&self, content: Content, place: Place) -> GitCall {
        let held = self.top.as_ref().filter(|_| place == Place::Top).map(handle_path);
        let cwd = match (place, &held) {
            (Place::Top, Some(held)) => held.clone(),
            (Place::Top, None) => self.found.top.clone(),
            (Place::Folder, _) => self.folder.clone(),
        };
        let mut call = GitCall::new(&self.program, cwd);
        // Relative to the handle where all is below it.
        let is_relative = held.is_some() && self.found.is_plain();
        let git_dir = if is_relative { PathBuf::from(".git") } else { self.found.git_dir.clone() };
        let objects = if is_relative { PathBuf::from(".git/objects") } else { self.objects() };
        call.variable("GIT_DIR", git_dir);
        call.variable("GIT_COMMON_DIR", self.common.path());
        call.variable("GIT_OBJECT_DIRECTORY", objects);
        call.variable("GIT_WORK_TREE", if held.is_some() { Path::new(".") } else { &self.found.top });
        match content {
            Content::Bytes => {
                call.without_user();
                call.option(format!("--attr-source={}", self.empty_tree()));
                call.set("core.attributesFile", "/dev/null");
                call.set("core.autocrlf", "false");
                call.set("core.fileMode", "true");
            }
            Content::Tree => call.without_user(),
            Content::User => {}
        }
        call
    }

    /// Makes a call run the hooks of the repository, for a caller that may decide so.
    pub fn with_hooks(&self, call: &mut GitCall) {
        let hooks = match self.setting("core", "hookspath") {
            Some(named) => named.into(),
            None => self.found.common.join("hooks").into_os_string(),
        };
        call.set("core.hooksPath", hooks);
    }
}

/// The handle of a folder, reached from the root that holds it without following a link.
fn hold(folder: &Path, boundary: &Boundary) -> Result<Option<File>, GitError> {
    let wrong = |error: io::Error| GitError::refused(folder, format!("cannot be opened: {error}"));
    let root = match boundary {
        Boundary::Anywhere => folder,
        // A folder that was swapped for a link since it was looked at lies below no root.
        Boundary::Roots(_) => boundary
            .root_of(folder)
            .ok_or_else(|| GitError::refused(folder, "is not below the folders that may be used"))?,
    };
    let mut handle = File::open(root).map_err(wrong)?;
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    for name in folder.strip_prefix(root).into_iter().flat_map(Path::components) {
        let next = openat(&handle, name.as_os_str(), flags, Mode::empty());
        handle = File::from(next.map_err(|error| wrong(error.into()))?);
    }
    // Without /proc the path has to do.
    let is_there = handle_path(&handle).metadata().is_ok();
    Ok(is_there.then_some(handle))
}

/// A path that leads to the folder of a handle, in this process and in one that it starts.
fn handle_path(handle: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

/// Makes the common folder that git is given.
fn common_folder(settings: &str, real: &Path, found: &Found) -> io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("lathe-git-").tempdir_in(scratch_place(&found.top))?;
    std::fs::write(folder.path().join("config"), settings)?;
    std::fs::create_dir(folder.path().join("info"))?;
    for name in ["info/exclude", "info/attributes", "shallow"] {
        if let Some(content) = small::read(&real.join(name), LONGEST)? {
            std::fs::write(folder.path().join(name), content)?;
        }
    }
    // Git finds references from `GIT_DIR` on; a version that looks for them here must find the same.
    for name in ["refs", "logs", "packed-refs", "reftable"] {
        symlink(found.common.join(name), folder.path().join(name))?;
    }
    Ok(folder)
}

/// A folder for temporary ones that is not in the work tree, or git would see them as new files. In memory where there is one:
/// on a busy disk making a folder takes longer than git.
fn scratch_place(top: &Path) -> PathBuf {
    let of_user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let usual = [PathBuf::from("/dev/shm"), std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
    let mut places = of_user.into_iter().chain(usual);
    let fits = |place: &PathBuf| {
        place.is_absolute()
            && place.canonicalize().is_ok_and(|real| real.is_dir() && !real.starts_with(top))
            && nix::unistd::access(place, nix::unistd::AccessFlags::W_OK).is_ok()
    };
    places.find(fits).unwrap_or_else(|| PathBuf::from("/tmp"))
}

/// How a folder becomes a repository.
#[derive(Debug)]
pub enum Init {
    /// It is one already.
    Existed,
    /// By this call.
    Call(InitCall),
}

/// The call that makes a repository, with the handle of its folder.
#[derive(Debug)]
pub struct InitCall {
    pub call: GitCall,
    _folder: Option<File>,
}

/// Prepares to make a folder a repository. A `.git` that is there already is never written to.
pub fn init(folder: &Path, boundary: &Boundary) -> Result<Init, GitError> {
    let folder = folder.canonicalize().map_err(|_| GitError::NoRepository)?;
    if dot_git(&folder, boundary)?.is_some() {
        return Ok(Init::Existed);
    }
    let dot = folder.join(".git");
    if std::fs::read_dir(&dot).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(GitError::refused(dot, "exists and is not a repository"));
    }
    let held = hold(&folder, boundary)?;
    let cwd = held.as_ref().map_or(folder.clone(), handle_path);
    let mut call = GitCall::new(&Program::find(&folder)?, cwd);
    call.without_user();
    Ok(Init::Call(InitCall { call: call.args(["init", "--quiet", "--template="]), _folder: held }))
}
