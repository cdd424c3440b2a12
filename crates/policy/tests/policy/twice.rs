//! Text that bash evaluates a second time is judged as if it stood in the line.

use lathe_policy::{Rulebook, Tier};
use lathe_protocol::{Actor, Mode, Verdict};

use crate::gate;

/// Lines with `@C@` for a command that they evaluate, parted by `%%`. They are only judged here.
const VECTORS: &str = r#"y='$(@C@)'; echo "${y@P}"
%%
for y in '$(@C@)'; do echo "${y@P}"; done
%%
y=('$(@C@)'); echo "${y[@]@P}"
%%
y='$(@C@)'; z=y; echo "${!z@P}"
%%
BASH_ENV=<(echo '@C@') bash -c true
%%
env BASH_ENV=<(echo '@C@') bash -c true
%%
export BASH_ENV=<(echo '@C@'); bash -c true
%%
ENV=<(echo '@C@') sh -i
%%
PYTHONSTARTUP=<(echo 'import os;os.system("@C@")') python3 -i < /dev/null
%%
n=$(echo 'a[$(@C@)]'); echo $((n))
%%
n=$(echo 'a[$(@C@)]'); [[ $n -eq 1 ]]
%%
n=$(echo 'a[$(@C@)]'); printf -v "$n" x
%%
n=$(echo 'a[$(@C@)]'); echo ${!n}
%%
y='$(@C@)'; eval "echo $y"
%%
y='$(@C@)'; eval echo $y
%%
y='$(@C@)'; bash -c "echo $y"
%%
y='@C@'; eval "echo hi; $y"
%%
y='@C@'; bash -c "echo hi; $y"
%%
y='@C@'; sh <<< "$y"
%%
y='@C@'; echo "$y" | bash
%%
y='@C@'; eval "$y"
%%
y='$(@C@)'; cat <<E | bash
echo $y
E
%%
f() { eval "echo $1"; }; f '$(@C@)'
%%
eval "echo '\$(true)' \$(@C@)"
%%
eval 'eval "echo \$(@C@)"'
%%
y='; @C@'; eval "true $y"
%%
y='`@C@`'; eval ": $y"
%%
y='<(@C@)'; eval "cat $y"
%%
y='${x:-$(@C@)}'; eval "echo $y"
%%
y='@C@'; trap "$y" EXIT; exit
%%
y='@C@'; trap "echo; $y" USR1; kill -USR1 $$
%%
y='@C@'; f() { $y; }; f
%%
env 'BASH_FUNC_ls%%=() { @C@; }' bash -c ls
%%
exec 4> >(bash); echo '@C@' >&4; sleep 1
%%
coproc bash; echo '@C@' >&${COPROC[1]}; sleep 1
%%
coproc B { bash; }; echo '@C@' >&${B[1]}; sleep 1
%%
bash -c "$(cat <<'E'
@C@
E
)"
%%
eval "$(printf '%s' '@C@')"
%%
eval "$(printf '%s %s' @C@)"
%%
source <(printf '%s\n' '@C@')
%%
PERL5OPT='-d' PERL5DB='BEGIN{system("@C@");exit}' perl -e 1
%%
make -f <(printf 'all:\n\t@C@\n')
%%
make -s -f - <<< 'x:=$(shell @C@)'
%%
SHELL=/bin/bash script -qc '@C@' /dev/null
%%
xargs -I% bash -c % <<< '@C@'
%%
printf '%s\n' '@C@' | xargs -d'\n' -n1 bash -c
%%
find . -maxdepth 0 -exec bash -c '@C@' ';'
%%
env -S "bash -c '@C@'"
%%
bash -c '@C@'"#;

/// Commands that are denied in every mode: by the guard, by Lathe's own folder, and by rules of the user's.
pub(crate) const DENIED: [&str; 11] = [
    "rm -rf ~",
    "rm -rf /",
    "rm -rf .git",
    "echo x > .git/hooks/pre-commit",
    "cat /home/me/.local/share/lathe/config.toml",
    "cat ~/.ssh/id_rsa",
    "cat private/plan.txt",
    "git push",
    "touch PWN",
    "lathe trust add --yes",
    "git config core.pager x",
];

pub(crate) fn rules() -> Rulebook {
    let text = "[[rule]]\ndecision = \"deny\"\npath = [\"private\"]\n\
                [[rule]]\ndecision = \"deny\"\ncommand = [\"git push\", \"touch\"]\n";
    Rulebook::builtin().with_file(Tier::User, "m.toml", text).unwrap()
}

pub(crate) fn verdict(rules: &Rulebook, mode: Mode, line: &str) -> (Verdict, String) {
    let decided = gate(mode == Mode::FullAuto).decide_line(rules, Actor::Model, mode, line).decision;
    (decided.verdict, format!("{} {}", decided.rule, decided.reason))
}

#[test]
fn what_is_denied_is_denied_in_text_that_is_evaluated() {
    let rules = rules();
    let mut wrong = Vec::new();
    for vector in VECTORS.split("\n%%\n") {
        for payload in DENIED {
            let line = vector.replace("@C@", payload);
            for mode in [Mode::FullAuto, Mode::Plan] {
                let (verdict, why) = verdict(&rules, mode, &line);
                if verdict != Verdict::Deny {
                    wrong.push(format!("{mode:?} {line}: {why}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn text_that_is_evaluated_and_not_known_is_denied_in_plan_and_asked_about() {
    let rules = Rulebook::builtin();
    let mut wrong = Vec::new();
    for line in [
        "y=$(cat a.txt); echo \"${y@P}\"",
        "y=$(cat a.txt); eval \"echo $y\"",
        "y=$(cat a.txt); bash -c \"echo $y\"",
        "y=$(cat a.txt); trap \"$y\" EXIT",
        "cat a.txt | bash",
        "BASH_ENV=<(cat a.txt) bash -c true",
    ] {
        for (mode, expected) in [(Mode::Plan, Verdict::Deny), (Mode::Default, Verdict::Ask)] {
            let (verdict, why) = verdict(&rules, mode, line);
            if verdict != expected {
                wrong.push(format!("{mode:?} {line}: {verdict:?} {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_program_that_is_found_is_denied_by_its_name() {
    let rules = rules();
    for line in ["find /usr/bin -name 'tou*' -exec {} PWN ';'", "find /usr/bin -name touch -exec {} PWN +"] {
        assert_eq!(verdict(&rules, Mode::FullAuto, line).0, Verdict::Deny, "{line}");
    }
    let line = "find . -name '*.sh' -exec {} --check ';'";
    assert_eq!(verdict(&rules, Mode::FullAuto, line).0, Verdict::Allow, "{line}");
}

#[test]
fn everyday_lines_that_evaluate_are_no_harm() {
    // A denied path would deny them for what they may read, which has nothing to do with this.
    let text = "[[rule]]\ndecision = \"deny\"\ncommand = [\"touch\"]\n";
    let rules = Rulebook::builtin().with_file(Tier::User, "m.toml", text).unwrap();
    let mut wrong = Vec::new();
    for line in [
        "for i in 1 2 3; do echo $((i * 2)); done",
        "n=$(wc -l < a.txt); if [[ $n -gt 10 ]]; then echo long; fi",
        "tmp=$(mktemp -d); trap \"rm -rf $tmp\" EXIT; cp a.txt $tmp/",
        "d=build; bash -c \"cd $d && make test\"",
        "eval \"$(ssh-agent -s)\"",
        "source \"$HOME/.cargo/env\" && cargo build",
        "ENV=test npm test",
        "NODE_OPTIONS=--max-old-space-size=4096 npm run build",
        "diff <(sort a.txt) <(sort b.txt)",
        "echo \"$(( $(date +%s) - 10 ))\"; git commit -m 'count [x] of rm'",
        "cat install.sh | bash",
    ] {
        let (verdict, why) = verdict(&rules, Mode::FullAuto, line);
        if verdict != Verdict::Allow {
            wrong.push(format!("{line}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn programs_that_write_the_file_they_name_edit() {
    let text = "[[rule]]\ndecision = \"deny\"\nkind = [\"edit\"]\n";
    let rules = Rulebook::builtin().with_file(Tier::User, "m.toml", text).unwrap();
    for line in ["history -w PWN", "history -a PWN", "flock PWN true", "logsave PWN true"] {
        assert_eq!(verdict(&rules, Mode::FullAuto, line).0, Verdict::Deny, "{line}");
    }
    for line in ["history -w .git/config", "logsave .git/config true"] {
        assert_eq!(verdict(&Rulebook::builtin(), Mode::FullAuto, line).0, Verdict::Deny, "{line}");
    }
    assert_eq!(verdict(&rules, Mode::FullAuto, "history 5").0, Verdict::Allow);
}

#[test]
fn a_pattern_that_can_match_nothing_is_an_error_with_its_line() {
    for (field, value) in [
        ("path", "{private,b}"),
        ("path", "[p]rivate"),
        ("path", "!private"),
        ("path", "file:x"),
        ("path", ""),
        ("path", " "),
        ("host", ""),
    ] {
        let text = format!("[[rule]]\ndecision = \"deny\"\n{field} = [\"a\", \"{value}\"]\n");
        let error = Rulebook::builtin().with_file(Tier::User, "m.toml", &text).unwrap_err().to_string();
        assert!(error.contains("m.toml") && error.contains('3'), "{field} {value:?}: {error}");
    }
    for tool in ["Field:DB:Q", "MCP:git:push", "field:db:q"] {
        let text = format!("[[rule]]\ndecision = \"deny\"\ntool = [\"{tool}\"]\n");
        assert!(Rulebook::builtin().with_file(Tier::User, "m.toml", &text).is_ok(), "{tool}");
    }
}
