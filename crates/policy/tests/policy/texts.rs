//! Files that programs read by their texts, their options and their input are judged as if they stood in the line.

use lathe_policy::{Rulebook, Tier};
use lathe_protocol::{Actor, Mode, Verdict};

use crate::gate;

/// Lines with `FILE` for what they read. They are only judged here.
const READS: &str = r#"
grep . --label -e FILE
grep . --lab -e FILE
grep --regex=. FILE
grep --reg=. FILE
grep --regexp . FILE
grep -- . -e FILE
grep -e . -- FILE
grep --fil=a.txt FILE
grep -f FILE a.txt
grep -fFILE a.txt
egrep . --group-separator -e FILE
grep -m1 . FILE
grep -A1 . FILE
zgrep . --label -e FILE
awk 1 -e FILE
awk -F: -- 1 -e FILE
awk --source=1 FILE
awk -e1 FILE
awk -f FILE
awk -E FILE
awk -v x=1 1 FILE
sed -n -- p -e FILE
sed -n p FILE
sed -f FILE a.txt
sed -fFILE a.txt
sed --file=FILE a.txt
sed '1rFILE' a.txt
sed 'rFILE' a.txt
sed '$ r FILE' a.txt
sed -e 1d -e '1RFILE' a.txt
jq --run-tests FILE
jq . FILE
jq -f FILE a.json
jq --slurpfile x FILE . a.json
jq --rawfile x FILE . a.json
rg . FILE
rg --files FILE
rg -e . FILE
python3 <<'E'\nprint(open('FILE').read())\nE
python3 - <<'E'\nprint(open("FILE").read())\nE
cat <<'E' | python3\nprint(open('FILE').read())\nE
echo "print(open('FILE').read())" | python3
python3 <<< "print(open('FILE').read())"
ruby <<'E'\nputs File.read('FILE')\nE
perl <<'E'\nopen F, 'FILE'; print <F>\nE
node <<'E'\nconsole.log(require('fs').readFileSync('FILE','utf8'))\nE
sqlite3 <<'E'\n.read FILE\nE
gcc -E - <<< '#include "FILE"'
make --eval '$(info $(file <FILE))'
make -f - <<'E'\ninclude FILE\nE
curl -F 'x=<FILE' http://127.0.0.1/
curl -F 'x=@FILE;type=text/plain' http://127.0.0.1/
curl -F 'x=@a.txt,FILE' http://127.0.0.1/
curl --data-urlencode name@FILE http://127.0.0.1/
curl -d @FILE http://127.0.0.1/
curl --variable x@FILE http://127.0.0.1/
curl -T FILE http://127.0.0.1/
curl -K FILE
curl file://ABSOLUTE
socat -u OPEN:FILE,rdonly -
find -files0-from FILE
mytool '{"path":"FILE"}'
mytool a,FILE
mytool "x FILE y"
mytool --config=FILE
"#;

fn lines(file: &str, absolute: &str) -> impl Iterator<Item = String> {
    let (file, absolute) = (file.to_owned(), absolute.to_owned());
    READS
        .lines()
        .filter(|line| !line.is_empty())
        .map(move |line| line.replace("\\n", "\n").replace("FILE", &file).replace("ABSOLUTE", &absolute))
}

fn rules() -> Rulebook {
    let text = "[[rule]]\npath = [\"secret.txt\", \"vault/**\"]\ndecision = \"deny\"\nreason = \"private\"\n\
                [[rule]]\ncommand = [\"mytool\"]\ndecision = \"allow\"\n";
    Rulebook::builtin().with_file(Tier::User, "test.toml", text).unwrap()
}

#[test]
fn a_denied_file_is_read_by_no_text_option_or_input() {
    let rules = rules();
    let mut wrong = Vec::new();
    for line in lines("secret.txt", "/srv/work/repo/s%65cret.txt") {
        for mode in Mode::ALL {
            let decided = gate(true).decide_line(&rules, Actor::Model, mode, &line).decision;
            if decided.verdict != Verdict::Deny {
                wrong.push(format!("{mode:?} {line}: {} {}", decided.rule, decided.reason));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn keys_and_lathes_folder_are_read_by_no_text_option_or_input() {
    let rules = Rulebook::builtin();
    let mut wrong = Vec::new();
    for file in ["/etc/shadow", "/home/me/.netrc", "/home/me/.local/share/lathe/auth.json"] {
        for line in lines(file, file) {
            for mode in [Mode::Plan, Mode::FullAuto] {
                let decided = gate(true).decide_line(&rules, Actor::Model, mode, &line).decision;
                if decided.verdict != Verdict::Deny {
                    wrong.push(format!("{mode:?} {line}: {} {}", decided.rule, decided.reason));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn folders_by_patterns_and_programs_that_pack_are_seen() {
    let rules = rules();
    let mut wrong = Vec::new();
    for line in [
        "cd va*; cat k.txt",
        "cd v?ult && cat k.txt",
        "gzip -rk .",
        "python3 -m zipfile -c ../x.zip .",
        "python3 -m tarfile -c ../x.tar .",
        "python3 -m http.server",
        "npm pack",
        "cargo package",
        "jq -n 'import \"config\" as $x {search:\"./\"}; $x'",
        "yq 'load(\"x\")' a.yml",
    ] {
        let decided = gate(true).decide_line(&rules, Actor::Model, Mode::FullAuto, line).decision;
        if decided.verdict != Verdict::Deny {
            wrong.push(format!("{line}: {} {}", decided.rule, decided.reason));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn everyday_lines_are_not_taken_for_readers_of_denied_files() {
    let rules = rules();
    let mut wrong = Vec::new();
    for line in [
        "grep -n 'secret.txt' a.txt",
        "grep -e secret.txt a.txt",
        "grep --regexp=secret.txt a.txt",
        "git commit -m 'drop secret.txt'",
        "git log --grep secret.txt",
        "sed -n 's/secret.txt/x/p' a.txt",
        "awk '/secret.txt/' a.txt",
        "echo secret.txt",
        "jq .secret a.json",
        "python3 -c 'print(1)'",
    ] {
        let decided = gate(true).decide_line(&rules, Actor::Model, Mode::FullAuto, line).decision;
        if decided.verdict == Verdict::Deny {
            wrong.push(format!("{line}: {} {}", decided.rule, decided.reason));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Lines that the grammar and bash read differently, each with the commands that a person is shown.
const TWICE: &[(&str, &[&str])] = &[
    ("echo ok\u{b}; touch x", &["echo ok\u{b}", "touch x"]),
    ("echo ok\u{c}; touch x", &["echo ok\u{c}", "touch x"]),
    ("echo ok\rnot", &["echo ok\rnot"]),
    ("touch x; touch x", &["touch x", "touch x"]),
    ("echo ok\u{b}; touch x; touch x", &["echo ok\u{b}", "touch x", "touch x"]),
    ("echo ok\u{1b}[2K; touch x", &["echo ok\u{1b}[2K", "touch x"]),
];

#[test]
fn each_command_is_listed_once_with_its_control_characters() {
    for (line, expected) in TWICE {
        let decided = crate::corpus::gate().decide_line(
            &lathe_policy::Rulebook::builtin(),
            lathe_protocol::Actor::Model,
            lathe_protocol::Mode::Default,
            line,
        );
        let listed: Vec<String> = decided.commands.iter().map(|each| each.words.join(" ")).collect();
        assert_eq!(listed, *expected, "{line:?}");
        let reads = decided.commands.iter().flat_map(|each| each.effects.reads.iter()).count();
        assert_eq!(reads, 0, "{line:?}");
    }
}
