//! `trae_config.json`, the format before the YAML one: a provider and its model are one entry.

use super::{Mapped, Mapper, PARAMETERS, PROVIDER, SERVER, STEPS, member, members_of, text_of};
use crate::problem::ValueSource;
use crate::tree::{Node, TreeEntry, TreeValue, under};

const KEYS: [&str; 7] = [
    "default_provider",
    STEPS,
    "enable_lakeview",
    "model_providers",
    "mcp_servers",
    "allow_mcp_servers",
    "lakeview_config",
];
const LAKEVIEW: [&str; 2] = ["model_provider", "model_name"];
const DEFAULT_PROVIDER: &str = "anthropic";
const DEFAULT_STEPS: i64 = 20;
/// The name under `models` of the model that `lakeview_config` describes.
const LAKEVIEW_MODEL: &str = "lakeview";

pub(crate) fn map(root: &Node, source: &ValueSource) -> Mapped {
    let mut mapper = Mapper::new(source);
    let keys = mapper.table(root, "the file");
    for entry in keys.iter().filter(|entry| !KEYS.contains(&entry.key.as_str())) {
        mapper.unknown(entry, "", KEYS);
    }
    let (providers, mut models) = providers(&mut mapper, &keys);

    let chosen = text_of(&keys, "default_provider").unwrap_or_else(|| DEFAULT_PROVIDER.to_owned());
    let line_of = |key: &str| member(&keys, key).and_then(|entry| entry.line);
    let mut ours = Vec::new();
    let mut made_for = None;
    match models.iter().find(|model| model.key == chosen) {
        Some(model) => {
            ours.push(TreeEntry::new("model", model.node.clone()).at(model.line));
            let kind = text_of(members_of(&providers, &chosen), "provider");
            made_for = Some(kind.unwrap_or_else(|| chosen.clone()));
        }
        None => mapper.error(line_of("default_provider"), format!("Model provider {chosen} not found")),
    }

    let steps = member(&keys, STEPS).cloned();
    let steps = steps.unwrap_or_else(|| TreeEntry::new(STEPS, Node::of(TreeValue::Integer(DEFAULT_STEPS))));
    ours.push(TreeEntry::new("run", Node::table(vec![steps.with_spelling(STEPS)])));

    let mut enabled = member(&keys, "enable_lakeview").cloned();
    if let Some(entry) = &mut enabled {
        entry.key = "enabled".to_owned();
    }
    let enabled = enabled.unwrap_or_else(|| TreeEntry::new("enabled", Node::of(TreeValue::Bool(true))));
    let mut summaries = vec![enabled.with_spelling("enable_lakeview")];
    if let Some(model) = lakeview(&mut mapper, &keys, &chosen, &models) {
        let line = line_of("lakeview_config");
        let named = TreeEntry::new("model", Node::text(model.key.clone())).at(line);
        summaries.push(named.with_spelling("lakeview_config.model_name"));
        models.push(model);
    }
    ours.push(TreeEntry::new("lakeview", Node::table(summaries)));

    for entry in &keys {
        match entry.key.as_str() {
            "mcp_servers" => ours.push(mapper.entries_of(entry, SERVER)),
            "allow_mcp_servers" => ours.push(entry.clone()),
            _ => {}
        }
    }
    let line = line_of("model_providers");
    for (key, entries) in [("providers", providers), ("models", models)] {
        let entry = TreeEntry::new(key, Node::table(entries)).at(line);
        ours.push(entry.with_spelling("model_providers"));
    }
    mapper.finish(ours, made_for)
}

/// Each entry twice: as a provider and as a model of the same name.
fn providers(mapper: &mut Mapper<'_>, keys: &[TreeEntry]) -> (Vec<TreeEntry>, Vec<TreeEntry>) {
    let section = member(keys, "model_providers");
    let mut entries = section.map_or_else(Vec::new, |section| mapper.table(&section.node, "model_providers"));
    if entries.is_empty() {
        entries.push(built_in());
    }
    let (mut providers, mut models) = (Vec::new(), Vec::new());
    for entry in entries {
        let spelling = under("model_providers", &entry.key);
        let members = mapper.table(&entry.node, &spelling);
        let members = mapper.renamed(&members, &spelling, &[PROVIDER, PARAMETERS]);
        let is_of_provider = |member: &TreeEntry| PROVIDER.iter().any(|(_, ours)| *ours == member.key);
        let (of_provider, mut of_model): (Vec<TreeEntry>, Vec<TreeEntry>) =
            members.into_iter().partition(is_of_provider);
        for (key, value) in defaults() {
            if member(&of_model, key).is_none() {
                of_model.push(
                    TreeEntry::new(key, Node::of(value)).at(entry.line).with_spelling(under(&spelling, key)),
                );
            }
        }
        let provider = TreeEntry::new("provider", Node::text(entry.key.clone())).at(entry.line);
        of_model.push(provider.with_spelling(&spelling));
        models
            .push(TreeEntry::new(&entry.key, Node::table(of_model)).at(entry.line).with_spelling(&spelling));
        providers.push(
            TreeEntry::new(&entry.key, Node::table(of_provider)).at(entry.line).with_spelling(&spelling),
        );
    }
    (providers, models)
}

/// Trae's values for keys that an entry leaves out.
fn defaults() -> [(&'static str, TreeValue); 6] {
    [
        ("max_tokens", TreeValue::Integer(1000)),
        ("temperature", TreeValue::Float(0.5)),
        ("top_p", TreeValue::Float(1.0)),
        ("top_k", TreeValue::Integer(0)),
        ("max_retries", TreeValue::Integer(10)),
        ("parallel_tool_calls", TreeValue::Bool(false)),
    ]
}

/// Trae's entry if no provider is given.
fn built_in() -> TreeEntry {
    let members = [
        ("model", TreeValue::Text("claude-sonnet-4-20250514".to_owned())),
        ("base_url", TreeValue::Text("https://api.anthropic.com".to_owned())),
        ("max_tokens", TreeValue::Integer(4096)),
    ];
    let members = members.map(|(key, value)| TreeEntry::new(key, Node::of(value)));
    TreeEntry::new(DEFAULT_PROVIDER, Node::table(members.into()))
}

/// The model of `lakeview_config`, which Trae reads and then forgets: the provider's entry with another name.
fn lakeview(
    mapper: &mut Mapper<'_>,
    keys: &[TreeEntry],
    chosen: &str,
    models: &[TreeEntry],
) -> Option<TreeEntry> {
    let section = member(keys, "lakeview_config")?;
    let members = mapper.table(&section.node, "lakeview_config");
    for entry in members.iter().filter(|entry| !LAKEVIEW.contains(&entry.key.as_str())) {
        mapper.unknown(entry, "lakeview_config", LAKEVIEW);
    }
    let provider = text_of(&members, "model_provider");
    let name = member(&members, "model_name");
    if provider.is_none() && name.is_none() {
        return None;
    }
    let provider = provider.unwrap_or_else(|| chosen.to_owned());
    if !models.iter().any(|model| model.key == provider) {
        let line = member(&members, "model_provider").and_then(|entry| entry.line);
        mapper.warn(line, format!("Model provider {provider} not found"));
        return None;
    }
    let mut model = members_of(models, &provider).to_vec();
    if let Some(name) = name {
        model.retain(|member| member.key != "name");
        let mut name = name.clone().with_spelling("lakeview_config.model_name");
        name.key = "name".to_owned();
        model.push(name);
    }
    // A provider may have that name already.
    let mut key = LAKEVIEW_MODEL.to_owned();
    while models.iter().any(|model| model.key == key) {
        key.push_str("_model");
    }
    Some(TreeEntry::new(key, Node::table(model)).at(section.line))
}
