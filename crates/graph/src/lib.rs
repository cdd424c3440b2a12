//! The code graph: the definitions of a repository, their users, and the reach of a change.
//!
//! Four layers that know nothing of each other's work. *Facts* are the content of one file, kept by content hash. The
//! *store* keeps them in one SQLite file per repository and brings them up to date by checking the files. A
//! *snapshot* stands for the facts of all files and reads those that a question needs. The *index* holds everything
//! resolved, for exactly the contents it was made from; where it is not valid, names are resolved when they are asked
//! for, so a resolved result can never be stale.

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
mod index_build;
mod interface;
mod layout;
mod lazy;
mod listing;
mod modules;
mod pack;
mod picture;
mod query;
mod rank;
mod references;
mod removed;
mod resolve;
mod rules;
mod scan;
mod select;
mod snapshot;
mod source_text;
mod store;
mod text;
mod watch;
mod wording;

pub use ask::{QUESTIONS, RenderedReply, ask};
pub use background::{BackgroundBuild, UNUSED};
pub use ckg::{CkgSearch, ckg};
pub use error::GraphError;
pub use extract::{extract, language_of};
pub use facts::{Def, DefKind, Facts, Gap, Import, NONE, Site, Sym, UseKind, def_flag, site_flag};
pub use graph::{Graph, Progress, RefreshReport};
pub use impact::changed_lines;
pub use lazy::LazyFacts;
pub use pack::{pack, unpack};
pub use query::{GraphReply, Query, Reference, ReplyItem, is_test_path};
pub use rank::MapRequest;
pub use resolve::{Confidence, Resolved, Resolver};
pub use rules::LanguageRules;
pub use scan::GraphLimits;
pub use select::{files_ending, select};
pub use snapshot::{FileFacts, Snapshot, Symbol};
pub use store::{GraphDatabase, expire_databases, unused_databases};
pub use wording::{add_context, render, tokens};
