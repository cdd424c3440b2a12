//! Finds files by name.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Effects, ToolKind};
use lathe_search::{IgnoreOptions, NameQuery, Scope, find_files};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::built_in::BuiltIn;
use crate::call::{BuildContext, CommandWords, Parameters, TypedCall};
use crate::commands::AgentCommand;
use crate::faces::Face;
use crate::files::hidden::HiddenPaths;
use crate::outcome::{Data, FilesData, Outcome};
use crate::problem::Problem;
use crate::search::RespectedIgnores;
use crate::search::{problem, real_root_and_start, run_cancellable};
use crate::tool::{Invocation, RunContext, absolute, counted, display_path};
use crate::view::visible_name;

pub(crate) const ID: &str = "glob";

/// The tool in the list of built-in tools.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: Some(Face::lathe::<GlobParameters>("glob", "Glob", ToolKind::Search, include_str!("lathe.md"))),
    command: Some(
        AgentCommand::of::<GlobWords>("glob", ID, ToolKind::Search, "Find files by name, newest first.")
            .with_positions(&["pattern", "path"], None)
            .in_callers_folder(&["path"]),
    ),
    only_if: None,
};

/// Files named when no limit is given.
const FILES: usize = 200;

#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GlobParameters {
    /// The pattern, from the folder on: `**/*.rs`, `src/*/mod.rs`.
    pub(crate) pattern: String,
    /// Folder to look in; the workspace if left out.
    #[serde(default)]
    pub(crate) path: Option<String>,
    /// Look at hidden and ignored files too.
    #[serde(default)]
    pub(crate) all: Option<bool>,
    // Only other toolsets have these.
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) case_sensitive: Option<bool>,
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) hidden: Option<bool>,
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) respect: Option<RespectedIgnores>,
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) limit: Option<usize>,
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) count_ignored: Option<bool>,
}

/// The words of the command in the shell.
#[derive(Deserialize, JsonSchema)]
struct GlobWords {
    /// The pattern, from the folder on: `**/*.rs`, `src/*/mod.rs`. Quote it, or bash expands it first.
    pattern: String,
    /// Folder to look in; the current one if left out.
    path: Option<String>,
    /// Look at hidden and ignored files too.
    all: Option<bool>,
    /// Files to name at most; 200 if left out, all of them in a pipe.
    #[schemars(with = "Option<i64>")]
    limit: Option<usize>,
}

impl CommandWords for GlobWords {
    fn calls(self) -> Result<Vec<TypedCall>, Problem> {
        let Self { pattern, path, all, limit } = self;
        Ok(vec![TypedCall::new(GlobParameters { pattern, path, all, limit, ..GlobParameters::default() })])
    }
}

impl Parameters for GlobParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let given = self;
        if given.pattern.trim().is_empty() {
            return Err(Problem::Arguments("pattern: it must not be empty".to_owned()));
        }
        let start = absolute(ground.root, given.path.as_deref().unwrap_or("."));
        let flag = |flag: Option<bool>| flag.unwrap_or(false);
        let all = flag(given.all);
        let scope = Scope {
            hidden: all || flag(given.hidden),
            ignored: if all { IgnoreOptions::INCLUDED } else { given.respect.unwrap_or_default().into() },
            ignored_start: !all && given.respect.is_some_and(|respect| respect.start),
            ..Scope::default()
        };
        let query = NameQuery {
            glob: given.pattern,
            case_sensitive: given.case_sensitive.unwrap_or(true),
            most: given.limit.unwrap_or(FILES),
            count_ignored: flag(given.count_ignored),
            now: SystemTime::now(),
        };
        Ok(Box::new(Glob { shown: display_path(ground.root, &start), start, scope, query }))
    }
}

struct Glob {
    start: PathBuf,
    /// The path for people.
    shown: String,
    scope: Scope,
    query: NameQuery,
}

impl Invocation for Glob {
    fn describe(&self) -> String {
        format!("find files {:?} in {}", self.query.glob, self.shown)
    }

    fn effects(&self) -> Effects {
        Effects::reading(self.start.display().to_string())
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            match self.find(&context).await {
                Ok((files, left_out)) => Outcome { left_out, ..Ok(Data::Files(files)).into() },
                Err(problem) => Err(problem).into(),
            }
        })
    }
}

impl Glob {
    async fn find(self, context: &RunContext) -> Result<(FilesData, usize), Problem> {
        let Self { start, mut scope, mut query, .. } = self;
        scope.excluded_folder = context.tree(ID)?.closed().map(Path::to_owned);
        let as_glob = |problem| match problem {
            Problem::Search(reason) => Problem::Glob(reason),
            other => other,
        };
        (scope.root, scope.start) = real_root_and_start(context, &start, ID).await.map_err(as_glob)?;
        scope.unread = context.services.unread.clone();
        if !scope.start.is_dir() {
            return Err(Problem::SearchNotFolder(start));
        }
        let hidden = HiddenPaths::scan(context, ID, ToolKind::Search, &scope.start).await?;
        scope.exclude.extend(hidden.globs(&scope.start));
        let (base, pattern) = (scope.start.clone(), query.glob.clone());
        // `app/[id]/page.tsx` is a path if such a file exists.
        if context.services.workspace.files().stat(&start.join(&pattern)).await.is_ok() {
            query.glob = globset::escape(&pattern);
        }
        let found = run_cancellable(context, move |cancel| find_files(&scope, &query, cancel)).await?;
        let mut found = found.map_err(|error| as_glob(problem(error, &start)))?;
        found.files.retain(|file| !hidden.has(&file.path));
        Ok((FilesData { start: start.display().to_string(), base, pattern, found }, hidden.count()))
    }
}

pub(crate) fn words(data: &FilesData, cap: usize) -> String {
    let found = &data.found;
    if found.files.is_empty() {
        return format!("No file matches {:?} in {}.", data.pattern, data.start);
    }
    let names: Vec<String> = found
        .files
        .iter()
        .map(|file| file.path.strip_prefix(&data.base).unwrap_or(&file.path).display().to_string())
        .map(|name| visible_name(&name))
        .collect();
    let listed = names.join("\n");
    let shown = crate::view::clip(&listed, cap);
    let hidden = found.total.saturating_sub(1 + shown.matches('\n').count());
    let more = if hidden > 0 { format!("; {hidden} not shown") } else { String::new() };
    let files = counted(found.total, "file");
    format!("{files}, newest first{more}.\n<files>\n{shown}\n</files>")
}
