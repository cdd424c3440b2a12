//! Lines that name all that they write are held to it, whichever program they start; and a line that only removes
//! creates nothing.

use std::path::Path;
use std::time::Duration;

use lathe_testkit::{FakeModel, FinishedLathe, Lathe, Script, TempRepo, call, done, eventually};
use serde_json::json;

use crate::{lathe, result};

fn place() -> TempRepo {
    TempRepo::with_git(&[
        ("p.txt", "p0\n"),
        ("q.txt", "q0\n"),
        ("d/x.txt", "x\n"),
        ("a.o", "o\n"),
        ("make.sh", "echo s > out.txt\ntouch begun\nwhile [ ! -e go ]; do sleep 0.02; done\nrm begun go\n"),
    ])
}

/// Runs a line, lets a person write once its first part is done, and gives the result that the model got.
fn beside(home: &Lathe, repo: &TempRepo, line: &str, write: impl Fn(&Path)) -> String {
    let model = FakeModel::serving(
        Script::new().answer(call("c1", "bash", json!({ "command": line }))).answer(done("ok")),
    );
    let words = ["run", "go", "--mode", "full-auto", "--output", "stream-json"];
    let running = home.clone().in_dir(repo.path()).args(words).with_model(&model).spawn();
    eventually(Duration::from_secs(60), line, || repo.exists("begun"));
    write(repo.path());
    repo.write("go", "");
    result(&running.wait().expect_code(0).events(), "c1")
}

fn waiting(first: &str) -> String {
    format!("{first}; touch begun; while [ ! -e go ]; do sleep 0.02; done; rm begun go")
}

fn undo(home: &Lathe, repo: &TempRepo, words: &[&str]) -> FinishedLathe {
    home.clone().in_dir(repo.path()).arg("undo").args(words).run()
}

#[test]
fn a_person_s_write_is_left_alone_beside_each_line_that_names_what_it_writes() {
    type Row = (&'static str, fn(&TempRepo) -> bool);
    let rows: [Row; 9] = [
        ("sed -i s/q0/q1/ q.txt", |repo| repo.read("q.txt") == "q0\n"),
        ("sed -i.old -e 's/q0/q1/' q.txt", |repo| repo.read("q.txt") == "q0\n" && !repo.exists("q.txt.old")),
        ("echo q1 > q.txt; git add -A", |repo| repo.read("q.txt") == "q0\n"),
        ("echo q1 > q.txt; git commit -qam x", |repo| repo.read("q.txt") == "q0\n"),
        ("ln -s q.txt l", |repo| !repo.path().join("l").is_symlink()),
        ("for i in 1 2; do echo $i > n$i; done", |repo| !repo.exists("n1") && !repo.exists("n2")),
        ("find . -name q.txt -delete", |repo| repo.read("q.txt") == "q0\n"),
        ("mv q.txt r.txt", |repo| repo.read("q.txt") == "q0\n" && !repo.exists("r.txt")),
        ("rm *.o", |repo| repo.read("a.o") == "o\n"),
    ];
    for (line, is_back) in rows {
        let (repo, home) = (place(), lathe());
        let told =
            beside(&home, &repo, &waiting(line), |at| std::fs::write(at.join("p.txt"), "mine\n").unwrap());
        assert!(told.contains("Changed by somebody else"), "{line}: {told}");
        let ran = undo(&home, &repo, &[]);
        assert_eq!(repo.read("p.txt"), "mine\n", "{line}: {}", ran.stdout);
        assert!(is_back(&repo) && ran.code == 0, "{line}: {}", ran.stdout);
    }
}

#[test]
fn what_a_line_only_takes_away_and_a_person_makes_anew_is_the_person_s() {
    let (repo, home) = (place(), lathe());
    beside(&home, &repo, &waiting("rm -rf d"), |at| {
        std::fs::create_dir_all(at.join("d")).unwrap();
        std::fs::write(at.join("d/new.txt"), "mine\n").unwrap();
    });
    let ran = undo(&home, &repo, &[]);
    assert_eq!(
        (repo.read("d/new.txt"), repo.read("d/x.txt")),
        ("mine\n".into(), "x\n".into()),
        "{}",
        ran.stdout
    );
    for line in ["rm p.txt", "mv p.txt gone.txt", "find . -name 'p.*' -delete"] {
        let (repo, home) = (place(), lathe());
        let told =
            beside(&home, &repo, &waiting(line), |at| std::fs::write(at.join("p.txt"), "mine\n").unwrap());
        assert!(told.contains("Changed by somebody else"), "{line}: {told}");
        let ran = undo(&home, &repo, &[]);
        assert_eq!(repo.read("p.txt"), "mine\n", "{line}: {}", ran.stdout);
        assert!(ran.stdout.contains("p.txt"), "{line}: {}", ran.stdout);
    }
}

#[test]
fn what_a_program_does_not_name_is_told_before_and_after() {
    let (repo, home) = (place(), lathe());
    beside(&home, &repo, "sh make.sh", |at| std::fs::write(at.join("p.txt"), "mine\n").unwrap());
    for words in [&["--preview"][..], &[]] {
        let ran = undo(&home, &repo, words).expect_code(0);
        let (_, unnamed) =
            ran.stdout.split_once("so another program or user may have written them:").expect(&ran.stdout);
        assert!(unnamed.contains("p.txt") && !unnamed.contains("out.txt"), "{}", ran.stdout);
    }
}
