//! A session on the wire: the frames of the server fork, made from events only.
//!
//! One event gives no frame, one, or several; the same journal always gives the same frames. A frame is identified by
//! its [`Cursor`]: the number of its event and its place among the frames of that event. So a client that was cut off
//! in the middle of an event continues with the very next frame, and neither loses one nor gets one twice.
//!
//! Ids of bubbles are those of the seed documents, and count steps from the beginning of a run as the trajectory
//! does. They are unique within a run, and every frame names its run.
//!
//! The projection holds only the open step, so it can be copied and kept at places of a long journal. An event about
//! a past step asks for the data of that step through [`PastSteps`].

mod bubbles;
mod cursor;
mod data;
mod frames;
mod mask;
mod projector;
mod runs;
mod step;

pub use cursor::Cursor;
pub use frames::{LiveFrames, RunEdge, WireFrame};
pub(crate) use mask::masked_events;
pub use mask::{masked_bytes, masked_file, wire_json};
pub use projector::{PastSteps, Projector};
pub use runs::StepNumbers;
pub use step::lakeview_line;
