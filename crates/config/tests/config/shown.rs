//! `config show` and Trae's `show-config`.

use lathe_config::trae_show_config;

use crate::support::Setup;

#[test]
fn every_value_is_a_row_and_no_key_is_whole() {
    let setup = Setup::new()
        .user("[model]\nprovider = 'openai'\nname = 'm'\napi_key = 'sk-0123456789abcd'\n[providers.x]\napi_key = 'short'")
        .flag("run.tools", vec!["bash"], "--tools");
    let config = setup.config();
    let rows: Vec<String> = config
        .rows()
        .iter()
        .map(|row| setup.plain(format!("{} = {} ({})", row.key, row.value, row.source)))
        .collect();
    assert_eq!(
        rows,
        [
            "model.provider = openai (user file user.toml:2)",
            "model.name = m (user file user.toml:3)",
            "model.api_key = set (…abcd) (user file user.toml:4)",
            "run.toolset = lathe (default)",
            "run.max_steps = 100 (default)",
            "run.line_seconds = 120 (default)",
            "run.check_seconds = 60 (default)",
            "run.tools = [\"bash\"] (flag --tools)",
            "run.must_patch = false (default)",
            "sandbox.processes = 4096 (default)",
            "sandbox.disk = 20480 (default)",
            "sandbox.file = 8192 (default)",
            "sandbox.hosts = [] (default)",
            "sandbox.denied_hosts = [] (default)",
            "lakeview.enabled = false (default)",
            "review.enabled = false (default)",
            "review.rules =  (default)",
            "review.gate = false (default)",
            "review.max_reviews = 10 (default)",
            "review.max_tokens = 100000 (default)",
            "online.enabled = false (default)",
            "allow_mcp_servers = [] (default)",
            "providers.x.api_key = set (user file user.toml:6)",
            "tools.call_seconds = 120 (default)",
            "tools.allowed = [] (default)",
            "tools.exclude = [] (default)",
            "secrets.variables = [] (default)",
            "secrets.files = [] (default)",
            "secrets.pass = [] (default)",
        ]
    );
    let everything = format!("{config:?}{}{}", rows.join(""), trae_show_config(&config));
    assert!(!everything.contains("0123456789") && !everything.contains("short"), "{everything}");
    assert_eq!(config.origins.len(), rows.len());
}

#[test]
fn traes_table_in_plain_text() {
    let setup = Setup::new().file("c.json", "{}").named("c.json").variable("ANTHROPIC_API_KEY", "12345678");
    assert_eq!(
        trae_show_config(&setup.config()),
        "General Settings
  Default Provider  anthropic
  Max Steps         20

Anthropic Configuration
  Model             claude-sonnet-4-20250514
  Base URL          https://api.anthropic.com
  API Version       Not set
  API Key           Set
  Max Tokens        4096
  Temperature       0.5
  Top P             1
  Top K             0
"
    );
    assert_eq!(
        trae_show_config(
            &Setup::new().user("[model]\nprovider='openai'\napi_key='sk-0123456789abcd'").config()
        ),
        "General Settings
  Default Provider  openai
  Max Steps         100

Openai Configuration
  Model             Not set
  Base URL          Not set
  API Version       Not set
  API Key           Set (…abcd)
  Max Tokens        Not set
  Temperature       Not set
  Top P             Not set
"
    );
    assert!(trae_show_config(&Setup::new().config()).contains("Default Provider  Not set"));
}
