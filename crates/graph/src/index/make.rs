//! Makes the index: every use of every file is resolved once, by several threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::{
    ANYONE, BASES, HEAD, IMPORTED, Index, LINKS, NAME_ENDS, NAME_STARTS, NAME_TEXT, NAMED, RANKS, RECORD,
};
use super::{SYMBOLS, TOP};
use crate::facts::{NONE, UseKind};
use crate::hash::QuickMap;
use crate::interface::interface;
use crate::query::{Query, in_test};
use crate::rank::{RankLinks, file_links, worth};
use crate::resolve::Meaning;
use crate::snapshot::{Snapshot, Symbol};

/// The approximate size in bytes of a chunk of uses.
const CHUNK: usize = 16 << 10;

/// The number of definitions that are stored in the order of their worth for a map.
const MOST: usize = 4096;

#[derive(Default)]
struct ByteWriter(Vec<u8>);

impl ByteWriter {
    fn put(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn long(&mut self, value: i64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
}

/// The part of the index that one file adds.
#[derive(Default)]
struct FileEntries {
    /// The used name, and the record.
    uses: Vec<(u32, [u32; 5])>,
    links: Vec<(u32, u32, f32)>,
    bases: Vec<(u32, Vec<u32>, bool)>,
    imports: Vec<(u32, u32)>,
}

/// Makes the index. None if it was stopped.
pub fn make(snapshot: &Snapshot, threads: usize, stop: &AtomicBool) -> Option<Index> {
    let mut index = skeleton(snapshot)?;
    let next = AtomicUsize::new(0);
    let all: Mutex<Vec<(usize, FileEntries)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                let query = Query::new(snapshot);
                let mut mine = Vec::new();
                loop {
                    let file = next.fetch_add(1, Ordering::Relaxed);
                    if file >= snapshot.files.len() || stop.load(Ordering::Relaxed) {
                        break;
                    }
                    mine.push((file, add(&query, &index, file as u32)));
                }
                all.lock().append(&mut mine);
            });
        }
    });
    if stop.load(Ordering::Relaxed) {
        return None;
    }
    let mut all = all.into_inner();
    all.sort_unstable_by_key(|(file, _)| *file);
    put_uses(&mut index, &mut all);
    let (mut links, mut bases, mut list) = (Vec::new(), Vec::new(), ByteWriter::default());
    let mut importers: Vec<Vec<(u32, u32)>> = vec![Vec::new(); snapshot.files.len()];
    for (file, added) in all {
        links.extend(added.links);
        for (one, found, whole) in added.bases {
            bases.push((one, (list.0.len() / 4) as u32));
            list.put((found.len() as u32) << 1 | u32::from(whole));
            found.into_iter().for_each(|base| list.put(base));
        }
        for (target, line) in added.imports {
            importers[target as usize].push((file as u32, line));
        }
    }
    let mut head = ByteWriter::default();
    head.put(bases.len() as u32);
    for (one, at) in bases {
        head.put(one);
        head.put(at);
    }
    head.0.append(&mut list.0);
    let mut imported = ByteWriter::default();
    let mut at = 0;
    imported.put(0);
    for of in &importers {
        at += of.len() as u32;
        imported.put(at);
    }
    for (file, line) in importers.into_iter().flatten() {
        imported.put(file);
        imported.put(line);
    }
    index.parts[LINKS] = OnceLock::from(grouped(&index, links).into_boxed_slice());
    index.parts[BASES] = OnceLock::from(head.0.into_boxed_slice());
    index.parts[IMPORTED] = OnceLock::from(imported.0.into_boxed_slice());
    let ranks = RankLinks::of(&index).ranks();
    let mut order: Vec<(f32, u32)> = (index.symbols(0..index.total()))
        .map(|(at, symbol)| (worth(snapshot, &index, symbol) * ranks[at as usize], at))
        .collect();
    let before = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    if order.len() > MOST {
        order.select_nth_unstable_by(MOST, before);
        order.truncate(MOST);
    }
    order.sort_unstable_by(before);
    let mut top = ByteWriter::default();
    order.into_iter().for_each(|(_, at)| top.put(at));
    let mut kept = ByteWriter::default();
    ranks.into_iter().for_each(|rank| kept.put(rank.to_bits()));
    index.parts[TOP] = OnceLock::from(top.0.into_boxed_slice());
    index.parts[RANKS] = OnceLock::from(kept.0.into_boxed_slice());
    Some(index)
}

/// Makes the files, names and definitions, by which all other parts are numbered.
fn skeleton(snapshot: &Snapshot) -> Option<Index> {
    let mut numbers: QuickMap<&str, u32> = QuickMap::default();
    for symbol in snapshot.symbols() {
        let next = numbers.len() as u32;
        numbers.entry(snapshot.name(symbol)).or_insert(next);
    }
    let mut names: Vec<&str> = numbers.keys().copied().collect();
    names.sort_unstable();
    for (at, name) in names.iter().enumerate() {
        numbers.insert(name, at as u32);
    }
    let mut head = ByteWriter::default();
    head.put(snapshot.files.len() as u32);
    head.put(0);
    let (mut symbols, mut named) = (ByteWriter::default(), vec![Vec::new(); names.len()]);
    for (at, file) in snapshot.files.iter().enumerate() {
        let (at, facts) = (at as u32, snapshot.facts(at as u32));
        let packages = crate::modules::packages(snapshot, at).join("\0");
        head.long(file.content);
        head.long(interface(facts));
        head.put(facts.defs.len() as u32);
        head.put(file.path.len() as u32);
        head.put(packages.len() as u32);
        head.0.extend_from_slice(file.path.as_bytes());
        head.0.extend_from_slice(packages.as_bytes());
        for (number, def) in facts.defs.iter().enumerate() {
            let symbol = Symbol { file: at, def: number as u32 };
            let name = *numbers.get(facts.name(def))?;
            if def.kind != crate::facts::DefKind::Impl {
                named[name as usize].push(symbol);
            }
            symbols.put(name);
            symbols.put(def.parent);
            let marks = u32::from(def.owner.0 != 0) << 16 | u32::from(in_test(facts, symbol.def)) << 17;
            symbols.put(def.kind as u32 | u32::from(def.flags) << 8 | marks);
        }
    }
    let (mut text, mut ends) = (ByteWriter::default(), ByteWriter::default());
    for name in &names {
        text.0.extend_from_slice(name.as_bytes());
        ends.put(text.0.len() as u32);
    }
    let (mut starts, mut pairs) = (ByteWriter::default(), ByteWriter::default());
    starts.put(0);
    let mut at = 0;
    for of in &named {
        at += of.len() as u32;
        starts.put(at);
        for symbol in of {
            pairs.put(symbol.file);
            pairs.put(symbol.def);
        }
    }
    let mut index = Index::read_head(&head.0)?;
    for (id, bytes) in [
        (HEAD, head),
        (NAME_TEXT, text),
        (NAME_ENDS, ends),
        (NAME_STARTS, starts),
        (NAMED, pairs),
        (SYMBOLS, symbols),
    ] {
        index.parts[id] = OnceLock::from(bytes.0.into_boxed_slice());
    }
    Some(index)
}

fn add(query: &Query<'_>, index: &Index, file: u32) -> FileEntries {
    let facts = query.snapshot.facts(file);
    let mut added = FileEntries::default();
    let mut names: QuickMap<u32, Option<u32>> = QuickMap::default();
    let (uses, links) = (&mut added.uses, &mut added.links);
    *links = file_links(query, index, file, |at, site, meaning| {
        let record = |rank: u32, confidence: u32, shared: bool| {
            let first = rank | (site.used as u32) << 24 | confidence << 28 | u32::from(shared) << 30;
            [first, file, at as u32, site.line, site.def]
        };
        match meaning {
            Meaning::Of(targets, confidence) => {
                for target in targets {
                    let Some(name) = index.name_of(*target) else { continue };
                    let Some(rank) = index.number(*target).and_then(|number| index.rank_of(name, number))
                    else {
                        continue;
                    };
                    uses.push((name, record(rank, *confidence as u32, targets.len() > 1)));
                }
            }
            Meaning::Anyone => {
                let name = *names.entry(site.name.0).or_insert_with(|| index.find(facts.str(site.name)));
                uses.extend(name.map(|name| (name, record(ANYONE, 0, false))));
            }
        }
    });
    let mut types: Vec<u32> = (facts.sites.iter())
        .filter(|site| matches!(site.used, UseKind::Inherit | UseKind::Implement))
        .map(|site| site.def)
        .filter(|def| *def != NONE)
        .collect();
    // A block that adds to a type counts for every type of that name in the file.
    let blocks: Vec<&str> = (types.iter())
        .filter_map(|def| facts.def(*def))
        .filter(|def| def.kind == crate::facts::DefKind::Impl)
        .map(|def| facts.name(def))
        .collect();
    types.extend(
        (0..facts.defs.len() as u32)
            .filter(|def| facts.def(*def).is_some_and(|def| blocks.contains(&facts.name(def)))),
    );
    types.sort_unstable();
    types.dedup();
    for def in types {
        let one = Symbol { file, def };
        let (bases, whole) = query.resolver.bases_of(one);
        if let Some(number) = index.number(one) {
            let bases = bases.into_iter().filter_map(|base| index.number(base)).collect();
            added.bases.push((number, bases, whole));
        }
    }
    added.imports = query.imports_of(file);
    added
}

/// Groups links by their start, each with the part of the rank that it takes.
fn grouped(index: &Index, mut links: Vec<(u32, u32, f32)>) -> Vec<u8> {
    links.sort_unstable_by_key(|(from, to, _)| (*from, *to));
    let (mut starts, mut pairs) = (ByteWriter::default(), ByteWriter::default());
    let mut rest = links.as_slice();
    starts.put(0);
    for node in 0..index.nodes() {
        let (of, after) = rest.split_at(rest.partition_point(|(from, ..)| *from <= node));
        let sum: f32 = of.iter().map(|(.., weight)| weight).sum();
        for (_, to, weight) in of {
            pairs.put(*to);
            pairs.put((weight / sum).to_bits());
        }
        rest = after;
        starts.put((pairs.0.len() / 8) as u32);
    }
    starts.0.append(&mut pairs.0);
    starts.0
}

/// Groups the uses by the used name, and within a name by target.
fn put_uses(index: &mut Index, all: &mut [(usize, FileEntries)]) {
    let names = index.names() as usize;
    let mut starts = vec![0u32; names + 1];
    for (name, _) in all.iter().flat_map(|(_, added)| &added.uses) {
        starts[*name as usize + 1] += 1;
    }
    for at in 0..names {
        starts[at + 1] += starts[at];
    }
    let mut records = vec![[0u32; 5]; starts[names] as usize];
    let mut free = starts.clone();
    for (_, added) in all.iter_mut() {
        for (name, record) in std::mem::take(&mut added.uses) {
            records[free[name as usize] as usize] = record;
            free[name as usize] += 1;
        }
    }
    let (mut firsts, mut chunks) = (Vec::new(), Vec::new());
    let mut first = 0;
    while first < names {
        let mut end = first + 1;
        while end < names && (starts[end + 1] - starts[first]) as usize * RECORD < CHUNK {
            end += 1;
        }
        let mut bytes = ByteWriter::default();
        for at in first..=end {
            bytes.put(starts[at] - starts[first]);
        }
        for at in first..end {
            let of = &mut records[starts[at] as usize..starts[at + 1] as usize];
            of.sort_unstable_by_key(|record| (record[0] & ANYONE, record[1], record[2]));
            of.iter().flatten().for_each(|value| bytes.put(*value));
        }
        firsts.push(first as u32);
        chunks.push(OnceLock::from(bytes.0.into_boxed_slice()));
        first = end;
    }
    let mut head = ByteWriter::default();
    head.put(index.files.len() as u32);
    head.put(firsts.len() as u32);
    firsts.iter().for_each(|first| head.put(*first));
    head.0.extend_from_slice(index.part(HEAD).get(8..).unwrap_or_default());
    index.parts[HEAD] = OnceLock::from(head.0.into_boxed_slice());
    index.firsts = firsts;
    index.uses = chunks;
}
