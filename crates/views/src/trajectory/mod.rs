//! One run as Trae's trajectory JSON.
//!
//! Trae rewrites the whole file at every step and serialises all of it each time. Here every interaction and every
//! step becomes text once, when it is finished; writing the file joins those texts. So the cost of a step does not
//! grow with the number of steps before it, and the host may write as often as it likes.
//!
//! Where Trae is wrong this is right: results carry the name of their tool, failed steps are `"error"`, and a run
//! that is not over has `null` for `end_time`, `success`, `final_result` and `execution_time`.

mod builder;
mod layout;
pub(crate) mod shapes;

pub use builder::TrajectoryBuilder;
pub(crate) use layout::lay_out;
