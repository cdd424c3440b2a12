//! Types and their members: finds the type of a receiver and the place of its method.

use lathe_grammars::Language;

use super::{Confidence, DEPTH, ResolvedValue, Resolver};
use crate::facts::{DefKind, NONE, Site, UseKind};
use crate::hash::QuickSet;
use crate::modules::is_called;
use crate::snapshot::Symbol;

impl Resolver<'_> {
    /// The type that contains a definition.
    pub(super) fn own_types(&self, file: u32, scope: u32) -> Vec<Symbol> {
        let facts = self.snapshot.facts(file);
        let mut at = scope;
        for _ in 0..64 {
            let Some(def) = facts.def(at) else { break };
            if def.owner.0 != 0 {
                let owner = facts.str(def.owner);
                return self.types_named(file, owner.rsplit('.').next().unwrap_or(owner));
            }
            if def.kind == DefKind::Impl {
                return self.types_named(file, facts.name(def));
            }
            if def.kind.is_type() {
                return vec![Symbol { file, def: at }];
            }
            at = def.parent;
        }
        Vec::new()
    }

    pub(super) fn types_named(&self, file: u32, name: &str) -> Vec<Symbol> {
        let is_type = |symbol: &Symbol| {
            let kind = self.snapshot.def(*symbol).kind;
            kind.is_type() || matches!(kind, DefKind::Type | DefKind::Variable)
        };
        let here: Vec<Symbol> = self.in_file(file, name).filter(is_type).collect();
        if !here.is_empty() {
            return here;
        }
        if let ResolvedValue::Symbols(found, _) = self.resolve_bare(file, NONE, name, false, 1) {
            return found.into_iter().filter(is_type).collect();
        }
        let family = self.snapshot.family(file);
        self.snapshot
            .named(name)
            .filter(|symbol| self.snapshot.family(symbol.file) == family)
            .filter(is_type)
            .collect()
    }

    /// Resolves a dotted expression: `self.a`, `module.Class`, `make().x`.
    pub(super) fn resolve_path(
        &self,
        file: u32,
        scope: u32,
        text: &str,
        typed: bool,
        depth: usize,
    ) -> ResolvedValue {
        if depth > DEPTH || text == "?" {
            return ResolvedValue::Unknown;
        }
        let Some(settings) = self.settings(file) else { return ResolvedValue::Unknown };
        let parts: Vec<&str> = text.split('.').collect();
        let root = parts[0];
        let (mut value, mut used) = (ResolvedValue::Unknown, 1);
        if let Some((found, supers)) = self.rust_root(file, scope, &parts) {
            (value, used) = (found, supers);
        } else if settings.own.iter().any(|word| word == root) {
            value = ResolvedValue::Object(self.own_types(file, scope), Confidence::Exact);
        } else if settings.parent.iter().any(|word| word == root) {
            let mut bases = Vec::new();
            let mut whole = true;
            for own in self.own_types(file, scope) {
                let (found, known) = self.bases_of(own);
                whole &= known;
                bases.extend(found);
            }
            if bases.is_empty() {
                return if whole { ResolvedValue::Unknown } else { ResolvedValue::Foreign };
            }
            value = ResolvedValue::Object(bases, Confidence::Exact);
        } else {
            // The longest prefix that an import binds: with `import a.b`, a use is written `a.b.f`.
            for length in (1..=parts.len().min(5)).rev() {
                let head = parts[..length].join(".");
                let (plain, called) = match head.strip_suffix("()") {
                    Some(plain) => (plain, true),
                    None => (head.as_str(), false),
                };
                let found = if length == 1 {
                    self.resolve_bare(file, scope, plain, false, depth + 1)
                } else {
                    let bound = self
                        .import(file, scope, plain, true, depth + 1)
                        .or_else(|| self.import(file, NONE, plain, false, depth + 1));
                    match bound {
                        Some(found) => found,
                        None => continue,
                    }
                };
                value = match found {
                    // Before a dot, the name of a constructor means its type.
                    ResolvedValue::Symbols(made, sure)
                        if called
                            || made
                                .iter()
                                .all(|one| self.snapshot.brief(*one).kind == DefKind::Constructor) =>
                    {
                        match self.result(ResolvedValue::Symbols(made, sure), depth) {
                            ResolvedValue::Object(types, sure) if !called => {
                                ResolvedValue::Symbols(types, sure)
                            }
                            other => other,
                        }
                    }
                    other => other,
                };
                used = length;
                break;
            }
        }
        // Before a path the name means the module, even if a function has the same name.
        if let ResolvedValue::Symbols(found, _) = &value
            && self.is_rust(file)
            && found.iter().all(|one| self.snapshot.brief(*one).kind == DefKind::Function)
            && let Some(files) = self.rust_module(file, root)
        {
            value = ResolvedValue::Module(files);
        }
        // Rust can name another crate without importing it.
        if matches!(value, ResolvedValue::Unknown) && used == 1 && self.is_rust(file) {
            let files = self.module_files(file, root);
            if !files.is_empty() {
                value = ResolvedValue::Module(files);
            }
        }
        if used == parts.len() && typed {
            return self.as_object(value, depth);
        }
        for part in &parts[used..] {
            let (name, called) = match part.strip_suffix("()") {
                Some(name) => (name, true),
                None => (*part, false),
            };
            let found = self.member(&value, name, depth + 1);
            value = if called { self.result(found, depth) } else { self.as_object(found, depth) };
        }
        if typed { self.as_object(value, depth) } else { value }
    }

    pub(super) fn is_rust(&self, file: u32) -> bool {
        self.snapshot.language(file) == Some(Language::Rust)
    }

    /// The files of the module that an import of a name brings in.
    fn rust_module(&self, file: u32, name: &str) -> Option<Vec<u32>> {
        let facts = self.snapshot.facts(file);
        let mut imports = facts.imports.iter().filter(|import| facts.str(import.alias) == name);
        imports.find_map(|import| {
            let (module, inner) = (facts.str(import.module), facts.str(import.name));
            let mut found = self.module_files(file, &format!("{module}.{inner}"));
            let last = if inner.is_empty() { name } else { inner };
            found.retain(|one| is_called(self.snapshot.path(*one), last));
            Some(found).filter(|found| !found.is_empty())
        })
    }

    /// Resolves `crate`, `super::super` and `self` before a path in Rust. Returns the module and the number of words
    /// used.
    fn rust_root(&self, file: u32, scope: u32, parts: &[&str]) -> Option<(ResolvedValue, usize)> {
        if !matches!(parts[0], "crate" | "super" | "self") || !self.is_rust(file) {
            return None;
        }
        // `self` is the object in a method, otherwise the module.
        if parts[0] == "self" && !self.own_types(file, scope).is_empty() {
            return None;
        }
        let ups = parts.iter().take_while(|part| **part == "super").count();
        if ups == 0 {
            let files = if parts[0] == "self" { vec![file] } else { self.module_files(file, "crate") };
            return Some((
                if files.is_empty() { ResolvedValue::Unknown } else { ResolvedValue::Module(files) },
                1,
            ));
        }
        // Modules written in the file are left first.
        let facts = self.snapshot.facts(file);
        let around = std::iter::successors(facts.def(scope), |def| facts.def(def.parent));
        let inside = around.take(64).filter(|def| def.kind == DefKind::Module).count();
        let files = match ups.saturating_sub(inside) {
            0 => vec![file],
            above => self.module_files(file, &vec!["super"; above].join(".")),
        };
        Some((if files.is_empty() { ResolvedValue::Unknown } else { ResolvedValue::Module(files) }, ups))
    }

    /// The object that a value gives: a class gives its objects, a variable an object of its declared type.
    pub(super) fn as_object(&self, value: ResolvedValue, depth: usize) -> ResolvedValue {
        let ResolvedValue::Symbols(found, confidence) = value else { return value };
        // A module has no objects; the next name is looked up in the module itself.
        if !found.is_empty() && found.iter().all(|symbol| self.snapshot.def(*symbol).kind == DefKind::Module)
        {
            return ResolvedValue::Symbols(found, confidence);
        }
        let (mut types, mut foreign) = (Vec::new(), false);
        let mut sure = confidence;
        for symbol in found {
            let def = *self.snapshot.def(symbol);
            if def.kind.is_type() {
                types.push(symbol);
                continue;
            }
            if !matches!(
                def.kind,
                DefKind::Variable | DefKind::Constant | DefKind::Field | DefKind::Type | DefKind::Variant
            ) {
                continue;
            }
            let facts = self.snapshot.facts(symbol.file);
            let ty = facts.str(def.ty);
            if ty.is_empty() {
                continue;
            }
            sure = sure.min(Confidence::Likely);
            match self.resolve_path(symbol.file, def.parent, ty, true, depth + 1) {
                ResolvedValue::Object(found, _) => types.extend(found),
                ResolvedValue::Symbols(found, _) => types.extend(found),
                ResolvedValue::Module(files) => return ResolvedValue::Module(files),
                ResolvedValue::Foreign => foreign = true,
                ResolvedValue::Unknown => {}
            }
        }
        match (types.is_empty(), foreign) {
            (false, _) => ResolvedValue::Object(types, sure),
            (true, true) => ResolvedValue::Foreign,
            _ => ResolvedValue::Unknown,
        }
    }

    /// The result of a call: a class gives its object, a function its declared result.
    pub(super) fn result(&self, value: ResolvedValue, depth: usize) -> ResolvedValue {
        let ResolvedValue::Symbols(found, confidence) = value else { return value };
        let (mut types, mut foreign) = (Vec::new(), false);
        let mut sure = confidence;
        for symbol in found {
            let def = *self.snapshot.def(symbol);
            if def.kind.is_type() {
                types.push(symbol);
                continue;
            }
            let facts = self.snapshot.facts(symbol.file);
            if def.kind == DefKind::Constructor {
                types.extend(self.own_types(symbol.file, symbol.def));
                continue;
            }
            let ty = facts.str(def.ty);
            if !def.kind.is_callable() || ty.is_empty() {
                // Ruby makes objects with `Foo.new`.
                continue;
            }
            sure = sure.min(Confidence::Likely);
            if matches!(ty, "Self" | "self" | "this" | "static" | "typing.Self") {
                types.extend(self.own_types(symbol.file, symbol.def));
                continue;
            }
            match self.resolve_path(symbol.file, def.parent, ty, true, depth + 1) {
                ResolvedValue::Object(found, _) | ResolvedValue::Symbols(found, _) => types.extend(found),
                ResolvedValue::Foreign => foreign = true,
                _ => {}
            }
        }
        match (types.is_empty(), foreign) {
            (false, _) => ResolvedValue::Object(types, sure),
            (true, true) => ResolvedValue::Foreign,
            _ => ResolvedValue::Unknown,
        }
    }

    pub(super) fn member(&self, value: &ResolvedValue, name: &str, depth: usize) -> ResolvedValue {
        if depth > DEPTH {
            return ResolvedValue::Unknown;
        }
        match value {
            ResolvedValue::Module(files) => {
                let found = self.exported_by(files, name, depth + 1);
                if !found.is_empty() {
                    return ResolvedValue::Symbols(found, Confidence::Exact);
                }
                let below: Vec<u32> = files.iter().flat_map(|file| self.submodule(*file, name)).collect();
                if below.is_empty() {
                    // The name may be a re-exported module.
                    let mut through =
                        files.iter().filter_map(|file| self.import(*file, NONE, name, false, depth + 1));
                    if let Some(ResolvedValue::Module(files)) =
                        through.find(|found| matches!(found, ResolvedValue::Module(_)))
                    {
                        return ResolvedValue::Module(files);
                    }
                }
                match below.is_empty() {
                    false => ResolvedValue::Module(below),
                    // The name may be defined by a macro, or `self` may be an object whose type is defined by one.
                    true if files.iter().any(|file| self.is_rust(*file)) => ResolvedValue::Unknown,
                    true => ResolvedValue::Foreign,
                }
            }
            ResolvedValue::Symbols(types, confidence) | ResolvedValue::Object(types, confidence) => {
                if types.iter().all(|symbol| self.snapshot.def(*symbol).kind == DefKind::Module)
                    && !types.is_empty()
                {
                    let mut inside: Vec<Symbol> = types
                        .iter()
                        .flat_map(|module| {
                            self.in_file(module.file, name)
                                .filter(|symbol| self.snapshot.brief(*symbol).parent == module.def)
                        })
                        .collect();
                    if inside.is_empty() && self.snapshot.language(types[0].file) == Some(Language::Ruby) {
                        // `class Foo::Bar`
                        let module = self.snapshot.name(types[0]);
                        let owned = self.snapshot.named(name).filter(|one| self.snapshot.brief(*one).owned);
                        inside.extend(owned.filter(|one| {
                            let owner = self.snapshot.facts(one.file).str(self.snapshot.def(*one).owner);
                            owner.rsplit('.').next() == Some(module)
                        }));
                    }
                    return if inside.is_empty() {
                        ResolvedValue::Unknown
                    } else {
                        ResolvedValue::Symbols(inside, *confidence)
                    };
                }
                if let ResolvedValue::Symbols(..) = value
                    && !types.iter().any(|symbol| self.snapshot.def(*symbol).kind.is_type())
                {
                    let object = self.as_object(value.clone(), depth + 1);
                    return if let ResolvedValue::Symbols(..) = object {
                        ResolvedValue::Unknown
                    } else {
                        self.member(&object, name, depth + 1)
                    };
                }
                let mut whole = true;
                let mut found = Vec::new();
                for one in types {
                    let (members, known) = self.members_of(*one, name);
                    whole &= known;
                    found.extend(members);
                }
                if !found.is_empty() {
                    return ResolvedValue::Symbols(found, *confidence);
                }
                // Ruby's `Foo.new`, and members that an external base may have.
                let is_class = matches!(value, ResolvedValue::Symbols(..))
                    || types.iter().all(|one| self.snapshot.language(one.file) == Some(Language::Ruby));
                if name == "new" && is_class && !types.is_empty() {
                    return ResolvedValue::Symbols(types.clone(), *confidence);
                }
                if whole && !types.is_empty() { ResolvedValue::Foreign } else { ResolvedValue::Unknown }
            }
            ResolvedValue::Foreign => ResolvedValue::Foreign,
            ResolvedValue::Unknown => ResolvedValue::Unknown,
        }
    }

    pub(super) fn submodule(&self, file: u32, name: &str) -> Vec<u32> {
        if self.is_rust(file) {
            let mut below = self.module_files(file, &format!("self.{name}"));
            below.retain(|below| *below != file);
            return below;
        }
        let path = self.snapshot.path(file);
        if !path.ends_with("__init__.py") {
            return Vec::new();
        }
        self.module_files(file, &format!(".{name}"))
    }

    /// The members of a type, cached. The flag tells whether all bases are known that could have one.
    fn members_of(&self, one: Symbol, name: &str) -> (Vec<Symbol>, bool) {
        let key = (one, crate::snapshot::name_hash(name));
        if let Some(found) = self.learned.borrow().members.get(&key) {
            return found.clone();
        }
        let mut whole = true;
        let found = (self.member_of(one, name, &mut QuickSet::default(), &mut whole, 0), whole);
        self.learned.borrow_mut().members.insert(key, found.clone());
        found
    }

    /// The members of a type: in the type, in blocks that add to it, then in its bases.
    pub(super) fn member_of(
        &self,
        one: Symbol,
        name: &str,
        seen: &mut QuickSet<Symbol>,
        whole: &mut bool,
        depth: usize,
    ) -> Vec<Symbol> {
        if depth > 12 || !seen.insert(one) {
            return Vec::new();
        }
        let inside: Vec<Symbol> = self
            .in_file(one.file, name)
            .filter(|symbol| self.snapshot.brief(*symbol).parent == one.def)
            .collect();
        if inside.iter().any(|symbol| self.is_defined(*symbol)) {
            return inside;
        }
        let type_name = self.snapshot.name(one);
        let family = self.snapshot.family(one.file);
        let mut added: Vec<Symbol> = (self.snapshot.named(name))
            .filter(|symbol| self.snapshot.family(symbol.file) == family)
            .filter(|symbol| {
                let brief = self.snapshot.brief(*symbol);
                if brief.owned {
                    let owner = self.snapshot.facts(symbol.file).str(self.snapshot.def(*symbol).owner);
                    if owner.rsplit('.').next() == Some(type_name) && !owner.is_empty() {
                        return true;
                    }
                }
                let around = Symbol { file: symbol.file, def: brief.parent };
                brief.parent != NONE
                    && self.snapshot.brief(around).kind == DefKind::Impl
                    && self.snapshot.name(around) == type_name
            })
            .collect();
        // If there are two types of one name, the nearer one counts.
        if added.len() > 1 && added.iter().any(|symbol| symbol.file == one.file) {
            added.retain(|symbol| symbol.file == one.file);
        }
        if !added.is_empty() {
            return added;
        }
        if !inside.is_empty() {
            return inside;
        }
        let (bases, known) = self.bases_of(one);
        *whole &= known;
        for base in bases {
            let found = self.member_of(base, name, seen, whole, depth + 1);
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// The methods that a call of an interface's method can reach in Go, where a type does not declare what it
    /// implements: those of types that have every method the interface lists.
    pub(super) fn interface_targets(&self, declared: Symbol) -> Vec<Symbol> {
        if let Some(found) = self.learned.borrow().through.get(&declared) {
            return found.clone();
        }
        let interface = self.snapshot.brief(declared).parent;
        let facts = self.snapshot.facts(declared.file);
        let wanted: Vec<&str> = (facts.defs.iter())
            .filter(|def| def.parent == interface && def.kind == DefKind::Method)
            .map(|def| facts.name(def))
            .collect();
        let folder =
            |symbol: Symbol| self.snapshot.path(symbol.file).rsplit_once('/').map_or("", |(at, _)| at);
        let owner = |symbol: Symbol| {
            let facts = self.snapshot.facts(symbol.file);
            facts.str(self.snapshot.def(symbol).owner)
        };
        let family = self.snapshot.family(declared.file);
        let mut found = self.members_named(family, self.snapshot.name(declared));
        found.retain(|one| self.snapshot.brief(*one).owned);
        found.retain(|one| {
            wanted.iter().all(|name| {
                self.snapshot.named(name).any(|other| {
                    self.snapshot.brief(other).owned
                        && folder(other) == folder(*one)
                        && owner(other) == owner(*one)
                })
            })
        });
        self.learned.borrow_mut().through.insert(declared, found.clone());
        found
    }

    /// The base types of a type, in order, and whether all of them are known.
    pub fn bases_of(&self, one: Symbol) -> (Vec<Symbol>, bool) {
        if let Some(found) = self.snapshot.index().and_then(|index| index.bases(one)) {
            return found;
        }
        if let Some(found) = self.learned.borrow().bases.get(&one) {
            return found.clone();
        }
        // A cycle finds its own entry empty.
        self.learned.borrow_mut().bases.insert(one, (Vec::new(), false));
        let mut whole = true;
        let mut bases = Vec::new();
        let type_name = self.snapshot.name(one);
        let facts = self.snapshot.facts(one.file);
        let mut sites: Vec<&Site> = facts
            .sites
            .iter()
            .filter(|site| matches!(site.used, UseKind::Inherit | UseKind::Implement))
            .filter(|site| {
                site.def == one.def
                    || facts
                        .def(site.def)
                        .is_some_and(|def| def.kind == DefKind::Impl && facts.name(def) == type_name)
            })
            .collect();
        sites.sort_by_key(|site| (site.line, site.column));
        for site in sites {
            let name = facts.str(site.name);
            if name == "object" || name == type_name && site.qualifier.0 == 0 {
                continue;
            }
            let scope = facts.def(site.def).map_or(NONE, |def| def.parent);
            let value = match facts.str(site.qualifier) {
                "" => self.resolve_bare(one.file, scope, name, false, 1),
                qualifier => {
                    let receiver = self.resolve_path(one.file, scope, qualifier, false, 1);
                    self.member(&receiver, name, 1)
                }
            };
            match value {
                ResolvedValue::Symbols(found, _) => bases.extend(
                    found
                        .into_iter()
                        .filter(|symbol| self.snapshot.def(*symbol).kind.is_type() && *symbol != one),
                ),
                _ => whole = false,
            }
        }
        self.learned.borrow_mut().bases.insert(one, (bases.clone(), whole));
        (bases, whole)
    }
}
