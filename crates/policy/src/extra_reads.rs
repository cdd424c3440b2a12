//! Things that programs read because of their options: files through links beneath a folder, files that an option
//! names, and the environment of processes.

use crate::file_words::git_text_words;
use crate::guard::operands;
use crate::places::UNKNOWN;
use crate::reach::TouchFinder;
use crate::reading::Depth;
use crate::touch::Touch;

impl TouchFinder<'_> {
    /// Adds files that options name, and those that such a file names.
    pub(crate) fn named_by_options(&self, name: &str, words: &[&str], touches: &mut Vec<Touch>) {
        if reads_list(name, words) {
            touches.push(Touch::unknown("the files that a list names", true));
        }
        for (file, lists) in option_files(name, words) {
            if file != "-" {
                self.add(touches, file, Depth::One, true);
            }
            if lists {
                touches.push(Touch::unknown("the files that a list names", true));
            }
        }
        // Any operand of `git diff` may be a file, even one outside of the repository.
        let given = operands(words);
        if name == "git" && given.first() == Some(&"diff") {
            let depth = if words.contains(&"--no-index") { Depth::All } else { Depth::One };
            let spoken: Vec<&str> =
                git_text_words(words).iter().filter_map(|at| words.get(*at)).copied().collect();
            let files = given.iter().skip(1).filter(|word| !word.contains(UNKNOWN) && !spoken.contains(word));
            files.for_each(|file| self.add(touches, file, depth, true));
        }
    }
}

/// Tells whether a program that goes through a folder reads what the links in it lead to.
pub(crate) fn follows_links(name: &str, words: &[&str]) -> bool {
    let has = |letters: &[char]| {
        let short = |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.contains(letters);
        words.iter().any(short)
    };
    let long = |options: &[&str]| {
        words.iter().any(|word| {
            word.len() > 3 && options.iter().any(|option| option.starts_with(*word) || word == option)
        })
    };
    match name {
        "grep" | "egrep" | "fgrep" | "zgrep" => has(&['R']) || long(&["--dereference-recursive"]),
        "diff" | "sdiff" | "colordiff" => !words.iter().any(|word| word.starts_with("--no-d")),
        "find" => words.iter().any(|word| matches!(*word, "-L" | "-follow")),
        "ls" | "dir" | "vdir" => has(&['L']) || long(&["--dereference"]),
        "du" => has(&['L']) || long(&["--dereference"]),
        "rg" | "fd" | "fdfind" => has(&['L']) || long(&["--follow"]),
        "ag" => has(&['f']) || long(&["--follow"]),
        "ack" => long(&["--follow"]),
        "tree" => has(&['l']),
        "cp" => has(&['L']) || long(&["--dereference"]),
        "tar" | "bsdtar" => {
            let bundled =
                words.first().is_some_and(|word| !word.starts_with('-') && word.contains(['h', 'L']));
            bundled || has(&['h', 'L']) || long(&["--dereference"])
        }
        "rsync" => has(&['L', 'k']) || long(&["--copy-links", "--copy-dirlinks", "--copy-unsafe-links"]),
        "zip" => has(&['r', 'R']) && !has(&['y']),
        "7z" | "7za" | "7zr" | "7zz" => !words.iter().any(|word| word.starts_with("-snl")),
        "scp" => has(&['r']),
        _ => false,
    }
}

/// An option whose value is a file.
struct FileOption {
    letter: Option<char>,
    long: &'static str,
    /// True if the file names others, which are read too.
    lists: bool,
}

const fn option(letter: Option<char>, long: &'static str, lists: bool) -> FileOption {
    FileOption { letter, long, lists }
}

const DATE: [FileOption; 2] = [option(Some('f'), "--file", false), option(Some('r'), "--reference", false)];
const FILES0: [FileOption; 1] = [option(None, "--files0-from", true)];
const DU: [FileOption; 2] = [option(None, "--files0-from", true), option(Some('X'), "--exclude-from", false)];
const TAR: [FileOption; 2] =
    [option(Some('T'), "--files-from", true), option(Some('X'), "--exclude-from", false)];
const RSYNC: [FileOption; 3] = [
    option(None, "--files-from", true),
    option(None, "--exclude-from", false),
    option(None, "--include-from", false),
];
const FILE: [FileOption; 2] =
    [option(Some('f'), "--files-from", true), option(Some('m'), "--magic-file", false)];
const CTAGS: [FileOption; 1] = [option(Some('L'), "--input-file", true)];
const CSCOPE: [FileOption; 1] = [option(Some('i'), "--input", true)];
const ISO: [FileOption; 1] = [option(None, "--path-list", true)];
const XARGS: [FileOption; 1] = [option(Some('a'), "--arg-file", true)];
const GREP: [FileOption; 2] = [option(Some('f'), "--file", false), option(None, "--exclude-from", false)];
const SED: [FileOption; 1] = [option(Some('f'), "--file", false)];
const AWK: [FileOption; 4] = [
    option(Some('f'), "--file", false),
    option(Some('i'), "--include", false),
    option(Some('E'), "--exec", false),
    option(Some('l'), "--load", false),
];
const JQ: [FileOption; 2] =
    [option(Some('f'), "--from-file", false), option(Some('L'), "--library-path", true)];
const CURL: [FileOption; 4] = [
    option(Some('K'), "--config", true),
    option(Some('T'), "--upload-file", false),
    option(None, "--netrc-file", false),
    option(Some('E'), "--cert", false),
];
const SSH: [FileOption; 4] = [
    option(Some('F'), "--", false),
    option(Some('i'), "--", false),
    option(Some('E'), "--", false),
    option(Some('S'), "--", false),
];
const GIT_GREP: [FileOption; 1] = [option(Some('f'), "--file", false)];
const GIT_LIST: [FileOption; 2] =
    [option(Some('X'), "--exclude-from", false), option(None, "--pathspec-from-file", true)];
const GIT_SHOW: [FileOption; 1] = [option(Some('O'), "--order-file", false)];
const GIT_BLAME: [FileOption; 3] = [
    option(Some('S'), "--revs-file", false),
    option(None, "--contents", false),
    option(None, "--ignore-revs-file", false),
];
const GIT_SAY: [FileOption; 3] = [
    option(Some('F'), "--file", false),
    option(Some('t'), "--template", false),
    option(None, "--pathspec-from-file", true),
];
const GIT_CONFIG: [FileOption; 1] = [option(Some('f'), "--file", false)];

fn options(name: &str, words: &[&str]) -> &'static [FileOption] {
    match name {
        "date" => &DATE,
        "wc" | "sort" => &FILES0,
        "du" => &DU,
        "tar" | "bsdtar" => &TAR,
        "rsync" => &RSYNC,
        "xargs" | "parallel" => &XARGS,
        "file" => &FILE,
        "ctags" | "etags" => &CTAGS,
        "cscope" => &CSCOPE,
        "mkisofs" | "genisoimage" | "xorrisofs" => &ISO,
        "grep" | "egrep" | "fgrep" | "zgrep" | "rg" => &GREP,
        "sed" | "gsed" => &SED,
        "awk" | "gawk" | "mawk" | "nawk" => &AWK,
        "jq" | "gojq" | "jaq" | "yq" => &JQ,
        "curl" => &CURL,
        "ssh" | "ssh-copy-id" | "sshfs" | "mosh" | "autossh" => &SSH,
        "git" => match crate::git::split_subcommand(words).map(|(sub, _)| sub) {
            Some("grep") => &GIT_GREP,
            Some(
                "ls-files" | "add" | "stage" | "status" | "clean" | "rm" | "reset" | "restore" | "checkout"
                | "stash",
            ) => &GIT_LIST,
            Some("diff" | "log" | "show" | "diff-tree" | "diff-index" | "diff-files" | "format-patch") => {
                &GIT_SHOW
            }
            Some("blame" | "annotate") => &GIT_BLAME,
            Some("commit" | "tag" | "notes" | "merge") => &GIT_SAY,
            Some("config") => &GIT_CONFIG,
            _ => &[],
        },
        _ => &[],
    }
}

/// The files that options name, in the same word or the next, abbreviated or not; each with true if it names others.
pub(crate) fn option_files<'w>(name: &str, words: &[&'w str]) -> Vec<(&'w str, bool)> {
    let known = options(name, words);
    let mut found = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let next = || words.get(index + 1).copied();
        // `find` writes its long options with one dash.
        if name == "find" && *word == "-files0-from" {
            found.extend(next().map(|file| (file, true)));
        }
        // `ssh -o IdentityFile=key`, and the same in one word, and with a blank.
        if name.contains("ssh")
            && let Some(setting) = word.strip_prefix("-o")
        {
            let setting = if setting.is_empty() { next() } else { Some(setting) };
            let value = setting.and_then(|setting| setting.split_once(['=', ' ']));
            found.extend(value.map(|(_, value)| (value.trim(), false)));
        }
        for option in known {
            let value = if word.starts_with("--") {
                let (key, value) = match word.split_once('=') {
                    Some((key, value)) => (key, Some(value)),
                    None => (*word, None),
                };
                let meant = key.len() > 2 && option.long.starts_with(key);
                if meant { value.or_else(next) } else { None }
            } else {
                let letters = word.strip_prefix('-').unwrap_or_default();
                let at =
                    option.letter.and_then(|letter| letters.find(letter).map(|at| at + letter.len_utf8()));
                at.and_then(|at| letters.get(at..))
                    .and_then(|rest| if rest.is_empty() { next() } else { Some(rest) })
            };
            found.extend(value.map(|value| (value, option.lists)));
        }
    }
    found
}

/// Tells whether a program reads files whose names come on the standard input, or in a file that no option of the
/// table names: `zip -@`, `cpio -o`, `tar cfT x list`, `7z a x @list`.
pub(crate) fn reads_list(name: &str, words: &[&str]) -> bool {
    let has = |letters: &[char]| {
        let short = |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.contains(letters);
        words.iter().any(short)
    };
    let begins = |options: &[&str]| {
        let long = |word: &&str| {
            let key = word.split('=').next().unwrap_or(word);
            key.len() > 3 && options.iter().any(|option| option.starts_with(key))
        };
        words.iter().any(long)
    };
    match name {
        "zip" => has(&['@']) || begins(&["--names-stdin"]),
        "cpio" | "afio" => {
            // Without a mode of its own, GNU's cpio asks for one; a mode that only unpacks reads no list.
            has(&['o', 'p'])
                || begins(&["--create", "--pass-through"])
                || !(has(&['i', 't']) || begins(&["--extract", "--list"]))
        }
        "pax" => has(&['w']),
        "tar" | "bsdtar" | "gtar" => {
            words.first().is_some_and(|word| !word.starts_with('-') && word.contains('T')) || has(&['T', 'I'])
        }
        "7z" | "7za" | "7zr" | "7zz" | "rar" => words.iter().any(|word| word.contains('@')),
        "md5sum" | "sha1sum" | "sha224sum" | "sha256sum" | "sha384sum" | "sha512sum" | "b2sum" | "cksum"
        | "shasum" => has(&['c']) || begins(&["--check"]),
        "gpg" | "gpg2" => begins(&["--multifile"]),
        "git" => match crate::git::split_subcommand(words) {
            Some(("hash-object", rest)) => rest.contains(&"--stdin-paths"),
            Some(("update-index" | "checkout-index", rest)) => rest.contains(&"--stdin"),
            _ => false,
        },
        _ => lathe_bash::takes_response_files(name) && words.iter().any(|word| word.starts_with('@')),
    }
}

/// Variables that name a file for a program to read or run.
const FILE_VARIABLES: [&str; 37] = [
    "BASH_ENV",
    "ENV",
    "ZDOTDIR",
    "HISTFILE",
    "INPUTRC",
    "MAIL",
    "MAILPATH",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "PERL5LIB",
    "PERL5OPT",
    "PERL5DB",
    "RUBYOPT",
    "RUBYLIB",
    "NODE_OPTIONS",
    "NODE_PATH",
    "LUA_INIT",
    "PHPRC",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LESSKEY",
    "LESSKEYIN",
    "LESSHISTFILE",
    "LESSOPEN",
    "EXINIT",
    "VIMINIT",
    "MYVIMRC",
    "SCREENRC",
    "TERMCAP",
    "CURL_HOME",
    "WGETRC",
    "NETRC",
    "RIPGREP_CONFIG_PATH",
    "MAKEFILES",
    "MAKEFLAGS",
    "OPENSSL_CONF",
    "SSL_CERT_FILE",
];

/// Tells whether a variable of this name names a file for a program.
pub(crate) fn names_file(variable: &str) -> bool {
    FILE_VARIABLES.contains(&variable) || variable.starts_with("GIT_") || variable.ends_with("RC")
}

/// Tells whether `ps` shows the environment of processes: `ps e`, `ps axeww`, `ps -o environ`.
pub(crate) fn shows_environment(words: &[&str]) -> bool {
    let takes = |word: &&str| {
        let short = word.starts_with('-') && !word.starts_with("--");
        (word.starts_with("--") && !word.contains('=') && *word != "--")
            || (short && word.ends_with(['C', 'u', 'U', 'G', 'g', 'p', 't', 'o', 'O', 'k', 'q', 's', 'N']))
    };
    words.iter().enumerate().any(|(index, word)| {
        let value = index.checked_sub(1).and_then(|before| words.get(before)).is_some_and(&takes);
        let letters = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic());
        word.contains("environ")
            || (letters && !value && word.contains('e'))
            || (word.starts_with('-') && !word.starts_with("--") && word.contains('E'))
            || word.contains(UNKNOWN) && !value
    })
}
