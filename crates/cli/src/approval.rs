//! The question whether something may be done, on a terminal.

use lathe_protocol::{ApprovalAnswer, ApprovalAsked, Effects, Proposal};

use crate::question::Lines;
use crate::term;
use crate::words::{Language, Say};

/// Lines of a proposal that are shown.
const SHOWN: usize = 60;

/// What a person said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) answer: ApprovalAnswer,
    pub(crate) reason: Option<String>,
}

/// Shows what would be done and asks until the answer is understood. The end of the input is a no.
pub(crate) async fn ask(asked: &ApprovalAsked, lines: &mut Lines) -> Said {
    let language = Language::find();
    let hint = if asked.remember.is_empty() { Say::AskOnce } else { Say::AskApproval };
    // What was typed before the question was seen is no answer to it.
    lines.forget();
    term::out(&format!("\n{}", shown(asked, language)));
    loop {
        term::out(&format!("{}: ", hint.text(language)));
        let Some(line) = lines.next().await else {
            return Said { answer: ApprovalAnswer::No, reason: Some("nobody is there any more".to_owned()) };
        };
        if let Some(said) = understood(line.trim(), !asked.remember.is_empty()) {
            return said;
        }
    }
}

fn understood(line: &str, can_remember: bool) -> Option<Said> {
    let (word, rest) = line.split_once([' ', ',', ':']).unwrap_or((line, ""));
    let answer = match word.to_lowercase().as_str() {
        "y" | "yes" | "是" => ApprovalAnswer::Once,
        "s" | "session" if can_remember => ApprovalAnswer::Session,
        "a" | "always" if can_remember => ApprovalAnswer::Always,
        "n" | "no" | "否" => ApprovalAnswer::No,
        _ => return None,
    };
    let rest = rest.trim();
    match answer {
        ApprovalAnswer::No => {
            Some(Said { answer, reason: Some(rest.to_owned()).filter(|reason| !reason.is_empty()) })
        }
        // "yes, but ..." is not yet a yes.
        ApprovalAnswer::Once | ApprovalAnswer::Session | ApprovalAnswer::Always => {
            rest.is_empty().then_some(Said { answer, reason: None })
        }
    }
}

fn shown(asked: &ApprovalAsked, language: Language) -> String {
    let mut out = format!("{} ", Say::MayThis.text(language));
    out.push_str(&format!("({}: {})\n", term::clean(&asked.rule), term::clean(&asked.reason)));
    match &asked.what {
        Proposal::Line { line, commands } => {
            out.push_str(&block(line));
            // One command is the line itself.
            for each in commands.iter().take(SHOWN) {
                let words = format!("{}  {}", each.words.join(" "), effects(&each.effects));
                out.push_str(&format!("      - {}\n", term::clean(words.trim_end())));
            }
        }
        Proposal::Edit { path, diff } => out.push_str(&block(&format!("{path}\n{diff}"))),
        Proposal::Command { words, about } => {
            out.push_str(&block(&words.join(" ")));
            out.push_str(&block(about));
        }
        Proposal::Other { about } => out.push_str(&block(about)),
    }
    if !asked.remember.is_empty() {
        let what = term::clean(&asked.remember.join("; "));
        out.push_str(&format!("  {}: {what}\n", Say::Remembered.text(language)));
    }
    out
}

fn block(text: &str) -> String {
    let text = term::clean(text);
    let count = text.lines().count();
    let mut out: String = text.lines().take(SHOWN).map(|line| format!("    {line}\n")).collect();
    if count > SHOWN {
        out.push_str(&format!("    … {} {}\n", count - SHOWN, Say::MoreLines.text(Language::find())));
    }
    out
}

fn effects(effects: &Effects) -> String {
    let mut parts = Vec::new();
    for (name, things) in [
        ("reads", &effects.reads),
        ("writes", &effects.writes),
        ("runs", &effects.programs),
        ("reaches", &effects.hosts),
        ("sets", &effects.environment),
    ] {
        if !things.is_empty() {
            parts.push(format!("{name} {}", things.join(" ")));
        }
    }
    if effects.opaque {
        parts.push("and what nobody can tell".to_owned());
    }
    if parts.is_empty() { String::new() } else { format!("[{}]", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_word_is_leave() {
        let said = |answer, reason: Option<&str>| Some(Said { answer, reason: reason.map(str::to_owned) });
        for (line, can_remember, expected) in [
            ("y", false, said(ApprovalAnswer::Once, None)),
            ("Yes", true, said(ApprovalAnswer::Once, None)),
            ("s", true, said(ApprovalAnswer::Session, None)),
            ("always", true, said(ApprovalAnswer::Always, None)),
            ("n", true, said(ApprovalAnswer::No, None)),
            ("no, use the other file", true, said(ApprovalAnswer::No, Some("use the other file"))),
            ("s", false, None),
            ("", true, None),
            ("yes but not now", true, None),
            ("all right", true, None),
            ("another task", true, None),
        ] {
            assert_eq!(understood(line, can_remember), expected, "{line}");
        }
    }
}
