//! The map of a repository: its most used definitions, by file, within a budget.
//!
//! Rank flows from users to what they use (PageRank over resolved uses), and starts where the task's words and the
//! files in view point. The same repository and words always give the same map.

use crate::facts::{Kind, NONE, Use};
use crate::hash::QuickMap;
use crate::query::{Query, is_test_path};
use crate::resolve::Confidence;
use crate::snapshot::Symbol;
use crate::words::tokens;

const ROUNDS: usize = 20;
const DAMPING: f64 = 0.85;

/// What the map is for.
#[derive(Debug, Clone, Default)]
pub struct MapWish {
    pub budget: usize,
    /// Words of the task.
    pub words: Vec<String>,
    /// Files the model has before it.
    pub in_view: Vec<String>,
}

struct Edges {
    nodes: Vec<Symbol>,
    /// From, to, weight.
    links: Vec<(u32, u32, f64)>,
}

fn edges(query: &Query<'_>) -> Edges {
    let snapshot = query.snapshot;
    let mut number: QuickMap<Symbol, u32> = QuickMap::default();
    let mut nodes = Vec::new();
    for symbol in snapshot.symbols() {
        number.insert(symbol, nodes.len() as u32);
        nodes.push(symbol);
    }
    // One extra node per file for what stands outside of any definition.
    let base = nodes.len() as u32;
    let mut links: QuickMap<(u32, u32), f64> = QuickMap::default();
    for file in 0..snapshot.files.len() as u32 {
        let facts = snapshot.facts(file);
        let test = is_test_path(snapshot.path(file));
        for site in &facts.sites {
            let (targets, confidence) = query.resolver.site(file, site);
            // A guess by name would lift whatever has a common one.
            if targets.is_empty() || targets.len() > 8 || confidence == Confidence::NameOnly {
                continue;
            }
            let weight = match confidence {
                Confidence::Exact => 1.0,
                Confidence::Likely | Confidence::NameOnly => 0.7,
            } * match site.used {
                Use::Inherit | Use::Implement => 2.0,
                Use::Call | Use::Type => 1.0,
                Use::Read => 0.5,
            } * if test { 0.3 } else { 1.0 };
            let from = match site.def {
                NONE => base + file,
                def => number.get(&Symbol { file, def }).copied().unwrap_or(base + file),
            };
            let share = weight / targets.len() as f64;
            for target in targets {
                // A use of a member speaks for its type as well.
                let parent = snapshot.def(target).parent;
                if parent != NONE
                    && let Some(up) = number.get(&Symbol { file: target.file, def: parent })
                    && *up != from
                {
                    *links.entry((from, *up)).or_default() += share * 0.3;
                }
                if let Some(to) = number.get(&target).filter(|to| **to != from) {
                    *links.entry((from, *to)).or_default() += share;
                }
            }
        }
    }
    let mut links: Vec<(u32, u32, f64)> =
        links.into_iter().map(|((from, to), weight)| (from, to, weight.sqrt())).collect();
    links.sort_unstable_by_key(|(from, to, _)| (*from, *to));
    Edges { nodes, links }
}

fn ranks(query: &Query<'_>, wish: &MapWish) -> (Vec<Symbol>, Vec<f64>) {
    let snapshot = query.snapshot;
    let Edges { nodes, links } = edges(query);
    let total = nodes.len() + snapshot.files.len();
    let mut out = vec![0.0; total];
    for (from, _, weight) in &links {
        out[*from as usize] += weight;
    }
    let words: Vec<String> =
        wish.words.iter().map(|word| word.to_lowercase()).filter(|word| word.len() > 2).collect();
    let in_view: Vec<u32> =
        wish.in_view.iter().flat_map(|path| crate::select::files_ending(snapshot, path)).collect();
    let mut start = vec![1.0; total];
    for (at, symbol) in nodes.iter().enumerate() {
        let name = snapshot.name(*symbol).to_lowercase();
        let path = snapshot.path(symbol.file).to_lowercase();
        for word in &words {
            if name == *word {
                start[at] += 200.0;
            } else if name.contains(word) || word.len() > 4 && word.contains(&name) && name.len() > 4 {
                start[at] += 40.0;
            }
            if path.contains(word) {
                start[at] += 10.0;
            }
        }
        if in_view.contains(&symbol.file) {
            start[at] += 50.0;
        }
    }
    let sum: f64 = start.iter().sum();
    for value in &mut start {
        *value /= sum.max(1.0);
    }
    let mut rank = start.clone();
    for _ in 0..ROUNDS {
        let lost: f64 = rank.iter().zip(&out).filter(|(_, out)| **out == 0.0).map(|(rank, _)| rank).sum();
        let mut next: Vec<f64> = start.iter().map(|start| start * (1.0 - DAMPING + DAMPING * lost)).collect();
        for (from, to, weight) in &links {
            next[*to as usize] += DAMPING * rank[*from as usize] * weight / out[*from as usize];
        }
        rank = next;
    }
    rank.truncate(nodes.len());
    (nodes, rank)
}

fn is_vendored(path: &str) -> bool {
    path.split('/').rev().skip(1).any(|part| {
        matches!(
            part,
            "vendor" | "vendored" | "third_party" | "thirdparty" | "third-party" | "extern" | "external"
        )
    })
}

impl Query<'_> {
    /// The map as text, and the files it names, most important first.
    pub fn map(&self, wish: &MapWish) -> (String, Vec<String>) {
        let snapshot = self.snapshot;
        let (nodes, rank) = ranks(self, wish);
        let mut order: Vec<usize> = (0..nodes.len()).collect();
        let worth = |at: usize| {
            let def = snapshot.def(nodes[at]);
            let minor = matches!(
                def.kind,
                Kind::Field | Kind::Variable | Kind::Variant | Kind::Test | Kind::Impl | Kind::Module
            );
            // What nobody can use from outside, single values, and other people's code say little about a repository.
            let facts = snapshot.facts(nodes[at].file);
            let inner = facts.def(def.parent).is_some_and(|around| around.kind.is_callable());
            let path = snapshot.path(nodes[at].file);
            rank[at]
                * if minor || inner { 0.05 } else { 1.0 }
                * if def.kind == Kind::Constant { 0.3 } else { 1.0 }
                * if is_vendored(path) { 0.1 } else { 1.0 }
                * if is_test_path(path) { 0.2 } else { 1.0 }
        };
        order.sort_by(|a, b| worth(*b).total_cmp(&worth(*a)).then(nodes[*a].cmp(&nodes[*b])));
        // Definitions are taken in order of rank until the budget is full, and shown by file.
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
        for at in order {
            let symbol = nodes[at];
            if snapshot.def(symbol).kind == Kind::Impl {
                continue;
            }
            let mut cost = tokens(&line_of(symbol));
            let known = files.iter().position(|(file, _)| *file == symbol.file);
            if known.is_none() {
                cost += tokens(snapshot.path(symbol.file)) + 1;
            }
            // No file takes more than a sixth of the map.
            if known.is_some_and(|known| files[known].1.len() >= (wish.budget / 120).max(3)) {
                continue;
            }
            if used + cost > wish.budget {
                if used + 40 > wish.budget {
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
        let mut text = String::new();
        for (file, symbols) in &mut files {
            symbols.sort_by_key(|symbol| snapshot.def(*symbol).line);
            text.push_str(&format!("{}\n", snapshot.path(*file)));
            for symbol in symbols {
                text.push_str(&line_of(*symbol));
            }
        }
        let left = nodes.len() - taken;
        let out = snapshot.files.len() - files.len();
        text.push_str(&format!("{left} more definitions, {out} more files left out.\n"));
        (text, files.into_iter().map(|(file, _)| snapshot.path(file).to_owned()).collect())
    }
}
