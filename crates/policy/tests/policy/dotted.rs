//! Patterns that mean more than a folder lists or a fresh shell shows: `.?` for the folder above, `*` for hidden
//! names, `cd NAME` for a variable; and programs that get a folder by an option or by a test.

use std::path::{Path, PathBuf};

use lathe_policy::{Disk, FileId, Gate, OnDisk, Rulebook, ShellSwitches, Tier};
use lathe_protocol::{Actor, Mode, Verdict};

fn gate() -> Gate {
    Gate { home: "/srv/work/home8".into(), ..crate::gate(false) }
}

/// A workspace `/srv/work/repo` with a few files, one of them hidden.
struct Few;

const FILES: [&str; 6] = [
    "/srv/work/repo/a.c",
    "/srv/work/repo/.env",
    "/srv/work/repo/.git",
    "/srv/work/repo/web",
    "/srv/work/repo/private",
    "/srv/work/repo/private/f.txt",
];

/// Tells whether a pattern of bash fits a name: `*`, `?` and sets of plain characters.
fn fits_name(pattern: &[char], name: &[char]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some(('*', rest)) => (0..=name.len()).any(|at| fits_name(rest, &name[at..])),
        Some(('[', rest)) => {
            let end = rest.iter().position(|c| *c == ']').unwrap_or(0);
            name.first().is_some_and(|c| rest[..end].contains(c) && fits_name(&rest[end + 1..], &name[1..]))
        }
        Some((want, rest)) => {
            name.first().is_some_and(|c| (*want == '?' || want == c) && fits_name(rest, &name[1..]))
        }
    }
}

impl Few {
    fn found(pattern: &str, hidden: bool) -> Vec<PathBuf> {
        let parts: Vec<&str> = pattern.split('/').collect();
        let fits = |(part, name): (&&str, &str)| {
            part == &name
                || part.contains(['*', '?', '['])
                    && (hidden || part.starts_with('.') || !name.starts_with('.'))
                    && fits_name(&part.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
        };
        let named = |file: &&&str| file.split('/').count() == parts.len();
        let found = FILES.iter().filter(named).filter(|file| parts.iter().zip(file.split('/')).all(fits));
        found.map(PathBuf::from).collect()
    }
}

impl Disk for Few {
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
        Some(Self::found(pattern, false))
    }

    fn expand_with_hidden(&self, pattern: &str) -> Option<Vec<PathBuf>> {
        Some(Self::found(pattern, true))
    }

    fn exists(&self, path: &Path) -> bool {
        FILES.iter().any(|file| Path::new(file) == path)
    }

    fn holds_any(&self, folder: &Path, test: &mut dyn FnMut(&Path) -> bool) -> bool {
        FILES.iter().map(Path::new).filter(|path| *path != folder && path.starts_with(folder)).any(test)
    }

    fn is_tracked(&self, _: &Path) -> bool {
        false
    }

    fn is_ignored_by_git(&self, _: &Path) -> bool {
        false
    }

    fn repository(&self, _: &Path) -> Option<PathBuf> {
        Some("/srv/work/repo".into())
    }

    fn hard_link_id(&self, _: &Path) -> Option<FileId> {
        None
    }
}

fn on_disk() -> Gate {
    Gate { disk: OnDisk::new(Few), ..gate() }
}

fn denying(path: &str) -> Rulebook {
    let text = format!("[[rule]]\ndecision = \"deny\"\npath = [\"{path}\"]\n");
    Rulebook::builtin().with_file(Tier::User, "mine", &text).unwrap()
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty())
}

/// The lines of which the decision is not as it should be.
fn wrong(
    gate: &Gate,
    rules: &Rulebook,
    mode: Mode,
    text: &str,
    right: impl Fn(Verdict, &str) -> bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for line in lines(text) {
        let decided = gate.decide_line(rules, Actor::Model, mode, line).decision;
        if !right(decided.verdict, &decided.rule) {
            wrong.push(format!("{mode:?} {line}: {:?} {} {}", decided.verdict, decided.rule, decided.reason));
        }
    }
    wrong
}

/// Lathe's own folder lies next to the workspace.
const HOME: &str = r#"
cat .[.]/home8/policy/a.toml
sh -c 'cat .[.]/home8/policy/a.toml'
dash -c 'cat .?/home8/policy/a.toml'
cp cfg .[.]/home8/policy/a.toml
sh -c 'cp cfg .[.]/home8/policy/a.toml'
echo x > .?/home8/config.toml
sh -c 'echo x > .?/home8/config.toml'
tee .*/home8/x < a
cat .[!x]/home8/auth.json
cat .[^x]/home8/auth.json
cat .*/home8/auth.json
cat ./.?/home8/auth.json
cat sub/.?/.?/home8/auth.json
cat sub/../.?/home8/auth.json
cat .?/./home8/auth.json
cat .[.]/hom?8/auth.json
cat .?/*/auth.json
cat .@(.)/home8/auth.json
shopt -s extglob; cat .@(.)/home8/auth.json
bash -O extglob -c 'cat .@(.)/home8/auth.json'
bash -O extglob -c 'cat .+(.)/home8/auth.json'
cat @(..)/home8/auth.json
cat /srv/work/repo/.?/home8/auth.json
cat $PWD/.?/home8/auth.json
x=.?; cat $x/home8/auth.json
cd .? && cat home8/auth.json
cd .[.]; cat home8/auth.json
sh -c 'cd .? && cat home8/auth.json'
find .?/home8 -type f
find .[.] -type f
grep -r KEY .?
grep -r KEY .[.]/home8
ls .?/home8
ls -R .?
tar cf x.tar .?
cp -r .[.] x
rsync -a .?/ x
du -a .?
rm -rf .?/home8
mv .[.]/home8 x
ln -s .?/home8/auth.json x
head < .?/home8/auth.json
for f in .?/*; do cat "$f"; done
echo .?/home8/*
for f in .?/home8/*; do echo "$f"; done
[ -e .?/home8/auth.json ]
git -C .?/home8 log
cat .?/.?/.?/.?/.?/.?/.?/srv/work/home8/auth.json
"#;

/// Keys in a home folder, three folders up.
const KEYS: &str = r#"
cat .?/.?/.?/home/me/.ssh/id_rsa
cat .[.]/../../home/me/.ssh/id_rsa
head ../../.?/home/me/.ssh/id_rsa
grep -r KEY ../../.*/home/me/.ssh
sh -c 'cat ../../.?/home/me/.ssh/id_rsa'
cp ../../.?/home/me/.ssh/id_rsa x
"#;

/// Lines that remove the workspace or a folder above it.
const GUARD: &str = r#"
rm -rf .?/repo
rm -rf .[.]/repo
rm -rf .[.]
rm -rf .?
rm -rf .[.]/*
rm -rf sub/.?
rm -rf sub/.[.]
sh -c 'rm -rf .?/repo'
rm -rf .@(.)/repo
bash -O extglob -c 'rm -rf .@(.)/repo'
find .?/ -delete
find .? -delete
find .[.]/repo -delete
mv .?/repo /tmp/x
mv .[.]/repo x
cd .? && rm -rf repo
cd sub && rm -rf .?
rm -rf .?/.?/.?/.?/.?/.?/.?
rm -rf /.[.]
rm -rf ~/.[.]
"#;

/// Outside of the workspace, which mode `plan` does not read.
const OUTSIDE: &str = r#"
ls .?
ls .*
cat .[.]/other/a
cat .?/other/*
head .?/uh/x
find .[.]/other -name x
echo .?/*
echo .[.]/other/*
printf '%s\n' .?/other/*
for f in .?/other/*; do echo "$f"; done
"#;

const INSIDE: &str = r#"
ls .[a-z]*
ls -d .[!.]*
ls .??*
ls .git*
cat .*rc
cat .env*
cat src/*.rs
ls *
ls */
wc -l src/*/*.rs
jq '.[0]' a.json
jq -r '.[] | .name' a.json
grep '.*' a
grep -n 'a/.*' a
sed 's/.?/x/' a
sed -n 's/.*/x/p' a
find . -name '.*'
find . -path './.*' -prune -o -print
rg '.*' src
awk '/.*/' a
echo *.c
echo "a/.?"
for f in src/*.rs; do wc -l "$f"; done
"#;

#[test]
fn a_pattern_that_may_mean_the_folder_above_reaches_what_is_there() {
    let rules = Rulebook::builtin();
    let mut all = Vec::new();
    for gate in [gate(), on_disk()] {
        for mode in Mode::ALL {
            all.extend(wrong(&gate, &rules, mode, HOME, |verdict, _| verdict == Verdict::Deny));
            all.extend(wrong(&gate, &rules, mode, GUARD, |verdict, rule| {
                verdict == Verdict::Deny && rule.starts_with("guard.")
            }));
        }
        for mode in [Mode::Plan, Mode::FullAuto] {
            all.extend(wrong(&gate, &rules, mode, KEYS, |verdict, _| verdict == Verdict::Deny));
        }
        all.extend(wrong(&gate, &rules, Mode::Plan, OUTSIDE, |verdict, _| verdict == Verdict::Deny));
        all.extend(wrong(&gate, &rules, Mode::Default, OUTSIDE, |verdict, _| verdict != Verdict::Allow));
    }
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn a_pattern_that_stays_is_decided_as_before() {
    let rules = Rulebook::builtin();
    let mut all = Vec::new();
    for gate in [gate(), on_disk()] {
        for mode in [Mode::Plan, Mode::Default] {
            all.extend(wrong(&gate, &rules, mode, INSIDE, |verdict, _| verdict == Verdict::Allow));
        }
    }
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn a_denied_file_is_not_read_through_the_folder_above() {
    let rules = denying("/srv/work/other/**");
    let text = "cat .?/other/a\nsh -c 'cat .[.]/other/a'\ncp a .*/other/a\ngrep x .[!x]/other/a\n";
    let all = wrong(&gate(), &rules, Mode::FullAuto, text, |verdict, _| verdict == Verdict::Deny);
    assert!(all.is_empty(), "{all:#?}");
}

/// Lines that print `.env` in a shell with `dotglob`, which an earlier line may have switched on.
const HIDDEN: &str = r#"
cat *v
cat ?env
cat [.]env
cat *
grep x *v
sh -c 'cat *v'
shopt -s dotglob; cat *v
GLOBIGNORE=x; cat *v
bash -O dotglob -c 'cat *v'
cp *v x
"#;

#[test]
fn a_denied_file_is_meant_by_a_pattern_for_hidden_names() {
    let rules = denying(".env");
    let mut all = wrong(&on_disk(), &rules, Mode::FullAuto, HIDDEN, |verdict, _| verdict == Verdict::Deny);
    let others = "cat *.c\nls *.c\nrm *.o\ncat web/*\nrm -rf web/*\n";
    all.extend(wrong(&on_disk(), &rules, Mode::FullAuto, others, |verdict, _| verdict == Verdict::Allow));
    assert!(all.is_empty(), "{all:#?}");
}

/// Lines that delete `.git` where patterns mean hidden names.
const HISTORY: &str = r#"
rm -rf *
rm -rf ./*
rm -rf *t
rm -rf ?git
mv * /tmp/x
"#;

#[test]
fn where_patterns_mean_hidden_names_the_history_is_among_them() {
    let rules = Rulebook::builtin();
    let switched = ShellSwitches { hidden_names: true, ..ShellSwitches::default() };
    let mut all = Vec::new();
    for gate in [gate(), on_disk()] {
        all.extend(wrong(&gate, &rules, Mode::FullAuto, HISTORY, |verdict, _| verdict == Verdict::Allow));
        let gate = Gate { switched, ..gate };
        all.extend(wrong(&gate, &rules, Mode::FullAuto, HISTORY, |_, rule| rule == "guard.git"));
        let harmless = "rm *.o\nrm -rf build/*.o\nls *\ncat src/*.rs\n";
        all.extend(wrong(&gate, &rules, Mode::FullAuto, harmless, |verdict, _| verdict == Verdict::Allow));
    }
    let text = "shopt -s dotglob; rm -rf *\nGLOBIGNORE=x; rm -rf *\nbash -O dotglob -c 'rm -rf *'\nx=dotglob; shopt -s $x; rm -rf *t\nGLOBIGNORE=x bash -c 'rm -rf *'\nzsh -o globdots -c 'rm -rf *'\nshopt -s 'dot'glob; rm -rf *\n";
    all.extend(wrong(&gate(), &rules, Mode::FullAuto, text, |_, rule| rule == "guard.git"));
    // Keys in a home folder have hidden names.
    let home = Gate { switched, user_home: Some("/srv/work/repo".into()), home: "/h".into(), ..on_disk() };
    assert_eq!(
        wrong(&home, &rules, Mode::FullAuto, "cat *v", |verdict, _| verdict == Verdict::Deny).len(),
        0
    );
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn a_folder_that_is_not_there_may_be_a_variable() {
    let rules = Rulebook::builtin();
    let mut all = Vec::new();
    for mode in [Mode::Plan, Mode::Default] {
        all.extend(wrong(&on_disk(), &rules, mode, "cd web\ncd web && ls\ncd ./p && ls\n", |verdict, _| {
            verdict == Verdict::Allow
        }));
        all.extend(wrong(
            &on_disk(),
            &rules,
            mode,
            "cd p\ncd p && cat f.txt\ncd -- p; ls\n",
            |verdict, _| verdict != Verdict::Allow,
        ));
    }
    let switched = ShellSwitches { folder_variables: true, ..ShellSwitches::default() };
    let gate = Gate { switched, ..on_disk() };
    let text = "cd p && cat f.txt\ncd p; cat f.txt\npushd p && cat f.txt\ncd p && cd q && cat f.txt\n";
    all.extend(wrong(&gate, &denying("private"), Mode::FullAuto, text, |verdict, _| {
        verdict == Verdict::Deny
    }));
    let text = "shopt -s cdable_vars; p=priv; p+=ate; cd p && cat f.txt\n";
    all.extend(wrong(&on_disk(), &denying("private"), Mode::FullAuto, text, |verdict, _| {
        verdict == Verdict::Deny
    }));
    let text = "mkdir p && cd p && cat f.txt\ncd p && cat f.txt\n";
    all.extend(wrong(&on_disk(), &denying("private"), Mode::FullAuto, text, |verdict, _| {
        verdict == Verdict::Allow
    }));
    assert!(all.is_empty(), "{all:#?}");
}

/// Searches that begin in a folder which an option names.
const STARTS: &str = r#"
fd x --search-path /
fd x --search-path=/
fd x --search-path ~
fd . --search-path ..
fdfind . --search-path=..
fd --search-path .. x
fd --base-directory .. x
fd --base-directory=.. x
fd -C .. x
fd -HC .. x
fd -C.. x
fd --base-directory ../other x ..
fd x ..
find -f .. -name x
"#;

/// Tests that tell whether a file of Lathe's folder is there.
const COMPARED: &str = r#"
find . -newer ../home8/zz.json
find . -anewer ../home8/zz.json
find . -cnewer ../home8/zz.json
find . -newermm ../home8/zz.json
find . -neweraB ../home8/zz.json
find . ! -newer ../home8/zz.json
find . -samefile ../home8/zz.json
find . -name x -o -newer /srv/work/home8/zz.json
find . -newer $LATHE_HOME/zz.json
fd --newer ../home8/zz.json
fd --changed-within=../home8/zz.json
fd x --search-path ../home8
fd --base-directory ../home8 x
"#;

#[test]
fn a_folder_in_an_option_or_a_test_counts_as_an_operand() {
    let rules = Rulebook::builtin();
    let mut all = wrong(&gate(), &rules, Mode::Plan, STARTS, |verdict, _| verdict == Verdict::Deny);
    all.extend(wrong(&gate(), &rules, Mode::Default, STARTS, |verdict, _| verdict != Verdict::Allow));
    for mode in Mode::ALL {
        all.extend(wrong(&gate(), &rules, mode, COMPARED, |_, rule| rule == "reading.home"));
    }
    let free = "fd x src\nfd -e rs x --search-path src\nfd --base-directory src x\nfind . -newer Cargo.toml\nfind . -newermt 2024-01-01\nfind . -newer a -name '*.rs'\n";
    all.extend(wrong(&gate(), &rules, Mode::Plan, free, |verdict, _| verdict == Verdict::Allow));
    assert!(all.is_empty(), "{all:#?}");
}

/// Patterns that tell the names in a folder which `ls` may not list.
const LISTED: &str = r#"
echo ~/.ssh/*
printf '%s\n' ~/.ssh/*
echo ~/.ss?/*
echo ../*
echo ../other/x*
for f in ~/.ssh/*; do echo "$f"; done
x=(~/.ssh/*); echo ${#x[@]}
x=(~/.ssh/*); echo ${x[0]}
set -- ../*; echo $1
[ -e ~/.ssh/* ]
"#;

const LISTED_BY_RULE: &str = r#"
ls private
echo private/*
printf '%s\n' private/*
echo priv*/*
echo private*/f.txt
for f in private/*; do echo "$f"; done
for f in private/*; do :; done; echo "$f"
x=(private/*); echo ${x[0]}
x=(private/*); echo ${#x[@]}
set -- private/*
"#;

#[test]
fn a_pattern_lists_its_folder() {
    let mut all =
        wrong(&gate(), &Rulebook::builtin(), Mode::Plan, LISTED, |verdict, _| verdict == Verdict::Deny);
    let rules = denying("private");
    all.extend(wrong(&on_disk(), &rules, Mode::FullAuto, LISTED_BY_RULE, |verdict, _| {
        verdict == Verdict::Deny
    }));
    let free = "echo *\necho web/*\nfor f in web/*; do echo \"$f\"; done\necho \"private/*\"\necho 'private/*'\n[[ $x == private/* ]]\necho /usr/*\n";
    all.extend(wrong(&on_disk(), &rules, Mode::Plan, free, |verdict, _| verdict == Verdict::Allow));
    assert!(all.is_empty(), "{all:#?}");
}
