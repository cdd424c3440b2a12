//! Syntax errors that a change introduced, reported with its result.
//!
//! A grammar is not a compiler: only new errors are reported, never those that were there before. The check runs when
//! the file is written already, on a thread of its own.

use std::path::Path;
use std::sync::Arc;

use lathe_edit::syntax::{Language, Syntax, SyntaxCache, SyntaxError, added_errors};
use lathe_workspace::{Applied, Content};
use parking_lot::Mutex;

use crate::services::Services;

/// Larger contents are not checked.
const LARGEST: usize = 2 << 20;

/// Files of one change that are reported.
const FILES: usize = 5;

struct ChangedFile {
    path: String,
    language: Language,
    before: Content,
    after: Content,
}

/// A line for every file with new errors, each starting with a line break.
pub(crate) async fn new_error_lines(services: &Services, changes: &[Applied]) -> String {
    let changed: Vec<ChangedFile> = changes.iter().filter_map(checkable).collect();
    if changed.is_empty() {
        return String::new();
    }
    let several = changes.len() > 1;
    let cache = Arc::clone(&services.syntax);
    let look = move || -> Vec<String> {
        changed.iter().filter_map(|file| first_new_error(&cache, file, several)).take(FILES).collect()
    };
    // A check that fails reports nothing: the change itself is done.
    let lines = tokio::task::spawn_blocking(look).await.unwrap_or_default();
    lines.into_iter().map(|line| format!("\n{}", services.redactor.redact_text(&line))).collect()
}

fn checkable(change: &Applied) -> Option<ChangedFile> {
    let after = change.after.as_ref().filter(|after| after.len() <= LARGEST)?;
    let before = change.before.clone().unwrap_or_default();
    let path = change.path.to_str()?;
    // Half of all headers are C++, which the grammar of C does not understand.
    if before.len() > LARGEST || Path::new(path).extension().is_some_and(|ending| ending == "h") {
        return None;
    }
    let language = Language::of_path(path)?;
    Some(ChangedFile { path: path.to_owned(), language, before, after: Arc::clone(after) })
}

/// Tells whether a content has errors that the one before did not have.
pub(crate) async fn introduces_errors(services: &Services, path: &Path, before: &[u8], after: &[u8]) -> bool {
    let change = Applied {
        path: path.to_owned(),
        before: Some(Arc::new(before.to_vec())),
        after: Some(Arc::new(after.to_vec())),
        mode: 0,
    };
    let cache = Arc::clone(&services.syntax);
    let Some(file) = checkable(&change) else {
        return false;
    };
    let look = move || first_new_error(&cache, &file, false).is_some();
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

fn is_json(content: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(content).is_ok()
}

fn first_new_error(cache: &Mutex<SyntaxCache>, file: &ChangedFile, several: bool) -> Option<String> {
    let mut cache = cache.lock();
    let (Syntax::Checked(before), Syntax::Checked(after)) =
        cache.check_edit(file.language, &file.before, &file.after)
    else {
        return None;
    };
    let new = added_errors(&before, &after);
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
