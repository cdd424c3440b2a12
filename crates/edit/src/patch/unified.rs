//! Unified differences, as git and `diff -u` write them.

use super::begin::drop_blank_end;
use super::{FilePatch, HunkLine, LineMark, PatchError, PatchHunk};

const NO_FILE: &str = "/dev/null";

pub(super) fn parse(lines: &[&str]) -> Result<Vec<FilePatch>, PatchError> {
    let mut files: Vec<FilePatch> = Vec::new();
    let mut file: Option<FilePatch> = None;
    let mut at = 0;
    while let Some(&whole) = lines.get(at) {
        let line = whole.strip_suffix('\r').unwrap_or(whole);
        at += 1;
        if let Some(names) = line.strip_prefix("diff --git ") {
            files.extend(file.take());
            let path = both(names);
            file = Some(FilePatch { old: path.clone(), new: path, ..FilePatch::default() });
        } else if is_header(lines, at - 1) {
            let old = name(&line[4..]);
            let new = name(&lines[at][4..]);
            let (old, new) = without_prefix(old, new);
            at += 1;
            match &mut file {
                // git's own header lines have named the file; the names here would only repeat it.
                Some(file) if file.hunks.is_empty() && file.old != file.new => {}
                Some(file) if file.hunks.is_empty() => (file.old, file.new) = (old, new),
                Some(_) | None => {
                    files.extend(file.take());
                    file = Some(FilePatch { old, new, ..FilePatch::default() });
                }
            }
        } else if line.starts_with("@@") {
            let Some(file) = &mut file else {
                return Err(PatchError::Syntax {
                    line: at,
                    reason: "a hunk before any file name".to_owned(),
                });
            };
            let (hunk, next) = hunk(lines, at - 1)?;
            file.hunks.push(hunk);
            at = next;
        } else if let Some(file) = &mut file
            && file.hunks.is_empty()
        {
            header(file, line)?;
        }
    }
    files.extend(file);
    // A name in an e-mail's summary is not a change.
    files.retain(|file| !file.hunks.is_empty() || file.mode.is_some() || file.old != file.new);
    for file in &files {
        if file.old.is_none() && file.new.is_none() {
            return Err(PatchError::Syntax { line: 1, reason: "a file without a name".to_owned() });
        }
    }
    Ok(files)
}

/// `--- a` and `+++ b`, one after the other: alone, either may be a line of a hunk.
fn is_header(lines: &[&str], at: usize) -> bool {
    lines[at].starts_with("--- ") && lines.get(at + 1).is_some_and(|next| next.starts_with("+++ "))
}

/// Reads one of the lines that git puts between `diff --git` and the hunks.
fn header(file: &mut FilePatch, line: &str) -> Result<(), PatchError> {
    let mode = |text: &str| u32::from_str_radix(text.trim(), 8).ok();
    if let Some(text) = line.strip_prefix("new file mode ") {
        (file.old, file.mode) = (None, mode(text));
    } else if line.starts_with("deleted file mode ") {
        file.new = None;
    } else if let Some(text) = line.strip_prefix("new mode ") {
        file.mode = mode(text);
    } else if let Some(path) = line.strip_prefix("rename from ") {
        file.old = Some(unquoted(path));
    } else if let Some(path) = line.strip_prefix("rename to ") {
        file.new = Some(unquoted(path));
    } else if let Some(path) = line.strip_prefix("copy from ") {
        (file.old, file.copied) = (Some(unquoted(path)), true);
    } else if let Some(path) = line.strip_prefix("copy to ") {
        (file.new, file.copied) = (Some(unquoted(path)), true);
    } else if line == "GIT binary patch" || (line.starts_with("Binary files ") && line.ends_with(" differ")) {
        let path = file.new.clone().or(file.old.clone()).unwrap_or_default();
        return Err(PatchError::Binary { path });
    }
    Ok(())
}

/// The name in `diff --git a/name b/name`; where the two differ, later lines decide.
fn both(names: &str) -> Option<String> {
    if names.starts_with('"') {
        let (_, rest) = quoted(names)?;
        let rest = rest.trim_start();
        let second = if rest.starts_with('"') { quoted(rest)?.0 } else { rest.to_owned() };
        return Some(second.strip_prefix("b/").map_or(second.clone(), str::to_owned));
    }
    let half = names.len() / 2;
    let (first, second) = (names.get(..half)?, names.get(half + 1..)?);
    let (bare, other) =
        (first.strip_prefix("a/").unwrap_or(first), second.strip_prefix("b/").unwrap_or(second));
    (bare == other).then(|| bare.to_owned())
}

/// A name after `--- `: up to a tab, after which a date may stand.
fn name(text: &str) -> String {
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.starts_with('"') {
        return unquoted(text);
    }
    text.split('\t').next().unwrap_or(text).trim_end().to_owned()
}

fn without_prefix(old: String, new: String) -> (Option<String>, Option<String>) {
    let prefixed = (old == NO_FILE || old.starts_with("a/")) && (new == NO_FILE || new.starts_with("b/"));
    let bare = |name: String| match name.as_str() {
        NO_FILE => None,
        _ if prefixed => Some(name[2..].to_owned()),
        _ => Some(name),
    };
    (bare(old), bare(new))
}

fn unquoted(text: &str) -> String {
    let text = text.trim_end();
    if text.starts_with('"') {
        quoted(text).map_or_else(|| text.to_owned(), |(name, _)| name)
    } else {
        text.to_owned()
    }
}

/// A name in git's quotes, and the text after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let bytes = text.strip_prefix('"')?.as_bytes();
    let mut name = Vec::new();
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            b'"' => return Some((String::from_utf8_lossy(&name).into_owned(), text.get(at + 2..)?)),
            b'\\' => {
                at += 1;
                let escaped = *bytes.get(at)?;
                name.push(match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'a' => 7,
                    b'b' => 8,
                    b'f' => 12,
                    b'v' => 11,
                    b'0'..=b'3' => {
                        let digits = std::str::from_utf8(bytes.get(at..at + 3)?).ok()?;
                        at += 2;
                        u8::from_str_radix(digits, 8).ok()?
                    }
                    other => other,
                });
            }
            byte => name.push(byte),
        }
        at += 1;
    }
}

/// A hunk and the line after it. The numbers in its header decide its end; where they are wrong, which is common in a
/// model's patch, the lines themselves do.
fn hunk(lines: &[&str], at: usize) -> Result<(PatchHunk, usize), PatchError> {
    let header = lines[at].strip_suffix('\r').unwrap_or(lines[at]);
    let numbers = numbers(header);
    if let Some((start, removed, added)) = numbers
        && let Some((body, next)) = counted(lines, at + 1, removed, added)
    {
        return Ok((
            PatchHunk { line: at + 1, start: Some(start), lines: body, ..PatchHunk::default() },
            next,
        ));
    }
    let mut hunk = PatchHunk { line: at + 1, miscounted: numbers.is_some(), ..PatchHunk::default() };
    match numbers {
        Some((start, _, _)) => hunk.start = Some(start),
        None => {
            let heading = header.trim_start_matches('@').trim();
            let heading = heading.strip_suffix("@@").unwrap_or(heading).trim_end();
            if heading.starts_with('-') {
                let reason = "the header of the hunk cannot be read".to_owned();
                return Err(PatchError::Syntax { line: at + 1, reason });
            }
            hunk.headings.extend((!heading.is_empty()).then(|| heading.to_owned()));
        }
    }
    let mut next = at + 1;
    while let Some(&line) = lines.get(next) {
        if line.starts_with("\\ ") {
            if let Some(last) = hunk.lines.last_mut() {
                last.unended = true;
            }
        } else if is_header(lines, next) || line.starts_with("-- ") && line.trim_end() == "--" {
            break;
        } else if let Some(line) = HunkLine::parse(line) {
            hunk.lines.push(line);
        } else {
            break;
        }
        next += 1;
    }
    drop_blank_end(&mut hunk);
    if hunk.lines.is_empty() {
        return Err(PatchError::Syntax { line: at + 1, reason: "the hunk has no lines".to_owned() });
    }
    // With wrong numbers and no old lines, its place is unknown.
    if hunk.miscounted && hunk.old().next().is_none() {
        hunk.start = None;
    }
    Ok((hunk, next))
}

/// The lines of a hunk, if there are as many as its header says and no more.
fn counted(
    lines: &[&str],
    first: usize,
    mut removed: usize,
    mut added: usize,
) -> Option<(Vec<HunkLine>, usize)> {
    let mut body: Vec<HunkLine> = Vec::new();
    let mut at = first;
    loop {
        let line = lines.get(at).copied();
        if let Some(line) = line
            && line.starts_with("\\ ")
        {
            body.last_mut()?.unended = true;
            at += 1;
            continue;
        }
        if removed == 0 && added == 0 {
            let more = line.is_some_and(|line| {
                let signature = line.trim_end() == "--";
                matches!(line.as_bytes().first(), Some(b' ' | b'+' | b'-')) && !signature
            });
            return (!more || is_header(lines, at)).then_some((body, at));
        }
        let line = HunkLine::parse(line?)?;
        match line.mark {
            LineMark::Keep => {
                removed = removed.checked_sub(1)?;
                added = added.checked_sub(1)?;
            }
            LineMark::Remove => removed = removed.checked_sub(1)?,
            LineMark::Add => added = added.checked_sub(1)?,
        }
        body.push(line);
        at += 1;
    }
}

/// The start of the old lines, their number and that of the new ones, from `@@ -1,2 +3,4 @@`.
fn numbers(header: &str) -> Option<(usize, usize, usize)> {
    let (old, rest) = header.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    };
    let ((start, removed), (_, added)) = (range(old)?, range(new)?);
    Some((start, removed, added))
}
