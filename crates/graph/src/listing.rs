//! Questions that need no resolution: names, outlines, imports.

use crate::facts::{Kind, NONE};
use crate::hash::{QuickMap, QuickSet};
use crate::query::{Answer, Item, Query, is_test_path};
use crate::select::{files_ending, select};
use crate::snapshot::Symbol;

impl Query<'_> {
    /// Definitions whose name is, starts with, or holds the text; then those with all its words.
    pub fn find(&self, text: &str, limit: usize) -> Answer {
        let lower = text.trim().to_lowercase();
        let last = lower.rsplit(['.', ':']).next().unwrap_or(&lower).to_owned();
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1).collect();
        let mut scored: Vec<(u32, Symbol)> = Vec::new();
        let exact: QuickSet<Symbol> = select(self.snapshot, text).into_iter().collect();
        let mut names: QuickMap<&str, u32> = QuickMap::default();
        if !last.is_empty() {
            for (name, symbol) in self.snapshot.names_holding(&last) {
                let score = if name == last { 1 } else { 3 - u32::from(name.starts_with(&last)) };
                names.insert(self.snapshot.name(symbol), score);
            }
        }
        if let Some(longest) = words.iter().max_by_key(|word| word.len()).filter(|longest| **longest != last)
        {
            for (name, symbol) in self.snapshot.names_holding(longest) {
                if words.iter().all(|word| name.contains(word)) {
                    names.entry(self.snapshot.name(symbol)).or_insert(4);
                }
            }
        }
        for (symbol, score) in exact.iter().map(|symbol| (*symbol, 0)).chain(
            names.iter().flat_map(|(name, score)| self.snapshot.named(name).map(|symbol| (symbol, *score))),
        ) {
            if score > 0 && exact.contains(&symbol) {
                continue;
            }
            let def = self.snapshot.def(symbol);
            let minor = matches!(def.kind, Kind::Field | Kind::Variable | Kind::Variant | Kind::Test) as u32;
            let test = is_test_path(self.snapshot.path(symbol.file)) as u32;
            scored.push((score * 4 + minor * 2 + test, symbol));
        }
        scored.sort_by_key(|(score, symbol)| (*score, self.snapshot.name(*symbol).len(), *symbol));
        let left_out = scored.len().saturating_sub(limit);
        scored.truncate(limit);
        Answer {
            title: format!("{} definitions like {text}", scored.len() + left_out),
            items: scored.into_iter().map(|(_, symbol)| self.item(symbol)).collect(),
            left_out,
            notes: Vec::new(),
        }
    }

    /// What a file imports, and who imports it.
    pub fn imports(&self, of: &str) -> Answer {
        let files = files_ending(self.snapshot, of);
        let Some(&file) = files.first() else {
            return Answer { title: format!("no file {of}"), ..Answer::default() };
        };
        let modules = crate::modules::Modules::of(self.snapshot);
        let mut answer = Answer::default();
        let mut outside = Vec::new();
        let facts = self.snapshot.facts(file);
        let mut seen = QuickSet::default();
        for import in &facts.imports {
            let module = facts.str(import.module);
            let mut found = modules.files(self.snapshot, file, module);
            let name = facts.str(import.name);
            if !name.is_empty() && name != "*" {
                let dot = if module.ends_with('.') { "" } else { "." };
                let below = modules.files(self.snapshot, file, &format!("{module}{dot}{name}"));
                if !below.is_empty() && below != found {
                    found = below;
                }
            }
            if found.is_empty() && !module.is_empty() {
                outside.push(module.to_owned());
            }
            for target in found.into_iter().filter(|target| *target != file) {
                if seen.insert(target) {
                    answer.items.push(Item { used: Some("imports"), ..self.file_item(target, 1) });
                }
            }
        }
        let inner = answer.items.len();
        for other in 0..self.snapshot.files.len() as u32 {
            let theirs = self.snapshot.facts(other);
            if other == file || self.snapshot.family(other) != self.snapshot.family(file) {
                continue;
            }
            let hit = theirs.imports.iter().find(|import| {
                let module = theirs.str(import.module);
                if modules.files(self.snapshot, other, module).contains(&file) {
                    return true;
                }
                let dot = if module.ends_with('.') { "" } else { "." };
                let below = format!("{module}{dot}{}", theirs.str(import.name));
                modules.files(self.snapshot, other, &below).contains(&file)
            });
            if let Some(import) = hit {
                answer.items.push(Item { used: Some("imported by"), ..self.file_item(other, import.line) });
            }
        }
        outside.sort();
        outside.dedup();
        if !outside.is_empty() {
            answer.notes.push(format!("from elsewhere: {}", outside.join(", ")));
        }
        answer.title = format!(
            "{} imports {inner} files and is imported by {}",
            self.snapshot.path(file),
            answer.items.len() - inner
        );
        answer
    }

    pub fn outline(&self, of: &str) -> Answer {
        let files = files_ending(self.snapshot, of);
        let Some(&file) = files.first() else {
            return Answer { title: format!("no file {of}"), ..Answer::default() };
        };
        let facts = self.snapshot.facts(file);
        let mut items = Vec::new();
        for def in 0..facts.defs.len() as u32 {
            let mut depth = 0;
            let mut at = facts.defs[def as usize].parent;
            while at != NONE && depth < 16 {
                depth += 1;
                at = facts.def(at).map_or(NONE, |around| around.parent);
            }
            items.push(Item { depth, ..self.item(Symbol { file, def }) });
        }
        let mut notes = Vec::new();
        if facts.gap != crate::facts::Gap::None {
            notes.push(format!("this file {}", facts.gap.words()));
        }
        Answer {
            title: format!(
                "{}: {} lines, {} definitions",
                self.snapshot.path(file),
                facts.lines,
                items.len()
            ),
            items,
            left_out: 0,
            notes,
        }
    }
}
