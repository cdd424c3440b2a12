//! The model learns nothing of Lathe's own folder, not even whether it exists; and a link of the process itself is
//! the place it leads to (issue 15).

use lathe_policy::{Gate, GateCall, Rulebook};
use lathe_protocol::{Actor, Effects, Mode, ToolKind, Verdict};

fn gate() -> Gate {
    Gate { home: "/srv/work/home8".into(), ..crate::gate(false) }
}

/// Lines that tell something of Lathe's folder. `HOME8` stands for it.
const DENIED: &str = r#"
[ -f HOME8/auth.json ]
[ -d HOME8 ]
test -e HOME8/auth.json
test ! -e HOME8/auth.json
[[ -e HOME8/auth.json ]]
[[ -d HOME8 ]]
[[ -e a || -s HOME8/auth.json ]]
[[ a -nt HOME8/auth.json ]]
x=HOME8; [[ -e $x/auth.json ]]
x=HOME8; [ -e "$x/auth.json" ]
[ a -ef HOME8/auth.json ]
[ -e a -o -e HOME8/auth.json ]
[ -s HOME8/auth.json ] && echo yes
! [ -r HOME8/auth.json ]
while [ -e HOME8/x ]; do sleep 1; done
until test -e HOME8/x; do :; done
if [ -f HOME8/auth.json ]; then echo yes; fi
stat HOME8/auth.json
ls HOME8
ls -d HOME8/*
ls HOME8/sessions
file HOME8/x
du -s HOME8
readlink HOME8/x
compgen -G 'HOME8/*'
compgen -f HOME8/
echo HOME8/*
echo HOME8/a*
echo HOME8/{a,b}*
printf '%s\n' HOME8/*
for f in HOME8/*; do echo "$f"; done
for f in HOME8/*; do :; done; echo "$f"
x=(HOME8/*); echo ${x[0]}
x=(HOME8/*); echo ${#x[@]}
set -- HOME8/*; echo $1
select f in HOME8/*; do echo $f; done
type HOME8/x
which HOME8/x
command -v HOME8/x
echo /srv/wor?/home8/*
echo /srv/work/[h]ome8/*
[ -f /srv/work/hom?8/auth.json ]
[ -f ../home8/auth.json ]
test -e /srv/work/repo/../home8/x
cd .. && test -e home8/x
cat $LATHE_HOME/auth.json
cat "$LATHE_HOME/auth.json"
cat ${LATHE_HOME}/auth.json
cat "${LATHE_HOME:-x}/auth.json"
ls "$LATHE_HOME"
ls $LATHE_HOME/sessions
test -e $LATHE_HOME/auth.json
[ -f "$LATHE_HOME/auth.json" ]
[[ -f $LATHE_HOME/auth.json ]]
[ -d "$LATHE_HOME" ]
echo $LATHE_HOME/*
head -1 < $LATHE_HOME/config.toml
cd $LATHE_HOME && ls
x=$LATHE_HOME; cat $x/auth.json
grep -r x "$LATHE_HOME"
echo x > $LATHE_HOME/config.toml
cp a "$LATHE_HOME/config.toml"
rm -rf "$LATHE_HOME"
cat /proc/self/root/srv/work/home8/auth.json
cat /proc/self/cwd/../home8/auth.json
test -e /proc/$$/cwd/../home8/auth.json
"#;

const FREE: &str = r#"
[ -f a ]
[[ -e src/a ]]
test -d .git
[ -n "$x" ]
[ a = b ]
[ "$x" = '*' ]
echo *
echo src/*
for f in src/*; do echo "$f"; done
echo "a * b"
basename a/b
which cargo
type ls
[ -x /usr/bin/git ]
cat /proc/self/cwd/a
cat /proc/$$/cwd/a
cat /proc/thread-self/cwd/a
cat /proc/self/root/srv/work/repo/a
cat /proc/self/root/etc/hostname
cat /proc/self/root/proc/self/cwd/a
ls /proc/self/cwd
head -1 < /proc/self/cwd/a
cat //proc/self/./cwd/a
"#;

const KEYS: &str = r#"
cat /proc/1/cwd/a
cat /proc/1234/root/etc/hostname
cat /proc/self/environ
cat /proc/self/cwd/../../../proc/self/environ
cat /proc/self/root/proc/1/environ
cat /proc/self/root/home/me/.ssh/id_rsa
cat /proc/self/root/proc/1/cwd/a
"#;

fn lines(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| !line.is_empty()).map(|line| line.replace("HOME8", "/srv/work/home8"))
}

#[test]
fn nothing_tells_whether_a_file_of_lathes_folder_is_there() {
    let rules = Rulebook::builtin();
    let mut wrong = Vec::new();
    for mode in Mode::ALL {
        for line in lines(DENIED) {
            let decided = gate().decide_line(&rules, Actor::Model, mode, &line).decision;
            let rule = ["reading.home", "guard.home", "guard.destroy"].contains(&decided.rule.as_str());
            if decided.verdict != Verdict::Deny || !(rule || mode == Mode::Plan) {
                wrong.push(format!("{mode:?} {line}: {:?} {}", decided.verdict, decided.rule));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Lines of a user who works in a home folder: unpacking, copying and deleting there.
#[test]
fn writing_into_a_folder_tells_nothing_of_the_keys_in_it() {
    let gate = Gate {
        home: "/home/me/.lathe".into(),
        root: "/home/me".into(),
        here: Some("/home/me".into()),
        ..gate()
    };
    for line in
        ["tar xf a.tar", "patch -p1 < a", "cp -r a .", "unzip a.zip", "git stash", "git apply a.patch"]
    {
        let decided = gate.decide_line(&Rulebook::builtin(), Actor::Model, Mode::FullAuto, line).decision;
        assert_eq!(decided.verdict, Verdict::Allow, "{line}: {} {}", decided.rule, decided.reason);
    }
}

#[test]
fn a_link_of_the_process_is_what_it_leads_to() {
    let rules = Rulebook::builtin();
    let said = |line: &str| gate().decide_line(&rules, Actor::Model, Mode::FullAuto, line).decision;
    let mut wrong = Vec::new();
    for line in lines(FREE).filter(|line| said(line).verdict != Verdict::Allow) {
        wrong.push(format!("{line}: {} {}", said(&line).rule, said(&line).reason));
    }
    wrong.extend(lines(KEYS).filter(|line| said(line).rule != "reading.keys"));
    assert!(wrong.is_empty(), "{wrong:#?}");
    // File tools read the same places.
    for (path, verdict) in [
        ("/proc/self/cwd/a", Verdict::Allow),
        ("/proc/self/root/srv/work/repo/a", Verdict::Allow),
        ("/proc/self/root/etc/hostname", Verdict::Allow),
        ("/proc/self/root/srv/work/home8/x", Verdict::Deny),
        ("/proc/1/cwd/a", Verdict::Deny),
        ("/proc/self/environ", Verdict::Deny),
    ] {
        let effects = Effects::reading(path);
        let call = GateCall {
            tool: "view",
            also: &[],
            kind: ToolKind::Read,
            kinds: &[],
            effects: &effects,
            arguments: &[],
        };
        let decided = gate().decide_call(&rules, Actor::Model, Mode::FullAuto, &call);
        assert_eq!(decided.verdict, verdict, "{path}: {}", decided.reason);
    }
}
