//! Issue 15: a model runs no command of Lathe that changes what Lathe keeps or starts something, however it is reached.

use lathe_policy::Rulebook;
use lathe_protocol::{Actor, Mode, Verdict};

use crate::gate;

const DENIED: &str = r#"
lathe auth login anthropic
lathe auth logout anthropic
lathe trust add
lathe trust add --yes .
lathe trust remove
lathe serve
lathe serve --port 1
lathe run --mode full-auto x
lathe run x
lathe interactive
lathe resume
lathe fork
lathe undo
lathe rewind 1
lathe replay x
lathe gc
lathe gc --all
lathe shell -c 'cat a'
lathe tool run bash x
lathe connect x
lathe demo
lathe quarantine restore
lathe policy revoke 1
lathe unknown
lathe --config x serve
lathe $x
lathe "$@"
lathe policy $x
/usr/local/bin/lathe serve
./target/debug/lathe serve
~/bin/lathe auth login x
env -i lathe serve
env LATHE_HOME=/tmp/x lathe run x
LATHE_HOME=/tmp/x lathe run x
command lathe serve
exec lathe serve
nohup lathe serve &
timeout 5 lathe serve
time lathe serve
sudo lathe serve
setsid lathe serve
nice lathe serve
lathe serve & disown
(lathe serve)
if true; then lathe serve; fi
f() { lathe serve; }; f
bash -c 'lathe serve'
eval 'lathe serve'
echo serve | xargs lathe
xargs lathe < a
xargs -a a lathe
cat a | xargs lathe policy
find a -exec lathe {} \;
find a -exec lathe auth login {} \;
$(which lathe) serve
`which lathe` auth login x
"$(command -v lathe)" serve
$(type -P lathe) serve
l=$(which lathe); $l serve
l=lathe; $l serve
l=lathe; "$l" auth login x
l=/usr/bin/lathe; m=$l; $m serve
c="lathe serve"; $c
/usr/bin/lath? serve
/usr/bin/[l]athe serve
l'ath'e serve
\lathe serve
a=la; b=the; $a$b serve
/proc/$PPID/exe serve
/proc/1234/exe run x
$(readlink /proc/$PPID/exe) serve
cp $(which lathe) x; ./x serve
ln -s /usr/local/bin/lathe x
alias l=lathe
python3 -c "import subprocess; subprocess.run(['lathe','serve'])"
python3 -c "import os; os.system('lathe auth login x')"
perl -e 'exec "lathe", "run", "x"'
node -e 'require("child_process").execSync("lathe undo")'
tmux new 'lathe serve'
watch lathe gc
ssh -o ProxyCommand='lathe serve' h
make SHELL='lathe serve'
echo lathe serve | sh
echo 'lathe serve' | at now
git -c alias.x='!lathe serve' x
awk 'BEGIN{system("lathe serve")}'
"#;

const FREE: &str = r#"
lathe --version
lathe -V
lathe --help
lathe help run
lathe serve --help
lathe policy check 'ls'
lathe policy check --mode plan
lathe policy list
lathe trust list
lathe quarantine list
lathe config show
lathe sessions
lathe doctor
env lathe --version
command -v lathe
which lathe
echo lathe serve
echo "run lathe serve"
grep -r 'lathe serve' .
git commit -m 'lathe serve'
git log --grep='lathe run'
cargo test -p lathe serve
cargo run -p lathe-cli
cd lathe
ls lathe run
cat lathe.md
lathes serve
./lathe-x serve
"#;

#[test]
fn what_changes_lathe_itself_is_the_users() {
    let rules = Rulebook::builtin();
    let mut wrong = Vec::new();
    for mode in Mode::ALL {
        for line in DENIED.lines().filter(|line| !line.is_empty()) {
            let decided = gate(false).decide_line(&rules, Actor::Model, mode, line).decision;
            if decided.verdict != Verdict::Deny || decided.rule != "guard.lathe" {
                wrong.push(format!("{mode:?} {line}: {:?} {}", decided.verdict, decided.rule));
            }
        }
    }
    for line in FREE.lines().filter(|line| !line.is_empty()) {
        let decided = gate(false).decide_line(&rules, Actor::Model, Mode::FullAuto, line).decision;
        if decided.verdict != Verdict::Allow {
            wrong.push(format!("{line}: {:?} {}", decided.verdict, decided.rule));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_person_runs_lathe_as_they_like() {
    for line in ["lathe serve", "lathe auth login x", "$(which lathe) run x"] {
        let decided =
            gate(false).decide_line(&Rulebook::builtin(), Actor::Person, Mode::Default, line).decision;
        assert_eq!(decided.verdict, Verdict::Allow, "{line}");
    }
}
