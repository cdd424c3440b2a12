//! Rules: what the user's files, the standing approvals and the trusted projects allow and deny.

pub(crate) mod git_rules;
pub(crate) mod line_check;
pub(crate) mod policy_replay;
pub(crate) mod standing_approvals;
pub(crate) mod trust;

use lathe_policy::{Gate, OnDisk, Walls};
use lathe_tools::LocalDisk;
use lathe_workspace::{Level, Workspace};

use crate::home::Home;

/// The rules, standing approvals and trust of one home.
pub struct Rules {
    home: Home,
}

impl Rules {
    pub fn new(home: Home) -> Self {
        Self { home }
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// The gate of a workspace without a user to ask. The meaning of links and patterns is only known on a disk of
    /// this machine; for a workspace elsewhere the gate has no disk, and takes each name as it is spelled.
    pub(crate) fn gate(&self, workspace: &Workspace) -> Gate {
        let root = workspace.root();
        Gate {
            home: self.home().path().to_owned(),
            root: root.to_owned(),
            user_home: std::env::home_dir().filter(|home| home.parent().is_some()),
            here: Some(root.to_owned()),
            outputs: None,
            headless: true,
            disk: workspace.local().map_or_else(OnDisk::default, |_| OnDisk::new(LocalDisk)),
            switched: lathe_policy::ShellSwitches::default(),
            walls: match workspace.level() {
                Level::Off | Level::Limits | Level::Filters => Walls::None,
                // File tools are outside of the walls, and would write what lines cannot.
                Level::Walls if workspace.is_read_only() => Walls::None,
                Level::Walls => Walls::Around { writable: Vec::new() },
            },
        }
    }
}
