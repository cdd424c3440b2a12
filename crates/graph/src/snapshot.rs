//! The facts of all files at one moment, with the index over them if a valid one exists.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use lathe_grammars::Language;
use parking_lot::Mutex;

use crate::facts::{Def, DefKind, Facts, Gap, NONE, Sym};
use crate::hash::QuickMap;
use crate::index::{Brief, Folded, Index};
use crate::lazy::LazyFacts;
use crate::resolve::ResolveCache;

#[derive(Debug, Clone)]
pub struct FileFacts {
    /// The path relative to the root, with `/`.
    pub path: Arc<str>,
    pub content: i64,
    pub facts: Arc<LazyFacts>,
}

/// A definition: its file and its number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol {
    pub file: u32,
    pub def: u32,
}

pub struct Snapshot {
    pub root: PathBuf,
    /// Sorted by path.
    pub files: Vec<FileFacts>,
    /// Files that are not in the answers, each with the reason.
    pub left_out: Vec<(String, Gap)>,
    /// By file, because every step of a resolution needs them.
    languages: Vec<Option<Language>>,
    names: OnceLock<QuickMap<u64, Vec<Symbol>>>,
    index: Option<Arc<Index>>,
    /// The numbers of files that have another content than the index knows.
    changed: Vec<u32>,
    /// Every name once, in lower case, one per line, with the start of each, and one definition that has it.
    folded: OnceLock<(Folded, Vec<Symbol>)>,
    pub(crate) modules: OnceLock<crate::modules::Modules>,
    /// The results of the last resolver, which stay valid for the next one.
    pub(crate) learned: Mutex<ResolveCache>,
}

/// Stands for a definition whose facts could not be read. The answer with it is discarded.
static NOTHING: Def = Def {
    name: Sym(0),
    kind: DefKind::Variable,
    flags: 0,
    parent: NONE,
    owner: Sym(0),
    start_line: 0,
    end_line: 0,
    line: 0,
    start_byte: 0,
    end_byte: 0,
    signature: Sym(0),
    doc: Sym(0),
    ty: Sym(0),
};

/// Numbers the families of languages that see each other's definitions.
pub fn family(language: Language) -> u8 {
    match language {
        Language::C | Language::Cpp => 1,
        Language::JavaScript | Language::TypeScript | Language::Tsx => 2,
        Language::Java | Language::Kotlin | Language::Scala => 3,
        other => 10 + other as u8,
    }
}

pub(crate) fn name_hash(name: &str) -> u64 {
    use std::hash::Hasher as _;
    let mut hasher = crate::hash::QuickHasher::default();
    hasher.write(name.as_bytes());
    hasher.finish()
}

impl Snapshot {
    pub fn new(root: PathBuf, files: Vec<FileFacts>, left_out: Vec<(String, Gap)>) -> Self {
        Self {
            languages: files.iter().map(|file| Language::of_path(&file.path)).collect(),
            root,
            files,
            left_out,
            names: OnceLock::new(),
            index: None,
            changed: Vec::new(),
            folded: OnceLock::new(),
            modules: OnceLock::new(),
            learned: Mutex::default(),
        }
    }

    /// Adds an index that is valid for all files but these, whose interface is still the same.
    pub(crate) fn with_index(self, index: Arc<Index>, changed: Vec<u32>) -> Self {
        Self { index: Some(index), changed, ..self }
    }

    /// The same facts without an index: everything is resolved when it is asked for.
    pub fn without_index(&self) -> Self {
        Self::new(self.root.clone(), self.files.clone(), self.left_out.clone())
    }

    pub(crate) fn index(&self) -> Option<&Arc<Index>> {
        self.index.as_ref()
    }

    /// Tells whether questions about names are look-ups.
    pub fn has_index(&self) -> bool {
        self.index.is_some()
    }

    /// The numbers of files whose uses the index does not know.
    pub(crate) fn changed(&self) -> &[u32] {
        &self.changed
    }

    /// The main properties of a definition, read from the index if possible, otherwise from its facts.
    pub(crate) fn brief(&self, symbol: Symbol) -> Brief {
        if let Some(brief) = self.index.as_ref().and_then(|index| index.brief(symbol)) {
            return brief;
        }
        let def = self.def(symbol);
        let test = crate::query::in_test(self.facts(symbol.file), symbol.def);
        Brief { kind: def.kind, flags: def.flags, parent: def.parent, owned: def.owner.0 != 0, test }
    }

    /// `a.b` with the definitions around it, unless it belongs to a type elsewhere.
    pub(crate) fn path_of(&self, symbol: Symbol) -> String {
        let mut parts = vec![self.name(symbol)];
        let mut at = symbol;
        for _ in 0..32 {
            let brief = self.brief(at);
            if brief.owned {
                let facts = self.facts(symbol.file);
                return facts.path_of(self.def(symbol));
            }
            if brief.parent == NONE {
                break;
            }
            at.def = brief.parent;
            parts.push(self.name(at));
        }
        parts.reverse();
        parts.join(".")
    }

    pub fn facts(&self, file: u32) -> &Facts {
        &self.files[file as usize].facts
    }

    pub fn path(&self, file: u32) -> &str {
        &self.files[file as usize].path
    }

    pub fn def(&self, symbol: Symbol) -> &Def {
        self.facts(symbol.file).def(symbol.def).unwrap_or(&NOTHING)
    }

    pub fn name(&self, symbol: Symbol) -> &str {
        if let Some(index) = &self.index
            && let Some(name) = index.name_of(symbol)
        {
            return index.name(name);
        }
        self.facts(symbol.file).name(self.def(symbol))
    }

    pub fn language(&self, file: u32) -> Option<Language> {
        self.languages.get(file as usize).copied().flatten()
    }

    pub fn family(&self, file: u32) -> u8 {
        self.language(file).map_or(0, family)
    }

    pub fn file(&self, path: &str) -> Option<u32> {
        self.files.binary_search_by(|file| (*file.path).cmp(path)).ok().map(|at| at as u32)
    }

    pub fn symbols(&self) -> impl Iterator<Item = Symbol> + '_ {
        (0..self.files.len() as u32).flat_map(move |file| {
            (0..self.facts(file).defs.len() as u32).map(move |def| Symbol { file, def })
        })
    }

    /// Definitions with exactly this name, in the order of paths and lines.
    pub fn named<'s>(&'s self, name: &'s str) -> impl Iterator<Item = Symbol> + 's {
        let known = self.index.as_ref().and_then(|index| Some(index.named(index.find(name)?)));
        let found = match self.index {
            Some(_) => &[][..],
            None => self.by_name().get(&name_hash(name)).map_or(&[][..], Vec::as_slice),
        };
        let found = found.iter().copied().filter(move |symbol| self.name(*symbol) == name);
        known.into_iter().flatten().chain(found)
    }

    /// A lookup for many queries for definitions with the name of this one.
    pub(crate) fn same_name(&self, symbol: Symbol) -> SameName<'_> {
        let known = self.index.as_ref().and_then(|index| Some((&**index, index.name_of(symbol)?)));
        SameName { snapshot: self, name: self.name(symbol), known }
    }

    /// Definitions with the name of this one.
    pub(crate) fn same_named(&self, symbol: Symbol) -> Vec<Symbol> {
        match &self.index {
            Some(index) => index.name_of(symbol).map_or_else(Vec::new, |name| index.named(name).collect()),
            None => self.named(self.name(symbol)).collect(),
        }
    }

    fn by_name(&self) -> &QuickMap<u64, Vec<Symbol>> {
        self.names.get_or_init(|| {
            let mut names: QuickMap<u64, Vec<Symbol>> = QuickMap::default();
            for symbol in self.symbols() {
                // A block that adds to a type is not a definition of it.
                if self.def(symbol).kind != DefKind::Impl {
                    names.entry(name_hash(self.name(symbol))).or_default().push(symbol);
                }
            }
            names
        })
    }

    /// Names that contain a text, both in lower case: the folded name, and a definition that has it.
    pub(crate) fn names_containing<'s>(
        &'s self,
        text: &'s str,
    ) -> impl Iterator<Item = (&'s str, Symbol)> + 's {
        let (all, starts) = match &self.index {
            Some(index) => index.folded(),
            None => &self.folded.get_or_init(|| self.fold()).0,
        };
        let (finder, mut from, mut next) = (memchr::memmem::Finder::new(text), 0, 0);
        std::iter::from_fn(move || {
            loop {
                let hit = from + finder.find(all.as_bytes().get(from..)?)?;
                // Hits come in the order of the names, and are often close to each other.
                let near = starts.get(next..)?;
                let few = near.get(..16).unwrap_or(near);
                let at = match few.partition_point(|start| *start as usize <= hit) {
                    16 => next + near.partition_point(|start| *start as usize <= hit),
                    within => next + within,
                };
                let at = at.checked_sub(1)?;
                next = at + 1;
                let start = *starts.get(at)? as usize;
                let end = starts.get(at + 1).map_or(all.len(), |next| *next as usize);
                from = end;
                let symbol = match &self.index {
                    Some(index) => index.named(at as u32).next(),
                    None => self.folded.get().and_then(|folded| folded.1.get(at)).copied(),
                };
                // A block that adds to a type is not a definition.
                if let Some(symbol) = symbol {
                    return Some((&all[start..end - 1], symbol));
                }
            }
        })
    }

    fn fold(&self) -> (Folded, Vec<Symbol>) {
        let (mut all, mut starts, mut firsts) = (String::new(), Vec::new(), Vec::new());
        for symbol in self.by_name().values().filter_map(|symbols| symbols.first()) {
            starts.push(all.len() as u32);
            firsts.push(*symbol);
            all.push_str(&self.name(*symbol).to_lowercase());
            all.push('\n');
        }
        ((all, starts), firsts)
    }

    /// Definitions with exactly this name in one file.
    pub fn named_in<'s>(&'s self, file: u32, name: &'s str) -> impl Iterator<Item = Symbol> + 's {
        let known = self.index.as_ref().and_then(|index| Some(index.named_in(index.find(name)?, file)));
        let found = match self.index {
            Some(_) => &[][..],
            None => self.by_name().get(&name_hash(name)).map_or(&[][..], Vec::as_slice),
        };
        let start = found.partition_point(|symbol| symbol.file < file);
        let found = found[start..]
            .iter()
            .copied()
            .take_while(move |symbol| symbol.file == file)
            .filter(move |symbol| self.name(*symbol) == name);
        known.into_iter().flatten().chain(found)
    }

    /// Reads the facts of all files.
    pub(crate) fn read_all(&self, threads: usize) {
        let portion = self.files.len().div_ceil(threads.max(1)).max(1);
        std::thread::scope(|scope| {
            for files in self.files.chunks(portion) {
                scope.spawn(move || files.iter().for_each(|file| file.facts.read()));
            }
        });
    }

    pub fn lines(&self) -> u64 {
        self.files.iter().map(|file| u64::from(file.facts.lines)).sum()
    }
}

/// Definitions of one name.
pub(crate) struct SameName<'s> {
    snapshot: &'s Snapshot,
    name: &'s str,
    known: Option<(&'s Index, u32)>,
}

impl SameName<'_> {
    pub fn in_file(&self, file: u32) -> Vec<Symbol> {
        match self.known {
            Some((index, name)) => index.named_in(name, file).collect(),
            None => self.snapshot.named_in(file, self.name).collect(),
        }
    }
}
