//! Lines that destroy the workspace, the home folder or `.git` are denied by every name, in every mode and for every
//! actor; lines that only remove files are reported, so that the files can be secured.

use lathe_policy::{LostTree, Rulebook};
use lathe_protocol::{Actor, Mode, Verdict};

use crate::gate;

/// Lines that must never run in `/srv/work/repo`. None of them is ever run here either: they are only read.
const DENIED: &str = include_str!("../corpus/destroying.txt");

/// More of the next ones.
const MORE_HARMLESS: &str = include_str!("../corpus/harmless.txt");

/// Lines that lose something that can be brought back, or nothing.
const HARMLESS: [&str; 36] = [
    "rm -rf *",
    "rm -rf ./*",
    "rm -rf target",
    "rm -rf sub/../target",
    "rm -rf ../other",
    "rm -rf /srv/work/other",
    "rm -rf ~/x",
    "rm -rf node_modules",
    "find . -name '*.pyc' -delete",
    "find sub -delete",
    "find ./* -delete",
    "find . -empty -delete",
    "git clean -fdx",
    "git checkout -- .",
    "git reset --hard",
    "rm -f .git/index.lock",
    "rm -rf .github",
    "rm .gitignore",
    "mv a b",
    "cd sub && rm -rf *",
    "python3 -c 'import shutil; shutil.rmtree(\"build\")'",
    "echo 'rm -rf /'",
    "find . -not -path './.git/*' -name '*.o' -delete",
    "find . -name .git -prune -o -name '*.o' -delete",
    "find . -name .gitkeep -delete",
    "truncate -s 0 log.txt",
    "sed -i 's/.git/x/' README.md",
    "sed -i -e 's,/.git/,/x/,' README.md",
    "chmod -R u+w sub",
    "chmod +x .git/hooks/pre-commit",
    "shred -u secret",
    "tar --remove-files -cf x.tar old",
    "tar -C ~ --remove-files -cf /tmp/x.tar old",
    "rsync -a --delete src/ build/",
    "dd if=.git/HEAD of=x",
    "find sub -name '*.o' | xargs rm -f",
];

fn lines(text: &str) -> impl Iterator<Item = String> + '_ {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.replace("\\n", "\n"))
}

#[test]
fn the_workspace_the_home_and_git_are_destroyed_by_no_name() {
    let rules = Rulebook::builtin();
    let mut missed = Vec::new();
    let mut count = 0;
    for line in lines(DENIED) {
        count += 1;
        for mode in Mode::ALL {
            for actor in [Actor::Model, Actor::Person] {
                let decided = gate(false).decide_line(&rules, actor, mode, &line).decision;
                if decided.verdict != Verdict::Deny || !decided.rule.starts_with("guard.") {
                    missed.push(format!("{mode:?} {actor:?} {line}: {} {}", decided.rule, decided.reason));
                }
            }
        }
    }
    assert!(count >= 90, "{count}");
    missed.sort();
    assert_eq!(missed, Vec::<String>::new());
}

#[test]
fn what_can_be_brought_back_is_not_the_guards_business() {
    let (rules, mut wrong) = (Rulebook::builtin(), Vec::new());
    for line in HARMLESS.map(str::to_owned).into_iter().chain(lines(MORE_HARMLESS)) {
        let decided = gate(false).decide_line(&rules, Actor::Model, Mode::FullAuto, &line).decision;
        // Reading keys and the like is another rule's business.
        if decided.verdict != Verdict::Allow && !decided.rule.starts_with("reading.") {
            wrong.push(format!("{line}: {} {}", decided.rule, decided.reason));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn where_the_folder_is_not_known_a_relative_name_means_no_place() {
    let gate = lathe_policy::Gate { here: None, ..gate(false) };
    for line in ["rm -rf .", "find . -delete", "rm -rf ../repo"] {
        let decided = gate.decide_line(&Rulebook::builtin(), Actor::Model, Mode::Default, line).decision;
        assert_eq!(decided.verdict, Verdict::Ask, "{line}: {}", decided.rule);
    }
}

#[test]
fn what_a_line_takes_away_is_told() {
    let tree = |path: &str, whole: bool| LostTree { path: path.to_owned(), whole };
    for (line, trees, work, refs) in [
        ("ls; cat a", vec![], false, false),
        ("rm -rf *", vec![tree("/srv/work/repo/*", true)], false, false),
        ("rm a ../b", vec![tree("/srv/work/repo/a", false), tree("/srv/work/b", false)], false, false),
        ("rm -r ~/x", vec![tree("/home/me/x", true)], false, false),
        ("find /tmp/x -name '*.o' -delete", vec![tree("/tmp/x", false)], false, false),
        ("git reset --hard HEAD~1", vec![], true, true),
        ("git clean -fdx", vec![], true, false),
        ("git checkout -- .", vec![], true, false),
        ("git restore .", vec![], true, false),
        ("git stash drop", vec![], true, true),
        ("git branch -D x", vec![], false, true),
        ("git branch", vec![], false, false),
        ("git push --force", vec![], false, true),
        ("git push origin +main", vec![], false, true),
        ("git push", vec![], false, false),
        ("git status && git log -p && git diff", vec![], false, false),
        ("git -C ../other clean -fdx", vec![tree("/srv/work/other", false)], true, false),
    ] {
        let losses = gate(false).losses(line);
        assert_eq!((losses.trees, losses.work_tree, losses.refs), (trees, work, refs), "{line}");
    }
}
