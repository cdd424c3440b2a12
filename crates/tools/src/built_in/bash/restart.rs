//! A fresh shell in the place of the one that runs.

use lathe_policy::Permit;
use lathe_protocol::{Boxed, Effects};

use super::{opaque, problem};
use crate::outcome::{Data, Outcome};
use crate::tool::{Invocation, RunContext};

pub(super) struct Restart;

impl Invocation for Restart {
    fn describe(&self) -> String {
        "restart the shell".to_owned()
    }

    fn effects(&self) -> Effects {
        opaque()
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> Boxed<'static, Outcome> {
        Box::pin(async move {
            let restarted = context.services.restart_shell().await;
            restarted.map(|()| Data::ShellRestarted).map_err(problem).into()
        })
    }
}
