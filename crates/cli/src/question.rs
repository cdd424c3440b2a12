//! What a person types: tasks at the prompt, and answers to the model's questions.

use std::io::BufRead;

use lathe_protocol::{Question, QuestionKind};
use tokio::sync::mpsc;

use crate::term;
use crate::words::{Language, Say};

/// Lines of standard input, read by a thread of their own: reading blocks, and a run must not.
pub(crate) struct Lines {
    lines: mpsc::Receiver<String>,
}

impl Lines {
    pub(crate) fn read() -> Self {
        let (sender, lines) = mpsc::channel(16);
        // The thread ends with the process; nothing it holds needs an end of its own.
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self { lines }
    }

    /// Drops what has been typed so far.
    pub(crate) fn forget(&mut self) {
        self.so_far();
    }

    /// What has been typed so far and was not looked at.
    pub(crate) fn so_far(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.lines.try_recv().ok()).collect()
    }

    pub(crate) async fn next(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}

/// Puts the questions one after the other. None if the input ends before the last is answered.
pub(crate) async fn ask(questions: &[Question], lines: &mut Lines) -> Option<Vec<String>> {
    let mut answers = Vec::with_capacity(questions.len());
    for question in questions {
        term::out(&format!("\n{}", shown(question)));
        let line = lines.next().await?;
        answers.push(chosen(question, line.trim()));
    }
    Some(answers)
}

pub(crate) fn shown(question: &Question) -> String {
    let mut text = String::new();
    if !question.header.is_empty() {
        text.push_str(&format!("[{}] ", term::clean(&question.header)));
    }
    text.push_str(&format!("{}\n", term::clean(&question.question)));
    for (at, option) in question.options.iter().enumerate() {
        let about = if option.description.is_empty() {
            String::new()
        } else {
            format!(" - {}", term::clean(&option.description))
        };
        text.push_str(&format!("  {}. {}{about}\n", at + 1, term::clean(&option.label)));
    }
    let hint = match question.kind {
        QuestionKind::Choice => Say::AskChoice,
        QuestionKind::YesNo => Say::AskYesNo,
        QuestionKind::Text => Say::AskText,
    };
    text + &format!("{}: ", hint.text(Language::find()))
}

/// Numbers stand for the options they name; anything else is an answer in the person's own words.
pub(crate) fn chosen(question: &Question, line: &str) -> String {
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
