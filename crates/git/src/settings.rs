//! The settings that git sees: an allow-list of names, each with its allowed values.
//!
//! A name outside of the table never reaches git, so a program that a new version of git can start is unreachable
//! from the day of its release.

use std::path::Path;

use crate::GitError;
use crate::config::Setting;

/// The hash that names the objects of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectFormat {
    Sha1,
    Sha256,
}

impl ObjectFormat {
    /// The tree without files, which git knows without storing it.
    pub(crate) fn empty_tree(self) -> &'static str {
        match self {
            Self::Sha1 => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            Self::Sha256 => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
        }
    }

    /// The number of bytes of an object's name.
    pub(crate) fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

/// The allowed values of a setting.
#[derive(Debug, Clone, Copy)]
enum ValueKind {
    Bool,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A boolean, or one of these words.
    BoolOr(&'static [&'static str]),
    /// A boolean, a word for a group of users, or an octal mode.
    Sharing,
    /// Letters, digits and a few signs: the name of an encoding.
    Encoding,
    /// One line of text that git only shows.
    Line,
    /// The name of a remote or of a reference: not an option, not an address.
    Name,
    /// A refspec.
    Refspec,
}

/// Settings without a name between section and key.
const PLAIN: [(&str, &str, ValueKind); 19] = [
    ("core", "repositoryformatversion", ValueKind::Word(&["0", "1"])),
    ("core", "filemode", ValueKind::Bool),
    ("core", "symlinks", ValueKind::Bool),
    ("core", "ignorecase", ValueKind::Bool),
    ("core", "precomposeunicode", ValueKind::Bool),
    ("core", "autocrlf", ValueKind::BoolOr(&["input"])),
    ("core", "eol", ValueKind::Word(&["lf", "crlf", "native"])),
    ("core", "safecrlf", ValueKind::BoolOr(&["warn"])),
    ("core", "trustctime", ValueKind::Bool),
    ("core", "checkstat", ValueKind::Word(&["default", "minimal"])),
    ("core", "logallrefupdates", ValueKind::BoolOr(&["always"])),
    ("core", "sharedrepository", ValueKind::Sharing),
    ("core", "sparsecheckout", ValueKind::Bool),
    ("core", "sparsecheckoutcone", ValueKind::Bool),
    ("i18n", "commitencoding", ValueKind::Encoding),
    ("user", "name", ValueKind::Line),
    ("user", "email", ValueKind::Line),
    ("extensions", "objectformat", ValueKind::Word(&["sha1", "sha256"])),
    ("extensions", "refstorage", ValueKind::Word(&["files", "reftable"])),
];

/// Settings of a branch or a remote, for `@{upstream}`. The address of a remote is not included.
const NAMED: [(&str, &str, ValueKind); 3] = [
    ("branch", "remote", ValueKind::Name),
    ("branch", "merge", ValueKind::Name),
    ("remote", "fetch", ValueKind::Refspec),
];

/// Extensions that have no effect for us if they are left out. All others are refused: an extension demands that a
/// program that does not know it leaves the repository alone.
const LEFT_OUT: [&str; 6] =
    ["noop", "noop-v1", "partialclone", "preciousobjects", "relativeworktrees", "worktreeconfig"];

/// Settings of every call, which override the defaults of later versions of git.
pub(crate) const FIXED: [(&str, &str); 29] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.askPass", "false"),
    ("core.sshCommand", "false"),
    ("core.gitProxy", "false"),
    ("core.untrackedCache", "false"),
    ("core.quotePath", "false"),
    // Several threads would begin at offsets from a list in the file, past the checked paths.
    ("index.threads", "1"),
    ("sequence.editor", "false"),
    ("credential.helper", ""),
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("protocol.allow", "never"),
    ("safe.bareRepository", "explicit"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("gpg.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.x509.program", "false"),
    ("log.showSignature", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("rerere.enabled", "false"),
    ("init.templateDir", ""),
    ("advice.addEmbeddedRepo", "false"),
];

/// The part of a repository's settings that git is given.
#[derive(Debug)]
pub(crate) struct Allowed {
    /// The content of a configuration file.
    pub(crate) text: String,
    pub(crate) format: ObjectFormat,
}

/// Selects the allowed settings and writes them as a configuration file. `file` is named in errors.
pub(crate) fn allowed(settings: &[Setting], file: &Path) -> Result<Allowed, GitError> {
    let mut text = String::from("[core]\n\tbare = false\n");
    let mut format = ObjectFormat::Sha1;
    for setting in settings {
        let wrong = |why: String| GitError::Config { file: file.to_owned(), line: setting.line, why };
        if setting.section == "extensions" && LEFT_OUT.contains(&setting.key.as_str()) {
            continue;
        }
        let table: &[(&str, &str, ValueKind)] = if setting.about.is_some() { &NAMED } else { &PLAIN };
        let row = table.iter().find(|(section, key, _)| setting.section == *section && setting.key == *key);
        let Some((_, _, kind)) = row else {
            if setting.section == "extensions" {
                return Err(wrong(format!("the extension `{}` is not known to Lathe", setting.key)));
            }
            continue;
        };
        let about = setting.about.as_deref();
        // The name of a branch is written between quotes; one that is empty or has control characters is left out.
        if about.is_some_and(|about| about.is_empty() || about.contains(char::is_control)) {
            continue;
        }
        let Some(value) = checked(*kind, setting.value.as_deref()) else {
            match kind {
                // These are only shown or looked up: the repository can be used without them.
                ValueKind::Line | ValueKind::Name | ValueKind::Refspec | ValueKind::Encoding => continue,
                ValueKind::Bool | ValueKind::Word(_) | ValueKind::BoolOr(_) | ValueKind::Sharing => {
                    return Err(wrong(format!(
                        "the value of `{}.{}` is wrong",
                        setting.section, setting.key
                    )));
                }
            }
        };
        if setting.key == "objectformat" {
            format = if value == "sha256" { ObjectFormat::Sha256 } else { ObjectFormat::Sha1 };
        }
        let about = about.map(|about| format!(" {}", quoted(about))).unwrap_or_default();
        text.push_str(&format!("[{}{about}]\n\t{} = {}\n", setting.section, setting.key, quoted(&value)));
    }
    Ok(Allowed { text, format })
}

/// A value in the form for git, if it is of this kind.
fn checked(kind: ValueKind, value: Option<&str>) -> Option<String> {
    let plain = |value: &str, more: &str| {
        let is_fine =
            |c: char| (!c.is_ascii() && !c.is_control()) || c.is_ascii_alphanumeric() || more.contains(c);
        !value.is_empty() && value.len() <= 1024 && !value.starts_with('-') && value.chars().all(is_fine)
    };
    match (kind, value) {
        (ValueKind::Bool | ValueKind::BoolOr(_) | ValueKind::Sharing, None) => Some("true".to_owned()),
        (_, None) => None,
        (ValueKind::Bool, Some(value)) => boolean(value),
        (ValueKind::Word(words), Some(value)) => {
            words.iter().find(|word| value.eq_ignore_ascii_case(word)).map(|word| (*word).to_owned())
        }
        (ValueKind::BoolOr(words), Some(value)) => {
            boolean(value).or_else(|| checked(ValueKind::Word(words), Some(value)))
        }
        (ValueKind::Sharing, Some(value)) => {
            let octal =
                value.len() <= 5 && !value.is_empty() && value.bytes().all(|b| (b'0'..=b'7').contains(&b));
            let words = ValueKind::BoolOr(&["umask", "group", "all", "world", "everybody"]);
            if octal { Some(value.to_owned()) } else { checked(words, Some(value)) }
        }
        (ValueKind::Encoding, Some(value)) => plain(value, "._:-").then(|| value.to_owned()),
        (ValueKind::Line, Some(value)) => {
            (value.len() <= 1024 && !value.contains(char::is_control)).then(|| value.to_owned())
        }
        (ValueKind::Name, Some(value)) => plain(value, "._/@+#-").then(|| value.to_owned()),
        (ValueKind::Refspec, Some(value)) => {
            (plain(value, "._/@+#-*:^") && !value.contains("::")).then(|| value.to_owned())
        }
    }
}

fn boolean(value: &str) -> Option<String> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some("true".to_owned()),
        "false" | "no" | "off" | "" => Some("false".to_owned()),
        number => number.parse::<i32>().ok().map(|number| (number != 0).to_string()),
    }
}

fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse_settings as parse;

    fn given(text: &str) -> Result<String, String> {
        let settings = parse(text).unwrap();
        let allowed = allowed(&settings, Path::new("config")).map_err(|error| error.to_string())?;
        // The written text must parse to the same settings.
        let again = parse(&allowed.text).unwrap();
        let show = |one: &Setting| {
            let about = one.about.as_ref().map(|about| format!("{about}.")).unwrap_or_default();
            format!("{}.{about}{}={} ", one.section, one.key, one.value.as_deref().unwrap_or("(alone)"))
        };
        Ok(again.iter().skip(1).map(show).collect())
    }

    #[test]
    fn only_what_is_in_the_table_gets_through() {
        for (text, expected) in [
            (
                "[core]\nrepositoryformatversion = 0\nfilemode = yes\nbare = true\nworktree = /etc",
                "core.repositoryformatversion=0 core.filemode=true ",
            ),
            (
                "[core]\nfsmonitor = x\nhooksPath = y\n[alias]\nstatus = !x\n[hook \"a\"]\ncommand = x\nevent = pre-commit",
                "",
            ),
            (
                "[diff \"a=b\"]\ncommand = x\n[filter \"a=b\"]\nclean = x\n[include]\npath = x\n[newer \"x\"]\nprogram = y",
                "",
            ),
            ("[core \"autocrlf\"]\nautocrlf = true\n[core]\nautocrlf = Input", "core.autocrlf=input "),
            ("[user]\nname = A \\\"B\\\" C\nemail = \"a\\nb\"", "user.name=A \"B\" C "),
            (
                "[branch \"a \\\"b]\"]\nremote = o\nmerge = refs/heads/x\n",
                "branch.a \"b].remote=o branch.a \"b].merge=refs/heads/x ",
            ),
            (
                "[branch \"b\"]\nremote = ext::sh -c x\n[remote \"o\"]\nurl = ext::sh\nfetch = +refs/heads/*:refs/remotes/o/*\nuploadpack = x\nvcs = x",
                "remote.o.fetch=+refs/heads/*:refs/remotes/o/* ",
            ),
            (
                "[extensions]\npartialClone = o\nworktreeConfig\nobjectformat = SHA256",
                "extensions.objectformat=sha256 ",
            ),
            (
                "[core]\nsharedRepository = 0660\n[core]\nignorecase",
                "core.sharedrepository=0660 core.ignorecase=true ",
            ),
        ] {
            assert_eq!(given(text).unwrap(), expected, "{text}");
        }
        for (text, expected) in [
            ("[extensions]\nfuture = 1", "extension `future`"),
            ("[core]\nrepositoryformatversion = 7", "core.repositoryformatversion"),
            ("[core]\n\nautocrlf = maybe", "line 3"),
        ] {
            let error = given(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
