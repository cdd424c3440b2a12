//! The budget of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Usage;

/// Caps of one run. A cap that is left out does not apply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Budget {
    /// Millionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// Tokens read and written, including the cached ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// The price of the model's tokens. A cap on cost needs it, so it is recorded with the cap: the cost of a past
    /// run then does not depend on a later price table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<TokenPrice>,
}

impl Budget {
    pub fn is_none(&self) -> bool {
        self.cost.is_none() && self.tokens.is_none() && self.seconds.is_none()
    }

    /// These caps, and the other ones where one is missing.
    pub fn or(self, other: Budget) -> Self {
        Self {
            cost: self.cost.or(other.cost),
            tokens: self.tokens.or(other.tokens),
            seconds: self.seconds.or(other.seconds),
            price: self.price.or(other.price),
        }
    }
}

/// Formats millionths of a US dollar exactly: a cap that is shown must be the cap that holds.
pub fn dollars(micro: u64) -> String {
    let text = format!("${}.{:06}", micro / 1_000_000, micro % 1_000_000);
    let cents = text.len() - 4;
    let shown = text.trim_end_matches('0').len().max(cents);
    text.get(..shown).unwrap_or(&text).to_owned()
}

/// Millionths of a US dollar per million tokens, in whole numbers, so that a sum does not depend on its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenPrice {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

impl TokenPrice {
    /// The cost in millionths of a US dollar. `input_tokens` counts all input, including the cached part, and
    /// `output_tokens` all output, including the reasoning.
    pub fn cost(&self, usage: &Usage) -> u64 {
        let (read, written) = (usage.cache_read_input_tokens, usage.cache_creation_input_tokens);
        let fresh = usage.input_tokens.saturating_sub(read).saturating_sub(written);
        let parts = [
            (fresh, self.input),
            (read, self.cache_read),
            (written, self.cache_write),
            (usage.output_tokens, self.output),
        ];
        let total: u128 =
            parts.into_iter().map(|(tokens, price)| u128::from(tokens) * u128::from(price)).sum();
        u64::try_from((total + 500_000) / 1_000_000).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_shown_exactly_and_with_cents() {
        let shown = [0, 1, 50, 1_200, 10_000, 1_500_000, 2_000_001].map(dollars);
        assert_eq!(shown, ["$0.00", "$0.000001", "$0.00005", "$0.0012", "$0.01", "$1.50", "$2.000001"]);
    }
}
