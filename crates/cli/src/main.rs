//! The binary `lathe`: arguments and wiring.

mod advice;
mod args;
mod commands;
mod connect;
mod drive;
mod exit;
mod home_changes;
mod task;
mod terminal;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;
use crate::exit::Exit;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().map(args::long_form).collect();
    // Answered before the argument parser and any runtime are set up: scripts ask this often.
    if let [_, only] = arguments.as_slice()
        && (only == "--version" || only == "-V")
    {
        terminal::out(concat!("lathe ", env!("CARGO_PKG_VERSION"), "\n"));
        return ExitCode::SUCCESS;
    }
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return exit::print_parser_message(&error),
    };
    // Before the first thread starts: keys are removed from the places where other programs can read them.
    lathe_host::seal_process(args::secret_part);
    std::panic::set_hook(Box::new(exit::report_panic));
    if let Err(reason) = lathe_host::raise_limits() {
        return Exit::limits(&reason).into();
    }
    // One thread is enough for one session and starts sooner; a server has many sessions.
    let runtime = match cli.command {
        args::CliCommand::Serve(_) => tokio::runtime::Builder::new_multi_thread().enable_all().build(),
        _ => tokio::runtime::Builder::new_current_thread().enable_all().build(),
    };
    let code = match runtime {
        Ok(runtime) => {
            let exit = runtime.block_on(commands::dispatch(cli));
            // A blocking task that hangs, for example on a dead network disk, must not keep the program from ending.
            runtime.shutdown_timeout(std::time::Duration::from_millis(500));
            exit
        }
        Err(error) => Exit::failed(&format!("the runtime cannot be started: {error}")),
    };
    match (terminal::lost_output(), code) {
        (Some(reason), Exit::Done) => {
            Exit::failed(&format!("standard output cannot be written: {reason}")).into()
        }
        (_, code) => code.into(),
    }
}
