//! Finds the lines of a check's output that are new.

use std::collections::HashMap;

/// The most lines and bytes that are reported of one check.
const LINES: usize = 50;
const BYTES: usize = 6000;

/// The output of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CheckReport {
    failed: bool,
    lines: Vec<String>,
}

impl CheckReport {
    pub(super) fn new(failed: bool, output: &str) -> Self {
        let lines = output.lines().map(str::trim_end).filter(|line| !line.is_empty());
        Self { failed, lines: lines.map(str::to_owned).collect() }
    }

    /// Lines that were not in `before`, not even with other numbers.
    fn new_since(&self, before: &Self) -> Vec<&str> {
        // A check that succeeds has nothing to report, whatever its last line is.
        if before.failed && !self.failed {
            return Vec::new();
        }
        let mut exact: HashMap<&str, usize> = HashMap::new();
        for line in &before.lines {
            *exact.entry(line).or_default() += 1;
        }
        let mut take = |line: &str| match exact.get_mut(line) {
            Some(left @ 1..) => {
                *left -= 1;
                true
            }
            Some(_) | None => false,
        };
        let rest: Vec<&str> = self.lines.iter().map(String::as_str).filter(|line| !take(line)).collect();
        let mut moved: HashMap<String, usize> = HashMap::new();
        for (line, count) in exact {
            *moved.entry(without_numbers(line)).or_default() += count;
        }
        let mut is_moved = |line: &str| match moved.get_mut(&without_numbers(line)) {
            Some(left @ 1..) => {
                *left -= 1;
                true
            }
            Some(_) | None => false,
        };
        rest.into_iter().filter(|line| !is_moved(line)).collect()
    }
}

/// The new lines under a heading, or nothing.
pub(super) fn new_lines_text(command: &str, before: &CheckReport, after: &CheckReport) -> String {
    let new = after.new_since(before);
    let mut shown = String::new();
    let mut count = 0;
    for line in new.iter().take(LINES) {
        if count > 0 && shown.len() + line.len() > BYTES {
            break;
        }
        shown.push_str(lathe_redact::beginning(line, BYTES));
        shown.push('\n');
        count += 1;
    }
    if count == 0 {
        return String::new();
    }
    let more = match new.len() - count {
        0 => String::new(),
        more => format!("\n({more} more lines are not shown)"),
    };
    format!("\n\nNew since this change, from the check `{command}`:\n<check>\n{shown}</check>{more}")
}

fn without_numbers(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('#') {
            out.push('#');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_not_there_before_is_new() {
        for (before, after, expected) in [
            ("", "a:1: bad", &["a:1: bad"][..]),
            ("a:1: bad", "a:1: bad", &[]),
            ("a:1: bad", "a:7: bad", &[]),
            ("a:1: bad", "a:1: bad\na:7: bad", &["a:7: bad"]),
            ("a:1: bad\na:2: worse", "a:3: bad\na:3: new\na:4: worse", &["a:3: new"]),
            ("a:1: bad", "", &[]),
            ("a\na", "a\na\na", &["a"]),
        ] {
            let (before, after) = (CheckReport::new(true, before), CheckReport::new(true, after));
            assert_eq!(after.new_since(&before), expected, "{before:?} {after:?}");
        }
        let (before, after) = (CheckReport::new(true, "1 error"), CheckReport::new(false, "all is well"));
        assert!(after.new_since(&before).is_empty());
    }
}
