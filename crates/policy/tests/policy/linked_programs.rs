//! Programs by other names: links and hard links that a repository ships, names that lead to other names, and copies
//! that a line makes itself.

use std::path::{Path, PathBuf};

use lathe_policy::{Disk, FileId, Gate, OnDisk, Rulebook, Tier};
use lathe_protocol::{Actor, Mode, Verdict};

use crate::corpus::gate as anywhere;
use crate::reads::{fits, wrong};

/// Links, each with its target.
const LINKS: &[(&str, &str)] = &[
    ("/w/q", "/usr/bin/touch"),
    ("/w/two", "/w/q"),
    ("/w/sub/q", "/usr/bin/touch"),
    ("/w/g", "/usr/bin/git"),
    ("/w/r", "/usr/bin/rm"),
    ("/w/f", "/usr/bin/find"),
    ("/w/e", "/usr/bin/env"),
    ("/w/b", "/usr/bin/bash"),
    ("/w/la", "/usr/local/bin/lathe"),
    ("/w/ls", "/usr/bin/busybox"),
    ("/w/bb", "/usr/bin/busybox"),
    ("/w/run", "/w/run.sh"),
    ("/usr/bin/hexdump", "/usr/bin/busybox"),
    ("/usr/bin/python3", "/usr/bin/python3.11"),
    ("/usr/bin/awk", "/etc/alternatives/awk"),
    ("/etc/alternatives/awk", "/usr/bin/mawk"),
    ("/usr/bin/vi", "/etc/alternatives/vi"),
    ("/etc/alternatives/vi", "/usr/bin/vim.basic"),
    ("/usr/bin/sh", "/usr/bin/dash"),
    ("/usr/bin/pkill", "/usr/bin/pgrep"),
];

/// Files, some of which share a number with another.
const FILES: &[(&str, Option<u64>)] = &[
    ("/usr/bin/touch", Some(7)),
    ("/w/hard", Some(7)),
    ("/usr/bin/git", None),
    ("/usr/bin/rm", None),
    ("/usr/bin/find", None),
    ("/usr/bin/env", None),
    ("/usr/bin/bash", None),
    ("/usr/local/bin/lathe", None),
    ("/usr/bin/busybox", None),
    ("/usr/bin/python3.11", None),
    ("/usr/bin/mawk", None),
    ("/usr/bin/vim.basic", None),
    ("/usr/bin/dash", None),
    ("/usr/bin/pgrep", None),
    ("/w/run.sh", None),
    // A manager of versions stands before the system.
    ("/home/me/shims/python3", None),
    ("/home/me/shims/python3.11", None),
    ("/w/a.txt", None),
];

struct Programs;

fn target(path: &Path) -> Option<PathBuf> {
    LINKS.iter().find(|(link, _)| Path::new(link) == path).map(|(_, target)| PathBuf::from(target))
}

fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut out, part| {
        match part {
            std::path::Component::ParentDir => drop(out.pop()),
            std::path::Component::CurDir => {}
            other => out.push(other),
        }
        out
    })
}

impl Disk for Programs {
    fn real(&self, path: &Path) -> PathBuf {
        let path = plain(path);
        target(&path).map_or(path, |target| self.real(&target))
    }

    fn expand(&self, pattern: &str) -> Option<Vec<PathBuf>> {
        let chars = |text: &str| text.chars().collect::<Vec<char>>();
        let all = LINKS.iter().map(|(link, _)| *link).chain(FILES.iter().map(|(file, _)| *file));
        let same = |name: &&str| {
            let (parts, names): (Vec<&str>, Vec<&str>) =
                (pattern.split('/').collect(), name.split('/').collect());
            parts.len() == names.len()
                && parts.iter().zip(&names).all(|(part, name)| fits(&chars(part), &chars(name)))
        };
        Some(all.filter(same).map(PathBuf::from).collect())
    }

    fn holds_any(&self, _: &Path, _: &mut dyn FnMut(&Path) -> bool) -> bool {
        false
    }

    fn is_tracked(&self, _: &Path) -> bool {
        false
    }

    fn is_ignored_by_git(&self, _: &Path) -> bool {
        false
    }

    fn repository(&self, folder: &Path) -> Option<PathBuf> {
        folder.starts_with("/w").then(|| "/w".into())
    }

    fn hard_link_id(&self, path: &Path) -> Option<FileId> {
        let (_, inode) = FILES.iter().find(|(file, _)| Path::new(file) == path)?;
        inode.map(|inode| FileId { device: 1, inode })
    }

    fn link_chain(&self, path: &Path) -> Vec<PathBuf> {
        let path = plain(path);
        let is_file = FILES.iter().any(|(file, _)| Path::new(file) == path);
        let places: Vec<PathBuf> = std::iter::successors(target(&path), |place| target(place)).collect();
        if is_file { vec![path] } else { places }
    }

    fn on_path(&self, name: &str) -> Vec<PathBuf> {
        let folders =
            ["/home/me/shims", "/usr/local/bin", "/usr/bin"].map(|folder| Path::new(folder).join(name));
        folders.into_iter().filter(|path| !self.link_chain(path).is_empty()).collect()
    }
}

fn gate() -> Gate {
    Gate {
        root: "/w".into(),
        here: Some("/w".into()),
        user_home: Some("/home/me".into()),
        disk: OnDisk::new(Programs),
        ..anywhere()
    }
}

fn denying(commands: &str) -> Rulebook {
    let rule = format!("[[rule]]\ndecision = \"deny\"\ncommand = [{commands}]\n");
    Rulebook::builtin().with_file(Tier::User, "f.toml", &rule).unwrap()
}

#[test]
fn a_denied_program_is_denied_by_a_link_to_it() {
    let lines = [
        "./q m1",
        "/w/q m1",
        "./two m1",
        "./hard m1",
        "./sub/../q m1",
        "cd sub && ./q m1",
        "env ./q m1",
        "timeout 5 ./q m1",
        "bash -c './q m1'",
        "sh -c './q m1'",
        "eval './q m1'",
        "echo m1 | xargs ./q",
        "find . -maxdepth 0 -exec ./q m1 {} \\;",
        "PATH=$PWD:$PATH q m12",
        "PATH=.:$PATH q m12",
        "PATH=:$PATH q m12",
        "env PATH=/w q m12",
        "hash -p ./q zz; zz m16",
        "x=./q; $x m1",
        "x='./q m1'; $x",
        "./[q] m1",
        "./? m1",
        "./e ./q m1",
        "./e touch m1",
        "./b -c 'touch m1'",
        "echo 'touch m1' | ./b",
        "nosuch run ./q m1",
        "python3 -c 'import os; os.system(\"./q m1\")'",
        "./g push",
        "./g -C sub push origin",
        "(./g push)",
        "if true; then ./q a; fi",
        "f() { ./q a; }; f",
        "./bb touch m1",
    ];
    assert_eq!(wrong(&gate(), &denying("\"touch\", \"git push\""), Verdict::Deny, &lines), [""; 0]);
}

#[test]
fn other_programs_and_other_words_stay_as_they_were() {
    let rules = denying("\"touch\", \"git push\"");
    let lines = [
        "./run m1",
        "./run.sh touch2",
        "./g status",
        "./g log push.txt",
        "./ls -l",
        "hexdump a.txt",
        "python3 a.py",
        "awk '{print $1}' a.txt",
        "vi a.txt",
        "sh a.sh",
        "ls ./q",
        "file q r g",
        "rm q",
    ];
    assert_eq!(wrong(&gate(), &rules, Verdict::Allow, &lines), [""; 0]);
}

#[test]
fn the_guard_knows_a_program_by_a_link_to_it() {
    let lines = [
        "./r -rf .git",
        "./r -rf /",
        "./r -rf ~",
        "./r -rf .",
        "./f / -delete",
        "./g config core.hooksPath x",
        "./g config alias.x '!sh'",
        "./la serve",
        "./la auth login x",
        "env ./r -rf /",
        "./e ./r -rf /",
        "nosuch run ./r -rf /",
        "PATH=.:$PATH r -rf /",
        "cp /bin/r? x; ./x -rf /",
        "cp /usr/bin/g?t x; ./x config core.hooksPath y",
    ];
    assert_eq!(wrong(&gate(), &Rulebook::builtin(), Verdict::Deny, &lines), [""; 0]);
    let free = ["./r -rf build", "./g status", "./la --version", "./f . -name x", "./run"];
    assert_eq!(wrong(&gate(), &Rulebook::builtin(), Verdict::Allow, &free), [""; 0]);
}

#[test]
fn a_name_that_leads_to_a_denied_one_is_denied() {
    for (denied, line, verdict) in [
        ("python3", "python3.11 a.py", Verdict::Deny),
        ("python3", "/usr/bin/python3.11 a.py", Verdict::Deny),
        ("python3.11", "python3 a.py", Verdict::Deny),
        ("mawk", "awk '{print}' a.txt", Verdict::Deny),
        ("awk", "mawk '{print}' a.txt", Verdict::Deny),
        ("vim.basic", "vi a.txt", Verdict::Deny),
        ("dash", "sh a.sh", Verdict::Deny),
        ("busybox", "hexdump a.txt", Verdict::Allow),
        ("busybox", "./ls", Verdict::Deny),
        ("touch", "hexdump a.txt", Verdict::Allow),
        ("pkill", "pgrep x", Verdict::Allow),
        ("sh", "bash a.sh", Verdict::Allow),
    ] {
        let rules = denying(&format!("\"{denied}\""));
        let decided = gate().decide_line(&rules, Actor::Model, Mode::FullAuto, line).decision;
        assert_eq!(decided.verdict, verdict, "{denied} denied: {line}: {decided:?}");
    }
}

#[test]
fn no_other_name_changes_what_is_allowed_or_asked() {
    for line in [
        "awk '{print $1}' a.txt",
        "sh a.sh",
        "vi a.txt",
        "python3 a.py",
        "hexdump a.txt",
        "./run",
        "cat a.txt",
    ] {
        for mode in [Mode::Default, Mode::Plan, Mode::FullAuto] {
            let linked = gate().decide_line(&Rulebook::builtin(), Actor::Model, mode, line).decision;
            let bare = Gate { disk: OnDisk::default(), ..gate() };
            let bare = bare.decide_line(&Rulebook::builtin(), Actor::Model, mode, line).decision;
            assert_eq!(linked, bare, "{line}");
        }
    }
}

#[test]
fn a_copy_of_a_denied_program_is_denied_however_its_name_is_written() {
    let lines = [
        "cp /usr/bin/touch t; ./t m1",
        "cp /usr/bin/to?ch t; ./t m1",
        "cp /usr/bin/[t]ouch t; ./t m1",
        "cp /usr/b?n/touch t; ./t m1",
        "ln -s /usr/bin/touc? q5; ./q5 m5",
        "install /usr/bin/touc? t7; ./t7 m7",
        "cat /usr/bin/touc? > t8; chmod +x t8; ./t8 m8",
        "cat < /usr/bin/touch > t8; chmod +x t8; ./t8 m8",
        "x=/usr/bin/tou; cp ${x}ch t22; ./t22",
        "x=/usr/bin; cp $x/touch t22; ./t22",
        "cp $x/touch t22; ./t22",
        "sed '' /usr/bin/touch > t17; chmod 755 t17; ./t17",
        "sed -n 'w t17' /usr/bin/touch; chmod 755 t17; ./t17",
        "perl -pe '' /usr/bin/touch > t; chmod 755 t; ./t",
        "rev /usr/bin/touc* | rev > t",
        "dd if=/usr/bin/touc? of=t; ./t",
        "nosuch --file=/usr/bin/touch -o t; ./t",
        "cd /usr/bin && cp touc? /w/t; /w/t m",
        "find /usr/bin -name 'touc?' -exec cp {} t \\;",
        "cp q t; ./t m1",
        "cp ./two t; ./t m1",
        "cat ./hard > t; ./t m1",
    ];
    assert_eq!(wrong(&gate(), &denying("\"touch\""), Verdict::Deny, &lines), [""; 0]);
    let free = [
        "ls -l /usr/bin/touch > list.txt",
        "file /usr/bin/to* > list.txt",
        "cp /usr/bin/ls t",
        "git add q",
        "nosuch q",
        "cp a.txt b.txt",
        "cp \"$x\" b.txt",
        "cat *.txt > all",
        "env /usr/bin/git status > out.txt",
        "cp touch.txt t",
        "sed -i s/touch/x/ a.txt",
    ];
    assert_eq!(wrong(&gate(), &denying("\"touch\""), Verdict::Allow, &free), [""; 0]);
}

#[test]
fn a_denied_command_in_an_option_or_in_joined_literals_is_denied() {
    let lines = [
        "cargo test --config \"target.'cfg(all())'.runner='touch m'\"",
        "cargo build --config build.rustc-wrapper=touch",
        "apt-get -o APT::Update::Pre-Invoke::='touch m' update",
        "apt-get -oAPT::Update::Pre-Invoke::='touch m' update",
        "gs -sOutputFile='%pipe%touch m' a.ps",
        "npm test --script-shell=touch",
        "npm test --script-shell touch",
        "python3 -c 'import os; os.system(\"tou\"+\"ch m6\")'",
        "python3 -c 'import os; os.system(\"tou\" \"ch m6\")'",
        "python3 -c 'import os; os.system(\"tou\\x63h m6\")'",
        "perl -e 'exec(\"tou\".\"ch\",\"m\")'",
        "ruby -e 'system(\"tou\" + \"ch m\")'",
        "lua -e 'os.execute(\"tou\"..\"ch m\")'",
    ];
    assert_eq!(wrong(&gate(), &denying("\"touch\""), Verdict::Deny, &lines), [""; 0]);
    let free = [
        "cargo test touch",
        "cargo test --config net.offline=true",
        "npm test -- touch",
        "go build -o touch",
        "apt-get -o Dpkg::Use-Pty=0 update",
        "pytest -k touch",
        "python3 -c 'print(\"to\" + \"day\")'",
    ];
    assert_eq!(wrong(&gate(), &denying("\"touch\""), Verdict::Allow, &free), [""; 0]);
}
