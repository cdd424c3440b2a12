//! Finds files that may have been meant by a path that does not exist.

use std::path::{Component, Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use lathe_protocol::edit_distance;
use lathe_search::{NameQuery, Scope, find_files};

use crate::tool::{RunContext, display_path};

/// Names that are suggested.
const NAMED: usize = 3;

/// The most time for the search: a mistyped name must not cost a scan of the whole tree.
const PATIENCE: Duration = Duration::from_millis(500);

/// Paths relative to the workspace: similar names in the same folder, then the same name elsewhere.
pub(super) async fn similar_paths(context: &RunContext, path: &Path) -> Vec<String> {
    let root = context.services.workspace.root();
    let outside = !path.starts_with(root) || path.components().any(|part| part == Component::ParentDir);
    let (Some(folder), Some(name), false) = (path.parent(), path.file_name(), outside) else {
        return Vec::new();
    };
    let name = name.to_string_lossy().into_owned();
    let mut found = in_folder(context, folder, &name).await;
    found.truncate(NAMED);
    if found.len() < NAMED {
        for other in elsewhere(context, name).await {
            if !found.contains(&other) && found.len() < NAMED && other != path {
                found.push(other);
            }
        }
    }
    found.iter().map(|path| display_path(root, path).chars().map(super::visible).collect()).collect()
}

async fn in_folder(context: &RunContext, folder: &Path, name: &str) -> Vec<PathBuf> {
    let files = context.services.workspace.files();
    // No name outside of the workspace is revealed.
    if files.real(folder).await.is_err() {
        return Vec::new();
    }
    let listed = files.list(folder).await.unwrap_or_default();
    let mut near: Vec<(usize, String)> = listed
        .into_iter()
        .filter_map(|entry| {
            let known = entry.name.to_string_lossy().into_owned();
            // A link that leads nowhere exists, and is not what was meant.
            if known == name {
                return None;
            }
            unlikeness(name, &known).map(|distance| (distance, known))
        })
        .collect();
    near.sort();
    near.into_iter().map(|(_, name)| folder.join(name)).collect()
}

/// The distance of a name from the given one, if it can have been meant.
fn unlikeness(given: &str, known: &str) -> Option<usize> {
    let (given, known) = (given.to_lowercase(), known.to_lowercase());
    let stem = |name: &str| name.split_once('.').map_or(name, |(stem, _)| stem).to_owned();
    if !stem(&given).is_empty() && stem(&given) == stem(&known) {
        return Some(usize::from(given != known));
    }
    let distance = edit_distance(&given, &known);
    (distance <= (given.chars().count() / 3).clamp(1, 4)).then_some(distance)
}

async fn elsewhere(context: &RunContext, name: String) -> Vec<PathBuf> {
    // A walk of its own needs real paths. This is a hint only, and names in the same folder are found without it.
    let Some(tree) = context.services.workspace.local() else { return Vec::new() };
    let Ok(root) = context.services.workspace.files().real(context.services.workspace.root()).await else {
        return Vec::new();
    };
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    let flag = std::sync::Arc::clone(&stop);
    let base = root.clone();
    let closed = tree.closed().map(std::path::Path::to_owned);
    let looking = tokio::task::spawn_blocking(move || {
        let scope = Scope {
            hidden: true,
            case_insensitive_globs: true,
            excluded_folder: closed,
            ..Scope::new(&base, &base)
        };
        let query = NameQuery {
            glob: format!("**/{}", globset::escape(&name)),
            case_sensitive: false,
            most: NAMED,
            count_ignored: false,
            now: SystemTime::UNIX_EPOCH,
        };
        let found = find_files(&scope, &query, &flag).map(|found| found.files).unwrap_or_default();
        found.into_iter().map(|file| file.path).collect::<Vec<_>>()
    });
    let found = tokio::time::timeout(PATIENCE, looking).await;
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let found = found.ok().and_then(Result::ok).unwrap_or_default();
    // The workspace may have been named through a link.
    let here = |path: PathBuf| {
        path.strip_prefix(&root).map(|inside| context.services.workspace.root().join(inside)).unwrap_or(path)
    };
    found.into_iter().map(here).collect()
}

#[cfg(test)]
mod tests {
    use super::unlikeness;

    #[test]
    fn a_name_is_near_by_case_stem_or_a_few_letters() {
        for (given, known, expected) in [
            ("main.rs", "Main.rs", Some(0)),
            ("main.rs", "main.py", Some(1)),
            ("settigns.toml", "settings.toml", Some(2)),
            ("readme", "README.md", Some(1)),
            ("a.rs", "b.rs", Some(1)),
            ("a.rs", "zz.py", None),
            ("missing", "mark", None),
            (".env", ".git", None),
        ] {
            assert_eq!(unlikeness(given, known), expected, "{given} {known}");
        }
    }
}
