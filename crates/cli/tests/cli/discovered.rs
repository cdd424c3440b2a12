//! Tools that a program of the user offers, in a session and by hand.

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::{bodies, lathe, result, run_in};

const OFFERS: &str = r#"echo discovered >> discoveries
cat <<'END'
[{"functionDeclarations": [
  {"name": "weather", "description": "Says the weather.",
   "parametersJsonSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
  {"name": "broken"}
]}]
END
"#;

const CALLS: &str = r#"case $1 in
  weather) printf 'sunny: '; cat;;
  broken) echo part; echo bad >&2; exit 3;;
esac
"#;

fn repo() -> TempRepo {
    TempRepo::new(&[("offers.sh", OFFERS), ("calls.sh", CALLS)])
}

/// With the two commands in the user's own file.
fn configured(lathe: Lathe) -> Lathe {
    std::fs::create_dir_all(lathe.home()).unwrap();
    let text = "[tools]\ndiscovery_command = \"sh offers.sh\"\ncall_command = \"sh 'calls.sh'\"\nexclude = [\"glob\"]\n";
    std::fs::write(lathe.home().join("config.toml"), text).unwrap();
    lathe
}

fn names(specs: &Value, key: &str) -> Vec<String> {
    let name = |spec: &Value| if key.is_empty() { spec["name"].clone() } else { spec[key]["name"].clone() };
    specs.as_array().unwrap().iter().map(|spec| name(spec).as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_model_is_given_them_after_the_built_in_ones_and_a_failure_has_five_lines() {
    let repo = repo();
    let script = Script::new()
        .answer(call("c1", "discovered_tool_weather", json!({ "city": "Ulm" })))
        .answer(call("c2", "discovered_tool_weather", json!({})))
        .answer(call("c3", "discovered_tool_broken", json!({})))
        .answer(call("c4", "call_tool", json!({ "name": "weather", "arguments": { "city": "Bonn" } })))
        .answer(done("ok"));
    let model = FakeModel::serving(script);
    let events = configured(run_in(repo.path(), &model)).run().expect_code(0).events();
    assert_eq!(result(&events, "c1"), "<result>\nsunny: {\"city\":\"Ulm\"}\n</result>");
    assert!(result(&events, "c2").contains("params must have required property 'city'"));
    assert_eq!(
        result(&events, "c3"),
        "Stdout: part\n\nStderr: bad\n\nError: (none)\nExit Code: 3\nSignal: (none)"
    );
    assert_eq!(bodies(&events, "call_finished")[2]["error"]["kind"], "discovered_tool_execution_error");
    assert!(result(&events, "c4").contains("sunny: {\"city\":\"Bonn\"}"));
    let tools = names(&model.requests()[0].json()["tools"], "function");
    assert!(
        tools.ends_with(
            &["discovered_tool_weather", "discovered_tool_broken", "call_tool"].map(str::to_owned)
        ),
        "{tools:?}"
    );
    assert!(!tools.contains(&"glob".to_owned()), "it is excluded");
    assert_eq!(repo.read("discoveries").lines().count(), 1);
}

#[test]
fn without_full_auto_they_are_denied_and_without_configuration_nothing_is_started() {
    let repo = repo();
    let script = || {
        Script::new()
            .answer(call("c1", "discovered_tool_weather", json!({ "city": "Ulm" })))
            .answer(done("ok"))
    };
    let model = FakeModel::serving(script());
    let run = |model: &FakeModel| {
        lathe().in_dir(repo.path()).args(["run", "do it", "--output", "stream-json"]).with_model(model)
    };
    let events = configured(run(&model)).run().events();
    let finished = &bodies(&events, "call_finished")[0];
    assert_eq!(finished["error"]["kind"], "policy_violation", "{finished}");
    let (before, model) = (repo.read("discoveries"), FakeModel::serving(script()));
    let events = run(&model).run().events();
    assert_eq!(bodies(&events, "call_finished")[0]["error"]["kind"], "tool_not_registered");
    assert_eq!(repo.read("discoveries"), before);
}

#[test]
fn people_see_and_run_them_too() {
    let repo = repo();
    let ran = configured(lathe().in_dir(repo.path()).args(["tools", "--json"])).run().expect_code(0);
    let listed = names(&serde_json::from_str(&ran.stdout).unwrap(), "");
    assert!(listed.contains(&"discovered_tool_broken".to_owned()), "{listed:?}");
    let tool = |name: &str| {
        let arguments = json!({ "city": "Ulm" }).to_string();
        configured(lathe().in_dir(repo.path()).args(["tool", "run", name, "--json", &arguments]))
    };
    let ran = tool("discovered_tool_weather").run().expect_code(0);
    assert!(ran.stdout.contains("sunny: {\"city\":\"Ulm\"}"), "{}", ran.stdout);
    tool("discovered_tool_broken").run().expect_code(1);
    let ran = tool("discovered_tool_none").run().expect_code(2);
    assert!(ran.stderr.contains("there is no tool `discovered_tool_none`"), "{}", ran.stderr);
    let ran = tool("discovered_tool_weather").args(["--mode", "default"]).run().expect_code(1);
    assert!(ran.stdout.contains("denied by policy"), "{}", ran.stdout);
    repo.write("offers.sh", "echo no list; exit 1");
    let ran = tool("discovered_tool_weather").run().expect_code(2);
    assert!(
        ran.stderr.contains("the tool discovery command `sh offers.sh` failed: exit code 1"),
        "{}",
        ran.stderr
    );
}
