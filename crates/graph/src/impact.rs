//! What a change can reach: the definitions a diff touches, who uses them, and the tests among those.

use crate::query::{Answer, Found, Hit, Query};
use crate::select::{at_line, files_ending};
use crate::snapshot::Symbol;

/// Lines of the new files that a unified diff adds to or takes from.
pub fn changed_lines(diff: &str) -> Vec<(String, Vec<u32>)> {
    let mut files: Vec<(String, Vec<u32>)> = Vec::new();
    let (mut line, mut old) = (0u32, String::new());
    for text in diff.lines() {
        if let Some(path) = text.strip_prefix("--- ") {
            old = path.split('\t').next().unwrap_or(path).trim_start_matches("a/").to_owned();
        } else if let Some(path) = text.strip_prefix("+++ ") {
            let path = path.split('\t').next().unwrap_or(path).trim_start_matches("b/");
            let path = if path == "/dev/null" { old.as_str() } else { path };
            files.push((path.to_owned(), Vec::new()));
        } else if let Some(head) = text.strip_prefix("@@ ") {
            line = head
                .split_once('+')
                .and_then(|(_, rest)| rest.split([',', ' ']).next())
                .and_then(|number| number.parse().ok())
                .unwrap_or(1);
        } else if let Some((_, lines)) = files.last_mut() {
            match text.as_bytes().first() {
                Some(b'+') => {
                    lines.push(line);
                    line += 1;
                }
                // What was taken away stood between the lines around it.
                Some(b'-') => lines.push(line.max(1)),
                Some(b' ') | None => line += 1,
                _ => {}
            }
        }
    }
    for (_, lines) in &mut files {
        lines.dedup();
    }
    files
}

impl Query<'_> {
    /// The definitions a diff of the present files touches.
    pub fn touched(&self, diff: &str) -> (Vec<Symbol>, Vec<String>) {
        let mut touched = Vec::new();
        let mut notes = Vec::new();
        for (path, lines) in changed_lines(diff) {
            let Some(&file) = files_ending(self.snapshot, &path).first() else {
                notes.push(format!("{path} is not in the graph"));
                continue;
            };
            let mut outside = 0;
            for line in lines {
                match at_line(self.snapshot, file, line) {
                    Some(symbol) if !touched.contains(&symbol) => touched.push(symbol),
                    Some(_) => {}
                    None => outside += 1,
                }
            }
            if outside > 0 {
                notes.push(format!("{path}: {outside} changed lines stand outside of definitions"));
            }
        }
        (touched, notes)
    }

    /// Callers and tests that a diff can reach, by distance.
    pub(crate) fn impact_hits(&self, diff: &str, depth: u32) -> Found {
        let (touched, notes) = self.touched(diff);
        let mut answer = self.impact_of(&touched, depth);
        answer.notes.splice(0..0, notes);
        if touched.is_empty() && answer.notes.is_empty() {
            answer.notes.push("the diff touches nothing".to_owned());
        }
        answer
    }

    pub fn impact(&self, diff: &str, depth: u32) -> Answer {
        self.answer(self.impact_hits(diff, depth))
    }

    /// The same for what a text means.
    pub(crate) fn impact_named(&self, of: &str, depth: u32) -> Found {
        match self.meant_few(of) {
            Err(none) => none,
            Ok((touched, mut notes)) => {
                let mut answer = self.impact_of(&touched, depth);
                answer.notes.append(&mut notes);
                answer
            }
        }
    }

    /// The same for definitions.
    pub(crate) fn impact_of(&self, touched: &[Symbol], depth: u32) -> Found {
        let mut hits: Vec<Hit> =
            touched.iter().map(|symbol| Hit { distance: Some(0), ..Hit::of(*symbol) }).collect();
        let mut notes = Vec::new();
        let mut reached = self.reach(touched, depth, &mut notes);
        let mut tests = 0;
        for hit in &mut reached {
            if self.is_test_hit(hit) {
                hit.used = Some("test");
                tests += 1;
            }
        }
        // Tests first among those at one distance: they are what to run.
        reached
            .sort_by_key(|hit| (hit.distance, hit.used != Some("test"), std::cmp::Reverse(hit.confidence)));
        hits.append(&mut reached);
        let title = format!(
            "{} definitions touched, {} reached, {tests} of them tests",
            touched.len(),
            hits.len() - touched.len()
        );
        Found { title, hits, left_out: 0, notes }
    }
}
