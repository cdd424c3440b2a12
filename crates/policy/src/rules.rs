//! Rules of all tiers, and the choice of those that apply to a command or a call.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use lathe_bash::{SimpleCommand, Word, normal_words};
use lathe_protocol::{Actor, Decision, Effects, Mode, ToolKind, Verdict};

use crate::cause::by_rule;
use crate::error::PolicyError;
use crate::file::{self, RuleFile};
use crate::gate::{Gate, decision};
use crate::names::{self, KnownNames, tool_names};
use crate::patterns::{PatternCache, glob, tool_name_matches};
use crate::possible_commands::PossibleCommands;
use crate::regexes::{self, Pattern};
use crate::touch::Touch;

#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) number: usize,
    pub(crate) decision: Verdict,
    pub(crate) command: Vec<Vec<String>>,
    /// Whole commands, word by word, with nothing after them.
    pub(crate) words: Vec<Vec<String>>,
    pub(crate) command_regex: Vec<Pattern>,
    pub(crate) args_pattern: Vec<Pattern>,
    /// True if a redirection into a file of the workspace is allowed with the command.
    pub(crate) redirects: bool,
    pub(crate) tool: Vec<String>,
    pub(crate) kind: Vec<ToolKind>,
    pub(crate) path: Vec<String>,
    pub(crate) host: Vec<String>,
    pub(crate) mode: Vec<Mode>,
    pub(crate) actor: Vec<Actor>,
    /// The folders worked in for which it holds.
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
            command_regex: Vec::new(),
            args_pattern: Vec::new(),
            redirects: false,
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

/// The sources of rules, the weightiest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// The repository: its rules may only tighten.
    Project,
    Builtin,
    User,
    Admin,
}

/// A call of a tool, as far as rules examine it.
#[derive(Debug, Clone, Copy)]
pub struct GateCall<'a> {
    /// The canonical name.
    pub tool: &'a str,
    /// The names of a tool that is not built in.
    pub also: &'a [String],
    pub kind: ToolKind,
    /// Kinds that only these arguments make it: a patch that deletes.
    pub kinds: &'a [ToolKind],
    pub effects: &'a Effects,
    /// The arguments in every form they have: as they were given, and by the names of Lathe's own tool. Empty for a
    /// read that is not a call.
    pub arguments: &'a [serde_json::Value],
}

/// A command of the session's shell that is a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCommand {
    /// The name in the shell.
    pub name: String,
    /// The canonical name of the tool.
    pub tool: String,
    /// The names of a tool that is not built in.
    pub also: Vec<String>,
    pub kind: ToolKind,
}

impl From<String> for OwnCommand {
    /// A command of which only the name is known.
    fn from(name: String) -> Self {
        Self { tool: name.clone(), name, also: Vec::new(), kind: ToolKind::Other }
    }
}

/// The circumstances of an act: the actor, the place and the mode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) actor: Actor,
    pub(crate) mode: Mode,
    /// The folder worked in.
    pub(crate) root: &'a Path,
    /// The folder that the commands of a line run in; `None` if that is not certain.
    pub(crate) folder: Option<&'a str>,
    /// The whole line.
    pub(crate) line: &'a str,
    /// The gate, which says what paths mean.
    pub(crate) gate: Option<&'a Gate>,
    /// The path patterns of rules that were used.
    pub(crate) patterns: &'a PatternCache,
    /// True if only what the walls do not hold is asked about.
    pub(crate) is_walled: bool,
}

/// A command of a line, as far as rules examine it.
#[derive(Clone, Copy)]
pub(crate) struct GateCommand<'a> {
    pub(crate) command: &'a SimpleCommand,
    pub(crate) effects: &'a Effects,
    pub(crate) touches: &'a [Touch],
    /// The tool that it is, if it is one.
    pub(crate) own: Option<&'a OwnCommand>,
    pub(crate) kinds: &'a [ToolKind],
    /// The further commands that it may run.
    pub(crate) possible: &'a PossibleCommands,
    /// The assignments of the line.
    pub(crate) assigned: &'a BTreeMap<String, Vec<Word>>,
    /// True if a question is asked about a part that is known only when the line runs.
    pub(crate) asks: bool,
}

/// The parts of a command that a rule which allows it has decided.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Covered {
    /// Words that its prefix names.
    pub(crate) words: usize,
    /// Redirections into files of the workspace.
    pub(crate) redirects: bool,
}

/// The subject that a rule is asked about.
#[derive(Clone, Copy)]
pub(crate) enum Subject<'a> {
    Command(GateCommand<'a>),
    Call(&'a GateCall<'a>, &'a [Touch]),
    /// A whole line for the shell, with any content.
    Line,
}

impl Rule {
    /// Tells whether it is about nothing in particular, which would be a switch for the whole gate.
    pub(crate) fn is_empty(&self) -> bool {
        self.command.is_empty()
            && self.words.is_empty()
            && self.command_regex.is_empty()
            && self.tool.is_empty()
            && self.kind.is_empty()
            && self.path.is_empty()
            && self.host.is_empty()
    }

    /// Its name in decisions and answers.
    pub(crate) fn name(&self) -> String {
        if self.line == 0 { self.file.clone() } else { format!("{}:{}", self.file, self.line) }
    }

    /// Tells whether the rule is about the subject: the number of words of a command that its prefix covers, or
    /// `None`.
    pub(crate) fn applies(&self, subject: Subject<'_>, setting: Setting<'_>) -> Option<usize> {
        let covered = self.matches_subject(subject, setting)?;
        let (effects, touches) = match subject {
            Subject::Command(act) => (act.effects, act.touches),
            Subject::Call(call, touches) => (call.effects, touches),
            Subject::Line => return (self.path.is_empty() && self.host.is_empty()).then_some(covered),
        };
        let hosts = match self.decision {
            _ if self.host.is_empty() => true,
            Verdict::Allow => {
                !effects.hosts.is_empty() && effects.hosts.iter().all(|host| self.has_host(host))
            }
            Verdict::Ask | Verdict::Deny => effects.hosts.iter().any(|host| self.has_host(host)),
        };
        (hosts && self.covers_paths(effects, touches, setting)).then_some(covered)
    }

    /// Tells the same for any paths and hosts that are touched.
    fn matches_subject(&self, subject: Subject<'_>, setting: Setting<'_>) -> Option<usize> {
        let fits = (self.mode.is_empty() || self.mode.contains(&setting.mode))
            && (self.actor.is_empty() || self.actor.contains(&setting.actor))
            && (self.workspace.is_empty()
                || self.workspace.iter().any(|root| Path::new(root) == setting.root))
            && (self.folder.is_empty()
                || self.folder.iter().any(|folder| setting.folder == Some(folder.as_str())));
        if !fits {
            return None;
        }
        let of_tools = !self.tool.is_empty() || !self.kind.is_empty();
        let of_commands = self.is_of_commands();
        // A rule that allows a tool does not allow what a line does with a program.
        let narrow = of_tools && self.decision == Verdict::Allow;
        match subject {
            Subject::Command(act) => {
                let kind = self.kind.is_empty() || act.kinds.iter().any(|kind| self.kind.contains(kind));
                let own = |own: &OwnCommand| self.names(&own.tool, &own.also);
                // Argument patterns are about whole calls.
                let of_calls = !self.args_pattern.is_empty();
                if narrow || of_calls || !kind || !(self.names(names::SHELL, &[]) || act.own.is_some_and(own))
                {
                    return None;
                }
                if !self.command_regex.is_empty() {
                    return regexes::match_command(&self.command_regex, act, self.decision).then_some(0);
                }
                match (self.command.is_empty(), self.words.is_empty()) {
                    (true, true) => Some(0),
                    (false, true) => self.matching_prefix(act),
                    (true, false) => self.matching_whole(act),
                    (false, false) => self.matching_prefix(act).or_else(|| self.matching_whole(act)),
                }
            }
            Subject::Call(call, _) => {
                let kinds = crate::kinds::of_call(call);
                let kind = match self.decision {
                    _ if self.kind.is_empty() => true,
                    Verdict::Allow => self.kind.contains(&call.kind),
                    Verdict::Ask | Verdict::Deny => kinds.iter().any(|kind| self.kind.contains(kind)),
                };
                let arguments = self.args_pattern.is_empty()
                    || regexes::match_arguments(&self.args_pattern, call.arguments, self.decision);
                (!of_commands && kind && arguments && self.names(call.tool, call.also)).then_some(0)
            }
            Subject::Line => {
                let execute = self.kind.is_empty() || self.kind.contains(&ToolKind::Execute);
                let arguments = [serde_json::json!({ "command": setting.line })];
                let said = match (self.command_regex.is_empty(), self.args_pattern.is_empty()) {
                    (false, _) => regexes::match_line(&self.command_regex, setting.line, self.decision),
                    (true, false) => regexes::match_arguments(&self.args_pattern, &arguments, self.decision),
                    (true, true) => of_tools && !of_commands,
                };
                (said && !narrow && execute && self.names(names::SHELL, &[])).then_some(0)
            }
        }
    }

    /// Tells whether the rule names commands of a line.
    pub(crate) fn is_of_commands(&self) -> bool {
        !(self.command.is_empty() && self.words.is_empty() && self.command_regex.is_empty())
    }

    /// Tells whether the rule is about a tool. A rule that allows by a pattern is about canonical names only:
    /// `write*` was not meant for a tool that has such a name in some toolset.
    pub(crate) fn names(&self, tool: &str, also: &[String]) -> bool {
        let is = |pattern: &String, name: &str| tool_name_matches(pattern, name);
        let named = |pattern: &String| {
            if self.decision == Verdict::Allow && pattern.contains(['*', '?']) {
                return is(pattern, tool) || also.iter().any(|name| is(pattern, name));
            }
            is(pattern, tool)
                || tool_names(tool).any(|name| is(pattern, name))
                || also.iter().any(|name| is(pattern, name))
        };
        self.tool.is_empty() || self.tool.iter().any(named)
    }

    fn has_host(&self, host: &str) -> bool {
        self.host.iter().any(|pattern| glob(pattern, host))
    }

    /// Tells whether the rule covers the paths. To allow, everything touched must be named; to ask or deny, one is
    /// enough.
    fn covers_paths(&self, effects: &Effects, touches: &[Touch], setting: Setting<'_>) -> bool {
        if self.path.is_empty() {
            return true;
        }
        let wanted = setting.patterns.of(&self.path, self.decision, setting.gate);
        match self.decision {
            Verdict::Ask | Verdict::Deny => touches.iter().any(|touch| touch.meets(&wanted, setting.gate)),
            Verdict::Allow => {
                let spelled = effects.reads.iter().chain(&effects.writes);
                let sure = || touches.iter().filter(|touch| touch.sure);
                match setting.gate {
                    Some(gate) if sure().count() > 0 => {
                        sure().all(|touch| touch.is_covered_by(&wanted, gate))
                    }
                    Some(_) | None => {
                        spelled.clone().count() > 0 && spelled.clone().all(|path| wanted.names(path))
                    }
                }
            }
        }
    }

    /// Tells whether the user has allowed to read these places, all of which are names of one: by their path, or by
    /// exactly the words of the command.
    fn allows_reading(&self, subject: Subject<'_>, places: &[String], setting: Setting<'_>) -> bool {
        if self.decision != Verdict::Allow || self.matches_subject(subject, setting).is_none() {
            return false;
        }
        let exactly = matches!(subject, Subject::Command(act) if self.matching_whole(act).is_some());
        let wanted = || setting.patterns.of(&self.path, self.decision, setting.gate);
        exactly
            || (!self.path.is_empty()
                && !places.is_empty()
                && places.iter().all(|place| wanted().names(place)))
    }

    fn matching_whole(&self, act: GateCommand<'_>) -> Option<usize> {
        let given = &act.command.words;
        let may_be = |words: &Vec<String>| {
            let normal = names::plain_words(&normal_words(given));
            normal.len() <= words.len()
                && (names::begins_with(&normal, words)
                    || names::may_be_denied(words, &normal, act.assigned, act.asks))
        };
        let same = |words: &&Vec<String>| {
            let exact = words.len() == given.len()
                && words.iter().zip(given).all(|(word, given)| given.literal() == Some(word));
            exact || (self.decision != Verdict::Allow && (may_be(words) || act.possible.may_run(words)))
        };
        self.words.iter().find(same).map(Vec::len)
    }

    fn matching_prefix(&self, act: GateCommand<'_>) -> Option<usize> {
        let given = &act.command.words;
        let exact = |prefix: &Vec<String>| {
            prefix.len() <= given.len()
                && prefix.iter().zip(given).all(|(word, given)| given.literal() == Some(word))
        };
        if let Some(prefix) = self.command.iter().find(|prefix| exact(prefix)) {
            return Some(prefix.len());
        }
        // A denial or a question covers every spelling; an allowance covers only the words as they are written.
        if self.decision == Verdict::Allow {
            return None;
        }
        let normal = names::plain_words(&normal_words(given));
        let meant = |prefix: &&Vec<String>| {
            names::begins_with(&normal, prefix)
                || names::may_be_denied(prefix, &normal, act.assigned, act.asks)
                || act.possible.may_run(prefix)
        };
        self.command.iter().find(meant).map(Vec::len)
    }
}

/// The rules that hold, of all tiers.
#[derive(Debug, Clone)]
pub struct Rulebook {
    pub(crate) tiers: Vec<(Tier, RuleFile)>,
    /// Commands of the agent in the shell that the lines are for.
    own: BTreeMap<String, OwnCommand>,
    /// The names that added rules may give.
    names: KnownNames,
}

/// Names that bash keeps for itself, whatever is on PATH.
const BASH_OWN: [&str; 3] = ["read", "jobs", "done"];

/// The rules that come with Lathe; `docs/policy.md` shows them.
const BUILTIN: &str = include_str!("../rules/builtin.toml");

static BUILTIN_RULES: LazyLock<RuleFile> =
    LazyLock::new(|| file::parse("builtin", BUILTIN, &KnownNames::default()).unwrap_or_default());

impl Rulebook {
    /// Every word that a denial of a command names.
    pub(crate) fn denied_words(&self) -> BTreeSet<&str> {
        let rules = self.tiers.iter().flat_map(|(_, file)| &file.rules);
        let denials = rules.filter(|rule| rule.decision == Verdict::Deny);
        denials
            .flat_map(|rule| rule.command.iter().chain(&rule.words))
            .flatten()
            .map(String::as_str)
            .collect()
    }

    /// The programs that a denial of a command names.
    pub(crate) fn denied_programs(&self) -> BTreeSet<&str> {
        self.programs_of(Verdict::Deny).collect()
    }

    /// The names whose meaning rules depend on: of programs that they allow, and of commands of the agent.
    pub(crate) fn known_programs(&self) -> BTreeSet<&str> {
        self.programs_of(Verdict::Allow).chain(self.own.keys().map(String::as_str)).collect()
    }

    fn programs_of(&self, decision: Verdict) -> impl Iterator<Item = &str> {
        let rules = self.tiers.iter().flat_map(|(_, file)| &file.rules);
        let commands = rules
            .filter(move |rule| rule.decision == decision)
            .flat_map(|rule| rule.command.iter().chain(&rule.words));
        commands.filter_map(|words| words.first().map(String::as_str))
    }

    /// Makes a rulebook without rules: everything is asked about.
    pub fn empty() -> Self {
        Self { tiers: Vec::new(), own: BTreeMap::new(), names: KnownNames::default() }
    }

    pub fn builtin() -> Self {
        Self { tiers: vec![(Tier::Builtin, BUILTIN_RULES.clone())], ..Self::empty() }
    }

    /// Makes lines be for a shell in which these are commands of the agent. Such a command is decided when it runs,
    /// by its expanded words, so a line is not asked about because of it.
    pub fn with_own_commands(mut self, commands: impl IntoIterator<Item = impl Into<OwnCommand>>) -> Self {
        let commands = commands.into_iter().map(Into::into);
        let own = commands.filter(|own: &OwnCommand| !BASH_OWN.contains(&own.name.as_str()));
        self.own.extend(own.map(|own| (own.name.clone(), own)));
        self
    }

    /// Lets the rules that are added from now on give these names.
    pub fn with_names(mut self, names: KnownNames) -> Self {
        self.names = names;
        self
    }

    /// The command of the agent that bash would hand this command to.
    pub(crate) fn own_command(&self, command: &SimpleCommand) -> Option<&OwnCommand> {
        self.own.get(command.program()?)
    }

    /// Tells whether bash would hand this command to the agent.
    pub(crate) fn is_own_command(&self, command: &SimpleCommand) -> bool {
        self.own_command(command).is_some()
    }

    /// Tells whether a rule asks or denies by what a command is or runs.
    pub(crate) fn limits_commands(&self) -> bool {
        let limits = |rule: &&Rule| {
            rule.decision != Verdict::Allow && (rule.is_of_commands() || !rule.kind.is_empty())
        };
        self.tiers.iter().flat_map(|(_, file)| &file.rules).any(|rule| limits(&rule))
    }

    /// Tells whether any rule is about paths.
    pub(crate) fn has_paths(&self) -> bool {
        self.tiers.iter().flat_map(|(_, file)| &file.rules).any(|rule| !rule.path.is_empty())
    }

    /// Tells whether any rule that asks or denies names a path: then each file that a search finds has to be checked.
    pub fn limits_paths(&self) -> bool {
        let limits = |rule: &&Rule| rule.decision != Verdict::Allow && !rule.path.is_empty();
        self.tiers.iter().flat_map(|(_, file)| &file.rules).any(|rule| limits(&rule))
    }

    /// The path patterns of a rule, by the name that a decision gives it.
    pub fn paths_of(&self, name: &str) -> Vec<&str> {
        let rules = self.tiers.iter().flat_map(|(_, file)| &file.rules).filter(|rule| rule.name() == name);
        rules.flat_map(|rule| rule.path.iter().map(String::as_str)).collect()
    }

    /// Names in rules that belong to tools that come and go, each with its rule.
    pub fn passing_names(&self) -> Vec<(String, String)> {
        let rules = self.tiers.iter().flat_map(|(_, file)| &file.rules);
        let names = rules.flat_map(|rule| rule.tool.iter().map(|name| (name.clone(), rule.name())));
        names.filter(|(name, _)| names::is_passing_name(name, &self.names)).collect()
    }

    /// Tells whether a rule of the user's or the administrator's allows to read a place, all of whose names are
    /// given.
    pub(crate) fn allows_reading(
        &self,
        subject: Subject<'_>,
        places: &[String],
        setting: Setting<'_>,
    ) -> bool {
        let theirs = self.tiers.iter().filter(|(tier, _)| *tier >= Tier::User);
        theirs.flat_map(|(_, file)| &file.rules).any(|rule| rule.allows_reading(subject, places, setting))
    }

    /// The rules that come with Lathe, as they are written.
    pub fn builtin_text() -> &'static str {
        BUILTIN
    }

    /// Adds the rules of a file; `name` is for messages and decisions.
    pub fn with_file(mut self, tier: Tier, name: &str, text: &str) -> Result<Self, PolicyError> {
        let file = file::parse(name, text, &self.names)?;
        self.tiers.push((tier, file));
        // Weightiest first; files of one tier stay in their order.
        self.tiers.sort_by_key(|(tier, _)| std::cmp::Reverse(*tier));
        Ok(self)
    }

    /// The decision of the rules, and the parts that the allowing rule covers.
    pub(crate) fn decide(&self, subject: Subject<'_>, setting: Setting<'_>) -> (Option<Decision>, Covered) {
        let (mut deny, mut tighten): (Option<&Rule>, Option<&Rule>) = (None, None);
        let mut top: Option<(Tier, &Rule, usize)> = None;
        for (tier, file) in &self.tiers {
            for rule in &file.rules {
                let Some(covered) = rule.applies(subject, setting) else { continue };
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
            return (Some(by_rule(rule, subject, setting)), Covered::default());
        }
        let covered =
            top.map(|(_, rule, words)| Covered { words, redirects: rule.redirects }).unwrap_or_default();
        (top.map(|(_, rule, _)| by_rule(rule, subject, setting)), covered)
    }

    /// The decision where no rule applies: that of the weightiest file that has a default, and nothing weaker from a
    /// project.
    pub(crate) fn default_decision(&self) -> Decision {
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

/// The words that a rule would need to allow this command and nothing wider.
pub(crate) fn exact_words(command: &SimpleCommand) -> Option<Vec<String>> {
    command.words.iter().map(|word| Word::literal(word).map(str::to_owned)).collect()
}
