//! Text that other programs put together and print is judged where a shell runs it.

use lathe_policy::{Rulebook, Tier};
use lathe_protocol::{Mode, Verdict};

use crate::twice::{DENIED, rules, verdict};

/// Lines with `@P@` for a command that prints what they run. They are only judged here.
const VECTORS: [&str; 5] =
    ["@P@ | sh", "bash <(@P@)", "@P@ > s.sh; sh s.sh", "sh < <(@P@)", "@P@ | tee x | bash -s"];

/// Ways to print a text of two parts.
fn printers(text: &str) -> Vec<String> {
    let (first, rest) = text.split_at(2);
    let (letter, behind) = rest.split_at(1);
    let hex = format!("{:02x}", letter.as_bytes()[0]);
    vec![
        format!("awk 'BEGIN{{print \"{first}\" \"{rest}\"}}'"),
        format!("awk 'BEGIN{{printf \"%s%s\",\"{first}\",\"{rest}\"}}'"),
        format!("gawk 'BEGIN{{printf \"{first}\"; print \"{rest}\"}}'"),
        format!("awk -v a='{first}' 'BEGIN{{print a \"{rest}\"}}'"),
        format!("awk 'BEGIN{{print a \"{rest}\"}}' a='{first}'"),
        format!("jq -rn '\"{first}\"+\"{rest}\"'"),
        format!("jq -rn '[\"{first}\",\"{rest}\"]|add'"),
        format!("jq -rn --arg a '{first}' '$a+\"{rest}\"'"),
        format!("jq -rn '\"{first}\\(\"{rest}\")\"'"),
        format!("python3 -c 'print(\"{first}\"+\"{rest}\")'"),
        format!("perl -e 'print \"{first}\",\"{rest}\"'"),
        format!("find . -maxdepth 0 -printf '{first}' -printf '{rest}'"),
        format!("git log -1 --format='{first}%x{hex}{behind}'"),
        format!("git log -1 --pretty=format:'{first}%x{hex}{behind}'"),
        format!("git log -1 --format='{first}%C(auto){rest}'"),
        format!("git for-each-ref --format='{first}%{hex}{behind}'"),
        format!("git for-each-ref --format='{first}%(if)%(then)%(end){rest}'"),
        format!("cat <(printf '{first}') <(printf '{rest}')"),
        format!("paste -d '{letter}' <(echo '{first}') <(echo '{behind}')"),
        format!("paste -d '\\0' <(echo '{first}') <(echo '{rest}')"),
        format!("{{ printf '{first}'; cat; }} <<< '{rest}'"),
        format!("{{ awk 'BEGIN{{printf \"{first}\"}}'; printf '{rest}'; }}"),
    ]
}

#[test]
fn what_is_denied_is_denied_where_a_program_puts_it_together() {
    let rules = rules();
    let mut wrong = Vec::new();
    for vector in VECTORS {
        for payload in DENIED {
            for printer in printers(payload) {
                let line = vector.replace("@P@", &printer);
                let (verdict, why) = verdict(&rules, Mode::FullAuto, &line);
                if verdict != Verdict::Deny {
                    wrong.push(format!("{line}: {why}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_is_denied_is_denied_in_the_rules_of_make_and_in_pipes_of_awk() {
    let rules = rules();
    let mut wrong = Vec::new();
    for vector in [
        "echo 'all:;@C@' > Makefile; make",
        "printf 'all: ;@@C@\\n' > Makefile; make -s",
        "printf 'X:=$(shell @C@)\\n' > makefile; make",
        "printf 'X!=@C@\\n' > GNUmakefile; make",
        "{ printf 'all:;'; printf '@C@'; } > Makefile; make",
        "make -f - <<< 'all:;@C@'",
        "awk 'BEGIN{print \"@C@\" | \"sh\"}'",
        "awk 'BEGIN{c=\"@C@\"; print c \"\" | \"/bin/bash -s\"}'",
    ] {
        for payload in DENIED {
            let line = vector.replace("@C@", payload);
            let (verdict, why) = verdict(&rules, Mode::FullAuto, &line);
            if verdict != Verdict::Deny {
                wrong.push(format!("{line}: {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn everyday_lines_that_put_texts_together_are_no_harm() {
    let text = "[[rule]]\ndecision = \"deny\"\ncommand = [\"touch\"]\n";
    let rules = Rulebook::builtin().with_file(Tier::User, "m.toml", text).unwrap();
    let mut wrong = Vec::new();
    for line in [
        "awk '{print \"to\" \"uch x\"}' a.txt",
        "jq -r '\"a\"+\"b\"' a.json | head",
        "git log -1 --format='%h %s' | cat",
        "git for-each-ref --format='%(refname:short)' | while read -r b; do echo \"$b\"; done",
        "find . -printf '%p\\n' | sort",
        "cat <(sort a.txt) <(sort b.txt) | wc -l",
        "paste -d , <(cut -f1 a.txt) <(cut -f2 a.txt)",
        "printf 'all:\\n\\tcargo build\\n' > Makefile; make",
        "awk '{print $1 \"|\" $2}' a.txt | sort | uniq -c",
        "cat a.sh b.sh > c.sh; bash c.sh",
        "jq -r '.scripts.test' package.json",
    ] {
        let (verdict, why) = verdict(&rules, Mode::FullAuto, line);
        if verdict != Verdict::Allow {
            wrong.push(format!("{line}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
