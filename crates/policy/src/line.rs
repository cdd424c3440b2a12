//! The decision about a shell line: about each command, then the strictest of these decisions, then the mode.

use lathe_bash::{Floor, FloorRule, Piece, RedirectKind, Script, SimpleCommand, Word};
use lathe_protocol::{Actor, Decision, Effects, Mode, ToolKind, Verdict};

use crate::agent_commands::AgentCommandRequest;
use crate::eased::eased;
use crate::folders;
use crate::gate::{Gate, decision, join};
use crate::git::{self, Extent};
use crate::git_asks::git_asks;
use crate::git_config;
use crate::git_writes;
use crate::guard;
use crate::guarded_writes::{self, Writer};
use crate::handed_names::HandedNames;
use crate::line_decision::{ApprovableCommand, CommandDecision, LineDecision};
use crate::listed_once::each_once;
use crate::own_binary;
use crate::patterns::{PathPatterns, PatternCache};
use crate::places::{Spent, Values};
use crate::possible_commands::PossibleCommands;
use crate::program_names::ProgramNames;
use crate::reach::TouchFinder;
use crate::reading::{Depth, Region, reading};
use crate::rules::{GateCall, GateCommand, Rulebook, Setting, Subject, exact_words};
use crate::touch::{Touch, TouchTarget};
use crate::walls::{WalledCommand, always_asks};

impl Rulebook {
    /// The decision of guard, floors and rules about a line, before the mode counts.
    fn decide_by_rules(&self, gate: Option<&Gate>, setting: Setting<'_>, line: &str) -> LineDecision {
        let text = match gate.is_some_and(|gate| gate.is_walled(setting.actor, setting.mode)) {
            true => crate::walls::with_quoted_dash(line),
            false => line.into(),
        };
        let names = ProgramNames::new(gate, self, &text);
        let script = names.read();
        let switched = gate.and_then(|gate| gate.switched_by(line, &script));
        let gate = switched.as_ref().or(gate);
        let spent = Spent::default();
        let values = Values { assigned: &script.values, may_be_empty: false, line: None, spent: &spent };
        let from = guard::folders(gate, line, &script, &values);
        let known = folders::certain_folder(gate.and_then(|gate| gate.here.as_deref()), &script);
        let walled = gate.filter(|gate| gate.is_walled(setting.actor, setting.mode));
        let setting =
            Setting { folder: known.as_deref(), line, gate, is_walled: walled.is_some(), ..setting };
        // A person is limited by the guard only.
        let looks = |gate: &&Gate| gate.here.is_some() || self.has_paths() || self.limits_commands();
        let reaching = gate.filter(|gate| setting.actor != Actor::Person && looks(gate));
        let mut strictest: Option<Decision> = None;
        let (mut each, mut effects, mut narrow) = (Vec::new(), Effects::default(), Some(Vec::new()));
        // A denial of the guard goes before any other denial: it holds for people too.
        let weight = |decision: &Decision| (decision.verdict, is_guard(decision));
        let mut take = |decision: &Decision| {
            if strictest.as_ref().is_none_or(|strictest| weight(decision) > weight(strictest)) {
                strictest = Some(decision.clone());
            }
        };
        if let Some(denied) = guard::script_denial(&script) {
            take(&denied);
        }
        if let Some(denied) =
            crate::later_lines::denied(&script, self, gate).filter(|_| setting.actor != Actor::Person)
        {
            take(&denied);
        }
        let (limits, nothing) = (self.limits_commands(), PossibleCommands::default());
        let lathe = setting.actor != Actor::Person;
        let mut behind = if limits || (lathe && own_binary::is_named(line)) {
            PossibleCommands::of_script(&script, &values)
        } else {
            Vec::new()
        };
        names.add_other_names(&script, &values, &mut behind);
        let fed =
            reaching.map_or_else(HandedNames::default, |gate| HandedNames::of(self, gate, &script, &from));
        let exact = reaching.and_then(|gate| match walled {
            Some(_) => folders::likely_folders(gate, line, &script),
            None => folders::certain_folders(gate, line, &script),
        });
        let exact = exact.as_deref();
        let reached = reaching
            .map_or_else(Vec::new, |gate| self.touched_places((gate, line), &script, &from, exact, &fed));
        let said = guarded_writes::DenialCache::default();
        for (index, command) in script.commands.iter().enumerate() {
            let own;
            let mut done = command.effects();
            let touches = reached.get(index).map_or(&[][..], Vec::as_slice);
            let eased =
                reaching.and_then(|gate| eased(self, gate, (&script, index), &fed, touches, &mut done));
            let command = if self.is_own_command(command) {
                own = as_agent_command(command, &mut done);
                &own
            } else {
                eased.as_ref().map_or(command, |eased| &eased.command)
            };
            let denied = guard::command_denial(gate, command, &values, from.of(index));
            let denied = denied.or_else(|| {
                let (from, everywhere) = (from.of(index), from.all.as_slice());
                let (effects, values, said) = (&done, &values, &said);
                let gate = reaching.filter(|_| !self.is_own_command(command))?;
                guarded_writes::denied(&Writer {
                    line,
                    script: &script,
                    index,
                    command,
                    effects,
                    touches,
                    from,
                    everywhere,
                    denials: said,
                    gate,
                    values,
                })
            });
            let behind = behind.get(index).unwrap_or(&nothing);
            let guesses = !gate.is_some_and(Gate::has_walls);
            let denied = denied
                .or_else(|| own_binary::denied(&script, command, &values, behind, guesses).filter(|_| lathe));
            // Behind walls it is asked about, as every change of git's configuration.
            let denied = denied.filter(|denied| walled.is_none() || !git_config::is_guess(denied));
            let behind = if limits { behind } else { &nothing };
            let own = self.own_command(command);
            let kinds = match own {
                _ if !limits => Vec::new(),
                Some(_) => crate::kinds::of_own(&done, touches),
                None => crate::kinds::of_command(command, &done, touches, &values, behind),
            };
            let assigned = &script.values;
            let asks = setting.mode != Mode::FullAuto;
            let act = GateCommand {
                command,
                effects: &done,
                touches,
                own,
                kinds: &kinds,
                possible: behind,
                assigned,
                asks,
            };
            let decision =
                denied.or_else(|| self.denied_as_spelled(act, &values, setting)).unwrap_or_else(|| {
                    self.command_decision(act, setting, eased.as_ref().map(|eased| &eased.decision))
                });
            let decision = match walled {
                Some(gate) => {
                    let there = exact.and_then(|all| all.get(index)).map(std::slice::from_ref);
                    let from = there.unwrap_or_else(|| from.of(index));
                    let (script, values, is_own) = (&script, &values, own.is_some());
                    let walled = WalledCommand { gate, line, script, command, from, values, is_own };
                    self.behind_walls(decision, act, setting, &walled)
                }
                None => decision,
            };
            let outside = self.reading_decision(Subject::Command(act), touches, setting);
            let decision = outside.filter(|outside| outside.verdict > decision.verdict).unwrap_or(decision);
            // A text that the line may evaluate counts for denials only, and a single unknown word in it does not
            // count at all.
            let is_unknown = command.program().is_none_or(|name| !name.contains(char::is_alphanumeric));
            let lone = command.words.len() == 1 && is_unknown && !is_guard(&decision);
            let held = !guesses && crate::walls::is_held(&decision);
            if command.evaluated && (lone || held || decision.verdict != Verdict::Deny) {
                continue;
            }
            let (decision, git) =
                match gate.and_then(|gate| git_asks(gate, command, from.of(index), setting, &decision)) {
                    Some(asks) => (asks, true),
                    None => (decision, false),
                };
            if git {
                narrow = None;
            }
            take(&decision);
            if decision.verdict == Verdict::Ask && command.wrapper.is_some() && walled.is_some() {
                narrow = None;
            }
            if decision.verdict == Verdict::Ask && command.wrapper.is_none() {
                let coverable = command.floors.iter().all(|floor| floor.rule == FloorRule::Option);
                let words = exact_words(command).filter(|words| coverable && !words.is_empty());
                let folder =
                    if folders::depends_on_folder(&done) { known.clone().map(Some) } else { Some(None) };
                match words.zip(folder) {
                    Some((words, folder)) => {
                        let narrowest = ApprovableCommand { words, folder };
                        narrow.iter_mut().for_each(|all: &mut Vec<_>| all.push(narrowest.clone()));
                    }
                    None => narrow = None,
                }
            }
            join(&mut effects, &done);
            let behind = command.wrapper.filter(|_| !command.evaluated);
            let asked = own.and_then(|_| AgentCommandRequest::of(gate, command, from.of(index)));
            each.push(CommandDecision {
                words: shown(command),
                decision,
                effects: done,
                wrapper: behind,
                agent_command: asked,
            });
        }
        if let Some(denied) =
            reaching.and_then(|gate| self.tested_files_decision(gate, line, &script, &from, setting))
        {
            take(&denied);
        }
        // A denial of the shell also holds for a line in which no command was found.
        if let (Some(said), _) = self.decide(Subject::Line, setting) {
            take(&said);
        }
        for floor in script.floors.iter().filter(|floor| walled.is_none() || always_asks(floor)) {
            take(&by_floor(floor));
            effects.opaque = true;
            narrow = None;
        }
        LineDecision {
            decision: strictest
                .unwrap_or_else(|| decision(Verdict::Allow, "builtin.nothing", "nothing runs")),
            commands: each_once(&script, each),
            effects,
            approvable: narrow.unwrap_or_default(),
        }
    }

    /// The places that each command of a line touches.
    fn touched_places(
        &self,
        (gate, line): (&Gate, &str),
        script: &Script,
        from: &guard::Folders,
        exact: Option<&[String]>,
        fed: &HandedNames,
    ) -> Vec<Vec<Touch>> {
        let spent = Spent::default();
        let touches = |(index, command): (usize, &SimpleCommand)| {
            let wrapper = command.wrapper.and_then(|behind| script.commands.get(behind)?.program_name());
            let mark = command.wrapper.and_then(|behind| fed.name_sign(behind));
            let values = fed.values.as_ref().unwrap_or(&script.values);
            let exact = exact.and_then(|all| all.get(index));
            let from = exact.map_or_else(|| from.of(index), std::slice::from_ref);
            let reacher = TouchFinder { gate, line, values, spent: &spent, from, wrapper, fed, mark };
            if self.is_own_command(command) { reacher.redirects(command) } else { reacher.touches(command) }
        };
        let mut all: Vec<Vec<Touch>> = script.commands.iter().enumerate().map(touches).collect();
        let taken = |touch: &Touch| touch.extent == Extent::Taken;
        if all.iter().flatten().any(taken) && self.changes_ignores(gate, script, &all) {
            let touches = all.iter_mut().flatten().filter(|touch| taken(touch));
            touches.for_each(|touch| touch.extent = Extent::Every);
        }
        all
    }

    /// The decision about files that bash's own tests look for, and patterns whose names a variable gets: `[[ -e x
    /// ]]`, `x=(a/*)`.
    fn tested_files_decision(
        &self,
        gate: &Gate,
        line: &str,
        script: &Script,
        from: &guard::Folders,
        setting: Setting<'_>,
    ) -> Option<Decision> {
        let spent = Spent::default();
        let (values, from) = (&script.values, from.all.as_slice());
        let fed = &HandedNames::default();
        let reacher = TouchFinder { gate, line, values, spent: &spent, from, wrapper: None, fed, mark: None };
        let words = script.tested.iter().flat_map(|word| reacher.spell(word));
        let is_glob = |word: &&Word| word.pieces.iter().any(|piece| matches!(piece, Piece::Glob(_)));
        let given: Vec<&Word> = values.values().flatten().filter(is_glob).collect();
        let listed = given.iter().flat_map(|word| reacher.listed_folders("for", word));
        let given = given.iter().flat_map(|word| reacher.spell(word));
        let tested = words.filter_map(|word| reacher.tested_home("[[", &word));
        let given = given.filter_map(|word| reacher.tested_home("for", &word));
        let touches: Vec<Touch> = tested.chain(given).chain(listed).collect();
        self.reading_decision(Subject::Line, &touches, setting)
    }

    /// Tells whether a line may change git's ignore files before git adds files by them.
    fn changes_ignores(&self, gate: &Gate, script: &Script, touches: &[Vec<Touch>]) -> bool {
        let files = [".gitignore".to_owned(), "**/.git/info/exclude".to_owned()];
        let files = PathPatterns::of(&files, Verdict::Deny, Some(gate));
        let last = touches.iter().rposition(|all| all.iter().any(|touch| touch.extent == Extent::Taken));
        script.commands.iter().zip(touches).take(last.unwrap_or(0)).any(|(command, touches)| {
            let words: Vec<String> = command.words.iter().skip(1).map(Word::show).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let own = self
                .own_command(command)
                .is_some_and(|own| !matches!(own.kind, ToolKind::Read | ToolKind::Search));
            match command.program_name().and_then(|name| git::git_words(name, &words)) {
                Some(words) => git_writes::changes_ignore_files(&words),
                None => {
                    let meets = || touches.iter().any(|touch| touch.meets(&files, Some(gate)));
                    own || (command.effects().change_something() && meets())
                }
            }
        })
    }

    fn command_decision(
        &self,
        act: GateCommand<'_>,
        setting: Setting<'_>,
        eased: Option<&Decision>,
    ) -> Decision {
        let command = act.command;
        let (said, covered) = self.decide(Subject::Command(act), setting);
        if let Some(denied) = said.clone().filter(|said| said.verdict == Verdict::Deny) {
            return denied;
        }
        // A rule whose own words name an option has decided about that option.
        let redirects = covered.redirects && stays_inside(act, setting);
        let covers = |floor: &&Floor| match floor.rule {
            FloorRule::Option => floor.word.is_some_and(|word| word < covered.words),
            FloorRule::Redirection => redirects,
            _ => false,
        };
        if let Some(floor) = command.floors.iter().find(|floor| !covers(floor)) {
            return by_floor(floor);
        }
        if command.words.is_empty() {
            return decision(Verdict::Allow, "builtin.nothing", "nothing runs");
        }
        if self.is_own_command(command) {
            let reason = "it is a command of the agent, decided when it runs";
            return said.unwrap_or_else(|| decision(Verdict::Allow, "builtin.agent", reason));
        }
        said.unwrap_or_else(|| eased.cloned().unwrap_or_else(|| self.default_decision()))
    }

    /// The decision about reading outside the workspace, where no rule of the user's comes first.
    fn reading_decision(
        &self,
        subject: Subject<'_>,
        touches: &[Touch],
        setting: Setting<'_>,
    ) -> Option<Decision> {
        let gate = setting.gate.filter(|gate| gate.here.is_some())?;
        let mut strictest: Option<Decision> = None;
        for touch in touches {
            for (region, places) in touch.regions(gate) {
                let Some(region) = crate::walls::region(gate, setting, touch, region, &places) else {
                    continue;
                };
                // A word that only may be a path counts where it would be a key.
                let counts = match region {
                    Region::Inside | Region::Public => false,
                    Region::Elsewhere => touch.sure && touch.reads,
                    Region::Keys | Region::LatheHome => true,
                };
                let holds = !places.iter().any(|place| std::path::Path::new(place).starts_with(&gate.home));
                let Some(mut read) =
                    reading((region, holds), setting.actor, setting.mode, &touch.shown).filter(|_| counts)
                else {
                    continue;
                };
                if touch.target == TouchTarget::Unknown {
                    read.reason = read
                        .reason
                        .replace(" is outside", " shows only when the line runs, and may be outside");
                }
                let lifted = region != Region::LatheHome && self.allows_reading(subject, &places, setting);
                if !lifted && strictest.as_ref().is_none_or(|strictest| read.verdict > strictest.verdict) {
                    strictest = Some(read);
                }
            }
        }
        strictest
    }
}

impl Gate {
    /// Decides about a shell line.
    pub fn decide_line(&self, rules: &Rulebook, actor: Actor, mode: Mode, line: &str) -> LineDecision {
        let mut decided = rules.decide_by_rules(
            Some(self),
            Setting {
                actor,
                mode,
                root: &self.root,
                folder: None,
                line,
                gate: None,
                patterns: &PatternCache::default(),
                is_walled: false,
            },
            line,
        );
        if is_guard(&decided.decision) {
            return decided;
        }
        decided.decision = match actor {
            Actor::Person => decision(Verdict::Allow, "person", "asked for by a person"),
            Actor::Model | Actor::Project => {
                let said = decided.decision.clone();
                let last = self.by_rules_and_mode(mode, &decided.effects, said.clone());
                Decision { reason: format!("{}{}", decided.culprit(&said, &last), last.reason), ..last }
            }
        };
        // No user has approved the line, so it grants nothing to the commands of the agent in it.
        if self.is_walled(actor, mode) && decided.decision.verdict == Verdict::Allow {
            decided.effects.opaque = false;
        }
        decided
    }

    /// Decides about a tool call that is not a shell line, by its effects and the rules about it.
    pub fn decide_call(&self, rules: &Rulebook, actor: Actor, mode: Mode, call: &GateCall<'_>) -> Decision {
        let plain = self.decide(actor, mode, call.effects);
        if actor == Actor::Person || is_guard(&plain) {
            return plain;
        }
        let wishes = PatternCache::default();
        let setting = Setting {
            actor,
            mode,
            root: &self.root,
            folder: None,
            line: "",
            gate: Some(self),
            patterns: &wishes,
            is_walled: false,
        };
        let written = call.effects.writes.iter().map(|path| Touch::of_path(self, path, Depth::One));
        let written = written.map(|touch| Touch { reads: false, ..touch });
        let read: Vec<Touch> = call.effects.reads.iter().map(|path| self.read_by(call, path)).collect();
        let touches: Vec<Touch> = read.iter().cloned().chain(written).collect();
        let said = rules.decide(Subject::Call(call, &touches), setting).0;
        let decided = match said {
            Some(said)
                if said.verdict == Verdict::Deny || self.memory_decision(mode, call.effects).is_none() =>
            {
                self.by_rules_and_mode(mode, call.effects, said)
            }
            Some(_) | None => plain,
        };
        match rules.reading_decision(Subject::Call(call, &touches), &read, setting) {
            Some(outside) if outside.verdict > decided.verdict => {
                self.by_rules_and_mode(mode, call.effects, outside)
            }
            Some(_) | None => decided,
        }
    }

    /// A path that a tool reads. Tools that go through the workspace leave out files that they may not read;
    /// elsewhere a folder is read with all that is in it.
    fn read_by(&self, call: &GateCall<'_>, path: &str) -> Touch {
        let inside = crate::gate::normal(std::path::Path::new(path)).starts_with(&self.root);
        let deep = match call.tool {
            "search" | "glob" | "many" | "code" | "ckg" => !inside,
            _ => false,
        };
        Touch::of_path(self, path, if deep { Depth::All } else { Depth::One })
    }

    /// The final decision, made of the decision of the rules and the mode.
    fn by_rules_and_mode(&self, mode: Mode, effects: &Effects, said: Decision) -> Decision {
        match (mode, said.verdict) {
            (_, Verdict::Deny) => said,
            (Mode::Plan, _) if effects.change_something() => {
                decision(Verdict::Deny, "mode.plan", "mode plan changes nothing")
            }
            (_, Verdict::Allow) => said,
            (Mode::FullAuto, Verdict::Ask) => {
                decision(Verdict::Allow, "mode.full-auto", "mode full-auto asks nothing")
            }
            (Mode::Plan | Mode::Default | Mode::AutoEdit, Verdict::Ask) if self.headless => Decision {
                verdict: Verdict::Deny,
                rule: "headless".to_owned(),
                reason: format!(
                    "{} ({}), and nobody can be asked; {} would allow it",
                    said.reason,
                    said.rule,
                    {
                        // Keys are denied there too.
                        if said.rule == "reading.keys" {
                            "a rule of yours with this `path`"
                        } else {
                            "`--mode full-auto`"
                        }
                    }
                ),
            },
            (Mode::Plan | Mode::Default | Mode::AutoEdit, Verdict::Ask) => said,
        }
    }
}

/// Tells whether a redirected command writes files of the workspace only, and reaches no host.
fn stays_inside(act: GateCommand<'_>, setting: Setting<'_>) -> bool {
    let judged_here = setting.gate.is_some_and(|gate| gate.here.is_some());
    let base = match setting.folder {
        Some(folder) => std::path::PathBuf::from(folder),
        None if judged_here => return false,
        None => setting.root.to_owned(),
    };
    let disk = setting.gate.and_then(|gate| gate.disk.get());
    let inside = |path: &String| {
        let path = base.join(path);
        let real = disk.map(|disk| disk.real(&path));
        let mut ways = std::iter::once(crate::gate::normal(&path)).chain(real);
        ways.all(|path| path.starts_with(setting.root))
    };
    let is_file = |kind: RedirectKind| matches!(kind, RedirectKind::Read | RedirectKind::Write);
    let literal = act.command.redirects.iter().all(|to| !is_file(to.kind) || to.word.literal().is_some());
    literal && act.effects.hosts.is_empty() && act.effects.writes.iter().all(inside)
}

pub(crate) fn is_guard(decision: &Decision) -> bool {
    decision.verdict == Verdict::Deny && decision.rule.starts_with("guard.")
}

/// A command of the agent as the gate of the line sees it: its expanded words are judged when it runs, bash's own
/// acts around it are judged here.
fn as_agent_command(command: &SimpleCommand, effects: &mut Effects) -> SimpleCommand {
    let mut command = command.clone();
    let name = command.program().map(str::to_owned);
    effects.programs.retain(|program| Some(program) != name.as_ref());
    let about_words =
        |rule: FloorRule| matches!(rule, FloorRule::Option | FloorRule::Dynamic | FloorRule::Glob);
    command.floors.retain(|floor| !about_words(floor.rule));
    command
}

fn by_floor(floor: &Floor) -> Decision {
    decision(Verdict::Ask, floor.rule.as_str(), &floor.why)
}

/// The assignments and the words of a command, as people read them.
fn shown(command: &SimpleCommand) -> Vec<String> {
    let mut words: Vec<String> = command
        .assignments
        .iter()
        .map(|assignment| {
            let value = assignment.value.as_ref().map_or_else(|| "(…)".to_owned(), Word::show);
            format!("{}={value}", assignment.name)
        })
        .collect();
    words.extend(guard::shown_words(&command.words));
    words
}
