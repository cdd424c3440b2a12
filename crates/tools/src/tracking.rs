//! What shell lines change: the tree is looked at before and after each.
//!
//! Securing the tree begins when the session opens and goes on beside the first request to the model; a line waits for it.
//! Where it cannot be done, lines run all the same, and their results say that they cannot be taken back.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lathe_changes::{
    Background, Broken, ChangesError, Compared, Repositories, SetAside, Tracker, TrackerOptions, Watched,
    Why, forget_background, note_background,
};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, RwLock, RwLockReadGuard};
use tokio::task::JoinHandle;

/// The tracker of a session's tree. One line at a time uses it, as one line at a time runs.
pub struct Tracking {
    state: AsyncMutex<State>,
    /// Whether a line runs, between its two looks. What writes files by itself holds it meanwhile, so that each write is
    /// seen by a line's looks or by none.
    in_line: RwLock<bool>,
    /// Set while the tree is being secured beside something else.
    securing: Mutex<Option<JoinHandle<State>>>,
    /// Only lines that take something away are looked at.
    sparing: bool,
    root: PathBuf,
    /// Git's own data, of which copies are held.
    repositories: Option<Copies>,
    /// Processes of the last line still run, and may write whenever they like.
    left_running: AtomicBool,
    /// What tools of ours wrote by themselves since the last look: their own results hold it.
    written: Mutex<Vec<PathBuf>>,
    /// The folder with the copies, where there is a session that looks there after a kill.
    scratch: Option<PathBuf>,
    /// The call whose processes the copies are held for.
    held: Mutex<Option<String>>,
    /// Programs of git that such a process left, to be told with the next line.
    aside: Aside,
}

type Aside = Arc<Mutex<Vec<SetAside>>>;

type Copies = Arc<Mutex<Repositories>>;

enum State {
    /// Nothing is tracked.
    Off,
    Waiting(TrackerOptions),
    Ready(Box<Tracker>),
    /// Why it cannot be done.
    Broken(String),
    /// There is no room for copies.
    Full,
}

/// There is no room for copies of what a line may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoRoom;

impl State {
    fn broken(error: &ChangesError) -> Self {
        if error.is_full() { Self::Full } else { Self::Broken(error.to_string()) }
    }
}

impl Tracking {
    pub fn off() -> Self {
        Self {
            state: AsyncMutex::new(State::Off),
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
        }
    }

    /// The tracking of a tree that is not of this machine: the result of each line says that it cannot be taken back.
    pub fn absent() -> Self {
        let why = "what lines change is only known in a folder of this machine, and this workspace is none";
        Self { state: AsyncMutex::new(State::Broken(why.to_owned())), ..Self::off() }
    }

    pub fn new(options: TrackerOptions) -> Self {
        let (root, scratch) = (options.root.clone(), Some(options.scratch.clone()));
        Self { state: AsyncMutex::new(State::Waiting(options)), root, scratch, ..Self::off() }
    }

    /// Lets copies of repositories be held beside.
    pub fn with(self, repositories: Repositories) -> Self {
        let is_on = !self.root.as_os_str().is_empty();
        Self { repositories: is_on.then(|| Arc::new(Mutex::new(repositories))), ..self }
    }

    /// For a person's lines: the tree is secured only before one that takes something away.
    pub fn sparing(options: TrackerOptions) -> Self {
        Self { sparing: true, scratch: None, ..Self::new(options) }
    }

    /// Whether there is no session that writes the changes down.
    pub(crate) fn is_sparing(&self) -> bool {
        self.sparing
    }

    /// What is too much for it, but could be kept otherwise. What others can make again is not among it.
    pub(crate) async fn beyond(&self) -> Vec<PathBuf> {
        let state = self.state.lock().await;
        let State::Ready(tracker) = &*state else { return Vec::new() };
        let beyond = |why: Why| {
            matches!(why, Why::TooLarge | Why::OverTotal | Why::TooMany | Why::Unreadable | Why::CopyGone)
        };
        tracker.not_undoable().into_iter().filter(|lost| beyond(lost.why)).map(|lost| lost.path).collect()
    }

    /// Tells whether one of these names may be another way to a file of the tree.
    pub(crate) async fn is_alias(&self, names: &[&OsStr]) -> bool {
        match &*self.state.lock().await {
            State::Ready(tracker) => tracker.is_alias(names),
            State::Off | State::Waiting(_) | State::Broken(_) | State::Full => true,
        }
    }

    /// Begins to secure the tree, beside whatever else is going on.
    pub fn begin(&self) {
        let Ok(mut state) = self.state.try_lock() else { return };
        if let State::Waiting(options) = &*state {
            let (options, copies, root) = (options.clone(), self.repositories.clone(), self.root.clone());
            let aside = Arc::clone(&self.aside);
            let task = tokio::task::spawn_blocking(move || {
                settle(copies.as_ref(), &root, &aside);
                let state = secure(options);
                copy_repositories(&state, copies.as_ref(), &root);
                state
            });
            *self.securing.lock() = Some(task);
            *state = State::Off;
        }
    }

    /// Whether anything is looked at: what is being secured counts.
    pub(crate) fn is_on(&self) -> bool {
        self.state.try_lock().map_or(true, |state| !matches!(*state, State::Off))
    }

    fn begun(&self) -> Option<JoinHandle<State>> {
        self.securing.lock().take()
    }

    /// Before a line: what others changed meanwhile is not the line's doing, and how the tree is now is durable, so that
    /// even a killed process leaves the way back. `line` is its name for that. Without room for it the line must not run.
    pub(crate) async fn before(&self, line: &str) -> Result<(), NoRoom> {
        if self.left_running.load(Ordering::Relaxed) {
            let left = self.look_for_programs().await;
            self.aside.lock().extend(left);
        }
        let mut in_line = self.in_line.write().await;
        // From now on the book is the line's.
        *self.held.lock() = None;
        let mut state = self.state.lock().await;
        if let Some(task) = self.begun() {
            *state = task.await.unwrap_or_else(|error| State::Broken(error.to_string()));
        }
        let held = std::mem::replace(&mut *state, State::Off);
        let (copies, root, line) = (self.repositories.clone(), self.root.clone(), line.to_owned());
        let (running, written) = (self.has_left_running(), self.take_written());
        let aside = Arc::clone(&self.aside);
        let (now, _) = on_thread(held, move |state| {
            settle(copies.as_ref(), &root, &aside);
            let state = match state {
                State::Waiting(options) => secure(options),
                // What a look that failed should have found is found by the next one.
                State::Ready(tracker) if tracker.is_unsettled() => State::Ready(tracker),
                // Processes that an earlier line left may have written meanwhile: the result of this line tells it.
                State::Ready(mut tracker) if running => match tracker.refresh_only(&written) {
                    Ok(()) => State::Ready(tracker),
                    Err(error) => State::broken(&error),
                },
                State::Ready(mut tracker) => match tracker.refresh() {
                    Ok(_) => State::Ready(tracker),
                    Err(error) => State::broken(&error),
                },
                other @ (State::Off | State::Broken(_) | State::Full) => other,
            };
            let state = match state {
                State::Ready(mut tracker) => match tracker.begin(&line) {
                    Ok(()) => State::Ready(tracker),
                    Err(error) => State::broken(&error),
                },
                other @ (State::Off | State::Waiting(_) | State::Broken(_) | State::Full) => other,
            };
            copy_repositories(&state, copies.as_ref(), &root);
            (state, ())
        })
        .await;
        *state = now;
        *in_line = !matches!(*state, State::Full);
        if *in_line { Ok(()) } else { Err(NoRoom) }
    }

    /// A tool of ours writes these itself.
    pub(crate) fn writes(&self, paths: impl Iterator<Item = PathBuf>) {
        self.written.lock().extend(paths);
    }

    /// The paths that tools of ours wrote since the last look.
    fn take_written(&self) -> Vec<PathBuf> {
        std::mem::take(&mut self.written.lock())
    }

    /// Whether a line runs, for as long as the answer is held.
    pub(crate) async fn line(&self) -> RwLockReadGuard<'_, bool> {
        self.in_line.read().await
    }

    /// The line that was looked forward to does not run.
    pub(crate) async fn called_off(&self) {
        *self.in_line.write().await = false;
    }

    /// Before a line that may do anything: only git's own data is looked at.
    pub(crate) async fn before_git(&self) {
        let (Some(copies), root) = (self.repositories.clone(), self.root.clone()) else { return };
        let aside = Arc::clone(&self.aside);
        let look = move || {
            settle(Some(&copies), &root, &aside);
            copies.lock().secure(&root, &[]);
        };
        let _ = tokio::task::spawn_blocking(look).await;
    }

    /// After a line: what it left for git to run later is set aside. `running` are its processes that have not ended.
    pub(crate) async fn set_programs_aside(&self, running: usize) -> Vec<SetAside> {
        self.left_running.store(running > 0, Ordering::Relaxed);
        let now = self.look_for_programs().await;
        let mut aside = self.take_aside();
        aside.extend(now);
        aside
    }

    /// The programs that were set aside before a line.
    pub(crate) fn take_aside(&self) -> Vec<SetAside> {
        std::mem::take(&mut self.aside.lock())
    }

    /// The repositories of which there are copies.
    pub(crate) fn copied(&self) -> Watched {
        self.repositories.as_ref().map(|copies| copies.lock().watched()).unwrap_or_default()
    }

    /// Whether processes of an earlier line ran on when the last one ended.
    pub(crate) fn has_left_running(&self) -> bool {
        self.left_running.load(Ordering::Relaxed)
    }

    /// A person's lines may write what they like.
    async fn look_for_programs(&self) -> Vec<SetAside> {
        let Some(copies) = self.repositories.clone().filter(|_| !self.sparing) else { return Vec::new() };
        tokio::task::spawn_blocking(move || copies.lock().set_programs_aside()).await.unwrap_or_default()
    }

    /// After a line: the repositories that are no longer whole.
    pub(crate) async fn broken(&self) -> Vec<Broken> {
        let Some(copies) = self.repositories.clone() else { return Vec::new() };
        tokio::task::spawn_blocking(move || copies.lock().broken()).await.unwrap_or_default()
    }

    /// A look between lines, for what processes of earlier lines changed. The results of our own tools hold what these wrote.
    /// `running` tells whether such processes live still. None while a line runs: its look finds it.
    pub(crate) async fn between(&self, running: bool) -> Option<Result<Compared, String>> {
        let in_line = self.in_line.write().await;
        if *in_line {
            return None;
        }
        let mut state = self.state.lock().await;
        let held = std::mem::replace(&mut *state, State::Off);
        let written = self.take_written();
        let (now, compared) = on_thread(held, move |state| match state {
            State::Ready(mut tracker) => {
                let compared = tracker.refresh_only(&written).and_then(|()| tracker.compare());
                (State::Ready(tracker), compared.map_err(|error| error.to_string()))
            }
            other @ (State::Off | State::Waiting(_) | State::Broken(_) | State::Full) => {
                (other, Ok(Compared::default()))
            }
        })
        .await;
        *state = now;
        self.left_running.store(running, Ordering::Relaxed);
        Some(compared.and_then(|compared| compared))
    }

    /// Keeps the way back from what these processes do while no line runs, should this process be killed. The journal has all
    /// that was found so far; `changed` tells that it has more than the last time.
    pub(crate) async fn hold(&self, left: Background, changed: bool) {
        let Some(scratch) = self.scratch.clone() else { return };
        let in_line = self.in_line.write().await;
        if *in_line || (!changed && self.held.lock().as_deref() == Some(left.call.as_str())) {
            return;
        }
        let mut state = self.state.lock().await;
        let held = std::mem::replace(&mut *state, State::Off);
        let call = left.call.clone();
        let (now, is_held) = on_thread(held, move |state| match state {
            State::Ready(mut tracker) => {
                let noted = tracker.begin(&left.mark()).is_ok() && note_background(&scratch, &left).is_ok();
                (State::Ready(tracker), noted)
            }
            other @ (State::Off | State::Waiting(_) | State::Broken(_) | State::Full) => (other, false),
        })
        .await;
        *state = now;
        *self.held.lock() = is_held.unwrap_or_default().then_some(call);
    }

    /// No process of a line lives any more, and the journal has what they changed.
    pub(crate) fn release(&self) {
        *self.held.lock() = None;
        if let Some(scratch) = &self.scratch {
            forget_background(scratch);
        }
    }

    /// After a line: what it changed, beside the repositories it broke, and which paths tools of ours wrote meanwhile.
    pub(crate) async fn after(&self, broken: &[Broken]) -> (Result<Compared, String>, Vec<PathBuf>) {
        let mut in_line = self.in_line.write().await;
        let mut state = self.state.lock().await;
        let held = std::mem::replace(&mut *state, State::Off);
        let objects = self.repositories.as_ref().and_then(|copies| copies.lock().objects(broken));
        let (now, compared) = on_thread(held, |state| match state {
            State::Ready(mut tracker) => match tracker.compare_with(objects) {
                Ok(compared) => (State::Ready(tracker), Ok(compared)),
                // What could not be compared is still known as it was before the line, and told with the next one.
                Err(error) => (State::Ready(tracker), Err(error.to_string())),
            },
            State::Broken(reason) => (State::Broken(reason.clone()), Err(reason)),
            State::Full => (State::Full, Err("there is no room for copies of files".to_owned())),
            other @ (State::Off | State::Waiting(_)) => (other, Ok(Compared::default())),
        })
        .await;
        *state = now;
        *in_line = false;
        (compared.and_then(|compared| compared), self.take_written())
    }
}

/// Settles what killed lines left here, before the copies are brought up to date, and before git is started.
fn settle(copies: Option<&Copies>, root: &std::path::Path, aside: &Aside) {
    let Some(copies) = copies else { return };
    let found = copies.lock().settle(root);
    aside.lock().extend(found);
}

fn copy_repositories(state: &State, copies: Option<&Copies>, root: &std::path::Path) {
    if let Some(copies) = copies {
        let found = match state {
            State::Ready(tracker) => tracker.git_paths(),
            State::Off | State::Waiting(_) | State::Broken(_) | State::Full => Vec::new(),
        };
        copies.lock().secure(root, &found);
    }
}

fn secure(options: TrackerOptions) -> State {
    let secured = Tracker::secure(options).and_then(|mut tracker| tracker.keep().map(|()| tracker));
    match secured {
        Ok(tracker) => State::Ready(Box::new(tracker)),
        Err(error) => State::broken(&error),
    }
}

/// Looking at a tree blocks.
async fn on_thread<T: Send + 'static>(
    state: State,
    work: impl FnOnce(State) -> (State, T) + Send + 'static,
) -> (State, Result<T, String>) {
    if matches!(state, State::Off) {
        let (state, done) = work(state);
        return (state, Ok(done));
    }
    match tokio::task::spawn_blocking(move || work(state)).await {
        Ok((state, done)) => (state, Ok(done)),
        Err(error) => (State::Broken(error.to_string()), Err(error.to_string())),
    }
}

impl Default for Tracking {
    fn default() -> Self {
        Self::off()
    }
}
