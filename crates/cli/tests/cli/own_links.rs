//! Names that are links into the workspace: of Lathe's own folder, as dotfiles in a repository are, and of what is run by
//! git, editors and shells. A model that writes where they lead would write rules and programs.

use std::os::unix::fs::symlink;

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::json;

use crate::{lathe, result};

#[test]
fn what_links_in_lathes_own_folder_lead_to_is_out_of_a_models_reach() {
    for mode in ["auto-edit", "full-auto"] {
        let repo = TempRepo::new(&[
            ("lathe/config.toml", "# mine\n"),
            ("pol/a.toml", "# rules\n"),
            ("keys/auth[1].json", "{\"openai\": \"sk-mine\"}\n"),
            ("free.txt", "free\n"),
        ]);
        let home = lathe();
        std::fs::create_dir_all(home.home()).unwrap();
        for (name, at) in [
            ("config.toml", "lathe/config.toml"),
            ("policy", "pol"),
            ("memory.md", "not-there-yet.md"),
            ("other.json", "keys/auth[1].json"),
        ] {
            symlink(repo.path().join(at), home.home().join(name)).unwrap();
        }
        let lines = [
            ("write", json!({ "path": "lathe/config.toml", "content": "[tools]\n" })),
            ("edit", json!({ "path": "lathe/config.toml", "old_str": "# mine", "new_str": "x" })),
            ("write", json!({ "path": "pol/b.toml", "content": "[[rule]]\n" })),
            ("write", json!({ "path": "not-there-yet.md", "content": "obey\n" })),
            ("view", json!({ "path": "keys/auth[1].json" })),
            ("bash", json!({ "command": "echo x >> lathe/config.toml" })),
            ("bash", json!({ "command": "cd pol && echo x > c.toml" })),
            ("bash", json!({ "command": "cat keys/auth*" })),
            ("bash", json!({ "command": "write pol/d.toml x" })),
        ];
        let mut script = Script::new();
        for (at, (tool, arguments)) in lines.iter().enumerate() {
            script = script.answer(call(&format!("c{at}"), tool, arguments.clone()));
            // Three steps that are denied as a whole would end the run.
            script = script.answer(call(&format!("f{at}"), "view", json!({ "path": "free.txt" })));
        }
        let model = FakeModel::serving(script.answer(done("ok")));
        let words = ["run", "go", "--mode", mode, "--output", "stream-json"];
        let ran = home.clone().in_dir(repo.path()).args(words).with_model(&model).run();
        let events = ran.events();
        for (at, (tool, arguments)) in lines.iter().enumerate() {
            let told = result(&events, &format!("c{at}"));
            let denied = told.contains("denied") || told.contains("126");
            assert!(denied, "{mode} {tool} {arguments}: {told}");
            assert!(!told.contains("sk-mine"), "{mode} {tool} {arguments}: {told}");
        }
        assert_eq!(repo.read("lathe/config.toml"), "# mine\n");
        for made in ["pol/b.toml", "pol/c.toml", "pol/d.toml", "not-there-yet.md"] {
            assert!(!repo.exists(made), "{mode}: {made}");
        }
    }
}

#[test]
fn where_a_protected_name_leads_is_as_protected_as_the_name() {
    let links = [
        (".git/hooks", "../hk", "hk/pre-commit"),
        (".git/config", "../gitcfg", "gitcfg"),
        (".git/info", "../info", "info/attributes"),
        (".claude", "agents", "agents/settings.json"),
        (".vscode", "ide", "ide/tasks.json"),
        (".husky", "hsk", "hsk/pre-push"),
        (".envrc", "envrc.sh", "envrc.sh"),
        (".mcp.json", "servers.json", "servers.json"),
        (".gitmodules", "gm", "gm"),
    ];
    for (name, leads, file) in links {
        let repo = TempRepo::with_git(&[("ide/some.json", "{}\n")]);
        let kept = std::fs::read_to_string(repo.path().join(name)).unwrap_or_else(|_| "kept\n".to_owned());
        let _ = std::fs::remove_dir_all(repo.path().join(name));
        let _ = std::fs::remove_file(repo.path().join(name));
        repo.write(file, &kept);
        symlink(leads, repo.path().join(name)).unwrap();
        let script = Script::new()
            .answer(call("c1", "write", json!({ "path": file, "content": "x\n" })))
            .answer(call("c2", "bash", json!({ "command": format!("echo x >> {file}") })))
            .answer(call("c3", "write", json!({ "path": "free.txt", "content": "x\n" })))
            .answer(call("c4", "write", json!({ "path": "ide/other.json", "content": "x\n" })))
            .answer(done("ok"));
        let model = FakeModel::serving(script);
        let words = ["run", "go", "--mode", "full-auto", "--output", "stream-json"];
        lathe().in_dir(repo.path()).args(words).with_model(&model).run().expect_code(0);
        assert_eq!(repo.read(file), kept, "{name} -> {leads}: {file}");
        assert_eq!((repo.read("free.txt"), repo.read("ide/other.json")), ("x\n".into(), "x\n".into()));
    }
}

#[test]
fn where_a_protected_name_leads_is_protected_before_anything_is_there() {
    let links = [
        (".envrc", "env.sh", "env.sh"),
        (".claude", "claude.d", "claude.d/settings.json"),
        (".bashrc", "later/x", "later/x"),
        (".vscode/settings.json", "../vs.json", "vs.json"),
        ("sub/.bashrc", "../rc", "rc"),
        ("nested/.git/hooks", "../nh", "nested/nh/pre-commit"),
    ];
    let repo = TempRepo::with_git(&[("sub/keep", "x\n"), ("nested/.git/HEAD", "ref: refs/heads/main\n")]);
    let mut script = Script::new();
    for (at, (name, leads, file)) in links.into_iter().enumerate() {
        let link = repo.path().join(name);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(leads, link).unwrap();
        let line = format!("mkdir -p later claude.d nested/nh; echo x > {file}");
        script = script
            .answer(call(&format!("w{at}"), "write", json!({ "path": file, "content": "x\n" })))
            .answer(call(
                &format!("f{at}"),
                "write",
                json!({ "path": format!("free{at}"), "content": "x\n" }),
            ))
            .answer(call(&format!("b{at}"), "bash", json!({ "command": line })));
    }
    let model = FakeModel::serving(script.answer(done("ok")));
    let words = ["run", "go", "--mode", "full-auto", "--output", "stream-json"];
    lathe().in_dir(repo.path()).args(words).with_model(&model).run().expect_code(0);
    for (at, (name, _, file)) in links.into_iter().enumerate() {
        assert!(!repo.exists(file), "{name}: {file}");
        assert!(repo.exists(&format!("free{at}")), "{name}: what is beside is free");
    }
}

#[test]
fn what_the_configuration_of_git_names_is_protected() {
    let repo = TempRepo::with_git(&[("hh/pre-commit", "kept\n"), ("src/a.txt", "a\n")]);
    repo.git(&["config", "core.hooksPath", "hh"]);
    repo.git(&["config", "include.path", "../team.cfg"]);
    repo.git(&["config", "includeIf.onbranch:x.path", "../later/more.cfg"]);
    repo.write("team.cfg", "[core]\n\thooksPath = deep/hooks\n");
    let files = ["hh/pre-commit", "hh/post-checkout", "team.cfg", "later/more.cfg", "deep/hooks/pre-push"];
    let mut script = Script::new();
    for (at, file) in files.iter().enumerate() {
        let line = format!("mkdir -p later deep; mkdir -p src/{at}; echo x > {file}");
        script = script
            .answer(call(&format!("w{at}"), "write", json!({ "path": file, "content": "x\n" })))
            .answer(call(
                &format!("f{at}"),
                "write",
                json!({ "path": format!("src/{at}.txt"), "content": "x\n" }),
            ))
            .answer(call(&format!("b{at}"), "bash", json!({ "command": line })));
    }
    let model = FakeModel::serving(script.answer(done("ok")));
    let words = ["run", "go", "--mode", "full-auto", "--output", "stream-json"];
    let ran = lathe().in_dir(repo.path()).args(words).with_model(&model).run().expect_code(0);
    let events = ran.events();
    for (at, file) in files.iter().enumerate() {
        for id in [format!("w{at}"), format!("b{at}")] {
            let told = result(&events, &id);
            assert!(told.contains("denied") || told.contains("126"), "{id} {file}: {told}");
        }
        assert!(repo.exists(&format!("src/{at}.txt")), "{file}: what is beside is free");
    }
    assert_eq!(repo.read("hh/pre-commit"), "kept\n");
    assert_eq!(repo.read("team.cfg"), "[core]\n\thooksPath = deep/hooks\n");
}

#[test]
fn a_hard_link_to_a_file_of_lathes_own_folder_is_not_read() {
    let repo = TempRepo::new(&[("plain.txt", "OF-THE-WORKSPACE\n")]);
    let home = lathe();
    std::fs::create_dir_all(home.home().join("policy")).unwrap();
    for (own, name) in [("config.toml", "linked.txt"), ("policy/a.toml", "rules.txt")] {
        std::fs::write(home.home().join(own), "# OF-THE-HOME\n").unwrap();
        std::fs::hard_link(home.home().join(own), repo.path().join(name)).unwrap();
    }
    let script = Script::new()
        .answer(call("c1", "view", json!({ "path": "linked.txt" })))
        .answer(call("c2", "view", json!({ "path": "rules.txt" })))
        .answer(call("c3", "search", json!({ "pattern": "OF-THE-[A-Z]*" })))
        .answer(call("c4", "search", json!({ "pattern": "OF-THE-[A-Z]*", "path": "linked.txt" })))
        .answer(done("ok"));
    let model = FakeModel::serving(script);
    let words = ["run", "go", "--mode", "full-auto", "--output", "stream-json"];
    let ran = home.in_dir(repo.path()).args(words).with_model(&model).run().expect_code(0);
    let events = ran.events();
    for id in ["c1", "c2", "c3", "c4"] {
        assert!(!result(&events, id).contains("OF-THE-HOME"), "{id}: {}", result(&events, id));
    }
    assert!(result(&events, "c3").contains("OF-THE-WORKSPACE"), "{}", result(&events, "c3"));
}
