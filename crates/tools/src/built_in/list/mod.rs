//! Lists the names in one folder.

use std::path::PathBuf;

use globset::GlobSet;
use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Effects, ToolKind};
use lathe_search::{GlobStyle, IgnoreOptions, glob_set, ignored_names, is_ignored};
use lathe_workspace::FileKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::built_in::BuiltIn;
use crate::call::{BuildContext, CommandWords, Parameters, TypedCall};
use crate::commands::AgentCommand;
use crate::files::hidden::{IGNORE_FILES_NOT_READ, ReadPlace};
use crate::outcome::{Data, ListedName, ListingData, Outcome};
use crate::problem::{FileAccess, Problem};
use crate::search::RespectedIgnores;
use crate::tool::{Invocation, RunContext, absolute, display_path};

pub(crate) const ID: &str = "list";

/// The tool in the list of built-in tools.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: None,
    command: Some(
        AgentCommand::of::<ListWords>("list", ID, ToolKind::Read, "Name what is in a folder, folders first.")
            .with_positions(&["path"], None)
            .in_callers_folder(&["path"]),
    ),
    only_if: None,
};

/// The parameters of the tool, made by a face.
#[derive(Serialize)]
pub(crate) struct ListParameters {
    pub(crate) path: String,
    /// Globs of names to leave out.
    pub(crate) ignore: Vec<String>,
    /// The ignore files that count.
    pub(crate) respect: RespectedIgnores,
}

/// The words of the command in the shell.
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

impl CommandWords for ListWords {
    fn calls(self) -> Result<Vec<TypedCall>, Problem> {
        let path = self.path.unwrap_or_else(|| ".".to_owned());
        let counts = !self.all.unwrap_or(false);
        let respect = RespectedIgnores { git: counts, gemini: counts, start: false };
        Ok(vec![TypedCall::new(ListParameters { path, ignore: self.ignore.unwrap_or_default(), respect })])
    }
}

impl Parameters for ListParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let ListParameters { path, ignore, respect } = self;
        let ignore = glob_set(&ignore, GlobStyle::default());
        let ignore = ignore.map_err(|error| Problem::Arguments(format!("ignore: {error}")))?;
        let path = absolute(ground.root, &path);
        Ok(Box::new(List { shown: display_path(ground.root, &path), path, ignore, respect: respect.into() }))
    }
}

struct List {
    path: PathBuf,
    /// The path for people.
    shown: String,
    ignore: GlobSet,
    respect: IgnoreOptions,
}

impl Invocation for List {
    fn describe(&self) -> String {
        format!("list {}", self.shown)
    }

    fn effects(&self) -> Effects {
        Effects::reading(self.path.display().to_string())
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            match self.list(&context).await {
                Ok((listing, left_out)) => {
                    let is_local = context.services.workspace.local().is_some();
                    let unread = !is_local && self.respect != IgnoreOptions::INCLUDED;
                    let notes = unread.then_some(IGNORE_FILES_NOT_READ).map(Into::into).into_iter().collect();
                    Outcome { left_out, notes, ..Ok(Data::Listing(listing)).into() }
                }
                Err(problem) => Err(problem).into(),
            }
        })
    }
}

impl List {
    async fn list(&self, context: &RunContext) -> Result<(ListingData, usize), Problem> {
        let place = ReadPlace::of(context, &self.path, ID, ToolKind::Search);
        let files = &place.files;
        let wrong = |error| match Problem::from_workspace(error, &self.path, FileAccess::Reading) {
            Problem::Read { reason, .. } => Problem::List(reason),
            other => other,
        };
        let stat = files.stat(&place.path).await.map_err(wrong)?;
        if stat.kind != FileKind::Directory {
            return Err(Problem::NotFolder(self.path.clone()));
        }
        let entries = files.list(&place.path).await.map_err(wrong)?;
        let ignored = match &place.tree {
            Some(tree) => {
                let root = tree.root();
                let (root, real) = (files.real(root).await.map_err(wrong)?, files.real(&place.path).await);
                let real = real.map_err(wrong)?;
                context.services.unread.check_above(&root, &real);
                // A folder that is named is listed, unless no model may see it.
                if is_ignored(&root, &real, IgnoreOptions { git: false, ..self.respect }) {
                    return Err(Problem::Ignored(self.shown.clone()));
                }
                ignored_names(&root, &real, self.respect)
            }
            None => Default::default(),
        };
        let mut left_out = 0;
        let mut denied = 0;
        let mut kept = Vec::new();
        for entry in entries {
            if self.ignore.is_match(&entry.name) || ignored.contains(&entry.name) {
                left_out += 1;
                continue;
            }
            if context.call_gate.hides_path(ID, ToolKind::Search, &self.path.join(&entry.name)) {
                denied += 1;
                continue;
            }
            let name: String = entry.name.to_string_lossy().chars().map(crate::view::visible).collect();
            kept.push(ListedName { name, folder: entry.kind == FileKind::Directory, bytes: entry.bytes });
        }
        kept.sort_by(|a, b| b.folder.cmp(&a.folder).then_with(|| a.name.cmp(&b.name)));
        Ok((ListingData { path: self.path.display().to_string(), entries: kept, left_out }, denied))
    }
}

pub(crate) fn words(data: &ListingData, cap: usize) -> String {
    if data.entries.is_empty() {
        return format!("{} is an empty folder.", data.path);
    }
    let rows: Vec<String> = data
        .entries
        .iter()
        .map(|entry| {
            if entry.folder {
                format!("{}/", entry.name)
            } else {
                format!("{} ({} bytes)", entry.name, entry.bytes)
            }
        })
        .collect();
    let listed = rows.join("\n");
    let shown = crate::view::clip(&listed, cap);
    let rest = rows.len() - 1 - shown.matches('\n').count();
    let more = if rest > 0 {
        format!("\n{}", crate::files::hidden::not_shown_note(rest, "entry"))
    } else {
        String::new()
    };
    let left_out = if data.left_out > 0 { format!("\n({} ignored)", data.left_out) } else { String::new() };
    format!("<folder path=\"{}\">\n{shown}\n</folder>{more}{left_out}", data.path)
}
