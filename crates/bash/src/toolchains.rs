//! Programs that build and test: words that are not options and yet make them run another program, and the options
//! that are known to be harmless where there are too many others to name.

use crate::script::{Floor, FloorRule, Piece, SimpleCommand, Word, base_name};

/// The effect of a word that is not a dangerous option in the table, and is dangerous nevertheless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordEffect {
    /// More of its words are in a file, names of files to read among them.
    Reads,
    Runs,
    Writes,
}

/// The effect of words that are not options of the table, and yet make a program run another or write.
pub(crate) fn word_effect(program: &str, text: &str) -> Option<WordEffect> {
    if program == "git" && (writes_of_git(text) || takes_back(text)) {
        return Some(WordEffect::Writes);
    }
    if text.starts_with('@') && crate::takes_response_files(program) {
        return Some(WordEffect::Reads);
    }
    let runs = match program {
        // In a format, it makes git run gpg to check signatures; help is shown by another program.
        "git" => {
            let sorts = text.starts_with("--sort") && text.contains("signature");
            let key = text.trim_start_matches(['-', '*']).starts_with("signature");
            text == "--help" || checks_signatures(text) || text.contains("%(signature") || text.contains("%(*signature") || sorts || key
                // It runs git in the submodule.
                || (text.starts_with("--s") && text.ends_with("=diff"))
        }
        // A target of the user's own names its linker.
        "cargo" | "rustc" => text.ends_with(".json"),
        // Variables of the command line override those of the file: `make SHELL=x`.
        "make" | "gmake" | "ninja" | "cmake" => text.contains('='),
        // Tests in another folder are not the project's.
        "pytest" | "py.test" => is_outside(text),
        // Its options are accepted in any case and after one dash too; a switch takes `false` and `null`.
        "tsc" => {
            let bare = text.trim_start_matches('-').to_ascii_lowercase();
            let known = [
                "noemit",
                "pretty",
                "strict",
                "skiplibcheck",
                "version",
                "help",
                "listfiles",
                "diagnostics",
                "p",
                "project",
            ];
            matches!(bare.as_str(), "false" | "null" | "undefined")
                || (text.starts_with('-') && !known.contains(&bare.as_str()))
        }
        _ => false,
    };
    runs.then_some(WordEffect::Runs)
}

/// Tells whether a format asks for signers; a sign between the two decides about an empty value.
fn checks_signatures(text: &str) -> bool {
    text.match_indices('%').any(|(at, _)| {
        let rest = text.get(at + 1..).unwrap_or("");
        rest.strip_prefix(['-', '+', ' ']).unwrap_or(rest).starts_with('G')
    })
}

/// Every command of git that shows differences or commits takes `--output`, in the documentation or not.
fn writes_of_git(text: &str) -> bool {
    let bare = text.split('=').next().unwrap_or(text);
    (bare.len() > 3 && "--output".starts_with(bare)) || bare.starts_with("--output-d")
}

/// Tells whether an option is `--no-list` or a similar one, which cancels the option that made git only read.
fn takes_back(text: &str) -> bool {
    let bare = text.split('=').next().unwrap_or(text);
    let taken = bare.strip_prefix("--no-").filter(|rest| !rest.is_empty());
    let reading =
        ["list", "get", "get-all", "get-regexp", "get-urlmatch", "get-color", "points-at", "show-current"];
    taken.is_some_and(|taken| reading.iter().any(|option| option.starts_with(taken)))
}

/// Tells whether a path leaves the folder.
fn is_outside(text: &str) -> bool {
    text.starts_with(['/', '~']) || text.split(['/', '=']).any(|part| part == "..")
}

/// Adds further doubts about a program that builds or tests. `end` is the index after the subcommand.
pub(crate) fn doubts(command: &SimpleCommand, end: usize, floors: &mut Vec<Floor>) {
    let words = command.words.as_slice();
    let sub = end.checked_sub(1).filter(|at| *at > 0).and_then(|at| words.get(at)).and_then(Word::literal);
    match (command.program_name(), sub) {
        (Some("cargo"), Some(sub)) => cargo(sub, words, floors),
        (Some("go"), Some(sub @ ("build" | "test" | "vet" | "list" | "doc"))) => go(sub, words, end, floors),
        (Some("npm" | "pnpm" | "yarn"), _) => scripts(words, floors),
        (Some("pip" | "pip3"), Some(sub @ ("list" | "show" | "freeze" | "check"))) => pip(sub, words, floors),
        (Some("tsc"), _) => tsc(words, floors),
        (Some("pytest" | "py.test"), _) => reports(words, floors),
        _ => {}
    }
}

fn floor(index: usize, why: String) -> Floor {
    Floor::at(FloorRule::Option, why, index)
}

/// Each literal word after the program, with its index.
fn literals(words: &[Word]) -> impl Iterator<Item = (usize, &str)> {
    words.iter().enumerate().skip(1).filter_map(|(index, word)| Some((index, word.literal()?)))
}

/// Checks the words that cargo hands on after `--`: lints to the compiler, few options to rustfmt, any but some to
/// the tests.
fn cargo(sub: &str, words: &[Word], floors: &mut Vec<Floor>) {
    let Some(at) = words.iter().position(|word| word.literal() == Some("--")) else { return };
    let mut lint = false;
    for (index, text) in literals(words).filter(|(index, _)| *index > at) {
        let value = std::mem::take(&mut lint);
        let fine = match sub {
            "fmt" => {
                let bare = text.split('=').next().unwrap_or(text);
                let known = [
                    "--check",
                    "-l",
                    "--files-with-diff",
                    "--color",
                    "-v",
                    "-q",
                    "--verbose",
                    "--quiet",
                    "--edition",
                ];
                known.contains(&bare) || !text.starts_with(['-', '@'])
            }
            "clippy" => {
                let name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "_:-,".contains(c));
                lint = matches!(
                    text,
                    "-W" | "-D" | "-A" | "-F" | "--warn" | "--deny" | "--allow" | "--forbid" | "--cap-lints"
                );
                let glued =
                    ["-W", "-D", "-A", "-F", "--warn=", "--deny=", "--allow=", "--forbid=", "--cap-lints="];
                lint || text == "--no-deps"
                    || (value && !text.starts_with('-') && name(text))
                    || glued.iter().any(|option| {
                        text.strip_prefix(option).is_some_and(|rest| !rest.starts_with('-') && name(rest))
                    })
            }
            _ => !passed_on(text),
        };
        if !fine {
            floors.push(floor(index, format!("{text} is handed on, and can run other programs")));
        }
    }
}

/// Tells whether an option after `--` that cargo hands on to rustc or to the tests runs or writes something there.
fn passed_on(text: &str) -> bool {
    let options = [
        "-C",
        "-Z",
        "-o",
        "-L",
        "--emit",
        "--out-dir",
        "--logfile",
        "--config",
        "--codegen",
        "--sysroot",
        "--extern",
        "--print",
        "@",
    ];
    options.iter().any(|option| text.starts_with(option))
}

/// Options of go whose value may be the next word.
const GO_VALUES: [&str; 22] = [
    "-run",
    "-bench",
    "-benchtime",
    "-count",
    "-timeout",
    "-tags",
    "-p",
    "-parallel",
    "-cpu",
    "-skip",
    "-list",
    "-covermode",
    "-coverpkg",
    "-shuffle",
    "-f",
    "-fuzz",
    "-fuzztime",
    "-fuzzminimizetime",
    "-buildmode",
    "-installsuffix",
    "-vet",
    "-json",
];

/// Adds floors for packages and files that are not the project's, and modules that are fetched.
fn go(sub: &str, words: &[Word], end: usize, floors: &mut Vec<Floor>) {
    let mut value = false;
    for (index, word) in words.iter().enumerate().skip(end) {
        let Some(text) = word.literal() else {
            if matches!(word.pieces.first(), Some(Piece::Tilde(_))) {
                floors.push(floor(index, format!("{} is not in this folder", word.show())));
            }
            continue;
        };
        let taken = std::mem::take(&mut value);
        if text.starts_with('-') {
            let single = text.strip_prefix('-').filter(|rest| rest.starts_with('-')).unwrap_or(text);
            // `-json` is a switch; only after `=` does it have a list of fields.
            value = GO_VALUES.contains(&single) && single != "-json";
            let bare = single.split('=').next().unwrap_or(single);
            if bare == "-mod" || bare == "-modcacherw" || (bare == "-m" && sub == "list") {
                floors.push(floor(index, format!("{text} can fetch modules")));
            }
            continue;
        }
        let domain = text
            .split('/')
            .next()
            .is_some_and(|first| first.contains('.') && text.contains('/') && !matches!(first, "." | "..."));
        if (!taken && domain && sub != "doc") || text.contains('@') || (!taken && is_outside(text)) {
            floors.push(floor(index, format!("{text} is not known to be a part of the project")));
        }
    }
}

/// Options of npm and similar programs that change nothing but the output, or the part of the project that is meant.
const NPM: [&str; 44] = [
    "--silent",
    "-s",
    "--workspace",
    "-w",
    "--workspaces",
    "-ws",
    "--if-present",
    "--include-workspace-root",
    "--loglevel",
    "-d",
    "-dd",
    "-ddd",
    "--verbose",
    "--quiet",
    "-q",
    "--json",
    "--depth",
    "--all",
    "-a",
    "--long",
    "-l",
    "--omit",
    "--include",
    "--production",
    "--prod",
    "--dev",
    "--link",
    "--version",
    "-v",
    "--help",
    "-h",
    "--no-color",
    "--color",
    "--foreground-scripts",
    "--ignore-scripts",
    "--filter",
    "-r",
    "--recursive",
    "--parallel",
    "--stream",
    "--parseable",
    "-p",
    "--no-progress",
    "--offline",
];

/// Options that the usual programs of a script accept: they choose tests, or change the output.
const SCRIPT: [&str; 44] = [
    "--watch",
    "--watchAll",
    "--no-watch",
    "--coverage",
    "--no-coverage",
    "--verbose",
    "--silent",
    "--bail",
    "-b",
    "--ci",
    "--run",
    "--runInBand",
    "-i",
    "-t",
    "--testNamePattern",
    "--testPathPattern",
    "--testPathPatterns",
    "--grep",
    "-g",
    "--reporter",
    "--max-warnings",
    "--passWithNoTests",
    "--maxWorkers",
    "--color",
    "--colors",
    "--no-color",
    "--noEmit",
    "--pretty",
    "--timeout",
    "--quiet",
    "--findRelatedTests",
    "--onlyChanged",
    "--onlyFailures",
    "--changed",
    "--listTests",
    "--detectOpenHandles",
    "--forceExit",
    "--no-cache",
    "--browser",
    "--browsers",
    "--headless",
    "--single-run",
    "--check",
    "--exit",
];

/// Checks the words for a script of the project, and for the program that runs it.
fn scripts(words: &[Word], floors: &mut Vec<Floor>) {
    let mut ended = false;
    for (index, text) in literals(words) {
        if text == "--" {
            ended = true;
            continue;
        }
        let (bare, value) = text.split_once('=').unwrap_or((text, ""));
        // A reporter with a path, or a value that leaves the folder, is a program of another origin.
        let plain =
            !value.contains(['/', '\\']) || !matches!(bare, "--reporter" | "--browser" | "--browsers");
        let known =
            if ended { SCRIPT.contains(&bare) } else { NPM.contains(&bare) || SCRIPT.contains(&bare) };
        let after_reporter =
            words.get(index - 1).and_then(Word::literal) == Some("--reporter") && text.contains('/');
        if (text.starts_with('-') && !(known && plain)) || is_outside(text) || after_reporter {
            floors.push(floor(
                index,
                format!("{text} is not known to be harmless for a script of the project"),
            ));
        }
    }
}

const PIP: [&str; 22] = [
    "--help",
    "--version",
    "--verbose",
    "--quiet",
    "--format",
    "--local",
    "--user",
    "--editable",
    "--not-required",
    "--exclude",
    "--exclude-editable",
    "--include-editable",
    "--all",
    "--path",
    "--files",
    "--no-color",
    "--disable-pip-version-check",
    "--isolated",
    "--no-input",
    "--pre",
    "--requirement",
    "--require-virtualenv",
];

/// Adds floors for options of pip: long ones may be abbreviated, and some write a log or ask the network.
fn pip(sub: &str, words: &[Word], floors: &mut Vec<Floor>) {
    for (index, text) in literals(words).filter(|(_, text)| text.starts_with('-') && text.len() > 1) {
        let bare = text.split('=').next().unwrap_or(text);
        let letters = match sub {
            "show" => "hvqVf",
            "freeze" => "hvqVlr",
            _ => "hvqVle",
        };
        let fine = match bare.strip_prefix('-').unwrap_or(bare) {
            long if long.starts_with('-') => PIP.contains(&bare),
            // A file that is read follows it.
            short => {
                short.split('r').next().unwrap_or("").chars().all(|letter| letters.contains(letter))
                    && (sub == "freeze" || !short.contains('r'))
            }
        };
        if !fine {
            floors.push(floor(index, format!("{bare} of pip is not known to only read")));
        }
    }
}

/// Checks that the project is one of this folder.
fn tsc(words: &[Word], floors: &mut Vec<Floor>) {
    for (index, text) in literals(words) {
        let bare = text.trim_start_matches('-').to_ascii_lowercase();
        if !text.starts_with('-') || !matches!(bare.as_str(), "p" | "project") {
            continue;
        }
        let inside = words.get(index + 1).and_then(Word::literal);
        if !inside.is_some_and(|path| !is_outside(path) && !path.starts_with(['-', '@'])) {
            floors.push(floor(index, format!("{text} names a project that is elsewhere")));
        }
    }
}

/// Checks that reports of coverage are only shown.
fn reports(words: &[Word], floors: &mut Vec<Floor>) {
    let shown = |value: &str| {
        matches!(value, "term" | "term-missing" | "term:skip-covered" | "term-missing:skip-covered" | "")
    };
    for (index, text) in literals(words) {
        let value = match text.split_once('=') {
            Some(("--cov-report", value)) => Some(value),
            None if text == "--cov-report" => {
                Some(words.get(index + 1).and_then(Word::literal).unwrap_or("?"))
            }
            _ => None,
        };
        if value.is_some_and(|value| !shown(value)) {
            floors.push(floor(index, format!("{text} writes a report")));
        }
    }
}

/// Tells whether an option of the table is harmless by its value: `pytest -p no:NAME` only leaves a plugin out.
pub(crate) fn is_fine(program: &str, words: &[Word], index: usize) -> bool {
    let literal = |at: usize| words.get(at).and_then(Word::literal);
    let leaves_out = |value: &str| {
        value.strip_prefix("no:").is_some_and(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        })
    };
    matches!(program, "pytest" | "py.test")
        && match literal(index) {
            Some("-p") => literal(index + 1).is_some_and(leaves_out),
            Some(text) => text.strip_prefix("-p").is_some_and(leaves_out),
            None => false,
        }
}

/// The command that a module is judged as: `python -m pytest …` is `pytest …`.
pub(crate) fn as_module(command: &SimpleCommand) -> Option<SimpleCommand> {
    let literal = |at: usize| command.words.get(at).and_then(Word::literal);
    let python = matches!(literal(0).map(base_name), Some("python" | "python3"));
    if !python || literal(1) != Some("-m") || literal(2) != Some("pytest") {
        return None;
    }
    Some(SimpleCommand { words: command.words.get(2..)?.to_vec(), ..SimpleCommand::default() })
}

/// Tells whether no word of this command can become an option, although it is known only when it runs: after the
/// format of `printf`, and in a test of one plain operator with its words in quotes.
pub(crate) fn takes_any(command: &SimpleCommand) -> bool {
    let words = command.words.as_slice();
    let literal = |at: usize| words.get(at).and_then(Word::literal);
    let one = |word: &Word| {
        let plain = |piece: &Piece| matches!(piece, Piece::Text(_) | Piece::Variable { quoted: true, .. });
        // `"$@"` may be many words, or none.
        let many =
            |piece: &Piece| matches!(piece, Piece::Variable { name, .. } if matches!(&**name, "@" | "*"));
        word.pieces.iter().all(plain) && !word.pieces.iter().any(many)
    };
    match literal(0) {
        Some("printf") => literal(1).is_some_and(|format| !format.starts_with('-')),
        Some("[" | "test") => {
            let rest = words.get(1..).unwrap_or(&[]);
            let rest =
                if literal(0) == Some("[") { rest.split_last().map_or(rest, |(_, rest)| rest) } else { rest };
            match rest {
                [operator, word] => {
                    matches!(
                        operator.literal(),
                        Some("-n" | "-z" | "-e" | "-f" | "-d" | "-r" | "-w" | "-x" | "-s" | "-L" | "-h")
                    ) && one(word)
                }
                [left, operator, right] => {
                    matches!(operator.literal(), Some("=" | "==" | "!=")) && one(left) && one(right)
                }
                _ => false,
            }
        }
        _ => false,
    }
}
