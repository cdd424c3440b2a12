//! Words that bash cuts out of what an expansion gives, and names of files that read as options.

use lathe_policy::{Rulebook, Tier};
use lathe_protocol::{Mode, Verdict};

use crate::twice::{rules, verdict};

/// Lines whose unquoted expansions may come to a file besides the word that they stand in. They are only judged here.
const READS: [&str; 25] = [
    "grep -v /root/.ssh/*",
    "grep -ve /root/.ssh/*",
    "rg -v /root/.ssh/*",
    "grep -v -A /root/.ssh/*",
    "grep -v ~/.ssh/id_?sa",
    "awk /root/.ssh/*",
    "sed -n /root/.ssh/*",
    "diff /root/.ssh src",
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
    let rules = rules().with_file(Tier::User, "paths.toml", text).unwrap();
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
        "grep -v plan.*",
        "rg -v p*",
        "diff -N . src",
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
        "grep -n main src/*.rs",
        "grep -c 'a*' a.txt",
        "grep -rn --include=*.rs main src",
        "diff a.txt b.txt",
        "diff src/a src/b",
        "head -n $((2 + 3)) a.txt",
    ] {
        let (verdict, why) = verdict(&rules, Mode::Default, line);
        if verdict != Verdict::Allow {
            wrong.push(format!("{line}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_in_a_folder_that_shows_only_later_is_denied_with_every_path() {
    let text = "[[rule]]\ndecision = \"deny\"\npath = [\"private/**\"]\n";
    let rules = Rulebook::builtin().with_file(Tier::User, "paths.toml", text).unwrap();
    let mut wrong = Vec::new();
    for line in [
        "cd \"$(cat p)\" && cat s",
        "(cd $(cat p); cat s)",
        "pushd \"$(cat p)\"; cat s",
        "read d < p; cd \"$d\"; cat s",
        "d=$(cat p); cd $d; cat s",
        "cd \"$(cat p)\"; echo x > s",
        "cd \"$(cat p)\"; cp s ../q",
        "cd \"$OLDPWD\"; cat s",
        "cd -; cat s",
        "popd; cat s",
        "pushd +1; cat s",
        "find . -type d | while read d; do (cd \"$d\" && cat s); done",
        "find . -type d -execdir cat s \\;",
        "cd $x; touch s",
    ] {
        let (verdict, why) = verdict(&rules, Mode::FullAuto, line);
        if verdict != Verdict::Deny {
            wrong.push(format!("{line}: {why}"));
        }
    }
    for line in
        ["cd web && cat s", "d=web; cd $d && cat s", "cd web; cargo test", "cd \"$x\" && make", "ls; pwd"]
    {
        let (verdict, why) = verdict(&rules, Mode::FullAuto, line);
        if verdict == Verdict::Deny {
            wrong.push(format!("{line}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
