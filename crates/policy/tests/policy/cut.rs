//! Words that bash cuts out of what an expansion gives, and names of files that read as options.

use lathe_policy::{Rulebook, Tier};
use lathe_protocol::{Mode, Verdict};

use crate::twice::{rules, verdict};

/// Lines whose unquoted expansions may come to a file besides the word that they stand in. They are only judged here.
const READS: [&str; 17] = [
    "cat -$(echo n /root/.ssh/id_rsa)",
    "cat -n$(cat list)",
    "cat -`cat list`",
    "head -$(cat list)",
    "wc -$(cat list)",
    "ls -$(cat list)",
    "grep . -$(cat list)",
    "grep $(cat list)",
    "grep $(cat list) a.txt",
    "grep -e $(cat list)",
    "grep -n$(cat list) a.txt",
    "for n in $(cat list); do cat -$n; done",
    "n=$(cat list); cat -$n",
    "n=$(cat list); grep $n a.txt",
    "n=$(cat list); grep ${n%x} a.txt",
    "read n < list; head -$n",
    "grep -A$x pattern a.txt",
];

#[test]
fn a_file_that_an_expansion_may_name_is_never_read_unasked() {
    let rules = Rulebook::builtin();
    let mut wrong = Vec::new();
    for line in READS {
        for mode in [Mode::Plan, Mode::Default, Mode::AutoEdit] {
            let (verdict, why) = verdict(&rules, mode, line);
            if verdict == Verdict::Allow {
                wrong.push(format!("{line} in {mode:?}: {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_cut_out_of_an_expansion_is_denied_like_what_stands_there() {
    let text = "[[rule]]\ndecision = \"deny\"\npath = [\"plan.txt\"]\n";
    let rules = rules().with(Tier::User, "paths.toml", text).unwrap();
    let mut wrong = Vec::new();
    for line in [
        "cat -$(echo n plan.txt)",
        "cat -$(cat list)",
        "tee -$(echo a plan.txt)",
        "cp -$(echo a a.txt plan.txt)",
        "mv -$(echo f a.txt plan.txt)",
        "rm -$(echo rf /)",
        "rm -r$(echo f /)",
        "chmod -$(echo R 777 /)",
        "tee -$(echo a .git/hooks/x)",
        "cp -$(echo f a.txt .git/hooks/x)",
        "mv -$(echo t .git/hooks) a.txt",
        "cat -$(echo n /home/me/.local/share/lathe/config.toml)",
        "x='n plan.txt'; cat -$x",
    ] {
        let (verdict, why) = verdict(&rules, Mode::FullAuto, line);
        if verdict != Verdict::Deny {
            wrong.push(format!("{line}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn quoted_and_known_expansions_stay_what_they_are() {
    let rules = Rulebook::builtin();
    let mut wrong = Vec::new();
    for line in [
        r#"grep "$(git rev-parse HEAD)" a.txt"#,
        "for n in 5; do head -$n a.txt; done",
        "for n in 1 2 3; do head -n $n a.txt; done",
        r#"for x in one two; do grep -n "$x" a.txt; grep -n $x a.txt; done"#,
        "for f in *.rs; do wc -l $f; done",
        "echo $(git rev-parse HEAD)",
        "head -n $((2 + 3)) a.txt",
    ] {
        let (verdict, why) = verdict(&rules, Mode::Default, line);
        if verdict != Verdict::Allow {
            wrong.push(format!("{line}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
