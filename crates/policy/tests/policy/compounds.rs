//! Issue 15: a denied file is not read, and a denied command not run, through what a function or a compound command is
//! redirected to, or through the function substitutions of bash 5.3.

use lathe_policy::{Gate, Rulebook, Tier};
use lathe_protocol::{Actor, Mode, Verdict};

use crate::corpus::gate as anywhere;

const RULES: &str = r#"
[[rule]]
decision = "deny"
path = "secret.txt"
reason = "secret"

[[rule]]
decision = "deny"
command = "git push"
reason = "not pushed"
"#;

/// Lines that read `secret.txt` or push. They are only read here.
const DENIED: &[&str] = &[
    "f() { cat; } < secret.txt; f",
    "f() ( cat; ) < secret.txt; f",
    "f() ( cat ) 0<secret.txt; f",
    "f() if true; then cat; fi < secret.txt; f",
    "f() for i in 1; do cat; done < secret.txt; f",
    "f() while read x; do echo $x; done < secret.txt; f",
    "f() case x in x) cat;; esac < secret.txt; f",
    "function f { cat; } < secret.txt",
    "function f() { cat; } < secret.txt; f",
    "f() { cat; } 2>/dev/null < secret.txt; f",
    "f() { cat; } 3< secret.txt; f",
    "f() { cat; } > out.txt < secret.txt; f",
    "f() { cat; } < \"$(echo secret.txt)\"; f",
    "f() { cat; } <<< \"$(cat secret.txt)\"; f",
    "f() { cat; } <<< \"$(< secret.txt)\"; f",
    "f() { bash; } <<< 'git push'; f",
    "f() { bash; } < <(echo git push); f",
    "f() { cat | sh; } <<< 'git push'; f",
    "{ bash; } <<< 'git push'",
    "( bash ) <<< 'git push'",
    "{ cat | bash; } <<< 'git push'",
    "{ bash; } <<X\ngit push\nX",
    "if true; then sh; fi <<< 'git push'",
    "while read -r x; do $x; done <<< 'git push'",
    "for i in 1; do xargs git; done <<< push",
    "echo ${ cat secret.txt; }",
    "echo ${\tcat secret.txt; }",
    "echo ${\ncat secret.txt\n}",
    "echo \"${ cat secret.txt; }\"",
    "echo \"${| cat secret.txt; }\"",
    "echo ${| REPLY=$(<secret.txt); }",
    "echo ${(cat secret.txt)}",
    "echo \"a'${ cat secret.txt; }'\"",
    "echo ${ cat a; } ${ cat secret.txt; }",
    "echo ${ echo \"}\"; cat secret.txt; }",
    "echo ${ echo ${ cat secret.txt; }; }",
    "x=${ cat secret.txt; }; echo $x",
    "cat <<X\n${ cat secret.txt; }\nX",
    "bash -c 'echo ${ cat secret.txt; }'",
    "echo ${ git push; }",
    "echo ${x:-${ git push; }}",
];

/// Lines that do neither.
const FREE: &[&str] = &[
    "f() { cat; } < other.txt; f",
    "{ cat; echo; } < other.txt",
    "{ bash; } <<< 'git status'",
    "while read x; do echo \"$x\"; done <<< 'a b'",
    "echo '${ cat secret.txt; }'",
    "cat > a.js <<'X'\nconst a = `${ git.push }`\nX",
    "echo ${x} ${x:-a}",
];

fn decided(line: &str) -> (Verdict, String) {
    let rules = Rulebook::builtin().with_file(Tier::User, "rules.toml", RULES).unwrap();
    let gate = Gate { here: Some("/w".into()), user_home: Some("/home/me".into()), ..anywhere() };
    let decided = gate.decide_line(&rules, Actor::Model, Mode::FullAuto, line).decision;
    (decided.verdict, decided.rule)
}

#[test]
fn what_a_function_or_a_compound_command_is_given_is_read() {
    let let_through: Vec<&&str> = DENIED.iter().filter(|line| decided(line).0 != Verdict::Deny).collect();
    assert!(let_through.is_empty(), "{let_through:#?}");
    let refused: Vec<_> =
        FREE.iter().map(|line| (line, decided(line))).filter(|(_, said)| said.0 != Verdict::Allow).collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn too_many_function_substitutions_are_refused() {
    let line = "echo ".to_owned() + &"${ true; } ".repeat(200);
    assert_eq!(decided(&line), (Verdict::Deny, "guard.endless".to_owned()));
}
