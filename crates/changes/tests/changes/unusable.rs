//! Repositories in which Lathe's own git cannot be used: what cannot be known of them is not a loss.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::repository::Place;

/// Something in a repository that stops Lathe's git and not the user's, by its name in a failure.
type Hindrance = (&'static str, fn(&Place));

const HINDRANCES: [Hindrance; 3] = [
    ("a link that leads nowhere", |place| {
        symlink("../../not-there", place.root().join(".git/info/attributes")).unwrap();
    }),
    ("a pipe", |place| mkfifo(place, ".git/pipe")),
    ("a pipe in info", |place| mkfifo(place, ".git/info/pipe")),
];

fn mkfifo(place: &Place, name: &str) {
    assert!(Command::new("mkfifo").arg(place.root().join(name)).status().unwrap().success());
}

#[test]
fn commits_of_a_line_are_no_loss_where_lathes_git_cannot_be_used() {
    for (name, hinder) in HINDRANCES {
        let place = Place::new();
        fs::create_dir_all(place.root().join(".git/info")).unwrap();
        hinder(&place);
        let mut copies = place.quarantine().repositories();
        place.secure(&mut copies);
        place.commit("two");
        place.git(&["branch", "side"]);
        assert_eq!(copies.broken(), [], "{name}");
        // Every object is in a pack now, and none of the files before is there.
        place.secure(&mut copies);
        place.git(&["gc", "-q"]);
        place.git(&["commit", "-q", "--allow-empty", "-m", "three"]);
        assert_eq!(copies.broken(), [], "{name}, packed");
        place.secure(&mut copies);
        place.commit("four");
        assert_eq!(copies.broken(), [], "{name}, from packs");
    }
}

#[test]
fn a_repository_that_is_another_one_is_known_by_its_files_alone() {
    for (name, hinder) in HINDRANCES {
        let place = Place::new();
        let mut copies = place.quarantine().repositories();
        place.secure(&mut copies);
        fs::rename(place.root().join(".git"), place.folder.path().join("away")).unwrap();
        place.git(&["init", "-q", "-b", "main"]);
        place.git(&[
            "-c",
            "user.name=o",
            "-c",
            "user.email=o@e.org",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "o",
        ]);
        fs::create_dir_all(place.root().join(".git/info")).unwrap();
        hinder(&place);
        assert_eq!(copies.broken().len(), 1, "{name}");
    }
}

#[test]
fn a_name_that_leads_to_no_object_is_known_by_the_files_alone() {
    for (name, hinder) in HINDRANCES {
        let place = Place::new();
        fs::create_dir_all(place.root().join(".git/info")).unwrap();
        hinder(&place);
        place.git(&["gc", "-q"]);
        let mut copies = place.quarantine().repositories();
        place.secure(&mut copies);
        let oid = "0123456789012345678901234567890123456789\n";
        fs::write(place.root().join(".git/refs/heads/none"), oid).unwrap();
        let broken: Vec<String> = copies.broken().into_iter().map(|one| one.why).collect();
        assert_eq!(broken, ["has a name that leads to no object"], "{name}");
    }
}
