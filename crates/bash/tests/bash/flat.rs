//! Lines that are read from their text alone say the same as those that are read from the tree.

use lathe_bash::{FloorRule, read};

const PARTS: [&str; 46] = [
    "ls",
    "git",
    "cat",
    "2",
    "22",
    "-n",
    "a/b.c",
    "x:y",
    "'a b'",
    "'a;|&b'",
    "\"a b\"",
    "\"\"",
    "''",
    "\"é 'x'\"",
    "\"$x\"",
    "\"a`b\"",
    "\"$xy\"",
    "\"$x y\"",
    "\"$1\"",
    "$_a1",
    "$1",
    "$",
    "$x",
    "x=1",
    "*",
    "do",
    "in",
    "if",
    "export",
    "unset",
    "time",
    "sudo",
    "|",
    "|",
    "||",
    "&&",
    "|&",
    "&",
    "2>&1",
    ">&2",
    "1>&2",
    ">/dev/null",
    "> /dev/null",
    "2> /dev/null",
    "> x",
    "# c",
];

/// One of them follows from the one before, so that a failure is repeated by its number.
fn line(mut number: u64, blank: &str) -> String {
    let mut roll = |sides: usize| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(number >> 33).unwrap() % sides
    };
    let mut line = String::new();
    for _ in 0..=roll(9) {
        // Mostly words, and now and then without a blank between them.
        let most = if roll(2) == 0 { 13 } else { PARTS.len() };
        line.push_str(PARTS[roll(most)]);
        line.push_str([blank, blank, blank, "  ", ""][roll(5)]);
    }
    line
}

#[test]
fn a_flat_line_says_what_its_tree_says() {
    let unsure =
        |script: &lathe_bash::Script| script.floors.iter().any(|floor| floor.rule == FloorRule::Syntax);
    let mut compared = 0;
    for number in 0..40_000_u64 {
        let [line, by_tree] =
            [" ", "\t"].map(|blank| line(number.wrapping_mul(0x9e37_79b9_7f4a_7c15), blank));
        let flat = read(&line);
        // Braces around nothing but a comment are an error.
        if unsure(&flat) || flat.commands.is_empty() {
            continue;
        }
        assert_eq!(flat, read(&format!("{{ {line}\n}}")), "number {number}: {line:?}");
        // Where blanks are tabs, the tree is asked.
        if by_tree.trim().contains('\t') && !line.contains('`') {
            let mut both = [flat, read(&by_tree)];
            // The grammar may count all of `a || b` as part of a pipe after it; then more is taken as sent than
            // really is.
            if line.contains("||") || line.contains("&&") {
                both.iter_mut()
                    .flat_map(|script| &mut script.commands)
                    .for_each(|command| command.stage = None);
            }
            assert_eq!(both[0], both[1], "number {number}: {line:?}");
            compared += 1;
        }
    }
    assert!(compared > 10_000, "{compared}");
}

#[test]
fn a_flat_line_has_its_pipes_and_redirections() {
    let script = read("a 'b c' | d 2>&1 && e > /dev/null || f \"g\" | h | i");
    let shown: Vec<String> = script
        .commands
        .iter()
        .map(|command| {
            let words: Vec<&str> = command.words.iter().filter_map(|word| word.literal()).collect();
            let stage = command.stage.map(|stage| (stage.pipe, stage.index));
            format!("{} {:?} {}", words.join(","), stage, command.redirects.len())
        })
        .collect();
    assert_eq!(
        shown,
        [
            "a,b c Some((1, 0)) 0",
            "d Some((1, 1)) 1",
            "e None 1",
            "f,g Some((2, 0)) 0",
            "h Some((2, 1)) 0",
            "i Some((2, 2)) 0",
        ]
    );
}
