//! A place that a command or a call reads or writes, by every name it has, and what rules say of such a place.

use std::path::Path;

use crate::gate::{Gate, normal};
use crate::guard::simple;
use crate::patterns::Wanted;
use crate::reading::{Depth, Region};

/// Something that a command may read or write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Touch {
    /// As a person reads it.
    pub(crate) shown: String,
    pub(crate) what: What,
    /// Whether the word surely is a path; else it may be one.
    pub(crate) sure: bool,
    /// Whether it is read, or may be; else it is only written, deleted or changed in its mode.
    pub(crate) reads: bool,
    /// Whether only names are shown, and nothing that is in a file.
    pub(crate) names_only: bool,
    /// Whether only what git knows of it is shown.
    pub(crate) by_git: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// Absolute paths, spelled and real, without `.` and `..`. Where the folder is not known, as it is spelled.
    Path { names: Vec<String>, depth: Depth },
    /// Absolute patterns of bash.
    Pattern { names: Vec<String>, depth: Depth },
    /// Which file it is shows only when the line runs.
    Unknown,
}

pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl Touch {
    /// A path as it is spelled.
    pub(crate) fn spelled(path: &str) -> Self {
        let what = What::Path { names: vec![path.to_owned()], depth: Depth::One };
        Self { shown: path.to_owned(), what, sure: true, reads: true, names_only: false, by_git: false }
    }

    /// An absolute path that a tool reads or writes.
    pub(crate) fn of_path(gate: &Gate, path: &str, depth: Depth) -> Self {
        let mut names = vec![text(&normal(Path::new(path)))];
        names.extend(gate.disk.get().map(|disk| text(&disk.real(Path::new(path)))));
        names.dedup();
        Self {
            shown: path.to_owned(),
            what: What::Path { names, depth },
            sure: true,
            reads: true,
            names_only: false,
            by_git: false,
        }
    }

    /// Whether a rule that asks or denies means this, or something in it.
    pub(crate) fn meets(&self, wanted: &Wanted, gate: Option<&Gate>) -> bool {
        let disk = gate.and_then(|gate| gate.disk.get());
        let named = |path: &Path| {
            wanted.names(&text(path)) || disk.is_some_and(|disk| wanted.names(&text(&disk.real(path))))
        };
        let beneath = |folder: &str, depth: Depth| {
            depth == Depth::All
                && !self.names_only
                && wanted.meets(&format!("{}/**", folder.trim_end_matches('/')))
                && disk.is_none_or(|disk| {
                    let known = |path: &Path| !self.by_git || disk.is_tracked(path);
                    disk.holds(Path::new(folder), &mut |path| wanted.names(&text(path)) && known(path))
                })
        };
        match &self.what {
            What::Unknown => self.sure && !self.names_only,
            What::Path { names, depth } => {
                names.iter().any(|name| wanted.names(name) || beneath(name, *depth))
            }
            What::Pattern { names, depth } => names.iter().any(|name| {
                // A quoted pattern is a name.
                wanted.names(name)
                    || match disk.and_then(|disk| disk.expand(name)) {
                        Some(found) => found.iter().any(|path| named(path) || beneath(&text(path), *depth)),
                        None => {
                            let spelled = simple(name);
                            wanted.meets(&spelled)
                                || (*depth == Depth::All && wanted.meets(&format!("{spelled}/**")))
                        }
                    }
            }),
        }
    }

    /// Whether a rule that allows means this by every name, and all that is in it.
    pub(crate) fn within(&self, wanted: &Wanted, gate: &Gate) -> bool {
        let real = |name: &String| {
            let found = gate.disk.get().and_then(|disk| disk.expand(name)).unwrap_or_default();
            found.iter().all(|path| gate.disk.get().is_none_or(|disk| wanted.names(&text(&disk.real(path)))))
        };
        match &self.what {
            What::Unknown => false,
            What::Path { names, .. } => names.iter().all(|name| wanted.names(name)),
            What::Pattern { names, .. } => names.iter().all(|name| wanted.names(name) && real(name)),
        }
    }

    /// Every place it may be, with the class of each.
    pub(crate) fn regions(&self, gate: &Gate) -> Vec<(Region, Vec<String>)> {
        let one = |name: &String, depth: Depth| (gate.region(Path::new(name), depth), vec![name.clone()]);
        match &self.what {
            What::Unknown => vec![(Region::Elsewhere, Vec::new())],
            What::Path { names, depth } => names.iter().map(|name| one(name, *depth)).collect(),
            What::Pattern { names, depth } => {
                let mut all = Vec::new();
                for name in names {
                    let found = gate.disk.get().and_then(|disk| {
                        let found = disk.expand(name)?;
                        Some(
                            found
                                .iter()
                                .flat_map(|path| [text(path), text(&disk.real(path))])
                                .collect::<Vec<_>>(),
                        )
                    });
                    match found {
                        Some(found) if !found.is_empty() => {
                            all.extend(found.iter().map(|name| one(name, *depth)))
                        }
                        // By the part that is no pattern, and all that could be in it.
                        Some(_) | None => all.push(one(&fixed(name), Depth::All)),
                    }
                }
                all
            }
        }
    }
}

/// The folder before the first part that is a pattern.
pub(crate) fn fixed(pattern: &str) -> String {
    let at = pattern.find(['*', '?', '[']).unwrap_or(pattern.len());
    let before = pattern.get(..at).unwrap_or_default();
    let end = if at == pattern.len() { at } else { before.rfind('/').unwrap_or(0) };
    let folder = pattern.get(..end).unwrap_or_default();
    if folder.is_empty() { "/".to_owned() } else { folder.to_owned() }
}
