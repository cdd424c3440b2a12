//! Search/replace blocks: several changes of one file in one text, for changes too long to be words of a line.

use super::EditParameters;
use crate::call::TypedCall;
use crate::patch;
use crate::problem::Problem;

const SEARCH: &str = "<<<<<<< SEARCH";
const MIDDLE: &str = "=======";
const REPLACE: &str = ">>>>>>> REPLACE";

/// Makes calls of the blocks. One block is an edit; several are a patch, which is applied completely or not at all.
pub(super) fn calls(path: &str, text: &str) -> Result<Vec<TypedCall>, Problem> {
    let blocks = read(text).map_err(Problem::Arguments)?;
    if let [(old, new)] = blocks.as_slice() {
        return Ok(vec![TypedCall::new(EditParameters {
            path: path.to_owned(),
            old_str: Some(old.clone()),
            new_str: new.clone(),
            ..EditParameters::default()
        })]);
    }
    let mut patch = format!("*** Begin Patch\n*** Update File: {path}\n");
    for (old, new) in &blocks {
        patch.push_str("@@\n");
        old.lines().for_each(|line| patch.push_str(&format!("-{line}\n")));
        new.lines().for_each(|line| patch.push_str(&format!("+{line}\n")));
    }
    patch.push_str("*** End Patch\n");
    Ok(vec![TypedCall::new(patch::PatchParameters { patch })])
}

/// The pairs of old and new text, whole lines each.
fn read(text: &str) -> Result<Vec<(String, String)>, String> {
    let form = format!("`{SEARCH}`, the old lines, `{MIDDLE}`, the new lines, `{REPLACE}`");
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if line.trim().is_empty() {
            continue;
        }
        if line.trim_end() != SEARCH {
            return Err(format!("line {}: a block is {form}", at + 1));
        }
        let mut take = |end: &str| -> Result<String, String> {
            let mut taken = String::new();
            for (_, line) in lines.by_ref() {
                if line.trim_end() == end {
                    return Ok(taken);
                }
                taken.push_str(line);
                taken.push('\n');
            }
            Err(format!("the block of line {} has no `{end}`: a block is {form}", at + 1))
        };
        let old = take(MIDDLE)?;
        let new = take(REPLACE)?;
        if old.is_empty() {
            return Err(format!("the block of line {} has nothing to search for", at + 1));
        }
        blocks.push((old, new));
    }
    if blocks.is_empty() { Err(format!("there is no block: one is {form}")) } else { Ok(blocks) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole_lines_between_their_marks() {
        let text = "<<<<<<< SEARCH\na $&\n=======\nb\n>>>>>>> REPLACE\n\n<<<<<<< SEARCH\nc\n=======\n>>>>>>> REPLACE\n";
        let expected = vec![("a $&\n".to_owned(), "b\n".to_owned()), ("c\n".to_owned(), String::new())];
        assert_eq!(read(text), Ok(expected));
    }

    #[test]
    fn what_is_no_block_is_said_with_its_line() {
        for (text, expected) in [
            ("", "there is no block"),
            ("hello\n", "line 1: a block is"),
            ("<<<<<<< SEARCH\na\n", "the block of line 1 has no `=======`"),
            ("<<<<<<< SEARCH\na\n=======\nb\n", "the block of line 1 has no `>>>>>>> REPLACE`"),
            (
                "<<<<<<< SEARCH\n=======\nb\n>>>>>>> REPLACE\n",
                "the block of line 1 has nothing to search for",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }
}
