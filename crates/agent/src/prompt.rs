//! The system prompt, put together from the texts in `prompts/` for the toolset at hand.

use lathe_protocol::Toolset;

/// What the model is told about the place, once per epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    pub os: String,
    pub shell: String,
    pub folder: String,
    /// Branch or commit, where the folder is a git work tree.
    pub git: Option<String>,
    pub date: String,
    /// What the user wants remembered, from earlier sessions.
    pub memory: Option<String>,
}

pub fn system_prompt(toolset: Toolset, facts: &Facts) -> String {
    let tools = match toolset {
        Toolset::Lathe => include_str!("prompts/tools-lathe.md"),
        Toolset::Trae => include_str!("prompts/tools-trae.md"),
        Toolset::Gemini => include_str!("prompts/tools-gemini.md"),
        Toolset::Bash => include_str!("prompts/tools-bash.md"),
    };
    let finish = match toolset {
        Toolset::Lathe | Toolset::Trae => include_str!("prompts/finish.md"),
        Toolset::Bash => include_str!("prompts/finish-bash.md"),
        Toolset::Gemini => include_str!("prompts/finish-gemini.md"),
    };
    let parts = [
        include_str!("prompts/role.md"),
        include_str!("prompts/method.md"),
        tools,
        include_str!("prompts/data.md"),
        finish,
        &environment(facts),
    ];
    let prompt = parts.map(str::trim_end).join("\n\n");
    match &facts.memory {
        Some(memory) => format!("{prompt}\n\n# Remembered for the user\n{}", memory.trim_end()),
        None => prompt,
    }
}

fn environment(facts: &Facts) -> String {
    let Facts { os, shell, folder, git, date, memory: _ } = facts;
    let git = git.as_deref().unwrap_or("no git repository");
    format!(
        "# Environment\n- System: {os}; shell: {shell}\n- Workspace: {folder}\n- Git: {git}\n- Date: {date}\n"
    )
}
