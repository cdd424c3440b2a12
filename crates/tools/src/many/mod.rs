//! Many files at once, by patterns.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lathe_edit::Text;
use lathe_policy::Permit;
use lathe_protocol::{Boxed, Digest, Effects, SeenFile};
use lathe_search::{Ignored, NameQuery, Scope, SearchError, find_files};
use lathe_workspace::FileKind;
use serde::Deserialize;
use serde_json::Value;

use crate::outcome::{Data, ManyData, ManyFile, Outcome};
use crate::problem::Problem;
use crate::search::{real, stoppable};
use crate::tool::{Invocation, RunContext, Tool, arguments};

pub(crate) const ID: &str = "many";

/// Files read at most, and bytes of one of them.
const FILES: usize = 1000;
const BYTES: u64 = 20 << 20;

/// Folders that are left out by default.
const EXCLUDED: [&str; 10] = [
    "**/node_modules/**",
    "**/.git/**",
    "**/bower_components/**",
    "**/.svn/**",
    "**/.hg/**",
    "**/dist/**",
    "**/build/**",
    "**/coverage/**",
    "**/__pycache__/**",
    "**/target/**",
];

/// Canonical arguments, made by the face.
#[derive(Deserialize)]
struct Arguments {
    include: Vec<String>,
    exclude: Vec<String>,
    default_excludes: bool,
    respect_ignore: bool,
}

pub(crate) struct ManyTool;

impl Tool for ManyTool {
    fn id(&self) -> &'static str {
        ID
    }

    fn build(&self, value: Value, root: &Path) -> Result<Box<dyn Invocation>, Problem> {
        let Arguments { include, mut exclude, default_excludes, respect_ignore } = arguments(value)?;
        if default_excludes {
            exclude.extend(EXCLUDED.map(str::to_owned));
        }
        let ignored = if respect_ignore { Ignored::Respected } else { Ignored::Included };
        Ok(Box::new(Many { root: root.to_owned(), include, exclude, ignored }))
    }
}

struct Many {
    root: PathBuf,
    include: Vec<String>,
    exclude: Vec<String>,
    ignored: Ignored,
}

impl Invocation for Many {
    fn describe(&self) -> String {
        format!("read {}", self.include.join(", "))
    }

    fn effects(&self) -> Effects {
        Effects::reading(self.root.display().to_string())
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> Boxed<'static, Outcome> {
        Box::pin(async move {
            match self.read(&context).await {
                Ok(outcome) => outcome,
                Err(problem) => Err(problem).into(),
            }
        })
    }
}

impl Many {
    async fn read(self, context: &RunContext) -> Result<Outcome, Problem> {
        let (root, start) = real(context, &self.root).await?;
        let Self { include, exclude, ignored, .. } = self;
        let found = stoppable(context, move |cancel| -> Result<Vec<PathBuf>, SearchError> {
            let mut paths = Vec::new();
            for pattern in &include {
                // The way to the workspace is the same for all of them.
                let glob = pattern.strip_prefix(&format!("{}/", start.display())).unwrap_or(pattern);
                let scope = Scope {
                    hidden: true,
                    ignored,
                    exclude: exclude.clone(),
                    case_insensitive_globs: true,
                    ..Scope::new(&root, &start)
                };
                // What exists by that very name is meant as a name.
                let literal = start.join(glob).symlink_metadata().is_ok();
                let glob = if literal { globset::escape(glob) } else { glob.to_owned() };
                let query = NameQuery {
                    glob,
                    case_sensitive: false,
                    most: FILES,
                    count_ignored: false,
                    now: SystemTime::UNIX_EPOCH,
                };
                paths.extend(find_files(&scope, &query, cancel)?.files.into_iter().map(|file| file.path));
            }
            paths.sort();
            paths.dedup();
            Ok(paths)
        });
        let paths = match found.await? {
            Ok(paths) => paths,
            Err(SearchError::Cancelled) => {
                return Err(Problem::Cancelled("Cancelled by the user.".to_owned()));
            }
            Err(error) => return Err(Problem::ManySearch(error.to_string())),
        };
        let mut data = ManyData { files: Vec::new(), skipped: Vec::new() };
        let mut seen = Vec::new();
        for path in paths {
            match file(context, &path).await {
                Ok((text, hash)) => {
                    let path = path.display().to_string();
                    seen.push(SeenFile { path: path.clone(), hash });
                    data.files.push(ManyFile { path, text });
                }
                Err(reason) => data.skipped.push((path.display().to_string(), reason)),
            }
        }
        Ok(Outcome { seen, ..Ok(Data::Many(data)).into() })
    }
}

async fn file(context: &RunContext, path: &Path) -> Result<(String, Digest), String> {
    let files = &context.services.files;
    let stat = files.stat(path).await.map_err(|error| error.to_string())?;
    match stat.kind {
        FileKind::File if stat.bytes > BYTES => return Err("larger than 20 MB".to_owned()),
        FileKind::File => {}
        FileKind::Directory | FileKind::Special => return Err("not a file".to_owned()),
    }
    let content = files.read(path, None).await.map_err(|error| error.to_string())?;
    let text = Text::decode(&content).map_err(|_| "binary".to_owned())?;
    Ok((text.lossy().into_owned(), Digest::of(&content)))
}
