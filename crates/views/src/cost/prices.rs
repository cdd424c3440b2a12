//! Prices of a million tokens, by model.

use std::collections::BTreeMap;

use lathe_protocol::{TokenPrice, Usage};
use serde::{Deserialize, Serialize};

use super::Money;

const BUILT_IN: &str = include_str!("../../prices.json");

#[derive(Debug, thiserror::Error)]
pub enum CostError {
    #[error(
        "the prices cannot be read: {0}. Each is {{\"input\": 3, \"output\": 15, \"cache_read\": 0.3, \"cache_write\": 3.75}} in US dollars per million tokens"
    )]
    Unreadable(#[from] serde_json::Error),
    #[error("the price of {model} must not be negative")]
    Negative { model: String },
}

/// US dollars per million tokens. What is left out of the last two costs as much as fresh input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// The day on which the price was looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noted: Option<String>,
}

/// Prices by name of the model, as a user gives them.
pub type PriceOverrides = BTreeMap<String, Price>;

#[derive(Deserialize)]
struct Table {
    models: PriceOverrides,
}

/// The known prices.
///
/// A name is looked up as it is, then without the provider before its last `/`, then by the longest known name it
/// begins with. The text after that name must only say which release of the model it is (`-20250929`, `-2025-08-07`,
/// `-latest`, `-preview`): any prefix would give `gpt-5-pro` the price of `gpt-5`, which is a twelfth of it. A `*` at
/// the end of a name says that a whole family costs the same: `"qwen3-*"`.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    known: PriceOverrides,
}

impl Prices {
    /// The prices that come with Lathe.
    pub fn built_in() -> Self {
        // A test reads the table, so a mistake in it cannot reach anyone.
        let known = serde_json::from_str::<Table>(BUILT_IN).map(|table| table.models);
        Self { known: known.unwrap_or_default() }
    }

    /// These prices, with others for some models.
    pub fn with(mut self, overrides: PriceOverrides) -> Result<Self, CostError> {
        for (model, price) in overrides {
            let parts = [Some(price.input), Some(price.output), price.cache_read, price.cache_write];
            if parts.into_iter().flatten().any(|part| part < 0.0) {
                return Err(CostError::Negative { model });
            }
            self.known.insert(model, price);
        }
        Ok(self)
    }

    /// The same from JSON: a map from names to prices.
    pub fn with_json(self, overrides: &str) -> Result<Self, CostError> {
        self.with(serde_json::from_str(overrides)?)
    }

    pub fn price_of(&self, model: &str) -> Option<&Price> {
        let bare = model.rsplit('/').next().unwrap_or(model);
        self.known
            .get(model)
            .or_else(|| self.known.get(bare))
            .or_else(|| self.longest(model))
            .or_else(|| self.longest(bare))
    }

    fn longest(&self, model: &str) -> Option<&Price> {
        let fits = |known: &str| match known.strip_suffix('*') {
            Some(family) => model.starts_with(family),
            None => model.strip_prefix(known).is_some_and(is_release),
        };
        let known = self.known.iter().filter(|(known, _)| fits(known));
        known.max_by_key(|(known, _)| known.len()).map(|(_, price)| price)
    }

    /// The cost of these tokens; none if the price is unknown. `input_tokens` counts all input, the cached part
    /// included, and `output_tokens` all output, the reasoning included.
    pub fn cost_of(&self, model: &str, usage: &Usage) -> Option<Money> {
        Some(Money(self.price_of(model)?.per_token().cost(usage)))
    }
}

impl Price {
    /// In whole numbers.
    pub fn per_token(&self) -> TokenPrice {
        TokenPrice {
            input: micro(self.input),
            output: micro(self.output),
            cache_read: micro(self.cache_read.unwrap_or(self.input)),
            cache_write: micro(self.cache_write.unwrap_or(self.input)),
        }
    }
}

impl Prices {
    /// The cost of an answer: by the name of the model that answered or, if that is unknown, of the model that was
    /// asked.
    pub(crate) fn cost_of_answer(&self, answered: &str, asked: &str, usage: &Usage) -> Option<Money> {
        self.cost_of(answered, usage).or_else(|| self.cost_of(asked, usage))
    }
}

impl Default for Prices {
    fn default() -> Self {
        Self::built_in()
    }
}

/// Dollars as whole millionths. The cast keeps to the bounds of the number by itself.
fn micro(dollars: f64) -> u64 {
    (dollars * 1e6).round() as u64
}

/// Tells whether the rest of a name only says which release of a model it is.
fn is_release(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix(['-', '@', ':']) else {
        return false;
    };
    let is_word = |part: &str| ["latest", "preview", "exp"].contains(&part);
    let is_version = |part: &str| part.strip_prefix('v').is_some_and(all_digits);
    let mut parts = rest.split(['-', ':', '@']);
    let Some(first) = parts.next() else { return false };
    // A short number straight after the name is another model: `claude-opus-4-1` is not a release of `claude-opus-4`.
    let begins = (all_digits(first) && first.len() >= 4) || is_word(first) || is_version(first);
    begins && parts.all(|part| all_digits(part) || is_word(part) || is_version(part))
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_can_be_read_and_every_price_is_dated_and_sensible() {
        let table: Table = serde_json::from_str(BUILT_IN).unwrap();
        assert!(table.models.len() > 20);
        for (model, price) in &table.models {
            let noted = price.noted.as_deref().unwrap();
            assert!(noted.len() == 10 && noted.starts_with("202"), "{model}");
            let (read, write) = (price.cache_read.unwrap(), price.cache_write.unwrap());
            assert!(
                0.0 < read && read < price.input && price.input <= write && price.input < price.output,
                "{model}"
            );
        }
        assert_eq!(Prices::built_in().known, table.models);
    }

    #[test]
    fn a_name_finds_its_price_exactly_or_as_a_release_of_a_known_model() {
        let prices = Prices::built_in();
        let input = |model: &str| prices.price_of(model).map(|price| price.input);
        let table = [
            ("claude-sonnet-4-5", Some(3.0)),
            ("claude-sonnet-4-5-20250929", Some(3.0)),
            ("anthropic/claude-sonnet-4-5@20250929", Some(3.0)),
            ("claude-opus-4-20250514", Some(15.0)),
            ("claude-opus-4-6", Some(5.0)),
            ("claude-opus-4-9", None),
            ("gpt-5-2025-08-07", Some(1.25)),
            ("gpt-5-mini-2025-08-07", Some(0.25)),
            ("openai/gpt-4.1-mini", Some(0.4)),
            ("gemini-2.5-pro-preview-05-06", Some(1.25)),
            ("gpt-5-pro", None),
            ("gpt-5.9", None),
            ("gpt-4o-mini-latest", Some(0.15)),
            ("gpt-4o-", None),
            ("recorded", None),
            ("", None),
        ];
        for (model, expected) in table {
            assert_eq!(input(model), expected, "{model}");
        }
    }

    #[test]
    fn overrides_win_and_may_name_a_family() {
        let prices = Prices::built_in()
            .with_json(r#"{"gpt-5": {"input": 9, "output": 9}, "qwen3-*": {"input": 1, "output": 2}}"#)
            .unwrap();
        assert_eq!(prices.price_of("gpt-5-2025-08-07").unwrap().input, 9.0);
        assert_eq!(prices.price_of("qwen3-coder-plus").unwrap().input, 1.0);
        assert_eq!(prices.price_of("claude-opus-4-6").unwrap().input, 5.0);
    }

    #[test]
    fn a_wrong_override_is_refused_with_its_name() {
        let refused = |json| Prices::built_in().with_json(json).unwrap_err().to_string();
        assert!(refused(r#"{"m": {"input": -1, "output": 1}}"#).contains("price of m"));
        assert!(refused(r#"{"m": {"inptu": 1}}"#).contains("inptu"));
    }

    #[test]
    fn each_kind_of_token_has_its_price_and_the_cached_part_is_not_paid_twice() {
        let usage = Usage {
            input_tokens: 1_000_000,
            output_tokens: 100_000,
            cache_read_input_tokens: 600_000,
            cache_creation_input_tokens: 100_000,
            reasoning_tokens: 50_000,
            ..Usage::default()
        };
        // 0.3 M at 3, 0.6 M at 0.3, 0.1 M at 3.75, 0.1 M at 15.
        let expected = Money(900_000 + 180_000 + 375_000 + 1_500_000);
        assert_eq!(Prices::built_in().cost_of("claude-sonnet-4-5", &usage), Some(expected));
        assert_eq!(Prices::built_in().cost_of("recorded", &usage), None);
    }
}
