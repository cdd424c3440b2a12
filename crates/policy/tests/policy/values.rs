//! Every value of a variable counts, however many there are and however it is made.

use lathe_policy::{Gate, OnDisk, Rulebook, Tier};
use lathe_protocol::{Actor, Mode, Verdict};

fn gate() -> Gate {
    Gate {
        home: "/home/me/.local/share/lathe".into(),
        root: "/srv/work/repo".into(),
        user_home: Some("/home/me".into()),
        here: Some("/srv/work/repo".into()),
        git_runs: None,
        headless: true,
        disk: OnDisk::default(),
    }
}

fn many(count: usize) -> String {
    (0..count).map(|index| format!("a{index}")).collect::<Vec<_>>().join(" ")
}

fn verdict(rules: &Rulebook, mode: Mode, line: &str) -> Verdict {
    gate().decide_line(rules, Actor::Model, mode, line).decision.verdict
}

fn denying(field: &str, value: &str) -> Rulebook {
    let text = format!("[[rule]]\ndecision = \"deny\"\n{field} = [\"{value}\"]\n");
    Rulebook::builtin().with(Tier::User, "f.toml", &text).unwrap()
}

fn all_denied(rules: &Rulebook, mode: Mode, lines: &[String]) {
    let allowed: Vec<&String> =
        lines.iter().filter(|line| verdict(rules, mode, line) != Verdict::Deny).collect();
    assert!(allowed.is_empty(), "{allowed:#?}");
}

#[test]
fn the_last_of_many_values_is_looked_at() {
    let rules = Rulebook::builtin();
    for count in [1, 64, 65, 700] {
        let m = many(count);
        let semicolons = |begin: &str, end: &str| {
            (0..count).map(|index| format!("{begin}a{index}{end}; ")).collect::<String>()
        };
        for key in ["/home/me/.ssh/id_rsa", "~/.aws/credentials", "/etc/shadow"] {
            let lines = [
                format!("for f in {m} {key}; do cat $f; done"),
                format!("for f in {m} {key}; do cat < $f; done"),
                format!("for f in {m} {key}; do head -n1 x$g \"$f\"; done"),
                format!("set -- {m} {key}; for x; do cat \"$x\"; done"),
                format!("a=({m} {key}); cat \"${{a[@]}}\""),
            ];
            all_denied(&rules, Mode::Plan, &lines);
        }
        for place in [".git", "~", "/srv/work/repo", "/", "/usr", "$HOME"] {
            let lines = [
                format!("for f in {m} {place}; do rm -rf $f; done"),
                format!("a=({m} {place}); rm -rf \"${{a[@]}}\""),
                format!("set -- {m} {place}; for x; do rm -rf $x; done"),
                format!("f() {{ rm -rf $1; }}; {}f {place}", semicolons("f ", "")),
                format!("f() {{ rm -rf \"$@\"; }}; f {m} {place}"),
                format!("{}x={place}; rm -rf $x", semicolons("x=", "")),
                format!("rm -rf $(echo {m} {place})"),
                format!("a={place}; b=$a; c=$b; d=$c; e=$d; g=$e; h=$g; rm -rf $h"),
            ];
            let lines = if count < 700 { &lines[..] } else { &lines[..6] };
            all_denied(&rules, Mode::FullAuto, lines);
        }
        for place in [".git/config", "/home/me/.local/share/lathe/config.toml"] {
            let lines = [
                format!("for f in {m} {place}; do cp a.txt $f; done"),
                format!("for f in {m} {place}; do echo x > $f; done"),
                format!("for f in {m} {place}; do echo x | tee $f; done"),
                format!("set -- {m} {place}; for x; do mv a.txt $x; done"),
            ];
            all_denied(&rules, Mode::FullAuto, &lines);
        }
        let lines = [
            format!("for c in {m} push; do git $c; done"),
            format!("{}c=push; git $c", semicolons("c=", "")),
        ];
        all_denied(&denying("command", "git push"), Mode::FullAuto, &lines);
        let lines = [format!("for c in {m} secret.txt; do cat $c; done")];
        all_denied(&denying("path", "secret.txt"), Mode::FullAuto, &lines);
    }
}

#[test]
fn the_last_of_many_folders_is_looked_at() {
    let away = "cd a; cd ..; cd b; cd ..; cd c; cd ..; cd d; cd ..; ".repeat(4);
    let gone: String = (0..40).map(|index| format!("cd n{index}; ")).collect();
    let lines: Vec<String> = [away.as_str(), gone.as_str()]
        .iter()
        .flat_map(|begin| {
            ["cd /; rm -rf *", "cd ~; rm -rf ./*", "cd /usr && find . -delete", "cd ..; cd ..; rm -rf work"]
                .map(|end| format!("{begin}{end}"))
        })
        .collect();
    all_denied(&Rulebook::builtin(), Mode::FullAuto, &lines);
}

#[test]
fn many_values_that_harm_nothing_are_no_harm() {
    let rules = Rulebook::builtin();
    let m = many(900);
    for line in [
        format!("for f in {m}; do rm -rf $f; done"),
        format!("for f in {m}; do for g in {m}; do echo $f $g; done; done"),
        format!("for f in {m}; do for g in {m}; do echo $f/$g; done; done"),
        format!("for f in {m}; do touch $f; done"),
        "cd a && make && cd .. && cd b && make && cd .. && cd c && make && cd .. && cd d && make".to_owned(),
        "x=a; x=$x/b; x=$x/c; mkdir -p $x; rm -rf $x".to_owned(),
    ] {
        let decided = gate().decide_line(&rules, Actor::Model, Mode::FullAuto, &line).decision;
        assert_eq!(decided.verdict, Verdict::Allow, "{}: {decided:?}", &line[..40]);
    }
    let line = format!("for f in {m}; do for g in {m}; do rm -rf $f$g; done; done");
    assert_eq!(verdict(&rules, Mode::FullAuto, &line), Verdict::Deny);
}
