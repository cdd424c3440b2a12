//! Sessions behind walls, with the real binary: what it does without flags, and what hostile calls meet.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, done};
use serde_json::json;

use crate::lathe;

/// A folder that a jail shows as it is: not below `/tmp`, which it replaces.
pub(crate) fn outside() -> tempfile::TempDir {
    let make = |parent: &str| tempfile::Builder::new().prefix("lathe-outside-").tempdir_in(parent);
    make("/srv").or_else(|_| make("/opt")).or_else(|_| make(env!("CARGO_TARGET_TMPDIR"))).unwrap()
}

/// Removes the private layers of a workspace, which are here if Lathe's folder is in the home.
pub(crate) fn remove_layers(root: &Path) {
    let name = lathe_protocol::Digest::of(root.as_os_str().as_encoded_bytes()).to_string();
    for folder in std::fs::read_dir("/var/tmp").into_iter().flatten().flatten() {
        if folder.file_name().as_encoded_bytes().starts_with(b"lathe-") {
            let _ = std::fs::remove_dir_all(folder.path().join(name.get(..16).unwrap_or(&name)));
        }
    }
}

fn walled(repo: &TempRepo) -> Lathe {
    lathe().behind_walls().in_dir(repo.path())
}

fn demo_repo() -> TempRepo {
    let files = ["README.md", "till.sh", "lib/money.sh", "tests/run.sh"];
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/demo");
    let files: Vec<(&str, String)> =
        files.iter().map(|name| (*name, std::fs::read_to_string(demo.join(name)).unwrap())).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    TempRepo::new(&files)
}

#[test]
fn without_flags_a_run_works_alone_behind_walls_of_level_3() {
    let repo = demo_repo();
    let cassette = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/demo.cassette");
    let task = "A test of this project fails. Find the cause and fix it.";
    let home = walled(&repo);
    let ran = home.clone().args(["run", task, "--replay"]).arg(&cassette).run().expect_code(0);
    let first =
        ran.stdout.lines().chain(ran.stderr.lines()).find(|line| line.starts_with("lathe 0")).unwrap();
    assert!(first.contains("full-auto · sandbox workspace (level 3)"), "{first}");
    let passed = Command::new("bash").arg("tests/run.sh").current_dir(repo.path()).output().unwrap();
    assert!(passed.status.success(), "{}", ran.stdout);
    // The way back is the same as without walls.
    home.args(["undo"]).run().expect_code(0);
    let read = |folder: &Path| std::fs::read_to_string(folder.join("tests/run.sh")).unwrap();
    assert_eq!(read(repo.path()), read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/demo")));
}

#[test]
fn the_agents_commands_work_behind_walls() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let model = FakeModel::serving(
        Script::new()
            .answer(call("c1", "bash", json!({ "command": "view a.txt | tr a-z A-Z > b.txt; write c.txt new; (cd /tmp && echo t > t && view t); search -l one" })))
            .answer(done("ok")),
    );
    let ran = walled(&repo)
        .args(["run", "do it", "--output", "stream-json"])
        .with_model(&model)
        .run()
        .expect_code(0);
    let read = |name: &str| std::fs::read_to_string(repo.path().join(name)).unwrap();
    assert_eq!((read("b.txt").as_str(), read("c.txt").trim_end()), ("ONE\n", "new"), "{}", ran.stdout);
    assert!(ran.stdout.contains("a.txt"), "{}", ran.stdout);
}

#[test]
fn hostile_calls_are_held_each_with_its_reason_and_the_run_goes_on() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let away = outside();
    let path = |name: &str| away.path().join(name).display().to_string();
    std::fs::write(path("precious"), "precious").unwrap();
    std::fs::create_dir(path("bin")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let host = Command::new("sleep").arg("600").spawn().unwrap();
    let home = away.path().join("home");
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    std::fs::write(home.join(".ssh/id_ed25519"), "a private key").unwrap();
    let lines = [
        format!("echo x >> {}", path("precious")),
        format!("rm -f {}; true", path("precious")),
        format!("cat {}/.ssh/id_ed25519", home.display()),
        format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'"),
        format!("kill -9 {}", host.id()),
        format!("find {} -type f -delete; echo over", home.display()),
        "echo still here > inside.txt".to_owned(),
    ];
    let mut script = Script::new();
    for (at, line) in lines.iter().enumerate() {
        script = script.answer(call(&format!("c{at}"), "bash", json!({ "command": line })));
    }
    let model = FakeModel::serving(script.answer(done("ok")));
    let ran = walled(&repo)
        .env("HOME", &home)
        .args(["run", "do it", "--output", "stream-json"])
        .with_model(&model)
        .run()
        .expect_code(0);
    assert_eq!(std::fs::read_to_string(path("precious")).unwrap(), "precious");
    assert!(home.join(".ssh/id_ed25519").exists());
    assert!(listener.accept().is_err(), "a connection left the walls");
    let mut host = host;
    assert!(host.try_wait().unwrap().is_none(), "a process outside was killed");
    host.kill().unwrap();
    host.wait().unwrap();
    assert_eq!(std::fs::read_to_string(repo.path().join("inside.txt")).unwrap(), "still here\n");
    let results: Vec<String> = ran
        .events()
        .into_iter()
        .filter(|event| event["kind"] == "call_finished")
        .map(|event| event["body"]["text"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(results.len(), lines.len() + 1, "{results:?}");
    assert!(!results.iter().any(|text| text.contains("a private key")), "{results:?}");
    for (at, words) in [(0, "Read-only file system"), (3, "Connection refused"), (4, "No such process")] {
        assert!(results[at].contains(words), "{at}: {}", results[at]);
    }
}

/// The folder of PATH without bubblewrap.
pub(crate) fn path_without_bubblewrap(folder: &Path) -> PathBuf {
    let bin = folder.join("bin");
    std::fs::create_dir(&bin).unwrap();
    for name in ["bash", "sh", "cat", "git", "ls", "echo", "sleep"] {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|part| part.join(name))
            .find(|path| path.exists());
        std::os::unix::fs::symlink(found.unwrap(), bin.join(name)).unwrap();
    }
    std::fs::set_permissions(&bin, std::fs::Permissions::from_mode(0o755)).unwrap();
    bin
}

#[test]
fn without_bubblewrap_the_level_is_2_and_the_first_lines_say_how_to_get_3() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let away = outside();
    let bin = path_without_bubblewrap(away.path());
    let doctor = walled(&repo).env("PATH", &bin).args(["doctor"]).run();
    assert!(
        doctor.stdout.contains("level 2") && doctor.stdout.contains("bubblewrap is not installed"),
        "{}",
        doctor.stdout
    );
    let line = format!("echo x > {}; echo y > b.txt; cat b.txt", away.path().join("new").display());
    let model = FakeModel::serving(
        Script::new().answer(call("c1", "bash", json!({ "command": line }))).answer(done("ok")),
    );
    let ran = walled(&repo)
        .env("PATH", &bin)
        .args(["run", "do it", "--mode", "full-auto"])
        .with_model(&model)
        .run()
        .expect_code(0);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(
        said.contains("sandbox workspace (level 2)") && said.contains("apt-get install bubblewrap"),
        "{said}"
    );
    assert!(!away.path().join("new").exists(), "{said}");
    assert_eq!(std::fs::read_to_string(repo.path().join("b.txt")).unwrap(), "y\n");
}

#[test]
fn a_plan_writes_nothing_and_off_has_no_walls() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let model = || {
        FakeModel::serving(
            Script::new().answer(call("c1", "bash", json!({ "command": "cat a.txt" }))).answer(done("ok")),
        )
    };
    let ran = walled(&repo).args(["run", "do it", "--mode", "plan"]).with_model(&model()).run();
    assert!(
        format!("{}{}", ran.stdout, ran.stderr).contains("sandbox read-only (level 3)"),
        "{}",
        ran.stdout
    );
    let ran = walled(&repo).args(["run", "do it", "--sandbox", "off"]).with_model(&model()).run();
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("mode default · sandbox off (level 0)"), "{said}");
}

#[test]
fn what_a_line_writes_to_protected_names_is_not_there_afterwards() {
    let repo = TempRepo::new(&[("a.txt", "one\n"), (".mcp.json", "{}\n"), (".claude/settings.json", "{}\n")]);
    let git = |arguments: &[&str]| {
        let done = Command::new("git").args(arguments).current_dir(repo.path()).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]);
    // The names, backwards, are known only when the line runs.
    let line = "python3 - <<'P'\nimport os\nfor name in ['crvne.', 'nosj.pcm.', 'nosj.sgnittes/edualc.', 'x/wen/edualc.', 'nosj.sksat/edocsv.', 'nosj.s/inimeg./bus', 'timmoc-erp/skooh/tig.', 'txt.enif']:\n    name = name[::-1]\n    \
                os.makedirs(os.path.dirname(name) or '.', exist_ok=True)\n    open(name, 'w').write('poison')\n    \
                os.chmod(name, 0o755)\nP";
    let model = FakeModel::serving(
        Script::new().answer(call("c1", "bash", json!({ "command": line }))).answer(done("ok")),
    );
    let ran = walled(&repo)
        .args(["run", "do it", "--output", "stream-json"])
        .with_model(&model)
        .run()
        .expect_code(0);
    let there = |name: &str| repo.path().join(name).exists();
    let read = |name: &str| std::fs::read_to_string(repo.path().join(name)).unwrap();
    assert_eq!((read(".mcp.json").as_str(), read(".claude/settings.json").as_str()), ("{}\n", "{}\n"));
    for name in
        [".envrc", ".claude/new/x", ".vscode/tasks.json", "sub/.gemini/s.json", ".git/hooks/pre-commit"]
    {
        assert!(!there(name), "{name}: {}", ran.stdout);
    }
    assert_eq!(read("fine.txt"), "poison");
    assert_eq!(git(&["status", "--porcelain", "--ignored"]), "?? fine.txt\n");
    assert!(ran.stdout.contains(".envrc is protected"), "{}", ran.stdout);
}

#[test]
fn a_listed_host_is_reached_any_other_is_refused_and_the_result_names_both() {
    use std::io::{Read as _, Write as _};
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let other_port = other.local_addr().unwrap().port();
    other.set_nonblocking(true).unwrap();
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut head = [0; 4096];
        let count = client.read(&mut head).unwrap();
        client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").unwrap();
        String::from_utf8_lossy(&head[..count]).into_owned()
    });
    let get = |port: u16| {
        format!(
            "no_proxy= NO_PROXY= python3 -c 'import urllib.request; \
             print(urllib.request.urlopen(\"http://127.0.0.1:{port}/\").read())'"
        )
    };
    let model = FakeModel::serving(
        Script::new()
            .answer(call("c1", "bash", json!({ "command": get(port) })))
            .answer(call("c2", "bash", json!({ "command": get(other_port) })))
            .answer(done("ok")),
    );
    let ran = walled(&repo)
        .args(["run", "do it", "--output", "stream-json", "--allow-host", &format!("127.0.0.1:{port}")])
        .with_model(&model)
        .run()
        .expect_code(0);
    let results: Vec<String> = ran
        .events()
        .into_iter()
        .filter(|event| event["kind"] == "call_finished")
        .map(|event| event["body"]["text"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(
        results[0].contains("b'hello'") && results[0].contains(&format!("127.0.0.1:{port} (")),
        "{}",
        results[0]
    );
    assert!(server.join().unwrap().starts_with("GET / HTTP/1.1"));
    let refused = format!("127.0.0.1:{other_port} was refused");
    assert!(results[1].contains("403") && results[1].contains(&refused), "{}", results[1]);
    assert!(other.accept().is_err());
}

#[test]
fn in_default_an_approved_line_reaches_the_network_and_edits_inside_need_no_question() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let model = FakeModel::serving(
        Script::new()
            .answer(call("c1", "bash", json!({ "command": "sed -i s/one/two/ a.txt && cat a.txt > b.txt" })))
            .answer(call("c2", "write", json!({ "path": "c.txt", "content": "three\n" })))
            .answer(call("c3", "bash", json!({ "command": "curl -sS http://example.invalid/" })))
            .answer(done("ok")),
    );
    // Without anybody to ask, a question is a no.
    let ran = walled(&repo)
        .args(["run", "do it", "--mode", "default", "--output", "stream-json"])
        .with_model(&model)
        .run();
    let decided: Vec<(String, String)> = ran
        .events()
        .into_iter()
        .filter(|event| event["kind"] == "call_decided")
        .map(|event| {
            let decision = &event["body"]["decision"];
            (decision["verdict"].as_str().unwrap().to_owned(), decision["rule"].as_str().unwrap().to_owned())
        })
        .collect();
    assert_eq!((decided[0].0.as_str(), decided[1].0.as_str()), ("allow", "allow"), "{decided:?}");
    assert_eq!(decided[2].0, "deny", "{decided:?}");
    assert_eq!(std::fs::read_to_string(repo.path().join("b.txt")).unwrap(), "two\n");
    assert_eq!(std::fs::read_to_string(repo.path().join("c.txt")).unwrap(), "three\n");
}

/// Lathe's own git makes the patch, with an index in a folder that the walls hide.
#[test]
fn the_patch_of_a_run_behind_walls_is_made_outside_of_them() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    for arguments in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
    ] {
        assert!(Command::new("git").args(arguments).current_dir(repo.path()).status().unwrap().success());
    }
    let away = outside();
    let patch = away.path().join("out.patch");
    let line = "echo two > a.txt; echo new > b.txt";
    let model = FakeModel::serving(
        Script::new().answer(call("c1", "bash", json!({ "command": line }))).answer(done("ok")),
    );
    walled(&repo).args(["run", "do it", "--patch-path"]).arg(&patch).with_model(&model).run().expect_code(0);
    let made = std::fs::read_to_string(&patch).unwrap();
    // Without git it would be made of the recorded changes, which name no objects.
    assert!(made.contains("+two") && made.contains("+new") && made.contains("\nindex "), "{made}");
    let status =
        Command::new("git").args(["status", "--porcelain"]).current_dir(repo.path()).output().unwrap();
    assert_eq!(String::from_utf8(status.stdout).unwrap(), " M a.txt\n?? b.txt\n");
}
