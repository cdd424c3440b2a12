//! Collects the facts of one file while its tree is walked, and settles what only the whole file can show: which bare
//! names are local variables, and the type of a receiver.

use std::borrow::Cow;

use crate::facts::{Def, Facts, Gap, Import, NONE, Site, Sym, UseKind, def_flag, site_flag};
use crate::hash::{QuickMap, QuickSet};
use crate::imports::ImportedName;

pub struct RawDef<'a> {
    pub name: Cow<'a, str>,
    pub owner: String,
    pub signature: String,
    pub doc: String,
    pub ty: String,
    pub def: Def,
}

pub struct RawSite<'a> {
    pub name: Cow<'a, str>,
    pub qualifier: Cow<'a, str>,
    pub site: Site,
}

struct Binding {
    ty: String,
    /// True if the name is bound to two types, so that its type is not known.
    unsure: bool,
}

#[derive(Default)]
pub struct FactsBuilder<'a> {
    pub defs: Vec<RawDef<'a>>,
    pub sites: Vec<RawSite<'a>>,
    imports: Vec<(ImportedName, u32, u32)>,
    binds: QuickMap<(u32, &'a str), Binding>,
    members: QuickSet<(u32, String)>,
    pub package: String,
}

impl<'a> FactsBuilder<'a> {
    pub fn bind(&mut self, def: u32, name: &'a str, ty: String) {
        self.binds
            .entry((def, name))
            .and_modify(|had| had.unsure |= had.ty != ty)
            .or_insert(Binding { ty, unsure: false });
    }

    /// The type of a local name so far. Empty if it is not known.
    pub fn bound(&self, def: u32, name: &str) -> String {
        self.binding(def, name).unwrap_or_default()
    }

    pub fn import(&mut self, brought: ImportedName, line: u32, def: u32) {
        self.imports.push((brought, line, def));
    }

    /// Adds a member. False if the type has such a member already.
    pub fn new_member(&mut self, parent: u32, name: &str) -> bool {
        self.members.insert((parent, name.to_owned()))
    }

    /// The type that a name is bound to in the functions around a definition, innermost first. Empty if the type is
    /// not known; None if the name is not bound.
    fn binding(&self, mut def: u32, name: &str) -> Option<String> {
        let binds: &QuickMap<(u32, &str), Binding> = &self.binds;
        for _ in 0..64 {
            let around = self.defs.get(def as usize);
            if let Some(found) = binds.get(&(def, name)) {
                return Some(if found.unsure { String::new() } else { found.ty.clone() });
            }
            def = around?.def.parent;
        }
        None
    }

    pub fn finish(mut self, lines: u32, gap: Gap) -> Facts {
        let known: QuickSet<&str> =
            (self.defs.iter().filter(|raw| raw.def.parent == NONE).map(|raw| &*raw.name))
                .chain(self.imports.iter().map(|(brought, _, _)| &*brought.alias))
                .collect();
        // Bindings of the file itself yield to what the file defines or imports.
        let hidden: Vec<(u32, &str)> =
            self.binds.keys().filter(|(def, name)| *def == NONE && known.contains(name)).copied().collect();
        drop(known);
        for key in hidden {
            self.binds.remove(&key);
        }
        let mut sites = std::mem::take(&mut self.sites);
        sites.retain_mut(|raw| self.settle(raw));
        self.sites = sites;
        intern(self, lines, gap)
    }

    /// Applies the bindings around a site. False for a site that only reads a local variable.
    fn settle(&self, raw: &mut RawSite<'a>) -> bool {
        if raw.qualifier.is_empty() {
            if self.binding(raw.site.def, &raw.name).is_none() {
                return true;
            }
            raw.site.flags |= site_flag::LOCAL;
            return raw.site.used == UseKind::Call;
        }
        let root_end = raw.qualifier.find(['.', '(']).unwrap_or(raw.qualifier.len());
        let (root, rest) = raw.qualifier.split_at(root_end);
        if let Some(binding) = self.binding(raw.site.def, root) {
            if binding.is_empty() || rest.starts_with('(') {
                raw.qualifier = Cow::Borrowed("?");
            } else {
                raw.qualifier = Cow::Owned(format!("{binding}{rest}"));
                raw.site.flags |= site_flag::TYPED;
            }
        }
        true
    }
}

fn intern(builder: FactsBuilder<'_>, lines: u32, gap: Gap) -> Facts {
    let mut seen: QuickMap<&str, u32> = QuickMap::default();
    let mut order: Vec<&str> = vec![""];
    seen.insert("", 0);
    let mut number = |text| {
        *seen.entry(text).or_insert_with(|| {
            order.push(text);
            order.len() as u32 - 1
        })
    };
    let mut defs = Vec::with_capacity(builder.defs.len());
    for raw in &builder.defs {
        defs.push(Def {
            name: Sym(number(&raw.name)),
            owner: Sym(number(&raw.owner)),
            signature: Sym(number(&raw.signature)),
            doc: Sym(number(&raw.doc)),
            ty: Sym(number(&raw.ty)),
            ..raw.def
        });
    }
    let mut sites = Vec::with_capacity(builder.sites.len());
    for raw in &builder.sites {
        sites.push(Site { name: Sym(number(&raw.name)), qualifier: Sym(number(&raw.qualifier)), ..raw.site });
    }
    let mut imports = Vec::with_capacity(builder.imports.len());
    for (brought, line, def) in &builder.imports {
        imports.push(Import {
            module: Sym(number(&brought.module)),
            name: Sym(number(&brought.name)),
            alias: Sym(number(&brought.alias)),
            line: *line,
            def: *def,
            exported: brought.exported,
        });
    }
    let package = Sym(number(&builder.package));
    let mut sorted: Vec<u32> = (0..order.len() as u32).collect();
    sorted.sort_unstable_by_key(|&at| order[at as usize]);
    let mut rank = vec![0u32; order.len()];
    let mut text = String::new();
    let mut ends = Vec::with_capacity(order.len());
    for (to, &from) in sorted.iter().enumerate() {
        rank[from as usize] = to as u32;
        text.push_str(order[from as usize]);
        ends.push(text.len() as u32);
    }
    let ranked = |sym: &mut Sym| sym.0 = rank[sym.0 as usize];
    for def in &mut defs {
        for sym in [&mut def.name, &mut def.owner, &mut def.signature, &mut def.doc, &mut def.ty] {
            ranked(sym);
        }
    }
    for site in &mut sites {
        ranked(&mut site.name);
        ranked(&mut site.qualifier);
    }
    for import in &mut imports {
        ranked(&mut import.module);
        ranked(&mut import.name);
        ranked(&mut import.alias);
    }
    sites.sort_unstable_by_key(|site| (site.name, site.line, site.column, site.used));
    sites.dedup_by_key(|site| (site.name, site.line, site.used, site.qualifier, site.def));
    let mut package = package;
    ranked(&mut package);
    mark_defaults(&mut defs, &imports, &text, &ends);
    Facts { text: text.into(), ends, defs, sites, imports, package, lines, gap }
}

/// Marks the definitions that a later `export default name` exports.
fn mark_defaults(defs: &mut [Def], imports: &[Import], text: &str, ends: &[u32]) {
    let str_of = |sym: Sym| {
        let at = sym.0 as usize;
        let start = if at == 0 { 0 } else { ends[at - 1] as usize };
        &text[start..ends[at] as usize]
    };
    for import in imports.iter().filter(|import| import.exported && import.module == Sym(0)) {
        for def in defs.iter_mut().filter(|def| def.name == import.name && def.parent == NONE) {
            def.flags |= def_flag::EXPORTED;
            if str_of(import.alias) == "default" {
                def.flags |= def_flag::DEFAULT;
            }
        }
    }
}
