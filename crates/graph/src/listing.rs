//! Questions that need no resolution: names, outlines, imports.

use crate::facts::{DefKind, Facts, Import, NONE};
use crate::hash::{QuickMap, QuickSet};
use crate::query::{GraphReply, Hit, HitList, Query, is_test_path};
use crate::select::{files_ending, select};
use crate::snapshot::Symbol;

impl Query<'_> {
    /// Definitions whose name is, starts with, or contains the text; then those with all its words.
    pub(crate) fn find_hits(&self, text: &str, limit: usize) -> HitList {
        let lower = text.trim().to_lowercase();
        let last = lower.rsplit(['.', ':']).next().unwrap_or(&lower).to_owned();
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1).collect();
        let exact: QuickSet<Symbol> = select(self.snapshot, text).into_iter().collect();
        // The key is one definition with the name.
        let mut names: QuickMap<Symbol, u32> = QuickMap::default();
        if !last.is_empty() {
            for (name, symbol) in self.snapshot.names_containing(&last) {
                let score = if name == last { 1 } else { 3 - u32::from(name.starts_with(&last)) };
                names.insert(symbol, score);
            }
        }
        if let Some(longest) = words.iter().max_by_key(|word| word.len()).filter(|longest| **longest != last)
        {
            for (name, symbol) in self.snapshot.names_containing(longest) {
                if words.iter().all(|word| name.contains(word)) {
                    names.entry(symbol).or_insert(4);
                }
            }
        }
        let mut scored: Vec<(u32, usize, Symbol)> = Vec::new();
        let mut tests: QuickMap<u32, bool> = QuickMap::default();
        let mut put = |score: u32, length: usize, symbol: Symbol| {
            let kind = self.snapshot.brief(symbol).kind;
            let minor = u32::from(matches!(
                kind,
                DefKind::Field | DefKind::Variable | DefKind::Variant | DefKind::Test
            ));
            let test =
                tests.entry(symbol.file).or_insert_with(|| is_test_path(self.snapshot.path(symbol.file)));
            scored.push((score * 4 + minor * 2 + u32::from(*test), length, symbol));
        };
        exact.iter().for_each(|symbol| put(0, self.snapshot.name(*symbol).len(), *symbol));
        for (one, score) in names {
            let length = self.snapshot.name(one).len();
            for symbol in self.snapshot.same_named(one).into_iter().filter(|symbol| !exact.contains(symbol)) {
                put(score, length, symbol);
            }
        }
        let all = scored.len();
        if all > limit {
            scored.select_nth_unstable(limit);
            scored.truncate(limit);
        }
        scored.sort_unstable();
        HitList {
            title: format!("{all} definitions like {text}"),
            hits: scored.into_iter().map(|(.., symbol)| Hit::of(symbol)).collect(),
            left_out: all.saturating_sub(limit),
            notes: Vec::new(),
        }
    }

    pub fn find(&self, text: &str, limit: usize) -> GraphReply {
        self.reply(self.find_hits(text, limit))
    }

    /// The files that an import brings in.
    fn imported_files(&self, file: u32, facts: &Facts, import: &Import) -> Vec<u32> {
        let modules = crate::modules::Modules::of(self.snapshot);
        let (module, name) = (facts.str(import.module), facts.str(import.name));
        let mut found = modules.files(self.snapshot, file, module);
        if !name.is_empty() && name != "*" {
            let dot = if module.ends_with('.') { "" } else { "." };
            let below = modules.files(self.snapshot, file, &format!("{module}{dot}{name}"));
            if !below.is_empty() && below != found {
                found = below;
            }
        }
        found
    }

    /// The other files that a file imports in any way, each with the line of the first import.
    pub(crate) fn imports_of(&self, file: u32) -> Vec<(u32, u32)> {
        let modules = crate::modules::Modules::of(self.snapshot);
        let facts = self.snapshot.facts(file);
        let mut seen: QuickSet<u32> = [file].into_iter().collect();
        let mut all = Vec::new();
        for import in &facts.imports {
            let (module, name) = (facts.str(import.module), facts.str(import.name));
            let dot = if module.ends_with('.') { "" } else { "." };
            let below = modules.files(self.snapshot, file, &format!("{module}{dot}{name}"));
            for target in modules.files(self.snapshot, file, module).into_iter().chain(below) {
                if seen.insert(target) {
                    all.push((target, import.line));
                }
            }
        }
        all
    }

    /// The files that import a file, each with the line of the import.
    fn importers(&self, file: u32) -> Vec<(u32, u32)> {
        let look = |other: u32| {
            let hit = self.imports_of(other).into_iter().find(|(target, _)| *target == file);
            hit.map(|(_, line)| (other, line))
        };
        let Some(index) = self.snapshot.index() else {
            return (0..self.snapshot.files.len() as u32)
                .filter(|other| self.snapshot.family(*other) == self.snapshot.family(file))
                .filter_map(look)
                .collect();
        };
        let changed = self.snapshot.changed();
        let mut all: Vec<(u32, u32)> =
            index.imported(file).filter(|(other, _)| changed.binary_search(other).is_err()).collect();
        all.extend(changed.iter().filter_map(|other| look(*other)));
        all.sort_unstable();
        all
    }

    /// The file that a path means, with a note if other paths end like it. The error is an answer that says that
    /// there is none.
    fn one_file(&self, of: &str) -> Result<(u32, Vec<String>), HitList> {
        let files = files_ending(self.snapshot, of);
        let Some((&file, others)) = files.split_first() else {
            let there = self.snapshot.root.join(of).is_file();
            let why =
                if there { "is in no language the graph knows, or left out" } else { "is no file here" };
            return Err(HitList { title: format!("no file {of}: it {why}"), ..HitList::default() });
        };
        let named: Vec<&str> = others.iter().take(5).map(|file| self.snapshot.path(*file)).collect();
        let more = if others.len() > 5 { format!(" and {} more", others.len() - 5) } else { String::new() };
        let words = (!others.is_empty()).then(|| format!("it may also be {}{more}", named.join(", ")));
        Ok((file, words.into_iter().collect()))
    }

    pub(crate) fn imports_hits(&self, of: &str) -> HitList {
        let (file, others) = match self.one_file(of) {
            Ok(found) => found,
            Err(none) => return none,
        };
        let mut answer = HitList { notes: others, ..HitList::default() };
        let mut outside = Vec::new();
        let facts = self.snapshot.facts(file);
        let mut seen = QuickSet::default();
        let hit = |file: u32, line: u32, used: &'static str| Hit {
            line: Some(line),
            used: Some(used),
            ..Hit::of(Symbol { file, def: NONE })
        };
        for import in &facts.imports {
            let found = self.imported_files(file, facts, import);
            let module = facts.str(import.module);
            if found.is_empty() && !module.is_empty() {
                outside.push(module.to_owned());
            }
            for target in found.into_iter().filter(|target| *target != file) {
                if seen.insert(target) {
                    answer.hits.push(hit(target, 1, "imports"));
                }
            }
        }
        let inner = answer.hits.len();
        let importers = self.importers(file);
        answer.hits.extend(importers.iter().map(|(other, line)| hit(*other, *line, "imported by")));
        outside.sort();
        outside.dedup();
        if !outside.is_empty() {
            answer.notes.push(format!("from elsewhere: {}", outside.join(", ")));
        }
        answer.title = format!(
            "{} imports {inner} files and is imported by {}",
            self.snapshot.path(file),
            importers.len()
        );
        answer
    }

    pub fn imports(&self, of: &str) -> GraphReply {
        self.reply(self.imports_hits(of))
    }

    pub(crate) fn outline_hits(&self, of: &str) -> HitList {
        let (file, mut notes) = match self.one_file(of) {
            Ok(found) => found,
            Err(none) => return none,
        };
        let facts = self.snapshot.facts(file);
        let mut hits = Vec::new();
        for def in 0..facts.defs.len() as u32 {
            let mut depth = 0;
            let mut at = facts.defs[def as usize].parent;
            while at != NONE && depth < 16 {
                depth += 1;
                at = facts.def(at).map_or(NONE, |around| around.parent);
            }
            hits.push(Hit { depth, ..Hit::of(Symbol { file, def }) });
        }
        if facts.gap != crate::facts::Gap::None {
            notes.push(format!("this file {}", facts.gap.description()));
        }
        let title =
            format!("{}: {} lines, {} definitions", self.snapshot.path(file), facts.lines, hits.len());
        HitList { title, hits, left_out: 0, notes }
    }

    pub fn outline(&self, of: &str) -> GraphReply {
        self.reply(self.outline_hits(of))
    }
}
