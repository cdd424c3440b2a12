//! The questions that wait for an answer here: approval requests, and questions of the model.

use std::collections::VecDeque;

use lathe_protocol::{ApprovalAsked, CallId, CommandBody, Event, Fact, Question, Seq};
use lathe_views::{Consent, Language, Say, approval_text, chosen_answer, question_text};

/// The content of a question.
enum QuestionContent {
    /// An approval request.
    Approval(ApprovalAsked),
    /// Questions of the model, answered one after the other.
    FromModel { questions: Vec<Question>, answers: Vec<String> },
}

struct PendingQuestion {
    call: CallId,
    /// The number of the event that asked.
    question: Seq,
    content: QuestionContent,
}

/// The meaning of a line for the question that is shown.
pub(super) enum LineMeaning {
    /// The line completes the answer: send this command.
    Answer(CommandBody),
    /// The line is one of several answers; the next one is needed.
    Part,
    NoAnswer,
}

/// The questions in the order they were asked. The first is the one that is shown.
#[derive(Default)]
pub(super) struct PendingQuestions(VecDeque<PendingQuestion>);

impl PendingQuestions {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Applies an event, which may ask, answer or end a question.
    pub fn apply(&mut self, event: &Event) -> QuestionChange {
        let Some(call) = event.place.call.clone() else { return QuestionChange::Nothing };
        match &event.fact {
            Fact::ApprovalAsked(asked) => self.add(PendingQuestion {
                call,
                question: event.seq,
                content: QuestionContent::Approval(asked.clone()),
            }),
            Fact::QuestionAsked(asked) if !asked.questions.is_empty() => {
                let content =
                    QuestionContent::FromModel { questions: asked.questions.clone(), answers: Vec::new() };
                self.add(PendingQuestion { call, question: event.seq, content })
            }
            Fact::ApprovalGiven(_) | Fact::ApprovalExpired(_) => {
                let is_it = |pending: &PendingQuestion| Some(pending.question) == event.place.cause;
                self.close(|pending| {
                    matches!(pending.content, QuestionContent::Approval(_)) && is_it(pending)
                })
            }
            // The call has its result, so it needs no answer any more.
            Fact::CallFinished(_) => self.close(|pending| {
                matches!(pending.content, QuestionContent::FromModel { .. }) && pending.call == call
            }),
            _ => QuestionChange::Nothing,
        }
    }

    /// Forgets all questions, because the run is over.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn add(&mut self, pending: PendingQuestion) -> QuestionChange {
        self.0.push_back(pending);
        if self.0.len() == 1 { QuestionChange::Shown } else { QuestionChange::Nothing }
    }

    fn close(&mut self, is_it: impl Fn(&PendingQuestion) -> bool) -> QuestionChange {
        let Some(at) = self.0.iter().position(is_it) else { return QuestionChange::Nothing };
        self.0.remove(at);
        if at == 0 { QuestionChange::Elsewhere } else { QuestionChange::Nothing }
    }

    /// The text of the first question, with the answers it takes.
    pub fn text(&self, language: Language) -> String {
        match self.0.front().map(|pending| &pending.content) {
            None => String::new(),
            Some(QuestionContent::Approval(asked)) => {
                let (text, _) = approval_text(asked, language, usize::MAX);
                format!("\n{text}{}", self.hint(language))
            }
            Some(QuestionContent::FromModel { questions, answers }) => {
                let next = questions.get(answers.len());
                next.map(|next| format!("\n{}", question_text(next, language))).unwrap_or_default()
            }
        }
    }

    /// The answers that an approval request takes.
    pub fn hint(&self, language: Language) -> String {
        match self.0.front().map(|pending| &pending.content) {
            Some(QuestionContent::Approval(asked)) => {
                let say = if asked.remember.is_empty() { Say::AskOnce } else { Say::AskApproval };
                say.label(language)
            }
            Some(QuestionContent::FromModel { .. }) | None => String::new(),
        }
    }

    /// Uses a line as an answer to the first question. A question that is completely answered is removed.
    pub fn answer(&mut self, line: &str) -> LineMeaning {
        let Some(PendingQuestion { call, question, content }) = self.0.front_mut() else {
            return LineMeaning::NoAnswer;
        };
        let (call, question) = (call.clone(), *question);
        let body = match content {
            QuestionContent::Approval(asked) => {
                let Some(Consent { answer, reason }) = Consent::read(line, !asked.remember.is_empty()) else {
                    return LineMeaning::NoAnswer;
                };
                CommandBody::Approve { call, question, answer, reason, edited: None }
            }
            QuestionContent::FromModel { questions, answers } => {
                if let Some(asked) = questions.get(answers.len()) {
                    answers.push(chosen_answer(asked, line));
                }
                if answers.len() < questions.len() {
                    return LineMeaning::Part;
                }
                CommandBody::Answer { call, question, answers: Some(std::mem::take(answers)) }
            }
        };
        self.0.pop_front();
        LineMeaning::Answer(body)
    }
}

/// The effect of an event on the questions.
pub(super) enum QuestionChange {
    Nothing,
    /// There is a question to be shown now.
    Shown,
    /// The question that was shown was answered by another client, or is over.
    Elsewhere,
}

/// True if a line is only a word of consent or refusal, which means nothing without a question.
pub(super) fn is_bare_answer(line: &str) -> bool {
    Consent::read(line, true).is_some_and(|consent| consent.reason.is_none())
}
