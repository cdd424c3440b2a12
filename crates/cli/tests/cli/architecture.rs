//! The parts of the documents that are made from the code, and the files that documents name.
//!
//! A part stands between `<!-- generated: NAME -->` and `<!-- end -->`. With `UPDATE_GOLDEN=1` it is rewritten.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::json;

use crate::house::{STANDS_ON, files, root};
use crate::{lathe, play};

/// The layers of the house from the top, each with its crates.
const LAYERS: [(&str, &[&str]); 6] = [
    ("edge", &["cli", "ax", "testkit"]),
    ("surfaces", &["server"]),
    ("host", &["plan", "workbench", "host", "views", "config"]),
    ("agent", &["agent", "tools"]),
    (
        "engines",
        &[
            "journal",
            "model",
            "policy",
            "bash",
            "shell",
            "changes",
            "git",
            "workspace",
            "extend",
            "edit",
            "graph",
            "search",
            "documents",
            "grammars",
            "proxy",
        ],
    ),
    ("words", &["protocol", "blobs", "redact"]),
];

/// Replaces the generated part of a document, or fails where the part is not what the code gives.
fn generated(document: &str, name: &str, text: &str) {
    let path = root().join(document);
    let is = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- generated: {name} -->\n"), "<!-- end -->");
    let from = is.find(&begin).unwrap_or_else(|| panic!("{document} has no part {name}")) + begin.len();
    let to = from + is[from..].find(end).unwrap_or_else(|| panic!("{document}: {name} has no end"));
    let wanted =
        format!("{}\n{}\n{}", &is[..from], text.trim_end(), &is[to..]).replace("\n\n<!-- end", "\n<!-- end");
    if std::env::var("UPDATE_GOLDEN").is_ok_and(|value| value == "1") {
        std::fs::write(&path, wanted).unwrap();
    } else {
        assert!(
            is == wanted,
            "{document}, part {name}, is not what the code gives; run this test with UPDATE_GOLDEN=1 and look at `git diff`"
        );
    }
}

/// The crates below a crate, by any way.
fn below<'a>(on: &BTreeMap<&'a str, &'a [&'a str]>, name: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = on[name].to_vec();
    while let Some(next) = open.pop() {
        if found.insert(next) {
            open.extend(on[next]);
        }
    }
    found
}

#[test]
fn the_picture_of_the_house_is_that_of_the_crates() {
    let on: BTreeMap<&str, &[&str]> = STANDS_ON.into_iter().collect();
    let layer = |name: &str| LAYERS.iter().position(|(_, crates)| crates.contains(&name));
    let mut picture = "```mermaid\nflowchart TD\n".to_owned();
    for (title, crates) in LAYERS {
        writeln!(picture, "  subgraph {title}\n    {}\n  end", crates.join("\n    ")).unwrap();
    }
    for (name, direct) in &on {
        let own = layer(name).unwrap_or_else(|| panic!("{name} has no layer"));
        for to in *direct {
            assert!(layer(to).unwrap() >= own || *name == "cli", "{name} stands on {to}, which is above it");
            // An arrow is drawn only where no other way leads there.
            let is_implied = direct.iter().any(|other| other != to && below(&on, other).contains(to));
            if !is_implied {
                writeln!(picture, "  {name} --> {to}").unwrap();
            }
        }
    }
    picture.push_str("```\n");
    generated("docs/ARCHITECTURE.md", "house", &picture);
}

#[test]
fn the_table_of_crates_has_a_row_for_each() {
    let text = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let named: Vec<&str> = rows.map(|(name, _)| name).collect();
    let expected: BTreeSet<&str> = STANDS_ON.into_iter().map(|(name, _)| name).collect();
    assert_eq!(named.iter().copied().collect::<BTreeSet<&str>>(), expected);
    assert_eq!(named.len(), expected.len(), "a crate has two rows");
}

/// From whom to whom an event goes, and what it says. A kind without a row fails the test of the picture.
fn arrow(kind: &str) -> (&'static str, &'static str, &'static str) {
    match kind {
        "session_opened" => ("host", "journal", "model, mode, toolset, limits"),
        "task_given" => ("surface", "actor", "the user's task"),
        "epoch_started" => ("actor", "journal", "system prompt and tool list, frozen"),
        "model_asked" => ("actor", "model", "one step begins; the request is the rope"),
        "model_answered" => ("model", "actor", "text and calls"),
        "call_decided" => ("gate", "actor", "allow, ask or deny, with the rule"),
        "approval_asked" => ("actor", "surface", "the rules ask the user"),
        "approval_given" => ("surface", "actor", "yes or no, by whom"),
        "call_started" => ("actor", "tools", "durable before the effect"),
        "call_finished" => ("tools", "actor", "the one result, with its changes"),
        "task_finished" => ("actor", "surface", "the ending; decides the exit code"),
        other => panic!("the picture of a task's way has no arrow for {other}"),
    }
}

#[test]
fn the_picture_of_a_tasks_way_is_that_of_a_run() {
    let script = Script::new()
        .answer(call("c1", "bash", json!({"command": "echo done > out.txt"})))
        .answer(done("Made out.txt."));
    let repo = TempRepo::new(&[("README.md", "hello\n")]);
    let events = play(repo.path(), script).expect_code(0).events();
    let mut picture = "```mermaid\nsequenceDiagram\n".to_owned();
    for event in &events {
        let kind = event["kind"].as_str().unwrap();
        let (from, to, note) = arrow(kind);
        let step = event["step"].as_u64().map(|step| format!(" (step {step})")).unwrap_or_default();
        writeln!(picture, "  {from}->>{to}: {kind}{step}: {note}").unwrap();
    }
    picture.push_str("```\n");
    generated("docs/ARCHITECTURE.md", "way", &picture);
}

/// The first sentence of a file's header.
fn first_sentence(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let header: Vec<&str> = text
        .lines()
        .take_while(|line| line.starts_with("//!"))
        .map(|line| line[3..].trim())
        .take_while(|line| !line.is_empty())
        .collect();
    let header = header.join(" ");
    let end = header.find(". ").map_or(header.len(), |end| end + 1);
    (!header.is_empty()).then(|| header[..end].trim_end_matches('.').to_owned())
}

#[test]
fn the_list_of_files_is_that_of_the_headers() {
    let mut list = String::new();
    for (name, _) in STANDS_ON.into_iter().collect::<BTreeMap<_, _>>() {
        let src = root().join("crates").join(name).join("src");
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(&src).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        writeln!(list, "### `{name}`\n").unwrap();
        for path in entries {
            let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
            let folder = src.join(&stem);
            let sentence = match path.is_dir() {
                // The header of a folder is that of the file with its name, which has a line of its own.
                true if src.join(format!("{stem}.rs")).is_file() => continue,
                true => first_sentence(&path.join("mod.rs")),
                false => first_sentence(&path),
            };
            let Some(sentence) = sentence.filter(|_| !["lib", "main"].contains(&stem.as_str())) else {
                continue;
            };
            let shown = if folder.is_dir() { format!("{stem}/") } else { format!("{stem}.rs") };
            writeln!(list, "- `{shown}` {sentence}").unwrap();
            if folder.is_dir() {
                list.push_str(&rows_inside(&folder));
            }
        }
        list.push('\n');
    }
    generated("docs/ARCHITECTURE.md", "files", &list);
}

/// A row for each file in a folder, with its path from there. The header of a `mod.rs` of the folder itself stands in the
/// row of the folder.
fn rows_inside(folder: &Path) -> String {
    let mut found = Vec::new();
    files(folder, ".rs", &mut found);
    found.sort();
    let mut rows = String::new();
    for path in found.iter().filter(|path| **path != folder.join("mod.rs")) {
        let name = path.strip_prefix(folder).unwrap().display().to_string();
        match first_sentence(path) {
            Some(sentence) => writeln!(rows, "  - `{name}` {sentence}").unwrap(),
            None => writeln!(rows, "  - `{name}`").unwrap(),
        }
    }
    rows
}

#[test]
fn the_list_of_decisions_is_that_of_the_folder() {
    let mut paths = Vec::new();
    files(&root().join("docs/decisions"), ".md", &mut paths);
    paths.sort();
    let mut list = String::new();
    for (number, path) in (1..).zip(&paths) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.starts_with(&format!("{number:04}-")), "{name} is not number {number}");
        let text = std::fs::read_to_string(path).unwrap();
        let title = text.lines().next().unwrap().trim_start_matches(['#', ' ']);
        let title = title.split_once([':', '.']).map_or(title, |(_, title)| title).trim();
        let mut title = title.to_owned();
        title[..1].make_ascii_uppercase();
        writeln!(list, "- [{:04}](decisions/{name}): {title}", number).unwrap();
    }
    generated("docs/ARCHITECTURE.md", "decisions", &list);
}

/// The folders and files of the home that `Home` names, with the first sentence about each.
#[test]
fn the_map_of_the_home_is_that_of_the_type() {
    let text = std::fs::read_to_string(root().join("crates/host/src/home.rs")).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut rows = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) =
            line.strip_prefix("self.").and_then(|line| line.split_once(".join(\"")).map(|(_, name)| name)
        else {
            continue;
        };
        let name = name.split('"').next().unwrap();
        let docs: Vec<&str> =
            lines[..at - 1].iter().rev().map_while(|line| line.strip_prefix("/// ")).collect();
        let about: Vec<&str> = docs.into_iter().rev().collect();
        assert!(!about.is_empty(), "{name} has no comment in home.rs");
        let about = about.join(" ");
        rows.insert(name.to_owned(), about.trim_end_matches('.').to_owned());
    }
    assert!(rows.len() > 12, "{rows:?}");
    let rows: Vec<String> = rows.iter().map(|(name, about)| format!("| `{name}` | {about} |")).collect();
    generated(
        "CONTRIBUTING.md",
        "home",
        &format!("| in `$LATHE_HOME` | is |\n|---|---|\n{}\n", rows.join("\n")),
    );
}

/// A home after a run and a trust decision holds nothing that the map does not name.
#[test]
fn the_map_of_the_home_names_all_that_a_run_leaves() {
    let model = FakeModel::serving(Script::new().answer(done("Nothing to do.")));
    let repo = TempRepo::new(&[("AGENTS.md", "Be brief.\n")]);
    let lathe = lathe().in_dir(repo.path());
    lathe.clone().args(["trust", "add", "--yes"]).run().expect_code(0);
    lathe.clone().args(["run", "do it", "--mode", "full-auto"]).with_model(&model).run().expect_code(0);
    let text = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let unnamed: Vec<String> = std::fs::read_dir(lathe.home())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| !text.contains(&format!("`{name}`")))
        .collect();
    assert_eq!(unnamed, Vec::<String>::new());
}

/// Files that documents name in code marks, such as `agent/src/actor.rs` or `crates/cli/tests/cli/house.rs`.
#[test]
fn every_file_that_a_document_names_exists() {
    let mut documents = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    files(&root().join("docs"), ".md", &mut documents);
    let mut missing = Vec::new();
    let mut seen = 0;
    for document in documents {
        let text = std::fs::read_to_string(&document).unwrap();
        for name in text.split('`').skip(1).step_by(2) {
            let is_path = name.contains("/src/") || name.contains("/tests/") || name.starts_with("scripts/");
            let name = name.split([' ', ':']).next().unwrap();
            if !is_path
                || name.contains(['*', '<', '{', 'X'])
                || name.ends_with("NAME/")
                || name.contains(".set-aside")
            {
                continue;
            }
            seen += 1;
            let places = [root().join(name), root().join("crates").join(name)];
            if !places.iter().any(|place| place.exists()) {
                missing.push(format!("{}: {name}", document.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(seen > 30, "only {seen} names were found");
    assert_eq!(missing, Vec::<String>::new());
}
