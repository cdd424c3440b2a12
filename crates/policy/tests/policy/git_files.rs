//! A denied file is neither read nor written through git, by any words: after the hash of a folder, in git's own
//! objects, and by commands that write all that git tracks (issue 15).

use lathe_policy::{GateCall, Rulebook, Tier};
use lathe_protocol::{Actor, Effects, Mode, ToolKind, Verdict};

use crate::reads::{Known, NONE, book, gate, wrong};

/// Lines that print `sub/plan.txt` after an object whose folder is not known.
const BEHIND_OBJECTS: &[&str] = &[
    "git show 1a2b3c4:plan.txt",
    "git cat-file -p 1a2b3c4:plan.txt",
    "git cat-file blob 1a2b3c4:plan.txt",
    "git cat-file -p 1a2b3c4:./plan.txt",
    "git cat-file -p 1a2b3c4^{tree}:plan.txt",
    "git show 1a2b3c4^{}:plan.txt",
    "git show v1-2-g1a2b3c4:plan.txt",
    "git show 'HEAD^{/x}:plan.txt'",
    "git show DEADBEEF:plan.txt",
    "git show abcd:sub/plan.txt",
    "git show $(git rev-parse HEAD:sub):plan.txt",
    "t=$(cat a); git show \"$t:plan.txt\"",
    "git --no-pager show 1a2b3c4:plan.txt",
    "git-show 1a2b3c4:plan.txt",
    "git show 1a2b3c4:a.txt 1a2b3c4:plan.txt",
    "git diff 1a2b3c4:plan.txt 1a2b3c4:a.txt",
    "git grep x 1a2b3c4",
    "git cat-file -p 1a2b3c4",
    "git cat-file --batch <<< 1a2b3c4:plan.txt",
    "git cat-file --batch-c <<< 1a2b3c4:plan.txt",
    "git cat-file --batch-command <<< 'contents 1a2b3c4'",
    "git show 1a2b3c4",
    "git tag x 1a2b3c4",
    "git tag -f x 'HEAD^{tree}'",
    "git tag -m x y 1a2b3c4",
    "git update-ref refs/tags/x 1a2b3c4",
    "git update-ref --stdin",
    "git fetch . 1a2b3c4:refs/tags/x",
    "git push . +1a2b3c4:refs/tags/x",
    "git replace 1a2b3c4 2b3c4d5",
    "git ls-tree HEAD | git mktree",
    "git update-index --add --cacheinfo 100644,1a2b3c4,a.txt",
    "git update-index --add --cach 100644,1a2b3c4,a.txt",
    "git update-index --index-info < a",
    "git commit-tree 1a2b3c4 -m x",
    "git hash-object -t commit -w --stdin < a",
    "git hash-object -w --stdin-paths < a",
    "git update-index --add --stdin < a",
    "git merge-file --object-id -p 1a2b 2b3c 3c4d",
    "git log --full-diff -p -- a.txt",
    "git show --full-diff HEAD -- a.txt",
    "git whatchanged --full-d -p -- a.txt",
    "git format-patch --full-diff --stdout -1 -- a.txt",
    "git --icase-pathspecs log -p -- SUB/PLAN.txt",
    "GIT_ICASE_PATHSPECS=1 git show HEAD -- SUB",
    "export GIT_ICASE_PATHSPECS=1; git show HEAD -- SUB",
    "git --icase-pathspecs grep x -- SUB",
    "git --glob-pathspecs diff HEAD -- SUB",
    "ssh -F sub/plan.txt h",
    "ssh -i sub/plan.txt h",
    "ssh -o IdentityFile=sub/plan.txt h",
    "ssh -oUserKnownHostsFile=sub/plan.txt h",
    "ssh -o 'IdentityFile sub/plan.txt' h",
    "git log -sp",
    "git log -zp",
    "git log -1 -sqp",
    "git checkout other --",
    "cat .git/objects/1a/2b3c4",
    "cp -r .git x",
    "tar cf x.tar .git",
    "cp .git/objects/pack/x.pack x",
    "python3 -c \"open('.git/objects/1a/2b','rb')\"",
    "git-unpack-objects < .git/objects/pack/x.pack",
    // Paths begin in the folder that the object is, and a file is shown with any paths.
    "git show 1a2b3c4 -- a.txt",
    "git show -s 1a2b3c4",
    "git show --stat 1a2b3c4",
    "git diff 1a2b3c4 -- a.txt",
    "git diff 1a2b3c4 2b3c4d5 -- plan.txt",
    "git diff HEAD:sub HEAD~1:sub -- plan.txt",
    "git grep x 1a2b3c4 -- plan.txt",
    "git grep -e x 1a2b3c4 -- plan.txt",
    "git archive 1a2b3c4 -- plan.txt",
    "git checkout 1a2b3c4 -- plan.txt",
    "git checkout HEAD:sub -- plan.txt",
    "git restore -s 1a2b3c4 plan.txt",
    "git restore -s1a2b3c4 plan.txt",
    "git restore --sour=HEAD:sub plan.txt",
    "git restore --source HEAD:sub --staged plan.txt",
    "git read-tree 1a2b3c4 -- main",
    "git bundle create x HEAD -- a.txt",
    // An option of the subcommand, and no folder.
    "git log -C -p",
    "git diff -C HEAD~1",
];

/// Lines that tell by counts or by chosen commits what is in `sub/plan.txt`.
const GUESSES: &[&str] = &[
    "git log -Sfoo",
    "git log -S foo",
    "git log -G foo --oneline",
    "git log --oneline -Gfoo",
    "git log -1 -iS foo",
    "git log -S foo --pickaxe-regex --pickaxe-all --format=%H",
    "git log -S foo --count",
    "git --no-pager log -S foo",
    "git log --all -S foo -s",
    "git log -S foo -- .",
    "git log -S foo -- sub",
    "git log -S foo -- '*.txt'",
    "git log -S foo -- ':!a.txt'",
    "git log -S foo -- ':(exclude)sub/other.txt'",
    "git log -L1,2:sub/plan.txt",
    "git log -L:x:sub/plan.txt",
    "git log --find-object=1a2b3c4",
    "git log --find-object HEAD:sub/plan.txt",
    "git rev-list -S foo HEAD",
    "git rev-list --count -Gfoo --all",
    "git rev-list --find-obj=1a2b3c4 HEAD",
    "git shortlog -S foo",
    "git shortlog -sn -Gfoo",
    "git reflog -S foo",
    "git stash list -S foo",
    "git whatchanged -S foo",
    "git show -s -S foo HEAD",
    "git diff -S foo --stat",
    "git diff --name-only -G foo HEAD~1",
    "git diff --quiet -S foo HEAD~1",
    "git diff --numstat -I foo HEAD~1",
    "git diff --stat --ignore-matching-lines=foo HEAD~1",
    "git diff --stat --ignore-matc foo HEAD~1",
    "git diff --raw --find-copies-harder HEAD~1",
    "git diff --raw -C -C HEAD~1",
    "git diff-tree -r --name-only -S foo HEAD",
    "git diff-index --name-only -S foo HEAD~1",
    "git diff-files --name-only -G foo",
    "git format-patch -S foo --stdout",
    "git grep -c foo",
    "git grep -l foo",
    "git grep -q foo",
    "git grep -q foo HEAD~1",
    "git grep --count foo -- ':!a.txt'",
    "git-log -S foo",
];

/// Lines that look for a text elsewhere, or in messages.
const GUESS_OTHERS: &[&str] = &[
    "git log -S foo -- a.txt",
    "git log --oneline -G'foo(' -- a.txt",
    "git log -S foo -- ':!sub'",
    "git log -p -- ':!sub'",
    "git diff -S 'foo(' HEAD~1 -- a.txt",
    "git grep 'foo(' -- a.txt",
    "git grep -n foo -- ':!sub'",
    "git grep -n foo HEAD~1 -- ':^sub'",
    "git log --grep foo",
    "git log --grep=foo --author=S",
    "git rev-list --count HEAD",
    "git shortlog -sn",
    "git diff --stat --ignore-space-change HEAD~1",
];

/// Lines that show all but `sub/plan.txt`, and what is known of an object besides its content.
const LEFT_OUT: &[&str] = &[
    "git diff -- ':!sub'",
    "git diff -- ':^sub'",
    "git diff -- ':(exclude)sub'",
    "git diff -- ':(exclude)sub/'",
    "git diff -- ':(top,exclude)sub'",
    "git diff -- ':!/sub'",
    "git diff -- ':!sub/plan.txt'",
    "git diff -- . ':!sub'",
    "git diff HEAD~1 -- ':!a.txt' ':!sub'",
    "git diff HEAD~2..HEAD -- ':!sub'",
    "git --no-pager diff -- ':!sub'",
    "git show HEAD -- ':!sub'",
    "git show 1a2b3c4^{commit} -- ':!sub'",
    "git add -- . ':!sub'",
    "git add . ':!sub'",
    "git add -A ':!sub'",
    "git stash push -- ':!sub'",
    "git restore -- . ':!sub'",
    "git checkout HEAD -- . ':!sub'",
    "git archive HEAD -- ':!sub'",
    "git cat-file -p HEAD",
    "git cat-file -p HEAD~2",
    "git cat-file -p @",
    "git cat-file -p main",
    "git cat-file commit HEAD",
    "git cat-file -p 1a2b3c4^{commit}",
    "git cat-file -p HEAD^{tree}",
    "git cat-file tree HEAD",
    "git cat-file -t HEAD",
    "git cat-file -t HEAD:sub/plan.txt",
    "git cat-file -s HEAD:sub/plan.txt",
    "git cat-file -e HEAD:sub/plan.txt",
    "git cat-file -s 1a2b3c4",
    "git cat-file -e 1a2b3c4:plan.txt",
    "git show --stat 1a2b3c4^{commit}",
    "git diff 1a2b3c4^{commit} -- a.txt",
];

/// Exclusions that do not, or may not, take `sub/plan.txt` out, and the content of objects.
const NOT_LEFT_OUT: &[&str] = &[
    "git diff -- ':!a.txt'",
    "git diff -- ':!su'",
    "git diff -- ':!sub/other.txt'",
    "git diff -- ':!SUB'",
    "git diff -- ':(exclude,icase)SUB'",
    "git diff -- ':(exclude,glob)s*'",
    "git diff -- ':!s*'",
    "git diff -- ':!sub/*'",
    "git diff -- ':!*.md'",
    "git diff -- ':(exclude,attr:x)sub'",
    "git diff -- \":!$x\"",
    "git diff ':!sub'",
    "git log -p --grep ':!sub'",
    "git log --full-diff -p -- ':!sub'",
    "cd other && git diff -- ':!sub'",
    "cd sub && git diff -- ':!sub'",
    "git -C sub diff -- ':!sub'",
    "git -C other diff -- ':!sub'",
    "git --work-tree=/ diff -- ':!sub'",
    "git -c core.worktree=/ diff -- ':!sub'",
    "GIT_WORK_TREE=/ git diff -- ':!sub'",
    "GIT_NOGLOB_PATHSPECS=1 git diff -- ':!sub/*'",
    "git diff HEAD:sub HEAD~1:sub -- ':!sub'",
    "git show 1a2b3c4 -- ':!sub'",
    "git show HEAD:sub/plan.txt -- ':!sub'",
    "git stash show -p -- ':!sub'",
    "git cat-file -p 1a2b3c4 -- ':!sub'",
    "git bundle create x HEAD -- ':!sub'",
    "git add --pathspec-from-file=a.txt ':!sub'",
    "git cat-file -p HEAD:sub/plan.txt",
    "git cat-file blob HEAD:sub/plan.txt",
    "git cat-file -p 1a2b3c4",
    "git cat-file -p :sub/plan.txt",
    "git cat-file -e --batch < a",
    "git cat-file --batch-command < a",
    "git cat-file --textconv HEAD:sub/plan.txt",
];

/// Lines that show another file, or nothing that is in one.
const OTHERS: &[&str] = &[
    "git log -p -- a.txt",
    "git log --full-history --oneline",
    "git show HEAD:a.txt",
    "git show main:a.txt",
    "git show HEAD~2:plan.txt",
    "git show v1.0:plan.txt",
    "git show 1a2b3c4~1:plan.txt",
    "git show 1a2b3c4:a.txt",
    "git cat-file -p HEAD:a.txt",
    "git cat-file -t 1a2b3c4",
    "git cat-file --batch-check < a",
    "git log --oneline -5",
    "git log -n5 -s",
    "git tag x",
    "git tag x HEAD",
    "git push origin main",
    "git push origin HEAD:main",
    "git fetch origin main:x",
    "git ls-tree HEAD",
    "ls .git/objects",
    "cat .git/HEAD",
    "git rev-parse HEAD",
];

/// Lines that write or delete `sub/plan.txt`, which git tracks.
const WRITERS: &[&str] = &[
    "git restore .",
    "git restore sub",
    "git restore sub/plan.txt",
    "git restore -s HEAD .",
    "git restore -sSTABLE .",
    "git restore --source=HEAD~1 -- sub",
    "git restore --staged --worktree .",
    "git restore -SW .",
    "git restore --stag --work .",
    "git restore ':(glob)**/plan.txt'",
    "git restore -s HEAD ':(glob)**/plan.txt'",
    "git restore ':/'",
    "git restore '*.txt'",
    "git restore --pathspec-from-file=a.txt",
    "git restore --pathspec-from a.txt",
    "git checkout HEAD -- .",
    "git checkout -- .",
    "git checkout -- sub",
    "git checkout HEAD -- sub/plan.txt",
    "git checkout .",
    "git checkout main",
    "git checkout main --",
    "git checkout -",
    "git checkout -f",
    "git checkout --forc",
    "git checkout -b x origin/main",
    "git switch main",
    "git switch --discard-changes -c x",
    "git switch --disc -c x",
    "git stash",
    "git stash push",
    "git stash push -m message",
    "git stash push --mess message",
    "git stash push -- sub",
    "git --icase-pathspecs stash push -- SUB",
    "git --icase-pathspecs checkout HEAD -- SUB",
    "GIT_ICASE_PATHSPECS=1 git restore SUB",
    "git --icase-pathspecs rm -r SUB",
    "git stash push sub",
    "git stash save x",
    "git stash pop",
    "git stash apply",
    "git stash -k",
    "git stash -u",
    "git reset --hard",
    "git reset --har",
    "git reset --hard HEAD~1",
    "git reset --keep HEAD",
    "git reset --merge",
    "git merge x",
    "git merge --abort",
    "git pull",
    "git pull --rebase origin main",
    "git rebase main",
    "git rebase --continue",
    "git am a.patch",
    "git apply a.patch",
    "git apply --chec --apply a.patch",
    "git apply --check --no-check a.patch",
    "git cherry-pick x",
    "git cherry-pick --abort",
    "git revert x",
    "git revert -n x",
    "git sparse-checkout set a",
    "git bisect reset",
    "git submodule update",
    "git -C . stash",
    "git -C sub restore .",
    "cd sub && git restore .",
    "env git stash",
    "git read-tree -u HEAD",
    "git checkout-index -a",
    "git rm -r sub",
    "git mv sub x",
];

/// Lines that write no such file.
const WRITE_OTHERS: &[&str] = &[
    "git restore a.txt",
    "git restore --staged .",
    "git restore -S .",
    "git checkout -- a.txt",
    "git checkout HEAD -- a.txt",
    "git checkout -b x",
    "git checkout -bfeature",
    "git switch -c x",
    "git stash list",
    "git stash drop",
    "git stash push a.txt",
    "git stash push -- a.txt",
    "git stash push -m sub -- a.txt",
    "git reset",
    "git reset --soft HEAD",
    "git clean -fd",
    "git clean -fdx",
    "git apply --check a.patch",
    "git apply --stat a.patch",
    "git apply --cached a.patch",
    "git fetch",
    "git commit -m 'git stash'",
    "git add a.txt",
    "git branch x",
    "git sparse-checkout list",
    "git submodule status",
    "git bisect log",
];

#[test]
fn a_denied_file_is_not_read_behind_an_object() {
    let files = [("/w/a.txt", Known::Tracked, None), ("/w/sub/plan.txt", Known::Tracked, None)];
    let gate = gate(&files);
    for path in ["sub/plan.txt", "sub/**", "sub/*.txt", "sub", "/w/sub/plan.txt"] {
        let rules = book(path);
        assert_eq!(wrong(&gate, &rules, Verdict::Deny, BEHIND_OBJECTS), NONE, "{path}");
        assert_eq!(wrong(&gate, &rules, Verdict::Allow, OTHERS), NONE, "{path}");
    }
}

#[test]
fn a_denied_file_is_not_guessed_by_searches_of_git() {
    let files = [("/w/a.txt", Known::Tracked, None), ("/w/sub/plan.txt", Known::Tracked, None)];
    let gate = gate(&files);
    for path in ["sub/plan.txt", "sub/**", "plan.txt"] {
        let rules = book(path);
        assert_eq!(wrong(&gate, &rules, Verdict::Deny, GUESSES), NONE, "{path}");
        assert_eq!(wrong(&gate, &rules, Verdict::Allow, GUESS_OTHERS), NONE, "{path}");
    }
    let none = Rulebook::builtin();
    assert_eq!(wrong(&gate, &none, Verdict::Allow, GUESSES), NONE);
}

#[test]
fn what_is_left_out_by_a_plain_exclusion_is_not_denied() {
    let files = [
        ("/w/a.txt", Known::Tracked, None),
        ("/w/other/x", Known::Tracked, None),
        ("/w/sub/plan.txt", Known::Tracked, None),
    ];
    let gate = gate(&files);
    for path in ["sub/plan.txt", "sub/**", "plan.txt"] {
        let rules = book(path);
        assert_eq!(wrong(&gate, &rules, Verdict::Allow, LEFT_OUT), NONE, "{path}");
        assert_eq!(wrong(&gate, &rules, Verdict::Deny, NOT_LEFT_OUT), NONE, "{path}");
    }
    // One of several denied files stays.
    let files = [files[0], files[2], ("/w/deep/plan.txt", Known::Tracked, None)];
    let lines = ["git diff -- ':!sub'", "git grep x -- ':!sub'"];
    assert_eq!(wrong(&crate::reads::gate(&files), &book("plan.txt"), Verdict::Deny, &lines), NONE);
    let lines = ["git diff -- ':!sub' ':!deep'"];
    assert_eq!(wrong(&crate::reads::gate(&files), &book("plan.txt"), Verdict::Allow, &lines), NONE);
}

#[test]
fn a_denied_file_is_not_written_by_git() {
    let files = [("/w/a.txt", Known::Tracked, None), ("/w/sub/plan.txt", Known::Tracked, None)];
    let gate = gate(&files);
    for path in ["sub/plan.txt", "sub/**", "plan.txt"] {
        let only_edits = format!("[[rule]]\ndecision = \"deny\"\nkind = [\"edit\"]\npath = [\"{path}\"]\n");
        let only_edits = Rulebook::builtin().with_file(Tier::User, "f.toml", &only_edits).unwrap();
        for rules in [book(path), only_edits] {
            assert_eq!(wrong(&gate, &rules, Verdict::Deny, WRITERS), NONE, "{path}");
            assert_eq!(wrong(&gate, &rules, Verdict::Allow, WRITE_OTHERS), NONE, "{path}");
        }
    }
}

/// Lines that write `sub/plan.txt` without git, by a folder it lies in or by a name that it has elsewhere.
const COPIES: &[&str] = &[
    "cp other/plan.txt sub",
    "cp other/plan.txt sub/",
    "cp -t sub other/plan.txt",
    "cp --target=sub other/plan.txt",
    "cp -r other/. sub",
    "cp -a other .",
    "mv other/plan.txt sub/",
    "install other/plan.txt sub",
    "ln -f other/plan.txt sub/",
    "rsync -a other/ sub/",
    "rsync other/plan.txt sub",
    "tar xf a.tar",
    "tar -xzf a.tgz",
    "tar --extract --file=a.tar",
    "tar xf a.tar -C sub",
    "unzip a.zip",
    "unzip -o a.zip -d sub",
    "cpio -idu < a",
    "ls | cpio -pd sub",
    "pax -r < a",
    "7z x a.7z",
    "patch -p1 < a",
    "patch -d sub < a",
    "cd sub && patch < a",
    "rm -rf sub",
    "rm -r .",
    "find sub -delete",
    "find . -type f -delete",
    "find . -name 'plan*' -delete",
    "find . -name plan.txt -exec rm {} +",
    "find . ! -name '*.py' -delete",
    "find . -name '*.py' -o -name '*.txt' -delete",
    "chmod -R 000 sub",
    "mv sub other",
];

/// Lines that copy and unpack elsewhere.
const COPY_ELSEWHERE: &[&str] = &[
    "cp a.txt b.txt",
    "cp a.txt sub/",
    "mv a.txt other/",
    "tar xf a.tar -C other",
    "tar tf a.tar",
    "unzip -l a.zip",
    "unzip a.zip -d other",
    "cp -r a.txt other",
    "patch a.txt < b",
    "patch --dry-run -p1 < a",
    "7z x a.7z -oother",
    "7z l a.7z",
    "rm -rf other",
    "rm a.txt",
    "find . -name '*.pyc' -delete",
    "find other -delete",
    "find . -name plan.txt",
];

#[test]
fn a_denied_file_is_not_written_by_copies_of_folders() {
    let files = [
        ("/w/a.txt", Known::Tracked, None),
        ("/w/other/x", Known::Tracked, None),
        ("/w/sub/plan.txt", Known::Tracked, None),
    ];
    let (gate, rules) = (gate(&files), book("sub/plan.txt"));
    assert_eq!(wrong(&gate, &rules, Verdict::Deny, COPIES), NONE);
    assert_eq!(wrong(&gate, &rules, Verdict::Allow, COPY_ELSEWHERE), NONE);
}

#[test]
fn the_denial_names_the_rule_its_pattern_and_its_reason() {
    let files = [("/w/a.txt", Known::Tracked, None), ("/w/sub/plan.txt", Known::Tracked, None)];
    for (path, line, cause) in [
        ("sub/plan.txt", "git restore -s HEAD ':(glob)**/plan.txt'", "it may write sub/plan.txt"),
        ("sub/plan.txt", "git stash", "it may write sub/plan.txt"),
        ("sub/plan.txt", "git cat-file -p 1a2b3c4:plan.txt", "it may read sub/plan.txt"),
        ("plan.txt", "git restore .", "it may write plan.txt"),
        ("plan.txt", "git diff", "it may read plan.txt"),
        ("plan.txt", "git log -S foo", "it may read plan.txt"),
        ("sub/**", "git diff", "it may read sub/**"),
        ("sub/**", "cat sub/*", "it may read sub/**"),
        ("sub/**", "cat $x", "it may read x.key"),
        ("sub/**", "cat $x; cat sub/*", "it may read x.key"),
        ("sub/**", "cat $x sub/*", "it may read sub/**"),
        ("sub/**", "cat a.txt sub/plan.txt", "it reads sub/**"),
        ("sub/**", "echo x > sub/plan.txt", "it writes sub/**"),
        ("sub/**", "rm sub/plan.txt", "it writes sub/**"),
        ("sub/**", "cp a.txt sub/plan.txt", "it writes sub/**"),
    ] {
        for (said, after) in [("", String::new()), ("not for you", ": not for you".to_owned())] {
            let mut rules = format!("[[rule]]\ndecision = \"deny\"\npath = [\"x.key\", {path:?}]\n");
            rules += &if said.is_empty() { String::new() } else { format!("reason = {said:?}\n") };
            let rules = Rulebook::builtin().with_file(Tier::User, "f.toml", &rules).unwrap();
            let mut gate = gate(&files);
            gate.home = "/w2/.lathe".into();
            let decided = gate.decide_line(&rules, Actor::Model, Mode::FullAuto, line);
            assert_eq!(decided.decision.rule, "f.toml:1", "{line}: {}", decided.decision.reason);
            let expected = format!("{cause}, which f.toml:1 denies{after}");
            assert!(decided.decision.reason.ends_with(&expected), "{line}: {}", decided.decision.reason);
        }
    }
}

#[test]
fn the_denial_of_a_call_names_the_rule_and_its_pattern() {
    let files = [("/w/sub/plan.txt", Known::Tracked, None)];
    let (gate, rules) = (gate(&files), book("sub/**"));
    let (read, written) = (Effects::reading("/w/sub/plan.txt"), Effects::writing("/w/sub/new.txt"));
    for (tool, kind, effects, cause) in [
        ("view", ToolKind::Read, &read, "it reads sub/**"),
        ("create", ToolKind::Edit, &written, "it writes sub/**"),
    ] {
        let call = GateCall { tool, also: &[], kind, kinds: &[], effects, arguments: &[] };
        let decided = gate.decide_call(&rules, Actor::Model, Mode::FullAuto, &call);
        assert_eq!(decided.reason, format!("{cause}, which f.toml:1 denies"), "{tool}");
    }
    let kinds = "[[rule]]\ndecision = \"deny\"\nkind = [\"fetch\"]\n\n[[rule]]\ndecision = \"deny\"\ncommand = [\"ls\"]\n";
    let rules = Rulebook::builtin().with_file(Tier::User, "f.toml", kinds).unwrap();
    for (line, reason) in
        [("curl x", "it is of the kind `fetch`, which f.toml:1 denies"), ("ls", "f.toml:5 denies it")]
    {
        let decided = gate.decide_line(&rules, Actor::Model, Mode::FullAuto, line);
        assert!(decided.decision.reason.ends_with(reason), "{line}: {}", decided.decision.reason);
    }
}

#[test]
fn clean_takes_away_what_git_does_not_know() {
    let rules = book("*.key");
    let cleans: &[&str] =
        &["git clean -fd", "git clean -fd -e x", "git clean -f .", "git clean -fenode", "git clean --forc"];
    let deep: &[&str] = &["git clean -fdx", "git clean -fdX", "git clean -xdf -e x"];
    let dry: &[&str] =
        &["git clean -n", "git clean -nd", "git clean --dry-run", "git clean -ndx", "git clean -fd sub"];
    for (known, denied, free) in [
        (Known::Untracked, [cleans, deep].concat(), dry.to_vec()),
        (Known::Ignored, deep.to_vec(), [cleans, dry].concat()),
        (Known::Tracked, Vec::new(), [cleans, deep, dry].concat()),
    ] {
        let files = [("/w/a.txt", Known::Tracked, None), ("/w/x.key", known, None)];
        let gate = gate(&files);
        assert_eq!(wrong(&gate, &rules, Verdict::Deny, &denied), NONE);
        assert_eq!(wrong(&gate, &rules, Verdict::Allow, &free), NONE);
    }
}
