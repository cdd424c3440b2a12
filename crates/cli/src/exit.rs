//! Exit codes, and errors as the user sees them.

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use lathe_host::{HostError, PROVIDERS};
use lathe_protocol::Ending;

use crate::advice::with_advice;
use crate::terminal;

/// The way the program ends. The numbers are fixed, because scripts rely on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    Failed,
    Usage,
    ModelUnavailable,
    UsedUp,
    Denied,
    DiskFull,
    Cancelled,
    /// With the exit code of a shell line.
    Line(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.number())
    }
}

impl From<Ending> for Exit {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Done | Ending::Answered => Exit::Done,
            Ending::Failed => Exit::Failed,
            Ending::ModelUnavailable => Exit::ModelUnavailable,
            Ending::StepsUsedUp | Ending::BudgetUsedUp => Exit::UsedUp,
            Ending::Denied => Exit::Denied,
            Ending::DiskFull => Exit::DiskFull,
            Ending::Cancelled => Exit::Cancelled,
        }
    }
}

impl Exit {
    pub(crate) fn number(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::ModelUnavailable => 3,
            Exit::UsedUp => 4,
            Exit::Denied => 5,
            Exit::DiskFull => 54,
            Exit::Cancelled => 130,
            Exit::Line(code) => code,
        }
    }

    pub(crate) fn failed(message: &str) -> Self {
        terminal::err(&format!("error: {message}\n"));
        Exit::Failed
    }

    /// Reports that the system allows too little of something.
    pub(crate) fn limits(reason: &str) -> Self {
        terminal::err(&format!("error[limits]: {reason}\n"));
        Exit::Failed
    }

    pub(crate) fn wrong_usage(message: &str) -> Self {
        terminal::err(&format!("error[usage]: {message}\n"));
        Exit::Usage
    }

    /// Reports an error of the host and gives its exit code.
    pub(crate) fn host(error: &HostError) -> Self {
        if matches!(error, HostError::NoModel) {
            terminal::err(&no_model());
            return Exit::Usage;
        }
        terminal::err(&format!("error[{}]: {}\n", error.code(), terminal::clean(&with_advice(error))));
        match error {
            error if error.is_disk_full() => Exit::DiskFull,
            HostError::InsideSession { .. } => Exit::Denied,
            HostError::NoModel
            | HostError::NoKey { .. }
            | HostError::UnknownProvider(_)
            | HostError::NoModelName
            | HostError::NoPrice { .. }
            | HostError::OtherAddress { .. }
            | HostError::BadModel(_)
            | HostError::BadKey { .. }
            | HostError::Folder { .. }
            | HostError::NoSandbox(_)
            | HostError::Graph(_)
            | HostError::NothingToUndo
            | HostError::OtherToolset { .. }
            | HostError::Cassette(_)
            | HostError::Home { .. }
            | HostError::NoSessions
            | HostError::NoSuchSession(_)
            | HostError::EmptyId
            | HostError::NoSuchEntry(_)
            | HostError::NoSessionHere(_)
            | HostError::ManySessions { .. }
            | HostError::NoSuchTool { .. }
            | HostError::NoSuchStep { .. }
            | HostError::NoSuchRun { .. }
            | HostError::IdInUse(_)
            | HostError::BaseCommit { .. }
            | HostError::Prices(_)
            | HostError::Replay(_)
            | HostError::Check(_)
            | HostError::Trust { .. }
            | HostError::NotTrusted(_)
            | HostError::Policy(_)
            | HostError::Secrets { .. }
            | HostError::Discovery(_)
            | HostError::Documents(_)
            | HostError::Field { .. }
            | HostError::NotModifiable(_)
            | HostError::File { .. }
            | HostError::Git(_)
            | HostError::Review(_)
            | HostError::ToolArguments(_) => Exit::Usage,
            HostError::Journal(_)
            | HostError::Patch(_)
            | HostError::Rewind(_)
            | HostError::Restore { .. }
            | HostError::NoSpace(_)
            | HostError::Agent(_)
            | HostError::Demo(_)
            | HostError::Shell { .. }
            | HostError::Crashed(_) => {
                if error.code() == "session-held" {
                    Exit::Usage
                } else {
                    Exit::Failed
                }
            }
        }
    }
}

/// Prints the message of the argument parser. Help and version are not errors.
pub(crate) fn print_parser_message(error: &clap::Error) -> ExitCode {
    if let Some(flag) = container_flag(error) {
        return Exit::wrong_usage(&format!(
            "{flag} does not work yet: running in a container comes with a later version; without it the run is in the folder itself"
        ))
        .into();
    }
    let text = error.render();
    let color = terminal::is_terminal();
    let text = if color { text.ansi().to_string() } else { text.to_string() };
    if error.use_stderr() {
        terminal::err(&text);
        return Exit::Usage.into();
    }
    terminal::out(&text);
    Exit::Done.into()
}

/// True if a panic says that no thread could be started, in the words of the standard library or of the runtime.
fn is_missing_thread(panic: &str) -> bool {
    let spawning = panic.contains("failed to spawn thread") || panic.contains("can't spawn worker thread");
    spawning && (panic.contains("WouldBlock") || panic.contains("os error 11"))
}

/// One of Trae's flags for containers, which Lathe does not support so far. A Trae user should not read that they are
/// misspelt.
fn container_flag(error: &clap::Error) -> Option<&str> {
    const FLAGS: [&str; 5] = [
        "--docker-image",
        "--docker-container-id",
        "--dockerfile-path",
        "--docker-image-file",
        "--docker-keep",
    ];
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(flag))) => {
            Some(flag.as_str()).filter(|flag| FLAGS.contains(flag))
        }
        _ => None,
    }
}

fn no_model() -> String {
    let names: Vec<String> = PROVIDERS
        .iter()
        .filter(|provider| provider.needs_key)
        .map(|provider| format!("{}_API_KEY", provider.name.to_uppercase()))
        .collect();
    format!(
        "error[no-model]: no model is set up.

Lathe needs a model to work with. Any of these will do:

  a key in the environment     export OPENAI_API_KEY=...   (or {}; see `lathe models`)
                               lathe run --model gpt-5.2 \"your task\"

  a server of your own         lathe run --model-base-url http://127.0.0.1:8080/v1 --model NAME \"your task\"
  (vLLM, llama.cpp, LM Studio,
  anything that speaks OpenAI's Chat Completions)

  Ollama on this machine       lathe run --provider ollama --model qwen3-coder \"your task\"

To see Lathe at work now, without a key and without a network:

  lathe demo
",
        names.get(1..3).unwrap_or_default().join(", ")
    )
}

pub(crate) const NO_PROCESS: &str = "the system gives no further thread or process: raise the limit (`ulimit -u`), or end something else. \
     The session is safe: resume it with `lathe resume`.";

/// Reports a panic. A panic is a fault of Lathe: it goes to a file that the user can send in, and the session stays
/// as it was. A thread that the system refuses is not a fault of Lathe: the program ends with that reason.
pub(crate) fn report_panic(info: &std::panic::PanicHookInfo<'_>) {
    if is_missing_thread(&info.to_string()) {
        std::process::exit(Exit::limits(NO_PROCESS).number().into());
    }
    let backtrace = std::backtrace::Backtrace::force_capture();
    let report = format!("lathe {}\n{info}\n\n{backtrace}\n", env!("CARGO_PKG_VERSION"));
    let path = std::env::temp_dir().join(format!("lathe-panic-{}.txt", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written =
        options.open(&path).and_then(|mut file| std::io::Write::write_all(&mut file, report.as_bytes()));
    let place = match written {
        Ok(()) => format!("A report is in {}.", path.display()),
        Err(_) => report,
    };
    terminal::err(&format!(
        "error[panic]: Lathe found a fault of its own and had to stop. {place}\nThe session is safe: resume it with `lathe resume`.\n"
    ));
}
