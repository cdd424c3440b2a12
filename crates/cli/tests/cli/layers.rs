//! The three layers in one bash, through the real binary: as a person's shell and as the one tool of a model.

use std::path::Path;

use lathe_testkit::{FakeModel, Script, TempRepo, call, say};
use serde_json::json;

use crate::{bodies, lathe, results};

/// The files that every line finds in its folder.
fn files() -> TempRepo {
    let repo = TempRepo::new(&[
        ("a.txt", "one\ntwo\nthree\n"),
        ("b.md", "# bee\n"),
        ("c.md", "# sea\n"),
        ("sub/b.txt", "bee\n"),
        ("Makefile", "all:\n"),
    ]);
    std::fs::write(repo.path().join("bin.dat"), b"a\0\xff\n\x01z").unwrap();
    repo
}

/// A line, and what it leads to: the exit code, what is printed, and a file with its bytes.
struct Row {
    line: &'static str,
    code: u8,
    out: &'static str,
    file: Option<(&'static str, &'static [u8])>,
}

const fn row(line: &'static str, out: &'static str) -> Row {
    Row { line, code: 0, out, file: None }
}

const fn fails(line: &'static str, code: u8, out: &'static str) -> Row {
    Row { line, code, out, file: None }
}

const fn makes(line: &'static str, name: &'static str, bytes: &'static [u8]) -> Row {
    Row { line, code: 0, out: "", file: Some((name, bytes)) }
}

const NUMBERED: &str = "     1\tone\n     2\ttwo\n     3\tthree\n";

/// The compound commands of the design, each as it should be.
const COMPOUND: [Row; 21] = [
    row("read a.txt | grep t", "two\nthree\n"),
    makes("read a.txt > out", "out", b"one\ntwo\nthree\n"),
    row("read a.txt; echo done", "     1\tone\n     2\ttwo\n     3\tthree\ndone\n"),
    row("read b.md\nls sub", "     1\t# bee\nb.txt\n"),
    row("cd sub && read b.txt", "     1\tbee\n"),
    row("(read a.txt)", NUMBERED),
    row("for f in *.md; do read $f; done", "     1\t# bee\n     1\t# sea\n"),
    row("echo \"$(read a.txt)\"", "one\ntwo\nthree\n"),
    row("X=1 read a.txt", NUMBERED),
    row("cat a.txt | { read; echo \"$REPLY\"; }", "one\n"),
    fails("cat a.txt | view", 2, ""),
    row("echo a.txt | xargs view", NUMBERED),
    row("echo a.txt | xargs read", NUMBERED),
    row("HERE=$PWD; read $HERE/b.md", "     1\t# bee\n"),
    row("read *.md", "==> b.md <==\n     1\t# bee\n==> c.md <==\n     1\t# sea\n"),
    makes("write f \"x\" && echo ok", "f", b"x"),
    makes("write f <<EOF\na\\n '$PWD' done EOF\nEOF", "f", b""),
    row("bash -c 'echo from $0' inner | tr a-z A-Z", "FROM INNER\n"),
    makes("write f 'a -h b'", "f", b"a -h b"),
    row("echo 'echo script ran' > s.sh; bash s.sh", "script ran\n"),
    row("bash -c \"view a.txt | head -1\"", "one\n"),
];

/// Compositions of commands.
const COMPOSED: [Row; 64] = [
    row("view a.txt | wc -l", "3\n"),
    row("view a.txt | view a.txt --limit 1", "     1\tone\n"),
    row("view a.txt | sort -r | head -1", "two\n"),
    makes("view a.txt | write copy.txt", "copy.txt", b"one\ntwo\nthree\n"),
    makes("view bin.dat | write copy.bin", "copy.bin", b"a\0\xff\n\x01z"),
    makes("view bin.dat > copy.bin", "copy.bin", b"a\0\xff\n\x01z"),
    makes("cat bin.dat | write copy.bin", "copy.bin", b"a\0\xff\n\x01z"),
    makes("view a.txt >> b.md", "b.md", b"# bee\none\ntwo\nthree\n"),
    makes("view none 2> err; true", "err", b""),
    row("x=$(view a.txt); echo ${#x}", "13\n"),
    row("echo `view b.md`", "# bee\n"),
    row("diff <(view a.txt) a.txt && echo same", "same\n"),
    row("while read -r l; do echo \"<$l>\"; done < <(view a.txt)", "<one>\n<two>\n<three>\n"),
    row("view a.txt | while read -r l; do echo \"<$l>\"; done", "<one>\n<two>\n<three>\n"),
    row("while read -r f; do view $f; done <<< $'b.md\\nc.md'", "     1\t# bee\n     1\t# sea\n"),
    row("i=0; until [ $i = 2 ]; do view b.md > /dev/null; i=$((i + 1)); done; echo $i", "2\n"),
    row("ls *.md | xargs view", "==> b.md <==\n     1\t# bee\n==> c.md <==\n     1\t# sea\n"),
    row("printf '%s\\0' b.md c.md | xargs -0 -n1 view", "     1\t# bee\n     1\t# sea\n"),
    row("printf '%s\\n' b.md c.md | xargs -P2 -I{} view {} | sort", "# bee\n# sea\n"),
    row("find . -name '*.md' -exec view {} \\; | sort", "# bee\n# sea\n"),
    row("find . -name 'b.txt' -exec view {} +", "     1\tbee\n"),
    makes(
        "write f <<'EOF'\n'q' \"d\" $HOME `x` \\n \\\\ $(y) EOF\n\n\ttab\nEOF",
        "f",
        b"'q' \"d\" $HOME `x` \\n \\\\ $(y) EOF\n\n\ttab\n",
    ),
    makes("printf '' | write f; test -f f && ! test -s f && echo empty > ok", "ok", b"empty\n"),
    makes("X=5; write f <<EOF\n$X \\$X \\`\nEOF", "f", b"5 $X `\n"),
    makes("write f <<-'EOF'\n\tindented\n\tEOF", "f", b"indented\n"),
    makes("write f <<< 'a string'", "f", b"a string\n"),
    makes("printf 'no newline' | write f", "f", b"no newline"),
    makes("printf '\\r\\n\\r\\n' | write f", "f", b"\r\n\r\n"),
    makes(
        "head -c 300000 /dev/zero | tr '\\0' x | write f; test $(wc -c < f) = 300000 && echo whole > ok",
        "ok",
        b"whole\n",
    ),
    row("set -o pipefail; view none | cat; echo $?", "1\n"),
    row("set -o pipefail; yes | head -100000 > big; view big | head -1; echo $?", "y\n141\n"),
    row("view none || echo fallback", "fallback\n"),
    row("view b.md && echo next", "     1\t# bee\nnext\n"),
    row("! view none; echo $?", "0\n"),
    row("if view none; then echo yes; else echo no; fi", "no\n"),
    row("bash -c 'view b.md'", "     1\t# bee\n"),
    row("bash -c 'bash -c \"view b.md\"'", "     1\t# bee\n"),
    row("sh -c 'view b.md'", "     1\t# bee\n"),
    row("env -i PATH=\"$PATH\" view b.md", "     1\t# bee\n"),
    row("env -i \"$(command -v view)\" b.md", "     1\t# bee\n"),
    row("(cd sub; view b.txt); view b.md", "     1\tbee\n     1\t# bee\n"),
    row("cd sub; view b.txt; cd ..; view b.md", "     1\tbee\n     1\t# bee\n"),
    row("for d in sub .; do (cd $d && glob '*.txt'); done", "b.txt\na.txt\n"),
    row("show() { view \"$1\" | tr a-z A-Z; }; show b.md", "# BEE\n"),
    row("view b.md & wait", "     1\t# bee\n"),
    row("view b.md > out & wait; cat out", "# bee\n"),
    row("timeout 20 view b.md", "     1\t# bee\n"),
    row("nohup view b.md 2>/dev/null | cat", "# bee\n"),
    row("view b.md | view c.md | cat", "# sea\n"),
    row("echo \"$(view b.md) $(view c.md)\"", "# bee # sea\n"),
    row("a=(b.md c.md); view \"${a[@]}\" | wc -l", "2\n"),
    row("search bee | cut -d: -f1 | sort -u", "b.md\nsub/b.txt\n"),
    row("search -l bee | xargs view | wc -l", "2\n"),
    row("glob '*.md' | sort | head -1", "b.md\n"),
    row("list | sort | head -2", "Makefile\na.txt\n"),
    row("read v <<< x; echo $v", "x\n"),
    row("IFS=, read -ra parts <<< 'p,q'; echo ${parts[1]}", "q\n"),
    row("printf 'l1\\nl2\\n' | while read -r l; do echo $l; done", "l1\nl2\n"),
    row("read -d . v <<< 'ab.c'; echo $v", "ab\n"),
    row("view ./Makefile", "     1\tall:\n"),
    row("exec 3< a.txt; view /dev/fd/3; echo $?", "1\n"),
    row("for n in 4 5 6 7 8 9 10 11 12; do view /dev/fd/$n; done 2>/dev/null; echo $?", "1\n"),
    row("view /proc/self/environ; view /dev/stdin < a.txt; echo $?", "1\n"),
    row("trap 'echo bye' EXIT; view b.md | cat", "# bee\n"),
];

fn check(row: &Row, code: i32, out: &str, folder: &Path, way: &str) {
    let line = row.line;
    assert_eq!(code, i32::from(row.code), "{way}: {line}\n{out}");
    if !row.out.is_empty() {
        let out = out.replace(&format!("{}/", folder.display()), "");
        // The trap of a shell that ends speaks after the line.
        assert_eq!(out.trim_end_matches("bye\n"), row.out, "{way}: {line}");
    }
    if let Some((name, bytes)) = row.file
        && !bytes.is_empty()
    {
        let made = std::fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{way}: {line}: {error}"));
        assert_eq!(made, bytes, "{way}: {line}");
    }
}

#[test]
fn every_compound_line_of_the_design_is_right_in_a_persons_shell() {
    for row in COMPOUND.iter().chain(&COMPOSED) {
        let repo = files();
        let ran = lathe().in_dir(repo.path()).args(["shell", "-c", row.line]).run();
        check(row, ran.code, &ran.stdout, &repo.path().canonicalize().unwrap(), "shell");
    }
}

#[test]
fn every_compound_line_of_the_design_is_right_in_the_one_tool() {
    for row in COMPOUND.iter().chain(&COMPOSED) {
        let repo = files();
        // The tool's result names the exit code and more; the streams are checked separately.
        let line = format!("{{ {}\n}} > ../tool.out 2> ../tool.err", row.line);
        let direct = json!({ "command": row.line }).to_string();
        let ran = lathe().in_dir(repo.path()).args(["tool", "run", "Bash", "--json", &direct]).run();
        let root = repo.path().canonicalize().unwrap();
        let text = ran.stdout.replace(&format!("{}/", root.display()), "");
        let failed = text.contains(&format!("Command failed with exit code {}", row.code));
        assert_eq!(failed, row.code != 0, "{line}\n{text}");
        let expected = row.out.trim_end_matches('\n').trim_start();
        assert!(text.contains(expected), "{}\n{text}", row.line);
        if let Some((name, bytes)) = row.file
            && !bytes.is_empty()
        {
            assert_eq!(std::fs::read(root.join(name)).unwrap(), bytes, "{}", row.line);
        }
    }
}

#[test]
fn the_shell_ends_with_the_code_of_its_line_and_reads_a_script() {
    let repo = files();
    for (line, code) in
        [("true", 0), ("exit 7", 7), ("nope", 127), ("view none", 1), ("view --x", 2), ("kill -9 $$", 137)]
    {
        let ran = lathe().in_dir(repo.path()).args(["shell", "-c", line]).run();
        assert_eq!(ran.code, code, "{line}: {}", ran.stderr);
    }
    let ran = lathe()
        .in_dir(repo.path())
        .arg("shell")
        .stdin("cd sub\nview b.txt | tr a-z A-Z\n")
        .run()
        .expect_code(0);
    assert_eq!(ran.stdout, "BEE\n");
}

#[test]
fn a_mode_judges_a_persons_line_as_a_models() {
    let repo = files();
    let ran = lathe().in_dir(repo.path()).args(["shell", "--mode", "plan", "-c", "write f x"]).run();
    assert_eq!(ran.code, 126);
    assert!(ran.stderr.contains("denied by policy. mode plan changes nothing"), "{}", ran.stderr);
    assert!(!repo.path().join("f").exists());
    lathe()
        .in_dir(repo.path())
        .args(["shell", "--mode", "full-auto", "-c", "write f x"])
        .run()
        .expect_code(0);
    assert!(repo.path().join("f").exists());
}

#[test]
fn help_comes_from_the_schema_and_only_as_an_option() {
    let repo = files();
    for name in [
        "view",
        "write",
        "edit",
        "json_edit",
        "apply_patch",
        "search",
        "glob",
        "list",
        "code",
        "ckg",
        "think",
        "todo",
        "memory",
        "ask",
        "task_done",
        "commands",
        "jobs",
    ] {
        let brief =
            lathe().in_dir(repo.path()).args(["shell", "-c", &format!("{name} -h")]).run().expect_code(0);
        assert_eq!(brief.stdout.lines().count(), 1, "{}", brief.stdout);
        assert!(brief.stdout.starts_with(name), "{}", brief.stdout);
        lathe().in_dir(repo.path()).args(["shell", "-c", &format!("{name} --help")]).run().expect_code(0);
    }
}

#[test]
fn every_agent_command_works() {
    let repo = files();
    std::fs::write(repo.path().join("d.json"), "{\n  \"a\": 1 // one\n}\n").unwrap();
    std::fs::write(repo.path().join("m.rs"), "fn alpha() { beta() }\nfn beta() {}\n").unwrap();
    for (line, expected) in [
        ("json_edit view d.json '$.a'", "1"),
        ("json_edit set d.json '$.a' 2; cat d.json", "\"a\": 2 // one"),
        ("json_edit set d.json '$.a' <<< '[1, 2]'; cat d.json", "[1,2]"),
        (
            "printf -- '--- a/b.md\\n+++ b/b.md\\n@@ -1 +1 @@\\n-# bee\\n+# wasp\\n' | apply_patch; cat b.md",
            "# wasp",
        ),
        ("code callers beta", "alpha"),
        ("code map alpha --budget 300", "m.rs"),
        ("ckg search_function beta", "beta"),
        ("think 'a thought'", "Noted."),
        ("memory 'tabs are used here'", "Remembered in"),
        ("todo '[ ] one' '[x] two'; todo", "2. [completed] two"),
        ("ask 'Which one?' a b || echo nobody", "nobody"),
        ("task_done 'all is well'", "Task done."),
        ("edit a.txt --insert_line 0 --new_string 'zero\n'; head -1 a.txt", "zero"),
        ("view '~/nothing' 2>&1 | grep -c 'does not exist: .*user/nothing'", "1"),
    ] {
        let ran = lathe().in_dir(repo.path()).args(["shell", "-c", line]).run();
        assert!(ran.stdout.contains(expected), "{line}: {} {}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_run_with_one_tool_ends_by_a_command_and_writes_each_command_down() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
    let line = |id: &str, text: &str| call(id, "Bash", json!({ "command": text }));
    let model = FakeModel::serving(
        Script::new()
            .answer(line("c1", "task_done 'too early' || echo not yet"))
            .answer(say("It is all done."))
            .answer(line(
                "c2",
                "for i in 1 2; do edit a.txt one two; edit a.txt two one; done; edit a.txt one 1",
            ))
            .answer(line("c3", "task_done 'it reads 1' && view a.txt | cat").call(
                "c4",
                "Bash",
                json!({ "command": "echo beside > b.txt" }),
            )),
    );
    let ran = lathe()
        .in_dir(repo.path())
        .args(["run", "make it 1", "--toolset", "bash", "--must-patch", "--output", "stream-json"])
        .with_model(&model)
        .run()
        .expect_code(0);
    assert_eq!(model.violations(), Vec::<String>::new());
    let events = ran.events();
    let told = results(&events);
    assert!(told[0].1.contains("not yet") && told[0].1.contains("task_done: "), "{}", told[0].1);
    let ran: Vec<String> = bodies(&events, "command_ran")
        .iter()
        .map(|ran| format!("{} {}", ran["argv"][0].as_str().unwrap(), ran["exit"]))
        .collect();
    let edits = std::iter::repeat_n("edit 0", 5);
    let expected: Vec<&str> =
        ["task_done 1"].into_iter().chain(edits).chain(["task_done 0", "view 0"]).collect();
    assert_eq!(ran, expected);
    let finished = &bodies(&events, "task_finished")[0];
    assert_eq!((&finished["ending"], &finished["result"]), (&json!("done"), &json!("it reads 1")));
    // An edit back and forth is one change; a call in the same answer as the end runs too.
    assert_eq!(repo.read("a.txt"), "1\n");
    assert_eq!(repo.read("b.txt"), "beside\n");
    assert!(
        bodies(&events, "reminded")[0]["text"]
            .as_str()
            .unwrap()
            .contains("run `task_done 'summary'` with Bash")
    );
}

#[test]
fn what_commands_changed_is_taken_back_with_their_line() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
    let line = |id: &str, text: &str| call(id, "Bash", json!({ "command": text }));
    let model = FakeModel::serving(
        Script::new()
            .answer(line("c1", "edit a.txt one two"))
            .answer(line("c2", "edit a.txt two three; write deep/new.txt x | cat; rm a.txt"))
            .answer(line("c3", "task_done ok")),
    );
    let lathe = lathe();
    let run =
        lathe.clone().in_dir(repo.path()).args(["run", "x", "--toolset", "bash", "--mode", "full-auto"]);
    run.with_model(&model).run().expect_code(0);
    assert!(!repo.path().join("a.txt").exists());
    let back = |step: &str| {
        lathe.clone().in_dir(repo.path()).args(["rewind", "--to", step, "--files"]).run().expect_code(0)
    };
    back("1");
    assert_eq!(repo.read("a.txt"), "two\n");
    assert!(!repo.path().join("deep").exists());
    back("0");
    assert_eq!(repo.read("a.txt"), "one\n");
}

#[test]
fn what_commands_make_has_the_mode_that_the_umask_of_the_line_leaves() {
    let (lathe, repo) = (lathe(), files());
    let diff = "*** Begin Patch\n*** Add File: p/q.txt\n+x\n*** End Patch\n";
    for (line, out) in [
        ("umask 077; write f x > /dev/null; stat -c %a f", "600\n"),
        ("umask 027; write deep/er/f x > /dev/null; stat -c %a deep deep/er deep/er/f", "750\n750\n640\n"),
        ("umask 000; write open/f x > /dev/null; stat -c %a open open/f", "777\n666\n"),
        ("(umask 077; write g x > /dev/null); write h x > /dev/null; stat -c %a g h", "600\n644\n"),
        ("chmod 751 a.txt; umask 077; edit a.txt one two > /dev/null; stat -c %a a.txt", "751\n"),
        ("umask 077; apply_patch < patch > /dev/null; stat -c %a p p/q.txt", "700\n600\n"),
    ] {
        repo.write("patch", diff);
        let line = format!("umask 022; {line}");
        let ran = lathe.clone().in_dir(repo.path()).args(["shell", "-c", &line]).run();
        assert_eq!((ran.code, ran.stdout.as_str()), (0, out), "{line}: {}", ran.stderr);
    }
}

#[test]
fn a_program_of_a_domain_has_its_own_folder_streams_and_code() {
    let (lathe, repo) = (lathe(), files());
    std::fs::create_dir_all(lathe.home()).unwrap();
    let home = lathe.home().display().to_string();
    let config = format!("[field.mine]\ntools = \"mine.json\"\ncommand = \"bash {home}/mine.sh\"\n");
    std::fs::write(lathe.home().join("config.toml"), config).unwrap();
    let names = r#"{"type":"object","properties":{"names":{"type":"array","items":{"type":"string"}}},"required":["names"]}"#;
    let tools = format!(
        r#"[{{"name":"where"}},{{"name":"much"}},{{"name":"fails"}},{{"name":"bytes"}},{{"name":"env"}},{{"name":"make"}},{{"name":"names","parameters":{names}}}]"#
    );
    std::fs::write(lathe.home().join("mine.json"), tools).unwrap();
    let script = "case ${@: -1} in where) pwd;; much) seq 200000;; fails) echo out; echo err >&2; exit 7;; bytes) printf 'a\\377\\000b';; names) cat;; env) echo $A-$B-$C-${PATH%%:*};; make) echo x > made; stat -c %a made;; esac";
    std::fs::write(lathe.home().join("mine.sh"), script).unwrap();
    for (line, code, out) in [
        ("cd sub; field:mine:where | sed 's|.*/||'", 0, "sub\n"),
        ("field:mine:much | head -1", 0, "1\n"),
        ("field:mine:much | tail -1", 0, "200000\n"),
        ("field:mine:much > /dev/full; true", 0, ""),
        ("field:mine:fails 2>/dev/null; echo rc $?", 0, "out\nrc 7\n"),
        ("field:mine:fails 2>&1 >/dev/null | cat", 0, "err\n"),
        ("field:mine:bytes | od -An -tx1 | tr -d ' '", 0, "61ff0062\n"),
        (
            "export A=a; b=no; B=b field:mine:env | cut -d- -f1-3; unset A; field:mine:env | cut -d- -f1-3",
            0,
            "a-b-\n--\n",
        ),
        ("PATH=/evil field:mine:env | grep -c evil; true", 0, "0\n"),
        ("umask 027; field:mine:make; umask 077; (umask 002; rm made; field:mine:make)", 0, "640\n664\n"),
        ("ls *.md | xargs field:mine:names", 0, "{\"names\":[\"b.md\",\"c.md\"]}"),
    ] {
        let ran = lathe.clone().in_dir(repo.path()).args(["shell", "-c", line]).run();
        assert_eq!((ran.code, ran.stdout.as_str()), (code, out), "{line}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panic"), "{line}: {}", ran.stderr);
    }
    let tool = json!({ "command": "field:mine:fails" }).to_string();
    let ran = lathe.clone().in_dir(repo.path()).args(["tool", "run", "Bash", "--json", &tool]).run();
    assert!(ran.stdout.contains("Command failed with exit code 7"), "{}", ran.stdout);
}
