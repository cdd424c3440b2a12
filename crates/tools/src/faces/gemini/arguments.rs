//! Gemini CLI's parameters, turned into those of Lathe's tools.

use lathe_protocol::{Question, QuestionKind, QuestionOption};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::call::{FaceArguments, TypedCall};
use crate::faces::Soft;
use crate::preview::Preview;
use crate::problem::Problem;
use crate::search::RespectedIgnores;
use crate::{ask, bash, edit, glob, list, many, memory, search, view, write};

// The arguments are checked by the schemas of these types before they are read. Fields that are skipped in the schema
// are parameters of later versions.

#[derive(Deserialize, JsonSchema)]
pub(super) struct ReadFile {
    /// The path of the file to read.
    file_path: String,
    /// Optional: the line to begin with, from 0. Needs `limit`.
    offset: Option<f64>,
    /// Optional: how many lines to read.
    limit: Option<f64>,
    #[serde(default)]
    #[schemars(skip)]
    start_line: Soft<f64>,
    #[serde(default)]
    #[schemars(skip)]
    end_line: Soft<f64>,
}

#[derive(Deserialize, JsonSchema)]
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
    #[serde(default)]
    #[schemars(skip)]
    allow_multiple: Soft<bool>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct WriteFile {
    /// The path of the file to write.
    file_path: String,
    /// The content of the file.
    content: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct GeminiShell {
    /// The exact bash command to run.
    command: String,
    /// What the command does, in a few words, for the user.
    #[serde(rename = "description")]
    _description: Option<String>,
    /// The folder to run it in, if not the current one.
    dir_path: Option<String>,
    #[serde(default)]
    #[schemars(skip)]
    is_background: Soft<bool>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Filtering {
    /// Optional: whether `.gitignore` counts; true if left out.
    respect_git_ignore: Option<bool>,
    /// Optional: whether `.geminiignore` counts; true if left out.
    respect_gemini_ignore: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListDirectory {
    /// The path of the folder to list.
    dir_path: String,
    /// Optional: globs of names to leave out.
    ignore: Option<Vec<String>>,
    /// Optional: whether ignore files count.
    file_filtering_options: Option<Filtering>,
    #[serde(default)]
    #[schemars(skip)]
    respect_git_ignore: Soft<bool>,
    #[serde(default)]
    #[schemars(skip)]
    respect_gemini_ignore: Soft<bool>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct SearchText {
    /// The regular expression to look for.
    pattern: String,
    /// Optional: the path of the folder to look in; the workspace if left out.
    dir_path: Option<String>,
    /// Optional: a glob the files must match, for example `*.js` or `src/**`.
    include: Option<String>,
    #[serde(default)]
    #[schemars(skip)]
    path: Soft<String>,
    #[serde(default)]
    #[schemars(skip)]
    include_pattern: Soft<String>,
    #[serde(default)]
    #[schemars(skip)]
    case_sensitive: Soft<bool>,
    #[serde(default)]
    #[schemars(skip)]
    fixed_strings: Soft<bool>,
    #[serde(default)]
    #[schemars(skip)]
    names_only: Soft<bool>,
    #[serde(default)]
    #[schemars(skip)]
    no_ignore: Soft<bool>,
    #[serde(default)]
    #[schemars(skip)]
    context: Soft<f64>,
    #[serde(default)]
    #[schemars(skip)]
    before: Soft<f64>,
    #[serde(default)]
    #[schemars(skip)]
    after: Soft<f64>,
    #[serde(default)]
    #[schemars(skip)]
    exclude_pattern: Soft<String>,
    #[serde(default)]
    #[schemars(skip)]
    max_matches_per_file: Soft<f64>,
    #[serde(default)]
    #[schemars(skip)]
    total_max_matches: Soft<f64>,
    #[serde(default)]
    #[schemars(skip)]
    file_filtering_options: Soft<Filtering>,
    #[serde(default)]
    #[schemars(skip)]
    respect_git_ignore: Soft<bool>,
    #[serde(default)]
    #[schemars(skip)]
    respect_gemini_ignore: Soft<bool>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct GeminiGlob {
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
    #[serde(default)]
    #[schemars(skip)]
    path: Soft<String>,
    #[serde(default)]
    #[schemars(skip)]
    file_filtering_options: Soft<Filtering>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ReadMany {
    /// Paths or globs of the files to read, from the workspace on.
    #[schemars(length(min = 1))]
    include: Vec<String>,
    /// Optional: globs of files to leave out.
    exclude: Option<Vec<String>>,
    /// Optional: look into folders below; `**` in a pattern does.
    #[serde(rename = "recursive")]
    _recursive: Option<bool>,
    /// Optional: leave out what is commonly of no interest, as `node_modules`; true if left out.
    #[serde(rename = "useDefaultExcludes")]
    use_default_excludes: Option<bool>,
    /// Optional: whether ignore files count.
    file_filtering_options: Option<Filtering>,
    #[serde(default)]
    #[schemars(skip)]
    respect_git_ignore: Soft<bool>,
    #[serde(default)]
    #[schemars(skip)]
    respect_gemini_ignore: Soft<bool>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct SaveMemory {
    /// The fact to remember: one clear sentence that stands for itself.
    fact: String,
    #[serde(default)]
    #[schemars(skip)]
    modified_content: Soft<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct AskUser {
    /// One to four questions.
    #[schemars(length(min = 1, max = 4))]
    questions: Vec<AskedQuestion>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct AskedOption {
    /// The answer, in a few words.
    label: String,
    /// Its meaning.
    description: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct AskedQuestion {
    /// The question itself.
    question: String,
    /// One or two words above it.
    header: Option<String>,
    /// What sort of answer is wanted; `text` if left out.
    r#type: Option<QuestionKind>,
    /// For `choice`: two to four answers to choose from.
    options: Option<Vec<AskedOption>>,
    /// For `choice`: more than one may be chosen.
    #[serde(rename = "multiSelect")]
    multi_select: Option<bool>,
    /// For `text`: an example of an answer.
    placeholder: Option<String>,
}

fn wrong<T>(text: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Schema(text.into()))
}

/// A path that must not be empty.
fn path(name: &str, path: String) -> Result<String, Problem> {
    match path.is_empty() {
        true => wrong(format!("The '{name}' parameter must be non-empty.")),
        false => Ok(path),
    }
}

/// A whole number. Schemas of Gemini CLI use `number` for all of them.
fn whole(name: &str, number: Option<f64>) -> Result<Option<i64>, Problem> {
    match number {
        None => Ok(None),
        #[allow(clippy::cast_possible_truncation)]
        Some(number) if number.fract() == 0.0 && number.abs() < 1e15 => Ok(Some(number as i64)),
        Some(_) => wrong(format!("params/{name} must be a whole number")),
    }
}

/// A count. A negative number is treated as not given.
fn count(name: &str, number: Soft<f64>) -> Result<Option<usize>, Problem> {
    Ok(whole(name, number.get())?.and_then(|number| usize::try_from(number).ok()))
}

/// An optional folder, by its name or its later name.
fn folder(dir_path: Option<String>, path: Soft<String>) -> Option<String> {
    dir_path.or(path.get()).filter(|folder| !folder.is_empty())
}

fn filled(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// The ignore files that count, each kind by itself: as the options say, otherwise as the parameters next to them
/// say.
fn respect(options: Option<Filtering>, git: Option<bool>, gemini: Option<bool>) -> RespectedIgnores {
    let (first_git, first_gemini) =
        options.map_or((None, None), |options| (options.respect_git_ignore, options.respect_gemini_ignore));
    RespectedIgnores {
        git: first_git.or(git).unwrap_or(true),
        gemini: first_gemini.or(gemini).unwrap_or(true),
        start: true,
    }
}

/// The most bytes of a file that is read whole.
const LARGEST: u64 = 20 << 20;

/// The most bytes of an SVG picture.
const LARGEST_SVG: u64 = 1 << 20;

impl FaceArguments for ReadFile {
    fn call(self) -> Result<TypedCall, Problem> {
        let path = path("file_path", self.file_path)?;
        let (offset, limit) = (whole("offset", self.offset)?, whole("limit", self.limit)?);
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
        // The later spelling: both from 1, both inclusive.
        if let Some(start) = whole("start_line", self.start_line.get())? {
            first = Some(start);
        }
        if let Some(end) = whole("end_line", self.end_line.get())? {
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
        // A window of a larger file costs nothing; a window of a picture is worth nothing.
        let is_picture = path.to_ascii_lowercase().ends_with(".svg");
        let most = match (first, last) {
            _ if is_picture => Some(LARGEST_SVG),
            (None, None) => Some(LARGEST),
            _ => None,
        };
        Ok(TypedCall::new(view::ViewParameters {
            path,
            first,
            last,
            most,
            respect_ignore: true,
            only_files: true,
            leave_ignored: false,
        }))
    }
}

impl FaceArguments for Replace {
    fn call(self) -> Result<TypedCall, Problem> {
        let path = path("file_path", self.file_path)?;
        if self.old_string.is_empty() {
            let content = write::Content::Text(self.new_string);
            let overwrite = write::Overwrite::Never;
            return Ok(TypedCall::new(write::WriteParameters { path, content, overwrite, as_is: false }));
        }
        let expected = whole("expected_replacements", self.expected_replacements)?;
        let expected = expected.filter(|expected| *expected > 1);
        Ok(TypedCall::new(edit::EditParameters {
            path,
            old_str: Some(self.old_string),
            new_str: self.new_string,
            replace_all: Some(self.allow_multiple.is_set()),
            expected: expected.and_then(|expected| usize::try_from(expected).ok()),
            fuzzy: Some(true),
            keep_end: Some(true),
            ..edit::EditParameters::default()
        }))
    }
}

impl FaceArguments for WriteFile {
    fn call(self) -> Result<TypedCall, Problem> {
        Ok(TypedCall::new(write::WriteParameters {
            path: path("file_path", self.file_path)?,
            content: write::Content::Text(self.content),
            overwrite: write::Overwrite::Unseen,
            as_is: false,
        }))
    }
}

/// Arguments of `write_file` for the text that the user made of the proposal.
pub(super) fn modify_write(value: Value, _: &Preview, proposed: &str) -> Option<Value> {
    let Value::Object(mut given) = value else { return None };
    let before = given.insert("content".to_owned(), proposed.into());
    given.insert("modified_by_user".to_owned(), true.into());
    given.insert("ai_proposed_content".to_owned(), before?);
    Some(Value::Object(given))
}

/// Arguments of `replace` that replace the whole old file by the user's version.
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

impl FaceArguments for GeminiShell {
    fn call(self) -> Result<TypedCall, Problem> {
        if self.command.trim().is_empty() {
            return wrong("Command cannot be empty.");
        }
        let command = match self.is_background.is_set() {
            true => format!("{{ {}\n}} &", self.command),
            false => self.command,
        };
        let folder = self.dir_path.and_then(filled);
        Ok(TypedCall::new(bash::BashParameters {
            command: Some(command),
            folder,
            ..bash::BashParameters::default()
        }))
    }
}

impl FaceArguments for ListDirectory {
    fn call(self) -> Result<TypedCall, Problem> {
        let (git, gemini) = (self.respect_git_ignore.get(), self.respect_gemini_ignore.get());
        Ok(TypedCall::new(list::ListParameters {
            path: path("dir_path", self.dir_path)?,
            ignore: self.ignore.unwrap_or_default(),
            respect: respect(self.file_filtering_options, git, gemini),
        }))
    }
}

impl FaceArguments for SearchText {
    fn call(self) -> Result<TypedCall, Problem> {
        let (git, gemini) = (self.respect_git_ignore.get(), self.respect_gemini_ignore.get());
        let mut respect = respect(self.file_filtering_options.get(), git, gemini);
        respect.git &= !self.no_ignore.is_set();
        let include = self.include.and_then(filled).or(self.include_pattern.get().and_then(filled));
        Ok(TypedCall::new(search::SearchParameters {
            pattern: path("pattern", self.pattern)?,
            path: folder(self.dir_path, self.path),
            glob: include,
            ignore_case: Some(!self.case_sensitive.is_set()),
            literal: Some(self.fixed_strings.is_set()),
            files_only: Some(self.names_only.is_set()),
            respect: Some(respect),
            hidden: Some(true),
            context: count("context", self.context)?,
            before: count("before", self.before)?,
            after: count("after", self.after)?,
            without: self.exclude_pattern.get().and_then(filled),
            per_file: count("max_matches_per_file", self.max_matches_per_file)?,
            limit: Some(count("total_max_matches", self.total_max_matches)?.unwrap_or(20_000)),
            ..search::SearchParameters::default()
        }))
    }
}

impl FaceArguments for GeminiGlob {
    fn call(self) -> Result<TypedCall, Problem> {
        if self.pattern.trim().is_empty() {
            return wrong("The 'pattern' parameter cannot be empty.");
        }
        let options = self.file_filtering_options.get();
        Ok(TypedCall::new(glob::GlobParameters {
            pattern: self.pattern,
            path: folder(self.dir_path, self.path),
            case_sensitive: Some(self.case_sensitive.unwrap_or(false)),
            hidden: Some(true),
            respect: Some(respect(options, self.respect_git_ignore, self.respect_gemini_ignore)),
            count_ignored: Some(true),
            limit: Some(2000),
            ..glob::GlobParameters::default()
        }))
    }
}

impl FaceArguments for ReadMany {
    fn call(self) -> Result<TypedCall, Problem> {
        let (git, gemini) = (self.respect_git_ignore.get(), self.respect_gemini_ignore.get());
        Ok(TypedCall::new(many::ManyParameters {
            include: self.include,
            exclude: self.exclude.unwrap_or_default(),
            default_excludes: self.use_default_excludes.unwrap_or(true),
            respect: respect(self.file_filtering_options, git, gemini),
        }))
    }
}

/// The section that the original uses.
const MEMORIES: &str = "## Gemini Added Memories";

impl FaceArguments for SaveMemory {
    fn call(self) -> Result<TypedCall, Problem> {
        if self.fact.trim().is_empty() {
            return wrong("Parameter \"fact\" must be a non-empty string.");
        }
        Ok(TypedCall::new(memory::MemoryParameters {
            fact: self.fact,
            scope: memory::MemoryScope::User,
            heading: MEMORIES,
            modified: self.modified_content.get(),
        }))
    }
}

/// Arguments of `save_memory` with the whole file as the user edited it.
pub(super) fn modify_memory(value: Value, _: &Preview, proposed: &str) -> Option<Value> {
    let Value::Object(mut given) = value else { return None };
    given.insert("modified_by_user".to_owned(), true.into());
    given.insert("modified_content".to_owned(), proposed.into());
    Some(Value::Object(given))
}

impl FaceArguments for AskUser {
    fn call(self) -> Result<TypedCall, Problem> {
        let questions = self.questions.into_iter().map(AskedQuestion::question).collect();
        Ok(TypedCall::new(ask::AskParameters { questions }))
    }
}

impl AskedQuestion {
    fn question(self) -> Question {
        let option = |AskedOption { label, description }| QuestionOption {
            label,
            description: description.unwrap_or_default(),
        };
        Question {
            question: self.question,
            header: self.header.unwrap_or_default(),
            kind: self.r#type.unwrap_or_default(),
            options: self.options.unwrap_or_default().into_iter().map(option).collect(),
            multi_select: self.multi_select.unwrap_or(false),
            placeholder: self.placeholder.unwrap_or_default(),
        }
    }
}
