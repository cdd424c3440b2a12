//! Every kind of failure there is, provoked for real: real files, real processes.
//!
//! The kinds are taken from the type itself and the rows are a `match` without a wildcard, so a new kind without a row does
//! not compile.

use std::process::Command;
use std::sync::Arc;

use lathe_protocol::{
    BoxFuture, CallFinished, CallId, Question, Raw, ToolChoice, ToolErrorKind, ToolKind, Toolset,
    interrupted_result,
};
use lathe_testkit::SmallDisk;
use lathe_tools::{Asker, Domain, Layer, OutsideTool, ToolProvider, Toolbox};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, fifo, gemini, lathe, trae};

/// All kinds, as the schema of the type names them.
fn kinds() -> Vec<ToolErrorKind> {
    fn names(schema: &Value, found: &mut Vec<Value>) {
        match schema {
            Value::Object(object) => {
                found.extend(object.get("const").cloned());
                found.extend(object.get("enum").and_then(Value::as_array).into_iter().flatten().cloned());
                object.values().for_each(|inner| names(inner, found));
            }
            Value::Array(values) => values.iter().for_each(|inner| names(inner, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut found = Vec::new();
    names(schemars::schema_for!(ToolErrorKind).as_value(), &mut found);
    found.into_iter().map(|name| serde_json::from_value(name).unwrap()).collect()
}

/// A user who waves every question away.
struct Dismissive;

impl Asker for Dismissive {
    fn ask<'a>(&'a self, _: &'a CallId, _: Vec<Question>) -> BoxFuture<'a, Option<Vec<String>>> {
        Box::pin(async { None })
    }
}

/// `breaks` panics; every other program ends as its name says.
struct Programs;

impl ToolProvider for Programs {
    fn call<'a>(
        &'a self,
        name: &'a str,
        _: Raw,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            assert_ne!(name, "breaks", "this is the panic the test wants");
            let ended = Command::new(name).status().unwrap();
            if ended.success() {
                Ok(String::new())
            } else {
                Err(format!("Exit Code: {}", ended.code().unwrap()))
            }
        })
    }

    fn program(&self) -> String {
        "programs".to_owned()
    }
}

fn with_programs() -> Bench {
    let tool = |name: &str| OutsideTool {
        name: name.to_owned(),
        original: name.to_owned(),
        description: String::new(),
        schema: Raw::parse("{}").unwrap(),
        kind: ToolKind::Other,
        failure: ToolErrorKind::DiscoveredToolExecutionError,
        provider: Arc::new(Programs),
        domain: Domain { layer: Layer::Field, name: "tools".to_owned(), about: String::new() },
    };
    Bench::with(|services| {
        let outside = vec![tool("breaks"), tool("false")];
        Toolbox::for_session(Toolset::Lathe, Arc::new(services), ToolChoice::default(), outside)
    })
}

/// A workspace on a file system of its own; none where `LATHE_TEST_WITHOUT_MOUNTS` says that there is none.
fn on_small_disk() -> Option<(Bench, SmallDisk)> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join("disk");
    let blobs = folder.path().join("blobs");
    let disk = SmallDisk::mount(&root, "256k")?;
    Some((Bench::at(Toolset::Lathe, &[], root, blobs, folder), disk))
}

fn edit(old: &str, new: &str) -> Value {
    json!({ "path": "a", "old_str": old, "new_str": new })
}

/// A name no file system takes.
fn too_long() -> String {
    "x".repeat(300)
}

/// A call that fails in this way.
async fn provoke(kind: ToolErrorKind) -> Option<CallFinished> {
    use ToolErrorKind as K;
    let mut own = lathe();
    own.put("a", "one two one\n");
    std::fs::create_dir(own.root.join("folder")).unwrap();
    fifo(&own.root.join("fifo"));
    Some(match kind {
        K::InvalidToolParams => own.call("view", json!({ "path": 7 })).await,
        K::ToolNotRegistered => own.call("look", json!({})).await,
        K::PolicyViolation => own.call("ask_user", json!({ "question": "May I?" })).await,
        K::ExecutionFailed => {
            own.asker = Some(Arc::new(Dismissive));
            own.call("ask_user", json!({ "question": "May I?" })).await
        }
        K::UnhandledException => with_programs().call("breaks", json!({})).await,
        K::FileNotFound => own.call("view", json!({ "path": "none" })).await,
        K::FileWriteFailure => own.call("write", json!({ "path": "fifo", "content": "x" })).await,
        K::ReadContentFailure => own.call("view", json!({ "path": "fifo" })).await,
        K::AttemptToCreateExistingFile => {
            let mut trae = trae();
            let path = trae.put("a", "x");
            let call = json!({ "command": "create", "path": path, "file_text": "y" });
            trae.call("str_replace_based_edit_tool", call).await
        }
        K::FileTooLarge => {
            let mut gemini = gemini();
            let file = std::fs::File::create(gemini.root.join("large")).unwrap();
            file.set_len((20 << 20) + 1).unwrap();
            gemini.call("read_file", json!({ "file_path": "large" })).await
        }
        K::PermissionDenied => {
            let (mut bench, disk) = on_small_disk()?;
            bench.put("a", "one");
            disk.remount("ro");
            bench.call("edit", edit("one", "1")).await
        }
        K::NoSpaceLeft => {
            let (mut bench, disk) = on_small_disk()?;
            bench.put("a", "one\n".repeat(1000) + "two");
            disk.fill();
            bench.call("edit", edit("two", "2")).await
        }
        K::TargetIsDirectory => {
            own.call("edit", json!({ "path": "folder", "old_str": "a", "new_str": "b" })).await
        }
        K::PathNotInWorkspace => own.call("search", json!({ "pattern": "x", "path": "/usr" })).await,
        K::SearchPathNotFound => own.call("search", json!({ "pattern": "x", "path": "none" })).await,
        K::SearchPathNotADirectory => own.call("glob", json!({ "pattern": "*", "path": "a" })).await,
        K::PathIsNotADirectory => {
            let mut gemini = gemini();
            gemini.put("a", "x");
            gemini.call("list_directory", json!({ "dir_path": "a" })).await
        }
        K::GlobExecutionError => own.call("glob", json!({ "pattern": "*", "path": too_long() })).await,
        K::GrepExecutionError => own.call("search", json!({ "pattern": "x", "path": too_long() })).await,
        K::LsExecutionError => gemini().call("list_directory", json!({ "dir_path": too_long() })).await,
        K::ReadManyFilesSearchError => gemini().call("read_many_files", json!({ "include": ["a{b"] })).await,
        K::MemoryToolExecutionError => {
            let memory = own.toolbox.services().plan.memory.clone().unwrap();
            std::fs::create_dir(memory).unwrap();
            own.call("remember", json!({ "fact": "water is wet" })).await
        }
        K::DiscoveredToolExecutionError => with_programs().call("false", json!({})).await,
        K::EditPreparationFailure => {
            own.put("a", b"caf\xe9 one\n");
            own.call("edit", edit("one", "\u{4e2d}")).await
        }
        K::EditNoOccurrenceFound => own.call("edit", edit("three", "3")).await,
        K::EditExpectedOccurrenceMismatch => own.call("edit", edit("one", "1")).await,
        K::EditNoChange => own.call("edit", edit("two", "two")).await,
        K::FileChanged => {
            own.call("view", json!({ "path": "a" })).await;
            own.put("a", "somebody else's\n");
            own.call("edit", edit("else", "x")).await
        }
        K::ShellExecuteError => own.call("bash", json!({ "command": "echo \0" })).await,
        K::TimedOut => own.call("bash", json!({ "command": "sleep 30", "timeout": 1 })).await,
        K::Cancelled => {
            own.cancel_at = Some("begun");
            own.call("bash", json!({ "command": "echo begun; sleep 30" })).await
        }
        // What a call is closed with whose process was killed; the kills are in the tests of the binary.
        K::Interrupted => interrupted_result("bash", true),
        // As a journal of a later version has it.
        K::Unknown => {
            let error = json!({ "kind": "kind_of_a_later_version", "message": "It failed." });
            let told = json!({ "name": "view", "text": "It failed somehow.", "error": error, "took_ms": 1 });
            serde_json::from_value(told).unwrap()
        }
    })
}

#[tokio::test]
async fn every_kind_of_failure_can_be_had_and_has_words() {
    let kinds = kinds();
    assert!(kinds.len() >= 32, "{kinds:?}");
    for kind in kinds {
        let Some(finished) = provoke(kind).await else { continue };
        let error = finished.error.unwrap_or_else(|| panic!("{kind:?} did not fail: {}", finished.text));
        assert_eq!(error.kind, kind, "{}", finished.text);
        assert!(finished.text.len() > 10 && !error.message.is_empty(), "{kind:?}: {:?}", finished.text);
    }
}
