//! Tests that ignore files are respected, for every form of call.

use std::sync::Arc;

use lathe_protocol::Toolset;
use lathe_tools::Toolbox;
use serde_json::{Value, json};

use crate::bench::{Bench, lathe};

/// A tree in which every kind of ignore file leaves something out; each file holds its own name.
fn put_ignored(bench: &mut Bench) {
    for (name, content) in [
        (".gitignore", "git-*\n/gitfolder/\n"),
        (".ignore", "rg-*\n"),
        (".geminiignore", "gem-*\n/gemfolder/\n!own-*\n"),
        (".latheignore", "own-*\n/ownfolder/\n.own\n"),
        ("sub/.gitignore", "!own-*\nsub-git.env\n"),
        ("sub/.geminiignore", "!own-*\n"),
    ] {
        bench.put(name, content);
    }
    for name in
        GIT_IGNORED.iter().chain(&GEMINI_IGNORED).chain(&OWN_IGNORED).chain(&["plain.txt", "sub/plain.env"])
    {
        bench.put(name, format!("NEEDLE in {name}\n"));
    }
}

const GIT_IGNORED: [&str; 6] =
    ["git-1.env", "git-2.txt", "gitfolder/a.env", "gitfolder/deep/b.txt", "sub/sub-git.env", "rg-1.env"];
const GEMINI_IGNORED: [&str; 5] =
    ["gem-1.env", "gem-2.txt", "gemfolder/a.env", "gemfolder/deep/b.txt", "sub/gem-3.env"];
const OWN_IGNORED: [&str; 9] = [
    "own-1.env",
    "own-2.txt",
    "ownfolder/a.env",
    "ownfolder/deep/b.txt",
    "sub/own-3.env",
    "sub/deep/own-4.env",
    ".own",
    "gitfolder/own-5.env",
    "gemfolder/own-6.env",
];

#[tokio::test]
async fn issue_15_ignored_files_are_left_out_whatever_is_asked() {
    // Each call, and which of git's and Gemini's ignore files it lifts. The name is that of the toolset's tool.
    let lifts = |git: bool, gemini: bool| (git, gemini);
    let options =
        |git: bool, gemini: bool| json!({ "respect_git_ignore": git, "respect_gemini_ignore": gemini });
    let mut calls: Vec<(Toolset, &str, Value, (bool, bool))> = Vec::new();
    for glob in
        ["*", "*.env", "**/*", "git-*", "own-*", "**/own-*", "{own,git,gem}-*", "ownfolder/**", ".own", "!x"]
    {
        calls.push((
            Toolset::Lathe,
            "search",
            json!({ "pattern": "NEEDLE", "glob": glob }),
            lifts(false, false),
        ));
        calls.push((
            Toolset::Lathe,
            "search",
            json!({ "pattern": "NEEDLE", "glob": glob, "files_only": true }),
            lifts(false, false),
        ));
        calls.push((
            Toolset::Lathe,
            "search",
            json!({ "pattern": "NEEDLE", "glob": glob, "all": true }),
            lifts(true, true),
        ));
        calls.push((Toolset::Lathe, "glob", json!({ "pattern": glob }), lifts(false, false)));
        calls.push((Toolset::Lathe, "glob", json!({ "pattern": glob, "all": true }), lifts(true, true)));
        calls.push((
            Toolset::Gemini,
            "search_file_content",
            json!({ "pattern": "NEEDLE", "include": glob }),
            lifts(false, false),
        ));
        calls.push((
            Toolset::Gemini,
            "search_file_content",
            json!({ "pattern": "NEEDLE", "include": glob, "no_ignore": true }),
            lifts(true, false),
        ));
        for (git, gemini) in [(true, true), (false, true), (true, false), (false, false)] {
            let lifted = lifts(!git, !gemini);
            calls.push((
                Toolset::Gemini,
                "glob",
                json!({ "pattern": glob, "respect_git_ignore": git, "respect_gemini_ignore": gemini }),
                lifted,
            ));
            calls.push((
                Toolset::Gemini,
                "read_many_files",
                json!({ "include": [glob], "file_filtering_options": options(git, gemini) }),
                lifted,
            ));
        }
    }
    for folder in [".", "sub", "ownfolder", "ownfolder/deep", "gemfolder", "gitfolder"] {
        calls.push((
            Toolset::Lathe,
            "search",
            json!({ "pattern": "NEEDLE", "path": folder }),
            lifts(folder == "gitfolder", false),
        ));
        calls.push((Toolset::Lathe, "view", json!({ "path": folder }), lifts(true, true)));
        calls.push((
            Toolset::Gemini,
            "search_file_content",
            json!({ "pattern": "NEEDLE", "dir_path": folder }),
            lifts(folder == "gitfolder", false),
        ));
        for (git, gemini) in [(true, true), (false, true), (true, false), (false, false)] {
            let lifted = lifts(!git || folder == "gitfolder", !gemini);
            calls.push((
                Toolset::Gemini,
                "list_directory",
                json!({ "dir_path": folder, "file_filtering_options": options(git, gemini) }),
                lifted,
            ));
        }
    }
    for name in OWN_IGNORED {
        calls.push((Toolset::Lathe, "view", json!({ "path": name }), lifts(true, true)));
        calls.push((
            Toolset::Lathe,
            "search",
            json!({ "pattern": "NEEDLE", "path": name }),
            lifts(true, true),
        ));
        calls.push((Toolset::Gemini, "read_file", json!({ "file_path": name }), lifts(false, false)));
        calls.push((
            Toolset::Gemini,
            "read_many_files",
            json!({ "include": [name], "file_filtering_options": options(false, false) }),
            lifts(true, true),
        ));
        calls.push((
            Toolset::Trae,
            "str_replace_based_edit_tool",
            json!({ "command": "view", "path": format!("ROOT/{name}") }),
            lifts(true, true),
        ));
    }
    for (toolset, tool, arguments, (git, gemini)) in calls {
        let mut bench = Bench::with(|services| Toolbox::new(toolset, Arc::new(services)));
        put_ignored(&mut bench);
        let text = arguments.to_string().replace("ROOT", &bench.root.display().to_string());
        let arguments: Value = serde_json::from_str(&text).unwrap();
        let finished = bench.call(tool, arguments.clone()).await;
        let shown = bench.short(&finished.text);
        // A name that the call itself says is not told by its answer.
        let said = arguments.to_string();
        let hidden = OWN_IGNORED
            .iter()
            .chain(GIT_IGNORED.iter().filter(|_| !git))
            .chain(GEMINI_IGNORED.iter().filter(|_| !gemini));
        for name in hidden {
            assert!(!shown.contains(&format!("NEEDLE in {name}")), "{tool} {arguments}: {name}\n{shown}");
            let base = name.rsplit('/').next().unwrap();
            let told =
                shown.contains(base) && !said.contains(base) && base.contains(['1', '2', '3', '4', '5', '6']);
            assert!(!told, "{tool} {arguments}: {name}\n{shown}");
        }
    }
    // A glob still finds what is not ignored, hidden names that it names among it.
    let mut bench = lathe();
    put_ignored(&mut bench);
    bench.put(".github/ci.yml", "NEEDLE\n");
    let found = bench.told("search", json!({ "pattern": "NEEDLE", "glob": "*.env" })).await;
    assert!(found.contains("sub/plain.env"), "{found}");
    let found = bench.told("search", json!({ "pattern": "NEEDLE", "glob": ".github/**" })).await;
    assert!(found.contains(".github/ci.yml"), "{found}");
}

#[tokio::test]
async fn issue_15_a_hard_link_to_an_ignored_file_is_left_out_too() {
    for (toolset, tool, arguments) in [
        (Toolset::Lathe, "view", json!({ "path": "hard.txt" })),
        (Toolset::Lathe, "view", json!({ "path": "plain/hard.txt" })),
        (Toolset::Lathe, "search", json!({ "pattern": "NEEDLE" })),
        (Toolset::Lathe, "search", json!({ "pattern": "NEEDLE", "all": true })),
        (Toolset::Lathe, "search", json!({ "pattern": "NEEDLE", "path": "plain/hard.txt" })),
        (Toolset::Lathe, "search", json!({ "pattern": "NEEDLE", "glob": "hard*" })),
        (Toolset::Gemini, "read_file", json!({ "file_path": "hard.txt" })),
        (Toolset::Gemini, "read_many_files", json!({ "include": ["**/hard*"] })),
        (Toolset::Gemini, "search_file_content", json!({ "pattern": "NEEDLE", "no_ignore": true })),
        (Toolset::Trae, "str_replace_based_edit_tool", json!({ "command": "view", "path": "ROOT/hard.txt" })),
    ] {
        let mut bench = Bench::with(|services| Toolbox::new(toolset, Arc::new(services)));
        put_ignored(&mut bench);
        bench.put("plain/two.txt", "plain and simple\n");
        std::fs::hard_link(bench.root.join("own-2.txt"), bench.root.join("hard.txt")).unwrap();
        std::fs::hard_link(bench.root.join("ownfolder/deep/b.txt"), bench.root.join("plain/hard.txt"))
            .unwrap();
        std::fs::hard_link(bench.root.join("plain/two.txt"), bench.root.join("plain/three.txt")).unwrap();
        let text = arguments.to_string().replace("ROOT", &bench.root.display().to_string());
        let finished = bench.call(tool, serde_json::from_str(&text).unwrap()).await;
        for name in ["own-2.txt", "ownfolder/deep/b.txt"] {
            assert!(
                !finished.text.contains(&format!("NEEDLE in {name}")),
                "{tool} {arguments}: {}",
                finished.text
            );
        }
        if toolset == Toolset::Lathe {
            let other = bench.told("view", json!({ "path": "plain/three.txt" })).await;
            assert!(other.contains("plain and simple"), "{other}");
        }
    }
}
