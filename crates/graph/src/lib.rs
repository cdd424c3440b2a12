//! The code graph: what a repository defines, who uses it, and what a change can reach.
//!
//! Three layers that know nothing of each other's work. *Facts* are what one file says, kept by content hash. The
//! *store* keeps them in one SQLite file per repository and brings them up to date by looking at the files. A
//! *snapshot* holds the facts of all files and resolves names between them when a question is asked, so nothing
//! resolved can ever be stale.

mod build_facts;
mod extract;
mod facts;
mod hash;
mod imports;
mod pack;
mod rules;
mod text;

pub use extract::{extract, language_of};
pub use facts::{Def, Facts, Gap, Import, Kind, NONE, Site, Sym, Use, def_flag, site_flag};
pub use pack::{pack, unpack};
pub use rules::Rules;
