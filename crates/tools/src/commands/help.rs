//! Help texts, made from the schema of a command.

use super::grammar::{Grammar, Parameter};

/// `-h`: the summary, in one line.
pub(crate) fn summary_line(name: &str, summary: &str) -> String {
    format!("{name}: {summary}\n")
}

pub(crate) fn usage(name: &str, grammar: &Grammar) -> String {
    let mut words = vec![name.to_owned()];
    let required = grammar.parameters.iter().filter(|parameter| parameter.required);
    words.extend(required.map(|parameter| {
        let more = if Some(&parameter.name) == grammar.rest.as_ref() { "..." } else { "" };
        format!("<{}>{more}", parameter.name)
    }));
    let optional = |name: &&String| grammar.parameters.iter().any(|p| !p.required && p.name == **name);
    words.extend(grammar.positions.iter().filter(optional).map(|name| format!("[{name}]")));
    words.extend(grammar.rest.iter().filter(optional).map(|rest| format!("[{rest}...]")));
    if grammar.parameters.iter().any(|parameter| !parameter.required) {
        words.push("[OPTIONS]".to_owned());
    }
    words.join(" ")
}

/// `--help`: everything in the schema.
pub(crate) fn full_help(name: &str, description: &str, grammar: &Grammar, notes: &str) -> String {
    let mut text = format!("Tool: {name}\nDescription: {description}\nUsage: {}\n", usage(name, grammar));
    let (required, optional): (Vec<&Parameter>, Vec<&Parameter>) =
        grammar.parameters.iter().partition(|parameter| parameter.required);
    if !grammar.parameters.is_empty() {
        text.push_str("Parameters:\n");
    }
    for parameter in required {
        text.push_str(&format!(
            "  {}* ({}): {}\n",
            parameter.name,
            parameter.kind.as_str(),
            about(parameter)
        ));
    }
    if !optional.is_empty() {
        text.push_str("Optional:\n");
    }
    for parameter in optional {
        let short = grammar.short.iter().find(|(_, name)| *name == parameter.name);
        let short = short.map_or(String::new(), |(letter, _)| format!("-{letter}, "));
        text.push_str(&format!(
            "  {short}--{} ({}): {}\n",
            parameter.name,
            parameter.kind.as_str(),
            about(parameter)
        ));
    }
    if !notes.is_empty() {
        text.push('\n');
        text.push_str(notes.trim_end());
        text.push('\n');
    }
    text
}

fn about(parameter: &Parameter) -> String {
    let mut about = parameter.about.replace('\n', " ");
    if !parameter.allowed.is_empty() {
        about = format!("{about} One of: {}.", parameter.allowed.join(", ")).trim_start().to_owned();
    }
    if let Some(default) = &parameter.default {
        about = format!("{about} (default: {default})");
    }
    about
}
