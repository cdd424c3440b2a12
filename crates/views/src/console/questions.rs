//! Questions to the user: their text, and the meaning of a reply.

use lathe_protocol::{ApprovalAnswer, ApprovalAsked, Effects, Proposal, Question, QuestionKind, clean};

use crate::messages::{Language, Noun, Say};

/// A reply to an approval request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    pub answer: ApprovalAnswer,
    pub reason: Option<String>,
}

impl Consent {
    /// Parses the user's input. None if it is not an approval answer.
    pub fn read(line: &str, can_remember: bool) -> Option<Self> {
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
                Some(Self { answer, reason })
            }
            // "yes, but ..." is not yet a yes.
            ApprovalAnswer::Once | ApprovalAnswer::Session | ApprovalAnswer::Always => {
                rest.is_empty().then_some(Self { answer, reason: None })
            }
        }
    }
}

/// The text of an approval request, with at most so many lines of each part; and the number of hidden lines.
pub fn approval_text(asked: &ApprovalAsked, language: Language, most: usize) -> (String, usize) {
    let mut hidden = 0;
    let mut block = |text: &str| {
        let (block, more) = block_text(text, language, most);
        hidden += more;
        block
    };
    let mut out = format!("{} ", Say::MayThis.text(language));
    out.push_str(&format!("({}: {})\n", clean(&asked.rule), clean(&asked.reason)));
    match &asked.what {
        Proposal::Line { line, commands, purpose } => {
            out.push_str(&block(line));
            if let Some(purpose) = purpose {
                // In quotes: these are the model's words, not Lathe's.
                out.push_str(&block(&format!("“{}”", purpose.replace('\n', " "))));
            }
            let each: Vec<String> = commands
                .iter()
                .map(|each| {
                    format!("  - {}  {}", each.words.join(" "), effects_text(&each.effects, language))
                })
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
        let what = clean(&asked.remember.join("; "));
        out.push_str(&format!("  {}{what}\n", Say::Remembered.label(language)));
    }
    (out, hidden)
}

/// The first lines of a text, indented, and how many are left.
pub fn block_text(text: &str, language: Language, most: usize) -> (String, usize) {
    let text = clean(text);
    let more = text.lines().count().saturating_sub(most);
    let mut out: String = text.lines().take(most).map(|line| format!("    {line}\n")).collect();
    if more > 0 {
        out.push_str(&format!("    … {}\n", Noun::HiddenLine.count(more, language)));
    }
    (out, more)
}

fn effects_text(effects: &Effects, language: Language) -> String {
    let mut parts = Vec::new();
    for (effect, things) in [
        (Say::EffectReads, &effects.reads),
        (Say::EffectWrites, &effects.writes),
        (Say::EffectRuns, &effects.programs),
        (Say::EffectReaches, &effects.hosts),
        (Say::EffectSets, &effects.environment),
    ] {
        if !things.is_empty() {
            parts.push(format!("{} {}", effect.text(language), things.join(" ")));
        }
    }
    if effects.opaque {
        parts.push(Say::EffectUnknown.text(language).to_owned());
    }
    if parts.is_empty() { String::new() } else { format!("[{}]", parts.join(", ")) }
}

/// A question of the model, with its options and the keys that may be typed.
pub fn question_text(question: &Question, language: Language) -> String {
    let mut text = String::new();
    if !question.header.is_empty() {
        text.push_str(&format!("[{}] ", clean(&question.header)));
    }
    text.push_str(&format!("{}\n", clean(&question.question)));
    for (at, option) in question.options.iter().enumerate() {
        let about = if option.description.is_empty() {
            String::new()
        } else {
            format!(" - {}", clean(&option.description))
        };
        text.push_str(&format!("  {}. {}{about}\n", at + 1, clean(&option.label)));
    }
    let hint = match question.kind {
        QuestionKind::Choice => Say::AskChoice,
        QuestionKind::YesNo => Say::AskYesNo,
        QuestionKind::Text => Say::AskText,
    };
    text + &hint.label(language)
}

/// The reply that a line gives. Numbers stand for the options they name; any other text is the user's own words.
pub fn chosen_answer(question: &Question, line: &str) -> String {
    let label = |number: &str| {
        let at = number.trim().parse::<usize>().ok()?.checked_sub(1)?;
        question.options.get(at).map(|option| option.label.clone())
    };
    match question.kind {
        QuestionKind::Text => line.to_owned(),
        QuestionKind::YesNo => match line.to_lowercase().as_str() {
            "y" | "yes" | "是" => "yes".to_owned(),
            "n" | "no" | "否" => "no".to_owned(),
            _ => line.to_owned(),
        },
        QuestionKind::Choice => {
            let several: Option<Vec<String>> = line.split(',').map(label).collect();
            match several {
                Some(labels) if labels.len() == 1 || question.multi_select => labels.join(", "),
                Some(_) | None => line.to_owned(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_word_is_leave() {
        let said = |answer, reason: Option<&str>| Some(Consent { answer, reason: reason.map(str::to_owned) });
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
            assert_eq!(Consent::read(line, can_remember), expected, "{line}");
        }
    }
}
