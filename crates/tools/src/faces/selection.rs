//! The selection of a session's tools: lists of names, and of names with the commands they are meant for.
//!
//! `core` keeps only what it names. `exclude` removes what it names, and wins. `Tool(arg)` is about the shell: with
//! it in `core`, only commands that are `arg`, or begin with it and a blank, may run; in `exclude`, none of those.
//! Text that chains commands cannot be judged by its beginning, so an allowed beginning permits only plain commands.
//!
//! An entry that means nothing would deny nothing, and report nothing: [`check_entry`] refuses it when it is read.

use std::collections::BTreeSet;

use lathe_policy::{KnownNames, all_tool_names, check_tool_name, is_passing_name, tool_names};
use lathe_protocol::{ToolChoice, ToolKind};

use crate::built_in;

/// The names a tool is known by.
pub(crate) struct ToolNames<'a> {
    pub(crate) name: &'a str,
    pub(crate) aliases: &'a [&'a str],
    pub(crate) kind: ToolKind,
}

/// Characters by which bash text becomes more than one plain command.
const CHAINS: [char; 12] = [';', '&', '|', '<', '>', '$', '`', '(', ')', '{', '}', '\n'];

/// Selects tools and commands by the lists.
pub(crate) struct Selection(pub(crate) ToolChoice);

impl Selection {
    pub(crate) fn has(&self, tool: &ToolNames<'_>) -> bool {
        let core = self.0.core.is_empty() || self.0.core.iter().any(|entry| tool.is(split(entry).0));
        let out = |entry: &String| matches!(split(entry), (name, None) if tool.is(name));
        core && !self.0.exclude.iter().any(out)
    }

    /// The commands that `exclude` names, as words, for the gate, which recognises other spellings. Text that bash
    /// would read as more than plain words is left to [`refusal`](Self::refusal), which compares text.
    pub(crate) fn excluded_commands(&self) -> Vec<Vec<String>> {
        let shell = ToolNames { name: "bash", aliases: &[], kind: ToolKind::Execute };
        let entries = self.0.exclude.iter().map(|entry| split(entry)).filter(|(name, _)| shell.is(name));
        let commands = entries.filter_map(|(_, command)| command);
        let plain = commands.filter(|command| !command.contains(CHAINS));
        plain.map(plain_words).filter(|words| !words.is_empty()).collect()
    }

    /// The tools that `exclude` names. They are denied under every name that they have, because a session has tools
    /// in other places than its list: as commands of the shell, and as parts of another tool.
    pub(crate) fn excluded_tools(&self) -> Vec<String> {
        let whole = self.0.exclude.iter().map(|entry| split(entry)).filter(|(_, command)| command.is_none());
        whole
            .map(|(name, _)| name.trim_start_matches('_').to_owned())
            .filter(|name| !name.is_empty())
            .collect()
    }

    /// The reason why a command of the shell may not run, if there is one.
    pub(crate) fn refusal(&self, tool: &ToolNames<'_>, command: &str) -> Option<String> {
        let plain = command.trim();
        let starts =
            |arg: &str| plain == arg || plain.strip_prefix(arg).is_some_and(|rest| rest.starts_with(' '));
        let args = |list: &[String]| -> Vec<String> {
            let entries = list.iter().map(|entry| split(entry)).filter(|(name, _)| tool.is(name));
            entries.filter_map(|(_, arg)| arg.map(|arg| plain_words(arg).join(" "))).collect()
        };
        let never = args(&self.0.exclude);
        let parts = command.split(CHAINS).map(str::trim);
        for part in parts {
            let begins = |arg: &&String| {
                part == arg.as_str()
                    || part.strip_prefix(arg.as_str()).is_some_and(|rest| rest.starts_with(' '))
            };
            if let Some(arg) = never.iter().find(begins) {
                return Some(format!("`{arg}` is in the list of excluded tools"));
            }
        }
        let only = args(&self.0.core);
        let whole = self.0.core.iter().any(|entry| matches!(split(entry), (name, None) if tool.is(name)));
        if only.is_empty() || whole {
            return None;
        }
        if plain.contains(CHAINS) {
            return Some("only plain commands can be compared with the list of allowed ones".to_owned());
        }
        (!only.iter().any(|arg| starts(arg))).then(|| {
            format!(
                "only these commands are allowed: {}",
                only.iter().map(|arg| format!("`{arg}`")).collect::<Vec<_>>().join(", ")
            )
        })
    }
}

impl ToolNames<'_> {
    fn is(&self, name: &str) -> bool {
        let bare = name.trim_start_matches('_');
        let same = |known: &str| known.eq_ignore_ascii_case(name) || known.eq_ignore_ascii_case(bare);
        (self.kind == ToolKind::Execute && is_shell(bare))
            || same(self.name)
            || self.aliases.iter().any(|known| same(known))
    }
}

/// Tells whether a name means the shell. Gemini's documents write `Tool` for it, followed by a command.
pub(crate) fn is_shell(name: &str) -> bool {
    tool_names("bash").chain([ANY]).any(|known| known.eq_ignore_ascii_case(name))
}

/// The word that stands for the shell in `Tool(git status)`.
const ANY: &str = "Tool";

/// The words of a command in an entry. `git push:*` and `git push*` mean every command that begins like this, as does
/// `git push`.
fn plain_words(command: &str) -> Vec<String> {
    let words = command.trim_end_matches(":*").trim_end_matches('*').split_whitespace();
    words.map(str::to_owned).collect()
}

/// The names that rules and lists of tools may use: every built-in tool, and the tools of these domains.
pub fn known_names(domains: impl IntoIterator<Item = String>) -> KnownNames {
    KnownNames::new(built_in::names(), domains)
}

/// Every name of a built-in tool.
pub fn every_tool_name() -> impl Iterator<Item = &'static str> {
    all_tool_names().chain(built_in::names())
}

/// Checks an entry of a list of tools. The error says why it means nothing. `fields` are the domains that are
/// configured.
pub fn check_entry(entry: &str, fields: &BTreeSet<String>) -> Result<(), String> {
    let (names, (name, command)) = (known_names(fields.iter().cloned()), split(entry));
    let bare = name.trim_start_matches('_');
    let Some(command) = command else {
        return check_tool_name(bare, &names);
    };
    if !is_shell(bare) {
        check_tool_name(bare, &names)?;
        return Err(format!(
            "`{entry}` names a command of `{name}`, but only the shell has commands: write `bash({command})`, or `{name}` for the whole tool"
        ));
    }
    if !entry.trim_end().ends_with(')') {
        return Err(format!("`{entry}` has no closing parenthesis: write `{name}({command})`"));
    }
    let words = plain_words(command);
    if words.is_empty() {
        return Err(format!("`{entry}` names no command: write `bash` for the whole shell"));
    }
    let odd = |word: &String| word.contains(CHAINS) || word.contains(['\'', '"', '\\', '*', '?', '[', '~']);
    if words.iter().any(odd) {
        return Err(format!("`{entry}`: `{command}` is no list of plain words, such as `git push`"));
    }
    Ok(())
}

/// The names in a list of tools that may match nothing now, because the tools they name come and go.
pub fn transient_entries(list: &[String], fields: &BTreeSet<String>) -> Vec<String> {
    let known = known_names(fields.iter().cloned());
    let names = list.iter().map(|entry| split(entry).0.trim_start_matches('_').to_owned());
    names.filter(|name| is_passing_name(name, &known)).collect()
}

/// The tools that remain of a recorded session if the configuration leaves fewer by now. Nothing comes back that the
/// session does not have, and nothing stays that is not in the current list or is excluded now.
pub fn narrow_choice(recorded: ToolChoice, now: &ToolChoice) -> ToolChoice {
    let ToolChoice { core, mut exclude } = recorded;
    let has = |list: &[String], name: &str, command: Option<&str>| {
        list.iter().map(|entry| split(entry)).any(|(other, other_command)| {
            is_same_tool(other, name) && (other_command.is_none() || other_command == command)
        })
    };
    let both = |list: &[String], other: &[String]| -> Vec<String> {
        let kept = list.iter().filter(|entry| {
            let (name, command) = split(entry);
            has(other, name, command)
        });
        kept.cloned().collect()
    };
    let mut kept = match (core.is_empty(), now.core.is_empty()) {
        (true, _) => now.core.clone(),
        (false, true) => core.clone(),
        (false, false) => {
            let mut kept = both(&core, &now.core);
            kept.extend(both(&now.core, &core).into_iter().filter(|entry| split(entry).1.is_some()));
            kept
        }
    };
    if kept.is_empty() && !core.is_empty() {
        // An empty list would mean all tools.
        exclude.extend(core.iter().map(|entry| split(entry).0.to_owned()));
        kept = core;
    }
    exclude.extend(now.exclude.iter().cloned());
    ToolChoice { core: deduplicated(kept), exclude: deduplicated(exclude) }
}

/// The list without repeated entries.
fn deduplicated(list: Vec<String>) -> Vec<String> {
    let mut known = BTreeSet::new();
    list.into_iter().filter(|entry| known.insert(entry.clone())).collect()
}

/// Tells whether two names mean one tool.
fn is_same_tool(one: &str, other: &str) -> bool {
    let (one, other) = (one.trim_start_matches('_'), other.trim_start_matches('_'));
    let of = |name: &str| {
        let all = all_tool_names().find(|known| known.eq_ignore_ascii_case(name))?;
        all_tool_names().find(|canonical| tool_names(canonical).any(|known| known == all))
    };
    one.eq_ignore_ascii_case(other)
        || (is_shell(one) && is_shell(other))
        || of(one).is_some_and(|canonical| of(other) == Some(canonical))
}

/// Splits `Tool(arg)` into its two parts.
fn split(entry: &str) -> (&str, Option<&str>) {
    match entry.trim().split_once('(') {
        Some((name, rest)) => (name.trim(), Some(rest.strip_suffix(')').unwrap_or(rest).trim())),
        None => (entry.trim(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL: ToolNames<'static> = ToolNames { name: "bash", aliases: &[], kind: ToolKind::Execute };
    const GREP: ToolNames<'static> = ToolNames {
        name: "search_file_content",
        aliases: &["grep_search", "GrepTool"],
        kind: ToolKind::Search,
    };

    fn selection(core: &[&str], exclude: &[&str]) -> Selection {
        let own = |list: &[&str]| list.iter().map(|entry| (*entry).to_owned()).collect();
        Selection(ToolChoice { core: own(core), exclude: own(exclude) })
    }

    #[test]
    fn names_aliases_and_classes_are_known() {
        for (core, exclude, has_shell, has_grep) in [
            (&[][..], &[][..], true, true),
            (&["bash"], &[], true, false),
            (&["ShellTool(git status)"], &[], true, false),
            (&["GrepTool"], &[], false, true),
            (&["grep_search"], &[], false, true),
            (&[], &["grep_search"], true, false),
            (&["bash"], &["run_shell_command"], false, false),
            (&[], &["ShellTool(rm)"], true, true),
            (&["Tool(git status)"], &[], true, false),
            (&[], &["BASH"], false, true),
            (&[], &["greptool"], true, false),
        ] {
            let selection = selection(core, exclude);
            assert_eq!(
                (selection.has(&SHELL), selection.has(&GREP)),
                (has_shell, has_grep),
                "{core:?} {exclude:?}"
            );
        }
    }

    #[test]
    fn commands_are_compared_by_whole_words_and_never_by_the_beginning_of_a_chain() {
        for (core, exclude, command, allowed) in [
            (&["ShellTool(git status)"][..], &[][..], "git status", true),
            (&["ShellTool(git status)"], &[], "git status -s", true),
            (&["ShellTool(git status)"], &[], "git statusx", false),
            (&["ShellTool(git status)"], &[], "git push", false),
            (&["ShellTool(git status)"], &[], "git status; rm -rf x", false),
            (&["ShellTool(git status)"], &[], "git status $(rm x)", false),
            (&["ShellTool(git status)", "bash"], &[], "rm x", true),
            (&[], &["ShellTool(rm)"], "rm x", false),
            (&[], &["ShellTool(rm)"], "ls && rm x", false),
            (&[], &["ShellTool(rm)"], "rmdir x", true),
            (&["Tool(git status)"], &[], "git status", true),
            (&["Tool(git status)"], &[], "git push", false),
            (&["bash(git:*)"], &[], "git push", true),
            (&[], &["Tool(rm)"], "rm x", false),
            (&[], &["BASH(rm:*)"], "rm x", false),
        ] {
            let refused = selection(core, exclude).refusal(&SHELL, command);
            assert_eq!(refused.is_none(), allowed, "{core:?} {exclude:?} {command}: {refused:?}");
        }
    }

    #[test]
    fn an_entry_that_means_nothing_is_refused() {
        let fields = BTreeSet::from(["units".to_owned()]);
        for (entry, said) in [
            ("bash", None),
            ("Tool(git push)", None),
            ("tool(git push)", None),
            ("bash(git push)", None),
            ("_bash(git push:*)", None),
            ("Bash(git push*)", None),
            ("run_shell_command( git push )", None),
            ("write_file", None),
            ("mcp_git_push", None),
            ("write*", None),
            ("units_length", None),
            ("discovered_tool_add", None),
            ("Tool", Some("there is no tool `Tool`")),
            ("bashh(git push)", Some("did you mean `bash`?")),
            ("viewx", Some("did you mean `view`?")),
            ("", Some("empty")),
            ("(git push)", Some("empty")),
            ("view(secret)", Some("only the shell has commands")),
            ("mcp_git_push(x)", Some("only the shell has commands")),
            ("bash(git push", Some("no closing parenthesis")),
            ("bash()", Some("names no command")),
            ("bash(*)", Some("names no command")),
            ("bash(:*)", Some("names no command")),
            ("bash(a; b)", Some("no list of plain words")),
            ("bash('git push')", Some("no list of plain words")),
            ("bash(git * push)", Some("no list of plain words")),
        ] {
            let found = check_entry(entry, &fields).err();
            match said {
                None => assert_eq!(found, None, "{entry}"),
                Some(said) => assert!(found.clone().unwrap_or_default().contains(said), "{entry}: {found:?}"),
            }
        }
    }

    #[test]
    fn what_the_configuration_of_now_leaves_out_is_left_out() {
        let own = |list: &[&str]| list.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>();
        let choice =
            |(core, exclude): (&[&str], &[&str])| ToolChoice { core: own(core), exclude: own(exclude) };
        type Lists<'a> = (&'a [&'a str], &'a [&'a str]);
        let table: [(Lists<'_>, Lists<'_>, Lists<'_>); 12] = [
            ((&[], &[]), (&[], &[]), (&[], &[])),
            ((&[], &["write"]), (&[], &[]), (&[], &["write"])),
            ((&[], &[]), (&[], &["write"]), (&[], &["write"])),
            ((&[], &["bash(a)"]), (&[], &["write", "bash(a)"]), (&[], &["bash(a)", "write"])),
            ((&[], &[]), (&["view"], &[]), (&["view"], &[])),
            ((&["view", "bash"], &[]), (&[], &[]), (&["view", "bash"], &[])),
            ((&["view", "bash"], &[]), (&["view", "edit"], &[]), (&["view"], &[])),
            ((&["bash"], &[]), (&["bash(git)", "view"], &[]), (&["bash(git)"], &[])),
            ((&["bash(git)"], &[]), (&["run_shell_command"], &[]), (&["bash(git)"], &[])),
            ((&["bash(git)"], &[]), (&["bash(ls)"], &[]), (&["bash(git)"], &["bash"])),
            ((&["view"], &[]), (&["edit"], &[]), (&["view"], &["view"])),
            ((&["view"], &[]), (&["edit"], &["glob"]), (&["view"], &["view", "glob"])),
        ];
        for (recorded, now, left) in table {
            let once = narrow_choice(choice(recorded), &choice(now));
            assert_eq!(once, choice(left), "{recorded:?} {now:?}");
            assert_eq!(narrow_choice(once.clone(), &choice(now)), once, "{recorded:?} {now:?}: again");
        }
    }
}
