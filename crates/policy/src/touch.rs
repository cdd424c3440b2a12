//! A place that a command or a call reads or writes, by every name it has, and the rules that mean such a place.

use std::path::{Path, PathBuf};

use crate::disk::Disk;
use crate::gate::{Gate, normal};
use crate::git::Extent;
use crate::patterns::{PathPatterns, glob, in_any_case};
use crate::places::{behind_own_folder, leads_through_process, outside_proc};
use crate::reading::{Depth, Region};
use crate::sets::simplified;

/// Something that a command may read or write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Touch {
    /// As people read it.
    pub(crate) shown: String,
    pub(crate) target: TouchTarget,
    /// True if the word surely is a path; otherwise it may be one.
    pub(crate) sure: bool,
    /// True if it is read, or may be; otherwise it is only written, deleted or changed in its mode.
    pub(crate) reads: bool,
    /// True if only names are shown, and nothing of a file's content.
    pub(crate) names_only: bool,
    /// True if it counts for rules about paths alone: a program may or may not go through such a folder.
    pub(crate) for_rules: bool,
    /// The files of a folder that are meant.
    pub(crate) extent: Extent,
    /// Files and folders in it that are excluded.
    pub(crate) except: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TouchTarget {
    /// Absolute paths, spelled and real, without `.` and `..`. Where the folder is not known, as it is spelled.
    Path { names: Vec<String>, depth: Depth },
    /// Absolute patterns of bash.
    Pattern { names: Vec<String>, depth: Depth },
    /// A file in a folder, at any depth, whose path ends so; it may be a pattern. The extent says which files are
    /// meant.
    Ending { folder: String, path: String },
    /// A file that is known only when the line runs.
    Unknown,
}

pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Tells whether a path is a command's own input or output. The link at that path leads to the file that this process
/// has there, which is not the one that the command will have.
pub(crate) fn is_own_stream(path: &str) -> bool {
    let streams = ["/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/0", "/dev/fd/1", "/dev/fd/2"];
    streams.contains(&path)
}

impl Touch {
    /// An unknown file that a word may name.
    pub(crate) fn unknown(shown: &str, reads: bool) -> Self {
        Self {
            shown: shown.to_owned(),
            target: TouchTarget::Unknown,
            sure: true,
            reads,
            names_only: false,
            for_rules: false,
            extent: Extent::Every,
            except: Vec::new(),
        }
    }

    /// A path as it is spelled.
    pub(crate) fn spelled(path: &str) -> Self {
        let what = TouchTarget::Path { names: vec![path.to_owned()], depth: Depth::One };
        Self {
            shown: path.to_owned(),
            target: what,
            sure: true,
            reads: true,
            names_only: false,
            for_rules: false,
            extent: Extent::Every,
            except: Vec::new(),
        }
    }

    /// An absolute path that a tool reads or writes.
    pub(crate) fn of_path(gate: &Gate, path: &str, depth: Depth) -> Self {
        let mut names = vec![text(&normal(Path::new(path)))];
        let disk = gate.disk.get().filter(|_| !is_own_stream(path));
        // A link of the process itself is the place it leads to, and not a place of its own.
        if outside_proc(path) != path && !leads_through_process(path) {
            names.clear();
            let root = text(&gate.root);
            let meant = behind_own_folder(path).map(|rest| format!("{root}/{rest}"));
            let meant = meant.unwrap_or_else(|| outside_proc(path));
            names.extend(disk.is_none().then(|| text(&normal(Path::new(&meant)))));
        }
        names.extend(disk.map(|disk| text(&disk.real(Path::new(path)))));
        names.dedup();
        Self {
            shown: path.to_owned(),
            target: TouchTarget::Path { names, depth },
            sure: true,
            reads: true,
            names_only: false,
            for_rules: false,
            extent: Extent::Every,
            except: Vec::new(),
        }
    }

    /// Tells whether a rule that asks or denies means this place, or something in it.
    pub(crate) fn meets(&self, wanted: &PathPatterns, gate: Option<&Gate>) -> bool {
        let disk = gate.and_then(|gate| gate.disk.get());
        // By another name of the same file.
        let linked = |path: &Path| !self.names_only && gate.is_some_and(|gate| wanted.is_linked(path, gate));
        let named = |path: &Path| {
            wanted.names(&text(path))
                || disk.is_some_and(|disk| wanted.names(&text(&disk.real(path))))
                || linked(path)
        };
        let beneath = |folder: &str, depth: Depth| {
            depth == Depth::All
                && !self.names_only
                && (wanted.overlaps(&format!("{}/**", folder.trim_end_matches('/')))
                    || gate.is_some_and(|gate| disk.is_some() && wanted.has_links(gate)))
                && disk.is_none_or(|disk| {
                    let known = |path: &Path| match self.extent {
                        Extent::Every | Extent::Worktree => true,
                        Extent::Tracked => disk.is_tracked(path),
                        Extent::Taken => disk.is_tracked(path) || !disk.is_ignored_by_git(path),
                        Extent::Loose => !disk.is_tracked(path),
                        Extent::Untracked => !disk.is_tracked(path) && !disk.is_ignored_by_git(path),
                    };
                    let has_links = gate.is_some_and(|gate| wanted.has_links(gate));
                    let meant = |path: &Path| wanted.names(&text(path)) || (has_links && linked(path));
                    let left_out = |path: &Path| self.except.iter().any(|except| path.starts_with(except));
                    disk.holds_any(Path::new(folder), &mut |path| {
                        meant(path) && known(path) && !left_out(path)
                    })
                })
        };
        match &self.target {
            TouchTarget::Unknown => self.sure && !self.names_only,
            TouchTarget::Ending { folder, path } => match disk {
                Some(disk) => disk.holds_any(Path::new(folder), &mut |found| {
                    let meant = self.extent == Extent::Every || disk.is_tracked(found);
                    ends(found, path) && wanted.names(&text(found)) && meant
                }),
                None => wanted.overlaps(&format!("{folder}/**/{path}")),
            },
            TouchTarget::Path { names, depth } => {
                let one = |name: &String| wanted.names(name) || linked(Path::new(name));
                names.iter().any(|name| one(name) || beneath(name, *depth))
            }
            TouchTarget::Pattern { names, depth } => names.iter().any(|name| {
                // A pattern in quotes is a name.
                wanted.names(name)
                    // With `globstar` it matches across folders.
                    || (name.contains("**") && beneath(&fixed_folder(name), Depth::All))
                    || match disk.and_then(|disk| expanded(disk, name)) {
                        Some(found) => found.iter().any(|path| named(path) || beneath(&text(path), *depth)),
                        None => {
                            let spelled = simplified(name);
                            wanted.overlaps(&spelled)
                                || (*depth == Depth::All && wanted.overlaps(&format!("{spelled}/**")))
                        }
                    }
            }),
        }
    }

    /// Tells whether a rule that allows means this place by every name, and all that is in it.
    pub(crate) fn is_covered_by(&self, wanted: &PathPatterns, gate: &Gate) -> bool {
        let real = |name: &String| {
            let found = gate.disk.get().and_then(|disk| disk.expand(name)).unwrap_or_default();
            found.iter().all(|path| gate.disk.get().is_none_or(|disk| wanted.names(&text(&disk.real(path)))))
        };
        match &self.target {
            TouchTarget::Unknown | TouchTarget::Ending { .. } => false,
            TouchTarget::Path { names, .. } => names.iter().all(|name| wanted.names(name)),
            TouchTarget::Pattern { names, .. } => names.iter().all(|name| wanted.names(name) && real(name)),
        }
    }

    /// Every place it may be, with the class of each.
    pub(crate) fn regions(&self, gate: &Gate) -> Vec<(Region, Vec<String>)> {
        let one = |name: &String, depth: Depth| (gate.region(Path::new(name), depth), vec![name.clone()]);
        match &self.target {
            _ if self.for_rules => Vec::new(),
            TouchTarget::Unknown => vec![(Region::Elsewhere, Vec::new())],
            TouchTarget::Ending { .. } => Vec::new(),
            TouchTarget::Path { names, depth } => {
                // Keys beneath a folder are not git's, unless git is told to take everything.
                let depth = if self.extent == Extent::Every { *depth } else { Depth::One };
                names.iter().map(|name| one(name, depth)).collect()
            }
            TouchTarget::Pattern { names, depth } => {
                let mut all = Vec::new();
                for name in names {
                    // `../a`, which `.?/a` may mean. A path that may lead anywhere may lead to everything.
                    if !name.contains(['*', '?', '[']) {
                        all.push(one(name, if name == "/" { Depth::All } else { *depth }));
                        continue;
                    }
                    let found = gate.disk.get().and_then(|disk| {
                        let found = match gate.switched.hidden_names {
                            true => disk.expand_with_hidden(name)?,
                            false => disk.expand(name)?,
                        };
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
                        // The part before the pattern, and all that could be in it.
                        Some(_) | None => all.push(one(&fixed_folder(name), Depth::All)),
                    }
                }
                all
            }
        }
    }
}

/// Tells whether the last parts of a path are these, which may be patterns.
fn ends(found: &Path, path: &str) -> bool {
    let wanted: Vec<&str> = path.split('/').collect();
    let parts: Vec<String> = found.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let last = parts.len().checked_sub(wanted.len()).and_then(|from| parts.get(from..));
    last.is_some_and(|last| last.iter().zip(&wanted).all(|(part, wanted)| glob(&simplified(wanted), part)))
}

/// The files that a pattern matches now, in letters of any case, hidden ones among them: with `dotglob`, which an
/// earlier line may have switched on, `*v` means `.env`.
fn expanded(disk: &dyn Disk, pattern: &str) -> Option<Vec<PathBuf>> {
    let mut found = disk.expand_with_hidden(pattern)?;
    found.extend(disk.expand_with_hidden(&in_any_case(pattern))?);
    found.sort();
    found.dedup();
    Some(found)
}

/// The folder before the first part that is a pattern.
pub(crate) fn fixed_folder(pattern: &str) -> String {
    let at = pattern.find(['*', '?', '[']).unwrap_or(pattern.len());
    let before = pattern.get(..at).unwrap_or_default();
    let end = if at == pattern.len() { at } else { before.rfind('/').unwrap_or(0) };
    let folder = pattern.get(..end).unwrap_or_default();
    if folder.is_empty() { "/".to_owned() } else { folder.to_owned() }
}
