//! Tracks the changes of shell lines: the tree is scanned before and after each line.
//!
//! Securing the tree begins when the session opens and runs concurrently with the first request to the model; a line
//! waits for it. If the tree cannot be secured, lines run all the same, and their results say that they cannot be
//! undone.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lathe_blobs::Blobs;
use lathe_changes::{
    BackgroundLine, BrokenRepository, ChangesError, Compared, NotUndoableReason, Repositories, SetAside,
    Tracker, TrackerOptions, WatchedRepositories, remove_background_note, write_background_note,
};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, RwLock, RwLockReadGuard};
use tokio::task::JoinHandle;

use crate::line::protected_names::{ProtectedFindings, ProtectedNames, RevertedPath};

/// The tracker of a session's tree. One line at a time uses it, because one line at a time runs.
pub struct Tracking {
    state: AsyncMutex<TrackingState>,
    /// True while a line runs, between its two scans. A tool that writes files by itself holds the lock meanwhile, so
    /// that each write falls between the two scans of a line, or outside of both.
    in_line: RwLock<bool>,
    /// Set while the tree is being secured in the background.
    securing: Mutex<Option<JoinHandle<TrackingState>>>,
    /// True if only lines that remove something are tracked.
    sparing: bool,
    root: PathBuf,
    /// Git's own data, of which copies are kept.
    repositories: Option<Copies>,
    /// True if processes of the last line still run and may write at any time.
    left_running: AtomicBool,
    /// Paths that Lathe's own tools wrote since the last scan; their results record them.
    written: Mutex<Vec<PathBuf>>,
    /// The folder with the copies, if there is a session that looks there after a kill.
    scratch: Option<PathBuf>,
    /// The call for whose processes the copies are kept.
    held: Mutex<Option<String>>,
    /// Programs of git that such a process left, to be reported with the next line.
    aside: Aside,
    /// The guard of protected names, behind walls: what a line writes to them is reverted.
    protected: Option<Guard>,
    /// The protected paths that the last line wrote.
    reverted: Mutex<Vec<RevertedPath>>,
}

type Aside = Arc<Mutex<Vec<SetAside>>>;

type Copies = Arc<Mutex<Repositories>>;

type Guard = Arc<Mutex<ProtectedNames>>;

enum TrackingState {
    /// Nothing is tracked.
    Off,
    Waiting(TrackerOptions),
    Ready(Box<Tracker>),
    /// Tracking is not possible; the text is the reason.
    Broken(String),
    /// There is no room for copies.
    Full,
}

/// The disk has no room for copies of what a line may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoRoom;

impl TrackingState {
    fn broken(error: &ChangesError) -> Self {
        if error.is_full() { Self::Full } else { Self::Broken(error.to_string()) }
    }
}

impl Tracking {
    pub fn off() -> Self {
        Self {
            state: AsyncMutex::new(TrackingState::Off),
            in_line: RwLock::new(false),
            securing: Mutex::default(),
            sparing: false,
            root: PathBuf::new(),
            repositories: None,
            left_running: AtomicBool::new(false),
            written: Mutex::default(),
            scratch: None,
            held: Mutex::default(),
            aside: Aside::default(),
            protected: None,
            reverted: Mutex::default(),
        }
    }

    /// Also reverts what lines write to protected names. Without walls the gate alone keeps lines from writing them.
    pub(crate) fn protecting(self, blobs: Blobs) -> Self {
        let guard = ProtectedNames::new(blobs, self.root.clone());
        Self { protected: Some(Arc::new(Mutex::new(guard))), ..self }
    }

    /// Takes the protected paths that the last line wrote.
    pub(crate) fn take_reverted(&self) -> Vec<RevertedPath> {
        std::mem::take(&mut self.reverted.lock())
    }

    /// The tracking of a tree that is not on this machine: the result of each line says that it cannot be undone.
    pub fn absent() -> Self {
        let why = "what lines change is only known in a folder of this machine, and this workspace is none";
        Self { state: AsyncMutex::new(TrackingState::Broken(why.to_owned())), ..Self::off() }
    }

    pub fn new(options: TrackerOptions) -> Self {
        let (root, scratch) = (options.root.clone(), Some(options.scratch.clone()));
        Self { state: AsyncMutex::new(TrackingState::Waiting(options)), root, scratch, ..Self::off() }
    }

    /// Also keeps copies of repositories.
    pub fn with_repositories(self, repositories: Repositories) -> Self {
        let is_on = !self.root.as_os_str().is_empty();
        Self { repositories: is_on.then(|| Arc::new(Mutex::new(repositories))), ..self }
    }

    /// Tracking for the user's own lines: the tree is secured only before a line that removes something.
    pub fn sparing(options: TrackerOptions) -> Self {
        Self { sparing: true, scratch: None, ..Self::new(options) }
    }

    /// Tells whether there is no session that records the changes.
    pub(crate) fn is_sparing(&self) -> bool {
        self.sparing
    }

    /// The paths that are too much for the tracker but could be kept in another way. Paths that other programs can
    /// create again are not among them.
    pub(crate) async fn untrackable_paths(&self) -> Vec<PathBuf> {
        let state = self.state.lock().await;
        let TrackingState::Ready(tracker) = &*state else { return Vec::new() };
        let beyond = |why: NotUndoableReason| {
            matches!(
                why,
                NotUndoableReason::TooLarge
                    | NotUndoableReason::OverTotal
                    | NotUndoableReason::TooMany
                    | NotUndoableReason::Unreadable
                    | NotUndoableReason::CopyGone
            )
        };
        tracker.not_undoable().into_iter().filter(|lost| beyond(lost.why)).map(|lost| lost.path).collect()
    }

    /// Tells whether one of these names may be another name of a file of the tree.
    pub(crate) async fn is_alias(&self, names: &[&OsStr]) -> bool {
        match &*self.state.lock().await {
            TrackingState::Ready(tracker) => tracker.is_alias(names),
            TrackingState::Off
            | TrackingState::Waiting(_)
            | TrackingState::Broken(_)
            | TrackingState::Full => true,
        }
    }

    /// Begins to secure the tree in the background.
    pub fn begin(&self) {
        let Ok(mut state) = self.state.try_lock() else { return };
        if let TrackingState::Waiting(options) = &*state {
            let (options, copies, root) = (options.clone(), self.repositories.clone(), self.root.clone());
            let aside = Arc::clone(&self.aside);
            let task = tokio::task::spawn_blocking(move || {
                settle(copies.as_ref(), &root, &aside);
                let state = secure(options);
                copy_repositories(&state, copies.as_ref(), &root);
                state
            });
            *self.securing.lock() = Some(task);
            *state = TrackingState::Off;
        }
    }

    /// Tells whether anything is tracked. A tree that is being secured counts.
    pub(crate) fn is_on(&self) -> bool {
        self.state.try_lock().map_or(true, |state| !matches!(*state, TrackingState::Off))
    }

    fn take_securing(&self) -> Option<JoinHandle<TrackingState>> {
        self.securing.lock().take()
    }

    /// Prepares for a line: changes that others made meanwhile are not attributed to the line, and the present state
    /// of the tree is stored durably, so that even a killed process leaves a way to undo. `line` is its name for that
    /// purpose. If there is no room for the copies, the line must not run.
    pub(crate) async fn begin_line(&self, line: &str) -> Result<(), NoRoom> {
        if self.left_running.load(Ordering::Relaxed) {
            let left = self.look_for_programs().await;
            self.aside.lock().extend(left);
        }
        let mut in_line = self.in_line.write().await;
        // From now on the held copies belong to the line.
        *self.held.lock() = None;
        let mut state = self.state.lock().await;
        if let Some(task) = self.take_securing() {
            *state = task.await.unwrap_or_else(|error| TrackingState::Broken(error.to_string()));
        }
        let held = std::mem::replace(&mut *state, TrackingState::Off);
        let (copies, root, line) = (self.repositories.clone(), self.root.clone(), line.to_owned());
        let (running, written) = (self.has_left_running(), self.take_written());
        let (aside, protected) = (Arc::clone(&self.aside), self.protected.clone());
        let (now, _) = on_thread(held, move |state| {
            settle(copies.as_ref(), &root, &aside);
            let state = match state {
                TrackingState::Waiting(options) => secure(options),
                // Changes that a failed scan should have found are found by the next one.
                TrackingState::Ready(tracker) if tracker.is_unsettled() => TrackingState::Ready(tracker),
                // Processes that an earlier line left may have written meanwhile: the result of this line reports it.
                TrackingState::Ready(mut tracker) if running => match tracker.refresh_only(&written) {
                    Ok(()) => TrackingState::Ready(tracker),
                    Err(error) => TrackingState::broken(&error),
                },
                TrackingState::Ready(mut tracker) => match tracker.refresh() {
                    Ok(_) => TrackingState::Ready(tracker),
                    Err(error) => TrackingState::broken(&error),
                },
                other @ (TrackingState::Off | TrackingState::Broken(_) | TrackingState::Full) => other,
            };
            let state = match state {
                TrackingState::Ready(mut tracker) => match tracker.begin_line(&line) {
                    Ok(()) => TrackingState::Ready(tracker),
                    Err(error) => TrackingState::broken(&error),
                },
                other @ (TrackingState::Off
                | TrackingState::Waiting(_)
                | TrackingState::Broken(_)
                | TrackingState::Full) => other,
            };
            copy_repositories(&state, copies.as_ref(), &root);
            if let (Some(guard), Some(copies)) = (protected, copies) {
                guard.lock().note_objects(&copies.lock());
            }
            (state, ())
        })
        .await;
        *state = now;
        *in_line = !matches!(*state, TrackingState::Full);
        if *in_line { Ok(()) } else { Err(NoRoom) }
    }

    /// Notes paths that one of Lathe's own tools is about to write.
    pub(crate) fn note_writes(&self, paths: impl Iterator<Item = PathBuf>) {
        self.written.lock().extend(paths);
    }

    /// The paths that Lathe's own tools wrote since the last scan.
    fn take_written(&self) -> Vec<PathBuf> {
        std::mem::take(&mut self.written.lock())
    }

    /// Tells whether a line runs. The value cannot change for as long as the guard is held.
    pub(crate) async fn lock_line(&self) -> RwLockReadGuard<'_, bool> {
        self.in_line.read().await
    }

    /// Cancels a line that was prepared and does not run.
    pub(crate) async fn cancel_line(&self) {
        *self.in_line.write().await = false;
    }

    /// Prepares for a line with unknown effects: only git's own data is secured.
    pub(crate) async fn secure_git(&self) {
        let (Some(copies), root) = (self.repositories.clone(), self.root.clone()) else { return };
        let aside = Arc::clone(&self.aside);
        let look = move || {
            settle(Some(&copies), &root, &aside);
            copies.lock().secure(&root, &[]);
        };
        let _ = tokio::task::spawn_blocking(look).await;
    }

    /// After a line: sets aside the programs that it left for git to run later. `running` is the number of its
    /// processes that have not ended.
    pub(crate) async fn set_programs_aside(&self, running: usize) -> Vec<SetAside> {
        self.left_running.store(running > 0, Ordering::Relaxed);
        let now = self.look_for_programs().await;
        let mut aside = self.take_aside();
        aside.extend(now);
        aside
    }

    /// Takes the programs that were set aside before a line.
    pub(crate) fn take_aside(&self) -> Vec<SetAside> {
        std::mem::take(&mut self.aside.lock())
    }

    /// The repositories that have copies.
    pub(crate) fn copied_repositories(&self) -> WatchedRepositories {
        self.repositories.as_ref().map(|copies| copies.lock().watched()).unwrap_or_default()
    }

    /// Tells whether processes of an earlier line still ran when the last one ended.
    pub(crate) fn has_left_running(&self) -> bool {
        self.left_running.load(Ordering::Relaxed)
    }

    /// Finds programs left for git. The user's own lines may write such files.
    async fn look_for_programs(&self) -> Vec<SetAside> {
        let Some(copies) = self.repositories.clone().filter(|_| !self.sparing) else { return Vec::new() };
        tokio::task::spawn_blocking(move || copies.lock().set_programs_aside()).await.unwrap_or_default()
    }

    /// After a line: the repositories that are no longer intact.
    pub(crate) async fn broken_repositories(&self) -> Vec<BrokenRepository> {
        let Some(copies) = self.repositories.clone() else { return Vec::new() };
        tokio::task::spawn_blocking(move || copies.lock().broken()).await.unwrap_or_default()
    }

    /// Scans between lines for changes of processes that earlier lines left. The results of Lathe's own tools record
    /// what these wrote. `running` tells whether such processes still live. None while a line runs: its own scan
    /// finds the changes.
    pub(crate) async fn scan_between_lines(&self, running: bool) -> Option<Result<Compared, String>> {
        let in_line = self.in_line.write().await;
        if *in_line {
            return None;
        }
        let mut state = self.state.lock().await;
        let held = std::mem::replace(&mut *state, TrackingState::Off);
        let written = self.take_written();
        let (protected, copies) = (self.protected.clone(), self.guarded_copies());
        let (now, compared) = on_thread(held, move |state| match state {
            TrackingState::Ready(mut tracker) => {
                let before = tracker.git_paths();
                match tracker.refresh_only(&written).and_then(|()| tracker.compare()) {
                    Ok(mut compared) => {
                        let found = look_at_protected(
                            &mut tracker,
                            protected.as_ref(),
                            copies.as_ref(),
                            &before,
                            &mut compared,
                        );
                        (adopt(tracker, &found), Ok((compared, found)))
                    }
                    Err(error) => (TrackingState::Ready(tracker), Err(error.to_string())),
                }
            }
            other @ (TrackingState::Off
            | TrackingState::Waiting(_)
            | TrackingState::Broken(_)
            | TrackingState::Full) => (other, Ok((Compared::default(), ProtectedFindings::default()))),
        })
        .await;
        *state = now;
        self.left_running.store(running, Ordering::Relaxed);
        let (compared, found) = match compared.and_then(|compared| compared) {
            Ok(parts) => parts,
            Err(reason) => return Some(Err(reason)),
        };
        self.note_findings(found);
        Some(Ok(compared))
    }

    /// Keeps a way to undo what these processes do while no line runs, in case this process is killed. The journal
    /// has all changes found so far; `changed` tells that it has more than the last time.
    pub(crate) async fn hold_copies(&self, left: BackgroundLine, changed: bool) {
        let Some(scratch) = self.scratch.clone() else { return };
        let in_line = self.in_line.write().await;
        if *in_line || (!changed && self.held.lock().as_deref() == Some(left.call.as_str())) {
            return;
        }
        let mut state = self.state.lock().await;
        let held = std::mem::replace(&mut *state, TrackingState::Off);
        let call = left.call.clone();
        let (now, is_held) = on_thread(held, move |state| match state {
            TrackingState::Ready(mut tracker) => {
                let noted = tracker.begin_line(&left.mark()).is_ok()
                    && write_background_note(&scratch, &left).is_ok();
                (TrackingState::Ready(tracker), noted)
            }
            other @ (TrackingState::Off
            | TrackingState::Waiting(_)
            | TrackingState::Broken(_)
            | TrackingState::Full) => (other, false),
        })
        .await;
        *state = now;
        *self.held.lock() = is_held.unwrap_or_default().then_some(call);
    }

    /// Releases the held copies: no process of a line lives any more, and the journal has its changes.
    pub(crate) fn release_copies(&self) {
        *self.held.lock() = None;
        if let Some(scratch) = &self.scratch {
            remove_background_note(scratch);
        }
    }

    /// The copies by which new repositories are recognised. The user's own lines may write anything to them.
    fn guarded_copies(&self) -> Option<Copies> {
        self.repositories.clone().filter(|_| !self.sparing)
    }

    /// Keeps what was found at protected names for the result of the line, or of the next one.
    fn note_findings(&self, found: ProtectedFindings) {
        self.reverted.lock().extend(found.reverted);
        self.aside.lock().extend(found.aside);
    }

    /// After a line: its changes, apart from the repositories it broke, and the paths that Lathe's own tools wrote
    /// meanwhile.
    pub(crate) async fn end_line(
        &self,
        broken: &[BrokenRepository],
    ) -> (Result<Compared, String>, Vec<PathBuf>) {
        let mut in_line = self.in_line.write().await;
        let mut state = self.state.lock().await;
        let held = std::mem::replace(&mut *state, TrackingState::Off);
        let objects = self.repositories.as_ref().and_then(|copies| copies.lock().objects_copy(broken));
        let (protected, copies) = (self.protected.clone(), self.guarded_copies());
        let (now, compared) = on_thread(held, move |state| match state {
            TrackingState::Ready(mut tracker) => {
                let before = tracker.git_paths();
                match tracker.compare_with_git_copy(objects) {
                    Ok(mut compared) => {
                        let found = look_at_protected(
                            &mut tracker,
                            protected.as_ref(),
                            copies.as_ref(),
                            &before,
                            &mut compared,
                        );
                        (adopt(tracker, &found), (Ok(compared), found))
                    }
                    // The changes that could not be compared are still known as before the line, and are reported with
                    // the next one.
                    Err(error) => (
                        TrackingState::Ready(tracker),
                        (Err(error.to_string()), ProtectedFindings::default()),
                    ),
                }
            }
            TrackingState::Broken(reason) => {
                (TrackingState::Broken(reason.clone()), (Err(reason), ProtectedFindings::default()))
            }
            TrackingState::Full => {
                let full = Err("there is no room for copies of files".to_owned());
                (TrackingState::Full, (full, ProtectedFindings::default()))
            }
            other @ (TrackingState::Off | TrackingState::Waiting(_)) => {
                (other, (Ok(Compared::default()), ProtectedFindings::default()))
            }
        })
        .await;
        *state = now;
        *in_line = false;
        let (compared, found) = match compared {
            Ok(parts) => parts,
            Err(reason) => (Err(reason), ProtectedFindings::default()),
        };
        self.note_findings(found);
        (compared, self.take_written())
    }
}

/// Looks at protected names after a comparison. `before` are the `.git` paths from before it.
fn look_at_protected(
    tracker: &mut Tracker,
    guard: Option<&Guard>,
    copies: Option<&Copies>,
    before: &[PathBuf],
    compared: &mut Compared,
) -> ProtectedFindings {
    let Some(guard) = guard else { return ProtectedFindings::default() };
    let mut guard = guard.lock();
    let mut unkept = tracker.take_new_unkept();
    let aside = match copies {
        Some(copies) => guard.look_at_new_repositories(tracker, &copies.lock(), before, (compared, &unkept)),
        None => Vec::new(),
    };
    unkept.extend(tracker.take_new_unkept());
    ProtectedFindings { reverted: guard.revert(compared, &unkept), aside }
}

/// Takes the reverted paths as the state before the next line.
fn adopt(mut tracker: Box<Tracker>, found: &ProtectedFindings) -> TrackingState {
    let paths: Vec<PathBuf> = found.reverted.iter().map(|one| one.path.clone()).collect();
    match tracker.refresh_only(&paths) {
        Ok(()) => TrackingState::Ready(tracker),
        Err(error) => TrackingState::broken(&error),
    }
}

/// Settles what killed lines left here, before the copies are updated and before git is started.
fn settle(copies: Option<&Copies>, root: &std::path::Path, aside: &Aside) {
    let Some(copies) = copies else { return };
    let found = copies.lock().settle(root);
    aside.lock().extend(found);
}

fn copy_repositories(state: &TrackingState, copies: Option<&Copies>, root: &std::path::Path) {
    if let Some(copies) = copies {
        let found = match state {
            TrackingState::Ready(tracker) => tracker.git_paths(),
            TrackingState::Off
            | TrackingState::Waiting(_)
            | TrackingState::Broken(_)
            | TrackingState::Full => Vec::new(),
        };
        copies.lock().secure(root, &found);
    }
}

fn secure(options: TrackerOptions) -> TrackingState {
    let secured = Tracker::secure(options).and_then(|mut tracker| tracker.write_book().map(|()| tracker));
    match secured {
        Ok(tracker) => TrackingState::Ready(Box::new(tracker)),
        Err(error) => TrackingState::broken(&error),
    }
}

/// Runs work on the state on a blocking thread, because scanning a tree blocks.
async fn on_thread<T: Send + 'static>(
    state: TrackingState,
    work: impl FnOnce(TrackingState) -> (TrackingState, T) + Send + 'static,
) -> (TrackingState, Result<T, String>) {
    if matches!(state, TrackingState::Off) {
        let (state, done) = work(state);
        return (state, Ok(done));
    }
    match tokio::task::spawn_blocking(move || work(state)).await {
        Ok((state, done)) => (state, Ok(done)),
        Err(error) => (TrackingState::Broken(error.to_string()), Err(error.to_string())),
    }
}

impl Default for Tracking {
    fn default() -> Self {
        Self::off()
    }
}
