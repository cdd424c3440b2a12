//! Rules of all tiers, and which of them speak about a command or a call.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use lathe_bash::{Command, Word, normal_words};
use lathe_protocol::{Actor, Decision, Effects, Kind, Mode, Verdict};

use crate::error::PolicyError;
use crate::file::{self, RuleFile};
use crate::gate::decision;

#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) number: usize,
    pub(crate) decision: Verdict,
    pub(crate) command: Vec<Vec<String>>,
    /// Whole commands, word by word, with nothing after them.
    pub(crate) words: Vec<Vec<String>>,
    pub(crate) tool: Vec<String>,
    pub(crate) kind: Vec<Kind>,
    pub(crate) path: Vec<String>,
    pub(crate) host: Vec<String>,
    pub(crate) mode: Vec<Mode>,
    pub(crate) actor: Vec<Actor>,
    /// The folders worked in where it holds.
    pub(crate) workspace: Vec<String>,
    /// The folders in which it holds for a command.
    pub(crate) folder: Vec<String>,
    pub(crate) reason: String,
    pub(crate) matches: Vec<String>,
    pub(crate) not_matches: Vec<String>,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            file: String::new(),
            line: 0,
            number: 0,
            decision: Verdict::Ask,
            command: Vec::new(),
            words: Vec::new(),
            tool: Vec::new(),
            kind: Vec::new(),
            path: Vec::new(),
            host: Vec::new(),
            mode: Vec::new(),
            actor: Vec::new(),
            workspace: Vec::new(),
            folder: Vec::new(),
            reason: String::new(),
            matches: Vec::new(),
            not_matches: Vec::new(),
        }
    }
}

/// Where rules come from, the weightiest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Of the repository: may only tighten.
    Project,
    Builtin,
    User,
    Admin,
}

/// A call of a tool, as far as rules look at it.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub tool: &'a str,
    pub kind: Kind,
    pub effects: &'a Effects,
}

/// Who does something, where, and in which mode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) actor: Actor,
    pub(crate) mode: Mode,
    /// The folder worked in.
    pub(crate) root: &'a Path,
    /// The folder that the commands of a line run in; none if that is not certain.
    pub(crate) folder: Option<&'a str>,
}

/// What a rule is asked about.
#[derive(Clone, Copy)]
pub(crate) enum Subject<'a> {
    Command(&'a Command, &'a Effects),
    Call(&'a Call<'a>),
}

impl Rule {
    /// Whether it speaks about nothing in particular, which would be a switch for the whole gate.
    pub(crate) fn is_empty(&self) -> bool {
        self.command.is_empty()
            && self.words.is_empty()
            && self.tool.is_empty()
            && self.kind.is_empty()
            && self.path.is_empty()
            && self.host.is_empty()
    }

    /// Its name in decisions and answers.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    /// Whether the rule speaks about the subject, and how many words of a command its prefix covers.
    fn speaks(&self, subject: Subject<'_>, setting: Setting<'_>) -> Option<usize> {
        let fits = (self.mode.is_empty() || self.mode.contains(&setting.mode))
            && (self.actor.is_empty() || self.actor.contains(&setting.actor))
            && (self.workspace.is_empty()
                || self.workspace.iter().any(|root| Path::new(root) == setting.root))
            && (self.folder.is_empty()
                || self.folder.iter().any(|folder| setting.folder == Some(folder.as_str())));
        if !fits {
            return None;
        }
        let (effects, covered) = match subject {
            Subject::Command(command, effects) => {
                if !self.tool.is_empty() || !self.kind.is_empty() {
                    return None;
                }
                let covered = match (self.command.is_empty(), self.words.is_empty()) {
                    (true, true) => 0,
                    (false, true) => self.prefix(command)?,
                    (true, false) => self.whole(command)?,
                    (false, false) => self.prefix(command).or_else(|| self.whole(command))?,
                };
                (effects, covered)
            }
            Subject::Call(call) => {
                let named = self.tool.is_empty() || self.tool.iter().any(|tool| glob(tool, call.tool));
                let kinds = self.kind.is_empty() || self.kind.contains(&call.kind);
                if !self.command.is_empty() || !self.words.is_empty() || !named || !kinds {
                    return None;
                }
                (call.effects, 0)
            }
        };
        let paths: Vec<&String> = effects.reads.iter().chain(&effects.writes).collect();
        (self.covers(&self.path, &paths)
            && self.covers(&self.host, &effects.hosts.iter().collect::<Vec<_>>()))
        .then_some(covered)
    }

    /// To allow, everything touched must be named; to ask or deny, one thing is enough.
    fn covers(&self, patterns: &[String], things: &[&String]) -> bool {
        let named = |thing: &&String| patterns.iter().any(|pattern| glob(pattern, thing));
        if patterns.is_empty() {
            return true;
        }
        match self.decision {
            Verdict::Allow => !things.is_empty() && things.iter().all(named),
            Verdict::Ask | Verdict::Deny => things.iter().any(named),
        }
    }

    fn whole(&self, command: &Command) -> Option<usize> {
        let same = |words: &&Vec<String>| {
            words.len() == command.words.len()
                && words.iter().zip(&command.words).all(|(word, given)| given.literal() == Some(word))
        };
        self.words.iter().find(same).map(Vec::len)
    }

    fn prefix(&self, command: &Command) -> Option<usize> {
        let exact = |prefix: &Vec<String>| {
            prefix.len() <= command.words.len()
                && prefix.iter().zip(&command.words).all(|(word, given)| given.literal() == Some(word))
        };
        if let Some(prefix) = self.command.iter().find(|prefix| exact(prefix)) {
            return Some(prefix.len());
        }
        // What is asked about or denied cannot be had by another spelling; what is allowed is allowed as written.
        if self.decision == Verdict::Allow {
            return None;
        }
        let normal = normal_words(&command.words);
        self.command.iter().find(|prefix| normal.starts_with(prefix)).map(Vec::len)
    }

    /// Tries the examples.
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        let (file, line, rule) = (self.file.clone(), self.line, self.number);
        if let Some(example) = self.matches.iter().find(|example| !self.example(example)) {
            return Err(PolicyError::NoMatch { file, line, rule, example: example.clone() });
        }
        if let Some(example) = self.not_matches.iter().find(|example| self.example(example)) {
            return Err(PolicyError::Match { file, line, rule, example: example.clone() });
        }
        Ok(())
    }

    /// An example is a line for a rule about commands, else a path, a host or the name of a tool.
    fn example(&self, example: &str) -> bool {
        if !self.command.is_empty() || !self.words.is_empty() {
            let setting = Setting {
                actor: self.actor.first().copied().unwrap_or(Actor::Model),
                mode: self.mode.first().copied().unwrap_or(Mode::Default),
                root: Path::new(self.workspace.first().map_or("/", String::as_str)),
                folder: self.folder.first().map(String::as_str),
            };
            let script = lathe_bash::read(example);
            return script.commands.iter().any(|command| {
                self.speaks(Subject::Command(command, &command.effects()), setting).is_some()
            });
        }
        let any = |patterns: &[String]| patterns.iter().any(|pattern| glob(pattern, example));
        any(&self.path) || any(&self.host) || any(&self.tool)
    }
}

/// The rules that hold, of all tiers.
#[derive(Debug, Clone)]
pub struct Rulebook {
    tiers: Vec<(Tier, RuleFile)>,
    /// Names that are commands of the agent in the shell the lines are for.
    own: BTreeSet<String>,
}

/// Names that bash keeps for itself, whatever stands on PATH.
const BASH_OWN: [&str; 3] = ["read", "jobs", "done"];

/// The rules that come with Lathe; `docs/policy.md` shows them.
const BUILTIN: &str = include_str!("../rules/builtin.toml");

static BUILTIN_RULES: LazyLock<RuleFile> =
    LazyLock::new(|| file::parse("builtin", BUILTIN).unwrap_or_default());

impl Rulebook {
    /// No rules at all: everything is asked about.
    pub fn empty() -> Self {
        Self { tiers: Vec::new(), own: BTreeSet::new() }
    }

    pub fn builtin() -> Self {
        Self { tiers: vec![(Tier::Builtin, BUILTIN_RULES.clone())], own: BTreeSet::new() }
    }

    /// Lines are for a shell in which these names are commands of the agent. Such a command is decided when it runs, by
    /// what its words came to, so a line is not asked about because of it.
    pub fn knowing(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.own.extend(names.into_iter().filter(|name| !BASH_OWN.contains(&name.as_str())));
        self
    }

    /// Whether bash would hand this command to the agent.
    pub(crate) fn is_own(&self, command: &Command) -> bool {
        command.program().is_some_and(|name| self.own.contains(name))
    }

    /// The rules that come with Lathe, as they are written.
    pub fn builtin_text() -> &'static str {
        BUILTIN
    }

    /// Adds the rules of a file; `name` is for messages and decisions.
    pub fn with(mut self, tier: Tier, name: &str, text: &str) -> Result<Self, PolicyError> {
        let file = file::parse(name, text)?;
        self.tiers.push((tier, file));
        // Weightiest first; files of one tier stay in their order.
        self.tiers.sort_by_key(|(tier, _)| std::cmp::Reverse(*tier));
        Ok(self)
    }

    /// What the rules say, and how many words the rule that allows covers.
    pub(crate) fn say(&self, subject: Subject<'_>, setting: Setting<'_>) -> (Option<Decision>, usize) {
        let (mut deny, mut tighten): (Option<&Rule>, Option<&Rule>) = (None, None);
        let mut top: Option<(Tier, &Rule, usize)> = None;
        for (tier, file) in &self.tiers {
            for rule in &file.rules {
                let Some(covered) = rule.speaks(subject, setting) else { continue };
                match (rule.decision, tier) {
                    (Verdict::Deny, _) => deny = deny.or(Some(rule)),
                    (Verdict::Ask, Tier::Project) => tighten = tighten.or(Some(rule)),
                    (Verdict::Allow, Tier::Project) => {}
                    (Verdict::Ask | Verdict::Allow, tier) => {
                        let stricter = |(best, other, _): &(Tier, &Rule, usize)| {
                            tier > best || (tier == best && rule.decision > other.decision)
                        };
                        if top.as_ref().is_none_or(stricter) {
                            top = Some((*tier, rule, covered));
                        }
                    }
                }
            }
        }
        if let Some(rule) =
            deny.or(tighten.filter(|_| top.is_none_or(|(_, top, _)| top.decision < Verdict::Ask)))
        {
            return (Some(by_rule(rule)), 0);
        }
        (top.map(|(_, rule, _)| by_rule(rule)), top.map_or(0, |(_, _, covered)| covered))
    }

    /// What is said where no rule speaks: the word of the weightiest file that says something, and nothing weaker from
    /// a project.
    pub(crate) fn default(&self) -> Decision {
        let mut verdict = None;
        for (tier, file) in &self.tiers {
            match (tier, file.default) {
                (_, None) => {}
                (Tier::Project, Some(said)) => verdict = Some(verdict.unwrap_or(Verdict::Ask).max(said)),
                (_, Some(said)) => verdict = verdict.or(Some(said)),
            }
        }
        decision(verdict.unwrap_or(Verdict::Ask), "default", "no rule speaks about it")
    }
}

fn by_rule(rule: &Rule) -> Decision {
    let reason = if rule.reason.is_empty() { "a rule says so" } else { &rule.reason };
    decision(rule.decision, &rule.name(), reason)
}

/// `*` stands for anything within a part of a path, `**` for anything, `?` for one character.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    // The usual backtracking to the last star, kept apart for the one that does not cross a slash.
    let (mut p, mut t) = (0, 0);
    let mut back: Vec<(usize, usize, bool)> = Vec::new();
    loop {
        let wide = pattern.get(p) == Some(&'*') && pattern.get(p + 1) == Some(&'*');
        if wide || pattern.get(p) == Some(&'*') {
            p += if wide { 2 } else { 1 };
            // A later star makes earlier ones needless, but a narrow one cannot stand in for a wide one.
            back.retain(|(_, _, earlier_is_wide)| *earlier_is_wide && !wide);
            back.push((p, t, wide));
            continue;
        }
        match (pattern.get(p), text.get(t)) {
            (None, None) => return true,
            (Some(want), Some(have)) if want == have || (*want == '?' && *have != '/') => {
                p += 1;
                t += 1;
                continue;
            }
            _ => {}
        }
        loop {
            let Some((after, from, wide)) = back.pop() else { return false };
            if from < text.len() && (wide || text.get(from) != Some(&'/')) {
                back.push((after, from + 1, wide));
                (p, t) = (after, from + 1);
                break;
            }
        }
    }
}

/// The words a rule would need to allow this command and nothing wider.
pub(crate) fn narrowest(command: &Command) -> Option<Vec<String>> {
    command.words.iter().map(|word| Word::literal(word).map(str::to_owned)).collect()
}
