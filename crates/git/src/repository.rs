//! A repository whose location git is given, with a configuration of our own.
//!
//! Git reads a repository's configuration from its common folder. `GIT_COMMON_DIR` makes that a folder of ours, with
//! the allowed settings and copies of the other files that git reads there. `GIT_DIR` is the real one, so HEAD and
//! index are written in their place; references are found through it too, and objects by `GIT_OBJECT_DIRECTORY`.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use lathe_workspace::Fence;
use tempfile::TempDir;

use crate::call::GitProgram;
use crate::config::{self, Setting};
use crate::discover::{self, Boundary, FoundRepository, dot_git};
use crate::entries::IndexFile;
use crate::folder::RepositoryFolder;
use crate::index::{CheckedIndex, IndexUse};
use crate::layout::LayoutCheck;
use crate::pipes::git_would_wait;
use crate::settings::{ObjectFormat, allowed};
use crate::{CallFolder, ContentRules, GitCall, GitError, alternates, fence};

/// The maximum size of a copied file.
const LONGEST: u64 = 16 << 20;

/// The name of a file that never exists.
const NO_INDEX: &str = "no-index";

/// A repository and its work tree.
#[derive(Debug)]
pub struct Repository {
    found: FoundRepository,
    folder: PathBuf,
    program: GitProgram,
    /// The common folder for git.
    common: TempDir,
    parts: RepositoryParts,
    fence: Fence,
    boundary: Boundary,
    settings: Vec<Setting>,
    format: ObjectFormat,
}

/// The folders of a repository that git is given.
#[derive(Debug)]
struct RepositoryParts {
    top: RepositoryFolder,
    git_dir: RepositoryFolder,
    common: RepositoryFolder,
    objects: RepositoryFolder,
}

impl RepositoryParts {
    /// Opens the folders of a repository that was found. Below roots all of them are handles.
    fn open(found: &FoundRepository, top: RepositoryFolder, boundary: &Boundary) -> Result<Self, GitError> {
        let open = |name: &Path| match boundary {
            Boundary::Anywhere => Ok(RepositoryFolder::named(name)),
            Boundary::Roots(_) => RepositoryFolder::hold(name, boundary),
        };
        // Through the handle, so that every checked file is in the folder that git runs in.
        let git_dir = match boundary {
            Boundary::Roots(_) if found.is_plain() => top.below(".git")?,
            Boundary::Roots(_) | Boundary::Anywhere => Some(open(&found.git_dir)?),
        };
        let gone = || GitError::refused(&found.git_dir, "is not a repository any more");
        let git_dir = git_dir.ok_or_else(gone)?;
        let common = if found.common == found.git_dir { git_dir.clone() } else { open(&found.common)? };
        let objects = common.below("objects")?.ok_or_else(gone)?;
        Ok(Self { top, git_dir, common, objects })
    }

    /// Refuses folders that git would wait in, or that lead elsewhere.
    fn check(&self, boundary: &Boundary) -> Result<(), GitError> {
        let mut look = LayoutCheck::new(boundary);
        look.repository(&self.git_dir)?;
        if self.common.name != self.git_dir.name {
            look.repository(&self.common)?;
        }
        alternates::check(&self.objects, &mut look)
    }
}

/// Refuses a repository inside of another one with parts that lead out of the boundary. A folder that is not a
/// repository is not refused.
pub fn check_inner(top: &Path, boundary: &Boundary) -> Result<(), GitError> {
    let Some(found) = dot_git(top, boundary)? else { return Ok(()) };
    let top = RepositoryFolder::hold(&found.top, boundary)?;
    RepositoryParts::open(&found, top, boundary)?.check(boundary)
}

impl Repository {
    /// Opens the repository around a folder.
    pub fn find(folder: &Path, boundary: &Boundary) -> Result<Self, GitError> {
        let folder = folder.canonicalize().map_err(|_| GitError::NoRepository)?;
        let found = discover::find_repository(&folder, boundary)?;
        if git_would_wait(&folder) {
            return Err(GitError::refused(&found.top, "has a pipe or a device where git reads a file"));
        }
        let top = RepositoryFolder::hold(&found.top, boundary)?;
        let parts = RepositoryParts::open(&found, top, boundary)?;
        let program = GitProgram::find(&found.top)?;
        Self::open(found, folder, parts, program, boundary)
    }

    /// Opens a repository by its own folder, without regard to the work tree that it names. That folder stands for
    /// the work tree.
    pub fn in_folder(git_dir: &Path) -> Result<Self, GitError> {
        let found = discover::in_folder(git_dir)?;
        let tree = if git_dir.ends_with(".git") { git_dir.parent() } else { None };
        let program = GitProgram::find(tree.unwrap_or(git_dir))?;
        let parts = RepositoryParts::open(&found, RepositoryFolder::named(git_dir), &Boundary::Anywhere)?;
        Self::open(found, git_dir.to_owned(), parts, program, &Boundary::Anywhere)
    }

    fn open(
        found: FoundRepository,
        folder: PathBuf,
        parts: RepositoryParts,
        program: GitProgram,
        boundary: &Boundary,
    ) -> Result<Self, GitError> {
        parts.check(boundary)?;
        let mut settings = config::read(&parts.common, "config")?;
        let has_more = settings.iter().rfind(|setting| setting.is("extensions", "worktreeconfig"));
        if has_more
            .is_some_and(|more| more.value.as_deref().is_none_or(|value| value.eq_ignore_ascii_case("true")))
        {
            settings.extend(config::read(&parts.git_dir, "config.worktree")?);
        }
        let allowed = allowed(&settings, &found.common.join("config"))?;
        let wrong = |error| GitError::refused(&found.common, format!("cannot be opened: {error}"));
        let common = common_folder(&allowed.text, &parts.common, &found.top).map_err(wrong)?;
        let mut fence = match boundary {
            Boundary::Anywhere => Fence::default(),
            Boundary::Roots(roots) => {
                let written = [&parts.top, &parts.git_dir, &parts.common];
                fence::fence_around(roots, &written, Some(common.path()), &program).map_err(wrong)?
            }
        };
        for part in [&parts.git_dir, &parts.common, &parts.objects] {
            part.handle().into_iter().for_each(|handle| fence.inherit(handle));
        }
        let (boundary, format) = (boundary.clone(), allowed.format);
        Ok(Self { found, folder, program, common, parts, fence, boundary, settings, format })
    }

    /// Disables the fence, as on systems without landlock. For tests of that case.
    #[must_use]
    pub fn without_fence(mut self) -> Self {
        self.fence = self.fence.opened();
        self
    }

    /// Refuses output of git that may come from elsewhere: the repository was changed since it was opened. If the
    /// kernel keeps git inside of the roots, no check is needed.
    pub fn check_again(&self) -> Result<(), GitError> {
        let Boundary::Roots(_) = self.boundary else { return Ok(()) };
        if self.fence.is_closed() {
            return Ok(());
        }
        let changed = || GitError::refused(&self.found.top, "was changed while git worked in it: try again");
        let now = dot_git(&self.found.top, &self.boundary)?.filter(|now| *now == self.found);
        let now = now.ok_or_else(changed)?;
        let top = RepositoryFolder::hold(&now.top, &self.boundary)?;
        let parts = RepositoryParts::open(&now, top, &self.boundary)?;
        let pairs = [
            (&parts.top, &self.parts.top),
            (&parts.git_dir, &self.parts.git_dir),
            (&parts.common, &self.parts.common),
            (&parts.objects, &self.parts.objects),
        ];
        if !pairs.iter().all(|(now, before)| now.is_same(before)) {
            return Err(changed());
        }
        parts.check(&self.boundary)
    }

    /// Replaces handles in a text of git by the names of the folders.
    pub fn readable(&self, words: &str) -> String {
        let mut words = words.to_owned();
        // The longest first: a number may begin with another one.
        let mut parts = [&self.parts.git_dir, &self.parts.common, &self.parts.objects, &self.parts.top]
            .map(|part| (part.handle_path().map(|path| path.display().to_string()), &part.name));
        parts.sort_by_key(|(path, _)| std::cmp::Reverse(path.as_ref().map(String::len)));
        for (path, name) in parts {
            if let Some(path) = path {
                words = words.replace(&path, &name.display().to_string());
            }
        }
        words
    }

    /// The top of the work tree.
    pub fn top(&self) -> &Path {
        &self.found.top
    }

    /// The folder from which the repository was searched.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path from the top of the work tree to the folder of the search.
    pub fn prefix(&self) -> &Path {
        self.folder.strip_prefix(&self.found.top).unwrap_or(Path::new(""))
    }

    /// The file of the real index.
    pub fn index(&self) -> PathBuf {
        self.found.git_dir.join("index")
    }

    /// The folder of the real objects.
    pub fn objects(&self) -> PathBuf {
        self.found.common.join("objects")
    }

    /// The name of the tree without files.
    pub fn empty_tree(&self) -> &'static str {
        self.format.empty_tree()
    }

    /// A setting of the repository, as written. It is data: nothing applies it.
    pub fn setting(&self, section: &str, key: &str) -> Option<&str> {
        self.settings.iter().rfind(|setting| setting.is(section, key))?.value.as_deref()
    }

    /// Begins a call that uses the index; the command and its arguments follow. An index with a path outside of the
    /// work tree is refused.
    pub fn indexed(
        &self,
        index: IndexUse,
        content: ContentRules,
        place: CallFolder,
    ) -> Result<GitCall, GitError> {
        let mut call = self.call(content, place);
        let wrong = |error| GitError::refused(self.index(), format!("cannot be copied: {error}"));
        match index {
            IndexUse::Read => {
                if let Some(index) = self.checked_index()? {
                    // Calls run concurrently, so each has its own.
                    let copy = tempfile::Builder::new().prefix("index-").tempfile_in(self.common.path());
                    let (_, copy) = copy.map_err(wrong)?.keep().map_err(|kept| wrong(kept.error))?;
                    index.write(&copy).map_err(wrong)?;
                    call.variable("GIT_INDEX_FILE", copy);
                }
            }
            IndexUse::Write => {
                self.check_index()?;
                call.variable("GIT_INDEX_FILE", self.parts.git_dir.path().join("index"));
            }
            IndexUse::Replace => call.variable("GIT_INDEX_FILE", self.parts.git_dir.path().join("index")),
        }
        Ok(call)
    }

    /// The entries of the index, for comparison only: their paths are not checked. None if there is no index, or it
    /// cannot be read.
    pub fn index_file(&self) -> Option<IndexFile> {
        let file = self.parts.git_dir.file("index").ok()??;
        IndexFile::new(file, self.format.length()).ok()
    }

    /// The attribute file that belongs to the repository and not to its work tree.
    pub fn attributes(&self) -> PathBuf {
        self.found.common.join("info/attributes")
    }

    /// The path of the program.
    pub fn program(&self) -> &Path {
        &self.program.git
    }

    /// The index, if its paths may be used. None if there is none.
    pub(crate) fn checked_index(&self) -> Result<Option<CheckedIndex>, GitError> {
        CheckedIndex::read(&self.parts.git_dir, self.format.length())
    }

    /// Refuses an index with a path outside of the work tree.
    pub fn check_index(&self) -> Result<(), GitError> {
        self.checked_index().map(drop)
    }

    /// Begins a call that uses no index: for git none exists. The command and its arguments follow.
    pub fn call(&self, content: ContentRules, place: CallFolder) -> GitCall {
        let held = self.parts.top.handle_path().filter(|_| place == CallFolder::Top);
        let cwd = match (place, &held) {
            (CallFolder::Top, Some(held)) => held.clone(),
            (CallFolder::Top, None) => self.found.top.clone(),
            (CallFolder::Folder, _) => self.folder.clone(),
        };
        let mut call = GitCall::new(&self.program, cwd);
        call.fence(self.fence.clone());
        // Relative to the handle of the top if everything is below it, else as it was opened.
        let is_relative =
            held.is_some() && self.found.is_plain() && matches!(self.boundary, Boundary::Anywhere);
        let git_dir = if is_relative { PathBuf::from(".git") } else { self.parts.git_dir.path() };
        let objects = if is_relative { PathBuf::from(".git/objects") } else { self.parts.objects.path() };
        call.variable("GIT_DIR", git_dir);
        call.variable("GIT_COMMON_DIR", self.common.path());
        call.variable("GIT_OBJECT_DIRECTORY", objects);
        call.variable("GIT_INDEX_FILE", self.common.path().join(NO_INDEX));
        call.variable("GIT_WORK_TREE", if held.is_some() { Path::new(".") } else { &self.found.top });
        match content {
            ContentRules::Bytes => {
                call.without_user();
                call.option(format!("--attr-source={}", self.empty_tree()));
                call.set("core.attributesFile", "/dev/null");
                call.set("core.autocrlf", "false");
                call.set("core.fileMode", "true");
            }
            ContentRules::Tree => call.without_user(),
            ContentRules::User => {}
        }
        call
    }

    /// Makes a call run the hooks of the repository, for a caller with the authority to decide that. Hooks are
    /// programs of any kind, so they run without a fence.
    pub fn with_hooks(&self, call: &mut GitCall) {
        let hooks = match self.setting("core", "hookspath") {
            Some(named) => named.into(),
            None => self.found.common.join("hooks").into_os_string(),
        };
        call.set("core.hooksPath", hooks);
        call.fence(self.fence.opened());
    }
}

/// Makes the common folder for git.
fn common_folder(settings: &str, real: &RepositoryFolder, top: &Path) -> io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("lathe-git-").tempdir_in(scratch_folder(top))?;
    std::fs::write(folder.path().join("config"), settings)?;
    std::fs::create_dir(folder.path().join("info"))?;
    for name in ["info/exclude", "info/attributes", "shallow"] {
        if let Some(content) = real.read(name, LONGEST)? {
            std::fs::write(folder.path().join(name), content)?;
        }
    }
    // Git finds references from `GIT_DIR`; a version that looks them up here must find the same.
    for name in ["refs", "logs", "packed-refs", "reftable"] {
        symlink(real.path().join(name), folder.path().join(name))?;
    }
    Ok(folder)
}

/// A folder for temporary ones outside of the work tree, where git would list them as new files. In memory if
/// possible: on a busy disk making a folder takes longer than git.
fn scratch_folder(top: &Path) -> PathBuf {
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

/// The results of [`prepare_init`].
#[derive(Debug)]
pub enum Init {
    /// The folder is a repository already.
    Existed,
    /// This call makes it one.
    Call(InitCall),
}

/// The call that makes a repository, with the handle of its folder.
#[derive(Debug)]
pub struct InitCall {
    pub call: GitCall,
    _folder: RepositoryFolder,
}

/// Prepares to make a folder a repository. An existing `.git` is never written to.
pub fn prepare_init(folder: &Path, boundary: &Boundary) -> Result<Init, GitError> {
    let folder = folder.canonicalize().map_err(|_| GitError::NoRepository)?;
    if dot_git(&folder, boundary)?.is_some() {
        return Ok(Init::Existed);
    }
    let dot = folder.join(".git");
    if std::fs::read_dir(&dot).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(GitError::refused(dot, "exists and is not a repository"));
    }
    let held = RepositoryFolder::hold(&folder, boundary)?;
    let program = GitProgram::find(&folder)?;
    let mut call = GitCall::new(&program, held.path());
    call.without_user();
    if let Boundary::Roots(roots) = boundary {
        let wrong = |error| GitError::refused(&folder, format!("cannot be opened: {error}"));
        call.fence(fence::fence_around(roots, &[&held], None, &program).map_err(wrong)?);
    }
    Ok(Init::Call(InitCall { call: call.args(["init", "--quiet", "--template="]), _folder: held }))
}
