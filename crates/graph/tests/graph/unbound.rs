//! Tests names that were once reported as unbound, or as bound to the wrong definition.

use lathe_graph::Query;

use crate::Place;
use crate::resolving::check;

#[test]
fn an_import_means_a_file_of_its_own_language() {
    let (a, b) =
        ("export const arrow = () => 1\n", "import { arrow } from './a'\nfunction f() { arrow() }\n");
    for other in ["a.py", "a.go", "a.h", "a.css", "a.test.ts", "a.spec.ts"] {
        check(&[("a.ts", a), ("b.ts", b), (other, "")], "arrow", &["f -> a.ts:arrow exact"]);
    }
    let declared = "export declare function arrow(): number\nexport interface Only { m(): void }\n";
    for implemented in ["a.ts", "a.tsx", "a.js", "a.jsx", "a.mjs"] {
        let files = [(implemented, a), ("a.d.ts", declared), ("b.ts", b)];
        check(&files, "arrow", &[&format!("f -> {implemented}:arrow exact")]);
    }
    check(&[("a.d.ts", declared), ("b.ts", b)], "arrow", &["f -> a.d.ts:arrow exact"]);
    check(
        &[
            ("a.js", a),
            ("a.d.ts", declared),
            ("b.ts", "import { Only } from './a'\nfunction f(o: Only) { o.m() }\n"),
        ],
        "m",
        &["f -> a.d.ts:Only.m exact"],
    );
    // Several files of one stem, and the ending that TypeScript asks for.
    check(
        &[
            ("user.model.ts", "export function make() {}\n"),
            ("user.service.ts", "export function make() {}\n"),
            ("b.ts", "import { make } from './user.service.js'\nfunction f() { make() }\n"),
        ],
        "make",
        &["f -> user.service.ts:make exact"],
    );
    check(
        &[
            ("a.py", "def run(): pass\n"),
            ("a.js", "export function run() {}\n"),
            ("A.rs", ""),
            ("b.py", "from a import run\nimport a\ndef f():\n    run()\n    a.run()\n"),
        ],
        "run",
        &["f -> a.py:run exact", "f -> a.py:run exact"],
    );
    check(
        &[
            ("a.rb", "def go; end\n"),
            ("a.lua", "function go() end\n"),
            ("b.rb", "require_relative 'a'\ndef f\n  go()\nend\n"),
        ],
        "go",
        &["f -> a.rb:go exact"],
    );
}

#[test]
fn rust_names_its_own_package_and_its_neighbours() {
    let uses = "use my_gam::top;\nfn f() {\n    top();\n    my_gam::top();\n    other::top();\n}\n";
    for (folder, manifest) in [
        ("gam", "[package]\nname = \"my-gam\" # ours\n[dependencies]\nname = \"no\"\n"),
        ("gam", "[package]\nname = \"x\"\n[lib]\nname = \"my_gam\"\n"),
        ("my-gam", "[package]\nname.workspace = true\n"),
    ] {
        for place in ["tests/t.rs", "examples/e.rs", "benches/b.rs", "src/main.rs"] {
            let at = |path: &str| format!("{folder}/{path}");
            let lib = at("src/lib.rs");
            check(
                &[
                    (&at("Cargo.toml"), manifest),
                    (&lib, "pub fn top() {}\n"),
                    (&at(place), uses),
                    ("beta/src/lib.rs", "pub fn run() { my_gam::top() }\n"),
                ],
                "top",
                &[
                    &format!("run -> {lib}:top exact"),
                    &format!("f -> {lib}:top exact"),
                    &format!("f -> {lib}:top exact"),
                    "f ->  nothing",
                ]
                .map(String::from)
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>(),
            );
        }
    }
}

#[test]
fn rust_paths_start_at_crate_super_and_self() {
    let files = [
        ("Cargo.toml", "[package]\nname = \"r\"\n"),
        (
            "src/lib.rs",
            "pub mod sub;\npub mod inner { pub fn deep() {} }\nfn top() {\n    crate::sub::low();\n    self::low();\n}\nfn low() {}\nmod tests {\n    fn t() { super::low() }\n}\n",
        ),
        (
            "src/sub.rs",
            "pub mod third;\npub fn low() { crate::inner::deep() }\nimpl S { fn m(&self) { super::low() } }\n",
        ),
        ("src/sub/third.rs", "fn far() {\n    super::low();\n    super::super::low();\n}\n"),
        (
            "tests/t.rs",
            "mod common;\nfn t() {\n    r::sub::low();\n    common::low();\n    crate::common::low();\n}\n",
        ),
        ("tests/common/mod.rs", "pub fn low() {}\n"),
    ];
    check(
        &files,
        "low",
        &[
            "top -> src/sub.rs:low exact",
            "top -> src/lib.rs:low exact",
            "tests.t -> src/lib.rs:low exact",
            "S.m -> src/lib.rs:low exact",
            "far -> src/sub.rs:low exact",
            "far -> src/lib.rs:low exact",
            "t -> src/sub.rs:low exact",
            "t -> tests/common/mod.rs:low exact",
            "t -> tests/common/mod.rs:low exact",
        ],
    );
    check(&files, "deep", &["low -> src/lib.rs:inner.deep exact"]);
    // A module and a function of one name; what a macro may define; an object whose type is not known.
    let files = [
        ("read/src/lib.rs", "mod go;\npub use go::go;\ncfg! { fn hidden() {} }\n"),
        ("read/src/go.rs", "pub fn go() {}\npub struct S;\nimpl S { fn hidden(&self) {} }\n"),
        ("read/tests/t.rs", "fn t() {\n    read::go();\n    read::hidden();\n    self.hidden();\n}\n"),
    ];
    check(&files, "go", &["t -> read/src/go.rs:go exact"]);
    let files = [
        ("src/lib.rs", "pub mod serve;\npub use self::serve::serve;\n"),
        ("src/serve.rs", "pub fn serve() {}\npub struct In;\nimpl In { pub fn addr() {} }\n"),
        ("src/a.rs", "use crate::serve;\nfn f() {\n    serve();\n    serve::In::addr();\n}\n"),
        ("src/task/mod.rs", "cfg! { mod now; pub use now::now; }\n"),
        ("src/task/now.rs", "pub fn now() {}\n"),
        ("src/b.rs", "fn g() { crate::task::now() }\n"),
    ];
    check(&files, "serve", &["f -> src/serve.rs:serve exact"]);
    check(&files, "addr", &["f -> src/serve.rs:In.addr exact"]);
    check(&files, "now", &["g -> src/task/now.rs:now likely"]);
    let files = [
        ("read/src/lib.rs", "mod go;\npub use go::go;\ncfg! { fn hidden() {} }\n"),
        ("read/src/go.rs", "pub fn go() {}\npub struct S;\nimpl S { fn hidden(&self) {} }\n"),
        ("read/tests/t.rs", "fn t() {\n    read::hidden();\n    self.hidden();\n}\n"),
    ];
    check(
        &[
            ("src/lib.rs", "mod index;\nmod init;\nfn top() {}\n"),
            ("src/index.rs", "fn f() { crate::top() }\n"),
            ("src/init.rs", "fn g() { super::top() }\n"),
        ],
        "top",
        &["f -> src/lib.rs:top exact", "g -> src/lib.rs:top exact"],
    );
    check(
        &[
            ("p/main.py", "def top(): pass\n"),
            ("p/index.py", "from main import top\nfrom . import lib\ndef f():\n    top()\n    lib.top()\n"),
            ("p/lib.py", "def top(): pass\n"),
        ],
        "top",
        &["f -> p/main.py:top exact", "f -> p/lib.py:top exact"],
    );
    let any = "t -> read/src/go.rs:S.hidden name-only";
    check(&files, "hidden", &[any, any]);
}

#[test]
fn rust_implements_for_references_and_slices() {
    let place = Place::with(&[(
        "src/lib.rs",
        "pub trait Read { fn read(&self); }\nimpl<T: Read> Read for &mut T { fn read(&self) {} }\nimpl<'a> Read for &'a [u8] { fn read(&self) {} }\nimpl Read for &File { fn read(&self) {} }\nimpl Read for dyn Any + Send { fn read(&self) {} }\npub struct File;\n",
    )]);
    let (snapshot, _) = place.fresh();
    let found = Query::new(&snapshot).implements("Read");
    let lines: Vec<u32> = found.items.iter().map(|item| item.line).collect();
    assert_eq!(lines, [2, 3, 4, 5], "{found:?}");
}

#[test]
fn python_names_of_patterns_lambdas_and_comprehensions_are_local() {
    let define = "def cap(): pass\nclass K: pass\n";
    for local in [
        "match x:\n    case {'a': cap}: cap()\n",
        "match x:\n    case {'a': 1, **cap}: cap()\n",
        "match x:\n    case [1, *cap]: cap()\n",
        "match x:\n    case int() as cap: cap()\n",
        "match x:\n    case K(a=cap): cap()\n",
        "match x:\n    case (1, cap) | [cap]: cap()\n",
        "def f(x):\n    match x:\n        case [cap]: pass\n    cap()\n",
        "g = lambda cap: cap()\n",
        "g = lambda a, *cap: cap()\n",
        "g = lambda cap=1: cap()\n",
        "g = [cap() for cap in xs]\n",
        "g = {a: cap() for a, cap in xs if cap}\n",
        "g = list(cap() for a in xs for cap in a)\n",
    ] {
        let around = if local.starts_with("def") { "f" } else { "file" };
        check(&[("a.py", &format!("{define}{local}"))], "cap", &[&format!("{around} ->  nothing")]);
    }
    // Outside of them the name is what it was.
    for (used, from) in [
        ("g = [(lambda cap: 1), cap()]\n", "file"),
        ("def f(xs):\n    [cap for cap in xs]\n    cap()\n", "f"),
        ("match x:\n    case K(cap=1): cap()\n", "file"),
    ] {
        check(&[("a.py", &format!("{define}{used}"))], "cap", &[&format!("{from} -> a.py:cap exact")]);
    }
    // A class sees the names of its body there, and not in its methods.
    check(
        &[(
            "a.py",
            "def cap(): pass\nclass A:\n    def cap(): pass\n    x = cap()\n    def m(self):\n        cap()\n",
        )],
        "cap",
        &["A -> a.py:A.cap exact", "A.m -> a.py:cap exact"],
    );
    check(
        &[(
            "a.py",
            "def cap(f): pass\nclass A:\n    def m(self):\n        self.cap = 1\n    @cap\n    def n(self): pass\n",
        )],
        "cap",
        &["A -> a.py:cap exact"],
    );
    check(
        &[("a.py", "if x:\n    def two(): pass\nelse:\n    def two(): pass\ntwo()\n")],
        "two",
        &["file -> a.py:two | a.py:two likely"],
    );
}

#[test]
fn go_calls_of_generic_functions_and_through_interfaces() {
    check(
        &[
            ("a.go", "package m\n\nfunc Gen[T any](a T) {}\nfunc Two[K any, V any](a K, b V) {}\n"),
            (
                "b.go",
                "package m\n\nfunc f() {\n\tGen[int](1)\n\tGen(1)\n}\nfunc g() { Two[int, string](1, nil) }\n",
            ),
        ],
        "Gen",
        &["f -> a.go:Gen exact", "f -> a.go:Gen exact"],
    );
    check(
        &[
            ("p/a.go", "package p\n\nfunc Gen[T any](a T) {}\n"),
            ("b.go", "package m\n\nimport \"x.y/p\"\n\nfunc f() { p.Gen[int](1) }\n"),
        ],
        "Gen",
        &["f -> p/a.go:Gen exact"],
    );
    let files = [
        ("i.go", "package m\n\ntype I interface {\n\tDo()\n\tMore()\n}\n\nfunc f(i I) { i.Do() }\n"),
        ("s.go", "package m\n\ntype S struct{}\n\nfunc (s *S) Do() {}\nfunc (s *S) More() {}\n"),
        ("n.go", "package m\n\ntype N struct{}\n\nfunc (n N) Do() {}\n"),
    ];
    check(&files, "Do", &["f -> i.go:I.Do | s.go:S.Do likely"]);
}

#[test]
fn java_references_of_methods_and_constructors_are_calls() {
    let files = [
        ("p/A.java", "package p;\nclass A { A(int a) {} static void stat() {} }\n"),
        (
            "p/B.java",
            "package p;\nclass B extends A {\n  B(int a) { super(a); }\n  B() { this(1); }\n  void f() { g(A::stat); g(B::new); g(this::own); }\n  void own() {}\n}\n",
        ),
    ];
    check(&files, "stat", &["B.f -> p/A.java:A.stat exact"]);
    check(&files, "own", &["B.f -> p/B.java:B.own exact"]);
    check(&files, "A", &["B.B -> p/A.java:A.A exact"]);
    let either = "p/B.java:B.B | p/B.java:B.B likely";
    check(&files, "B", &[&format!("B.B -> {either}"), &format!("B.f -> {either}")]);
}

#[test]
fn kotlin_extensions_are_called_on_what_they_extend() {
    let files = [
        ("a.kt", "package p\nclass K\nfun String.ext(): K { return K() }\nfun K.own() {}\n"),
        ("b.kt", "package q\nimport p.K\nimport p.ext\nfun f(k: K) {\n  \"a\".ext()\n  k.own()\n}\n"),
    ];
    check(&files, "ext", &["f -> a.kt:String.ext name-only"]);
    check(&files, "own", &["f -> a.kt:K.own exact"]);
}

#[test]
fn packages_of_the_same_repository_and_what_only_sounds_so() {
    let uses =
        "import { af } from '@x/a'\nimport * as ns from '@x/a'\nfunction f() {\n  af()\n  ns.af()\n}\n";
    for (place, named) in [("packages/a", true), ("packages/x-a", true), ("packages/a", false)] {
        let (manifest, source) = (format!("{place}/package.json"), format!("{place}/src/index.ts"));
        let name = if named { "@x/a" } else { "@y/a" };
        let files = [
            (&*manifest, &*format!("{{ \"version\": \"1\",\n  \"name\" : \"{name}\" }}\n")),
            (&*source, "export function af() {}\n"),
            ("packages/b/b.ts", uses),
        ];
        let exact = format!("f -> {source}:af exact");
        let doubt = format!("f -> {source}:af name-only");
        // By another name it is not known which package it is, but the name of the function is.
        let wanted = if named { [&*exact, &*exact] } else { [&*doubt, "f ->  nothing"] };
        check(&files, "af", &wanted);
    }
    // An alias of `tsconfig.json`, and a library that is none of ours.
    check(
        &[
            ("app/q.ts", "export function qf() {}\nfunction hidden() {}\n"),
            ("lib/deep/z.ts", "export function zf() {}\n"),
            (
                "b.ts",
                "import { qf } from '@/q'\nimport { zf, hidden } from '$deep/other'\nimport { qf as no } from 'react'\nfunction f() {\n  qf()\n  zf()\n  no()\n  hidden()\n}\n",
            ),
        ],
        "zf",
        &["f -> lib/deep/z.ts:zf name-only"],
    );
    let files = [
        ("app/q.ts", "export function qf() {}\n"),
        ("b.ts", "import { qf } from '@/q'\nfunction f() { qf() }\n"),
        ("c.ts", "import { qf } from 'react'\nfunction g() { qf() }\n"),
    ];
    check(&files, "qf", &["f -> app/q.ts:qf exact", "g ->  nothing"]);
    check(
        &[
            ("tools/helpers.py", "def run(): pass\n"),
            ("tools/__init__.py", ""),
            (
                "a.py",
                "from helpers import run\nfrom typing import run as other\ndef f():\n    run()\n    other()\n",
            ),
        ],
        "run",
        &["f -> tools/helpers.py:run name-only"],
    );
    // A library whose name is that of a folder here, and one that is tried before our own.
    check(
        &[
            ("tests/datetime/t.py", "import datetime\n"),
            ("safe.py", "def now(): pass\n"),
            ("_fast/x.py", "def now(): pass\n"),
            ("a.py", "from datetime import now\ndef f():\n    now()\n"),
            (
                "b.py",
                "try:\n    from _fast import now\nexcept ImportError:\n    from safe import now\ndef g():\n    now()\n",
            ),
        ],
        "now",
        &["f ->  nothing", "g -> safe.py:now exact"],
    );
}

#[test]
fn ruby_makes_objects_of_classes_in_modules() {
    let files = [
        ("a.rb", "module Foo\n  class Bar\n    def bm; end\n  end\nend\n"),
        ("b.rb", "module Foo\n  class Baz\n    def bm; end\n  end\nend\n"),
        ("c.rb", "class Foo::Qux\n  def bm; end\nend\n"),
        ("d.rb", "def f\n  Foo::Bar.new.bm\n  x = Foo::Bar.new\n  x.bm\n  Foo::Qux.new.bm\nend\n"),
    ];
    let bar = "f -> a.rb:Foo.Bar.bm likely";
    check(&files, "bm", &[bar, bar, "f -> c.rb:Foo.Qux.bm likely"]);
}
