//! Every value of a variable counts, however many there are and however it is made.

use lathe_policy::{Rulebook, Tier};
use lathe_protocol::{Actor, Mode, Verdict};

use crate::gate;

fn many(count: usize) -> String {
    (0..count).map(|index| format!("a{index}")).collect::<Vec<_>>().join(" ")
}

fn verdict(rules: &Rulebook, mode: Mode, line: &str) -> Verdict {
    gate(true).decide_line(rules, Actor::Model, mode, line).decision.verdict
}

fn denying(field: &str, value: &str) -> Rulebook {
    let text = format!("[[rule]]\ndecision = \"deny\"\n{field} = [\"{value}\"]\n");
    Rulebook::builtin().with_file(Tier::User, "f.toml", &text).unwrap()
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
        let decided = gate(true).decide_line(&rules, Actor::Model, Mode::FullAuto, &line).decision;
        assert_eq!(decided.verdict, Verdict::Allow, "{}: {decided:?}", &line[..40]);
    }
    let line = format!("for f in {m}; do for g in {m}; do rm -rf $f$g; done; done");
    assert_eq!(verdict(&rules, Mode::FullAuto, &line), Verdict::Deny);
}

#[test]
fn what_operators_and_declarations_make_of_a_value_is_looked_at() {
    let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let reads = lines(&[
        "f=Zsecret.txt; cat ${f#Z}",
        "f=Zsecret.txt; cat ${f:1}",
        "f=secret.txtZ; cat ${f%Z}",
        "f=xecret.txt; cat ${f/x/s}",
        "f=SECRET.TXT; cat ${f,,}",
        "f=SECRET.TXT; cat ${f@L}",
        "f=secret; f+=.txt; cat $f",
        "f=s; f+=ecret; f+=.t; f+=xt; cat $f",
        "declare -l x=SECRET.TXT; cat $x",
        "declare -l x; x=SECRET.TXT; cat $x",
        "typeset -l x=SECRET.TXT; cat \"$x\"",
        "declare -n g=f; g=secret.txt; cat $f",
        "x=xsecret.txt; cat <${x#x}",
        "y=Z; f=Zsecret.txt; cat ${f#$y}",
        "f=Zsecret.txt; cat ${f#\"Z\"}",
        "n=f; f=Zsecret.txt; cat ${!n#Z}",
        "a=(Zsecret.txt b); cat ${a[@]#Z}",
        "printf -v x '%s.%s' secret txt; cat $x",
        "read x <<< secret.txt; cat $x",
        "f=Zsecret.txt; grep a ${f##?}",
        "y=secret.txt; cat ${z:-$y}",
        ": ${x:=secret.txt}; cat $x",
        "cat $\"secret.txt\"",
    ]);
    all_denied(&denying("path", "secret.txt"), Mode::FullAuto, &reads);
    let mut destroying = Vec::new();
    for place in [".git", "/", "/usr", "/home/me", "/srv/work/repo"] {
        let (begin, end) = place.split_at(place.len() - 1);
        destroying.extend([
            format!("x=Z{place}; rm -rf ${{x#Z}}"),
            format!("x=Z{place}; rm -rf \"${{x:1}}\""),
            format!("x={place}Z; rm -rf ${{x%Z}}"),
            format!("x={place}Z; rm -rf ${{x%%Z*}}"),
            format!("x=Z{place}; rm -rf ${{x/Z}}"),
            format!("x=Z{place}; rm -rf ${{x/[Z]/}}"),
            format!("x={begin}; x+={end}; rm -rf $x"),
            format!("y=Z; x=Z{place}; rm -rf ${{x#$y}}"),
            format!("x=Z{place}; rm -rf ${{x#$(head -c1 f)}}"),
            format!("x=Z{place}; mv ${{x#Z}} /tmp/away"),
            format!("x={place}; y=${{x,,}}; rm -rf $y"),
            format!("declare -l x={}; rm -rf $x", place.to_uppercase()),
            format!("declare -n g=f; g={place}; rm -rf $f"),
            format!("printf -v x '%s%s' {begin} {end}; rm -rf $x"),
            format!(": ${{x:={place}}}; rm -rf $x"),
            format!("rm -rf $\"{place}\""),
            format!("y={place}; rm -rf ${{z:-$y}}"),
        ]);
    }
    all_denied(&Rulebook::builtin(), Mode::FullAuto, &destroying);
    let pushes = lines(&[
        "x=Zpush; git ${x#Z}",
        "git $\"push\"",
        "x=pu; x+=sh; git $x",
        "x=PUSH; git ${x,,}",
        "declare -l x=PUSH; git $x",
        "x=Zgit; ${x#Z} push",
        "x=pushes; git ${x:0:4}",
    ]);
    all_denied(&denying("command", "git push"), Mode::FullAuto, &pushes);
}

#[test]
fn operators_that_harm_nothing_are_no_harm() {
    let rules = Rulebook::builtin();
    for line in [
        "x=build/a.o; rm -rf ${x%.o}",
        "for f in a.txt b.txt; do mv $f ${f%.txt}.md; done",
        "x=a; x+=b; rm -rf $x",
        "for f in *.jpeg; do mv \"$f\" \"${f%.jpeg}.jpg\"; done",
        "d=/tmp/x; rm -rf ${d:?}/y",
        "f=a.txt; cat ${f%.txt}.md > out",
    ] {
        let decided = gate(true).decide_line(&rules, Actor::Model, Mode::FullAuto, line).decision;
        assert_eq!(decided.verdict, Verdict::Allow, "{line}: {decided:?}");
    }
}

#[test]
fn the_home_folder_is_what_a_line_makes_of_it() {
    let rules = Rulebook::builtin();
    for mode in Mode::ALL {
        for line in [
            "HOME=/srv; ls",
            "HOME=H; cat ~/x",
            "export HOME=/srv/work",
            "declare HOME=/",
            "unset HOME",
            "read HOME <<< /",
            "for HOME in /; do ls; done",
            "printf -v HOME %s /",
            "OLDPWD=/home/me; ls",
            "CDPATH=/home/me; ls",
            "export CDPATH=/",
            "HOME+=/..; ls",
            "declare -n h=HOME; h=/; ls",
            ": ${CDPATH:=/home/me}",
        ] {
            assert_eq!(verdict(&rules, mode, line), Verdict::Deny, "{line}");
        }
    }
    for line in [
        "HOME=/srv/work rm -rf ~/repo",
        "HOME=/ cd; rm -rf *",
        "HOME=/srv/work eval 'rm -rf ~/repo'",
        "env HOME=/srv/work sh -c 'rm -rf ~/repo'",
        "HOME=/srv/work bash -c 'rm -rf $HOME/repo'",
        "rm -rf $OLDPWD",
    ] {
        assert_eq!(verdict(&rules, Mode::FullAuto, line), Verdict::Deny, "{line}");
    }
    for line in [
        "cat $OLDPWD/.ssh/id_rsa",
        "cat ~-/.ssh/id_rsa",
        "cat ~-/x",
        "cat ${OLDPWD}/x",
        "HOME=/home/you bash -c 'cat ~/x'",
        "cd - && cat .ssh/id_rsa",
        "popd && cat x",
    ] {
        assert_eq!(verdict(&rules, Mode::Plan, line), Verdict::Deny, "{line}");
    }
    for line in [
        "HOME=/tmp/h npm ci",
        "env HOME=/tmp/h cargo build",
        "echo $HOME $OLDPWD",
        "export PATH=$HOME/bin:$PATH",
    ] {
        assert_eq!(verdict(&rules, Mode::FullAuto, line), Verdict::Allow, "{line}");
    }
}
