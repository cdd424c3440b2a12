//! Views of a journal: pure functions of its events.
//!
//! A view reads events and returns text or numbers. It opens no file, asks no clock and keeps no record of its own,
//! so it cannot disagree with the journal. The one thing it may need besides events is the content of a blob, which
//! comes in through a function ([`ReadBlob`]).
//!
//! - [`Console`]: a session as lines for people, with marks of their style.
//! - [`Say`], [`Tell`] and [`Noun`]: the messages of all surfaces, in two languages.
//! - [`TrajectoryBuilder`]: one run as Trae's trajectory JSON. It is fed event by event, because it is written again
//!   and again during a run: every finished step is serialised once and only joined afterwards.
//! - [`html`] and [`Page`]: a session as one page that requests nothing from the network. Text of the journal is
//!   hostile there: every piece of it passes through one of two escaping types.
//! - [`Prices`], [`SessionCost`], [`CostReport`]: the costs of sessions. An unknown price is reported, never guessed.
//! - [`Projector`]: a session as the frames of the WebSocket: steps, bubbles, questions, changes.
//! - [`SessionView`]: the projection that the page is made from: runs, their steps, their calls.
//!
//! Trajectory, page and projection need the **live branch**: steps that a rewind dropped are not part of them. Cost
//! and frames need **all** events: a step that was rewound was paid for, and was seen.

mod console;
mod cost;
mod html;
mod lengths;
mod messages;
mod session;
mod time;
mod trajectory;
mod wire;

pub use console::{
    AsideFile, Closing, Consent, Console, FileDiff, ModeSource, Style, Styled, approval_text, block_text,
    cache_lines, cached_share, chosen_answer, name_text, opening, question_text, unusual_mode,
};
pub use cost::{
    By, CacheBreak, CacheCause, CacheMeter, CostError, CostReport, CostRow, Money, OutsideCost, Paid,
    PaidFor, Price, PriceOverrides, Prices, SessionCost,
};
pub use html::{Page, ReadBlob, html};
pub use messages::{Language, Noun, Say, Tell};
pub use session::{CallView, RunView, SessionView, StepView};
pub use trajectory::TrajectoryBuilder;
pub use wire::{
    Cursor, LiveFrames, PastSteps, Projector, RunEdge, StepNumbers, WireFrame, lakeview_line, masked_bytes,
    masked_file, wire_json,
};
