//! The facts of all files at one moment, with an index of definitions by name.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use lathe_grammars::Language;

use crate::facts::{Def, Facts, Gap, Kind};
use crate::hash::QuickMap;
use crate::resolve::Learned;

#[derive(Debug, Clone)]
pub struct FileFacts {
    /// From the root, with `/`.
    pub path: Arc<str>,
    pub content: i64,
    pub facts: Arc<Facts>,
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
    /// Files that are not in the answers, and why.
    pub left_out: Vec<(String, Gap)>,
    /// By file, because every step of a resolution asks.
    languages: Vec<Option<Language>>,
    names: OnceLock<QuickMap<u64, Vec<Symbol>>>,
    /// Every name once, in lower case, one per line; and where each begins, with a definition that has it.
    folded: OnceLock<(String, Vec<(usize, Symbol)>)>,
    pub(crate) modules: OnceLock<crate::modules::Modules>,
    /// What the last resolver found out; it holds for the next one.
    pub(crate) learned: Mutex<Learned>,
}

/// Languages that see each other's definitions.
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
    let mut hasher = crate::hash::Quick::default();
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
            folded: OnceLock::new(),
            modules: OnceLock::new(),
            learned: Mutex::default(),
        }
    }

    pub fn facts(&self, file: u32) -> &Facts {
        &self.files[file as usize].facts
    }

    pub fn path(&self, file: u32) -> &str {
        &self.files[file as usize].path
    }

    pub fn def(&self, symbol: Symbol) -> &Def {
        &self.facts(symbol.file).defs[symbol.def as usize]
    }

    pub fn name(&self, symbol: Symbol) -> &str {
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
        let found = self.by_name().get(&name_hash(name)).map_or(&[][..], Vec::as_slice);
        found.iter().copied().filter(move |symbol| self.name(*symbol) == name)
    }

    fn by_name(&self) -> &QuickMap<u64, Vec<Symbol>> {
        self.names.get_or_init(|| {
            let mut names: QuickMap<u64, Vec<Symbol>> = QuickMap::default();
            for symbol in self.symbols() {
                // A block that adds to a type is not a definition of it.
                if self.def(symbol).kind != Kind::Impl {
                    names.entry(name_hash(self.name(symbol))).or_default().push(symbol);
                }
            }
            names
        })
    }

    /// Names that hold a text, both in lower case: the folded name, and a definition that has it.
    pub(crate) fn names_holding<'s>(&'s self, text: &'s str) -> impl Iterator<Item = (&'s str, Symbol)> + 's {
        let (all, starts) = self.folded.get_or_init(|| {
            let (mut all, mut starts) = (String::new(), Vec::new());
            for symbol in self.by_name().values().filter_map(|symbols| symbols.first()) {
                starts.push((all.len(), *symbol));
                all.push_str(&self.name(*symbol).to_lowercase());
                all.push('\n');
            }
            (all, starts)
        });
        let mut from = 0;
        std::iter::from_fn(move || {
            let hit = from + all.get(from..)?.find(text)?;
            let at = starts.partition_point(|(start, _)| *start <= hit).checked_sub(1)?;
            let (start, symbol) = *starts.get(at)?;
            let end = starts.get(at + 1).map_or(all.len(), |(next, _)| *next);
            from = end;
            Some((&all[start..end - 1], symbol))
        })
    }

    /// The same, in one file.
    pub fn named_in<'s>(&'s self, file: u32, name: &'s str) -> impl Iterator<Item = Symbol> + 's {
        let found = self.by_name().get(&name_hash(name)).map_or(&[][..], Vec::as_slice);
        let start = found.partition_point(|symbol| symbol.file < file);
        found[start..]
            .iter()
            .copied()
            .take_while(move |symbol| symbol.file == file)
            .filter(move |symbol| self.name(*symbol) == name)
    }

    pub fn lines(&self) -> u64 {
        self.files.iter().map(|file| u64::from(file.facts.lines)).sum()
    }
}
