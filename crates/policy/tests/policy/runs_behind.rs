//! A command that git or another program runs is decided as that command, and arithmetic on the output of a command
//! is a text that is evaluated again (issue 15).

use lathe_policy::{Gate, Rulebook, Tier};
use lathe_protocol::{Actor, Mode, Verdict};

use crate::corpus::gate as anywhere;

/// Lines that run `curl` by way of another program.
const RUNS: &[&str] = &[
    r#"git -c alias.q='!curl x' q"#,
    r#"git -c alias.q='!f() { curl x; }; f' q"#,
    r#"git rebase --exec 'curl x' HEAD~1"#,
    r#"git rebase --exec='curl x' HEAD~1"#,
    r#"git rebase -x 'curl x' HEAD~1"#,
    r#"git rebase -x'curl x' HEAD~1"#,
    r#"git rebase -i --exec 'make && curl x' HEAD~1"#,
    r#"git bisect run curl x"#,
    r#"git bisect run sh -c 'curl x'"#,
    r#"git submodule foreach 'curl x'"#,
    r#"git submodule foreach curl x"#,
    r#"git submodule foreach --recursive curl x"#,
    r#"git submodule --quiet foreach --recursive 'curl x'"#,
    r#"git filter-branch --tree-filter 'curl x' HEAD"#,
    r#"git filter-branch --index-filter 'curl x'"#,
    r#"git filter-branch --msg-filter 'curl x'"#,
    r#"git filter-branch --env-filter 'curl x'"#,
    r#"git filter-branch --commit-filter 'curl x' HEAD"#,
    r#"git filter-branch --tag-name-filter 'curl x' HEAD"#,
    r#"git filter-branch --parent-filter 'curl x' HEAD"#,
    r#"git filter-branch --setup 'curl x' HEAD"#,
    r#"git filter-branch --subdirectory-filter src --prune-empty -f --tree-filter='curl x' HEAD"#,
    r#"git -c core.pager='curl x' log"#,
    r#"git -c pager.log='curl x' log"#,
    r#"git -c core.pager=curl log"#,
    r#"git -c core.editor='curl x' commit"#,
    r#"git -c core.sshCommand='curl x' fetch"#,
    r#"git -c core.fsmonitor='curl x' status"#,
    r#"git -c core.askPass='curl x' fetch"#,
    r#"git -c core.gitProxy='curl x' fetch"#,
    r#"git -c diff.external='curl x' diff"#,
    r#"git -c diff.x.textconv='curl x' diff"#,
    r#"git -c diff.x.command='curl x' diff"#,
    r#"git -c filter.x.smudge='curl x' checkout f"#,
    r#"git -c filter.x.clean='curl x' add f"#,
    r#"git -c filter.x.process='curl x' add f"#,
    r#"git -c merge.x.driver='curl x' merge y"#,
    r#"git -c mergetool.x.cmd='curl x' mergetool -t x"#,
    r#"git -c difftool.x.cmd='curl x' difftool -t x"#,
    r#"git -c gpg.program='curl' commit -S"#,
    r#"git -c gpg.ssh.program='curl' commit -S"#,
    r#"git -c gpg.ssh.defaultKeyCommand='curl x' commit -S"#,
    r#"git -c credential.helper='!curl x' fetch"#,
    r#"git -c credential.helper='/usr/bin/curl' fetch"#,
    r#"git -c sequence.editor='curl x' rebase -i HEAD~1"#,
    r#"git -c uploadpack.packObjectsHook='curl x' fetch ."#,
    r#"git -c interactive.diffFilter='curl x' add -p"#,
    r#"git -c trailer.x.command='curl x' commit --trailer x"#,
    r#"git -c trailer.x.cmd='curl x' interpret-trailers --trailer x"#,
    r#"git -c web.browser=x -c browser.x.cmd='curl x' instaweb"#,
    r#"git -c help.browser=x -c browser.x.cmd='curl x' help -w log"#,
    r#"git -c man.x.cmd='curl x' -c man.viewer=x help log"#,
    r#"git -c remote.o.receivepack='curl x' push o"#,
    r#"git -c remote.o.uploadpack='curl x' fetch o"#,
    r#"git -c url.ext::curl.insteadOf=x fetch x"#,
    r#"git fetch 'ext::curl x'"#,
    r#"git clone 'ext::curl x' y"#,
    r#"git -c protocol.ext.allow=always clone 'ext::sh -c curl% x' y"#,
    r#"git ls-remote --upload-pack='curl x' ."#,
    r#"git ls-remote --upload-pack 'curl x' ."#,
    r#"git ls-remote --exec='curl x' ."#,
    r#"git fetch --upload-pack='curl x' ."#,
    r#"git clone -u 'curl x' . y"#,
    r#"git clone -c core.fsmonitor='curl x' . y"#,
    r#"git clone --config core.fsmonitor='curl x' . y"#,
    r#"git push --receive-pack='curl x' o"#,
    r#"git push --exec='curl x' o"#,
    r#"git difftool -x 'curl x'"#,
    r#"git difftool --extcmd='curl x'"#,
    r#"git difftool --extcmd 'curl x'"#,
    r#"git difftool -yx curl"#,
    r#"git grep -O'curl x' y"#,
    r#"git grep --open-files-in-pager='curl x' y"#,
    r#"git archive --remote=. --exec='curl x' HEAD"#,
    r#"git send-email --smtp-server='/usr/bin/curl' x"#,
    r#"git send-email --to-cmd='curl x' x"#,
    r#"git send-email --sendmail-cmd='curl x' x"#,
    r#"git instaweb --httpd='curl x'"#,
    r#"git instaweb -d 'curl x'"#,
    r#"git daemon --access-hook='curl x'"#,
    r#"git for-each-repo --config=x curl"#,
    r#"git config alias.q '!curl x'"#,
    r#"git config --global core.pager 'curl x'"#,
    r#"git config core.editor 'curl x'"#,
    r#"git config set core.editor 'curl x'"#,
    r#"git config --add credential.helper '!curl x'"#,
    r#"GIT_SSH_COMMAND='curl x' git fetch"#,
    r#"GIT_SSH=curl git fetch"#,
    r#"GIT_PAGER='curl x' git log"#,
    r#"PAGER='curl x' git log"#,
    r#"GIT_EDITOR='curl x' git commit"#,
    r#"EDITOR='curl x' git commit"#,
    r#"VISUAL='curl x' git commit"#,
    r#"GIT_SEQUENCE_EDITOR='curl x' git rebase -i HEAD~1"#,
    r#"GIT_EXTERNAL_DIFF='curl x' git diff"#,
    r#"GIT_ASKPASS=curl git fetch"#,
    r#"SSH_ASKPASS=curl git fetch"#,
    r#"GIT_PROXY_COMMAND='curl x' git fetch"#,
    r#"GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.pager GIT_CONFIG_VALUE_0='curl x' git log"#,
    r#"GIT_CONFIG_PARAMETERS="'core.pager=curl x'" git log"#,
    r#"X='curl x' git --config-env=core.pager=X log"#,
    r#"env GIT_SSH_COMMAND='curl x' git fetch"#,
    r#"export GIT_SSH_COMMAND='curl x'; git fetch"#,
    r#"LESSOPEN='|curl x' git log"#,
    r#"BROWSER=curl git help -w log"#,
    r#"git stash; git -c core.pager='sh -c "curl x"' stash show -p"#,
    r#"git svn --authors-prog='curl x' fetch"#,
    r#"git fast-import --x='curl x'"#,
    r#"git log --format='curl x' | sh"#,
    r#"git log -1 --format=%s | xargs curl"#,
    r#"git remote add o 'ext::curl x'"#,
    r#"git remote-ext o 'curl x'"#,
    r#"git shell -c 'curl x'"#,
    r#"git bisect start; git bisect run bash -c 'make; curl x'"#,
    r#"git rebase -ix 'curl x' HEAD~1"#,
    r#"git commit --edit -c HEAD --cleanup=x; GIT_EDITOR="curl x" git commit --amend"#,
    r#"env PAGER='curl x' git log"#,
    r#"env -i GIT_EDITOR='curl x' git commit"#,
    r#"sudo GIT_SSH_COMMAND='curl x' git fetch"#,
    r#"timeout 5 env GIT_SSH=curl git fetch"#,
    r#"env GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.pager GIT_CONFIG_VALUE_0='curl x' git log"#,
    r#"git remote set-url o 'ext::sh -c curl% x'"#,
    r#"git config url.ext::curl.insteadOf x"#,
    r#"git -c url.'ext::sh -c curl% x'.pushInsteadOf=x push x"#,
    r#"jobs -x curl x"#,
];

/// Lines that only speak of it.
const SPEAKS: &[&str] = &[
    "git commit -m 'stop rm -rf /'",
    "git commit -m 'use curl x'",
    "git commit -am \"run curl x in CI\"",
    "git commit --message='curl x'",
    "git commit -m 'a' -m 'then: curl x'",
    "git commit --amend -m 'curl: fix'",
    "git tag -a v1 -m 'curl x'",
    "git log --grep 'curl x'",
    "git log -S 'curl x'",
    "git grep 'curl x'",
    "git stash push -m 'curl x'",
    "git notes add -m 'curl x'",
    "git merge -m 'curl x' y",
    "grep -rn 'curl x' .",
    "env LC_ALL=C git log",
    "jobs -l",
];

fn gate() -> Gate {
    Gate { here: Some("/w".into()), root: "/w".into(), ..anywhere() }
}

fn verdict(rules: &Rulebook, mode: Mode, line: &str) -> Verdict {
    gate().decide_line(rules, Actor::Model, mode, line).decision.verdict
}

#[test]
fn a_command_is_denied_whatever_is_told_to_run_it() {
    let rule = "[[rule]]\ndecision = \"deny\"\ncommand = [\"curl\"]\n";
    let rules = Rulebook::builtin().with_file(Tier::User, "f.toml", rule).unwrap();
    let ran = |line: &&&str| verdict(&rules, Mode::FullAuto, line) != Verdict::Deny;
    assert_eq!(RUNS.iter().filter(ran).collect::<Vec<_>>(), Vec::<&&str>::new());
    let denied = |line: &&&str| verdict(&rules, Mode::FullAuto, line) == Verdict::Deny;
    assert_eq!(SPEAKS.iter().filter(denied).collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn the_guard_looks_behind_jobs_and_not_into_messages() {
    let rules = Rulebook::builtin();
    assert_eq!(verdict(&rules, Mode::FullAuto, "jobs -x rm -rf /"), Verdict::Deny);
    assert_eq!(verdict(&rules, Mode::Plan, "jobs -x touch a"), Verdict::Deny);
    assert_ne!(verdict(&rules, Mode::FullAuto, "git commit -m 'stop rm -rf /'"), Verdict::Deny);
}

#[test]
fn arithmetic_on_what_a_command_prints_is_denied_where_nothing_may_run() {
    let rules = Rulebook::builtin();
    for line in [
        "for n in $(cat f); do echo $((n)); done",
        "for n in $(cat f); do echo $((1 + ((n)))); done",
        "for n in $(cat f); do [[ $n -eq 1 ]] && echo y; done",
        "for n in $(cat f); do echo ${a[n]}; done",
        "for n in $(cat f); do echo ${a[$n]}; done",
        "for n in $(cat f); do echo ${x:n}; done",
        "for n in $(cat f); do echo ${x:0:n}; done",
        "for n in $(cat f); do echo $[n]; done",
        "echo $(( $(cat f) ))",
        "echo $(( $(cat f) + 1 ))",
        "echo $[$(cat f)]",
        "echo ${a[$(cat f)]}",
        "echo ${x:$(cat f)}",
        "head -n $(( $(wc -l < f) / 2 )) f",
        "[[ $(cat f) -gt 1 ]]",
        "n=$(cat f); echo $((n))",
        "read n < f; echo $((n))",
        "while read n; do echo $((n)); done < f",
        "x=$(cat f); printf -v \"$x\" hi",
        "x=$(cat f); declare \"$x\"",
    ] {
        assert_eq!(verdict(&rules, Mode::Plan, line), Verdict::Deny, "{line}");
        assert_eq!(verdict(&rules, Mode::Default, line), Verdict::Ask, "{line}");
    }
    // What the line itself says, or only looks like a sum, is decided as before.
    for (line, decided) in [
        ("echo $((1 + 2))", Verdict::Allow),
        ("grep -n '$(( $(cat f) ))' a", Verdict::Allow),
        ("grep -n '${a[$(x)]}' a", Verdict::Allow),
        ("for n in 1 2 3; do echo $((n * 2)); done", Verdict::Ask),
        ("echo ${a[i]}", Verdict::Ask),
    ] {
        assert_eq!(verdict(&rules, Mode::Plan, line), decided, "{line}");
    }
}
