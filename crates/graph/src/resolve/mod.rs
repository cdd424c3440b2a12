//! Resolves a use to the definition it means: by scope, imports, the type of the receiver, the layout of modules.
//!
//! Every answer has a confidence. `exact` follows the rules of the language from the use to one definition; `likely`
//! had to infer something (a result type, the type of a field, the only definition of that name); `name-only` is
//! every definition with the name, for a receiver that nothing is known about. A use that is known to come from
//! elsewhere (an import without a matching file) has no answer at all, and neither has a local variable.

mod members;

use std::cell::RefCell;

use serde::Serialize;

use crate::facts::{DefKind, NONE, Site, UseKind, def_flag, site_flag};
use crate::hash::QuickMap;
use crate::modules::Modules;
use crate::rules::{LanguageRules, LanguageSettings};
use crate::snapshot::{Snapshot, Symbol};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    NameOnly,
    Likely,
    Exact,
}

impl Confidence {
    pub fn name(self) -> &'static str {
        match self {
            Self::NameOnly => "name-only",
            Self::Likely => "likely",
            Self::Exact => "exact",
        }
    }
}

/// The meaning of a name or an expression.
#[derive(Debug, Clone)]
enum ResolvedValue {
    /// Definitions: a class, a function, a variable.
    Symbols(Vec<Symbol>, Confidence),
    /// An object of these types.
    Object(Vec<Symbol>, Confidence),
    Module(Vec<u32>),
    /// Known to be external.
    Foreign,
    Unknown,
}

pub type Resolved = (Vec<Symbol>, Confidence);

/// The meaning of a use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    Of(Vec<Symbol>, Confidence),
    /// The receiver is not known: every member of the name is possible.
    Anyone,
}

pub struct Resolver<'s> {
    snapshot: &'s Snapshot,
    learned: RefCell<ResolveCache>,
}

/// Results that were found during resolution and stay valid as long as the snapshot.
#[derive(Default)]
pub struct ResolveCache {
    bases: QuickMap<Symbol, (Vec<Symbol>, bool)>,
    imported: QuickMap<(u32, u64), Vec<u32>>,
    /// By type and the hash of a name: its members of that name, and whether all its bases are known.
    members: QuickMap<(Symbol, u64), (Vec<Symbol>, bool)>,
    /// By method of a Go interface: the methods that can be called through it.
    through: QuickMap<Symbol, Vec<Symbol>>,
}

impl Drop for Resolver<'_> {
    fn drop(&mut self) {
        *self.snapshot.learned.lock() = self.learned.take();
    }
}

/// With more definitions than this, a name alone says nothing.
const TOO_MANY: usize = 40;
const DEPTH: usize = 6;

impl<'s> Resolver<'s> {
    pub fn new(snapshot: &'s Snapshot) -> Self {
        Self { snapshot, learned: RefCell::new(std::mem::take(&mut *snapshot.learned.lock())) }
    }

    fn modules(&self) -> &'s Modules {
        Modules::of(self.snapshot)
    }

    fn settings(&self, file: u32) -> Option<&'static LanguageSettings> {
        LanguageRules::of(self.snapshot.language(file)?).map(|rules| &rules.settings)
    }

    /// The definitions that a use means. Empty if it means nothing in this repository.
    pub fn site(&self, file: u32, site: &Site) -> Resolved {
        match self.meaning(file, site) {
            Meaning::Of(found, confidence) => (found, confidence),
            Meaning::Anyone => {
                (self.by_name(file, self.snapshot.facts(file).str(site.name)), Confidence::NameOnly)
            }
        }
    }

    pub fn meaning(&self, file: u32, site: &Site) -> Meaning {
        let facts = self.snapshot.facts(file);
        let (name, qualifier) = (facts.str(site.name), facts.str(site.qualifier));
        let value = if qualifier.is_empty() {
            self.resolve_bare(file, site.def, name, site.flags & site_flag::LOCAL != 0, 0)
        } else {
            let typed = site.flags & site_flag::TYPED != 0;
            let receiver = self.resolve_path(file, site.def, qualifier, typed, 0);
            self.member(&receiver, name, 0)
        };
        match value {
            ResolvedValue::Symbols(found, mut confidence) => {
                let mut found = self.prefer(found, site.used);
                if let [one] = found[..]
                    && site.used == UseKind::Call
                    && self.snapshot.language(one.file) == Some(lathe_grammars::Language::Go)
                    && !self.is_defined(one)
                {
                    let through = self.interface_targets(one);
                    confidence = match through.len() {
                        0 => confidence,
                        1..=8 => confidence.min(Confidence::Likely),
                        _ => Confidence::NameOnly,
                    };
                    found.extend(through);
                    found.sort_unstable();
                    return Meaning::Of(found, confidence);
                }
                // One of several: defined in both arms of an `if`, or overloaded.
                if found.iter().filter(|symbol| self.is_defined(**symbol)).nth(1).is_some() {
                    confidence = confidence.min(Confidence::Likely);
                }
                Meaning::Of(found, confidence)
            }
            ResolvedValue::Unknown if !qualifier.is_empty() => Meaning::Anyone,
            // A macro may have re-exported what a module of the same name contains.
            ResolvedValue::Module(files) if site.used == UseKind::Call && self.is_rust(file) => {
                match self.exported_by(&files, name, 1) {
                    found if found.is_empty() && !qualifier.is_empty() => Meaning::Anyone,
                    found => Meaning::Of(found, Confidence::Likely),
                }
            }
            ResolvedValue::Object(..)
            | ResolvedValue::Module(_)
            | ResolvedValue::Foreign
            | ResolvedValue::Unknown => Meaning::Of(Vec::new(), Confidence::NameOnly),
        }
    }

    /// Prefers definitions to declarations, and removes duplicates.
    fn prefer(&self, mut found: Vec<Symbol>, used: UseKind) -> Vec<Symbol> {
        if used == UseKind::Call && found.iter().any(|symbol| self.is_defined(*symbol)) {
            found.retain(|symbol| self.is_defined(*symbol));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn is_defined(&self, symbol: Symbol) -> bool {
        self.snapshot.brief(symbol).flags & def_flag::DECLARED == 0
    }

    /// Members of any type with this name.
    fn by_name(&self, file: u32, name: &str) -> Vec<Symbol> {
        self.members_named(self.snapshot.family(file), name)
    }

    pub(crate) fn members_named(&self, family: u8, name: &str) -> Vec<Symbol> {
        let mut found: Vec<Symbol> = (self.snapshot.named(name))
            .filter(|symbol| self.snapshot.family(symbol.file) == family)
            .filter(|symbol| {
                let brief = self.snapshot.brief(*symbol);
                matches!(brief.kind, DefKind::Method | DefKind::Constructor | DefKind::Field) || brief.owned
            })
            .take(TOO_MANY + 1)
            .collect();
        if found.len() > TOO_MANY {
            found.clear();
        }
        found
    }

    fn in_file<'a>(&'a self, file: u32, name: &'a str) -> impl Iterator<Item = Symbol> + 'a {
        self.snapshot.named_in(file, name)
    }

    /// The definitions of a name that other files can import from a file.
    fn top_level(&self, file: u32, name: &str) -> Vec<Symbol> {
        let facts = self.snapshot.facts(file);
        self.in_file(file, name)
            .filter(|symbol| {
                let def = self.snapshot.def(*symbol);
                let around = facts.def(def.parent);
                use lathe_grammars::Language::{Kotlin, Lua};
                // A Lua module is a table, and its functions belong to it; a Kotlin extension is imported.
                (def.owner.0 == 0 || matches!(self.snapshot.language(file), Some(Kotlin | Lua)))
                    && (def.parent == NONE || around.is_some_and(|around| around.kind == DefKind::Module))
                    && !matches!(def.kind, DefKind::Test)
            })
            .collect()
    }

    fn resolve_bare(&self, file: u32, scope: u32, name: &str, local: bool, depth: usize) -> ResolvedValue {
        if depth > DEPTH {
            return ResolvedValue::Unknown;
        }
        let facts = self.snapshot.facts(file);
        let Some(settings) = self.settings(file) else { return ResolvedValue::Unknown };
        // The body of a Python class sees the names it has bound itself; its methods do not.
        let in_body = depth <= 1 && self.snapshot.language(file) == Some(lathe_grammars::Language::Python);
        // Names of the functions around, innermost first; then members of the class, if the language allows that.
        let mut around = scope;
        for _ in 0..64 {
            let Some(def) = facts.def(around) else { break };
            let inside: Vec<Symbol> = self
                .in_file(file, name)
                .filter(|symbol| self.snapshot.brief(*symbol).parent == around)
                .filter(|symbol| {
                    let body = in_body && around == scope && !self.set_in_method(*symbol);
                    !def.kind.is_type() || settings.implicit_own || body
                })
                .collect();
            if !inside.is_empty() {
                return ResolvedValue::Symbols(inside, Confidence::Exact);
            }
            if settings.implicit_own && (def.kind.is_type() || def.owner.0 != 0) {
                let types = self.own_types(file, around);
                if let ResolvedValue::Symbols(found, confidence) =
                    self.member(&ResolvedValue::Object(types, Confidence::Exact), name, depth + 1)
                {
                    return ResolvedValue::Symbols(found, confidence);
                }
            }
            around = def.parent;
        }
        if let Some(value) = self.import(file, scope, name, true, depth) {
            return value;
        }
        if local {
            return ResolvedValue::Foreign;
        }
        let here = self.top_level(file, name);
        let (solid, loose): (Vec<_>, Vec<_>) = here.into_iter().partition(|symbol| {
            !matches!(self.snapshot.def(*symbol).kind, DefKind::Variable | DefKind::Constant)
        });
        if !solid.is_empty() && solid.iter().any(|symbol| self.is_defined(*symbol)) {
            return ResolvedValue::Symbols(solid, Confidence::Exact);
        }
        if let Some(value) = self.import(file, NONE, name, false, depth) {
            return value;
        }
        if !loose.is_empty() {
            return ResolvedValue::Symbols(loose, Confidence::Exact);
        }
        if settings.folder_scope {
            let mut beside = Vec::new();
            for other in self.modules().same_scope_files(self.snapshot, file) {
                beside.extend(self.top_level(*other, name));
            }
            if !beside.is_empty() {
                let confidence = if beside.len() == 1 { Confidence::Exact } else { Confidence::Likely };
                return ResolvedValue::Symbols(beside, confidence);
            }
        }
        if let Some(value) = self.wildcard(file, name, depth) {
            return value;
        }
        self.global(file, name, solid)
    }

    /// Tells whether a method sets the field (`self.a = 1`), unlike a field that the body of the class binds.
    fn set_in_method(&self, symbol: Symbol) -> bool {
        let (facts, def) = (self.snapshot.facts(symbol.file), self.snapshot.def(symbol));
        let mut beside = facts.defs.iter().filter(|one| one.parent == def.parent && one.kind.is_callable());
        def.kind == DefKind::Field
            && beside.any(|one| one.start_byte < def.start_byte && def.end_byte <= one.end_byte)
    }

    /// Resolves a name in languages where it can come from any file without an import.
    fn global(&self, file: u32, name: &str, declared: Vec<Symbol>) -> ResolvedValue {
        use lathe_grammars::Language as L;
        let family = self.snapshot.family(file);
        let everywhere = match self.snapshot.language(file) {
            Some(L::C | L::Cpp | L::Ruby | L::Php | L::Lua | L::Bash | L::Swift | L::CSharp | L::Scala) => {
                true
            }
            Some(L::Rust) => false,
            _ => false,
        };
        let is_macro = self.snapshot.language(file) == Some(L::Rust);
        if !everywhere && !is_macro {
            return if declared.is_empty() {
                ResolvedValue::Unknown
            } else {
                ResolvedValue::Symbols(declared, Confidence::Exact)
            };
        }
        let mut found: Vec<Symbol> = (self.snapshot.named(name))
            .filter(|symbol| self.snapshot.family(symbol.file) == family)
            .filter(|symbol| {
                let def = self.snapshot.def(*symbol);
                let free = def.owner.0 == 0
                    && self
                        .snapshot
                        .facts(symbol.file)
                        .def(def.parent)
                        .is_none_or(|around| around.kind == DefKind::Module);
                let seen = def.flags & def_flag::STATIC == 0 || symbol.file == file;
                if is_macro { def.kind == DefKind::Macro } else { free && seen && def.kind != DefKind::Test }
            })
            .take(TOO_MANY + 1)
            .collect();
        let defined: Vec<Symbol> = found.iter().copied().filter(|symbol| self.is_defined(*symbol)).collect();
        if !defined.is_empty() {
            found = defined;
        }
        match found.len() {
            0 if declared.is_empty() => ResolvedValue::Unknown,
            0 => ResolvedValue::Symbols(declared, Confidence::Exact),
            // A declaration in this file means the only definition that exists.
            1 if !declared.is_empty() => ResolvedValue::Symbols(found, Confidence::Exact),
            1 => ResolvedValue::Symbols(found, Confidence::Likely),
            // A module may be written in many files, and is still one.
            n if n <= TOO_MANY
                && found.iter().all(|one| self.snapshot.brief(*one).kind == DefKind::Module) =>
            {
                ResolvedValue::Symbols(found, Confidence::Likely)
            }
            n if n <= 8 => ResolvedValue::Symbols(found, Confidence::NameOnly),
            _ => ResolvedValue::Unknown,
        }
    }

    fn module_files(&self, file: u32, module: &str) -> Vec<u32> {
        let key = (file, crate::snapshot::name_hash(module));
        if let Some(found) = self.learned.borrow().imported.get(&key) {
            return found.clone();
        }
        let found = self.modules().files(self.snapshot, file, module);
        self.learned.borrow_mut().imported.insert(key, found.clone());
        found
    }

    /// The import that binds a name: of the functions around (`inner`), or of the file.
    fn import(&self, file: u32, scope: u32, name: &str, inner: bool, depth: usize) -> Option<ResolvedValue> {
        let facts = self.snapshot.facts(file);
        let alias = facts.sym(name)?;
        let mut found: Option<ResolvedValue> = None;
        for import in facts.imports.iter().filter(|import| import.alias == alias && import.module.0 != 0) {
            let holds = if inner {
                import.def != NONE && facts.is_within(scope, import.def)
            } else {
                // Imports in `if TYPE_CHECKING` and `try` are at the top level too.
                import.def == NONE || facts.def(import.def).is_some_and(|def| def.kind == DefKind::Module)
            };
            if !holds {
                continue;
            }
            let value =
                self.imported_value(file, facts.str(import.module), facts.str(import.name), depth + 1);
            match (&found, &value) {
                (
                    Some(
                        ResolvedValue::Symbols(_, Confidence::Exact | Confidence::Likely)
                        | ResolvedValue::Module(_),
                    ),
                    _,
                ) => {}
                // A guess yields to a known meaning, but not to an external one.
                (Some(ResolvedValue::Symbols(..)), ResolvedValue::Foreign | ResolvedValue::Unknown) => {}
                _ => found = Some(value),
            }
        }
        found
    }

    /// The meaning of `name` in `module`, seen from a file.
    fn imported_value(&self, file: u32, module: &str, name: &str, depth: usize) -> ResolvedValue {
        if depth > DEPTH {
            return ResolvedValue::Unknown;
        }
        let files = self.module_files(file, module);
        if name.is_empty() {
            return if files.is_empty() { ResolvedValue::Foreign } else { ResolvedValue::Module(files) };
        }
        let found = self.exported_by(&files, name, depth);
        if !found.is_empty() {
            return ResolvedValue::Symbols(found, Confidence::Exact);
        }
        // A module inside the module, or a class whose member is imported.
        let separator = if module.ends_with('.') { "" } else { "." };
        let below = self.module_files(file, &format!("{module}{separator}{name}"));
        let below: Vec<u32> = below.into_iter().filter(|below| !files.contains(below)).collect();
        if !below.is_empty() {
            return ResolvedValue::Module(below);
        }
        if let Some((outer, class)) = module.rsplit_once('.').filter(|_| files.is_empty()) {
            let owner = self.imported_value(file, outer, class, depth + 1);
            if let ResolvedValue::Symbols(..) = owner {
                return self.member(&owner, name, depth + 1);
            }
        }
        if files.is_empty() { self.guess_import(file, module, name) } else { ResolvedValue::Unknown }
    }

    /// The possible meanings of an import without a matching file that sounds as if it belonged to this repository:
    /// an alias of a build file, a package under another name. These are all definitions of the name, if there are
    /// few.
    fn guess_import(&self, file: u32, module: &str, name: &str) -> ResolvedValue {
        use lathe_grammars::Language as L;
        let language = self.snapshot.language(file);
        let sigils = ['@', '~', '#', '$'];
        let words: Vec<&str> = match language {
            Some(L::Python) => module.rsplit('.').take(1).collect(),
            Some(L::JavaScript | L::TypeScript | L::Tsx) => {
                module.split('/').map(|word| word.trim_start_matches(sigils)).collect()
            }
            _ => return ResolvedValue::Foreign,
        };
        let sounds_own = |word: &&str| !word.is_empty() && self.modules().is_local_word(word);
        if !words.iter().any(sounds_own) || name == "default" || name == "*" {
            return ResolvedValue::Foreign;
        }
        let family = self.snapshot.family(file);
        let is_free = |symbol: &Symbol| {
            let brief = self.snapshot.brief(*symbol);
            let exported = language == Some(L::Python) || brief.flags & def_flag::EXPORTED != 0;
            let solid = brief.kind.is_callable() || brief.kind.is_type() || brief.kind == DefKind::Type;
            brief.parent == NONE && !brief.owned && exported && solid && brief.kind != DefKind::Test
        };
        let all = self.snapshot.named(name).filter(|symbol| self.snapshot.family(symbol.file) == family);
        let all: Vec<Symbol> = all.filter(is_free).take(TOO_MANY).collect();
        // Near definitions are those whose path contains a word of the import. An import with a sigil can be
        // anywhere.
        let there = |symbol: &Symbol| {
            let path = self.snapshot.path(symbol.file);
            path.split('/').any(|part| words.contains(&part.split('.').next().unwrap_or(part)))
        };
        let near: Vec<Symbol> = all.iter().copied().filter(there).collect();
        let found = if near.is_empty() && module.starts_with(sigils) { all } else { near };
        if found.is_empty() || found.len() > 8 {
            return ResolvedValue::Foreign;
        }
        ResolvedValue::Symbols(found, Confidence::NameOnly)
    }

    /// The definitions that the files of a module export under a name. A declaration ranks after the file that it
    /// declares.
    fn exported_by(&self, files: &[u32], name: &str, depth: usize) -> Vec<Symbol> {
        let mut found = Vec::new();
        for file in files {
            let declares =
                self.snapshot.path(*file).ends_with("ts") && self.snapshot.path(*file).contains(".d.");
            if !declares || found.is_empty() {
                found.extend(self.exported(*file, name, depth));
            }
        }
        found
    }

    /// The definitions that a file exports under a name: its own, or those it imports and re-exports.
    fn exported(&self, file: u32, name: &str, depth: usize) -> Vec<Symbol> {
        let mut found = self.top_level(file, name);
        if name == "default" {
            let facts = self.snapshot.facts(file);
            found.extend(
                (0..facts.defs.len() as u32)
                    .filter(|def| facts.defs[*def as usize].flags & def_flag::DEFAULT != 0)
                    .map(|def| Symbol { file, def }),
            );
        }
        let only_loose = found
            .iter()
            .all(|symbol| matches!(self.snapshot.def(*symbol).kind, DefKind::Variable | DefKind::Constant));
        if !found.is_empty() && !only_loose || depth > DEPTH {
            return found;
        }
        match self.import(file, NONE, name, false, depth + 1) {
            Some(ResolvedValue::Symbols(through, Confidence::Exact | Confidence::Likely)) => return through,
            // `mod read; pub use read::read;`: a module and an item in it share one name.
            Some(ResolvedValue::Module(_)) => {
                let facts = self.snapshot.facts(file);
                for import in facts.imports.iter().filter(|import| facts.str(import.alias) == name) {
                    let (module, inner) = (facts.str(import.module), facts.str(import.name));
                    if !inner.is_empty()
                        && inner != "*"
                        && let ResolvedValue::Symbols(through, _) =
                            self.imported_value(file, module, inner, depth + 1)
                    {
                        return through;
                    }
                }
            }
            _ => {}
        }
        if found.is_empty()
            && let Some(ResolvedValue::Symbols(through, _)) = self.wildcard(file, name, depth + 1)
        {
            return through;
        }
        // `export { local as name }`
        if found.is_empty() {
            let facts = self.snapshot.facts(file);
            for import in facts.imports.iter().filter(|import| import.exported && import.module.0 == 0) {
                if facts.str(import.alias) == name && facts.str(import.name) != name {
                    return self.exported(file, facts.str(import.name), depth + 1);
                }
            }
        }
        found
    }

    fn wildcard(&self, file: u32, name: &str, depth: usize) -> Option<ResolvedValue> {
        if depth > DEPTH {
            return None;
        }
        let facts = self.snapshot.facts(file);
        let everything = facts.sym("*")?;
        for import in facts.imports.iter().filter(|import| import.name == everything) {
            for target in self.module_files(file, facts.str(import.module)) {
                if target == file {
                    let inside = self.top_level(file, name);
                    if !inside.is_empty() {
                        return Some(ResolvedValue::Symbols(inside, Confidence::Exact));
                    }
                    continue;
                }
                let found = self.exported(target, name, depth + 1);
                if found.iter().any(|symbol| self.is_defined(*symbol)) {
                    return Some(ResolvedValue::Symbols(found, Confidence::Exact));
                }
                if let Some(declared) = found.first().copied() {
                    // A header declares it; the definition is elsewhere.
                    return Some(self.global(target, name, vec![declared]));
                }
            }
        }
        None
    }
}
