//! The definitions that a diff removes, and their remaining users.
//!
//! The graph knows the present files. The old text of a file is reconstructed by reverting the diff, and read by the
//! same rules.

use crate::extract::{extract, language_of};
use crate::facts::{Def, DefKind, Facts, Gap, Import};
use crate::hash::QuickSet;
use crate::impact::path_in;
use crate::layout::read_regular;
use crate::query::{Hit, Query};
use crate::resolve::Confidence;
use crate::scan::GraphLimits;
use crate::select::files_ending;
use crate::snapshot::Symbol;

/// A removed definition.
pub(crate) struct RemovedDef {
    /// The file it was in.
    pub path: String,
    pub line: u32,
    /// `Outer.name`.
    pub symbol: String,
    name: String,
}

/// A part of a unified diff, as lines of both sides.
struct Hunk<'d> {
    old_start: usize,
    new_start: usize,
    old: Vec<&'d str>,
    new: Vec<&'d str>,
    /// The lines that were deleted, by their numbers in the old file.
    gone: Vec<u32>,
}

/// The hunks of each file, with its old path and its new path.
fn hunks(diff: &str) -> Vec<(String, String, Vec<Hunk<'_>>)> {
    let mut files: Vec<(String, String, Vec<Hunk<'_>>)> = Vec::new();
    let (mut old, mut left) = (String::new(), (0, 0));
    for text in diff.lines() {
        let in_hunk = left.0 > 0 || left.1 > 0;
        if let Some(path) = text.strip_prefix("--- ").filter(|_| !in_hunk) {
            old = path_in(path, "a/");
        } else if let Some(path) = text.strip_prefix("+++ ").filter(|_| !in_hunk) {
            files.push((old.clone(), path_in(path, "b/"), Vec::new()));
        } else if let Some(head) = text.strip_prefix("@@ ").filter(|_| !in_hunk) {
            let mut sides = head.split(' ').map(|side| {
                let (start, count) =
                    side.get(1..).unwrap_or("").split_once(',').unwrap_or((side.get(1..).unwrap_or(""), "1"));
                (start.parse::<usize>().unwrap_or(0), count.parse::<usize>().unwrap_or(0))
            });
            let (before, now) = (sides.next().unwrap_or_default(), sides.next().unwrap_or_default());
            left = (before.1, now.1);
            // A side without lines names the line before it.
            let first =
                |(start, count): (usize, usize)| if count == 0 { start } else { start.saturating_sub(1) };
            let hunk = Hunk {
                old_start: first(before),
                new_start: first(now),
                old: Vec::new(),
                new: Vec::new(),
                gone: Vec::new(),
            };
            if let Some((.., hunks)) = files.last_mut() {
                hunks.push(hunk);
            }
        } else if let Some(hunk) =
            files.last_mut().and_then(|(.., hunks)| hunks.last_mut()).filter(|_| in_hunk)
        {
            let rest = text.get(1..).unwrap_or("");
            match text.as_bytes().first() {
                Some(b'-') => {
                    hunk.gone.push((hunk.old_start + hunk.old.len() + 1) as u32);
                    hunk.old.push(rest);
                    left.0 = left.0.saturating_sub(1);
                }
                Some(b'+') => {
                    hunk.new.push(rest);
                    left.1 = left.1.saturating_sub(1);
                }
                Some(b' ') | None => {
                    hunk.old.push(rest);
                    hunk.new.push(rest);
                    left = (left.0.saturating_sub(1), left.1.saturating_sub(1));
                }
                Some(_) => {}
            }
        }
    }
    files
}

/// The text before a diff. None if the diff does not match this text.
fn text_before(now: &str, hunks: &[Hunk<'_>]) -> Option<String> {
    let mut lines: Vec<&str> = now.lines().collect();
    for hunk in hunks.iter().rev() {
        let range = hunk.new_start..hunk.new_start + hunk.new.len();
        if lines.get(range.clone())? != hunk.new {
            return None;
        }
        lines.splice(range, hunk.old.iter().copied());
    }
    let mut text = lines.join("\n");
    text.push('\n');
    Some(text)
}

/// The definitions of an old text in deleted lines that the present text does not have.
fn removed_defs(path: &str, old: &str, lines: &[u32], now: &Facts) -> Vec<RemovedDef> {
    let Some(language) = language_of(path, old) else { return Vec::new() };
    let was = extract(language, old);
    let there: QuickSet<String> = now.defs.iter().map(|def| now.path_of(def)).collect();
    // A member of a removed definition is covered by that definition.
    let with_more = |def: &Def| {
        was.def(def.parent)
            .is_some_and(|around| around.kind != DefKind::Module && !there.contains(&was.path_of(around)))
    };
    (was.defs.iter())
        .filter(|def| !matches!(def.kind, DefKind::Variable | DefKind::Impl | DefKind::Module))
        .filter(|def| !with_more(def))
        .filter(|def| lines.iter().any(|line| (def.start_line..=def.end_line).contains(line)))
        .map(|def| RemovedDef {
            path: path.to_owned(),
            line: def.line,
            symbol: was.path_of(def),
            name: was.name(def).to_owned(),
        })
        .filter(|removed| !there.contains(&removed.symbol))
        .collect()
}

impl Query<'_> {
    /// The definitions that a diff of the present files has removed.
    pub(crate) fn removed(&self, diff: &str) -> Vec<RemovedDef> {
        let mut removed = Vec::new();
        for (was, now, hunks) in hunks(diff) {
            let lines: Vec<u32> = hunks.iter().flat_map(|hunk| hunk.gone.iter().copied()).collect();
            if lines.is_empty() {
                continue;
            }
            let path = if now == "/dev/null" { &was } else { &now };
            match files_ending(self.snapshot, path).first() {
                Some(&file) => {
                    let path = self.snapshot.path(file);
                    let text =
                        read_regular(&self.snapshot.root.join(path), GraphLimits::default().file_bytes)
                            .unwrap_or_default();
                    let old = text_before(&String::from_utf8_lossy(&text), &hunks);
                    let old = old.unwrap_or_default();
                    removed.extend(removed_defs(path, &old, &lines, self.snapshot.facts(file)));
                }
                // The whole file is gone, and all of it is in the diff.
                None => {
                    let old: String = hunks
                        .iter()
                        .flat_map(|hunk| hunk.old.iter())
                        .map(|line| format!("{line}\n"))
                        .collect();
                    removed.extend(removed_defs(&was, &old, &lines, &Facts::empty(Gap::None)));
                }
            }
        }
        removed
    }

    /// The remaining users of removed definitions: uses of a name that now resolves to nothing, or to nothing in
    /// particular.
    pub(crate) fn remaining_users(&self, removed: &[RemovedDef]) -> Vec<Hit> {
        let mut hits: Vec<Hit> = Vec::new();
        let mut seen: QuickSet<(u32, u32)> = QuickSet::default();
        for file in 0..self.snapshot.files.len() as u32 {
            let facts = self.snapshot.facts(file);
            for one in removed {
                let Some(sym) = facts.sym(&one.name) else { continue };
                let stem = one.path.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or("");
                let module = |import: &Import| {
                    let module = facts.str(import.module);
                    module.rsplit(['.', '/', ':']).next().unwrap_or(module) == stem
                };
                let import = facts.imports.iter().find(|import| import.name == sym && module(import));
                let is_near = import.is_some()
                    || self.snapshot.path(file) == one.path
                    || facts.imports.iter().any(|import| module(import) || facts.str(import.name) == stem);
                let confidence = if is_near { Confidence::Likely } else { Confidence::NameOnly };
                let mut used = false;
                let alias = import.map(|import| import.alias).filter(|alias| *alias != sym);
                let sites = alias.into_iter().chain([sym]).flat_map(|sym| facts.sites_named(sym));
                for site in sites {
                    let (targets, sure) = self.resolver.site(file, site);
                    if !targets.is_empty() && sure != Confidence::NameOnly {
                        continue;
                    }
                    used = true;
                    if seen.insert((file, site.def)) {
                        hits.push(Hit {
                            line: Some(site.line),
                            confidence: Some(confidence),
                            distance: Some(1),
                            used: Some(site.used.name()),
                            ..Hit::of(Symbol { file, def: site.def })
                        });
                    }
                }
                // An import that is passed on, or never used.
                if let Some(import) = import.filter(|_| !used)
                    && seen.insert((file, import.def))
                {
                    hits.push(Hit {
                        line: Some(import.line),
                        confidence: Some(confidence),
                        distance: Some(1),
                        used: Some("import"),
                        ..Hit::of(Symbol { file, def: import.def })
                    });
                }
            }
        }
        hits
    }
}
