//! Names that a command of a line can write, by the rules of its program.
//!
//! A rule holds only for the words that it knows. Whatever else a command says, it may write anything.

use lathe_protocol::CommandDecided;

use super::loops::Loops;

/// Programs that write only what their operands, or redirections, name.
const BY_NAME: [&str; 11] =
    ["rm", "rmdir", "unlink", "mv", "cp", "ln", "mkdir", "touch", "chmod", "tee", "truncate"];

/// Programs, words of bash and commands of the agent that write nothing, but by redirections or by their own account.
const READERS: &str = " : [ [[ apply_patch ask awk basename break case cat cd cmp code commands comm continue cut date declare df diff \
    dirname du echo edit egrep exit export false fgrep file find for git glob grep head hexdump hostname id if join jobs \
    json_edit let list local ls memory nl od paste popd printf ps pushd pwd read readlink realpath return rg search sed seq set \
    shift sleep sort stat tail test think time todo tr true type uname unset until view wait wc which while whoami write ";

/// Programs that write nothing whatever their words are.
const NEVER: &str = " : [ [[ basename cat comm cut dirname echo egrep fgrep grep head ls nl printf pwd rg seq tail test true wc ";

/// Effects that a command can have on a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum May {
    /// Anything, below it too.
    Change,
    /// It can go, with what is below it. Nothing comes.
    Remove,
    /// It can go, if its last part is this pattern.
    RemoveLike,
    /// It becomes a link. Nothing is written through it.
    Link,
}

/// A name in the spelling of the line. Stars and question marks stand for what they do in bash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub name: String,
    pub may: May,
}

/// Everything that a command can write. None where it may write something that it does not name.
pub(super) fn names_of(command: &CommandDecided, loops: &Loops) -> Option<Vec<Named>> {
    let effects = &command.effects;
    let program = command.words.first().map_or("", String::as_str);
    let is_git = program == "git" && !effects.programs.is_empty();
    if effects.opaque || !effects.hosts.is_empty() || !(effects.programs.is_empty() || is_git) {
        return None;
    }
    let words = command.words.get(1..).unwrap_or_default();
    if is_git && (effects.programs != ["git"] || !is_quiet_git(words)) {
        return None;
    }
    let is_by_name = BY_NAME.contains(&program);
    if !is_by_name && !program.contains('=') && !READERS.contains(&format!(" {program} ")) {
        return None;
    }
    // What a word comes to may be an option, or several words.
    if words.iter().any(|word| loops.is_open(word)) && !NEVER.contains(&format!(" {program} ")) {
        return None;
    }
    let mut names = match program {
        "sed" if words.iter().any(|word| is_in_place(word)) => in_place(words)?,
        "find" if words.iter().any(|word| word == "-delete") => deleted(words)?,
        _ if is_by_name => operands(program, words, &effects.writes)?,
        _ => Vec::new(),
    };
    // The rest can only be redirections: it is a reader by all other means.
    let is_known = |name: &&String| {
        let of_rule = is_by_name || matches!(program, "sed" | "find") && !names.is_empty();
        (of_rule && words.contains(name)) || names.iter().any(|known| known.name == **name)
    };
    let redirected: Vec<&String> = effects.writes.iter().filter(|name| !is_known(name)).collect();
    for name in redirected {
        if name.starts_with('-') || words.contains(name) {
            return None;
        }
        names.push(Named { name: name.clone(), may: May::Change });
    }
    let mut all = Vec::new();
    for Named { name, may } in names {
        all.extend(loops.values(&name).into_iter().map(|name| Named { name, may }));
    }
    // What a star stands for may be a link, and be written through; what takes it away, or its place, is not.
    let may_be_open = |named: &Named| program == "sed" || matches!(named.may, May::Remove | May::RemoveLike);
    let is_known =
        |named: &Named| is_plain(&named.name) && (may_be_open(named) || !named.name.contains(['*', '?']));
    all.iter().all(is_known).then_some(all)
}

/// Tells whether bash takes a name as it stands, but for stars and question marks.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains(['$', '`', '[', '{', '~', '\\', '\'', '"', '…', '(', '|', '!'])
}

/// The operands of a program that writes what it names. `writes` are those that the gate found.
fn operands(program: &str, words: &[String], writes: &[String]) -> Option<Vec<Named>> {
    // A backup has a name that the line does not say.
    let is_backup = |word: &String| {
        let short = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        short.is_some_and(|letters| letters.contains(['b', 'S']))
            || word.starts_with("--b")
            || word.starts_with("--s")
    };
    if words.iter().any(|word| word.starts_with('-') && is_backup(word)) && program != "ln" {
        return None;
    }
    let is_operand = |name: &&String| !name.starts_with('-') && words.contains(name);
    let found: Vec<&String> = writes.iter().filter(is_operand).collect();
    let all = |may: May| found.iter().map(|name| Named { name: (*name).clone(), may }).collect::<Vec<_>>();
    let options = || words.iter().filter(|word| word.starts_with('-'));
    let only = |known: &[&str]| options().all(|word| known.contains(&word.as_str()));
    Some(match (program, found.as_slice()) {
        ("rm" | "rmdir" | "unlink", _) => all(May::Remove),
        // The last one is where the others go.
        ("mv", [sources @ .., target])
            if !sources.is_empty()
                && only(&["-f", "-n", "-v", "-i", "-fv", "-vf", "--force", "--verbose"]) =>
        {
            let gone = sources.iter().map(|name| Named { name: (*name).clone(), may: May::Remove });
            gone.chain([Named { name: (*target).clone(), may: May::Change }]).collect()
        }
        ("ln", _) if !only(&["-s", "-f", "-n", "-v", "-sf", "-fs", "-sfn", "-snf", "-sn", "-sv"]) => {
            return None;
        }
        ("ln", [_, link]) if options().any(|word| word.contains('s')) => {
            vec![Named { name: (*link).clone(), may: May::Link }]
        }
        _ => all(May::Change),
    })
}

fn is_in_place(word: &str) -> bool {
    word.starts_with("-i") || word.starts_with("--in-place")
}

/// The files of a `sed` that writes them in their place, and the backups of them. None if it may do more than that.
fn in_place(words: &[String]) -> Option<Vec<Named>> {
    let (mut scripts, mut operands, mut suffix) = (Vec::new(), Vec::new(), "");
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-i" | "--in-place" | "-n" | "-E" | "-r" | "-s" | "-z" | "-u" | "-nE" | "-En" => {}
            "-e" => scripts.push(rest.next()?.as_str()),
            word if word.starts_with("-i.") => suffix = word.get(2..)?,
            word if word.starts_with('-') => return None,
            word => operands.push(word),
        }
    }
    if scripts.is_empty() {
        (!operands.is_empty()).then(|| scripts.push(operands.remove(0)))?;
    }
    let only_edits = |script: &&str| script.split([';', '\n']).all(|part| is_edit(part.trim()));
    if !scripts.iter().all(only_edits) || suffix.contains(['*', '/']) {
        return None;
    }
    let backups = operands.iter().filter(|_| !suffix.is_empty()).map(|name| format!("{name}{suffix}"));
    let all = operands.iter().map(|name| (*name).to_owned()).chain(backups);
    Some(all.map(|name| Named { name, may: May::Change }).collect())
}

/// Tells whether a command of sed only edits text: `3d`, `/x/,5p`, `s/a/b/g`. One that writes or runs something is none.
fn is_edit(part: &str) -> bool {
    let Some(part) = without_address(part) else { return false };
    if let Some(rest) = part.strip_prefix('s') {
        let Some(mark) = rest.chars().next().filter(|mark| "/|#,:@".contains(*mark)) else { return false };
        let mut fields = rest.get(1..).unwrap_or_default().split(mark);
        let (Some(from), Some(to), Some(flags), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return false;
        };
        let is_flag = |c: char| c.is_ascii_digit() || "gpiIM".contains(c);
        return !from.ends_with('\\') && !to.ends_with('\\') && flags.chars().all(is_flag);
    }
    matches!(part, "" | "p" | "d" | "D" | "P" | "g" | "G" | "h" | "H" | "x" | "n" | "N" | "q" | "=")
}

/// The command behind the lines that it is for. None for an address that is not one of the simple ones.
fn without_address(part: &str) -> Option<&str> {
    let one = |text: &'_ str| -> Option<usize> {
        if let Some(rest) = text.strip_prefix('/') {
            let end = rest.find('/')?;
            return (!rest.get(..end)?.contains('\\')).then_some(end + 2);
        }
        if text.starts_with('$') {
            return Some(1);
        }
        Some(text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len())
    };
    let mut rest = part.get(one(part)?..)?;
    if let Some(second) = rest.strip_prefix(',') {
        rest = second.get(one(second)?..)?;
    }
    Some(rest.trim_start().strip_prefix('!').unwrap_or(rest).trim_start())
}

/// The names that a `find … -delete` can take away. None if it may do more than that.
fn deleted(words: &[String]) -> Option<Vec<Named>> {
    let starts: Vec<&String> = words.iter().take_while(|word| !word.starts_with('-')).collect();
    let mut tests = words.iter().skip(starts.len());
    let mut patterns = Vec::new();
    while let Some(test) = tests.next() {
        match test.as_str() {
            "-name" => patterns.push(tests.next()?),
            "-type" | "-maxdepth" | "-mindepth" | "-size" | "-mtime" | "-mmin" | "-newer" | "-path" => {
                tests.next()?;
            }
            "-empty" | "-print" | "-depth" | "-xdev" | "-delete" => {}
            _ => return None,
        }
    }
    Some(match patterns.first() {
        Some(pattern) => vec![Named { name: (*pattern).clone(), may: May::RemoveLike }],
        None if starts.is_empty() => vec![Named { name: ".".to_owned(), may: May::Remove }],
        None => starts.iter().map(|name| Named { name: (*name).clone(), may: May::Remove }).collect(),
    })
}

/// Tells whether a command of git writes in the repository alone, and no file of the work tree, if nothing of the user's
/// is hooked into it.
fn is_quiet_git(words: &[String]) -> bool {
    let mut rest = words.iter().skip(1);
    match words.first().map(String::as_str) {
        Some("add") => rest.all(|word| {
            let is_option = matches!(
                word.as_str(),
                "-A" | "--all" | "-u" | "--update" | "-N" | "-f" | "--force" | "-v" | "-n" | "--"
            );
            is_option || !word.starts_with('-')
        }),
        // Without a message it starts an editor.
        Some("commit") => {
            let mut has_message = false;
            while let Some(word) = rest.next() {
                match word.as_str() {
                    "-m" | "-am" | "-qm" | "-qam" | "-aqm" => has_message = rest.next().is_some(),
                    "-a" | "-q" | "--quiet" | "--allow-empty" | "--no-verify" | "-n" => {}
                    _ => return false,
                }
            }
            has_message
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use lathe_protocol::{CommandDecided, Decision, Effects, Verdict};

    use super::*;

    fn command(words: &[&str], writes: &[&str], programs: &[&str]) -> CommandDecided {
        let all = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let effects = Effects { writes: all(writes), programs: all(programs), ..Effects::default() };
        let decision = Decision { verdict: Verdict::Allow, rule: String::new(), reason: String::new() };
        CommandDecided { words: all(words), effects, decision }
    }

    fn names(words: &[&str], writes: &[&str]) -> Option<Vec<(String, May)>> {
        let found = names_of(&command(words, writes, &[]), &Loops::default())?;
        Some(found.into_iter().map(|named| (named.name, named.may)).collect())
    }

    #[test]
    fn each_program_names_what_it_writes_or_is_not_certain() {
        let some = |all: &[(&str, May)]| {
            Some(all.iter().map(|(name, may)| ((*name).to_owned(), *may)).collect::<Vec<_>>())
        };
        for (words, writes, expected) in [
            (
                &["sed", "-i", "s/a/b/", "q.txt"][..],
                &["s/a/b/", "q.txt"][..],
                some(&[("q.txt", May::Change)]),
            ),
            (&["sed", "-i", "3d;/x/,5p", "q"], &["3d;/x/,5p", "q"], some(&[("q", May::Change)])),
            (
                &["sed", "-i.old", "-e", "s|a|b|g", "q"],
                &["s|a|b|g", "q"],
                some(&[("q", May::Change), ("q.old", May::Change)]),
            ),
            (&["sed", "-i", "s/a/b/w out", "q"], &["q"], None),
            (&["sed", "-i", "w out", "q"], &["q"], None),
            (&["sed", "-i", "s/a/b/e", "q"], &["q"], None),
            (&["sed", "-i", "1e touch x", "q"], &["q"], None),
            (&["sed", "-i", "-f", "script", "q"], &["q"], None),
            (&["sed", "-i", "/a\\/w x/d", "q"], &["q"], None),
            (&["sed", "-n", "p", "q"], &["log"], some(&[("log", May::Change)])),
            (&["rm", "-rf", "d"], &["d"], some(&[("d", May::Remove)])),
            (&["rm", "*.o"], &["*.o"], some(&[("*.o", May::Remove)])),
            (&["rm", "d"], &["d", "log"], some(&[("d", May::Remove), ("log", May::Change)])),
            (&["mv", "a", "b"], &["a", "b"], some(&[("a", May::Remove), ("b", May::Change)])),
            (&["mv", "-t", "d", "a"], &["d", "a"], some(&[("d", May::Change), ("a", May::Change)])),
            (&["mv", "-b", "a", "b"], &["a", "b"], None),
            (&["ln", "-s", "q", "l"], &["q", "l"], some(&[("l", May::Link)])),
            (&["ln", "q", "l"], &["q", "l"], some(&[("q", May::Change), ("l", May::Change)])),
            (&["ln", "-sb", "q", "l"], &["q", "l"], None),
            (&["find", ".", "-name", "*.pyc", "-delete"], &["-delete"], some(&[("*.pyc", May::RemoveLike)])),
            (&["find", "d", "-delete"], &["-delete"], some(&[("d", May::Remove)])),
            (&["find", ".", "-name", "a", "-o", "-delete"], &["-delete"], None),
            (&["find", ".", "-fprint", "x", "-delete"], &["x", "-delete"], None),
            (&["cp", "a", "$x"], &["$x"], None),
            (&["truncate", "-s0", "*.log"], &["*.log"], None),
            (&["sed", "-i", "s/a/b/", "*.c"], &["s/a/b/", "*.c"], some(&[("*.c", May::Change)])),
            (&["pytest"], &[], None),
        ] {
            assert_eq!(names(words, writes), expected, "{words:?}");
        }
    }

    #[test]
    fn git_writes_only_its_own_where_its_words_say_so() {
        for (words, expected) in [
            (&["git", "add", "-A"][..], true),
            (&["git", "add", "a.txt"], true),
            (&["git", "add", "-e"], false),
            (&["git", "commit", "-qam", "x"], true),
            (&["git", "commit"], false),
            (&["git", "checkout", "--", "."], false),
            (&["git", "-c", "core.editor=x", "add", "."], false),
        ] {
            let found = names_of(&command(words, &[], &["git"]), &Loops::default());
            assert_eq!(found, expected.then(Vec::new), "{words:?}");
        }
    }
}
