//! `ax`: the part of Lathe that runs where the commands run.
//!
//! The binary is static, has no dependencies and is embedded in `lathe`, so it can be put into any
//! folder, jail or container and started there. What it does is chosen by its first argument, the role.
//! Today there is one: `ax supervise` keeps one bash of one agent session.

#[cfg(target_os = "linux")]
mod bash;
#[cfg(target_os = "linux")]
mod folder;
#[cfg(target_os = "linux")]
mod line;
#[cfg(target_os = "linux")]
mod stop;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod wire;

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let role = std::env::args_os().nth(1);
    match role.as_deref().and_then(|role| role.to_str()) {
        #[cfg(target_os = "linux")]
        Some("supervise") => match supervise::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(&format!("ax: {error}")),
        },
        _ => complain("ax: usage: ax supervise (Linux only)"),
    }
}

fn complain(text: &str) -> ExitCode {
    // Nobody is left to tell if stderr is closed too.
    let _ = writeln!(std::io::stderr(), "{text}");
    ExitCode::from(2)
}
