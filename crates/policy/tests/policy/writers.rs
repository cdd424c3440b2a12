//! Issue 15: files inside of `.git` and of Lathe's own folder are written by none of the ways that hide the file:
//! programs inside of words, options, variables, other folders, and git itself.

use lathe_policy::{Gate, Rulebook};
use lathe_protocol::{Actor, Mode, Verdict};

fn gate() -> Gate {
    Gate { home: "/srv/work/home8".into(), ..crate::gate(false) }
}

/// Lines that are only read here.
const GUARDED: &str = r#"
sed -n 'w.git/hooks/x' a
sed -n 'W.git/hooks/x' a
sed -n 1,3w.git/hooks/x a
sed 's/h/x/w.git/hooks/x' a
sed 's/h/x/gw .git/hooks/x' a
sed --expression='w.git/hooks/x' a
sed --expr 'w.git/hooks/x' a
sed -s 'w.git/hooks/x' a
sed -ne 'p;w.git/hooks/x' a
sed -n -e p -e 'w.git/hooks/x' a
sed -i 'w.git/hooks/x' a
sed -i.bak -e 's/a/b/;w .git/config' a
sed -n '/a/{p;w.git/hooks/x
}' a
gsed -n 'w.git/hooks/x' a
x=.git/hooks/x; sed -n "w$x" a
sed -n '1e echo x > .git/hooks/x' a
sed -f - a <<< 'w.git/hooks/x'
sed -n 'w../home8/config.toml' a
sed 's/a/b/w../home8/config.toml' a
awk -v f=.git/hooks/x '{print > f}' a
awk -vf=.git/hooks/x '{print >> f}' a
awk '{print > f}' f=.git/hooks/x a
awk --assign=f=.git/hooks/x '{print > f}' a
f=.git/hooks/x awk '{print > ENVIRON["f"]}' a
awk '{print | "cat > .git/hooks/x"}' a
awk 'BEGIN{system("cp a .git/hooks/x")}'
awk '{print > (".git" "/hooks/x")}' a
awk -v f=../home8/x '{print > f}' a
awk '{print | "cat > ../home8/x"}' a
awk '{print > "../home8/x"}' a
set -- .git/hooks/x; echo x > "${@:1:1}"
set -- a .git/hooks/x; echo x > "${@:2}"
set -- .git/hooks/x; echo x > "${@: -1}"
set -- .git/hooks/x; echo x > "${!#}"
set -- .git/hooks/x; n=1; echo x > "${!n}"
set a .git/hooks/x; echo x > "$2"
set -- a .git/hooks/x; shift; echo x > "$1"
set -- ../home8/z; echo x > "${@:1:1}"
set -- ../home8/z; echo x > "${*:1:1}"
mapfile -C 'echo x > .git/hooks/x;:' -c 1 < a
readarray -C 'echo x > .git/hooks/x;:' -c 1 < a
mapfile -C 'echo x > ../home8/x;:' -c 1 < a
HISTFILE=.git/hooks/x; history -s x; history -w
HISTFILE=../home8/x; history -w
history -w .git/hooks/x
GIT_TRACE=/srv/work/repo/.git/hooks/x git status
export SSLKEYLOGFILE=.git/hooks/x; curl https://127.0.0.1/
env -C .git/hooks bash -c 'echo x > pre-commit'
env --chdir=.git/hooks bash -c 'echo x > pre-commit'
env -C.git/hooks tee pre-commit
env -C ../home8 tee config.toml
sudo -D .git/hooks tee pre-commit
split --filter='cat > .git/hooks/x' a
split --filter 'cat > .git/hooks/x' a
split --filter='cat > ../home8/x.toml' a
sort --outp .git/hooks/x a
sort --outp=.git/hooks/x a
sort --o .git/hooks/x a
sort --compress-program='tee .git/hooks/x' a
curl --libcurl .git/hooks/x http://127.0.0.1/
curl --hsts .git/hooks/x http://127.0.0.1/
curl --etag-save .git/hooks/x http://127.0.0.1/
curl --trace .git/hooks/x http://127.0.0.1/
curl --trace-ascii .git/hooks/x http://127.0.0.1/
curl -w '%output{.git/hooks/x}x' http://127.0.0.1/
curl -w '%output{>>.git/hooks/x}x' http://127.0.0.1/
echo 'output=.git/hooks/x' | curl -K - http://127.0.0.1/
curl -K - http://127.0.0.1/ <<< 'output = ".git/hooks/x"'
tar xf x.tar --transform 's,^,.git/hooks/,'
tar xf x.tar --xform='s,^,.git/hooks/,'
tar xf x.tar --transf='s|^|.git/hooks/|'
tar xf x.tar --transform 's/^/.git\/hooks\//'
tar xf x.tar --to-command='cat > .git/hooks/x'
tar -xf x.tar .git/hooks/pre-commit
unzip -o x.zip .git/hooks/pre-commit
python3 -m zipfile -e x.zip .git/hooks
python3 -m tarfile -e x.tar .git/hooks
gcc -MD -MF .git/hooks/x a.c
gcc -Wp,-MD,.git/hooks/x a.c
perf record -o .git/hooks/x true
unbuffer -o .git/hooks/x true
rlwrap --histfile .git/hooks/x true
php -r 'file_put_contents(".git/hooks/x", "a");'
tclsh <<< 'set f [open .git/hooks/x w]; puts $f x'
lua -e 'io.open(".git/hooks/x","w"):write("x")'
node -e 'require("fs").createWriteStream(".git/hooks/x").write("x")'
cd .git/hooks && git --work-tree=. checkout HEAD -- .
git --work-tree .git/hooks restore .
export GIT_WORK_TREE=.git/hooks; git checkout HEAD -- x
cd .git/hooks && git mv -f a b
git mv -f a sub/../.git/hooks/x
git apply --unsafe-paths --directory=.git/hooks a.patch
git merge-file .git/config a b
git fast-export --export-marks=.git/hooks/x HEAD
git fast-import --export-marks=.git/hooks/x
git fast-import --allow-unsafe-features
git credential-store --file=.git/hooks/x store
git credential-store --file .git/hooks/x store
git interpret-trailers --in-place .git/hooks/x
git init --template=sub
git init --template sub
git init --templ=sub
git clone --template=sub . ../x
GIT_TEMPLATE_DIR=sub git init
git -c init.templateDir=sub init
git config --file .git/hooks/x a.b c
git mailsplit -o.git/hooks a
echo .git/hooks/x > n; read t < n; echo x > "$t"
printf .git/hooks/x | { read t; echo x > "$t"; }
echo ../home8/config.toml > n; read t < n; echo x > "$t"
"#;

/// Lines that write elsewhere, or only read in there.
const FREE: &str = r#"
sed -n 'w out' a
sed 's/a/b/w out' a
sed -n '/.git/p' .git/config
sed -i 's,/.git/,/x/,' README.md
sed 's/w .git/x/' a
awk '{print > "out"}' a
awk -v f=out '{print > f}' a
awk '{print | "sort"}' a
awk -v p=.git '$0 ~ p' a
set -- a b; echo x > "${@:1:1}"
set -- a b; shift; echo x > "$1"
set -euo pipefail; make
mapfile -t x < .git/packed-refs
HISTFILE=/dev/null bash -c 'ls'
env -C sub make
split --filter='gzip > $FILE.gz' a
sort -o out .git/packed-refs
sort .git/packed-refs
timeout 5 head -3 .git/HEAD
curl -w '%{http_code}' -o out http://127.0.0.1/
tar xf x.tar --transform 's,^,sub/,'
tar xf x.tar -C sub
unzip -p x.zip .git/HEAD
python3 -m zipfile -e x.zip out
python3 -m json.tool .gitattributes.json
gcc -MD -MF a.d a.c
php -r 'echo file_get_contents(".git/HEAD");'
python3 -c "print(open('.git/HEAD').read())"
git --work-tree=sub checkout HEAD -- .
git mv a b
git checkout -b x
git init
git init --template= sub
git clone . ../copy
git config core.bare false
git config --file .git/config core.bare false
git commit -F .git/COMMIT_EDITMSG
git add .
git fast-export HEAD
git apply a.patch
git stash
git rebase main
t=$(mktemp); cat .git/HEAD > "$t"
echo done > "$(mktemp)"
"#;

#[test]
fn no_hidden_way_writes_inside_of_git_or_lathes_folder() {
    let (rules, mut wrong) = (Rulebook::builtin(), Vec::new());
    let lines = |text: &'static str| {
        let mut lines: Vec<String> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            match lines.last_mut().filter(|_| line.starts_with('}')) {
                Some(last) => last.push_str(&format!("\n{line}")),
                None => lines.push(line.to_owned()),
            }
        }
        lines
    };
    for line in lines(GUARDED) {
        let decided = gate().decide_line(&rules, Actor::Model, Mode::FullAuto, &line).decision;
        if decided.verdict != Verdict::Deny || !decided.rule.starts_with("guard.") {
            wrong.push(format!("{line}: {} {}", decided.rule, decided.reason));
        }
    }
    for line in lines(FREE) {
        let decided = gate().decide_line(&rules, Actor::Model, Mode::FullAuto, &line).decision;
        if decided.verdict != Verdict::Allow {
            wrong.push(format!("free: {line}: {} {}", decided.rule, decided.reason));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
