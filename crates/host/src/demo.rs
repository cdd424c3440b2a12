//! The demo: a small project with a failing test, and a recorded model that repairs it with real tools.

use std::path::{Path, PathBuf};

use lathe_protocol::{EndingRule, Limits, Mode, ReplayPace, ToolChoice, Toolset};

use crate::error::HostError;
use crate::session::extras::Extras;
use crate::session::{Attended, ModeWish, ModelSource, SessionPlan};

pub const DEMO_TASK: &str = "A test of this project fails. Find the cause and fix it.";

/// The recorded model, with the tools of a toolset.
fn cassette(toolset: Toolset) -> &'static str {
    match toolset {
        Toolset::Lathe => include_str!("../demo.cassette"),
        Toolset::Trae => include_str!("../demo-trae.cassette"),
        Toolset::Gemini => include_str!("../demo-gemini.cassette"),
        Toolset::Bash => include_str!("../demo-bash.cassette"),
    }
}

const FILES: [(&str, &str); 4] = [
    ("README.md", include_str!("../demo/README.md")),
    ("till.sh", include_str!("../demo/till.sh")),
    ("lib/money.sh", include_str!("../demo/lib/money.sh")),
    ("tests/run.sh", include_str!("../demo/tests/run.sh")),
];

/// A fresh copy of the sample project.
pub struct Demo {
    pub folder: PathBuf,
}

impl Demo {
    /// Makes the project in a new folder, which stays so that the user can inspect it.
    pub fn make() -> Result<Self, HostError> {
        let wrong =
            |error: std::io::Error| HostError::Demo(format!("the sample project cannot be made: {error}"));
        let folder = tempfile::Builder::new().prefix("lathe-demo-").tempdir().map_err(wrong)?.keep();
        for (name, content) in FILES {
            let path = folder.join(name);
            path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(wrong)?;
            std::fs::write(&path, content).map_err(wrong)?;
        }
        Ok(Self { folder })
    }

    pub fn plan(&self, toolset: Toolset, pace: ReplayPace) -> SessionPlan {
        SessionPlan {
            own_model: false,
            folder: self.folder.clone(),
            source: ModelSource::BuiltIn { cassette: cassette(toolset), pace },
            mode: ModeWish::Given(Mode::FullAuto),
            sandbox: None,
            toolset: Some(toolset),
            limits: Limits::with_steps(20),
            ending: EndingRule::Remind,
            patch: None,
            record: None,
            tools: ToolChoice::default(),
            attended: Attended::Nobody,
            extras: Extras::default(),
        }
    }

    /// Runs the project's tests, independently of the agent.
    pub fn test(&self) -> Result<TestRun, HostError> {
        run_tests(&self.folder)
    }
}

pub struct TestRun {
    pub output: String,
    pub passed: bool,
    /// True if the system could not start a process for a test.
    pub starved: bool,
}

fn run_tests(folder: &Path) -> Result<TestRun, HostError> {
    let output = lathe_workspace::program_command("/bin/bash")
        .arg("tests/run.sh")
        .current_dir(folder)
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| HostError::Demo(format!("the sample project's tests cannot be run: {error}")))?;
    let passed = output.status.success();
    let stderr = String::from_utf8_lossy(&output.stderr);
    Ok(TestRun {
        output: String::from_utf8_lossy(&output.stdout).into_owned(),
        passed,
        starved: !passed && stderr.contains("fork:"),
    })
}
