//! Hostile folders that are about git alone: what is taken for a repository, and settings that name programs.

use std::path::Path;

use lathe_testkit::{PROGRAM_SETTINGS, TempRepo, plant_setting};

use crate::hostile::{Bait, Case};
use crate::hostile_table::{append, case, change};

/// Settings that run a line whenever git looks at a file or a difference.
fn programs(line: &str) -> String {
    format!(
        "[core]\n\tfsmonitor = \"{line}; false\"\n[diff \"evil\"]\n\tcommand = \"{line}\"\n\ttextconv = \"{line}; cat\"\n[filter \"evil\"]\n\tclean = \"{line}; cat\"\n\tsmudge = \"{line}; cat\"\n"
    )
}

/// Makes a folder of the repository one of its own, with a commit.
fn nested(repo: &TempRepo, folder: &str) {
    repo.write(&format!("{folder}/x.txt"), "x\n");
    repo.git(&["init", "-q", folder]);
    repo.git(&["-C", folder, "add", "x.txt"]);
    repo.git(&["-C", folder, "commit", "-q", "-m", "x"]);
}

/// Gives a repository the programs, and a change for which git would run them.
fn arm(repo: &TempRepo, git_dir: &str, tree: &str, line: &str) {
    append(repo, &format!("{git_dir}/config"), &programs(line));
    std::fs::create_dir_all(repo.join(git_dir).join("info")).unwrap();
    append(repo, &format!("{git_dir}/info/attributes"), "* diff=evil filter=evil\n");
    repo.write(&format!("{tree}/x.txt"), "changed\n");
}

const SHOW_ALL: &str = "[diff]\n\tsubmodule = diff\n\tignoreSubmodules = none\n[status]\n\tsubmoduleSummary = true\n[submodule]\n\trecurse = true\n";

fn move_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::rename(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

pub(crate) const LAYOUTS: [Case; 9] = [
    case("differences of submodules", |repo, bait| {
        nested(repo, "inner");
        repo.git(&["add", "inner"]);
        repo.git(&["commit", "-q", "-m", "inner"]);
        arm(repo, "inner/.git", "inner", &bait.line("inner"));
        append(repo, ".git/config", SHOW_ALL);
        change(repo);
    }),
    case("submodules in submodules", |repo, bait| {
        for folder in ["outer", "outer/inner", "outer/inner/core"] {
            nested(repo, folder);
        }
        for (folder, link) in [("outer/inner", "core"), ("outer", "inner"), (".", "outer")] {
            repo.git(&["-C", folder, "add", link]);
            repo.git(&["-C", folder, "commit", "-q", "-m", "link"]);
        }
        for folder in ["outer", "outer/inner", "outer/inner/core"] {
            arm(repo, &format!("{folder}/.git"), folder, &bait.line("deep"));
            append(repo, &format!("{folder}/.git/config"), SHOW_ALL);
        }
        append(repo, ".git/config", SHOW_ALL);
        change(repo);
    }),
    case("a committed folder that is laid out as a repository", |repo, bait| {
        nested(repo, "docs");
        nested(repo, "docs/sub");
        repo.git(&["-C", "docs", "add", "sub"]);
        repo.git(&["-C", "docs", "commit", "-q", "-m", "sub"]);
        arm(repo, "docs/sub/.git", "docs/sub", &bait.line("bare"));
        append(repo, "docs/.git/config", &format!("[core]\n\tworktree = .\n{SHOW_ALL}"));
        append(repo, "docs/.git/config", &programs(&bait.line("bare")));
        move_tree(&repo.join("docs/.git"), &repo.join("docs"));
        std::fs::remove_dir(repo.join("docs/.git")).unwrap();
        append(repo, "docs/info/attributes", "* diff=evil filter=evil\n");
        change(repo);
    }),
    case("a .git file that leads to a repository with programs outside", |repo, bait| {
        let outside = bait.marks.parent().unwrap().join("other.git");
        std::fs::rename(repo.join(".git"), &outside).unwrap();
        repo.write(".git", format!("gitdir: {}\n", outside.display()));
        let config = std::fs::read_to_string(outside.join("config")).unwrap();
        std::fs::write(outside.join("config"), config + &programs(&bait.line("outside"))).unwrap();
        std::fs::create_dir_all(outside.join("info")).unwrap();
        std::fs::write(outside.join("info/attributes"), "* diff=evil filter=evil\n").unwrap();
        change(repo);
    }),
    case("a linked work tree of a repository with programs", |repo, bait| {
        repo.git(&["worktree", "add", "-q", "docs"]);
        repo.write("docs/README.md", "# changed\n");
        append(repo, ".git/config", &programs(&bait.line("linked")));
        append(repo, ".git/config", "[extensions]\n\tworktreeConfig = true\n");
        append(repo, ".git/worktrees/docs/config.worktree", &programs(&bait.line("worktree")));
        append(repo, ".git/info/attributes", "* diff=evil filter=evil\n");
        change(repo);
    }),
    case("a repository in a folder named like a module", |repo, bait| {
        nested(repo, "docs");
        std::fs::create_dir_all(repo.join(".git/modules")).unwrap();
        std::fs::rename(repo.join("docs/.git"), repo.join(".git/modules/docs")).unwrap();
        repo.write("docs/.git", "gitdir: ../.git/modules/docs\n");
        append(repo, ".git/modules/docs/config", "[core]\n\tworktree = ../../../docs\n");
        repo.git(&["add", "docs"]);
        repo.git(&["commit", "-q", "-m", "docs"]);
        arm(repo, ".git/modules/docs", "docs", &bait.line("module"));
        append(repo, ".git/config", SHOW_ALL);
        change(repo);
    }),
    case("a repository whose objects are borrowed and whose references are links", |repo, bait| {
        nested(repo, "docs");
        append(repo, ".git/objects/info/alternates", "../../docs/.git/objects\n/\n");
        append(repo, ".git/config", &programs(&bait.line("borrowed")));
        std::os::unix::fs::symlink("/etc/passwd", repo.join(".git/packed-refs")).unwrap();
        change(repo);
    }),
    case("a .git that is a link", |repo, bait| {
        append(repo, ".git/config", &programs(&bait.line("link")));
        append(repo, ".git/info/attributes", "* diff=evil filter=evil\n");
        std::fs::rename(repo.join(".git"), repo.join("really")).unwrap();
        std::os::unix::fs::symlink("really", repo.join(".git")).unwrap();
        change(repo);
    }),
    Case {
        name: "a git in the folder, and a PATH that finds it",
        make: |repo, bait| {
            for path in ["git", "bin/git", "src/git"] {
                crate::hostile::program(repo, path, &bait.line("git"));
            }
            change(repo);
        },
        env: &[("PATH", ".::bin:ROOT:ROOT/bin:PATH")],
    },
];

/// The number of settings in one folder.
const AT_ONCE: usize = 8;

/// A folder with some of the settings that name programs.
fn settings<const NUMBER: usize>(repo: &TempRepo, bait: &Bait) {
    for setting in PROGRAM_SETTINGS.into_iter().skip(NUMBER * AT_ONCE).take(AT_ONCE) {
        plant_setting(repo, setting, &bait.marks);
    }
    change(repo);
}

pub(crate) const SETTINGS: [Case; 8] = [
    case("settings 1", settings::<0>),
    case("settings 2", settings::<1>),
    case("settings 3", settings::<2>),
    case("settings 4", settings::<3>),
    case("settings 5", settings::<4>),
    case("settings 6", settings::<5>),
    case("settings 7", settings::<6>),
    case("settings 8", settings::<7>),
];

#[test]
fn every_setting_is_in_a_folder() {
    const { assert!(SETTINGS.len() * AT_ONCE >= PROGRAM_SETTINGS.len()) };
}
