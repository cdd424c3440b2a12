//! The interface of a file: everything that resolution reads of files other than the one it starts in.
//!
//! While it stays the same, an edit of the file cannot change any answer about uses elsewhere. Lines, signatures,
//! docs and uses are not part of it; definitions with their numbers, imports and bases are.

use crate::facts::{Facts, Sym, UseKind};
use crate::source_text::hash_of;

pub fn interface(facts: &Facts) -> i64 {
    let mut all: Vec<u8> = Vec::with_capacity(64 * facts.defs.len() + 32 * facts.imports.len());
    let mut put = |syms: &[Sym], numbers: &[u32]| {
        for sym in syms {
            all.extend_from_slice(facts.str(*sym).as_bytes());
            all.push(0);
        }
        for number in numbers {
            all.extend_from_slice(&number.to_le_bytes());
        }
    };
    put(&[facts.package], &[facts.gap as u32, facts.defs.len() as u32, facts.imports.len() as u32]);
    for def in &facts.defs {
        put(&[def.name, def.owner, def.ty], &[def.kind as u32, u32::from(def.flags), def.parent]);
    }
    for import in &facts.imports {
        put(&[import.module, import.name, import.alias], &[import.def, u32::from(import.exported)]);
    }
    let mut bases: Vec<_> = facts
        .sites
        .iter()
        .filter(|site| matches!(site.used, UseKind::Inherit | UseKind::Implement))
        .collect();
    bases.sort_by_key(|site| (site.line, site.column));
    for site in bases {
        put(&[site.name, site.qualifier], &[site.def, site.used as u32, u32::from(site.flags)]);
    }
    let hash = hash_of(&all);
    i64::from_le_bytes([hash[0], hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7]])
}
