//! Parser for git's configuration files.
//!
//! Only the result of this parser reaches git, written as a new file, so a difference from git's own parser loses a
//! setting at most. Includes are not followed.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::GitError;
use crate::folder::RepositoryFolder;

/// The maximum size of a configuration file.
const LONGEST: u64 = 1 << 20;

/// One setting of a file: `section.about.key`. Section and key are in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub section: String,
    /// The name in quotes, which may contain anything.
    pub about: Option<String>,
    pub key: String,
    /// None if the key has no value, which means true.
    pub value: Option<String>,
    pub line: usize,
}

impl Setting {
    /// Tells whether it is `section.key`, without a name in between.
    pub fn is(&self, section: &str, key: &str) -> bool {
        self.about.is_none() && self.section == section && self.key == key
    }
}

/// The settings of a file in a folder, in order. A missing file has none.
pub(crate) fn read(folder: &RepositoryFolder, name: &str) -> Result<Vec<Setting>, GitError> {
    let wrong = |line, why: String| GitError::Config { file: folder.name.join(name), line, why };
    let content = folder.read(name, LONGEST).map_err(|error| wrong(0, error.to_string()))?;
    let text = String::from_utf8_lossy(content.as_deref().unwrap_or_default()).into_owned();
    parse_settings(&text).map_err(|(line, why)| wrong(line, why.to_owned()))
}

/// A setting of the user's own configuration, such as `user.name`. It is only read, never applied.
pub fn user_setting(section: &str, key: &str) -> Option<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let files = [user_folder().map(|folder| (folder, "config")), home.map(|home| (home, ".gitconfig"))];
    let settings = files.into_iter().flatten();
    let settings =
        settings.flat_map(|(folder, name)| read(&RepositoryFolder::named(&folder), name).unwrap_or_default());
    settings.filter(|setting| setting.is(section, key)).filter_map(|setting| setting.value).next_back()
}

/// The folder of the user's own ignore and attributes files.
pub(crate) fn user_folder() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let xdg = std::env::var_os("XDG_CONFIG_HOME").filter(|folder: &OsString| !folder.is_empty());
    let xdg = xdg.map(PathBuf::from).or_else(|| Some(home?.join(".config")));
    Some(xdg?.join("git"))
}

/// The settings of a text, or the line and the reason of an error. Accepts everything that git accepts; all other
/// input is an error.
pub fn parse_settings(text: &str) -> Result<Vec<Setting>, (usize, &'static str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut parser = Parser { rest: text.chars().peekable(), line: 1 };
    let mut settings = Vec::new();
    let mut head: Option<(String, Option<String>)> = None;
    while let Some(next) = parser.take() {
        match next {
            '#' | ';' => parser.skip_line(),
            '[' => head = Some(parser.head()?),
            c if c.is_ascii_whitespace() => {}
            c if c.is_ascii_alphabetic() => {
                let line = parser.line;
                let Some((section, about)) = &head else {
                    return Err((line, "a setting stands before the first section"));
                };
                let (key, value) = parser.setting(c)?;
                settings.push(Setting { section: section.clone(), about: about.clone(), key, value, line });
            }
            _ => return Err((parser.line, "a character that cannot begin a line")),
        }
    }
    Ok(settings)
}

struct Parser<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
}

impl Parser<'_> {
    fn take(&mut self) -> Option<char> {
        let next = self.rest.next()?;
        self.line += usize::from(next == '\n');
        Some(next)
    }

    fn skip_line(&mut self) {
        while self.take().is_some_and(|c| c != '\n') {}
    }

    /// A section's name after its bracket.
    fn head(&mut self) -> Result<(String, Option<String>), (usize, &'static str)> {
        let mut name = String::new();
        loop {
            match self.take() {
                Some(']') => {
                    // `[section.about]` is the old form.
                    let (section, about) = match name.split_once('.') {
                        Some((section, about)) => (section.to_owned(), Some(about.to_owned())),
                        None => (name, None),
                    };
                    return Ok((section, about));
                }
                Some(c) if c.is_ascii_alphanumeric() || c == '-' || c == '.' => {
                    name.push(c.to_ascii_lowercase());
                }
                Some(' ' | '\t') => return Ok((name, Some(self.about()?))),
                _ => return Err((self.line, "the name of a section does not end")),
            }
        }
    }

    fn about(&mut self) -> Result<String, (usize, &'static str)> {
        let wrong = (self.line, "the name of a section does not end");
        while self.rest.peek().is_some_and(|c| matches!(c, ' ' | '\t')) {
            self.take();
        }
        if self.take() != Some('"') {
            return Err(wrong);
        }
        let mut about = String::new();
        loop {
            match self.take().ok_or(wrong)? {
                '"' => break,
                '\n' => return Err(wrong),
                '\\' => match self.take().ok_or(wrong)? {
                    '\n' => return Err(wrong),
                    c => about.push(c),
                },
                c => about.push(c),
            }
        }
        if self.take() == Some(']') { Ok(about) } else { Err(wrong) }
    }

    fn setting(&mut self, first: char) -> Result<(String, Option<String>), (usize, &'static str)> {
        let mut key = String::from(first.to_ascii_lowercase());
        while let Some(c) = self.rest.peek().filter(|c| c.is_ascii_alphanumeric() || **c == '-') {
            key.push(c.to_ascii_lowercase());
            self.take();
        }
        while self.rest.peek().is_some_and(|c| matches!(c, ' ' | '\t')) {
            self.take();
        }
        match self.take() {
            None | Some('\n') => Ok((key, None)),
            Some('=') => Ok((key, Some(self.value()?))),
            Some(_) => Err((self.line, "a setting without `=`")),
        }
    }

    fn value(&mut self) -> Result<String, (usize, &'static str)> {
        let (mut value, mut kept, mut quoted) = (String::new(), 0, false);
        loop {
            let line = self.line;
            match self.take() {
                None | Some('\n') if quoted => return Err((line, "a quote does not end")),
                None | Some('\n') => break,
                Some('#' | ';') if !quoted => {
                    self.skip_line();
                    break;
                }
                Some('"') => quoted = !quoted,
                Some('\\') => {
                    match self.take() {
                        Some('\n') => continue,
                        Some('t') => value.push('\t'),
                        Some('b') => value.push('\u{8}'),
                        Some('n') => value.push('\n'),
                        Some(c @ ('"' | '\\')) => value.push(c),
                        _ => return Err((line, "an escape that git does not know")),
                    }
                    kept = value.len();
                    continue;
                }
                Some(c) if c.is_ascii_whitespace() && !quoted => {
                    if !value.is_empty() {
                        value.push(c);
                    }
                    continue;
                }
                Some(c) => value.push(c),
            }
            kept = value.len();
        }
        // Trailing spaces are dropped, but not those in quotes.
        value.truncate(kept);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<Vec<String>, usize> {
        let settings = parse_settings(text).map_err(|(line, _)| line)?;
        let show = |one: Setting| {
            let about = one.about.map(|about| format!("{about}.")).unwrap_or_default();
            format!(
                "{}.{about}{}={}",
                one.section,
                one.key,
                one.value.unwrap_or_else(|| "(alone)".to_owned())
            )
        };
        Ok(settings.into_iter().map(show).collect())
    }

    #[test]
    fn files_are_read_as_git_reads_them() {
        let cases: [(&str, Result<&[&str], usize>); 18] = [
            ("", Ok(&[])),
            ("[core]\n\tBare = false\n", Ok(&["core.bare=false"])),
            ("\u{feff}[core]\r\n\tbare\r\n", Ok(&["core.bare=(alone)"])),
            ("[Core] bare=true ; no\n# no\n", Ok(&["core.bare=true"])),
            ("[diff \"a=b\"]\ncommand = x", Ok(&["diff.a=b.command=x"])),
            ("[diff \"A]\\\"b\\x\"] k = v", Ok(&["diff.A]\"bx.k=v"])),
            ("[Branch.Main]\nremote=o", Ok(&["branch.main.remote=o"])),
            ("[a]\nk = \"x # y\" z  # c\n", Ok(&["a.k=x # y z"])),
            ("[a]\nk = x\\\ny\nl = 1\n", Ok(&["a.k=xy", "a.l=1"])),
            ("[a]\nk = \" x \" \n", Ok(&["a.k= x "])),
            ("[a]\nk = x\\ty\\n\n", Ok(&["a.k=x\ty\n"])),
            ("[a]\nk =\n", Ok(&["a.k="])),
            ("k = 1\n", Err(1)),
            ("[a]\nk = \"x\n", Err(2)),
            ("[a\nk = 1\n", Err(2)),
            ("[a]\nk = \\q\n", Err(2)),
            ("[a \"b\nc\"]\n", Err(1)),
            ("[a]\n\n=1\n", Err(3)),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|lines| lines.iter().map(|line| (*line).to_owned()).collect());
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }
}
