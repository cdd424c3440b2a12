//! The code graph: what a repository defines, who uses it, and what a change can reach.
//!
//! Four layers that know nothing of each other's work. *Facts* are what one file says, kept by content hash. The
//! *store* keeps them in one SQLite file per repository and brings them up to date by looking at the files. A
//! *snapshot* stands for the facts of all files and reads those that a question needs. The *index* holds everything
//! resolved, for exactly the contents it was made from; where it does not hold, names are resolved when they are asked for,
//! so nothing resolved can ever be stale.

mod ask;
mod background;
mod build_facts;
mod ckg;
mod error;
mod extract;
mod facts;
mod graph;
mod hash;
mod impact;
mod imports;
mod index;
mod interface;
mod layout;
mod lazy;
mod listing;
mod making;
mod modules;
mod pack;
mod picture;
mod query;
mod rank;
mod read;
mod references;
mod removed;
mod resolve;
mod rules;
mod scan;
mod select;
mod snapshot;
mod store;
mod text;
mod watch;
mod words;

pub use ask::{Asked, QUESTIONS, ask};
pub use background::{Background, UNUSED};
pub use ckg::{CkgSearch, ckg};
pub use error::GraphError;
pub use extract::{extract, language_of};
pub use facts::{Def, Facts, Gap, Import, Kind, NONE, Site, Sym, Use, def_flag, site_flag};
pub use graph::{Graph, Progress, Refreshed};
pub use impact::changed_lines;
pub use lazy::Lazy;
pub use pack::{pack, unpack};
pub use query::{Answer, Item, Query, Reference, is_test_path};
pub use rank::MapWish;
pub use resolve::{Confidence, Resolved, Resolver};
pub use rules::Rules;
pub use scan::Limits;
pub use select::{files_ending, select};
pub use snapshot::{FileFacts, Snapshot, Symbol};
pub use store::{Database, expire_databases, unused_databases};
pub use words::{add_context, render, tokens};
