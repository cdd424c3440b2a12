//! `serve`: the server, wired to the configuration.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use lathe_config::{Config, Flag, NamedFile, Source};
use lathe_host::{
    AddressFrom, Attended, CUSTOM_PROVIDER, Extras, Home, Host, ModelRequest, ModelSource, OnlinePlan,
    Overrides, Pace, Reach, SessionPlan, Strictness, same_address,
};
use lathe_protocol::{EndingRule, Mode, ModelChoice, PatchRule, ReviewRule, json_text, listed};
use lathe_server::{Bound, OnRestart, Plans, Role, ServerOptions, TlsFiles, Tokens, Wish, bind};
use serde_json::{Value, json};

use crate::args::ModelArgs;
use crate::endpoints::{KnownEndpoint, endpoints, resumed_source};
use crate::exit::Exit;
use crate::output::print_json;
use crate::settings::{Place, Settled, extras_of, limits, settle_quietly, source, tool_choice, toolset};
use crate::stops::Stops;
use crate::term;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    command: Option<ServeCommand>,
    /// Address to listen on; others than loopback need --tls-cert and --tls-key
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// Port to listen on; 0 for any that is free
    #[arg(long, default_value_t = 8090)]
    port: u16,
    /// Folder that sessions may work in, and what is below it; may be given more than once
    #[arg(long = "root", value_name = "DIR", default_value = ".")]
    roots: Vec<PathBuf>,
    /// A name the server answers to beside its addresses; may be given more than once
    #[arg(long = "name", value_name = "HOST")]
    names: Vec<String>,
    /// Certificate in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its key in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Where a model may be beside the internet and what the configuration names, as HOST:PORT; for addresses that clients
    /// give. May be given more than once
    #[arg(long = "model-host", value_name = "HOST:PORT")]
    model_hosts: Vec<String>,
    /// What becomes of runs that were under way when the last server was killed
    #[arg(long, value_enum, default_value_t = OnRestartArg::Park)]
    on_restart: OnRestartArg,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
    /// Print one line of JSON with the address and the token when ready
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Subcommand)]
enum ServeCommand {
    /// Tokens with names and roles
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
    /// Names and roles
    List {
        #[arg(long)]
        json: bool,
    },
    /// Make a token worthless, at once
    Remove { name: String },
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleArg {
    Viewer,
    Operator,
    Admin,
}

impl ServeArgs {
    /// See [`crate::inside::change`].
    pub(crate) fn change(&self) -> Option<&'static str> {
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
        return tokens(&home, token.command);
    }
    let Ok(ip) = args.host.replace("localhost", "127.0.0.1").parse() else {
        return Exit::wrong_usage(&format!(
            "--host {}: give an address, such as 127.0.0.1",
            term::clean(&args.host)
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
    let plans =
        Arc::new(Configured { host: Arc::clone(&host), model: args.model, model_hosts: args.model_hosts });
    let bound = match bind(host, plans, options).await {
        Ok(bound) => bound,
        Err(error) => return Exit::wrong_usage(&error.to_string()),
    };
    // Listened for before anybody is told that the server is there.
    let stop = stopped();
    announce(&bound, &folder, args.json, args.open);
    let served = bound.serve(stop).await;
    // The code is worth nothing now.
    let _ = std::fs::remove_file(folder.join("server/open.html"));
    match served {
        Ok(()) => Exit::Done,
        Err(error) => Exit::failed(&error.to_string()),
    }
}

fn announce(bound: &Bound, home: &Path, as_json: bool, open: bool) {
    let url = bound.url();
    for warning in &bound.warnings {
        term::err(&format!("warning: {}\n", term::clean(warning)));
    }
    if as_json {
        let left: Vec<String> = bound.left.iter().map(ToString::to_string).collect();
        let address = bound.address.to_string();
        print_json(&json!({ "url": url, "address": address, "token": bound.token, "left": left }));
    } else {
        term::out(&format!(
            "Lathe listens on {url}\nCtrl-C stops it; runs that are under way can be resumed.\n"
        ));
        for id in &bound.left {
            term::out(&format!("A run was under way when the last server ended: {id}\n"));
        }
    }
    if open {
        let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        let page = match bound.opening_url().and_then(|url| opening_page(home, &url)) {
            Ok(page) => page,
            Err(error) => {
                term::err(&format!(
                    "warning: no browser is opened, because its first page cannot be written: {error}\n"
                ));
                return;
            }
        };
        let mut command = std::process::Command::new(opener);
        command.arg(&page).stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        if command.stderr(std::process::Stdio::null()).spawn().is_err() {
            term::err(&format!("warning: no browser can be opened here ({opener} is not there)\n"));
        }
    }
}

/// Refuses to start with a configuration or rules of the user's that cannot be used. Those of a folder that is served only stop sessions in it:
/// whoever can write there must not be able to stop the server.
fn check_rules(host: &Host, home: &Path, roots: &[PathBuf]) -> Result<(), Exit> {
    let own = extras_of(host, home)?;
    host.rules().check_rules(home, &own).map_err(|error| Exit::host(&error))?;
    for root in roots {
        let extras = settle_quietly(host, Place { folder: root, file: None }, Vec::new());
        let checked = match extras {
            Ok(settled) => {
                host.rules().check_rules(root, &settled.extras()).map_err(|error| error.to_string())
            }
            Err(errors) => Err(listed(errors.errors.iter().map(ToString::to_string)).join("; ")),
        };
        if let Err(error) = checked {
            let root = term::name(&root.display().to_string());
            term::err(&format!("warning: no session can be started in {root}: {}\n", term::clean(&error)));
        }
    }
    Ok(())
}

/// A page that only this user can read and that leads to the address with a code: a command line, the browser's too, can be
/// read by every user of the machine, and files are copied and kept.
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

/// Ends with the first signal to stop.
fn stopped() -> impl Future<Output = ()> + Send + 'static {
    let mut stops = Stops::listen();
    async move {
        stops.next().await;
    }
}

fn tokens(home: &Home, command: TokenCommand) -> Exit {
    let done = match command {
        TokenCommand::Add { name, role } => Tokens::add(home.path(), &name, role.into()).map(|token| {
            term::err("This is the only time it is shown:\n");
            term::out(&format!("{token}\n"));
        }),
        TokenCommand::Remove { name } => Tokens::remove(home.path(), &name),
        TokenCommand::List { json: as_json } => Tokens::load(home.path()).map(|tokens| {
            let rows = tokens.rows();
            if as_json {
                print_json(&json!(rows));
            } else if rows.is_empty() {
                term::out(
                    "no token has a name yet: lathe serve token add NAME --role viewer|operator|admin\n",
                );
            } else {
                rows.iter()
                    .for_each(|row| term::out(&format!("{:<9} {}\n", row.role, term::name(&row.name))));
            }
        }),
    };
    match done {
        Ok(()) => Exit::Done,
        Err(error) => Exit::wrong_usage(&error.to_string()),
    }
}

/// Plans made from the configuration files, the flags of `serve` and what a client wishes.
struct Configured {
    host: Arc<Host>,
    model: ModelArgs,
    /// Hosts with ports that clients may name as a model's, wherever they are.
    model_hosts: Vec<String>,
}

impl Configured {
    fn settled(
        &self,
        folder: &Path,
        file: Option<NamedFile<'_>>,
        flags: Vec<Flag>,
    ) -> Result<Settled, String> {
        settle_quietly(&self.host, Place { folder, file }, flags)
            .map_err(|errors| listed(errors.errors.iter().map(ToString::to_string)).join("; "))
    }

    /// What a client wishes, and where it says nothing, the flags of `serve`.
    fn flags(&self, wish: &Wish) -> Vec<Flag> {
        let mut flags = Vec::new();
        let mut flag = |key: &str, value: Option<String>, from: &str| {
            flags.extend(value.map(|value| Flag::new(key, value, from)));
        };
        let ours = &self.model;
        flag("model.provider", wish.provider.clone().or_else(|| ours.provider.clone()), "provider");
        flag("model.name", wish.model.clone().or_else(|| ours.model.clone()), "model");
        // An address and a key of the flags are for the provider of the flags.
        let same = |provider: &String| {
            ours.provider.as_ref().is_some_and(|ours| ours.eq_ignore_ascii_case(provider))
        };
        let ours = wish.provider.as_ref().is_none_or(same).then_some(ours);
        let our_url = ours.and_then(|ours| ours.model_base_url.clone());
        let our_key = ours.and_then(|ours| ours.api_key.clone()).filter(|_| wish.base_url.is_none());
        flag("model.base_url", wish.base_url.clone().or(our_url), "model_base_url");
        flag("model.api_key", wish.api_key.clone().or(our_key), "api_key");
        flag("run.mode", wish.mode.map(|mode| mode.as_str().to_owned()), "mode");
        flag("run.toolset", wish.toolset.map(|set| set.as_str().to_owned()), "toolset");
        flags.extend(wish.max_steps.map(|steps| Flag::new("run.max_steps", steps, "max_steps")));
        flags
    }

    /// What the configuration adds to a session, and how its steps are summed up.
    fn extras(&self, settled: &Settled, wish: &Wish) -> Extras {
        let settings = &settled.config.settings;
        let mut extras = settled.extras();
        extras.lakeview.each_step = wish.lakeview.unwrap_or(extras.lakeview.each_step);
        // A recorded model answers every question itself.
        if self.model.replay.is_some() {
            (extras.lakeview.source, extras.review.source) = (None, None);
        }
        if let Some(wished) = &wish.review {
            let section = &settings.review;
            let rule = ReviewRule {
                rules: wished.rules.clone(),
                gate: wished.gate,
                after_edits: true,
                max_reviews: section.max_reviews,
                max_tokens: section.max_tokens,
            };
            extras.review.rule = (!wished.rules.is_empty()).then_some(rule);
        }
        extras.online.enabled = wish.online.unwrap_or(extras.online.enabled);
        extras.persona.clone_from(&wish.persona);
        extras
    }

    /// Takes from a request every key that its address is not for. What a client names, directly or in a file that it
    /// names and may have written, is an address of the wire; the rest is the owner's.
    fn guard_key(&self, request: &mut ModelRequest, config: &Config, wish: &Wish) {
        let of_file = |key: &str| {
            let source = config.origin(key).map(|origin| &origin.source);
            wish.config_file.is_some()
                && match source {
                    Some(Source::Trae(_)) => true,
                    Some(Source::User(path)) => {
                        wish.config_file.as_ref().is_some_and(|file| file.path == *path)
                    }
                    Some(Source::Default | Source::Project(_) | Source::Environment(_) | Source::Flag(_))
                    | None => false,
                }
        };
        let (url_of_file, key_of_file) = (of_file("model.base_url"), of_file("model.api_key"));
        if let Some(url) = request.base_url.clone().filter(|_| wish.base_url.is_some() || url_of_file) {
            let provider = request.provider.clone().unwrap_or_default();
            let (from, owners) = self.named_address(&provider, &url);
            request.reach = self.reach(&url);
            request.address_from = from;
            let came_with = if wish.base_url.is_some() {
                wish.api_key.is_some()
            } else {
                key_of_file || wish.api_key.is_some()
            };
            request.api_key = request.api_key.take().filter(|_| came_with).or(owners);
            return;
        }
        // `LATHE_BASE_URL` and `LATHE_API_KEY` are for the provider that the owner chose.
        let own = self.settled(&wish.folder, None, self.flags(&Wish::default()));
        let own = own.ok().and_then(|own| own.config.settings.provider_kind().map(str::to_lowercase));
        if wish.provider.is_some() && own != request.provider.as_ref().map(|name| name.to_lowercase()) {
            let is_ours = |key: &str, variable: &str| {
                matches!(config.origin(key).map(|origin| &origin.source),
                    Some(Source::Environment(name)) if name == variable)
            };
            if is_ours("model.base_url", "LATHE_BASE_URL") {
                request.base_url = None;
            }
            if is_ours("model.api_key", "LATHE_API_KEY") && wish.api_key.is_none() {
                request.api_key = None;
            }
        }
    }

    fn cassette(&self) -> Option<ModelSource> {
        let strictness = if self.model.replay_strict { Strictness::Strict } else { Strictness::Lenient };
        let cassette = self.model.replay.clone()?;
        Some(ModelSource::Replay { cassette, pace: Pace::Instant, strictness })
    }
}

impl Plans for Configured {
    fn plan(&self, wish: &Wish) -> Result<SessionPlan, String> {
        let flags = self.flags(wish);
        let file = wish.config_file.as_ref();
        let file = file.map(|file| NamedFile::Read { path: &file.path, text: &file.text });
        let settled = self.settled(&wish.folder, file, flags)?;
        let config = &settled.config;
        let mut tools = tool_choice(&config.settings);
        if !wish.tools.is_empty() {
            tools.core.clone_from(&wish.tools);
        }
        // A client that names a model of its own does not want the server's cassette.
        let names_model = wish.base_url.is_some() || wish.provider.is_some() || wish.model.is_some();
        let cassette = if names_model { None } else { self.cassette() };
        let mut source = cassette.unwrap_or_else(|| source(&ModelArgs::default(), &config.settings));
        if let ModelSource::Ask(request) = &mut source {
            self.guard_key(request, config, wish);
        }
        Ok(SessionPlan {
            own_model: false,
            folder: wish.folder.clone(),
            source,
            mode: config.settings.run.mode.unwrap_or(Mode::Default),
            toolset: toolset(config),
            limits: limits(&config.settings),
            ending: if wish.conversation { EndingRule::EndTurn } else { EndingRule::Remind },
            // `run.must_patch` is about runs; a conversation has a patch only where its client says so.
            patch: (wish.must_patch || config.settings.run.must_patch && !wish.conversation)
                .then_some(PatchRule { must: true, base: None }),
            tools,
            record: None,
            attended: Attended::Person,
            extras: self.extras(&settled, wish),
        })
    }

    fn overrides(&self, folder: &Path, before: &ModelChoice) -> Result<Overrides, String> {
        let settled = self.settled(folder, None, self.flags(&Wish::default()))?;
        let config = &settled.config;
        Ok(Overrides {
            own_model: false,
            source: self
                .cassette()
                .unwrap_or_else(|| resumed_source(&ModelArgs::default(), &config.settings, before)),
            mode: None,
            max_steps: None,
            budget: limits(&config.settings).budget,
            record: None,
            attended: Attended::Person,
            extras: self.extras(&settled, &Wish::default()),
        })
    }

    fn online(&self) -> Result<OnlinePlan, String> {
        // Of the user's own files: where the server stands does not matter.
        Ok(self.settled(self.host.home().path(), None, Vec::new())?.extras().online)
    }

    fn reach(&self, base_url: &str) -> Reach {
        let Some(asked) = place_of(base_url) else { return Reach::Outside };
        let named = self.model_hosts.iter().filter_map(|host| place_of(&format!("http://{host}")));
        // Of the user's own files, wherever the server stands: a project names no addresses.
        let settled = self.settled(self.host.home().path(), None, self.flags(&Wish::default()));
        let settings = settled.ok().map(|settled| settled.config.settings);
        let configured = settings.iter().flat_map(|settings| {
            let kept = settings.providers.values().filter_map(|provider| provider.base_url.as_deref());
            let models = settings.models.values().filter_map(|model| model.base_url.as_deref());
            settings.model.base_url.as_deref().into_iter().chain(kept).chain(models).filter_map(place_of)
        });
        match named.chain(configured).any(|known| known == asked) {
            true => Reach::Anywhere,
            false => Reach::Outside,
        }
    }

    fn named_address(&self, provider: &str, base_url: &str) -> (AddressFrom, Option<String>) {
        // Of the user's own files and the flags of `serve`, wherever the server stands.
        let settled = self.settled(self.host.home().path(), None, self.flags(&Wish::default()));
        let Ok(settings) = settled.map(|settled| settled.config.settings) else {
            return (AddressFrom::Wire, None);
        };
        let provider = if provider.is_empty() { CUSTOM_PROVIDER } else { provider };
        let is_it = |known: &KnownEndpoint| {
            let is_there = |url: &String| same_address(url, base_url) && !settings.foreign.has_address(url);
            known.kind.eq_ignore_ascii_case(provider) && known.model.base_url.as_ref().is_some_and(is_there)
        };
        match endpoints(&settings).into_iter().find(is_it) {
            Some(known) => (AddressFrom::Owner, known.model.api_key.map(|key| key.expose().to_owned())),
            None => (AddressFrom::Wire, None),
        }
    }

    fn settings(&self, folder: &Path) -> Result<Value, String> {
        let config = self.settled(folder, None, self.flags(&Wish::default()))?.config;
        let rows = config.rows();
        let rows = rows
            .iter()
            .map(|row| json!({ "key": row.key, "value": row.value, "source": row.source.to_string() }));
        Ok(rows.collect())
    }
}

/// Host and port of an address, as they are compared.
fn place_of(url: &str) -> Option<(String, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    // Who is named before the host is not compared, so such an address is nobody's.
    if authority.contains('@') {
        return None;
    }
    let usual = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => (authority, usual),
    };
    Some((host.trim_end_matches('.').to_ascii_lowercase(), port))
}
