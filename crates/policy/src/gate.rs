//! Decisions by effects and mode, and the permit that goes with an allowing decision.

use std::path::{Component, Path, PathBuf};

use lathe_protocol::{Actor, Decision, Effects, Mode, Verdict};

use crate::disk::OnDisk;
use crate::guarded::GuardedPlace;
use crate::switched::ShellSwitches;
use crate::walls::{WALLS, Walls};

/// The one file in Lathe's folder that a tool writes: the facts that the user wants remembered.
pub(crate) const MEMORY: &str = "memory.md";

/// The gate: the facts about the place that decisions are made by.
#[derive(Debug, Clone)]
pub struct Gate {
    /// Lathe's own folder by its real name. No tool may write it.
    pub home: PathBuf,
    /// The folder worked in: `auto-edit` may change it.
    pub root: PathBuf,
    /// The user's own folder.
    pub user_home: Option<PathBuf>,
    /// The folder a line runs in. Where it is unknown, a relative name means no place in particular.
    pub here: Option<PathBuf>,
    /// The folder with outputs of the session's own calls, which the session may read.
    pub outputs: Option<PathBuf>,
    /// True if there is no user who could be asked.
    pub headless: bool,
    /// Answers about names on the disk.
    pub disk: OnDisk,
    /// Options that earlier lines switched on in the shell.
    pub switched: ShellSwitches,
    /// The walls around the processes that lines run in.
    pub walls: Walls,
}

/// Proof that the gate allowed one invocation. Only the gate makes one, so nothing runs that was not decided.
#[derive(Debug)]
pub struct Permit {
    approved: Effects,
}

impl Permit {
    pub fn approved_effects(&self) -> &Effects {
        &self.approved
    }
}

impl Gate {
    pub fn decide(&self, actor: Actor, mode: Mode, effects: &Effects) -> Decision {
        if let Some(denied) = self.guard_denial(effects) {
            return denied;
        }
        match actor {
            // A person's own line is limited by the guard only.
            Actor::Person => decision(Verdict::Allow, "person", "asked for by a person"),
            Actor::Model | Actor::Project => {
                self.memory_decision(mode, effects).unwrap_or_else(|| self.by_mode(mode, effects))
            }
        }
    }

    /// The permit that goes with an allowing decision.
    pub fn permit(&self, decision: &Decision, effects: &Effects) -> Option<Permit> {
        match decision.verdict {
            Verdict::Allow => Some(Permit { approved: effects.clone() }),
            Verdict::Ask | Verdict::Deny => None,
        }
    }

    /// The denial that no mode and no rule switches off.
    pub(crate) fn guard_denial(&self, effects: &Effects) -> Option<Decision> {
        let paths = effects.writes.iter().filter(|path| !self.is_memory(path));
        paths.into_iter().find_map(|path| self.guarded_write(path))
    }

    /// The denial of a write to a place that no tool and no line may write: by its spelling, and by where links and
    /// patterns lead on the disk.
    pub(crate) fn guarded_write(&self, path: &str) -> Option<Decision> {
        let spelled = self.guarded_place(normal(Path::new(path)));
        let disk = self.disk.get().filter(|_| spelled.is_none() && Path::new(path).is_absolute());
        let Some(disk) = disk else { return spelled };
        let is_pattern = path.contains(['*', '?', '[']);
        let found = || match self.switched.hidden_names {
            true => disk.expand_with_hidden(path),
            false => disk.expand(path),
        };
        let meant = if is_pattern { found().unwrap_or_default() } else { Vec::new() };
        let meant = std::iter::once(PathBuf::from(path)).chain(meant);
        meant.into_iter().find_map(|path| self.guarded_place(disk.real(&path)))
    }

    fn guarded_place(&self, path: PathBuf) -> Option<Decision> {
        if path.starts_with(&self.home) {
            return Some(GuardedPlace::Home.denial());
        }
        is_git_internal(&path).then(|| GuardedPlace::Git.denial())
    }

    /// The question that comes before every change of the user's remembered facts: they reach the system prompt of
    /// every later session, so no mode and no rule allows one, and without a user the change is denied.
    pub(crate) fn memory_decision(&self, mode: Mode, effects: &Effects) -> Option<Decision> {
        if !effects.writes.iter().any(|path| self.is_memory(path)) {
            return None;
        }
        let (verdict, rule, reason) = match mode {
            Mode::Plan => (Verdict::Deny, "mode.plan", "mode plan changes nothing"),
            Mode::Default | Mode::AutoEdit | Mode::FullAuto if self.headless => (
                Verdict::Deny,
                "floor.memory",
                "only the user decides what is remembered for every project, and no user can be asked here",
            ),
            Mode::Default | Mode::AutoEdit | Mode::FullAuto => {
                (Verdict::Ask, "floor.memory", "it is remembered for every later session in every project")
            }
        };
        Some(decision(verdict, rule, reason))
    }

    fn is_memory(&self, path: &str) -> bool {
        normal(Path::new(path)) == self.home.join(MEMORY)
    }

    fn by_mode(&self, mode: Mode, effects: &Effects) -> Decision {
        if !effects.change_something() {
            return decision(Verdict::Allow, "builtin.reads", "it only reads");
        }
        match mode {
            Mode::FullAuto => decision(Verdict::Allow, "mode.full-auto", "mode full-auto allows changes"),
            Mode::Plan => decision(Verdict::Deny, "mode.plan", "mode plan changes nothing"),
            Mode::AutoEdit if self.edits_inside(effects) => {
                decision(Verdict::Allow, "mode.auto-edit", "mode auto-edit allows edits inside the workspace")
            }
            Mode::Default if self.has_walls() && self.edits_inside(effects) => {
                decision(Verdict::Allow, WALLS, "behind walls, edits inside the workspace are allowed")
            }
            Mode::Default | Mode::AutoEdit if self.headless => decision(
                Verdict::Deny,
                "headless",
                "it may change something and nobody can be asked; `--mode full-auto` would allow it",
            ),
            Mode::Default | Mode::AutoEdit => {
                decision(Verdict::Ask, "builtin.changes", "it may change something")
            }
        }
    }

    /// Tells whether only files of the workspace would change.
    fn edits_inside(&self, effects: &Effects) -> bool {
        let only_files = Effects { reads: Vec::new(), writes: Vec::new(), ..effects.clone() };
        let inside = |path: &String| normal(Path::new(path)).starts_with(&self.root);
        !effects.writes.is_empty() && !only_files.change_something() && effects.writes.iter().all(inside)
    }
}

pub(crate) fn decision(verdict: Verdict, rule: &str, reason: &str) -> Decision {
    Decision { verdict, rule: rule.to_owned(), reason: reason.to_owned() }
}

/// Adds the effects of one command to the effects of all.
pub(crate) fn join(all: &mut Effects, one: &Effects) {
    let add = |all: &mut Vec<String>, one: &[String]| {
        for thing in one {
            // A long line may name the same thing thousands of times; a search for each one would be quadratic.
            if all.len() >= 256 || !all.contains(thing) {
                all.push(thing.clone());
            }
        }
    };
    add(&mut all.reads, &one.reads);
    add(&mut all.writes, &one.writes);
    add(&mut all.programs, &one.programs);
    add(&mut all.hosts, &one.hosts);
    add(&mut all.environment, &one.environment);
    all.opaque |= one.opaque;
}

/// The path without `.` and `..`, as far as the text alone shows.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    out
}

/// Tells whether a path is `.git` in any spelling of case, or below it.
fn is_git_internal(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate {
        Gate {
            home: "/h/.lathe".into(),
            root: "/w".into(),
            user_home: None,
            here: None,
            outputs: None,
            headless: true,
            disk: OnDisk::default(),
            switched: ShellSwitches::default(),
            walls: Walls::None,
        }
    }

    #[test]
    fn each_mode_decides_by_effects() {
        let opaque = Effects { opaque: true, ..Effects::default() };
        let write = Effects::writing("/w/a");
        let outside = Effects::writing("/w/../x");
        let read = Effects::reading("/w/a");
        for (mode, effects, verdict, rule) in [
            (Mode::FullAuto, &opaque, Verdict::Allow, "mode.full-auto"),
            (Mode::FullAuto, &write, Verdict::Allow, "mode.full-auto"),
            (Mode::Plan, &write, Verdict::Deny, "mode.plan"),
            (Mode::Plan, &opaque, Verdict::Deny, "mode.plan"),
            (Mode::Plan, &read, Verdict::Allow, "builtin.reads"),
            (Mode::Default, &write, Verdict::Deny, "headless"),
            (Mode::AutoEdit, &opaque, Verdict::Deny, "headless"),
            (Mode::AutoEdit, &write, Verdict::Allow, "mode.auto-edit"),
            (Mode::AutoEdit, &outside, Verdict::Deny, "headless"),
            (Mode::Default, &read, Verdict::Allow, "builtin.reads"),
        ] {
            let decision = gate().decide(Actor::Model, mode, effects);
            assert_eq!((decision.verdict, decision.rule.as_str()), (verdict, rule), "{mode:?} {effects:?}");
        }
    }

    #[test]
    fn where_somebody_can_be_asked_a_change_is_a_question() {
        let gate = Gate { headless: false, ..gate() };
        assert_eq!(gate.decide(Actor::Model, Mode::Default, &Effects::writing("/w/a")).verdict, Verdict::Ask);
    }

    #[test]
    fn the_guard_holds_in_every_mode_and_for_every_actor() {
        for path in [
            "/h/.lathe/config.toml",
            "/h/x/../.lathe/a",
            "/w/.git/hooks/pre-commit",
            "/w/.GIT/config",
            "/w/sub/.git/x",
        ] {
            for mode in Mode::ALL {
                for actor in [Actor::Model, Actor::Person, Actor::Project] {
                    let decision = gate().decide(actor, mode, &Effects::writing(path));
                    assert_eq!(decision.verdict, Verdict::Deny, "{path}");
                    assert!(decision.rule.starts_with("guard."));
                }
            }
        }
        for path in ["/w/.gitignore", "/w/git/x", "/h/.lathe2/x"] {
            let decision = gate().decide(Actor::Model, Mode::FullAuto, &Effects::writing(path));
            assert_eq!(decision.verdict, Verdict::Allow, "{path}");
        }
    }

    #[test]
    fn only_an_allowing_decision_gives_a_permit() {
        let effects = Effects::writing("/w/a");
        let allowed = gate().decide(Actor::Model, Mode::FullAuto, &effects);
        let denied = gate().decide(Actor::Model, Mode::Plan, &effects);
        assert!(
            gate().permit(&allowed, &effects).is_some_and(|permit| *permit.approved_effects() == effects)
        );
        assert!(gate().permit(&denied, &effects).is_none());
    }

    #[test]
    fn facts_for_every_project_are_asked_about_in_every_mode() {
        let effects = Effects::writing("/h/.lathe/memory.md");
        for (mode, attended, alone) in [
            (Mode::Plan, Verdict::Deny, Verdict::Deny),
            (Mode::Default, Verdict::Ask, Verdict::Deny),
            (Mode::AutoEdit, Verdict::Ask, Verdict::Deny),
            (Mode::FullAuto, Verdict::Ask, Verdict::Deny),
        ] {
            for (headless, expected) in [(false, attended), (true, alone)] {
                let gate = Gate { headless, ..gate() };
                assert_eq!(
                    gate.decide(Actor::Model, mode, &effects).verdict,
                    expected,
                    "{mode:?} {headless}"
                );
            }
        }
        assert_eq!(gate().decide(Actor::Person, Mode::Default, &effects).verdict, Verdict::Allow);
    }
}
