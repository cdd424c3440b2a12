//! Gemini CLI's parameters, turned into those of Lathe's tools.

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use crate::face::Adapted;
use crate::preview::Preview;
use crate::problem::Problem;
use crate::{ask, bash, edit, glob, list, many, memory, search, todo, view, write};

// These types are only read for their schemas, by which the arguments are checked before they come here.

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(super) struct ReadFile {
    /// The path of the file to read.
    file_path: String,
    /// Optional: the line to begin with, from 0. Needs `limit`.
    offset: Option<f64>,
    /// Optional: how many lines to read.
    limit: Option<f64>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(super) struct Replace {
    /// The path of the file to change.
    file_path: String,
    /// The exact text to replace, with at least three lines around the change. Empty to make a new file.
    old_string: String,
    /// The exact text to put in its place.
    new_string: String,
    /// How many occurrences are to be replaced; 1 if left out.
    #[schemars(range(min = 1))]
    expected_replacements: Option<f64>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(super) struct WriteFile {
    /// The path of the file to write.
    file_path: String,
    /// The content of the file.
    content: String,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(super) struct Shell {
    /// The exact bash command to run.
    command: String,
    /// What the command does, in a few words, for the user.
    description: Option<String>,
    /// The folder to run it in, if not the current one.
    dir_path: Option<String>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(super) struct Filtering {
    /// Optional: whether `.gitignore` counts; true if left out.
    respect_git_ignore: Option<bool>,
    /// Optional: whether `.geminiignore` counts; true if left out.
    respect_gemini_ignore: Option<bool>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(super) struct ListDirectory {
    /// The path of the folder to list.
    dir_path: String,
    /// Optional: globs of names to leave out.
    ignore: Option<Vec<String>>,
    /// Optional: whether ignore files count.
    file_filtering_options: Option<Filtering>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(super) struct SearchText {
    /// The regular expression to look for.
    pattern: String,
    /// Optional: the path of the folder to look in; the workspace if left out.
    dir_path: Option<String>,
    /// Optional: a glob the files must match, for example `*.js` or `src/**`.
    include: Option<String>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(super) struct Glob {
    /// The pattern, for example `**/*.py`.
    pattern: String,
    /// Optional: the path of the folder to look in; the workspace if left out.
    dir_path: Option<String>,
    /// Optional: tell upper from lower case; false if left out.
    case_sensitive: Option<bool>,
    /// Optional: whether `.gitignore` counts; true if left out.
    respect_git_ignore: Option<bool>,
    /// Optional: whether `.geminiignore` counts; true if left out.
    respect_gemini_ignore: Option<bool>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(super) struct ReadMany {
    /// Paths or globs of the files to read, from the workspace on.
    #[schemars(length(min = 1))]
    include: Vec<String>,
    /// Optional: globs of files to leave out.
    exclude: Option<Vec<String>>,
    /// Optional: look into folders below; `**` in a pattern does.
    recursive: Option<bool>,
    /// Optional: leave out what is commonly of no interest, as `node_modules`; true if left out.
    #[schemars(rename = "useDefaultExcludes")]
    use_default_excludes: Option<bool>,
    /// Optional: whether ignore files count.
    file_filtering_options: Option<Filtering>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(super) struct SaveMemory {
    /// The fact to remember: one clear sentence that stands for itself.
    fact: String,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(super) struct AskUser {
    /// One to four questions.
    #[schemars(length(min = 1, max = 4))]
    questions: Vec<Question>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[allow(dead_code)]
pub(super) enum QuestionType {
    Choice,
    Text,
    YesNo,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(super) struct Choice {
    /// The answer, in a few words.
    label: String,
    /// What it means.
    description: Option<String>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(super) struct Question {
    /// The question itself.
    question: String,
    /// One or two words above it.
    header: Option<String>,
    /// What sort of answer is wanted; `text` if left out.
    r#type: Option<QuestionType>,
    /// For `choice`: two to four answers to choose from.
    options: Option<Vec<Choice>>,
    /// For `choice`: more than one may be chosen.
    #[schemars(rename = "multiSelect")]
    multi_select: Option<bool>,
    /// For `text`: an example of an answer.
    placeholder: Option<String>,
}

fn wrong<T>(text: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Schema(text.into()))
}

/// What was given, for a look by name.
struct Given(Map<String, Value>);

impl Given {
    fn new(value: Value) -> Self {
        match value {
            Value::Object(object) => Self(object),
            _ => Self(Map::new()),
        }
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A path, which may not be empty.
    fn path(&self, name: &str) -> Result<&str, Problem> {
        match self.text(name) {
            "" => wrong(format!("The '{name}' parameter must be non-empty.")),
            path => Ok(path),
        }
    }

    /// A whole number: schemas of Gemini CLI say `number` for all of them.
    fn number(&self, name: &str) -> Result<Option<i64>, Problem> {
        match self.0.get(name).and_then(Value::as_f64) {
            None => Ok(None),
            #[allow(clippy::cast_possible_truncation)]
            Some(number) if number.fract() == 0.0 && number.abs() < 1e15 => Ok(Some(number as i64)),
            Some(_) => wrong(format!("params/{name} must be a whole number")),
        }
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
}

/// Bytes of a file that is read whole.
const LARGEST: u64 = 20 << 20;

/// Bytes of a picture that is text.
const LARGEST_SVG: u64 = 1 << 20;

pub(super) fn read_file(value: Value) -> Result<Adapted, Problem> {
    let given = Given::new(value);
    let path = given.path("file_path")?;
    let (offset, limit) = (given.number("offset")?, given.number("limit")?);
    if offset.is_some_and(|offset| offset < 0) {
        return wrong("Offset must be a non-negative number");
    }
    if limit.is_some_and(|limit| limit <= 0) {
        return wrong("Limit must be a positive number");
    }
    let (mut first, mut last) = (offset.map(|offset| offset + 1), None);
    if let Some(limit) = limit {
        last = Some(first.unwrap_or(1).saturating_add(limit - 1));
    }
    // The later spelling: both from 1, both included.
    if let Some(start) = given.number("start_line")? {
        first = Some(start);
    }
    if let Some(end) = given.number("end_line")? {
        last = Some(end);
    }
    if first.is_some_and(|first| first < 1) {
        return wrong("start_line must be at least 1");
    }
    if let (Some(first), Some(last)) = (first, last)
        && last < first
    {
        return wrong("start_line cannot be greater than end_line");
    }
    // A window of a larger file costs nothing; of a picture it is worth nothing.
    let is_picture = path.to_ascii_lowercase().ends_with(".svg");
    let most = match (first, last) {
        _ if is_picture => Some(LARGEST_SVG),
        (None, None) => Some(LARGEST),
        _ => None,
    };
    Ok((
        view::ID,
        json!({
            "path": path, "first": first, "last": last, "most": most, "respect_ignore": true, "only_files": true,
        }),
    ))
}

pub(super) fn replace(value: Value) -> Result<Adapted, Problem> {
    let given = Given::new(value);
    let path = given.path("file_path")?;
    let (old, new) = (given.text("old_string"), given.text("new_string"));
    if old.is_empty() {
        return Ok((write::ID, json!({ "path": path, "content": new, "overwrite": "never" })));
    }
    let expected = given.number("expected_replacements")?;
    Ok((
        edit::ID,
        json!({
            "path": path,
            "old_str": old,
            "new_str": new,
            "replace_all": given.flag("allow_multiple"),
            "expected": expected.filter(|expected| *expected > 1),
            "fuzzy": true,
            "keep_end": true,
        }),
    ))
}

pub(super) fn write_file(value: Value) -> Result<Adapted, Problem> {
    let given = Given::new(value);
    let path = given.path("file_path")?;
    Ok((write::ID, json!({ "path": path, "content": given.text("content"), "overwrite": "unseen" })))
}

/// What the model would have had to write.
pub(super) fn modify_write(value: Value, _: &Preview, proposed: &str) -> Option<Value> {
    let Value::Object(mut given) = value else { return None };
    let before = given.insert("content".to_owned(), proposed.into());
    given.insert("modified_by_user".to_owned(), true.into());
    given.insert("ai_proposed_content".to_owned(), before?);
    Some(Value::Object(given))
}

/// The whole old file is replaced by what the person made of it.
pub(super) fn modify_replace(value: Value, preview: &Preview, proposed: &str) -> Option<Value> {
    let (Value::Object(mut given), Preview::Edit { current, proposed: offered, .. }) = (value, preview)
    else {
        return None;
    };
    given.insert("old_string".to_owned(), current.as_str().into());
    given.insert("new_string".to_owned(), proposed.into());
    given.insert("modified_by_user".to_owned(), true.into());
    given.insert("ai_proposed_content".to_owned(), offered.as_str().into());
    given.remove("expected_replacements");
    Some(Value::Object(given))
}

pub(super) fn shell(value: Value) -> Result<Adapted, Problem> {
    let given = Given::new(value);
    let command = given.text("command");
    if command.trim().is_empty() {
        return wrong("Command cannot be empty.");
    }
    let folder = Some(given.text("dir_path")).filter(|folder| !folder.is_empty());
    let command =
        if given.flag("is_background") { format!("{{ {command}\n}} &") } else { command.to_owned() };
    Ok((bash::ID, json!({ "command": command, "folder": folder })))
}

impl Given {
    /// An optional folder.
    fn folder(&self) -> Option<&str> {
        let given = self.0.get("dir_path").or_else(|| self.0.get("path"));
        given.and_then(Value::as_str).filter(|folder| !folder.is_empty())
    }

    /// The same for a call that may lift git's ignore files by another word too.
    fn respect_unless(&self, lifts_git: bool) -> Value {
        let mut respect = self.respect();
        if lifts_git {
            respect["git"] = Value::Bool(false);
        }
        respect
    }

    /// Which ignore files count, each kind by itself.
    fn respect(&self) -> Value {
        let options = self.0.get("file_filtering_options").and_then(Value::as_object);
        let says = |name: &str| {
            options
                .and_then(|options| options.get(name))
                .or_else(|| self.0.get(name))
                .and_then(Value::as_bool)
        };
        let [git, gemini] =
            ["respect_git_ignore", "respect_gemini_ignore"].map(|name| says(name).unwrap_or(true));
        json!({ "git": git, "gemini": gemini, "start": true })
    }

    fn list(&self, name: &str) -> Vec<&str> {
        self.0.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

pub(super) fn list_directory(value: Value) -> Result<Adapted, Problem> {
    let given = Given::new(value);
    let path = given.path("dir_path")?;
    let arguments = json!({
        "path": path,
        "ignore": given.list("ignore"),
        "respect": given.respect(),
    });
    Ok((list::ID, arguments))
}

pub(super) fn search(value: Value) -> Result<Adapted, Problem> {
    let given = Given::new(value);
    let count =
        |name: &str| given.number(name).map(|number| number.and_then(|number| usize::try_from(number).ok()));
    let include =
        ["include", "include_pattern"].map(|name| given.text(name)).into_iter().find(|text| !text.is_empty());
    let arguments = json!({
        "pattern": given.path("pattern")?,
        "path": given.folder(),
        "glob": include,
        "ignore_case": !given.flag("case_sensitive"),
        "literal": given.flag("fixed_strings"),
        "files_only": given.flag("names_only"),
        "respect": given.respect_unless(given.flag("no_ignore")),
        "hidden": true,
        "context": count("context")?,
        "before": count("before")?,
        "after": count("after")?,
        "without": Some(given.text("exclude_pattern")).filter(|text| !text.is_empty()),
        "per_file": count("max_matches_per_file")?,
        "limit": count("total_max_matches")?.unwrap_or(20_000),
    });
    Ok((search::ID, arguments))
}

pub(super) fn glob(value: Value) -> Result<Adapted, Problem> {
    let given = Given::new(value);
    if given.text("pattern").trim().is_empty() {
        return wrong("The 'pattern' parameter cannot be empty.");
    }
    let arguments = json!({
        "pattern": given.text("pattern"),
        "path": given.folder(),
        "case_sensitive": given.flag("case_sensitive"),
        "hidden": true,
        "respect": given.respect(),
        "count_ignored": true,
        "limit": 2000,
    });
    Ok((glob::ID, arguments))
}

pub(super) fn read_many(value: Value) -> Result<Adapted, Problem> {
    let given = Given::new(value);
    let arguments = json!({
        "include": given.list("include"),
        "exclude": given.list("exclude"),
        "default_excludes": given.0.get("useDefaultExcludes").and_then(Value::as_bool).unwrap_or(true),
        "respect": given.respect(),
    });
    Ok((many::ID, arguments))
}

/// The section of the seed.
const MEMORIES: &str = "## Gemini Added Memories";

pub(super) fn save_memory(value: Value) -> Result<Adapted, Problem> {
    let given = Given::new(value);
    let modified = given.0.get("modified_content").and_then(Value::as_str);
    let fact = given.text("fact");
    if fact.trim().is_empty() {
        return wrong("Parameter \"fact\" must be a non-empty string.");
    }
    Ok((memory::ID, json!({ "fact": fact, "scope": "user", "heading": MEMORIES, "modified": modified })))
}

/// The whole file as the person made it.
pub(super) fn modify_memory(value: Value, _: &Preview, proposed: &str) -> Option<Value> {
    let Value::Object(mut given) = value else { return None };
    given.insert("modified_by_user".to_owned(), true.into());
    given.insert("modified_content".to_owned(), proposed.into());
    Some(Value::Object(given))
}

pub(super) fn write_todos(value: Value) -> Result<Adapted, Problem> {
    Ok((todo::ID, value))
}

pub(super) fn ask_user(value: Value) -> Result<Adapted, Problem> {
    Ok((ask::ID, value))
}
