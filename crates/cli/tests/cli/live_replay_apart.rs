//! A replay with live tools works in a complete copy: nothing of the real workspace or of its repository is touched,
//! and the limits of a session there apply to the replay.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use lathe_testkit::{FakeModel, FinishedLathe, Lathe, Script, TempRepo, call, differing_paths, done};
use serde_json::{Value, json};

use crate::{lathe, run_in};

fn ran(folder: &Path, temporary: &TempRepo, calls: &[(&str, Value)]) -> Lathe {
    let each = calls.iter().enumerate();
    let script = each.fold(Script::new(), |script, (at, (tool, arguments))| {
        script.answer(call(&format!("c{at}"), tool, arguments.clone()))
    });
    let model = FakeModel::serving(script.answer(done("ok")));
    let run = run_in(folder, &model).env("TMPDIR", temporary.path());
    run.run().expect_code(0);
    run
}

fn line(text: &str) -> (&'static str, Value) {
    ("bash", json!({ "command": text }))
}

fn replay(run: &Lathe, temporary: &TempRepo, env: &[(&str, &Path)]) -> FinishedLathe {
    let replay = lathe().env("LATHE_HOME", run.home()).env("TMPDIR", temporary.path());
    let replay = env.iter().fold(replay, |replay, (name, value)| replay.env(name, value));
    replay.args(["replay", "--tools", "live", "--mode", "full-auto"]).run()
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always"]);
    git.args(arguments).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let ran = git.output().unwrap();
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// Every file and link below a folder with what is in it, git's own too.
fn listing(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let content = match path.symlink_metadata().unwrap().file_type() {
                kind if kind.is_symlink() => {
                    std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
                }
                kind if kind.is_dir() => {
                    folders.push(path.clone());
                    Vec::new()
                }
                _ => std::fs::read(&path).unwrap(),
            };
            found.insert(path.display().to_string(), content);
        }
    }
    found
}

/// A repository with one commit.
fn repository(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "-q", "-b", "main"]);
    named(folder);
    std::fs::write(folder.join("f"), "f\n").unwrap();
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", "first"]);
}

/// Another user who commits there.
fn named(folder: &Path) {
    git(folder, &["config", "user.name", "A"]);
    git(folder, &["config", "user.email", "a@example.com"]);
}

/// Makes a workspace `ws` below a folder.
type Layout = fn(&Path);

const LAYOUTS: [(&str, Layout); 11] = [
    ("plain", |base| repository(&base.join("ws"))),
    ("linked work tree", |base| {
        repository(&base.join("main"));
        git(&base.join("main"), &["worktree", "add", "-q", "../ws", "-b", "side"]);
    }),
    ("work tree of a bare repository", |base| {
        repository(&base.join("main"));
        git(base, &["clone", "-q", "--bare", "main", "bare.git"]);
        named(&base.join("bare.git"));
        git(&base.join("bare.git"), &["worktree", "add", "-q", "../ws", "-b", "side"]);
    }),
    ("separate", |base| {
        repository(&base.join("ws"));
        git(&base.join("ws"), &["init", "-q", "--separate-git-dir", "../apart"]);
    }),
    ("link", |base| {
        repository(&base.join("ws"));
        std::fs::rename(base.join("ws/.git"), base.join("apart")).unwrap();
        symlink(base.join("apart"), base.join("ws/.git")).unwrap();
    }),
    ("submodule", |base| {
        repository(&base.join("lib"));
        repository(&base.join("main"));
        git(&base.join("main"), &["submodule", "add", "-q", "../lib", "sub"]);
        named(&base.join("main/sub"));
        symlink(base.join("main/sub"), base.join("ws")).unwrap();
    }),
    ("with a submodule", |base| {
        repository(&base.join("lib"));
        repository(&base.join("ws"));
        git(&base.join("ws"), &["submodule", "add", "-q", "../lib", "sub"]);
    }),
    ("with a work tree inside and one outside", |base| {
        repository(&base.join("ws"));
        git(&base.join("ws"), &["worktree", "add", "-q", "trees/one", "-b", "one"]);
        git(&base.join("ws"), &["worktree", "add", "-q", "../two", "-b", "two"]);
    }),
    ("says where its work tree is", |base| {
        repository(&base.join("ws"));
        git(&base.join("ws"), &["config", "core.worktree", base.join("ws").to_str().unwrap()]);
    }),
    ("links to another's parts", |base| {
        repository(&base.join("main"));
        std::fs::create_dir_all(base.join("ws/.git")).unwrap();
        for part in ["refs", "objects", "config", "info", "hooks", "logs"] {
            symlink(base.join("main/.git").join(part), base.join("ws/.git").join(part)).unwrap();
        }
        std::fs::write(base.join("ws/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        git(&base.join("ws"), &["reset", "-q", "--hard"]);
    }),
    ("no repository", |base| {
        std::fs::create_dir_all(base.join("ws")).unwrap();
        std::fs::write(base.join("ws/f"), "f\n").unwrap();
    }),
];

#[test]
fn git_in_the_copy_works_in_the_copy() {
    for (name, make) in LAYOUTS {
        let (base, temporary) = (TempRepo::new(&[]), TempRepo::new(&[]));
        make(base.path());
        let ws = base.join("ws").canonicalize().unwrap();
        let has_git = name != "no repository";
        if has_git {
            // Git would look after itself in the background, for longer or shorter.
            git(&ws, &["config", "maintenance.auto", "false"]);
        }
        let text = "git commit -q --allow-empty -m q; git branch q1; git worktree prune; echo g > f; git checkout -q -- f; git log -1 --format=%s; cat f";
        let run = ran(&ws, &temporary, &[line(text)]);
        if has_git {
            git(&ws, &["branch", "-q", "-D", "q1"]);
            git(&ws, &["reset", "-q", "--soft", "HEAD~1"]);
        }
        std::fs::write(ws.join("f"), "f\n").unwrap();
        let before = listing(base.path());
        let env: &[(&str, &Path)] = &[("GIT_DIR", &ws.join(".git")), ("GIT_WORK_TREE", &ws), ("OLDPWD", &ws)];
        for env in [&[][..], env] {
            let again = replay(&run, &temporary, env);
            assert_eq!(differing_paths(&before, &listing(base.path())), Vec::<String>::new(), "{name}");
            assert_eq!(again.code, 0, "{name}: {}{}", again.stdout, again.stderr);
            assert!(again.stdout.contains("0 differences"), "{name}: {}", again.stdout);
        }
    }
}

#[test]
fn a_copy_in_which_git_would_work_elsewhere_is_refused() {
    let layouts: [(&str, Layout); 2] = [
        ("commondir", |base| {
            repository(&base.join("main"));
            std::fs::create_dir_all(base.join("ws/.git")).unwrap();
            std::fs::write(base.join("ws/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
            std::fs::write(base.join("ws/.git/commondir"), "../../main/.git\n").unwrap();
        }),
        ("a work tree elsewhere", |base| {
            repository(&base.join("ws"));
            std::fs::create_dir_all(base.join("other")).unwrap();
            git(&base.join("ws"), &["config", "core.worktree", base.join("other").to_str().unwrap()]);
        }),
    ];
    for (name, make) in layouts {
        let (base, temporary) = (TempRepo::new(&[]), TempRepo::new(&[]));
        make(base.path());
        let run = ran(&base.join("ws"), &temporary, &[line("echo x > f")]);
        let before = listing(base.path());
        let refused = replay(&run, &temporary, &[]).expect_code(2);
        assert!(refused.stderr.contains("outside of it"), "{name}: {}", refused.stderr);
        assert_eq!(differing_paths(&before, &listing(base.path())), Vec::<String>::new(), "{name}");
        assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "{name}");
    }
}

#[test]
fn what_leads_into_the_real_workspace_leads_into_the_copy_or_is_denied() {
    let base = TempRepo::new(&[("ws/f", "orig\n"), ("ws/sub/g", "orig\n"), ("elsewhere/x", "x\n")]);
    let ws = base.join("ws").canonicalize().unwrap();
    let (above, root) = (ws.parent().unwrap().to_str().unwrap().to_owned(), ws.to_str().unwrap().to_owned());
    symlink(ws.join("f"), ws.join("abs")).unwrap();
    symlink(ws.join("sub"), ws.join("folder")).unwrap();
    symlink(ws.join("new"), ws.join("dangling")).unwrap();
    symlink(format!("../../../../../../../../../../..{root}/f"), ws.join("around")).unwrap();
    symlink(&ws, base.join("elsewhere/back")).unwrap();
    symlink(base.join("elsewhere/back/f"), ws.join("twice")).unwrap();
    symlink(base.join("elsewhere"), ws.join("out")).unwrap();
    // A line or a call, and whether it is run again.
    let table = [
        (line("echo x > abs"), true),
        (line("echo x > folder/g"), true),
        (line("echo x > dangling"), true),
        (line("echo x > around"), true),
        (line("echo x > twice"), true),
        (("edit", json!({ "path": "abs", "old_str": "orig", "new_str": "x" })), true),
        (line(&format!("echo x > {root}/f")), true),
        (line(&format!("cd {root} && echo x > f")), true),
        (line("echo x > out/back/f"), false),
        (line("cd out/back && echo x > f"), false),
        (line(&format!("echo x > {above}//ws/f")), false),
        (line(&format!("echo x > {above}/./ws/f")), false),
        (line(&format!("echo x > '{above}/'ws/f")), false),
        (line(&format!("d={above}; echo x > $d/ws/f")), false),
        (line(&format!("git -C {above}/./ws init -q")), false),
        (("write", json!({ "path": format!("{above}//ws/new"), "content": "x\n" })), false),
    ];
    for ((tool, arguments), runs) in table {
        let temporary = TempRepo::new(&[]);
        let run = ran(&ws, &temporary, &[(tool, arguments.clone())]);
        std::fs::write(ws.join("f"), "orig\n").unwrap();
        std::fs::write(ws.join("sub/g"), "orig\n").unwrap();
        let _ = (std::fs::remove_file(ws.join("new")), std::fs::remove_dir_all(ws.join(".git")));
        let before = listing(base.path());
        let again = replay(&run, &temporary, &[]);
        assert_eq!(differing_paths(&before, &listing(base.path())), Vec::<String>::new(), "{arguments}");
        let said = if runs { "0 differences" } else { "denied now by replay" };
        assert!(again.stdout.contains(said), "{arguments}: {}{}", again.stdout, again.stderr);
    }
}

#[test]
fn rules_that_name_the_workspace_and_excluded_tools_hold_for_the_copy() {
    let base = TempRepo::new(&[("ws/f", "f\n"), ("ws/sub/g", "g\n"), ("ws/sub/run", "#!/bin/sh\n")]);
    let ws = base.join("ws").canonicalize().unwrap();
    symlink(&ws, base.join("other-name")).unwrap();
    let above = ws.parent().unwrap().to_str().unwrap();
    let rule = |text: &str| format!("[[rule]]\ndecision = \"deny\"\n{}\n", text.replace("ABOVE", above));
    let lines = [line("cat sub/g"), ("view", json!({ "path": "sub/g" }))];
    let cat = || vec![lines[0].clone()];
    let table = [
        (rule("path = ['ABOVE/ws/sub/g']"), vec![lines[1].clone()]),
        (rule("path = ['ABOVE/ws/sub/g']"), cat()),
        (rule("path = 'ABOVE/ws/sub'"), cat()),
        (rule("path = ['ABOVE//ws/./sub/g']"), cat()),
        (rule("path = ['ABOVE/other-name/sub/g']"), cat()),
        (rule("path = ['ABOVE/w?/s*/g']"), cat()),
        (rule("path = ['**/ws/sub/g']"), cat()),
        (rule("path = ['**/ws/**/g']"), cat()),
        (rule("path = [\n  'nothing',\n  'ABOVE',\n]"), cat()),
        (rule("command = ['cat']\nworkspace = ['ABOVE/ws']"), cat()),
        (rule("command = ['cat']\nworkspace = 'ABOVE/ws'"), cat()),
        (rule("tool = ['view']\nworkspace = ['ABOVE/ws']"), vec![lines[1].clone()]),
        (rule("command = ['cat']\nfolder = ['ABOVE/ws']"), cat()),
        (rule("command = ['cat']\nfolder = ['ABOVE/ws/sub']"), vec![line("cd sub"), line("cat g")]),
        (rule("command = ['ABOVE/ws/sub/run']"), vec![line(&format!("sh -c '{above}/ws/sub/run; true'"))]),
    ];
    for (rules, calls) in &table {
        let temporary = TempRepo::new(&[]);
        let run = ran(&ws, &temporary, calls);
        replay(&run, &temporary, &[]).expect_code(0);
        std::fs::create_dir_all(run.home().join("policy")).unwrap();
        std::fs::write(run.home().join("policy/late.toml"), rules).unwrap();
        let again = replay(&run, &temporary, &[]);
        // The rule is named by the line that it stands in.
        assert!(again.stdout.contains("late.toml:1: "), "{rules}: {}{}", again.stdout, again.stderr);
        std::fs::remove_dir_all(run.home().join("policy")).unwrap();
        std::fs::create_dir_all(ws.join(".lathe")).unwrap();
        std::fs::write(ws.join(".lathe/policy.toml"), rules).unwrap();
        let again = replay(&run, &temporary, &[]);
        std::fs::remove_dir_all(ws.join(".lathe")).unwrap();
        assert!(again.stdout.contains("policy.toml:1: "), "{rules}: {}{}", again.stdout, again.stderr);
    }
    let made = base.join("made");
    let touch = line(&format!("touch {}", made.display()));
    let write = ("write", json!({ "path": "new", "content": "x\n" }));
    for (config, calls) in [
        ("[tools]\nexclude = ['bash(touch)']\n", vec![touch.clone()]),
        ("[tools]\nexclude = ['bash']\n", vec![touch.clone()]),
        ("[tools]\nexclude = ['write']\n", vec![write, touch.clone()]),
        ("[run]\ntools = ['view', 'bash(ls)', 'task_done']\n", vec![touch.clone()]),
    ] {
        let temporary = TempRepo::new(&[]);
        let run = ran(&ws, &temporary, &calls);
        let _ = (std::fs::remove_file(&made), std::fs::remove_file(ws.join("new")));
        std::fs::write(run.home().join("config.toml"), config).unwrap();
        let again = replay(&run, &temporary, &[]).expect_code(1);
        assert!(!made.exists(), "{config}: {}", again.stdout);
        assert!(
            config.starts_with("[run]") || again.stdout.contains("denied now by tools.exclude"),
            "{config}: {}",
            again.stdout
        );
    }
}

/// A line whose folder shows only when it runs may go to the real workspace.
#[test]
fn a_line_that_goes_where_a_file_says_does_not_write_in_the_real_workspace() {
    for text in [
        "(cd $(cat where); touch REAL)",
        "cd \"$(cat where)\" && echo x > REAL",
        "pushd \"$(cat where)\"; touch REAL",
        "read d < where; cd \"$d\"; touch REAL",
        "cp -$(echo f f $(cat where)/REAL)",
    ] {
        let temporary = TempRepo::new(&[]);
        let ws = TempRepo::new(&[("f", "f\n")]);
        std::fs::write(ws.join("where"), ws.path().to_str().unwrap()).unwrap();
        let run = ran(ws.path(), &temporary, &[line(text)]);
        std::fs::remove_file(ws.join("REAL")).unwrap();
        let before = listing(ws.path());
        let _ = replay(&run, &temporary, &[]);
        assert_eq!(listing(ws.path()), before, "{text}");
    }
}
