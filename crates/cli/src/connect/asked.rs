//! Questions that wait for an answer here: whether something may be done, and what the model wants to know.

use std::collections::VecDeque;

use lathe_protocol::{ApprovalAsked, CallId, CommandBody, Event, Fact, Question, Seq};
use lathe_views::{Consent, Language, Say, approval_text, chosen_answer, question_text};

/// A question of a session.
enum Open {
    /// Whether something may be done.
    Leave(ApprovalAsked),
    /// What the model wants to know: several questions, answered one after the other.
    Wants { questions: Vec<Question>, answers: Vec<String> },
}

struct Waiting {
    call: CallId,
    /// The number of the event that asked.
    question: Seq,
    open: Open,
}

/// The meaning of a line for the question that is shown.
pub(super) enum Meant {
    /// Send this.
    Answer(CommandBody),
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

    /// Takes an event: it may ask, answer or end a question.
    pub fn take(&mut self, event: &Event) -> QuestionChange {
        let Some(call) = event.place.call.clone() else { return QuestionChange::Nothing };
        match &event.fact {
            Fact::ApprovalAsked(asked) => {
                self.add(Waiting { call, question: event.seq, open: Open::Leave(asked.clone()) })
            }
            Fact::QuestionAsked(asked) if !asked.questions.is_empty() => {
                let open = Open::Wants { questions: asked.questions.clone(), answers: Vec::new() };
                self.add(Waiting { call, question: event.seq, open })
            }
            Fact::ApprovalGiven(_) | Fact::ApprovalExpired(_) => {
                let is_it = |waiting: &Waiting| Some(waiting.question) == event.place.cause;
                self.close(|waiting| matches!(waiting.open, Open::Leave(_)) && is_it(waiting))
            }
            // The call has its result, so nobody need say anything about it any more.
            Fact::CallFinished(_) => {
                self.close(|waiting| matches!(waiting.open, Open::Wants { .. }) && waiting.call == call)
            }
            _ => QuestionChange::Nothing,
        }
    }

    /// The run is over.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn add(&mut self, waiting: Waiting) -> QuestionChange {
        self.0.push_back(waiting);
        if self.0.len() == 1 { QuestionChange::Shown } else { QuestionChange::Nothing }
    }

    fn close(&mut self, is_it: impl Fn(&Waiting) -> bool) -> QuestionChange {
        let Some(at) = self.0.iter().position(is_it) else { return QuestionChange::Nothing };
        self.0.remove(at);
        if at == 0 { QuestionChange::Elsewhere } else { QuestionChange::Nothing }
    }

    /// The text of the first question, with what may be said to it.
    pub fn shown(&self, language: Language) -> String {
        match self.0.front().map(|waiting| &waiting.open) {
            None => String::new(),
            Some(Open::Leave(asked)) => {
                let (text, _) = approval_text(asked, language, usize::MAX);
                format!("\n{text}{}", self.hint(language))
            }
            Some(Open::Wants { questions, answers }) => {
                let next = questions.get(answers.len());
                next.map(|next| format!("\n{}", question_text(next, language))).unwrap_or_default()
            }
        }
    }

    /// The answers that a question about leave takes.
    pub fn hint(&self, language: Language) -> String {
        match self.0.front().map(|waiting| &waiting.open) {
            Some(Open::Leave(asked)) => {
                let say = if asked.remember.is_empty() { Say::AskOnce } else { Say::AskApproval };
                format!("{}: ", say.text(language))
            }
            Some(Open::Wants { .. }) | None => String::new(),
        }
    }

    /// Takes a line as an answer to the first question. Answered, it is gone.
    pub fn answer(&mut self, line: &str) -> Meant {
        let Some(Waiting { call, question, open }) = self.0.front_mut() else { return Meant::NoAnswer };
        let (call, question) = (call.clone(), *question);
        let body = match open {
            Open::Leave(asked) => {
                let Some(Consent { answer, reason }) = Consent::read(line, !asked.remember.is_empty()) else {
                    return Meant::NoAnswer;
                };
                CommandBody::Approve { call, question, answer, reason, edited: None }
            }
            Open::Wants { questions, answers } => {
                if let Some(asked) = questions.get(answers.len()) {
                    answers.push(chosen_answer(asked, line));
                }
                if answers.len() < questions.len() {
                    return Meant::Part;
                }
                CommandBody::Answer { call, question, answers: Some(std::mem::take(answers)) }
            }
        };
        self.0.pop_front();
        Meant::Answer(body)
    }
}

/// The effect of an event on the questions.
pub(super) enum QuestionChange {
    Nothing,
    /// There is one to be shown now.
    Shown,
    /// The one that was shown was answered by somebody else, or is over.
    Elsewhere,
}

/// Whether a line is only a word of consent or refusal, which says nothing without a question.
pub(super) fn is_bare_answer(line: &str) -> bool {
    Consent::read(line, true).is_some_and(|consent| consent.reason.is_none())
}
