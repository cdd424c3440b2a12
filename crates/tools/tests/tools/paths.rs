//! Paths through every file tool of every toolset: the guard is one, and no tool has a way around it. The whole table is
//! with the workspace crate; these are the rows a tool could get wrong by itself.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lathe_policy::Gate;
use lathe_protocol::{Actor, Mode, ToolErrorKind, Toolset, Verdict};
use lathe_testkit::sample;
use serde_json::{Value, json};

use crate::bench::{Bench, fifo};

/// The name of what lies outside, and its content.
const CANARY: &str = "CANARY";
const SONG: &str = "the song of the bird";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    /// A file inside, which can be read and changed.
    File,
    /// A file inside that can be read and is never changed.
    Protected,
    /// Nothing there, and never made.
    ProtectedNew,
    /// Nothing there; it can be made.
    New,
    Outside,
    /// A FIFO, socket or device, or no path at all.
    Refused,
}

/// `{W}` is the workspace, `{B}` the folder around it.
const ROWS: &[(&str, &str, Is)] = &[
    ("plain", "{W}/a.txt", Is::File),
    ("doubled slashes", "{W}//d//b.txt", Is::File),
    ("dots", "{W}/d/../a.txt", Is::File),
    ("out and in", "{W}/../work/a.txt", Is::File),
    ("newline", "{W}/new\nline", Is::File),
    ("tilde", "{W}/~/t.txt", Is::File),
    ("dash", "{W}/-rf", Is::File),
    ("link", "{W}/l_file", Is::File),
    ("absolute link", "{W}/l_abs", Is::File),
    ("link, first", "{W}/l_dir/b.txt", Is::File),
    ("link that comes back", "{W}/l_leave", Is::File),
    ("link outside that leads in", "{B}/out/into/a.txt", Is::File),
    ("hard link", "{W}/hard", Is::File),
    ("ignore file", "{W}/.gitignore", Is::File),
    ("nothing", "{W}/none", Is::New),
    ("nothing in new folders", "{W}/n/o/ne", Is::New),
    ("dangling", "{W}/l_dangle", Is::New),
    ("look-alike of git", "{W}/.github/x.yml", Is::New),
    ("up", "{W}/../out/CANARY", Is::Outside),
    ("far up", "{W}/../../../../../../../../etc/passwd", Is::Outside),
    ("absolute", "{B}/out/CANARY", Is::Outside),
    ("folder", "{B}/out", Is::Outside),
    ("folder with a slash", "{B}/out/", Is::Outside),
    ("the folder around", "{W}/..", Is::Outside),
    ("sibling", "{B}/work-evil/CANARY", Is::Outside),
    ("something new outside", "{B}/out/new", Is::Outside),
    ("link out", "{W}/l_out", Is::Outside),
    ("absolute link out", "{W}/l_out_abs", Is::Outside),
    ("link out, first", "{W}/l_outdir/CANARY", Is::Outside),
    ("link out, to something new", "{W}/l_outdir/new", Is::Outside),
    ("link out to a folder", "{W}/l_outdir", Is::Outside),
    ("link out, behind a link", "{W}/l_dir/l_out/CANARY", Is::Outside),
    ("dangling out", "{W}/l_dangle_out", Is::Outside),
    ("/proc/self/root", "/proc/self/root{B}/out/CANARY", Is::Outside),
    ("/proc/self/root and in", "/proc/self/root{W}/a.txt", Is::Outside),
    ("link to /proc/self/root", "{W}/l_proc{B}/out/CANARY", Is::Outside),
    ("/proc/self/environ", "/proc/self/environ", Is::Outside),
    ("/dev/stdin", "/dev/stdin", Is::Outside),
    ("/dev/zero", "/dev/zero", Is::Outside),
    ("link to /dev/zero", "{W}/l_zero", Is::Outside),
    ("loop", "{W}/loop", Is::Refused),
    ("NUL", "{W}/a.txt\0", Is::Refused),
    ("too long", "{W}/{LONG}", Is::Refused),
    ("FIFO", "{W}/fifo", Is::Refused),
    ("link to a FIFO", "{W}/l_fifo", Is::Refused),
    ("socket", "{W}/sock", Is::Refused),
    ("git", "{W}/.git/config", Is::Protected),
    ("git by dots", "{W}/d/../.git/config", Is::Protected),
    ("git by a link", "{W}/l_git/config", Is::Protected),
    ("git by a link to the file", "{W}/l_gitcfg", Is::Protected),
    ("git in capitals", "{W}/.GIT/config", Is::ProtectedNew),
    ("git with a character that is not drawn", "{W}/.g\u{200c}it/config", Is::ProtectedNew),
    ("git by its short name", "{W}/git~1/config", Is::ProtectedNew),
    ("a new hook", "{W}/l_git/hooks/post-merge", Is::ProtectedNew),
    ("a shell's start file", "{W}/.bashrc", Is::ProtectedNew),
    ("servers of tools", "{W}/.mcp.json", Is::ProtectedNew),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// Shows one file.
    Read,
    /// Looks in a folder or many files.
    Look,
    /// Changes text in a file that is there.
    Edit,
    /// Writes a whole file.
    Write,
}

/// Arguments that hold a path.
type Arguments = fn(&str) -> Value;

/// The calls by which a tool can be led to a path; none for tools that take no path.
fn calls(toolset: Toolset, tool: &str) -> Vec<(Does, Arguments)> {
    match (toolset, tool) {
        (Toolset::Lathe, "view") => vec![(Does::Read, |path| json!({ "path": path }))],
        (Toolset::Lathe, "edit") => vec![
            (Does::Edit, |path| json!({ "path": path, "old_str": "inside", "new_str": "edited" })),
            (Does::Edit, |path| json!({ "path": path, "insert_line": 0, "new_str": "edited\n" })),
        ],
        (Toolset::Lathe, "write") => {
            vec![(Does::Write, |path| json!({ "path": path, "content": "written\n" }))]
        }
        (Toolset::Lathe, "search") => vec![
            (Does::Look, |path| json!({ "pattern": ".", "path": path, "all": true })),
            (Does::Look, |path| json!({ "pattern": ".", "glob": path, "all": true })),
        ],
        (Toolset::Lathe, "glob") => vec![
            (Does::Look, |path| json!({ "pattern": "**", "path": path, "all": true })),
            (Does::Look, |path| json!({ "pattern": path, "all": true })),
            (Does::Look, |path| json!({ "pattern": format!("{path}/*"), "all": true })),
        ],
        // A path with a line break is another path to a patch, so only the forbidden effects are checked.
        (Toolset::Lathe, "apply_patch") => vec![
            (
                Does::Look,
                |path| json!({ "patch": format!("*** Begin Patch\n*** Update File: {path}\n-inside\n+edited\n*** End Patch\n") }),
            ),
            (
                Does::Look,
                |path| json!({ "patch": format!("*** Begin Patch\n*** Add File: {path}\n+written\n*** End Patch\n") }),
            ),
            (
                Does::Look,
                |path| json!({ "patch": format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n") }),
            ),
        ],
        (Toolset::Lathe, "code") => vec![
            (Does::Look, |path| json!({ "command": "outline", "target": path })),
            (Does::Look, |path| json!({ "command": "imports", "target": path })),
        ],
        (Toolset::Trae, "ckg") => vec![(
            Does::Look,
            |path| json!({ "command": "search_function", "path": path, "identifier": "inside" }),
        )],
        // The files hold no JSON.
        (Toolset::Trae, "json_edit_tool") => vec![
            (Does::Look, |path| json!({ "operation": "view", "file_path": path })),
            (
                Does::Look,
                |path| json!({ "operation": "set", "file_path": path, "json_path": "$", "value": 1 }),
            ),
        ],
        (Toolset::Trae, "str_replace_based_edit_tool") => vec![
            (Does::Read, |path| json!({ "command": "view", "path": path })),
            (
                Does::Edit,
                |path| json!({ "command": "str_replace", "path": path, "old_str": "inside", "new_str": "edited" }),
            ),
            (
                Does::Edit,
                |path| json!({ "command": "insert", "path": path, "insert_line": 0, "new_str": "edited" }),
            ),
            (Does::Write, |path| json!({ "command": "create", "path": path, "file_text": "written\n" })),
        ],
        (Toolset::Gemini, "read_file") => vec![(Does::Read, |path| json!({ "file_path": path }))],
        (Toolset::Gemini, "replace") => vec![
            (Does::Edit, |path| json!({ "file_path": path, "old_string": "inside", "new_string": "edited" })),
            (Does::Write, |path| json!({ "file_path": path, "old_string": "", "new_string": "written\n" })),
        ],
        (Toolset::Gemini, "write_file") => {
            vec![(Does::Write, |path| json!({ "file_path": path, "content": "written\n" }))]
        }
        (Toolset::Gemini, "list_directory") => vec![(Does::Look, |path| json!({ "dir_path": path }))],
        (Toolset::Gemini, "search_file_content") => vec![
            (Does::Look, |path| json!({ "pattern": ".", "dir_path": path })),
            (Does::Look, |path| json!({ "pattern": ".", "include": path })),
        ],
        (Toolset::Gemini, "glob") => vec![
            (Does::Look, |path| json!({ "pattern": "**", "dir_path": path })),
            (Does::Look, |path| json!({ "pattern": path })),
            (Does::Look, |path| json!({ "pattern": format!("{path}/*") })),
        ],
        (Toolset::Gemini, "read_many_files") => vec![
            (Does::Look, |path| json!({ "include": [path] })),
            (Does::Look, |path| json!({ "include": [format!("{path}/**")], "useDefaultExcludes": false })),
        ],
        _ => {
            let elsewhere = [
                "bash",
                "run_shell_command",
                "think",
                "sequentialthinking",
                "todo",
                "write_todos",
                "remember",
                "save_memory",
                "ask_user",
                "task_done",
            ];
            assert!(elsewhere.contains(&tool), "say here how {tool} of {toolset:?} takes a path");
            vec![]
        }
    }
}

struct World {
    bench: Bench,
    base: PathBuf,
    outside: Vec<(PathBuf, u64, Vec<u8>)>,
    _listener: std::os::unix::net::UnixListener,
}

impl World {
    fn new(toolset: Toolset) -> Self {
        let bench = Bench::new(toolset, &[]);
        let root = bench.root.clone();
        let base = root.parent().unwrap().to_owned();
        for name in ["a.txt", "d/b.txt", "new\nline", "~/t.txt", "-rf", ".gitignore", ".git/config"] {
            bench.put(name, "inside\n");
        }
        for folder in ["out", "work-evil"] {
            fs::create_dir(base.join(folder)).unwrap();
            fs::write(base.join(folder).join(CANARY), SONG).unwrap();
        }
        fs::write(base.join("out/linked"), "inside\n").unwrap();
        fs::hard_link(base.join("out/linked"), root.join("hard")).unwrap();
        for (link, to) in [
            ("l_file", "a.txt".into()),
            ("l_abs", root.join("a.txt")),
            ("l_dir", "d".into()),
            ("l_leave", "../work/a.txt".into()),
            ("../out/into", root.clone()),
            ("l_dangle", "nothing".into()),
            ("l_out", "../out/CANARY".into()),
            ("l_out_abs", base.join("out/CANARY")),
            ("l_outdir", "../out".into()),
            ("d/l_out", "../../out".into()),
            ("l_dangle_out", "../out/nothing".into()),
            ("l_proc", "/proc/self/root".into()),
            ("l_zero", "/dev/zero".into()),
            ("loop", "loop".into()),
            ("l_fifo", "fifo".into()),
            ("l_git", ".git".into()),
            ("l_gitcfg", ".git/config".into()),
        ] {
            symlink(to, root.join(link)).unwrap();
        }
        fifo(&root.join("fifo"));
        let listener = std::os::unix::net::UnixListener::bind(root.join("sock")).unwrap();
        let outside = outside(&base);
        Self { bench, base, outside, _listener: listener }
    }

    fn path(&self, text: &str) -> String {
        text.replace("{W}", &self.bench.root.display().to_string())
            .replace("{B}", &self.base.display().to_string())
            .replace("{LONG}", &"x".repeat(300))
    }
}

/// Everything around the workspace: path, inode and content.
fn outside(base: &Path) -> Vec<(PathBuf, u64, Vec<u8>)> {
    let mut seen = Vec::new();
    for folder in ["", "out", "work-evil"] {
        for entry in fs::read_dir(base.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            // The store of the bench, which keeps what was changed.
            if path.file_name().is_some_and(|name| name == "blobs") {
                continue;
            }
            let found = fs::symlink_metadata(&path).unwrap();
            let content = if found.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            seen.push((path, found.ino(), content));
        }
    }
    seen.sort();
    seen
}

/// The result of a call: its text and its error. A call that the gate stops has not happened.
async fn call(bench: &mut Bench, tool: &str, arguments: Value) -> (String, Option<ToolErrorKind>) {
    if let Ok(prepared) = bench.prepare(tool, arguments.clone()) {
        let gate = Gate {
            home: "/nonexistent".into(),
            root: "/".into(),
            user_home: None,
            here: None,
            outputs: None,
            headless: true,
            disk: lathe_policy::OnDisk::default(),
            switched: lathe_policy::ShellSwitches::default(),
            walls: lathe_policy::Walls::None,
        };
        let decision = gate.decide(Actor::Model, Mode::FullAuto, &prepared.effects);
        if decision.verdict != Verdict::Allow {
            return (decision.reason, Some(ToolErrorKind::PermissionDenied));
        }
    }
    let finished = bench.call(tool, arguments).await;
    let refused = finished.error.is_some();
    assert!(!refused || finished.changes.is_empty(), "{tool}: {finished:?}");
    (format!("{finished:?}"), finished.error.map(|error| error.kind))
}

async fn row(toolset: Toolset, tool: &str, row: &(&str, &str, Is), wrong: &mut Vec<String>) {
    let &(name, spelled, is) = row;
    for (n, (does, arguments)) in calls(toolset, tool).into_iter().enumerate() {
        let mut world = World::new(toolset);
        let path = world.path(spelled);
        let mut say = |what: String| wrong.push(format!("{toolset:?} {tool} {n}, {name}: {what}"));
        let reader = match toolset {
            Toolset::Lathe => ("view", json!({ "path": path })),
            Toolset::Trae => ("str_replace_based_edit_tool", json!({ "command": "view", "path": path })),
            Toolset::Gemini => ("read_file", json!({ "file_path": path })),
            Toolset::Bash => ("Bash", json!({ "command": format!("view '{path}'") })),
        };
        // Some tools change only what the model has seen.
        if matches!(does, Does::Edit | Does::Write) && is == Is::File {
            call(&mut world.bench, reader.0, reader.1).await;
        }
        let begun = Instant::now();
        let (text, error) = call(&mut world.bench, tool, arguments(&path)).await;
        if begun.elapsed() > Duration::from_secs(20) {
            say("took too long".to_owned());
        }
        // Where the path holds the name already, an error may repeat it.
        let named = !spelled.contains(CANARY) && text.contains(CANARY);
        if named || text.contains(SONG) || text.contains("root:x:0") {
            say(format!("the canary sang: {text}"));
        }
        if outside(&world.base) != world.outside {
            say("something outside changed".to_owned());
        }
        if world.bench.get(".git/config") != "inside\n"
            || fs::read_dir(world.bench.root.join(".git")).unwrap().count() != 1
        {
            say("git changed".to_owned());
        }
        let well = match (is, does) {
            (_, Does::Look) => true,
            (Is::File, Does::Read | Does::Edit) | (Is::Protected, Does::Read) => error.is_none(),
            (Is::New, Does::Write) => error.is_none(),
            // Creating does not overwrite in every toolset.
            (Is::File, Does::Write) => true,
            (Is::New | Is::ProtectedNew, Does::Read | Does::Edit) => error.is_some(),
            (Is::Protected, Does::Edit | Does::Write) | (Is::ProtectedNew, Does::Write) => error.is_some(),
            (Is::Outside | Is::Refused, Does::Read | Does::Edit | Does::Write) => error.is_some(),
        };
        if !well {
            say(format!("{error:?}: {text}"));
        }
    }
}

async fn toolset(toolset: Toolset) {
    let names: Vec<String> =
        Bench::new(toolset, &[]).toolbox.own_specs().into_iter().map(|spec| spec.name).collect();
    let mut wrong = Vec::new();
    for (first, name) in names.iter().enumerate() {
        // Another third of the rows for each tool.
        for one in sample(ROWS.iter().skip(first % 3), 3) {
            row(toolset, name, one, &mut wrong).await;
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn no_path_leads_a_tool_of_lathe_out() {
    toolset(Toolset::Lathe).await;
}

#[tokio::test]
async fn no_path_leads_a_tool_of_trae_out() {
    toolset(Toolset::Trae).await;
}

#[tokio::test]
async fn no_path_leads_a_tool_of_gemini_out() {
    toolset(Toolset::Gemini).await;
}
