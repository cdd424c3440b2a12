//! The files that a command writes, and commands that spoil `.git`, a home folder or the system without a plain
//! deletion: `truncate`, `sed -i`, `tar --remove-files`.

use crate::guard::{Spelled, is_recursive, operands};
use crate::patterns::glob;
use crate::places::is_all;
use crate::sets::simplified;

/// The paths that a command spoils, as they are spelled, each with true if all of it is lost. Where it is not, only
/// `.git` counts.
pub(crate) fn spoiled_paths(command: &Spelled<'_>) -> Vec<(String, bool)> {
    let words = command.words.as_slice();
    let given = operands(words);
    let some = |paths: &[&str]| paths.iter().map(|path| ((*path).to_owned(), false)).collect();
    match command.name {
        "truncate" | "shred" => some(&given),
        "mv" if given.len() > 1 => some(&given),
        "dd" => some(&words.iter().filter_map(|word| word.strip_prefix("of=")).collect::<Vec<_>>()),
        "sed" if in_place(words) => some(&files_of_sed(words)),
        "chmod" if is_recursive(words) && removes_access(words) => some(&given),
        "tar" | "bsdtar" if deletes_by_option(command) => packed(words),
        "rsync" => emptied_by_rsync(words).into_iter().map(|path| (path.to_owned(), true)).collect(),
        _ => Vec::new(),
    }
}

/// The folders in which `rsync` deletes: its target, or its sources.
pub(crate) fn emptied_by_rsync<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let has = |begin: &str| words.iter().any(|word| word.starts_with(begin));
    let (given, mut lost) = (copied(words), Vec::new());
    if let Some((to, from)) = given.split_last() {
        lost.extend(words.iter().any(deletes).then_some(*to));
        lost.extend(from.iter().copied().filter(|_| has("--remove")));
    }
    lost
}

/// `--delete` and options like it, also abbreviated.
fn deletes(word: &&str) -> bool {
    (word.starts_with("--del") && *word != "--delay-updates") || *word == "--de"
}

/// The operands of `rsync`, without the values of its options.
fn copied<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let valued = [
        "--exclude",
        "--include",
        "--filter",
        "-f",
        "--exclude-from",
        "--include-from",
        "--files-from",
        "-e",
        "--rsh",
        "--rsync-path",
        "--link-dest",
        "--compare-dest",
        "--copy-dest",
        "--chmod",
        "--chown",
        "--bwlimit",
        "--timeout",
        "--port",
        "--max-size",
        "--min-size",
        "--suffix",
        "--log-file",
        "--backup-dir",
        "--partial-dir",
        "--temp-dir",
        "-T",
    ];
    let value = |index: usize| {
        index.checked_sub(1).and_then(|before| words.get(before)).is_some_and(|word| valued.contains(word))
    };
    let given: Vec<&str> =
        words.iter().enumerate().filter(|(index, _)| !value(*index)).map(|(_, word)| *word).collect();
    operands(&given)
}

/// The files and folders that a command writes something into, as they are spelled. Empty files and modes are not
/// content.
pub(crate) fn write_targets<'a>(command: &Spelled<'a>) -> Vec<&'a str> {
    known_write_targets(command).unwrap_or_default()
}

/// The files and folders that a command writes something into; `None` where it is not known what the program writes
/// to.
pub(crate) fn known_write_targets<'a>(command: &Spelled<'a>) -> Option<Vec<&'a str>> {
    let words = command.words.as_slice();
    let given = operands(words);
    let rest = || given.iter().skip(1).copied();
    let first = || given.first().copied().into_iter().collect();
    let (options, mut found): (&[&str], Vec<&str>) = match command.name {
        "tee" | "ln" | "mv" | "sponge" | "ed" | "ex" | "vi" | "vim" | "nvim" => {
            (&["-t", "--target-directory"], given)
        }
        "cp" | "install" => (&["-t", "--target-directory"], rest().collect()),
        "uniq" | "xxd" | "csplit" | "split" => (&["-f", "--prefix"], rest().collect()),
        "scp" | "sftp" => (&[], given.last().copied().into_iter().collect()),
        "rsync" => (
            &[
                "--log-file",
                "--backup-dir",
                "--partial-dir",
                "--temp-dir",
                "-T",
                "--write-batch",
                "--only-write-batch",
            ],
            copied(words).last().copied().into_iter().collect(),
        ),
        "dd" => (&[], words.iter().filter_map(|word| word.strip_prefix("of=")).collect()),
        "sed" if in_place(words) => (&[], files_of_sed(words)),
        "perl" | "ruby" | "yq" | "gawk" if in_place(words) => (&[], given),
        "patch" => {
            (&["-o", "--output", "-d", "--directory", "-r", "--reject-file", "-B", "--prefix", "-Y"], given)
        }
        "history" => (&["-w", "-a"], Vec::new()),
        "logsave" => (&[], first()),
        "git" => (&["-o", "--output", "--output-directory"], Vec::new()),
        "sort" | "shuf" | "tree" | "xmllint" => (&["-o", "--output", "--output-directory"], Vec::new()),
        "curl" => (
            &[
                "-o",
                "--output",
                "--output-dir",
                "-D",
                "--dump-header",
                "-c",
                "--cookie-jar",
                "--trace",
                "--trace-ascii",
                "--stderr",
                "--libcurl",
                "--hsts",
                "--alt-svc",
                "--etag-save",
            ],
            // `-w '%output{x}'`
            words
                .iter()
                .flat_map(|word| word.split("%output{").skip(1))
                .filter_map(|rest| rest.split('}').next())
                .map(|file| file.trim_start_matches('>'))
                .collect(),
        ),
        "wget" => (
            &[
                "-O",
                "--output-document",
                "-o",
                "--output-file",
                "-a",
                "--append-output",
                "-P",
                "--directory-prefix",
                "--save-cookies",
                "--hsts-file",
                "--warc-file",
                "--warc-dedup",
                "--warc-tempdir",
                "--rejected-log",
            ],
            // `-e output_document=x`
            option_values(words, &["-e", "--execute"])
                .iter()
                .filter_map(|set| set.split_once('='))
                .map(|(_, file)| file.trim())
                .collect(),
        ),
        "tar" | "bsdtar" if packs(words) => (PACKED, [bundled(words, 'f'), bundled(words, 'g')].concat()),
        "tar" | "bsdtar" => (
            &["-C", "--directory", "--one-top-level", "-g", "--listed-incremental", "--index-file"],
            [unpacked(words), bundled(words, 'C'), bundled(words, 'g')].concat(),
        ),
        "zip" => (&["-O", "--out", "--output-file"], first()),
        "unzip" if words.iter().any(|word| matches!(*word, "-l" | "-p" | "-t" | "-v" | "-Z")) => {
            (&[], Vec::new())
        }
        "unzip" => (&["-d"], rest().collect()),
        // The archive stands after the letter of the action. `7z` writes it unless it unpacks or lists.
        "7z" | "7za" | "7zr" | "7zz" => (&["-o"], rest().take(1).filter(|_| !seven_reads(&given)).collect()),
        // In pass-through mode the operand is a folder, otherwise a pattern of names.
        "cpio" => (&["-D", "--directory", "-F", "--file", "-O"], given),
        "find" => (&["-fprint", "-fprint0", "-fprintf", "-fls"], Vec::new()),
        "openssl" => (
            &[
                "-out",
                "-keyout",
                "-writerand",
                "-CAserial",
                "-signer",
                "-certsout",
                "-sess_out",
                "-outdir",
                "-msgfile",
            ],
            Vec::new(),
        ),
        _ => return None,
    };
    found.extend(option_values(words, options));
    Some(found)
}

/// Tells whether `7z` only reads an archive or unpacks it.
fn seven_reads(given: &[&str]) -> bool {
    matches!(given.first(), Some(&("x" | "e" | "l" | "t" | "h" | "b" | "i")))
}

/// Options of `tar` that name what it writes when it packs: the archive and the files it keeps besides.
const PACKED: &[&str] =
    &["-f", "--file", "--fil", "--fi", "-g", "--listed-incremental", "--index-file", "--volno-file"];

/// Tells whether `tar` writes an archive.
fn packs(words: &[&str]) -> bool {
    let long = ["--create", "--append", "--update", "--catenate", "--concatenate", "--delete"];
    let packs = |letters: &str| letters.contains(['c', 'r', 'u', 'A']);
    words.iter().enumerate().any(|(index, word)| match word.strip_prefix('-') {
        Some(rest) if rest.starts_with('-') => {
            long.iter().any(|long| word.len() > 3 && long.starts_with(word))
        }
        Some(letters) => packs(letters),
        None => index == 0 && packs(word),
    })
}

/// The files that `tar` writes when it unpacks, besides the folder it goes to: members by their names, and the names
/// that it gives them.
fn unpacked<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let renames = option_values(words, &["--transform", "--xform", "-s"]);
    let renames = renames.into_iter().filter(|rename| rename.starts_with(['s', ',', '/', '|', '#']));
    let parts = renames.flat_map(|rename| {
        let mark = rename.trim_start_matches('s').chars().next().unwrap_or('/');
        rename.split([mark, '\\', ';'])
    });
    let extracts = |(index, word): (usize, &&str)| match word.strip_prefix('-') {
        Some(long) if long.starts_with('-') => matches!(*word, "--extract" | "--get"),
        Some(letters) => letters.contains('x'),
        None => index == 0 && word.contains('x'),
    };
    // The first operands are the letters and the archive.
    let members = operands(words).into_iter().skip(1).filter(|word| word.contains('/'));
    let members = members.filter(|_| words.iter().enumerate().any(extracts));
    parts.chain(members).collect()
}

/// `tar cf x`: the value of a letter in a first word without a dash; each such letter takes the next of the following
/// words.
fn bundled<'a>(words: &[&'a str], letter: char) -> Vec<&'a str> {
    let Some((first, rest)) = words.split_first().filter(|(first, _)| !first.starts_with('-')) else {
        return Vec::new();
    };
    let taken = first.chars().filter(|c| "bCfgFHIKLNTVX".contains(*c)).zip(rest);
    taken.filter(|(c, _)| *c == letter).map(|(_, value)| *value).collect()
}

/// The values of options: the next word, the rest of the word after a letter, or the text after `=`. A long option
/// may be abbreviated.
pub(crate) fn option_values<'a>(words: &[&'a str], options: &[&str]) -> Vec<&'a str> {
    let value = |(index, word): (usize, &&'a str)| {
        options.iter().find_map(|option| {
            let short = option.len() == 2;
            let last = || {
                word.starts_with('-')
                    && !word.starts_with("--")
                    && option.chars().last().is_some_and(|c| word.ends_with(c))
            };
            if *word == *option || (short && last()) {
                return words.get(index + 1).copied();
            }
            if short {
                // Other letters may stand before it: `-so.git/x`.
                let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
                let glued = letters.split_once(option.trim_start_matches('-'))?.1;
                return Some(glued.strip_prefix('=').unwrap_or(glued)).filter(|glued| !glued.is_empty());
            }
            let (name, value) =
                word.split_once('=').map_or((*word, None), |(name, value)| (name, Some(value)));
            let long = option.starts_with("--") && name.len() > 2 && option.starts_with(name);
            if !long && name != *option {
                return None;
            }
            value.or_else(|| words.get(index + 1).copied())
        })
    };
    words.iter().enumerate().filter_map(value).collect()
}

/// Tells whether a command deletes because of an option.
pub(crate) fn deletes_by_option(command: &Spelled<'_>) -> bool {
    let has = |begin: &str| command.words.iter().any(|word| word.starts_with(begin));
    match command.name {
        "tar" | "bsdtar" => has("--remove"),
        "rsync" => command.words.iter().any(deletes) || has("--remove"),
        _ => false,
    }
}

fn in_place(words: &[&str]) -> bool {
    words.iter().any(|word| match word.strip_prefix('-') {
        Some(long) if long.starts_with('-') => long.starts_with("-i"),
        // A value follows these letters.
        Some(letters) => letters.split(['e', 'f', 'l']).next().is_some_and(|letters| letters.contains('i')),
        None => false,
    })
}

/// The words of `sed` that are not a script.
pub(crate) fn files_of_sed<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let script = |word: &str| {
        matches!(word, "--expression" | "--file")
            || (word.starts_with('-') && !word.starts_with("--") && word.ends_with(['e', 'f']))
    };
    let explicit =
        |word: &&str| script(word) || word.starts_with("--expression=") || word.starts_with("--file=");
    let given = words.iter().enumerate().filter(|(index, _)| {
        !index.checked_sub(1).and_then(|before| words.get(before)).is_some_and(|before| script(before))
    });
    let given: Vec<&str> = given.map(|(_, word)| *word).collect();
    operands(&given).into_iter().skip(usize::from(!words.iter().any(explicit))).collect()
}

/// `000`, `a-rwx`, `-w`: the owner can no longer read, write or enter.
fn removes_access(words: &[&str]) -> bool {
    words.iter().any(|word| {
        let digits = word.trim_start_matches('0');
        let numeric = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        (numeric && (digits.len() < 3 || owner_digit(digits) < 6))
            || (!word.starts_with("--")
                && ["-r", "-w", "-x"].iter().any(|less| word.contains(less))
                && *word != "-r")
            || word.ends_with('=')
    })
}

/// The owner's digit of a numeric mode.
fn owner_digit(digits: &str) -> u32 {
    digits.chars().rev().nth(2).and_then(|digit| digit.to_digit(10)).unwrap_or(0)
}

/// The files that `tar --remove-files` packs, from the folder it goes to.
fn packed(words: &[&str]) -> Vec<(String, bool)> {
    let (mut folder, mut paths) = (None, Vec::new());
    let mut rest = words.iter().copied();
    while let Some(word) = rest.next() {
        if let Some(to) = word.strip_prefix("--directory=") {
            folder = Some(to);
        } else if matches!(word, "-C" | "--directory") {
            folder = rest.next();
        } else if !word.starts_with('-') {
            let path = match folder.filter(|_| !word.starts_with(['/', '~'])) {
                Some(folder) => format!("{folder}/{word}"),
                None => word.to_owned(),
            };
            paths.push((path, true));
        }
    }
    paths
}

/// Tells whether a search is for `.git` or its content: `-name .git`, `-path './.git/*'`.
pub(crate) fn seeks_git(words: &[&str]) -> bool {
    let tests = ["-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex"];
    words.windows(2).enumerate().any(|(index, pair)| {
        let before = index.checked_sub(1).and_then(|before| words.get(before));
        let spared = matches!(before, Some(&("!" | "-not"))) || words.get(index + 2) == Some(&"-prune");
        let plain = pair[1].to_lowercase().replace('\\', "");
        let git = |part: &str| !is_all(part) && glob(&simplified(part), ".git");
        tests.contains(&pair[0]) && !spared && plain.split('/').any(git)
    })
}
