//! A face: the name, schema and words a tool has in one toolset.

use lathe_protocol::{Kind, Raw, ToolSpec, Toolset};
use serde_json::Value;

use crate::outcome::Data;
use crate::preview::Preview;
use crate::problem::Problem;
use crate::{
    ask, bash, code, data, done, edit, gemini, glob, list, memory, modify, online, patch, review, search,
    think, todo, trae, view, write,
};

/// Arguments as the tool wants them, with the canonical name of the tool they are for.
pub(crate) type Adapted = (&'static str, Value);

/// From the arguments, what was shown, and the text a person made of it.
pub(crate) type Modify = fn(Value, &Preview, &str) -> Option<Value>;

pub(crate) struct Face {
    pub(crate) name: &'static str,
    /// The name for people.
    pub(crate) display: &'static str,
    /// Other names it answers to: of older versions, and of the class behind it.
    pub(crate) aliases: &'static [&'static str],
    pub(crate) kind: Kind,
    pub(crate) description: &'static str,
    pub(crate) schema: fn() -> Raw,
    pub(crate) checks: Checks,
    pub(crate) adapt: fn(Value) -> Result<Adapted, Problem>,
    /// The arguments for what a person made of the proposed text.
    pub(crate) modify: Option<Modify>,
    pub(crate) voice: Voice,
}

impl Face {
    /// Tells whether its result is markdown. Gemini CLI takes what it reads from a file for that too.
    pub(crate) fn markdown(&self) -> bool {
        match self.kind {
            Kind::Execute | Kind::Search => false,
            Kind::Read => gemini::FACES.iter().any(|face| face.name == self.name),
            _ => true,
        }
    }

    pub(crate) fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: self.description.trim_end().to_owned(),
            schema: (self.schema)(),
        }
    }
}

/// Who says that arguments do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checks {
    /// The schema, in the words of a schema validator.
    Schema,
    /// The face itself, in its own words.
    Own,
}

/// The words of a toolset.
#[derive(Clone, Copy)]
pub(crate) struct Voice {
    /// Words for the model, at most about `cap` bytes of foreign text.
    pub(crate) render: fn(&Data, cap: usize) -> String,
    pub(crate) words: fn(&Problem) -> String,
    pub(crate) cap: usize,
}

impl Voice {
    pub(crate) const fn lathe(cap: usize) -> Self {
        Self { render: words, words: Problem::words, cap }
    }
}

/// The faces of a toolset, in the order in which the model is told of them.
pub(crate) fn faces(toolset: Toolset) -> &'static [Face] {
    match toolset {
        Toolset::Lathe => &LATHE,
        Toolset::Trae => &trae::FACES,
        Toolset::Gemini => &gemini::FACES,
        Toolset::Bash => &bash::ONE,
    }
}

/// Tools that only some sessions have: those with rules for reviews, and those with documents. They have one name everywhere.
pub(crate) static REVIEW: Face = Face {
    name: "quality_review",
    display: "Review",
    aliases: &["quality_review_tool"],
    kind: Kind::Think,
    description: include_str!("review/lathe.md"),
    schema: crate::schema::schema_of::<review::Arguments>,
    checks: Checks::Own,
    adapt: |arguments| Ok((review::ID, arguments)),
    modify: None,
    voice: Voice::lathe(16_000),
};

pub(crate) static ONLINE: Face = Face {
    name: "online_doc_tool",
    display: "Documents",
    aliases: &[],
    kind: Kind::Fetch,
    description: include_str!("online/lathe.md"),
    schema: crate::schema::schema_of::<online::Arguments>,
    checks: Checks::Own,
    adapt: |arguments| Ok((online::ID, arguments)),
    modify: None,
    voice: Voice::lathe(20_000),
};

static LATHE: [Face; 13] = [
    Face {
        name: "bash",
        display: "Shell",
        aliases: &[],
        kind: Kind::Execute,
        description: include_str!("bash/lathe.md"),
        schema: crate::schema::schema_of::<bash::Arguments>,
        checks: Checks::Own,
        adapt: |arguments| Ok((bash::ID, arguments)),
        modify: None,
        voice: Voice::lathe(30_000),
    },
    Face {
        name: "view",
        display: "View",
        aliases: &[],
        kind: Kind::Read,
        description: include_str!("view/lathe.md"),
        schema: crate::schema::schema_of::<view::LatheArguments>,
        checks: Checks::Own,
        adapt: view::adapt_lathe,
        modify: None,
        voice: Voice::lathe(48_000),
    },
    Face {
        name: "search",
        display: "Search",
        aliases: &[],
        kind: Kind::Search,
        description: include_str!("search/lathe.md"),
        schema: crate::schema::schema_of::<search::Arguments>,
        checks: Checks::Own,
        adapt: |arguments| Ok((search::ID, arguments)),
        modify: None,
        voice: Voice::lathe(24_000),
    },
    Face {
        name: "glob",
        display: "Glob",
        aliases: &[],
        kind: Kind::Search,
        description: include_str!("glob/lathe.md"),
        schema: crate::schema::schema_of::<glob::Arguments>,
        checks: Checks::Own,
        adapt: |arguments| Ok((glob::ID, arguments)),
        modify: None,
        voice: Voice::lathe(16_000),
    },
    Face {
        name: "code",
        display: "Code",
        aliases: &[],
        kind: Kind::Search,
        description: include_str!("code/lathe.md"),
        schema: crate::schema::schema_of::<code::Arguments>,
        checks: Checks::Own,
        adapt: |arguments| Ok((code::ID, arguments)),
        modify: None,
        voice: Voice::lathe(48_000),
    },
    Face {
        name: "edit",
        display: "Edit",
        aliases: &[],
        kind: Kind::Edit,
        description: include_str!("edit/lathe.md"),
        schema: crate::schema::schema_of::<edit::Arguments>,
        checks: Checks::Own,
        adapt: |arguments| Ok((edit::ID, arguments)),
        modify: Some(modify::edit),
        voice: Voice::lathe(16_000),
    },
    Face {
        name: "write",
        display: "Write",
        aliases: &[],
        kind: Kind::Edit,
        description: include_str!("write/lathe.md"),
        schema: crate::schema::schema_of::<write::LatheArguments>,
        checks: Checks::Own,
        adapt: write::adapt_lathe,
        modify: Some(modify::write),
        voice: Voice::lathe(16_000),
    },
    Face {
        name: "apply_patch",
        display: "Patch",
        aliases: &[],
        kind: Kind::Edit,
        description: include_str!("patch/lathe.md"),
        schema: crate::schema::schema_of::<patch::Arguments>,
        checks: Checks::Own,
        adapt: |arguments| Ok((patch::ID, arguments)),
        modify: None,
        voice: Voice::lathe(16_000),
    },
    Face {
        name: "think",
        display: "Think",
        aliases: &[],
        kind: Kind::Think,
        description: include_str!("think/lathe.md"),
        schema: crate::schema::schema_of::<think::LatheArguments>,
        checks: Checks::Own,
        adapt: think::adapt_lathe,
        modify: None,
        voice: Voice::lathe(16_000),
    },
    Face {
        name: "todo",
        display: "Todo",
        aliases: &[],
        kind: Kind::Think,
        description: include_str!("todo/lathe.md"),
        schema: crate::schema::schema_of::<todo::Arguments>,
        checks: Checks::Own,
        adapt: |arguments| Ok((todo::ID, arguments)),
        modify: None,
        voice: Voice::lathe(16_000),
    },
    Face {
        name: "remember",
        display: "Remember",
        aliases: &[],
        kind: Kind::Think,
        description: include_str!("memory/lathe.md"),
        schema: crate::schema::schema_of::<memory::LatheArguments>,
        checks: Checks::Own,
        adapt: memory::adapt_lathe,
        modify: Some(modify::memory),
        voice: Voice::lathe(16_000),
    },
    Face {
        name: "ask_user",
        display: "Ask",
        aliases: &[],
        kind: Kind::Communicate,
        description: include_str!("ask/lathe.md"),
        schema: crate::schema::schema_of::<ask::LatheArguments>,
        checks: Checks::Own,
        adapt: ask::adapt_lathe,
        modify: None,
        voice: Voice::lathe(16_000),
    },
    Face {
        name: "task_done",
        display: "Done",
        aliases: &[],
        kind: Kind::Other,
        description: include_str!("done/lathe.md"),
        schema: crate::schema::schema_of::<done::Arguments>,
        checks: Checks::Own,
        adapt: |arguments| Ok((done::ID, arguments)),
        modify: None,
        voice: Voice::lathe(16_000),
    },
];

/// Lathe's own words for what tools return. Foreign text stands between tags, so the model can tell it from ours.
pub(crate) fn words(outcome: &Data, cap: usize) -> String {
    match outcome {
        Data::Shell(shell) => bash::words(shell, cap),
        Data::ShellRestarted => {
            "The shell was restarted: a fresh one in the start folder; what the old one ran is ended."
                .to_owned()
        }
        Data::File(file) => view::file_words(file, cap),
        Data::Folder(folder) => view::folder_words(folder, cap),
        Data::Document(document) => view::document_words(document, cap),
        Data::Image(image) => view::image_words(image),
        Data::Written(written) => write::words(written),
        Data::Edited(edited) => edit::words(edited, cap),
        Data::Thought(_) => "Noted.".to_owned(),
        Data::Done { .. } => "Task done.".to_owned(),
        Data::Text(text) => marked("result", text, cap),
        Data::Found(found) => search::words(found, cap),
        Data::Files(files) => glob::words(files, cap),
        Data::Listing(listing) => list::words(listing, cap),
        Data::Many(many) => {
            let files: Vec<String> =
                many.files.iter().map(|file| format!("--- {} ---\n\n{}", file.path, file.text)).collect();
            marked("files", &files.join("\n"), cap)
        }
        Data::Todos(todos) if todos.is_empty() => "The list is empty.".to_owned(),
        Data::Todos(todos) => format!("The list is now:\n{}", todo::rows(todos)),
        Data::Remembered(remembered) => format!("Remembered in {}.", remembered.path),
        Data::Answers(answers) => answers.join("\n"),
        Data::Values(values) => data::words(values),
        Data::Code(text) => marked("code", text, cap),
        Data::Patched(patched) => patch::words(patched),
        Data::Reviewed(reviewed) => review::words(reviewed),
        Data::Online { text, .. } => text.clone(),
    }
}

/// Foreign text between tags, cut where it is too long.
fn marked(tag: &str, text: &str, cap: usize) -> String {
    let shown = view::clip(text, cap);
    let more = text.len() - shown.len();
    let note = if more > 0 { format!("\n({more} more bytes are not shown)") } else { String::new() };
    format!("<{tag}>\n{}\n</{tag}>{note}", shown.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lathe_policy::{all_tool_names, tool_names};

    use super::*;
    use crate::commands::COMMANDS;

    /// Rules name tools by the gate's table: a face or command that is missing there could not be denied by its name.
    #[test]
    fn every_name_of_every_toolset_and_command_is_in_the_gates_table() {
        let mut faces: Vec<&Face> = Toolset::ALL.iter().flat_map(|toolset| faces(*toolset)).collect();
        faces.extend([&REVIEW, &ONLINE]);
        let mut names: BTreeSet<&str> = faces
            .iter()
            .flat_map(|face| [face.name].into_iter().chain(face.aliases.iter().copied()))
            .collect();
        for command in &COMMANDS {
            let own = [command.name].into_iter().chain(command.aliases.iter().copied());
            names.extend(own.clone());
            for name in own.filter(|name| *name != "done" || command.tool == "done") {
                assert!(tool_names(command.tool).any(|known| known == name), "{name} is {}", command.tool);
            }
        }
        names.insert(crate::caller::NAME);
        let known: BTreeSet<&str> = all_tool_names().collect();
        let missing: Vec<&&str> = names.iter().filter(|name| !known.contains(*name)).collect();
        assert_eq!(missing, Vec::<&&str>::new());
    }
}
