//! Session plans: a wish and the settings become the plan of a session.
//!
//! Every surface fills a [`Wish`] with the options it was given, by key, and this crate joins them with the settings. Nothing
//! below asks where a value came from, and no surface has a planner of its own, so an option means the same everywhere.
//!
//! Files are read and trust is looked up here; a surface only decides what to do about what is not trusted yet
//! ([`Person`]), and prints.

mod endpoints;
mod extras;
mod given;
mod model;
mod project;
mod session;
mod settle;
mod wire;

pub use given::GivenOptions;
pub use lathe_config::{FlagRow, MemberRow, OptionForm, OptionRow, options};
pub use model::CassetteWish;
pub use project::{PROJECT_FILE, inspect_folder, untrusted_trae};
pub use session::{ResumedMode, ReviewRules, Wish, resumed_mode};
pub use settle::{Absent, ConfigPlace, Person, SettleError, Settled, settle, unread_rules};
pub use wire::{ConfigText, Configured, Plans};
