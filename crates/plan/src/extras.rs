//! Additions of the settings to a session: checks, tools of programs, secrets, the project's trusted instructions.

use std::path::{Path, PathBuf};

use lathe_config::{FieldSection, Settings, ValueSource};
use lathe_documents::ServiceOptions;
use lathe_host::{
    Extras, FieldDomain, HostLists, Notices, OnlinePlan, SandboxLimits, ToolDiscovery, trae_trajectories,
    trae_trajectory,
};
use lathe_protocol::ItemKind;
use lathe_tools::CheckRule;

use crate::model::{lakeview, review};
use crate::project::kind;
use crate::settle::{Settled, absolute};

impl Settled {
    /// The trajectory of a run that names no file: as with Trae, it lies below the folder that Lathe was started in.
    /// Its folder is made here, so that it exists before the run and does not count as a change of it.
    pub fn default_trajectory(&self) -> Option<PathBuf> {
        let path = self.uses_trae.then(|| trae_trajectory(&absolute(Path::new("."))))?;
        // If it cannot be created, the error is reported when the file is written.
        let _ = path.parent().map(std::fs::create_dir);
        Some(path)
    }

    /// Additions for a process that writes these files for the user while it works.
    pub(crate) fn extras_with_outputs<'a>(&self, outputs: impl IntoIterator<Item = &'a Path>) -> Extras {
        let mut outputs: Vec<PathBuf> = outputs.into_iter().map(absolute).collect();
        if self.uses_trae && !outputs.is_empty() {
            outputs.extend(trae_trajectories(&absolute(Path::new("."))));
        }
        Extras { outputs, ..self.extras() }
    }

    /// Additions that the user's own files name, and those of the project's that are trusted.
    pub fn extras(&self) -> Extras {
        let mut extras = self.own_extras();
        let fields = self.config.parts.iter().filter(|part| kind(part) == ItemKind::Field);
        extras.project_fields = fields.map(|part| part.name.clone()).collect();
        let Some(inspection) = &self.inspection else { return extras };
        extras.instructions = inspection.instructions();
        for field in &mut extras.fields {
            if let Some(item) = inspection.trusted(ItemKind::Field, &field.name)
                && self.is_projects_field(&field.name)
            {
                field.schemas = Some(item.text.clone());
                field.tools = inspection.root.join(&field.tools);
                field.pins = item.pins.clone();
            }
        }
        for check in &mut extras.checks {
            if let Some(item) = inspection.trusted(ItemKind::Check, &check.glob)
                && self.is_projects_check(&check.glob)
            {
                check.pins = item.pins.clone();
            }
        }
        extras
    }

    /// True if a check stands in the project's file and not in the user's.
    fn is_projects_check(&self, glob: &str) -> bool {
        let keys = [format!("check.{glob}"), format!("check.{glob:?}")];
        let origin = keys.iter().find_map(|key| self.config.origins.get(key));
        origin.is_some_and(|origin| matches!(origin.source, ValueSource::Project(_)))
    }

    /// True if a domain stands in the project's file and not in the user's.
    fn is_projects_field(&self, domain: &str) -> bool {
        let keys = [format!("field.{domain}."), format!("field.{domain:?}.")];
        self.config.origins.iter().any(|(key, origin)| {
            matches!(origin.source, ValueSource::Project(_))
                && keys.iter().any(|table| key.starts_with(table))
        })
    }

    fn own_extras(&self) -> Extras {
        let settings = &self.config.settings;
        let variables = settings.secrets.variables.iter().chain(settings.key_variables());
        let keys = self.config.keys().into_iter().map(|(name, key)| (name, key.expose().to_owned()));
        Extras {
            instructions: Vec::new(),
            outputs: Vec::new(),
            checks: settings.check.clone().into_iter().map(check).collect(),
            check_seconds: settings.run.check_seconds,
            secret_variables: variables.cloned().collect(),
            secret_files: settings.secrets.files.clone(),
            keys: keys.collect(),
            passed_variables: settings.secrets.pass.clone(),
            discovery: settings.tools.discovery_command.clone().map(|discovery_command| ToolDiscovery {
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
            sandbox_limits: sandbox_limits(settings),
            sandbox_hosts: HostLists {
                allow: settings.sandbox.hosts.clone(),
                deny: settings.sandbox.denied_hosts.clone(),
            },
        }
    }
}

/// Limits of the processes in the sandbox.
fn sandbox_limits(settings: &Settings) -> SandboxLimits {
    let sandbox = &settings.sandbox;
    let bytes = |megabytes: u64| megabytes.saturating_mul(1 << 20);
    SandboxLimits {
        memory: sandbox.memory.map(bytes),
        processes: Some(sandbox.processes),
        disk: Some(bytes(sandbox.disk)),
        file: Some(bytes(sandbox.file)),
    }
}

/// The place of documents. Only the user's own files may name a service.
fn online(settings: &Settings) -> OnlinePlan {
    let section = &settings.online;
    let key = section.key_variable.as_ref().and_then(|name| std::env::var(name).ok());
    let service = section.base_url.clone().map(|base_url| ServiceOptions { base_url, key });
    OnlinePlan { enabled: section.enabled, service }
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
