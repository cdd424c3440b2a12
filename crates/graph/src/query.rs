//! Questions about a snapshot, answered as data. The words for a model are in [`crate::words`].

use serde::Serialize;

use crate::facts::{Kind, Site, Use, def_flag};
use crate::hash::{QuickMap, QuickSet};
use crate::resolve::{Confidence, Resolver};
use crate::select::{caller, select};
use crate::snapshot::{Snapshot, Symbol};

/// One line of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// `Outer.name`, or the path for a file.
    pub symbol: String,
    pub kind: &'static str,
    pub signature: String,
    pub path: String,
    pub line: u32,
    pub end_line: u32,
    /// The line of source there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Steps from what was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<&'static str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub doc: String,
    #[serde(skip)]
    pub file: u32,
    #[serde(skip)]
    pub depth: u32,
    #[serde(skip)]
    pub at: Option<Symbol>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Answer {
    pub title: String,
    pub items: Vec<Item>,
    /// Items that a limit kept out.
    pub left_out: usize,
    pub notes: Vec<String>,
}

/// A use of a definition.
#[derive(Debug, Clone, Copy)]
pub struct Reference {
    pub file: u32,
    pub line: u32,
    pub def: u32,
    pub used: Use,
    pub target: Symbol,
    pub confidence: Confidence,
}

pub struct Query<'s> {
    pub snapshot: &'s Snapshot,
    pub resolver: Resolver<'s>,
}

/// Whether a path is of a test by its name.
pub fn is_test_path(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let in_folder = path
        .split('/')
        .rev()
        .skip(1)
        .any(|part| matches!(part, "test" | "tests" | "__tests__" | "spec" | "specs" | "testing"));
    in_folder
        || name.starts_with("test_")
        || ["_test.", ".test.", ".spec.", "_spec.", "Test.", "Tests.", "Spec."]
            .iter()
            .any(|part| name.contains(part))
}

impl<'s> Query<'s> {
    pub fn new(snapshot: &'s Snapshot) -> Self {
        Self { snapshot, resolver: Resolver::new(snapshot) }
    }

    pub fn item(&self, symbol: Symbol) -> Item {
        let facts = self.snapshot.facts(symbol.file);
        let def = self.snapshot.def(symbol);
        Item {
            symbol: facts.path_of(def),
            kind: def.kind.name(),
            signature: facts.str(def.signature).to_owned(),
            path: self.snapshot.path(symbol.file).to_owned(),
            line: def.line,
            end_line: def.end_line,
            context: None,
            confidence: None,
            distance: None,
            used: None,
            doc: facts.str(def.doc).to_owned(),
            file: symbol.file,
            depth: 0,
            at: Some(symbol),
        }
    }

    pub(crate) fn file_item(&self, file: u32, line: u32) -> Item {
        let path = self.snapshot.path(file).to_owned();
        Item {
            symbol: path.clone(),
            kind: "file",
            signature: String::new(),
            path,
            line,
            end_line: self.snapshot.facts(file).lines,
            context: None,
            confidence: None,
            distance: None,
            used: None,
            doc: String::new(),
            file,
            depth: 0,
            at: None,
        }
    }

    pub fn place(&self, file: u32, def: u32, line: u32) -> Item {
        match caller(self.snapshot, file, def) {
            Some(symbol) => Item { line, end_line: line, ..self.item(symbol) },
            None => self.file_item(file, line),
        }
    }

    fn none(&self, of: &str) -> Answer {
        let mut answer = Answer { title: format!("nothing named {of}"), ..Answer::default() };
        let near = self.find(of, 5);
        if !near.items.is_empty() {
            let names: Vec<&str> = near.items.iter().map(|item| item.symbol.as_str()).collect();
            answer.notes.push(format!("similar names: {}", names.join(", ")));
        }
        answer
    }

    pub fn def(&self, of: &str) -> Answer {
        let found = select(self.snapshot, of);
        if found.is_empty() {
            return self.none(of);
        }
        Answer {
            title: format!("{} definitions of {of}", found.len()),
            items: found.into_iter().map(|symbol| self.item(symbol)).collect(),
            ..Answer::default()
        }
    }

    /// Everything that uses one of the definitions.
    pub fn references(&self, targets: &[Symbol]) -> Vec<Reference> {
        let mut wanted: QuickMap<Symbol, Confidence> = QuickMap::default();
        for target in targets {
            wanted.insert(*target, Confidence::Exact);
            self.widen(*target, &mut wanted);
        }
        let mut names: Vec<&str> = wanted.keys().map(|symbol| self.snapshot.name(*symbol)).collect();
        names.sort_unstable();
        names.dedup();
        let default = wanted.keys().any(|symbol| self.snapshot.def(*symbol).flags & def_flag::DEFAULT != 0);
        let mut found = Vec::new();
        for file in 0..self.snapshot.files.len() as u32 {
            let facts = self.snapshot.facts(file);
            let mut spelled: Vec<crate::facts::Sym> =
                names.iter().filter_map(|name| facts.sym(name)).collect();
            if spelled.is_empty() && !default {
                continue;
            }
            // Imported under another name.
            let fallback = if default { facts.sym("default") } else { None };
            for import in &facts.imports {
                if import.alias != import.name
                    && (spelled.contains(&import.name) || Some(import.name) == fallback)
                {
                    spelled.push(import.alias);
                }
            }
            spelled.sort_unstable();
            spelled.dedup();
            for sym in spelled {
                for site in facts.sites_named(sym) {
                    self.match_site(file, site, &wanted, &mut found);
                }
            }
        }
        found.sort_by(|a, b| {
            (b.confidence, self.snapshot.path(a.file), a.line).cmp(&(
                a.confidence,
                self.snapshot.path(b.file),
                b.line,
            ))
        });
        found
    }

    /// Calling a class calls its constructor, and a call of an overridden method may come here.
    fn widen(&self, target: Symbol, wanted: &mut QuickMap<Symbol, Confidence>) {
        let def = self.snapshot.def(target);
        let facts = self.snapshot.facts(target.file);
        let around =
            facts.def(def.parent).filter(|around| around.kind.is_type() && around.kind != Kind::Impl);
        if around.is_none() || !def.kind.is_callable() {
            return;
        }
        let own = Symbol { file: target.file, def: def.parent };
        if def.kind == Kind::Constructor {
            wanted.entry(own).or_insert(Confidence::Exact);
            return;
        }
        let name = facts.name(def);
        let mut queue = vec![own];
        let mut seen = QuickSet::default();
        while let Some(one) = queue.pop() {
            if !seen.insert(one) || seen.len() > 32 {
                continue;
            }
            for base in self.resolver.bases_of(one).0 {
                for symbol in self.snapshot.named_in(base.file, name) {
                    if self.snapshot.def(symbol).parent == base.def {
                        wanted.entry(symbol).or_insert(Confidence::Likely);
                    }
                }
                queue.push(base);
            }
        }
    }

    fn match_site(
        &self,
        file: u32,
        site: &Site,
        wanted: &QuickMap<Symbol, Confidence>,
        found: &mut Vec<Reference>,
    ) {
        let (targets, confidence) = self.resolver.site(file, site);
        let best = targets
            .iter()
            .filter_map(|target| wanted.get(target).map(|least| (*target, *least)))
            .max_by_key(|hit| hit.1);
        if let Some((target, least)) = best {
            let confidence = confidence.min(least);
            found.push(Reference {
                file,
                line: site.line,
                def: site.def,
                used: site.used,
                target,
                confidence,
            });
        }
    }

    pub fn refs(&self, of: &str) -> Answer {
        let targets = select(self.snapshot, of);
        if targets.is_empty() {
            return self.none(of);
        }
        let items: Vec<Item> = self
            .references(&targets)
            .into_iter()
            .map(|found| Item {
                confidence: Some(found.confidence),
                used: Some(found.used.name()),
                ..self.place(found.file, found.def, found.line)
            })
            .collect();
        Answer { title: format!("{} uses of {of}", items.len()), items, ..Answer::default() }
    }

    pub fn callers(&self, of: &str) -> Answer {
        let targets = select(self.snapshot, of);
        if targets.is_empty() {
            return self.none(of);
        }
        let mut items: Vec<Item> = Vec::new();
        for found in self.references(&targets).into_iter().filter(|found| found.used == Use::Call) {
            let item =
                Item { confidence: Some(found.confidence), ..self.place(found.file, found.def, found.line) };
            // One line per caller, at its first call.
            if !items
                .iter()
                .any(|had| had.path == item.path && had.symbol == item.symbol && had.at == item.at)
            {
                items.push(item);
            }
        }
        Answer { title: format!("{} callers of {of}", items.len()), items, ..Answer::default() }
    }

    pub fn callees(&self, of: &str) -> Answer {
        let targets = select(self.snapshot, of);
        if targets.is_empty() {
            return self.none(of);
        }
        let mut best: Vec<(Symbol, Confidence, u32)> = Vec::new();
        let mut unknown: Vec<&str> = Vec::new();
        for target in &targets {
            let facts = self.snapshot.facts(target.file);
            let mut sites: Vec<&Site> = (facts.sites.iter())
                .filter(|site| site.used == Use::Call && facts.is_within(site.def, target.def))
                .collect();
            sites.sort_by_key(|site| (site.line, site.column));
            for site in sites {
                let (found, confidence) = self.resolver.site(target.file, site);
                if found.is_empty() {
                    unknown.push(facts.str(site.name));
                }
                for symbol in found {
                    match best.iter_mut().find(|had| had.0 == symbol) {
                        Some(had) => had.1 = had.1.max(confidence),
                        None => best.push((symbol, confidence, site.line)),
                    }
                }
            }
        }
        best.sort_by_key(|(_, confidence, line)| (std::cmp::Reverse(*confidence), *line));
        let items: Vec<Item> = best
            .into_iter()
            .map(|(symbol, confidence, _)| Item { confidence: Some(confidence), ..self.item(symbol) })
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        let mut answer = Answer { title: format!("{of} calls {}", items.len()), items, ..Answer::default() };
        if !unknown.is_empty() {
            let shown = unknown.iter().take(20).copied().collect::<Vec<_>>().join(", ");
            let more = unknown.len().saturating_sub(20);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            answer.notes.push(format!("defined elsewhere or not known: {shown}{more}"));
        }
        answer
    }

    /// Types made from this one, nearest first; for a method, the methods that override it.
    pub fn implements(&self, of: &str) -> Answer {
        let targets = select(self.snapshot, of);
        if targets.is_empty() {
            return self.none(of);
        }
        let mut items = Vec::new();
        for target in targets {
            let def = self.snapshot.def(target);
            let (types, method) = if def.kind.is_type() || def.kind == Kind::Type {
                (target, None)
            } else {
                (Symbol { file: target.file, def: def.parent }, Some(self.snapshot.name(target)))
            };
            if self.snapshot.facts(types.file).def(types.def).is_none() {
                continue;
            }
            let mut seen = QuickSet::default();
            let mut level = vec![types];
            for distance in 1..=8u32 {
                let mut next = Vec::new();
                for one in std::mem::take(&mut level) {
                    for found in self.references(&[one]) {
                        if !matches!(found.used, Use::Inherit | Use::Implement) {
                            continue;
                        }
                        let Some(sub) = caller(self.snapshot, found.file, found.def) else { continue };
                        if !seen.insert(sub) {
                            continue;
                        }
                        next.push(sub);
                        let mut item = Item {
                            confidence: Some(found.confidence),
                            distance: Some(distance),
                            used: Some(found.used.name()),
                            ..self.item(sub)
                        };
                        if let Some(method) = method {
                            let Some(over) = self
                                .snapshot
                                .named_in(sub.file, method)
                                .find(|symbol| self.snapshot.def(*symbol).parent == sub.def)
                            else {
                                continue;
                            };
                            item = Item {
                                confidence: item.confidence,
                                distance: item.distance,
                                ..self.item(over)
                            };
                        }
                        items.push(item);
                    }
                }
                level = next;
                if level.is_empty() {
                    break;
                }
            }
        }
        Answer { title: format!("{} made from {of}", items.len()), items, ..Answer::default() }
    }

    /// Whether a definition is a test, or stands in one.
    pub fn is_test(&self, symbol: Symbol) -> bool {
        let facts = self.snapshot.facts(symbol.file);
        let mut at = symbol.def;
        for _ in 0..32 {
            let Some(def) = facts.def(at) else { return false };
            if def.flags & def_flag::TEST != 0 {
                return true;
            }
            at = def.parent;
        }
        false
    }

    pub fn tests_of(&self, of: &str) -> Answer {
        let targets = select(self.snapshot, of);
        if targets.is_empty() {
            return self.none(of);
        }
        let items: Vec<Item> = self
            .reach(&targets, 10)
            .into_iter()
            .filter(|item| {
                item.kind == "test"
                    || item.at.is_some_and(|at| self.is_test(at))
                    || item.at.is_none() && is_test_path(&item.path)
            })
            .collect();
        Answer { title: format!("{} tests reach {of}", items.len()), items, ..Answer::default() }
    }

    /// Callers and users of the definitions, by the number of steps; guesses by name go one step only.
    pub fn reach(&self, targets: &[Symbol], depth: u32) -> Vec<Item> {
        let mut seen: QuickSet<(u32, u32)> = targets.iter().map(|symbol| (symbol.file, symbol.def)).collect();
        let mut level: Vec<Symbol> = targets.to_vec();
        let mut items = Vec::new();
        let mut asked = 0;
        for distance in 1..=depth {
            let mut next = Vec::new();
            for one in &level {
                asked += 1;
                if asked > 1500 {
                    break;
                }
                for found in self.references(std::slice::from_ref(one)) {
                    if found.confidence == Confidence::NameOnly && distance > 1 {
                        continue;
                    }
                    // A use inside a class that is no method belongs to the class.
                    if !seen.insert((found.file, found.def)) {
                        continue;
                    }
                    let item = self.place(found.file, found.def, found.line);
                    if let Some(at) = item.at.filter(|_| found.confidence != Confidence::NameOnly) {
                        next.push(at);
                    }
                    items.push(Item {
                        confidence: Some(found.confidence),
                        distance: Some(distance),
                        used: Some(found.used.name()),
                        ..item
                    });
                }
            }
            if next.is_empty() {
                break;
            }
            level = next;
        }
        items
    }
}
