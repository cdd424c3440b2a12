//! Tests the facts that are read from one file, in every language.

use std::fmt::Write as _;
use std::path::Path;

use lathe_grammars::Language;
use lathe_graph::{
    DefKind, Facts, Gap, LanguageRules, UseKind, def_flag, extract, language_of, pack, unpack,
};

fn facts(path: &str, source: &str) -> Facts {
    extract(language_of(path, source).unwrap(), source)
}

/// One line per definition, import and use.
fn told(facts: &Facts) -> String {
    let mut out = String::new();
    for def in &facts.defs {
        let mut marks = String::new();
        for (flag, mark) in [
            (def_flag::EXPORTED, " exported"),
            (def_flag::TEST, " test"),
            (def_flag::DECLARED, " declared"),
            (def_flag::STATIC, " static"),
            (def_flag::DEFAULT, " default"),
        ] {
            if def.flags & flag != 0 {
                marks.push_str(mark);
            }
        }
        write!(
            out,
            "{} {} {}-{}{marks} | {}",
            def.kind.name(),
            facts.path_of(def),
            def.start_line,
            def.end_line,
            facts.str(def.signature)
        )
        .unwrap();
        for (name, sym) in [("doc", def.doc), ("type", def.ty)] {
            if !facts.str(sym).is_empty() {
                write!(out, " | {name}: {}", facts.str(sym)).unwrap();
            }
        }
        out.push('\n');
    }
    for import in &facts.imports {
        let exported = if import.exported { " exported" } else { "" };
        writeln!(
            out,
            "import {}: {} as {}{exported}",
            facts.str(import.module),
            facts.str(import.name),
            facts.str(import.alias)
        )
        .unwrap();
    }
    let mut sites: Vec<_> = facts.sites.iter().collect();
    sites.sort_by_key(|site| (site.line, site.column));
    for site in sites {
        let around = facts.def(site.def).map_or("file", |def| facts.name(def));
        writeln!(
            out,
            "{} {} [{}] {} in {around}",
            site.line,
            site.used.name(),
            facts.str(site.qualifier),
            facts.str(site.name)
        )
        .unwrap();
    }
    out
}

/// The snippets and what is expected of them stand side by side; `LATHE_BLESS=1` writes what is now said, to be read
/// before it is committed.
#[test]
fn every_language_tells_its_definitions_imports_and_uses() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graph/snippets");
    let mut seen = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.ends_with(".expected") {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        let read = facts(&name, &source);
        assert_eq!(read.gap, Gap::None, "{name} has a syntax error");
        assert_eq!(unpack(&pack(&read)).as_ref(), Some(&read), "{name} survives packing");
        let golden = folder.join(format!("{name}.expected"));
        if std::env::var_os("LATHE_BLESS").is_some() {
            std::fs::write(&golden, told(&read)).unwrap();
        }
        assert_eq!(told(&read), std::fs::read_to_string(&golden).unwrap(), "{name}");
        seen += 1;
    }
    assert_eq!(seen, 16);
}

#[test]
fn rules_speak_only_of_nodes_their_grammar_has() {
    let unknown = |language| LanguageRules::of(language).unwrap().unknown.clone();
    for language in Language::ALL.into_iter().filter(|language| language.graph_rules().is_some()) {
        // A shared file may speak of nodes that only the other language has.
        let other = match language {
            Language::JavaScript => unknown(Language::TypeScript),
            Language::TypeScript | Language::Tsx => unknown(Language::JavaScript),
            Language::C => unknown(Language::Cpp),
            Language::Cpp => unknown(Language::C),
            _ => unknown(language),
        };
        let missing: Vec<_> = unknown(language).into_iter().filter(|name| other.contains(name)).collect();
        assert_eq!(missing, Vec::<String>::new(), "{}", language.name());
    }
}

fn kind_of(path: &str, source: &str, name: &str) -> Option<DefKind> {
    let read = facts(path, source);
    read.defs.iter().find(|def| read.name(def) == name || read.path_of(def) == name).map(|def| def.kind)
}

#[test]
fn what_trae_gets_wrong_is_right() {
    for (what, path, source, name, kind) in [
        ("plain function", "a.ts", "function f(a: number) { return a }", "f", DefKind::Function),
        ("arrow function", "a.ts", "export const f = (a: number) => a", "f", DefKind::Function),
        ("plain function", "a.js", "function f(a) { return a }", "f", DefKind::Function),
        ("arrow function", "a.jsx", "const F = () => <b/>", "F", DefKind::Function),
        ("interface", "a.ts", "interface I { m(): void }", "I", DefKind::Interface),
        ("interface", "A.java", "interface I { void m(); }", "I", DefKind::Interface),
        ("interface method", "A.java", "class K { interface I { void m(); } }", "K.I.m", DefKind::Method),
        ("enum", "a.ts", "enum E { A }", "E", DefKind::Enum),
        ("enum", "A.java", "enum E { A }", "E", DefKind::Enum),
        ("enum", "a.c", "enum e { A };", "e", DefKind::Enum),
        ("type", "a.ts", "type T = string;", "T", DefKind::Type),
        ("record", "A.java", "record R(int a) {}", "R", DefKind::Class),
        ("constructor", "A.java", "class K { K() {} }", "K.K", DefKind::Constructor),
        ("struct", "a.cpp", "struct S { int a; };", "S", DefKind::Struct),
        ("struct", "a.c", "struct s { int a; };", "s", DefKind::Struct),
        (
            "member outside its class",
            "a.cpp",
            "int N::K::decl(int q) { return q; }",
            "N.K.decl",
            DefKind::Method,
        ),
        ("pointer result", "a.c", "int *ptr(int q) { return 0; }", "ptr", DefKind::Function),
        ("pointer result", "a.cpp", "K **ptr(int q) { return 0; }", "ptr", DefKind::Function),
        ("reference result", "a.cpp", "K &ref(int q) { return k; }", "ref", DefKind::Function),
        ("nested function", "a.py", "def f():\n    def g(): pass\n", "f.g", DefKind::Function),
        ("field", "a.js", "class K { x = 1 }", "K.x", DefKind::Field),
        (
            "operator",
            "a.rb",
            "class K\n  def <=>(o); end\n  def *(o); end\n  def [](i); end\nend\n",
            "K.*",
            DefKind::Method,
        ),
        ("private field", "a.js", "class K { #x = 1 }", "K.#x", DefKind::Field),
    ] {
        assert_eq!(kind_of(path, source, name), Some(kind), "{what} in {path}");
    }
    let decorated =
        facts("a.py", "class K:\n    @property\n    @cached\n    def m(self) -> int:\n        return 1\n");
    let method = decorated.defs.iter().find(|def| decorated.name(def) == "m").unwrap();
    assert_eq!((decorated.str(method.signature), method.start_line), ("def m(self) -> int", 4));
    assert_eq!(decorated.str(method.ty), "int");
}

#[test]
fn a_local_name_is_no_use_of_a_definition() {
    let read =
        facts("a.py", "def run(): pass\ndef f(run, g):\n    run()\n    for x in g: x()\n    return h(g)\n");
    let calls: Vec<_> = read
        .sites
        .iter()
        .filter(|site| site.used == UseKind::Call)
        .map(|site| (read.str(site.name), site.flags))
        .collect();
    assert_eq!(calls, [("h", 0), ("run", 1), ("x", 1)]);
}

#[test]
fn damaged_bytes_are_refused() {
    let bytes = pack(&facts("a.py", "def f(): g()\nclass A(B): x = 1\n"));
    for cut in 0..bytes.len() {
        assert_eq!(unpack(&bytes[..cut]), None);
    }
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 0xff;
        let _ = unpack(&bad);
    }
}

#[test]
fn what_is_only_called_operator_is_no_operator() {
    let names = |path: &str, source: &str| {
        let facts = facts(path, source);
        facts.defs.iter().map(|def| facts.path_of(def)).collect::<Vec<_>>()
    };
    assert_eq!(names("a.lua", "function operator.add(a, b) return a + b end\n"), ["operator.add"]);
    let lua = facts("a.lua", "function operator.add(a, b) return a + b end\n");
    assert_eq!(lua.name(&lua.defs[0]), "add");
    let cpp = facts("a.cpp", "bool K::operator==(K b) { return true; }\nvoid operator_table::fill() {}\n");
    let found: Vec<&str> = cpp.defs.iter().map(|def| cpp.name(def)).collect();
    assert_eq!(found, ["operator==", "fill"]);
}

#[test]
fn operators_conversions_and_indexers_are_definitions() {
    let told = |path: &str, source: &str| {
        let read = facts(path, source);
        read.defs.iter().map(|def| format!("{} {}", def.kind.name(), read.path_of(def))).collect::<Vec<_>>()
    };
    assert_eq!(
        told(
            "a.cs",
            "class A {\n  public static A operator +(A a, A b) { return a; }\n  public static implicit operator int(A a) => 1;\n  public int this[int i] { get { return i; } }\n  public static bool operator true(A a) => x;\n}\nclass P(int q) {}\n",
        ),
        [
            "class A",
            "method A.operator+",
            "method A.operator int",
            "method A.this[]",
            "method A.operator true",
            "class P",
            "field P.q",
        ]
    );
    assert_eq!(
        told(
            "a.cpp",
            "struct K { operator bool() const { return go(); } explicit operator int() const; int operator()(int a) { return a; } };\nK::operator bool() const { return true; }\n",
        ),
        [
            "struct K",
            "method K.operator bool",
            "method K.operator int",
            "method K.operator()",
            "method K.operator bool"
        ]
    );
    assert_eq!(
        told(
            "a.kt",
            "fun String.ext(): Int { return 1 }\nfun <T> List<T>.each(a: Int) {}\nfun plain(a: A): B {}\n"
        ),
        ["method String.ext", "method List.each", "function plain"]
    );
}

#[test]
fn flow_is_read_and_statements_are_no_methods() {
    let body = "class A extends B<Props> {\n  run(a: ?string, cb: (x: number) => void): Array<?X> {\n    if (a) { go(); }\n    for (const x of a) { go(); }\n    switch (a) { case 1: go() }\n    try { } catch (e) { go() }\n    return a;\n  }\n}\nfunction g(x: ?A): void { if (x) { x.run(); } }\n";
    let told = |source: &str| {
        let read = facts("a.js", source);
        read.defs.iter().map(|def| read.path_of(def)).collect::<Vec<_>>()
    };
    assert_eq!(told(&format!("/**\n * @flow strict\n */\n{body}")), ["A", "A.run", "g"]);
    let broken = facts("a.js", body);
    assert_eq!(broken.gap, Gap::SyntaxErrors);
    for word in ["if", "for", "while", "switch", "return", "catch", "function"] {
        assert!(broken.defs.iter().all(|def| broken.name(def) != word), "{word}");
    }
    // Where nothing is wrong such a name is one.
    assert_eq!(
        told("class P { catch(f) {} for(a) {} return() {} }\n"),
        ["P", "P.catch", "P.for", "P.return"]
    );
}
