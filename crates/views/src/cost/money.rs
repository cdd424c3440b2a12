//! Amounts of money.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount in millionths of a US dollar. Whole numbers, so that a sum does not depend on its order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Money(pub u64);

impl Money {
    pub const ZERO: Money = Money(0);

    pub fn micro_dollars(self) -> u64 {
        self.0
    }
}

impl std::ops::AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl std::iter::Sum for Money {
    fn sum<I: Iterator<Item = Money>>(all: I) -> Money {
        let mut total = Money::ZERO;
        all.for_each(|one| total += one);
        total
    }
}

impl fmt::Display for Money {
    /// Cents from one dollar on, hundredths of a cent below; what is smaller but not nothing is said to be so.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("$0"),
            1..=49 => f.write_str("<$0.0001"),
            micro if micro < 999_950 => write!(f, "$0.{:04}", (micro + 50) / 100),
            micro => {
                let cents = (u128::from(micro) + 5_000) / 10_000;
                write!(f, "${}.{:02}", cents / 100, cents % 100)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_shown_as_exactly_as_it_matters() {
        let shown =
            [0, 3, 50, 12_345, 999_949, 999_950, 12_345_678, u64::MAX].map(|micro| Money(micro).to_string());
        assert_eq!(
            shown,
            ["$0", "<$0.0001", "$0.0001", "$0.0123", "$0.9999", "$1.00", "$12.35", "$18446744073709.55"]
        );
    }
}
