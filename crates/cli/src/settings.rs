//! From the command line to settings: flags over environment over files, each value with its source.

use std::path::{Path, PathBuf};

use lathe_config::{
    Config, ConfigErrors, FieldSection, Flag, Inputs, NamedFile, Origin, Part, Problem, ProjectFiles, Secret,
    Settings, Source, TrustedTrae, load, trae_show_config,
};
use lathe_host::{
    AddressFrom, CheckRule, Discovery, Extras, FieldDomain, Host, HostError, ItemKind, LakeviewPlan,
    ModelRequest, ModelSource, Notices, OnlinePlan, Pace, ProjectLook, ReviewPlan, ServiceOptions,
    Strictness, check_tool_entry, provider_names, shown_setting, trae_trajectories, trae_trajectory,
    unread_ignore_file,
};
use lathe_protocol::{Limits, Mode, ReviewRule, ToolChoice, Toolset, listed};
use serde_json::json;

use crate::args::{AgentArg, ConfigShowArgs, ConsoleArg, ModeArg, ModelArgs, ShowConfigArgs, ToolsetArg};
use crate::exit::Exit;
use crate::models::{self, LimitArgs};
use crate::output::print_json;
use crate::term;
use crate::trust::{self, Asking, PROJECT_FILE};

/// What of the command line is settings.
#[derive(Default)]
pub(crate) struct Given<'a> {
    pub(crate) model: Option<&'a ModelArgs>,
    pub(crate) max_steps: Option<u32>,
    pub(crate) limits: Option<&'a LimitArgs>,
    pub(crate) mode: Option<ModeArg>,
    pub(crate) toolset: Option<ToolsetArg>,
    /// Tools that are allowed without asking.
    pub(crate) allowed: &'a [String],
    pub(crate) must_patch: bool,
    pub(crate) patch_path: Option<&'a Path>,
    pub(crate) trajectory: Option<&'a Path>,
}

impl Given<'_> {
    fn flags(&self) -> Vec<Flag> {
        let mut flags = Vec::new();
        let mut text = |key: &str, value: Option<String>, flag: &str| {
            flags.extend(value.map(|value| Flag::new(key, value, flag)));
        };
        if let Some(model) = self.model {
            text("model.provider", model.provider.clone(), "--provider");
            text("model.name", model.model.clone(), "--model");
            text("model.base_url", model.model_base_url.clone(), "--model-base-url");
            text("model.api_key", model.api_key.clone(), "--api-key");
        }
        text("run.mode", self.mode.map(|mode| Mode::from(mode).as_str().to_owned()), "--mode");
        text("run.toolset", self.toolset.map(|set| Toolset::from(set).as_str().to_owned()), "--toolset");
        text("run.patch_path", self.patch_path.map(|path| path.display().to_string()), "--patch-path");
        text("run.trajectory", self.trajectory.map(|path| path.display().to_string()), "--trajectory-file");
        flags.extend(self.max_steps.map(|steps| Flag::new("run.max_steps", steps, "--max-steps")));
        if let Some(limits) = self.limits {
            flags.extend(limits.flags());
        }
        if !self.allowed.is_empty() {
            flags.push(Flag::new("tools.allowed", json!(self.allowed), "--allowed-tools"));
        }
        if self.must_patch {
            flags.push(Flag::new("run.must_patch", true, "--must-patch"));
        }
        flags
    }
}

/// Where settings are looked for.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) folder: &'a Path,
    /// What `--config-file` names.
    pub(crate) file: Option<NamedFile<'a>>,
}

impl Place<'_> {
    /// Tells whether the user names a configuration file, so that one that stands in the folder does not count.
    fn names_a_file(&self) -> bool {
        self.file.is_some() || std::env::var_os("TRAE_CONFIG_FILE").is_some_and(|path| !path.is_empty())
    }
}

/// Settings, with what of the project's own words and programs may be used.
pub(crate) struct Settled {
    pub(crate) config: Config,
    /// None where there is no folder to look at.
    look: Option<ProjectLook>,
    /// True if a Trae file counts, because it was named or is trusted.
    uses_trae: bool,
}

/// Reads everything there is to read for a folder, for what uses nothing of a project's that needs trust.
pub(crate) fn settings(
    host: &Host,
    folder: &Path,
    file: Option<&Path>,
    given: &Given<'_>,
) -> Result<Config, Exit> {
    settle(host, Place { folder, file: file.map(NamedFile::Path) }, given, Asking::Tell)
        .map(|settled| settled.config)
}

/// Reads everything there is to read for a folder and finds out what of the project's is trusted. Warnings go to standard
/// error; errors end the program.
pub(crate) fn settle(
    host: &Host,
    place: Place<'_>,
    given: &Given<'_>,
    asking: Asking,
) -> Result<Settled, Exit> {
    tell_unread_rules(host);
    if let Some(words) = unread_ignore_file(place.folder) {
        term::err(&format!("warning: {}\n", term::clean(&words)));
    }
    let first = load_from(host, place, given.flags(), &Trusted::default());
    let parts = first.as_ref().map(|config| config.parts.clone()).unwrap_or_default();
    let look = match trust::look_at(host, place.folder, &parts) {
        Ok(look) => Some(trust::decide(host, look, asking).map_err(|error| Exit::host(&error))?),
        // Whoever works there will say so.
        Err(HostError::Folder { .. }) => None,
        Err(error) => return Err(Exit::host(&error)),
    };
    let trusted = Trusted::of(parts, look.as_ref());
    // What was looked at is what is loaded: an entry that changed meanwhile is another one.
    let loaded = if trusted.is_empty() { first } else { load_from(host, place, given.flags(), &trusted) };
    let untrusted = look.as_ref().filter(|_| !place.names_a_file()).and_then(trust::untrusted_trae);
    said(loaded, untrusted).map(|config| Settled::new(config, look, place))
}

/// The same, for those who say themselves what is wrong. Only what is in the book is trusted: nobody is asked.
pub(crate) fn settle_quietly(
    host: &Host,
    place: Place<'_>,
    flags: Vec<Flag>,
) -> Result<Settled, ConfigErrors> {
    let first = load_from(host, place, flags.clone(), &Trusted::default())?;
    let look = trust::look_at(host, place.folder, &first.parts).ok();
    let trusted = Trusted::of(first.parts.clone(), look.as_ref());
    let config = if trusted.is_empty() { first } else { load_from(host, place, flags, &trusted)? };
    Ok(Settled::new(config, look, place))
}

/// The additions of a folder's configuration, for commands that say nothing else about it. A configuration that cannot
/// be used ends the program.
pub(crate) fn extras_of(host: &Host, folder: &Path) -> Result<Extras, Exit> {
    settle_or_tell(host, folder).map(|settled| settled.extras())
}

/// All of a folder's configuration, in the same way.
pub(crate) fn settle_or_tell(host: &Host, folder: &Path) -> Result<Settled, Exit> {
    tell_unread_rules(host);
    settle_quietly(host, Place { folder, file: None }, Vec::new()).map_err(|errors| {
        tell("Error", &errors.errors);
        Exit::Usage
    })
}

/// Tells of files in the folder of rules that are not read, in one line.
pub(crate) fn tell_unread_rules(host: &Host) {
    let unread = host.rules().unread_rules();
    if unread.is_empty() {
        return;
    }
    let names: Vec<String> = unread.iter().map(|path| path.display().to_string()).collect();
    let (are, names) = (if names.len() == 1 { "is" } else { "are" }, listed(names).join(", "));
    term::err(&format!(
        "warning: {} {are} not read: the name of a file of rules ends in .toml\n",
        term::clean(&names)
    ));
}

/// The parts of a project's configuration that the user trusts, as they were looked at.
#[derive(Default)]
struct Trusted {
    parts: Vec<Part>,
    trae: Option<TrustedFile>,
}

/// A Trae file with the keys of the `.env` beside it.
struct TrustedFile {
    name: String,
    text: String,
    keys: Vec<(String, Secret)>,
}

impl Trusted {
    fn of(parts: Vec<Part>, look: Option<&ProjectLook>) -> Self {
        let Some(look) = look else { return Self::default() };
        let is_trusted = |part: &Part| look.trusted(trust::kind(part), &part.name).is_some();
        let keys = look.dotenv.iter().map(|(name, key)| (name.clone(), Secret::new(key.clone())));
        let trae = look.trusted_trae().map(|looked| TrustedFile {
            name: looked.item.name.clone(),
            text: looked.text.clone(),
            keys: keys.collect(),
        });
        Self { parts: parts.into_iter().filter(is_trusted).collect(), trae }
    }

    fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.trae.is_none()
    }
}

fn load_from(
    host: &Host,
    place: Place<'_>,
    flags: Vec<Flag>,
    trusted: &Trusted,
) -> Result<Config, ConfigErrors> {
    let known_providers = provider_names();
    let trae = trusted.trae.as_ref().map(|file| (place.folder.join(&file.name), file));
    let trusted_trae =
        trae.as_ref().map(|(path, file)| TrustedTrae { path, text: &file.text, keys: &file.keys });
    let project = ProjectFiles::new(place.folder, host.home().path());
    load(Inputs {
        user_file: Some(host.home().config()),
        project_file: Some(place.folder.join(PROJECT_FILE)),
        config_file: place.file,
        trae_file: Some(place.folder.join("trae_config.yaml")),
        project: &project,
        trusted_trae,
        trusted: &trusted.parts,
        env: &|name| std::env::var(name).ok().filter(|value| !value.is_empty()),
        known_providers: &known_providers,
        check_tool: &check_tool_entry,
        flags,
    })
}

/// Tells what is wrong. A Trae file that is not trusted is told of in one line, whatever it says.
fn said(loaded: Result<Config, ConfigErrors>, untrusted: Option<String>) -> Result<Config, Exit> {
    if let Some(line) = &untrusted {
        term::err(line);
    }
    let told = |warnings: &[Problem]| {
        let others = warnings.iter().filter(|warning| untrusted.is_none() || !is_of_trae(warning));
        tell("warning", others);
    };
    match loaded {
        Ok(config) => {
            told(&config.warnings);
            Ok(config)
        }
        Err(errors) => {
            told(&errors.warnings);
            tell("Error", &errors.errors);
            Err(Exit::Usage)
        }
    }
}

fn is_of_trae(problem: &Problem) -> bool {
    matches!(problem.source, Source::Trae(_))
}

fn tell<'a>(word: &str, problems: impl IntoIterator<Item = &'a Problem>) {
    for problem in listed(problems.into_iter().map(ToString::to_string)) {
        term::err(&format!("{word}: {}\n", term::clean(&problem)));
    }
}

/// Says which of Trae's flags change nothing here.
pub(crate) fn tell_idle_flags(console: Option<ConsoleArg>, agent: Option<AgentArg>) {
    let console = match console {
        Some(ConsoleArg::Rich) => Some("--console-type rich"),
        Some(ConsoleArg::Simple) | None => None,
    };
    let agent = agent.map(|AgentArg::TraeAgent| "--agent-type");
    let idle: Vec<&str> = console.into_iter().chain(agent).collect();
    if !idle.is_empty() {
        let flags = idle.join(" and ");
        let change = if idle.len() == 1 { "changes" } else { "change" };
        term::err(&format!(
            "note: {flags} {change} nothing: this version has one console and one kind of agent\n"
        ));
    }
}

/// Who is asked: the model of the settings, or a cassette.
pub(crate) fn source(args: &ModelArgs, settings: &Settings) -> ModelSource {
    let strictness = if args.replay_strict { Strictness::Strict } else { Strictness::Lenient };
    let key = settings.foreign.key_of(&settings.model);
    let address_from = match settings.foreign.has_address_of(&settings.model) {
        true => AddressFrom::Project,
        false => AddressFrom::Owner,
    };
    match &args.replay {
        Some(cassette) => ModelSource::Replay { cassette: cassette.clone(), pace: Pace::Instant, strictness },
        None => ModelSource::Ask(ModelRequest {
            provider: settings.provider_kind().map(str::to_owned),
            model: settings.model.name.clone(),
            base_url: settings.model.base_url.clone(),
            address_from,
            api_key: key.map(|key| key.expose().to_owned()),
            api_version: settings.model.api_version.clone(),
            outage: models::outage(settings.run.on_outage),
            ..models::request(&settings.model)
        }),
    }
}

/// How steps are summed up, where somebody may ask for it.
fn lakeview(settings: &Settings) -> LakeviewPlan {
    let usual = LakeviewPlan::default();
    LakeviewPlan {
        source: beside(settings, settings.lakeview.model.as_deref()),
        max_tokens: settings.lakeview.max_tokens.unwrap_or(usual.max_tokens),
        each_step: settings.lakeview.enabled,
    }
}

/// A model that is asked beside the conversation; none if it is that of the task.
fn beside(settings: &Settings, name: Option<&str>) -> Option<ModelSource> {
    let model = settings.model_beside(name?);
    Some(source(&ModelArgs::default(), &Settings { model, ..settings.clone() }))
}

/// How edits are judged.
pub(crate) fn review(settings: &Settings) -> ReviewPlan {
    let section = &settings.review;
    let rule = ReviewRule {
        rules: section.rules.clone(),
        gate: section.gate,
        after_edits: true,
        max_reviews: section.max_reviews,
        max_tokens: section.max_tokens,
    };
    ReviewPlan {
        rule: (section.enabled && !section.rules.trim().is_empty()).then_some(rule),
        source: beside(settings, section.model.as_deref()),
    }
}

/// Where documents are kept. Only the user's own files may name a service.
fn online(settings: &Settings) -> OnlinePlan {
    let section = &settings.online;
    let key = section.key_variable.as_ref().and_then(|name| std::env::var(name).ok());
    let service = section.base_url.clone().map(|base_url| ServiceOptions { base_url, key });
    OnlinePlan { enabled: section.enabled, service }
}

/// Tells what was noticed about tools when they were found.
pub(crate) fn tell_notices(notices: &Notices) {
    for words in notices.take() {
        term::err(&format!("warning: {}\n", term::clean(&words)));
    }
}

/// The tools that were asked for.
pub(crate) fn tool_choice(settings: &Settings) -> ToolChoice {
    ToolChoice {
        core: settings.run.tools.clone().unwrap_or_default(),
        exclude: settings.tools.exclude.clone(),
    }
}

impl Settled {
    fn new(config: Config, look: Option<ProjectLook>, place: Place<'_>) -> Self {
        let is_trusted = look.as_ref().is_some_and(|look| look.trusted_trae().is_some());
        let is_of_trae = |origin: &Origin| matches!(origin.source, Source::Trae(_));
        let uses_trae = (place.names_a_file() || is_trusted) && config.origins.values().any(is_of_trae);
        Self { config, look, uses_trae }
    }

    /// The trajectory of a run for which no file is named: as with Trae, it stands in the folder of the start. Its folder is
    /// made here, so that it is there before the run and is not taken for a change of it.
    pub(crate) fn usual_trajectory(&self) -> Option<PathBuf> {
        let path = self.uses_trae.then(|| trae_trajectory(&absolute(Path::new("."))))?;
        // One that cannot be made is told when the file cannot be written.
        let _ = path.parent().map(std::fs::create_dir);
        Some(path)
    }

    /// The same, for a process that writes files for the user while it works.
    pub(crate) fn extras_beside<'a>(
        &self,
        outputs: impl IntoIterator<Item = &'a Path>,
        model: &ModelArgs,
    ) -> Extras {
        let mut outputs: Vec<PathBuf> = outputs.into_iter().map(absolute).collect();
        if self.uses_trae {
            outputs.extend(trae_trajectories(&absolute(Path::new("."))));
        }
        let mut extras = Extras { outputs, ..self.extras() };
        // A recorded model answers every question itself.
        if model.replay.is_some() {
            (extras.lakeview.source, extras.review.source) = (None, None);
        }
        extras
    }

    /// What the user's own files name, and what is trusted of the project's.
    pub(crate) fn extras(&self) -> Extras {
        let mut extras = extras(&self.config);
        let fields = self.config.parts.iter().filter(|part| trust::kind(part) == ItemKind::Field);
        extras.project_fields = fields.map(|part| part.name.clone()).collect();
        let Some(look) = &self.look else { return extras };
        extras.instructions = look.instructions();
        for field in &mut extras.fields {
            if let Some(looked) = look.trusted(ItemKind::Field, &field.name)
                && self.is_projects(&field.name)
            {
                field.schemas = Some(looked.text.clone());
                field.tools = look.root.join(&field.tools);
                field.pins = looked.pins.clone();
            }
        }
        for check in &mut extras.checks {
            if let Some(looked) = look.trusted(ItemKind::Check, &check.glob)
                && self.is_projects_check(&check.glob)
            {
                check.pins = looked.pins.clone();
            }
        }
        extras
    }

    /// Whether a check stands in the project's file and not in the user's.
    fn is_projects_check(&self, glob: &str) -> bool {
        let keys = [format!("check.{glob}"), format!("check.{glob:?}")];
        let origin = keys.iter().find_map(|key| self.config.origins.get(key));
        origin.is_some_and(|origin| matches!(origin.source, Source::Project(_)))
    }

    /// Whether a domain stands in the project's file and not in the user's.
    fn is_projects(&self, domain: &str) -> bool {
        let keys = [format!("field.{domain}."), format!("field.{domain:?}.")];
        self.config.origins.iter().any(|(key, origin)| {
            matches!(origin.source, Source::Project(_)) && keys.iter().any(|table| key.starts_with(table))
        })
    }
}

fn extras(config: &Config) -> Extras {
    let settings = &config.settings;
    Extras {
        instructions: Vec::new(),
        outputs: Vec::new(),
        checks: settings.check.clone().into_iter().map(check).collect(),
        check_seconds: settings.run.check_seconds,
        secret_variables: settings
            .secrets
            .variables
            .iter()
            .chain(settings.key_variables())
            .cloned()
            .collect(),
        secret_files: settings.secrets.files.clone(),
        keys: config.keys().into_iter().map(|(name, key)| (name, key.expose().to_owned())).collect(),
        passed_variables: settings.secrets.pass.clone(),
        discovery: settings.tools.discovery_command.clone().map(|discovery_command| Discovery {
            discovery_command,
            call_command: settings.tools.call_command.clone(),
            call_seconds: settings.tools.call_seconds,
        }),
        fields: settings.field.iter().map(field).collect(),
        project_fields: Vec::new(),
        replica: None,
        exclude: settings.tools.exclude.clone(),
        core: settings.run.tools.clone().unwrap_or_default(),
        allowed: settings.tools.allowed.clone(),
        notices: Notices::default(),
        lakeview: lakeview(settings),
        review: review(settings),
        persona: None,
        online: online(settings),
    }
}

fn check((glob, command): (String, String)) -> CheckRule {
    CheckRule { glob, command, pins: Vec::new() }
}

fn field((name, section): (&String, &FieldSection)) -> FieldDomain {
    FieldDomain {
        name: name.clone(),
        about: section.about.clone(),
        tools: section.tools.clone(),
        schemas: None,
        command: section.command.clone(),
        pins: Vec::new(),
        seconds: section.seconds,
    }
}

/// The toolset that was asked for. A Trae file's user gets Trae's; nobody's word leaves the choice to a cassette.
pub(crate) fn toolset(config: &Config) -> Option<Toolset> {
    let from = |key: &str| config.origin(key).map(|origin| &origin.source);
    match (from("run.toolset"), from("run.tools")) {
        (None | Some(Source::Default), Some(Source::Trae(_))) => Some(Toolset::Trae),
        (None | Some(Source::Default), _) => None,
        (Some(_), _) => Some(config.settings.run.toolset),
    }
}

pub(crate) fn limits(settings: &Settings) -> Limits {
    settings.run.limits()
}

/// A path of the command line, from where the user stands.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// `config show`: every value with its source.
pub(crate) fn config_show(host: &Host, args: &ConfigShowArgs) -> Exit {
    let config = match settings(host, &args.working_dir, args.config_file.as_deref(), &Given::default()) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let rows = config.rows();
    if args.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|row| json!({ "key": row.key, "value": shown_setting(&row.value), "source": row.source.to_string() }))
            .collect();
        print_json(&json!(rows));
        return Exit::Done;
    }
    let width = rows.iter().map(|row| row.key.chars().count()).max().unwrap_or(0);
    for row in rows {
        let (key, value) = (term::clean(&row.key), term::clean(&shown_setting(&row.value)));
        term::out(&format!("{key:<width$}  {value}  ({})\n", term::clean(&row.source.to_string())));
    }
    Exit::Done
}

/// `config check`: only what is wrong.
pub(crate) fn config_check(host: &Host, args: &ConfigShowArgs) -> Exit {
    let place = Place { folder: &args.working_dir, file: args.config_file.as_deref().map(NamedFile::Path) };
    if let Ok(settled) = settle_quietly(host, place, Vec::new())
        && let Err(error) = host.rules().check_session(&args.working_dir, &settled.extras())
    {
        return Exit::host(&error);
    }
    match settings(host, &args.working_dir, args.config_file.as_deref(), &Given::default()) {
        Ok(config) if has_wrong_checks(&config) => Exit::Usage,
        Ok(config) if config.warnings.is_empty() => {
            term::out("the configuration is good\n");
            Exit::Done
        }
        Ok(config) => {
            // What the one line about a Trae file leaves out.
            if !place.names_a_file() && is_untrusted(host, &args.working_dir) {
                tell("warning", config.warnings.iter().filter(|warning| is_of_trae(warning)));
            }
            Exit::Done
        }
        Err(exit) => exit,
    }
}

/// Tells whether a folder has a Trae file that is not trusted.
fn is_untrusted(host: &Host, folder: &Path) -> bool {
    trust::look_at(host, folder, &[]).is_ok_and(|look| trust::untrusted_trae(&look).is_some())
}

/// Whether a rule of `[check]` cannot be used; each is said, with its file and line.
fn has_wrong_checks(config: &Config) -> bool {
    let mut wrong = false;
    for (glob, command) in &config.settings.check {
        let Some(reason) = Extras::wrong_check(glob, command) else { continue };
        wrong = true;
        let origin = config.origins.iter().find(|(key, _)| key.starts_with("check.") && key.contains(glob));
        let place = origin.map_or("the configuration".to_owned(), |(_, origin)| origin.to_string());
        term::err(&format!("Error: {}\n", term::clean(&format!("{place}: `check` {glob:?}: {reason}"))));
    }
    wrong
}

/// Trae's `show-config`.
pub(crate) fn show_config(host: &Host, args: &ShowConfigArgs) -> Exit {
    let given = Given { model: Some(&args.model), max_steps: args.max_steps, ..Given::default() };
    match settings(host, Path::new("."), args.config_file.as_deref(), &given) {
        Ok(config) => {
            term::out(&trae_show_config(&config));
            Exit::Done
        }
        Err(exit) => exit,
    }
}
