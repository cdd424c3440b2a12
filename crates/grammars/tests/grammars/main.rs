//! Every language parses what is written in it and notices what is not.
#![allow(clippy::unwrap_used)]

use lathe_grammars::Language;
use lathe_grammars::Language::*;

/// A language, right text, broken text.
const TEXTS: [(Language, &str, &str); 20] = [
    (Bash, "if a; then b; fi\n", "if a; then b\n"),
    (C, "int main(void) { return 0; }\n", "int main(void) { return 0;\n"),
    (Cpp, "template <class T> T f(T a) { return a; }\n", "template <class T> T f(T a { return a; }\n"),
    (CSharp, "class A { int F() => 1; }\n", "class A { int F( => 1; }\n"),
    (Css, "a { color: red; }\n", "a { color: red; \n"),
    (Go, "package a\n\nfunc f() int { return 1 }\n", "package a\n\nfunc f( int { return 1 }\n"),
    (Html, "<p>a</p>\n", "<p>a</q\n"),
    (Java, "class A { int f() { return 1; } }\n", "class A { int f() { return 1; \n"),
    (JavaScript, "const a = <b>{c}</b>;\n", "const a = (;\n"),
    (Json, "{\"a\": [1, null]}\n", "{\"a\": [1, null}\n"),
    (Kotlin, "fun f(): Int { return 1 }\n", "fun f(: Int { return 1 }\n"),
    (Lua, "local function f() return 1 end\n", "local function f() return 1\n"),
    (Php, "<?php function f() { return 1; }\n", "<?php function f( { return 1; }\n"),
    (Python, "def f(a):\n    return a\n", "def f(a:\n    return a\n"),
    (Ruby, "def f(a)\n  a\nend\n", "def f(a)\n  a\n"),
    (Rust, "fn f() -> u8 { 1 }\n", "fn f() -> u8 { 1 \n"),
    (Scala, "object A { def f: Int = 1 }\n", "object A { def f: Int = 1 \n"),
    (Swift, "func f() -> Int { return 1 }\n", "func f( -> Int { return 1 }\n"),
    (Tsx, "const a: number = <b c={1} />;\n", "const a: number = <b c={1} ;\n"),
    (TypeScript, "function f<T>(a: T): T { return a; }\n", "function f<T>(a: T: T { return a; }\n"),
];

#[test]
fn every_language_has_a_grammar_that_works() {
    assert_eq!(TEXTS.map(|(language, _, _)| language), Language::ALL);
    for (language, right, broken) in TEXTS {
        let has_error =
            |text: &str| language.parser().unwrap().parse(text, None).unwrap().root_node().has_error();
        assert!(!has_error(right), "{}", language.name());
        assert!(has_error(broken), "{}", language.name());
    }
}

#[test]
fn the_language_is_known_by_the_name_of_the_file() {
    for (path, language) in [
        ("a.py", Some(Python)),
        ("src/A.JAVA", Some(Java)),
        ("x/y.h", Some(C)),
        ("y.hpp", Some(Cpp)),
        ("a.ts", Some(TypeScript)),
        ("a.d.ts", Some(TypeScript)),
        ("a.tsx", Some(Tsx)),
        ("a.jsx", Some(JavaScript)),
        ("lib.rs", Some(Rust)),
        ("a.go", Some(Go)),
        ("A.cs", Some(CSharp)),
        ("a.rb", Some(Ruby)),
        ("Rakefile", Some(Ruby)),
        ("a.php", Some(Php)),
        ("a.kt", Some(Kotlin)),
        ("a.swift", Some(Swift)),
        ("a.scala", Some(Scala)),
        ("a.sh", Some(Bash)),
        ("/home/x/.bashrc", Some(Bash)),
        ("a.lua", Some(Lua)),
        ("a.json", Some(Json)),
        ("a.html", Some(Html)),
        ("a.css", Some(Css)),
        ("README", None),
        ("a.txt", None),
        (".py", None),
        ("py", None),
        ("", None),
        ("dir.rs/file", None),
    ] {
        assert_eq!(Language::of_path(path), language, "{path}");
    }
}
