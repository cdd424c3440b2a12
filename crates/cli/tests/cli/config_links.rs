//! Configuration files that are not plain files: links that lead out, pipes, folders, devices and huge files.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::Path;

use lathe_testkit::{FakeModel, FinishedLathe, Options, Script, TempRepo, say};
use serde_json::json;

use crate::beside::Server;
use crate::lathe;

/// In a file outside, and nowhere to be seen. It is neither TOML nor a Trae file.
const CONTENT: &str = "zq-outside-0815";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Odd {
    LinkOut,
    LinkToHome,
    Pipe,
    Folder,
    Device,
    Huge,
}

impl Odd {
    const ALL: [Odd; 6] = [Odd::LinkOut, Odd::LinkToHome, Odd::Pipe, Odd::Folder, Odd::Device, Odd::Huge];

    fn make(self, at: &Path, outside: &Path, home: &Path) {
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        match self {
            Odd::LinkOut => symlink(outside, at).unwrap(),
            Odd::LinkToHome => symlink(home.join("auth.json"), at).unwrap(),
            Odd::Pipe => assert!(std::process::Command::new("mkfifo").arg(at).status().unwrap().success()),
            Odd::Folder => std::fs::create_dir(at).unwrap(),
            Odd::Device => symlink("/dev/zero", at).unwrap(),
            Odd::Huge => File::create(at).unwrap().set_len(1 << 30).unwrap(),
        }
    }
}

/// The path of such a file, and the number of times it is reported as an error and as a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    Project,
    Trae,
    Home,
    NamedToml,
    NamedYaml,
}

fn told(ran: &FinishedLathe, word: &str) -> usize {
    ran.stderr.lines().filter(|line| line.starts_with(word)).count()
}

#[test]
fn an_odd_configuration_file_is_one_clear_error_and_nothing_of_it_is_shown() {
    for stands in [Stands::Project, Stands::Trae, Stands::Home, Stands::NamedToml, Stands::NamedYaml] {
        for odd in Odd::ALL {
            for arguments in [vec!["config", "check"], vec!["run", "Say it.", "--mode", "plan"]] {
                let repo = TempRepo::new(&[("a.txt", "one\n")]);
                let outside = tempfile::tempdir().unwrap();
                let secret = outside.path().join("secret");
                std::fs::write(&secret, CONTENT).unwrap();
                let model = FakeModel::start(Script::new().answer(say("done")), Options::default());
                let binary = lathe().in_dir(repo.path()).args(&arguments);
                let binary = if arguments[0] == "run" { binary.with_model(&model) } else { binary };
                let home = binary.home();
                std::fs::create_dir_all(&home).unwrap();
                std::fs::write(home.join("auth.json"), CONTENT).unwrap();
                let (at, named) = match stands {
                    Stands::Project => (repo.join(".lathe/config.toml"), false),
                    Stands::Trae => (repo.join("trae_config.yaml"), false),
                    Stands::Home => (home.join("config.toml"), false),
                    Stands::NamedToml => (outside.path().join("named.toml"), true),
                    Stands::NamedYaml => (outside.path().join("named.yaml"), true),
                };
                odd.make(&at, &secret, &home);
                let binary = if named { binary.arg("--config-file").arg(&at) } else { binary };
                let ran = binary.run();
                let case = format!("{stands:?} {odd:?} {arguments:?}: {} {}", ran.stdout, ran.stderr);
                for text in [&ran.stdout, &ran.stderr] {
                    assert!(!text.contains(CONTENT), "{case}");
                }
                let name = at.file_name().unwrap().to_str().unwrap();
                assert!(ran.stderr.contains(name), "{case}");
                match stands {
                    // A foreign file that the user did not name cannot stop a run.
                    Stands::Trae => assert!(told(&ran, "Error") == 0 && told(&ran, "warning") >= 1, "{case}"),
                    // The user's own links are followed, and the text they lead to has faults of its own.
                    Stands::Home | Stands::NamedToml | Stands::NamedYaml
                        if matches!(odd, Odd::LinkOut | Odd::LinkToHome) =>
                    {
                        assert!(told(&ran, "Error") >= 1, "{case}");
                    }
                    Stands::Project | Stands::Home | Stands::NamedToml | Stands::NamedYaml => {
                        assert_eq!(told(&ran, "Error"), 1, "{case}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_server_answers_about_odd_configuration_files_and_shows_nothing_of_them() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, CONTENT).unwrap();
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let binary = lathe().in_dir(repo.path());
    let home = binary.home();
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("auth.json"), CONTENT).unwrap();
    let mut folders = Vec::new();
    for name in [".lathe/config.toml", "trae_config.yaml"] {
        for odd in Odd::ALL {
            let folder = format!("{}-{odd:?}", name.replace(['/', '.'], "_"));
            odd.make(&repo.join(&folder).join(name), &secret, &home);
            folders.push((folder, name));
        }
    }
    let server = Server::start(binary);
    for (folder, name) in folders {
        for route in ["/api/config", "/agent/config"] {
            let asked = format!("{route}?working_dir={folder}");
            let (status, said) = server.ask("GET", &asked, &json!({}));
            let wanted = if name == "trae_config.yaml" { 200 } else { 400 };
            assert_eq!(status, wanted, "{asked}: {said}");
            assert!(!said.to_string().contains(CONTENT), "{asked}: {said}");
            if status == 400 {
                assert!(said["detail"].as_str().unwrap().contains("config.toml"), "{asked}: {said}");
            }
        }
    }
}
