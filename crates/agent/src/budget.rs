//! The spending of a run, and the check that enough is left for one more answer.
//!
//! Before the model is asked, the amount of its last answer is set aside. If that does not fit under a cap, the run
//! ends. So it ends within one answer of the cap, and a resumed run continues its count.

use lathe_protocol::{Budget, Event, Fact, ModelFailure, Timestamp, ToolErrorKind, Usage, dollars};
use serde::{Deserialize, Serialize};

/// The share of a cap, in percent, from which a warning is given.
const WARN_AT: u64 = 80;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spending {
    /// Millionths of a US dollar.
    pub cost: u64,
    pub tokens: u64,
    /// The time in which Lathe was at work. While it was stopped, the clock stood still.
    pub ms: u64,
    /// The amount of the last answer.
    last: AnswerAmount,
    /// True if a server did not report the usage of an answer, so that it had to be estimated.
    pub estimated: bool,
    at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct AnswerAmount {
    cost: u64,
    tokens: u64,
}

impl Spending {
    pub(crate) fn apply(&mut self, event: &Event, budget: &Budget) {
        if let Fact::TaskGiven(_) = event.fact {
            *self = Self::default();
        }
        // A summary is made concurrently with the run: it costs, but its time says nothing about the run.
        if let Fact::StepSummarised(summary) = &event.fact {
            self.charge(&summary.usage, budget);
            return;
        }
        if let (Some(before), false) = (self.at, was_idle_before(&event.fact)) {
            let passed = event.at.duration_since(before).as_millis();
            self.ms = self.ms.saturating_add(u64::try_from(passed).unwrap_or(0));
        }
        self.at = Some(event.at);
        if let Fact::ModelAnswered(answered) = &event.fact {
            self.last = self.charge(&answered.usage, budget);
        }
        if let Fact::ModelFailed(failed) = &event.fact {
            self.charge(&failed.lost, budget);
        }
        if let Fact::CallFinished(finished) = &event.fact
            && let Some(review) = &finished.review
        {
            let usage = Usage { input_tokens: review.tokens, ..Usage::default() };
            self.charge(&review.usage.unwrap_or(usage), budget);
        }
    }

    /// Counts the usage of one request. Returns the amount.
    fn charge(&mut self, usage: &Usage, budget: &Budget) -> AnswerAmount {
        let cost = budget.price.map_or(0, |price| price.cost(usage));
        let charged = AnswerAmount { cost, tokens: usage.tokens() };
        self.cost = self.cost.saturating_add(charged.cost);
        self.tokens = self.tokens.saturating_add(charged.tokens);
        self.estimated |= usage.estimated;
        charged
    }

    /// The reason why the model may not be asked again, if there is one.
    pub(crate) fn exhausted_reason(&self, budget: &Budget) -> Option<String> {
        if budget.tokens == Some(0) || (budget.cost == Some(0) && !is_free(budget)) {
            return Some(
                "The cap of this run is 0, so the model is not asked. Give a higher one.".to_owned(),
            );
        }
        let fits =
            |spent: u64, next: u64, cap: Option<u64>| cap.is_none_or(|cap| spent.saturating_add(next) <= cap);
        if !fits(self.cost, self.last.cost, budget.cost) {
            return Some(format!(
                "The cost of this run is used up: {} of {} spent{}. Go on with a higher --max-cost.",
                dollars(self.cost),
                dollars(budget.cost.unwrap_or(0)),
                match self.last.cost {
                    0 => String::new(),
                    cost => format!(", and the next answer may cost {}", dollars(cost)),
                }
            ));
        }
        if !fits(self.tokens, self.last.tokens, budget.tokens) {
            return Some(format!(
                "The tokens of this run are used up: {} of {}, and the next answer may take {}. Go on with a higher --max-tokens.",
                self.tokens,
                budget.tokens.unwrap_or(0),
                self.last.tokens
            ));
        }
        if self.ms_left(budget) == Some(0) {
            return Some(out_of_time(budget));
        }
        None
    }

    /// The money and time left, for a request that may be made several times.
    pub(crate) fn remaining(&self, budget: &Budget) -> RemainingBudget {
        RemainingBudget { spent: self.clone(), budget: budget.clone() }
    }

    pub(crate) fn ms_left(&self, budget: &Budget) -> Option<u64> {
        budget.seconds.map(|seconds| seconds.saturating_mul(1000).saturating_sub(self.ms))
    }

    /// A warning, if a cap came near since `before`.
    pub(crate) fn warning(&self, before: &Spending, budget: &Budget) -> Option<String> {
        let crossed = |before: u64, now: u64, cap: Option<u64>| {
            let near =
                |spent: u64| cap.is_some_and(|cap| spent.saturating_mul(100) >= cap.saturating_mul(WARN_AT));
            near(now) && !near(before)
        };
        let mut words = Vec::new();
        if self.estimated && !before.estimated && (budget.cost.is_some() || budget.tokens.is_some()) {
            words.push(
                "what an answer took is estimated: it was cut off, or the server did not say it".to_owned(),
            );
        }
        if crossed(before.cost, self.cost, budget.cost) {
            words.push(format!("{} of {} spent", dollars(self.cost), dollars(budget.cost.unwrap_or(0))));
        }
        if crossed(before.tokens, self.tokens, budget.tokens) {
            words.push(format!("{} of {} tokens used", self.tokens, budget.tokens.unwrap_or(0)));
        }
        if crossed(before.ms, self.ms, budget.seconds.map(|seconds| seconds.saturating_mul(1000))) {
            words.push(format!("{} of {} seconds used", self.ms / 1000, budget.seconds.unwrap_or(0)));
        }
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// The spending of a run before a request, and its caps.
pub(crate) struct RemainingBudget {
    spent: Spending,
    budget: Budget,
}

impl RemainingBudget {
    pub(crate) fn ms_left(&self) -> Option<u64> {
        self.spent.ms_left(&self.budget)
    }

    /// The reason against a further attempt, after lost answers with this usage.
    pub(crate) fn exhausted_reason_with(&self, lost: &Usage) -> Option<String> {
        if lost.is_nothing() {
            return None;
        }
        let mut spent = self.spent.clone();
        spent.charge(lost, &self.budget);
        spent.exhausted_reason(&self.budget)
    }
}

/// Tells whether answers are known to cost nothing.
fn is_free(budget: &Budget) -> bool {
    let usage = Usage { input_tokens: 1_000_000, output_tokens: 1_000_000, ..Usage::default() };
    budget.price.is_some_and(|price| price.cost(&usage) == 0)
}

pub(crate) fn out_of_time(budget: &Budget) -> String {
    format!(
        "The time of this run is used up: {} seconds. Go on with a higher --max-time.",
        budget.seconds.unwrap_or(0)
    )
}

/// Tells whether Lathe was not at work before this event: a session begins with such events when it is opened again.
fn was_idle_before(fact: &Fact) -> bool {
    match fact {
        // A question takes the user's time.
        Fact::ApprovalGiven(_) | Fact::ApprovalExpired(_) => true,
        Fact::RunResumed(_) | Fact::OptionsChanged(_) => true,
        Fact::ModelFailed(failed) => failed.kind == ModelFailure::Interrupted,
        Fact::CallFinished(finished) => {
            finished.error.as_ref().is_some_and(|error| error.kind == ToolErrorKind::Interrupted)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lathe_protocol::TokenPrice;

    fn spent(answers: &[u64], budget: &Budget) -> Spending {
        let mut spent = Spending::default();
        for tokens in answers {
            spent.last = spent.charge(&Usage { input_tokens: *tokens, ..Usage::default() }, budget);
        }
        spent
    }

    #[test]
    fn a_run_ends_within_one_answer_of_its_cap() {
        let budget = Budget { tokens: Some(100), ..Budget::default() };
        assert_eq!(spent(&[30, 30], &budget).exhausted_reason(&budget), None);
        assert!(
            spent(&[30, 30, 30], &budget)
                .exhausted_reason(&budget)
                .is_some_and(|why| why.contains("90 of 100"))
        );
        assert_eq!(spent(&[1000], &Budget::default()).exhausted_reason(&Budget::default()), None);
    }

    #[test]
    fn cost_is_counted_by_the_price_that_was_noted() {
        let price =
            TokenPrice { input: 3_000_000, output: 15_000_000, cache_read: 300_000, cache_write: 3_750_000 };
        let budget = Budget { cost: Some(50_000), price: Some(price), ..Budget::default() };
        let spent = spent(&[10_000], &budget);
        assert_eq!(spent.cost, 30_000);
        assert!(spent.exhausted_reason(&budget).is_some_and(|why| why.contains("$0.03 of $0.05")));
    }

    #[test]
    fn a_cap_is_warned_of_once() {
        let budget = Budget { tokens: Some(100), ..Budget::default() };
        let (few, many) = (spent(&[70], &budget), spent(&[70, 15], &budget));
        assert_eq!(few.warning(&Spending::default(), &budget), None);
        assert_eq!(many.warning(&few, &budget), Some("85 of 100 tokens used".to_owned()));
        assert_eq!(spent(&[70, 15, 5], &budget).warning(&many, &budget), None);
    }
}
