//! A line that passes a limit of the sandbox: the words for the model, in each toolset.

use std::path::Path;
use std::sync::Arc;

use lathe_protocol::{ToolErrorKind, Toolset};
use lathe_shell::place_ax;
use lathe_tools::Toolbox;
use lathe_workspace::{Jail, JailLimits, JailPlan, JailProfile, WallsFound, Workspace};
use serde_json::json;

use crate::bench::Bench;

/// At most 500 processes, which end with the line.
const BURST: &str = "for ((i = 0; i < 500; i++)); do sleep 97.5 & done; wait";

/// A workspace with limits and without walls, which need no program that may be missing.
fn limited(root: &Path) -> Workspace {
    let plan = JailPlan {
        profile: JailProfile::Workspace,
        root: root.to_owned(),
        ax: place_ax(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap(),
        writable: Vec::new(),
        hidden: Vec::new(),
        home: None,
        layer: None,
    };
    let limits = JailLimits { processes: 100, ..JailLimits::default() };
    let jail = Jail::new(plan, WallsFound::none("a test of limits")).unwrap().limited_to(limits);
    Workspace::folder(root.to_owned(), None).behind(Arc::new(jail))
}

#[tokio::test]
async fn a_line_that_passes_a_limit_fails_with_the_cause_in_every_toolset() {
    let cause = "topped by the sandbox: it had more than 100 processes and threads at one time (limit `sandbox.processes`)";
    for (toolset, tool) in [
        (Toolset::Lathe, "bash"),
        (Toolset::Trae, "bash"),
        (Toolset::Gemini, "run_shell_command"),
        (Toolset::Bash, "Bash"),
    ] {
        let make = |services| Toolbox::new(toolset, Arc::new(services));
        let mut bench = Bench::in_workspace(limited, make);
        let finished = bench.call(tool, json!({ "command": BURST })).await;
        assert!(finished.text.contains(cause), "{toolset:?}: {}", finished.text);
        let error = finished.error.unwrap();
        assert_eq!(error.kind, ToolErrorKind::ExecutionFailed, "{toolset:?}");
        assert!(error.message.contains(cause), "{toolset:?}: {}", error.message);
        let next = bench.call(tool, json!({ "command": "echo here" })).await;
        assert!(next.error.is_none() && next.text.contains("here"), "{toolset:?}: {}", next.text);
        bench.toolbox.services().close().await;
    }
}
