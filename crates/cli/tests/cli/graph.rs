//! The code graph through the binary: tool, command and shell give the same results, and no command waits for the
//! index.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::{lathe, result};

const CART: &str = "from shop.price import total\n\nclass Cart:\n    \"\"\"Holds items.\"\"\"\n    def __init__(self):\n        self.items = []\n    def sum(self):\n        return total(self.items)\n\nclass Gift(Cart):\n    def sum(self):\n        return 0\n";
const PRICE: &str = "def total(items):\n    \"\"\"Adds up.\"\"\"\n    return sum(price(i) for i in items)\n\ndef price(item):\n    return item\n";
const TEST: &str =
    "from shop.cart import Cart\n\ndef test_sum():\n    cart = Cart()\n    assert cart.sum() == 0\n";

fn shop() -> TempRepo {
    TempRepo::new(&[("shop/cart.py", CART), ("shop/price.py", PRICE), ("tests/test_cart.py", TEST)])
}

fn many(count: usize) -> TempRepo {
    let repo = TempRepo::new(&[]);
    for at in 0..count {
        repo.write(&format!("f{at:03}.py"), format!("def f{at}(): return {at}\n"));
    }
    repo
}

fn graphs(home: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(home.join("graph")).into_iter().flatten();
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "db"))
        .collect()
}

#[test]
fn a_question_that_cannot_be_asked_says_what_it_wants() {
    let repo = shop();
    for (words, said) in [
        (&["find"][..], "`find` wants a name: `find WHAT`"),
        (&["outline", " "], "`outline` wants a file: `outline WHAT`"),
        (&["where", "x"], "there is no question `where`; there are find, def, "),
    ] {
        let ran = lathe().in_dir(repo.path()).args(["graph", "query"]).args(words).run().expect_code(2);
        assert!(ran.stderr.contains(said), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn all_eleven_questions_are_answered_alike_by_command_tool_and_shell() {
    let repo = shop();
    let lathe = lathe().in_dir(repo.path());
    let questions = [
        ("find", "car", "1 definitions like car\nshop/cart.py:3-8 class Cart\n"),
        ("def", "Cart.sum", "1 definitions of Cart.sum\nshop/cart.py:7-8 method Cart.sum\n"),
        ("refs", "price", "1 uses of price\nshop/price.py:3 function total [call, exact]\n"),
        ("callers", "total", "1 callers of total\nshop/cart.py:8 method Cart.sum [exact]\n"),
        ("callees", "total", "total calls 1\nshop/price.py:5-6 function price [exact]\n"),
        ("implements", "Cart", "1 made from Cart\nshop/cart.py:10 class Gift [inherit, distance 1, exact]\n"),
        ("imports", "shop/price.py", "shop/price.py imports 0 files and is imported by 1\nshop/cart.py:1 ["),
        ("tests-of", "price", "1 tests reach price\ntests/test_cart.py:5 function test_sum ["),
        (
            "outline",
            "shop/price.py",
            "shop/price.py: 6 lines, 2 definitions\nshop/price.py:1-3 function total\n",
        ),
        ("map", "gift", "shop/cart.py\n  3 class Cart\n"),
        ("impact", "price", "1 definitions touched, 3 reached, 1 of them tests\n"),
    ];
    for (question, target, expected) in questions {
        let asked = lathe.clone().args(["graph", "query", question, target]).run().expect_code(0).stdout;
        assert!(asked.starts_with(expected), "{question}: {asked}");
        let arguments = json!({ "command": question, "target": target }).to_string();
        let tool = lathe.clone().args(["tool", "run", "code", "--json", &arguments]).run().expect_code(0);
        assert_eq!(tool.stdout, format!("<code>\n{asked}</code>\n"), "{question}");
        let line = format!("code {question} {target}");
        let shell = lathe.clone().args(["shell", "-c", &line]).run().expect_code(0);
        assert_eq!(shell.stdout, asked, "{question}");
    }
}

#[test]
fn traes_three_searches_have_its_format_and_clipping() {
    let repo = shop();
    let root = repo.path().canonicalize().unwrap();
    let root = root.display();
    let lathe = lathe().in_dir(repo.path());
    let search = |arguments: Value| {
        let arguments = arguments.to_string();
        let run = ["tool", "run", "ckg", "--json", arguments.as_str()];
        lathe.clone().args(run).run()
    };
    let found = |command: &str, identifier: &str, body: bool| {
        let given = json!({ "command": command, "path": ".", "identifier": identifier, "print_body": body });
        search(given).expect_code(0).stdout
    };
    assert_eq!(
        found("search_function", "price", true),
        format!(
            "Found 1 functions named price:\n1. {root}/shop/price.py:5-6\ndef price(item):\n    return item\n\n"
        )
    );
    assert_eq!(
        found("search_class", "Cart", false),
        format!(
            "Found 1 classes named Cart:\n1. {root}/shop/cart.py:3-8\nFields:\n- self.items = []\nMethods:\n- __init__(self)\n- sum(self)\n"
        )
    );
    assert_eq!(
        found("search_class_method", "sum", false),
        format!(
            "Found 2 class methods named sum:\n1. {root}/shop/cart.py:7-8 within class Cart\n2. {root}/shop/cart.py:11-12 within class Gift\n"
        )
    );
    assert_eq!(found("search_function", "nope", true).trim_end(), "No functions named nope found.");
    let missing = search(json!({ "command": "search_function", "path": "no/where", "identifier": "x" }));
    assert!(missing.expect_code(1).stdout.contains("Codebase path no/where does not exist"));
    let big: String = (0..40)
        .map(|at| format!("class C{at}:\n    def big(self):\n        return '{}'\n", "x".repeat(900)))
        .collect();
    repo.write("big.py", big);
    let clipped = found("search_class_method", "big", true);
    let (kept, word) = clipped.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(kept.chars().count(), 16_000);
    assert!(word.starts_with("<response clipped> ") && word.ends_with(" more entries not shown"), "{word}");
}

#[test]
fn a_session_has_its_folder_indexed_beside_its_work() {
    let repo = many(150);
    let lathe = lathe();
    let model = FakeModel::serving(
        Script::new()
            .answer(call("c1", "bash", json!({ "command": "sleep 2" })))
            .answer(call("c2", "code", json!({ "command": "def", "target": "f149" })))
            .answer(done("ok")),
    );
    let arguments = ["run", "do it", "--mode", "full-auto", "--output", "stream-json"];
    let ran = lathe.clone().in_dir(repo.path()).args(arguments).with_model(&model).run().expect_code(0);
    assert!(
        result(&ran.events(), "c2").contains("1 definitions of f149\nf149.py:1 function f149\n"),
        "{}",
        result(&ran.events(), "c2")
    );
    assert_eq!(graphs(&lathe.home()).len(), 1);
    let built = lathe.clone().args(["graph", "build", "--json"]).arg(repo.path()).run().expect_code(0);
    let built: Value = serde_json::from_str(&built.stdout).unwrap();
    assert_eq!((&built["files"], &built["parsed"]), (&json!(150), &json!(0)));
}

#[test]
fn nothing_is_indexed_for_a_tool_that_does_not_need_it_or_where_no_source_is() {
    let repo = many(3);
    let lathe = lathe();
    let view = ["tool", "run", "view", "--json", "{\"path\":\"f001.py\"}"];
    lathe.clone().in_dir(repo.path()).args(view).run().expect_code(0);
    let empty = TempRepo::new(&[("notes.txt", "nothing\n")]);
    let model = FakeModel::serving(
        Script::new().answer(call("c1", "bash", json!({ "command": "sleep 1" }))).answer(done("ok")),
    );
    let run = ["run", "do it", "--mode", "full-auto"];
    lathe.clone().in_dir(empty.path()).args(run).with_model(&model).run().expect_code(0);
    assert_eq!(graphs(&lathe.home()), Vec::<std::path::PathBuf>::new());
}

#[test]
fn an_answer_during_a_build_says_that_it_is_partial() {
    let repo = many(100);
    std::thread::sleep(Duration::from_millis(120));
    let lathe = lathe().in_dir(repo.path());
    lathe.clone().args(["graph", "build"]).run().expect_code(0);
    for at in 0..90 {
        repo.write(&format!("f{at:03}.py"), format!("def g{at}(): return {at}\n"));
    }
    let lock = File::create(graphs(&lathe.home())[0].with_extension("db.lock")).unwrap();
    lock.try_lock().unwrap();
    let word = "the index is still being built: 10 of 100 files; this answer is from what is there";
    let asked = lathe.clone().args(["graph", "query", "def", "f95"]).run().expect_code(0);
    assert_eq!(
        asked.stdout,
        format!("1 definitions of f95\nf095.py:1 function f95\n  def f95(): return 95\nnote: {word}\n")
    );
    let search = json!({ "command": "search_function", "path": ".", "identifier": "f1" }).to_string();
    let asked = lathe.clone().args(["tool", "run", "ckg", "--json", &search]).run().expect_code(0);
    assert_eq!(asked.stdout.trim_end(), format!("No functions named f1 found.\n({word})"));
    drop(lock);
    let asked = lathe.clone().args(["graph", "query", "def", "g1"]).run().expect_code(0);
    assert!(!asked.stdout.contains("note:"), "{}", asked.stdout);
}

#[test]
fn graphs_nobody_asked_for_a_month_are_collected() {
    let (old, used) = (many(2), many(3));
    let lathe = lathe();
    lathe.clone().in_dir(old.path()).args(["graph", "build"]).run().expect_code(0);
    let path = graphs(&lathe.home())[0].clone();
    let long_ago = SystemTime::now() - Duration::from_secs(31 * 86_400);
    lathe.clone().in_dir(used.path()).args(["graph", "build"]).run().expect_code(0);
    File::options().append(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    let collect = |arguments: &[&str]| -> Value {
        let ran = lathe.clone().args(["gc", "--json"]).args(arguments).run().expect_code(0);
        serde_json::from_str(&ran.stdout).unwrap()
    };
    let planned = collect(&["--dry-run"]);
    assert_eq!((&planned["other"], graphs(&lathe.home()).len()), (&json!(1), 2));
    assert_eq!(collect(&[]), {
        let mut planned = planned;
        planned["removed"] = json!(true);
        planned
    });
    let left = graphs(&lathe.home());
    assert!(left.len() == 1 && !left.contains(&path), "{left:?}");
}
