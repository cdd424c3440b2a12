//! `watch`: the events of a session that another process runs.

use clap::Args;
use lathe_host::Host;
use lathe_protocol::Update;
use lathe_views::Console;

use crate::args::OutputArg;
use crate::exit::Exit;
use crate::terminal::output::json_line;
use crate::terminal::{self, Paint};

#[derive(Args)]
pub(crate) struct WatchArgs {
    /// Session id or its beginning; the newest if left out
    pub(crate) id: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputArg::Text)]
    pub(crate) output: OutputArg,
}

pub(crate) async fn watch(host: &Host, args: &WatchArgs) -> Exit {
    let opened = host
        .archive()
        .find(args.id.as_deref())
        .and_then(|id| Ok((host.archive().watch(&id)?, host.archive().workspace(&id)?)));
    let (mut updates, workspace) = match opened {
        Ok(opened) => opened,
        Err(error) => return Exit::host(&error),
    };
    let (mut console, paint) = (Console::new(terminal::language()), Paint::new(terminal::is_terminal()));
    loop {
        let update = tokio::select! {
            update = updates.next() => update,
            _ = tokio::signal::ctrl_c() => return Exit::Cancelled,
        };
        let Some(Update::Event(event)) = update else {
            return Exit::Done;
        };
        match args.output {
            OutputArg::StreamJson | OutputArg::Json => terminal::out(&json_line(&event)),
            OutputArg::Text => match host.archive().recorded_diff(&event, &workspace.to_string_lossy()) {
                Ok(diff) => terminal::out(&paint.show(&console.event(&event, &diff))),
                Err(error) => return Exit::host(&error),
            },
        }
    }
}
