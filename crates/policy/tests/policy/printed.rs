//! Text that `printf` and `echo -e` print is judged with its escapes decoded, in every place where it is evaluated.

use lathe_policy::{Rulebook, Tier};
use lathe_protocol::{Mode, Verdict};

use crate::twice::{DENIED, rules, verdict};

/// Lines with `@P@` for a command that prints what they evaluate, parted by `%%`. They are only judged here.
const VECTORS: &str = r#"@P@ | bash
%%
@P@ | sh
%%
@P@ | tee /dev/null | bash -s
%%
bash -c "$(@P@)"
%%
eval "$(@P@)"
%%
eval $(@P@)
%%
bash <<< "$(@P@)"
%%
bash < <(@P@)
%%
. <(@P@)
%%
source /dev/stdin < <(@P@)
%%
source /dev/stdin <<< "$(@P@)"
%%
@P@ | source /dev/stdin
%%
@P@ > s.sh; sh s.sh
%%
x=$(@P@); eval "$x"
%%
shopt -s xpg_echo; @P@ | bash
%%
bash -c '@Q@ | sh'"#;

/// Ways to print a text, by how each of its characters is written.
fn printers(text: &str) -> Vec<String> {
    let each = |one: &dyn Fn(char) -> String| text.chars().map(one).collect::<String>();
    let hex = each(&|c| format!("\\x{:02x}", u32::from(c)));
    let octal = each(&|c| format!("\\{:03o}", u32::from(c)));
    let zero = each(&|c| format!("\\0{:03o}", u32::from(c)));
    let short = each(&|c| format!("\\u{:04x}", u32::from(c)));
    let long = each(&|c| format!("\\U{:08x}", u32::from(c)));
    let chars = each(&|c| format!("\"{c}\" "));
    let marks = "%c".repeat(text.chars().count());
    let first = text.chars().next().map_or(0, char::len_utf8);
    let (first, rest) = text.split_at(first);
    let blanks = text.replace(' ', "\\x20");
    vec![
        format!("{{ printf {first}; printf \"{rest}\"; }}"),
        format!("(echo -n {first}; echo \"{rest}\")"),
        format!("printf \"{hex}\""),
        format!("printf \"{octal}\\n\""),
        format!("printf \"{short}\""),
        format!("printf \"{long}\""),
        format!("printf -- \"{hex}\""),
        format!("printf %b \"{zero}\""),
        format!("printf %b \"{blanks}\""),
        format!("printf \"{marks}\" {chars}"),
        format!("printf \"%c{rest}\" {first}xyz"),
        format!("printf \"%.1s%s\" {first}xyz \"{rest}\""),
        format!("printf \"%s%b\" {first} \"{rest}\""),
        format!("printf \"\\0{octal}\""),
        format!("echo -e \"{hex}\""),
        format!("echo -ne \"{zero}\""),
        format!("echo -n -e \"{short}\""),
        format!("echo \"{zero}\""),
    ]
}

#[test]
fn what_is_denied_is_denied_where_it_is_printed_with_escapes() {
    let rules = rules();
    let mut wrong = Vec::new();
    for vector in VECTORS.split("\n%%\n") {
        for payload in DENIED {
            for printer in printers(payload) {
                let line = vector.replace("@P@", &printer).replace("@Q@", &printer);
                let (verdict, why) = verdict(&rules, Mode::FullAuto, &line);
                if verdict != Verdict::Deny {
                    wrong.push(format!("{line}: {why}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

/// Programs of other languages that run a text, with `@T@` for it.
const PROGRAMS: [&str; 8] = [
    "python3 -c 'import os; os.system(\"@T@\")'",
    "perl -e 'system(\"@T@\")'",
    "ruby -e 'system \"@T@\"'",
    "node -e 'require(\"child_process\").execSync(\"@T@\")'",
    "php -r 'system(\"@T@\");'",
    "awk 'BEGIN { system(\"@T@\") }'",
    "gawk 'BEGIN { \"@T@\" | getline }'",
    "python3 <<'E'\nimport os\nos.system(\"@T@\")\nE",
];

#[test]
fn what_is_destroyed_is_denied_where_a_program_spells_it_by_numbers() {
    let rules = Rulebook::builtin();
    let text = "rm -rf ~";
    let each = |one: &dyn Fn(char) -> String| text.chars().map(one).collect::<String>();
    let mut wrong = Vec::new();
    for spelled in [
        each(&|c| format!("\\x{:02x}", u32::from(c))),
        each(&|c| format!("\\{:03o}", u32::from(c))),
        each(&|c| format!("\\u{:04x}", u32::from(c))),
        each(&|c| format!("\\u{{{:x}}}", u32::from(c))),
        each(&|c| format!("\\x{{{:x}}}", u32::from(c))),
        "r\" \"m -\" \"rf ~".to_owned(),
        text.replace('r', "\\x72"),
    ] {
        for program in PROGRAMS {
            let line = program.replace("@T@", &spelled);
            let (verdict, why) = verdict(&rules, Mode::FullAuto, &line);
            if verdict != Verdict::Deny {
                wrong.push(format!("{line}: {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_pager_of_git_grep_is_a_command() {
    let text = "[[rule]]\ndecision = \"deny\"\ncommand = [\"frobnicate\"]\n";
    let rules = Rulebook::builtin().with_file(Tier::User, "m.toml", text).unwrap();
    for line in [
        "git grep -Ofrobnicate x",
        "git grep -nO'frobnicate -x' x",
        "git grep --open-files-in-pager=frobnicate x",
    ] {
        assert_eq!(verdict(&rules, Mode::FullAuto, line).0, Verdict::Deny, "{line}");
    }
    for line in ["git grep -eOfrobnicate", "git grep -neword", "git grep -m1 -eO frobnicate"] {
        assert_ne!(verdict(&rules, Mode::FullAuto, line).0, Verdict::Deny, "{line}");
    }
}

#[test]
fn everyday_prints_are_no_harm() {
    let text = "[[rule]]\ndecision = \"deny\"\ncommand = [\"touch\"]\n";
    let rules = Rulebook::builtin().with_file(Tier::User, "m.toml", text).unwrap();
    let mut wrong = Vec::new();
    for line in [
        r"printf '\x1b[31m%s\x1b[0m\n' error",
        r"printf '%-20s %5d\n' name 3",
        r"printf '%s\n' a b c | sort",
        r"printf '%s\0' a.txt b.txt | xargs -0 cat",
        r"printf 'a\tb\n' | cut -f1",
        r"echo -e 'line\n\ttouch' > notes.txt",
        r"printf '%d%%\n' 50",
        r#"printf 'echo %s\n' hello | bash"#,
        r#"bash -c "$(printf 'echo \x41')""#,
        r"printf '\x74\x6f\x75\x63\x68' | wc -c",
        r#"for i in 1 2; do printf '%03d ' "$i"; done"#,
    ] {
        let (verdict, why) = verdict(&rules, Mode::FullAuto, line);
        if verdict != Verdict::Allow {
            wrong.push(format!("{line}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_format_that_grows_is_judged_and_comes_to_an_end() {
    let rules = rules();
    let wide = "%999999999d".repeat(50);
    for format in [wide.as_str(), "\\x", "\\xc3", "%*s", "%(", "\\Uffffffff"] {
        let line = format!("printf '{format}; touch PWN' 1 | bash");
        assert_eq!(verdict(&rules, Mode::FullAuto, &line).0, Verdict::Deny, "{line}");
    }
    let many = "y ".repeat(1000);
    let line = format!("printf '{}%s' {many} 'z\ntouch PWN' | bash", "x".repeat(1000));
    assert_eq!(verdict(&rules, Mode::FullAuto, &line).0, Verdict::Deny);
}
