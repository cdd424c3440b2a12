//! The names that an import statement brings in, for each way of writing one.
//!
//! They are read from the text of the statement, not from its tree: the grammars differ in their trees far more than
//! the languages differ in their words.

use lathe_grammars::Node;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedName {
    pub module: String,
    /// Empty for the module itself, `*` for everything in it.
    pub name: String,
    pub alias: String,
    pub exported: bool,
}

fn brought(module: &str, name: &str, alias: &str) -> ImportedName {
    ImportedName {
        module: module.to_owned(),
        name: name.to_owned(),
        alias: alias.to_owned(),
        exported: false,
    }
}

pub fn parse_import(style: &str, node: Node<'_>, source: &str) -> Vec<ImportedName> {
    let text = source.get(node.byte_range()).unwrap_or("");
    match style {
        "python" => python(text),
        "es" => es(node, text, source),
        "dotted" => one_dotted(text, "import"),
        "using" => using(text),
        "scala" => scala(text),
        "php" => php(text),
        "include" => include(text),
        "rust" => rust(text),
        "rustmod" => rust_module(text),
        "go" => go(text),
        _ => Vec::new(),
    }
}

fn last(path: &str) -> &str {
    path.rsplit(['.', ':', '/', '\\']).next().unwrap_or(path)
}

fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split('#').next().unwrap_or("")).collect::<Vec<_>>().join(" ")
}

fn python(text: &str) -> Vec<ImportedName> {
    let text = without_comments(text).replace(['(', ')', '\\'], " ");
    if let Some(rest) = text.trim().strip_prefix("from") {
        let Some((module, names)) = rest.split_once(" import ").or_else(|| rest.split_once("import ")) else {
            return Vec::new();
        };
        let module: String = module.split_whitespace().collect();
        return names
            .split(',')
            .filter_map(|part| {
                let mut words = part.split_whitespace();
                let name = words.next()?;
                let alias = words.nth(1).unwrap_or(name);
                Some(brought(&module, name, alias))
            })
            .collect();
    }
    let Some(rest) = text.trim().strip_prefix("import") else { return Vec::new() };
    rest.split(',')
        .filter_map(|part| {
            let mut words = part.split_whitespace();
            let module = words.next()?;
            // `import a.b` binds `a`, but `a.b.f` is then written in full.
            let alias = words.nth(1).unwrap_or(module);
            Some(brought(module, "", alias))
        })
        .collect()
}

fn unquote(text: &str) -> &str {
    text.trim().trim_end_matches(';').trim().trim_matches(['"', '\'', '`', '<', '>'])
}

fn es(node: Node<'_>, text: &str, source: &str) -> Vec<ImportedName> {
    let exported = text.starts_with("export");
    let module = node
        .child_by_field_name("source")
        .and_then(|found| source.get(found.byte_range()))
        .map(unquote)
        .unwrap_or_default();
    if exported && node.child_by_field_name("declaration").is_some() {
        return Vec::new();
    }
    if exported && text.trim_start_matches("export").trim_start().starts_with("default") {
        // `export default name`: a file that imports the default gets `name`.
        let name = text.trim_start_matches("export").trim_start().trim_start_matches("default").trim();
        let name = name.trim_end_matches(';').trim();
        let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$');
        return if plain {
            vec![ImportedName { exported: true, ..brought("", name, "default") }]
        } else {
            Vec::new()
        };
    }
    if module.is_empty() && !exported {
        return Vec::new();
    }
    let mut all = Vec::new();
    let clause = text
        .trim_start_matches("export")
        .trim_start_matches("import")
        .trim_start()
        .trim_start_matches("type ")
        .trim_start_matches("typeof ");
    let clause =
        if module.is_empty() { clause } else { clause.rsplit_once("from").map_or("", |(before, _)| before) };
    let (outside, inside) = match (clause.find('{'), clause.rfind('}')) {
        (Some(open), Some(close)) if open < close => (&clause[..open], &clause[open + 1..close]),
        _ => (clause, ""),
    };
    for part in outside.split(',') {
        let words: Vec<&str> = part.split_whitespace().collect();
        match words.as_slice() {
            ["*", "as", alias] => all.push(brought(module, "", alias)),
            ["*"] => all.push(brought(module, "*", "*")),
            [name] if !exported => all.push(brought(module, "default", name)),
            _ => {}
        }
    }
    for part in inside.split(',') {
        let words: Vec<&str> = part.split_whitespace().filter(|word| *word != "type").collect();
        match words.as_slice() {
            [name] => all.push(brought(module, name, name)),
            [name, "as", alias] => all.push(brought(module, name, alias)),
            _ => {}
        }
    }
    if all.is_empty() && !module.is_empty() {
        all.push(brought(module, "", ""));
    }
    for item in &mut all {
        item.exported = exported;
    }
    all
}

/// `import a.b.C`, `import static a.b.C.f`, `import a.b.*`, `import a.b.C as D`.
fn one_dotted(text: &str, word: &str) -> Vec<ImportedName> {
    let rest = text.trim().trim_start_matches("@testable").trim().strip_prefix(word).unwrap_or("");
    let rest = rest.trim().trim_end_matches(';').trim();
    let rest = rest.strip_prefix("static ").unwrap_or(rest).trim();
    let (path, alias) = rest.split_once(" as ").unwrap_or((rest, ""));
    let path: String = path.split_whitespace().last().unwrap_or("").to_owned();
    if path.is_empty() {
        return Vec::new();
    }
    if let Some(module) = path.strip_suffix(".*") {
        return vec![brought(module, "*", "*")];
    }
    let name = last(&path);
    let module = path.strip_suffix(name).unwrap_or("").trim_end_matches('.');
    let alias = if alias.is_empty() { name } else { alias.trim() };
    if module.is_empty() {
        return vec![brought(&path, "", alias)];
    }
    vec![brought(module, name, alias)]
}

fn using(text: &str) -> Vec<ImportedName> {
    let rest = text.trim().trim_start_matches("global ").strip_prefix("using").unwrap_or("").trim();
    let rest = rest.trim_end_matches(';').trim();
    if let Some((alias, path)) = rest.split_once('=') {
        let path = path.trim();
        let name = last(path);
        return vec![brought(
            path.strip_suffix(name).unwrap_or("").trim_end_matches('.'),
            name,
            alias.trim(),
        )];
    }
    if let Some(path) = rest.strip_prefix("namespace ") {
        return vec![brought(&path.trim().replace("::", "."), "*", "*")];
    }
    let path = rest.trim_start_matches("static ").replace("::", ".");
    if rest.contains("::") {
        let name = last(&path).to_owned();
        return vec![brought(path.strip_suffix(&name).unwrap_or("").trim_end_matches('.'), &name, &name)];
    }
    if path.is_empty() { Vec::new() } else { vec![brought(&path, "*", "*")] }
}

fn scala(text: &str) -> Vec<ImportedName> {
    let rest = text.trim().strip_prefix("import").unwrap_or("").trim();
    let mut all = Vec::new();
    let (head, list) = match (rest.find('{'), rest.rfind('}')) {
        (Some(open), Some(close)) if open < close => {
            (rest[..open].trim_end_matches('.'), rest[open + 1..close].to_owned())
        }
        _ => {
            let name = rest.rsplit('.').next().unwrap_or(rest);
            (rest.strip_suffix(name).unwrap_or("").trim_end_matches('.'), name.to_owned())
        }
    };
    for part in list.split(',') {
        let words: Vec<&str> = part.split_whitespace().collect();
        match words.as_slice() {
            ["_" | "*"] => all.push(brought(head, "*", "*")),
            [name] => all.push(brought(head, name, name)),
            [name, "=>" | "as", alias] => all.push(brought(head, name, alias)),
            _ => {}
        }
    }
    all
}

fn php(text: &str) -> Vec<ImportedName> {
    let rest = text.trim().strip_prefix("use").unwrap_or("").trim().trim_end_matches(';');
    let rest = rest.trim_start_matches("function ").trim_start_matches("const ").trim();
    let (head, list) = match (rest.find('{'), rest.rfind('}')) {
        (Some(open), Some(close)) if open < close => (&rest[..open], &rest[open + 1..close]),
        _ => ("", rest),
    };
    list.split(',')
        .filter_map(|part| {
            let (path, alias) = part.trim().split_once(" as ").unwrap_or((part.trim(), ""));
            let path = format!("{head}{path}").trim_matches('\\').replace('\\', ".");
            let name = last(&path).to_owned();
            if name.is_empty() {
                return None;
            }
            let module = path.strip_suffix(&name).unwrap_or("").trim_end_matches('.');
            Some(brought(module, &name, if alias.is_empty() { &name } else { alias.trim() }))
        })
        .collect()
}

fn include(text: &str) -> Vec<ImportedName> {
    let path = text.trim().trim_start_matches('#').trim().trim_start_matches("include").trim();
    let path = path.lines().next().unwrap_or("");
    if path.is_empty() { Vec::new() } else { vec![brought(unquote(path), "*", "*")] }
}

fn go(text: &str) -> Vec<ImportedName> {
    let (alias, path) = text.trim().rsplit_once(char::is_whitespace).unwrap_or(("", text.trim()));
    let path = unquote(path);
    let alias = alias.trim();
    match alias {
        "." => vec![brought(path, "*", "*")],
        // The last part of the path, unless it is a version.
        "" => {
            let mut parts = path.rsplit('/');
            let tail = parts.next().unwrap_or(path);
            let versioned = tail
                .strip_prefix('v')
                .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
            let name = if versioned { parts.next().unwrap_or(tail) } else { tail };
            let name = name.strip_prefix("go-").unwrap_or(name);
            vec![brought(path, "", name.split('.').next().unwrap_or(name))]
        }
        _ => vec![brought(path, "", alias)],
    }
}

fn rust(text: &str) -> Vec<ImportedName> {
    let exported = text.trim_start().starts_with("pub");
    let body = match text.find("extern crate ") {
        Some(at) => &text[at + "extern crate ".len()..],
        None => text.find("use ").map_or("", |at| &text[at + 4..]),
    };
    let mut all = Vec::new();
    rust_tree("", body.trim().trim_end_matches(';'), &mut all, 0);
    for item in &mut all {
        item.exported = exported;
    }
    all
}

fn rust_tree(head: &str, text: &str, all: &mut Vec<ImportedName>, depth: usize) {
    let text = text.trim();
    if text.is_empty() || depth > 16 {
        return;
    }
    let join = |part: &str| -> String {
        let part =
            part.trim().trim_end_matches("::").replace("::", ".").split_whitespace().collect::<String>();
        match (head.is_empty(), part.is_empty()) {
            (true, _) => part,
            (_, true) => head.to_owned(),
            _ => format!("{head}.{part}"),
        }
    };
    if let (Some(open), Some(close)) = (text.find('{'), text.rfind('}'))
        && open < close
    {
        let inner = join(&text[..open]);
        let mut depth_here = 0usize;
        let mut start = open + 1;
        for (at, c) in text[..close].char_indices().skip_while(|(at, _)| *at <= open) {
            match c {
                '{' => depth_here += 1,
                '}' => depth_here = depth_here.saturating_sub(1),
                ',' if depth_here == 0 => {
                    rust_tree(&inner, &text[start..at], all, depth + 1);
                    start = at + 1;
                }
                _ => {}
            }
        }
        rust_tree(&inner, &text[start..close], all, depth + 1);
        return;
    }
    let (path, alias) = text.split_once(" as ").unwrap_or((text, ""));
    let full = join(path);
    let name = full.rsplit('.').next().unwrap_or(&full).to_owned();
    let module = full.strip_suffix(&name).unwrap_or("").trim_end_matches('.').to_owned();
    if name == "self" {
        let alias = if alias.is_empty() { last(&module) } else { alias.trim() }.to_owned();
        all.push(brought(&module, "", &alias));
        return;
    }
    let alias = if alias.is_empty() { name.as_str() } else { alias.trim() };
    all.push(brought(&module, &name, alias));
}

fn rust_module(text: &str) -> Vec<ImportedName> {
    let Some(at) = text.find("mod ") else { return Vec::new() };
    let name = text[at + 4..].trim().trim_end_matches(';').trim();
    let exported = text.trim_start().starts_with("pub");
    vec![ImportedName { exported, ..brought(&format!("self.{name}"), "", name) }]
}
