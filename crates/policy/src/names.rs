//! The names of tools, as rules may give them.
//!
//! A tool has one canonical name and a name of its own in each toolset, further names for older versions of it, and
//! one as a command of the session's shell. A rule that names any of them means the tool, whatever the model calls
//! it; a denial that depended on the toolset of a session would fail open in all the others. The table is here, and
//! not with the tools, because no rule file may be read without it: a misspelt name would deny nothing and raise no
//! error. A test of the tools compares it with every toolset and every command. A tool that has only its canonical
//! name needs no row: the names of all tools come in by value ([`KnownNames`]), and no rule can name a tool that is
//! missing there.

use std::collections::{BTreeMap, BTreeSet};

use lathe_bash::Word;
use lathe_protocol::{ToolKind, nearest};

/// The canonical name of the shell.
pub(crate) const SHELL: &str = "bash";

/// The canonical name of every tool that is not Lathe's own.
pub(crate) const OUTSIDE: &str = "outside";

/// Canonical names, each with all other names of the tool.
const TOOLS: &[(&str, &[&str])] = &[
    (SHELL, &["Bash", "run_shell_command", "ShellTool"]),
    ("view", &["read", "read_file", "ReadFileTool", "str_replace_based_edit_tool"]),
    ("list", &["list_directory", "LSTool", "ls"]),
    ("search", &["search_file_content", "grep_search", "GrepTool", "RipGrepTool"]),
    ("glob", &["GlobTool"]),
    ("many", &["read_many_files", "ReadManyFilesTool"]),
    ("edit", &["replace", "EditTool", "SmartEditTool", "str_replace_based_edit_tool"]),
    ("write", &["write_file", "WriteFileTool", "str_replace_based_edit_tool"]),
    ("patch", &["apply_patch"]),
    ("data", &["json_edit", "json_edit_tool"]),
    ("check", &["str_replace_based_edit_tool"]),
    ("think", &["sequentialthinking"]),
    ("todo", &["write_todos", "WriteTodosTool", "TodoWrite"]),
    ("memory", &["remember", "save_memory", "MemoryTool"]),
    ("ask", &["ask_user", "AskUserTool"]),
    ("done", &["task_done"]),
    ("review", &["quality_review", "quality_review_tool"]),
    ("online", &["online_doc_tool"]),
    (OUTSIDE, &["call_tool"]),
    // Commands that ask the shell about itself.
    ("commands", &["jobs", "field"]),
];

/// Prefixes of names that come and go with servers, fields, skills and discovered tools.
const PASSING: [&str; 6] = ["mcp_", "mcp:", "field:", "skill:", "skill_", "discovered_tool_"];

/// The names that rules may give in addition to those of the table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownNames {
    /// Canonical names of built-in tools.
    tools: BTreeSet<String>,
    /// The domains that are configured now: the model calls their tools `DOMAIN_TOOL`.
    domains: BTreeSet<String>,
}

impl KnownNames {
    pub fn new(
        tools: impl IntoIterator<Item = &'static str>,
        domains: impl IntoIterator<Item = String>,
    ) -> Self {
        Self { tools: tools.into_iter().map(str::to_owned).collect(), domains: domains.into_iter().collect() }
    }

    /// Every name of a built-in tool.
    fn built_in(&self) -> impl Iterator<Item = &str> {
        let of_several = all_tool_names().map(|name: &'static str| -> &str { name });
        of_several.chain(self.tools.iter().map(String::as_str))
    }

    /// The canonical names.
    pub(crate) fn canonical(&self) -> impl Iterator<Item = &str> {
        TOOLS.iter().map(|(name, _)| *name).chain(self.tools.iter().map(String::as_str))
    }
}

/// Every name of a built-in tool that has several, the canonical one first.
pub fn tool_names(canonical: &str) -> impl Iterator<Item = &'static str> {
    let found = TOOLS.iter().find(|(name, _)| *name == canonical);
    found.into_iter().flat_map(|(name, others)| std::iter::once(*name).chain(others.iter().copied()))
}

/// Every name of the tools that have several.
pub fn all_tool_names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().flat_map(|&(name, others)| std::iter::once(name).chain(others.iter().copied()))
}

/// The kinds of names in a rule file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolNameKind {
    /// A built-in tool.
    BuiltIn,
    /// A pattern, or a name of something that comes and goes.
    Passing,
    Unknown,
}

/// Classifies a name in a rule file.
pub(crate) fn classify(name: &str, names: &KnownNames) -> ToolNameKind {
    if names.built_in().any(|known| known.eq_ignore_ascii_case(name)) {
        return ToolNameKind::BuiltIn;
    }
    let of_field = |field: &String| {
        let field = field.replace('.', "_");
        let (head, rest) = (name.get(..field.len()), name.get(field.len()..));
        head.is_some_and(|head| head.eq_ignore_ascii_case(&field))
            && rest.is_some_and(|rest| rest.len() > 1 && rest.starts_with('_'))
    };
    let begins = |begin: &str| {
        let head = name.get(..begin.len()).filter(|_| name.len() > begin.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(begin))
    };
    let parted = !name.starts_with("__") && !name.ends_with("__") && name.contains("__");
    if name.contains(['*', '?']) || PASSING.iter().any(|begin| begins(begin)) || parted {
        return ToolNameKind::Passing;
    }
    if names.domains.iter().any(of_field) { ToolNameKind::Passing } else { ToolNameKind::Unknown }
}

/// Says why a name in a list of tools means nothing, as for a name in a rule.
pub fn check_tool_name(name: &str, names: &KnownNames) -> Result<(), String> {
    match classify(name, names) {
        ToolNameKind::BuiltIn | ToolNameKind::Passing => Ok(()),
        ToolNameKind::Unknown => Err(unknown_name(name, names)),
    }
}

/// Tells whether a name belongs to something that comes and goes, so that it may match nothing now.
pub fn is_passing_name(name: &str, names: &KnownNames) -> bool {
    name != "*" && classify(name, names) == ToolNameKind::Passing
}

/// Says why a name in a rule file is refused.
pub(crate) fn unknown_name(name: &str, names: &KnownNames) -> String {
    if name.trim().is_empty() {
        return "the name of a tool is empty".to_owned();
    }
    let near = nearest(name, names.built_in());
    let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    format!(
        "there is no tool `{name}`{near} (`lathe tools` lists them; a tool of a field is `field:DOMAIN:TOOL`, of a server `mcp:SERVER:TOOL`)"
    )
}

/// Says why a word that should be a kind of tool is refused.
pub(crate) fn unknown_kind(word: &str, kinds: &[ToolKind]) -> String {
    let near = nearest(word, kinds.iter().map(|kind| kind.as_str()));
    let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    format!("there is no kind `{word}`{near}")
}

/// The words of a command as denials name them: `git-push` is `git push`.
pub(crate) fn plain_words(normal: &[String]) -> Vec<String> {
    let sub = normal.first().and_then(|program| program.strip_prefix("git-")).filter(|sub| !sub.is_empty());
    match sub {
        Some(sub) => {
            let rest = normal.iter().skip(1).cloned();
            ["git", sub].into_iter().map(str::to_owned).chain(rest).collect()
        }
        None => normal.to_vec(),
    }
}

/// Subcommands of git that do what others do.
const SAME_OF_GIT: [(&str, &[&str]); 4] = [
    ("push", &["send-pack", "http-push", "subtree"]),
    ("fetch", &["fetch-pack", "http-fetch", "pull"]),
    ("add", &["stage", "update-index"]),
    ("commit", &["commit-tree"]),
];

/// Tells whether a command, whose words are known only in part, may be a denied one: by a word that is known only
/// when the line runs, by an alias of git's, or by another subcommand that does the same.
///
/// `asks` says that a word of the first sort is asked about anyway (R1, R8), which is enough.
pub(crate) fn may_be_denied(
    denied: &[String],
    words: &[String],
    assigned: &BTreeMap<String, Vec<Word>>,
    asks: bool,
) -> bool {
    if let ([git, sub, ..], [program, given, ..]) = (denied, words)
        && git == "git"
        && program == "git"
    {
        let same = SAME_OF_GIT.iter().any(|(name, same)| name == sub && same.contains(&given.as_str()));
        if same || (!given.starts_with('-') && !crate::git::is_subcommand(given)) {
            return true;
        }
    }
    if asks {
        return false;
    }
    let unknown = |word: &String| {
        let name = word.strip_prefix('$').filter(|_| !word.contains('('));
        word.contains('$') && !name.is_some_and(|name| assigned.contains_key(name))
    };
    let fits = denied.iter().zip(words).all(|(denied, word)| denied == word || unknown(word));
    // One word may become several.
    fits && match words.len() {
        0 => false,
        given if given < denied.len() => words.last().is_some_and(unknown),
        _ => true,
    }
}

/// Tells whether the words of a command begin with those of a rule. Its program is compared without the folder: `./x`
/// is also run by its full path.
pub(crate) fn begins_with(normal: &[String], prefix: &[String]) -> bool {
    match (normal.split_first(), prefix.split_first()) {
        (Some((program, words)), Some((wanted, rest))) => {
            (program == wanted || program == crate::possible_commands::base(wanted))
                && words.starts_with(rest)
        }
        (_, None) => true,
        (None, Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let names = KnownNames::new(["code"], ["units".to_owned(), "a.b".to_owned()]);
        for (name, meant) in [
            ("bash", ToolNameKind::BuiltIn),
            ("Code", ToolNameKind::BuiltIn),
            ("BASH", ToolNameKind::BuiltIn),
            ("run_shell_command", ToolNameKind::BuiltIn),
            ("outside", ToolNameKind::BuiltIn),
            ("*", ToolNameKind::Passing),
            ("write*", ToolNameKind::Passing),
            ("units_length", ToolNameKind::Passing),
            ("a_b_c", ToolNameKind::Passing),
            ("field:units:length", ToolNameKind::Passing),
            ("Field:UNITS:Length", ToolNameKind::Passing),
            ("Units_Length", ToolNameKind::Passing),
            ("MCP:git:push", ToolNameKind::Passing),
            ("mcp__git__push", ToolNameKind::Passing),
            ("git__push", ToolNameKind::Passing),
            ("discovered_tool_add", ToolNameKind::Passing),
            ("skill:pdf", ToolNameKind::Passing),
            ("", ToolNameKind::Unknown),
            (" ", ToolNameKind::Unknown),
            ("units_", ToolNameKind::Unknown),
            ("unit_length", ToolNameKind::Unknown),
            ("write_fil", ToolNameKind::Unknown),
            ("discovered_tool_", ToolNameKind::Unknown),
            ("__", ToolNameKind::Unknown),
        ] {
            assert_eq!(classify(name, &names), meant, "{name:?}");
        }
        assert!(unknown_name("write_fil", &names).contains("did you mean `write_file`?"));
    }
}
