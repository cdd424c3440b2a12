//! `auth`: the stored keys of providers. A key is read from standard input, never from the command line, where every
//! user of the machine could see it.

use std::io::{BufRead, IsTerminal};

use clap::{Args, Subcommand};
use lathe_host::Host;
use lathe_views::Tell;

use crate::exit::Exit;
use crate::terminal;

#[derive(Args)]
pub(crate) struct AuthArgs {
    #[command(subcommand)]
    pub(crate) command: AuthCommand,
}

#[derive(Subcommand)]
pub(crate) enum AuthCommand {
    /// Store a key, read from standard input, in a file that only you can read
    #[command(
        after_help = "Examples:\n  lathe auth login openai < key.txt\n  pass show anthropic | lathe auth login anthropic"
    )]
    Login {
        /// The provider that the key is for
        provider: String,
    },
    /// Remove a stored key
    #[command(after_help = "Examples:\n  lathe auth logout openai")]
    Logout {
        /// The provider that the key is for
        provider: String,
    },
}

pub(crate) fn auth(host: &Host, args: &AuthArgs) -> Exit {
    let language = terminal::language();
    match &args.command {
        AuthCommand::Login { provider } => {
            if std::io::stdin().is_terminal() {
                terminal::err(&Tell::KeyPrompt { provider }.text(language));
            }
            let mut key = String::new();
            if let Err(error) = std::io::stdin().lock().read_line(&mut key) {
                return Exit::wrong_usage(&format!("the key cannot be read: {error}"));
            }
            match host.models().login(provider, &key) {
                Ok(path) => {
                    let path = &path.display().to_string();
                    terminal::out_line(&Tell::KeySaved { provider, path }.text(language));
                    Exit::Done
                }
                Err(error) => Exit::host(&error),
            }
        }
        AuthCommand::Logout { provider } => match host.models().logout(provider) {
            Ok(true) => {
                terminal::out_line(&Tell::KeyRemoved { provider }.text(language));
                Exit::Done
            }
            Ok(false) => {
                terminal::out_line(&Tell::NoKeyStored { provider }.text(language));
                Exit::Done
            }
            Err(error) => Exit::host(&error),
        },
    }
}
