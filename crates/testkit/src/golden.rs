//! Golden files: a test's output when a developer last read it and found it right.

use std::path::Path;

/// Lines of context around a difference, and at most this many changed lines are shown.
const CONTEXT: usize = 2;
const SHOWN: usize = 20;

enum Mode {
    Compare,
    Update,
}

/// Panics with a small diff unless the file at `path` holds `actual`. With `UPDATE_GOLDEN=1` it writes the file.
#[track_caller]
pub fn golden(path: impl AsRef<Path>, actual: &str) {
    let mode = match std::env::var("UPDATE_GOLDEN").as_deref() {
        Ok("1") => Mode::Update,
        _ => Mode::Compare,
    };
    if let Err(text) = check(path.as_ref(), actual, &mode) {
        panic!("{text}");
    }
}

fn check(path: &Path, actual: &str, mode: &Mode) -> Result<(), String> {
    let expected = std::fs::read_to_string(path);
    if expected.as_deref().is_ok_and(|expected| expected == actual) {
        return Ok(());
    }
    match mode {
        Mode::Update => {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
            }
            std::fs::write(path, actual).map_err(|error| format!("{}: {error}", path.display()))
        }
        Mode::Compare => {
            let difference = match expected {
                Ok(expected) => diff(&expected, actual),
                Err(error) => format!("{error}; it would be\n{}", diff("", actual)),
            };
            Err(format!(
                "{} is not what the test saw (- file, + seen):\n{difference}\
                 If the new text is right, run this test again with UPDATE_GOLDEN=1 and look at `git diff`.",
                path.display()
            ))
        }
    }
}

/// The lines between the common beginning and the common end.
fn diff(expected: &str, actual: &str) -> String {
    let old: Vec<&str> = expected.split_inclusive('\n').collect();
    let new: Vec<&str> = actual.split_inclusive('\n').collect();
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let from = head.saturating_sub(CONTEXT);
    let mut text = format!("@@ line {} @@\n", head + 1);
    let mut add = |sign: char, lines: &[&str]| {
        for line in lines.iter().take(SHOWN) {
            // A missing or odd line end must be seen.
            let end = if line.ends_with('\n') { "" } else { "⏎ missing" };
            let shown = line.trim_end_matches('\n').replace('\r', "␍");
            text.push_str(&format!("{sign} {shown}{end}\n"));
        }
        if lines.len() > SHOWN {
            text.push_str(&format!("{sign} … {} more lines\n", lines.len() - SHOWN));
        }
    };
    add(' ', &old[from..head]);
    add('-', &old[head..old.len() - tail]);
    add('+', &new[head..new.len() - tail]);
    add(' ', &old[old.len() - tail..old.len() - tail + tail.min(CONTEXT)]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_shown_with_its_surroundings_and_the_way_to_accept_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/golden.txt");
        check(&path, "a\nb\nc\nd\ne\nf\n", &Mode::Update).unwrap();
        check(&path, "a\nb\nc\nd\ne\nf\n", &Mode::Compare).unwrap();
        let error = check(&path, "a\nb\nc\nD\nx\ne\nf\n", &Mode::Compare).unwrap_err();
        let (_, shown) = error.split_once('\n').unwrap();
        assert_eq!(
            shown,
            "@@ line 4 @@\n  b\n  c\n- d\n+ D\n+ x\n  e\n  f\n\
             If the new text is right, run this test again with UPDATE_GOLDEN=1 and look at `git diff`."
        );
    }

    #[test]
    fn a_missing_file_and_a_missing_line_end_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let error = check(&dir.path().join("none"), "a", &Mode::Compare).unwrap_err();
        assert!(error.contains("No such file") && error.contains("+ a⏎ missing"), "{error}");
    }
}
