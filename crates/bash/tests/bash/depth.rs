//! Nesting, length and garbage: no overflow, no hang, time in proportion.

use std::time::Duration;

use lathe_bash::{Script, read};
use lathe_grammars::Language;
use nix::time::{ClockId, clock_gettime};

/// Reads on a small stack, so that recursion would show.
fn on_a_small_stack(text: String) -> (Script, Duration) {
    let work = move || {
        let started = worked();
        (read(&text), worked() - started)
    };
    std::thread::Builder::new().stack_size(256 * 1024).spawn(work).unwrap().join().unwrap()
}

fn nested(n: usize, open: &str, inner: &str, close: &str) -> String {
    format!("{}{inner}{}", open.repeat(n), close.repeat(n))
}

#[test]
fn what_is_nested_deeply_is_found_or_the_text_is_refused() {
    for (open, inner, close) in [
        ("echo $(", "hidden x", ")"),
        ("echo \"$(", "hidden x", ")\""),
        ("{ ", "hidden x", "; }"),
        ("if ls; then ", "hidden x", "; fi"),
        ("f() { ", "hidden x", "; }"),
        ("eval ", "hidden x", ""),
        ("nice ", "hidden x", ""),
        ("sudo env ", "hidden x", ""),
        ("while ls; do ", "hidden x", "; done"),
        ("ls && ", "hidden x", ""),
        ("ls | ", "hidden x", ""),
        ("cat <(", "hidden x", ")"),
        ("bash <(", "hidden x", ")"),
        ("cat < <(", "hidden x", ")"),
        ("bash < <(", "hidden x", ")"),
    ] {
        for n in [3, 40, 3_000] {
            let (script, took) = on_a_small_stack(nested(n, open, inner, close));
            let found = script.commands.iter().any(|command| command.program() == Some("hidden"));
            assert!(found || script.endless, "{n} times {open}");
            assert!(took < Duration::from_secs(10), "{n} times {open}: {took:?}");
        }
    }
}

#[test]
fn garbage_neither_overflows_nor_hangs() {
    for (unit, n) in [
        ("(", 30_000),
        ("$(", 20_000),
        ("`", 30_000),
        ("{", 30_000),
        ("{a,b}", 10_000),
        ("[", 30_000),
        ("cat <<E\n", 3_000),
        ("\"'", 20_000),
        ("${a:-", 10_000),
        ("$((", 10_000),
        ("case a in b) ", 3_000),
        (")(<>|&;", 1_500),
        ("a)b(c;;'d\"", 3_000),
        ("\\", 30_000),
        ("<<", 10_000),
        ("[[ ", 10_000),
        ("!", 30_000),
        ("#", 30_000),
    ] {
        let (_, took) = on_a_small_stack(unit.repeat(n));
        assert!(took < Duration::from_secs(10), "{unit}: {took:?}");
    }
}

#[test]
fn what_is_made_and_used_takes_time_in_proportion() {
    let made = "echo a > f; cat > g <<'E'\nls\nE\nln -s a l; cp /bin/rm r; { echo a; } > h\n";
    for unit in [
        "echo a > f\n",
        "echo a | tee f\n",
        "{ echo a; } > f\n",
        "bash f\n",
        "bash < f\n",
        "cat f | wc\n",
        "cat f | bash\n",
        "eval \"$(cat f)\"\n",
        "make\n",
        "ln -s a b; rm b/c\n",
        "cp /bin/rm x; ./x a\n",
        "bash -euo pipefail -c ls\n",
        "xargs ls < <(find a)\n",
        "while read x; do rm $x; done < <(find a)\n",
        "mapfile A < <(find a | grep b)\n",
        "rm $(find a)\n",
        "echo a > >(bash)\n",
        "unset 'a[$(b)]'\n",
        "x='a[$(b)]'\n",
    ] {
        let (_, took) = on_a_small_stack(format!("{made}{}", unit.repeat(2_000)));
        assert!(took < Duration::from_secs(10), "{unit}: {took:?}");
    }
}

/// The time this thread has had on a processor: what others do meanwhile is not ours. The kernel's files tell it too,
/// but only to the last tick, which is a third of a parse.
fn worked() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

#[test]
fn a_long_text_takes_little_longer_than_its_parse() {
    let text = "git status -s | grep 'a b' > /dev/null && cargo test -p lathe-bash 2>&1 | tail -n 20\n"
        .repeat(1_200);
    let mut parser = Language::Bash.parser().unwrap();
    let (mut bare, mut ours) = (Duration::MAX, Duration::MAX);
    // The least of several of each, because other work on the machine only ever adds.
    for _ in 0..15 {
        let started = worked();
        drop(parser.parse(&text, None).unwrap());
        bare = bare.min(worked() - started);
        let started = worked();
        assert_eq!(read(&text).commands.len(), 4_800);
        ours = ours.min(worked() - started);
    }
    let best = ours.as_secs_f64() / bare.as_secs_f64();
    // Without optimisation our part is slowed more than the grammar, which is C.
    let most = if cfg!(debug_assertions) { 5.0 } else { 1.5 };
    println!("{best:.2} times the bare parser");
    assert!(best < most, "{best} times the bare parser");
}
