//! A face: the name, schema and words of a tool in one toolset.

use lathe_protocol::{Raw, ToolKind, ToolSpec, Toolset};
use serde_json::Value;

use super::{gemini, trae};
use crate::built_in::lathe_faces;
use crate::call::{FaceArguments, TypedCall, face_call};
use crate::faces::schema_of;
use crate::outcome::Data;
use crate::preview::Preview;
use crate::problem::Problem;
use crate::{bash, data, edit, glob, list, patch, review, search, todo, view, write};

/// Makes arguments from those of the call, the preview that was shown, and the text that the user made of it.
pub(crate) type ModifyArguments = fn(Value, &Preview, &str) -> Option<Value>;

pub(crate) struct Face {
    pub(crate) name: &'static str,
    /// The name for people.
    pub(crate) display: &'static str,
    /// Other names it answers to: of older versions, and of the class that implements it.
    pub(crate) aliases: &'static [&'static str],
    pub(crate) kind: ToolKind,
    pub(crate) description: &'static str,
    pub(crate) schema: fn() -> Raw,
    pub(crate) checks: ArgumentCheck,
    /// Reads the arguments as the type that the schema describes.
    pub(crate) read: fn(Value) -> Result<TypedCall, Problem>,
    /// Makes the arguments for the text that the user made of the proposal.
    pub(crate) modify: Option<ModifyArguments>,
    pub(crate) voice: Voice,
}

impl Face {
    /// A tool of the `lathe` toolset, by its own words.
    pub(crate) const fn lathe<F: FaceArguments>(
        name: &'static str,
        display: &'static str,
        kind: ToolKind,
        description: &'static str,
    ) -> Self {
        Self::of::<F>(name, display, kind, description, Voice::lathe(CAP))
    }

    /// A tool in a toolset. `F` gives the schema, reads the arguments, and makes the call.
    pub(crate) const fn of<F: FaceArguments>(
        name: &'static str,
        display: &'static str,
        kind: ToolKind,
        description: &'static str,
        voice: Voice,
    ) -> Self {
        Self {
            name,
            display,
            aliases: &[],
            kind,
            description,
            schema: schema_of::<F>,
            checks: ArgumentCheck::Own,
            read: face_call::<F>,
            modify: None,
            voice,
        }
    }

    pub(crate) const fn with_aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    pub(crate) const fn with_check(self, checks: ArgumentCheck) -> Self {
        Self { checks, ..self }
    }

    pub(crate) const fn modified_by(self, modify: ModifyArguments) -> Self {
        Self { modify: Some(modify), ..self }
    }

    /// Limits foreign text to about `cap` bytes.
    pub(crate) const fn with_cap(self, cap: usize) -> Self {
        Self { voice: Voice { cap, ..self.voice }, ..self }
    }

    /// Tells whether its result is markdown. Gemini CLI takes the content of files for markdown too.
    pub(crate) fn markdown(&self) -> bool {
        match self.kind {
            ToolKind::Execute | ToolKind::Search => false,
            ToolKind::Read => gemini::FACES.iter().any(|face| face.name == self.name),
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

/// Bytes of foreign text that a tool of the `lathe` toolset shows, unless it sets another number.
const CAP: usize = 16_000;

/// The kinds of argument checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArgumentCheck {
    /// The schema decides, in the words of a schema validator.
    Schema,
    /// The face itself decides, in its own words.
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

/// The faces of a toolset, in the order of the model's list.
pub(crate) fn faces(toolset: Toolset) -> Box<dyn Iterator<Item = &'static Face>> {
    match toolset {
        Toolset::Lathe => Box::new(lathe_faces()),
        Toolset::Trae => Box::new(trae::FACES.iter()),
        Toolset::Gemini => Box::new(gemini::FACES.iter()),
        Toolset::Bash => Box::new(bash::ONE_TOOL.iter()),
    }
}

/// Lathe's own words for the results of tools. Foreign text stands between tags, so that the model can tell it from
/// Lathe's.
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

    use lathe_policy::tool_names;

    use super::*;
    use crate::built_in::{commands, special_faces};

    /// Rules name tools by the gate's table: a face or command that is missing there could not be denied by its name.
    #[test]
    fn every_name_of_every_toolset_and_command_is_in_the_gates_table() {
        let mut faces: Vec<&Face> = Toolset::ALL.iter().flat_map(|toolset| faces(*toolset)).collect();
        faces.extend(special_faces(|_| true));
        let mut names: BTreeSet<&str> = faces
            .iter()
            .flat_map(|face| [face.name].into_iter().chain(face.aliases.iter().copied()))
            .collect();
        for command in commands() {
            let own = [command.name].into_iter().chain(command.aliases.iter().copied());
            names.extend(own.clone());
            for name in own.filter(|name| *name != "done" || command.tool == "done") {
                assert!(
                    name == command.tool || tool_names(command.tool).any(|known| known == name),
                    "{name} is {}",
                    command.tool
                );
            }
        }
        names.insert(crate::faces::caller::NAME);
        let known: BTreeSet<&str> = crate::every_tool_name().collect();
        let missing: Vec<&&str> = names.iter().filter(|name| !known.contains(*name)).collect();
        assert_eq!(missing, Vec::<&&str>::new());
    }
}
