//! Issue 15: a set of characters in a pattern hides neither a denied file nor `.git`, however its brackets are written.

use lathe_policy::{Gate, OnDisk, Rulebook, Tier};
use lathe_protocol::{Actor, Mode, Verdict};

fn gate() -> Gate {
    Gate {
        home: "/home/me/.local/share/lathe".into(),
        root: "/srv/work/r".into(),
        user_home: Some("/home/me".into()),
        here: Some("/srv/work/r".into()),
        outputs: None,
        headless: false,
        disk: OnDisk::default(),
        switched: lathe_policy::ShellSwitches::default(),
        walls: lathe_policy::Walls::None,
    }
}

/// Lines that take away or write `.git`, the workspace or a home folder.
const GUARDED: &str = r#"
rm -rf .gi[[:alpha:]]
rm -rf .g[[:lower:]]t
rm -rf .gi[[=t=]]
rm -rf .gi[[.t.]]
rm -rf .gi[[:alpha:][:digit:]]
rm -rf .gi[![:upper:]]
rm -rf .gi[^[:upper:]]
rm -rf .gi[]t]
rm -rf .gi[!]x]
rm -rf .g[i\]]t
rm -rf .g["]"i]t
rm -rf .g[']'i]t
rm -rf .gi[x\]b[t]
rm -rf .[[:alpha:]][[:alpha:]][[:alpha:]]
mv .gi[[:alpha:]] x
mv .g[i\]]t x
find .gi[[:alpha:]] -delete
find .g[i\]]t -delete
find . -name '.gi[[:alpha:]]' -exec rm -rf {} +
rm -rf ../[[:lower:]]
rm -rf ../[r\]]
rm -rf /srv/work/[[:alpha:]]
rm -rf /[[:alpha:]]*
rm -rf /us[[:alpha:]]
rm -rf /et[c\]]
rm -rf ~/[[:alpha:]]*
rm -rf /home/m[[:alpha:]]
echo x > .gi[[:alpha:]]/config
echo x >> .g[i\]]t/hooks/pre-commit
cp a .gi[[:alpha:]]/hooks/pre-commit
tee .gi[[=t=]]/config
cd .gi[[:alpha:]]/hooks && cp ../../a pre-commit
cd .g[i\]]t/hooks && tee pre-commit
mytool .gi[[:alpha:]]/config
/bin/r[[:alpha:]] -rf .git
/bin/r[m\]] -rf /
"#;

/// Lines that mean other names.
const FREE: &str = r#"
rm -rf [[:digit:]]*
rm -rf build-[0-9][0-9]
rm -rf target[[:digit:]]
rm -rf x[[:alpha:]].o
rm -rf .cach[[:alpha:]]
touch '[x'
rm -rf sub/[ab]
mv a[0-9] b
find sub -name '*.[oa]' -delete
echo x > a[1].txt
"#;

#[test]
fn the_guard_sees_through_sets_of_characters() {
    let (rules, mut wrong) = (Rulebook::builtin(), Vec::new());
    for line in GUARDED.lines().filter(|line| !line.is_empty()) {
        for mode in Mode::ALL {
            let decided = gate().decide_line(&rules, Actor::Model, mode, line).decision;
            if decided.verdict != Verdict::Deny || !decided.rule.starts_with("guard.") {
                wrong.push(format!("{mode:?} {line}: {} {}", decided.rule, decided.reason));
            }
        }
    }
    for line in FREE.lines().filter(|line| !line.is_empty()) {
        let decided = gate().decide_line(&rules, Actor::Model, Mode::FullAuto, line).decision;
        if decided.verdict != Verdict::Allow {
            wrong.push(format!("{line}: {} {}", decided.rule, decided.reason));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_denied_file_is_not_reached_by_a_set_of_characters() {
    let rule = "[[rule]]\ndecision = \"deny\"\npath = [\"secret.txt\"]\n";
    let rules = Rulebook::builtin().with_file(Tier::User, "f.toml", rule).unwrap();
    for word in [
        "[[:alpha:]]ecret.txt",
        "[[:lower:][:digit:]]ecret.txt",
        "[[=s=]]ecret.txt",
        "[[.s.]]ecret.txt",
        "[s\\]]ecret.txt",
        "['s]']ecret.txt",
        "[]s]ecret.txt",
        "[!]x]ecret.txt",
        "[^]x]ecret.txt",
        "s[[:alpha:]]cret.tx[[:alpha:]]",
        "secret[[:punct:]]txt",
        "./[x\\]y[s]ecret.txt",
    ] {
        let line = format!("cat {word}");
        let decided = gate().decide_line(&rules, Actor::Model, Mode::FullAuto, &line).decision;
        assert_eq!(decided.verdict, Verdict::Deny, "{line}: {}", decided.rule);
    }
    for line in ["cat [[:alpha:]].txt", "cat notes[0-9].txt", "cat [[:digit:]]ecret.md"] {
        let decided = gate().decide_line(&rules, Actor::Model, Mode::FullAuto, line).decision;
        assert_eq!(decided.verdict, Verdict::Allow, "{line}: {}", decided.rule);
    }
}
