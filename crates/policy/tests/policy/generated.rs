//! Made-up scripts: none may panic or hang, and none may be allowed that runs what is not allowed.

use std::time::Duration;

use lathe_policy::{Gate, Rulebook};
use lathe_protocol::{Actor, Mode, Verdict};
use lathe_testkit::is_full;
use nix::time::{ClockId, clock_gettime};

use crate::corpus::{gate, rules};

/// A small generator of our own, so that a failure is repeated by its number alone.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

const FINE: [&str; 16] = [
    "ls -la",
    "cat x",
    "echo hi",
    "git status -s",
    "git log --oneline",
    "rg -n x src",
    "grep -c a b",
    "find . -name 'x'",
    "cargo test",
    "echo \"$x\"",
    "ls 2>/dev/null",
    "cat < f",
    "echo $(ls)",
    "echo 'a;b'",
    "ls | cat",
    "echo {a,b}",
];

/// Nothing of this may run unasked under the rules of the corpus.
const FOUL: [&str; 22] = [
    "evil",
    "evil -x",
    "/bin/ls",
    "./ls",
    "X=1 ls",
    "ls > out",
    "git -c a=b status",
    "find . -delete",
    "rg --pre x y",
    "git log --output=x",
    "evil | cat",
    "cargo +x test",
    "sudo ls",
    "eval ls",
    "cd x",
    "$x y",
    "echo ${x@P}",
    "git $x",
    "bash -c ls",
    "x=1",
    "f() { ls; }",
    "cat < /dev/tcp/a/1",
];

/// Ways to put a command into a script such that it can run; `@` is its place, `%` a fine command.
const AROUND: [&str; 51] = [
    "% # c\n\n@",
    "{ % # c\n@; }",
    "(% # c\n@)",
    "if % # c\nthen @; fi",
    "% | # c\n@",
    "% && # c\n@",
    "echo $(% # c\n@)",
    "for i in a # c\ndo @; done",
    "@",
    "%; @",
    "@; %",
    "% && @",
    "@ && %",
    "% || @",
    "% | @",
    "@ | %",
    "(@)",
    "{ @; }",
    "! @",
    "@ &",
    "% & @",
    "if @; then %; fi",
    "if %; then @; fi",
    "if %; then %; else @; fi",
    "while @; do %; done",
    "while %; do @; done",
    "for i in a b; do @; done",
    "for i in $(@); do %; done",
    "case x in x) @;; esac",
    "echo $(@)",
    "echo \"$(@)\"",
    "echo \"a $(%; @) b\"",
    "echo <(@)",
    "cat < <(@)",
    "cat <<E\n$(@)\nE",
    "cat <<< \"$(@)\"",
    "%\n@",
    "@\n%",
    "%\n\n@\n",
    "% # x\n@",
    "%;@",
    "%\\\n ; @",
    "[[ -n $(@) ]]",
    "echo $((1 + $(@)))",
    "until @; do %; done",
    "% |& @",
    "@ 2>&1",
    "echo ${x:-$(@)}",
    "echo \"$\\\n(@)\"",
    "cat <<E\n$\\\n(@)\nE",
    "cat <<EF\nx\nE\\\nF\n@\nEF",
];

const LETTERS: [&str; 49] = [
    "a", "b", " ", " ", "\n", "\t", ";", "&", "|", "(", ")", "{", "}", "[", "]", "<", ">", "$", "`", "'",
    "\"", "\\", "#", "!", "*", "?", "~", "=", "-", "/", ",", ".", "1", "2", "if", "then", "fi", "do", "done",
    "$(", "${", "<<", "E", "&&", "||", ";;", "\u{200b}", "é", "\\\n",
];

fn planted(dice: &mut Dice) -> String {
    let mut script = (*dice.pick(&FOUL)).to_owned();
    for _ in 0..=dice.roll(3) {
        // A heredoc or a continued line around several lines would change what they are.
        let shape = dice.pick(&AROUND);
        if script.contains('\n') && (shape.contains("E\n") || shape.contains("\\\n")) {
            continue;
        }
        // Braces and lists of statements cannot stand on the left of `)` after `&`, and the like: keep to plain shapes.
        if script.ends_with('&') && !shape.starts_with('@') {
            continue;
        }
        script = shape.replace('%', dice.pick(&FINE)).replace('@', &script);
    }
    script
}

fn mutated(dice: &mut Dice) -> String {
    let mut script = if dice.roll(4) == 0 { String::new() } else { planted(dice) };
    for _ in 0..=dice.roll(8) {
        let at = dice.roll(script.chars().count() + 1);
        let at = script.char_indices().nth(at).map_or(script.len(), |(at, _)| at);
        if dice.roll(4) == 0 {
            script.truncate(at);
        } else {
            script.insert_str(at, dice.pick(&LETTERS));
        }
    }
    script
}

fn count() -> u64 {
    if is_full() { 5_000_000 } else { 20_000 }
}

/// The time this thread has had on a processor: other work of the machine does not count.
fn worked() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

/// Decides, and fails if that takes longer than a user would wait.
fn decide(rules: &Rulebook, gate: &Gate, script: &str) -> Verdict {
    let started = worked();
    let verdict = gate.decide_line(rules, Actor::Model, Mode::Default, script).decision.verdict;
    let took = worked() - started;
    assert!(took < Duration::from_secs(5), "{took:?}: {script:?}");
    verdict
}

/// Looks at every number, on all cores.
fn each(count: u64, look: impl Fn(&Rulebook, &Gate, u64) + Sync) {
    let rules = rules();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for first in 0..threads as u64 {
            let (rules, look) = (&rules, &look);
            scope.spawn(move || {
                let gate = gate();
                (first..count).step_by(threads).for_each(|number| look(rules, &gate, number));
            });
        }
    });
}

#[test]
fn no_script_with_something_foul_in_it_is_allowed() {
    each(count(), |rules, gate, number| {
        let script = planted(&mut Dice(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        assert!(decide(rules, gate, &script) > Verdict::Allow, "number {number}: {script:?}");
    });
}

#[test]
fn no_script_makes_it_panic_or_hang() {
    each(count(), |rules, gate, number| {
        decide(rules, gate, &mutated(&mut Dice(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1)));
    });
}

#[test]
fn fine_scripts_are_mostly_allowed() {
    let (rules, gate, mut dice, mut allowed) = (rules(), gate(), Dice(7), 0);
    for _ in 0..2_000 {
        let shape = dice.pick(&AROUND);
        let script = shape.replace('%', dice.pick(&FINE)).replace('@', dice.pick(&FINE));
        allowed += usize::from(decide(&rules, &gate, &script) == Verdict::Allow);
    }
    // What is left are `${x:-…}`, arithmetic, substitutions in tests, and lines that are continued inside something.
    assert!(allowed > 1_700, "{allowed} of 2,000");
}

/// Scripts that are fine, and a little broken.
fn bent(dice: &mut Dice) -> String {
    let mut script = dice.pick(&AROUND).replace('%', dice.pick(&FINE)).replace('@', dice.pick(&FINE));
    for _ in 0..=dice.roll(3) {
        let at = dice.roll(script.chars().count() + 1);
        let at = script.char_indices().nth(at).map_or(script.len(), |(at, _)| at);
        script.insert_str(at, dice.pick(&LETTERS));
    }
    script
}

/// Signs and words as bash knows them; what the grammar takes for another is found by putting one where another stands.
const TOKENS: [&str; 63] = [
    "ls",
    "cat x",
    "echo",
    "a",
    "'b c'",
    "\\\n",
    "\"$x\"",
    "$x",
    "$(ls)",
    "`ls`",
    "\"$(ls)\"",
    "<(ls)",
    "i",
    "in",
    "do",
    "done",
    "if",
    "then",
    "else",
    "elif",
    "fi",
    "while",
    "until",
    "for",
    "case",
    "esac",
    "{",
    "}",
    "(",
    ")",
    "!",
    "[[",
    "]]",
    ";",
    ";;",
    ";&",
    "&",
    "&&",
    "|",
    "||",
    "|&",
    "\n",
    "\n",
    "# c\n",
    "# c \\\n",
    "\\\n",
    "2>&1",
    ">/dev/null",
    "< f",
    "<<< a",
    "<<E\n$(ls)\nE\n",
    "<<'E'\nx\nE\n",
    "<<-E\n\tx\n\tE\n",
    "<<E",
    "E\n",
    "2",
    "{a,b}",
    "x=1",
    "time",
    "function",
    "==",
    "#",
    "select",
];

fn end(dice: &mut Dice) -> &'static str {
    dice.pick(&[";", ";", ";", "\n", "\n", "&", "# c\n"])
}

/// A statement, token by token.
fn statement(dice: &mut Dice, depth: usize, into: &mut Vec<&'static str>) {
    let inner =
        |dice: &mut Dice, into: &mut Vec<&'static str>| statement(dice, depth.saturating_sub(1), into);
    match dice.roll(if depth == 0 { 3 } else { 14 }) {
        0 => into.push(dice.pick(&FINE)),
        1 | 2 => {
            into.push(dice.pick(&["ls", "cat", "echo"]));
            for _ in 0..dice.roll(3) {
                into.push(dice.pick(&[
                    "a",
                    "'b c'",
                    "$x",
                    "$(ls)",
                    "\"$(ls)\"",
                    "`ls`",
                    "2>&1",
                    "< f",
                    "<(ls)",
                    "<<< a",
                ]));
            }
        }
        kind @ (3 | 4) => {
            inner(dice, into);
            into.push(if kind == 3 { "|" } else { dice.pick(&["&&", "||", "&&\n"]) });
            inner(dice, into);
        }
        kind @ (5 | 6) => {
            into.push(if kind == 5 { "{" } else { "(" });
            inner(dice, into);
            into.push(end(dice));
            into.push(if kind == 5 { "}" } else { ")" });
        }
        7 => {
            into.push("!");
            inner(dice, into);
        }
        8 => {
            into.push("if");
            inner(dice, into);
            into.extend([end(dice), "then"]);
            inner(dice, into);
            into.push(end(dice));
            if dice.roll(2) == 0 {
                into.push("else");
                inner(dice, into);
                into.push(end(dice));
            }
            into.push("fi");
        }
        9 => {
            into.push(dice.pick(&["while", "until"]));
            inner(dice, into);
            into.extend([end(dice), "do"]);
            inner(dice, into);
            into.extend([end(dice), "done"]);
        }
        10 | 11 => {
            into.extend(["for", "i", "in", dice.pick(&["a", "a b", "$(ls)", "'b c'"])]);
            into.extend([dice.pick(&[";", "\n", "# c\n"]), "do"]);
            inner(dice, into);
            into.extend([end(dice), "done"]);
        }
        12 => {
            into.extend(["case", dice.pick(&["x", "$x"]), "in", dice.pick(&["x", "*", "a|b"]), ")"]);
            inner(dice, into);
            into.extend([";;", "esac"]);
        }
        _ => {
            inner(dice, into);
            into.push(end(dice));
            inner(dice, into);
        }
    }
}

/// A script of whole tokens, some of them lost, doubled, swapped or replaced.
fn shuffled(dice: &mut Dice) -> String {
    let mut tokens = Vec::new();
    let depth = dice.roll(4);
    statement(dice, depth, &mut tokens);
    for _ in 0..dice.roll(4) {
        let at = dice.roll(tokens.len());
        match dice.roll(5) {
            0 if tokens.len() > 1 => {
                tokens.remove(at);
            }
            1 => tokens.insert(at, tokens[at]),
            2 => {
                let other = dice.roll(tokens.len());
                tokens.swap(at, other);
            }
            3 => tokens[at] = dice.pick(&TOKENS),
            _ => tokens.insert(at, dice.pick(&TOKENS)),
        }
    }
    let mut script = String::new();
    for token in tokens {
        script.push_str(token);
        script.push_str(dice.pick(&[" ", " ", " ", " ", " ", " ", "", "\t"]));
    }
    script
}

/// Scripts with a good chance to be allowed: fine ones in one another, sometimes bent, sometimes with something foul.
pub(crate) fn allowable(dice: &mut Dice) -> String {
    match dice.roll(14) {
        0 => mutated(dice),
        1..5 => bent(dice),
        5..9 => shuffled(dice),
        _ => {
            let mut script = dice.pick(&FINE).to_owned();
            for _ in 0..=dice.roll(3) {
                let shape = dice.pick(&AROUND);
                if script.contains('\n') && (shape.contains("E\n") || shape.contains("\\\n")) {
                    continue;
                }
                script = shape.replace('%', dice.pick(&FINE)).replace('@', &script);
            }
            script
        }
    }
}

/// Asks bash about so many scripts that are allowed. `bash -n` reads a script and runs nothing of it.
fn bash_reads(salt: u64, most: u64, make: fn(&mut Dice) -> String) {
    let (rules, gate, mut asked, mut wrong) = (rules(), gate(), 0, Vec::new());
    for number in 0_u64.. {
        let script = make(&mut Dice(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt));
        if decide(&rules, &gate, &script) != Verdict::Allow {
            continue;
        }
        let read = std::process::Command::new("bash").args(["-n", "-c", &script]).output().unwrap();
        if !read.status.success() {
            wrong.push(format!("number {number}: {script:?}: {}", String::from_utf8_lossy(&read.stderr)));
        }
        asked += 1;
        if asked == most || wrong.len() == 20 {
            break;
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// R2: a syntax error never yields leave.
#[test]
fn what_is_allowed_is_no_syntax_error_to_bash() {
    bash_reads(2, if is_full() { 20_000 } else { 300 }, bent);
}

#[test]
fn no_token_in_the_place_of_another_is_allowed_where_bash_sees_an_error() {
    bash_reads(4, if is_full() { 20_000 } else { 300 }, shuffled);
}
