//! Restarts the shell: a fresh one takes the place of the running one.

use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Effects};

use super::{opaque_effects, shell_problem};
use crate::outcome::{Data, Outcome};
use crate::tool::{Invocation, RunContext};

pub(super) struct Restart;

impl Invocation for Restart {
    fn describe(&self) -> String {
        "restart the shell".to_owned()
    }

    fn effects(&self) -> Effects {
        opaque_effects()
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let restarted = context.services.restart_shell().await;
            restarted.map(|()| Data::ShellRestarted).map_err(shell_problem).into()
        })
    }
}
