//! The map of a repository: its most used definitions, by file, within a budget.
//!
//! Rank flows from users to the definitions they use (PageRank over resolved uses). It starts at the definitions that
//! the task's words and the files in view point to. The same repository and words always give the same map.

use crate::facts::{DefKind, NONE, Site, UseKind};
use crate::hash::QuickMap;
use crate::index::Index;
use crate::query::{Query, is_test_path};
use crate::resolve::{Confidence, Meaning};
use crate::snapshot::{Snapshot, Symbol};
use crate::text::push_lower;
use crate::wording::tokens;

const ROUNDS: usize = 20;
const DAMPING: f32 = 0.85;

/// The purpose of a map.
#[derive(Debug, Clone, Default)]
pub struct MapRequest {
    pub budget: usize,
    /// Words of the task.
    pub words: Vec<String>,
    /// Files that the model has in view.
    pub in_view: Vec<String>,
}

/// The rank that words, and files in view, add for each definition in the index.
const FOCUS: f32 = 4.0;

/// If a word occurs in more than this share of all paths (one in three), it says nothing.
const COMMON: usize = 3;

/// The definitions that are ordered first. A map seldom has room for more.
const FIRST: usize = 1024;

/// The fewest tokens of a line of the map.
const LEAST: usize = 2;

/// Rank below this part of the initial amount is not passed on.
const LITTLE: f32 = 1e-4;

/// The uses in a file as links between definitions, by their numbers in the index. A use outside of any definition
/// has a number for its file. Each use is reported to the callback with its meaning.
pub(crate) fn file_links(
    query: &Query<'_>,
    index: &Index,
    file: u32,
    mut told: impl FnMut(usize, &Site, &Meaning),
) -> Vec<(u32, u32, f32)> {
    let snapshot = query.snapshot;
    let test = is_test_path(snapshot.path(file));
    let mut links: QuickMap<(u32, u32), f32> = QuickMap::default();
    for (at, site) in snapshot.facts(file).sites.iter().enumerate() {
        let meaning = query.resolver.meaning(file, site);
        told(at, site, &meaning);
        // A guess by name would raise every definition with a common name.
        let Meaning::Of(targets, confidence) = meaning else { continue };
        if targets.is_empty() || targets.len() > 8 || confidence == Confidence::NameOnly {
            continue;
        }
        let weight = match confidence {
            Confidence::Exact => 1.0,
            Confidence::Likely | Confidence::NameOnly => 0.7,
        } * match site.used {
            UseKind::Inherit | UseKind::Implement => 2.0,
            UseKind::Call | UseKind::Type => 1.0,
            UseKind::Read => 0.5,
        } * if test { 0.3 } else { 1.0 };
        let from = index.number(Symbol { file, def: site.def }).unwrap_or(index.total() + file);
        let share = weight / targets.len() as f32;
        for target in targets {
            // A use of a member also counts for its type.
            let up = Symbol { file: target.file, def: snapshot.brief(target).parent };
            if let Some(up) = index.number(up).filter(|up| *up != from) {
                *links.entry((from, up)).or_default() += share * 0.3;
            }
            if let Some(to) = index.number(target).filter(|to| *to != from) {
                *links.entry((from, to)).or_default() += share;
            }
        }
    }
    let mut links: Vec<(u32, u32, f32)> =
        links.into_iter().map(|((from, to), weight)| (from, to, weight.sqrt())).collect();
    links.sort_unstable_by_key(|(from, to, _)| (*from, *to));
    links
}

/// The links of an index, except for those from files that have changed since.
pub(crate) struct RankLinks<'i> {
    index: &'i Index,
    changed: &'i [u32],
    instead: QuickMap<u32, Vec<(u32, f32)>>,
}

impl<'i> RankLinks<'i> {
    pub fn of(index: &'i Index) -> Self {
        Self { index, changed: &[], instead: QuickMap::default() }
    }

    fn now(query: &'i Query<'_>, index: &'i Index) -> Self {
        let changed = query.snapshot.changed();
        let mut instead: QuickMap<u32, Vec<(u32, f32)>> = QuickMap::default();
        for file in changed {
            for (from, to, weight) in file_links(query, index, *file, |_, _, _| ()) {
                instead.entry(from).or_default().push((to, weight));
            }
        }
        for links in instead.values_mut() {
            let sum: f32 = links.iter().map(|(_, weight)| weight).sum();
            links.iter_mut().for_each(|(_, weight)| *weight /= sum);
        }
        Self { index, changed, instead }
    }

    /// Calls the callback for each link. Returns the number of links.
    fn each(&self, node: u32, mut told: impl FnMut(u32, f32)) -> usize {
        if !self.changed.is_empty() {
            let file = node.checked_sub(self.index.total()).unwrap_or_else(|| self.index.symbol(node).file);
            if self.changed.binary_search(&file).is_ok() {
                let links = self.instead.get(&node).map_or(&[][..], Vec::as_slice);
                links.iter().for_each(|(to, share)| told(*to, *share));
                return links.len();
            }
        }
        let links = self.index.links(node);
        let count = links.len();
        links.for_each(|(to, share)| told(to, share));
        count
    }

    /// The rank of every node when all begin alike. The rank of a node without links goes to all nodes.
    pub fn ranks(&self) -> Vec<f32> {
        let nodes = self.index.nodes() as usize;
        let even = 1.0 / nodes.max(1) as f32;
        let mut rank = vec![even; nodes];
        for _ in 0..ROUNDS {
            let mut next = vec![0.0f32; nodes];
            let mut lost = 0.0;
            for (node, rank) in rank.iter().enumerate() {
                let links = self.each(node as u32, |to, share| next[to as usize] += DAMPING * rank * share);
                if links == 0 {
                    lost += rank;
                }
            }
            let all = (1.0 - DAMPING + DAMPING * lost) * even;
            next.iter_mut().for_each(|rank| *rank += all);
            rank = next;
        }
        rank
    }

    /// The flow of rank that begins at a few nodes: the share of each reached node, and the share that goes to all
    /// nodes.
    fn flow(&self, start: Vec<(u32, f32)>) -> (NodeShares, f32) {
        let given: f32 = start.iter().map(|(_, given)| given).sum();
        let nodes = self.index.nodes() as usize;
        let (mut kept, mut next, mut lost) = (NodeShares::none(nodes), NodeShares::none(nodes), 0.0);
        let mut level = start;
        for _ in 0..ROUNDS {
            for (node, rank) in level.drain(..) {
                kept.add(node, (1.0 - DAMPING) * rank);
                let passes = rank >= LITTLE * given;
                if !passes || self.each(node, |to, share| next.add(to, DAMPING * rank * share)) == 0 {
                    lost += DAMPING * rank;
                }
            }
            next.take(&mut level);
            if level.is_empty() {
                break;
            }
        }
        for (node, rank) in level {
            kept.add(node, rank);
        }
        (kept, lost)
    }
}

/// A value for a few of all nodes.
struct NodeShares {
    of: Vec<f32>,
    /// The nodes with a value.
    some: Vec<u32>,
}

impl NodeShares {
    fn none(nodes: usize) -> Self {
        Self { of: vec![0.0; nodes], some: Vec::new() }
    }

    fn add(&mut self, node: u32, given: f32) {
        let Some(had) = self.of.get_mut(node as usize) else { return };
        if *had == 0.0 {
            self.some.push(node);
        }
        *had += given;
    }

    /// All values, in the order of the nodes.
    fn taken(mut self) -> Vec<(u32, f32)> {
        let mut all = Vec::with_capacity(self.some.len());
        self.take(&mut all);
        all
    }

    /// Moves all values to `level`, in the order of the nodes.
    fn take(&mut self, level: &mut Vec<(u32, f32)>) {
        self.some.sort_unstable();
        level.extend(self.some.drain(..).map(|node| (node, std::mem::take(&mut self.of[node as usize]))));
    }
}

/// The weight of a definition in the map of a repository.
pub(crate) fn worth(snapshot: &Snapshot, index: &Index, symbol: Symbol) -> f32 {
    let brief = snapshot.brief(symbol);
    let minor = matches!(
        brief.kind,
        DefKind::Field
            | DefKind::Variable
            | DefKind::Variant
            | DefKind::Test
            | DefKind::Impl
            | DefKind::Module
    );
    // Definitions that cannot be used from outside, single values, and third-party code say little about a
    // repository.
    let inner = brief.parent != NONE
        && snapshot.brief(Symbol { file: symbol.file, def: brief.parent }).kind.is_callable();
    index.worth_of_file(symbol.file)
        * if minor || inner { 0.05 } else { 1.0 }
        * if brief.kind == DefKind::Constant { 0.3 } else { 1.0 }
}

/// The weight of a file in the map of a repository, by its path.
pub(crate) fn worth_of_path(path: &str) -> f32 {
    let vendored = if is_vendored(path) { 0.1 } else { 1.0 };
    vendored * if is_test_path(path) { 0.2 } else { 1.0 }
}

/// The nodes that the words of a task and the files in view point to, each with an amount.
///
/// Words and view each give as much as all definitions together have, so that what was asked for comes before what
/// the whole repository builds on. A rare word gives more than a common one, and each word gives the same total to
/// few nodes as to many.
fn start_shares(query: &Query<'_>, index: &Index, wish: &MapRequest) -> Vec<(u32, f32)> {
    let (snapshot, nodes) = (query.snapshot, index.nodes() as f32);
    let mut start = NodeShares::none(index.nodes() as usize);
    let mut words: Vec<String> =
        wish.words.iter().map(|word| word.to_lowercase()).filter(|word| word.len() > 2).collect();
    words.sort_unstable();
    words.dedup();
    let meant: Vec<(f32, Vec<(u32, f32)>)> = (words.iter())
        .map(|word| {
            let of_word = nodes_of_word(query, index, word);
            ((nodes / (of_word.len() as f32 + 1.0)).max(1.0).ln(), of_word)
        })
        .filter(|(_, of_word)| !of_word.is_empty())
        .collect();
    let rarity: f32 = meant.iter().map(|(rarity, _)| rarity).sum();
    let mut give = |of_one: Vec<(u32, f32)>, given: f32| {
        let sum: f32 = of_one.iter().map(|(_, part)| part).sum();
        for (node, part) in of_one {
            start.add(node, given * part / sum);
        }
    };
    for (rare, of_word) in meant {
        give(of_word, FOCUS * nodes * rare / rarity.max(f32::MIN_POSITIVE));
    }
    let in_view: std::collections::BTreeSet<u32> =
        wish.in_view.iter().flat_map(|path| crate::select::files_ending(snapshot, path)).collect();
    let viewed: Vec<(u32, f32)> =
        in_view.into_iter().flat_map(|file| index.range(file)).map(|node| (node, 1.0)).collect();
    if !viewed.is_empty() {
        give(viewed, FOCUS * nodes);
    }
    start.taken()
}

/// The definitions that a word points to, by their names or by their paths, each with a weight.
fn nodes_of_word(query: &Query<'_>, index: &Index, word: &str) -> Vec<(u32, f32)> {
    let snapshot = query.snapshot;
    let mut found = NodeShares::none(index.nodes() as usize);
    let (finder, mut path) = (memchr::memmem::Finder::new(word), String::new());
    let mut of_word: Vec<(u32, bool)> = Vec::new();
    for file in 0..snapshot.files.len() as u32 {
        path.clear();
        push_lower(&mut path, snapshot.path(file));
        if finder.find(path.as_bytes()).is_some() {
            let name = path.rsplit('/').next().unwrap_or(&path);
            of_word.push((file, name.split('.').next() == Some(word)));
        }
    }
    // A file of that name is meant even if every path contains the word.
    let common = of_word.len() * COMMON > snapshot.files.len() + COMMON;
    for (file, named) in of_word.into_iter().filter(|(_, named)| *named || !common) {
        let range = index.range(file);
        // A file counts as a whole, however much it contains.
        let each = if named { 40.0 } else { 4.0 } / (range.len() as f32).sqrt().max(1.0);
        range.for_each(|node| found.add(node, each * index.worth_of_file(file)));
    }
    let mut named = |id: u32, given: f32| {
        for symbol in index.named(id) {
            if let Some(number) = index.number(symbol) {
                found.add(number, given * index.worth_of_file(symbol.file));
            }
        }
    };
    for (name, symbol) in snapshot.names_containing(word) {
        if let Some(id) = index.name_of(symbol) {
            named(id, if name == word { 20.0 } else { 4.0 });
        }
    }
    // A name that is a part of the word, such as `parse` in `parser`.
    if word.len() > 5 {
        let parts = index.folded_names().filter(|(name, _)| (5..word.len()).contains(&name.len()));
        parts.filter(|(name, _)| word.contains(name)).for_each(|(_, id)| named(id, 4.0));
    }
    found.taken()
}

fn is_vendored(path: &str) -> bool {
    path.split('/').rev().skip(1).any(|part| {
        matches!(
            part,
            "vendor" | "vendored" | "third_party" | "thirdparty" | "third-party" | "extern" | "external"
        )
    })
}

/// Definitions in the order of their worth for a wish: all of them, or the first ones.
fn order(query: &Query<'_>, index: &Index, wish: &MapRequest, all: bool) -> Vec<Symbol> {
    let snapshot = query.snapshot;
    let start = start_shares(query, index, wish);
    let stale = !snapshot.changed().is_empty();
    if start.is_empty() && !stale && !all {
        return index.top().collect();
    }
    let nodes = index.nodes() as usize;
    let links = RankLinks::now(query, index);
    let ranks = stale.then(|| links.ranks());
    let rank = |node: u32| ranks.as_ref().map_or_else(|| index.rank(node), |ranks| ranks[node as usize]);
    let given: f32 = start.iter().map(|(_, given)| given).sum();
    let (flown, lost) = links.flow(start);
    // Every node begins with one, and these with more. Rank that was lost on the way is credited to its start, not to
    // all nodes.
    let sum = nodes as f32 + given;
    let (even, again) = (nodes as f32 / sum, given / (given - lost).max(f32::MIN_POSITIVE));
    let share = |node: u32| even * rank(node) + again * flown.of[node as usize] / sum;
    let mut numbers: Vec<u32> = if all || stale {
        (0..index.total()).collect()
    } else {
        let flown = flown.some.iter().copied().filter(|node| *node < index.total());
        index.top().filter_map(|symbol| index.number(symbol)).chain(flown).collect()
    };
    numbers.sort_unstable();
    numbers.dedup();
    let mut order: Vec<(f32, u32)> = (index.symbols(numbers.into_iter()))
        .map(|(at, symbol)| (share(at) * worth(snapshot, index, symbol), at))
        .collect();
    let before = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    if !all && order.len() > FIRST {
        order.select_nth_unstable_by(FIRST, before);
        order.truncate(FIRST);
    }
    order.sort_unstable_by(before);
    order.into_iter().map(|(_, at)| index.symbol(at)).collect()
}

impl Query<'_> {
    /// The map as text, and the files that it names, most important first.
    pub fn map(&self, wish: &MapRequest) -> (String, Vec<String>) {
        let stop = std::sync::atomic::AtomicBool::new(false);
        let made;
        let index = match self.snapshot.index() {
            Some(index) => index,
            None => match crate::index::make(self.snapshot, 1, &stop) {
                Some(index) => {
                    made = std::sync::Arc::new(index);
                    &made
                }
                None => return Default::default(),
            },
        };
        let first = order(self, index, wish, false);
        let few = first.len() < index.total() as usize;
        match self.draw_map(wish, index, first, few) {
            Some(map) => map,
            None => {
                let order = order(self, index, wish, true);
                self.draw_map(wish, index, order, false).unwrap_or_default()
            }
        }
    }

    /// Draws the map. None if `few` is set, which means that these are only the first definitions, and more would
    /// fit.
    fn draw_map(
        &self,
        wish: &MapRequest,
        index: &Index,
        order: Vec<Symbol>,
        few: bool,
    ) -> Option<(String, Vec<String>)> {
        let snapshot = self.snapshot;
        // Definitions are taken in the order of rank until the budget is used up, and shown by file.
        let mut files: Vec<(u32, Vec<Symbol>)> = Vec::new();
        let mut used = 24;
        let mut taken = 0;
        let line_of = |symbol: Symbol| {
            let facts = snapshot.facts(symbol.file);
            let def = snapshot.def(symbol);
            let container = facts.container(def);
            let inside = if container.is_empty() { String::new() } else { format!("{container}: ") };
            format!("  {} {inside}{}\n", def.line, crate::text::one_line(facts.str(def.signature), 100))
        };
        let mut full = false;
        for symbol in order {
            if snapshot.brief(symbol).kind == DefKind::Impl {
                continue;
            }
            let known = files.iter().position(|(file, _)| *file == symbol.file);
            // No file takes more than a sixth of the map.
            if known.is_some_and(|known| files[known].1.len() >= (wish.budget / 120).max(3)) {
                continue;
            }
            let path = known.map_or_else(|| tokens(snapshot.path(symbol.file)) + 1, |_| 0);
            // A definition without room is not read.
            let room = used + path + LEAST <= wish.budget;
            let cost = path + if room { tokens(&line_of(symbol)) } else { LEAST };
            if used + cost > wish.budget {
                if used + 40 > wish.budget {
                    full = true;
                    break;
                }
                continue;
            }
            used += cost;
            taken += 1;
            match known {
                Some(known) => files[known].1.push(symbol),
                None => files.push((symbol.file, vec![symbol])),
            }
        }
        if few && !full {
            return None;
        }
        let mut text = String::new();
        for (file, symbols) in &mut files {
            symbols.sort_by_key(|symbol| snapshot.def(*symbol).line);
            text.push_str(&format!("{}\n", snapshot.path(*file)));
            for symbol in symbols {
                text.push_str(&line_of(*symbol));
            }
        }
        let left = index.total() as usize - taken;
        let out = snapshot.files.len() - files.len();
        text.push_str(&format!("{left} more definitions, {out} more files left out.\n"));
        Some((text, files.into_iter().map(|(file, _)| snapshot.path(file).to_owned()).collect()))
    }
}
