//! Files of a project that are links or pipes.

use std::os::unix::fs::symlink;

use crate::support::Setup;

const OURS: &str = "[run]\nmax_steps = 77\n";
const TRAE: &str = "agents: {trae_agent: {max_steps: 77}}\n";

/// Issue 15, the second attack on the server: a link in the place of a project's file showed values of foreign files.
#[test]
fn a_projects_link_that_leads_out_of_the_folder_is_not_followed() {
    for (name, text) in
        [("project.toml", OURS), ("trae_config.yaml", TRAE), ("trae_config.json", "{\"max_steps\": 77}")]
    {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("there"), text).unwrap();
        let said = |target: &str| {
            let setup = Setup::new();
            symlink(outside.path().join(target), setup.path(name)).unwrap();
            match setup.load() {
                Ok(config) => {
                    assert_ne!(config.settings.run.max_steps, 77, "{name}");
                    setup.warnings()
                }
                Err(_) => setup.errors(),
            }
        };
        let told = said("there");
        assert!(
            told.iter().any(|told| told.contains("leads out of the project's folder")),
            "{name}: {told:?}"
        );
        // The answer does not tell whether the file is there.
        assert_eq!(told, said("nowhere"), "{name}");
    }
}

#[test]
fn a_link_inside_of_the_project_is_followed() {
    for (name, text) in [("project.toml", OURS), ("trae_config.json", "{\"max_steps\": 77}")] {
        let setup = Setup::new().file("real", text);
        symlink("real", setup.path(name)).unwrap();
        assert_eq!(setup.config().settings.run.max_steps, 77, "{name}");
    }
}

#[test]
fn a_pipe_is_not_waited_for() {
    for name in ["user.toml", "project.toml", "trae_config.yaml"] {
        let setup = Setup::new();
        let made = std::process::Command::new("mkfifo").arg(setup.path(name)).status().unwrap();
        assert!(made.success());
        let told = match setup.load() {
            Ok(_) => setup.warnings(),
            Err(_) => setup.errors(),
        };
        assert!(told.iter().any(|told| told.contains("not a file")), "{name}: {told:?}");
    }
}

/// The content that was checked counts, even if its name leads elsewhere by then.
#[test]
fn a_named_file_that_was_read_already_is_not_opened_again() {
    for (name, checked, swapped) in [
        ("named.toml", OURS, "[run]\nmax_steps = 11\n"),
        ("named.json", "{\"max_steps\": 77}", "{\"max_steps\": 11}"),
    ] {
        let setup = Setup::new();
        std::fs::write(setup.path("elsewhere"), swapped).unwrap();
        symlink(setup.path("elsewhere"), setup.path(name)).unwrap();
        let config = setup.load_read(&setup.path(name), checked).unwrap();
        assert_eq!(config.settings.run.max_steps, 77, "{name}");
    }
}
