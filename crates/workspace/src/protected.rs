//! Names that no file tool writes, whatever the mode: what they hold is run by git, a shell, an editor or Lathe itself the
//! next time somebody looks at the folder.
//!
//! Names are compared as the most forgiving file system would: without case, without code points that are not drawn, with
//! wide and styled letters as plain ones, without trailing dots and blanks, and by their short 8.3 form. The list is one
//! for all systems, because a folder made here may be mounted there. Reading is not restricted.

use std::path::{Component, Path};

/// Protected with everything below, wherever they stand.
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
    // Editors, debuggers, terminals and task runners run what these say.
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
    // Shells of languages run these when they start.
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

/// Protected are all names that begin like this.
const BEGINNINGS: &[&str] = &[".aider", ".clinerules", ".roorules", ".windsurfrules"];

/// Protected are all names that begin and end like this: `mise.production.toml`.
const AROUND: &[(&str, &str)] = &[("mise.", ".toml"), (".mise.", ".toml")];

/// Protected are all names that end like this: editors run the tasks and configurations in them.
const ENDINGS: &[&str] = &[".code-workspace", ".run.xml", ".sublime-project", ".sublime-workspace"];

/// Protected in this folder only; the rest of the folder is ordinary project configuration.
pub(crate) const PAIRS: &[(&str, &str)] = &[
    (".vscode", "settings.json"),
    (".vscode", "tasks.json"),
    (".vscode", "launch.json"),
    (".vscode", "mcp.json"),
    (".idea", "workspace.xml"),
    (".idea", "runconfigurations"),
    (".hg", "hgrc"),
    (".hg", "hgrc-not-shared"),
    // Its `config.toml` names programs, and the rest is no one's to write.
    (".jj", "repo"),
    (".config", "fish"),
    (".config", "nushell"),
    (".config", "mise"),
    (".config", "mise.toml"),
    (".config", "mise.local.toml"),
    ("mise", "config.toml"),
    ("mise", "config.local.toml"),
];

/// Whether a path, by its spelling alone, names something that no file tool may write. `..` takes the name before it away;
/// who knows where links lead asks again with the resolved path.
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

/// Whether a path below a real root names something that no file tool may write, by its whole real path: a root that is
/// `.git/hooks`, or lies in it, is no way around the name. Folders above a repository's top do not count, because a work tree
/// of its own in `.claude/worktrees` is ordinary ground; where no repository stands between, they all do.
pub fn is_protected_in(root: &Path, below: &Path) -> bool {
    is_protected(below) || {
        let plain = below.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        plain && is_protected(&root.join(below)) && is_protected(&from_top(root).join(below))
    }
}

/// Whether a real folder, or one on the way to it from the top of its repository on, is one in which names are protected. No
/// repository is made there: its top would make the names free. Nor is one in a folder that is laid out like a repository.
pub fn is_protected_ground(folder: &Path) -> bool {
    let below = from_top(folder);
    let within = below.components().count() + usize::from(below != folder);
    if folder.ancestors().take(within).any(is_laid_out) {
        return true;
    }
    let holds = |name: &str| PAIRS.iter().any(|(holding, _)| is_same(name, holding));
    is_protected(below) || below.iter().any(|name| holds(&folded(&name.to_string_lossy())))
}

/// A real folder from the top of the repository on that it lies in, or its whole path where it lies in none. Nobody works in a
/// `.git`, nor in git's own parts of a bare repository, so what looks like a repository in there is none.
pub(crate) fn from_top(folder: &Path) -> &Path {
    tops(folder).next().and_then(|top| folder.strip_prefix(top).ok()).unwrap_or(folder)
}

/// The tops of the repositories that a real folder lies in, the nearest first.
pub(crate) fn tops(folder: &Path) -> impl Iterator<Item = &Path> {
    let in_git = |above: &Path| above.iter().any(|name| is_same(&folded(&name.to_string_lossy()), ".git"));
    folder.ancestors().filter(move |above| is_top(above) && !in_git(above) && !is_in_parts(above))
}

/// Names in a folder that make it a repository, steer one, or hold what is its own.
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

/// Tells whether a name in lower case is one by which git works in a repository.
pub(crate) fn steers(name: &str) -> bool {
    STEERING.contains(&name)
}

/// Tells whether a folder lies in git's own part of a folder that is laid out like a repository, as in the `hooks` of a bare one.
fn is_in_parts(folder: &Path) -> bool {
    folder.ancestors().any(|part| {
        let is_own = part.file_name().is_some_and(|name| steers(&name.to_string_lossy().to_lowercase()));
        is_own && part.parent().is_some_and(is_laid_out)
    })
}

/// Tells whether git takes a folder for a repository by what is in it.
fn is_laid_out(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

/// A folder with a `.git` that git would take: a folder with a `HEAD`, or the file that leads to one.
fn is_top(folder: &Path) -> bool {
    let git = folder.join(".git");
    match git.symlink_metadata() {
        Ok(found) if found.is_dir() => git.join("HEAD").symlink_metadata().is_ok(),
        Ok(found) => found.is_file(),
        Err(_) => false,
    }
}

/// The name as a file system that ignores most differences sees it.
pub(crate) fn folded(name: &str) -> String {
    let drawn = name.chars().filter(|c| !is_ignorable(*c)).map(plain);
    // The dot above is what lower-casing leaves of a Turkish capital I.
    let lower = drawn.flat_map(char::to_lowercase).filter(|c| *c != '\u{307}');
    let lower: String = lower.map(plain).collect();
    // NTFS has streams behind a colon, and drops dots and blanks at the end.
    let lower = lower.split(':').next().unwrap_or_default();
    lower.trim_end_matches(['.', ' ']).to_owned()
}

/// Names are folded already.
pub(crate) fn is_same(name: &str, protected: &str) -> bool {
    name == protected || is_short_form(name, protected)
}

/// `git~1` for `.git`: up to six letters without dots, a tilde and a number. Names are folded already.
fn is_short_form(name: &str, protected: &str) -> bool {
    // The hashed form git itself refuses.
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

/// Default-ignorable code points of Unicode, and what Apple's file system leaves out.
fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Letters that compatibility folding makes plain ones.
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
