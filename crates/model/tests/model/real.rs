//! Our clients against a server we did not write: llama.cpp with a small model. `scripts/real-model` starts it.

use std::time::Duration;

use lathe_model::{Delivery, Patience, Wire};
use lathe_protocol::{StopReason, text_of as text_of_blocks};
use tokio_util::sync::CancellationToken;

use crate::{ask, options, text_of};

#[tokio::test]
async fn a_real_server_is_understood_on_three_wires_streamed_and_whole() {
    let url = std::env::var("LATHE_REAL_MODEL_URL").expect("scripts/real-model sets LATHE_REAL_MODEL_URL");
    for wire in [Wire::Chat, Wire::Messages, Wire::Responses] {
        let base = if wire == Wire::Messages { url.clone() } else { format!("{url}/v1") };
        for delivery in [Delivery::Streamed, Delivery::Whole] {
            let mut options = options(wire, &base, delivery);
            options.patience =
                Patience { attempts: 1, total: Duration::from_secs(300), ..Patience::default() };
            let (answer, shown) =
                ask(options, "What is the capital of France?", CancellationToken::new()).await;
            let answer = answer.unwrap_or_else(|error| panic!("{} {delivery:?}: {error}", wire.as_str()));
            let text = text_of_blocks(&answer.blocks);
            let place = format!("{} {delivery:?}: {answer:?}", wire.as_str());
            assert!(!text.trim().is_empty(), "{place}");
            assert_eq!(text_of(&shown), text, "{place}");
            assert!(matches!(answer.stop, StopReason::EndTurn | StopReason::Length), "{place}");
            assert!(answer.usage.input_tokens > 5 && answer.usage.output_tokens > 0, "{place}");
        }
    }
}
