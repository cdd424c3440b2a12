//! Files inside of `.git` are written by git only; no other program may write them.

use lathe_policy::Rulebook;
use lathe_protocol::{Actor, Mode, Verdict};

use crate::gate;

/// Lines that are only read here.
const WRITES: &str = r#"
tar -cf .git/hooks/pre-commit src
tar cf .git/hooks/pre-commit src
tar cvzf .git/hooks/pre-commit src
tar --create --file=.git/hooks/pre-commit src
tar -rf .git/hooks/x a.txt
iconv -t UTF-8 -o .git/hooks/pre-commit a.txt
iconv -o.git/hooks/pre-commit a.txt
zip .git/hooks/pre-commit a.txt
zip -q .git/hooks/pre-commit a.txt
ar r .git/hooks/pre-commit a.o
script -qc true .git/hooks/pre-commit
script -c true .git/hooks/pre-commit
strace -o .git/hooks/pre-commit true
time -o .git/hooks/pre-commit true
valgrind --log-file=.git/hooks/x ls
git bundle create .git/hooks/pre-commit HEAD
git clone . .git/q
git init .git/q
git worktree add .git/q
git checkout-index --prefix=.git/hooks/ -a
git archive -o .git/hooks/x HEAD
git format-patch -o .git/hooks HEAD~1
git --work-tree=.git/hooks checkout HEAD -- pre-commit
GIT_WORK_TREE=.git/hooks git checkout HEAD -- pre-commit
git -C .git/hooks --work-tree=. checkout HEAD
ssh-keygen -f .git/hooks/pre-commit -N ''
sqlite3 .git/hooks/x.db 'create table t(a)'
csplit -f .git/hooks/x a.txt 1
split a.txt .git/hooks/x
curl -so.git/config http://127.0.0.1/x
curl -s -o .git/config http://127.0.0.1/x
curl -sSLo .git/config http://127.0.0.1/x
wget -qO.git/config http://127.0.0.1/x
pandoc -o .git/hooks/pre-commit a.md
pandoc a.md --output=.git/hooks/pre-commit
vim -es +w!.git/config +q a.txt
vim -es -c 'w! .git/config' -c q a.txt
ex -s a.txt -c 'w! .git/hooks/pre-commit'
ffmpeg -i a.wav .git/hooks/x
convert a.png .git/hooks/x
python3 tool.py --out .git/hooks/pre-commit
node tool.js .git/hooks/pre-commit
mytool .git/config
./gen.sh .git/hooks/pre-commit
make OUT=.git/hooks/pre-commit
gcc -o .git/hooks/pre-commit a.c
go build -o .git/hooks/pre-commit
cargo build --target-dir .git/hooks
npm run build -- --out .git/hooks/pre-commit
openssl enc -out .git/hooks/x
cd .git/hooks && unzip ../../x.zip
cd .git && make
cd .git/hooks; python3 ../../tool.py
unzip -d .git/hooks x.zip
7z x -o.git/hooks x.7z
patch .git/config a.patch
sub/../.git/../tool .git/config
env X=1 mytool .git/config
timeout 5 pandoc -o .git/hooks/x a.md
mytool --config=.GIT/config
mytool .g?t/config
x=.git/config; mytool $x
"#;

/// Lines that only read in there, or change nothing that runs.
const READS: &str = r#"
cat .git/config
head -3 .git/HEAD
grep -r url .git/config
X=1 cat .git/HEAD
timeout 5 cat .git/HEAD
bash -c 'cat ./.git/config'
sh -c "ls ./.git/hooks"
ls -la .git/hooks
du -sh .git
wc -l .git/packed-refs
find .git/refs -type f
cp .git/config /tmp/config.bak
cp -r .git ../backup.git
tar -czf ../backup.tgz .git
tar -czf ../backup.tgz -C .git .
rsync -a .git/ ../backup/
rm -f .git/index.lock
chmod +x .git/hooks/pre-commit
test -f .git/MERGE_HEAD
bash .git/hooks/pre-commit
sh -x .git/hooks/pre-commit
python3 -c "print(open('.git/HEAD').read())"
git --git-dir=.git log
git -C .git log
git log -- .git/x
git status
git worktree add ../wt
git clone . ../copy
git bundle create ../x.bundle HEAD
stat .git/index
md5sum .git/index
diff .git/config ../other/.git/config
sed -n 1,5p .git/config
awk '{print}' .git/HEAD
file .git/index
zip -r ../x.zip .git
make
cat .git/config > /tmp/x
mytool < .git/HEAD
cargo build --target-dir target
mytool .gitignore .github/workflows/x.yml
"#;

#[test]
fn nothing_but_git_writes_inside_of_git() {
    let rules = Rulebook::builtin();
    let mut wrong = Vec::new();
    for mode in Mode::ALL {
        for line in WRITES.lines().filter(|line| !line.is_empty()) {
            let decided = gate(false).decide_line(&rules, Actor::Model, mode, line).decision;
            if decided.verdict != Verdict::Deny || !decided.rule.starts_with("guard.") {
                wrong.push(format!("{mode:?}: {line}: {} {}", decided.rule, decided.reason));
            }
        }
        for line in READS.lines().filter(|line| !line.is_empty()) {
            let decided = gate(false).decide_line(&rules, Actor::Model, mode, line).decision;
            if decided.rule.starts_with("guard.") {
                wrong.push(format!("{mode:?}: {line}: {} {}", decided.rule, decided.reason));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
