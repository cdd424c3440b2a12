//! `trae_config.yaml`: what it means here, and what is wrong with it.

use crate::support::Setup;

fn with(agents: &str, providers: &str, models: &str, rest: &str) -> Setup {
    let yaml = format!("{agents}\n{providers}\n{models}\n{rest}\n");
    Setup::new().trae(&yaml).named("trae_config.yaml")
}

const AGENT: &str = "agents: {trae_agent: {model: m, max_steps: 9, enable_lakeview: no}}";
const PROVIDERS: &str = "model_providers: {p: {provider: openai, api_key: k}}";
const MODELS: &str = "models: {m: {model_provider: p, model: x}}";

#[test]
fn every_field_has_its_place() {
    let setup = Setup::new()
        .trae(
            "agents:
  trae_agent:
    model: m
    max_steps: 9
    enable_lakeview: yes
    tools: [bash, ckg]
model_providers:
  p:
    api_key: key-of-p-12345
    provider: azure
    base_url: http://p
    api_version: 2024-03-01
models:
  m:
    model_provider: p
    model: gpt-5
    temperature: 0.5
    top_p: 1
    top_k: 0
    parallel_tool_calls: off
    max_retries: 10
    max_tokens: 4096
    supports_tool_calling: True
    candidate_count: 2
    stop_sequences: [a, b]
    max_completion_tokens: 5000
  s: {model_provider: p, model: small}
lakeview:
  model: s
mcp_servers:
  one: {command: c, args: [a], env: {K: v}, cwd: /x, timeout: 5, trust: true, description: d}
  two: {url: u, http_url: h, headers: {A: b}, tcp: t}
allow_mcp_servers: [one]
",
        )
        .named("trae_config.yaml");
    // MCP servers come with a later version; what is secret in them is hidden already.
    assert_eq!(
        setup.warnings(),
        ["trae_config.yaml: not available in this version, and left out: mcp_servers, allow_mcp_servers"]
    );
    let config = setup.config();
    let keys: Vec<(String, &str)> =
        config.keys().into_iter().map(|(name, key)| (name, key.expose())).collect();
    assert!(keys.contains(&("K".to_owned(), "v")) && keys.contains(&("A".to_owned(), "b")), "{}", keys.len());
    let settings = setup.config().settings;
    let model = &settings.model;
    assert_eq!(model.provider.as_deref(), Some("p"));
    assert_eq!(settings.provider_kind(), Some("azure"));
    assert_eq!(model.name.as_deref(), Some("gpt-5"));
    assert_eq!(model.base_url.as_deref(), Some("http://p"));
    assert_eq!(model.api_version.as_deref(), Some("2024-03-01"));
    assert_eq!(model.api_key.as_ref().unwrap().expose(), "key-of-p-12345");
    assert_eq!((model.temperature, model.top_p, model.top_k), (Some(0.5), Some(1.0), Some(0)));
    assert_eq!((model.parallel_tool_calls, model.supports_tool_calling), (Some(false), Some(true)));
    assert_eq!((model.max_retries, model.retries()), (Some(10), 10));
    assert_eq!((model.max_tokens, model.output_limit()), (Some(4096), Some(5000)));
    assert_eq!(model.candidate_count, Some(2));
    assert_eq!(model.stop_sequences.as_deref().unwrap(), ["a", "b"]);
    assert_eq!(settings.run.max_steps, 9);
    assert_eq!(settings.run.tools.as_deref().unwrap(), ["bash", "ckg"]);
    assert!(settings.lakeview.enabled);
    let summaries = settings.lakeview_model().unwrap();
    assert_eq!((summaries.name.as_deref(), summaries.base_url.as_deref()), (Some("small"), Some("http://p")));
    assert!(settings.mcp_servers.is_empty() && settings.allow_mcp_servers.is_empty());
    for (key, line) in [
        ("model.name", 16),
        ("model.api_key", 9),
        ("run.max_steps", 4),
        ("run.tools", 6),
        ("lakeview.enabled", 5),
        ("lakeview.model", 29),
        ("models.s.name", 27),
        ("providers.p.base_url", 11),
    ] {
        assert_eq!(setup.config().origin(key).unwrap().line, Some(line), "{key}");
    }
}

#[test]
fn flags_and_variables_work_as_with_trae() {
    let setup = with(AGENT, PROVIDERS, MODELS, "").variable("OPENAI_API_KEY", "of-variable");
    assert_eq!(setup.shown("model.api_key"), "set from variable OPENAI_API_KEY");
    let setup = setup.flag("model.name", "other", "--model").flag("run.max_steps", 3, "--max-steps");
    let settings = setup.config().settings;
    assert_eq!(settings.model.name.as_deref(), Some("other"));
    assert_eq!(settings.model.provider.as_deref(), Some("p"));
    assert_eq!(settings.run.max_steps, 3);
}

#[test]
fn a_models_own_name_is_not_taken_for_another_entry() {
    let models = "models: {m: {model_provider: p, model: n}, n: {model_provider: p, model: deeper}}";
    assert_eq!(with(AGENT, PROVIDERS, models, "").config().settings.model.name.as_deref(), Some("n"));
}

#[test]
fn empty_sections_and_anchors_are_read() {
    let rest = "mcp_servers:\nallow_mcp_servers:\nlakeview:\n";
    assert_eq!(with(AGENT, PROVIDERS, MODELS, rest).warnings(), [] as [String; 0]);
    let models = "models:\n  a: &a {model_provider: p, model: base, temperature: 0.7}\n  m:\n    <<: *a\n    model: own\n";
    let settings = with(AGENT, PROVIDERS, models, "").config().settings;
    assert_eq!((settings.model.name.as_deref(), settings.model.temperature), (Some("own"), Some(0.7)));
    let models = "models:\n  a: &a {model_provider: p, model: base}\n  m: *a\n";
    let settings = with(AGENT, PROVIDERS, models, "").config().settings;
    assert_eq!(settings.model.name.as_deref(), Some("base"));
}

#[test]
fn unusable_sections_are_errors_in_traes_words() {
    let none = "";
    for (agents, providers, models, error) in [
        (none, PROVIDERS, MODELS, "No agent configs provided"),
        ("agents:", PROVIDERS, MODELS, "No agent configs provided"),
        ("agents: {other: {model: m}}", PROVIDERS, MODELS, "Unknown agent: other"),
        (
            "agents: {trae_agent: {max_steps: 1, enable_lakeview: no}}",
            PROVIDERS,
            MODELS,
            "No model provided for trae_agent",
        ),
        ("agents: {trae_agent: {model: q, enable_lakeview: no}}", PROVIDERS, MODELS, "Model q not found"),
        (AGENT, none, MODELS, "No model providers provided"),
        (AGENT, PROVIDERS, none, "No models provided"),
        (AGENT, PROVIDERS, "models: {m: {model_provider: z, model: x}}", "Model provider z not found"),
    ] {
        let errors = with(agents, providers, models, "").errors();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].ends_with(&format!(": {error}")), "{errors:?}");
        // The same file cannot stop a run that it was not named for.
        let yaml = format!("{agents}\n{providers}\n{models}\n");
        let unnamed = Setup::new().trae(&yaml).warnings();
        assert_eq!(
            unnamed.last().unwrap(),
            "trae_config.yaml: the file is ignored, because it cannot be used and was not named by the user"
        );
        assert!(unnamed.iter().any(|warning| warning.ends_with(error)), "{unnamed:?}");
    }
    assert_eq!(
        Setup::new().trae("").named("trae_config.yaml").errors(),
        [
            "trae_config.yaml: No model providers provided",
            "trae_config.yaml: No models provided",
            "trae_config.yaml: No agent configs provided",
        ]
    );
}

#[test]
fn what_can_be_done_without_is_a_warning() {
    let agents = "agents: {trae_agent: {model: m}, helper: {model: m}}";
    assert_eq!(with(agents, PROVIDERS, MODELS, "").warnings(), ["trae_config.yaml:1: Unknown agent: helper"]);
    let on = "agents: {trae_agent: {model: m}}";
    assert_eq!(
        with(on, PROVIDERS, MODELS, "lakeview: {model: q}").warnings(),
        ["trae_config.yaml:4: Model q not found"]
    );
    assert_eq!(
        with(on, PROVIDERS, MODELS, "lakeview: {modle: m}").warnings(),
        [
            "trae_config.yaml:4: unknown key `lakeview.modle`; did you mean `model`?",
            "trae_config.yaml:4: No model provided for lakeview",
        ]
    );
    let other = "models: {m: {model_provider: p, model: x}, n: {model_provider: z, model: y}}";
    assert_eq!(
        with(AGENT, PROVIDERS, other, "").warnings(),
        ["trae_config.yaml:3: Model provider z not found"]
    );
    // Summaries without a model of their own are written by the agent's.
    let settings = with(on, PROVIDERS, MODELS, "").config().settings;
    assert_eq!(settings.lakeview_model().unwrap(), settings.model);
}

#[test]
fn unknown_keys_and_wrong_types_are_warnings_with_line_and_suggestion() {
    let setup = Setup::new()
        .trae(
            "agents:
  trae_agent:
    model: m
    max_step: 9
    max_steps: many
    enable_lakeview: no
model_providers:
  p: {provider: openai, api_key: k, base_ulr: x}
models:
  m:
    model_provider: p
    model: x
    temperature: hot
    top_k: 1.5
    tpo_p: 1
mcp_server: {}
mcp_servers:
  s: {command: c, arg: [x], args: x}
allow_mcp_servers: s
",
        )
        .named("trae_config.yaml");
    assert_eq!(
        setup.warnings(),
        [
            "trae_config.yaml:16: unknown key `mcp_server`; did you mean `mcp_servers`?",
            "trae_config.yaml:8: unknown key `model_providers.p.base_ulr`; did you mean `base_url`?",
            "trae_config.yaml:15: unknown key `models.m.tpo_p`; did you mean `top_p`?",
            "trae_config.yaml:4: unknown key `agents.trae_agent.max_step`; did you mean `max_steps`?",
            "trae_config.yaml:18: unknown key `mcp_servers.s.arg`; did you mean `args`?",
            "trae_config.yaml:5: `agents.trae_agent.max_steps` must be a whole number of at least 1, but is text",
            "trae_config.yaml:13: `models.m.temperature` must be a number from 0 to 2, but is text",
            "trae_config.yaml:14: `models.m.top_k` must be a whole number of at least 0, but is a number",
            "trae_config.yaml: not available in this version, and left out: mcp_servers, allow_mcp_servers",
        ]
    );
    let settings = setup.config().settings;
    assert_eq!((settings.run.max_steps, settings.model.temperature), (100, None));
    assert_eq!(settings.model.name.as_deref(), Some("x"));
}

#[test]
fn broken_yaml_is_an_error_with_its_line() {
    for (yaml, line) in [
        ("agents:\n  trae_agent: [\n", 2),
        ("agents:\n  trae_agent:\n   a: 1\n  - b\n", 4),
        ("a: *nobody\n", 1),
    ] {
        let errors = Setup::new().trae(yaml).named("trae_config.yaml").errors();
        assert_eq!(errors.len(), 1);
        assert!(errors[0].starts_with(&format!("trae_config.yaml:{line}: syntax error: ")), "{errors:?}");
        assert!(!errors[0].contains(" line "), "{errors:?}");
    }
    let deep = format!("agents: {}{}", "[".repeat(5000), "]".repeat(5000));
    assert_eq!(Setup::new().trae(&deep).named("trae_config.yaml").errors().len(), 1);
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n\
                d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\n\
                g: [*f,*f,*f,*f,*f,*f,*f,*f]\n";
    assert!(Setup::new().trae(bomb).named("trae_config.yaml").load().is_err());
}

#[test]
fn a_missing_yaml_file_gives_way_to_json_and_then_to_traes_message() {
    let json = r#"{"model_providers": {"anthropic": {"model": "of-json"}}}"#;
    let setup = Setup::new().file("x.json", json).named("x.yaml");
    assert_eq!(setup.warnings(), ["YAML config not found, using JSON config: x.json"]);
    assert_eq!(setup.config().settings.model.name.as_deref(), Some("of-json"));
    let setup = Setup::new().file("trae_config.json", json).named("trae_config.yaml");
    assert_eq!(setup.config().settings.model.name.as_deref(), Some("of-json"));

    let message =
        "Config file not found. Please specify a valid config file in the command line option --config-file";
    for name in ["missing.yaml", "missing.yml", "missing.json", "missing"] {
        let said = format!("{message}\n  {name} is not there; --config-file names it");
        assert_eq!(Setup::new().named(name).errors(), [said]);
    }
    // A file that was not named need not exist.
    assert_eq!(Setup::new().warnings(), [] as [String; 0]);
}

/// A server reads such a file on a worker whose stack is small: an overflow ends the process with all its sessions.
#[test]
fn text_of_any_depth_is_read_or_refused_on_a_small_stack() {
    for levels in [10, 15, 16, 17, 60, 100, 10_000, 200_000] {
        for (open, close) in [("- ", ""), ("[", "]"), ("{a: ", "}")] {
            let text = format!("{}x{}", open.repeat(levels), close.repeat(levels));
            let read = std::thread::Builder::new().stack_size(1 << 20).spawn(move || {
                let setup = Setup::new().trae(&text).named("trae_config.yaml");
                setup.load().is_err()
            });
            // A Trae file is a table, so each of these is an error: the point is that there is an answer.
            assert!(read.unwrap().join().unwrap(), "{levels} {open}");
        }
    }
}
