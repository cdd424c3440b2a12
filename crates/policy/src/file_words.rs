//! The words of a program that are files, those of them that it writes, and whether it goes through folders.

use crate::git::is_about_object;
use crate::git_option::{may_be_option, without_values};
use crate::git_paths::exclusions;
use crate::guard::{find_parts, is_recursive, operands};
use crate::harm::option_values;
use crate::pattern;
use crate::reading::Depth;
use crate::searchers::{is_deep, is_grep};

/// The words that surely are files or folders.
pub(crate) fn sure_files<'w>(name: &str, words: &[&'w str]) -> Vec<&'w str> {
    if let Some(read) = pattern::word_roles(name, words) {
        let files = read.files.into_iter().filter_map(|at| words.get(at).copied());
        return files.chain(started_in(name, words)).collect();
    }
    match name {
        "find" => find_parts(words).starts,
        // `dd if=F of=G`
        "dd" | "gdd" | "dcfldd" | "dc3dd" => {
            words.iter().filter_map(|word| word.strip_prefix("if=")).filter(|file| !file.is_empty()).collect()
        }
        "git" => {
            // After the mark, everything is a path.
            let at = words.iter().position(|word| *word == "--");
            let exclusions = exclusions(words);
            let is_path = |index: &usize| !exclusions.iter().any(|(excluded, _)| excluded == index);
            let behind = at.map_or(words.len(), |at| at + 1)..words.len();
            behind.filter(is_path).filter_map(|index| words.get(index).copied()).collect()
        }
        _ => operands(words),
    }
}

/// Folders that an option makes a program go through, instead of an operand or in addition.
fn started_in<'w>(name: &str, words: &[&'w str]) -> Vec<&'w str> {
    match name {
        "fd" | "fdfind" => option_values(words, &["--search-path"]),
        _ => Vec::new(),
    }
}

/// Folders that a program enters by an option before it reads its operands.
pub(crate) fn entered_folders<'w>(name: &str, words: &[&'w str]) -> Vec<&'w str> {
    match name {
        "fd" | "fdfind" => option_values(words, &["-C", "--base-directory"]),
        _ => Vec::new(),
    }
}

/// Tells whether a program goes through the folder it runs in although no word says so.
pub(crate) fn reads_own_folder(name: &str, words: &[&str]) -> bool {
    let has = |options: &[&str]| words.iter().any(|word| options.contains(word));
    match name {
        "npm" | "pnpm" | "yarn" => has(&["pack", "publish"]),
        "cargo" => has(&["package", "publish"]),
        _ => words.windows(2).any(|pair| pair[0] == "-m" && pair[1] == "http.server"),
    }
}

/// The indexes of words of git that name no file it reads: messages, names of people, files that are left out, and
/// objects of which only the type or the size is printed.
pub(crate) fn git_text_words(words: &[&str]) -> Vec<usize> {
    if is_about_object(words) {
        return (0..words.len()).collect();
    }
    let mut spoken = messages_to_git(words);
    spoken.extend(exclusions(words).iter().map(|(index, _)| *index));
    spoken
}

fn messages_to_git(words: &[&str]) -> Vec<usize> {
    let speaks = |word: &&str| {
        matches!(*word, "commit" | "tag" | "merge" | "notes" | "stash" | "revert" | "cherry-pick" | "log")
    };
    if !words.iter().any(speaks) {
        return Vec::new();
    }
    let says = |word: &str| {
        let bundle = word.starts_with('-') && !word.starts_with("--") && word.ends_with('m');
        bundle || matches!(word, "--message" | "--author" | "--date" | "--grep" | "--trailer" | "--committer")
    };
    let glued = |word: &str| {
        ["--message=", "--author=", "--date=", "--grep=", "--trailer="]
            .iter()
            .any(|long| word.starts_with(long))
    };
    let spoken = words.iter().enumerate().filter(|(index, word)| {
        glued(word)
            || index.checked_sub(1).and_then(|before| words.get(before)).is_some_and(|word| says(word))
    });
    spoken.map(|(index, _)| index).collect()
}

/// Parts of a program's text that may be files. A regular expression between slashes is not one.
pub(crate) fn literals<'w>(name: &str, word: &'w str) -> impl Iterator<Item = &'w str> {
    let awk = name.ends_with("awk");
    let cut = move |c: char| match awk {
        true => c == '"',
        false => c.is_whitespace() || "'\"`()[]{}<>,;|&=+!".contains(c),
    };
    let parts = word.split(cut).enumerate().filter(move |(index, _)| !awk || index % 2 == 1);
    let parts = parts.map(|(_, part)| part).filter(move |part| part.len() > 1 && *part != word);
    parts.filter(|part| !part.ends_with('/'))
}

/// The files or folders that a command writes to: its last operand, where it copies.
pub(crate) fn targets<'w>(name: &str, words: &[&'w str]) -> Vec<&'w str> {
    match name {
        "cp" | "mv" | "install" | "rsync" | "scp" => {
            let options: &[&str] = if name == "rsync" { &[] } else { &["-t", "--target-directory"] };
            let named = option_values(words, options).first().copied();
            let given = operands(words);
            let last = given.last().copied().filter(|_| given.len() > 1);
            named.or(last).into_iter().collect()
        }
        "tee" | "truncate" => operands(words),
        _ => Vec::new(),
    }
}

/// Folders into which a program unpacks files that no word names: the one it runs in, or that of an option.
pub(crate) fn unpacked_into<'w>(name: &str, words: &[&'w str]) -> Vec<&'w str> {
    let letters = |letter: char| {
        words.iter().enumerate().any(|(index, word)| match word.strip_prefix('-') {
            Some(letters) => !letters.starts_with('-') && letters.contains(letter),
            // `tar xf a`
            None => index == 0 && matches!(name, "tar" | "bsdtar") && word.contains(letter),
        })
    };
    let long = |options: &[&str]| words.iter().any(|word| may_be_option(word, options));
    let given = operands(words);
    let (unpacks, options): (bool, &[&str]) = match name {
        "tar" | "bsdtar" => (letters('x') || long(&["--extract", "--get"]), &[]),
        "unzip" => (!["-l", "-p", "-t", "-v", "-Z"].iter().any(|only| words.contains(only)), &["-d"]),
        "cpio" => {
            if letters('p') || long(&["--pass-through"]) {
                return given;
            }
            let lists = letters('t') || words.contains(&"--list");
            ((letters('i') || long(&["--extract"])) && !lists, &["-D", "--directory"])
        }
        "pax" => (letters('r'), &[]),
        "7z" | "7za" | "7zr" | "7zz" => (matches!(given.first(), Some(&("x" | "e"))), &["-o"]),
        "patch" => {
            let valued =
                ["-d", "-i", "-p", "-F", "-D", "-g", "-z", "--directory", "--input", "--strip", "--fuzz"];
            let named = operands(&without_values(words, &valued));
            (named.is_empty() && !words.contains(&"--dry-run"), &["-d", "--directory"])
        }
        _ => (false, &[]),
    };
    if !unpacks {
        return Vec::new();
    }
    let named = option_values(words, options);
    if named.is_empty() { vec!["."] } else { named }
}

/// The files that a copy makes in its target folder: each source by its own name there.
pub(crate) fn made_by_copy(name: &str, words: &[&str], targets: &[&str]) -> Vec<String> {
    let linked = if name == "ln" { self::targets("cp", words) } else { Vec::new() };
    let targets: &[&str] = match name {
        "cp" | "mv" | "install" | "rsync" | "scp" => targets,
        "ln" => &linked,
        _ => return Vec::new(),
    };
    let into = |target: &&str| {
        let sources = operands(words).into_iter().filter(|source| !targets.contains(source));
        let base =
            |source: &str| source.trim_end_matches('/').rsplit('/').next().unwrap_or(source).to_owned();
        let target = target.trim_end_matches('/').to_owned();
        sources.map(|source| format!("{target}/{}", base(source))).collect::<Vec<_>>()
    };
    // A device is not a folder.
    targets.iter().filter(|target| !target.starts_with("/dev/")).flat_map(into).collect()
}

/// Tells how much of a folder a program goes through.
pub(crate) fn depth(name: &str, words: &[&str]) -> Depth {
    let has = |options: &[&str]| words.iter().any(|word| options.contains(word));
    let letters = |letters: &[char]| {
        words.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letters))
    };
    let deep = match name {
        "find" => !words.windows(2).any(|pair| pair[0] == "-maxdepth" && matches!(pair[1], "0" | "1")),
        "tree" => !words.windows(2).any(|pair| pair[0] == "-L" && pair[1] == "1"),
        _ if is_deep(name) => true,
        "fd" | "fdfind" | "bfs" | "du" | "tar" | "bsdtar" | "zip" | "7z" | "7za" | "rsync" | "cpio"
        | "locate" => true,
        _ if is_grep(name) => {
            let follows = |word: &&str| word.len() > 3 && "--dereference-recursive".starts_with(*word);
            is_recursive(words)
                || has(&["recurse", "--directories=recurse", "-drecurse"])
                || words.iter().any(follows)
        }
        "ls" | "dir" | "vdir" => letters(&['R']) || has(&["--recursive"]),
        "cp" | "install" => is_recursive(words) || letters(&['a', 'd']) || has(&["--archive"]),
        "scp" | "rm" | "srm" | "chmod" | "chown" | "chgrp" => is_recursive(words),
        // Two folders are compared file by file.
        "diff" | "sdiff" | "colordiff" => true,
        "trash" | "trash-put" => true,
        "mv" | "ln" => true,
        "gzip" | "pigz" | "bzip2" | "xz" | "zstd" | "lz4" | "brotli" => is_recursive(words),
        // They pack or send the content of a folder.
        "python" | "python3" | "pypy" | "pypy3" => words.windows(2).any(|pair| {
            pair[0] == "-m" && ["tarfile", "zipfile", "zipapp", "http.server"].contains(&pair[1])
        }),
        "npm" | "pnpm" | "yarn" => has(&["pack", "publish"]),
        "pip" | "pip3" | "uv" | "pipx" => has(&["install", "wheel", "build"]),
        "docker" | "podman" | "nerdctl" | "buildah" => has(&["build", "buildx", "bud"]),
        "cargo" => has(&["package", "publish"]),
        _ => false,
    };
    if deep { Depth::All } else { Depth::One }
}

/// An address without its escapes: `s%65cret` is `secret`.
pub(crate) fn unescaped(address: &str) -> String {
    let (mut out, mut rest) = (Vec::new(), address.as_bytes());
    while let Some((byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.filter(|_| *byte == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(escaped) => {
                out.push(escaped);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Languages, and programs of text, in whose words a file may stand as a literal.
const LANGUAGES: [&str; 49] = [
    "gsed",
    "jq",
    "gojq",
    "jaq",
    "yq",
    "make",
    "gmake",
    "gcc",
    "g++",
    "cc",
    "c++",
    "clang",
    "cpp",
    "m4",
    "gnuplot",
    "curl",
    "wget",
    "bc",
    "dc",
    "python",
    "python2",
    "python3",
    "pypy",
    "pypy3",
    "perl",
    "ruby",
    "node",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "tclsh",
    "Rscript",
    "osascript",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "vim",
    "vi",
    "ex",
    "ed",
    "emacs",
    "sqlite3",
    "psql",
    "mysql",
    "gdb",
];

/// Tells whether files may stand as literals in the words or the input of a program of this name.
pub(crate) fn is_language(name: &str) -> bool {
    let versioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    LANGUAGES.contains(&name) || LANGUAGES.contains(&versioned)
}
