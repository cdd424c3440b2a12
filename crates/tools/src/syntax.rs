//! Syntax errors that a change made, told with its result.
//!
//! A grammar is no compiler: only what rose is told, never what was there. It is looked at when the file is written already,
//! on a thread of its own.

use std::path::Path;
use std::sync::Arc;

use lathe_edit::syntax::{Language, Syntax, SyntaxCache, SyntaxError, risen};
use lathe_workspace::{Applied, Content};
use parking_lot::Mutex;

use crate::services::Services;

/// Larger contents are not looked at.
const LARGEST: usize = 2 << 20;

/// Files of one change that are told.
const FILES: usize = 5;

struct Changed {
    path: String,
    language: Language,
    before: Content,
    after: Content,
}

/// A line for every file with errors that were not there before, each begun with a line break.
pub(crate) async fn told(services: &Services, changes: &[Applied]) -> String {
    let changed: Vec<Changed> = changes.iter().filter_map(known).collect();
    if changed.is_empty() {
        return String::new();
    }
    let several = changes.len() > 1;
    let cache = Arc::clone(&services.syntax);
    let look = move || -> Vec<String> {
        changed.iter().filter_map(|file| look_at(&cache, file, several)).take(FILES).collect()
    };
    // Whoever cannot look has nothing to say: the change itself is done.
    let lines = tokio::task::spawn_blocking(look).await.unwrap_or_default();
    lines.into_iter().map(|line| format!("\n{}", services.redactor.text(&line))).collect()
}

fn known(change: &Applied) -> Option<Changed> {
    let after = change.after.as_ref().filter(|after| after.len() <= LARGEST)?;
    let before = change.before.clone().unwrap_or_default();
    let path = change.path.to_str()?;
    // Half of all headers are C++, which the grammar of C does not understand.
    if before.len() > LARGEST || Path::new(path).extension().is_some_and(|ending| ending == "h") {
        return None;
    }
    let language = Language::of_path(path)?;
    Some(Changed { path: path.to_owned(), language, before, after: Arc::clone(after) })
}

/// Tells whether a content has errors that the one before had not.
pub(crate) async fn breaks(services: &Services, path: &Path, before: &[u8], after: &[u8]) -> bool {
    let change = Applied {
        path: path.to_owned(),
        before: Some(Arc::new(before.to_vec())),
        after: Some(Arc::new(after.to_vec())),
        mode: 0,
    };
    let cache = Arc::clone(&services.syntax);
    let Some(file) = known(&change) else {
        return false;
    };
    let look = move || look_at(&cache, &file, false).is_some();
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

fn is_json(content: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(content).is_ok()
}

fn look_at(cache: &Mutex<SyntaxCache>, file: &Changed, several: bool) -> Option<String> {
    let mut cache = cache.lock();
    let (Syntax::Checked(before), Syntax::Checked(after)) =
        cache.check_edit(file.language, &file.before, &file.after)
    else {
        return None;
    };
    let new = risen(&before, &after);
    // The grammar does not know every number that is one, like 1e+20.
    if !new.is_empty() && file.language == Language::Json && is_json(&file.after) {
        return None;
    }
    let SyntaxError { line, near, .. } = new.first()?;
    let place = if several { format!(" in {}", file.path) } else { String::new() };
    let what = match near.strip_prefix("missing ") {
        Some(missing) => format!("missing {missing}"),
        None => format!("near \"{}\"", near.trim()),
    };
    let more = match new.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Some(format!("Syntax: this edit introduced an error{place} at line {line}: {what}{more}"))
}
