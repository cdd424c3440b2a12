//! A denied file is not read through git, through a list of names, through a variable that names a file, through a
//! pattern in other letters, or by another name of the same file (issue 15).

use std::path::{Path, PathBuf};

use lathe_policy::{Disk, FileId, Gate, GateCall, OnDisk, Rulebook, Tier};
use lathe_protocol::{Actor, Effects, Mode, ToolKind, Verdict};

use crate::corpus::gate as anywhere;

/// Git's relation to a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Tracked,
    Untracked,
    Ignored,
}

/// A repository in `/w` with files, some of which have a second name.
pub(crate) struct Files(Vec<(&'static str, Known, Option<u64>)>);

impl Files {
    fn is(&self, path: &Path, known: Known) -> bool {
        self.0.iter().any(|(name, given, _)| path == Path::new(name) && *given == known)
    }
}

/// Tells whether a pattern of bash matches a name: `*`, `?` and sets.
pub(crate) fn fits(pattern: &[char], name: &[char]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some(('*', rest)) => (0..=name.len()).any(|at| fits(rest, &name[at..])),
        Some(('[', rest)) => {
            let end = rest.iter().position(|c| *c == ']').unwrap_or(0);
            name.first().is_some_and(|c| rest[..end].contains(c) && fits(&rest[end + 1..], &name[1..]))
        }
        Some((want, rest)) => {
            name.first().is_some_and(|c| (*want == '?' || want == c) && fits(rest, &name[1..]))
        }
    }
}

impl Disk for Files {
    fn real(&self, path: &Path) -> PathBuf {
        let mut out = PathBuf::new();
        for part in path.components() {
            match part {
                std::path::Component::ParentDir => {
                    out.pop();
                }
                other => out.push(other),
            }
        }
        out
    }

    fn expand(&self, pattern: &str) -> Option<Vec<PathBuf>> {
        let parts: Vec<&str> = pattern.split('/').collect();
        let chars = |text: &str| text.chars().collect::<Vec<char>>();
        let named = self.0.iter().filter(|(name, _, _)| {
            let names: Vec<&str> = name.split('/').collect();
            names.len() == parts.len()
                && parts.iter().zip(&names).all(|(part, name)| fits(&chars(part), &chars(name)))
        });
        Some(named.map(|(name, _, _)| PathBuf::from(name)).collect())
    }

    fn holds_any(&self, folder: &Path, test: &mut dyn FnMut(&Path) -> bool) -> bool {
        self.0.iter().map(|(name, _, _)| Path::new(name)).filter(|path| path.starts_with(folder)).any(test)
    }

    fn is_tracked(&self, path: &Path) -> bool {
        self.is(path, Known::Tracked)
    }

    fn is_ignored_by_git(&self, path: &Path) -> bool {
        self.is(path, Known::Ignored)
    }

    fn repository(&self, folder: &Path) -> Option<PathBuf> {
        folder.starts_with("/w").then(|| "/w".into())
    }

    fn hard_link_id(&self, path: &Path) -> Option<FileId> {
        let (_, _, inode) = self.0.iter().find(|(name, _, _)| path == Path::new(name))?;
        inode.map(|inode| FileId { device: 1, inode })
    }
}

pub(crate) fn gate(files: &[(&'static str, Known, Option<u64>)]) -> Gate {
    Gate {
        here: Some("/w".into()),
        user_home: Some("/home/me".into()),
        disk: OnDisk::new(Files(files.to_vec())),
        switched: lathe_policy::ShellSwitches::default(),
        walls: lathe_policy::Walls::None,
        ..anywhere()
    }
}

pub(crate) fn book(path: &str) -> Rulebook {
    let rule = format!("[[rule]]\ndecision = \"deny\"\npath = [\"{path}\"]\n");
    Rulebook::builtin().with_file(Tier::User, "f.toml", &rule).unwrap()
}

/// The lines that are not decided so.
pub(crate) fn wrong<'l>(gate: &Gate, rules: &Rulebook, verdict: Verdict, lines: &[&'l str]) -> Vec<&'l str> {
    let decided = |line: &&&str| {
        gate.decide_line(rules, Actor::Model, Mode::FullAuto, line).decision.verdict != verdict
    };
    lines.iter().filter(decided).copied().collect()
}

pub(crate) const NONE: [&str; 0] = [];

/// Lines by which git takes in files that it does not know yet.
const TAKE_IN: [&str; 34] = [
    "git add .",
    "git add . && git diff --cached",
    "git add .; git commit -m x; git show",
    "git add -A && git commit -m x && git log -p",
    "git add --all; git archive HEAD",
    "git add -A .",
    "git add -v .",
    "git add ./",
    "git add /w",
    "git add :/",
    "git add '*'",
    "git add ':(top)'",
    "git add -- .",
    "git add -f .",
    "git add --force .",
    "git add -N .",
    "git add secret.txt",
    "git add s*",
    "git -C . add .",
    "git -c a.b=c add .",
    "git --work-tree=/w add .",
    "cd sub && git add ..",
    "git stage .",
    "git-add .",
    "/usr/lib/git-core/git-add .",
    "git stash -u",
    "git stash push -u",
    "git stash push --include-untracked && git stash show -p --include-untracked",
    "git stash -a",
    "git stash --all",
    "git hash-object -w secret.txt",
    "git update-index --add secret.txt",
    "git add --pathspec-from-file=list",
    "git ls-files -o | git update-index --add --stdin",
];

/// Lines by which git reads all files of the folder.
const READ_ANYTHING: [&str; 8] = [
    "git grep --untracked x",
    "git grep --no-index x",
    "git grep --no-exclude-standard --untracked x",
    "git diff --no-index a.txt .",
    "git add -f .",
    "git stash -a",
    "git anything",
    "git -c alias.x='!cat *' x",
];

/// Lines by which git prints or copies all that it tracks.
const PRINT: [&str; 59] = [
    "git diff",
    "git diff --cached",
    "git -c a.b=c diff HEAD~1",
    "git --no-pager diff",
    "git diff --word-diff",
    "git diff --stat -p",
    "git diff -- ':(top)secret.txt'",
    "git diff -- ':/'",
    "git diff -- '*cret*'",
    "git show",
    "git show HEAD",
    "git show :/first",
    "git show HEAD~1 --format=raw",
    "git log -p",
    "git log --patch -1",
    "git log -1 --word-diff",
    "git log -1 --binary",
    "git log -1 --color-words",
    "git log -m -1 --cc",
    "git log -L1,2:secret.txt",
    "git log -U1",
    "git reflog -p",
    "git whatchanged -p",
    "git archive HEAD",
    "git archive --format=tar HEAD | tar t",
    "git format-patch --stdout --root HEAD",
    "git cat-file --batch-all-objects --batch",
    "git cat-file -p 1234abc",
    "git cat-file blob 1234abc",
    "git fast-export HEAD",
    "git bundle create /tmp/b HEAD",
    "git clone . /tmp/c",
    "git clone file:///w /tmp/c",
    "git worktree add /tmp/t",
    "git checkout-index --prefix=/tmp/x/ -a",
    "git read-tree --prefix=x/ -u HEAD",
    "git unpack-file 1234abc",
    "git blame secret.txt",
    "git blame -- secret.txt",
    "git grep x",
    "git stash show -p",
    "git stash show",
    "git status -v",
    "git commit -v --dry-run",
    "git commit -am x",
    "git range-diff a b c",
    "git merge-tree a b c",
    "git mv sub other; git rm -r --cached .",
    "git for-each-ref --format='%(raw)'",
    "git checkout HEAD~1",
    "git checkout --orphan x",
    "git switch main",
    "git switch -",
    "git reset HEAD~1",
    "git reset --hard HEAD~1",
    "git revert HEAD",
    "git cherry-pick x",
    "git rebase --onto HEAD~1 HEAD",
    "git bisect start HEAD x",
];

/// Lines of git that show nothing of a file.
const HARMLESS: [&str; 35] = [
    "git status",
    "git status --short",
    "git log --oneline -5",
    "git log --stat -1",
    "git log --author=me --since=yesterday",
    "git log --format=%H -n 3",
    "git log --graph --all --decorate",
    "git -c color.ui=never log --oneline",
    "git diff --stat",
    "git diff --name-only HEAD~1",
    "git show --stat",
    "git show HEAD:a.txt",
    "git cat-file -p HEAD:a.txt",
    "git cat-file -t HEAD",
    "git diff -- a.txt",
    "git log -p -- a.txt",
    "git blame a.txt",
    "git branch -a",
    "git tag v1",
    "git remote -v",
    "git rev-parse HEAD",
    "git ls-files",
    "git commit -m 'a message'",
    "git checkout -b x",
    "git checkout HEAD~1 -- a.txt",
    "git switch -c x",
    "git reset",
    "git reset HEAD",
    "git push origin main",
    "git fetch",
    "git add a.txt",
    "git clone https://example.org/x",
    "git stash list",
    "git worktree list",
    "git config --get user.name",
];

#[test]
fn a_denied_file_that_git_does_not_know_is_not_taken_in() {
    let files = [
        ("/w/a.txt", Known::Tracked, None),
        ("/w/secret.txt", Known::Untracked, None),
        ("/w/sub/b.txt", Known::Tracked, None),
    ];
    for path in ["secret.txt", "/w/secret.txt", "**/secret*"] {
        let (gate, rules) = (gate(&files), book(path));
        assert_eq!(wrong(&gate, &rules, Verdict::Deny, &TAKE_IN), NONE, "{path}");
        assert_eq!(wrong(&gate, &rules, Verdict::Deny, &READ_ANYTHING), NONE, "{path}");
        assert_eq!(wrong(&gate, &rules, Verdict::Allow, &HARMLESS), NONE, "{path}");
        let plain = [
            "git diff",
            "git show",
            "git log -p",
            "git grep x",
            "git add sub",
            "git add -u",
            "git commit -am x",
            // These write what git tracks.
            "git reset --hard",
            "git rebase --abort",
            "git pull",
        ];
        assert_eq!(wrong(&gate, &rules, Verdict::Allow, &plain), NONE, "{path}");
    }
}

#[test]
fn a_denied_file_that_git_knows_is_not_printed_or_copied() {
    let files = [
        ("/w/a.txt", Known::Tracked, None),
        ("/w/secret.txt", Known::Tracked, None),
        ("/w/sub/secret.txt", Known::Tracked, None),
    ];
    for path in ["secret.txt", "/w/secret.txt", "**/secret*"] {
        let (gate, rules) = (gate(&files), book(path));
        assert_eq!(wrong(&gate, &rules, Verdict::Deny, &PRINT), NONE, "{path}");
        assert_eq!(wrong(&gate, &rules, Verdict::Deny, &READ_ANYTHING), NONE, "{path}");
        assert_eq!(wrong(&gate, &rules, Verdict::Allow, &HARMLESS), NONE, "{path}");
    }
    // A file of a commit is named from the top of the repository.
    let gate = Gate { here: Some("/w/sub".into()), ..gate(&files) };
    assert_eq!(wrong(&gate, &book("/w/secret.txt"), Verdict::Deny, &["git show HEAD:secret.txt"]), NONE);
}

#[test]
fn a_file_that_git_ignores_is_not_taken_in_by_itself() {
    let files = [("/w/a.txt", Known::Tracked, None), ("/w/secret.txt", Known::Ignored, None)];
    let (gate, rules) = (gate(&files), book("secret.txt"));
    let plain = [
        "git add .",
        "git add -A && git commit -m x",
        "git stash -u",
        "cat .gitignore && git add .",
        "cargo fmt && git add .",
        "git checkout -b x && git add . && git commit -m x",
    ];
    assert_eq!(wrong(&gate, &rules, Verdict::Allow, &plain), NONE);
    let changed = [
        "git add -f .",
        "git stash -a",
        "rm .gitignore; git add .",
        "echo > .gitignore; git add .",
        "sed -i d .gitignore && git add -A",
        "mv .git* x; git add .",
        "git rm .gitignore; git add .",
        "git stash; git add .",
        "git checkout HEAD~1; git add .",
        "rm $x; git add .",
        "git add secret.txt",
    ];
    assert_eq!(wrong(&gate, &rules, Verdict::Deny, &changed), NONE);
}

#[test]
fn lists_variables_and_patterns_in_other_letters_read_what_they_may_name() {
    let files = [
        ("/w/a.txt", Known::Tracked, None),
        ("/w/secret.txt", Known::Untracked, None),
        ("/w/sub/deep/secret.txt", Known::Untracked, None),
    ];
    let denied = [
        "find . -type f | tar cf - -T -",
        "tar cf x.tar -T list",
        "tar cfT x.tar list",
        "tar -c --files-from=- < list",
        "tar cf - --files-from list",
        "zip -@ x.zip < list",
        "ls | zip x.zip -@",
        "zip --names-stdin x.zip",
        "ls | cpio -o",
        "find . | cpio -pdm /tmp/x",
        "cpio --create < list",
        "ls | pax -w",
        "7z a x.7z @list",
        "file -f list",
        "ctags -L list",
        "git hash-object -w --stdin-paths < list",
        "BASH_ENV=secret.txt bash -xc true",
        "ENV=secret.txt sh -i",
        "env BASH_ENV=secret.txt bash -xc true",
        "export BASH_ENV=secret.txt",
        "export BASH_ENV=$x; bash -c true",
        "declare -x BASH_ENV=secret.txt; bash -xc true",
        "BASH_ENV=secret.txt",
        "HISTFILE=secret.txt; history -r; history",
        "INPUTRC=./secret.txt bash -i",
        "PYTHONSTARTUP=secret.txt python3 -i",
        "LD_PRELOAD=/w/secret.txt ls",
        "GIT_INDEX_FILE=secret.txt git status",
        "CONFIG=secret.txt make",
        "export BASH_ENV; read BASH_ENV",
        "shopt -s nocaseglob; cat SECRET*",
        "cat SECRET*",
        "cat S*",
        "cat [S]ecret.tx?",
        "cat SECRET.TX[T]",
        "shopt -s extglob; eval 'cat @(secret).txt'",
        "shopt -s extglob; cat @(secret).txt",
        "cat ?(x)secret.txt",
        "cat +(secret|x).txt",
        "cat !(a).txt",
        "shopt -s globstar; cat **",
        "cat sub/**/*.txt",
        "cat **/secret.txt",
    ];
    for path in ["secret.txt", "**/secret.*"] {
        let (gate, rules) = (gate(&files), book(path));
        assert_eq!(wrong(&gate, &rules, Verdict::Deny, &denied), NONE, "{path}");
        let left = [
            "tar cf x.tar a.txt",
            "cat A*",
            "cat a.tx?",
            "zip x.zip a.txt",
            "cpio -it < a.cpio",
            "RUST_LOG=debug cargo test",
            "GIT_PAGER=cat git log --oneline",
            "BASH_ENV=a.txt bash -c true",
            "export PATH=/usr/bin:$PATH",
            "x=1; echo $x",
        ];
        assert_eq!(wrong(&gate, &rules, Verdict::Allow, &left), NONE, "{path}");
    }
}

#[test]
fn a_hard_link_to_a_denied_file_is_that_file() {
    let files = [
        ("/w/a.txt", Known::Tracked, None),
        ("/w/other", Known::Tracked, Some(9)),
        ("/w/secret.txt", Known::Ignored, Some(7)),
        ("/w/sub/hard", Known::Untracked, Some(7)),
    ];
    for path in ["secret.txt", "/w/secret.txt", "*.txt"] {
        let (gate, rules) = (gate(&files), book(path));
        let denied = [
            "cat sub/hard",
            "cat sub/*",
            "cat sub/h?rd",
            "grep -r x sub",
            "tar cf x.tar sub",
            "cp -r sub /tmp/x",
            "cat < sub/hard",
            "echo x > sub/hard",
            "sed -n p sub/hard",
            "cd sub && cat hard",
            "git add sub",
            "git hash-object -w sub/hard",
        ];
        assert_eq!(wrong(&gate, &rules, Verdict::Deny, &denied), NONE, "{path}");
        assert_eq!(
            wrong(&gate, &rules, Verdict::Allow, &["cat other", "ls sub", "ls -l sub/hard"]),
            NONE,
            "{path}"
        );
        for (tool, kind) in [("view", ToolKind::Read), ("search", ToolKind::Search), ("many", ToolKind::Read)]
        {
            let effects = Effects::reading("/w/sub/hard");
            let call = GateCall { tool, also: &[], kind, kinds: &[], effects: &effects, arguments: &[] };
            let decided = gate.decide_call(&rules, Actor::Model, Mode::FullAuto, &call);
            assert_eq!(decided.verdict, Verdict::Deny, "{path}: {tool}");
        }
    }
    // Outside of the workspace.
    let files = [("/srv/key", Known::Untracked, Some(3)), ("/w/hard", Known::Untracked, Some(3))];
    for path in ["/srv/key", "/srv/*"] {
        assert_eq!(wrong(&gate(&files), &book(path), Verdict::Deny, &["cat hard"]), NONE, "{path}");
    }
}
