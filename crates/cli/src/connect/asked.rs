//! Questions that wait for an answer here: whether something may be done, and what the model wants to know.

use std::collections::VecDeque;

use lathe_protocol::{ApprovalAsked, Question};
use serde_json::{Value, json};

use crate::words::{Language, Say};
use crate::{approval, question};

/// A question of a session.
enum Open {
    /// Whether something may be done.
    Leave { number: Value, asked: ApprovalAsked },
    /// What the model wants to know: several questions, answered one after the other.
    Wants { number: Value, questions: Vec<Question>, answers: Vec<String> },
}

struct Waiting {
    call: Value,
    open: Open,
}

/// What a line was to the question that is shown.
pub(super) enum Meant {
    /// Send this.
    Answer(Value),
    /// It is taken; more is wanted.
    Part,
    NoAnswer,
}

/// The questions in the order they were asked. The first is the one that is shown.
#[derive(Default)]
pub(super) struct Questions(VecDeque<Waiting>);

impl Questions {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes an `approval` frame.
    pub fn approval(&mut self, data: &Value) -> Changed {
        if data["state"] != "asked" {
            return self.close(|waiting| match &waiting.open {
                Open::Leave { number, .. } => *number == data["question"],
                Open::Wants { .. } => false,
            });
        }
        let Ok(asked) = serde_json::from_value::<ApprovalAsked>(data.clone()) else {
            return Changed::Nothing;
        };
        self.add(Waiting {
            call: data["call_id"].clone(),
            open: Open::Leave { number: data["question"].clone(), asked },
        })
    }

    /// Takes a `question` frame.
    pub fn question(&mut self, data: &Value) -> Changed {
        let Ok(questions) = serde_json::from_value::<Vec<Question>>(data["questions"].clone()) else {
            return Changed::Nothing;
        };
        if questions.is_empty() {
            return Changed::Nothing;
        }
        let (call, number) = (data["call_id"].clone(), data["question"].clone());
        self.add(Waiting { call, open: Open::Wants { number, questions, answers: Vec::new() } })
    }

    /// The call has its result, so nobody need say anything about it any more.
    pub fn call_ended(&mut self, call: &Value) -> Changed {
        self.close(|waiting| waiting.call == *call && matches!(waiting.open, Open::Wants { .. }))
    }

    /// The run is over.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn add(&mut self, waiting: Waiting) -> Changed {
        self.0.push_back(waiting);
        if self.0.len() == 1 { Changed::Shown } else { Changed::Nothing }
    }

    fn close(&mut self, is_it: impl Fn(&Waiting) -> bool) -> Changed {
        let Some(at) = self.0.iter().position(is_it) else { return Changed::Nothing };
        self.0.remove(at);
        if at == 0 { Changed::Elsewhere } else { Changed::Nothing }
    }

    /// The text of the first question, with what may be said to it.
    pub fn shown(&self, language: Language) -> String {
        match self.0.front().map(|waiting| &waiting.open) {
            None => String::new(),
            Some(Open::Leave { asked, .. }) => {
                let (text, _) = approval::shown(asked, language, usize::MAX);
                format!("\n{text}{}", self.hint(language))
            }
            Some(Open::Wants { questions, answers, .. }) => {
                let next = questions.get(answers.len());
                next.map(|next| format!("\n{}", question::shown(next))).unwrap_or_default()
            }
        }
    }

    /// What may be said about leave.
    pub fn hint(&self, language: Language) -> String {
        match self.0.front().map(|waiting| &waiting.open) {
            Some(Open::Leave { asked, .. }) => {
                let say = if asked.remember.is_empty() { Say::AskOnce } else { Say::AskApproval };
                format!("{}: ", say.text(language))
            }
            Some(Open::Wants { .. }) | None => String::new(),
        }
    }

    /// What a line says to the first question. Answered, it is gone.
    pub fn answer(&mut self, line: &str) -> Meant {
        let Some(Waiting { call, open }) = self.0.front_mut() else { return Meant::NoAnswer };
        let message = match open {
            Open::Leave { number, asked } => {
                let Some(said) = approval::understood(line, !asked.remember.is_empty()) else {
                    return Meant::NoAnswer;
                };
                json!({
                    "type": "approve", "call_id": call, "question": number,
                    "answer": said.answer, "reason": said.reason,
                })
            }
            Open::Wants { number, questions, answers } => {
                if let Some(asked) = questions.get(answers.len()) {
                    answers.push(question::chosen(asked, line));
                }
                if answers.len() < questions.len() {
                    return Meant::Part;
                }
                json!({ "type": "answer", "call_id": call, "question": number, "answers": answers })
            }
        };
        self.0.pop_front();
        Meant::Answer(message)
    }
}

/// What a frame did to the questions.
pub(super) enum Changed {
    Nothing,
    /// There is one to be shown now.
    Shown,
    /// The one that was shown was answered by somebody else, or is over.
    Elsewhere,
}

/// Whether a line is only a word of consent or refusal, which says nothing without a question.
pub(super) fn is_bare_answer(line: &str) -> bool {
    approval::understood(line, true).is_some_and(|said| said.reason.is_none())
}
