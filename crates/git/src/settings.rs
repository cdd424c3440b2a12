//! The settings that git sees: an allow-list of names, each with what its value may be.
//!
//! A name that is not in the table never gets through, so a program that a new version of git knows how to start is
//! unreachable from the day it is released.

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
    /// The tree without files, which git knows without having it.
    pub(crate) fn empty_tree(self) -> &'static str {
        match self {
            Self::Sha1 => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            Self::Sha256 => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
        }
    }

    /// Bytes of an object's name.
    pub(crate) fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

/// What a value may be.
#[derive(Debug, Clone, Copy)]
enum Kind {
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
    /// The name of a remote or of a reference: no option, no address.
    Name,
    /// A refspec.
    Refspec,
}

/// Settings without a name between section and key.
const PLAIN: [(&str, &str, Kind); 19] = [
    ("core", "repositoryformatversion", Kind::Word(&["0", "1"])),
    ("core", "filemode", Kind::Bool),
    ("core", "symlinks", Kind::Bool),
    ("core", "ignorecase", Kind::Bool),
    ("core", "precomposeunicode", Kind::Bool),
    ("core", "autocrlf", Kind::BoolOr(&["input"])),
    ("core", "eol", Kind::Word(&["lf", "crlf", "native"])),
    ("core", "safecrlf", Kind::BoolOr(&["warn"])),
    ("core", "trustctime", Kind::Bool),
    ("core", "checkstat", Kind::Word(&["default", "minimal"])),
    ("core", "logallrefupdates", Kind::BoolOr(&["always"])),
    ("core", "sharedrepository", Kind::Sharing),
    ("core", "sparsecheckout", Kind::Bool),
    ("core", "sparsecheckoutcone", Kind::Bool),
    ("i18n", "commitencoding", Kind::Encoding),
    ("user", "name", Kind::Line),
    ("user", "email", Kind::Line),
    ("extensions", "objectformat", Kind::Word(&["sha1", "sha256"])),
    ("extensions", "refstorage", Kind::Word(&["files", "reftable"])),
];

/// Settings of a branch or a remote, for `@{upstream}`. The address of a remote is not among them.
const NAMED: [(&str, &str, Kind); 3] =
    [("branch", "remote", Kind::Name), ("branch", "merge", Kind::Name), ("remote", "fetch", Kind::Refspec)];

/// Extensions that change nothing for us when they are left out. All others are refused: an extension says that who does not
/// know it must not touch the repository.
const LEFT_OUT: [&str; 6] =
    ["noop", "noop-v1", "partialclone", "preciousobjects", "relativeworktrees", "worktreeconfig"];

/// What every call is told besides, whatever a later version of git would do without it.
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
    // Several threads would begin at places that a list in the file names, past the paths that were checked.
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

/// What git is given of a repository's settings.
#[derive(Debug)]
pub(crate) struct Allowed {
    /// A configuration file.
    pub(crate) text: String,
    pub(crate) format: ObjectFormat,
}

/// The allowed ones of these settings as a configuration file. `file` is the one that errors name.
pub(crate) fn allowed(settings: &[Setting], file: &Path) -> Result<Allowed, GitError> {
    let mut text = String::from("[core]\n\tbare = false\n");
    let mut format = ObjectFormat::Sha1;
    for setting in settings {
        let wrong = |why: String| GitError::Config { file: file.to_owned(), line: setting.line, why };
        if setting.section == "extensions" && LEFT_OUT.contains(&setting.key.as_str()) {
            continue;
        }
        let table: &[(&str, &str, Kind)] = if setting.about.is_some() { &NAMED } else { &PLAIN };
        let row = table.iter().find(|(section, key, _)| setting.section == *section && setting.key == *key);
        let Some((_, _, kind)) = row else {
            if setting.section == "extensions" {
                return Err(wrong(format!("the extension `{}` is not known to Lathe", setting.key)));
            }
            continue;
        };
        let about = setting.about.as_deref();
        // The name of a branch is written between quotes; one that is not plain is left out.
        if about.is_some_and(|about| about.is_empty() || about.contains(char::is_control)) {
            continue;
        }
        let Some(value) = checked(*kind, setting.value.as_deref()) else {
            match kind {
                // These are only shown or looked up: the repository can be used without them.
                Kind::Line | Kind::Name | Kind::Refspec | Kind::Encoding => continue,
                Kind::Bool | Kind::Word(_) | Kind::BoolOr(_) | Kind::Sharing => {
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

/// A value as git is given it, if it is of this kind.
fn checked(kind: Kind, value: Option<&str>) -> Option<String> {
    let plain = |value: &str, more: &str| {
        let is_fine =
            |c: char| (!c.is_ascii() && !c.is_control()) || c.is_ascii_alphanumeric() || more.contains(c);
        !value.is_empty() && value.len() <= 1024 && !value.starts_with('-') && value.chars().all(is_fine)
    };
    match (kind, value) {
        (Kind::Bool | Kind::BoolOr(_) | Kind::Sharing, None) => Some("true".to_owned()),
        (_, None) => None,
        (Kind::Bool, Some(value)) => boolean(value),
        (Kind::Word(words), Some(value)) => {
            words.iter().find(|word| value.eq_ignore_ascii_case(word)).map(|word| (*word).to_owned())
        }
        (Kind::BoolOr(words), Some(value)) => {
            boolean(value).or_else(|| checked(Kind::Word(words), Some(value)))
        }
        (Kind::Sharing, Some(value)) => {
            let octal =
                value.len() <= 5 && !value.is_empty() && value.bytes().all(|b| (b'0'..=b'7').contains(&b));
            let words = Kind::BoolOr(&["umask", "group", "all", "world", "everybody"]);
            if octal { Some(value.to_owned()) } else { checked(words, Some(value)) }
        }
        (Kind::Encoding, Some(value)) => plain(value, "._:-").then(|| value.to_owned()),
        (Kind::Line, Some(value)) => {
            (value.len() <= 1024 && !value.contains(char::is_control)).then(|| value.to_owned())
        }
        (Kind::Name, Some(value)) => plain(value, "._/@+#-").then(|| value.to_owned()),
        (Kind::Refspec, Some(value)) => {
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
        // What is written must be read again as what it was.
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
