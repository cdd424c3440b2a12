//! From a call to its definition, in small repositories of each language.

use lathe_graph::{Confidence, Query, Snapshot, UseKind};

use crate::Place;

/// `file:caller -> file:callee confidence` for every call of a name.
fn calls(snapshot: &Snapshot, name: &str) -> Vec<String> {
    let query = Query::new(snapshot);
    let mut all = Vec::new();
    for file in 0..snapshot.files.len() as u32 {
        let facts = snapshot.facts(file);
        for site in
            facts.sites.iter().filter(|site| site.used == UseKind::Call && facts.str(site.name) == name)
        {
            let (found, confidence) = query.resolver.site(file, site);
            let from = facts.def(site.def).map_or("file".to_owned(), |def| facts.path_of(def));
            let to: Vec<String> = found
                .iter()
                .map(|symbol| {
                    format!(
                        "{}:{}",
                        snapshot.path(symbol.file),
                        snapshot.facts(symbol.file).path_of(snapshot.def(*symbol))
                    )
                })
                .collect();
            let confidence = if to.is_empty() { "nothing" } else { confidence.name() };
            all.push(format!("{from} -> {} {confidence}", to.join(" | ")));
        }
    }
    all
}

pub(crate) fn check(files: &[(&str, &str)], name: &str, wanted: &[&str]) {
    let place = Place::with(files);
    assert_eq!(calls(&place.fresh().0, name), wanted, "{name} in {}", files[0].0);
}

#[test]
fn python_follows_imports_scopes_and_receivers() {
    let files = [
        ("pkg/__init__.py", "from .core import run as start\n"),
        (
            "pkg/core.py",
            "class Base:\n    def go(self): pass\n\nclass Job(Base):\n    def __init__(self, other: 'Job'):\n        self.other = other\n        self.kid = Job(None)\n    def work(self):\n        self.go()\n        self.other.go()\n        self.kid.go()\n        super().go()\n\ndef run():\n    job = Job(None)\n    job.go()\n    helper()\n\ndef helper(): pass\n",
        ),
        (
            "main.py",
            "import pkg.core\nimport pkg.core as c\nfrom pkg import start\nfrom pkg.core import helper as h\nimport json\n\ndef f(run, x):\n    start()\n    pkg.core.run()\n    c.run()\n    h()\n    run()\n    json.run()\n    x.run()\n    def h2(): pass\n    h2()\n",
        ),
        ("other/core.py", "def run(): pass\ndef helper(): pass\n"),
    ];
    check(&files, "start", &["f -> pkg/core.py:run exact"]);
    // By line: the module in full, under another name, a parameter, another library, an unknown object.
    check(
        &files,
        "run",
        &[
            "f -> pkg/core.py:run exact",
            "f -> pkg/core.py:run exact",
            "f ->  nothing",
            "f ->  nothing",
            "f ->  nothing",
        ],
    );
    check(&files, "h", &["f -> pkg/core.py:helper exact"]);
    check(&files, "h2", &["f -> main.py:f.h2 exact"]);
    check(&files, "helper", &["run -> pkg/core.py:helper exact"]);
    check(
        &files,
        "go",
        &[
            "Job.work -> pkg/core.py:Base.go exact",
            "Job.work -> pkg/core.py:Base.go likely",
            "Job.work -> pkg/core.py:Base.go likely",
            "Job.work -> pkg/core.py:Base.go exact",
            "run -> pkg/core.py:Base.go exact",
        ],
    );
}

#[test]
fn typescript_follows_modules_defaults_and_types() {
    let files = [
        (
            "src/svc.ts",
            "export default class Svc { call(): Svc { return this } }\nexport function make(): Svc { return new Svc() }\n",
        ),
        ("src/index.ts", "export { make as build } from './svc';\nexport * from './util';\n"),
        ("src/util.ts", "export const log = (a: string) => a;\n"),
        (
            "src/app.ts",
            "import Service from './svc';\nimport { build, log } from '.';\nimport * as util from './util';\nimport { log as elsewhere } from 'lib';\nexport class App {\n  constructor(private svc: Service) {}\n  run() { this.svc.call(); build().call(); log('a'); util.log('b'); elsewhere('c'); const s = new Service(); s.call(); }\n}\n",
        ),
    ];
    check(
        &files,
        "call",
        &[
            "App.run -> src/svc.ts:Svc.call likely",
            "App.run -> src/svc.ts:Svc.call likely",
            "App.run -> src/svc.ts:Svc.call exact",
        ],
    );
    check(&files, "log", &["App.run -> src/util.ts:log exact", "App.run -> src/util.ts:log exact"]);
    check(&files, "elsewhere", &["App.run ->  nothing"]);
}

#[test]
fn rust_follows_use_impl_and_self() {
    let files = [
        (
            "src/lib.rs",
            "mod job;\nuse job::Job;\nuse crate::job::helper as h;\npub fn run() { let j = Job::new(); j.go(); h(); job::helper(); }\n",
        ),
        (
            "src/job.rs",
            "pub struct Job { kid: Option<Box<Job>> }\nimpl Job {\n    pub fn new() -> Self { Job { kid: None } }\n    pub fn go(&self) { self.step(); Self::new(); self.kid.go() }\n    fn step(&self) {}\n}\npub fn helper() {}\n#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn works() { assert_eq!(helper(), Job::new().go()); }\n}\n",
        ),
    ];
    check(
        &files,
        "new",
        &[
            "Job.go -> src/job.rs:Job.new exact",
            "tests.works -> src/job.rs:Job.new exact",
            "run -> src/job.rs:Job.new exact",
        ],
    );
    check(&files, "step", &["Job.go -> src/job.rs:Job.step exact"]);
    check(&files, "helper", &["tests.works -> src/job.rs:helper exact", "run -> src/job.rs:helper exact"]);
    check(&files, "h", &["run -> src/job.rs:helper exact"]);
}

#[test]
fn go_java_csharp_and_c_follow_their_layout() {
    check(
        &[
            ("go.mod", "module example.com/m\n"),
            (
                "util/db.go",
                "package util\n\ntype DB struct{}\n\nfunc (d *DB) Query() {}\nfunc Open() *DB { return &DB{} }\n",
            ),
            (
                "main.go",
                "package main\n\nimport \"example.com/m/util\"\n\nfunc main() { d := util.Open(); d.Query(); local() }\n",
            ),
            ("more.go", "package main\n\nfunc local() {}\n"),
        ],
        "Query",
        &["main -> util/db.go:DB.Query likely"],
    );
    check(
        &[
            ("a/main.go", "package main\n\nfunc main() { local() }\n"),
            ("a/more.go", "package main\n\nfunc local() {}\n"),
            ("b/x.go", "package b\n\nfunc local() {}\n"),
        ],
        "local",
        &["main -> a/more.go:local exact"],
    );
    check(
        &[
            (
                "com/a/Svc.java",
                "package com.a;\npublic class Svc { public void go() {} static void stat() {} }\n",
            ),
            (
                "com/b/App.java",
                "package com.b;\nimport com.a.Svc;\nclass App extends Base { Svc svc; void run() { svc.go(); Svc.stat(); inherited(); } }\n",
            ),
            ("com/b/Base.java", "package com.b;\nclass Base { void inherited() {} }\n"),
        ],
        "inherited",
        &["App.run -> com/b/Base.java:Base.inherited exact"],
    );
    check(
        &[
            (
                "A.cs",
                "namespace N { class A { B b = new B(); void Run() { b.Go(); Own(); } void Own() {} } }\n",
            ),
            ("B.cs", "namespace N { class B { public void Go() {} } }\n"),
        ],
        "Go",
        &["N.A.Run -> B.cs:N.B.Go likely"],
    );
    check(
        &[
            ("list.h", "int push(int a);\n"),
            ("list.c", "#include \"list.h\"\nint push(int a) { return a; }\n"),
            ("main.c", "#include \"list.h\"\nint main(void) { return push(1); }\n"),
        ],
        "push",
        &["main -> list.c:push exact"],
    );
    check(
        &[
            ("k.h", "class K { public: int go(); };\n"),
            ("k.cpp", "#include \"k.h\"\nint K::go() { return 1; }\n"),
            ("m.cpp", "#include \"k.h\"\nint main() { K k; return k.go(); }\n"),
        ],
        "go",
        &["main -> k.cpp:K.go exact"],
    );
}

#[test]
fn other_languages_follow_self_and_classes() {
    check(
        &[
            (
                "a.rb",
                "class A\n  def run\n    helper\n    self.go\n    B.new.go\n  end\n  def go; end\nend\n",
            ),
            ("b.rb", "class B\n  def go; end\nend\n"),
        ],
        "go",
        &["A.run -> a.rb:A.go exact", "A.run -> b.rb:B.go likely"],
    );
    check(
        &[
            (
                "a.php",
                "<?php\nclass A { private B $b; function run() { $this->go(); $this->b->go(); } function go() {} }\n",
            ),
            ("b.php", "<?php\nclass B { function go() {} }\n"),
        ],
        "go",
        &["A.run -> a.php:A.go exact", "A.run -> b.php:B.go likely"],
    );
    check(
        &[
            ("a.kt", "package p\nclass A(val b: B) {\n  fun run() { b.go() }\n}\n"),
            ("b.kt", "package p\nclass B {\n  fun go() {}\n}\n"),
        ],
        "go",
        &["A.run -> b.kt:B.go likely"],
    );
    check(
        &[
            ("a.lua", "local b = require('b')\nb.go()\n"),
            ("b.lua", "local M = {}\nfunction M.go() end\nreturn M\n"),
        ],
        "go",
        &["file -> b.lua:M.go exact"],
    );
    check(&[("a.sh", "source ./b.sh\ngo\n"), ("b.sh", "go() { true; }\n")], "go", &["file -> b.sh:go exact"]);
    check(
        &[
            ("a.swift", "class A { let b = B()\n func run() { b.go() } }\n"),
            ("b.swift", "class B { func go() {} }\n"),
        ],
        "go",
        &["A.run -> b.swift:B.go likely"],
    );
    check(
        &[
            ("a.scala", "package p\nclass A(b: B) { def run() = b.go() }\n"),
            ("b.scala", "package p\nclass B { def go() = 1 }\n"),
        ],
        "go",
        &["A.run -> b.scala:B.go likely"],
    );
}

#[test]
fn an_unknown_receiver_gives_names_only() {
    let place = Place::with(&[(
        "a.py",
        "class A:\n    def go(self): pass\nclass B:\n    def go(self): pass\ndef f(x):\n    x.go()\n",
    )]);
    let (snapshot, _) = place.fresh();
    let query = Query::new(&snapshot);
    let site = snapshot.facts(0).sites.iter().find(|site| snapshot.facts(0).str(site.name) == "go").unwrap();
    let (found, confidence) = query.resolver.site(0, site);
    assert_eq!((found.len(), confidence), (2, Confidence::NameOnly));
}
