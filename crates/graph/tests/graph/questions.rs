//! Questions and the words of their answers.

use lathe_graph::{CkgSearch, GraphReply, MapRequest, Query, add_context, ckg, render};

use crate::Place;

fn shop() -> Place {
    Place::with(&[
        (
            "shop/cart.py",
            "\"\"\"Carts.\"\"\"\nfrom shop.price import total\n\nclass Cart:\n    \"\"\"Holds items.\"\"\"\n    def __init__(self):\n        self.items = []\n    def sum(self):\n        return total(self.items)\n\nclass Gift(Cart):\n    def sum(self):\n        return 0\n",
        ),
        (
            "shop/price.py",
            "def total(items):\n    \"\"\"Adds up.\"\"\"\n    return sum(price(i) for i in items)\n\ndef price(item):\n    return item\n",
        ),
        (
            "tests/test_cart.py",
            "from shop.cart import Cart\n\ndef test_sum():\n    cart = Cart()\n    assert cart.sum() == 0\n",
        ),
    ])
}

fn ask(place: &Place, question: impl Fn(&Query<'_>) -> GraphReply) -> String {
    let mut graph = place.graph();
    let (snapshot, _) = graph.fresh(&|_, _| ()).unwrap();
    let mut answer = question(&Query::new(&snapshot));
    add_context(&graph, &snapshot, &mut answer);
    render(&answer, 1000)
}

#[test]
fn answers_say_symbol_place_source_and_confidence() {
    let place = shop();
    assert_eq!(
        ask(&place, |q| q.callers("total")),
        "1 callers of total\nshop/cart.py:9 method Cart.sum [exact]\n  return total(self.items)\n"
    );
    assert_eq!(
        ask(&place, |q| q.callees("Cart.sum")),
        "Cart.sum calls 1\nshop/price.py:1-3 function total [exact]\n  def total(items)\n"
    );
    assert_eq!(
        ask(&place, |q| q.def("Cart")),
        "1 definitions of Cart\nshop/cart.py:4-9 class Cart\n  class Cart\n    Holds items.\n"
    );
    assert_eq!(
        ask(&place, |q| q.refs("Cart")),
        "2 uses of Cart\nshop/cart.py:11 class Gift [inherit, exact]\n  class Gift(Cart)\ntests/test_cart.py:4 function test_sum [call, exact]\n  cart = Cart()\n"
    );
    assert_eq!(
        ask(&place, |q| q.implements("Cart")),
        "1 made from Cart\nshop/cart.py:11 class Gift [inherit, distance 1, exact]\n  class Gift(Cart)\n"
    );
    assert_eq!(
        ask(&place, |q| q.implements("Cart.sum")),
        "1 made from Cart.sum\nshop/cart.py:12-13 method Gift.sum [distance 1, exact]\n  def sum(self)\n"
    );
    assert_eq!(
        ask(&place, |q| q.tests_of("price")),
        "1 tests reach price\ntests/test_cart.py:5 function test_sum [call, distance 3, exact]\n  assert cart.sum() == 0\n"
    );
    assert_eq!(
        ask(&place, |q| q.imports("shop/cart.py")),
        "shop/cart.py imports 1 files and is imported by 1\nshop/price.py:1 [imports]\n  def total(items)\ntests/test_cart.py:1 [imported by]\n  from shop.cart import Cart\n"
    );
    assert!(
        ask(&place, |q| q.outline("price.py"))
            .starts_with("shop/price.py: 6 lines, 2 definitions\nshop/price.py:1-3 function total\n")
    );
    assert!(ask(&place, |q| q.find("car", 10)).contains("shop/cart.py:4-9 class Cart\n"));
    assert_eq!(ask(&place, |q| q.def("Carr")), "nothing named Carr\n");
    assert_eq!(
        ask(&place, |q| q.def("carts.sum")),
        "nothing named carts.sum\nnote: similar names: Cart.sum, Gift.sum, test_sum\n"
    );
}

#[test]
fn an_answer_keeps_to_its_budget_and_counts_the_rest() {
    let place = Place::new();
    let calls: String = (0..200).map(|at| format!("def f{at}():\n    target()\n")).collect();
    place.write("a.py", format!("def target(): pass\n{calls}"));
    let mut graph = place.graph();
    let (snapshot, _) = graph.fresh(&|_, _| ()).unwrap();
    let text = render(&Query::new(&snapshot).callers("target"), 100);
    assert!(text.len() < 500, "{text}");
    assert!(text.ends_with(" more left out.\n"), "{text}");
}

#[test]
fn the_map_fits_its_budget_is_the_same_twice_and_follows_the_task() {
    let place = shop();
    let (snapshot, _) = place.fresh();
    let query = Query::new(&snapshot);
    let wish = MapRequest { budget: 60, ..MapRequest::default() };
    let (plain, _) = query.map(&wish);
    assert_eq!(plain, Query::new(&place.fresh().0).map(&wish).0);
    assert!(lathe_graph::tokens(&plain) <= 60, "{plain}");
    let (_, files) = query.map(&MapRequest { words: vec!["gift".into()], ..wish });
    assert_eq!(files.first().map(String::as_str), Some("shop/cart.py"));
}

#[test]
fn the_map_of_a_larger_repository_names_what_all_build_on_and_follows_words_and_view() {
    // A core that everything uses, two areas, a copy of third-party code, and tests.
    let place = Place::with(&[
        ("core/base.py", "class Base:\n    def run(self): pass\n\ndef helper(): pass\n"),
        ("vendor/big.py", "def helper(): pass\nclass Base:\n    pass\n"),
    ]);
    for at in 0..30 {
        for (area, word) in [("billing", "invoice"), ("mail", "letter")] {
            place.write(
                &format!("{area}/{word}{at}.py"),
                format!(
                    "from core.base import Base, helper\n\nclass {}{at}(Base):\n    def run(self):\n        helper()\n        def inner(): pass\n        inner()\n",
                    word.to_uppercase()
                ),
            );
            place.write(
                &format!("tests/test_{word}{at}.py"),
                format!(
                    "from {area}.{word}{at} import {0}{at}\n\ndef test(): {0}{at}().run()\n",
                    word.to_uppercase()
                ),
            );
        }
    }
    let map = |words: &[&str], view: &[&str]| {
        // Another database each time: nothing may hang on the order in which files were read.
        let other = Place { root: tempfile::tempdir().unwrap(), home: tempfile::tempdir().unwrap() };
        let limits = lathe_graph::GraphLimits { threads: 1 + words.len() * 3, ..Default::default() };
        let mut graph = lathe_graph::Graph::open(place.root.path(), other.home.path(), limits).unwrap();
        let (snapshot, _) = graph.fresh(&|_, _| ()).unwrap();
        let owned = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        let wish = MapRequest { budget: 200, words: owned(words), in_view: owned(view) };
        Query::new(&snapshot).map(&wish)
    };
    let (plain, files) = map(&[], &[]);
    assert_eq!(files[0], "core/base.py", "{plain}");
    assert!(!plain.contains("vendor/") && !plain.contains("inner()") && !plain.contains("tests/"), "{plain}");
    assert!(lathe_graph::tokens(&plain) <= 200, "{plain}");
    for _ in 0..3 {
        assert_eq!(map(&[], &[]).0, plain);
        assert_eq!(map(&["send", "letter"], &[]).0, map(&["send", "letter"], &[]).0);
    }
    let area = |files: &[String], area: &str| files.iter().filter(|file| file.starts_with(area)).count();
    let (_, letters) = map(&["send", "a", "letter"], &[]);
    assert!(area(&letters, "mail/") > 0 && area(&letters, "billing/") == 0, "{letters:?}");
    let (_, invoices) = map(&["invoice"], &[]);
    assert!(area(&invoices, "billing/") > 0 && area(&invoices, "mail/") == 0, "{invoices:?}");
    // A rare word counts for more than common ones: its file comes with what it builds on, before all others.
    let (_, rare) = map(&["run", "the", "letter17", "nosuchword"], &[]);
    assert_eq!(rare[..2], ["core/base.py", "mail/letter17.py"], "{rare:?}");
    let (_, viewed) = map(&[], &["mail/letter17.py"]);
    assert!(viewed.contains(&"mail/letter17.py".to_owned()), "{viewed:?}");
}

#[test]
fn impact_lists_callers_and_tests_by_distance() {
    let place = shop();
    let diff = "--- a/shop/price.py\n+++ b/shop/price.py\n@@ -5,2 +5,2 @@\n def price(item):\n-    return 1\n+    return item\n";
    assert_eq!(
        ask(&place, |q| q.impact(diff, 4)),
        "1 definitions touched, 3 reached, 1 of them tests\nshop/price.py:5-6 function price [distance 0]\n  def price(item)\nshop/price.py:3 function total [call, distance 1, exact]\n  return sum(price(i) for i in items)\nshop/cart.py:9 method Cart.sum [call, distance 2, exact]\n  return total(self.items)\ntests/test_cart.py:5 function test_sum [test, distance 3, exact]\n  assert cart.sum() == 0\n"
    );
}

#[test]
fn ckg_speaks_as_trae() {
    let place = shop();
    let mut graph = place.graph();
    let (snapshot, _) = graph.fresh(&|_, _| ()).unwrap();
    let root = place.root.path().canonicalize().unwrap();
    let root = root.display();
    let say = |search, name, body| ckg(&graph, &snapshot, search, name, body);
    assert_eq!(
        say(CkgSearch::Function, "price", true),
        format!(
            "Found 1 functions named price:\n1. {root}/shop/price.py:5-6\ndef price(item):\n    return item\n\n"
        )
    );
    assert_eq!(
        say(CkgSearch::ClassMethod, "sum", false),
        format!(
            "Found 2 class methods named sum:\n1. {root}/shop/cart.py:8-9 within class Cart\n2. {root}/shop/cart.py:12-13 within class Gift\n"
        )
    );
    assert_eq!(
        say(CkgSearch::Class, "Cart", false),
        format!(
            "Found 1 classes named Cart:\n1. {root}/shop/cart.py:4-9\nFields:\n- self.items = []\nMethods:\n- __init__(self)\n- sum(self)\n"
        )
    );
    assert_eq!(say(CkgSearch::Function, "nope", true), "No functions named nope found.");
    assert_eq!(say(CkgSearch::Function, "sum", true), "No functions named sum found.");
    place.write(
        "big.py",
        (0..40)
            .map(|at| format!("class C{at}:\n    def big(self):\n        return '{}'\n", "x".repeat(900)))
            .collect::<String>(),
    );
    let (snapshot, _) = graph.fresh(&|_, _| ()).unwrap();
    let text = ckg(&graph, &snapshot, CkgSearch::ClassMethod, "big", true);
    let (kept, word) = text.rsplit_once('\n').unwrap();
    assert_eq!(kept.chars().count(), 16_000);
    assert!(word.starts_with("<response clipped> ") && word.ends_with(" more entries not shown"), "{word}");
}

#[test]
fn impact_follows_what_a_diff_has_taken_away() {
    let text = "import os\n\ndef slug(value):\n    return value\n\nclass Cutter:\n    def cut(self): pass\n";
    let place = Place::with(&[
        ("lib/text.py", text),
        (
            "lib/filters.py",
            "from lib.text import slug as _slug\n\ndef slug(value):\n    return _slug(value)\n",
        ),
        ("lib/other.py", "def slug(value): pass\n\ndef own(): slug(1)\n"),
        ("lib/page.py", "from lib import text\n\ndef page(): text.Cutter().cut()\n"),
        ("tests/test_filters.py", "from lib.filters import slug\n\ndef test_slug(): slug(1)\n"),
    ]);
    let ask = |diff: &str| {
        let asked = lathe_graph::ask(&mut place.graph(), "impact", diff, 2000).unwrap();
        let items = asked.json["items"].as_array().unwrap().clone();
        let names =
            items.iter().map(|item| format!("{} {}", item["symbol"].as_str().unwrap(), item["distance"]));
        (names.collect::<Vec<String>>(), asked.text)
    };
    // After a rename, the users of the old name are reported, and not those of another definition of that name.
    place.write("lib/text.py", text.replace("def slug(", "def slug_of("));
    let renamed = "--- a/lib/text.py\n+++ b/lib/text.py\n@@ -3,2 +3,2 @@\n-def slug(value):\n+def slug_of(value):\n     return value\n";
    let (names, told) = ask(renamed);
    assert_eq!(names, ["slug_of 0", "slug 1", "test_slug 2"], "{told}");
    assert!(told.contains("1 definitions touched, 1 removed, 2 reached, 1 of them tests"), "{told}");
    assert!(told.contains("no longer there: slug (lib/text.py:3)"), "{told}");
    // A file that is gone: all that it defined, a class with its members as one.
    std::fs::remove_file(place.root.path().join("lib/text.py")).unwrap();
    let minus: String = text.lines().map(|line| format!("-{line}\n")).collect();
    let (names, told) = ask(&format!("--- a/lib/text.py\n+++ /dev/null\n@@ -1,7 +0,0 @@\n{minus}"));
    assert_eq!(names, ["slug 1", "page 1", "test_slug 2"], "{told}");
    assert!(told.contains("slug (lib/text.py:3), Cutter (lib/text.py:6)\n"), "{told}");
    // A diff of another text says nothing of what was.
    place.write("lib/text.py", "x = 1\n");
    assert_eq!(ask(renamed).0, Vec::<String>::new());
}
