//! The `*** Begin Patch` form.

use super::{FilePatch, HunkLine, LineMark, PatchError, PatchHunk};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";

/// The line after the opening, if the text is in this form.
pub(super) fn start(lines: &[&str]) -> Option<usize> {
    lines.iter().position(|line| line.trim_end() == BEGIN).map(|at| at + 1)
}

pub(super) fn parse(lines: &[&str], first: usize) -> Result<Vec<FilePatch>, PatchError> {
    let mut files = Vec::new();
    let mut at = first;
    loop {
        let Some(line) = lines.get(at) else {
            return Err(wrong(at, "`*** End Patch` is missing"));
        };
        let line = line.trim_end();
        at += 1;
        if line == END {
            return Ok(files);
        }
        if line.is_empty() {
            continue;
        }
        let named = |head: &str| line.strip_prefix(head).map(|path| path.trim().to_owned());
        if let Some(path) = named("*** Add File: ") {
            let (hunk, next) = added(lines, at)?;
            at = next;
            files.push(FilePatch { new: Some(path), hunks: vec![hunk], ..FilePatch::default() });
        } else if let Some(path) = named("*** Delete File: ") {
            files.push(FilePatch { old: Some(path), ..FilePatch::default() });
        } else if let Some(path) = named("*** Update File: ") {
            let moved = lines.get(at).and_then(|line| line.strip_prefix("*** Move to: "));
            at += usize::from(moved.is_some());
            let new = moved.map_or_else(|| path.clone(), |moved| moved.trim().to_owned());
            let (hunks, next) = hunks(lines, at)?;
            if hunks.is_empty() && new == path {
                return Err(wrong(at - 1, "the update has no hunks"));
            }
            at = next;
            files.push(FilePatch { old: Some(path), new: Some(new), hunks, ..FilePatch::default() });
        } else {
            return Err(wrong(
                at - 1,
                "expected `*** Add File: `, `*** Update File: ` or `*** Delete File: `",
            ));
        }
    }
}

fn added(lines: &[&str], first: usize) -> Result<(PatchHunk, usize), PatchError> {
    let mut hunk = PatchHunk { line: first + 1, ..PatchHunk::default() };
    let mut at = first;
    while let Some(line) = lines.get(at).filter(|line| !line.starts_with("*** ")) {
        match HunkLine::parse(line) {
            Some(line) if line.mark == LineMark::Add => hunk.lines.push(line),
            Some(_) if line.trim().is_empty() => {}
            Some(_) | None => return Err(wrong(at, "a line of a new file begins with `+`")),
        }
        at += 1;
    }
    Ok((hunk, at))
}

fn hunks(lines: &[&str], first: usize) -> Result<(Vec<PatchHunk>, usize), PatchError> {
    let mut hunks: Vec<PatchHunk> = Vec::new();
    let mut hunk = PatchHunk { line: first + 1, ..PatchHunk::default() };
    let mut at = first;
    while let Some(&line) = lines.get(at) {
        if line.trim_end() == END_OF_FILE {
            hunk.at_end = true;
        } else if line.starts_with("*** ") {
            break;
        } else if let Some(heading) = line.strip_prefix("@@") {
            if !hunk.lines.is_empty() {
                hunks.push(std::mem::take(&mut hunk));
            }
            hunk.line = at + 1;
            let heading = heading.trim();
            // Numbers, as in a unified difference, name a place that models rarely know.
            let heading = heading.strip_suffix("@@").unwrap_or(heading).trim_end();
            if !heading.is_empty() && !heading.starts_with('-') {
                hunk.headings.push(heading.to_owned());
            }
        } else if let Some(line) = HunkLine::parse(line) {
            hunk.lines.push(line);
        } else {
            return Err(wrong(at, "a line of a hunk begins with a blank, `+` or `-`"));
        }
        at += 1;
    }
    hunks.push(hunk);
    for hunk in &mut hunks {
        drop_blank_end(hunk);
    }
    hunks.retain(|hunk| !hunk.lines.is_empty());
    Ok((hunks, at))
}

/// Empty lines at the end separate two hunks and are not context.
pub(super) fn drop_blank_end(hunk: &mut PatchHunk) {
    while hunk.lines.last().is_some_and(|line| line.mark == LineMark::Keep && line.text.is_empty()) {
        hunk.lines.pop();
    }
}

fn wrong(at: usize, reason: &str) -> PatchError {
    PatchError::Syntax { line: at + 1, reason: reason.to_owned() }
}
