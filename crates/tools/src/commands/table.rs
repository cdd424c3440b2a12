//! The agent commands: under which names the tools answer in the session's bash, and how their words are read.

use lathe_protocol::{Kind, Raw};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::blocks;
use crate::face::Adapted;
use crate::memory::Scope;
use crate::problem::Problem;
use crate::schema::schema_of;
use crate::tool::arguments;
use crate::{ask, ckg, code, data, done, edit, glob, list, memory, patch, search, think, todo, view, write};

/// One command. What a session asks of the shell itself (`commands`, `jobs`) has no tool.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    /// The canonical name of the tool behind it.
    pub(crate) tool: &'static str,
    pub(crate) summary: &'static str,
    /// What stands below the parameters in `--help`.
    pub(crate) notes: &'static str,
    pub(crate) kind: Kind,
    pub(crate) schema: fn() -> Raw,
    pub(crate) short: &'static [(char, &'static str)],
    /// The parameters that words without a name go to, in order.
    pub(crate) positions: &'static [&'static str],
    /// The parameter that takes every further word.
    pub(crate) rest: Option<&'static str>,
    /// The parameter that standard input gives where no word does.
    pub(crate) input: Option<&'static str>,
    /// Parameters that are paths, in which a quoted `~` is still the home.
    pub(crate) paths: &'static [&'static str],
    /// Where relative paths begin.
    pub(crate) base: Base,
    /// One call for each of several files, else just one.
    pub(crate) adapt: fn(Map<String, Value>) -> Result<Vec<Adapted>, Problem>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// The caller's folder.
    Caller,
    /// The workspace.
    Root,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
struct ViewWords {
    /// Files or folders.
    file_path: Vec<String>,
    /// First line to show, from 1.
    offset: Option<i64>,
    /// How many lines to show; 2000 if left out.
    limit: Option<i64>,
    /// Number the lines. On where the output is read by a model, off in a pipe or file.
    show_line_numbers: Option<bool>,
    /// The bytes as they are, wherever they go.
    raw: Option<bool>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
struct WriteWords {
    /// File to write; folders on the way are made.
    file_path: String,
    /// The whole content. Left out, it is read from standard input, byte for byte.
    content: String,
}

#[derive(Deserialize, JsonSchema)]
struct EditWords {
    /// File to change.
    file_path: String,
    /// Text to replace, exactly as it stands in the file; it must stand there once.
    #[serde(default)]
    old_string: Option<String>,
    /// Text to put in its place; an empty word deletes.
    #[serde(default)]
    new_string: Option<String>,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: Option<bool>,
    /// Instead of old_string: insert new_string after this line; 0 is the beginning.
    #[serde(default)]
    insert_line: Option<i64>,
    /// Search/replace blocks; read from standard input where old_string and new_string are left out.
    #[serde(default)]
    blocks: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct JsonWords {
    /// What to do.
    operation: data::Operation,
    /// JSON, TOML or YAML file.
    file_path: String,
    /// Which values, as a JSONPath: `$.a.b`, `$..name`.
    #[serde(default)]
    json_path: Option<String>,
    /// The new value, as JSON; what is no JSON is a text.
    #[serde(default)]
    value: Option<Value>,
    /// Format the whole file anew, instead of keeping it as it is.
    #[serde(default)]
    pretty_print: Option<bool>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
struct GlobWords {
    /// The pattern, from the folder on: `**/*.rs`, `src/*/mod.rs`. Quote it, or bash expands it first.
    pattern: String,
    /// Folder to look in; the current one if left out.
    path: Option<String>,
    /// Look at hidden and ignored files too.
    all: Option<bool>,
    /// Files to name at most; 200 if left out, all of them in a pipe.
    limit: Option<i64>,
}

#[derive(Deserialize, JsonSchema)]
struct ListWords {
    /// Folder; the current one if left out.
    #[serde(default)]
    path: Option<String>,
    /// Names to leave out, as globs.
    #[serde(default)]
    ignore: Option<Vec<String>>,
    /// List ignored names too.
    #[serde(default)]
    all: Option<bool>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
struct TodoWords {
    /// The whole list, in its order, as JSON or as one step a word: `[x] done`, `[>] in progress`, `[ ] to do`. Left out,
    /// it is read from standard input, one step a line; without that the list is shown.
    todos: Option<Vec<String>>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
struct MemoryWords {
    /// One short sentence that will be true and useful later.
    fact: String,
    /// `user` for what holds everywhere (the default), `project` for this repository.
    scope: Option<Scope>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
struct AskWords {
    /// The question, with all the user must know to answer it.
    question: String,
    /// Two to four answers to choose from, if there are such.
    options: Option<Vec<String>>,
}

#[derive(Deserialize, JsonSchema)]
struct CkgWords {
    /// What to look for.
    command: CkgCommand,
    /// Name of the function, method or class.
    identifier: String,
    /// Folder of the codebase; the workspace if left out.
    #[serde(default)]
    path: Option<String>,
    /// Print the bodies too.
    #[serde(default)]
    print_body: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
enum CkgCommand {
    #[serde(rename = "search_function")]
    Function,
    #[serde(rename = "search_class")]
    Class,
    #[serde(rename = "search_class_method")]
    ClassMethod,
}

impl CkgCommand {
    fn name(&self) -> &'static str {
        match self {
            Self::Function => "search_function",
            Self::Class => "search_class",
            Self::ClassMethod => "search_class_method",
        }
    }
}

pub(crate) static COMMANDS: [Command; 15] = [
    Command {
        name: "view",
        aliases: &["read"],
        tool: view::ID,
        summary: "Show files with line numbers, or folders; in a pipe or file, the bytes themselves.",
        notes: include_str!("notes/view.md"),
        kind: Kind::Read,
        schema: schema_of::<ViewWords>,
        short: &[('n', "show_line_numbers")],
        positions: &[],
        rest: Some("file_path"),
        input: None,
        paths: &["file_path"],
        base: Base::Caller,
        adapt: adapt_view,
    },
    Command {
        name: "write",
        aliases: &[],
        tool: write::ID,
        summary: "Write a whole file, content by word or from standard input.",
        notes: include_str!("notes/write.md"),
        kind: Kind::Edit,
        schema: schema_of::<WriteWords>,
        short: &[],
        positions: &["file_path", "content"],
        rest: None,
        input: Some("content"),
        paths: &["file_path"],
        base: Base::Caller,
        adapt: |given| {
            let (path, content) = (given.get("file_path"), given.get("content"));
            one(write::ID, json!({ "path": path, "content": content, "overwrite": "unseen", "as_is": true }))
        },
    },
    Command {
        name: "edit",
        aliases: &[],
        tool: edit::ID,
        summary: "Replace a text in a file: exactly one place, or all with --replace-all.",
        notes: include_str!("notes/edit.md"),
        kind: Kind::Edit,
        schema: schema_of::<EditWords>,
        short: &[],
        positions: &["file_path", "old_string", "new_string"],
        rest: None,
        input: Some("blocks"),
        paths: &["file_path"],
        base: Base::Caller,
        adapt: adapt_edit,
    },
    Command {
        name: "json_edit",
        aliases: &[],
        tool: data::ID,
        summary: "View, set, add or remove values of a JSON, TOML or YAML file by JSONPath.",
        notes: include_str!("notes/json_edit.md"),
        kind: Kind::Edit,
        schema: schema_of::<JsonWords>,
        short: &[],
        positions: &["operation", "file_path", "json_path", "value"],
        rest: None,
        input: Some("value"),
        paths: &["file_path"],
        base: Base::Caller,
        adapt: |given| {
            let JsonWords { operation, file_path, json_path, value, pretty_print } =
                arguments(Value::Object(given))?;
            let pretty = pretty_print.unwrap_or(false);
            one(
                data::ID,
                json!({ "operation": operation, "path": file_path, "json_path": json_path, "value": value, "pretty": pretty }),
            )
        },
    },
    Command {
        name: "apply_patch",
        aliases: &[],
        tool: patch::ID,
        summary: "Apply a patch to files, all of it or nothing; the patch comes from standard input.",
        notes: include_str!("notes/apply_patch.md"),
        kind: Kind::Edit,
        schema: schema_of::<patch::Arguments>,
        short: &[],
        positions: &["patch"],
        rest: None,
        input: Some("patch"),
        paths: &[],
        base: Base::Caller,
        adapt: |given| one(patch::ID, Value::Object(given)),
    },
    Command {
        name: "search",
        aliases: &[],
        tool: search::ID,
        summary: "Find lines by regular expression, ignore files respected: `path:line:text`.",
        notes: include_str!("notes/search.md"),
        kind: Kind::Search,
        schema: schema_of::<search::Arguments>,
        short: &[
            ('i', "ignore_case"),
            ('l', "files_only"),
            ('F', "literal"),
            ('C', "context"),
            ('g', "glob"),
        ],
        positions: &["pattern", "path"],
        rest: None,
        input: None,
        paths: &["path"],
        base: Base::Caller,
        adapt: |given| one(search::ID, Value::Object(given)),
    },
    Command {
        name: "glob",
        aliases: &[],
        tool: glob::ID,
        summary: "Find files by name, newest first.",
        notes: "",
        kind: Kind::Search,
        schema: schema_of::<GlobWords>,
        short: &[],
        positions: &["pattern", "path"],
        rest: None,
        input: None,
        paths: &["path"],
        base: Base::Caller,
        adapt: |given| one(glob::ID, Value::Object(given)),
    },
    Command {
        name: "list",
        aliases: &[],
        tool: list::ID,
        summary: "Name what is in a folder, folders first.",
        notes: "",
        kind: Kind::Read,
        schema: schema_of::<ListWords>,
        short: &[],
        positions: &["path"],
        rest: None,
        input: None,
        paths: &["path"],
        base: Base::Caller,
        adapt: |given| {
            let ListWords { path, ignore, all } = arguments(Value::Object(given))?;
            let (path, ignore) = (path.unwrap_or_else(|| ".".to_owned()), ignore.unwrap_or_default());
            let respect = !all.unwrap_or(false);
            one(
                list::ID,
                json!({ "path": path, "ignore": ignore, "respect": { "git": respect, "gemini": respect } }),
            )
        },
    },
    Command {
        name: "code",
        aliases: &[],
        tool: code::ID,
        summary: "Ask the code graph: definitions, references, callers, tests, a map, what a diff can reach.",
        notes: include_str!("notes/code.md"),
        kind: Kind::Search,
        schema: schema_of::<code::Arguments>,
        short: &[],
        positions: &["command", "target"],
        rest: None,
        input: Some("target"),
        paths: &[],
        base: Base::Root,
        adapt: |given| one(code::ID, Value::Object(given)),
    },
    Command {
        name: "ckg",
        aliases: &[],
        tool: ckg::ID,
        summary: "Find functions, classes and methods by name in the code knowledge graph.",
        notes: "",
        kind: Kind::Search,
        schema: schema_of::<CkgWords>,
        short: &[],
        positions: &["command", "identifier", "path"],
        rest: None,
        input: None,
        paths: &["path"],
        base: Base::Root,
        adapt: |given| {
            let CkgWords { command, identifier, path, print_body } = arguments(Value::Object(given))?;
            let (path, print_body) = (path.unwrap_or_else(|| ".".to_owned()), print_body.unwrap_or(true));
            let command = command.name();
            one(
                ckg::ID,
                json!({ "command": command, "path": path, "identifier": identifier, "print_body": print_body }),
            )
        },
    },
    Command {
        name: "think",
        aliases: &[],
        tool: think::ID,
        summary: "Write a thought down. It changes nothing.",
        notes: "",
        kind: Kind::Think,
        schema: schema_of::<think::LatheArguments>,
        short: &[],
        positions: &["thought"],
        rest: None,
        input: Some("thought"),
        paths: &[],
        base: Base::Root,
        adapt: |given| Ok(vec![think::adapt_lathe(Value::Object(given))?]),
    },
    Command {
        name: "todo",
        aliases: &["TodoWrite"],
        tool: todo::ID,
        summary: "Keep the list of steps: show it, or replace it by a new one.",
        notes: include_str!("notes/todo.md"),
        kind: Kind::Think,
        schema: schema_of::<TodoWords>,
        short: &[],
        positions: &[],
        rest: Some("todos"),
        input: Some("todos"),
        paths: &[],
        base: Base::Root,
        adapt: |given| one(todo::ID, todo::adapt_words(&given)?),
    },
    Command {
        name: "memory",
        aliases: &["remember"],
        tool: memory::ID,
        summary: "Remember a fact beyond this session.",
        notes: "",
        kind: Kind::Think,
        schema: schema_of::<MemoryWords>,
        short: &[],
        positions: &["fact"],
        rest: None,
        input: Some("fact"),
        paths: &[],
        base: Base::Root,
        adapt: |given| Ok(vec![memory::adapt_lathe(Value::Object(given))?]),
    },
    Command {
        name: "ask",
        aliases: &["ask_user"],
        tool: ask::ID,
        summary: "Ask the user a question; the answer is printed.",
        notes: "",
        kind: Kind::Communicate,
        schema: schema_of::<AskWords>,
        short: &[],
        positions: &["question"],
        rest: Some("options"),
        input: Some("question"),
        paths: &[],
        base: Base::Root,
        adapt: |given| Ok(vec![ask::adapt_lathe(Value::Object(given))?]),
    },
    Command {
        name: "task_done",
        aliases: &["done"],
        tool: done::ID,
        summary: "Say that the task is done, with what was done and how it was verified.",
        notes: include_str!("notes/task_done.md"),
        kind: Kind::Other,
        schema: schema_of::<done::Arguments>,
        short: &[],
        positions: &["summary"],
        rest: None,
        input: Some("summary"),
        paths: &[],
        base: Base::Root,
        adapt: |given| one(done::ID, Value::Object(given)),
    },
];

pub(crate) fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name || command.aliases.contains(&name))
}

fn one(id: &'static str, arguments: Value) -> Result<Vec<Adapted>, Problem> {
    Ok(vec![(id, arguments)])
}

/// Files given as one word each, or as one text in JSON.
pub(crate) fn paths_of(given: &Map<String, Value>) -> Vec<String> {
    match given.get("file_path") {
        Some(Value::Array(paths)) => paths.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(path)) => vec![path.clone()],
        Some(_) | None => Vec::new(),
    }
}

fn adapt_view(given: Map<String, Value>) -> Result<Vec<Adapted>, Problem> {
    let part = ["offset", "limit"].map(|name| given.get(name).cloned().unwrap_or_default());
    let [offset, limit] = part;
    let view = |path| view::adapt_lathe(json!({ "path": path, "offset": offset, "limit": limit }));
    paths_of(&given).into_iter().map(view).collect()
}

fn adapt_edit(given: Map<String, Value>) -> Result<Vec<Adapted>, Problem> {
    let EditWords { file_path, old_string, new_string, replace_all, insert_line, blocks } =
        arguments(Value::Object(given))?;
    match (old_string, new_string, blocks) {
        (None, None, Some(text)) => blocks::adapt(&file_path, &text),
        (old, Some(new), None) => {
            let arguments = json!({ "path": file_path, "old_str": old, "new_str": new, "replace_all": replace_all, "insert_line": insert_line });
            one(edit::ID, arguments)
        }
        (Some(_), None, _) => Err(Problem::Arguments("Missing required parameter: new_string".to_owned())),
        (None, None, None) => Err(Problem::Arguments("Missing required parameter: old_string".to_owned())),
        (_, Some(_), Some(_)) => {
            Err(Problem::Arguments("give either old_string and new_string, or blocks".to_owned()))
        }
    }
}
