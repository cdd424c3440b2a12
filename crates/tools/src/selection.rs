//! Which tools of a toolset a session has: lists of names, and of names with the commands they are meant for.
//!
//! `core` keeps only what it names, `exclude` takes away, and wins. `Tool(arg)` speaks of the shell: with it in `core`, only
//! commands that are `arg`, or begin with it and a blank, may run; in `exclude`, none of those. Text that chains commands
//! cannot be judged by its beginning, so an allowed beginning lets only plain commands through.

use lathe_protocol::{Kind, ToolChoice};

/// The names a tool is known by.
pub(crate) struct Known<'a> {
    pub(crate) name: &'a str,
    pub(crate) aliases: &'a [&'a str],
    pub(crate) kind: Kind,
}

/// Bytes by which bash text becomes more than one plain command.
const CHAINS: [char; 12] = [';', '&', '|', '<', '>', '$', '`', '(', ')', '{', '}', '\n'];

/// Judges tools and commands by the lists.
pub(crate) struct Selection(pub(crate) ToolChoice);

impl Selection {
    pub(crate) fn has(&self, tool: &Known<'_>) -> bool {
        let core = self.0.core.is_empty() || self.0.core.iter().any(|entry| tool.is(split(entry).0));
        let out = |entry: &String| matches!(split(entry), (name, None) if tool.is(name));
        core && !self.0.exclude.iter().any(out)
    }

    /// The commands that `exclude` names, word by word, for the gate, which sees through other spellings. What bash would
    /// read as more than plain words is left to [`refuses`](Self::refuses), which compares text.
    pub(crate) fn excluded_commands(&self) -> Vec<Vec<String>> {
        let shell = Known { name: "bash", aliases: &[], kind: Kind::Execute };
        let entries = self.0.exclude.iter().map(|entry| split(entry)).filter(|(name, _)| shell.is(name));
        let commands = entries.filter_map(|(_, command)| command);
        let plain = |command: &str| {
            let words = command.trim_end_matches(":*").trim_end_matches('*').split_whitespace();
            words.map(str::to_owned).collect::<Vec<String>>()
        };
        commands
            .filter(|command| !command.contains(CHAINS))
            .map(plain)
            .filter(|words| !words.is_empty())
            .collect()
    }

    /// The tools that `exclude` names. They are denied by every name that they have, because a session has tools in other
    /// places than its list: as commands of the shell, and as parts of another tool.
    pub(crate) fn excluded_tools(&self) -> Vec<String> {
        let whole = self.0.exclude.iter().map(|entry| split(entry)).filter(|(_, command)| command.is_none());
        whole
            .map(|(name, _)| name.trim_start_matches('_').to_owned())
            .filter(|name| !name.is_empty())
            .collect()
    }

    /// Why a command of the shell may not run, if it may not.
    pub(crate) fn refuses(&self, tool: &Known<'_>, command: &str) -> Option<String> {
        let plain = command.trim();
        let starts =
            |arg: &str| plain == arg || plain.strip_prefix(arg).is_some_and(|rest| rest.starts_with(' '));
        let args = |list: &[String]| -> Vec<String> {
            let entries = list.iter().map(|entry| split(entry)).filter(|(name, _)| tool.is(name));
            entries.filter_map(|(_, arg)| arg.map(str::to_owned)).collect()
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

impl Known<'_> {
    fn is(&self, name: &str) -> bool {
        let shell =
            self.kind == Kind::Execute && matches!(name, "ShellTool" | "run_shell_command" | "bash" | "Bash");
        let bare = name.trim_start_matches('_');
        shell || self.name == name || self.aliases.contains(&bare)
    }
}

/// `Tool(arg)` as its two parts.
fn split(entry: &str) -> (&str, Option<&str>) {
    match entry.trim().split_once('(') {
        Some((name, rest)) => (name.trim(), Some(rest.strip_suffix(')').unwrap_or(rest).trim())),
        None => (entry.trim(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL: Known<'static> = Known { name: "bash", aliases: &[], kind: Kind::Execute };
    const GREP: Known<'static> =
        Known { name: "search_file_content", aliases: &["grep_search", "GrepTool"], kind: Kind::Search };

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
        ] {
            let refused = selection(core, exclude).refuses(&SHELL, command);
            assert_eq!(refused.is_none(), allowed, "{core:?} {exclude:?} {command}: {refused:?}");
        }
    }
}
