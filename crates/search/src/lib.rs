//! Finds text and files in a tree, with ripgrep's own libraries.
//!
//! In process: no program is started, so a pattern that begins with a dash is a pattern in every case, and a search
//! costs no more than the files it reads. Results do not depend on the order in which threads finish.
//!
//! Links are never followed, and a file is searched only when the file that was opened lies beneath the root: a
//! folder that is swapped for a link while it is walked leads nowhere.

mod beneath;
mod error;
mod globs;
mod ignored;
mod names;
mod scope;
mod text;
mod tree;
mod unread;

pub use error::SearchError;
pub use globs::{GlobStyle, glob_matcher, glob_set};
pub use ignored::{
    IgnoreOptions, IgnoreRules, OWN as LATHE_IGNORE, ignored_names, is_ignored, is_ignored_by_git,
};
pub use names::{FoundFile, FoundFiles, NameQuery, find_files};
pub use scope::Scope;
pub use text::{CaseMode, FileHits, HitLine, LineKind, TextFindings, TextQuery, find_text};
pub use tree::{TreeRules, plain_walk};
pub use unread::{UnreadRules, unread_own_file, unread_sentence};
