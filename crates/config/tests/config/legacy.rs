//! `trae_config.json`, the older form.

use crate::support::Setup;

fn with(json: &str) -> Setup {
    Setup::new().file("old.json", json).named("old.json")
}

#[test]
fn nothing_at_all_is_traes_built_in_model() {
    let setup = with("{}");
    let settings = setup.config().settings;
    let model = &settings.model;
    assert_eq!(settings.provider_kind(), Some("anthropic"));
    assert_eq!(model.name.as_deref(), Some("claude-sonnet-4-20250514"));
    assert_eq!(model.base_url.as_deref(), Some("https://api.anthropic.com"));
    assert_eq!((model.max_tokens, model.temperature), (Some(4096), Some(0.5)));
    assert_eq!((model.top_p, model.top_k, model.retries()), (Some(1.0), Some(0), 10));
    assert_eq!(settings.run.max_steps, 20);
    assert_eq!(settings.lakeview_model().unwrap(), settings.model);
    assert_eq!(setup.warnings(), [] as [String; 0]);
}

#[test]
fn an_entry_is_a_provider_and_its_model() {
    let setup = with(
        r#"{
  "default_provider": "openai",
  "max_steps": 5,
  "enable_lakeview": false,
  "model_providers": {
    "openai": {"model": "gpt", "api_key": "key-of-openai", "base_url": "http://o"},
    "anthropic": {"model": "claude", "api_key": "", "max_retries": 2}
  },
  "allow_mcp_servers": ["s"],
  "mcp_servers": {"s": {"command": "c"}}
}"#,
    );
    let settings = setup.config().settings;
    assert_eq!(settings.model.name.as_deref(), Some("gpt"));
    assert_eq!(settings.model.api_key.as_ref().unwrap().expose(), "key-of-openai");
    assert_eq!((settings.model.max_tokens, settings.model.parallel_tool_calls), (Some(1000), Some(false)));
    assert_eq!(settings.run.max_steps, 5);
    assert!(settings.lakeview_model().is_none());
    let claude = settings.model_named("anthropic").unwrap();
    assert_eq!((claude.name.as_deref(), claude.api_key, claude.max_retries), (Some("claude"), None, Some(2)));
    assert!(settings.allow_mcp_servers.is_empty() && settings.mcp_servers.is_empty());
    assert_eq!(
        setup.warnings(),
        ["old.json: not available in this version, and left out: allow_mcp_servers, mcp_servers"]
    );
    for (key, line) in
        [("model.name", 6), ("model.api_key", 6), ("run.max_steps", 3), ("models.anthropic.max_retries", 7)]
    {
        assert_eq!(setup.config().origin(key).unwrap().line, Some(line), "{key}");
    }
}

#[test]
fn the_model_for_summaries_is_honoured() {
    let json = |config: &str| {
        format!(
            r#"{{"model_providers": {{"anthropic": {{"model": "big", "api_key": "a"}}, "openai": {{"model": "gpt", "api_key": "o", "temperature": 0.1}}}},
"lakeview_config": {config}}}"#
        )
    };
    let model = |config: &str| {
        let model = with(&json(config)).config().settings.lakeview_model().unwrap();
        (model.provider.unwrap(), model.name.unwrap(), model.api_key.unwrap().expose().to_owned())
    };
    let own = |provider: &str, name: &str, key: &str| (provider.to_owned(), name.to_owned(), key.to_owned());
    assert_eq!(model("null"), own("anthropic", "big", "a"));
    assert_eq!(model(r#"{"model_provider": null, "model_name": null}"#), own("anthropic", "big", "a"));
    assert_eq!(model(r#"{"model_name": "small"}"#), own("anthropic", "small", "a"));
    assert_eq!(model(r#"{"model_provider": "openai"}"#), own("openai", "gpt", "o"));
    assert_eq!(model(r#"{"model_provider": "openai", "model_name": "mini"}"#), own("openai", "mini", "o"));
    assert_eq!(
        with(&json(r#"{"model_provider": "x"}"#)).warnings(),
        ["old.json:2: Model provider x not found"]
    );
}

#[test]
fn mistakes_are_told_as_in_yaml() {
    let setup = with(
        "{\n\"max_step\": 3,\n\"max_steps\": \"x\",\n\"model_providers\": {\"anthropic\": {\n\"modle\": 1, \"model\": \"a\",\n\"model\": \"b\"}}}",
    );
    assert_eq!(
        setup.warnings(),
        [
            "old.json:2: unknown key `max_step`; did you mean `max_steps`?",
            "old.json:6: `model_providers.anthropic.model` is given twice; the last one counts",
            "old.json:5: unknown key `model_providers.anthropic.modle`; did you mean `model`?",
            "old.json:3: `max_steps` must be a whole number of at least 1, but is text",
        ]
    );
    assert_eq!(setup.config().settings.model.name.as_deref(), Some("b"));
    assert_eq!(
        with(r#"{"default_provider": "x", "model_providers": {"y": {}}}"#).errors(),
        ["old.json:1: Model provider x not found"]
    );
    assert_eq!(with("{\n\"a\": \n}").errors(), ["old.json:3: syntax error: expected value"]);
    assert_eq!(with("").errors(), ["old.json:1: syntax error: EOF while parsing a value"]);
    assert_eq!(with(&"[".repeat(100_000)).errors(), ["old.json:1: syntax error: recursion limit exceeded"]);
}
