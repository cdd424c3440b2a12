//! Files that a program reads because of its options and through links are judged as if they stood in the line.

use std::path::{Path, PathBuf};

use lathe_policy::{Disk, Gate, OnDisk, Rulebook, Tier};
use lathe_protocol::{Actor, Mode, Verdict};

/// A workspace with `keys/key`, a link to a key, and `link`, a link to a folder in the home folder.
struct Linked;

impl Disk for Linked {
    fn real(&self, path: &Path) -> PathBuf {
        let mut out = PathBuf::new();
        for part in path.components() {
            match part {
                std::path::Component::ParentDir => {
                    out.pop();
                }
                other => out.push(other),
            }
            if out == Path::new("/srv/work/repo/link") {
                out = "/home/me/.ssh/deep".into();
            }
            if out == Path::new("/srv/work/repo/keys/key") {
                out = "/home/me/.ssh/id_rsa".into();
            }
        }
        out
    }

    fn expand(&self, _: &str) -> Option<Vec<PathBuf>> {
        Some(Vec::new())
    }

    fn holds_any(&self, folder: &Path, test: &mut dyn FnMut(&Path) -> bool) -> bool {
        let all =
            ["/srv/work/repo/keys", "/srv/work/repo/keys/key", "/srv/work/repo/src", "/srv/work/repo/src/a"];
        let key = Path::new("/srv/work/repo/keys").starts_with(folder);
        all.iter().map(Path::new).any(|path| path.starts_with(folder) && path != folder && test(path))
            || (key && test(Path::new("/home/me/.ssh/id_rsa")))
    }

    fn is_tracked(&self, _: &Path) -> bool {
        false
    }

    fn is_ignored_by_git(&self, _: &Path) -> bool {
        false
    }

    fn repository(&self, _: &Path) -> Option<PathBuf> {
        None
    }

    fn hard_link_id(&self, _: &Path) -> Option<lathe_policy::FileId> {
        None
    }
}

fn gate(disk: OnDisk) -> Gate {
    Gate {
        home: "/home/me/.local/share/lathe".into(),
        root: "/srv/work/repo".into(),
        user_home: Some("/home/me".into()),
        here: Some("/srv/work/repo".into()),
        outputs: None,
        headless: true,
        disk,
        switched: lathe_policy::ShellSwitches::default(),
        walls: lathe_policy::Walls::None,
    }
}

fn verdict(rules: &Rulebook, mode: Mode, line: &str) -> Verdict {
    gate(OnDisk::new(Linked)).decide_line(rules, Actor::Model, mode, line).decision.verdict
}

fn missed<'a>(mode: Mode, wanted: Verdict, lines: &[&'a str]) -> Vec<&'a str> {
    let rules = Rulebook::builtin();
    lines.iter().copied().filter(|line| verdict(&rules, mode, line) != wanted).collect()
}

#[test]
fn links_beneath_a_folder_decide_where_they_are_followed() {
    let none: Vec<&str> = Vec::new();
    let following = [
        "grep -R x .",
        "grep -R x",
        "grep -nR x keys",
        "grep --dereference-recursive x .",
        "grep --deref x keys",
        "diff -r keys src",
        "diff --recursive src keys",
        "find -L . -type f",
        "find . -follow",
        "ls -LR",
        "ls -RL keys",
        "du -aL .",
        "rg -L x",
        "rg --follow x keys",
        "tree -l",
        "cp -rL keys copy",
        "tar -chf a.tar keys",
        "tar chf a.tar keys",
        "rsync -aL keys/ copy/",
        "zip -r a.zip keys",
    ];
    assert_eq!(missed(Mode::FullAuto, Verdict::Deny, &following), none);
    let others =
        ["grep -r x .", "grep -R x src", "find . -type f", "ls -R", "rg x", "diff -r src src", "tree"];
    assert_eq!(missed(Mode::Plan, Verdict::Allow, &others), none);
}

#[test]
fn a_pattern_behind_a_link_is_where_the_link_leads() {
    let none: Vec<&str> = Vec::new();
    let keys = [
        "cat link/../id_*",
        "cat link/../*",
        "head link/../id_rs?",
        "cat ./link/../[i]d_rsa",
        "grep x link/../*",
    ];
    assert_eq!(missed(Mode::FullAuto, Verdict::Deny, &keys), none);
    let unknown = ["cat li*/../x", "cat l?nk/../id_rsa", "ls */../../x"];
    assert_eq!(missed(Mode::Plan, Verdict::Deny, &unknown), none);
}

#[test]
fn the_environment_of_processes_is_a_key() {
    let none: Vec<&str> = Vec::new();
    let shown = [
        "ps e",
        "ps axeww",
        "ps eww 1",
        "ps -o environ",
        "ps -eo pid,environ",
        "ps auxe",
        "ps -p 1 -o environ=",
        "ps e -ww",
    ];
    assert_eq!(missed(Mode::Plan, Verdict::Deny, &shown), none);
    assert_eq!(missed(Mode::FullAuto, Verdict::Deny, &shown), none);
    let plain = ["ps", "ps aux", "ps -ef", "ps -C sleep", "ps -eo pid,comm", "ps -p 1", "ps aux --sort rss"];
    assert_eq!(missed(Mode::FullAuto, Verdict::Allow, &plain), none);
}

#[test]
fn files_that_options_name_are_read() {
    let none: Vec<&str> = Vec::new();
    let keys = [
        "date -f ~/.ssh/id_rsa",
        "date -f/home/me/.ssh/id_rsa",
        "date --file ~/.ssh/id_rsa",
        "date --fil=/home/me/.ssh/id_rsa",
        "date -uf /home/me/.ssh/id_rsa",
        "git diff --no-index a /home/me/.ssh/id_rsa",
        "git diff a.txt ../../../home/me/.ssh/id_rsa",
        "wc --files0-from=/home/me/.ssh/id_rsa",
        "sort --files0 /home/me/.ssh/id_rsa",
        "du --files0-from=/home/me/.ssh/id_rsa",
        "git grep -f /home/me/.ssh/id_rsa",
        "git grep -f/home/me/.ssh/id_rsa",
        "git ls-files -o -X /home/me/.ssh/id_rsa",
        "git diff -O/home/me/.ssh/id_rsa",
        "grep -f /home/me/.ssh/id_rsa a.txt",
    ];
    assert_eq!(missed(Mode::Plan, Verdict::Deny, &keys), none);
    assert_eq!(missed(Mode::FullAuto, Verdict::Deny, &keys), none);
    let elsewhere = [
        "date -f /srv/x",
        "git diff a ../../x",
        "git diff /srv/x a",
        "wc --files0-from=list",
        "git diff --no-index a ../x",
    ];
    assert_eq!(missed(Mode::Plan, Verdict::Deny, &elsewhere), none);
    let plain = [
        "date",
        "date -u",
        "git diff",
        "git diff HEAD~1",
        "git diff main..dev",
        "git diff origin/main a.txt",
        "wc -l a",
    ];
    assert_eq!(missed(Mode::Plan, Verdict::Allow, &plain), none);
    let rule = "[[rule]]\ndecision = \"deny\"\npath = [\"src/a\"]\n";
    let rules = Rulebook::builtin().with_file(Tier::User, "f.toml", rule).unwrap();
    for line in
        ["date -f src/a", "git diff --no-index src keys", "git grep --untracked x", "git grep --no-index x"]
    {
        assert_eq!(verdict(&rules, Mode::FullAuto, line), Verdict::Deny, "{line}");
    }
}
