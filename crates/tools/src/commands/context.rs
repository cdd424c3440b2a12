//! What the commands of a line share with the call whose line it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use lathe_changes::TreeChange;
use lathe_policy::{Call, Depth, Disk as _, Gate, Grant, Region, Rulebook};
use lathe_protocol::{
    Actor, Boxed, CallId, CommandDecided, CommandRan, Decision, Digest, Effects, Kind, Mode, Raw, SeenFile,
    Verdict,
};
use parking_lot::Mutex;

use crate::disk::LocalDisk;
use crate::outcome::Attached;
use crate::outputs::{Handle, Output};
use crate::services::Services;
use crate::tool::{RunContext, ShellLine};
use crate::toolbox::Prepared;

/// Commands of one call that are written down one by one.
pub(crate) const TRACED: usize = 200;

/// Images that the commands of one line may show.
const IMAGES: usize = 10;
/// Bytes of all of them.
const IMAGE_BYTES: usize = 40 << 20;

/// Decides about calls, and about what happens inside them.
#[derive(Debug, Clone)]
pub struct Judge {
    pub gate: Gate,
    pub rules: Arc<Rulebook>,
    pub actor: Actor,
    pub mode: Mode,
    /// Whether what a person allowed for ever is still what it was.
    pub fresh: Option<Fresh>,
}

/// Asks whether rules are still as they were.
#[derive(Clone)]
pub struct Fresh(Arc<dyn Fn() -> bool + Send + Sync>);

impl Fresh {
    pub fn new(ask: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }
}

impl std::fmt::Debug for Fresh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fresh")
    }
}

/// The end of the name of the file of answers.
pub const ANSWERS: &str = "answers.toml";

/// What was decided, and on what grounds.
#[derive(Debug, Clone)]
pub struct Judged {
    pub decision: Decision,
    pub effects: Effects,
    /// Each command of a shell line.
    pub each: Vec<CommandDecided>,
    /// What a remembered answer would allow; empty where nothing as narrow as this can be remembered.
    pub narrowest: Vec<Grant>,
}

/// Commands of one line whose decisions are kept.
pub(crate) const JUDGED: usize = 100;

impl Judge {
    /// The same judge for a shell that is in another folder now.
    pub fn at(self, folder: impl Into<Option<std::path::PathBuf>>) -> Self {
        Self { gate: Gate { here: folder.into(), ..self.gate }, ..self }
    }

    /// This judge for the session's shell: in the folder it is in, with the options that lines switched on.
    pub fn in_shell(self, services: &Services) -> Self {
        let judge = self.at(services.cwd());
        Self { gate: Gate { switched: services.switched(), ..judge.gate }, ..judge }
    }

    /// A call: a shell line by its commands, anything else by its effects.
    pub fn call(&self, prepared: &Prepared) -> Judged {
        if let Some(line) = &prepared.line {
            return self.line(line);
        }
        let call = prepared.policy_call();
        Judged {
            decision: self.gate.decide_call(&self.rules, self.actor, self.mode, &call),
            effects: prepared.effects.clone(),
            each: Vec::new(),
            narrowest: Grant::of_call(&call),
        }
    }

    pub fn line(&self, line: &ShellLine) -> Judged {
        let decide = |gate: &Gate, text: &str| gate.decide_line(&self.rules, self.actor, self.mode, text);
        let mut decided = decide(&self.gate, &line.text);
        if let Some(folder) = &line.folder {
            let place = self.gate.here.as_ref().unwrap_or(&self.gate.root).join(folder);
            let inside = LocalDisk.real(&place).starts_with(&self.gate.root);
            decided = decide(&self.clone().at(place).gate, &line.text);
            // Going there is ours as long as it is in the workspace; what is denied there is denied.
            let there = format!("cd -- {} && {{ {}\n}}", crate::bash::quoted(folder), line.text);
            let there = decide(&self.gate, &there);
            let stricter = !inside && there.decision.verdict > decided.decision.verdict;
            if stricter || there.decision.rule.starts_with("guard.") {
                decided = there;
            }
        }
        Judged {
            decision: decided.decision,
            effects: decided.effects,
            each: decided
                .each
                .into_iter()
                .take(JUDGED)
                .map(|each| CommandDecided {
                    words: each.words,
                    decision: each.decision,
                    effects: each.effects,
                })
                .collect(),
            narrowest: decided
                .narrowest
                .into_iter()
                .map(|narrowest| Grant::Command {
                    words: narrowest.words,
                    workspace: self.gate.root.display().to_string(),
                    folder: narrowest.folder,
                })
                .collect(),
        }
    }

    /// Whether a file would not be read by its name without a question, so that nothing tells of it by the way.
    pub(crate) fn hides(&self, tool: &str, kind: Kind, path: &std::path::Path) -> bool {
        self.hidden_by(tool, kind, path).is_some()
    }

    /// What decides that, if it is so.
    pub(crate) fn hidden_by(&self, tool: &str, kind: Kind, path: &std::path::Path) -> Option<Decision> {
        if self.actor == Actor::Person {
            return None;
        }
        if !self.rules.limits_paths() && self.gate.region(path, Depth::One) <= Region::Elsewhere {
            return None;
        }
        let effects = Effects::reading(path.display().to_string());
        let call = Call { tool, also: &[], kind, kinds: &[], effects: &effects, arguments: &[] };
        let decided = self.gate.decide_call(&self.rules, self.actor, self.mode, &call);
        (decided.verdict != Verdict::Allow).then_some(decided)
    }

    /// Why a command of the agent may not run by its words, whoever started it: a rule about commands holds for a program that
    /// starts one, as it does for the text of a line. `name` is one that bash has not.
    pub(crate) fn denied_words(&self, name: &str, words: &[String]) -> Option<Decision> {
        if self.actor == Actor::Person {
            return None;
        }
        let words: Vec<String> =
            std::iter::once(name).chain(words.iter().map(String::as_str)).map(crate::bash::quoted).collect();
        let decided = self.gate.decide_line(&self.rules, self.actor, self.mode, &words.join(" ")).decision;
        // What is only asked about was allowed with the line.
        let by_rule = !matches!(decided.rule.as_str(), "headless" | "mode.plan");
        (decided.verdict == Verdict::Deny && by_rule).then_some(decided)
    }

    /// A command of the agent inside a line, by its words and by what it would do.
    pub(crate) fn command(
        &self,
        name: &str,
        words: &[String],
        call: &Call<'_>,
        granted: &Effects,
    ) -> Decision {
        self.denied_words(name, words).unwrap_or_else(|| self.inside(call, granted))
    }

    /// A command of a line that was allowed with `granted`: within that nothing is asked again.
    pub(crate) fn inside(&self, call: &Call<'_>, granted: &Effects) -> Decision {
        let decision = self.gate.decide_call(&self.rules, self.actor, self.mode, call);
        let remembered = decision.verdict == Verdict::Allow && decision.rule.contains(&format!("{ANSWERS}:"));
        if remembered && self.fresh.as_ref().is_some_and(|fresh| !(fresh.0)()) {
            // Whoever is asked knows the rules as they are now.
            let reason = "what was allowed for ever is not what it was when the line began".to_owned();
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

/// What a session knows, and is told, while a call runs.
pub trait Ledger: Send + Sync {
    /// What the model has seen of these files, and what a tool asked to be given again.
    fn recall<'a>(&'a self, tool: &'a str, paths: Vec<String>) -> Boxed<'a, Recalled>;

    /// Writes down what a command came to.
    fn record<'a>(&'a self, call: &'a CallId, ran: CommandRan) -> Boxed<'a, ()>;

    /// The output of an earlier call.
    fn output<'a>(&'a self, _: Handle) -> Boxed<'a, Option<Output>> {
        Box::pin(async { None })
    }

    /// Whether the task may end now; else the reason why not.
    fn may_end<'a>(&'a self) -> Boxed<'a, Result<(), String>>;
}

#[derive(Debug, Clone, Default)]
pub struct Recalled {
    pub seen: Vec<SeenFile>,
    pub memory: Option<Raw>,
}

/// A ledger for lines that belong to no session.
#[derive(Default)]
pub struct Notebook(Mutex<Notes>);

#[derive(Default)]
struct Notes {
    seen: BTreeMap<String, Digest>,
    memory: BTreeMap<String, Raw>,
}

impl Ledger for Notebook {
    fn recall<'a>(&'a self, tool: &'a str, paths: Vec<String>) -> Boxed<'a, Recalled> {
        Box::pin(async move {
            let notes = self.0.lock();
            let seen = paths.into_iter().filter_map(|path| {
                let hash = notes.seen.get(&path)?.clone();
                Some(SeenFile { path, hash })
            });
            Recalled { seen: seen.collect(), memory: notes.memory.get(tool).cloned() }
        })
    }

    fn record<'a>(&'a self, _: &'a CallId, ran: CommandRan) -> Boxed<'a, ()> {
        Box::pin(async move {
            let mut notes = self.0.lock();
            notes.seen.extend(ran.seen.into_iter().map(|seen| (seen.path, seen.hash)));
            if let (Some(tool), Some(memory)) = (ran.tool, ran.memory) {
                notes.memory.insert(tool, memory);
            }
        })
    }

    fn may_end<'a>(&'a self) -> Boxed<'a, Result<(), String>> {
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
    attached: Mutex<Vec<Attached>>,
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

    /// Its shell is through with it. Commands that it left in the background go on.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Counts one more command; whether it is still to be written down by itself.
    pub(crate) fn count(&self) -> bool {
        self.ran.fetch_add(1, Ordering::Relaxed) < TRACED
    }

    /// Commands that were not written down.
    pub(crate) fn untraced(&self) -> usize {
        self.ran.load(Ordering::Relaxed).saturating_sub(TRACED)
    }

    pub(crate) fn changed(&self, changes: &[TreeChange]) {
        let mut all = self.changes.lock();
        for change in changes {
            match all.iter_mut().find(|known| known.path == change.path) {
                // Twice changed is once changed: from what was there first to what is there now.
                Some(known) => {
                    known.after.clone_from(&change.after);
                    known.mode = change.mode;
                }
                None => all.push(change.clone()),
            }
        }
    }

    pub(crate) fn saw(&self, seen: &[SeenFile]) {
        let mut all = self.seen.lock();
        all.extend(seen.iter().map(|seen| (seen.path.clone(), seen.hash.clone())));
    }

    /// Keeps images for the result of the line, and gives the names of those that are too many.
    pub(crate) fn attach(&self, images: Vec<Attached>) -> Vec<String> {
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

    pub(crate) fn take_attached(&self) -> Vec<Attached> {
        std::mem::take(&mut self.attached.lock())
    }

    /// The files as the line's commands saw or left them, also those that were not written down one by one.
    pub(crate) fn take_seen(&self) -> Vec<SeenFile> {
        let seen = std::mem::take(&mut *self.seen.lock());
        seen.into_iter().map(|(path, hash)| SeenFile { path, hash }).collect()
    }

    /// What the line's commands changed, by their own account.
    pub(crate) fn take_changes(&self) -> Vec<TreeChange> {
        std::mem::take(&mut self.changes.lock())
    }
}
