//! Trae's three searches, with its words and its clipping.

use std::path::Path;

use crate::facts::{DefKind, def_flag};
use crate::graph::Graph;
use crate::snapshot::{Snapshot, Symbol};

const LIMIT: usize = 16_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CkgSearch {
    Function,
    Class,
    ClassMethod,
}

impl CkgSearch {
    pub fn parse(command: &str) -> Option<Self> {
        Some(match command {
            "search_function" => Self::Function,
            "search_class" => Self::Class,
            "search_class_method" => Self::ClassMethod,
            _ => return None,
        })
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Function => "functions",
            Self::Class => "classes",
            Self::ClassMethod => "class methods",
        }
    }

    fn wants(self, snapshot: &Snapshot, symbol: Symbol) -> bool {
        let def = snapshot.def(symbol);
        let facts = snapshot.facts(symbol.file);
        if def.flags & def_flag::DECLARED != 0 && def.kind == DefKind::Function {
            return false;
        }
        let in_class = def.owner.0 != 0 || facts.def(def.parent).is_some_and(|around| around.kind.is_type());
        let function = matches!(def.kind, DefKind::Function | DefKind::Method | DefKind::Constructor);
        match self {
            Self::Function => function && !in_class,
            Self::ClassMethod => function && in_class,
            Self::Class => def.kind.is_type(),
        }
    }
}

/// The length in characters, as Python's `len` counts it.
fn length(text: &str) -> usize {
    text.chars().count()
}

fn clip(text: &str) -> String {
    text.chars().take(LIMIT).collect()
}

/// The modifiers and type of a field, if one declaration has them for several names.
fn before_name<'a>(path: &Path, source: &'a str, name_at: usize) -> Option<&'a str> {
    let is_shared = path.extension().is_some_and(|ending| ending == "java" || ending == "cs");
    let before = source.get(..name_at).filter(|_| is_shared)?;
    let line = before.rsplit(['\n', ';', '{', '}']).next()?;
    // The other names before this one.
    let first = line.split(['=', ',']).next().filter(|_| line.contains([',', '=']) && !line.contains('<'));
    let words = first.map_or(line, |first| first.trim_end().rsplit_once(' ').map_or("", |(words, _)| words));
    Some(words.trim()).filter(|words| !words.is_empty())
}

pub fn ckg(
    graph: &Graph,
    snapshot: &Snapshot,
    search: CkgSearch,
    identifier: &str,
    print_body: bool,
) -> String {
    let found: Vec<Symbol> =
        snapshot.named(identifier).filter(|symbol| search.wants(snapshot, *symbol)).collect();
    let noun = search.noun();
    if found.is_empty() {
        return format!("No {noun} named {identifier} found.");
    }
    let mut out = format!("Found {} {noun} named {identifier}:\n", found.len());
    for (at, symbol) in found.iter().enumerate() {
        let facts = snapshot.facts(symbol.file);
        let def = snapshot.def(*symbol);
        let path = snapshot.root.join(snapshot.path(symbol.file));
        let within = match search {
            CkgSearch::ClassMethod => format!(" within class {}", facts.container(def)),
            _ => String::new(),
        };
        out.push_str(&format!(
            "{}. {}:{}-{}{within}\n",
            at + 1,
            path.display(),
            def.start_line,
            def.end_line
        ));
        let source = graph.source(snapshot.files[symbol.file as usize].content).unwrap_or_default();
        if search == CkgSearch::Class {
            for (title, wanted) in [
                ("Fields", &[DefKind::Field, DefKind::Variant, DefKind::Constant][..]),
                ("Methods", &[DefKind::Method, DefKind::Constructor][..]),
            ] {
                let lines: Vec<String> = (facts.defs.iter())
                    .filter(|member| member.parent == symbol.def && wanted.contains(&member.kind))
                    .map(|member| {
                        let before = (member.kind == DefKind::Field)
                            .then(|| before_name(&path, &source, member.start_byte as usize))
                            .flatten();
                        let text = facts.str(member.signature);
                        if let Some(before) = before {
                            return format!("- {before} {text}");
                        }
                        let text = text.strip_prefix("async ").unwrap_or(text);
                        format!("- {}", text.strip_prefix("def ").unwrap_or(text))
                    })
                    .collect();
                if !lines.is_empty() {
                    out.push_str(&format!("{title}:\n{}\n", lines.join("\n")));
                }
            }
        }
        if print_body {
            let body = source.get(def.start_byte as usize..def.end_byte as usize).unwrap_or("");
            out.push_str(&format!("{body}\n\n"));
        }
        if length(&out) > LIMIT {
            return format!(
                "{}\n<response clipped> {} more entries not shown",
                clip(&out),
                found.len() - at - 1
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_told_with_its_modifiers_and_its_type() {
        let source = "class K { private int f = 1;\n  static final String A = \"a\", B;\n  Map<String, Integer> m;\n  x; }";
        let before = |file: &str, name: &str| {
            before_name(Path::new(file), source, source.find(name).unwrap()).map(str::to_owned)
        };
        assert_eq!(before("K.java", "f = 1").as_deref(), Some("private int"));
        assert_eq!(before("K.cs", "A = ").as_deref(), Some("static final String"));
        assert_eq!(before("K.java", "B;").as_deref(), Some("static final String"));
        assert_eq!(before("K.java", "m;").as_deref(), Some("Map<String, Integer>"));
        assert_eq!((before("K.java", "x;"), before("k.cpp", "f = 1")), (None, None));
    }
}
