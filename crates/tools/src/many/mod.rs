//! Many files at once, by patterns.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lathe_edit::Text;
use lathe_policy::Permit;
use lathe_protocol::{Boxed, Digest, Effects, Kind, SeenFile};
use lathe_search::{Ignored, NameQuery, Scope, SearchError, find_files};
use lathe_workspace::FileKind;
use serde::Deserialize;
use serde_json::Value;

use crate::hidden::Hidden;
use crate::outcome::{Attached, Data, ManyData, ManyFile, Outcome};
use crate::problem::Problem;
use crate::search::{Respect, real, stoppable};
use crate::tool::{Invocation, RunContext, Tool, arguments};
use crate::view::{Media, document_text, media};

pub(crate) const ID: &str = "many";

/// Files read at most, and bytes of one of them.
const FILES: usize = 1000;
const BYTES: u64 = 20 << 20;

/// Bytes of text kept of one file and of all: more than is shown.
const ONE: usize = 1 << 20;
const TOTAL: usize = 4 << 20;

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
    respect: Respect,
}

pub(crate) struct ManyTool;

impl Tool for ManyTool {
    fn id(&self) -> &'static str {
        ID
    }

    fn build(&self, value: Value, root: &Path) -> Result<Box<dyn Invocation>, Problem> {
        let Arguments { include, mut exclude, default_excludes, respect } = arguments(value)?;
        if default_excludes {
            exclude.extend(EXCLUDED.map(str::to_owned));
        }
        Ok(Box::new(Many { root: root.to_owned(), include, exclude, ignored: respect.into() }))
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
        let (root, start) = real(context, &self.root, ID).await?;
        let Self { include, exclude, ignored, .. } = self;
        let hidden = Hidden::beneath(context, ID, Kind::Read, &start).await?;
        let exclude = [exclude, hidden.globs(&start)].concat();
        let patterns = include.clone();
        let closed = context.services.files.closed().map(Path::to_owned);
        let unread = context.services.unread.clone();
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
                    closed: closed.clone(),
                    unread: unread.clone(),
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
        let mut data = ManyData { files: Vec::new(), skipped: Vec::new(), unread: 0 };
        let (mut seen, mut attachments) = (Vec::new(), Vec::new());
        let mut total = 0;
        for path in paths.into_iter().filter(|path| !hidden.has(path)) {
            if total > TOTAL {
                data.unread += 1;
                continue;
            }
            let shown = path.display().to_string();
            match file(context, &path, &patterns).await {
                Ok(Read { text, hash, attached }) => {
                    total += text.len();
                    seen.push(SeenFile { path: shown.clone(), hash });
                    attachments.extend(attached);
                    data.files.push(ManyFile { path: shown, text });
                }
                Err(reason) => data.skipped.push((shown, reason)),
            }
        }
        Ok(Outcome { seen, attached: attachments, left_out: hidden.count(), ..Ok(Data::Many(data)).into() })
    }
}

struct Read {
    text: String,
    hash: Digest,
    attached: Option<Attached>,
}

async fn file(context: &RunContext, path: &Path, patterns: &[String]) -> Result<Read, String> {
    let files = &context.services.files;
    let stat = files.stat(path).await.map_err(|error| error.to_string())?;
    match stat.kind {
        FileKind::File if stat.bytes > BYTES => return Err("larger than 20 MB".to_owned()),
        FileKind::File => {}
        FileKind::Directory | FileKind::Special => return Err("not a file".to_owned()),
    }
    let content = files.read(path, None).await.map_err(|error| error.to_string())?;
    let hash = Digest::of(&content);
    let media = media(&content);
    if media.is_some() && !is_named(path, patterns) {
        return Err("asset file (image/pdf) was not explicitly requested by name or extension".to_owned());
    }
    if let Some(Media::Image(image)) = media {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = format!("[{} image, {} bytes]", image.name(), content.len());
        return Ok(Read { text, hash, attached: Some(Attached { mime: image.mime(), content, name }) });
    }
    let mut text = match Text::decode(&content) {
        Ok(text) => text.lossy().into_owned(),
        Err(_) if media == Some(Media::Pdf) => String::new(),
        Err(_) => return Err("binary".to_owned()),
    };
    match document_text(context, media, path, content).await {
        Some(document) => text = document,
        None if media == Some(Media::Pdf) => return Err("its text cannot be read".to_owned()),
        None => {}
    }
    // Secrets go before the text is cut: half of one is not known.
    let mut text = context.services.redactor.text(&text).into_owned();
    text.truncate(text.floor_char_boundary(ONE));
    Ok(Read { text, hash, attached: None })
}

/// Whether a pattern speaks of such files by their ending or name: what is not text is only given to whoever wants it.
fn is_named(path: &Path, patterns: &[String]) -> bool {
    let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy().to_lowercase()));
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase());
    patterns
        .iter()
        .map(|pattern| pattern.to_lowercase())
        .any(|pattern| [&ending, &stem].into_iter().flatten().any(|part| pattern.contains(part.as_str())))
}
