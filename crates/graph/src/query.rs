//! Questions about a snapshot, answered as data. The wording for a model is in [`crate::wording`].

use serde::Serialize;

use crate::facts::{DefKind, Facts, NONE, Site, UseKind, def_flag};
use crate::hash::{QuickMap, QuickSet};
use crate::references::UseFilter;
use crate::resolve::{Confidence, Resolver};
use crate::select::{caller, select};
use crate::snapshot::{Snapshot, Symbol};

/// A name with more definitions than this means none of them in particular.
const MANY: usize = 64;

/// The number of definitions whose users are looked up, to find everything that a change can reach.
const REACHED: usize = 1000;

/// One line of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplyItem {
    /// `Outer.name`, or the path for a file.
    pub symbol: String,
    pub kind: &'static str,
    pub signature: String,
    pub path: String,
    pub line: u32,
    pub end_line: u32,
    /// The source line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// The number of steps from the definition asked about.
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
pub struct GraphReply {
    pub title: String,
    pub items: Vec<ReplyItem>,
    /// The number of items that a limit left out.
    pub left_out: usize,
    pub notes: Vec<String>,
}

/// One line of an answer before it is worded. The wording needs the facts of its file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    pub file: u32,
    /// [`NONE`] for the file itself.
    pub def: u32,
    /// The line inside it, if the hit is a place and not the definition.
    pub line: Option<u32>,
    pub confidence: Option<Confidence>,
    pub distance: Option<u32>,
    pub used: Option<&'static str>,
    pub depth: u32,
}

impl Hit {
    pub fn of(symbol: Symbol) -> Self {
        Self {
            file: symbol.file,
            def: symbol.def,
            line: None,
            confidence: None,
            distance: None,
            used: None,
            depth: 0,
        }
    }

    fn at(found: &Reference) -> Self {
        let symbol = Symbol { file: found.file, def: found.def };
        Self { line: Some(found.line), confidence: Some(found.confidence), ..Self::of(symbol) }
    }
}

/// An answer before it is worded.
#[derive(Debug, Clone, Default)]
pub(crate) struct HitList {
    pub title: String,
    pub hits: Vec<Hit>,
    pub left_out: usize,
    pub notes: Vec<String>,
}

/// A use of a definition.
#[derive(Debug, Clone, Copy)]
pub struct Reference {
    pub file: u32,
    pub line: u32,
    pub def: u32,
    pub used: UseKind,
    pub target: Symbol,
    pub confidence: Confidence,
}

pub struct Query<'s> {
    pub snapshot: &'s Snapshot,
    pub resolver: Resolver<'s>,
}

/// Tells whether a path belongs to a test, by its name.
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

    pub fn item(&self, symbol: Symbol) -> ReplyItem {
        let facts = self.snapshot.facts(symbol.file);
        let def = self.snapshot.def(symbol);
        ReplyItem {
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

    pub(crate) fn file_item(&self, file: u32, line: u32) -> ReplyItem {
        let path = self.snapshot.path(file).to_owned();
        ReplyItem {
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

    pub(crate) fn item_of(&self, hit: &Hit) -> ReplyItem {
        let item = match caller(hit.file, hit.def) {
            Some(symbol) => match hit.line {
                Some(line) => ReplyItem { line, end_line: line, ..self.item(symbol) },
                None => self.item(symbol),
            },
            None => self.file_item(hit.file, hit.line.unwrap_or(1)),
        };
        ReplyItem {
            confidence: hit.confidence,
            distance: hit.distance,
            used: hit.used,
            depth: hit.depth,
            ..item
        }
    }

    /// Words all hits of an answer.
    pub(crate) fn reply(&self, found: HitList) -> GraphReply {
        GraphReply {
            title: found.title,
            items: found.hits.iter().map(|hit| self.item_of(hit)).collect(),
            left_out: found.left_out,
            notes: found.notes,
        }
    }

    /// The definitions that a text means. The error is the answer if there are none.
    fn definitions_of(&self, of: &str) -> Result<Vec<Symbol>, HitList> {
        let targets = select(self.snapshot, of);
        if !targets.is_empty() {
            return Ok(targets);
        }
        let mut answer = HitList { title: format!("nothing named {of}"), ..HitList::default() };
        let near = self.find_hits(of, 5).hits;
        if !near.is_empty() {
            let names: Vec<String> = (near.iter())
                .map(|hit| self.snapshot.path_of(Symbol { file: hit.file, def: hit.def }))
                .collect();
            answer.notes.push(format!("similar names: {}", names.join(", ")));
        }
        Err(answer)
    }

    /// The definitions that a text means, but at most as many as a question that inspects each of them can handle.
    pub(crate) fn few_definitions_of(&self, of: &str) -> Result<(Vec<Symbol>, Vec<String>), HitList> {
        let mut targets = self.definitions_of(of)?;
        let mut notes = Vec::new();
        if targets.len() > MANY {
            notes.push(format!(
                "{} definitions are named {of}: this is about the first {MANY}, say `Class.{of}` or `file:{of}` for one",
                targets.len()
            ));
            targets.truncate(MANY);
        }
        Ok((targets, notes))
    }

    pub(crate) fn def_hits(&self, of: &str) -> HitList {
        match self.definitions_of(of) {
            Err(none) => none,
            Ok(found) => HitList {
                title: format!("{} definitions of {of}", found.len()),
                hits: found.into_iter().map(Hit::of).collect(),
                ..HitList::default()
            },
        }
    }

    pub(crate) fn refs_hits(&self, of: &str) -> HitList {
        let targets = match self.definitions_of(of) {
            Err(none) => return none,
            Ok(targets) => targets,
        };
        let found = self.references(&targets);
        let hits: Vec<Hit> =
            found.iter().map(|found| Hit { used: Some(found.used.name()), ..Hit::at(found) }).collect();
        HitList { title: format!("{} uses of {of}", hits.len()), hits, ..HitList::default() }
    }

    pub(crate) fn callers_hits(&self, of: &str) -> HitList {
        let targets = match self.definitions_of(of) {
            Err(none) => return none,
            Ok(targets) => targets,
        };
        let mut found = self.references(&targets);
        // One line per caller, at its first call.
        let mut seen: QuickSet<(u32, u32)> = QuickSet::default();
        found.retain(|found| found.used == UseKind::Call && seen.insert((found.file, found.def)));
        let hits: Vec<Hit> = found.iter().map(Hit::at).collect();
        HitList { title: format!("{} callers of {of}", hits.len()), hits, ..HitList::default() }
    }

    pub(crate) fn callees_hits(&self, of: &str) -> HitList {
        let (targets, notes) = match self.few_definitions_of(of) {
            Err(none) => return none,
            Ok(targets) => targets,
        };
        let mut best: Vec<(Symbol, Confidence, u32)> = Vec::new();
        let mut known: QuickMap<Symbol, usize> = QuickMap::default();
        let mut unknown: Vec<&str> = Vec::new();
        for target in &targets {
            let facts = self.snapshot.facts(target.file);
            let mut sites: Vec<&Site> = (facts.sites.iter())
                .filter(|site| site.used == UseKind::Call && facts.is_within(site.def, target.def))
                .collect();
            sites.sort_by_key(|site| (site.line, site.column));
            for site in sites {
                let (found, confidence) = self.resolver.site(target.file, site);
                if found.is_empty() {
                    unknown.push(facts.str(site.name));
                }
                for symbol in found {
                    match known.get(&symbol) {
                        Some(&at) => best[at].1 = best[at].1.max(confidence),
                        None => {
                            known.insert(symbol, best.len());
                            best.push((symbol, confidence, site.line));
                        }
                    }
                }
            }
        }
        best.sort_by_key(|(_, confidence, line)| (std::cmp::Reverse(*confidence), *line));
        let hits: Vec<Hit> = best
            .into_iter()
            .map(|(symbol, confidence, _)| Hit { confidence: Some(confidence), ..Hit::of(symbol) })
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        let mut answer = HitList { title: format!("{of} calls {}", hits.len()), hits, left_out: 0, notes };
        if !unknown.is_empty() {
            let shown = unknown.iter().take(20).copied().collect::<Vec<_>>().join(", ");
            let more = unknown.len().saturating_sub(20);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            answer.notes.push(format!("defined elsewhere or not known: {shown}{more}"));
        }
        answer
    }

    /// Types derived from this one, nearest first. For a method, the methods that override it.
    pub(crate) fn implements_hits(&self, of: &str) -> HitList {
        let (targets, notes) = match self.few_definitions_of(of) {
            Err(none) => return none,
            Ok(targets) => targets,
        };
        let mut hits = Vec::new();
        for target in targets {
            let def = self.snapshot.brief(target);
            let (types, method) = if def.kind.is_type() || def.kind == DefKind::Type {
                (target, None)
            } else {
                (Symbol { file: target.file, def: def.parent }, Some(self.snapshot.same_name(target)))
            };
            if types.def == NONE {
                continue;
            }
            let mut seen = QuickSet::default();
            let mut level = vec![types];
            for distance in 1..=8u32 {
                let mut next = Vec::new();
                for found in self.references_like(&level, UseFilter::HEIRS) {
                    let Some(sub) = caller(found.file, found.def) else { continue };
                    if !seen.insert(sub) {
                        continue;
                    }
                    next.push(sub);
                    let (confidence, distance) = (Some(found.confidence), Some(distance));
                    hits.extend(match &method {
                        None => {
                            let used = Some(found.used.name());
                            Some(Hit { confidence, distance, used, ..Hit::of(sub) })
                        }
                        Some(method) => method
                            .in_file(sub.file)
                            .into_iter()
                            .find(|symbol| self.snapshot.brief(*symbol).parent == sub.def)
                            .map(|over| Hit { confidence, distance, ..Hit::of(over) }),
                    });
                }
                level = next;
                if level.is_empty() {
                    break;
                }
            }
        }
        HitList { title: format!("{} made from {of}", hits.len()), hits, left_out: 0, notes }
    }

    /// Tells whether a definition is a test, or is nested in one.
    pub fn is_test(&self, symbol: Symbol) -> bool {
        self.snapshot.brief(symbol).test
    }

    /// Tells whether a line of an answer belongs to a test.
    pub(crate) fn is_test_hit(&self, hit: &Hit) -> bool {
        match caller(hit.file, hit.def) {
            Some(at) => self.is_test(at) || self.snapshot.brief(at).kind == DefKind::Test,
            None => is_test_path(self.snapshot.path(hit.file)),
        }
    }

    pub(crate) fn tests_of_hits(&self, of: &str) -> HitList {
        let (targets, mut notes) = match self.few_definitions_of(of) {
            Err(none) => return none,
            Ok(targets) => targets,
        };
        let mut hits = self.reach(&targets, 10, &mut notes);
        hits.retain(|hit| self.is_test_hit(hit));
        HitList { title: format!("{} tests reach {of}", hits.len()), hits, left_out: 0, notes }
    }

    /// Callers and users of the definitions, by the number of steps. Guesses by name are followed for one step only.
    pub(crate) fn reach(&self, targets: &[Symbol], depth: u32, notes: &mut Vec<String>) -> Vec<Hit> {
        let mut seen: QuickSet<(u32, u32)> = targets.iter().map(|symbol| (symbol.file, symbol.def)).collect();
        let mut level: Vec<Symbol> = targets.to_vec();
        let mut hits = Vec::new();
        let mut asked = 0;
        for distance in 1..=depth {
            asked += level.len();
            level.truncate(level.len() - asked.saturating_sub(REACHED).min(level.len()));
            let like = if distance == 1 { UseFilter::ANY } else { UseFilter::SURE };
            let mut next = Vec::new();
            for found in self.references_like(&level, like) {
                // A use inside a class but outside of a method belongs to the class.
                if !seen.insert((found.file, found.def)) {
                    continue;
                }
                if found.confidence != Confidence::NameOnly {
                    next.extend(caller(found.file, found.def));
                }
                let used = Some(found.used.name());
                hits.push(Hit { distance: Some(distance), used, ..Hit::at(&found) });
            }
            if next.is_empty() || asked > REACHED {
                break;
            }
            level = next;
        }
        if asked > REACHED {
            notes.push(format!(
                "more than {REACHED} definitions are reached: what only the rest reaches is not here"
            ));
        }
        hits
    }

    pub fn def(&self, of: &str) -> GraphReply {
        self.reply(self.def_hits(of))
    }

    pub fn refs(&self, of: &str) -> GraphReply {
        self.reply(self.refs_hits(of))
    }

    pub fn callers(&self, of: &str) -> GraphReply {
        self.reply(self.callers_hits(of))
    }

    pub fn callees(&self, of: &str) -> GraphReply {
        self.reply(self.callees_hits(of))
    }

    pub fn implements(&self, of: &str) -> GraphReply {
        self.reply(self.implements_hits(of))
    }

    pub fn tests_of(&self, of: &str) -> GraphReply {
        self.reply(self.tests_of_hits(of))
    }
}

/// Tells whether a definition of a file is a test, or is nested in one.
pub(crate) fn in_test(facts: &Facts, def: u32) -> bool {
    let mut at = def;
    for _ in 0..32 {
        let Some(def) = facts.def(at) else { return false };
        if def.flags & def_flag::TEST != 0 {
            return true;
        }
        at = def.parent;
    }
    false
}
