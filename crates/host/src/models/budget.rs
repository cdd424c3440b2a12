//! Prices of tokens, which a cap on cost needs.

use lathe_protocol::{Budget, ModelChoice};
use lathe_views::Prices;

use crate::error::HostError;
use crate::files::own::own_text;
use crate::home::Home;
use crate::models::Models;
use crate::models::request::RECORDED;

/// The prices of tokens; `$LATHE_HOME/prices.json` overrides the built-in ones.
pub(crate) fn prices(home: &Home) -> Result<Prices, HostError> {
    let prices = Prices::built_in();
    match own_text(&home.prices()) {
        Ok(Some(text)) => prices.with_json(&text).map_err(|error| HostError::Prices(error.to_string())),
        Ok(None) => Ok(prices),
        // Prices that the user wrote but that cannot be read are not replaced by others.
        Err(error) => Err(HostError::Prices(error.to_string())),
    }
}

impl Models {
    /// The budget with the price of its model. A cap on cost is refused if the price is not known: it could not be
    /// enforced.
    pub(crate) fn priced(&self, budget: Budget, model: &ModelChoice) -> Result<Budget, HostError> {
        if budget.cost.is_none() || model.provider == RECORDED {
            return Ok(budget);
        }
        match prices(self.home())?.price_of(&model.model) {
            Some(price) => Ok(Budget { price: Some(price.per_token()), ..budget }),
            None => Err(HostError::NoPrice { model: model.model.clone(), file: self.home().prices() }),
        }
    }
}
