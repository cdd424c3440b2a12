//! The rules of the house: direction of dependencies, size of files, no shortcuts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The exact dependencies of each crate: a dependency that is allowed and not used would hide a wrong one.
pub(crate) const STANDS_ON: [(&str, &[&str]); 29] = [
    ("protocol", &[]),
    ("blobs", &["protocol"]),
    ("redact", &[]),
    ("journal", &["protocol", "blobs"]),
    ("model", &["protocol"]),
    ("bash", &["protocol", "grammars"]),
    ("policy", &["protocol", "bash"]),
    ("workspace", &["protocol"]),
    ("shell", &["protocol", "workspace"]),
    ("proxy", &[]),
    ("git", &["workspace"]),
    ("changes", &["protocol", "blobs", "git"]),
    ("grammars", &[]),
    ("search", &[]),
    ("extend", &["protocol", "redact", "workspace"]),
    ("documents", &["protocol"]),
    ("edit", &["grammars"]),
    ("graph", &["grammars", "search"]),
    (
        "tools",
        &[
            "protocol",
            "blobs",
            "redact",
            "policy",
            "workspace",
            "shell",
            "edit",
            "git",
            "graph",
            "changes",
            "search",
        ],
    ),
    ("agent", &["protocol", "blobs", "redact", "journal", "model", "policy", "tools"]),
    (
        "host",
        &[
            "protocol",
            "blobs",
            "redact",
            "journal",
            "model",
            "policy",
            "workspace",
            "shell",
            "edit",
            "documents",
            "git",
            "graph",
            "changes",
            "search",
            "extend",
            "tools",
            "agent",
            "proxy",
            "views",
        ],
    ),
    ("views", &["protocol", "edit", "redact"]),
    ("config", &["protocol", "workspace"]),
    ("workbench", &["protocol", "workspace", "edit", "git", "search", "host"]),
    ("plan", &["protocol", "model", "documents", "tools", "views", "host", "config"]),
    ("server", &["protocol", "views", "host", "workbench", "plan"]),
    ("cli", &["protocol", "views", "host", "config", "plan", "server"]),
    ("ax", &[]),
    ("testkit", &["protocol"]),
];

#[test]
fn every_crate_stands_on_what_the_table_says_and_on_nothing_else() {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found: BTreeMap<String, BTreeSet<String>> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            let own = |name: &Value| Some(name.as_str()?.strip_prefix("lathe-")?.to_owned());
            let dependencies = package["dependencies"].as_array().unwrap().iter();
            // Only tests may use the kit.
            let is_kit = |on: &Value| on["kind"] == "dev" && on["name"] == "lathe-testkit";
            let on = dependencies.filter(|on| !is_kit(on)).filter_map(|on| own(&on["name"])).collect();
            (own(&package["name"]).unwrap(), on)
        })
        .collect();
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let expected = STANDS_ON.into_iter().map(|(name, on)| (name.to_owned(), set(on))).collect();
    assert_eq!(found, expected, "the crates of the house and what each stands on");
}

/// Ways to name the program git where a process is started. Written apart, so that this file does not find itself.
fn starts_git(text: &str) -> bool {
    let git = ["\"gi", "t\""].concat();
    let ways = [
        format!("Command::new({git}"),
        format!("find_program({git}"),
        format!("{git}.into()"),
        format!("{git}.to_owned()"),
        format!("{git}.to_string()"),
        format!("OsString::from({git}"),
        format!("OsStr::new({git}"),
        format!("PathBuf::from({git}"),
        format!("[{git}].map"),
        ["bin/gi", "t\""].concat(),
    ];
    ways.iter().any(|way| text.contains(way.as_str()))
}

/// The code that keeps a repository's configuration from git is in one crate, so no other crate may start git.
#[test]
fn only_the_crate_git_starts_git() {
    let mut found = Vec::new();
    files(&root().join("crates"), ".rs", &mut found);
    let is_product = |path: &&PathBuf| {
        let below = path.strip_prefix(root().join("crates")).unwrap();
        let mut parts = below.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
        let (name, folder) = (parts.next().unwrap(), parts.next().unwrap());
        folder == "src" && !["git", "testkit"].contains(&name.as_str())
    };
    let odd: Vec<&PathBuf> = found
        .iter()
        .filter(is_product)
        .filter(|path| starts_git(&std::fs::read_to_string(path).unwrap()))
        .collect();
    assert_eq!(odd, Vec::<&PathBuf>::new(), "use lathe-git");
    let own = std::fs::read_to_string(root().join("crates/git/src/call.rs")).unwrap();
    assert!(starts_git(&own), "the crate git itself is found");
}

/// Ways to compile a pattern, or to have the walker compile those of ignore files. Written apart, so that this file does not
/// find itself.
fn compiles_globs(text: &str) -> bool {
    let ways = [
        ["Glob", "Builder"],
        ["Glob:", ":new"],
        ["GlobSet", "Builder"],
        ["Gitignore", "Builder"],
        ["Gitignore:", ":new"],
        ["Gitignore:", ":global"],
        ["Override", "Builder"],
        ["Walk", "Builder::new"],
        ["Walk", "Builder::from_iter"],
        ["Walk:", ":new"],
        ["add_custom_", "ignore_filename"],
        ["add_", "ignore("],
        [".git_", "ignore(true"],
        [".git_", "exclude(true"],
        [".git_", "global(true"],
        [".ignore(", "true"],
        [".standard_", "filters(true"],
    ];
    ways.iter().any(|way| text.contains(&way.concat()))
}

/// Nested braces of a pattern overflow the stack in `globset`. What bounds them is in one file, so no other may compile globs,
/// and the walker itself reads no ignore files.
#[test]
fn only_one_file_compiles_globs_and_only_one_makes_walks() {
    let (globs, walks) = ("crates/search/src/globs.rs", "crates/search/src/tree.rs");
    let mut found = Vec::new();
    files(&root().join("crates"), ".rs", &mut found);
    let below = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    found.retain(|path| compiles_globs(&std::fs::read_to_string(path).unwrap()));
    let odd: BTreeSet<String> = found.iter().map(|path| below(path)).collect();
    assert_eq!(odd, BTreeSet::from([globs.to_owned(), walks.to_owned()]), "use lathe_search::globs");
    let text = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    assert_eq!(text(walks).matches(".standard_filters(false)").count(), 1, "the walk reads ignore files");
    assert!(!text(walks).contains(&["Gitignore", "Builder"].concat()));
}

/// Processes begin in few places, so that walls around them are built in few places. Written apart, so that this file does not
/// find itself.
#[test]
fn only_four_crates_start_programs() {
    let way = ["Command::n", "ew("].concat();
    let mut found = Vec::new();
    files(&root().join("crates"), ".rs", &mut found);
    let odd: Vec<&PathBuf> = found
        .iter()
        .filter(|path| {
            let below = path.strip_prefix(root().join("crates")).unwrap();
            let mut parts = below.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
            let (name, folder) = (parts.next().unwrap(), parts.next().unwrap());
            folder == "src" && !["workspace", "shell", "ax", "testkit"].contains(&name.as_str())
        })
        .filter(|path| std::fs::read_to_string(path).unwrap().contains(&way))
        .collect();
    assert_eq!(odd, Vec::<&PathBuf>::new(), "use a workspace's processes, or `program_command`");
}

/// A place to work in is made in one constructor and handed on, so that a jail or a container is another constructor. Written
/// apart, so that this file does not find itself.
#[test]
fn only_one_constructor_names_files_and_processes_of_this_machine() {
    let names = [["Local", "Files"].concat(), ["Local", "Processes"].concat()];
    let mut found = Vec::new();
    files(&root().join("crates"), ".rs", &mut found);
    let below = found.iter().map(|path| path.strip_prefix(root()).unwrap());
    let sources = below.filter(|path| path.components().nth(2).is_some_and(|part| part.as_os_str() == "src"));
    let named = sources.filter(|path| {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        !path.starts_with("crates/workspace") && names.iter().any(|name| text.contains(name.as_str()))
    });
    let named: Vec<&Path> = named.collect();
    assert_eq!(named, [Path::new("crates/host/src/workspace.rs")], "use the workspace that was handed on");
}

/// Crates whose values surfaces hold, and the one they speak with everybody.
const HELD: [&str; 7] = ["protocol", "views", "plan", "host", "workbench", "config", "server"];

/// The crates that a text names.
fn named_crates(text: &str) -> BTreeSet<String> {
    let after = text.split("lathe_").skip(1);
    let word = |rest: &str| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let names: BTreeSet<String> = after.map(word).collect();
    STANDS_ON.iter().map(|(name, _)| (*name).to_owned()).filter(|name| names.contains(name)).collect()
}

/// The public items of a file that are another crate's under a name of this one: re-exports, aliases.
fn lent(text: &str) -> Vec<String> {
    let items = text
        .split("pub ")
        .skip(1)
        .filter(|rest| ["use ", "type ", "extern crate "].iter().any(|kind| rest.starts_with(kind)));
    let items = items.filter_map(|rest| rest.split_once(';').map(|(item, _)| item.to_owned()));
    items.filter(|item| !named_crates(item).is_empty()).collect()
}

/// The names that a file takes from engines by `use`.
fn taken_from_engines(text: &str) -> BTreeSet<String> {
    let engine = |rest: &&str| {
        let named = rest.split("::").next().unwrap();
        !HELD.contains(&named) && STANDS_ON.iter().any(|(name, _)| *name == named)
    };
    let uses = text.split("use lathe_").skip(1).filter(engine);
    let items = uses.filter_map(|rest| rest.split_once(';')).flat_map(|(item, _)| {
        let names = item.split(|c: char| !(c.is_alphanumeric() || c == '_')).map(str::to_owned);
        names.filter(|name| name.starts_with(char::is_uppercase)).collect::<Vec<_>>()
    });
    items.collect()
}

/// Surfaces stand on what they hold, and nothing of that gives them a type of an engine under another name.
#[test]
fn surfaces_name_no_type_of_an_engine_not_even_a_lent_one() {
    let sources = |name: &str| {
        let mut found = Vec::new();
        files(&root().join("crates").join(name), ".rs", &mut found);
        found.retain(|path| !path.components().any(|part| part.as_os_str() == "tests"));
        found.into_iter().map(|path| (std::fs::read_to_string(&path).unwrap(), path)).collect::<Vec<_>>()
    };
    for surface in ["server", "cli"] {
        for (text, path) in sources(surface) {
            let engines: Vec<String> =
                named_crates(&text).into_iter().filter(|name| !HELD.contains(&name.as_str())).collect();
            assert_eq!(engines, Vec::<String>::new(), "{}", path.display());
        }
    }
    let options = "use lathe_config::{FlagRow, MemberRow, OptionForm, OptionRow, options}";
    for lender in ["views", "host", "plan", "workbench"] {
        for (text, path) in sources(lender) {
            let mut lent = lent(&text);
            // The rows of options are values of `config`, an edge like the surfaces themselves.
            lent.retain(|item| !(lender == "plan" && item == options));
            assert_eq!(lent, Vec::<String>::new(), "{}", path.display());
            // An alias of a name that came from an engine.
            let taken = taken_from_engines(&text);
            for alias in text.split("pub type ").skip(1).filter_map(|rest| rest.split_once(';')) {
                let words = alias.0.split(|c: char| !(c.is_alphanumeric() || c == '_'));
                let odd: Vec<&str> = words.filter(|word| taken.contains(*word)).collect();
                assert_eq!(odd, Vec::<&str>::new(), "{}", path.display());
            }
        }
    }
    assert_eq!(lent("pub use lathe_model::{A, B};").len(), 1, "a re-export is found");
    assert_eq!(lent("pub type A = lathe_model::Answer;").len(), 1, "an alias is found");
    assert_eq!(
        taken_from_engines("use lathe_model::{\n    Answer, ask};"),
        BTreeSet::from(["Answer".to_owned()])
    );
}

/// The host opens sessions; what needs Lathe's folder alone belongs to one of its parts.
#[test]
fn the_host_stays_small() {
    let mut found = Vec::new();
    files(&root().join("crates/host/src"), ".rs", &mut found);
    let mut methods = Vec::new();
    for path in &found {
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().count();
        assert!(lines <= 400, "{} has {lines} lines", path.display());
        for part in text.split("\nimpl Host {\n").skip(1) {
            let body = part.split("\n}\n").next().unwrap();
            let public = body
                .lines()
                .filter(|line| line.starts_with("    pub fn ") || line.starts_with("    pub async fn "));
            methods.extend(public.map(|line| line.trim().to_owned()));
        }
    }
    assert!((10..=15).contains(&methods.len()), "{methods:#?}");
}

pub(crate) fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
}

#[test]
fn no_source_file_is_longer_than_600_lines() {
    let mut found = Vec::new();
    files(&root().join("crates"), ".rs", &mut found);
    assert!(found.len() > 80);
    let long: Vec<String> = found
        .iter()
        .map(|path| (path, std::fs::read_to_string(path).unwrap().lines().count()))
        .filter(|(_, lines)| *lines > 600)
        .map(|(path, lines)| format!("{} has {lines} lines", path.display()))
        .collect();
    assert_eq!(long, Vec::<String>::new());
}

#[test]
fn every_crate_takes_the_workspaces_lints_and_says_what_it_is() {
    for (name, _) in STANDS_ON {
        let folder = root().join("crates").join(name);
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{name}");
        let lib = folder.join("src/lib.rs");
        let source = if lib.exists() { lib } else { folder.join("src/main.rs") };
        assert!(
            std::fs::read_to_string(&source).unwrap().starts_with("//! "),
            "{name}: its first line says its purpose"
        );
    }
}

#[test]
fn no_test_is_switched_off_and_no_stub_is_left() {
    let mut found = Vec::new();
    files(&root().join("crates"), ".rs", &mut found);
    // Written apart, so that this file does not find itself.
    let words = [
        ["to", "do!("].concat(),
        ["unimple", "mented!("].concat(),
        ["FIX", "ME"].concat(),
        ["TO", "DO"].concat(),
    ];
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        for word in &words {
            assert!(!text.contains(word.as_str()), "{word} in {}", path.display());
        }
    }
}

#[test]
fn there_is_no_toolchain_file_and_ci_calls_scripts_test_only() {
    assert!(!root().join("rust-toolchain.toml").exists() && !root().join("rust-toolchain").exists());
    let ci = std::fs::read_to_string(root().join(".ci/run")).unwrap();
    let lines: Vec<&str> =
        ci.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).collect();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("scripts/test"));
}

/// Licences of dependencies that may be linked into a program under MIT or Apache-2.0.
const LICENCES: [&str; 12] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unlicense",
    "0BSD",
    "CC0-1.0",
    "Unicode-3.0",
    "CDLA-Permissive-2.0",
];

#[test]
fn every_dependency_has_a_licence_we_may_use_and_comes_from_the_registry() {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    for package in metadata["packages"].as_array().unwrap() {
        let (name, licence) = (&package["name"], package["license"].as_str().unwrap_or("none"));
        // `A OR B` leaves the choice; every part of `A AND B` must do.
        let fine = licence.replace('/', " OR ").split(" AND ").all(|part| {
            part.trim_matches(['(', ')'])
                .split(" OR ")
                .any(|one| LICENCES.contains(&one.trim().trim_matches(['(', ')'])))
        });
        assert!(fine, "{name}: {licence}");
        let source = package["source"].as_str().unwrap_or("path");
        assert!(source == "path" || source.starts_with("registry+"), "{name} comes from {source}");
    }
}

#[test]
fn no_crate_names_a_dependency_it_does_not_use() {
    for (name, _) in STANDS_ON {
        let folder = root().join("crates").join(name);
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let mut sources = Vec::new();
        files(&folder, ".rs", &mut sources);
        let text: String = sources.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
        for dependency in manifest.lines().filter_map(|line| line.strip_suffix(".workspace = true")) {
            if ["version", "edition", "rust-version", "license", "repository", "publish"]
                .contains(&dependency)
            {
                continue;
            }
            let word = dependency.replace('-', "_");
            assert!(
                text.contains(&format!("{word}::")) || text.contains(&format!("use {word}")),
                "{name} does not use {dependency}"
            );
        }
    }
}
