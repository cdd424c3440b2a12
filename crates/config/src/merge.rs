//! Layers into one, from the lowest to the highest.
//!
//! Most keys simply give way to the same key of a higher layer. What belongs together stays together:
//! an entry of `providers` or `mcp_servers` is taken whole from the highest layer that has it, and an
//! address and a key are dropped when a higher layer chooses another provider. A project's layer only narrows
//! what the layers below it allow.

use std::collections::BTreeMap;

use lathe_protocol::plain_address;
use serde_json::{Map, Value as Json};

use crate::check::{Leaf, Leaves};
use crate::problem::{ConfigFault, Origin, Problem, ValueSource};
use crate::schema::fixed_keys;
use crate::tree::{KeyPath, spell};

/// The values of one source.
pub(crate) struct Layer {
    pub(crate) source: ValueSource,
    pub(crate) leaves: Leaves,
    /// For a Trae file whose provider was refused: the provider its model belongs to.
    pub(crate) made_for: Option<String>,
    /// For a project's layer: the advice to its author about what to do instead of what is refused.
    pub(crate) project: Option<&'static str>,
}

/// The values of the environment, and the providers that have variables of their own there.
pub(crate) struct Variables<'a> {
    pub(crate) env: &'a dyn Fn(&str) -> Option<String>,
    pub(crate) known_providers: &'a [&'a str],
    /// The Trae file that is trusted and not named.
    pub(crate) foreign: Option<&'a ValueSource>,
}

impl Variables<'_> {
    fn get(&self, name: &str) -> Option<String> {
        (self.env)(name).filter(|value| !value.is_empty())
    }
}

/// The parts of a model that belong to its provider.
const ENDPOINT: [&str; 4] = ["base_url", "api_key", "api_version", "key_variable"];

/// Every layer in one, the lowest first.
pub(crate) fn merge(layers: &[Layer], variables: &Variables<'_>, warnings: &mut Vec<Problem>) -> Leaves {
    let mut merged = Leaves::new();
    // The limits of the user's own files, which apply below any value of a project.
    let projects = layers.iter().position(|layer| layer.project.is_some());
    let users = projects.and_then(|first| layers.get(..first)).unwrap_or_default();
    let allowed = if users.is_empty() { Leaves::new() } else { merge(users, variables, &mut Vec::new()) };
    // Named models and providers first: a layer may name what a higher one describes.
    for layer in layers {
        let is_model = |path: &KeyPath| path.first().is_some_and(|table| table == "model");
        let rest = layer.leaves.iter().filter(|(path, _)| !is_model(path));
        let mut rest: Leaves = rest.map(|(path, leaf)| (path.clone(), leaf.clone())).collect();
        refuse_more(&allowed, layer, &mut rest, warnings);
        merge_all_but_model(&mut merged, &rest);
    }
    named_keys(&mut merged, variables);
    for layer in layers {
        merge_model(&mut merged, layer, &allowed, variables, warnings);
    }
    provider_variables(&mut merged, variables, warnings);
    merged
}

/// Removes from a project's layer what asks for more than the user's own files allow.
fn refuse_more(users: &Leaves, layer: &Layer, own: &mut Leaves, warnings: &mut Vec<Problem>) {
    let Some(instead) = layer.project else { return };
    for (path, field) in fixed_keys().into_iter().filter(|(_, field)| field.narrow_only) {
        let Some(leaf) = own.get(&path) else { continue };
        let allowed = users.get(&path).map(|known| &known.value).or(field.default.as_ref());
        let Some(allowed) = allowed.filter(|allowed| asks_for_more(&leaf.value, allowed)) else { continue };
        let shown = match allowed {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        };
        let reason = format!("a project may only narrow what you allow, which is {shown}; {instead}");
        warnings.push(Problem {
            source: layer.source.clone(),
            line: leaf.origin.line,
            fault: ConfigFault::Refused { key: spell(&path), reason },
        });
        own.remove(&path);
    }
}

/// Tells whether a value exceeds another: a larger number, a switch that is off, an entry that a list lacks, another
/// text.
fn asks_for_more(value: &Json, allowed: &Json) -> bool {
    match (value, allowed) {
        (Json::Number(value), Json::Number(allowed)) => {
            value.as_f64().unwrap_or(f64::MAX) > allowed.as_f64().unwrap_or(0.0)
        }
        (Json::Bool(value), Json::Bool(allowed)) => *value && !allowed,
        (Json::Array(value), Json::Array(allowed)) => value.iter().any(|entry| !allowed.contains(entry)),
        (value, allowed) => value != allowed,
    }
}

/// The keys of entries that name a variable. They belong to the entry, as a key that is written there does.
fn named_keys(merged: &mut Leaves, variables: &Variables<'_>) {
    let entries: Vec<(KeyPath, Leaf)> = merged
        .iter()
        .filter(|(path, _)| {
            matches!(path.as_slice(), [table, _, key]
                if matches!(table.as_str(), "models" | "providers") && key == "key_variable")
        })
        .map(|(path, leaf)| (path.clone(), leaf.clone()))
        .collect();
    for (mut path, leaf) in entries {
        path.truncate(2);
        path.push("api_key".to_owned());
        merged.extend(named_key(&leaf, variables).map(|key| (path, key)));
    }
}

/// The key that a variable holds, at the place where the variable is named.
fn named_key(key_variable: &Leaf, variables: &Variables<'_>) -> Option<Leaf> {
    let value = variables.get(key_variable.value.as_str()?)?;
    Some(Leaf { value: value.into(), origin: key_variable.origin.clone() })
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
                // A tool that one file excludes stays excluded in all of them.
                let more: Vec<Json> = known.iter().filter(|entry| !own.contains(entry)).cloned().collect();
                own.extend(more);
            }
            merged.insert(path.clone(), leaf);
        }
    }
}

fn merge_model(
    merged: &mut Leaves,
    layer: &Layer,
    users: &Leaves,
    variables: &Variables<'_>,
    warnings: &mut Vec<Problem>,
) {
    let is_model = |path: &KeyPath| path.first().is_some_and(|table| table == "model");
    let values = layer.leaves.iter().filter(|(path, _)| is_model(path));
    let mut values: Leaves = values.map(|(path, leaf)| (path.clone(), leaf.clone())).collect();
    if let (Some(made_for), Some(chosen)) = (&layer.made_for, text(merged, &["model", "provider"]))
        && *made_for != kind(merged, &chosen)
    {
        if let Some(name) = values.get(&path(&["model", "name"])) {
            warnings.push(Problem {
                source: layer.source.clone(),
                line: name.origin.line,
                fault: ConfigFault::Refused {
                    key: "model".to_owned(),
                    reason: format!("it is a model of {made_for}, and your provider is {chosen}"),
                },
            });
        }
        return;
    }
    refuse_more(users, layer, &mut values, warnings);
    let mut own = below(&values, &["model"]);
    if let Some(key) = own.get("key_variable").and_then(|leaf| named_key(leaf, variables)) {
        own.insert("api_key".to_owned(), key);
    }
    // If the user names no model a project may, but not an entry of the user's.
    if let Some(instead) = layer.project
        && let Some(name) = own.get("name").and_then(|leaf| leaf.value.as_str())
        && !below(merged, &["models", name]).is_empty()
    {
        let reason = format!("a project may not choose an entry of your `models`; {instead}");
        let line = own.get("name").and_then(|leaf| leaf.origin.line);
        let fault = ConfigFault::Refused { key: "model.name".to_owned(), reason };
        warnings.push(Problem { source: layer.source.clone(), line, fault });
        own.remove("name");
    }
    // A name under `models` stands for all values of that entry. Trae's names are resolved already, and its name for
    // a model may be the name of another entry.
    if !matches!(layer.source, ValueSource::Trae(_))
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
        // The value of a variable still comes before the file.
        let is_set =
            |key: &str| merged.get(&path(&["model", key])).is_some_and(|leaf| !leaf.origin.source.is_file());
        for (key, leaf) in entry {
            if !is_set(&key) {
                own.entry(key).or_insert(leaf);
            }
        }
    }
    if let Some(provider) = own.get("provider").and_then(|leaf| leaf.value.as_str())
        && text(merged, &["model", "provider"]).as_deref() != Some(provider)
    {
        for part in ENDPOINT {
            let path = path(&["model", part]);
            // A variable or flag is about the chosen provider, a file about its own.
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
        // A flag may choose an entry of a file, but a variable still comes before the values of that entry.
        let is_set_higher = merged.get(&path).is_some_and(|known| !known.origin.source.is_file());
        if !(is_set_higher && leaf.origin.source.is_file() && ENDPOINT.contains(&key.as_str())) {
            merged.insert(path, leaf);
        }
    }
}

/// In the older Trae file a provider and its model are one entry: choosing another provider selects that entry, with
/// its model and all its parameters.
fn legacy_entry(merged: &Leaves, own: &BTreeMap<String, Leaf>) -> Option<BTreeMap<String, Leaf>> {
    let provider = own.get("provider")?;
    let name = provider.value.as_str()?;
    if is_legacy(&provider.origin.source) || text(merged, &["model", "provider"]).as_deref() == Some(name) {
        return None;
    }
    let entry = below(merged, &["models", name]);
    entry.values().any(|leaf| is_legacy(&leaf.origin.source)).then_some(entry)
}

fn is_legacy(source: &ValueSource) -> bool {
    matches!(source, ValueSource::Trae(path) if path.extension().is_some_and(|end| end == "json"))
}

/// `<PROVIDER>_API_KEY` and `<PROVIDER>_BASE_URL` of the chosen provider come before every file. Only a provider that
/// Lathe knows, or that the user describes under `providers`, has a key there: `STRIPE_API_KEY` belongs to another
/// program, even if an entry is called `stripe`.
fn provider_variables(merged: &mut Leaves, variables: &Variables<'_>, warnings: &mut Vec<Problem>) {
    let Some(provider) = text(merged, &["model", "provider"]) else {
        return;
    };
    let kind = kind(merged, &provider);
    let named = text(merged, &["model", "key_variable"]);
    let names_its_variable = named.is_some_and(|name| variables.get(&name).is_some());
    // The address first: it decides which keys may be sent there.
    for (key, suffix) in [("base_url", "BASE_URL"), ("api_key", "API_KEY")] {
        let path = path(&["model", key]);
        let foreign = if key == "api_key" { foreign_address(merged, variables) } else { None };
        if foreign.is_none() {
            if merged.get(&path).is_some_and(|leaf| !leaf.origin.source.is_file()) {
                continue;
            }
            if key == "api_key" && names_its_variable {
                continue;
            }
        }
        let is_known = |name: &str| {
            let known = variables.known_providers.iter().any(|known| known.eq_ignore_ascii_case(name));
            known || is_users_provider(merged, name)
        };
        let found = [&provider, &kind].into_iter().find_map(|name| {
            if key == "api_key" && !is_known(name) {
                return None;
            }
            let variable = variable(name, suffix);
            let value = variables.get(&variable)?;
            Some((variable, value))
        });
        if let Some(foreign) = foreign {
            let elsewhere = found.map(|(variable, _)| ValueSource::Environment(variable));
            keep_own_key(merged, &provider, &foreign, elsewhere, warnings);
            continue;
        }
        if let Some((variable, value)) = found {
            let origin = Origin { source: ValueSource::Environment(variable), line: None };
            let value = value.into();
            merged.insert(path, Leaf { value, origin });
        }
    }
}

/// A trusted Trae file and the address of it that is asked.
struct ForeignAddress {
    source: ValueSource,
    address: String,
}

fn foreign_address(merged: &Leaves, variables: &Variables<'_>) -> Option<ForeignAddress> {
    let chosen = merged.get(&path(&["model", "base_url"]))?;
    let source = variables.foreign.filter(|source| chosen.origin.source == **source)?;
    Some(ForeignAddress { source: source.clone(), address: plain_address(chosen.value.as_str()?) })
}

/// Leaves an address of a trusted Trae file only the key that stands in that file.
fn keep_own_key(
    merged: &mut Leaves,
    provider: &str,
    foreign: &ForeignAddress,
    elsewhere: Option<ValueSource>,
    warnings: &mut Vec<Problem>,
) {
    let chosen = path(&["model", "api_key"]);
    if merged.get(&chosen).is_some_and(|leaf| leaf.origin.source == foreign.source) {
        return;
    }
    let dropped = merged.remove(&chosen).map(|leaf| leaf.origin);
    let own = merged.get(&path(&["providers", provider, "api_key"]));
    if let Some(own) = own.filter(|leaf| leaf.origin.source == foreign.source).cloned() {
        merged.insert(chosen, own);
        return;
    }
    let dropped = dropped.or_else(|| elsewhere.map(|source| Origin { source, line: None }));
    if let Some(Origin { source, line }) = dropped {
        let reason = format!(
            "it is not sent to {}, an address of {}; write the key into that file or the .env next to it, or name the \
             file with --config-file",
            foreign.address, foreign.source
        );
        let fault = ConfigFault::Refused { key: "model.api_key".to_owned(), reason };
        warnings.push(Problem { source, line, fault });
    }
}

fn variable(provider: &str, suffix: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }
    };
    let name: String = provider.chars().map(plain).collect();
    format!("{name}_{suffix}")
}

/// Tells whether the user describes a provider of this name.
fn is_users_provider(merged: &Leaves, provider: &str) -> bool {
    !below(merged, &["providers", provider]).is_empty()
}

/// The kind of a provider, by its entry.
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

fn path(parts: &[&str]) -> KeyPath {
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

/// The origin of each value, by its whole key.
pub(crate) fn origins(leaves: &Leaves) -> BTreeMap<String, Origin> {
    let origins = leaves.iter().map(|(path, leaf)| (spell(path), leaf.origin.clone()));
    origins.collect()
}
