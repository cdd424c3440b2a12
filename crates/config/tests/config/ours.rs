//! Mistakes in our own files.

use crate::support::Setup;

fn errors(toml: &str) -> Vec<String> {
    Setup::new().user(toml).errors()
}

#[test]
fn a_misspelt_key_names_file_line_and_suggestion() {
    assert_eq!(
        errors("[run]\n\nmax_step = 3\n"),
        ["user.toml:3: unknown key `run.max_step`; did you mean `max_steps`?"]
    );
    assert_eq!(
        Setup::new().project("[modl]\nname = 'x'").errors(),
        ["project.toml:1: unknown key `modl`; did you mean `model`?"]
    );
    assert_eq!(
        errors("max_steps = 3"),
        ["user.toml:1: unknown key `max_steps`; did you mean `run.max_steps`?"]
    );
    assert_eq!(errors("[zebra]"), ["user.toml:1: unknown key `zebra`"]);
}

#[test]
fn all_mistakes_of_all_files_are_told_at_once_in_the_order_of_the_file() {
    let setup = Setup::new()
        .user("[run]\nmode = 'plan'\nmax_steps = 'many'\ntools = 'bash'\nmust_patch = 1\n[model]\ntemperature = [1]\nnamee = 'x'")
        .project("[run]\nmode = 'auto'\nline_second = 3\n")
        .flag("run.toolset", "fancy", "--toolset");
    assert_eq!(
        setup.errors(),
        [
            "user.toml:3: `run.max_steps` must be a whole number of at least 1, but is text",
            "user.toml:4: `run.tools` must be a list (text each), but is text",
            "user.toml:5: `run.must_patch` must be true or false, but is a whole number",
            "user.toml:7: `model.temperature` must be a number from 0 to 2, but is a list",
            "user.toml:8: unknown key `model.namee`; did you mean `name`?",
            "project.toml:3: unknown key `run.line_second`; did you mean `line_seconds`?",
            "flag --toolset: `run.toolset` must be one of lathe, trae, gemini, bash, but is \"fancy\"",
        ]
    );
    assert_eq!(setup.load().unwrap_err().warnings.len(), 1);
}

#[test]
fn a_wrong_key_is_not_shown() {
    let shown = errors("[model]\napi_key = ['sk-secret-value']\n[providers.x]\napi_key = 123456789012345\n")
        .join("\n");
    assert_eq!(
        shown,
        "user.toml:2: `model.api_key` must be text, but is a list\n\
         user.toml:4: `providers.x.api_key` must be text, but is a whole number"
    );
    let broken = errors("[model]\napi_key = 'sk-secret-value\n").join("\n");
    assert!(broken.starts_with("user.toml:2: syntax error: "), "{broken}");
    assert!(!broken.contains("secret"), "{broken}");
}

#[test]
fn a_table_and_a_value_are_told_apart() {
    assert_eq!(
        errors("model = 'gpt'\n[run]\nmode = {x = 1}\n"),
        [
            "user.toml:1: `model` must be a table, but is text",
            "user.toml:3: `run.mode` must be one of plan, default, auto-edit, full-auto, but is a table",
        ]
    );
    assert_eq!(
        errors("[models]\nfast = 'gpt'\n[field.db]\nabout = 1\n"),
        [
            "user.toml:2: `models.fast` must be a table, but is text",
            "user.toml:4: `field.db.about` must be text, but is a whole number",
        ]
    );
}

#[test]
fn a_duplicate_key_and_broken_syntax_name_their_line() {
    assert_eq!(errors("[run]\nmax_steps = 3\nmax_steps = 4\n"), ["user.toml:3: syntax error: duplicate key"]);
    let shown = errors("[run]\nmax_steps = \n\n[model\nname = 'x'\n");
    assert!(shown[0].starts_with("user.toml:2: syntax error: "), "{shown:?}");
    assert!(shown.iter().any(|error| error.starts_with("user.toml:4: ")), "{shown:?}");
}

#[test]
fn nested_and_inline_tables_and_quoted_names_are_read() {
    let setup = Setup::new().user(
        "tools.exclude = ['fs']
field.fs.command = 'fs-server'
field.web = { command = 'web-server', seconds = 500 }
[providers.fs]
api_key = 'token-of-the-server'
[models.\"gpt 4.1\"]
name = 'gpt-4.1'
stop_sequences = ['a', 'b']
",
    );
    let settings = setup.config().settings;
    assert_eq!(settings.providers["fs"].api_key.as_ref().unwrap().expose(), "token-of-the-server");
    assert_eq!(settings.field["web"].seconds, 500);
    for (key, shown) in [
        ("field.fs.command", "fs-server from user file user.toml:2"),
        ("providers.fs.api_key", "set (…rver) from user file user.toml:5"),
        ("field.web.command", "web-server from user file user.toml:3"),
        ("models.\"gpt 4.1\".name", "gpt-4.1 from user file user.toml:7"),
        ("models.\"gpt 4.1\".stop_sequences", "[\"a\",\"b\"] from user file user.toml:8"),
        ("tools.exclude", "[\"fs\"] from user file user.toml:1"),
    ] {
        assert_eq!(setup.shown(key), shown);
    }
}

#[test]
fn a_key_that_nothing_reads_is_refused_by_name_in_every_file_of_ours() {
    let toml = "allow_mcp_servers = []\n[run]\nconsole = 'rich'\n[mcp_servers.x]\ncommand = 'sh'\n";
    let told = |file: &str| {
        [(1, "allow_mcp_servers"), (3, "run.console"), (4, "mcp_servers")]
            .map(|(line, key)| format!("{file}:{line}: `{key}` is not available in this version"))
    };
    assert_eq!(errors(toml), told("user.toml"));
    assert_eq!(Setup::new().project(toml).errors(), told("project.toml"));
    assert_eq!(
        Setup::new().flag("run.console", "rich", "--console").errors(),
        ["flag --console: `run.console` is not available in this version"]
    );
}

#[test]
fn what_is_no_readable_file_is_an_error_and_not_a_wait() {
    let setup = Setup::new();
    std::fs::create_dir(setup.path("user.toml")).unwrap();
    std::fs::write(setup.path("project.toml"), [b'a', 0xff, b'\n']).unwrap();
    assert_eq!(
        setup.errors(),
        ["user.toml: cannot be read: it is not a file", "project.toml: cannot be read: it is not UTF-8 text",]
    );
    let large = Setup::new().user(&"#".repeat(1024 * 1024 + 1));
    assert_eq!(large.errors(), ["user.toml: is larger than 1024 KiB, which no configuration is"]);
    let marked = Setup::new().user("\u{feff}[run]\r\nmax_steps = 3\r\n");
    assert_eq!(marked.shown("run.max_steps"), "3 from user file user.toml:2");
}

#[test]
fn a_file_of_ours_may_be_named_on_the_command_line() {
    let setup = Setup::new()
        .user("[run]\nmode = 'plan'")
        .file("other.toml", "[run]\nmode = 'default'")
        .named("other.toml");
    assert_eq!(setup.shown("run.mode"), "default from user file other.toml:2");
    let missing = Setup::new().named("missing.toml");
    assert_eq!(
        missing.errors(),
        [
            "Config file not found. Please specify a valid config file in the command line option --config-file\n  missing.toml is not there; --config-file names it"
        ]
    );
}

#[test]
fn an_unknown_flag_key_is_an_error_too() {
    assert_eq!(
        Setup::new().flag("run.maxsteps", 3, "--max-steps").errors(),
        ["flag --max-steps: unknown key `run.maxsteps`; did you mean `max_steps`?"]
    );
}
