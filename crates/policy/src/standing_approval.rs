//! Standing approvals: what the user approves for longer than once, exactly as narrow as it was shown.

use lathe_protocol::ToolKind;

use crate::error::PolicyError;
use crate::file;
use crate::names::KnownNames;
use crate::rules::{GateCall, Rule};

/// One thing that may be done again without a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StandingApproval {
    /// A command with exactly these words, in this workspace, and where that matters in exactly this folder: a
    /// relative name means another file elsewhere.
    Command { words: Vec<String>, workspace: String, folder: Option<String> },
    /// A tool that writes exactly these files.
    Writes { tool: String, paths: Vec<String> },
}

impl StandingApproval {
    /// The standing approvals that an approval of a call would give; none where more than files would change, or a
    /// path is a pattern.
    pub fn of_call(call: &GateCall<'_>) -> Vec<Self> {
        let effects = call.effects;
        let only_files = effects.programs.is_empty()
            && effects.hosts.is_empty()
            && effects.environment.is_empty()
            && !effects.opaque;
        let plain = |path: &String| path.starts_with('/') && !path.contains(['*', '?']);
        if call.kind != ToolKind::Edit || !only_files || effects.writes.is_empty() {
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

    /// Reads the standing approvals of a rule file, in its order.
    pub fn parse_rules(name: &str, text: &str, names: &KnownNames) -> Result<Vec<Self>, PolicyError> {
        let file = file::parse(name, text, names)?;
        let approval = |rule: Rule| match (rule.words.as_slice(), rule.tool.as_slice()) {
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
                why: "this rule is not a standing approval; put rules into another file".to_owned(),
            }),
        };
        file.rules.into_iter().map(approval).collect()
    }

    /// Formats the approval as a rule of a rule file.
    pub fn to_rule(&self) -> String {
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

    /// A description for people.
    pub fn description(&self) -> String {
        match self {
            Self::Command { words, folder: Some(folder), .. } => format!("{} (in {folder})", words.join(" ")),
            Self::Command { words, workspace, folder: None } => {
                format!("{} (anywhere in {workspace})", words.join(" "))
            }
            Self::Writes { tool, paths } => format!("{tool} {}", paths.join(" ")),
        }
    }
}

/// A TOML string for any text.
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
