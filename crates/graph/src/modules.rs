//! Finds the files that an import means, by the layout rules of each language.
//!
//! Build files are not followed: a repository is asked about before it is set up, and its folders say nearly as much.
//! Only the name of a Rust package is read, since its own tests and its neighbours use it. A module without a
//! matching file is external, and names from it are not resolved here.

use std::sync::OnceLock;

use lathe_grammars::Language;
use parking_lot::Mutex;

use crate::hash::{QuickMap, QuickSet};
use crate::snapshot::{Snapshot, family};

#[derive(Debug, Default)]
pub struct Modules {
    /// Files by the last part of their module path: `c` for `a/b/c.py` and for `a/b/c/__init__.py`.
    stems: QuickMap<String, Vec<u32>>,
    /// Files by their folder, relative to the root.
    folders: QuickMap<String, Vec<u32>>,
    /// Files by the package they declare.
    packages: QuickMap<String, Vec<u32>>,
    /// Files by their file name, with extension.
    names: QuickMap<String, Vec<u32>>,
    /// Rust's libraries, read when the first one is asked for.
    crates: OnceLock<Vec<Library>>,
    /// Folders by their last name, including those that contain only folders.
    places: OnceLock<QuickMap<String, Vec<String>>>,
    /// The folder of each npm package that was asked for, if it belongs to this repository.
    npm: Mutex<QuickMap<String, Option<String>>>,
}

/// A Rust library: its name, and the folder of its `lib.rs`.
#[derive(Debug)]
struct Library {
    name: String,
    source: String,
    /// True if its manifest has the name. Otherwise the name is that of its folder, and may have a prefix elsewhere.
    sure: bool,
}

/// The name of the library in a manifest, as source text writes it.
fn library_name(manifest: &str) -> Option<String> {
    let (mut section, mut package, mut library) = ("", None, None);
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line.split('#').next().unwrap_or(line).trim();
        } else if let Some((key, value)) = line.split_once('=')
            && key.trim() == "name"
        {
            let name = value.split('#').next().unwrap_or(value).trim().trim_matches(['"', '\'']);
            match section {
                "[package]" => package = Some(name),
                "[lib]" => library = Some(name),
                _ => {}
            }
        }
    }
    library.or(package).map(|name| name.replace('-', "_"))
}

const INDEX: [&str; 7] = ["__init__", "index", "mod", "init", "lib", "main", "__main__"];

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The path without its extension, and without the name of a file that stands for its folder.
fn module_path(path: &str) -> &str {
    let name_at = path.rfind('/').map_or(0, |at| at + 1);
    let stem = match path[name_at..].find('.') {
        Some(dot) if dot > 0 => &path[..name_at + dot],
        _ => path,
    };
    // In Rust and Python, `index.rs` and `lib.py` are ordinary modules.
    let stands_for_folder = |name: &str| match path.rsplit('.').next() {
        Some("rs") => matches!(name, "mod" | "lib" | "main"),
        Some("py" | "pyi") => matches!(name, "__init__" | "__main__"),
        _ => INDEX.contains(&name),
    };
    match stem.rsplit_once('/') {
        Some((folder, name)) if stands_for_folder(name) => folder,
        None if stands_for_folder(stem) => "",
        _ => stem,
    }
}

/// Tells whether a file is the module of this name.
pub fn is_called(path: &str, name: &str) -> bool {
    module_path(path).rsplit('/').next() == Some(name)
}

/// The extensions that JavaScript and TypeScript try, in order.
const ES_ENDINGS: [&str; 8] = ["ts", "tsx", "js", "jsx", "mts", "cts", "mjs", "cjs"];
const ES_DECLARED: [&str; 3] = ["d.ts", "d.mts", "d.cts"];

/// The order of files with one stem: implementations before declarations, and `a.ts` before `a.test.ts`.
fn rank(path: &str) -> (bool, usize, usize) {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.split_once('.').map_or("", |(_, ending)| ending);
    let last = name.rsplit('.').next().unwrap_or("");
    let order = ES_ENDINGS.iter().position(|known| *known == last).unwrap_or(ES_ENDINGS.len());
    let declared = last == "pyi" || ES_DECLARED.iter().any(|known| ending.ends_with(known));
    (declared, ending.matches('.').count(), order)
}

/// Joins `a/b` and `../c` to `a/c`.
fn join(folder: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The packages that a file declares, including the modules written inside files, in languages that have them.
pub fn packages(snapshot: &Snapshot, file: u32) -> Vec<String> {
    let facts = snapshot.facts(file);
    let package = facts.str(facts.package);
    let mut all: Vec<String> = (!package.is_empty()).then(|| package.to_owned()).into_iter().collect();
    if snapshot.language(file) == Some(Language::CSharp) {
        let inside = facts.defs.iter().filter(|def| def.kind == crate::facts::DefKind::Module);
        all.extend(inside.map(|def| facts.path_of(def)));
    }
    all
}

impl Modules {
    pub fn of(snapshot: &Snapshot) -> &Self {
        snapshot.modules.get_or_init(|| {
            let mut modules = Self::default();
            for (at, file) in snapshot.files.iter().enumerate() {
                let at = at as u32;
                let module = module_path(&file.path);
                let stem = module.rsplit('/').next().unwrap_or(module);
                modules.stems.entry(stem.to_owned()).or_default().push(at);
                modules.folders.entry(folder_of(&file.path).to_owned()).or_default().push(at);
                let name = file.path.rsplit('/').next().unwrap_or(&file.path);
                modules.names.entry(name.to_owned()).or_default().push(at);
                match snapshot.index().and_then(|index| index.files.get(at as usize)) {
                    Some(known) => {
                        known.packages.split('\0').filter(|package| !package.is_empty()).for_each(|package| {
                            modules.packages.entry(package.to_owned()).or_default().push(at);
                        })
                    }
                    None => packages(snapshot, at).into_iter().for_each(|package| {
                        modules.packages.entry(package).or_default().push(at);
                    }),
                }
            }
            modules
        })
    }

    /// The files of the same package or folder, whose names this file sees without an import.
    pub fn same_scope_files(&self, snapshot: &Snapshot, file: u32) -> &[u32] {
        let facts = snapshot.facts(file);
        let package = facts.str(facts.package);
        let found = match snapshot.language(file) {
            Some(Language::Go) => self.folders.get(folder_of(snapshot.path(file))),
            _ if !package.is_empty() => self.packages.get(package),
            _ => self.folders.get(folder_of(snapshot.path(file))),
        };
        found.map_or(&[], Vec::as_slice)
    }

    /// The files that a module means when it is imported in a file. Empty if it is not part of this repository.
    pub fn files(&self, snapshot: &Snapshot, from: u32, module: &str) -> Vec<u32> {
        let Some(language) = snapshot.language(from) else { return Vec::new() };
        let path = snapshot.path(from);
        let folder = folder_of(path);
        let wanted = family(language);
        let mut found = match language {
            Language::Python => self.python(snapshot, folder, module, wanted),
            Language::JavaScript | Language::TypeScript | Language::Tsx => {
                self.es(snapshot, folder, module, wanted)
            }
            Language::C | Language::Cpp => self.include(snapshot, folder, module),
            Language::Go => self.go(module),
            Language::Rust => self.rust(snapshot, from, module, wanted),
            Language::Ruby | Language::Lua | Language::Bash => {
                let spelled =
                    if language == Language::Lua { module.replace('.', "/") } else { module.to_owned() };
                self.relative(snapshot, folder, &spelled, wanted)
                    .or_else(|| self.longest(snapshot, &spelled, folder, wanted))
                    .into_iter()
                    .collect()
            }
            _ => self.packages.get(module).cloned().unwrap_or_default(),
        };
        found.retain(|file| snapshot.family(*file) == wanted);
        found
    }

    /// The file of a module, within one family of languages: `a.py` is not the file of `./a` in TypeScript.
    fn exact(&self, snapshot: &Snapshot, module: &str, wanted: u8) -> Option<u32> {
        let stem = module.rsplit('/').next().unwrap_or(module);
        let all =
            self.stems.get(stem)?.iter().copied().filter(|file| {
                snapshot.family(*file) == wanted && module_path(snapshot.path(*file)) == module
            });
        all.min_by_key(|file| rank(snapshot.path(*file)))
    }

    fn relative(&self, snapshot: &Snapshot, folder: &str, module: &str, wanted: u8) -> Option<u32> {
        let joined = join(folder, module)?;
        if let Some(file) = snapshot.file(&joined).filter(|file| snapshot.family(*file) == wanted) {
            return Some(file);
        }
        self.exact(snapshot, module_path(&joined), wanted)
    }

    /// The file whose path ends with the module's, nearest to the importing folder.
    fn longest(&self, snapshot: &Snapshot, module: &str, folder: &str, wanted: u8) -> Option<u32> {
        let module = if wanted == family(Language::Python) { module } else { module_path(module) };
        let stem = module.rsplit('/').next().unwrap_or(module);
        let all = self.stems.get(stem)?;
        let shared = |path: &str| path.bytes().zip(folder.bytes()).take_while(|(a, b)| a == b).count();
        all.iter()
            .copied()
            .filter(|file| snapshot.family(*file) == wanted)
            .filter(|file| {
                let path = module_path(snapshot.path(*file));
                path == module || path.strip_suffix(module).is_some_and(|before| before.ends_with('/'))
            })
            .max_by_key(|file| {
                let path = snapshot.path(*file);
                let (declared, dots, order) = rank(path);
                (shared(path), std::cmp::Reverse((declared, dots, path.len(), order, *file)))
            })
    }

    fn python(&self, snapshot: &Snapshot, folder: &str, module: &str, wanted: u8) -> Vec<u32> {
        let dots = module.bytes().take_while(|byte| *byte == b'.').count();
        let rest = module[dots..].replace('.', "/");
        if dots > 0 {
            let up = "../".repeat(dots - 1);
            let Some(joined) = join(folder, &format!("{up}{rest}")) else { return Vec::new() };
            return self.exact(snapshot, &joined, wanted).into_iter().collect();
        }
        if let Some(file) = self.exact(snapshot, &rest, wanted) {
            return vec![file];
        }
        // The root itself may be the package.
        if let Some(own) = snapshot.root.file_name().and_then(std::ffi::OsStr::to_str)
            && let Some(inside) =
                rest.strip_prefix(own).filter(|inside| inside.is_empty() || inside.starts_with('/'))
            && snapshot.file("__init__.py").is_some()
            && let Some(file) = self.exact(snapshot, inside.trim_start_matches('/'), wanted)
        {
            return vec![file];
        }
        // Beneath a source folder: a one-word module must be next to the file, or in a folder that is not a package.
        let Some(found) = self.longest(snapshot, &rest, folder, wanted) else { return Vec::new() };
        let path = module_path(snapshot.path(found));
        let top = path.strip_suffix(rest.as_str()).unwrap_or("").trim_end_matches('/');
        let in_package = snapshot.file(&format!("{top}/__init__.py")).is_some();
        if in_package { Vec::new() } else { vec![found] }
    }

    fn es(&self, snapshot: &Snapshot, folder: &str, module: &str, wanted: u8) -> Vec<u32> {
        if module.starts_with('.') {
            return join(folder, module)
                .map_or_else(Vec::new, |joined| self.es_file(snapshot, &joined, wanted));
        }
        // Paths from a root by convention: `@/a`, `~/a`, `src/a`, `#/a`.
        let bare = module.trim_start_matches(['@', '~', '#']).trim_start_matches('/');
        let rooted = bare.len() < module.len() && module[1..].starts_with('/') || bare.starts_with("src/");
        if let Some(found) = self.npm(snapshot, module, wanted) {
            return found;
        }
        let found = if rooted {
            let inside = bare.strip_prefix("src/").unwrap_or(bare);
            self.longest(snapshot, &format!("src/{inside}"), folder, wanted)
                .or_else(|| self.longest(snapshot, inside, folder, wanted))
        } else {
            self.exact(snapshot, module, wanted)
        };
        found.map_or_else(Vec::new, |file| self.with_declarations(snapshot, file))
    }

    fn places(&self) -> &QuickMap<String, Vec<String>> {
        self.places.get_or_init(|| {
            let mut seen: QuickSet<&str> = QuickSet::default();
            let mut places: QuickMap<String, Vec<String>> = QuickMap::default();
            for folder in self.folders.keys() {
                let mut at = folder.as_str();
                while !at.is_empty() && seen.insert(at) {
                    let (above, name) = at.rsplit_once('/').unwrap_or(("", at));
                    places.entry(name.to_owned()).or_default().push(at.to_owned());
                    at = above;
                }
            }
            places
        })
    }

    /// Tells whether a word of an import without a matching file is the name of a file or folder here.
    pub fn is_local_word(&self, word: &str) -> bool {
        self.stems.contains_key(word) || self.places().contains_key(word)
    }

    /// The files of a package of the same repository: the folder of its name that has a `package.json` with this
    /// name.
    fn npm(&self, snapshot: &Snapshot, module: &str, wanted: u8) -> Option<Vec<u32>> {
        let words = if module.starts_with('@') { 2 } else { 1 };
        let end = module.match_indices('/').nth(words - 1).map_or(module.len(), |(at, _)| at);
        let (package, rest) = (&module[..end], module[end..].trim_start_matches('/'));
        let known = self.npm.lock().get(package).cloned();
        let folder = match known {
            Some(known) => known,
            None => {
                let found = self.npm_folder(snapshot, package);
                self.npm.lock().insert(package.to_owned(), found.clone());
                found
            }
        }?;
        let inside = if rest.is_empty() { "index" } else { rest };
        let ways = ["src/", "", "lib/"].map(|way| format!("{folder}/{way}{inside}"));
        let mut found = ways.iter().map(|way| self.es_file(snapshot, way, wanted));
        Some(found.find(|found| !found.is_empty()).unwrap_or_default()).filter(|found| !found.is_empty())
    }

    fn npm_folder(&self, snapshot: &Snapshot, package: &str) -> Option<String> {
        let (scope, base) = package.trim_start_matches('@').split_once('/').unwrap_or(("", package));
        let said = format!("\"name\":\"{package}\"");
        let both = format!("{scope}-{base}");
        let folders = [base, &both].into_iter().filter_map(|name| self.places().get(name)).flatten();
        let mut folders: Vec<&String> = folders.collect();
        folders.sort_unstable();
        let is_it = |folder: &&&String| {
            let text = crate::layout::small_text(&snapshot.root.join(folder).join("package.json"));
            text.is_some_and(|text| text.split_whitespace().collect::<String>().contains(&said))
        };
        folders.iter().find(is_it).map(|folder| (**folder).clone())
    }

    /// Finds a file as Node and TypeScript do: by extension, then in a folder of that name.
    fn es_file(&self, snapshot: &Snapshot, joined: &str, wanted: u8) -> Vec<u32> {
        let ending = joined.rsplit('/').next().and_then(|name| Some(name.rsplit_once('.')?.1)).unwrap_or("");
        let index = format!("{joined}/index");
        // TypeScript writes `./a.js` for a file that is `a.ts` here.
        let plain =
            if ES_ENDINGS.contains(&ending) { &joined[..joined.len() - ending.len() - 1] } else { joined };
        let with = |stem: &str, endings: &[&str]| {
            endings.iter().find_map(|ending| snapshot.file(&format!("{stem}.{ending}")))
        };
        let found = snapshot
            .file(joined)
            .or_else(|| with(plain, &ES_ENDINGS))
            .or_else(|| with(&index, &ES_ENDINGS))
            .or_else(|| with(plain, &ES_DECLARED))
            .or_else(|| with(&index, &ES_DECLARED));
        // Any other file with the stem: `a.ios.js` is one of the files that `./a` can be.
        let asset =
            matches!(ending, "css" | "scss" | "sass" | "less" | "svg" | "png" | "json" | "html" | "md");
        let found =
            found.or_else(|| if asset { None } else { self.exact(snapshot, module_path(joined), wanted) });
        found.map_or_else(Vec::new, |file| self.with_declarations(snapshot, file))
    }

    /// Adds the declaration file of a file after it: types may be named only there.
    fn with_declarations(&self, snapshot: &Snapshot, file: u32) -> Vec<u32> {
        let path = snapshot.path(file);
        let mut found = vec![file];
        let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
        if !rank(path).0 {
            found.extend(ES_DECLARED.iter().find_map(|ending| snapshot.file(&format!("{stem}.{ending}"))));
        }
        found
    }

    fn include(&self, snapshot: &Snapshot, folder: &str, module: &str) -> Vec<u32> {
        if let Some(file) = join(folder, module).and_then(|joined| snapshot.file(&joined)) {
            return vec![file];
        }
        let name = module.rsplit('/').next().unwrap_or(module);
        let clean = module.trim_start_matches("../");
        let found = self.names.get(name).into_iter().flatten().copied().filter(|file| {
            let path = snapshot.path(*file);
            path == clean || path.strip_suffix(clean).is_some_and(|before| before.ends_with('/'))
        });
        found.min_by_key(|file| snapshot.path(*file).len()).into_iter().collect()
    }

    fn go(&self, module: &str) -> Vec<u32> {
        let hosted = module.split('/').next().is_some_and(|first| first.contains('.'));
        let mut rest = module;
        loop {
            if let Some(files) = self.folders.get(rest) {
                return files.clone();
            }
            match rest.split_once('/') {
                Some((_, after)) if hosted => rest = after,
                _ => break,
            }
        }
        // The module itself: its root folder.
        if hosted && module.split('/').count() == 3 {
            return self.folders.get("").cloned().unwrap_or_default();
        }
        Vec::new()
    }

    fn rust(&self, snapshot: &Snapshot, from: u32, module: &str, wanted: u8) -> Vec<u32> {
        let path = snapshot.path(from);
        let (crate_root, inside) = match path.rfind("src/") {
            Some(at) if at == 0 || path.as_bytes()[at - 1] == b'/' => (&path[..at + 3], &path[at + 4..]),
            _ => (folder_of(path), path.rsplit('/').next().unwrap_or(path)),
        };
        // A test, an example and a program are each a crate of their own.
        let alone = inside == "main.rs"
            || matches!(crate_root.rsplit('/').next(), Some("tests" | "examples" | "benches"));
        let own = if alone { "" } else { module_path(inside) };
        let mut parts: Vec<&str> = module.split('.').filter(|part| !part.is_empty()).collect();
        let mut base: Vec<&str> = own.split('/').filter(|part| !part.is_empty()).collect();
        let mut root = crate_root.to_owned();
        let mut inner_root = alone;
        match parts.first().copied() {
            Some("crate") => {
                base.clear();
                parts.remove(0);
            }
            Some("self" | "super") => {
                while let Some(first @ ("self" | "super")) = parts.first().copied() {
                    parts.remove(0);
                    if first == "super" {
                        base.pop();
                    }
                }
            }
            Some(first) => {
                // A module of this file's own, otherwise another crate of the repository.
                let mut below = base.clone();
                below.push(first);
                if self.exact(snapshot, &format!("{root}/{}", below.join("/")), wanted).is_none() {
                    base.clear();
                    let Some(other) = self.rust_crate(snapshot, path, first) else { return Vec::new() };
                    root = other;
                    inner_root = false;
                    parts.remove(0);
                }
            }
            None => {}
        }
        // The parts after the last file name a module or a type inside it.
        let mut inner: Vec<&str> = base.into_iter().chain(parts).collect();
        loop {
            if inner.is_empty() && inner_root {
                return vec![from];
            }
            let full = if inner.is_empty() { root.clone() } else { format!("{root}/{}", inner.join("/")) };
            if let Some(file) = self.exact(snapshot, full.trim_start_matches('/'), wanted) {
                return vec![file];
            }
            if inner.pop().is_none() {
                return Vec::new();
            }
        }
    }

    /// The source folder of a library: the nearest of those with this name.
    fn rust_crate(&self, snapshot: &Snapshot, path: &str, name: &str) -> Option<String> {
        let all = self.crates.get_or_init(|| self.libraries(snapshot));
        let shared = |folder: &str| path.bytes().zip(folder.bytes()).take_while(|(a, b)| a == b).count();
        let called_so = all.iter().filter(|library| library.name == name);
        if let Some(found) = called_so.max_by_key(|library| (shared(&library.source), library.sure)) {
            return Some(found.source.clone());
        }
        let mut found = all.iter().filter(|library| {
            !library.sure && name.strip_suffix(&library.name).is_some_and(|before| before.ends_with('_'))
        });
        found.next().filter(|_| found.next().is_none()).map(|library| library.source.clone())
    }

    fn libraries(&self, snapshot: &Snapshot) -> Vec<Library> {
        let mut all = Vec::new();
        for file in self.names.get("lib.rs").into_iter().flatten() {
            let source = folder_of(snapshot.path(*file));
            let folder = if source == "src" { "" } else { source.strip_suffix("/src").unwrap_or(source) };
            let manifest = crate::layout::small_text(&snapshot.root.join(folder).join("Cargo.toml"));
            let said = manifest.as_deref().and_then(library_name);
            let sure = said.is_some();
            let last = match folder {
                "" => snapshot.root.file_name().and_then(std::ffi::OsStr::to_str).unwrap_or(""),
                _ => folder.rsplit('/').next().unwrap_or(folder),
            };
            let name = said.unwrap_or_else(|| last.replace('-', "_"));
            all.push(Library { name, source: source.to_owned(), sure });
        }
        all
    }
}
