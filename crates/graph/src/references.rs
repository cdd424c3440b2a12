//! Finds the users of a definition: by the index, or by resolving every use of its name.

use crate::facts::{DefKind, NONE, Site, UseKind, def_flag};
use crate::hash::{QuickMap, QuickSet};
use crate::index::{Index, IndexedUse};
use crate::query::{Query, Reference};
use crate::resolve::Confidence;
use crate::snapshot::Symbol;

/// The uses that a question asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UseFilter {
    /// The least confidence.
    pub least: Confidence,
    /// True if only uses count that derive a type from another.
    pub heirs: bool,
}

impl UseFilter {
    pub const ANY: Self = Self { least: Confidence::NameOnly, heirs: false };
    pub const SURE: Self = Self { least: Confidence::Likely, heirs: false };
    pub const HEIRS: Self = Self { least: Confidence::NameOnly, heirs: true };

    pub fn matches(self, used: UseKind, confidence: Confidence) -> bool {
        confidence >= self.least && (!self.heirs || matches!(used, UseKind::Inherit | UseKind::Implement))
    }
}

impl Query<'_> {
    /// Everything that uses one of the definitions, the surest first.
    pub fn references(&self, targets: &[Symbol]) -> Vec<Reference> {
        self.references_like(targets, UseFilter::ANY)
    }

    pub(crate) fn references_like(&self, targets: &[Symbol], like: UseFilter) -> Vec<Reference> {
        let mut wanted: QuickMap<Symbol, Confidence> = QuickMap::default();
        for target in targets {
            wanted.insert(*target, Confidence::Exact);
            self.widen(*target, &mut wanted);
        }
        let mut found = Vec::new();
        match self.snapshot.index() {
            Some(index) => {
                self.find_in_index(index, &wanted, like, &mut found);
                if !self.snapshot.changed().is_empty() {
                    self.find_in_facts(&wanted, self.snapshot.changed().iter().copied(), &mut found);
                }
            }
            None => self.find_in_facts(&wanted, 0..self.snapshot.files.len() as u32, &mut found),
        }
        found.retain(|(_, found)| like.matches(found.used, found.confidence));
        // Files are numbered by their paths.
        let small = |number: u32| u64::from(number.min((1 << 20) - 1));
        let mut keyed: Vec<(u64, u32)> = (found.iter().zip(0..))
            .map(|((site, found), at): (&(u32, Reference), u32)| {
                let doubt = u64::from(Confidence::Exact as u32 - found.confidence as u32);
                (doubt << 62 | u64::from(found.file) << 40 | small(found.line) << 20 | small(*site), at)
            })
            .collect();
        keyed.sort_unstable();
        keyed.into_iter().map(|(_, at)| found[at as usize].1).collect()
    }

    /// Looks the uses up in the index, in the files it knows.
    fn find_in_index(
        &self,
        index: &Index,
        wanted: &QuickMap<Symbol, Confidence>,
        like: UseFilter,
        found: &mut Vec<(u32, Reference)>,
    ) {
        let mut by_name: Vec<(u32, u32, Symbol, Confidence)> = (wanted.iter())
            .filter_map(|(symbol, least)| {
                Some((index.name_of(*symbol)?, index.number(*symbol)?, *symbol, *least))
            })
            .collect();
        by_name.sort_unstable();
        let changed = self.snapshot.changed();
        let mut shared = Vec::new();
        for of_name in by_name.chunk_by(|a, b| a.0 == b.0) {
            let name = of_name[0].0;
            let one = if let [(_, number, ..)] = of_name[..] { Some(number) } else { None };
            let mut members: QuickMap<u8, Option<(Symbol, Confidence)>> = QuickMap::default();
            let mut best = |family: u8| {
                *members.entry(family).or_insert_with(|| {
                    let all = self.resolver.members_named(family, index.name(name));
                    let known = all.into_iter().filter_map(|one| wanted.get(&one).map(|least| (one, *least)));
                    known.max_by_key(|hit| hit.1)
                })
            };
            for used in index.uses(name, one, like) {
                if !changed.is_empty() && changed.binary_search(&used.file).is_ok() {
                    continue;
                }
                let hit = match used.target {
                    Some(_) if one.is_some() => Some((of_name[0].2, of_name[0].3)),
                    Some(target) => of_name
                        .binary_search_by_key(&target, |(_, number, ..)| *number)
                        .ok()
                        .map(|at| (of_name[at].2, of_name[at].3)),
                    None => best(self.snapshot.family(used.file)),
                };
                if let Some((target, least)) = hit {
                    let IndexedUse { file, line, def, used: kind, .. } = used;
                    let confidence = used.confidence.min(least);
                    let one = (used.site, Reference { file, line, def, used: kind, target, confidence });
                    if used.shared { shared.push(one) } else { found.push(one) }
                }
            }
        }
        // A use that may mean several of them is counted once.
        shared.sort_unstable_by_key(|(site, one)| (one.file, *site, std::cmp::Reverse(one.confidence)));
        shared.dedup_by_key(|(site, one)| (one.file, *site));
        found.append(&mut shared);
    }

    /// Searches the uses in the facts of these files.
    fn find_in_facts(
        &self,
        wanted: &QuickMap<Symbol, Confidence>,
        files: impl Iterator<Item = u32>,
        found: &mut Vec<(u32, Reference)>,
    ) {
        let mut names: Vec<&str> = wanted.keys().map(|symbol| self.snapshot.name(*symbol)).collect();
        names.sort_unstable();
        names.dedup();
        let default = wanted.keys().any(|symbol| self.snapshot.brief(*symbol).flags & def_flag::DEFAULT != 0);
        for file in files {
            let facts = self.snapshot.facts(file);
            let mut spelled: Vec<crate::facts::Sym> =
                names.iter().filter_map(|name| facts.sym(name)).collect();
            if spelled.is_empty() && !default {
                continue;
            }
            // The name may be imported under another name.
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
                let from = facts.sites.partition_point(|site| site.name < sym);
                for (at, site) in facts.sites_named(sym).iter().enumerate() {
                    self.match_site(file, (from + at) as u32, site, wanted, found);
                }
            }
        }
    }

    /// Adds the related definitions: calling a class calls its constructor, and a call of an overridden method may
    /// reach this one.
    fn widen(&self, target: Symbol, wanted: &mut QuickMap<Symbol, Confidence>) {
        let def = self.snapshot.brief(target);
        if def.parent == NONE || !def.kind.is_callable() {
            return;
        }
        let around = self.snapshot.brief(Symbol { file: target.file, def: def.parent }).kind;
        if !around.is_type() || around == DefKind::Impl {
            return;
        }
        let own = Symbol { file: target.file, def: def.parent };
        if def.kind == DefKind::Constructor {
            wanted.entry(own).or_insert(Confidence::Exact);
            return;
        }
        let same = self.snapshot.same_name(target);
        let mut queue = vec![own];
        let mut seen = QuickSet::default();
        while let Some(one) = queue.pop() {
            if !seen.insert(one) || seen.len() > 32 {
                continue;
            }
            for base in self.resolver.bases_of(one).0 {
                for symbol in same.in_file(base.file) {
                    if self.snapshot.brief(symbol).parent == base.def {
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
        number: u32,
        site: &Site,
        wanted: &QuickMap<Symbol, Confidence>,
        found: &mut Vec<(u32, Reference)>,
    ) {
        let (targets, confidence) = self.resolver.site(file, site);
        let best = targets
            .iter()
            .filter_map(|target| wanted.get(target).map(|least| (*target, *least)))
            .max_by_key(|hit| hit.1);
        if let Some((target, least)) = best {
            let confidence = confidence.min(least);
            let (line, def, used) = (site.line, site.def, site.used);
            found.push((number, Reference { file, line, def, used, target, confidence }));
        }
    }
}
