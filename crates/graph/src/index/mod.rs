//! The stored result of resolution: the users of each definition, by name, so that a question about a common name is
//! a look-up.
//!
//! It is derived from the facts of all files, and is valid for the contents it names. If a file has another content
//! but the same interface, the rest of the index stays valid: its entries about that file are skipped, and the file
//! itself is resolved. With any other difference the index is not used at all, so nothing in an answer can be older
//! than the files.
//!
//! It is stored in parts that are read on first use. Numbers are little-endian words of four bytes.

mod make;

use std::sync::{Arc, OnceLock};

pub use make::make;

use crate::facts::{DefKind, UseKind};
use crate::lazy::FactsSource;
use crate::references::UseFilter;
use crate::resolve::Confidence;
use crate::snapshot::Symbol;

/// The parts, by their number in the database. The parts with the uses follow them.
const HEAD: usize = 0;
const NAME_TEXT: usize = 1;
/// The end of each name in the text, and, as many again and one, the start of its definitions.
const NAME_ENDS: usize = 2;
const NAME_STARTS: usize = 3;
/// The file and number of each definition, by name.
const NAMED: usize = 4;
/// For each definition by file: its name, the definition around it, and its properties.
const SYMBOLS: usize = 5;
/// For each type with bases: the type, whether all are known, their count, and the bases.
const BASES: usize = 6;
/// For each file the start of its importers, then pairs of file and line.
const IMPORTED: usize = 7;
/// For each node the start of its links, and the end; then pairs of target and part of the rank.
const LINKS: usize = 8;
/// The definitions of most worth for a map without a task.
const TOP: usize = 9;
/// The rank of every node in such a map.
const RANKS: usize = 10;
const PARTS: usize = 11;

/// The size of a use in the parts after these.
const RECORD: usize = 20;

/// The target of a use with an unknown receiver: every member of the name.
const ANYONE: u32 = (1 << 24) - 1;

/// A file that the index was made from.
#[derive(Debug, Clone)]
pub struct IndexedFile {
    pub path: String,
    pub content: i64,
    pub interface: i64,
    /// The packages and modules that it declares, with a zero byte between them.
    pub packages: String,
}

/// The properties of a definition that an index knows without its facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brief {
    pub kind: DefKind,
    pub flags: u8,
    pub parent: u32,
    /// True if it belongs to a type that is not around it.
    pub owned: bool,
    /// True if it is a test, or is nested in one.
    pub test: bool,
}

/// A use of a definition, or of any with its name.
#[derive(Debug, Clone, Copy)]
pub struct IndexedUse {
    /// None stands for every member of the name.
    pub target: Option<u32>,
    pub confidence: Confidence,
    pub used: UseKind,
    /// True if the use may mean others too.
    pub shared: bool,
    pub file: u32,
    pub site: u32,
    pub line: u32,
    pub def: u32,
}

/// Names in lower case, one per line, and the start of each.
pub type Folded = (String, Vec<u32>);

pub struct Index {
    pub files: Vec<IndexedFile>,
    /// The number of the first definition of each file, and the end.
    starts: Vec<u32>,
    parts: [OnceLock<Box<[u8]>>; PARTS],
    /// The first name of each part with uses.
    firsts: Vec<u32>,
    uses: Vec<OnceLock<Box<[u8]>>>,
    source: Option<Arc<FactsSource>>,
    folded: OnceLock<Folded>,
    worths: OnceLock<Vec<f32>>,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at * 4..at * 4 + 4)?;
    Some(u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

impl Index {
    /// The index in the database, if there is one that can be read.
    pub fn open(source: Arc<FactsSource>) -> Option<Self> {
        let head = {
            let db = source.db();
            let there =
                db.prepare_cached("SELECT 1 FROM derived WHERE id = 0").and_then(|mut q| q.exists([]));
            drop(db);
            there.ok().filter(|there| *there)?;
            source.section(HEAD as i64)
        };
        let mut index = Self::read_head(&head)?;
        index.source = Some(source);
        Some(index)
    }

    fn read_head(head: &[u8]) -> Option<Self> {
        let (count, chunks) = (word(head, 0)? as usize, word(head, 1)? as usize);
        let mut firsts = Vec::with_capacity(chunks.min(head.len()));
        for at in 0..chunks {
            firsts.push(word(head, 2 + at)?);
        }
        let mut rest = head.get((2 + chunks) * 4..)?;
        let (mut files, mut starts) = (Vec::with_capacity(count.min(head.len())), vec![0u32]);
        for _ in 0..count {
            let (numbers, after) = rest.split_at_checked(28)?;
            let long =
                |at: usize| Some(u64::from(word(numbers, at)?) | u64::from(word(numbers, at + 1)?) << 32);
            let (content, interface) = (long(0)?.cast_signed(), long(2)?.cast_signed());
            let (path, after) = after.split_at_checked(word(numbers, 5)? as usize)?;
            let (packages, after) = after.split_at_checked(word(numbers, 6)? as usize)?;
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
            files.push(IndexedFile { path: text(path)?, content, interface, packages: text(packages)? });
            starts.push(starts.last()?.checked_add(word(numbers, 4)?)?);
            rest = after;
        }
        let uses = firsts.iter().map(|_| OnceLock::new()).collect();
        Some(Self {
            files,
            starts,
            parts: Default::default(),
            firsts,
            uses,
            source: None,
            folded: OnceLock::new(),
            worths: OnceLock::new(),
        })
    }

    /// All parts in the form in which they are stored.
    pub fn sections(&self) -> Vec<(i64, &[u8])> {
        let parts = self.parts.iter().enumerate().filter_map(|(at, part)| Some((at as i64, &**part.get()?)));
        let uses =
            self.uses.iter().enumerate().filter_map(|(at, part)| Some(((PARTS + at) as i64, &**part.get()?)));
        parts.chain(uses).collect()
    }

    fn part(&self, id: usize) -> &[u8] {
        self.parts[id].get_or_init(|| self.read(id))
    }

    fn read(&self, id: usize) -> Box<[u8]> {
        self.source.as_ref().map_or_else(Box::default, |source| source.section(id as i64))
    }

    pub fn names(&self) -> u32 {
        (self.part(NAME_ENDS).len() / 4) as u32
    }

    pub fn name(&self, id: u32) -> &str {
        let ends = self.part(NAME_ENDS);
        let start = (id as usize).checked_sub(1).and_then(|before| word(ends, before)).unwrap_or(0);
        let end = word(ends, id as usize).unwrap_or(0);
        let bytes = self.part(NAME_TEXT).get(start as usize..end as usize).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    pub fn find(&self, name: &str) -> Option<u32> {
        let (mut low, mut high) = (0, self.names());
        while low < high {
            let middle = low.midpoint(high);
            match self.name(middle).cmp(name) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Definitions of a name, in the order of files and numbers.
    pub fn named(&self, name: u32) -> impl ExactSizeIterator<Item = Symbol> + Clone + '_ {
        let (starts, all) = (self.part(NAME_STARTS), self.part(NAMED));
        let start = word(starts, name as usize).unwrap_or(0) as usize;
        let end = word(starts, name as usize + 1).unwrap_or(0) as usize;
        let pairs = all.get(start * 8..end * 8).unwrap_or_default();
        pairs.chunks_exact(8).map(|pair| Symbol {
            file: u32::from_le_bytes([pair[0], pair[1], pair[2], pair[3]]),
            def: u32::from_le_bytes([pair[4], pair[5], pair[6], pair[7]]),
        })
    }

    /// Definitions of a name in one file.
    pub fn named_in(&self, name: u32, file: u32) -> impl Iterator<Item = Symbol> + '_ {
        let (starts, all) = (self.part(NAME_STARTS), self.part(NAMED));
        let start = word(starts, name as usize).unwrap_or(0) as usize;
        let end = word(starts, name as usize + 1).unwrap_or(0) as usize;
        let (mut low, mut high) = (start, end);
        while low < high {
            let middle = low.midpoint(high);
            if word(all, middle * 2).unwrap_or(0) < file { low = middle + 1 } else { high = middle }
        }
        (low..end)
            .map(move |at| Symbol {
                file: word(all, at * 2).unwrap_or(0),
                def: word(all, at * 2 + 1).unwrap_or(0),
            })
            .take_while(move |symbol| symbol.file == file)
    }

    /// The number of a definition among all.
    pub fn number(&self, symbol: Symbol) -> Option<u32> {
        let at = self.starts.get(symbol.file as usize)?.checked_add(symbol.def)?;
        (at < *self.starts.get(symbol.file as usize + 1)?).then_some(at)
    }

    pub fn symbol(&self, number: u32) -> Symbol {
        let file = self.starts.partition_point(|start| *start <= number).saturating_sub(1);
        Symbol { file: file as u32, def: number - self.starts.get(file).copied().unwrap_or(0) }
    }

    /// The definitions of many numbers, which come in order.
    pub fn symbols(&self, numbers: impl Iterator<Item = u32>) -> impl Iterator<Item = (u32, Symbol)> {
        let mut file = 0;
        numbers.map(move |number| {
            while self.starts.get(file + 1).is_some_and(|next| *next <= number) {
                file += 1;
            }
            let start = self.starts.get(file).copied().unwrap_or(0);
            (number, Symbol { file: file as u32, def: number.saturating_sub(start) })
        })
    }

    pub fn total(&self) -> u32 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// The definitions of a file, by their numbers among all.
    pub fn range(&self, file: u32) -> std::ops::Range<u32> {
        let at = |file: u32| self.starts.get(file as usize).copied().unwrap_or(0);
        at(file)..at(file + 1)
    }

    pub fn name_of(&self, symbol: Symbol) -> Option<u32> {
        word(self.part(SYMBOLS), self.number(symbol)? as usize * 3)
    }

    pub fn brief(&self, symbol: Symbol) -> Option<Brief> {
        let at = self.number(symbol)? as usize * 3;
        let all = self.part(SYMBOLS);
        let (parent, what) = (word(all, at + 1)?, word(all, at + 2)?);
        Some(Brief {
            kind: *DefKind::ALL.get((what & 0xff) as usize)?,
            flags: (what >> 8 & 0xff) as u8,
            parent,
            owned: what >> 16 & 1 != 0,
            test: what >> 17 & 1 != 0,
        })
    }

    /// The base types of a type, and whether all are known. Empty for a type that declares none.
    pub fn bases(&self, one: Symbol) -> Option<(Vec<Symbol>, bool)> {
        let all = self.part(BASES);
        let wanted = self.number(one)?;
        let count = word(all, 0)? as usize;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            match word(all, 1 + middle * 2)?.cmp(&wanted) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let at = 1 + count * 2 + word(all, 2 + middle * 2)? as usize;
                    let (length, whole) = (word(all, at)? >> 1, word(all, at)? & 1 != 0);
                    let found =
                        (1..=length as usize).map(|next| word(all, at + next).map(|n| self.symbol(n)));
                    return Some((found.collect::<Option<_>>()?, whole));
                }
            }
        }
        Some((Vec::new(), true))
    }

    /// The files that import a file, each with the line of the import.
    pub fn imported(&self, file: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let all = self.part(IMPORTED);
        let head = self.files.len() + 1;
        let at = |file: usize| word(all, file).unwrap_or(0) as usize;
        (at(file as usize)..at(file as usize + 1))
            .filter_map(move |pair| Some((word(all, head + pair * 2)?, word(all, head + pair * 2 + 1)?)))
    }

    /// The number of nodes with a rank: definitions and files.
    pub fn nodes(&self) -> u32 {
        self.total() + self.files.len() as u32
    }

    /// The links of a node, each with the part of the rank that it takes.
    pub fn links(&self, node: u32) -> impl ExactSizeIterator<Item = (u32, f32)> + '_ {
        let (all, head) = (self.part(LINKS), self.nodes() as usize + 1);
        let at = |node: u32| (head + word(all, node as usize).unwrap_or(0) as usize * 2) * 4;
        let pairs = all.get(at(node)..at(node + 1)).unwrap_or_default();
        pairs
            .chunks_exact(8)
            .map(|pair| (word(pair, 0).unwrap_or(0), f32::from_bits(word(pair, 1).unwrap_or(0))))
    }

    pub fn top(&self) -> impl ExactSizeIterator<Item = Symbol> + '_ {
        self.part(TOP).chunks_exact(4).map(|four| self.symbol(word(four, 0).unwrap_or(0)))
    }

    pub fn rank(&self, node: u32) -> f32 {
        word(self.part(RANKS), node as usize).map_or(0.0, f32::from_bits)
    }

    /// The uses of a name's definitions, by target. Uses with an unknown receiver, which are never sure, come last.
    /// With `target`, only the uses that may mean it.
    pub fn uses(
        &self,
        name: u32,
        target: Option<u32>,
        like: UseFilter,
    ) -> impl Iterator<Item = IndexedUse> + '_ {
        let records = self.records(name).unwrap_or_default();
        let rank = |at: usize| word(&records[at * RECORD..], 0).unwrap_or(0) & ANYONE;
        let count = records.len() / RECORD;
        let bound = |wanted: u32| {
            let (mut low, mut high) = (0, count);
            while low < high {
                let middle = low.midpoint(high);
                if rank(middle) < wanted { low = middle + 1 } else { high = middle }
            }
            low
        };
        let own = match target.and_then(|target| self.rank_of(name, target)) {
            Some(target) => bound(target)..bound(target + 1),
            None if target.is_some() => 0..0,
            None => 0..bound(ANYONE),
        };
        let named = word(self.part(NAME_STARTS), name as usize).unwrap_or(0);
        let anyone = if like.least > Confidence::NameOnly { 0..0 } else { bound(ANYONE)..count };
        own.chain(anyone).filter_map(move |at| {
            let record = &records[at * RECORD..(at + 1) * RECORD];
            let first = word(record, 0)?;
            let confidence = [Confidence::NameOnly, Confidence::Likely, Confidence::Exact]
                [(first >> 28 & 3).min(2) as usize];
            let used = *UseKind::ALL.get((first >> 24 & 15) as usize)?;
            if !like.matches(used, confidence) {
                return None;
            }
            let target = match first & ANYONE {
                ANYONE => None,
                rank => {
                    let pair = (named + rank) as usize * 2;
                    let all = self.part(NAMED);
                    Some(self.number(Symbol { file: word(all, pair)?, def: word(all, pair + 1)? })?)
                }
            };
            Some(IndexedUse {
                target,
                confidence,
                used,
                shared: first >> 30 & 1 != 0,
                file: word(record, 1)?,
                site: word(record, 2)?,
                line: word(record, 3)?,
                def: word(record, 4)?,
            })
        })
    }

    /// The position of a definition among those of a name.
    fn rank_of(&self, name: u32, number: u32) -> Option<u32> {
        let wanted = self.symbol(number);
        let (starts, all) = (self.part(NAME_STARTS), self.part(NAMED));
        let start = word(starts, name as usize)? as usize;
        let (mut low, mut high) = (start, word(starts, name as usize + 1)? as usize);
        while low < high {
            let middle = low.midpoint(high);
            let one = Symbol { file: word(all, middle * 2)?, def: word(all, middle * 2 + 1)? };
            match one.cmp(&wanted) {
                std::cmp::Ordering::Equal => return Some((middle - start) as u32),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn records(&self, name: u32) -> Option<&[u8]> {
        let chunk = self.firsts.partition_point(|first| *first <= name).checked_sub(1)?;
        let bytes = self.uses[chunk].get_or_init(|| self.read(PARTS + chunk));
        let first = self.firsts[chunk];
        let next = self.firsts.get(chunk + 1).copied().unwrap_or(self.names());
        let count = (next - first) as usize;
        let at = (name - first) as usize;
        let (start, end) = (word(bytes, at)? as usize, word(bytes, at + 1)? as usize);
        bytes.get((count + 1) * 4..)?.get(start * RECORD..end * RECORD)
    }

    pub fn worth_of_file(&self, file: u32) -> f32 {
        let all = self
            .worths
            .get_or_init(|| self.files.iter().map(|file| crate::rank::worth_of_path(&file.path)).collect());
        all.get(file as usize).copied().unwrap_or(0.0)
    }

    pub fn folded_names(&self) -> impl Iterator<Item = (&str, u32)> {
        let (all, starts) = self.folded();
        (0..starts.len()).map(move |id| {
            let end = starts.get(id + 1).map_or(all.len(), |next| *next as usize);
            (&all[starts[id] as usize..end - 1], id as u32)
        })
    }

    /// The names in lower case, one per line, in their order.
    pub fn folded(&self) -> &Folded {
        self.folded.get_or_init(|| {
            let text = std::str::from_utf8(self.part(NAME_TEXT)).unwrap_or_default();
            let (ends, plain) = (self.part(NAME_ENDS).chunks_exact(4), text.is_ascii());
            let mut all = String::with_capacity(text.len() + ends.len());
            let (mut starts, mut from) = (Vec::with_capacity(ends.len()), 0);
            for end in ends.map(|end| word(end, 0).unwrap_or(0) as usize) {
                starts.push(all.len() as u32);
                let name = text.get(from..end).unwrap_or_default();
                if plain {
                    all.push_str(name)
                } else {
                    crate::text::push_lower(&mut all, name)
                }
                all.push('\n');
                from = end;
            }
            all.make_ascii_lowercase();
            (all, starts)
        })
    }
}
