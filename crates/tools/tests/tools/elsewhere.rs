//! Tests every tool of every toolset in a workspace that is not a folder of this machine: a tool that cannot work
//! there says so, the rest works, and no change is claimed to be undoable that is not.
//!
//! The host names the workspace by a path that is not on this machine. Its files are reached through a bridge, and
//! its processes know it by another path, as those of a container do.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_protocol::{BoxFuture, CallFinished, Reviewed, ToolErrorKind, Toolset};
use lathe_tools::{DocumentReply, DocumentRequest, Documents, ReviewRequest, Reviewer, Toolbox};
use lathe_workspace::{
    Applied, FileInfo, FileOp, Files, FolderEntry, LocalFiles, LocalProcesses, PathMap, WalkEntry, Workspace,
    WorkspaceError,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::bench::Bench;

/// The workspace as the host names it.
const HOST: &str = "/elsewhere/work";

/// Files of a folder under the paths that the host has for them.
struct Bridge {
    files: LocalFiles,
    inside: PathBuf,
}

impl Bridge {
    fn inner(&self, path: &Path) -> PathBuf {
        let path = Path::new(HOST).join(path);
        path.strip_prefix(HOST).map_or(path.clone(), |below| self.inside.join(below))
    }

    fn back(&self, path: PathBuf) -> PathBuf {
        path.strip_prefix(&self.inside).map_or(path.clone(), |below| Path::new(HOST).join(below))
    }

    fn error(&self, error: WorkspaceError) -> WorkspaceError {
        match error {
            WorkspaceError::NotFound(path) => WorkspaceError::NotFound(self.back(path)),
            other => other,
        }
    }
}

impl Files for Bridge {
    fn stat<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<FileInfo, WorkspaceError>> {
        Box::pin(async move { self.files.stat(&self.inner(path)).await.map_err(|error| self.error(error)) })
    }

    fn read<'a>(
        &'a self,
        path: &'a Path,
        range: Option<Range<u64>>,
    ) -> BoxFuture<'a, Result<Vec<u8>, WorkspaceError>> {
        Box::pin(
            async move { self.files.read(&self.inner(path), range).await.map_err(|error| self.error(error)) },
        )
    }

    fn walk<'a>(
        &'a self,
        path: &'a Path,
        depth: usize,
    ) -> BoxFuture<'a, Result<Vec<WalkEntry>, WorkspaceError>> {
        Box::pin(
            async move { self.files.walk(&self.inner(path), depth).await.map_err(|error| self.error(error)) },
        )
    }

    fn list<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Vec<FolderEntry>, WorkspaceError>> {
        Box::pin(async move { self.files.list(&self.inner(path)).await.map_err(|error| self.error(error)) })
    }

    fn apply_with_umask<'a>(
        &'a self,
        mut ops: Vec<FileOp>,
        umask: Option<u32>,
    ) -> BoxFuture<'a, Result<Vec<Applied>, WorkspaceError>> {
        Box::pin(async move {
            for op in &mut ops {
                let (FileOp::Write { path, .. } | FileOp::Remove { path, .. }) = op;
                *path = self.inner(path);
            }
            let applied = self.files.apply_with_umask(ops, umask).await.map_err(|error| self.error(error))?;
            Ok(applied.into_iter().map(|one| Applied { path: self.back(one.path.clone()), ..one }).collect())
        })
    }

    fn real<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<PathBuf, WorkspaceError>> {
        Box::pin(async move {
            let real = self.files.real(&self.inner(path)).await;
            real.map(|real| self.back(real)).map_err(|error| self.error(error))
        })
    }

    fn target<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<PathBuf, WorkspaceError>> {
        Box::pin(async move {
            let target = self.files.target(&self.inner(path)).await;
            target.map(|target| self.back(target)).map_err(|error| self.error(error))
        })
    }
}

struct Judge;

impl Reviewer for Judge {
    fn rules(&self) -> &str {
        "no tabs"
    }

    fn review<'a>(&'a self, _: ReviewRequest, _: &'a CancellationToken) -> BoxFuture<'a, Reviewed> {
        let failure = Some("the judge sleeps".to_owned());
        Box::pin(async { Reviewed { verdict: None, failure, tokens: 0, asked: 1, model: None, usage: None } })
    }
}

struct Shelf;

impl Documents for Shelf {
    fn host(&self) -> Option<&str> {
        None
    }

    fn perform<'a>(
        &'a self,
        _: DocumentRequest,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<DocumentReply, String>> {
        Box::pin(async { Ok(DocumentReply { title: "A page".to_owned(), ..DocumentReply::default() }) })
    }
}

fn bench(toolset: Toolset) -> Bench {
    let bench = Bench::in_workspace(
        |root| {
            let bridge = Bridge { files: LocalFiles::new(root.to_owned()), inside: root.to_owned() };
            let paths = PathMap::of([(HOST.into(), root.to_owned())]);
            Workspace::elsewhere(HOST.as_ref(), Arc::new(bridge), Arc::new(LocalProcesses), paths)
        },
        |mut services| {
            services.reviewer = Some(Arc::new(Judge));
            services.documents = Some(Arc::new(Shelf));
            Toolbox::new(toolset, Arc::new(services))
        },
    );
    fill(&bench);
    bench
}

fn fill(bench: &Bench) {
    bench.put("a.txt", "one\ntwo\n");
    bench.put("src/lib.rs", "pub fn found() {}\n");
    bench.put("d.json", "{\"a\": 1}\n");
    bench.put(".gitignore", "left.txt\n");
    bench.put("left.txt", "left\n");
}

/// The result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comes {
    /// This is in the result.
    Of(&'static str),
    /// A file has this by then, and the result says that it cannot be taken back.
    Changed(&'static str, &'static str),
    /// It says that it needs a folder of this machine, by this name of the tool.
    Needs(&'static str),
    /// It fails for a reason that has nothing to do with the workspace.
    Fails(&'static str),
}

use Comes::{Changed, Fails, Needs, Of};

const NOT_READ: &str = "ignore files are only read in a folder of this machine";
const UNKNOWN: &str = "what lines change is only known in a folder of this machine";

fn table(toolset: Toolset) -> Vec<(&'static str, Value, Comes)> {
    let patch = "*** Begin Patch\n*** Update File: a.txt\n-one\n+eins\n*** End Patch\n";
    let review = json!({ "file_path": "a.txt", "edited_snippet": "x", "quality_review_rules": "no tabs" });
    let page = json!({ "command": "detail", "document_id": "7" });
    let host = |name: &str| format!("{HOST}/{name}");
    match toolset {
        Toolset::Lathe => vec![
            ("bash", json!({ "command": "cat a.txt" }), Of("two")),
            ("bash", json!({ "command": "cat a.txt" }), Of(UNKNOWN)),
            ("bash", json!({ "command": "view a.txt" }), Of("two")),
            ("bash", json!({ "command": "(cd src && view lib.rs | cat)" }), Of("pub fn found")),
            ("bash", json!({ "command": "echo new > new.txt" }), Changed("new.txt", "new\n")),
            ("view", json!({ "path": "a.txt" }), Of("two")),
            ("view", json!({ "path": host("a.txt") }), Of("two")),
            ("view", json!({ "path": "." }), Of("lib.rs")),
            ("view", json!({ "path": "b.txt" }), Fails("Did you mean a.txt?")),
            ("search", json!({ "pattern": "two" }), Needs("search")),
            ("glob", json!({ "pattern": "*.txt" }), Needs("glob")),
            ("code", json!({ "command": "outline", "target": "src/lib.rs" }), Needs("code")),
            (
                "edit",
                json!({ "path": "a.txt", "old_str": "one", "new_str": "1" }),
                Changed("a.txt", "1\ntwo\n"),
            ),
            ("write", json!({ "path": "n/w.txt", "content": "w\n" }), Changed("n/w.txt", "w\n")),
            ("apply_patch", json!({ "patch": patch.replace("one", "1") }), Changed("a.txt", "eins\ntwo\n")),
            ("think", json!({ "thought": "hm" }), Of("")),
            ("todo", json!({ "todos": [{ "description": "x", "status": "pending" }] }), Of("x")),
            ("remember", json!({ "fact": "it rains" }), Of("Remembered in")),
            ("remember", json!({ "fact": "it rains", "scope": "project" }), Changed("AGENTS.md", "it rains")),
            ("ask_user", json!({ "question": "May I?" }), Fails("Nobody is there")),
            ("quality_review", review, Fails("the judge sleeps")),
            ("online_doc_tool", page, Of("A page")),
            ("task_done", json!({ "summary": "did it" }), Of("")),
        ],
        Toolset::Trae => vec![
            ("bash", json!({ "command": "cat a.txt" }), Of("two")),
            ("bash", json!({ "command": "echo new > new.txt" }), Changed("new.txt", "new\n")),
            ("str_replace_based_edit_tool", json!({ "command": "view", "path": host("a.txt") }), Of("two")),
            ("str_replace_based_edit_tool", json!({ "command": "view", "path": HOST }), Of("lib.rs")),
            (
                "str_replace_based_edit_tool",
                json!({ "command": "str_replace", "path": host("a.txt"), "old_str": "one", "new_str": "1" }),
                Changed("a.txt", "1\ntwo\n"),
            ),
            (
                "str_replace_based_edit_tool",
                json!({ "command": "create", "path": host("w.txt"), "file_text": "w\n" }),
                Changed("w.txt", "w\n"),
            ),
            (
                "json_edit_tool",
                json!({ "operation": "view", "file_path": host("d.json"), "json_path": "$.a" }),
                Of("1"),
            ),
            (
                "json_edit_tool",
                json!({ "operation": "set", "file_path": host("d.json"), "json_path": "$.a", "value": 2, "pretty_print": false }),
                Changed("d.json", "2"),
            ),
            (
                "sequentialthinking",
                json!({ "thought": "hm", "next_thought_needed": false, "thought_number": 1, "total_thoughts": 1 }),
                Of(""),
            ),
            (
                "ckg",
                json!({ "command": "search_function", "path": HOST, "identifier": "found" }),
                Needs("ckg"),
            ),
            ("quality_review", review, Fails("the judge sleeps")),
            ("online_doc_tool", page, Of("A page")),
            ("task_done", json!({}), Of("")),
        ],
        Toolset::Gemini => vec![
            ("list_directory", json!({ "dir_path": HOST }), Of("a.txt")),
            ("list_directory", json!({ "dir_path": HOST }), Of(NOT_READ)),
            ("read_file", json!({ "file_path": host("a.txt") }), Of("two")),
            ("search_file_content", json!({ "pattern": "two" }), Needs("search_file_content")),
            ("glob", json!({ "pattern": "*.txt" }), Needs("glob")),
            (
                "replace",
                json!({ "file_path": host("a.txt"), "old_string": "one", "new_string": "1" }),
                Changed("a.txt", "1\ntwo\n"),
            ),
            ("write_file", json!({ "file_path": host("w.txt"), "content": "w\n" }), Changed("w.txt", "w\n")),
            ("read_many_files", json!({ "include": ["*.txt"] }), Needs("read_many_files")),
            ("run_shell_command", json!({ "command": "cat a.txt" }), Of("two")),
            ("run_shell_command", json!({ "command": "cat lib.rs", "dir_path": "src" }), Of("pub fn found")),
            ("run_shell_command", json!({ "command": "echo new > new.txt" }), Changed("new.txt", "new\n")),
            ("save_memory", json!({ "fact": "it rains" }), Of("it rains")),
            ("write_todos", json!({ "todos": [{ "description": "x", "status": "pending" }] }), Of("x")),
            (
                "ask_user",
                json!({ "questions": [{ "question": "May I?", "header": "ask", "type": "yesno" }] }),
                Fails("not supported in non-interactive mode"),
            ),
        ],
        Toolset::Bash => {
            COMMANDS.iter().map(|(line, comes)| ("Bash", json!({ "command": line }), *comes)).collect()
        }
    }
}

/// The tools as commands, one line each, alone and in a pipe.
const COMMANDS: [(&str, Comes); 24] = [
    ("cat a.txt", Of("two")),
    ("view a.txt", Of("two")),
    ("view a.txt | cat", Of("two")),
    ("cd src; view lib.rs | cat; cd ..", Of("pub fn found")),
    ("list .", Of("a.txt")),
    ("list . | cat", Of("a.txt")),
    ("search two", Of("`search` needs a folder of this machine")),
    ("search two | cat; echo ${PIPESTATUS[0]}", Of("`search` needs a folder of this machine")),
    ("glob '*.txt'", Of("`glob` needs a folder of this machine")),
    ("code outline src/lib.rs", Of("`code` needs a folder of this machine")),
    ("ckg search_function found", Of("`ckg` needs a folder of this machine")),
    ("edit a.txt one 1", Changed("a.txt", "1\ntwo\n")),
    ("true; edit a.txt two 2", Changed("a.txt", "1\n2\n")),
    ("write w.txt new", Changed("w.txt", "new")),
    ("echo piped | write p.txt", Changed("p.txt", "piped\n")),
    ("json_edit view d.json '$.a'", Of("1")),
    ("json_edit set d.json '$.a' 2", Changed("d.json", "2")),
    (
        "apply_patch <<'E'\n*** Begin Patch\n*** Update File: a.txt\n-1\n+one\n*** End Patch\nE",
        Changed("a.txt", "one\n2\n"),
    ),
    ("think hm", Of("")),
    ("todo '[{\"description\": \"x\", \"status\": \"pending\"}]'", Of("x")),
    ("memory 'it rains'", Of("Remembered in")),
    ("ask 'May I?'", Of("Nobody is there")),
    ("commands | grep view", Of("view")),
    ("task_done --summary 'did it'", Of("")),
];

/// Tells whether that was the result of a call.
fn came(comes: Comes, bench: &Bench, finished: &CallFinished) -> bool {
    let CallFinished { text, error, not_undoable, .. } = finished;
    let as_said = match comes {
        Of(words) => text.contains(words) && error.is_none(),
        Changed(path, content) => {
            let is_told = text.contains("[Cannot be taken back: ") && !not_undoable.is_empty();
            is_told && error.is_none() && bench.exists(path) && bench.get(path).contains(content)
        }
        Needs(tool) => {
            let words = format!("`{tool}` needs a folder of this machine, and this workspace is none.");
            let kind = error.as_ref().map(|error| error.kind);
            text.contains(&words) && kind == Some(ToolErrorKind::ExecutionFailed)
        }
        Fails(words) => text.contains(words) && error.is_some(),
    };
    as_said && !text.contains("No such file")
}

#[tokio::test]
async fn every_tool_works_without_a_folder_of_this_machine_or_says_that_it_cannot() {
    let mut odd = Vec::new();
    for toolset in Toolset::ALL {
        let mut bench = bench(toolset);
        let rows = table(toolset);
        for spec in Toolbox::specs(toolset).into_iter().chain(Toolbox::special_specs(toolset)) {
            assert!(rows.iter().any(|(name, ..)| *name == spec.name), "say here what comes of {}", spec.name);
        }
        for (name, arguments, comes) in rows {
            let finished = bench.call(name, arguments.clone()).await;
            if !came(comes, &bench, &finished) {
                let CallFinished { text, error, not_undoable, .. } = finished;
                odd.push(format!(
                    "{toolset:?} {name} {arguments}: not {comes:?} but {text}\n{error:?} {not_undoable:?}"
                ));
            }
        }
    }
    assert!(odd.is_empty(), "{}", odd.join("\n\n"));
}

/// The calls of the table are good ones: where there is a folder of this machine, what needs one works.
#[tokio::test]
async fn the_same_calls_work_in_a_folder_of_this_machine() {
    for toolset in Toolset::ALL {
        let mut bench = Bench::new(toolset, &[]);
        fill(&bench);
        let root = bench.root.display().to_string();
        for (name, arguments, comes) in table(toolset) {
            let is_needed = match comes {
                Needs(_) => true,
                Of(words) | Fails(words) => words.contains("needs a folder"),
                Changed(..) => false,
            };
            if is_needed {
                let arguments: Value =
                    serde_json::from_str(&arguments.to_string().replace(HOST, &root)).unwrap();
                let finished = bench.call(name, arguments).await;
                assert_eq!(finished.error, None, "{toolset:?} {name}: {}", finished.text);
                assert!(!finished.text.contains("needs a folder"), "{toolset:?} {name}: {}", finished.text);
            }
        }
    }
}

/// Without a folder of this machine it is not known which files a `.latheignore` names, so no file next to it is
/// shown.
#[tokio::test]
async fn what_an_ignore_file_of_lathe_may_name_is_not_shown() {
    let mut bench = bench(Toolset::Lathe);
    bench.put("src/.latheignore", "lib.rs\n");
    assert!(bench.call("view", json!({ "path": "a.txt" })).await.text.contains("two"));
    for (name, arguments) in [
        ("view", json!({ "path": "src/lib.rs" })),
        ("view", json!({ "path": "src" })),
        ("view", json!({ "path": "." })),
        ("write", json!({ "path": "src/new.rs", "content": "x" })),
        ("edit", json!({ "path": "src/lib.rs", "old_str": "found", "new_str": "lost" })),
    ] {
        let (_, words) = bench.refused(name, arguments.clone()).await;
        assert!(words.contains("there is a .latheignore"), "{name} {arguments}: {words}");
    }
    let (kind, _) = bench.refused("write", json!({ "path": ".latheignore", "content": "" })).await;
    assert_eq!(kind, ToolErrorKind::PermissionDenied);
    assert_eq!(bench.get("src/lib.rs"), "pub fn found() {}\n");
}
