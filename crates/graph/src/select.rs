//! Finds the definitions that the text of a person or a model means: `name`, `Class.name`, `file:name`, `file:line`.

use std::path::{Component, Path};

use crate::facts::{DefKind, NONE};
use crate::snapshot::{Snapshot, Symbol};

/// The definitions that a text means; several if it is only a name.
pub fn select(snapshot: &Snapshot, text: &str) -> Vec<Symbol> {
    let text = text.trim();
    if let Some((path, rest)) = split_file(snapshot, text) {
        let files: Vec<u32> = files_ending(snapshot, path);
        if let Ok(line) = rest.parse::<u32>() {
            return files.iter().filter_map(|file| at_line(snapshot, *file, line)).collect();
        }
        return by_name(snapshot, rest).into_iter().filter(|symbol| files.contains(&symbol.file)).collect();
    }
    by_name(snapshot, text)
}

fn split_file<'t>(snapshot: &Snapshot, text: &'t str) -> Option<(&'t str, &'t str)> {
    let (path, rest) = text.rsplit_once(':')?;
    let path = path.trim_end_matches(':');
    (!rest.is_empty() && !files_ending(snapshot, path).is_empty()).then_some((path, rest))
}

/// Files by their path or by the end of it.
pub fn files_ending(snapshot: &Snapshot, path: &str) -> Vec<u32> {
    let path = Path::new(path);
    let mut parts: Vec<&str> = Vec::new();
    for part in path.strip_prefix(&snapshot.root).unwrap_or(path).components() {
        match part {
            Component::Normal(part) => parts.extend(part.to_str()),
            Component::ParentDir => drop(parts.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    let path = parts.join("/");
    if path.is_empty() {
        return Vec::new();
    }
    if let Some(file) = snapshot.file(&path) {
        return vec![file];
    }
    (0..snapshot.files.len() as u32)
        .filter(|file| {
            snapshot.path(*file).strip_suffix(path.as_str()).is_some_and(|before| before.ends_with('/'))
        })
        .collect()
}

/// The innermost definition around a line.
pub fn at_line(snapshot: &Snapshot, file: u32, line: u32) -> Option<Symbol> {
    let facts = snapshot.facts(file);
    (0..facts.defs.len() as u32)
        .filter(|def| {
            let def = &facts.defs[*def as usize];
            def.start_line <= line && line <= def.end_line && def.kind != DefKind::Impl
        })
        .min_by_key(|def| {
            let def = &facts.defs[*def as usize];
            (def.end_line - def.start_line, std::cmp::Reverse(def.start_line))
        })
        .map(|def| Symbol { file, def })
}

fn by_name(snapshot: &Snapshot, text: &str) -> Vec<Symbol> {
    let text = text.trim_end_matches("()").replace("::", ".").replace(['#', '\\'], ".");
    let whole: Vec<Symbol> = snapshot.named(&text).collect();
    if !whole.is_empty() {
        return whole;
    }
    let Some((containers, name)) = text.rsplit_once('.') else { return Vec::new() };
    snapshot
        .named(name)
        .filter(|symbol| {
            let full = snapshot.path_of(*symbol);
            let before = full.strip_suffix(name).unwrap_or("").trim_end_matches('.');
            // Outer names may be the module of the file: `package.module.Class.name`.
            let module =
                snapshot.path(symbol.file).rsplit_once('.').map_or("", |(path, _)| path).replace('/', ".");
            let long = if before.is_empty() { module } else { format!("{module}.{before}") };
            long == containers || long.strip_suffix(containers).is_some_and(|rest| rest.ends_with('.'))
        })
        .collect()
}

/// The definition that contains a use, if there is one.
pub fn caller(file: u32, def: u32) -> Option<Symbol> {
    (def != NONE).then_some(Symbol { file, def })
}
