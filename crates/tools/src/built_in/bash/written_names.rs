//! Names that a command of a line can write, by the rules of its program.
//!
//! A rule covers only the words that it knows. A command with any other word may write anything.

use lathe_protocol::CommandDecided;

use super::loops::LoopVariables;

/// Programs that write only what their operands, or redirections, name.
const BY_NAME: [&str; 11] =
    ["rm", "rmdir", "unlink", "mv", "cp", "ln", "mkdir", "touch", "chmod", "tee", "truncate"];

/// Programs, words of bash and agent commands that write nothing, except by redirections, or files that they report
/// as written themselves.
const READERS: &str = " : [ [[ apply_patch ask awk basename break case cat cd cmp code commands comm continue cut date declare df diff \
    dirname du echo edit egrep exit export false fgrep file find for git glob grep head hexdump hostname id if join jobs \
    json_edit let list local ls memory nl od paste popd printf ps pushd pwd read readlink realpath return rg search sed seq set \
    shift sleep sort stat tail test think time todo tr true type uname unset until view wait wc which while whoami write ";

/// Programs that write nothing, with any words.
const NEVER: &str = " : [ [[ basename cat comm cut dirname echo egrep fgrep grep head ls nl printf pwd rg seq tail test true wc ";

/// The effects that a command can have on a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameEffect {
    /// Anything, below it too.
    Change,
    /// It can be removed, with everything below it. Nothing is created.
    Remove,
    /// It can be removed, if its last part matches this pattern.
    RemoveLike,
    /// It becomes a link. Nothing is written through it.
    Link,
}

/// A name in the spelling of the line. Stars and question marks mean what they mean in bash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenName {
    pub name: String,
    pub may: NameEffect,
}

/// Everything that a command can write. None if it may write something that it does not name.
pub(super) fn names_of(command: &CommandDecided, loops: &LoopVariables) -> Option<Vec<WrittenName>> {
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
    // The value of a word may be an option, or several words.
    if words.iter().any(|word| loops.is_open(word)) && !NEVER.contains(&format!(" {program} ")) {
        return None;
    }
    let mut names = match program {
        "sed" if words.iter().any(|word| is_in_place(word)) => sed_in_place(words)?,
        "find" if words.iter().any(|word| word == "-delete") => find_deletes(words)?,
        _ if is_by_name => operands(program, words, &effects.writes)?,
        _ => Vec::new(),
    };
    // The remaining writes can only be redirections: otherwise the program is a reader.
    let is_known = |name: &&String| {
        let of_rule = is_by_name || matches!(program, "sed" | "find") && !names.is_empty();
        (of_rule && words.contains(name)) || names.iter().any(|known| known.name == **name)
    };
    let redirected: Vec<&String> = effects.writes.iter().filter(|name| !is_known(name)).collect();
    for name in redirected {
        if name.starts_with('-') || words.contains(name) {
            return None;
        }
        names.push(WrittenName { name: name.clone(), may: NameEffect::Change });
    }
    let mut all = Vec::new();
    for WrittenName { name, may } in names {
        all.extend(loops.values(&name).into_iter().map(|name| WrittenName { name, may }));
    }
    // The match of a star may be a link that is written through. A program that removes or replaces the name does not
    // write through it.
    let may_be_open = |named: &WrittenName| {
        program == "sed" || matches!(named.may, NameEffect::Remove | NameEffect::RemoveLike)
    };
    let is_known = |named: &WrittenName| {
        is_plain(&named.name) && (may_be_open(named) || !named.name.contains(['*', '?']))
    };
    all.iter().all(is_known).then_some(all)
}

/// Tells whether bash takes a name literally, apart from stars and question marks.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains(['$', '`', '[', '{', '~', '\\', '\'', '"', '…', '(', '|', '!'])
}

/// The operands of a program that writes what it names. `writes` are the names that the gate found.
fn operands(program: &str, words: &[String], writes: &[String]) -> Option<Vec<WrittenName>> {
    // A backup has a name that the line does not contain.
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
    let all = |may: NameEffect| {
        found.iter().map(|name| WrittenName { name: (*name).clone(), may }).collect::<Vec<_>>()
    };
    let options = || words.iter().filter(|word| word.starts_with('-'));
    let only = |known: &[&str]| options().all(|word| known.contains(&word.as_str()));
    Some(match (program, found.as_slice()) {
        ("rm" | "rmdir" | "unlink", _) => all(NameEffect::Remove),
        // The last operand is the target of the others.
        ("mv", [sources @ .., target])
            if !sources.is_empty()
                && only(&["-f", "-n", "-v", "-i", "-fv", "-vf", "--force", "--verbose"]) =>
        {
            let gone =
                sources.iter().map(|name| WrittenName { name: (*name).clone(), may: NameEffect::Remove });
            gone.chain([WrittenName { name: (*target).clone(), may: NameEffect::Change }]).collect()
        }
        ("ln", _) if !only(&["-s", "-f", "-n", "-v", "-sf", "-fs", "-sfn", "-snf", "-sn", "-sv"]) => {
            return None;
        }
        ("ln", [_, link]) if options().any(|word| word.contains('s')) => {
            vec![WrittenName { name: (*link).clone(), may: NameEffect::Link }]
        }
        _ => all(NameEffect::Change),
    })
}

fn is_in_place(word: &str) -> bool {
    word.starts_with("-i") || word.starts_with("--in-place")
}

/// The files that a `sed` edits in place, and their backups. None if it may do more than that.
fn sed_in_place(words: &[String]) -> Option<Vec<WrittenName>> {
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
    Some(all.map(|name| WrittenName { name, may: NameEffect::Change }).collect())
}

/// Tells whether a command of sed only edits text: `3d`, `/x/,5p`, `s/a/b/g`. A command that writes or runs something
/// does more.
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

/// The command after its address. None for an address that is not one of the simple ones.
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

/// The names that a `find … -delete` can remove. None if it may do more than that.
fn find_deletes(words: &[String]) -> Option<Vec<WrittenName>> {
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
        Some(pattern) => vec![WrittenName { name: (*pattern).clone(), may: NameEffect::RemoveLike }],
        None if starts.is_empty() => vec![WrittenName { name: ".".to_owned(), may: NameEffect::Remove }],
        None => {
            starts.iter().map(|name| WrittenName { name: (*name).clone(), may: NameEffect::Remove }).collect()
        }
    })
}

/// Tells whether a command of git writes in the repository alone, and no file of the work tree, provided that no hook
/// or filter of the user's runs.
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

    fn names(words: &[&str], writes: &[&str]) -> Option<Vec<(String, NameEffect)>> {
        let found = names_of(&command(words, writes, &[]), &LoopVariables::default())?;
        Some(found.into_iter().map(|named| (named.name, named.may)).collect())
    }

    #[test]
    fn each_program_names_what_it_writes_or_is_not_certain() {
        let some = |all: &[(&str, NameEffect)]| {
            Some(all.iter().map(|(name, may)| ((*name).to_owned(), *may)).collect::<Vec<_>>())
        };
        for (words, writes, expected) in [
            (
                &["sed", "-i", "s/a/b/", "q.txt"][..],
                &["s/a/b/", "q.txt"][..],
                some(&[("q.txt", NameEffect::Change)]),
            ),
            (&["sed", "-i", "3d;/x/,5p", "q"], &["3d;/x/,5p", "q"], some(&[("q", NameEffect::Change)])),
            (
                &["sed", "-i.old", "-e", "s|a|b|g", "q"],
                &["s|a|b|g", "q"],
                some(&[("q", NameEffect::Change), ("q.old", NameEffect::Change)]),
            ),
            (&["sed", "-i", "s/a/b/w out", "q"], &["q"], None),
            (&["sed", "-i", "w out", "q"], &["q"], None),
            (&["sed", "-i", "s/a/b/e", "q"], &["q"], None),
            (&["sed", "-i", "1e touch x", "q"], &["q"], None),
            (&["sed", "-i", "-f", "script", "q"], &["q"], None),
            (&["sed", "-i", "/a\\/w x/d", "q"], &["q"], None),
            (&["sed", "-n", "p", "q"], &["log"], some(&[("log", NameEffect::Change)])),
            (&["rm", "-rf", "d"], &["d"], some(&[("d", NameEffect::Remove)])),
            (&["rm", "*.o"], &["*.o"], some(&[("*.o", NameEffect::Remove)])),
            (&["rm", "d"], &["d", "log"], some(&[("d", NameEffect::Remove), ("log", NameEffect::Change)])),
            (&["mv", "a", "b"], &["a", "b"], some(&[("a", NameEffect::Remove), ("b", NameEffect::Change)])),
            (
                &["mv", "-t", "d", "a"],
                &["d", "a"],
                some(&[("d", NameEffect::Change), ("a", NameEffect::Change)]),
            ),
            (&["mv", "-b", "a", "b"], &["a", "b"], None),
            (&["ln", "-s", "q", "l"], &["q", "l"], some(&[("l", NameEffect::Link)])),
            (&["ln", "q", "l"], &["q", "l"], some(&[("q", NameEffect::Change), ("l", NameEffect::Change)])),
            (&["ln", "-sb", "q", "l"], &["q", "l"], None),
            (
                &["find", ".", "-name", "*.pyc", "-delete"],
                &["-delete"],
                some(&[("*.pyc", NameEffect::RemoveLike)]),
            ),
            (&["find", "d", "-delete"], &["-delete"], some(&[("d", NameEffect::Remove)])),
            (&["find", ".", "-name", "a", "-o", "-delete"], &["-delete"], None),
            (&["find", ".", "-fprint", "x", "-delete"], &["x", "-delete"], None),
            (&["cp", "a", "$x"], &["$x"], None),
            (&["truncate", "-s0", "*.log"], &["*.log"], None),
            (&["sed", "-i", "s/a/b/", "*.c"], &["s/a/b/", "*.c"], some(&[("*.c", NameEffect::Change)])),
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
            let found = names_of(&command(words, &[], &["git"]), &LoopVariables::default());
            assert_eq!(found, expected.then(Vec::new), "{words:?}");
        }
    }
}
