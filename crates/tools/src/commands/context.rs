//! The state that the commands of a line share with the call whose line it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use lathe_changes::TreeChange;
use lathe_policy::{Depth, Disk as _, Gate, GateCall, Region, Rulebook, StandingApproval};
use lathe_protocol::{
    Actor, BoxFuture, CallId, CommandDecided, CommandRan, Decision, Digest, Effects, Mode, Raw, SeenFile,
    ToolKind, Verdict,
};
use parking_lot::Mutex;

use crate::line::LocalDisk;
use crate::outcome::AttachedContent;
use crate::outputs::{OutputHandle, RecordedOutput};
use crate::services::Services;
use crate::tool::{RunContext, ShellLine};
use crate::toolbox::PreparedCall;

/// The number of commands of one call that are recorded one by one.
pub(crate) const TRACED: usize = 200;

/// The number of images that the commands of one line may show.
const IMAGES: usize = 10;
/// Bytes of all of them.
const IMAGE_BYTES: usize = 40 << 20;

/// Decides about calls, and about the commands inside them.
#[derive(Debug, Clone)]
pub struct CallGate {
    pub gate: Gate,
    pub rules: Arc<Rulebook>,
    pub actor: Actor,
    pub mode: Mode,
    /// Tells whether the standing approvals are still what they were.
    pub fresh: Option<FreshnessCheck>,
}

/// Asks whether the rules are still what they were.
#[derive(Clone)]
pub struct FreshnessCheck(Arc<dyn Fn() -> bool + Send + Sync>);

impl FreshnessCheck {
    pub fn new(ask: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }
}

impl std::fmt::Debug for FreshnessCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fresh")
    }
}

/// The end of the name of the file with standing approvals.
pub const APPROVALS_FILE: &str = "answers.toml";

/// A decision of the gate and its grounds.
#[derive(Debug, Clone)]
pub struct GateDecision {
    pub decision: Decision,
    pub effects: Effects,
    /// The decision about each command of a shell line.
    pub each: Vec<CommandDecided>,
    /// The grants that a standing approval would give. Empty if nothing as narrow as this call can be remembered.
    pub narrowest: Vec<StandingApproval>,
}

/// The number of commands of one line whose decisions are kept.
pub(crate) const JUDGED: usize = 100;

impl CallGate {
    /// The same gate for a shell that is in another folder now.
    pub fn at(self, folder: impl Into<Option<std::path::PathBuf>>) -> Self {
        Self { gate: Gate { here: folder.into(), ..self.gate }, ..self }
    }

    /// This gate for the session's shell: in the folder it is in, with the options that lines switched on.
    pub fn in_shell(self, services: &Services) -> Self {
        let call_gate = self.at(services.cwd());
        Self { gate: Gate { switched: services.switched_options(), ..call_gate.gate }, ..call_gate }
    }

    /// Decides about a call: a shell line by its commands, any other call by its effects.
    pub fn decide_call(&self, prepared: &PreparedCall) -> GateDecision {
        if let Some(line) = &prepared.line {
            return self.decide_line(line);
        }
        let call = prepared.policy_call();
        GateDecision {
            decision: self.gate.decide_call(&self.rules, self.actor, self.mode, &call),
            effects: prepared.effects.clone(),
            each: Vec::new(),
            narrowest: StandingApproval::of_call(&call),
        }
    }

    pub fn decide_line(&self, line: &ShellLine) -> GateDecision {
        let decide = |gate: &Gate, text: &str| gate.decide_line(&self.rules, self.actor, self.mode, text);
        let mut decided = decide(&self.gate, &line.text);
        if let Some(folder) = &line.folder {
            let place = self.gate.here.as_ref().unwrap_or(&self.gate.root).join(folder);
            let inside = LocalDisk.real(&place).starts_with(&self.gate.root);
            decided = decide(&self.clone().at(place).gate, &line.text);
            // Changing into the folder is Lathe's own act as long as the folder is in the workspace; a denial there
            // holds.
            let there = format!("cd -- {} && {{ {}\n}}", crate::bash::quote(folder), line.text);
            let there = decide(&self.gate, &there);
            let stricter = !inside && there.decision.verdict > decided.decision.verdict;
            if stricter || there.decision.rule.starts_with("guard.") {
                decided = there;
            }
        }
        GateDecision {
            decision: decided.decision,
            effects: decided.effects,
            each: decided
                .commands
                .into_iter()
                .take(JUDGED)
                .map(|each| CommandDecided {
                    words: each.words,
                    decision: each.decision,
                    effects: each.effects,
                })
                .collect(),
            narrowest: decided
                .approvable
                .into_iter()
                .map(|narrowest| StandingApproval::Command {
                    words: narrowest.words,
                    workspace: self.gate.root.display().to_string(),
                    folder: narrowest.folder,
                })
                .collect(),
        }
    }

    /// Tells whether reading a file by its name would be denied or need a question. Then no result may reveal the
    /// file either.
    pub(crate) fn hides_path(&self, tool: &str, kind: ToolKind, path: &std::path::Path) -> bool {
        self.hiding_decision(tool, kind, path).is_some()
    }

    /// The decision that hides the file, if one does.
    pub(crate) fn hiding_decision(
        &self,
        tool: &str,
        kind: ToolKind,
        path: &std::path::Path,
    ) -> Option<Decision> {
        if self.actor == Actor::Person {
            return None;
        }
        if !self.rules.limits_paths() && self.gate.region(path, Depth::One) <= Region::Elsewhere {
            return None;
        }
        let effects = Effects::reading(path.display().to_string());
        let call = GateCall { tool, also: &[], kind, kinds: &[], effects: &effects, arguments: &[] };
        let decided = self.gate.decide_call(&self.rules, self.actor, self.mode, &call);
        (decided.verdict != Verdict::Allow).then_some(decided)
    }

    /// The decision that denies an agent command by its words, whatever started it. A rule about commands holds for a
    /// program that starts one, as it does for the text of a line. `name` is one that bash does not have.
    pub(crate) fn word_denial(&self, name: &str, words: &[String]) -> Option<Decision> {
        if self.actor == Actor::Person {
            return None;
        }
        let words: Vec<String> =
            std::iter::once(name).chain(words.iter().map(String::as_str)).map(crate::bash::quote).collect();
        let decided = self.gate.decide_line(&self.rules, self.actor, self.mode, &words.join(" ")).decision;
        // A command that would only need a question was allowed with the line.
        let by_rule = !matches!(decided.rule.as_str(), "headless" | "mode.plan");
        (decided.verdict == Verdict::Deny && by_rule).then_some(decided)
    }

    /// Decides about an agent command inside a line, by its words and by its effects.
    pub(crate) fn decide_command(
        &self,
        name: &str,
        words: &[String],
        call: &GateCall<'_>,
        granted: &Effects,
    ) -> Decision {
        self.word_denial(name, words).unwrap_or_else(|| self.decide_inside(call, granted))
    }

    /// Decides about a command of a line that was allowed with `granted`. Within that, no question is asked again.
    pub(crate) fn decide_inside(&self, call: &GateCall<'_>, granted: &Effects) -> Decision {
        let decision = self.gate.decide_call(&self.rules, self.actor, self.mode, call);
        let remembered =
            decision.verdict == Verdict::Allow && decision.rule.contains(&format!("{APPROVALS_FILE}:"));
        if remembered && self.fresh.as_ref().is_some_and(|fresh| !(fresh.0)()) {
            // The user who is asked knows the rules as they are now.
            let reason = "a standing approval has changed since the line began".to_owned();
            return Decision { verdict: Verdict::Ask, rule: "answers".to_owned(), reason };
        }
        match decision.verdict {
            Verdict::Ask if granted.opaque => Decision {
                verdict: Verdict::Allow,
                rule: "line".to_owned(),
                reason: "the line it is in was allowed".to_owned(),
            },
            Verdict::Allow | Verdict::Ask | Verdict::Deny => decision,
        }
    }
}

/// The session's knowledge for a running call, and the record of its commands.
pub trait Ledger: Send + Sync {
    /// Recalls the files that the model has seen among these paths, and the state that a tool asked to be given
    /// again.
    fn recall<'a>(&'a self, tool: &'a str, paths: Vec<String>) -> BoxFuture<'a, Recalled>;

    /// Records the result of a command.
    fn record<'a>(&'a self, call: &'a CallId, ran: CommandRan) -> BoxFuture<'a, ()>;

    /// The output of an earlier call.
    fn output<'a>(&'a self, _: OutputHandle) -> BoxFuture<'a, Option<RecordedOutput>> {
        Box::pin(async { None })
    }

    /// Tells whether the task may end now. The error is the reason why not.
    fn may_end<'a>(&'a self) -> BoxFuture<'a, Result<(), String>>;
}

#[derive(Debug, Clone, Default)]
pub struct Recalled {
    pub seen: Vec<SeenFile>,
    pub memory: Option<Raw>,
}

/// A ledger for lines that belong to no session.
#[derive(Default)]
pub struct LocalLedger(Mutex<Notes>);

#[derive(Default)]
struct Notes {
    seen: BTreeMap<String, Digest>,
    memory: BTreeMap<String, Raw>,
}

impl Ledger for LocalLedger {
    fn recall<'a>(&'a self, tool: &'a str, paths: Vec<String>) -> BoxFuture<'a, Recalled> {
        Box::pin(async move {
            let notes = self.0.lock();
            let seen = paths.into_iter().filter_map(|path| {
                let hash = notes.seen.get(&path)?.clone();
                Some(SeenFile { path, hash })
            });
            Recalled { seen: seen.collect(), memory: notes.memory.get(tool).cloned() }
        })
    }

    fn record<'a>(&'a self, _: &'a CallId, ran: CommandRan) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut notes = self.0.lock();
            notes.seen.extend(ran.seen.into_iter().map(|seen| (seen.path, seen.hash)));
            if let (Some(tool), Some(memory)) = (ran.tool, ran.memory) {
                notes.memory.insert(tool, memory);
            }
        })
    }

    fn may_end<'a>(&'a self) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}

/// The call whose line is running, as its commands see it.
pub(crate) struct LineContext {
    pub(crate) context: RunContext,
    pub(crate) granted: Effects,
    changes: Mutex<Vec<TreeChange>>,
    seen: Mutex<BTreeMap<String, Digest>>,
    /// Images that its commands showed.
    attached: Mutex<Vec<AttachedContent>>,
    ran: AtomicUsize,
    has_ended: AtomicBool,
}

impl LineContext {
    pub(crate) fn new(context: RunContext, granted: Effects) -> Self {
        Self {
            context,
            granted,
            changes: Mutex::default(),
            seen: Mutex::default(),
            attached: Mutex::default(),
            ran: AtomicUsize::new(0),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Marks the line as ended in its shell. Its background commands continue.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Counts one more command. True if it is still to be recorded by itself.
    pub(crate) fn count_command(&self) -> bool {
        self.ran.fetch_add(1, Ordering::Relaxed) < TRACED
    }

    /// The number of commands that were not recorded.
    pub(crate) fn untraced(&self) -> usize {
        self.ran.load(Ordering::Relaxed).saturating_sub(TRACED)
    }

    pub(crate) fn add_changes(&self, changes: &[TreeChange]) {
        let mut all = self.changes.lock();
        for change in changes {
            match all.iter_mut().find(|known| known.path == change.path) {
                // Two changes of a file count as one: from its first content to its present one.
                Some(known) => {
                    known.after.clone_from(&change.after);
                    known.mode = change.mode;
                }
                None => all.push(change.clone()),
            }
        }
    }

    pub(crate) fn add_seen(&self, seen: &[SeenFile]) {
        let mut all = self.seen.lock();
        all.extend(seen.iter().map(|seen| (seen.path.clone(), seen.hash.clone())));
    }

    /// Keeps images for the result of the line. Returns the names of those that exceed the limits.
    pub(crate) fn attach(&self, images: Vec<AttachedContent>) -> Vec<String> {
        let mut all = self.attached.lock();
        let mut left_out = Vec::new();
        for image in images {
            let held: usize = all.iter().map(|known| known.content.len()).sum();
            if all.len() < IMAGES && held + image.content.len() <= IMAGE_BYTES {
                all.push(image);
            } else {
                left_out.push(image.name);
            }
        }
        left_out
    }

    pub(crate) fn take_attached(&self) -> Vec<AttachedContent> {
        std::mem::take(&mut self.attached.lock())
    }

    /// The files as the line's commands saw or left them, including commands that were not recorded one by one.
    pub(crate) fn take_seen(&self) -> Vec<SeenFile> {
        let seen = std::mem::take(&mut *self.seen.lock());
        seen.into_iter().map(|(path, hash)| SeenFile { path, hash }).collect()
    }

    /// The changes that the line's commands reported.
    pub(crate) fn take_changes(&self) -> Vec<TreeChange> {
        std::mem::take(&mut self.changes.lock())
    }
}
