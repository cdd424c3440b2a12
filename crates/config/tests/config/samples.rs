//! The shapes of all the samples in Trae's documents load, named on the command line as Trae would.

use crate::support::Setup;

fn sample(name: &str) -> Setup {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/samples").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    Setup::new().file(name, &text).named(name)
}

#[test]
fn the_sample_of_the_guide() {
    let setup = sample("guide.yaml");
    assert_eq!(setup.warnings(), ["guide.yaml: Lakeview is enabled but no lakeview config provided"]);
    for (key, shown) in [
        ("model.provider", "anthropic from Trae file guide.yaml:23"),
        ("model.name", "claude-sonnet-4-20250514 from Trae file guide.yaml:24"),
        ("model.max_tokens", "4096 from Trae file guide.yaml:25"),
        ("model.temperature", "0.5 from Trae file guide.yaml:26"),
        ("model.top_p", "-"),
        ("model.api_key", "set (…uide) from Trae file guide.yaml:15"),
        ("run.max_steps", "200 from Trae file guide.yaml:6"),
        ("providers.openai.provider", "openai from Trae file guide.yaml:19"),
    ] {
        assert_eq!(setup.shown(key), shown, "{key}");
    }
    assert_eq!(setup.config().settings.run.tools.unwrap().len(), 4);
}

#[test]
fn the_example_file() {
    let setup = sample("example.yaml");
    assert_eq!(
        setup.warnings(),
        [
            "example.yaml:27: unknown key `model_providers.elsewhere.model`",
            "example.yaml:29: unknown key `model_providers.elsewhere.max_tokens`",
            "example.yaml: not available in this version, and left out: allow_mcp_servers, mcp_servers",
        ]
    );
    let settings = setup.config().settings;
    assert_eq!(settings.model.name.as_deref(), Some("claude-big"));
    assert_eq!(settings.lakeview_model().unwrap().name.as_deref(), Some("claude-small"));
    let setup = setup.flag("model.provider", "elsewhere", "--provider");
    assert_eq!(setup.shown("model.base_url"), "https://models.example/v1 from Trae file example.yaml:28");
}

#[test]
fn the_sample_for_evaluations() {
    let setup = sample("evaluation.yaml");
    assert_eq!(
        setup.warnings(),
        [
            "evaluation.yaml: Lakeview is enabled but no lakeview config provided",
            "evaluation.yaml:4: `agents.trae_agent.enable_lakeview` must be true or false, but is \"flase\"; \
             did you mean `false`?",
        ]
    );
    assert_eq!(setup.config().settings.model.parallel_tool_calls, Some(true));
}

#[test]
fn the_older_json_file() {
    let setup = sample("example.json");
    assert_eq!(setup.warnings(), ["example.json: not available in this version, and left out: mcp_servers"]);
    assert_eq!(setup.shown("model.name"), "claude-x from Trae file example.json:24");
    assert_eq!(setup.config().settings.models.len(), 3);
    let setup = setup.flag("model.provider", "azure", "--provider");
    assert_eq!(setup.shown("model.api_version"), "2024-03-01-preview from Trae file example.json:34");
}
