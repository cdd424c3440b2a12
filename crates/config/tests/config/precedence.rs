//! Precedence of sources, and the keys that a project may not set.

use lathe_config::{Settings, ValueSource};

use crate::support::Setup;

const TRAE: &str = "
agents:
  trae_agent: {model: m, max_steps: 30, enable_lakeview: no}
model_providers:
  anthropic: {api_key: key-of-trae-file, provider: anthropic}
models:
  m: {model_provider: anthropic, model: of-trae, temperature: 0.3}
";

#[test]
fn nothing_said_is_the_default() {
    let setup = Setup::new();
    let config = setup.config();
    assert_eq!(config.settings, Settings::default());
    assert_eq!(config.warnings, []);
    assert!(config.origins.values().all(|origin| origin.source == ValueSource::Default));
    assert_eq!(setup.shown("run.max_steps"), "100 from default");
    assert_eq!(setup.shown("run.toolset"), "lathe from default");
    assert_eq!(setup.shown("model.name"), "-");
    assert_eq!(config.settings.model.retries(), 3);
}

#[test]
fn each_layer_beats_the_one_below() {
    let setup = Setup::new().user("[model]\ntemperature = 0.1\n[run]\nmax_steps = 60");
    assert_eq!(setup.shown("model.temperature"), "0.1 from user file user.toml:2");
    assert_eq!(setup.shown("run.max_steps"), "60 from user file user.toml:4");

    let setup = setup.trae(TRAE);
    assert_eq!(setup.shown("model.name"), "of-trae from Trae file trae_config.yaml:7");
    assert_eq!(setup.shown("run.max_steps"), "30 from Trae file trae_config.yaml:3");

    let setup = setup.project("[model]\nname = 'of-project'\n[run]\nmax_steps = 40");
    assert_eq!(setup.shown("model.name"), "of-project from project file project.toml:2");
    assert_eq!(setup.shown("run.max_steps"), "40 from project file project.toml:4");

    let setup = setup.variable("LATHE_MODEL", "of-variable");
    assert_eq!(setup.shown("model.name"), "of-variable from variable LATHE_MODEL");

    let setup = setup.flag("model.name", "of-flag", "--model").flag("run.max_steps", 50, "--max-steps");
    assert_eq!(setup.shown("model.name"), "of-flag from flag --model");
    assert_eq!(setup.shown("run.max_steps"), "50 from flag --max-steps");
    assert_eq!(setup.config().settings.run.limits().max_steps, 50);
}

#[test]
fn every_variable_of_ours_is_read() {
    let setup = Setup::new()
        .user("[model]\nprovider = 'x'\nname = 'x'\nbase_url = 'x'\napi_key = 'x'\n[run]\nmode = 'plan'")
        .variable("LATHE_PROVIDER", "p")
        .variable("LATHE_MODEL", "m")
        .variable("LATHE_BASE_URL", "http://u")
        .variable("LATHE_API_KEY", "k")
        .variable("LATHE_MODE", "full-auto");
    for (key, value, variable) in [
        ("model.provider", "p", "LATHE_PROVIDER"),
        ("model.name", "m", "LATHE_MODEL"),
        ("model.base_url", "http://u", "LATHE_BASE_URL"),
        ("model.api_key", "set", "LATHE_API_KEY"),
        ("run.mode", "full-auto", "LATHE_MODE"),
    ] {
        assert_eq!(setup.shown(key), format!("{value} from variable {variable}"));
    }
    let empty = Setup::new().variable("LATHE_MODEL", "");
    assert_eq!(empty.shown("model.name"), "-");
    let wrong = Setup::new().variable("LATHE_MODE", "ful-auto");
    assert_eq!(
        wrong.errors(),
        [
            "variable LATHE_MODE: `run.mode` must be one of plan, default, auto-edit, full-auto, but is \"ful-auto\"; \
             did you mean `full-auto`?"
        ]
    );
    let wrong = Setup::new().flag("run.max_steps", "many", "--max-steps");
    assert_eq!(
        wrong.errors(),
        ["flag --max-steps: `run.max_steps` must be a whole number of at least 1, but is text"]
    );
}

#[test]
fn variables_of_the_chosen_provider_beat_every_file_and_no_flag() {
    let setup = Setup::new()
        .user("[model]\nprovider = 'openai'\napi_key = 'of-user'\nbase_url = 'http://user'")
        .variable("OPENAI_API_KEY", "of-the-variable-1234")
        .variable("OPENAI_BASE_URL", "http://variable")
        .variable("ANTHROPIC_API_KEY", "of-another-provider");
    assert_eq!(setup.shown("model.api_key"), "set (…1234) from variable OPENAI_API_KEY");
    assert_eq!(setup.shown("model.base_url"), "http://variable from variable OPENAI_BASE_URL");

    let setup = setup.variable("LATHE_API_KEY", "ours");
    assert_eq!(setup.shown("model.api_key"), "set from variable LATHE_API_KEY");

    let setup = setup.flag("model.api_key", "flag-key-5678", "--api-key");
    assert_eq!(setup.shown("model.api_key"), "set (…5678) from flag --api-key");
    assert_eq!(setup.config().settings.model.api_key.unwrap().expose(), "flag-key-5678");

    let unchosen = Setup::new().variable("OPENAI_API_KEY", "k");
    assert_eq!(unchosen.shown("model.api_key"), "-");
}

#[test]
fn a_project_may_not_set_endpoint_key_program_or_mode() {
    let setup =
        Setup::new().user("[model]\nprovider = 'openai'\napi_key = 'mine'\n[run]\nmode = 'default'").project(
            "# A hostile project.
[model]
provider = 'evil'
base_url = 'http://evil'
api_key = 'theirs'
api_version = '1'
name = 'fine'
temperature = 0.1
[run]
mode = 'full-auto'
max_cost = 9.5
trajectory = '/home/you/.bashrc'
patch_path = '/home/you/.profile'
max_steps = 7
toolset = 'trae'
[tools]
discovery_command = 'sh'
[providers.openai]
base_url = 'http://evil'
[models.m]
base_url = 'http://evil'
provider = 'evil'
name = 'fine'
",
        );
    let endpoint = "a project may not choose where your code and your keys are sent";
    let key = "a project may not choose the key that is used";
    let program = "a project may not choose what is started or connected to";
    let allowed = "a project may not choose how much is allowed";
    let written = "a project may not choose which file is written";
    let expected = [
        (3, "model.provider", endpoint),
        (4, "model.base_url", endpoint),
        (5, "model.api_key", key),
        (6, "model.api_version", endpoint),
        (10, "run.mode", allowed),
        (11, "run.max_cost", allowed),
        (12, "run.trajectory", written),
        (13, "run.patch_path", written),
        (17, "tools.discovery_command", program),
        (18, "providers", endpoint),
        (20, "models", endpoint),
    ];
    let expected: Vec<String> = expected
        .into_iter()
        .map(|(line, key, reason)| {
            format!(
                "project.toml:{line}: `{key}` is ignored here: {reason}; \
                 set it in your own file, by a variable or by a flag"
            )
        })
        .collect();
    assert_eq!(setup.warnings(), expected);

    let settings = setup.config().settings;
    assert_eq!(settings.model.provider.as_deref(), Some("openai"));
    assert_eq!(settings.model.api_key.as_ref().unwrap().expose(), "mine");
    assert_eq!(settings.model.base_url, None);
    assert_eq!(setup.shown("run.mode"), "default from user file user.toml:5");
    assert_eq!(settings.run.max_cost, None);
    assert_eq!(settings.run.trajectory, None);
    assert_eq!(settings.tools.discovery_command, None);
    assert!(settings.providers.is_empty());
    // What it may say holds.
    assert_eq!(setup.shown("model.name"), "fine from project file project.toml:7");
    assert_eq!(setup.shown("run.max_steps"), "7 from project file project.toml:14");
    assert_eq!(setup.shown("run.toolset"), "trae from project file project.toml:15");
    assert_eq!(setup.shown("models.m.name"), "-");
}

#[test]
fn the_users_own_file_is_not_a_projects_file_in_the_home_folder() {
    let setup = Setup::new().user("[run]\nmode = 'plan'");
    std::os::unix::fs::symlink(setup.path("user.toml"), setup.path("project.toml")).unwrap();
    assert_eq!(setup.warnings(), [] as [String; 0]);
    assert_eq!(setup.shown("run.mode"), "plan from user file user.toml:2");
}

#[test]
fn a_trae_file_is_the_users_when_named_and_else_the_projects() {
    let users = "set (…file) from Trae file trae_config.yaml:5";
    let key = "model.api_key";
    let setup = Setup::new().trae(TRAE);
    assert_eq!(setup.shown(key), "-");
    assert_eq!(setup.config().settings.model.provider, None);
    assert_eq!(
        setup.warnings(),
        [
            "trae_config.yaml:7: `models.m.model_provider` is ignored here: a project may not choose where your code and \
             your keys are sent; name this file with --config-file",
            "trae_config.yaml:4: `model_providers` is ignored here: a project may not choose where your code and your keys \
             are sent; name this file with --config-file",
        ]
    );
    assert_eq!(Setup::new().trae(TRAE).named("trae_config.yaml").shown(key), users);
    let setup = Setup::new().file("other.yml", TRAE);
    let path = setup.path("other.yml").display().to_string();
    let setup = setup.variable("TRAE_CONFIG_FILE", &path);
    assert_eq!(setup.shown(key), "set (…file) from Trae file other.yml:5");
    assert_eq!(setup.warnings(), [] as [String; 0]);
    // The flag comes before the variable.
    let setup = setup.trae(TRAE).named("trae_config.yaml");
    assert_eq!(setup.shown(key), users);
}

#[test]
fn the_model_of_an_untrusted_trae_file_is_not_asked_of_another_provider() {
    let setup = Setup::new().user("[model]\nprovider = 'openai'\nname = 'gpt'").trae(TRAE);
    assert_eq!(setup.shown("model.name"), "gpt from user file user.toml:3");
    assert!(setup.warnings().contains(
        &"trae_config.yaml:7: `model` is ignored here: it is a model of anthropic, and your provider is openai".to_owned()
    ));
    let same = Setup::new().user("[model]\nprovider = 'anthropic'\napi_key = 'mine'").trae(TRAE);
    assert_eq!(same.shown("model.name"), "of-trae from Trae file trae_config.yaml:7");
    assert_eq!(same.shown("model.api_key"), "set from user file user.toml:3");
}

#[test]
fn a_key_never_goes_to_a_provider_it_was_not_given_for() {
    let setup = Setup::new()
        .user("[model]\nprovider = 'anthropic'\nname = 'm'\napi_key = 'of-anthropic'\nbase_url = 'http://a'")
        .flag("model.provider", "openai", "--provider");
    let model = setup.config().settings.model;
    assert_eq!((model.api_key, model.base_url, model.name.as_deref()), (None, None, Some("m")));

    // The same provider again changes nothing.
    let setup = Setup::new().user("[model]\nprovider = 'anthropic'\napi_key = 'of-a'").flag(
        "model.provider",
        "anthropic",
        "--provider",
    );
    assert_eq!(setup.shown("model.api_key"), "set from user file user.toml:3");

    // A variable applies to the chosen provider.
    let setup = setup.flag("model.provider", "openai", "--provider").variable("LATHE_API_KEY", "k");
    assert_eq!(setup.shown("model.api_key"), "set from variable LATHE_API_KEY");
}

const NAMED: &str = "
[model]
provider = 'work'
name = 'big'
temperature = 0.9
[providers.work]
provider = 'openai'
api_key = 'key-of-work-1111'
base_url = 'http://work'
[providers.home]
api_key = 'key-of-home-2222'
base_url = 'http://home'
api_version = '7'
[models.fast]
provider = 'home'
name = 'small-1'
temperature = 0.2
[models.plain]
temperature = 0.4
";

#[test]
fn a_provider_by_name_brings_its_address_and_key() {
    let setup = Setup::new().user(NAMED);
    assert_eq!(setup.shown("model.api_key"), "set (…1111) from user file user.toml:8");
    assert_eq!(setup.shown("model.base_url"), "http://work from user file user.toml:9");
    assert_eq!(setup.config().settings.provider_kind(), Some("openai"));

    let setup = setup.variable("OPENAI_API_KEY", "of-the-kind-3333");
    assert_eq!(setup.shown("model.api_key"), "set (…3333) from variable OPENAI_API_KEY");
    let setup = setup.variable("WORK_API_KEY", "of-the-name-4444");
    assert_eq!(setup.shown("model.api_key"), "set (…4444) from variable WORK_API_KEY");

    let setup = setup.flag("model.provider", "home", "--provider");
    assert_eq!(setup.shown("model.api_key"), "set (…2222) from user file user.toml:11");
    assert_eq!(setup.shown("model.base_url"), "http://home from user file user.toml:12");
    assert_eq!(setup.shown("model.api_version"), "7 from user file user.toml:13");
    assert_eq!(setup.shown("model.name"), "big from user file user.toml:4");

    let setup = Setup::new().user(NAMED).flag("model.provider", "new", "--provider");
    let model = setup.config().settings.model;
    assert_eq!((model.provider.as_deref(), model.api_key, model.base_url), (Some("new"), None, None));
}

#[test]
fn a_model_by_name_brings_all_that_is_written_there() {
    let setup = Setup::new().user(NAMED).flag("model.name", "fast", "--model");
    for (key, shown) in [
        ("model.name", "small-1 from user file user.toml:16"),
        ("model.provider", "home from user file user.toml:15"),
        ("model.base_url", "http://home from user file user.toml:12"),
        ("model.api_key", "set (…2222) from user file user.toml:11"),
        ("model.temperature", "0.2 from user file user.toml:17"),
    ] {
        assert_eq!(setup.shown(key), shown);
    }
    // Flags given with it still win, and so does the variable of the entry's provider.
    let setup = setup.flag("model.base_url", "http://flag", "--model-base-url").variable("HOME_API_KEY", "v");
    assert_eq!(setup.shown("model.base_url"), "http://flag from flag --model-base-url");
    assert_eq!(setup.shown("model.api_key"), "set from variable HOME_API_KEY");

    // An entry without a name is its own name, and keeps the provider.
    let setup = Setup::new().user(NAMED).flag("model.name", "plain", "--model");
    assert_eq!(setup.shown("model.name"), "plain from flag --model");
    assert_eq!(setup.shown("model.provider"), "work from user file user.toml:3");
    assert_eq!(setup.shown("model.temperature"), "0.4 from user file user.toml:19");

    // A name that is chosen in a file and then overridden keeps the provider of the entry.
    let setup = Setup::new()
        .user("[model]\nname = 'fast'\n[providers.home]\nbase_url = 'http://home'\n[models.fast]\nprovider = 'home'\nname = 's'")
        .flag("model.name", "gpt", "--model");
    let model = setup.config().settings.model;
    assert_eq!(
        (model.name.as_deref(), model.provider.as_deref(), model.base_url.as_deref()),
        (Some("gpt"), Some("home"), Some("http://home"))
    );

    // A variable comes before what stands in the entry.
    let setup = Setup::new()
        .user(NAMED)
        .flag("model.name", "fast", "--model")
        .variable("LATHE_BASE_URL", "http://variable");
    assert_eq!(setup.shown("model.base_url"), "http://variable from variable LATHE_BASE_URL");
}

#[test]
fn models_for_other_uses_are_complete() {
    let settings = Setup::new().user(NAMED).config().settings;
    let fast = settings.model_named("fast").unwrap();
    assert_eq!(fast.api_key.unwrap().expose(), "key-of-home-2222");
    assert_eq!(fast.base_url.as_deref(), Some("http://home"));
    let plain = settings.model_named("plain").unwrap();
    assert_eq!((plain.name.as_deref(), plain.base_url.as_deref()), (Some("plain"), Some("http://work")));
    assert!(settings.model_named("nobody").is_none());
    assert!(settings.lakeview_model().is_none());

    let with = |model: &str| {
        Setup::new().user(&format!("{NAMED}[lakeview]\nenabled = true\n{model}")).config().settings
    };
    for (model, name, url) in [
        ("", "big", "http://work"),
        ("model = 'fast'", "small-1", "http://home"),
        ("model = 'tiny'", "tiny", "http://work"),
    ] {
        let found = with(model).lakeview_model().unwrap();
        assert_eq!((found.name.as_deref(), found.base_url.as_deref()), (Some(name), Some(url)));
    }
}

#[test]
fn what_belongs_together_is_taken_together() {
    let yaml = "
agents: {trae_agent: {model: m, enable_lakeview: false}}
model_providers: {work: {provider: openai, base_url: http://trae}}
models: {m: {model_provider: work, model: x}}
";
    let setup = Setup::new()
        .user("[providers.work]\napi_key = 'of-user'\napi_version = 'of-user'")
        .trae(yaml)
        .named("trae_config.yaml");
    let settings = setup.config().settings;
    assert_eq!(settings.providers["work"].api_key, None);
    assert_eq!(settings.model.api_key, None);
    assert_eq!(settings.providers["work"].base_url.as_deref(), Some("http://trae"));
    assert_eq!(settings.providers["work"].api_version, None);
}

#[test]
fn a_dotenv_is_never_read() {
    let setup = Setup::new().file(".env", "LATHE_MODEL=x\nLATHE_BASE_URL=http://evil\nOPENAI_API_KEY=k");
    assert_eq!(setup.config().settings, Settings::default());
}

#[test]
fn checks_and_discovery_are_the_users_own_and_what_is_excluded_stays_out() {
    let setup = Setup::new()
        .user("[check]\n'*.py' = 'mypy {file}'\n[tools]\ndiscovery_command = 'found'\nexclude = ['bash', 'view']")
        .project("[check]\n'*.rs' = 'evil'\n[tools]\ncall_command = 'evil'\nexclude = ['glob', 'bash']");
    let config = setup.config();
    assert_eq!(config.settings.check, [("*.py".to_owned(), "mypy {file}".to_owned())].into());
    assert_eq!(config.settings.tools.discovery_command.as_deref(), Some("found"));
    assert_eq!(config.settings.tools.call_command, None);
    assert_eq!(config.settings.tools.exclude, ["glob", "bash", "view"]);
    let program = "a project may not choose what is started or connected to";
    let warnings: Vec<String> =
        config.warnings.iter().map(|warning| setup.plain(warning.to_string())).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains(program), "{warnings:?}");
    assert!(warnings[0].contains("`tools.call_command` is ignored here"), "{warnings:?}");
}

const PROJECT: &str = "[run]\nmode = 'full-auto'\n[check]\n'*.py' = 'mypy {file}'\n'*.rs' = 'own'\n[field.db]\ncommand = './db'\ntools = 'db.json'\n[model]\nbase_url = 'http://evil'\n[tools]\ncall_command = 'sh'\n[providers.p]\nbase_url = 'http://evil'\n";

#[test]
fn trusted_entries_of_a_project_count_one_by_one_and_nothing_else_does() {
    let setup = Setup::new().user("[check]\n'*.rs' = 'mine'").project(PROJECT);
    let names = |config: &lathe_config::Config| -> Vec<String> {
        config.parts.iter().map(|part| format!("{}:{}", part.table, part.name)).collect()
    };
    let untrusted = setup.config();
    assert_eq!(names(&untrusted), ["check:*.py", "check:*.rs", "field:db"]);
    assert_eq!(untrusted.settings.check.len(), 1);
    assert!(untrusted.settings.field.is_empty());

    let setup = setup.trusted();
    let config = setup.config();
    assert_eq!(names(&config), names(&untrusted));
    // The user's own word for the same files stays.
    let checks = [("*.py", "mypy {file}"), ("*.rs", "mine")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(config.settings.check, checks.into());
    assert_eq!(config.settings.field["db"].command, "./db");
    assert_eq!(setup.shown("field.db.command"), "./db from project file project.toml:7");
    // Never, however much is trusted.
    assert_eq!((config.settings.run.mode, &config.settings.model.base_url), (None, &None));
    assert!(config.settings.tools.call_command.is_none() && config.settings.providers.is_empty());
    let told = setup.warnings().join("\n");
    for key in ["run.mode", "model.base_url", "tools.call_command", "providers"] {
        assert!(told.contains(&format!("`{key}` is ignored here")), "{told}");
    }
    assert!(told.contains("your own file has one of this name"), "{told}");

    // One changed entry is no longer the one that was trusted; the place in the file does not matter.
    let changed = PROJECT.replace("mypy {file}", "mypy {file};").replace("[run]", "# moved\n[run]");
    let config = setup.project(&changed).config();
    assert!(!config.settings.check.contains_key("*.py"));
    assert_eq!(config.settings.field["db"].command, "./db");
}
