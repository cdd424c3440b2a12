//! Finds text in files.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use grep_matcher::{LineTerminator, Matcher as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use ignore::WalkState;
use parking_lot::Mutex;

use crate::SearchError;
use crate::beneath::Beneath;
use crate::ignored::IgnoreRules;
use crate::scope::Scope;

/// The treatments of upper and lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CaseMode {
    #[default]
    Sensitive,
    Insensitive,
    /// Case matters if the pattern has an upper-case letter.
    Smart,
}

#[derive(Debug, Clone, Default)]
pub struct TextQuery {
    pub pattern: String,
    /// True if the pattern is text, not an expression.
    pub literal: bool,
    pub case: CaseMode,
    pub words: bool,
    /// True if a match may span several lines.
    pub multiline: bool,
    /// Lines shown before and after each match.
    pub before: usize,
    pub after: usize,
    /// The most matching lines that are kept; all are counted.
    pub most: usize,
    /// The most matching lines of one file that are kept; `None` means `most`.
    pub most_per_file: Option<usize>,
    /// Lines that also match this are not hits: an expression, or text if the pattern is.
    pub without: Option<String>,
    /// True if only the names of matching files are wanted.
    pub names_only: bool,
}

/// The hits, in the order of paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextFindings {
    pub files: Vec<FileHits>,
    /// The number of lines that match, kept or not.
    pub matches: usize,
    /// The number of files with a match, kept or not.
    pub matching_files: usize,
    /// The number of matching lines that were not kept.
    pub left_out: usize,
    /// The number of files that could not be read.
    pub unreadable: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHits {
    pub path: PathBuf,
    pub lines: Vec<HitLine>,
    /// The number of matching lines of this file, kept or not.
    pub matches: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HitLine {
    pub number: u64,
    pub kind: LineKind,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    Match,
    /// A further line of a match that spans several.
    Continued,
    Context,
}

/// The most characters of a pattern.
const PATTERN_CHARS: usize = 10_000;

/// The most bytes of a compiled pattern, and of the automaton that each thread builds from it while it searches. The
/// `regex` crate has the same default, so patterns that other programs accept are accepted here. The defaults of
/// `grep-regex`, 100 MiB and 1 GiB, are meant for a person at a terminal.
const COMPILED_BYTES: usize = 10 << 20;

/// The most bytes of one line that are kept.
const LINE_BYTES: usize = 8 * 1024;

pub fn find_text(scope: &Scope, query: &TextQuery, cancel: &AtomicBool) -> Result<TextFindings, SearchError> {
    let matchers = Matchers::of(query)?;
    let walk = scope.walk()?;
    if scope.starts_ignored() {
        return Ok(TextFindings::default());
    }
    let kept = Mutex::new(HitCollector::new(query.most));
    let single = scope.start.is_file();
    let own = IgnoreRules::own(scope);
    walk.run(|| {
        let mut searcher = searcher(query);
        let mut beneath = Beneath::new(&scope.root);
        let mut rules = own.clone();
        let (matchers, kept) = (matchers.clone(), &kept);
        Box::new(move |entry| {
            if cancel.load(Ordering::Relaxed) {
                return WalkState::Quit;
            }
            let Ok(entry) = entry else {
                kept.lock().found.unreadable += 1;
                return WalkState::Continue;
            };
            if entry.file_type().is_some_and(|kind| kind.is_file()) || (single && entry.depth() == 0) {
                let hits = search_file(query, &mut beneath, &mut searcher, &matchers, entry.into_path());
                match hits {
                    Some(hits) if hits.matches > 0 && !rules.excludes(&hits.path) => kept.lock().add(hits),
                    Some(_) => {}
                    None => kept.lock().found.unreadable += 1,
                }
            }
            WalkState::Continue
        })
    });
    if cancel.load(Ordering::Relaxed) {
        return Err(SearchError::Cancelled);
    }
    Ok(kept.into_inner().finish())
}

/// The hits in one file; `None` if it cannot be read.
fn search_file(
    query: &TextQuery,
    beneath: &mut Beneath,
    searcher: &mut Searcher,
    matchers: &Matchers,
    path: PathBuf,
) -> Option<FileHits> {
    let file = beneath.open(&path).ok()?;
    let most = query.most_per_file.unwrap_or(query.most).min(query.most);
    let without = matchers.without.as_ref();
    let mut hits = Hits { lines: Vec::new(), matches: 0, most, names_only: query.names_only, without };
    searcher.search_file(&matchers.wanted, &file, &mut hits).ok()?;
    Some(FileHits { path, lines: hits.lines, matches: hits.matches })
}

/// The expressions of a query.
#[derive(Clone)]
struct Matchers {
    wanted: RegexMatcher,
    without: Option<RegexMatcher>,
}

impl Matchers {
    fn of(query: &TextQuery) -> Result<Self, SearchError> {
        let without = query.without.as_ref().map(|without| matcher(query, without)).transpose()?;
        Ok(Self { wanted: matcher(query, &query.pattern)?, without })
    }
}

fn matcher(query: &TextQuery, pattern: &str) -> Result<RegexMatcher, SearchError> {
    let length = pattern.chars().count();
    if length > PATTERN_CHARS {
        let reason = format!("it has {length} characters, and may have {PATTERN_CHARS} at most");
        return Err(SearchError::LargePattern(reason));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(query.case == CaseMode::Insensitive)
        .case_smart(query.case == CaseMode::Smart)
        .word(query.words)
        .fixed_strings(query.literal)
        .size_limit(COMPILED_BYTES)
        .dfa_size_limit(COMPILED_BYTES)
        .multi_line(true);
    if query.multiline {
        builder.dot_matches_new_line(false);
    } else {
        // `$` stands before either line ending.
        builder.crlf(true);
    }
    builder.build(pattern).map_err(|error| match error.to_string() {
        // The library has no error kind for this.
        reason if reason.contains("exceeds size limit") => SearchError::LargePattern(format!(
            "compiled, it has more than {} MiB. Use fewer or smaller repetitions",
            COMPILED_BYTES >> 20
        )),
        reason => SearchError::Pattern(reason),
    })
}

fn searcher(query: &TextQuery) -> Searcher {
    let lines = if query.multiline { LineTerminator::byte(b'\n') } else { LineTerminator::crlf() };
    SearcherBuilder::new()
        .line_terminator(lines)
        .binary_detection(BinaryDetection::quit(0))
        .line_number(!query.names_only)
        .multi_line(query.multiline)
        .before_context(query.before)
        .after_context(query.after)
        // A file that shrinks while it is mapped kills the process.
        .memory_map(MmapChoice::never())
        .build()
}

/// The hits of one file.
struct Hits<'a> {
    lines: Vec<HitLine>,
    matches: usize,
    most: usize,
    names_only: bool,
    without: Option<&'a RegexMatcher>,
}

impl Hits<'_> {
    fn keep(&mut self, number: Option<u64>, kind: LineKind, bytes: &[u8]) {
        if self.names_only || self.matches > self.most {
            return;
        }
        let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        for (at, line) in body.split(|&byte| byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let cut = line.get(..LINE_BYTES.min(line.len())).unwrap_or(line);
            self.lines.push(HitLine {
                number: number.unwrap_or_default() + at as u64,
                kind: if kind == LineKind::Match && at > 0 { LineKind::Continued } else { kind },
                text: String::from_utf8_lossy(cut).into_owned(),
            });
        }
    }
}

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.without.is_some_and(|without| matches!(without.is_match(found.bytes()), Ok(true))) {
            return Ok(true);
        }
        self.matches += 1;
        self.keep(found.line_number(), LineKind::Match, found.bytes());
        Ok(!self.names_only)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.keep(context.line_number(), LineKind::Context, context.bytes());
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        // Matches before the first NUL are matches of a binary file nevertheless.
        if finish.binary_byte_offset().is_some() {
            self.matches = 0;
            self.lines.clear();
        }
        Ok(())
    }
}

/// The hits of all files so far: not more lines than are wanted, and those of the first paths.
struct HitCollector {
    most: usize,
    files: BTreeMap<PathBuf, FileHits>,
    lines: usize,
    found: TextFindings,
}

impl HitCollector {
    fn new(most: usize) -> Self {
        Self { most, files: BTreeMap::new(), lines: 0, found: TextFindings::default() }
    }

    fn add(&mut self, hits: FileHits) {
        self.found.matches += hits.matches;
        self.found.matching_files += 1;
        self.lines += weight(&hits);
        self.files.insert(hits.path.clone(), hits);
        // The last path is dropped as long as enough is left without it.
        while let Some(last) = self.files.last_entry() {
            let last = weight(last.get());
            if self.lines - last < self.most {
                break;
            }
            self.lines -= last;
            self.files.pop_last();
        }
    }

    fn finish(mut self) -> TextFindings {
        let mut room = self.most;
        for (_, mut file) in self.files {
            let kept = cut(&mut file, room);
            room -= kept;
            self.found.files.push(file);
        }
        self.found.left_out = self.found.matches - (self.most - room);
        self.found
    }
}

/// The matching lines of a file that are kept; its name counts for one.
fn weight(file: &FileHits) -> usize {
    file.lines.iter().filter(|line| line.kind == LineKind::Match).count().max(1)
}

/// Keeps at most `room` matching lines of a file, and returns their number.
fn cut(file: &mut FileHits, room: usize) -> usize {
    if file.lines.is_empty() {
        return file.matches.min(room);
    }
    let mut matches = 0;
    let mut end = file.lines.len();
    for (at, line) in file.lines.iter().enumerate() {
        if line.kind == LineKind::Match {
            if matches == room {
                end = at;
                break;
            }
            matches += 1;
        }
    }
    file.lines.truncate(end);
    matches
}

impl FileHits {
    /// The path relative to `base`.
    pub fn relative<'a>(&'a self, base: &Path) -> &'a Path {
        match self.path.strip_prefix(base) {
            Ok(inside) if !inside.as_os_str().is_empty() => inside,
            Ok(_) | Err(_) => self.path.file_name().map_or(&self.path, Path::new),
        }
    }
}
