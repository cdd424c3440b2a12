//! Facts as bytes: fixed-width little-endian records, so that reading them back is a copy and not a parse.
//!
//! Bytes from a database may be damaged. Every length is checked before use. A record that names a missing string or
//! definition makes the whole file unknown, so that it is parsed once more.

use crate::facts::{Def, DefKind, Facts, Gap, Import, NONE, Site, Sym, UseKind};

const DEF: usize = 44;
const SITE: usize = 20;
const IMPORT: usize = 21;
const HEAD: usize = 29;

pub fn pack(facts: &Facts) -> Vec<u8> {
    let mut out = Vec::with_capacity(
        HEAD + facts.text.len()
            + facts.ends.len() * 4
            + facts.defs.len() * DEF
            + facts.sites.len() * SITE
            + facts.imports.len() * IMPORT,
    );
    let mut put = |value: u32| out.extend_from_slice(&value.to_le_bytes());
    for length in
        [facts.text.len(), facts.ends.len(), facts.defs.len(), facts.sites.len(), facts.imports.len()]
    {
        put(u32::try_from(length).unwrap_or(u32::MAX));
    }
    put(facts.package.0);
    put(facts.lines);
    out.push(facts.gap as u8);
    out.extend_from_slice(facts.text.as_bytes());
    for end in &facts.ends {
        out.extend_from_slice(&end.to_le_bytes());
    }
    for def in &facts.defs {
        for value in [
            def.name.0,
            def.parent,
            def.owner.0,
            def.start_line,
            def.end_line,
            def.line,
            def.start_byte,
            def.end_byte,
            def.signature.0,
            def.doc.0,
        ] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        // The kind and the flags share a word with the type, whose number needs no more than 20 bits.
        let packed = (def.ty.0 & 0x000f_ffff) | (u32::from(def.flags) & 0x1f) << 20 | (def.kind as u32) << 25;
        out.extend_from_slice(&packed.to_le_bytes());
    }
    for site in &facts.sites {
        for value in [site.name.0, site.qualifier.0, site.line, site.def] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        out.extend_from_slice(&site.column.to_le_bytes());
        out.push(site.used as u8);
        out.push(site.flags);
    }
    for import in &facts.imports {
        for value in [import.module.0, import.name.0, import.alias.0, import.line, import.def] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        out.push(u8::from(import.exported));
    }
    out
}

struct FactsReader<'a>(&'a [u8]);

impl<'a> FactsReader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| word(bytes, 0))
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at * 4], bytes[at * 4 + 1], bytes[at * 4 + 2], bytes[at * 4 + 3]])
}

pub fn unpack(bytes: &[u8]) -> Option<Facts> {
    let mut reader = FactsReader(bytes);
    let mut counts = [0usize; 5];
    for count in &mut counts {
        *count = reader.number()? as usize;
    }
    let [text, ends, defs, sites, imports] = counts;
    let package = Sym(reader.number()?);
    let lines = reader.number()?;
    let gap = *Gap::ALL.get(*reader.take(1)?.first()? as usize)?;
    let text: Box<str> = std::str::from_utf8(reader.take(text)?).ok()?.into();
    let ends: Vec<u32> =
        reader.take(ends.checked_mul(4)?)?.chunks_exact(4).map(|four| word(four, 0)).collect();
    let strings = ends.len() as u32;
    let monotone = ends.windows(2).all(|pair| pair[0] <= pair[1]);
    if !monotone || ends.last().is_some_and(|&end| end as usize != text.len()) || package.0 >= strings.max(1)
    {
        return None;
    }
    let known = |sym: u32| sym < strings;
    let count = defs as u32;
    let inside = |def: u32| def == NONE || def < count;
    let mut all_defs = Vec::with_capacity(defs.min(bytes.len() / DEF));
    for record in reader.take(defs.checked_mul(DEF)?)?.chunks_exact(DEF) {
        let last = word(record, 10);
        let def = Def {
            name: Sym(word(record, 0)),
            parent: word(record, 1),
            owner: Sym(word(record, 2)),
            start_line: word(record, 3),
            end_line: word(record, 4),
            line: word(record, 5),
            start_byte: word(record, 6),
            end_byte: word(record, 7),
            signature: Sym(word(record, 8)),
            doc: Sym(word(record, 9)),
            ty: Sym(last & 0x000f_ffff),
            flags: (last >> 20 & 0x1f) as u8,
            kind: *DefKind::ALL.get((last >> 25) as usize)?,
        };
        if !inside(def.parent)
            || ![def.name, def.owner, def.signature, def.doc, def.ty].iter().all(|sym| known(sym.0))
        {
            return None;
        }
        all_defs.push(def);
    }
    let mut all_sites = Vec::with_capacity(sites.min(bytes.len() / SITE));
    for record in reader.take(sites.checked_mul(SITE)?)?.chunks_exact(SITE) {
        let site = Site {
            name: Sym(word(record, 0)),
            qualifier: Sym(word(record, 1)),
            line: word(record, 2),
            def: word(record, 3),
            column: u16::from_le_bytes([record[16], record[17]]),
            used: *UseKind::ALL.get(record[18] as usize)?,
            flags: record[19],
        };
        if !inside(site.def) || !known(site.name.0) || !known(site.qualifier.0) {
            return None;
        }
        all_sites.push(site);
    }
    let mut all_imports = Vec::with_capacity(imports.min(bytes.len() / IMPORT));
    for record in reader.take(imports.checked_mul(IMPORT)?)?.chunks_exact(IMPORT) {
        let import = Import {
            module: Sym(word(record, 0)),
            name: Sym(word(record, 1)),
            alias: Sym(word(record, 2)),
            line: word(record, 3),
            def: word(record, 4),
            exported: record[20] != 0,
        };
        if !inside(import.def) || ![import.module, import.name, import.alias].iter().all(|sym| known(sym.0)) {
            return None;
        }
        all_imports.push(import);
    }
    reader.0.is_empty().then_some(Facts {
        text,
        ends,
        defs: all_defs,
        sites: all_sites,
        imports: all_imports,
        package,
        lines,
        gap,
    })
}
