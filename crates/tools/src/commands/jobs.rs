//! `jobs`: what lines have left running, what it printed, and its end.

use super::{AgentCommands, Running};

impl AgentCommands {
    pub(super) async fn jobs(&self, running: &mut Running) -> u8 {
        running.print(String::new()).await
    }
}
