//! Layers into one, from the lowest to the highest.
//!
//! Most keys simply give way to the same key of a higher layer. What belongs together stays together:
//! an entry of `providers` or `mcp_servers` is taken whole from the highest layer that has it, and an
//! address and a key are dropped when a higher layer chooses another provider.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use crate::check::{Leaf, Leaves};
use crate::problem::{Fault, Origin, Problem, Source};
use crate::tree::{Path, spell};

/// What one source said.
pub(crate) struct Layer {
    pub(crate) source: Source,
    pub(crate) leaves: Leaves,
    /// For a Trae file whose provider was refused: the provider its model belongs to.
    pub(crate) made_for: Option<String>,
}

/// The parts of a model that belong to its provider.
const ENDPOINT: [&str; 3] = ["base_url", "api_key", "api_version"];

/// Every layer in one, the lowest first.
pub(crate) fn merge(
    layers: &[Layer],
    env: &dyn Fn(&str) -> Option<String>,
    warnings: &mut Vec<Problem>,
) -> Leaves {
    let mut merged = Leaves::new();
    // Named models and providers first: a layer may name what a higher one describes.
    for layer in layers {
        merge_all_but_model(&mut merged, &layer.leaves);
    }
    for layer in layers {
        merge_model(&mut merged, layer, warnings);
    }
    provider_variables(&mut merged, env);
    merged
}

fn merge_all_but_model(merged: &mut Leaves, leaves: &Leaves) {
    for path in leaves.keys() {
        if let [table, name, ..] = path.as_slice()
            && matches!(table.as_str(), "providers" | "mcp_servers")
        {
            merged.retain(|known, _| !(known.len() > 2 && known[0] == *table && known[1] == *name));
        }
    }
    for (path, leaf) in leaves {
        if let [table, name, key] = path.as_slice()
            && table == "models"
            && key == "provider"
            && merged.get(path).is_some_and(|known| known.value != leaf.value)
        {
            for part in ENDPOINT {
                merged.remove(&[table.clone(), name.clone(), part.to_owned()] as &[String]);
            }
        }
    }
    for (path, leaf) in leaves {
        if path.first().is_some_and(|table| table != "model") {
            let mut leaf = leaf.clone();
            if path.iter().eq(["tools", "exclude"])
                && let (Some(Json::Array(known)), Json::Array(own)) =
                    (merged.get(path).map(|known| &known.value), &mut leaf.value)
            {
                // What one file leaves out no other brings back.
                let more: Vec<Json> = known.iter().filter(|entry| !own.contains(entry)).cloned().collect();
                own.extend(more);
            }
            merged.insert(path.clone(), leaf);
        }
    }
}

fn merge_model(merged: &mut Leaves, layer: &Layer, warnings: &mut Vec<Problem>) {
    let mut own = below(&layer.leaves, &["model"]);
    if let (Some(made_for), Some(chosen)) = (&layer.made_for, text(merged, &["model", "provider"]))
        && *made_for != kind(merged, &chosen)
    {
        if let Some(name) = own.get("name") {
            warnings.push(Problem {
                source: layer.source.clone(),
                line: name.origin.line,
                fault: Fault::Refused {
                    key: "model".to_owned(),
                    reason: format!("it is a model of {made_for}, and your provider is {chosen}"),
                },
            });
        }
        return;
    }
    // A name under `models` stands for all that is written there. Trae's names are resolved already,
    // and what it calls a model may be the name of another entry.
    if !matches!(layer.source, Source::Trae(_))
        && let Some(name) = own.get("name").and_then(|leaf| leaf.value.as_str())
    {
        let mut entry = below(merged, &["models", name]);
        if !entry.is_empty() {
            if entry.contains_key("name") {
                own.remove("name");
            }
            entry.extend(own);
            own = entry;
        }
    }
    if let Some(entry) = legacy_entry(merged, &own) {
        let source = entry
            .values()
            .find_map(|leaf| is_legacy(&leaf.origin.source).then(|| leaf.origin.source.clone()));
        merged.retain(|path, leaf| {
            !(path.first().is_some_and(|table| table == "model")
                && Some(&leaf.origin.source) == source.as_ref())
        });
        // What a variable says still comes before the file.
        let is_said =
            |key: &str| merged.get(&path(&["model", key])).is_some_and(|leaf| !leaf.origin.source.is_file());
        for (key, leaf) in entry {
            if !is_said(&key) {
                own.entry(key).or_insert(leaf);
            }
        }
    }
    if let Some(provider) = own.get("provider").and_then(|leaf| leaf.value.as_str())
        && text(merged, &["model", "provider"]).as_deref() != Some(provider)
    {
        for part in ENDPOINT {
            let path = path(&["model", part]);
            // A variable or flag speaks of whichever provider is chosen; a file of its own.
            if merged.get(&path).is_some_and(|leaf| leaf.origin.source.is_file()) {
                merged.remove(&path);
            }
        }
        let mut entry = below(merged, &["providers", provider]);
        entry.retain(|key, _| ENDPOINT.contains(&key.as_str()));
        entry.extend(own);
        own = entry;
    }
    for (key, leaf) in own {
        let path = path(&["model", &key]);
        // A flag may choose an entry of a file, but a variable still comes before what stands in it.
        let said_higher = merged.get(&path).is_some_and(|known| !known.origin.source.is_file());
        if !(said_higher && leaf.origin.source.is_file() && ENDPOINT.contains(&key.as_str())) {
            merged.insert(path, leaf);
        }
    }
}

/// In the older Trae file a provider and its model are one entry: whoever chooses another provider means
/// that entry, with its model and all its parameters.
fn legacy_entry(merged: &Leaves, own: &BTreeMap<String, Leaf>) -> Option<BTreeMap<String, Leaf>> {
    let provider = own.get("provider")?;
    let name = provider.value.as_str()?;
    if is_legacy(&provider.origin.source) || text(merged, &["model", "provider"]).as_deref() == Some(name) {
        return None;
    }
    let entry = below(merged, &["models", name]);
    entry.values().any(|leaf| is_legacy(&leaf.origin.source)).then_some(entry)
}

fn is_legacy(source: &Source) -> bool {
    matches!(source, Source::Trae(path) if path.extension().is_some_and(|end| end == "json"))
}

/// `<PROVIDER>_API_KEY` and `<PROVIDER>_BASE_URL` of the chosen provider come before every file.
fn provider_variables(merged: &mut Leaves, env: &dyn Fn(&str) -> Option<String>) {
    let Some(provider) = text(merged, &["model", "provider"]) else {
        return;
    };
    let kind = kind(merged, &provider);
    for (key, suffix) in [("api_key", "API_KEY"), ("base_url", "BASE_URL")] {
        let path = path(&["model", key]);
        if merged.get(&path).is_some_and(|leaf| !leaf.origin.source.is_file()) {
            continue;
        }
        let said = [&provider, &kind].into_iter().find_map(|name| {
            let variable = variable(name, suffix);
            let value = env(&variable).filter(|value| !value.is_empty())?;
            Some((variable, value))
        });
        if let Some((variable, value)) = said {
            let origin = Origin { source: Source::Environment(variable), line: None };
            let value = value.into();
            merged.insert(path, Leaf { value, origin });
        }
    }
}

fn variable(provider: &str, suffix: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }
    };
    let name: String = provider.chars().map(plain).collect();
    format!("{name}_{suffix}")
}

/// What a provider is, by its entry.
fn kind(merged: &Leaves, provider: &str) -> String {
    text(merged, &["providers", provider, "provider"]).unwrap_or_else(|| provider.to_owned())
}

/// The direct members of a table.
fn below(leaves: &Leaves, table: &[&str]) -> BTreeMap<String, Leaf> {
    let members = leaves.iter().filter_map(|(path, leaf)| {
        let (key, parents) = path.split_last()?;
        let inside = parents.iter().map(String::as_str).eq(table.iter().copied());
        inside.then(|| (key.clone(), leaf.clone()))
    });
    members.collect()
}

fn text(leaves: &Leaves, key: &[&str]) -> Option<String> {
    leaves.get(&path(key))?.value.as_str().map(str::to_owned)
}

fn path(parts: &[&str]) -> Path {
    parts.iter().map(|part| (*part).to_owned()).collect()
}

/// The values as one JSON object, as the sections read them.
pub(crate) fn object(leaves: &Leaves) -> Json {
    let mut root = Map::new();
    for (path, leaf) in leaves {
        put(&mut root, path, &leaf.value);
    }
    Json::Object(root)
}

fn put(table: &mut Map<String, Json>, path: &[String], value: &Json) {
    match path {
        [] => {}
        [key] => {
            table.insert(key.clone(), value.clone());
        }
        [key, rest @ ..] => {
            let inner = table.entry(key.clone()).or_insert_with(|| Json::Object(Map::new()));
            // The schema gives a key one shape, so a table never meets a value here.
            if let Json::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

/// Where each value came from, by its whole key.
pub(crate) fn origins(leaves: &Leaves) -> BTreeMap<String, Origin> {
    let origins = leaves.iter().map(|(path, leaf)| (spell(path), leaf.origin.clone()));
    origins.collect()
}
