//! The question about a command behind walls: what it surely does that the walls do not hold.

use lathe_bash::{Floor, FloorRule, Piece, RedirectKind, Script, SimpleCommand, Word};
use lathe_protocol::{Decision, Verdict};

use crate::gate::{Gate, decision};
use crate::git;
use crate::guard::Spelled;
use crate::harm::option_values;
use crate::kinds::module_of;
use crate::places::{UNKNOWN, Values};
use crate::possible_commands::base;
use crate::rules::{GateCommand, Rulebook, Setting, Subject};
use crate::walls::git::act;
use crate::walls::network::{self, ProgramReach};
use crate::walls::{GIT, LEAVES, NETWORK, OUTSIDE, WALLS, packages, texts, writes};

/// A command of a line behind walls, with the facts about it.
pub(crate) struct WalledCommand<'a> {
    pub(crate) gate: &'a Gate,
    pub(crate) line: &'a str,
    pub(crate) script: &'a Script,
    pub(crate) command: &'a SimpleCommand,
    /// The folders that it may run in.
    pub(crate) from: &'a [String],
    pub(crate) values: &'a Values<'a>,
    /// True if it is a command of the agent, which is decided when it runs.
    pub(crate) is_own: bool,
}

/// The most commands that the words of one may make and that are judged one by one.
const MOST: usize = 256;

/// The most programs that start each other and are followed.
const DEEPEST: usize = 4;

/// Builtins that set variables by their words.
const SETS: [&str; 7] = ["export", "declare", "typeset", "readonly", "local", "env", "sudo"];

/// Variables of git with values that change nothing but the way it shows something.
const PLAIN_SETTINGS: [&str; 9] = [
    "GIT_PAGER=cat",
    "GIT_PAGER=",
    "GIT_EDITOR=true",
    "GIT_EDITOR=:",
    "GIT_EDITOR=cat",
    "GIT_TERMINAL_PROMPT=0",
    "GIT_OPTIONAL_LOCKS=0",
    "GIT_MERGE_AUTOEDIT=no",
    "GIT_ADVICE=0",
];

impl Rulebook {
    /// The decision about a command that would be asked about without walls.
    pub(crate) fn behind_walls(
        &self,
        without_walls: Decision,
        act: GateCommand<'_>,
        setting: Setting<'_>,
        walled: &WalledCommand<'_>,
    ) -> Decision {
        if without_walls.verdict != Verdict::Ask {
            return without_walls;
        }
        // A question of a rule stays one, and so does that of a rule file that denies what no rule decides.
        match self.decide(Subject::Command(act), setting).0 {
            Some(said) if said.verdict != Verdict::Allow => return said,
            None if self.default_decision().verdict == Verdict::Deny => return without_walls,
            Some(_) | None => {}
        }
        if let Some(floor) = act.command.floors.iter().find(|floor| always_asks(floor)) {
            return decision(Verdict::Ask, floor.rule.as_str(), &floor.why);
        }
        let inside = |walled: &WalledCommand<'_>| match walled.is_own {
            true => decision(
                Verdict::Allow,
                "builtin.agent",
                "it is a command of the agent, decided when it runs",
            ),
            false => decision(Verdict::Allow, WALLS, "it stays inside the walls"),
        };
        // What the text is broken around may never run, and the broken text is asked about (R2).
        let asked = if act.command.broken { None } else { walled.question() };
        asked.unwrap_or_else(|| inside(walled))
    }
}

/// Tells whether a floor asks behind walls too: what cannot be read, and what people cannot see.
pub(crate) fn always_asks(floor: &Floor) -> bool {
    match floor.rule {
        FloorRule::Syntax | FloorRule::Character => true,
        FloorRule::Program
        | FloorRule::Redirection
        | FloorRule::State
        | FloorRule::Wrapper
        | FloorRule::Option
        | FloorRule::Dynamic
        | FloorRule::Glob => false,
    }
}

fn ask(rule: &str, why: &str) -> Option<Decision> {
    Some(decision(Verdict::Ask, rule, why))
}

fn ask_outside(name: &str) -> Option<Decision> {
    ask(OUTSIDE, &format!("{} is outside the workspace", lathe_protocol::visible(name)))
}

fn is_given(piece: &Piece) -> bool {
    match piece {
        Piece::Variable { name, .. } | Piece::Operator { name, .. } => matches!(&**name, "@" | "*"),
        Piece::Text(_)
        | Piece::Substitution(_)
        | Piece::Process(_)
        | Piece::Arithmetic { .. }
        | Piece::Glob(_)
        | Piece::Brace { .. }
        | Piece::Tilde(_) => false,
    }
}

impl WalledCommand<'_> {
    /// The question about what the command surely does that the walls do not hold.
    fn question(&self) -> Option<Decision> {
        self.by_redirects().or_else(|| self.by_variables()).or_else(|| {
            let ways = if self.is_own { Vec::new() } else { self.ways() };
            ways.iter().find_map(|way| {
                let words: Vec<&str> = way.iter().map(String::as_str).collect();
                let (program, words) = words.split_first()?;
                self.by_words(program, words, 0)
            })
        })
    }

    fn by_redirects(&self) -> Option<Decision> {
        let opens = |kind: RedirectKind| matches!(kind, RedirectKind::Read | RedirectKind::Write);
        let opened = self.command.redirects.iter().filter(|redirect| opens(redirect.kind));
        let connects = |name: &String| {
            let place = name.strip_prefix("/dev/").unwrap_or_default();
            ["tcp", "udp"].iter().any(|begin| place.starts_with(begin)) || place.starts_with(UNKNOWN)
        };
        let is_pipe = |word: &Word| matches!(word.pieces.first(), Some(Piece::Process(_)));
        let mut named = opened.filter(|redirect| !is_pipe(&redirect.word));
        if named.any(|redirect| self.values.spellings(&redirect.word).iter().any(connects)) {
            return ask(NETWORK, "it opens a connection to another machine");
        }
        writes::redirected(self.gate, self.from, self.command, self.values)
            .and_then(|name| ask_outside(&name))
    }

    /// The question about variables by which git works with another configuration.
    fn by_variables(&self) -> Option<Decision> {
        let set = self.command.assignments.iter().map(|assignment| {
            let value = assignment.value.as_ref().map_or_else(|| "…".to_owned(), Word::show);
            format!("{}={value}", assignment.name)
        });
        let sets = self.command.program_name().is_some_and(|name| SETS.contains(&name));
        let given = self.command.words.iter().skip(1).filter(|_| sets).map(Word::show);
        let is_set = |set: &String| {
            set.starts_with("GIT_") && set.contains('=') && !PLAIN_SETTINGS.contains(&set.as_str())
        };
        let found = set.chain(given).find(is_set)?;
        let name = found.split('=').next().unwrap_or_default();
        ask(GIT, &format!("{name} makes git work with another configuration or repository"))
    }

    /// The words that the command may have when it runs, each way by itself.
    fn ways(&self) -> Vec<Vec<String>> {
        let values = Values { may_be_empty: false, line: Some(self.line), ..*self.values };
        let mut all: Vec<Vec<String>> = vec![Vec::new()];
        for (at, word) in self.command.words.iter().enumerate() {
            let mut ways = match word.literal() {
                Some(text) => vec![vec![text.to_owned()]],
                None => values.ways(word),
            };
            // `c${x}url`: a variable in the name of a program may be empty.
            if at == 0 && word.literal().is_none() {
                ways.extend(Values { may_be_empty: true, ..values }.ways(word));
            }
            // What a function is given shows only where it is called.
            if word.pieces.iter().any(is_given) {
                ways.push(vec![UNKNOWN.to_string()]);
            }
            ways.sort();
            ways.dedup();
            if all.len() * ways.len() > MOST {
                ways = vec![vec![UNKNOWN.to_string()]];
            }
            all = all
                .iter()
                .flat_map(|words| ways.iter().map(move |way| [words.as_slice(), way].concat()))
                .collect();
        }
        all.retain(|words| !words.is_empty());
        all
    }

    /// Tells whether more words come to the command than the line shows.
    fn is_fed(&self) -> bool {
        let Some(wrapper) = self.command.wrapper.and_then(|index| self.script.commands.get(index)) else {
            return false;
        };
        match wrapper.program_name() {
            // The words of a later line follow.
            Some("alias") => return true,
            Some("xargs" | "parallel") => {}
            Some(_) | None => return false,
        }
        let given: Vec<String> = wrapper.words.iter().map(Word::show).collect();
        let given: Vec<&str> = given.iter().map(String::as_str).collect();
        let told = |other: &SimpleCommand| {
            other.wrapper == self.command.wrapper
                && other.words.len() > self.command.words.len()
                && other.words.starts_with(&self.command.words)
        };
        option_values(&given, &["-I", "--replace"]).is_empty() && !self.script.commands.iter().any(told)
    }

    fn by_words(&self, program: &str, words: &[&str], depth: usize) -> Option<Decision> {
        let name = base(program);
        if depth > DEEPEST || name.is_empty() || name.contains(UNKNOWN) {
            return None;
        }
        if name.contains(['*', '?', '[']) {
            return network::meant_programs(name)
                .iter()
                .find_map(|name| self.by_words(name, words, depth + 1));
        }
        if let Some(words) = git::git_words(name, words) {
            return self.by_git(&words);
        }
        let name = network::known_name(name);
        let words = network::without_globals(name, words);
        let words = words.as_slice();
        match network::reach(self.gate, self.from, name, words) {
            ProgramReach::Leaves => {
                let why = format!("{name} leaves the walls, or a service outside of them acts for it");
                return ask(LEAVES, &why);
            }
            ProgramReach::Network => return ask(NETWORK, "it reaches other machines"),
            ProgramReach::Inside => {}
        }
        if network::is_given_address(name, words) {
            return ask(NETWORK, "it is given an address on another machine");
        }
        if let Some((rule, why)) = self.by_texts(name, words) {
            return ask(rule, why);
        }
        let module = module_of(name, words);
        if module.is_some_and(|(module, _)| network::MODULES.contains(&module)) {
            return ask(NETWORK, "it reaches other machines");
        }
        let started = packages::started(name, words)
            .and_then(<[&str]>::split_first)
            .map(|(first, rest)| (*first, rest));
        if let Some(asked) =
            module.or(started).and_then(|(first, rest)| self.by_words(first, rest, depth + 1))
        {
            return Some(asked);
        }
        let program = Spelled { name, words: words.to_vec() };
        writes::named(self.gate, self.from, &program, self.values).and_then(|name| ask_outside(&name))
    }

    /// The rule and the reason to ask about the texts that a program of another language is given in its words or as its input.
    fn by_texts(&self, name: &str, words: &[&str]) -> Option<(&'static str, &'static str)> {
        if !texts::takes_texts(name) {
            return None;
        }
        let input = self.command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Text);
        let input = input.flat_map(|redirect| self.values.spellings(&redirect.word));
        // A text of a program has more than one word.
        let given = words.iter().filter(|word| word.contains(['(', ' ', '`'])).map(|word| (*word).to_owned());
        given.chain(input).find_map(|text| texts::question(self.gate, self.from, &text))
    }

    fn by_git(&self, words: &[&str]) -> Option<Decision> {
        let is_file = |word: &str| {
            let places = self.gate.absolute_paths(word, self.from);
            let is_there = |place: &String| {
                self.gate.disk.get().is_some_and(|disk| disk.exists(std::path::Path::new(place)))
            };
            !places.is_empty() && places.iter().any(is_there)
        };
        if let Some(found) = act(words, self.is_fed(), &is_file) {
            return ask(found.rule(), found.reason());
        }
        let program = Spelled { name: "git", words: words.to_vec() };
        writes::named(self.gate, self.from, &program, self.values).and_then(|name| ask_outside(&name))
    }
}
