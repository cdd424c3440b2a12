//! `shell`: the session's bash for the user, with a prompt or for one line.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use clap::Args;
use lathe_host::{Host, ShellLineEnd, ShellRun, TerminalModes, UserShell};
use lathe_plan::{ConfigPlace, GivenOptions};
use lathe_protocol::OutputStream;
use lathe_views::Tell;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper, Highlighter, Hinter};
use tokio_util::sync::CancellationToken;

use crate::args::{ModeArg, SandboxArg};
use crate::commands::settings;
use crate::exit::Exit;
use crate::terminal;
use crate::terminal::stops::Stops;

#[derive(Args)]
pub(crate) struct ShellArgs {
    /// Run this line and end with its exit code
    #[arg(short = 'c', value_name = "LINE")]
    line: Option<String>,
    /// Decide about the lines as if a model had written them, in this mode
    #[arg(long)]
    mode: Option<ModeArg>,
    /// Run the lines behind the walls that a session has
    #[arg(long, default_value = "off")]
    sandbox: SandboxArg,
    /// The folder to work in
    #[arg(long, short = 'w', default_value = ".")]
    working_dir: PathBuf,
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config_file: Option<PathBuf>,
    #[command(flatten)]
    trust: crate::commands::trust::TrustFlag,
}

pub(crate) async fn shell(host: &Host, args: ShellArgs) -> Exit {
    let place = ConfigPlace::with_file(&args.working_dir, args.config_file.as_deref());
    let settled = match settings::settle(host, place, &GivenOptions::default(), args.trust.ask_on_terminal())
    {
        Ok(settled) => settled,
        Err(exit) => return exit,
    };
    let extras = settled.extras();
    let run = ShellRun {
        folder: args.working_dir,
        mode: args.mode.map(Into::into),
        sandbox: args.sandbox.into(),
        extras,
    };
    let mut shell = match host.open_shell(run).await {
        Ok(shell) => shell,
        Err(error) => return Exit::host(&error),
    };
    let exit = match args.line {
        Some(line) => run_line(&mut shell, &line, GivenFrom::CommandLine, &mut Stops::listen()).await,
        None if std::io::stdin().is_terminal() => prompt_loop(host, &mut shell).await,
        None => {
            let mut script = String::new();
            match std::io::stdin().read_to_string(&mut script) {
                Ok(_) => run_line(&mut shell, &script, GivenFrom::CommandLine, &mut Stops::listen()).await,
                Err(error) => Exit::failed(&format!("standard input cannot be read: {error}")),
            }
        }
    };
    shell.close().await;
    exit
}

/// The origin of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GivenFrom {
    Prompt,
    CommandLine,
}

/// Runs one line and returns its exit code. Ctrl-C and the other signals that ask for an end stop the line.
async fn run_line(shell: &mut UserShell, line: &str, at: GivenFrom, stops: &mut Stops) -> Exit {
    let cancel = CancellationToken::new();
    let mut ended = true;
    let running = shell.run(line, &cancel, |stream, bytes| {
        ended = bytes.last().is_none_or(|byte| *byte == b'\n');
        match stream {
            OutputStream::Stdout => terminal::out_bytes(bytes),
            OutputStream::Stderr => terminal::err_bytes(bytes),
        }
    });
    let mut running = Box::pin(running);
    let (ran, stopped) = tokio::select! {
        ran = &mut running => (ran, false),
        _ = stops.next() => {
            cancel.cancel();
            ((&mut running).await, true)
        }
    };
    drop(running);
    if at == GivenFrom::Prompt && !ended {
        // The prompt would be drawn over an unfinished line.
        terminal::out("\n");
    }
    let language = terminal::language();
    match ran {
        Ok(ShellLineEnd::Ended { code, kept, lost, broken }) => {
            for broken in &broken {
                terminal::err_line(&terminal::name(broken));
            }
            if let Some(id) = kept {
                terminal::err_line(&Tell::LineKept { id: &id }.text(language));
            }
            for lost in lost.iter().take(10) {
                terminal::err_line(&Tell::LineNotKept { path: &terminal::name(lost) }.text(language));
            }
            if stopped { Exit::Cancelled } else { Exit::Line(u8::try_from(code).unwrap_or(1)) }
        }
        Ok(ShellLineEnd::Denied(_)) if stopped => Exit::Cancelled,
        Ok(ShellLineEnd::Denied(reason)) => {
            terminal::err_line(&Tell::LineDenied { reason: &terminal::clean(&reason) }.text(language));
            Exit::Line(126)
        }
        Err(error) => Exit::host(&error),
    }
}

/// Runs line after line, until `exit` or the end of the input.
async fn prompt_loop(host: &Host, shell: &mut UserShell) -> Exit {
    let history = host.home().shell_history();
    let config = Config::builder().auto_add_history(true).max_history_size(10_000);
    let editor = config.and_then(|config| Editor::<ShellCompleter, FileHistory>::with_config(config.build()));
    let mut editor = match editor {
        Ok(editor) => editor,
        Err(error) => return Exit::failed(&format!("the terminal cannot be used: {error}")),
    };
    editor
        .set_helper(Some(ShellCompleter { commands: command_names(shell), files: FilenameCompleter::new() }));
    // The first time there is no history.
    let _ = editor.load_history(&history);
    let mut last = Exit::Done;
    let mut stops = Stops::listen();
    let modes = TerminalModes::save();
    loop {
        // File names are completed relative to this folder.
        let _ = std::env::set_current_dir(shell.cwd());
        let prompt = format!("{} $ ", prompt_folder(shell));
        let read = tokio::task::spawn_blocking(move || {
            let line = editor.readline(&prompt);
            (editor, line)
        });
        let read = tokio::select! {
            read = read => read,
            // The thread that reads ends with the process.
            _ = stops.wait_to_leave() => {
                modes.restore();
                terminal::out("\n");
                return Exit::Cancelled;
            }
        };
        let line = match read {
            Ok((back, line)) => {
                editor = back;
                line
            }
            Err(error) => return Exit::failed(&error.to_string()),
        };
        match line {
            Ok(line) => match exit_request(&line) {
                Some(code) => {
                    last = Exit::Line(code.unwrap_or(last.number()));
                    break;
                }
                None if line.trim().is_empty() => {}
                None => last = run_line(shell, &line, GivenFrom::Prompt, &mut stops).await,
            },
            Err(ReadlineError::Interrupted) => last = Exit::Cancelled,
            Err(_) => break,
        }
        if stops.is_leaving() {
            break;
        }
    }
    let _ = editor.save_history(&history);
    last
}

/// The exit code that a line asks to leave with: `Some(None)` for a bare `exit` or `logout`, None for any other line.
fn exit_request(line: &str) -> Option<Option<u8>> {
    let mut words = line.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some("exit" | "logout"), None, _) => Some(None),
        (Some("exit"), Some(code), None) => code.parse().ok().map(Some),
        _ => None,
    }
}

/// The folder as the prompt shows it.
fn prompt_folder(shell: &UserShell) -> String {
    let cwd = shell.cwd().display().to_string();
    match std::env::var("HOME") {
        Ok(home) if !home.is_empty() => match cwd.strip_prefix(&home) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("~{rest}"),
            Some(_) | None => cwd,
        },
        Ok(_) | Err(_) => cwd,
    }
}

/// All names that can begin a line.
fn command_names(shell: &UserShell) -> Vec<String> {
    let mut names = shell.commands();
    let path = std::env::var_os("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path) {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        names.extend(entries.filter_map(|entry| entry.file_name().into_string().ok()));
    }
    names.sort();
    names.dedup();
    names
}

/// Completes commands at the beginning of a command, and file names elsewhere.
#[derive(Helper, Hinter, Highlighter)]
struct ShellCompleter {
    commands: Vec<String>,
    files: FilenameCompleter,
}

impl Validator for ShellCompleter {
    /// Asks bash whether the text is complete; bash parses it and runs nothing.
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let read = lathe_host::user_program("/bin/bash").args(["-n", "-c", context.input()]).output();
        let said = read.map(|read| String::from_utf8_lossy(&read.stderr).into_owned()).unwrap_or_default();
        let unfinished = ["unexpected end of file", "unexpected EOF", "delimited by end-of-file"];
        Ok(match unfinished.iter().any(|words| said.contains(words)) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Completer for ShellCompleter {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..at).unwrap_or(line);
        let start = before.rfind(|c: char| c.is_whitespace() || "|;&(".contains(c)).map_or(0, |at| at + 1);
        let word = before.get(start..).unwrap_or_default();
        let first = before.get(..start).unwrap_or_default().trim_end();
        let begins = first.is_empty() || first.ends_with(['|', ';', '&', '(']);
        if begins && !word.contains('/') && !word.is_empty() {
            let fits = self.commands.iter().filter(|name| name.starts_with(word));
            let pairs = fits.map(|name| Pair { display: name.clone(), replacement: format!("{name} ") });
            return Ok((start, pairs.collect()));
        }
        self.files.complete(line, at, context)
    }
}

#[cfg(test)]
mod tests {
    use super::exit_request;

    #[test]
    fn only_a_plain_exit_leaves() {
        for (line, expected) in [
            ("exit", Some(None)),
            (" exit 3 ", Some(Some(3))),
            ("exit now", None),
            ("exit 3; ls", None),
            ("echo exit", None),
        ] {
            assert_eq!(exit_request(line), expected, "{line}");
        }
    }
}
