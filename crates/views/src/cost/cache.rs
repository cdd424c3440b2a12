//! The cache meter: the share of the input that the provider had cached, and the places where its cache broke.

use std::collections::BTreeSet;

use lathe_protocol::{EpochCause, Event, Fact, StepNo, Timestamp};
use serde::Serialize;

/// Providers cache nothing that is shorter.
const SMALLEST: u64 = 1024;
/// After this long most providers have dropped a cache.
const KEPT_SECONDS: i64 = 300;

/// The cache of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CacheMeter {
    /// All input.
    pub input_tokens: u64,
    pub read_tokens: u64,
    pub written_tokens: u64,
    pub breaks: Vec<CacheBreak>,
}

/// A request whose beginning the provider should have cached, and had not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CacheBreak {
    pub step: StepNo,
    pub cause: CacheCause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheCause {
    /// Another model was asked.
    OtherModel,
    /// The head of the prompt was made again.
    Epoch,
    /// Steps were rewound.
    Rewound,
    /// The provider had dropped it.
    Time { seconds: i64 },
    /// Nothing on our side: the provider did not keep it.
    Provider,
}

/// The answer before.
struct Before {
    input: u64,
    at: Timestamp,
}

impl CacheMeter {
    /// Reads the live branch.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut meter = Self::default();
        let mut before: Option<Before> = None;
        let mut model: Option<(String, String)> = None;
        let mut causes: BTreeSet<CacheCause> = BTreeSet::new();
        let mut asked_at = None;
        for event in events {
            match &event.fact {
                Fact::SessionOpened(opened) => model = Some(name(&opened.options.model)),
                Fact::OptionsChanged(changed) => {
                    let now = Some(name(&changed.options.model));
                    if now != model {
                        causes.insert(CacheCause::OtherModel);
                        model = now;
                    }
                }
                Fact::EpochStarted(epoch) if epoch.cause == EpochCause::OptionsChanged => {
                    causes.insert(CacheCause::Epoch);
                }
                Fact::Rewound(_) | Fact::RewindUndone(_) => drop(causes.insert(CacheCause::Rewound)),
                Fact::ModelAsked(_) => asked_at = Some(event.at),
                Fact::ModelAnswered(answered) => {
                    let usage = &answered.usage;
                    meter.input_tokens = meter.input_tokens.saturating_add(usage.input_tokens);
                    meter.read_tokens = meter.read_tokens.saturating_add(usage.cache_read_input_tokens);
                    meter.written_tokens =
                        meter.written_tokens.saturating_add(usage.cache_creation_input_tokens);
                    if let Some(before) = &before
                        && before.input >= SMALLEST
                        && usage.cache_read_input_tokens < before.input / 2
                    {
                        let asked = asked_at.unwrap_or(event.at);
                        let seconds = asked.duration_since(before.at).as_secs();
                        let late = CacheCause::Time { seconds };
                        let cause = causes.first().copied();
                        let cause = cause.or((seconds >= KEPT_SECONDS).then_some(late));
                        meter.breaks.push(CacheBreak {
                            step: event.place.step.unwrap_or_default(),
                            cause: cause.unwrap_or(CacheCause::Provider),
                        });
                    }
                    causes.clear();
                    before = Some(Before { input: usage.input_tokens, at: event.at });
                }
                _ => {}
            }
        }
        // A provider that never reports cached tokens has no cache that could break.
        if meter.read_tokens == 0 && meter.written_tokens == 0 {
            meter.breaks.clear();
        }
        meter
    }

    /// Hundredths of the input that came from the cache; none if the provider does not report it.
    pub fn percent(&self) -> Option<u64> {
        let is_reported = self.read_tokens > 0 || self.written_tokens > 0;
        (is_reported && self.input_tokens > 0)
            .then(|| self.read_tokens.saturating_mul(100) / self.input_tokens)
    }
}

fn name(model: &lathe_protocol::ModelChoice) -> (String, String) {
    (model.provider.clone(), model.model.clone())
}
