//! Searches text in files, by ripgrep's libraries.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Effects, ToolKind};
use lathe_search::{
    CaseMode, IgnoreOptions, LineKind, Scope, SearchError, TextFindings, TextQuery, find_text,
};
use lathe_workspace::FileKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::built_in::BuiltIn;
use crate::call::{BuildContext, Parameters, TypedCall};
use crate::commands::AgentCommand;
use crate::faces::Face;
use crate::files::hidden::{HiddenPaths, ReadPlace};
use crate::outcome::{Data, FoundData, Outcome};
use crate::problem::{FileAccess, Problem};
use crate::tool::{Invocation, RunContext, absolute, counted, display_path};
use crate::view::visible_name;

pub(crate) const ID: &str = "search";

/// The tool in the list of built-in tools.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: Some(
        Face::lathe::<SearchParameters>("search", "Search", ToolKind::Search, include_str!("lathe.md"))
            .with_cap(24_000),
    ),
    command: Some(
        AgentCommand::of::<SearchParameters>(
            "search",
            ID,
            ToolKind::Search,
            "Find lines by regular expression, ignore files respected: `path:line:text`.",
        )
        .with_notes(include_str!("notes.md"))
        .short(&[
            ('i', "ignore_case"),
            ('l', "files_only"),
            ('F', "literal"),
            ('C', "context"),
            ('g', "glob"),
        ])
        .with_positions(&["pattern", "path"], None)
        .in_callers_folder(&["path"]),
    ),
    only_if: None,
};

/// Matching lines shown when no limit is given.
const MATCHES: usize = 100;

/// Characters shown of a line.
const LINE: usize = 500;

#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchParameters {
    /// What to look for: a regular expression, or plain text with `literal`.
    pub(crate) pattern: String,
    /// File or folder to look in; the workspace if left out.
    #[serde(default)]
    pub(crate) path: Option<String>,
    /// Only files that match this glob, for example `*.py` or `src/**`.
    #[serde(default)]
    pub(crate) glob: Option<String>,
    /// Only files of this type, by ripgrep's names: `rust`, `py`, `ts`...
    #[serde(default, rename = "type")]
    pub(crate) kind: Option<String>,
    /// Take the pattern as plain text.
    #[serde(default)]
    pub(crate) literal: Option<bool>,
    #[serde(default)]
    /// Do not tell upper from lower case.
    pub(crate) ignore_case: Option<bool>,
    /// Let a match go over several lines.
    #[serde(default)]
    pub(crate) multiline: Option<bool>,
    /// Lines to show before and after each match.
    #[serde(default)]
    pub(crate) context: Option<usize>,
    /// Only name the files.
    #[serde(default)]
    pub(crate) files_only: Option<bool>,
    /// Look into hidden and ignored files too.
    #[serde(default)]
    pub(crate) all: Option<bool>,
    /// Matching lines to show at most; 100 if left out.
    #[serde(default)]
    pub(crate) limit: Option<usize>,
    // Only other toolsets have the following.
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) exclude: Option<String>,
    /// Lines that match this too are left out.
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) without: Option<String>,
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) per_file: Option<usize>,
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) before: Option<usize>,
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) after: Option<usize>,
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) hidden: Option<bool>,
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) respect: Option<RespectedIgnores>,
    /// The path must be a folder.
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) folder_only: Option<bool>,
}

/// The ignore files that a call respects, in the canonical arguments of file tools.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct RespectedIgnores {
    pub(crate) git: bool,
    pub(crate) gemini: bool,
    /// True if the path that the call names is left out too.
    #[serde(default)]
    pub(crate) start: bool,
}

impl Default for RespectedIgnores {
    fn default() -> Self {
        Self { git: true, gemini: true, start: false }
    }
}

impl From<RespectedIgnores> for IgnoreOptions {
    fn from(RespectedIgnores { git, gemini, start: _ }: RespectedIgnores) -> Self {
        Self { git, gemini }
    }
}

impl Parameters for SearchParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let given = self;
        if given.pattern.is_empty() {
            return Err(Problem::Arguments("pattern: it must not be empty".to_owned()));
        }
        if given.limit == Some(0) {
            return Err(Problem::Arguments("limit: it must be at least 1".to_owned()));
        }
        let start = absolute(ground.root, given.path.as_deref().unwrap_or("."));
        let flag = |flag: Option<bool>| flag.unwrap_or(false);
        let around = given.context.unwrap_or(0).min(200);
        let all = flag(given.all);
        let scope = Scope {
            include: given.glob.clone().into_iter().collect(),
            exclude: given.exclude.into_iter().collect(),
            types: given.kind.into_iter().collect(),
            hidden: all || flag(given.hidden),
            ignored: if all { IgnoreOptions::INCLUDED } else { given.respect.unwrap_or_default().into() },
            ignored_start: !all && given.respect.is_some_and(|respect| respect.start),
            ..Scope::default()
        };
        let query = TextQuery {
            pattern: given.pattern,
            literal: flag(given.literal),
            case: if flag(given.ignore_case) { CaseMode::Insensitive } else { CaseMode::Sensitive },
            words: false,
            multiline: flag(given.multiline),
            before: given.before.unwrap_or(around),
            after: given.after.unwrap_or(around),
            most: given.limit.unwrap_or(MATCHES).clamp(1, 20_000),
            most_per_file: given.per_file,
            without: given.without,
            names_only: flag(given.files_only),
        };
        let shown = display_path(ground.root, &start);
        Ok(Box::new(Search { shown, start, scope, query, folder_only: flag(given.folder_only) }))
    }

    fn literal(&self) -> Option<TypedCall> {
        let is_pattern = self.literal != Some(true);
        is_pattern.then(|| TypedCall::new(Self { literal: Some(true), ..self.clone() }))
    }
}

struct Search {
    start: PathBuf,
    /// The path for people.
    shown: String,
    scope: Scope,
    query: TextQuery,
    folder_only: bool,
}

impl Invocation for Search {
    fn describe(&self) -> String {
        format!("search {:?} in {}", self.query.pattern, self.shown)
    }

    fn effects(&self) -> Effects {
        Effects::reading(self.start.display().to_string())
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            match self.search(&context).await {
                Ok((found, left_out)) => Outcome { left_out, ..Ok(Data::Found(found)).into() },
                Err(problem) => Err(problem).into(),
            }
        })
    }
}

impl Search {
    async fn search(self, context: &RunContext) -> Result<(FoundData, usize), Problem> {
        let Self { start, mut scope, query, folder_only, .. } = self;
        scope.excluded_folder = context.tree(ID)?.closed().map(Path::to_owned);
        (scope.root, scope.start) = real_root_and_start(context, &start, ID).await?;
        scope.unread = context.services.unread.clone();
        let special = |path: &Path| {
            path.symlink_metadata()
                .is_ok_and(|found| !found.is_file() && !found.is_dir() && !found.is_symlink())
        };
        if context
            .services
            .workspace
            .files()
            .stat(&start)
            .await
            .is_ok_and(|stat| stat.kind == FileKind::Special)
            || special(&scope.start)
        {
            return Err(Problem::Search(format!(
                "{} is a FIFO, socket or device, not a regular file",
                start.display()
            )));
        }
        if folder_only && !scope.start.is_dir() {
            return Err(Problem::SearchNotFolder(start));
        }
        let base = if scope.start.is_dir() { scope.start.clone() } else { scope.root.clone() };
        let hidden = HiddenPaths::scan(context, ID, ToolKind::Search, &scope.start).await?;
        scope.exclude.extend(hidden.globs(&scope.start));
        let filter = scope.include.first().cloned();
        let asked = query.clone();
        let found = run_cancellable(context, move |cancel| find_text(&scope, &query, cancel)).await?;
        let mut found = found.map_err(|error| problem(error, &start))?;
        found.files.retain(|file| !hidden.has(&file.path));
        let data = FoundData { start: start.display().to_string(), base, filter, query: asked, found };
        Ok((data, hidden.count()))
    }
}

/// The root and the start, with all links resolved.
pub(crate) async fn real_root_and_start(
    context: &RunContext,
    start: &Path,
    tool: &str,
) -> Result<(PathBuf, PathBuf), Problem> {
    let place = ReadPlace::of(context, start, tool, ToolKind::Search);
    let missing = |error| match Problem::from_workspace(error, start, FileAccess::Reading) {
        Problem::NotFound(path) => Problem::SearchNotFound(path),
        Problem::Read { path, reason } => Problem::Search(format!("{}: {reason}", path.display())),
        other => other,
    };
    let real = place.files.real(&place.path).await.map_err(missing)?;
    let root = place.files.real(&place.root).await.map_err(missing)?;
    Ok((root, real))
}

/// Runs work on another thread, which ends when the call is cancelled.
pub(crate) async fn run_cancellable<T: Send + 'static>(
    context: &RunContext,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<T, Problem> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let mut task = tokio::task::spawn_blocking(move || work(&flag));
    let ended = tokio::select! {
        ended = &mut task => ended,
        () = context.cancel.cancelled() => {
            stop.store(true, Ordering::Relaxed);
            task.await
        }
    };
    ended.map_err(|error| Problem::Search(error.to_string()))
}

pub(crate) fn problem(error: SearchError, start: &Path) -> Problem {
    match error {
        SearchError::Pattern(reason) => Problem::Pattern(reason),
        SearchError::Ignored(path) => Problem::Ignored(path.display().to_string()),
        SearchError::NotFound(_) => Problem::SearchNotFound(start.to_owned()),
        SearchError::Cancelled => Problem::Cancelled("Cancelled by the user.".to_owned()),
        error @ (SearchError::Glob { .. } | SearchError::Type(_) | SearchError::LargePattern(_)) => {
            Problem::Arguments(error.to_string())
        }
        error @ SearchError::Walk { .. } => Problem::Search(error.to_string()),
    }
}

/// The lines of one file, each with its number; context is marked by a dash.
pub(crate) fn lines(found: &TextFindings, at: usize, mark: impl Fn(u64, LineKind) -> String) -> Vec<String> {
    let Some(file) = found.files.get(at) else { return Vec::new() };
    let line = |line: &lathe_search::HitLine| {
        let text = match lathe_redact::first_chars(&line.text, LINE) {
            Some(beginning) => format!("{beginning}..."),
            None => line.text.clone(),
        };
        format!("{}{text}", mark(line.number, line.kind))
    };
    file.lines.iter().map(line).collect()
}

pub(crate) fn words(data: &FoundData, cap: usize) -> String {
    let FoundData { found, query, .. } = data;
    if found.files.is_empty() {
        let note = if found.unreadable > 0 {
            format!(" {} could not be read.", counted(found.unreadable, "file"))
        } else {
            String::new()
        };
        return format!("Nothing matches {:?} in {}.{note}", query.pattern, data.start);
    }
    let mut out = String::new();
    let (mut shown_files, mut shown) = (0, 0);
    for (at, file) in found.files.iter().enumerate() {
        let name = visible_name(&file.relative(&data.base).display().to_string());
        let rows = lines(found, at, |number, kind| {
            format!("{number}{} ", if kind == LineKind::Context { '-' } else { ':' })
        });
        let block =
            if rows.is_empty() { format!("{name}\n") } else { format!("{name}\n  {}\n", rows.join("\n  ")) };
        if !out.is_empty() && out.len() + block.len() > cap {
            break;
        }
        out.push_str(&block);
        shown_files += 1;
        shown += file.lines.iter().filter(|line| line.kind == LineKind::Match).count();
    }
    let total = if query.names_only {
        match found.matching_files {
            1 => "1 file matches".to_owned(),
            files => format!("{files} files match"),
        }
    } else {
        let (lines, files) = (counted(found.matches, "matching line"), counted(found.matching_files, "file"));
        format!("{lines} in {files}")
    };
    let hidden = if query.names_only { found.matching_files - shown_files } else { found.matches - shown };
    let more = if hidden > 0 {
        format!("; {hidden} not shown: narrow the pattern, the path or the glob")
    } else {
        String::new()
    };
    format!("{total}{more}.\n<matches>\n{out}</matches>")
}
