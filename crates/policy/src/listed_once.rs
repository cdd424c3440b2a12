//! Each command of a line, listed once.
//!
//! Where the grammar may have misread a text, because of a vertical tab or a carriage return that bash takes for a
//! part of a word, the text is read a second time by simpler rules, and both readings are judged. The user is shown
//! one of them: of two commands that differ only in invisible characters, the one that has these characters.

use std::collections::HashMap;

use lathe_bash::Script;

use crate::line_decision::CommandDecision;

/// The commands without those that the second reading repeats. The stricter decision of both stays.
pub(crate) fn each_once(script: &Script, each: Vec<CommandDecision>) -> Vec<CommandDecision> {
    if !script.commands.iter().any(|command| command.broken) {
        return each;
    }
    let mut listed: Vec<CommandDecision> = Vec::with_capacity(each.len());
    // The place of each command in the new list, and the commands there that only one reading found.
    let mut places: Vec<usize> = Vec::with_capacity(each.len());
    let mut single: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, mut one) in each.into_iter().enumerate() {
        one.wrapper = one.wrapper.and_then(|behind| places.get(behind).copied());
        let is_second = script.commands.get(index).is_some_and(|command| command.broken);
        let text = one.words.join(" ");
        let same = single.entry(plain(&text)).or_default();
        let first = if is_second && !same.is_empty() { Some(same.remove(0)) } else { None };
        let Some((place, first)) = first.and_then(|place| Some((place, listed.get_mut(place)?))) else {
            same.push(listed.len());
            places.push(listed.len());
            listed.push(one);
            continue;
        };
        places.push(place);
        if one.decision.verdict > first.decision.verdict {
            first.decision = one.decision;
        }
        if hidden(&text) > hidden(&first.words.join(" ")) {
            (first.words, first.effects) = (one.words, one.effects);
        }
    }
    listed
}

/// The text with blanks in place of invisible characters.
fn plain(text: &str) -> String {
    let shown: String = text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect();
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn hidden(text: &str) -> usize {
    text.chars().filter(|c| is_hidden(*c)).count()
}

fn is_hidden(c: char) -> bool {
    !c.is_ascii_graphic() && c != ' ' && lathe_protocol::visible(&c.to_string()).chars().ne([c])
}
