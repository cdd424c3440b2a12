//! `tools` and `tool run`: the tools of a session, listed, and one of them run without a model.

use std::path::Path;

use lathe_host::{Host, ToolPreview, ToolRun};
use lathe_plan::{ConfigPlace, GivenOptions};
use lathe_protocol::{CallFinished, Toolset, escape_unseen};
use serde_json::json;

use crate::args::{ToolRunArgs, ToolsArgs};
use crate::commands::settings;
use crate::exit::Exit;
use crate::terminal::output::print_json;
use crate::terminal::{self, Paint};

pub(crate) async fn tools(host: &Host, args: &ToolsArgs) -> Exit {
    let here = ConfigPlace::with_file(Path::new("."), args.config_file.as_deref());
    let settled = match settings::settle(host, here, &args.options.0, args.trust.report_only()) {
        Ok(settled) => settled,
        Err(exit) => return exit,
    };
    let extras = settled.extras();
    let toolset = settled.toolset().unwrap_or(Toolset::Lathe);
    let specs =
        match host.tools().session_tools(toolset, Path::new("."), settled.tool_choice(), &extras).await {
            Ok(specs) => specs,
            Err(error) => return Exit::host(&error),
        };
    settings::warn_of_notices(&extras.notices);
    if args.json {
        print_json(&json!(specs));
        return Exit::Done;
    }
    let paint = Paint::new(terminal::is_terminal());
    for spec in specs {
        terminal::out(&format!(
            "{}\n  {}\n",
            paint.bold(&spec.spec.name),
            spec.spec.description.replace('\n', "\n  ")
        ));
    }
    Exit::Done
}

pub(crate) async fn tool_run(host: &Host, args: ToolRunArgs) -> Exit {
    let place = ConfigPlace::folder(&args.working_dir);
    let settled = match settings::settle(host, place, &GivenOptions::default(), args.trust.report_only()) {
        Ok(settled) => settled,
        Err(exit) => return exit,
    };
    let proposed = match args.proposed.as_ref().map(std::fs::read_to_string).transpose() {
        Ok(proposed) => proposed,
        Err(error) => return Exit::wrong_usage(&format!("--proposed cannot be read: {error}")),
    };
    let cancel = tokio_util::sync::CancellationToken::new();
    let run = ToolRun {
        name: args.name,
        arguments: args.json,
        toolset: args.toolset.map(Into::into),
        mode: args.mode.map(Into::into),
        extras: settled.extras(),
        folder: args.working_dir,
        cancel: cancel.clone(),
        limits: settled.limits(),
    };
    if args.preview {
        return tool_preview(host, run).await;
    }
    let running = async {
        match &proposed {
            Some(proposed) => host.tools().run_proposed(run, proposed).await,
            None => host.tools().run(run).await,
        }
    };
    tokio::pin!(running);
    let ran = tokio::select! {
        ran = &mut running => ran,
        _ = tokio::signal::ctrl_c() => {
            cancel.cancel();
            running.await
        }
    };
    match ran {
        Ok(finished) => print_tool_result(&finished, cancel.is_cancelled()),
        Err(error) => Exit::host(&error),
    }
}

async fn tool_preview(host: &Host, run: ToolRun) -> Exit {
    match host.tools().preview(run).await {
        Ok(ToolPreview::Preview(preview)) => {
            terminal::out_line(&escape_unseen(preview.get().to_owned()));
            Exit::Done
        }
        Ok(ToolPreview::Refused(finished)) => print_tool_result(&finished, false),
        Err(error) => Exit::host(&error),
    }
}

fn print_tool_result(finished: &CallFinished, cancelled: bool) -> Exit {
    let end = if finished.text.ends_with('\n') { "" } else { "\n" };
    terminal::out(&format!("{}{end}", terminal::clean_on_terminal(&finished.text)));
    match finished.error {
        None if failed_command(finished) => Exit::Failed,
        None => Exit::Done,
        Some(_) if cancelled => Exit::Cancelled,
        Some(_) => Exit::Failed,
    }
}

/// True if a tool that ran a command reports another exit code than 0.
fn failed_command(finished: &CallFinished) -> bool {
    let data = finished.data.as_ref().and_then(|data| data.to_value().ok());
    data.and_then(|data| data.get("exit_code")?.as_i64()).is_some_and(|code| code != 0)
}
