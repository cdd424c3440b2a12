//! Asking, waiting, and giving up.

use std::time::Duration;

use lathe_model::{Delivery, Delta, ModelError, Outage, Wire};
use lathe_protocol::{Usage, text_of as text_of_blocks};
use lathe_testkit::{FakeAnswer, FakeModel, Fault, Script, Wire as Fake, call, say};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{ask, ask_until, options, text_of};

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

/// Usage of the answers that came to nothing.
fn lost(shown: &[Delta]) -> Usage {
    let mut lost = Usage::default();
    for delta in shown {
        match delta {
            Delta::Lost(usage) => lost += *usage,
            Delta::Text(_) | Delta::Thinking(_) | Delta::CallForming(_) | Delta::Retry { .. } => {}
        }
    }
    lost
}

/// Words of 1200 bytes, which come in events of a few hundred.
fn words() -> String {
    "word ".repeat(240)
}

#[tokio::test]
async fn issue_16_what_came_of_an_answer_that_broke_off_is_counted_on_every_wire() {
    let answers: [fn() -> FakeAnswer; 3] = [
        || say(&words()),
        || say("").think(&words()).say("x"),
        || call("c1", "write", json!({ "path": "a", "content": words() })),
    ];
    for (wire, fake) in Wire::ALL.into_iter().zip(Fake::ALL) {
        for (number, answer) in answers.iter().enumerate() {
            let model =
                FakeModel::serving(Script::new().answer(answer().always_fails(Fault::TruncateCleanly)));
            let options = options(wire, &model.base_url_for(fake), Delivery::Streamed);
            let attempts = u64::from(options.patience.attempts);
            let (result, shown) = ask(options, "hi", CancellationToken::new()).await;
            assert!(matches!(result, Err(ModelError::Unavailable(_))), "{} {number}", wire.as_str());
            let lost = lost(&shown);
            // 1200 bytes are 300 tokens in each attempt.
            let range = attempts * 300..attempts * 500;
            assert!(range.contains(&lost.output_tokens), "{} {number}: {lost:?}", wire.as_str());
            assert!(lost.input_tokens > 0 && lost.estimated, "{} {number}: {lost:?}", wire.as_str());
        }
    }
}

#[tokio::test]
async fn issue_16_what_came_of_an_answer_that_was_cancelled_is_counted_on_every_wire() {
    for (wire, fake) in Wire::ALL.into_iter().zip(Fake::ALL) {
        let stall = Fault::Stall(Duration::from_secs(3600));
        let model = FakeModel::serving(Script::new().answer(say(&words()).always_fails(stall)));
        let options = options(wire, &model.base_url_for(fake), Delivery::Streamed);
        let is_text = |delta: &Delta| matches!(delta, Delta::Text(_));
        let (result, shown) = ask_until(options, "hi", CancellationToken::new(), is_text).await;
        assert!(matches!(result, Err(ModelError::Cancelled)), "{}", wire.as_str());
        let lost = lost(&shown);
        assert!((1..=300).contains(&lost.output_tokens), "{}: {lost:?}", wire.as_str());
    }
}
