//! `trae_config.yaml`.

use super::{KeyNames, Mapped, Mapper, PARAMETERS, PROVIDER, SERVER, STEPS, member, members_of, text_of};
use crate::problem::ValueSource;
use crate::tree::{Node, TreeEntry, TreeValue, under};

const SECTIONS: [&str; 6] =
    ["agents", "model_providers", "models", "lakeview", "mcp_servers", "allow_mcp_servers"];
const AGENT: [&str; 4] = ["model", STEPS, "enable_lakeview", "tools"];
const MODEL: KeyNames = &[("model_provider", "provider")];
const LAKEVIEW: KeyNames = &[("model", "model")];

pub(crate) fn map(root: &Node, source: &ValueSource) -> Mapped {
    let mut mapper = Mapper::new(source);
    let sections = mapper.table(root, "the file");
    for entry in sections.iter().filter(|entry| !SECTIONS.contains(&entry.key.as_str())) {
        mapper.unknown(entry, "", SECTIONS);
    }
    let providers = providers(&mut mapper, &sections);
    let models = models(&mut mapper, &sections, &providers);

    let mut ours = Vec::new();
    let made_for = agent(&mut mapper, &sections, &providers, &models, &mut ours);
    for entry in &sections {
        match entry.key.as_str() {
            "mcp_servers" => ours.push(mapper.entries_of(entry, SERVER)),
            "allow_mcp_servers" => ours.push(entry.clone()),
            _ => {}
        }
    }
    let line_of = |key: &str| member(&sections, key).and_then(|entry| entry.line);
    let providers = TreeEntry::new("providers", Node::table(providers)).at(line_of("model_providers"));
    ours.push(providers.with_spelling("model_providers"));
    ours.push(TreeEntry::new("models", Node::table(models)).at(line_of("models")));
    mapper.finish(ours, made_for)
}

fn providers(mapper: &mut Mapper<'_>, sections: &[TreeEntry]) -> Vec<TreeEntry> {
    let section = member(sections, "model_providers");
    let entries = section.map_or_else(Vec::new, |section| mapper.table(&section.node, "model_providers"));
    if entries.is_empty() {
        mapper.error(section.and_then(|section| section.line), "No model providers provided");
    }
    let mut providers = Vec::new();
    for entry in entries {
        let spelling = under("model_providers", &entry.key);
        let members = mapper.table(&entry.node, &spelling);
        let members = mapper.renamed(&members, &spelling, &[PROVIDER]);
        providers
            .push(TreeEntry::new(entry.key, Node::table(members)).at(entry.line).with_spelling(spelling));
    }
    providers
}

fn models(mapper: &mut Mapper<'_>, sections: &[TreeEntry], providers: &[TreeEntry]) -> Vec<TreeEntry> {
    let section = member(sections, "models");
    let entries = section.map_or_else(Vec::new, |section| mapper.table(&section.node, "models"));
    if entries.is_empty() {
        mapper.error(section.and_then(|section| section.line), "No models provided");
    }
    let used = used_model(sections);
    let mut models = Vec::new();
    for entry in entries {
        let spelling = under("models", &entry.key);
        let members = mapper.table(&entry.node, &spelling);
        let members = mapper.renamed(&members, &spelling, &[MODEL, PARAMETERS]);
        let named = text_of(&members, "provider");
        if let Some(named) = named
            && !providers.is_empty()
            && !providers.iter().any(|provider| provider.key == named)
        {
            let line = member(&members, "provider").and_then(|member| member.line);
            let message = format!("Model provider {named} not found");
            // Only the model that is used cannot do without.
            if used.as_deref() == Some(&entry.key) {
                mapper.error(line, message);
            } else {
                mapper.warn(line, message);
            }
        }
        models.push(TreeEntry::new(entry.key, Node::table(members)).at(entry.line));
    }
    models
}

fn used_model(sections: &[TreeEntry]) -> Option<String> {
    let agents = members_of(sections, "agents");
    text_of(members_of(agents, "trae_agent"), "model")
}

/// The agent becomes `[model]`, `[run]` and `[lakeview]`; returns what its provider is.
fn agent(
    mapper: &mut Mapper<'_>,
    sections: &[TreeEntry],
    providers: &[TreeEntry],
    models: &[TreeEntry],
    ours: &mut Vec<TreeEntry>,
) -> Option<String> {
    let section = member(sections, "agents");
    let agents = section.map_or_else(Vec::new, |section| mapper.table(&section.node, "agents"));
    if agents.is_empty() {
        mapper.error(section.and_then(|section| section.line), "No agent configs provided");
        return None;
    }
    let agent = agents.iter().find(|entry| entry.key == "trae_agent");
    for other in agents.iter().filter(|entry| entry.key != "trae_agent") {
        let message = format!("Unknown agent: {}", other.key);
        match agent {
            Some(_) => mapper.warn(other.line, message),
            None => mapper.error(other.line, message),
        }
    }
    let agent = agent?;
    let spelling = "agents.trae_agent";
    let members = mapper.table(&agent.node, spelling);
    for entry in members.iter().filter(|entry| !AGENT.contains(&entry.key.as_str())) {
        mapper.unknown(entry, spelling, AGENT);
    }

    let moved = |theirs: &str, ours: &str| {
        let entry = member(&members, theirs)?;
        let mut moved = entry.clone().with_spelling(under(spelling, theirs));
        moved.key = ours.to_owned();
        Some(moved)
    };
    let run = [moved(STEPS, STEPS), moved("tools", "tools")];
    ours.push(TreeEntry::new("run", Node::table(run.into_iter().flatten().collect())));

    let asked = moved("enable_lakeview", "enabled");
    let is_asked = asked.is_some();
    let enabled = asked.unwrap_or_else(|| {
        TreeEntry::new("enabled", Node::of(TreeValue::Bool(true)))
            .at(agent.line)
            .with_spelling(under(spelling, "enable_lakeview"))
    });
    ours.push(lakeview(mapper, sections, models, (enabled, is_asked)));

    let name = text_of(&members, "model");
    let Some(name) = name else {
        mapper.error(agent.line, "No model provided for trae_agent");
        return None;
    };
    let Some(model) = models.iter().find(|entry| entry.key == name) else {
        if !models.is_empty() {
            let line = member(&members, "model").and_then(|entry| entry.line);
            mapper.error(line, format!("Model {name} not found"));
        }
        return None;
    };
    ours.push(TreeEntry::new("model", model.node.clone()).at(model.line));
    let provider = text_of(members_of(models, &name), "provider")?;
    Some(text_of(members_of(providers, &provider), "provider").unwrap_or(provider))
}

/// Summaries without a model of their own are written by the agent's. Lakeview is on unless a file says otherwise, so
/// a file that does not mention it gets no message about what it lacks.
fn lakeview(
    mapper: &mut Mapper<'_>,
    sections: &[TreeEntry],
    models: &[TreeEntry],
    (enabled, is_asked): (TreeEntry, bool),
) -> TreeEntry {
    let mut ours = vec![enabled];
    let section = member(sections, "lakeview");
    let members = section.map_or_else(Vec::new, |section| mapper.table(&section.node, "lakeview"));
    let members = mapper.renamed(&members, "lakeview", &[LAKEVIEW]);
    let off = ours.iter().any(|entry| is_off(&entry.node));
    let line = section.and_then(|section| section.line);
    match (section, text_of(&members, "model")) {
        (None, _) if off || !is_asked => {}
        (None, _) => mapper.warn(line, "Lakeview is enabled but no lakeview config provided"),
        (Some(_), None) if off => {}
        (Some(_), None) => mapper.warn(line, "No model provided for lakeview"),
        (Some(_), Some(name)) if models.iter().any(|model| model.key == name) => ours.extend(members),
        (Some(_), Some(name)) => {
            let line = member(&members, "model").and_then(|entry| entry.line);
            mapper.warn(line, format!("Model {name} not found"));
        }
    }
    TreeEntry::new("lakeview", Node::table(ours))
}

fn is_off(node: &Node) -> bool {
    match &node.value {
        TreeValue::Bool(value) => !value,
        TreeValue::Integer(number) => *number == 0,
        TreeValue::Text(text) => matches!(text.to_ascii_lowercase().as_str(), "no" | "off" | "false" | "n"),
        _ => false,
    }
}
