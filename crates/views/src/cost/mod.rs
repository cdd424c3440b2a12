//! Costs of sessions.
//!
//! Prices are data (`prices.json`), each with the day it was noted, and may be overridden by the user. A model
//! without a known price costs an unknown amount, not nothing: its tokens are listed separately everywhere.

mod cache;
mod money;
mod prices;
mod report;

pub use cache::{CacheBreak, CacheCause, CacheMeter};
pub use money::Money;
pub use prices::{CostError, Price, PriceOverrides, Prices};
pub use report::{By, CostReport, CostRow, OutsideCost, Paid, PaidFor, SessionCost};
