//! Settings of a folder: options over environment over files, with the trusted parts of the project.

use std::path::{Path, PathBuf};

use lathe_config::{
    Config, ConfigErrors, ConfigPart, Flag, Inputs, NamedFile, Origin, Problem, ProjectFiles, Secret,
    TrustedTrae, ValueSource, load,
};
use lathe_host::{Host, HostError, ProjectInspection, provider_names, unread_ignore_file};
use lathe_protocol::{Limits, ToolChoice, Toolset, list_warnings};

use crate::given::GivenOptions;
use crate::project::{PROJECT_FILE, inspect_folder, kind, untrusted_trae};

/// The user as the planner needs one: decides about what is not trusted yet, and reads warnings.
pub trait Person {
    /// Decides about items of the project that have no decision yet. The inspection that it returns says what is
    /// used.
    fn decide(&self, host: &Host, inspection: ProjectInspection) -> Result<ProjectInspection, HostError>;
    fn warn(&self, warning: &str);
    /// Reports that the providers of a Trae file are not used, and how to trust them.
    fn report_untrusted_trae(&self, inspection: &ProjectInspection);
}

/// No question and no message: only what was trusted before counts.
pub struct Absent;

impl Person for Absent {
    fn decide(&self, _: &Host, inspection: ProjectInspection) -> Result<ProjectInspection, HostError> {
        Ok(inspection)
    }

    fn warn(&self, _: &str) {}

    fn report_untrusted_trae(&self, _: &ProjectInspection) {}
}

/// The place from which settings are read.
#[derive(Clone, Copy)]
pub struct ConfigPlace<'a> {
    pub folder: &'a Path,
    /// The configuration file that was named.
    pub file: Option<NamedFile<'a>>,
}

impl<'a> ConfigPlace<'a> {
    pub fn folder(folder: &'a Path) -> Self {
        Self { folder, file: None }
    }

    /// A folder, with the file that a user named if there is one.
    pub fn with_file(folder: &'a Path, file: Option<&'a Path>) -> Self {
        Self { folder, file: file.map(NamedFile::Path) }
    }

    /// Tells whether the user names a configuration file, so that one in the folder does not count.
    pub fn names_a_file(&self) -> bool {
        self.file.is_some() || std::env::var_os("TRAE_CONFIG_FILE").is_some_and(|path| !path.is_empty())
    }
}

/// The reason why the settings could not be made.
#[derive(Debug)]
pub enum SettleError {
    Config(ConfigErrors),
    Host(HostError),
}

impl std::fmt::Display for SettleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Config(errors) => {
                f.write_str(&list_warnings(errors.errors.iter().map(ToString::to_string)).join("; "))
            }
            Self::Host(error) => error.fmt(f),
        }
    }
}

/// Settings, with the instructions and programs of the project that may be used.
pub struct Settled {
    pub config: Config,
    /// None where there is no folder to inspect.
    pub(crate) inspection: Option<ProjectInspection>,
    /// True if a Trae file counts, because it was named or is trusted.
    pub(crate) uses_trae: bool,
}

/// Reads all settings of a folder and determines which items of the project are trusted.
pub fn settle(
    host: &Host,
    place: ConfigPlace<'_>,
    given: &GivenOptions,
    person: &dyn Person,
) -> Result<Settled, SettleError> {
    warn_of_unread_files(host, place.folder, person);
    let first = load_from(host, place, given.flags(), &Trusted::default());
    let parts = first.as_ref().map(|config| config.parts.clone()).unwrap_or_default();
    let inspection = match inspect_folder(host, place.folder, &parts) {
        Ok(inspection) => Some(person.decide(host, inspection).map_err(SettleError::Host)?),
        // The session reports it when it works there.
        Err(HostError::Folder { .. }) => None,
        Err(error) => return Err(SettleError::Host(error)),
    };
    let trusted = Trusted::of(parts, inspection.as_ref());
    // Only the inspected entry is loaded: one that changed meanwhile is a different entry.
    let loaded = if trusted.is_empty() { first } else { load_from(host, place, given.flags(), &trusted) };
    let untrusted = inspection
        .as_ref()
        .filter(|inspection| !place.names_a_file() && untrusted_trae(inspection).is_some());
    if let Some(inspection) = untrusted {
        person.report_untrusted_trae(inspection);
    }
    // An untrusted Trae file is reported in one line, regardless of its content.
    let warnings = match &loaded {
        Ok(config) => &config.warnings,
        Err(errors) => &errors.warnings,
    };
    let reported = warnings.iter().filter(|warning| untrusted.is_none() || !is_of_trae(warning));
    list_warnings(reported.map(ToString::to_string)).iter().for_each(|warning| person.warn(warning));
    let config = loaded.map_err(SettleError::Config)?;
    Ok(Settled::new(config, inspection, place))
}

/// Tells whether a problem is one of a Trae file.
pub(crate) fn is_of_trae(problem: &Problem) -> bool {
    matches!(problem.source, ValueSource::Trae(_))
}

/// Warns of files with rules that are not read, in one line each.
fn warn_of_unread_files(host: &Host, folder: &Path, person: &dyn Person) {
    let unread = [unread_rules(host), unread_ignore_file(folder)];
    unread.iter().flatten().for_each(|words| person.warn(words));
}

/// A sentence about the files in the folder of rules that are not read, if there are any.
pub fn unread_rules(host: &Host) -> Option<String> {
    let unread = host.rules().unread_rules();
    let names: Vec<String> = unread.iter().map(|path| path.display().to_string()).collect();
    let are = if names.len() == 1 { "is" } else { "are" };
    (!names.is_empty()).then(|| {
        format!(
            "{} {are} not read: the name of a file of rules ends in .toml",
            list_warnings(names).join(", ")
        )
    })
}

/// The parts of a project's configuration that the user trusts, as they were when inspected.
#[derive(Default)]
struct Trusted {
    parts: Vec<ConfigPart>,
    trae: Option<TrustedFile>,
}

/// A Trae file with the keys of the `.env` next to it.
struct TrustedFile {
    name: String,
    text: String,
    keys: Vec<(String, Secret)>,
}

impl Trusted {
    fn of(parts: Vec<ConfigPart>, inspection: Option<&ProjectInspection>) -> Self {
        let Some(inspection) = inspection else { return Self::default() };
        let is_trusted = |part: &ConfigPart| inspection.trusted(kind(part), &part.name).is_some();
        let keys = inspection.dotenv.iter().map(|(name, key)| (name.clone(), Secret::new(key.clone())));
        let trae = inspection.trusted_trae().map(|item| TrustedFile {
            name: item.item.name.clone(),
            text: item.text.clone(),
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
    place: ConfigPlace<'_>,
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
        check_tool: &lathe_tools::check_entry,
        flags,
    })
}

impl Settled {
    fn new(config: Config, inspection: Option<ProjectInspection>, place: ConfigPlace<'_>) -> Self {
        let is_trusted = inspection.as_ref().is_some_and(|inspection| inspection.trusted_trae().is_some());
        let is_of_trae = |origin: &Origin| matches!(origin.source, ValueSource::Trae(_));
        let uses_trae = (place.names_a_file() || is_trusted) && config.origins.values().any(is_of_trae);
        Self { config, inspection, uses_trae }
    }

    /// The toolset that was requested. A user of a Trae file gets Trae's; none leaves the choice to a cassette.
    pub fn toolset(&self) -> Option<Toolset> {
        let from = |key: &str| self.config.origin(key).map(|origin| &origin.source);
        match (from("run.toolset"), from("run.tools")) {
            (None | Some(ValueSource::Default), Some(ValueSource::Trae(_))) => Some(Toolset::Trae),
            (None | Some(ValueSource::Default), _) => None,
            (Some(_), _) => Some(self.config.settings.run.toolset),
        }
    }

    /// The tools that were requested.
    pub fn tool_choice(&self) -> ToolChoice {
        let settings = &self.config.settings;
        ToolChoice {
            core: settings.run.tools.clone().unwrap_or_default(),
            exclude: settings.tools.exclude.clone(),
        }
    }

    pub fn limits(&self) -> Limits {
        self.config.settings.run.limits()
    }

    /// Warnings about a Trae file. They are not reported one by one if it is not trusted.
    pub fn trae_warnings(&self) -> impl Iterator<Item = &Problem> {
        self.config.warnings.iter().filter(|warning| is_of_trae(warning))
    }
}

/// A path of the command line, from the current folder.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
