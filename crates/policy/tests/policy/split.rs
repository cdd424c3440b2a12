//! The words that `env -S` makes of a text are judged as those of the command that runs.

use lathe_policy::{Rulebook, Tier};
use lathe_protocol::{Mode, Verdict};

use crate::twice::{DENIED, rules, verdict};

/// Lines with `@T@` for the text that is taken apart. They are only judged here.
const SPELLINGS: &str = r#"env -S '@T@'
%%
env -S'@T@'
%%
env -iS '@T@'
%%
env -vS'@T@'
%%
env -i -u X -S '@T@'
%%
env - -S '@T@'
%%
env --split-string='@T@'
%%
env --split-string '@T@'
%%
env --split='@T@'
%%
env --s '@T@'
%%
env --uns Y --split-str '@T@'
%%
env -S '-S "@T@"'
%%
env -S '-i\_A=1\_@T@'
%%
env -S '-S\_-S "@T@"'
%%
env $x -S '@T@'
%%
genv -S '@T@'
%%
/usr/bin/env -S '@T@'
%%
sudo -n env -S '@T@'
%%
nice timeout 5 env -S '@T@'
%%
busybox env -S '@T@'
%%
find . -maxdepth 0 -exec env -S '@T@' ';'
%%
echo a | xargs env -S '@T@'
%%
bash -c "env -S '@T@'"
%%
printf '%s\n' '#!/usr/bin/env -S @T@' > s; chmod +x s; ./s
%%
cat > s <<'E'
#!/usr/bin/env -S @T@
E
chmod +x s; ./s
%%
x='@T@'; env -S "$x"
%%
x='@T@'; env -iS"$x"
%%
env -S "$(printf %s '@T@')""#;

/// Ways to write the words of a command for env.
fn texts(payload: &str) -> Vec<String> {
    let words: Vec<&str> = payload.split(' ').collect();
    vec![
        payload.to_owned(),
        words.join("\\_"),
        format!("{}\\c of no use", words.join("\\_")),
        format!("{} # of no use", words.join(" ")),
        words.join(" \\_ "),
    ]
}

/// The commands that are denied, as env runs them: no redirections, no home but by its variable.
fn payloads() -> Vec<String> {
    DENIED.iter().map(|line| line.replace("echo x >", "tee").replace('~', "${HOME}")).collect()
}

#[test]
fn what_is_denied_is_denied_where_env_takes_it_apart() {
    let rules = rules();
    let mut wrong = Vec::new();
    for spelling in SPELLINGS.split("\n%%\n") {
        for payload in payloads() {
            for text in texts(&payload) {
                let line = spelling.replace("@T@", &text);
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
fn words_of_env_that_follow_a_text_belong_to_it() {
    let rules = rules();
    for line in [
        "env -S 'git' push",
        "env -S 'rm\\_-rf' /",
        "env -S \"rm -rf ${X}/\"",
        "env -S '\"git\" \"push\"'",
        "env -S \"'git' pu'sh'\"",
        "env -S 'git \\qx'",
        "env -S 'git $x'",
        "env - git push",
        "env --uns X git push",
        "echo a | xargs --eof touch",
        "echo a | xargs --replace touch",
        "echo a | xargs -l touch",
    ] {
        let (verdict, why) = verdict(&rules, Mode::FullAuto, line);
        assert_eq!(verdict, Verdict::Deny, "{line}: {why}");
    }
}

/// Commands that run the rest of their words.
const WRAPPERS: [&str; 14] = [
    "env",
    "env -i",
    "env A=1",
    "sudo -n",
    "nice -n 5",
    "timeout 5",
    "nohup",
    "setsid",
    "stdbuf -o0",
    "command",
    "exec",
    "ionice -c 3",
    "chrt -b 0",
    "nice timeout 5 env",
];

#[test]
fn what_is_denied_is_denied_where_a_wrapper_gets_its_name_in_parts() {
    let rules = rules();
    let mut wrong = Vec::new();
    for payload in payloads() {
        let (program, rest) = payload.split_once(' ').unwrap();
        let (first, second) = program.split_at(1);
        let parted = [
            format!("${{X}}{payload}"),
            format!("{first}${{X}}{second} {rest}"),
            format!("{program}${{X}} {rest}"),
        ];
        for text in parted {
            let wrapped = WRAPPERS.iter().map(|wrapper| format!("{wrapper} {text}"));
            for line in wrapped.chain([format!("env -S '{text}'"), format!("env -iS'A=1 {text}'")]) {
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
fn what_is_denied_is_denied_in_parts_of_a_text_that_a_program_runs() {
    let rules = rules();
    for line in [
        "make --eval='a:;to$(X)uch x' a",
        "make -f - <<< 'all:;to${X}uch x'",
        "sqlite3 :memory: '.shell to${X}uch x'",
        "GIT_EDITOR='to${X}uch x' git commit",
        "ssh -o ProxyCommand='gi${X}t push' h",
        "at now <<< '${X}touch x'",
        "tmux new 'to${X}uch x'",
        "npx -c 'to${X}uch x'",
        "npm exec -c 'touch${X} x'",
        "docker run -v .:/w x sh -c 'to${X}uch x'",
        "watch 'to$X\\uch x'",
        "git -c core.pager='to${X}uch x' log",
        "git rebase -x 'gi${X}t push'",
        "vim -c '!to${X}uch x' -c q",
        "parallel 'to${X}uch {}' ::: x",
        "script -c 'to${X}uch x' /dev/null",
        "export PROMPT_COMMAND='to${X}uch x'",
    ] {
        let (verdict, why) = verdict(&rules, Mode::FullAuto, line);
        assert_eq!(verdict, Verdict::Deny, "{line}: {why}");
    }
}

#[test]
fn programs_that_an_option_names_are_looked_at() {
    let rules = rules();
    for line in [
        "install -s --strip-program=touch b.txt x",
        "install -s --strip-program touch b.txt x",
        "install -s --strip-prog=/usr/bin/touch b.txt x",
        "sdiff --diff-program=touch a b",
        "MANOPT='-P touch' man ls",
        "env MANOPT='-P touch' man ls",
        "LESS='+!touch x' less a",
    ] {
        let (verdict, why) = verdict(&rules, Mode::FullAuto, line);
        assert_eq!(verdict, Verdict::Deny, "{line}: {why}");
    }
    for line in ["install -m 755 a b", "install -m 644 -D a b", "MANOPT=--nj man ls"] {
        let (verdict, why) = verdict(&rules, Mode::FullAuto, line);
        assert_eq!(verdict, Verdict::Allow, "{line}: {why}");
    }
}

#[test]
fn everyday_lines_with_a_text_for_env_are_no_harm() {
    let text = "[[rule]]\ndecision = \"deny\"\ncommand = [\"touch\"]\nkind = [\"delete\"]\n";
    let rules = Rulebook::builtin().with_file(Tier::User, "m.toml", text).unwrap();
    for line in [
        "env -S 'python3 -u' x",
        "env -S 'node --test' a.js",
        "env -iS 'A=1 cargo test' --all",
        "env -S \"echo 'touch x'\"",
        "env -S 'echo a # touch x'",
        "printf '%s\\n' '#!/usr/bin/env -S python3 -u' 'print(1)' > s; chmod +x s; ./s",
    ] {
        let (verdict, why) = verdict(&rules, Mode::FullAuto, line);
        assert_eq!(verdict, Verdict::Allow, "{line}: {why}");
    }
}
