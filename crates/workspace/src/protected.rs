//! Names that no file tool writes, in any mode: git, a shell, an editor or Lathe itself runs their content the next
//! time the folder is used.
//!
//! Names are compared as the most lenient file system does: ignoring case, invisible code points, trailing dots and
//! blanks, with wide and styled letters as plain ones, and by their short 8.3 form. The list is the same for all
//! systems, because a folder made here may be mounted there. Reading is not restricted.

use std::path::{Component, Path};

/// Names that are protected with everything below them, in any folder.
pub(crate) const NAMES: &[&str] = &[
    ".git",
    ".lathe",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".kshrc",
    ".envrc",
    ".inputrc",
    ".exrc",
    ".vimrc",
    ".nvimrc",
    ".gvimrc",
    ".emacs",
    ".gitconfig",
    ".gitmodules",
    ".ssh",
    ".gnupg",
    ".netrc",
    ".mcp.json",
    // Editors, debuggers, terminals and task runners run what these name.
    ".vim",
    ".nvim.lua",
    ".lvimrc",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".zed",
    ".helix",
    ".gdbinit",
    ".lldbinit",
    ".pdbrc",
    ".tmux.conf",
    ".devcontainer",
    ".devcontainer.json",
    ".husky",
    ".mise",
    ".mise.toml",
    ".mise.local.toml",
    "mise.toml",
    "mise.local.toml",
    ".direnvrc",
    ".autoenv.zsh",
    ".autoenv_leave.zsh",
    ".xonshrc",
    ".emacs.d",
    ".spacemacs",
    ".doom.d",
    ".nvim",
    ".local.vimrc",
    ".vimrc.local",
    ".kakrc",
    ".theia",
    ".vs",
    "tasks.vs.json",
    "launch.vs.json",
    ".fleet",
    ".nova",
    ".externaltoolbuilders",
    ".screenrc",
    ".wezterm.lua",
    // Interactive interpreters run these when they start.
    ".ghci",
    ".rprofile",
    ".renviron",
    ".irbrc",
    ".pryrc",
    ".iex.exs",
    ".ocamlinit",
    ".sbclrc",
    ".guile",
    ".pythonrc",
    ".pythonrc.py",
    ".psqlrc",
    ".sqliterc",
    // A repository of Sapling, whose configuration names programs.
    ".sl",
    // Other agents: their tools, hooks and permissions.
    ".claude",
    ".claude.json",
    ".codex",
    ".continue",
    ".cursor",
    ".gemini",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".windsurf",
    ".cursorrules",
    ".cline",
    ".roo",
    ".roomodes",
    ".kilocode",
    ".kilocodemodes",
    ".qwen",
    ".kiro",
    ".trae",
    ".amazonq",
    ".crush",
    ".crush.json",
    "crush.json",
    ".junie",
    ".augment",
    ".augment-guidelines",
    ".goose",
    ".goosehints",
    ".factory",
    ".amp",
    ".openhands",
    ".zencoder",
    ".tabnine",
    ".codeium",
    ".aiassistant",
    ".copilot",
];

/// Prefixes: all names that begin with one are protected.
const BEGINNINGS: &[&str] = &[".aider", ".clinerules", ".roorules", ".windsurfrules"];

/// Prefixes with suffixes: all names with both are protected, such as `mise.production.toml`.
const AROUND: &[(&str, &str)] = &[("mise.", ".toml"), (".mise.", ".toml")];

/// Suffixes: all names that end with one are protected, because editors run the tasks and configurations in them.
const ENDINGS: &[&str] = &[".code-workspace", ".run.xml", ".sublime-project", ".sublime-workspace"];

/// Names that are protected in this folder only; the rest of the folder is ordinary project configuration.
pub(crate) const PAIRS: &[(&str, &str)] = &[
    (".vscode", "settings.json"),
    (".vscode", "tasks.json"),
    (".vscode", "launch.json"),
    (".vscode", "mcp.json"),
    (".idea", "workspace.xml"),
    (".idea", "runconfigurations"),
    (".hg", "hgrc"),
    (".hg", "hgrc-not-shared"),
    // Its `config.toml` names programs, and the rest is not for tools to write.
    (".jj", "repo"),
    (".config", "fish"),
    (".config", "nushell"),
    (".config", "mise"),
    (".config", "mise.toml"),
    (".config", "mise.local.toml"),
    ("mise", "config.toml"),
    ("mise", "config.local.toml"),
];

/// Tells whether no file tool may write a path, by its spelling alone. `..` removes the name before it; a caller that
/// has resolved the links asks again with the real path.
pub fn is_protected(path: &Path) -> bool {
    let mut names: Vec<String> = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => names.extend(name.to_string_lossy().split('\\').map(folded)),
            Component::ParentDir => {
                names.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    let is_like = |name: &String| {
        BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
            || ENDINGS.iter().any(|ending| name.ends_with(ending))
            || AROUND.iter().any(|(begin, end)| name.starts_with(begin) && name.ends_with(end))
    };
    names.iter().any(|name| is_like(name) || NAMES.iter().any(|protected| is_same(name, protected)))
        || names.windows(2).any(|pair| {
            let [folder, name] = pair else { return false };
            PAIRS.iter().any(|(in_folder, protected)| is_same(folder, in_folder) && is_same(name, protected))
        })
}

/// Tells whether no file tool may write a path below a real root, by its whole real path: a root that is
/// `.git/hooks`, or lies in it, does not bypass the protection. Folders above the top of a repository do not count,
/// because a work tree of its own in `.claude/worktrees` is ordinary ground; if there is no repository in between,
/// they all count.
pub fn is_protected_in(root: &Path, below: &Path) -> bool {
    is_protected(below) || {
        let plain = below.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        plain && is_protected(&root.join(below)) && is_protected(&from_top(root).join(below))
    }
}

/// Tells whether names are protected in a real folder, or in one on the way to it from the top of its repository. No
/// repository is made there: its top would lift the protection. The same holds for a folder with the layout of a
/// repository.
pub fn is_protected_ground(folder: &Path) -> bool {
    let below = from_top(folder);
    let within = below.components().count() + usize::from(below != folder);
    if folder.ancestors().take(within).any(is_laid_out) {
        return true;
    }
    let holds = |name: &str| PAIRS.iter().any(|(holding, _)| is_same(name, holding));
    is_protected(below) || below.iter().any(|name| holds(&folded(&name.to_string_lossy())))
}

/// The path of a real folder from the top of its repository, or its whole path if it lies in none. Repositories in a
/// `.git`, or in git's own parts of a bare repository, do not count, because nobody works there.
pub(crate) fn from_top(folder: &Path) -> &Path {
    tops(folder).next().and_then(|top| folder.strip_prefix(top).ok()).unwrap_or(folder)
}

/// The tops of the repositories that a real folder lies in, the nearest first.
pub(crate) fn tops(folder: &Path) -> impl Iterator<Item = &Path> {
    let in_git = |above: &Path| above.iter().any(|name| is_same(&folded(&name.to_string_lossy()), ".git"));
    folder.ancestors().filter(move |above| is_top(above) && !in_git(above) && !is_in_parts(above))
}

/// Names in a folder that make it a repository, steer one, or are part of one.
const STEERING: &[&str] = &[
    "head",
    "objects",
    "refs",
    "config",
    "config.worktree",
    "hooks",
    "packed-refs",
    "commondir",
    "gitdir",
    "info",
    "branches",
    "index",
    "lfs",
    "logs",
    "modules",
    "shallow",
    "worktrees",
];

/// Tells whether a name in lower case is one that git uses in a repository.
pub(crate) fn steers(name: &str) -> bool {
    STEERING.contains(&name)
}

/// Tells whether a folder lies in git's own part of a folder with the layout of a repository, such as the `hooks` of
/// a bare one.
fn is_in_parts(folder: &Path) -> bool {
    folder.ancestors().any(|part| {
        let is_own = part.file_name().is_some_and(|name| steers(&name.to_string_lossy().to_lowercase()));
        is_own && part.parent().is_some_and(is_laid_out)
    })
}

/// Tells whether git accepts a folder as a repository by its content.
fn is_laid_out(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

/// Tells whether a folder has a `.git` that git would accept: a folder with a `HEAD`, or a file that leads to one.
fn is_top(folder: &Path) -> bool {
    let git = folder.join(".git");
    match git.symlink_metadata() {
        Ok(found) if found.is_dir() => git.join("HEAD").symlink_metadata().is_ok(),
        Ok(found) => found.is_file(),
        Err(_) => false,
    }
}

/// The name as the most lenient file system compares it.
pub(crate) fn folded(name: &str) -> String {
    let drawn = name.chars().filter(|c| !is_ignorable(*c)).map(plain);
    // The dot above is left when a Turkish capital I is lower-cased.
    let lower = drawn.flat_map(char::to_lowercase).filter(|c| *c != '\u{307}');
    let lower: String = lower.map(plain).collect();
    // NTFS has streams after a colon, and drops dots and blanks at the end.
    let lower = lower.split(':').next().unwrap_or_default();
    lower.trim_end_matches(['.', ' ']).to_owned()
}

/// Compares two names that are folded already.
pub(crate) fn is_same(name: &str, protected: &str) -> bool {
    name == protected || is_short_form(name, protected)
}

/// Recognises `git~1` for `.git`: up to six letters without dots, a tilde and a number. Names are folded already.
fn is_short_form(name: &str, protected: &str) -> bool {
    // The hashed form that git itself refuses.
    if protected == ".gitmodules" && name.starts_with("gi7eba~") {
        return true;
    }
    let Some((stem, number)) = name.split_once('~') else {
        return false;
    };
    let (number, ending) = number.split_once('.').unwrap_or((number, ""));
    let (long, long_ending) = match protected.trim_start_matches('.').rsplit_once('.') {
        Some(parts) => parts,
        None => (protected.trim_start_matches('.'), ""),
    };
    !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && stem == long.get(..6).unwrap_or(long)
        && ending == long_ending.get(..3).unwrap_or(long_ending)
}

/// Default-ignorable code points of Unicode, and those that Apple's file system ignores.
fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// The plain form of letters, as in compatibility folding.
fn plain(c: char) -> char {
    let ascii = |offset: u32| char::from_u32(offset).unwrap_or(c);
    let code = u32::from(c);
    match c {
        // Full-width forms.
        '\u{ff01}'..='\u{ff5e}' => ascii(code - 0xff01 + 0x21),
        '\u{3000}' | '\u{a0}' | '\u{2000}'..='\u{200a}' => ' ',
        '\u{2024}' | '\u{fe52}' => '.',
        // Mathematical letters: thirteen alphabets of capitals and small ones.
        '\u{1d400}'..='\u{1d6a3}' => {
            let letter = (code - 0x1d400) % 52;
            ascii(if letter < 26 { 0x41 + letter } else { 0x61 + letter - 26 })
        }
        '\u{24b6}'..='\u{24cf}' => ascii(code - 0x24b6 + 0x41),
        '\u{24d0}'..='\u{24e9}' => ascii(code - 0x24d0 + 0x61),
        '\u{210a}' => 'g',
        '\u{210e}' => 'h',
        '\u{2139}' | '\u{131}' | '\u{1d6a4}' | '\u{2071}' | '\u{2170}' | '\u{2160}' | '\u{2148}' => 'i',
        '\u{2110}' | '\u{2111}' => 'i',
        '\u{17f}' => 's',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_names_are_known_by_every_spelling() {
        for path in [
            ".git",
            ".git/config",
            "/w/sub/.git/hooks/pre-commit",
            ".GIT/config",
            ".Git",
            "a/../.git/x",
            "./.git//x",
            ".g\u{200c}it/config",
            "\u{feff}.git/config",
            ".gi\u{2060}t",
            ".g\u{130}t/config",
            ".g\u{131}t/config",
            "\u{ff0e}\u{ff47}\u{ff49}\u{ff54}/config",
            ".\u{1d420}\u{1d422}\u{1d42d}/config",
            "\u{2024}git",
            ".git./config",
            ".git /config",
            ".git . ./config",
            ".git\u{3000}/config",
            "git~1/config",
            "GIT~1",
            "GIT~2/hooks/x",
            ".git::$INDEX_ALLOCATION/config",
            "a\\.git\\config",
            ".gitmodules",
            "GITMOD~1",
            "gi7eba~1",
            ".bashrc",
            "sub/.BASHRC",
            "bashrc~1",
            ".ba\u{17f}hrc",
            ".lathe/config.toml",
            ".ssh/authorized_keys",
            ".mcp.json",
            "MCP~1.JSO",
            ".vscode/settings.json",
            ".VSCode/Tasks.JSON",
            "x/.vscode/launch.json",
            ".idea/workspace.xml",
            ".idea/runConfigurations/x.xml",
            ".claude/settings.json",
            "sub/.Claude/hooks/x",
            ".cursor/mcp.json",
            ".devcontainer/devcontainer.json",
            ".devcontainer.json",
            ".husky/pre-commit",
            ".gdbinit",
            ".lldbinit",
            ".nvim.lua",
            ".vim/plugin/x.vim",
            ".dir-locals.el",
            ".mise.toml",
            "mise.toml",
            ".mise/tasks/x",
            ".tmux.conf",
            ".zed/tasks.json",
            ".helix/languages.toml",
            ".gemini/settings.json",
            ".codex/config.toml",
            ".opencode/x",
            ".aider.conf.yml",
            ".continue/config.yaml",
            ".windsurf/x",
            ".vscode/mcp.json",
            "CLAUDE~1/settings.json",
            ".bash_aliases",
            ".login",
            ".logout",
            ".pdbrc",
            ".hg/hgrc",
            ".HG/hgrc-not-shared",
            ".jj/repo/config.toml",
            ".run/x.run.xml",
            "sub/Tests.Run.XML",
            "x.code-workspace",
            "sub/X.Code-Workspace",
            "opencode.json",
            "sub/opencode.jsonc",
            ".qwen/settings.json",
            ".kiro/hooks/x.json",
            ".roo/mcp.json",
            ".roorules-code",
            ".crush.json",
            "sub/crush.json",
            ".amazonq/mcp.json",
            ".trae/mcp.json",
            ".clinerules",
            ".clinerules/x.md",
            ".cursorrules",
            ".windsurfrules",
            ".theia/tasks.json",
            ".vs/tasks.vs.json",
            "tasks.vs.json",
            ".config/mise/config.toml",
            "mise/config.toml",
            "mise.production.toml",
            ".mise.ci.local.toml",
            ".ghci",
            ".Rprofile",
            ".autoenv.zsh",
            ".config/fish/config.fish",
            ".sl/config",
            ".junie/guidelines.md",
            ".augment/x",
            ".goosehints",
            ".irbrc",
            ".psqlrc",
            "x.sublime-project",
            ".fleet/run.json",
            ".emacs.d/init.el",
        ] {
            assert!(is_protected(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn what_only_looks_alike_is_free() {
        for path in [
            ".gitignore",
            ".gitattributes",
            ".gitkeep",
            ".github/workflows/ci.yml",
            "git/x",
            "git",
            "dotgit",
            ".gitx",
            "x.git/config",
            ".git/../a",
            ".vscode/extensions.json",
            ".vscode",
            "settings.json",
            "claude/settings.json",
            "CLAUDE.md",
            "devcontainer.json",
            "vim/x",
            "aider.py",
            ".cursorignore",
            "vscode/settings.json",
            ".vscode/x/settings.json",
            ".idea/vcs.xml",
            ".npmrc",
            ".lathe-x.tmp",
            ".lathe2/x",
            "GITIGN~1",
            "git~",
            "git~1~",
            "profile",
            "bashrc",
            "ssh/x",
            "..git",
            ".hg/store/x",
            "hgrc",
            ".hgignore",
            ".jj/working_copy/x",
            ".run/notes.txt",
            "run.xml",
            "x.code-workspace.md",
            "login",
            "opencode.ts",
            "mise/x.toml",
            "mise.md",
            ".config/nextest.toml",
            ".config/x/fish",
            "crush.ts",
            "roo/x",
            "vs/x",
            ".vscodeignore",
            ".slx",
            ".tool-versions",
            ".cargo/config.toml",
            "~",
            "",
            "/",
        ] {
            assert!(!is_protected(Path::new(path)), "{path}");
        }
    }
}
