//! The map between host paths and the paths of processes inside a workspace.
//!
//! It is reversible: a path that is mapped inside maps back to itself. A path that would map back to another one,
//! because a deeper row hides it, has no counterpart, and neither has one with `..`, which only the other side can
//! follow.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A folder that both sides see.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shared {
    host: PathBuf,
    inside: PathBuf,
}

/// The map from host paths to paths inside. By default both sides have the same paths.
#[derive(Debug, Clone, Default)]
pub struct PathMap(Option<Arc<[Shared]>>);

impl PathMap {
    /// A map of folders: each by its host path and its path inside. A path in none of them exists on one side only.
    pub fn of(folders: impl IntoIterator<Item = (PathBuf, PathBuf)>) -> Self {
        Self(Some(folders.into_iter().map(|(host, inside)| Shared { host, inside }).collect()))
    }

    /// The path inside for a host path.
    pub fn inside(&self, host: &Path) -> Option<PathBuf> {
        let Some(folders) = &self.0 else { return Some(host.to_owned()) };
        let mut named: Vec<&Shared> =
            folders.iter().filter(|shared| host.starts_with(&shared.host)).collect();
        // The nearest folder is the most specific.
        named.sort_by_key(|shared| std::cmp::Reverse(shared.host.components().count()));
        let mut found = named.into_iter().filter_map(|shared| moved(host, &shared.host, &shared.inside));
        found.find(|inside| self.host(inside).as_deref() == Some(host))
    }

    /// The host path of a path inside.
    pub fn host(&self, inside: &Path) -> Option<PathBuf> {
        let Some(folders) = &self.0 else { return Some(inside.to_owned()) };
        let named = folders.iter().filter(|shared| inside.starts_with(&shared.inside));
        let nearest = named.max_by_key(|shared| shared.inside.components().count())?;
        moved(inside, &nearest.inside, &nearest.host)
    }
}

/// A path below one folder as the path below another.
fn moved(path: &Path, from: &Path, to: &Path) -> Option<PathBuf> {
    let below = path.strip_prefix(from).ok()?;
    let is_plain = below.components().all(|part| matches!(part, Component::Normal(_)));
    // Joining an empty path would add a trailing slash.
    is_plain.then(|| if below.as_os_str().is_empty() { to.to_owned() } else { to.join(below) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_crosses_in_both_directions_or_not_at_all() {
        let map = PathMap::of([
            ("/home/a/work".into(), "/workspace".into()),
            ("/cache/npm".into(), "/workspace/.cache".into()),
            ("/home/a/work/shared".into(), "/shared".into()),
        ]);
        for (host, inside) in [
            (Some("/home/a/work"), Some("/workspace")),
            (Some("/home/a/work/src/x.rs"), Some("/workspace/src/x.rs")),
            (Some("/cache/npm/y"), Some("/workspace/.cache/y")),
            (Some("/home/a/work/shared/z"), Some("/shared/z")),
            // Inside, another folder hides it.
            (Some("/home/a/work/.cache/y"), None),
            (Some("/home/a/worker"), None),
            (Some("/home/a/work/../secret"), None),
            (Some("/etc/passwd"), None),
            (None, Some("/etc/passwd")),
            (None, Some("/workspace/../etc")),
        ] {
            if let Some(host) = host {
                assert_eq!(map.inside(host.as_ref()), inside.map(PathBuf::from), "{host}");
            }
            if let Some(inside) = inside {
                assert_eq!(map.host(inside.as_ref()), host.map(PathBuf::from), "{inside}");
            }
        }
    }

    #[test]
    fn a_folder_that_is_seen_twice_inside_has_one_path_back() {
        let map = PathMap::of([("/a".into(), "/x".into()), ("/a".into(), "/y".into())]);
        assert_eq!(map.host("/y/f".as_ref()), Some("/a/f".into()));
        let inside = map.inside("/a/f".as_ref()).unwrap();
        assert_eq!(map.host(&inside), Some("/a/f".into()));
    }

    #[test]
    fn the_same_paths_are_left_as_they_are() {
        let map = PathMap::default();
        for path in ["/a/b", "relative", "/a/../b", ""] {
            assert_eq!(map.inside(path.as_ref()), Some(path.into()), "{path}");
            assert_eq!(map.host(path.as_ref()), Some(path.into()), "{path}");
        }
    }
}
