//! The section `sandbox`: limits of the processes of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const ALLOWED: &str = "a project may not choose how much is allowed";

/// Limits of the processes of a session inside its sandbox. A line that passes one is stopped, and its result says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SandboxSection {
    /// Megabytes of memory that the processes of a session may use together. Three quarters of the machine's memory if left out.
    #[schemars(range(min = 64), extend("x-user-only" = ALLOWED))]
    pub memory: Option<u64>,
    /// Processes and threads that a session may have at one time.
    #[schemars(range(min = 64), extend("x-user-only" = ALLOWED))]
    pub processes: u64,
    /// Megabytes by which the used space of a disk may grow while one line runs.
    #[schemars(range(min = 1), extend("x-user-only" = ALLOWED))]
    pub disk: u64,
    /// Megabytes that one file may have.
    #[schemars(range(min = 1), extend("x-user-only" = ALLOWED))]
    pub file: u64,
    /// Hosts that the processes can reach: `example.com`, `*.example.com`, `example.com:8443`, an address or range, or the registries of a package manager (`registry:cargo`, `registry:npm`, `registry:pypi`, `registry:go`, `registry:maven`, `registry:debian`). An allowed host can carry data out.
    #[schemars(extend(
        "x-user-only" = ALLOWED,
        "x-flag" = "--allow-host HOST", "x-on" = "run interactive resume",
        "x-flag-help" = "Let the processes in the sandbox reach this host, or `registry:npm` and the like. With commas, or repeated"
    ))]
    pub hosts: Vec<String>,
    /// Hosts that they can never reach, whatever else is allowed.
    #[schemars(extend("x-user-only" = ALLOWED))]
    pub denied_hosts: Vec<String>,
}

impl Default for SandboxSection {
    fn default() -> Self {
        Self {
            memory: None,
            processes: 4096,
            disk: 20 * 1024,
            file: 8 * 1024,
            hosts: Vec::new(),
            denied_hosts: Vec::new(),
        }
    }
}
