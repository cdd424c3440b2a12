//! A project's instructions and programs, inspected together with the parts of its configuration.

use std::path::{Path, PathBuf};

use lathe_config::{ConfigPart, TraeValueKind, trae_values};
use lathe_host::{Host, HostError, InspectedItem, ProjectInspection, ProjectPart, shown_setting};
use lathe_protocol::{ItemKind, ItemState};
use serde_json::json;

/// Path of a project's configuration.
pub const PROJECT_FILE: &str = ".lathe/config.toml";

/// Inspects a folder with the parts of its configuration that are known already.
pub fn inspect_folder(
    host: &Host,
    folder: &Path,
    parts: &[ConfigPart],
) -> Result<ProjectInspection, HostError> {
    let parts: Vec<ProjectPart> = parts.iter().map(part).collect();
    let mut inspection = host.rules().inspect_project(folder, &parts)?;
    let dotenv: Vec<String> = inspection.dotenv.iter().map(|(name, _)| name.clone()).collect();
    if let Some(inspected) = &mut inspection.trae {
        // What cannot be shown cannot be trusted; loading the configuration reports what is wrong with it.
        match trae_shows(inspected, &dotenv) {
            Ok(shows) => inspected.item.shows = shows,
            Err(_) => inspection.trae = None,
        }
    }
    Ok(inspection)
}

/// The Trae file of a folder, if it is not trusted.
pub fn untrusted_trae(inspection: &ProjectInspection) -> Option<&InspectedItem> {
    inspection.trae.as_ref().filter(|inspected| inspected.state != ItemState::Trusted)
}

/// The kind of an item that a table of the configuration holds.
pub(crate) fn kind(part: &ConfigPart) -> ItemKind {
    if part.table == "field" { ItemKind::Field } else { ItemKind::Check }
}

fn part(part: &ConfigPart) -> ProjectPart {
    let command = part.value.as_str().or_else(|| part.text("command")).unwrap_or_default();
    ProjectPart {
        kind: kind(part),
        name: part.name.clone(),
        path: PROJECT_FILE.into(),
        value: part.value.to_string(),
        command: command.to_owned(),
        tools: part.text("tools").map(PathBuf::from),
    }
}

/// The values of a Trae file, those first that the user must see; of a key only the name.
fn trae_shows(inspected: &InspectedItem, dotenv: &[String]) -> Result<String, String> {
    let values = trae_values(Path::new(&inspected.item.name), &inspected.text)?;
    let mut lines = Vec::new();
    for (kind, word) in [
        (TraeValueKind::Address, "address"),
        (TraeValueKind::Program, "program"),
        (TraeValueKind::Key, "key"),
        (TraeValueKind::Other, "value"),
    ] {
        for value in values.iter().filter(|value| value.kind == kind) {
            let shown = match value.words.as_slice() {
                [] => "(set)".to_owned(),
                [word] => shown_setting(word),
                words => shown_setting(&json!(words).to_string()),
            };
            lines.push(format!("{word:<8} {} = {shown}", value.key));
        }
        if kind == TraeValueKind::Key {
            lines.extend(dotenv.iter().map(|name| format!("{word:<8} of {name}, in the .env next to it")));
        }
    }
    Ok(lines.join("\n"))
}
