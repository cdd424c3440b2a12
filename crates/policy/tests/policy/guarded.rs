//! Issue 15: `.git` and Lathe's own folder are guarded by the same code. Every row is tried once for each of them: a
//! name that only the running line knows, program texts, words of unknown programs, patterns of `extglob`.

use lathe_policy::{Gate, Rulebook};
use lathe_protocol::{Actor, Mode, Verdict};

fn gate() -> Gate {
    Gate { home: "/srv/work/home8".into(), ..crate::gate(false) }
}

/// Lines that are only read here. `DIR` stands for the guarded folder, `FILE` for a file in it.
const GUARDED: &str = r#"
t=$(printf DIR)/hooks/x; tee "$t"
t=$(printf DIR)/hooks/x; cp a "$t"
t=$(printf DIR)/hooks/x; mv a "$t"
t=$(printf DIR)/hooks/x; install a "$t"
t=$(printf DIR)/hooks/x; ln a "$t"
t=$(printf DIR)/hooks/x; dd if=a of="$t"
t=$(printf DIR)/hooks/x; sed -i s/a/b/ "$t"
t=$(printf DIR)/hooks/x; touch "$t"
t=$(printf DIR)/hooks/x; echo x > "$t"
t=$(python3 -c 'print("FILE")'); tee "$t"
t=$(python3 -c 'print("FILE")'); cp a "$t"
t=$(python3 -c 'print("FILE")'); mv a "$t"
t=$(python3 -c 'print("FILE")'); install a "$t"
t=$(python3 -c 'print("FILE")'); ln -s a "$t"
t=$(python3 -c 'print("FILE")'); dd if=a of="$t"
t=$(python3 -c 'print("FILE")'); sed -i s/a/b/ "$t"
t=$(python3 -c 'print("FILE")'); touch "$t"
t=$(python3 -c 'print("FILE")'); echo x > "$t"
t=$(python3 -c 'print("FILE")'); rsync a "$t"
t=$(python3 -c 'print("FILE")'); curl -o "$t" http://127.0.0.1/
t=$(python3 -c 'print("FILE")'); tar xf a.tar -C "$t"
t=$(python3 -c 'print("FILE")'); some-program "$t"
t=a; t=$(python3 -c 'print("FILE")'); echo x > "$t"
t=a; t=$(realpath FILE); cp a "$t"
cp a "$(realpath FILE)"
cp a "$(ls -d FILE*)"
find DIR/hooks -name x -exec cp a {} \;
ls -d DIR/hooks/* | xargs cp a
ls -d DIR/hooks/* | xargs -I{} cp a {}
find DIR/hooks -name x | parallel cp a
t=$(ls -d DIR); cp a "$t/hooks/x"
t=$(realpath DIR); echo x > "$t/config"
read t <<< FILE; tee "$t"
t=$(cat <<< FILE); tee "$t"
printf -v t %s FILE; cp a "$t"
echo FILE | xargs tee
touch FILE
awk 'BEGIN{a="DIR"; b="/hooks/x"; print "x" > (a b)}'
awk -v a=DIR -v b=/hooks/x 'BEGIN{print "x" > a b}'
awk 'BEGIN{print "x" > ("DIR" "/hooks/x")}'
python3 -c 'open("FILE","w").write("a")'
python3 -c 'import os; open(os.path.join("DIR","hooks","x"),"w")'
python3 -c 'open("DIR" + "/hooks/x","w")'
python3 - <<< 'open("FILE","w")'
echo 'open("FILE","w")' | python3
perl -e 'open(F,">","FILE")'
perl -e 'open(F,">","DIR"."/hooks/x")'
ruby -e 'File.write("FILE","a")'
node -e 'fs.writeFileSync("FILE","a")'
node -e 'fs.writeFileSync("DIR" + "/hooks/x","a")'
lua -e 'io.open("DIR" .. "/hooks/x","w"):write("x")'
some-program FILE
some-program --out=FILE
some-program -oFILE
python3 x.py FILE
make OUT=FILE
OUT=FILE make
cd DIR/hooks && some-program x
f() { echo x; } > FILE; f
cp a "${ echo FILE; }"
t=$(cat a); tee "$t" < FILE
ls DIR; read t < a; echo x > "$t"
ls -la DIR/; read t < a; cp b "$t"
find DIR -name config -exec cp a {} \;
find DIR -exec sed -i s/a/b/ {} +
find DIR | xargs -I% cp a %
cp sub/x DIR/../"$t"
while read f; do cp a "$f"; done < FILE
mapfile -t f < <(ls DIR); cp a "${f[0]}"
ssh -o ProxyCommand='tee FILE' h < a
ssh -oProxyCommand='cat a > FILE' h
ssh -o 'LocalCommand=cp a FILE' h
rsync -e 'tee FILE' a h:b
GIT_SSH_COMMAND='tee FILE' git fetch
export GIT_SSH_COMMAND='tee FILE'
git -c core.sshCommand='tee FILE' fetch
GIT_EDITOR='cp a FILE' git commit
tar cf b.tar a --checkpoint=1 --checkpoint-action='exec=cp a FILE'
ls | cpio -pd DIR/hooks
cpio -pdm DIR/hooks < a
cpio --pass-through DIR/hooks < a
cpio -i -D DIR/hooks < a
pax -rw a DIR/hooks
pax -r -f a.tar -s ',^,DIR/hooks/,'
rsync -a a/ DIR/hooks/
rsync --write-batch=FILE a b
tar -C DIR/hooks -xf a.tar
tar xfC a.tar DIR/hooks
tar cfg a.tar FILE b
tar --dir=DIR/hooks -xf a.tar
unzip a.zip -d DIR/hooks
unzip -dDIR/hooks a.zip
install -t DIR/hooks a
install -m 755 a FILE
install --target=DIR/hooks a
dd if=a of=FILE
sed -i s/a/b/ FILE
sed --in-pl s/a/b/ FILE
cat a | sponge FILE
ln -sf ../../a FILE
ln -s a -t DIR/hooks
7z a FILE b
7z x a.7z -oDIR/hooks
openssl req -keyout FILE
wget --save-cookies FILE http://127.0.0.1/
wget -e output_document=FILE http://127.0.0.1/
patch -r FILE < a
patch --reject-file=FILE < a
"#;

/// Programs that put a name of a file in `.git` together from pieces.
const PIECES: &[&str] = &[
    "python3 -c \"from pathlib import Path; Path('.git','config').write_text('x')\"",
    "python3 -c \"from pathlib import Path; (Path('.git')/'config').write_text('x')\"",
    "python3 -c \"p='.git'; open(p+'/config','w')\"",
    "python3 -c \"import os; os.chdir('.git'); open('a','w').write('x')\"",
    "python3 -c \"import os; open(os.sep.join(['.git','config']),'w')\"",
    "python3 -c \"import shutil; shutil.copy('a', '.git')\"",
    "python3 -c \"open('%s/%s' % ('.git', 'config'),'w')\"",
    "python3 -c \"open('{}/{}'.format('.git', 'info/exclude'),'w')\"",
    "node -e \"fs.writeFileSync(['.git','config'].join('/'),'a')\"",
    "ruby -e \"File.write(['.git','config'].join('/'),'a')\"",
    "perl -e \"chdir('.git'); open(F,'>','a')\"",
    "python3 - <<< \"from pathlib import Path; Path('.git','config').write_text('x')\"",
];

/// Patterns of `extglob`, each with what it stands for.
const EXTENDED: &[&str] = &[
    "cp a .@(git)/hooks/x",
    "cp a .g+(i)t/hooks/x",
    "tee .g?(i)t/hooks/x",
    "tee .*(g|i|t)/hooks/x",
    "tee @(.git)/hooks/x",
    "tee ?(.)git/hooks/x",
    "echo x > .@(git|x)/hooks/x",
    "echo x > .!(a)/hooks/x",
    "shopt -s extglob; tee .@(git)/hooks/x",
    "cd .@(git)/hooks; tee x",
    "tee ../hom@(e8)/x",
    "tee ../+([a-z])8/x",
    "echo x > ../@(home8)/x",
    "cp a ../!(repo)/x",
];

/// Lines that write elsewhere, or only read.
const FREE: &str = r#"
find . -path ./.git -prune -o -name '*.py' -print | xargs sed -i s/a/b/
grep -rl x --exclude-dir=.git . | xargs sed -i s/x/y/
for f in $(git ls-files); do sed -i s/a/b/ "$f"; done
if [ -d .git ]; then cp a "$dst"; fi
rsync -a --exclude .git . "$dst"
tar --exclude=.git -czf "$out" .
t=$(mktemp); cat .git/HEAD > "$t"
cat .git/config; ./build.sh "$X"
for d in a b; do mkdir -p "$d"; cp x "$d/config"; done
cp !(a).txt out
shopt -s extglob; rm -rf !(keep)
case $x in @(a|b)) cp a b;; esac
ls .git/hooks
python3 -c "print(open('.git/HEAD').read())"
python3 -c "d.remove('.git'); open('x','w').write('a')"
touch a hooks/x
find . -type f -not -path './.git/*' | xargs sed -i s/a/b/
find . -not -path './.git/*' -name '*.py' -exec sed -i s/a/b/ {} +
find . ! -path './.git/*' -type f -exec sed -i s/a/b/ {} \;
find . \( -path ./.git -o -path ./target \) -prune -o -type f -exec sed -i s/a/b/ {} +
find . -type f | grep -v .git/ | xargs sed -i s/a/b/
[[ -d .git ]] && cp a "$dst"
git --git-dir=.git log > "$out"
x=$(echo a | sed 's/.*//'); echo b > "$x"
python3 -c "import shutil; shutil.copytree('a','b',ignore=shutil.ignore_patterns('.git'))"
ssh -o ProxyCommand='nc %h %p' h 'ls .git/hooks'
git commit -m 'tee .git/hooks/x'
fd -E .git -x sed -i s/a/b/ {}
7z x .git/a.7z
"#;

fn refused(line: &str) -> bool {
    let decided = gate().decide_line(&Rulebook::builtin(), Actor::Model, Mode::FullAuto, line).decision;
    decided.verdict == Verdict::Deny && decided.rule.starts_with("guard.")
}

#[test]
fn every_spelling_is_refused_for_each_guarded_place() {
    let rows = GUARDED.lines().filter(|line| !line.is_empty());
    let lines = rows.flat_map(|row| {
        [".git", "../home8"]
            .map(|folder| row.replace("FILE", &format!("{folder}/hooks/x")).replace("DIR", folder))
    });
    let lines = lines.chain(EXTENDED.iter().chain(PIECES).map(|line| (*line).to_owned()));
    let let_through: Vec<String> = lines.filter(|line| !refused(line)).collect();
    assert!(let_through.is_empty(), "{let_through:#?}");
}

#[test]
fn lines_that_only_name_a_guarded_place_are_free() {
    let wrong: Vec<String> = FREE
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            (line, gate().decide_line(&Rulebook::builtin(), Actor::Model, Mode::FullAuto, line).decision)
        })
        .filter(|(_, decided)| decided.verdict != Verdict::Allow)
        .map(|(line, decided)| format!("{line}: {} {}", decided.rule, decided.reason))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Commands that make git run a program, or read another file, later.
const SETTINGS: &[&str] = &[
    "git config core.hooksPath /tmp/x",
    "git config alias.x '!cmd'",
    "git config core.fsmonitor ./x",
    "git config core.pager ./x",
    "git config CORE.Pager ./x",
    "git config core.editor ./x",
    "git config core.sshCommand ./x",
    "git config diff.external ./x",
    "git config diff.a.textconv ./x",
    "git config filter.a.clean ./x",
    "git config merge.a.driver ./x",
    "git config credential.helper ./x",
    "git config credential.https://x.org.helper ./x",
    "git config include.path ./x",
    "git config includeIf.gitdir:/x.path ./x",
    "git config --global core.pager ./x",
    "git config --system core.pager ./x",
    "git config --file .git/config core.pager ./x",
    "git config --fil y core.pager ./x",
    "git config set core.pager ./x",
    "git config --add core.pager ./x",
    "git config --replace-all core.pager ./x",
    "git config --get --no-get core.pager ./x",
    "git config --rename-section a alias",
    "git config --edit",
    "git -C . config core.pager ./x",
    "git-config core.pager ./x",
    "git config $(echo core.pager) ./x",
    "k=pager; git config core.$k ./x",
    "git config \"$k\" ./x",
    "echo core.pager ./x | xargs git config",
    "bash -c 'git config core.pager ./x'",
    "xargs git config core.pager < a",
    "xargs git config < a",
    "xargs git < a",
    "xargs -a a git config",
    "cat a | xargs -n2 git config",
    "cat a | xargs -I% git config % x",
    "cat a | xargs -I% git config core.% x",
    "cat a | xargs git config --global",
    "find a -exec git config --add {} x \\;",
    "find a -execdir git config {} x \\;",
    "fd a -x git config {} x",
    "parallel git config < a",
    "parallel -a a git config",
    "cat a | parallel git config core.{} x",
    "git config $(cat a)",
    "git config `cat a`",
    "git config $(<a)",
    "git config $x",
    "git config \"$@\"",
    "git config \"${a[@]}\"",
    "git config *",
    "git $(cat a)",
    "git --no-pager $(cat a)",
    "mapfile -t a < x; git config \"${a[@]}\"",
    "git config --renam a alias",
    "git config --rename-sec a alias",
    "git config --ed",
    "git config --edi --global",
    "git config --repl core.pager ./x",
    "git config --ad core.pager ./x",
    "git config --comment --list core.pager ./x",
    "git config --comment list core.pager ./x",
    "git config --comm --get core.pager ./x",
    "git config --default -l core.pager ./x",
    "git config -f --list core.pager ./x",
    "git config -- core.pager -x",
    "git config --end-of-options alias.x '-c core.pager=./x log'",
    "git config --add -- core.pager -x",
    "git clone --conf core.hooksPath=x a b",
    "git submodule foreach 'git config core.pager ./x'",
    "git -c alias.z='config core.pager ./x' z",
    "git -c alias.z=config z core.pager ./x",
    "git -c alias.z='!git config core.pager ./x' z",
    "git config lfs.customtransfer.x.path ./x",
    "git clone -c core.hooksPath=x a b",
    "git clone --config=core.hooksPath=x a b",
];

/// Commands that set something harmless: asked about, and free in full-auto.
const HARMLESS: &[&str] = &[
    "git config user.name X",
    "git config user.email X",
    "git config --global user.name X",
    "git config init.defaultBranch main",
    "git config core.autocrlf input",
    "git config --unset core.hooksPath",
    "git config user.name $(whoami)",
    "git config user.name \"$NAME\"",
    "git config \"user.$k\" x",
    "cat a | xargs git config user.name",
    "git config --add remote.origin.fetch +refs/x:refs/y",
    "git -c core.hooksPath=/tmp/x commit -m a",
    "git -c alias.x='!cmd' x",
    "git --config-env=core.pager=X log",
    "GIT_CONFIG_GLOBAL=./x git status",
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.pager GIT_CONFIG_VALUE_0=./x git log",
];

/// Commands that only read settings.
const READING: &[&str] = &[
    "git config user.name",
    "git config core.pager",
    "git config --get user.name",
    "git config --get-all remote.origin.url",
    "git config --get-regexp alias",
    "git config --list",
    "git config -l",
    "git config --show-origin --list",
    "git config --type=bool core.bare",
    "git config list",
    "git config get user.name",
    "git config --get --default x user.name",
];

#[test]
fn settings_of_git_that_name_programs_are_written_by_no_line() {
    let rules = Rulebook::builtin();
    let said = |line: &str, mode| gate().decide_line(&rules, Actor::Model, mode, line).decision.verdict;
    let mut wrong = Vec::new();
    for (lines, expected) in [
        (SETTINGS, [Verdict::Deny; 4]),
        (HARMLESS, [Verdict::Deny, Verdict::Ask, Verdict::Ask, Verdict::Allow]),
        (READING, [Verdict::Allow; 4]),
    ] {
        for line in lines {
            let modes = [Mode::Plan, Mode::Default, Mode::AutoEdit, Mode::FullAuto];
            let decided = modes.map(|mode| said(line, mode));
            if decided != expected {
                wrong.push(format!("{line}: {decided:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
