//! Tools that are not Lathe's own: their place in the list, the schema, and the tool that calls later ones.

use std::sync::Arc;

use lathe_protocol::{BoxFuture, Raw, ToolChoice, ToolErrorKind, ToolKind, Toolset};
use lathe_tools::{Domain, Layer, OutsideTool, ToolProvider, Toolbox};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::bench::Bench;

/// Says what it was called with.
struct Echo;

impl ToolProvider for Echo {
    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: Raw,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move { Ok(format!("{name} {}", arguments.get())) })
    }

    fn program(&self) -> String {
        "echo".to_owned()
    }
}

fn tool(original: &str) -> OutsideTool {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    OutsideTool {
        name: format!("discovered_tool_{original}"),
        original: original.to_owned(),
        description: "A tool.".to_owned(),
        schema: Raw::from_serialize(&schema).unwrap(),
        kind: ToolKind::Other,
        failure: ToolErrorKind::DiscoveredToolExecutionError,
        provider: Arc::new(Echo),
        domain: Domain { layer: Layer::Field, name: "tools".to_owned(), about: String::new() },
    }
}

fn bench(choice: ToolChoice, outside: Vec<OutsideTool>) -> Bench {
    Bench::with(|services| Toolbox::for_session(Toolset::Lathe, Arc::new(services), choice, outside))
}

fn names(bench: &Bench) -> Vec<String> {
    bench.toolbox.own_specs().into_iter().map(|spec| spec.name).collect()
}

#[tokio::test]
async fn they_come_after_the_built_in_ones_and_bring_the_tool_that_calls_others() {
    let bench = bench(ToolChoice::default(), vec![tool("b"), tool("a"), tool("b")]);
    let names = names(&bench);
    assert_eq!(
        &names[names.len() - 4..],
        ["task_done", "discovered_tool_b", "discovered_tool_a", "call_tool"]
    );
    let listed = Toolbox::about_session(Toolset::Lathe, ToolChoice::default(), vec![tool("b")]);
    assert_eq!(
        listed.last().unwrap().spec.schema.to_value().unwrap(),
        json!({
            "type": "object",
            "properties": {
                "name": { "description": "The name of the tool.", "type": "string" },
                "arguments": { "description": "Its arguments.", "type": "object", "additionalProperties": true },
            },
            "required": ["name"],
        })
    );
    assert!(!Toolbox::specs(Toolset::Lathe).iter().any(|spec| spec.name == "call_tool"));
}

#[tokio::test]
async fn a_later_tool_is_called_by_name_with_its_own_schema() {
    let mut bench = bench(
        ToolChoice { exclude: vec!["discovered_tool_no".into()], ..ToolChoice::default() },
        vec![tool("a")],
    );
    let before = names(&bench);
    bench.toolbox.join(tool("late"));
    bench.toolbox.join(tool("no"));
    assert_eq!(names(&bench), before, "the list is frozen");
    let call = |name: &str| json!({ "name": name, "arguments": { "n": 7 } });
    let said = bench.told("discovered_tool_a", json!({ "n": 7 })).await;
    assert_eq!(said, "<result>\na {\"n\":7}\n</result>");
    for name in ["discovered_tool_late", "late", "discovered_tool_a"] {
        let said = bench.told("call_tool", call(name)).await;
        assert!(said.ends_with(" {\"n\":7}\n</result>"), "{said}");
    }
    let (kind, text) = bench.refused("call_tool", json!({ "name": "late", "arguments": {} })).await;
    assert_eq!(kind, ToolErrorKind::InvalidToolParams);
    assert!(text.contains("params must have required property 'n'"), "{text}");
    for name in ["discovered_tool_no", "view", "call_tool"] {
        assert_eq!(
            bench.refused("call_tool", call(name)).await.0,
            ToolErrorKind::ToolNotRegistered,
            "{name}"
        );
    }
    let prepared = bench.prepare("call_tool", call("late")).ok().unwrap();
    assert!(prepared.effects.opaque && prepared.effects.programs == ["echo"]);
    assert_eq!(prepared.name(), "call_tool");
}
