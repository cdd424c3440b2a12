//! The program that a repository's own configuration makes git run when it only reads.
//!
//! The environment of the shell switches some of these off (`core.fsmonitor`, pagers, locks that run hooks). A driver
//! for diffs or a filter has a name of its own, and no setting can switch off all of them, so a line that would run
//! one needs an approval. The files are read here and not by git: the check must cost next to nothing, and must not
//! run anything itself. Only the repository's own configuration is checked: the content of the user's configuration
//! is the user's choice.

use std::path::Path;

use lathe_git::{ReachableRepositories, Setting, parse_settings};
use lathe_workspace::read_regular;

/// The program that git would run in a folder that reaches these repositories, as the configuration names it.
pub(crate) fn git_runs(reached: &ReachableRepositories) -> Option<String> {
    reached
        .settings
        .iter()
        .filter(|file| file.symlink_metadata().is_ok())
        // A file that cannot be read, or is not a regular file, may hold anything.
        .find_map(|file| {
            let Some(text) = regular_text(file) else { return Some(format!("{}", file.display())) };
            first_program_setting(&text).or_else(|| outside_worktree(&text, file.parent()?, reached))
        })
}

/// The setting by which files outside of a work tree are taken for files of it, if there is one.
fn outside_worktree(text: &str, git: &Path, reached: &ReachableRepositories) -> Option<String> {
    let settings = parse_settings(text).ok()?;
    let mut trees = settings.iter().filter(|setting| setting.is("core", "worktree"));
    let is_inside = |setting: &Setting| {
        let place = git.join(setting.value.as_deref().unwrap_or_default());
        let is_in = |place: &Path| reached.repositories.iter().any(|found| place.starts_with(&found.top));
        place.canonicalize().is_ok_and(|place| is_in(&place))
    };
    trees.any(|setting| !is_inside(setting)).then(|| "core.worktree".to_owned())
}

/// The text of a file. A pipe or a device in its place would block, so it is not read.
fn regular_text(path: &Path) -> Option<String> {
    const LONG: u64 = 4 << 20;
    read_regular(path, LONG).ok()?.map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// The first setting that names a program, such as `diff.x.textconv`. A configuration that cannot be read may name
/// one.
fn first_program_setting(text: &str) -> Option<String> {
    let Ok(settings) = parse_settings(text) else {
        return Some("a configuration that cannot be read".to_owned());
    };
    settings.iter().find(|setting| runs_program(setting)).map(|setting| {
        let about =
            setting.about.as_ref().map(|about| format!("{}.", about.to_lowercase())).unwrap_or_default();
        format!("{}.{about}{}", setting.section, setting.key)
    })
}

/// Tells whether git may run a program because of a setting, although it only reads.
fn runs_program(setting: &Setting) -> bool {
    let value = setting.value.as_deref().unwrap_or_default();
    match (setting.section.as_str(), setting.key.as_str()) {
        ("diff", "external" | "command" | "textconv") => true,
        ("filter", "clean" | "smudge" | "process") => true,
        ("gpg", "program") | ("log", "showsignature") => true,
        ("format", "pretty") | ("pretty", _) => {
            ["%G", "%-G", "%+G", "% G"].iter().any(|asks| value.contains(asks))
        }
        // A missing object would be fetched, and fetching runs a program.
        ("remote", "promisor" | "partialclonefilter" | "uploadpack" | "vcs") => true,
        ("extensions", "partialclone") => true,
        ("core", "alternaterefscommand") => true,
        // Newer versions have hooks in the configuration, and no setting switches all of them off.
        ("hook", _) => true,
        // A merge that is shown again is computed again.
        ("merge", "driver") | ("diff", "submodule") => true,
        // Included files are not inspected.
        ("include" | "includeif", "path") => true,
        // Git reads another file, and prints lines of it as errors where they make no sense.
        ("blame", "ignorerevsfile")
        | ("mailmap", "file")
        | ("diff", "orderfile")
        | ("core", "excludesfile" | "attributesfile") => {
            value.starts_with(['/', '~', ':', '%']) || value.split('/').any(|part| part == "..")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::first_program_setting;

    #[test]
    fn settings_that_name_a_program_are_found_however_they_are_written() {
        for (text, expected) in [
            ("[diff \"x\"]\n\ttextconv = evil\n", Some("diff.x.textconv")),
            ("[DIFF \"x\"] TextConv=evil", Some("diff.x.textconv")),
            ("[diff]\nexternal = evil", Some("diff.external")),
            ("[filter \"a]b\"]\nclean=x", Some("filter.a]b.clean")),
            ("[gpg \"ssh\"]\nprogram = x", Some("gpg.ssh.program")),
            ("[include]\npath = x", Some("include.path")),
            ("[blame]\nignoreRevsFile = /root/.ssh/id_rsa", Some("blame.ignorerevsfile")),
            ("[blame]\nignoreRevsFile = .git-blame-ignore-revs", None),
            ("[core]\nattributesFile = ../x", Some("core.attributesfile")),
            ("[includeIf \"gitdir:x\"]\npath = y", Some("includeif.gitdir:x.path")),
            ("[remote \"o\"]\nurl = x\npromisor = true", Some("remote.o.promisor")),
            ("[extensions]\npartialClone = o", Some("extensions.partialclone")),
            ("[core]\nbare = false\n[user]\nname = x\n[branch \"clean\"]\nremote = o\n", None),
            ("[core]\n# textconv = x\n[diff]\nalgorithm = patience", None),
            // Other spellings that git takes.
            ("\u{feff}[diff \"x\"]\ntextconv = evil", Some("diff.x.textconv")),
            ("[diff\t\"x\"]\ntextconv = evil", Some("diff.x.textconv")),
            ("[core] [diff \"x\"] textconv = evil", Some("diff.x.textconv")),
            ("[core][diff.x]textconv = evil", Some("diff.x.textconv")),
            ("[core]\nbare\n[diff\t \t\"x\"]textconv", Some("diff.x.textconv")),
            ("[hook \"x\"]\ncommand = evil", Some("hook.x.command")),
            ("[core]\nbare = false \\\n[diff]\nexternal = x", None),
            ("[core]\nx = \"[diff]\nexternal = x", Some("a configuration that cannot be read")),
            ("[diff \"x\"", Some("a configuration that cannot be read")),
            ("", None),
        ] {
            assert_eq!(first_program_setting(text).as_deref(), expected, "{text}");
        }
    }
}
