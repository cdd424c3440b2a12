//! Reads many files at once, by patterns.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use lathe_edit::TextContent;
use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Digest, Effects, SeenFile, ToolKind};
use lathe_search::{IgnoreOptions, NameQuery, Scope, SearchError, find_files};
use lathe_workspace::{FileKind, Files};
use serde::Serialize;

use crate::call::{BuildContext, Parameters};
use crate::files::hidden::{HiddenPaths, ReadPlace, is_below};
use crate::outcome::{AttachedContent, Data, ManyData, ManyFile, Outcome};
use crate::problem::Problem;
use crate::search::{RespectedIgnores, real_root_and_start, run_cancellable};
use crate::tool::{Invocation, RunContext};
use crate::view::{Media, document_text, media};

pub(crate) const ID: &str = "many";

/// The most files read, and the most bytes of one of them.
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

/// The parameters of the tool, made by a face.
#[derive(Serialize)]
pub(crate) struct ManyParameters {
    pub(crate) include: Vec<String>,
    pub(crate) exclude: Vec<String>,
    pub(crate) default_excludes: bool,
    pub(crate) respect: RespectedIgnores,
}

impl Parameters for ManyParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let ManyParameters { include, mut exclude, default_excludes, respect } = self;
        if default_excludes {
            exclude.extend(EXCLUDED.map(str::to_owned));
        }
        let (outside, include) =
            include.into_iter().partition::<Vec<_>, _>(|pattern| OutsidePattern::is(pattern, ground.root));
        let outside = outside.iter().map(|pattern| OutsidePattern::of(pattern, ground.root)).collect();
        Ok(Box::new(Many {
            root: ground.root.to_owned(),
            include,
            outside,
            exclude,
            ignored: respect.into(),
        }))
    }
}

/// A pattern that leads out of the workspace.
struct OutsidePattern {
    /// The file, or the folder before the first part that is a pattern.
    start: PathBuf,
    /// The pattern from there on. Empty for a file.
    glob: String,
}

impl OutsidePattern {
    fn is(pattern: &str, root: &Path) -> bool {
        !is_below(&Self::of(pattern, root).start, root)
    }

    fn of(pattern: &str, root: &Path) -> Self {
        let (mut start, mut glob) = (root.to_owned(), PathBuf::new());
        for part in Path::new(pattern).components() {
            let is_pattern = part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
            match glob.as_os_str().is_empty() && !is_pattern {
                true => start.push(part),
                false => glob.push(part),
            }
        }
        // A pattern that exists as a file by this very name is a name.
        let named = root.join(pattern);
        match named.symlink_metadata().is_ok() {
            true => Self { start: named, glob: String::new() },
            false => Self { start, glob: glob.display().to_string() },
        }
    }
}

struct Many {
    root: PathBuf,
    include: Vec<String>,
    outside: Vec<OutsidePattern>,
    exclude: Vec<String>,
    ignored: IgnoreOptions,
}

impl Invocation for Many {
    fn describe(&self) -> String {
        let outside =
            self.outside.iter().map(|outside| outside.start.join(&outside.glob).display().to_string());
        let all: Vec<String> = self.include.iter().cloned().chain(outside).collect();
        format!("read {}", all.join(", "))
    }

    fn effects(&self) -> Effects {
        let mut effects = Effects::reading(self.root.display().to_string());
        effects.reads.extend(self.outside.iter().map(|outside| outside.start.display().to_string()));
        effects
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
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
        context.tree(ID)?;
        let (root, start) = real_root_and_start(context, &self.root, ID).await?;
        let Self { include, outside, exclude, ignored, .. } = self;
        // The path to the workspace is the same for all of them.
        let prefix = format!("{}/", start.display());
        let globs: Vec<String> = include
            .iter()
            .map(|pattern| pattern.strip_prefix(&prefix).unwrap_or(pattern).to_owned())
            .collect();
        let mut reading = ManyReader { exclude, ignored, ..ManyReader::default() };
        let files = Arc::clone(context.services.workspace.files());
        reading.folder(context, &*files, (root, start), globs, &include).await?;
        for OutsidePattern { start, glob } in outside {
            let place = ReadPlace::of(context, &start, ID, ToolKind::Read);
            let pattern = start.join(&glob).display().to_string();
            let stat = place.files.stat(&place.path).await;
            match stat.map_err(|error| error.to_string()) {
                Ok(stat) if stat.kind == FileKind::Directory && !glob.is_empty() => {
                    let ways = (place.root.clone(), place.path.clone());
                    reading.folder(context, &*place.files, ways, vec![glob], &[pattern]).await?;
                }
                Ok(_) => reading.one(context, &*place.files, &place.path, &[pattern]).await,
                Err(reason) => reading.data.skipped.push((start.display().to_string(), reason)),
            }
        }
        let ManyReader { data, seen, attached, left_out, .. } = reading;
        Ok(Outcome { seen, attached, left_out, ..Ok(Data::Many(data)).into() })
    }
}

/// The text read so far, and the options of the reading.
#[derive(Default)]
struct ManyReader {
    exclude: Vec<String>,
    ignored: IgnoreOptions,
    data: ManyData,
    seen: Vec<SeenFile>,
    attached: Vec<AttachedContent>,
    /// The number of bytes of text.
    total: usize,
    /// The number of files that a rule does not let be read.
    left_out: usize,
}

impl ManyReader {
    /// Reads the files of a folder that match one of the globs. `ways` are the folder that is not left, and the
    /// folder to start in.
    async fn folder(
        &mut self,
        context: &RunContext,
        files: &dyn Files,
        ways: (PathBuf, PathBuf),
        globs: Vec<String>,
        patterns: &[String],
    ) -> Result<(), Problem> {
        let (root, start) = ways;
        let hidden = HiddenPaths::scan(context, ID, ToolKind::Read, &start).await?;
        let exclude = [self.exclude.clone(), hidden.globs(&start)].concat();
        let closed = context.tree(ID)?.closed().map(Path::to_owned);
        let unread = context.services.unread.clone();
        let ignored = self.ignored;
        let found = run_cancellable(context, move |cancel| -> Result<Vec<PathBuf>, SearchError> {
            let mut paths = Vec::new();
            for glob in globs {
                let scope = Scope {
                    hidden: true,
                    ignored,
                    exclude: exclude.clone(),
                    case_insensitive_globs: true,
                    excluded_folder: closed.clone(),
                    unread: unread.clone(),
                    ..Scope::new(&root, &start)
                };
                // A pattern that exists as a file by this very name is a name.
                let literal = start.join(&glob).symlink_metadata().is_ok();
                let glob = if literal { globset::escape(&glob) } else { glob };
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
        self.left_out += hidden.count();
        for path in paths.into_iter().filter(|path| !hidden.has(path)) {
            self.one(context, files, &path, patterns).await;
        }
        Ok(())
    }

    /// Reads one file, unless enough was read already.
    async fn one(&mut self, context: &RunContext, files: &dyn Files, path: &Path, patterns: &[String]) {
        if self.total > TOTAL {
            self.data.unread += 1;
            return;
        }
        let shown = path.display().to_string();
        match file(context, files, path, patterns).await {
            Ok(FileText { text, hash, attached }) => {
                self.total += text.len();
                self.seen.push(SeenFile { path: shown.clone(), hash });
                self.attached.extend(attached);
                self.data.files.push(ManyFile { path: shown, text });
            }
            Err(reason) => self.data.skipped.push((shown, reason)),
        }
    }
}

struct FileText {
    text: String,
    hash: Digest,
    attached: Option<AttachedContent>,
}

async fn file(
    context: &RunContext,
    files: &dyn Files,
    path: &Path,
    patterns: &[String],
) -> Result<FileText, String> {
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
        let content = image.shown(&content).await.ok_or("an image that cannot be shown")?;
        return Ok(FileText {
            text,
            hash,
            attached: Some(AttachedContent { mime: image.mime(), content, name }),
        });
    }
    let mut text = match TextContent::decode(&content) {
        Ok(text) => text.lossy().into_owned(),
        Err(_) if media == Some(Media::Pdf) => String::new(),
        Err(_) => return Err("binary".to_owned()),
    };
    match document_text(context, media, path, content).await {
        Some(document) => text = document,
        None if media == Some(Media::Pdf) => return Err("its text cannot be read".to_owned()),
        None => {}
    }
    // Text is redacted before it is cut: half a secret is not recognised.
    let mut text = context.services.redactor.redact_text(&text).into_owned();
    text.truncate(lathe_redact::beginning(&text, ONE).len());
    Ok(FileText { text, hash, attached: None })
}

/// Tells whether a pattern names such files by their ending or name. Content that is not text is only returned if it
/// is asked for.
fn is_named(path: &Path, patterns: &[String]) -> bool {
    let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy().to_lowercase()));
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase());
    patterns
        .iter()
        .map(|pattern| pattern.to_lowercase())
        .any(|pattern| [&ending, &stem].into_iter().flatten().any(|part| pattern.contains(part.as_str())))
}
