//! The code graph as a session's tools ask it: one that stays open, watches, and never answers from what was.

use serde_json::json;

use crate::bench::{Bench, lathe, trae};

const SHOP: &str =
    "def total(items):\n    return sum(price(i) for i in items)\n\ndef price(item):\n    return item\n";

async fn code(bench: &mut Bench, command: &str, target: &str) -> String {
    bench.told("code", json!({ "command": command, "target": target })).await
}

#[tokio::test]
async fn an_answer_is_right_after_every_kind_of_change() {
    let mut bench = lathe();
    std::fs::write(bench.root.join("shop.py"), SHOP).unwrap();
    let callers = "<code>\n1 callers of price\nshop.py:2 function total [exact]\n  return sum(price(i) for i in items)\n</code>";
    assert_eq!(code(&mut bench, "callers", "price").await, callers);
    assert_eq!(code(&mut bench, "callers", "price").await, callers);
    // By a tool, by the shell, and by another process; asked at once, within one tick of the clock.
    bench.told("write", json!({ "path": "new.py", "content": "def cost(): return price(1)\n" })).await;
    assert!(code(&mut bench, "def", "cost").await.contains("new.py:1 function cost\n"));
    let line = "mkdir deep && mv new.py deep/ && echo 'def gone(): pass' > shop.py";
    bench.told("bash", json!({ "command": line })).await;
    assert!(code(&mut bench, "def", "cost").await.contains("deep/new.py:1 function cost\n"));
    assert!(code(&mut bench, "def", "price").await.starts_with("<code>\nnothing named price\n"));
    for round in 0..20 {
        std::fs::write(bench.root.join("shop.py"), format!("def name{round:02}(): pass\n")).unwrap();
        let answer = code(&mut bench, "outline", "shop.py").await;
        assert!(answer.contains(&format!("function name{round:02}\n")), "{round}: {answer}");
    }
    std::fs::remove_dir_all(bench.root.join("deep")).unwrap();
    assert!(code(&mut bench, "def", "cost").await.starts_with("<code>\nnothing named cost\n"));
}

#[tokio::test]
async fn trae_asks_about_a_folder_inside_only() {
    let mut bench = trae();
    std::fs::create_dir(bench.root.join("inside")).unwrap();
    std::fs::write(bench.root.join("inside/shop.py"), SHOP).unwrap();
    let root = bench.root.display().to_string();
    let mut search = async |path: String| {
        let given =
            json!({ "command": "search_function", "path": path, "identifier": "price", "print_body": false });
        bench.call("ckg", given).await.text
    };
    assert_eq!(
        search(format!("{root}/inside")).await,
        format!("Found 1 functions named price:\n1. {root}/inside/shop.py:4-5\n")
    );
    assert!(!search("/usr".to_owned()).await.starts_with("Found"));
}

#[tokio::test]
async fn issue_15_the_graph_tells_nothing_of_what_no_model_is_to_see() {
    let mut bench = lathe();
    bench.put(".latheignore", "private/\nhidden.py\n");
    bench.put("private/y.py", "def zzsecret(): return 'CANARY'\n");
    bench.put("hidden.py", "def zzhidden(): return 'CANARY'\n");
    bench.put("open.py", "def zzopen(): return 1\n");
    for name in ["zzsecret", "zzhidden"] {
        for command in ["def", "find", "refs", "callers"] {
            let told = code(&mut bench, command, name).await;
            assert!(!told.contains("CANARY") && !told.contains("private/y.py"), "{command} {name}: {told}");
        }
    }
    assert!(code(&mut bench, "def", "zzopen").await.contains("open.py:1"));
}
