//! The reach of a change: the definitions that a diff touches, their users, and the tests among those.

use crate::hash::QuickSet;
use crate::query::{GraphReply, Hit, HitList, Query};
use crate::removed::RemovedDef;
use crate::resolve::Confidence;
use crate::select::{at_line, caller, files_ending};
use crate::snapshot::Symbol;

/// The number of removed definitions that are named.
const TOLD: usize = 20;

/// The path in the head of a file's diff.
pub(crate) fn path_in(head: &str, side: &str) -> String {
    let path = head.split('\t').next().unwrap_or(head).trim_matches('"');
    path.strip_prefix(side).unwrap_or(path).to_owned()
}

/// Lines of the new files that a unified diff adds or deletes.
pub fn changed_lines(diff: &str) -> Vec<(String, Vec<u32>)> {
    let mut files: Vec<(String, Vec<u32>)> = Vec::new();
    let (mut line, mut old) = (0u32, String::new());
    for text in diff.lines() {
        if let Some(path) = text.strip_prefix("--- ") {
            old = path_in(path, "a/");
        } else if let Some(path) = text.strip_prefix("+++ ") {
            let path = path_in(path, "b/");
            files.push((if path == "/dev/null" { old.clone() } else { path }, Vec::new()));
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
                // Deleted text stood between the lines around it.
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

fn not_there(path: &str) -> String {
    format!("{path} is not in the graph")
}

/// Sorts by distance, and tests first among hits at one distance: they are the ones to run.
fn by_distance(hits: &mut [Hit]) {
    hits.sort_by_key(|hit| (hit.distance, hit.used != Some("test"), std::cmp::Reverse(hit.confidence)));
}

impl Query<'_> {
    /// The definitions that a diff of the present files touches.
    pub fn touched(&self, diff: &str) -> (Vec<Symbol>, Vec<String>) {
        let mut touched = Vec::new();
        let mut notes = Vec::new();
        for (path, lines) in changed_lines(diff) {
            let Some(&file) = files_ending(self.snapshot, &path).first() else {
                notes.push(not_there(&path));
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

    /// Callers and tests that a diff can reach, by distance, and remaining users of what it removes.
    pub(crate) fn impact_hits(&self, diff: &str, depth: u32) -> HitList {
        let (touched, mut notes) = self.touched(diff);
        let removed = self.removed(diff);
        notes.retain(|note| !removed.iter().any(|one| *note == not_there(&one.path)));
        let mut answer = self.impact_of(&touched, depth);
        if !removed.is_empty() {
            let mut told: Vec<String> =
                removed.iter().map(|one| format!("{} ({}:{})", one.symbol, one.path, one.line)).collect();
            let more = told.len().saturating_sub(TOLD);
            told.truncate(TOLD);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            notes.push(format!("no longer there: {}{more}", told.join(", ")));
            self.add_users_of(&removed, depth, &mut answer);
        }
        answer.notes.splice(0..0, notes);
        if touched.is_empty() && answer.notes.is_empty() {
            answer.notes.push("the diff touches nothing".to_owned());
        }
        let reached = answer.hits.iter().filter(|hit| hit.distance != Some(0));
        let (reached, tests) =
            reached.fold((0, 0), |(all, tests), hit| (all + 1, tests + usize::from(self.is_test_hit(hit))));
        let gone = if removed.is_empty() { String::new() } else { format!("{} removed, ", removed.len()) };
        answer.title =
            format!("{} definitions touched, {gone}{reached} reached, {tests} of them tests", touched.len());
        answer
    }

    /// Adds the remaining users of removed definitions, and their users.
    fn add_users_of(&self, removed: &[RemovedDef], depth: u32, answer: &mut HitList) {
        let mut users = self.remaining_users(removed);
        let sure = users.iter().filter(|hit| hit.confidence != Some(Confidence::NameOnly));
        let sure: Vec<Symbol> = sure.filter_map(|hit| caller(hit.file, hit.def)).collect();
        let further = self.reach(&sure, depth.saturating_sub(1), &mut answer.notes);
        let later = |hit: Hit| Hit { distance: hit.distance.map(|steps| steps + 1), ..hit };
        users.extend(further.into_iter().map(later));
        let known: QuickSet<(u32, u32)> = answer.hits.iter().map(|hit| (hit.file, hit.def)).collect();
        users.retain(|hit| !known.contains(&(hit.file, hit.def)));
        for hit in &mut users {
            if self.is_test_hit(hit) {
                hit.used = Some("test");
            }
        }
        answer.hits.append(&mut users);
        by_distance(&mut answer.hits);
    }

    pub fn impact(&self, diff: &str, depth: u32) -> GraphReply {
        self.reply(self.impact_hits(diff, depth))
    }

    /// The reach of the definitions that a text means.
    pub(crate) fn impact_named(&self, of: &str, depth: u32) -> HitList {
        match self.few_definitions_of(of) {
            Err(none) => none,
            Ok((touched, mut notes)) => {
                let mut answer = self.impact_of(&touched, depth);
                answer.notes.append(&mut notes);
                answer
            }
        }
    }

    /// The reach of definitions.
    pub(crate) fn impact_of(&self, touched: &[Symbol], depth: u32) -> HitList {
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
        by_distance(&mut reached);
        hits.append(&mut reached);
        let title = format!(
            "{} definitions touched, {} reached, {tests} of them tests",
            touched.len(),
            hits.len() - touched.len()
        );
        HitList { title, hits, left_out: 0, notes }
    }
}
