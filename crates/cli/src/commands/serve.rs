//! `serve`: the server, set up from the configuration.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use lathe_host::{Home, Host};
use lathe_plan::{Absent, ConfigPlace, Configured, GivenOptions, settle};
use lathe_protocol::json_text;
use lathe_server::{BoundServer, OnRestart, Role, ServerError, ServerOptions, TlsFiles, Tokens, bind};
use lathe_views::{Say, Tell};
use serde_json::json;

use crate::advice::with_advice;
use crate::args::CassetteArgs;
use crate::args::options::{OfServe, OptionArgs};
use crate::commands::settings::extras_of;
use crate::exit::Exit;
use crate::terminal;
use crate::terminal::output::print_json;
use crate::terminal::stops::Stops;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    command: Option<ServeCommand>,
    /// Address to listen on; others than loopback need --tls-cert and --tls-key
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// Port to listen on; 0 for any free one
    #[arg(long, default_value_t = 8090)]
    port: u16,
    /// Folder that sessions may work in, with the folders below it; may be given more than once
    #[arg(long = "root", value_name = "DIR", default_value = ".")]
    roots: Vec<PathBuf>,
    /// Name that the server accepts besides its addresses; may be given more than once
    #[arg(long = "name", value_name = "HOST")]
    names: Vec<String>,
    /// Certificate in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Address of a model that clients may give besides those on the internet and in the configuration, as HOST:PORT;
    /// may be given more than once
    #[arg(long = "model-host", value_name = "HOST:PORT")]
    model_hosts: Vec<String>,
    /// Handling of runs that were interrupted when the last server was killed
    #[arg(long, value_enum, default_value_t = OnRestartArg::Park)]
    on_restart: OnRestartArg,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
    /// Print one line of JSON with the address and the token when ready
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    options: OptionArgs<OfServe>,
    #[command(flatten)]
    cassette: CassetteArgs,
}

#[derive(Subcommand)]
enum ServeCommand {
    /// Add, list and remove tokens with names and roles
    #[command(
        after_help = "Examples:\n  lathe serve token add ci --role operator\n  lathe serve token list\n  lathe serve token remove ci"
    )]
    Token(TokenArgs),
}

#[derive(Args)]
struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Subcommand)]
enum TokenCommand {
    /// Make a token; it is shown once
    Add {
        name: String,
        #[arg(long, value_enum, default_value_t = RoleArg::Operator)]
        role: RoleArg,
    },
    /// List names and roles
    List {
        #[arg(long)]
        json: bool,
    },
    /// Remove a token, which stops working at once
    Remove { name: String },
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleArg {
    Viewer,
    Operator,
    Admin,
}

impl ServeArgs {
    /// See [`crate::home_changes::changing_command`].
    pub(crate) fn changing_command(&self) -> Option<&'static str> {
        match &self.command {
            None => Some("lathe serve"),
            Some(ServeCommand::Token(token)) => match token.command {
                TokenCommand::Add { .. } => Some("lathe serve token add"),
                TokenCommand::Remove { .. } => Some("lathe serve token remove"),
                TokenCommand::List { .. } => None,
            },
        }
    }
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Viewer => Role::Viewer,
            RoleArg::Operator => Role::Operator,
            RoleArg::Admin => Role::Admin,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum OnRestartArg {
    Park,
    Resume,
}

pub(crate) async fn serve(home: Home, args: ServeArgs) -> Exit {
    if let Some(ServeCommand::Token(token)) = args.command {
        return run_token_command(&home, token.command);
    }
    let Ok(ip) = args.host.replace("localhost", "127.0.0.1").parse() else {
        return Exit::wrong_usage(&format!(
            "--host {}: give an address, such as 127.0.0.1",
            terminal::clean(&args.host)
        ));
    };
    let options = ServerOptions {
        address: SocketAddr::new(ip, args.port),
        names: args.names,
        roots: args.roots,
        tls: args.tls_cert.zip(args.tls_key).map(|(certificate, key)| TlsFiles { certificate, key }),
        on_restart: match args.on_restart {
            OnRestartArg::Park => OnRestart::Park,
            OnRestartArg::Resume => OnRestart::Resume,
        },
        token: std::env::var("LATHE_SERVE_TOKEN").ok().filter(|token| token.len() >= 32),
    };
    let folder = home.path().to_owned();
    let host = Arc::new(Host::new(home));
    if let Err(exit) = check_rules(&host, &folder, &options.roots) {
        return exit;
    }
    let plans = Arc::new(Configured {
        host: Arc::clone(&host),
        flags: args.options.0,
        cassette: args.cassette.wish(),
        model_hosts: args.model_hosts,
    });
    let bound = match bind(host, plans, options).await {
        Ok(bound) => bound,
        Err(error) => return Exit::wrong_usage(&error_text(&error)),
    };
    // Signals are listened for before the address of the server is announced.
    let stop = first_stop();
    announce(&bound, &folder, args.json, args.open);
    let served = bound.serve(stop).await;
    // The code in the page is worthless now.
    let _ = std::fs::remove_file(folder.join("server/open.html"));
    match served {
        Ok(()) => Exit::Done,
        Err(error) => Exit::failed(&error_text(&error)),
    }
}

fn announce(bound: &BoundServer, home: &Path, as_json: bool, open: bool) {
    let url = bound.url();
    for warning in &bound.warnings {
        terminal::err(&format!("warning: {}\n", terminal::clean(warning)));
    }
    if as_json {
        let left: Vec<String> = bound.unfinished.iter().map(ToString::to_string).collect();
        let address = bound.address.to_string();
        print_json(&json!({ "url": url, "address": address, "token": bound.token, "left": left }));
    } else {
        let language = terminal::language();
        terminal::out_line(&Tell::ServerListens { url: &url }.text(language));
        for id in &bound.unfinished {
            terminal::out_line(&Tell::RunLeft { id: id.as_str() }.text(language));
        }
    }
    if open {
        let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        let page = match bound.opening_url().and_then(|url| opening_page(home, &url)) {
            Ok(page) => page,
            Err(error) => {
                terminal::err(&format!(
                    "warning: no browser is opened, because its first page cannot be written: {error}\n"
                ));
                return;
            }
        };
        let mut command = lathe_host::user_program(opener);
        command.arg(&page).stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        if command.stderr(std::process::Stdio::null()).spawn().is_err() {
            terminal::err(&format!("warning: no browser can be opened here ({opener} is not there)\n"));
        }
    }
}

/// The text of an error of the server, followed by what to do about it.
fn error_text(error: &ServerError) -> String {
    match error {
        ServerError::Host(error) => with_advice(error),
        ServerError::Listen { .. }
        | ServerError::NeedsTls { .. }
        | ServerError::Tls(_)
        | ServerError::File { .. }
        | ServerError::Root { .. }
        | ServerError::HomeInRoot { .. }
        | ServerError::Token(_) => error.to_string(),
    }
}

/// Refuses to start with a configuration or with rules of the user that cannot be used. Those of a served folder only
/// stop sessions in that folder: a user who can write there must not be able to stop the server.
fn check_rules(host: &Host, home: &Path, roots: &[PathBuf]) -> Result<(), Exit> {
    let own = extras_of(host, home)?;
    host.rules().check_rules(home, &own).map_err(|error| Exit::host(&error))?;
    for root in roots {
        let checked = match settle(host, ConfigPlace::folder(root), &GivenOptions::default(), &Absent) {
            Ok(settled) => {
                host.rules().check_rules(root, &settled.extras()).map_err(|error| with_advice(&error))
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = checked {
            let root = terminal::name(&root.display().to_string());
            terminal::err(&format!(
                "warning: no session can be started in {root}: {}\n",
                terminal::clean(&error)
            ));
        }
    }
    Ok(())
}

/// A page that only this user can read and that redirects to the address with a code. Every user of the machine can
/// read a command line, the browser's too, and files are copied and kept.
fn opening_page(home: &Path, url: &str) -> std::io::Result<PathBuf> {
    use std::io::Write as _;
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
    let folder = home.join("server");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let path = folder.join("open.html");
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let to = json_text(&url).replace('<', "\\u003c");
    writeln!(
        file,
        "<!doctype html><meta charset=\"utf-8\"><title>Lathe</title><script>location.replace({to})</script>"
    )?;
    Ok(path)
}

/// Completes with the first signal to stop.
fn first_stop() -> impl Future<Output = ()> + Send + 'static {
    let mut stops = Stops::listen();
    async move {
        stops.next().await;
    }
}

fn run_token_command(home: &Home, command: TokenCommand) -> Exit {
    let done = match command {
        TokenCommand::Add { name, role } => Tokens::add(home.path(), &name, role.into()).map(|token| {
            terminal::err_line(Say::TokenShownOnce.text(terminal::language()));
            terminal::out_line(&token.to_string());
        }),
        TokenCommand::Remove { name } => Tokens::remove(home.path(), &name),
        TokenCommand::List { json: as_json } => Tokens::load(home.path()).map(|tokens| {
            let rows = tokens.rows();
            if as_json {
                print_json(&json!(rows));
            } else if rows.is_empty() {
                terminal::out_line(Say::NoNamedTokens.text(terminal::language()));
            } else {
                rows.iter().for_each(|row| {
                    terminal::out(&format!("{:<9} {}\n", row.role, terminal::name(&row.name)))
                });
            }
        }),
    };
    match done {
        Ok(()) => Exit::Done,
        Err(error) => Exit::wrong_usage(&error.to_string()),
    }
}
