//! The question whether something may be done, on a terminal.

use std::path::Path;

use lathe_host::Session;
use lathe_protocol::{ApprovalAnswer, ApprovalAsked, Effects, Proposal, ProposedText, Raw, Seq};
use serde_json::Value;

use crate::editor::{NoText, edited_text};
use crate::question::Lines;
use crate::stops::Stops;
use crate::term;
use crate::words::{Language, Say};

/// Lines of a proposal that are shown.
const SHOWN: usize = 60;

/// What a person said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) answer: ApprovalAnswer,
    pub(crate) reason: Option<String>,
    /// What the person made of the arguments.
    pub(crate) edited: Option<Raw>,
}

/// Shows what would be done and asks until the answer is understood. The end of the input is a no. Arguments that are given
/// may be changed. None if the run is to be stopped instead.
pub(crate) async fn ask(
    asked: &ApprovalAsked,
    arguments: Option<&Raw>,
    (session, question): (&Session, Seq),
    lines: &mut Lines,
    stops: &mut Stops,
) -> Option<Said> {
    let language = Language::find();
    // What a person made of the text of a file; asked about again before it counts.
    let mut made: Option<ProposedText> = None;
    // What was typed before the question was seen is no answer to it.
    lines.forget();
    let (text, mut hidden) = shown(asked, language, SHOWN);
    term::out(&format!("\n{text}"));
    loop {
        let mut more =
            if arguments.is_some() { format!(", {}", Say::AskEdit.text(language)) } else { String::new() };
        if hidden > 0 {
            let all = if hidden == 1 { Say::AskShowOne } else { Say::AskShowAll };
            let all = all.text(language).replace("{}", &hidden.to_string());
            more.push_str(&format!(", {all}"));
        }
        let can_remember = made.is_none() && !asked.remember.is_empty();
        let hint = if can_remember { Say::AskApproval } else { Say::AskOnce };
        term::out(&format!("{}{more}: ", hint.text(language)));
        let line = tokio::select! {
            line = lines.next() => line,
            _ = stops.next() => return None,
        };
        let Some(line) = line else {
            let reason = Some("nobody is there any more".to_owned());
            return Some(Said { answer: ApprovalAnswer::No, reason, edited: None });
        };
        if matches!(line.trim(), "v" | "view") {
            let all = match &made {
                Some(made) => block(&made.diff, usize::MAX).0,
                None => shown(asked, language, usize::MAX).0,
            };
            term::out(&format!("\n{all}"));
            hidden = 0;
            continue;
        }
        let editor = editor().filter(|_| matches!(asked.what, Proposal::Edit { .. }));
        if let (Some(_), Some(editor), "e" | "edit") = (arguments, editor, line.trim())
            && let Some(offered) = session.proposed(question, None).await
        {
            match edit_file(&editor, (session, question), made.as_ref().unwrap_or(&offered), stops).await {
                Ok(text) => {
                    let (diff, more) = block(&text.diff, SHOWN);
                    term::out(&format!("\n{diff}"));
                    hidden = more;
                    made = Some(text);
                }
                Err(NoText::Stopped) => return None,
                Err(NoText::Wrong(reason)) => term::out(&format!("{}\n", term::clean(&reason))),
            }
            continue;
        }
        if let (Some(arguments), "e" | "edit") = (arguments, line.trim()) {
            match edit(arguments, lines, stops, language).await {
                Ok(edited) => {
                    return Some(Said { answer: ApprovalAnswer::Once, reason: None, edited: Some(edited) });
                }
                Err(NoText::Stopped) => return None,
                Err(NoText::Wrong(reason)) => term::out(&format!("{}\n", term::clean(&reason))),
            }
            continue;
        }
        if let Some(mut said) = understood(line.trim(), can_remember) {
            if said.answer == ApprovalAnswer::Once {
                said.edited = made.and_then(|made| made.arguments);
            }
            return Some(said);
        }
    }
}

/// The person's editor, if one is set.
fn editor() -> Option<String> {
    ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|set| !set.is_empty()))
}

/// Lets a person change the text of a file that a call proposes, in the editor.
async fn edit_file(
    editor: &str,
    (session, question): (&Session, Seq),
    offered: &ProposedText,
    stops: &mut Stops,
) -> Result<ProposedText, NoText> {
    let ending = Path::new(&offered.path).extension().and_then(|ending| ending.to_str()).unwrap_or("txt");
    let text = edited_text(editor, &offered.proposed, ending, stops).await?;
    let made = session.proposed(question, Some(text)).await;
    made.ok_or_else(|| "the question is no longer asked".to_owned().into())
}

/// Lets a person change the arguments: in the editor, or where none is set by typing a line.
async fn edit(
    arguments: &Raw,
    lines: &mut Lines,
    stops: &mut Stops,
    language: Language,
) -> Result<Raw, NoText> {
    let mut value: Value = serde_json::from_str(arguments.get()).map_err(|error| error.to_string())?;
    let editor = editor();
    let one = value.get("command").and_then(Value::as_str).map(str::to_owned);
    let text = match (editor, &one) {
        (Some(editor), Some(command)) => edited_text(&editor, command, "sh", stops).await?,
        (Some(editor), None) => {
            let text = serde_json::to_string_pretty(&value).map_err(|error| error.to_string())?;
            edited_text(&editor, &text, "json", stops).await?
        }
        (None, _) => {
            term::out(&format!("{}: ", Say::NewText.text(language)));
            let line = tokio::select! {
                line = lines.next() => line,
                _ = stops.next() => return Err(NoText::Stopped),
            };
            line.ok_or_else(|| "nothing was typed".to_owned())?
        }
    };
    let text = text.trim_end_matches('\n');
    if text.trim().is_empty() {
        return Err("nothing is left of it; `n` says no".to_owned().into());
    }
    match (one, value.as_object_mut()) {
        (Some(_), Some(members)) => drop(members.insert("command".to_owned(), text.into())),
        _ => value = serde_json::from_str(text).map_err(|error| format!("that is no JSON: {error}"))?,
    }
    Raw::from_serialize(&value).map_err(|error| error.to_string().into())
}

pub(crate) fn understood(line: &str, can_remember: bool) -> Option<Said> {
    let (word, rest) = line.split_once([' ', ',', ':']).unwrap_or((line, ""));
    let answer = match word.to_lowercase().as_str() {
        "y" | "yes" | "o" | "once" | "是" => ApprovalAnswer::Once,
        "s" | "session" if can_remember => ApprovalAnswer::Session,
        "a" | "always" if can_remember => ApprovalAnswer::Always,
        "n" | "no" | "否" => ApprovalAnswer::No,
        _ => return None,
    };
    let rest = rest.trim();
    match answer {
        ApprovalAnswer::No => {
            let reason = Some(rest.to_owned()).filter(|reason| !reason.is_empty());
            Some(Said { answer, reason, edited: None })
        }
        // "yes, but ..." is not yet a yes.
        ApprovalAnswer::Once | ApprovalAnswer::Session | ApprovalAnswer::Always => {
            rest.is_empty().then_some(Said { answer, reason: None, edited: None })
        }
    }
}

/// The question, with at most so many lines of each part; and how many lines are not shown.
pub(crate) fn shown(asked: &ApprovalAsked, language: Language, most: usize) -> (String, usize) {
    let mut hidden = 0;
    let mut block = |text: &str| {
        let (block, more) = block(text, most);
        hidden += more;
        block
    };
    let mut out = format!("{} ", Say::MayThis.text(language));
    out.push_str(&format!("({}: {})\n", term::clean(&asked.rule), term::clean(&asked.reason)));
    match &asked.what {
        Proposal::Line { line, commands, purpose } => {
            out.push_str(&block(line));
            if let Some(purpose) = purpose {
                // In quotes: these are the model's words, not Lathe's.
                out.push_str(&block(&format!("“{}”", purpose.replace('\n', " "))));
            }
            let each: Vec<String> = commands
                .iter()
                .map(|each| format!("  - {}  {}", each.words.join(" "), effects(&each.effects)))
                .map(|words| words.trim_end().to_owned())
                .collect();
            out.push_str(&block(&each.join("\n")));
            out.push_str(&format!("  {}\n", Say::NotBack.text(language)));
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
    (out, hidden)
}

/// The first lines of a text, indented, and how many are left.
fn block(text: &str, most: usize) -> (String, usize) {
    let text = term::clean(text);
    let more = text.lines().count().saturating_sub(most);
    let mut out: String = text.lines().take(most).map(|line| format!("    {line}\n")).collect();
    if more > 0 {
        out.push_str(&format!("    … {more} {}\n", Say::more_lines(more).text(Language::find())));
    }
    (out, more)
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
        let said = |answer, reason: Option<&str>| {
            Some(Said { answer, reason: reason.map(str::to_owned), edited: None })
        };
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
