//! Edits keep what they do not touch, refuse what is not clear, and notice changes made meanwhile.

use std::os::unix::fs::PermissionsExt;

use lathe_testkit::{Script, TempRepo, call, done};
use serde_json::json;

use crate::{bodies, play, result};

#[test]
fn tabs_line_endings_byte_order_mark_and_mode_stay() {
    let repo = TempRepo::new(&[]);
    let before = "\u{feff}all:\r\n\tcc -o a a.c\r\n\techo done";
    repo.write("Makefile", before);
    std::fs::set_permissions(repo.join("Makefile"), std::fs::Permissions::from_mode(0o751)).unwrap();
    let script = Script::new()
        .answer(call("c1", "view", json!({ "path": "Makefile" })))
        .answer(call("c2", "edit", json!({ "path": "Makefile", "old_str": "\tcc -o a a.c\n", "new_str": "\tcc -O2 -o a a.c\n\tstrip a\n" })))
        .answer(done("ok"));
    let events = play(repo.path(), script).expect_code(0).events();
    assert_eq!(repo.read("Makefile"), "\u{feff}all:\r\n\tcc -O2 -o a a.c\r\n\tstrip a\r\n\techo done");
    assert_eq!(std::fs::metadata(repo.join("Makefile")).unwrap().permissions().mode() & 0o7777, 0o751);
    assert!(
        result(&events, "c2").contains("     2\t\tcc -O2 -o a a.c\n     3\t\tstrip a\n"),
        "{}",
        result(&events, "c2")
    );
    let changes = &bodies(&events, "call_finished")[1]["changes"];
    assert_eq!(changes.as_array().unwrap().len(), 1);
    assert_eq!(changes[0]["by"], "c2");
}

#[test]
fn an_ambiguous_text_is_refused_with_its_places() {
    let repo = TempRepo::new(&[("a.py", "x = 1\ny = 2\nx = 1\ny = 2\n")]);
    let script = Script::new()
        .answer(call("c1", "edit", json!({ "path": "a.py", "old_str": "x = 1\ny = 2\n", "new_str": "z\n" })))
        .answer(done("ok"));
    let events = play(repo.path(), script).expect_code(0).events();
    assert!(result(&events, "c1").contains("it stands at lines 1, 3"), "{}", result(&events, "c1"));
    assert_eq!(repo.read("a.py"), "x = 1\ny = 2\nx = 1\ny = 2\n");
}

#[test]
fn a_file_that_changed_since_it_was_viewed_is_refused_until_it_is_viewed_again() {
    let repo = TempRepo::new(&[("a.txt", "one\ntwo\n")]);
    let edit = |id: &str| call(id, "edit", json!({ "path": "a.txt", "old_str": "two", "new_str": "2" }));
    let script = Script::new()
        .answer(call("c1", "view", json!({ "path": "./a.txt" })))
        .answer(call("c2", "bash", json!({ "command": "echo three >> a.txt" })))
        .answer(edit("c3"))
        .answer(call("c4", "view", json!({ "path": "a.txt" })))
        .answer(edit("c5"))
        .answer(done("ok"));
    let events = play(repo.path(), script).expect_code(0).events();
    assert!(result(&events, "c3").contains("was changed since you viewed it"), "{}", result(&events, "c3"));
    assert!(result(&events, "c5").starts_with("Edited "), "{}", result(&events, "c5"));
    assert_eq!(repo.read("a.txt"), "one\n2\nthree\n");
}

#[test]
fn a_failed_call_leads_to_one_reflection_and_the_run_goes_on() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let script = Script::new()
        .answer(call("c1", "edit", json!({ "path": "a.txt", "old_str": "nope", "new_str": "x" })).call(
            "c2",
            "view",
            json!({ "path": "missing.txt" }),
        ))
        .answer(done("ok"));
    let events = play(repo.path(), script).expect_code(0).events();
    let reflected = bodies(&events, "reflected");
    assert_eq!(reflected.len(), 1);
    assert!(reflected[0]["text"].as_str().unwrap().starts_with("Failed in this step: edit, view."));
}

#[test]
fn the_guard_keeps_tools_out_of_git_and_of_lathes_own_folder() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
    let script = Script::new()
        .answer(call("c1", "write", json!({ "path": ".git/hooks/pre-commit", "content": "#!/bin/sh\n" })))
        .answer(done("ok"));
    let events = play(repo.path(), script).expect_code(5).events();
    assert!(
        result(&events, "c1").starts_with("Tool execution denied by policy."),
        "{}",
        result(&events, "c1")
    );
    assert!(!repo.exists(".git/hooks/pre-commit"));
    let decided = &bodies(&events, "call_decided")[0]["decision"];
    assert_eq!((&decided["verdict"], &decided["rule"]), (&json!("deny"), &json!("guard.git")));
}

/// A call of each face that replaces `old` by `new` in `a.py`.
fn faces(
    root: &std::path::Path,
    old: &str,
    new: &str,
) -> Vec<(&'static str, &'static str, serde_json::Value)> {
    let path = root.join("a.py").display().to_string();
    let quoted =
        |text: &str| format!("$'{}'", text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t"));
    let line = format!("edit a.py {} {}", quoted(old), quoted(new));
    vec![
        ("lathe", "edit", json!({ "path": path, "old_str": old, "new_str": new })),
        (
            "trae",
            "str_replace_based_edit_tool",
            json!({ "command": "str_replace", "path": path, "old_str": old, "new_str": new }),
        ),
        ("gemini", "replace", json!({ "file_path": path, "old_string": old, "new_string": new })),
        ("bash", "Bash", json!({ "command": line })),
    ]
}

#[test]
fn issue_16_every_face_indents_as_the_file_or_refuses() {
    const BEFORE: &str = "class A:\n\tdef f(self):\n\t\treturn 1\n";
    for (old, new, wanted) in [
        (
            "def f(self):\n    return 1\n",
            "def f(self):\n    if self:\n        return 2\n",
            Some("class A:\n\tdef f(self):\n\t\tif self:\n\t\t\treturn 2\n"),
        ),
        // The first line moves and another stays.
        ("    def f(self):\n        return 1\n", "if self:\n    def f(self):\n        return 1\n", None),
        // It only says that code was left out.
        ("\t\treturn 1\n", "\t\t# ... existing code ...\n\t\treturn 2\n", None),
    ] {
        for at in 0..4 {
            let repo = TempRepo::new(&[("a.py", BEFORE)]);
            let (toolset, name, arguments) = faces(repo.path(), old, new).swap_remove(at);
            let ran = crate::lathe()
                .in_dir(repo.path())
                .args(["tool", "run", name, "--toolset", toolset, "--json", &arguments.to_string()])
                .run();
            assert_eq!(
                repo.read("a.py"),
                wanted.unwrap_or(BEFORE),
                "{toolset} {new:?}: {} {}",
                ran.stdout,
                ran.stderr
            );
            // A line that fails is a result like any other.
            let done = ran.code == 0 && !ran.stdout.contains("exit code 1");
            assert_eq!(done, wanted.is_some(), "{toolset} {new:?}: {} {}", ran.stdout, ran.stderr);
        }
    }
}

#[test]
fn issue_16_no_face_writes_a_file_that_leaves_code_out() {
    let content = "x = 1\n# rest of the file ...\n";
    for (toolset, name, arguments) in [
        ("lathe", "write", json!({ "path": "new.py", "content": content })),
        (
            "lathe",
            "apply_patch",
            json!({ "patch": "*** Begin Patch\n*** Add File: new.py\n+x = 1\n+# rest of the file ...\n*** End Patch\n" }),
        ),
        ("gemini", "write_file", json!({ "file_path": "new.py", "content": content })),
        ("bash", "Bash", json!({ "command": "printf 'x = 1\\n# rest of the file ...\\n' | write new.py" })),
    ] {
        let repo = TempRepo::new(&[]);
        let run = ["tool", "run", name, "--toolset", toolset, "--json", &arguments.to_string()];
        let ran = crate::lathe().in_dir(repo.path()).args(run).run();
        assert!(ran.code != 0 || ran.stdout.contains("exit code 1"), "{toolset} {name}: {}", ran.stdout);
        assert!(!repo.join("new.py").exists(), "{toolset} {name}: {}", ran.stdout);
    }
}
