//! A project narrows what the user allows and widens nothing; a key has no variable but that of its provider.

use crate::support::Setup;

const USER: &str = "
[model]
provider = 'anthropic'
name = 'small'
api_key = 'key-of-anthropic'
[models.ds]
provider = 'deepseek'
base_url = 'http://ds'
api_key = 'key-of-deepseek'
name = 'coder'
[run]
tools = ['bash', 'view']
";

#[test]
fn a_project_cannot_widen_anything() {
    for (project, key, stays) in [
        ("[model]\nname = 'ds'", "model.provider", "anthropic from user file user.toml:3"),
        ("[model]\nname = 'ds'", "model.base_url", "-"),
        ("[model]\nname = 'ds'", "model.name", "small from user file user.toml:4"),
        ("[model]\nname = 'dearest'", "model.name", "small from user file user.toml:4"),
        ("[models.ds]\nname = 'dearest'", "models.ds.name", "coder from user file user.toml:10"),
        (
            "[models.ds]\nbase_url = 'http://evil'",
            "models.ds.base_url",
            "http://ds from user file user.toml:8",
        ),
        ("[model]\nmax_retries = 4", "model.max_retries", "-"),
        ("[model]\nstall_seconds = 121", "model.stall_seconds", "-"),
        ("[model]\nanswer_seconds = 3601", "model.answer_seconds", "-"),
        ("[model]\nlongest_wait_seconds = 121", "model.longest_wait_seconds", "-"),
        ("[model]\nthinking_tokens = 60000", "model.thinking_tokens", "-"),
        ("[model]\ncandidate_count = 8", "model.candidate_count", "-"),
        ("[model]\nkey_variable = 'STRIPE_API_KEY'", "model.key_variable", "-"),
        ("[run]\nmax_steps = 101", "run.max_steps", "100 from default"),
        ("[run]\nline_seconds = 100000", "run.line_seconds", "120 from default"),
        ("[run]\ncheck_seconds = 61", "run.check_seconds", "60 from default"),
        ("[run]\non_outage = 'park'", "run.on_outage", "-"),
        ("[run]\ntools = ['bash', 'write']", "run.tools", "[\"bash\",\"view\"] from user file user.toml:12"),
        ("[tools]\ncall_seconds = 121", "tools.call_seconds", "120 from default"),
        ("[lakeview]\nenabled = true", "lakeview.enabled", "false from default"),
        ("[lakeview]\nmodel = 'ds'", "lakeview.model", "-"),
    ] {
        let setup = Setup::new().user(USER).project(project);
        assert_eq!(setup.shown(key), stays, "{project}");
        let warnings = setup.warnings();
        assert_eq!(warnings.len(), 1, "{project}: {warnings:?}");
        assert!(warnings[0].contains("is ignored here: a project may"), "{project}: {warnings:?}");
    }
}

#[test]
fn a_project_may_narrow() {
    for (project, key, value) in [
        ("[model]\nmax_retries = 0", "model.max_retries", "0 from project file project.toml:2"),
        ("[model]\nname = 'small'", "model.name", "small from project file project.toml:2"),
        ("[model]\nmax_tokens = 500", "model.max_tokens", "500 from project file project.toml:2"),
        ("[run]\nmax_steps = 9", "run.max_steps", "9 from project file project.toml:2"),
        ("[run]\ntools = ['view']", "run.tools", "[\"view\"] from project file project.toml:2"),
        ("[lakeview]\nenabled = false", "lakeview.enabled", "false from project file project.toml:2"),
    ] {
        let setup = Setup::new().user(USER).project(project);
        assert_eq!(setup.shown(key), value, "{project}");
        assert_eq!(setup.warnings(), [] as [String; 0], "{project}");
    }
    // Between two files of a project only the user's word is the limit.
    let trae = "
agents: {trae_agent: {model: m, max_steps: 30, enable_lakeview: no}}
model_providers: {anthropic: {api_key: k, provider: anthropic}}
models: {m: {model_provider: anthropic, model: x}}
";
    let setup = Setup::new().user("[run]\nmax_steps = 50").trae(trae).project("[run]\nmax_steps = 40");
    assert_eq!(setup.shown("run.max_steps"), "40 from project file project.toml:2");
    // A flag is the user's, regardless of its value.
    let setup = setup.flag("run.max_steps", 500, "--max-steps");
    assert_eq!(setup.shown("run.max_steps"), "500 from flag --max-steps");
    assert!(!setup.warnings().iter().any(|warning| warning.contains("max_steps")));
}

#[test]
fn a_trae_file_that_nobody_named_widens_nothing_either() {
    let trae = "
agents:
  trae_agent: {model: m, max_steps: 300, enable_lakeview: yes}
lakeview: {model: m}
model_providers: {anthropic: {api_key: k, provider: anthropic}}
models:
  m: {model_provider: anthropic, model: dearest, max_retries: 50, candidate_count: 8}
";
    let setup = Setup::new().user(USER).trae(trae);
    for (key, stays) in [
        ("model.name", "small from user file user.toml:4"),
        ("model.max_retries", "-"),
        ("model.candidate_count", "-"),
        ("run.max_steps", "100 from default"),
        ("lakeview.enabled", "false from default"),
        ("lakeview.model", "-"),
    ] {
        assert_eq!(setup.shown(key), stays);
    }
    let warnings = setup.warnings();
    for key in ["model.name", "max_retries", "candidate_count", "max_steps", "lakeview"] {
        assert!(warnings.iter().any(|warning| warning.contains(key)), "{key}: {warnings:?}");
    }
}

#[test]
fn only_a_provider_that_is_known_or_described_has_a_variable() {
    let key = |user: &str| Setup::new().user(user).variable("STRIPE_API_KEY", "of-another-program");
    assert_eq!(key("[model]\nprovider = 'stripe'\nbase_url = 'http://s'").shown("model.api_key"), "-");
    let named = "[model]\nprovider = 'stripe'\nbase_url = 'http://s'\nkey_variable = 'STRIPE_API_KEY'";
    assert_eq!(key(named).shown("model.api_key"), "set (…gram) from user file user.toml:4");
    let described = "[model]\nprovider = 'stripe'\n[providers.stripe]\nbase_url = 'http://s'";
    assert_eq!(key(described).shown("model.api_key"), "set (…gram) from variable STRIPE_API_KEY");
    let entry = "[model]\nname = 'm'\n[models.m]\nprovider = 'x'\nbase_url = 'http://s'\nkey_variable = 'STRIPE_API_KEY'";
    let setup = key(entry);
    assert_eq!(setup.shown("model.api_key"), "set (…gram) from user file user.toml:6");
    // The key goes when another provider is chosen.
    let other = setup.flag("model.provider", "openai", "--provider");
    assert_eq!(other.shown("model.api_key"), "-");
}
