//! Denials that a variable or a pattern in the words of a command cannot evade: `x=push; git $x`, `/usr/bin/g?t push`.

use lathe_bash::{SimpleCommand, Word};
use lathe_protocol::{Decision, Verdict};

use crate::patterns::glob;
use crate::places::Values;
use crate::possible_commands::base;
use crate::rules::{GateCommand, Rulebook, Setting, Subject};
use crate::sets::simplified;

/// The most commands that the words of one may make and that are tried one by one.
const COMBINED: usize = 4096;

impl Rulebook {
    /// The denial that a variable of the same line cannot evade: `x=push; git $x`.
    pub(crate) fn denied_as_spelled(
        &self,
        act: GateCommand<'_>,
        values: &Values<'_>,
        setting: Setting<'_>,
    ) -> Option<Decision> {
        let command = act.command;
        if command.words.iter().all(|word| word.literal().is_some()) {
            return None;
        }
        let values = Values { may_be_empty: true, ..*values };
        let said = |words: Vec<String>| {
            let words: Vec<Word> =
                words.into_iter().filter(|word| !word.is_empty()).map(Word::text).collect();
            let spelled = SimpleCommand { words, ..SimpleCommand::default() };
            let act = GateCommand { command: &spelled, effects: &spelled.effects(), ..act };
            let (said, _) = self.decide(Subject::Command(act), setting);
            said.filter(|said| said.verdict == Verdict::Deny)
        };
        let mut ways: Vec<Vec<Vec<String>>> = command.words.iter().map(|word| values.ways(word)).collect();
        // `/usr/bin/g?t` may be any program whose name fits.
        if let Some(first) = ways.first_mut() {
            let meant: Vec<Vec<String>> = first.iter().flat_map(|way| self.meant_programs(way)).collect();
            first.extend(meant);
        }
        let all = ways.iter().flatten().flatten().cloned().collect();
        said(all).or_else(|| self.combined(&ways).into_iter().find_map(said))
    }

    /// A program that is a pattern, by each name of a denied program that matches it, with the words that come with
    /// it.
    fn meant_programs(&self, way: &[String]) -> Vec<Vec<String>> {
        let Some((program, rest)) =
            way.split_first().filter(|(program, _)| program.contains(['*', '?', '[']))
        else {
            return Vec::new();
        };
        let pattern = simplified(base(program));
        let fits = |name: &&str| glob(&pattern, name);
        let denied = self.denied_programs();
        denied.into_iter().filter(fits).map(|name| [&[name.to_owned()], rest].concat()).collect()
    }

    /// The commands that a denial may mean, among all that the values of their words make. One value stands for all
    /// values that no denial names.
    fn combined(&self, ways: &[Vec<Vec<String>>]) -> Vec<Vec<String>> {
        let denied = self.denied_words();
        let named = |way: &&Vec<String>| {
            way.iter()
                .any(|word| word.starts_with('-') || denied.contains(word.rsplit('/').next().unwrap_or(word)))
        };
        let mut all: Vec<Vec<String>> = vec![Vec::new()];
        for ways in ways {
            let other = ways.iter().find(|way| !named(way));
            let mut tried: Vec<&Vec<String>> = ways.iter().filter(named).chain(other).collect();
            tried.sort();
            tried.dedup();
            if let ([one], true) = (tried.as_slice(), ways.len() < 2) {
                all.iter_mut().for_each(|words| words.extend_from_slice(one));
                continue;
            }
            // The words in front decide; after so many ways, the rest of the words is not tried.
            if all.len() * tried.len() > COMBINED {
                break;
            }
            all = all
                .iter()
                .flat_map(|words| tried.iter().map(move |way| [words.as_slice(), way].concat()))
                .collect();
        }
        all
    }
}
