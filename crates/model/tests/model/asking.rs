//! Asking, waiting, and giving up.

use std::time::Duration;

use lathe_model::{Delivery, Delta, ModelError, Outage, Wire};
use lathe_protocol::text_of as text_of_blocks;
use lathe_testkit::{FakeModel, Fault, Script, Wire as Fake, say};
use tokio_util::sync::CancellationToken;

use crate::{ask, options, text_of};

#[tokio::test]
async fn what_is_shown_is_what_is_answered() {
    for (wire, fake) in Wire::ALL.into_iter().zip(Fake::ALL) {
        let model = FakeModel::serving(Script::new().answer(say("Grüße, 世界")));
        let options = options(wire, &model.base_url_for(fake), Delivery::Streamed);
        let (answer, shown) = ask(options, "hi", CancellationToken::new()).await;
        let answer = answer.unwrap();
        assert_eq!(text_of_blocks(&answer.blocks), "Grüße, 世界", "{}", wire.as_str());
        assert_eq!(text_of(&shown), "Grüße, 世界");
        assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens), (100, 20));
    }
}

#[tokio::test]
async fn a_wait_is_announced_before_it_begins() {
    let slow = Fault::status(429, "slow down").header("retry-after-ms", "30");
    let model = FakeModel::serving(Script::new().answer(say("ok").fails(1, slow)));
    let options = options(Wire::Chat, &model.base_url(), Delivery::Streamed);
    let (_, shown) = ask(options, "hi", CancellationToken::new()).await;
    assert!(
        matches!(&shown[0], Delta::Retry { attempt: 2, wait_ms: 30, reason } if reason.contains("slow down"))
    );
}

#[tokio::test]
async fn a_cancel_is_heard_at_every_wait() {
    // What is not heard is waited for longer than a test may take.
    let stall = || Fault::Stall(Duration::from_secs(3600));
    let silent = || Fault::SilenceFirst(Duration::from_secs(3600));
    let busy = || Fault::status(503, "busy").header("retry-after", "3600");
    for fault in [stall(), silent(), busy()] {
        let model = FakeModel::serving(Script::new().answer(say("a long text").always_fails(fault.clone())));
        let mut options = options(Wire::Messages, &model.base_url_for(Fake::Messages), Delivery::Streamed);
        options.patience.longest_wait = Duration::from_secs(3600);
        options.outage = Outage::Park;
        let cancel = CancellationToken::new();
        let later = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(150)).await;
            later.cancel();
        });
        let (answer, _) = ask(options, "hi", cancel).await;
        assert!(matches!(answer, Err(ModelError::Cancelled)), "{fault:?}");
    }
}
