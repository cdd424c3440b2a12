//! Whether everything Lathe needs is here and works.

use std::path::Path;

use tokio_util::sync::CancellationToken;

use crate::models::PROVIDERS;
use crate::session::Host;
use crate::toolrun::ToolRun;

/// One thing that was looked at.
pub struct Check {
    pub name: &'static str,
    pub state: CheckState,
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckState {
    Good,
    /// Lathe works without it.
    Missing,
    Broken,
}

impl Host {
    pub async fn doctor(&self, folder: &Path) -> Vec<Check> {
        vec![self.check_home(), self.check_shell(folder).await, check_git(), check_model(), check_sandbox()]
    }

    fn check_home(&self) -> Check {
        let probe = || -> Result<(), String> {
            self.home().make().map_err(|error| error.to_string())?;
            let file = self.home().path().join(format!(".doctor-{}", std::process::id()));
            std::fs::write(&file, b"ok").map_err(|error| error.to_string())?;
            std::fs::remove_file(&file).map_err(|error| error.to_string())
        };
        match probe() {
            Ok(()) => good("home", format!("{} can be written", self.home().path().display())),
            Err(reason) => broken("home", reason),
        }
    }

    async fn check_shell(&self, folder: &Path) -> Check {
        let run = ToolRun {
            name: "bash".to_owned(),
            arguments: r#"{"command":"echo \"bash $BASH_VERSION\""}"#.to_owned(),
            toolset: None,
            mode: None,
            folder: folder.to_owned(),
            cancel: CancellationToken::new(),
        };
        match self.run_tool(run).await {
            Ok(finished) if finished.error.is_none() => {
                let version =
                    finished.text.lines().find(|line| line.starts_with("bash ")).unwrap_or("bash").to_owned();
                good("shell", format!("{version} runs under its supervisor"))
            }
            Ok(finished) => broken("shell", finished.text),
            Err(error) => broken("shell", error.to_string()),
        }
    }
}

fn check_git() -> Check {
    match std::process::Command::new("git").arg("--version").output() {
        Ok(output) if output.status.success() => {
            good("git", String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(_) | Err(_) => missing("git", "not found; Lathe works without it".to_owned()),
    }
}

fn check_model() -> Check {
    let keys: Vec<String> = PROVIDERS
        .iter()
        .filter(|provider| provider.needs_key)
        .map(|provider| format!("{}_API_KEY", provider.name.to_uppercase()))
        .filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
        .collect();
    if keys.is_empty() {
        return missing(
            "model",
            "no key in the environment; set OPENAI_API_KEY or give --model-base-url".to_owned(),
        );
    }
    good("model", format!("key set: {}", keys.join(", ")))
}

fn check_sandbox() -> Check {
    missing(
        "sandbox",
        "level 0: this version has none; `run` changes nothing without --mode full-auto".to_owned(),
    )
}

fn good(name: &'static str, detail: String) -> Check {
    Check { name, state: CheckState::Good, detail }
}

fn missing(name: &'static str, detail: String) -> Check {
    Check { name, state: CheckState::Missing, detail }
}

fn broken(name: &'static str, detail: String) -> Check {
    Check { name, state: CheckState::Broken, detail }
}
