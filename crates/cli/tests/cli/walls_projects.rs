//! Projects of ordinary developers behind walls of level 3: built and tested offline, from the caches of the user's
//! home, in a workspace below the home. The home is afterwards what it was, byte for byte.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use lathe_testkit::{FakeModel, Lathe, Script, call, done};
use serde_json::json;

use crate::walls::{outside, remove_layers};

/// A user's home with one project in it.
struct Desk {
    folder: tempfile::TempDir,
    home: PathBuf,
    project: PathBuf,
}

impl Desk {
    fn new(files: &[(&str, &str)]) -> Self {
        Self::at("home", files)
    }

    /// The home has the name.
    fn at(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = outside();
        let home = folder.path().canonicalize().unwrap().join(name);
        let project = home.join("work/project");
        fs::create_dir_all(home.join(".local/share/lathe")).unwrap();
        fs::create_dir_all(&project).unwrap();
        fs::write(home.join(".profile"), "# as it was\n").unwrap();
        fs::write(home.join(".gitconfig"), "[user]\n\tname = Ada\n\temail = ada@example.invalid\n").unwrap();
        let desk = Self { folder, home, project };
        files.iter().for_each(|(path, text)| desk.write(path, text));
        let doctor = desk.lathe().arg("doctor").run().stdout;
        assert!(doctor.contains("level 3"), "this test needs walls of level 3: {doctor}");
        desk
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.project.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn lathe(&self) -> Lathe {
        let path = std::env::var("PATH").unwrap();
        let rust = sysroot().join("bin");
        Lathe::new(env!("CARGO_BIN_EXE_lathe"))
            .behind_walls()
            .in_dir(&self.project)
            .env("PATH", format!("{}:{path}", rust.display()))
            .env("HOME", &self.home)
            .env("LATHE_HOME", self.home.join(".local/share/lathe"))
    }

    /// Runs a line of the user behind the walls and returns what it printed. The home stays as it is.
    #[track_caller]
    fn inside(&self, line: &str) -> String {
        let before = self.state();
        let ran = self.lathe().args(["shell", "--sandbox", "workspace", "-c"]).arg(line).run();
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, 0, "{line}: {said}");
        assert_eq!(self.state(), before, "the home differs after {line}");
        said
    }

    /// The home without the project and Lathe's own folder.
    fn state(&self) -> BTreeMap<PathBuf, (u32, i64, Vec<u8>)> {
        let (mut found, mut left) = (BTreeMap::new(), vec![self.home.clone()]);
        while let Some(path) = left.pop() {
            if path == self.project || path == self.home.join(".local/share/lathe") {
                continue;
            }
            let data = path.symlink_metadata().unwrap();
            let content = if data.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            if data.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
            found.insert(path, (data.mode(), data.mtime(), content));
        }
        found
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        remove_layers(&self.project);
        let _ = self.folder.path();
    }
}

/// The folder of the compiler, without the proxies of rustup, which look for it in the home.
fn sysroot() -> PathBuf {
    let said = Command::new("rustc").args(["--print", "sysroot"]).output().expect("rustc is needed");
    String::from_utf8(said.stdout).unwrap().trim().into()
}

/// The cache of cargo that Lathe itself was built with.
fn registry() -> PathBuf {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo"))).unwrap().join("registry")
}

/// The only entry of a folder that has what is looked for in it.
#[track_caller]
fn with_entry(folder: &Path, entry: &str) -> PathBuf {
    let found = fs::read_dir(folder).into_iter().flatten().flatten().map(|found| found.path().join(entry));
    let found = found.into_iter().find(|path| path.exists());
    found.unwrap_or_else(|| panic!("{} has no {entry}: `cargo fetch` brings it", folder.display()))
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().flatten() {
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
}

fn is_installed(name: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap()).any(|folder| folder.join(name).is_file())
}

#[test]
fn a_crate_is_built_and_tested_inside() {
    let desk = Desk::new(&[]);
    copy(&with_entry(&registry().join("src"), "strsim-0.11.1"), &desk.project);
    let said = desk.inside("cargo test --offline --lib --tests 2>&1");
    assert!(said.contains("test result: ok") && said.contains("jaro_winkler"), "{said}");
}

#[test]
fn a_crate_with_a_dependency_is_built_from_the_cache_of_the_home() {
    let manifest = "[package]\nname = \"near\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\nstrsim = \"=0.11.1\"\n";
    let code = "#[test]\nfn near() {\n    assert_eq!(strsim::levenshtein(\"kitten\", \"sitting\"), 3);\n}\n";
    let desk = Desk::new(&[("Cargo.toml", manifest), ("src/lib.rs", code)]);
    let registry = registry();
    let own = desk.home.join(".cargo/registry");
    for path in [
        with_entry(&registry.join("index"), "config.json"),
        with_entry(&registry.join("index"), ".cache/st/rs/strsim"),
        with_entry(&registry.join("cache"), "strsim-0.11.1.crate"),
    ] {
        copy(&path, &own.join(path.strip_prefix(&registry).unwrap()));
    }
    let said = desk.inside("cargo test --offline --lib 2>&1");
    assert!(said.contains("1 passed"), "{said}");
    // Cargo unpacked the crate into the layer, which the next line sees and the home does not.
    let said = desk.inside("ls ~/.cargo/registry/src/*/");
    assert!(said.contains("strsim-0.11.1"), "{said}");
    assert!(!own.join("src").exists());
}

#[test]
fn a_python_package_is_installed_from_a_wheel_and_tested_inside() {
    let wheels = "import base64, hashlib, os, zipfile\n\
        os.makedirs('wheels', exist_ok=True)\n\
        def wheel(name, code, needs):\n    \
            about = f'{name}-1.0.dist-info'\n    \
            files = {f'{name}.py': code, f'{about}/METADATA': f'Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n' + needs,\n             \
                f'{about}/WHEEL': 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'}\n    \
            with zipfile.ZipFile(f'wheels/{name}-1.0-py3-none-any.whl', 'w') as file:\n        \
                for path, text in files.items(): file.writestr(path, text)\n        \
                file.writestr(f'{about}/RECORD', ''.join(f'{path},,\\n' for path in [*files, f'{about}/RECORD']))\n\
        wheel('lower', 'def lower(text):\\n    return text.lower()\\n', '')\n\
        wheel('upper', 'import lower\\ndef swap(text):\\n    return lower.lower(text).upper()\\n', 'Requires-Dist: lower\\n')\n";
    let tests = "import unittest, upper\nclass Swap(unittest.TestCase):\n    def test_swap(self):\n        self.assertEqual(upper.swap('aB'), 'AB')\n";
    let desk = Desk::new(&[("wheels.py", wheels), ("test_upper.py", tests)]);
    let said = desk.inside(
        "set -e; python3 wheels.py; python3 -m venv .venv; .venv/bin/pip install --disable-pip-version-check \
         --no-index --find-links wheels upper 2>&1; .venv/bin/python -m unittest -v 2>&1",
    );
    assert!(said.contains("Successfully installed lower-1.0 upper-1.0") && said.contains("OK"), "{said}");
}

#[test]
fn an_npm_package_is_installed_from_a_tarball_and_tested_inside() {
    if !is_installed("npm") {
        eprintln!("npm is not installed: nothing of it was tried");
        return;
    }
    let desk = Desk::new(&[
        ("dep/package.json", r#"{"name":"dep","version":"1.0.0","main":"dep.js"}"#),
        ("dep/dep.js", "exports.twice = (n) => 2 * n;\n"),
        ("package.json", r#"{"name":"app","version":"1.0.0","scripts":{"test":"node test.js"}}"#),
        ("test.js", "require('assert').equal(require('dep').twice(21), 42); console.log('passed');\n"),
    ]);
    let said = desk.inside(
        "set -e; npm pack --silent ./dep; npm install --offline --no-audit --no-fund ./dep-1.0.0.tgz 2>&1; npm test 2>&1",
    );
    assert!(said.contains("added 1 package") && said.contains("passed"), "{said}");
    assert!(desk.project.join("package-lock.json").exists());
}

#[test]
fn make_builds_a_program_inside() {
    let makefile =
        "test: sum\n\t./sum 40 2\n\nsum: sum.o main.o\n\t$(CC) -o $@ $^\n\n%.o: %.c\n\t$(CC) -c -o $@ $<\n";
    let desk = Desk::new(&[
        ("Makefile", makefile),
        ("sum.c", "int sum(int a, int b) { return a + b; }\n"),
        (
            "main.c",
            "#include <stdio.h>\n#include <stdlib.h>\nint sum(int, int);\nint main(int n, char **v) { printf(\"sum %d\\n\", n > 2 ? sum(atoi(v[1]), atoi(v[2])) : 0); return 0; }\n",
        ),
    ]);
    let said = desk.inside("make -j2 test 2>&1");
    assert!(said.contains("sum 42"), "{said}");
}

/// It would look for leaks by tracing itself.
#[test]
fn a_program_with_sanitizers_ends_well_inside() {
    let code = "#include <stdlib.h>\nint main(void) { char *p = malloc(3); free(p); return 0; }\n";
    let desk = Desk::new(&[("a.c", code)]);
    let said = desk.inside("cc -fsanitize=address -o a a.c 2>&1 && ./a 2>&1; echo code $?");
    assert!(said.contains("code 0"), "{said}");
}

#[test]
fn git_commits_branches_and_merges_inside() {
    let desk = Desk::new(&[("a.txt", "one\n")]);
    let said = desk.inside(
        "set -e; git init -q -b main; git add -A; git commit -qm first; git switch -qc side; echo two >> a.txt; \
         git commit -qam second; git switch -q main; echo three > b.txt; git add b.txt; git commit -qm third; \
         git merge -q --no-edit side; echo wip >> b.txt; git stash -q; git stash pop -q; git tag v1; \
         git checkout -q -- b.txt; git worktree add -q ../project/tree v1; git gc -q; git status --porcelain; \
         git log --format='%an %s' | sort",
    );
    let log = ["Ada Merge branch 'side'", "Ada first", "Ada second", "Ada third"];
    assert!(log.iter().all(|line| said.contains(line)) && said.contains("?? tree/"), "{said}");
}

#[test]
fn everyday_tools_work_inside() {
    let code = "import multiprocessing, os, socket, ssl, tempfile, threading, http.server, urllib.request\n\
        print('pool', multiprocessing.Pool(2).map(abs, [-1, 2]))\n\
        for path in ('/tmp/socket', './socket'):\n    \
            server = socket.socket(socket.AF_UNIX); server.bind(path); server.listen()\n    \
            client = socket.socket(socket.AF_UNIX); client.connect(path); os.unlink(path); print('unix', path)\n\
        web = http.server.HTTPServer(('localhost', 0), http.server.SimpleHTTPRequestHandler)\n\
        threading.Thread(target=web.serve_forever, daemon=True).start()\n\
        print('http', urllib.request.urlopen(f'http://localhost:{web.server_port}/a.txt').read())\n\
        print('temporary', tempfile.mkdtemp().startswith('/tmp/'))\n\
        print('owner', os.stat('a.txt').st_uid == os.getuid() and os.access('a.txt', os.W_OK))\n";
    let desk = Desk::new(&[("a.txt", "page\n"), ("try.py", code)]);
    let said = desk.inside(
        "set -e; python3 try.py 2>&1; mkdir -p ~/.cache/tool ~/.config/tool; echo kept > ~/.cache/tool/file; \
         echo '# mine' >> ~/.profile; touch /dev/shm/x; mktemp -d; TZ=Europe/Vienna date +%Z; nproc; id -u; \
         tar cf a.tar a.txt; tar xf a.tar; cp -a a.txt b.txt; ln a.txt c.txt; mkfifo pipe; flock a.tar true; \
         (echo child; exit 3) || echo code $?; echo x | tee /dev/null; echo y > /dev/stderr; ps -e | wc -l; umask",
    );
    for line in [
        "pool [1, 2]",
        "unix /tmp/socket",
        "unix ./socket",
        "http b'page\\n'",
        "temporary True",
        "owner True",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(said.contains("code 3") && said.contains("/tmp/tmp."), "{said}");
    assert_eq!(desk.inside("cat ~/.cache/tool/file; tail -n 1 ~/.profile"), "kept\n# mine\n");
}

/// An overlay cannot have these names, so the home has no layer. It was bound writable all the same.
#[test]
fn a_home_that_can_have_no_layer_is_read_only() {
    for name in ["a,b", "a:b"] {
        let desk = Desk::at(name, &[("a.txt", "one\n")]);
        let said = desk.inside("echo x > ~/new || echo refused; echo x >> ~/.profile || echo refused; rm -rf ~/.profile || true; echo two > a.txt; cat a.txt");
        assert!(said.contains("refused\nrefused\ntwo\n") || said.matches("refused").count() == 2, "{said}");
        assert_eq!(fs::read_to_string(desk.project.join("a.txt")).unwrap(), "two\n");
    }
}

/// As users have it: Lathe's folder is in the home, the workspace too, and no flag is given.
#[test]
fn a_run_below_the_home_changes_the_workspace_and_nothing_else() {
    let desk = Desk::new(&[("a.txt", "one\n")]);
    desk.write("more.sh", "echo x >> ~/.profile\necho x > ../beside\n");
    let line = "echo two > a.txt; bash more.sh; cat a.txt";
    let model = FakeModel::serving(
        Script::new().answer(call("c1", "bash", json!({ "command": line }))).answer(done("ok")),
    );
    let before = desk.state();
    let ran = desk.lathe().args(["run", "do it"]).with_model(&model).run().expect_code(0);
    let first = format!("{}{}", ran.stderr, ran.stdout);
    assert!(first.contains("full-auto · sandbox workspace (level 3)"), "{first}");
    assert_eq!(fs::read_to_string(desk.project.join("a.txt")).unwrap(), "two\n", "{first}");
    assert_eq!(desk.state(), before);
}
