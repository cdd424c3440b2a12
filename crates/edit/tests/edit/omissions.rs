//! Lines that only say that code was left out.

use lathe_edit::Occurrence::Unique;
use lathe_edit::patch::{Patch, PatchError, plan};
use lathe_edit::{EditError, omission_in_new, omission_line, replace};

#[rustfmt::skip]
const LEAVE_OUT: &[&str] = &[
    "// rest of the file ...", "// rest of methods ...", "//rest of code...", "# ... existing code ...", "/* unchanged */",
    "<!-- rest of page -->", "-- ...", "// ...", "# ...", "/* ... */", "<!-- ... -->", "{/* ... */}", "; ...", "% ...",
    "// … rest of the code …", "// (rest of the code)", "(rest of methods ...)", "rest of code ...", "unchanged methods ...",
    "... existing code ...", "[rest of file unchanged]", "// ... (unchanged)", "# rest of the file remains the same",
    "// Rest of the implementation remains unchanged", "/* ... other imports ... */", "// ... remaining methods ...",
    "// code omitted for brevity", "# (existing code)", "// same as before", "{/* rest of the component */}",
    "# ... (rest of the class stays the same)", "// existing code here", "-- rest of the query unchanged", "{# rest of template #}",
    "// ... user handlers unchanged ...", "* ... rest of the file ...", "# ... keep existing tests ...", "... rest of the file",
    "    // ... rest of code ...   ", "// previous code ...", "// other methods ...", "/** rest of the class **/",
];

#[rustfmt::skip]
const TEXT: &[&str] = &[
    "", "...", "…", "    ...", "def f(): ...", "pass  # ...", "call(...args)", "[...rest]", "...props", "- ...", "let rest = ...;",
    "// Remaining items", "# Existing users keep their names", "// rest of the arguments", "// The rest is sent later ...", "unchanged",
    "unchanged:", "\"unchanged\",", "rest", "remaining = total - used", "// Handle the rest later ...", "# wait ...",
    "# Loading ...", "// see above", "# the same as before, but faster", "// unchanged since 1.2", "assert_eq!(rest, \"...\");",
    "/// Returns the remaining bytes.", "// existing: Vec<u8>", "print('rest of code ...')", "Keep the rest of the file in mind ...",
    "# code", "// file", "---", "-- here", "#!/bin/sh", "// other", "# More ... or less", "* unchanged_items: the items", "<rest>",
];

#[test]
fn a_line_that_only_leaves_code_out_is_known() {
    for line in LEAVE_OUT {
        let new = format!("a\n{line}\nb\n");
        assert_eq!(omission_line("a\nb\n", &new).as_deref(), Some(line.trim()), "{line}");
        assert_eq!(omission_line(&format!("x\n  {line}\n"), &new), None, "{line} stood there");
    }
    for line in TEXT {
        assert_eq!(omission_line("a\n", &format!("a\n{line}\nb\n")), None, "{line}");
    }
    assert_eq!(omission_in_new("# ...\n"), None);
    assert_eq!(omission_in_new("# rest of the code ...\n").as_deref(), Some("# rest of the code ..."));
}

#[test]
fn an_edit_and_a_patch_that_leave_code_out_are_refused() {
    let refused = EditError::LeftOut { line: "// rest of methods ...".to_owned() };
    let got = replace(b"x\ny\n", "x\n", "z\n// rest of methods ...\n", Unique);
    assert_eq!(got, Err(refused.clone()));
    let kept = replace(
        b"x\n// rest of methods ...\n",
        "x\n// rest of methods ...",
        "z\n// rest of methods ...",
        Unique,
    );
    assert_eq!(kept.map(|edited| edited.content), Ok(b"z\n// rest of methods ...\n".to_vec()));

    let patch = |text: &str| plan(&Patch::parse(text).unwrap(), &|_| Some(b"a\nb\n".to_vec()));
    let got = patch("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+// rest of methods ...\n");
    assert_eq!(got, Err(PatchError::Edit { path: "f".to_owned(), error: refused }));
}
