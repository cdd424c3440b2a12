//! Files that git reads and writes: those that its words name in commits, and those that no word names.

use std::path::{Path, PathBuf};

use crate::gate::normal;
use crate::git::{self, Extent, GitFiles};
use crate::git_objects::{InObject, in_object};
use crate::git_option::may_be_option;
use crate::git_paths::{Exclusion, exclusions};
use crate::git_writes;
use crate::places::parts;
use crate::reach::{FOLDERS, TouchFinder};
use crate::reading::Depth;
use crate::touch::{Touch, TouchTarget, text};

/// Folders in a `.git` that hold the content of files.
const CONTENT: [&str; 4] = ["objects", "lfs", "modules", "worktrees"];

impl TouchFinder<'_> {
    /// Adds the files that git reads and writes besides those that its words name, and files of commits.
    pub(crate) fn add_git_touches(&self, words: &[&str], touches: &mut Vec<Touch>) {
        let exclusions = exclusions(words);
        let is_excluded = |word: &str| exclusions.iter().any(|(at, _)| words.get(*at) == Some(&word));
        let objects = words.iter().filter(|word| !is_excluded(word) && !git::is_about_object(words));
        for word in objects {
            match in_object(word) {
                Some(InObject::Top(path)) => self.add_commit_file(path, touches),
                Some(InObject::Anywhere(path)) => {
                    self.add_commit_file(path, touches);
                    self.add_file_anywhere(path, touches);
                }
                None => {}
            }
        }
        // `--full-diff` shows whole commits whatever the paths are.
        let is_full = words.iter().any(|word| may_be_option(word, &["--full-diff"]));
        let read = git::files_read(words).map(|read| match is_full {
            true => GitFiles { paths: Vec::new(), ..read },
            false => read,
        });
        for (files, reads) in [(read, true), (git_writes::files_written(words), false)] {
            let Some(files) = files else { continue };
            let (out, paths): (Vec<&str>, Vec<&str>) =
                self.plain_paths(files.paths).into_iter().partition(|path| is_excluded(path));
            let from = touches.len();
            self.add_git_files(&GitFiles { paths, ..files }, reads, touches);
            // An exclusion that is not among the paths excludes nothing.
            let counted =
                exclusions.iter().filter(|(at, _)| words.get(*at).is_some_and(|word| out.contains(word)));
            let except: Vec<PathBuf> = counted.filter_map(|(_, one)| self.excluded(one)).collect();
            touches.iter_mut().skip(from).for_each(|touch| touch.except.clone_from(&except));
        }
    }

    /// The place that an exclusion excludes, where it is one and the same in every folder that git may run in.
    fn excluded(&self, exclusion: &Exclusion<'_>) -> Option<PathBuf> {
        // Variables of git's own may lead to another work tree.
        let disk = self.gate.disk.get().filter(|_| !self.line.contains("GIT_"))?;
        let place = |folder: &String| {
            let folder = PathBuf::from(folder);
            let from = if exclusion.is_from_top { disk.repository(&folder)? } else { folder };
            from.is_absolute().then(|| normal(&from.join(exclusion.path)))
        };
        let mut places = self.from.iter().map(place);
        let first = places.next()??;
        places.all(|place| place.as_ref() == Some(&first)).then_some(first)
    }

    /// The paths, where they mean the files of their names: an option and a variable make git ignore case, or take
    /// each path for a pattern. An empty list stands for the whole repository.
    fn plain_paths<'w>(&self, paths: Vec<&'w str>) -> Vec<&'w str> {
        let is_plain = !self.line.to_ascii_lowercase().contains("pathspecs");
        if is_plain { paths } else { Vec::new() }
    }

    /// Adds a file of a commit, which is named from the top of the repository, wherever that is.
    fn add_commit_file(&self, path: &str, touches: &mut Vec<Touch>) {
        let above = self.from.iter().flat_map(|folder| Path::new(folder).ancestors());
        let mut above: Vec<String> = above.take(FOLDERS).map(text).collect();
        // A pattern is for files of the repository only.
        if git::is_wide(path) {
            above.retain(|folder| Path::new(folder).starts_with(&self.gate.root));
            above.push(text(&self.gate.root));
        }
        TouchFinder { from: &above, ..*self }.add_possible(touches, path);
    }

    /// Adds a file of an unknown folder: any path of the repository that ends so.
    fn add_file_anywhere(&self, path: &str, touches: &mut Vec<Touch>) {
        let path: Vec<&str> = parts(path).into_iter().filter(|part| *part != "..").collect();
        let path = path.join("/");
        for folder in std::iter::once(text(&self.gate.root)).chain(self.tops_elsewhere()) {
            let what = TouchTarget::Ending { folder, path: path.clone() };
            touches.push(Touch {
                shown: path.clone(),
                target: what,
                sure: false,
                reads: true,
                names_only: false,
                for_rules: false,
                extent: Extent::Tracked,
                except: Vec::new(),
            });
        }
    }

    /// The top folders of repositories that do not lie in the workspace: one may begin above it, or be another one.
    fn tops_elsewhere(&self) -> Vec<String> {
        let top = |folder: &String| {
            let real = self.gate.disk.get()?.repository(Path::new(folder))?;
            (!real.starts_with(&self.gate.root)).then(|| text(&real))
        };
        let mut tops: Vec<String> = self.from.iter().filter_map(top).collect();
        tops.dedup();
        tops
    }

    fn add_git_files(&self, files: &GitFiles<'_>, reads: bool, touches: &mut Vec<Touch>) {
        let before = touches.len();
        if files.paths.is_empty() || files.paths.iter().any(|path| git::is_wide(path)) {
            self.add(touches, &self.gate.root.display().to_string(), Depth::All, reads);
            let from = touches.len();
            self.tops_elsewhere().iter().for_each(|folder| self.add(touches, folder, Depth::All, reads));
            touches.iter_mut().skip(from).for_each(|touch| touch.sure = false);
        }
        // A pattern stands for files of the repository, which were added as a whole.
        let plain = files.paths.iter().filter(|path| reads || !git::is_wide(path));
        plain.for_each(|path| self.add(touches, path, Depth::All, reads));
        touches.iter_mut().skip(before).for_each(|touch| touch.extent = files.extent);
    }

    /// Adds all files that git tracks, where a command reads the objects in which git keeps them.
    pub(crate) fn add_git_objects(&self, touches: &mut Vec<Touch>) {
        let holds = |name: &String, depth: Depth| {
            let parts = parts(name);
            let at = parts.iter().position(|part| *part == ".git");
            let within = at.and_then(|at| parts.get(at + 1..));
            within.is_some_and(|within| match within.first() {
                Some(first) => CONTENT.contains(first) || first.contains(['*', '?', '[']),
                None => depth == Depth::All,
            })
        };
        let reads = |touch: &Touch| match &touch.target {
            TouchTarget::Path { names, depth } | TouchTarget::Pattern { names, depth } => {
                touch.reads && names.iter().any(|name| holds(name, *depth))
            }
            TouchTarget::Ending { .. } | TouchTarget::Unknown => false,
        };
        if touches.iter().any(reads) {
            self.add_git_files(&GitFiles { extent: Extent::Tracked, paths: Vec::new() }, true, touches);
        }
    }
}
