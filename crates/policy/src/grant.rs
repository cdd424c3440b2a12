//! What a person allows for longer than once, exactly as narrow as what was shown.

use lathe_protocol::Kind;

use crate::error::PolicyError;
use crate::file;
use crate::names::KnownNames;
use crate::rules::{Call, Rule};

/// One thing that may be done again without asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// A command with just these words, in this workspace, and where that matters in just this folder: a relative name
    /// means another file elsewhere.
    Command { words: Vec<String>, workspace: String, folder: Option<String> },
    /// A tool that writes just these files.
    Writes { tool: String, paths: Vec<String> },
}

impl Grant {
    /// What an answer about a call would cover; nothing where more than files would change, or a path is a pattern.
    pub fn of_call(call: &Call<'_>) -> Vec<Self> {
        let effects = call.effects;
        let only_files = effects.programs.is_empty()
            && effects.hosts.is_empty()
            && effects.environment.is_empty()
            && !effects.opaque;
        let plain = |path: &String| path.starts_with('/') && !path.contains(['*', '?']);
        if call.kind != Kind::Edit || !only_files || effects.writes.is_empty() {
            return Vec::new();
        }
        if !effects.writes.iter().chain(&effects.reads).all(plain) {
            return Vec::new();
        }
        let mut paths: Vec<String> = effects.writes.iter().chain(&effects.reads).cloned().collect();
        paths.sort();
        paths.dedup();
        vec![Self::Writes { tool: call.tool.to_owned(), paths }]
    }

    /// What a file of such rules allows, in its order.
    pub fn read(name: &str, text: &str, names: &KnownNames) -> Result<Vec<Self>, PolicyError> {
        let file = file::parse(name, text, names)?;
        let grant = |rule: Rule| match (rule.words.as_slice(), rule.tool.as_slice()) {
            ([words], []) => Ok(Self::Command {
                words: words.clone(),
                workspace: rule.workspace.concat(),
                folder: Some(rule.folder.concat()).filter(|folder| !folder.is_empty()),
            }),
            ([], [tool]) => Ok(Self::Writes { tool: tool.clone(), paths: rule.path }),
            _ => Err(PolicyError::Rule {
                file: rule.file,
                line: rule.line,
                rule: rule.number,
                why: "this is no answer of yours; rules belong into another file".to_owned(),
            }),
        };
        file.rules.into_iter().map(grant).collect()
    }

    /// As a rule of a rule file.
    pub fn rule(&self) -> String {
        let list = |items: &[String]| {
            let quoted: Vec<String> = items.iter().map(|item| quoted(item)).collect();
            format!("[{}]", quoted.join(", "))
        };
        match self {
            Self::Command { words, workspace, folder } => {
                let folder = folder
                    .as_ref()
                    .map_or_else(String::new, |folder| format!("folder = [{}]\n", quoted(folder)));
                format!(
                    "[[rule]]\ndecision = \"allow\"\nwords = [{}]\nworkspace = [{}]\n{folder}reason = \"allowed by you\"\n",
                    list(words),
                    quoted(workspace)
                )
            }
            Self::Writes { tool, paths } => format!(
                "[[rule]]\ndecision = \"allow\"\ntool = {}\npath = {}\nreason = \"allowed by you\"\n",
                list(std::slice::from_ref(tool)),
                list(paths)
            ),
        }
    }

    /// For people.
    pub fn about(&self) -> String {
        match self {
            Self::Command { words, folder: Some(folder), .. } => format!("{} (in {folder})", words.join(" ")),
            Self::Command { words, workspace, folder: None } => {
                format!("{} (anywhere in {workspace})", words.join(" "))
            }
            Self::Writes { tool, paths } => format!("{tool} {}", paths.join(" ")),
        }
    }
}

/// A text of TOML, whatever is in it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() || c == '\u{2028}' || c == '\u{feff}' => {
                out.push_str(&format!("\\U{:08X}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
