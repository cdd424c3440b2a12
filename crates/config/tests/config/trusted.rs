//! A `trae_config.yaml` that was not named and that the user trusts: it counts like a named one, but gets no foreign
//! key.

use crate::support::Setup;

const TRAE: &str = "
agents: {trae_agent: {model: m, max_steps: 400, enable_lakeview: true}}
lakeview: {model: s}
model_providers:
  p: {provider: openai, base_url: 'http://foreign/v1'}
  q: {provider: anthropic, base_url: 'http://q/v1', api_key: key-of-q}
models: {m: {model_provider: p, model: big}, s: {model_provider: q, model: small}}
";

fn with_key() -> String {
    TRAE.replace("foreign/v1'}", "foreign/v1', api_key: key-of-p}")
}

#[test]
fn a_trusted_file_counts_like_a_named_one() {
    let setup = Setup::new().trae(&with_key()).trusted_trae(&[]);
    assert_eq!(setup.warnings(), [] as [String; 0]);
    for (key, shown) in [
        ("model.name", "big"),
        ("model.base_url", "http://foreign/v1"),
        ("model.api_key", "set"),
        ("run.max_steps", "400"),
        ("lakeview.enabled", "true"),
    ] {
        assert!(setup.shown(key).starts_with(&format!("{shown} from Trae file")), "{}", setup.shown(key));
    }
    let settings = setup.config().settings;
    assert!(settings.foreign.has_address_of(&settings.model));
    assert_eq!(settings.foreign.key_of(&settings.model).unwrap().expose(), "key-of-p");
    let summaries = settings.lakeview_model().unwrap();
    assert_eq!(settings.foreign.key_of(&summaries).unwrap().expose(), "key-of-q");
    // A file that was named is the owner's own word.
    let named = Setup::new().trae(&with_key()).named("trae_config.yaml").config().settings;
    assert!(!named.foreign.has_address_of(&named.model));
}

#[test]
fn no_key_from_elsewhere_goes_to_an_address_of_the_file() {
    let ways: [fn(Setup) -> Setup; 9] = [
        |setup| setup.variable("OPENAI_API_KEY", "PLANTED"),
        |setup| setup.variable("P_API_KEY", "PLANTED"),
        |setup| setup.variable("LATHE_API_KEY", "PLANTED"),
        |setup| setup.flag("model.api_key", "PLANTED", "--api-key"),
        |setup| setup.user("[model]\nprovider = 'p'\napi_key = 'PLANTED'"),
        |setup| setup.user("[providers.p]\napi_key = 'PLANTED'"),
        |setup| setup.user("[models.m]\nprovider = 'p'\napi_key = 'PLANTED'"),
        |setup| setup.variable("X", "PLANTED").user("[model]\nprovider = 'p'\nkey_variable = 'X'"),
        |setup| setup.variable("X", "PLANTED").user("[models.m]\nprovider = 'p'\nkey_variable = 'X'"),
    ];
    for (at, way) in ways.into_iter().enumerate() {
        for file in [TRAE.to_owned(), with_key()] {
            let has_key = file.contains("key-of-p");
            let setup = way(Setup::new().trae(&file).trusted_trae(&[]));
            let settings = setup.config().settings;
            let models = ["m", "s", "other"].map(|name| settings.model_beside(name));
            for model in models.iter().chain([&settings.model]) {
                let key = settings.foreign.key_of(model).map(|key| key.expose());
                assert_ne!(key, Some("PLANTED"), "{at} {:?}", model.name);
            }
            let key = settings.foreign.key_of(&settings.model).map(|key| key.expose());
            assert_eq!(key, has_key.then_some("key-of-p"), "{at}");
        }
    }
}

#[test]
fn a_key_that_is_not_sent_is_told() {
    let setup = Setup::new().trae(TRAE).trusted_trae(&[]).variable("OPENAI_API_KEY", "PLANTED");
    let told = setup.warnings();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("OPENAI_API_KEY") && told[0].contains("http://foreign/v1"), "{told:?}");
    assert!(told[0].contains("--config-file") && !told[0].contains("PLANTED"), "{told:?}");
}

#[test]
fn the_dotenv_beside_it_gives_keys_of_its_providers() {
    for file in [TRAE.to_owned(), with_key()] {
        let setup = Setup::new()
            .trae(&file)
            .trusted_trae(&[("openai", "of-dotenv"), ("groq", "another")])
            .variable("OPENAI_API_KEY", "PLANTED");
        let settings = setup.config().settings;
        assert_eq!(settings.foreign.key_of(&settings.model).unwrap().expose(), "of-dotenv");
        assert!(!settings.providers.contains_key("groq"));
    }
}

#[test]
fn an_address_of_the_owners_gets_the_owners_key() {
    let setup = Setup::new()
        .trae(TRAE)
        .trusted_trae(&[])
        .variable("OPENAI_API_KEY", "mine")
        .variable("OPENAI_BASE_URL", "http://mine/v1");
    let settings = setup.config().settings;
    assert_eq!(settings.model.base_url.as_deref(), Some("http://mine/v1"));
    assert_eq!(settings.foreign.key_of(&settings.model).unwrap().expose(), "mine");
    // The same address in both: the owner's word counts.
    let setup = Setup::new()
        .trae(TRAE)
        .trusted_trae(&[])
        .variable("OPENAI_API_KEY", "mine")
        .variable("OPENAI_BASE_URL", "http://foreign/v1");
    let settings = setup.config().settings;
    assert_eq!(settings.foreign.key_of(&settings.model).unwrap().expose(), "mine");
}
