//! Numbers for the record: `cargo test --release -p lathe-journal speed -- --ignored --nocapture`.

use std::time::Instant;

use crate::child::say;
use crate::make::*;

fn quantiles(mut micros: Vec<u128>) -> String {
    micros.sort_unstable();
    let at = |part: usize| micros[(micros.len() - 1) * part / 100];
    format!("p50 {} us, p95 {} us, max {} us", at(50), at(95), at(100))
}

fn time<T>(act: impl FnOnce() -> T) -> (u128, T) {
    let start = Instant::now();
    let result = act();
    (start.elapsed().as_micros(), result)
}

#[test]
#[ignore = "a measurement"]
fn appending_opening_and_syncing() {
    let home = Home::new();
    let (created, mut journal) = time(|| home.create("s"));
    let body = "x".repeat(689);
    let mut syncer = journal.syncer().unwrap();
    let (mut appends, mut syncs) = (Vec::new(), Vec::new());
    for n in 0..20_000 {
        let draft = note(body.clone());
        appends.push(time(|| journal.append(at(0), draft).unwrap()).0);
        if n % 100 == 0 {
            syncs.push(time(|| syncer.sync().unwrap()).0);
            syncer.checkpoint_if_large().unwrap();
        }
    }
    let (closed, ()) = time(|| journal.close().unwrap());
    let opens = (0..200).map(|_| {
        let (micros, journal) = time(|| home.open("s"));
        journal.close().unwrap();
        micros
    });
    let opens = quantiles(opens.collect());
    let (read, events) = time(|| home.reader("s").all().unwrap());
    say("append 700 B:", quantiles(appends));
    say("sync:", quantiles(syncs));
    say("open:", opens);
    say("create:", format!("{created} us; close {closed} us"));
    say("read all:", format!("{} events in {read} us", events.len()));
}
