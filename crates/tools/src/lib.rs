//! Tools: what the model can do, implemented once and spoken in the words of each toolset.
//!
//! A `Tool` turns arguments into an `Invocation`, which knows its effects before it runs and returns data, not prose. A
//! `Face` gives it the name, schema and words of one toolset. The [`Toolbox`] joins both: it prepares a call so that the
//! gate can look at it, and runs it with the permit the gate gave.
//!
//! Invariant: foreign text loses its secrets before it is cut, because half a secret is no longer recognised.

mod bash;
mod done;
mod edit;
mod face;
mod finish;
mod outcome;
mod placeholder;
mod problem;
mod schedule;
mod schema;
mod services;
mod think;
mod tool;
mod toolbox;
mod trae;
mod view;
mod write;

pub use schedule::{Stage, startable};
pub use services::{LiveOutput, Services, ShellPlan};
pub use tool::RunContext;
pub use toolbox::{Prepared, Toolbox};
