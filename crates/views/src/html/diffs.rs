//! Changes of files: coloured differences, and the list of all files changed.

use std::fmt::Write as _;

use lathe_edit::{DiffStat, diff_stat, unified_diff};
use lathe_protocol::{Digest, StepNo};

use super::Page;
use super::escape::EscapedText;
use super::parts::{Tone, anchor};
use crate::messages::Say;

/// Content larger than this is not compared: the page is for reading.
const CONTENT_MAX: usize = 1 << 20;
/// Lines of a difference that are shown at once.
const LINES_SHOWN: usize = 80;

/// Steps that are named next to a file.
const STEPS_SHOWN: usize = 10;

/// The content of a file before and after.
enum Contents {
    Known { before: Option<Vec<u8>>, after: Option<Vec<u8>> },
    Gone,
    TooLarge,
}

/// One file over the whole session.
struct Net<'a> {
    path: &'a str,
    before: Option<&'a Digest>,
    after: Option<&'a Digest>,
    steps: Vec<StepNo>,
}

impl Page<'_> {
    /// The difference a call made to one file.
    pub(super) fn diff(&self, path: &str, before: Option<&Digest>, after: Option<&Digest>, out: &mut String) {
        let path = self.path(path);
        match self.contents(before, after) {
            Contents::Gone => self.note(Say::ContentGone, out),
            Contents::TooLarge => self.note(Say::TooLarge, out),
            Contents::Known { before, after } => {
                let diff = unified_diff(before.as_deref(), after.as_deref(), path);
                if diff.starts_with("Binary files ") {
                    self.note(Say::Binary, out);
                } else {
                    self.diff_lines(&diff, out);
                }
            }
        }
    }

    fn note(&self, word: Say, out: &mut String) {
        let _ = write!(out, "<p class=\"note\">{}</p>", self.say(word));
    }

    fn diff_lines(&self, diff: &str, out: &mut String) {
        // The two names at the top are on the page already.
        let body = diff.split_inclusive('\n').skip_while(|line| !line.starts_with("@@"));
        let lines: Vec<&str> = body.collect();
        let shown = if lines.len() > LINES_SHOWN + 10 { LINES_SHOWN } else { lines.len() };
        let (head, rest) = lines.split_at(shown);
        coloured(head, out);
        if !rest.is_empty() {
            let _ = write!(
                out,
                "<details class=\"more\"><summary>{} ({} {})</summary>",
                self.say(Say::ShowAll),
                rest.len(),
                self.say(Say::PageMoreLines)
            );
            coloured(rest, out);
            out.push_str("</details>");
        }
    }

    fn contents(&self, before: Option<&Digest>, after: Option<&Digest>) -> Contents {
        let read = |digest: Option<&Digest>| match digest {
            None => Some(None),
            Some(digest) => (self.blobs)(digest).map(Some),
        };
        let (Some(before), Some(after)) = (read(before), read(after)) else {
            return Contents::Gone;
        };
        let size = |content: &Option<Vec<u8>>| content.as_ref().map_or(0, Vec::len);
        if size(&before).max(size(&after)) > CONTENT_MAX {
            return Contents::TooLarge;
        }
        Contents::Known { before, after }
    }

    /// All files whose content changed in the session, with the lines added and removed.
    pub(super) fn changed_files(&self, out: &mut String) {
        if self.session.runs.is_empty() {
            return;
        }
        let files = self.net_changes();
        let _ = write!(out, "<section class=\"card\">\n<h2>{}</h2>\n", self.say(Say::PageChanged));
        if files.is_empty() {
            let _ = write!(out, "<p class=\"about\">{}</p>", self.say(Say::NoChanges));
        }
        for file in &files {
            out.push_str("<details class=\"file\"><summary>");
            let _ = write!(out, "<code>{}</code>", EscapedText(self.path(file.path)));
            match (file.before, file.after) {
                (None, Some(_)) => self.chip(Tone::Good, self.say(Say::Created), out),
                (Some(_), None) => self.chip(Tone::Bad, self.say(Say::Deleted), out),
                (Some(_), Some(_)) | (None, None) => {}
            }
            if let Contents::Known { before, after } = self.contents(file.before, file.after) {
                stat(&diff_stat(before.as_deref(), after.as_deref()), out);
            }
            out.push_str("<span class=\"steps-of\">");
            let _ = write!(out, "{}", self.say(Say::InSteps));
            for step in file.steps.iter().take(STEPS_SHOWN) {
                let _ = write!(out, " <a href=\"#{}\">{step}</a>", anchor(*step));
            }
            if file.steps.len() > STEPS_SHOWN {
                out.push_str(" …");
            }
            out.push_str("</span></summary>");
            self.diff(file.path, file.before, file.after, out);
            out.push_str("</details>\n");
        }
        out.push_str("</section>\n");
    }

    /// First content and last of each path, in the order of the first change. A file that got its first content back
    /// is left out.
    fn net_changes(&self) -> Vec<Net<'_>> {
        let mut files: Vec<Net<'_>> = Vec::new();
        for step in self.session.steps() {
            let finished = step.calls.iter().filter_map(|call| call.finished);
            for change in finished.flat_map(|finished| &finished.changes) {
                match files.iter_mut().find(|file| file.path == change.path) {
                    Some(file) => {
                        file.after = change.after.as_ref();
                        if file.steps.last() != Some(&step.step) {
                            file.steps.push(step.step);
                        }
                    }
                    None => files.push(Net {
                        path: &change.path,
                        before: change.before.as_ref(),
                        after: change.after.as_ref(),
                        steps: vec![step.step],
                    }),
                }
            }
        }
        files.retain(|file| file.before != file.after);
        files
    }
}

fn stat(stat: &DiffStat, out: &mut String) {
    let _ =
        write!(out, "<span class=\"stat\"><ins>+{}</ins> <del>−{}</del></span>", stat.added, stat.removed);
}

fn coloured(lines: &[&str], out: &mut String) {
    out.push_str("<pre class=\"diff\">");
    for line in lines {
        let tag = match line.as_bytes().first() {
            Some(b'+') => "ins",
            Some(b'-') => "del",
            Some(b'@') => "i",
            Some(_) | None => "span",
        };
        let _ = write!(out, "<{tag}>{}</{tag}>", EscapedText(line));
    }
    out.push_str("</pre>");
}
