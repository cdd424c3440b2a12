//! `ax`: the part of Lathe that runs where the commands run.
//!
//! The binary is static, has no dependencies and is embedded in `lathe`, so it can be put into any folder, jail or
//! container and started there. The name under which it is started decides its function: every name other than `ax`
//! is an agent command, which the host runs. As `ax` its first argument, the role, decides: `ax supervise` keeps one
//! bash of one agent session, `ax run NAME ...` is the agent command with that name, and `ax wall` and `ax nest` are the
//! steps into a jail.

// The entry is in `system`.
#![cfg_attr(all(target_os = "linux", not(test)), no_main)]

#[cfg(target_os = "linux")]
mod bash;
#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod command_folder;
#[cfg(target_os = "linux")]
mod confine;
mod expected;
#[cfg(target_os = "linux")]
mod jobs;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
mod line;
#[cfg(target_os = "linux")]
mod private_folder;
#[cfg(target_os = "linux")]
mod stop;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod wall;
#[cfg(target_os = "linux")]
mod wire;

use std::io::Write;

/// Called by the entry in `system`. Returns the exit code.
#[cfg(target_os = "linux")]
fn run(arguments: &[std::ffi::OsString]) -> u8 {
    let path = system::exec_path().or(arguments.first().cloned()).unwrap_or_default();
    let path = std::path::Path::new(&path);
    let links = path.parent().unwrap_or("".as_ref());
    let call = |name, arguments| client::run(&client::AgentCall { name, arguments, links });
    match (path.file_name(), arguments.get(1..).unwrap_or_default()) {
        (Some(name), arguments) if name != "ax" => call(name, arguments),
        (_, [role, name, arguments @ ..]) if role == "run" => call(name, arguments),
        (_, [role]) if role == "supervise" => match supervise::run() {
            Ok(()) => 0,
            Err(error) => complain(&format!("ax: {error}")),
        },
        (_, [role, note]) if role == "wall" => wall::wall(note),
        (_, [role, note, without, words @ ..]) if role == "nest" => wall::nest(note, without, words),
        // The program of a jail that only shows that the walls can be built.
        (_, [role]) if role == "ready" => 0,
        _ => complain(
            "ax: usage: ax supervise | ax run NAME [ARGUMENT ...] | ax wall NOTE | ax nest NOTE ARGUMENTS PROGRAM ...",
        ),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    complain("ax: it works on Linux only").into()
}

fn complain(text: &str) -> u8 {
    // If stderr is closed too, there is no channel left.
    let _ = writeln!(std::io::stderr(), "{text}");
    2
}
