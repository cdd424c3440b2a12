//! Cost over many sessions.

use std::collections::{BTreeMap, BTreeSet};

use lathe_protocol::{Event, Fact, SessionId, StepNo, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use super::{Money, Prices};
use crate::time::utc_day;

/// The provider whose answers come from a recording.
const RECORDED: &str = "cassette";

/// The purpose of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaidFor {
    /// A step of a run.
    #[default]
    Run,
    /// A summary of a step.
    Lakeview,
    /// A review of an edit.
    Review,
}

/// The answers a session paid for. The value stays small for a journal of any size, so it may be stored next to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCost {
    pub session: SessionId,
    /// The folder worked in.
    pub repo: String,
    pub paid: Vec<Paid>,
}

/// Answers of one model on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paid {
    pub day: String,
    pub provider: String,
    #[serde(default)]
    pub purpose: PaidFor,
    /// The model that answered.
    pub model: String,
    /// The model that was asked for; its price is taken where that of the answer's name is unknown.
    pub asked: String,
    pub answers: u32,
    pub usage: Usage,
}

impl SessionCost {
    /// Sums up **all** events of a journal, also those that a rewind dropped: they were paid for. Events that a fork
    /// copied from its origin were not paid for by the fork, and are left out. None if the journal has no beginning.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Option<Self> {
        Self::by_day(events, &utc_day)
    }

    /// The same, with the days of another zone.
    pub fn by_day<'a>(
        events: impl IntoIterator<Item = &'a Event>,
        day: &dyn Fn(Timestamp) -> String,
    ) -> Option<Self> {
        let mut events = events.into_iter();
        let Fact::SessionOpened(opened) = &events.next()?.fact else {
            return None;
        };
        let taken_over = opened.forked.as_ref().map_or(StepNo(0), |forked| forked.at);
        let mut asked = &opened.options.model;
        let mut sums: BTreeMap<Key<'_>, (u32, Usage)> = BTreeMap::new();
        for event in events {
            if let Fact::OptionsChanged(changed) = &event.fact {
                asked = &changed.options.model;
            }
            let Some((purpose, model, answers, usage)) = paid_for(&event.fact) else { continue };
            if event.place.step.is_some_and(|step| step <= taken_over) {
                continue;
            }
            let named = if purpose == PaidFor::Run { &*asked.model } else { model };
            let sum = sums.entry((day(event.at), &*asked.provider, purpose, model, named)).or_default();
            sum.0 += answers;
            sum.1 += usage;
        }
        let paid = sums.into_iter().map(|((day, provider, purpose, model, asked), (answers, usage))| Paid {
            day,
            provider: provider.to_owned(),
            purpose,
            model: model.to_owned(),
            asked: asked.to_owned(),
            answers,
            usage,
        });
        Some(Self { session: opened.session.clone(), repo: opened.workspace.clone(), paid: paid.collect() })
    }
}

/// The key of a sum: day, provider, purpose, the model that answered and the one that was asked.
type Key<'a> = (String, &'a str, PaidFor, &'a str, &'a str);

/// The model of answers that an older Lathe did not name.
const UNNAMED: &str = "unknown";

/// The paid part of an event: its purpose, its provider, the number of answers, and their tokens.
fn paid_for(fact: &Fact) -> Option<(PaidFor, &str, u32, Usage)> {
    match fact {
        Fact::ModelAnswered(answered) => Some((PaidFor::Run, &answered.model, 1, answered.usage)),
        Fact::ModelFailed(failed) if !failed.lost.is_nothing() => {
            Some((PaidFor::Run, UNNAMED, 1, failed.lost))
        }
        Fact::StepSummarised(summary) => Some((PaidFor::Lakeview, &summary.model, 1, summary.usage)),
        Fact::CallFinished(finished) => {
            let review = finished.review.as_ref().filter(|review| review.tokens > 0)?;
            let model = review.model.as_deref().unwrap_or(UNNAMED);
            let usage =
                review.usage.unwrap_or_else(|| Usage { input_tokens: review.tokens, ..Usage::default() });
            Some((PaidFor::Review, model, review.asked, usage))
        }
        _ => None,
    }
}

/// The kinds of rows of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Day,
    Model,
    Repo,
}

/// One row of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CostRow {
    /// The day, model or folder.
    pub key: String,
    pub sessions: usize,
    pub answers: u32,
    /// All tokens, those of the next fields included.
    pub usage: Usage,
    /// The cost of the tokens with a known price.
    pub cost: Money,
    /// The part of it that was asked outside the conversation: for summaries of steps, and for reviews of edits.
    pub lakeview: OutsideCost,
    pub review: OutsideCost,
    /// Tokens of answers that came from a recording and so cost nothing.
    pub recorded: Usage,
    /// Tokens without a known price. While there are some, `cost` is not the whole.
    pub unpriced: Usage,
    /// The models those are of.
    pub unpriced_models: BTreeSet<String>,
}

/// A part of a row. A summary counts once, though it takes two answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct OutsideCost {
    pub answers: u32,
    pub usage: Usage,
    pub cost: Money,
}

/// Costs of sessions, to be read by day, model or folder.
#[derive(Debug, Default)]
pub struct CostReport {
    prices: Prices,
    sessions: Vec<SessionCost>,
}

impl CostReport {
    pub fn new(prices: Prices) -> Self {
        Self { prices, sessions: Vec::new() }
    }

    pub fn add(&mut self, session: SessionCost) {
        self.sessions.push(session);
    }

    /// Days come in order, models and folders with the dearest first.
    pub fn rows(&self, by: By) -> Vec<CostRow> {
        let mut rows: BTreeMap<&str, (CostRow, BTreeSet<&SessionId>)> = BTreeMap::new();
        for (session, paid) in self.all() {
            let key = match by {
                By::Day => &paid.day,
                By::Model => &paid.model,
                By::Repo => &session.repo,
            };
            let (row, sessions) = rows.entry(key).or_default();
            row.key.clone_from(key);
            sessions.insert(&session.session);
            row.add(paid, &self.prices);
        }
        let mut rows: Vec<CostRow> =
            rows.into_values().map(|(row, sessions)| CostRow { sessions: sessions.len(), ..row }).collect();
        match by {
            By::Day => {}
            By::Model | By::Repo => rows.sort_by_key(|row| (std::cmp::Reverse(row.cost), row.key.clone())),
        }
        rows
    }

    /// Everything in one row.
    pub fn total(&self) -> CostRow {
        let mut row = CostRow::default();
        let mut sessions = BTreeSet::new();
        for (session, paid) in self.all() {
            sessions.insert(&session.session);
            row.add(paid, &self.prices);
        }
        row.sessions = sessions.len();
        row
    }

    fn all(&self) -> impl Iterator<Item = (&SessionCost, &Paid)> {
        self.sessions.iter().flat_map(|session| session.paid.iter().map(move |paid| (session, paid)))
    }
}

impl CostRow {
    fn add(&mut self, paid: &Paid, prices: &Prices) {
        self.answers += paid.answers;
        self.usage += paid.usage;
        let mut part = match paid.purpose {
            PaidFor::Run => None,
            PaidFor::Lakeview => Some(&mut self.lakeview),
            PaidFor::Review => Some(&mut self.review),
        };
        if let Some(part) = &mut part {
            part.answers += paid.answers;
            part.usage += paid.usage;
        }
        if paid.provider == RECORDED {
            self.recorded += paid.usage;
            return;
        }
        match prices.cost_of_answer(&paid.model, &paid.asked, &paid.usage) {
            Some(cost) => {
                self.cost += cost;
                if let Some(part) = part {
                    part.cost += cost;
                }
            }
            None => {
                self.unpriced += paid.usage;
                self.unpriced_models.insert(paid.model.clone());
            }
        }
    }
}
