//! The summary of a session for a list.

use lathe_protocol::{Event, Fact, Forked, SessionState, SessionSummary, StepNo, TaskFinished, Usage};

use crate::live::cut_to_live_branch;

const TITLE_MAX: usize = 80;

/// Summarises a session from all its events. None if they do not begin with its opening.
///
/// Steps, tokens, model and state are those of the live branch. The title is the last one set, otherwise the first
/// task, even if that was rewound: a session keeps its name.
pub fn summarise(events: &[Event]) -> Option<SessionSummary> {
    let (first, last) = (events.first()?, events.last()?);
    let Fact::SessionOpened(opened) = &first.fact else {
        return None;
    };
    let task = events.iter().find_map(|event| match &event.fact {
        Fact::TaskGiven(task) => Some(task.text.as_str()),
        _ => None,
    });
    let named = events.iter().rev().find_map(|event| match &event.fact {
        Fact::SessionNamed(named) => Some(named.title.as_str()),
        _ => None,
    });
    let mut model = opened.options.model.model.as_str();
    let mut state = SessionState::New;
    let mut usage = Usage::default();
    let mut steps = StepNo(0);
    for event in cut_to_live_branch(events) {
        steps = steps.max(event.place.step.unwrap_or_default());
        match &event.fact {
            Fact::OptionsChanged(changed) => model = &changed.options.model.model,
            Fact::TaskGiven(_) | Fact::RunResumed(_) => state = SessionState::Running,
            Fact::TaskFinished(TaskFinished { ending, .. }) => state = (*ending).into(),
            Fact::ModelAnswered(answer) => usage += answer.usage,
            _ => {}
        }
    }
    Some(SessionSummary {
        id: opened.session.clone(),
        created: first.at,
        // A fork contains events older than its own opening.
        updated: last.at.max(first.at),
        workspace: opened.workspace.clone(),
        title: named.or(task).map(title_of).unwrap_or_default(),
        model: model.to_owned(),
        state,
        steps: steps.0,
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        forked: opened.forked.clone().map(|forked| Forked { command: None, ..forked }),
    })
}

/// One line without control characters, which a terminal would obey.
fn title_of(task: &str) -> String {
    let words = task.split(|c: char| c.is_whitespace() || c.is_control());
    let mut title = String::new();
    for word in words.filter(|word| !word.is_empty()) {
        if !title.is_empty() {
            title.push(' ');
        }
        title.push_str(word);
        if title.len() > TITLE_MAX * 4 {
            break;
        }
    }
    if title.chars().count() > TITLE_MAX {
        title = title.chars().take(TITLE_MAX - 1).collect();
        // A word is complete or absent: views mask secrets by their shape, and a cut one has another shape.
        if let Some(end) = title.rfind(|c: char| !c.is_ascii_graphic()) {
            title.truncate(title.ceil_char_boundary(end + 1));
        }
        title.truncate(title.trim_end().len());
        title.push('…');
    }
    title
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_clean_line_of_at_most_80_characters() {
        let exact = "é".repeat(80);
        let cut = format!("{}…", "é".repeat(79));
        let long = "é".repeat(81);
        let table = [
            ("Fix the bug", "Fix the bug"),
            (" Fix\n\n the\tbug \x1b[31m", "Fix the bug [31m"),
            ("", ""),
            (&exact, &exact),
            (&long, &cut),
        ];
        for (task, title) in table {
            assert_eq!(title_of(task), title);
        }
        assert_eq!(title_of(&"word ".repeat(1000)), format!("{}…", "word ".repeat(15).trim_end()));
        // A word is not cut, so a secret that is masked by its shape keeps it.
        let secret = "sk-planted0123456789abcdef";
        for before in 0..80 {
            let title =
                title_of(&format!("{} {secret} and more words to fill the line up", "x".repeat(before)));
            assert!(title.contains(secret) || !title.contains("sk-"), "{title}");
        }
    }
}
