//! Known secrets: those of the environment, those stored by `auth login`, those in the user's own configuration, and
//! those that the user names.
//!
//! Every key of the configuration counts, including one that this session does not use: any line may print it.
//! `config.toml` is read here a second time, and only for this, so that commands that show a session without having
//! read the configuration (`show`, `diff`, `rewind`) hide the same values.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use lathe_redact::{Redactor, is_secret_name, keys_in_file, mask_command, mask_words, secrets_in};
use lathe_workspace::read_regular;
use toml::de::{DeTable, DeValue};

use crate::archive::Archive;
use crate::files::own::own_text;
use crate::rules::trust::{ProjectText, cut_for_model};
use crate::session::extras::Extras;

/// Secrets, each with its name.
type Secrets = Vec<(String, String)>;

/// The redactor of all known secret values: the model's key, secrets in the environment, and `known`.
pub(crate) fn redactor(key: Option<String>, known: &[(String, String)]) -> Redactor {
    let named = std::env::vars_os().flat_map(|(name, value)| {
        let (name, value) = (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned());
        secrets_in(&name, &value).into_iter().map(move |secret| (name.clone(), secret))
    });
    let key = key.map(|key| ("API_KEY".to_owned(), key));
    Redactor::new(key.into_iter().chain(named).chain(known.iter().cloned()))
}

/// The keys of `config.toml` and those that `auth login` stored.
pub(crate) fn configured_secrets(home: &Path) -> Secrets {
    let mut found = Secrets::new();
    if let Some(text) = small_text(&home.join("config.toml")) {
        if let Ok(table) = DeTable::parse(&text) {
            collect_keys(table.get_ref(), "", &mut found);
        }
        // A file that cannot be parsed to its end holds keys too, and addresses hold passwords.
        found.extend(keys_in_file(&text));
    }
    let stored = own_text(&home.join("auth.json")).ok().flatten().unwrap_or_default();
    let stored: std::collections::BTreeMap<String, String> =
        serde_json::from_str(&stored).unwrap_or_default();
    found.extend(stored);
    found
}

/// Configuration files that a project may bring, for any program.
const PROJECT_FILES: [&str; 4] =
    [".lathe/config.toml", "trae_config.yaml", "trae_config.yml", "trae_config.json"];

/// Number of folders above the working folder, itself included, that are searched.
const ABOVE: usize = 32;

/// The keys in configuration files of a folder and of those above it, used or not: any line may print them.
///
/// Links are followed here, unlike where these files are used as configuration, because a line that prints the file
/// follows them too. Nothing that is read is shown, stored or sent; it is only replaced where it appears, so a link
/// to a foreign file hides more and reveals nothing. A pipe is not waited for, and a file that is too large is left
/// out: an untrusted project decides what is in these files, so it must not decide how much work every session has
/// with them.
pub(crate) fn project_secrets(folder: &Path) -> Secrets {
    let files = folder.ancestors().take(ABOVE).flat_map(|folder| PROJECT_FILES.map(|name| folder.join(name)));
    let mut room = PROJECT_BYTES;
    let mut fits = |(_, value): &(String, String)| {
        let left = room.checked_sub(value.len());
        room = left.unwrap_or(room);
        left.is_some()
    };
    let all = files.filter_map(|file| small_text(&file)).flat_map(|text| keys_in_file(&text));
    let mut known = std::collections::HashSet::new();
    all.filter(|(_, value)| known.insert(value.clone()))
        .filter(|secret| secret.1.len() <= PROJECT_VALUE && fits(secret))
        .take(PROJECT_VALUES)
        .collect()
}

/// Limits for a project's values: bytes of one value, bytes of all together, and their number.
const PROJECT_VALUE: usize = 4096;
const PROJECT_BYTES: usize = 16 << 10;
const PROJECT_VALUES: usize = 256;

/// The text of an ordinary file that is not larger than a configuration.
fn small_text(path: &Path) -> Option<String> {
    read_regular(path, LARGEST).ok()?.map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// Largest file that is searched, in bytes.
const LARGEST: u64 = 1 << 20;

/// Texts whose key is named like a secret. The name includes that of the table: `OPENAI_API_KEY`.
fn collect_keys(table: &DeTable<'_>, above: &str, found: &mut Secrets) {
    for (key, value) in table {
        let key: &str = key.get_ref();
        match value.get_ref() {
            DeValue::String(text) if is_secret_name(key) => {
                let name = if above.is_empty() { key.to_owned() } else { format!("{above}_{key}") };
                found.push((name.to_uppercase(), text.clone().into_owned()));
            }
            DeValue::Table(inner) => collect_keys(inner, key, found),
            _ => {}
        }
    }
}

/// The secrets that `[secrets]` of `config.toml` names.
fn secret_settings(home: &Path) -> Extras {
    let mut extras = Extras::default();
    let text = small_text(&home.join("config.toml")).unwrap_or_default();
    let Ok(table) = DeTable::parse(&text) else { return extras };
    let Some(DeValue::Table(section)) = table.get_ref().get("secrets").map(|found| found.get_ref()) else {
        return extras;
    };
    let texts = |key: &str| -> Vec<String> {
        let Some(DeValue::Array(values)) = section.get(key).map(|found| found.get_ref()) else {
            return Vec::new();
        };
        values.iter().filter_map(|value| value.get_ref().as_str().map(str::to_owned)).collect()
    };
    extras.secret_variables = texts("variables");
    extras.secret_files = texts("files").into_iter().map(PathBuf::from).collect();
    extras
}

/// The instructions of a trusted project for the model, redacted: they are stored in the journal like everything that
/// the model sees. A text is cut only after that, because half a secret is not recognised.
pub(crate) fn project_texts(texts: &[ProjectText], redactor: &Redactor) -> Vec<(String, String)> {
    texts.iter().map(|text| (text.name.clone(), cut_for_model(&redactor.redact_text(&text.text)))).collect()
}

impl Archive {
    /// Remembers the secrets of a session that is opened here.
    pub(crate) fn remember_secrets(&self, known: Secrets) {
        let mut met = self.known_secrets.lock();
        met.extend(known);
        met.sort();
        met.dedup();
    }

    /// The redactor for showing a session that is not open here: it knows all secrets known here and now.
    pub(crate) fn display_redactor(&self) -> Redactor {
        self.display_redactor_with([])
    }

    /// The same with more secrets.
    pub(crate) fn display_redactor_with(&self, more: impl IntoIterator<Item = (String, String)>) -> Redactor {
        let home = self.home().path();
        // A file that cannot be read hides nothing, but the secrets of the others still count.
        let mut known = secret_settings(home).secrets(home).unwrap_or_else(|_| configured_secrets(home));
        known.extend(self.known_secrets.lock().iter().cloned());
        known.extend(std::env::current_dir().map(|here| project_secrets(&here)).unwrap_or_default());
        known.extend(more);
        redactor(None, &known)
    }
}

/// The value of a setting as it is shown: a list is one of words, in which an option may mark the next word as a
/// secret.
pub fn shown_setting(value: &str) -> String {
    match serde_json::from_str::<Vec<String>>(value) {
        Ok(words) => serde_json::to_string(&mask_words(words.iter().map(String::as_str))).unwrap_or_default(),
        Err(_) => mask_command(value),
    }
}

/// The content of a file as it is shown.
pub(crate) fn redacted_content(redactor: Option<&Redactor>, content: Option<Vec<u8>>) -> Option<Vec<u8>> {
    let content = content?;
    match redactor.map(|redactor| redactor.redact_bytes(&content)) {
        Some(Cow::Owned(clean)) => Some(clean),
        Some(Cow::Borrowed(_)) | None => Some(content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::trust::MODEL_BYTES;

    #[test]
    fn a_project_does_not_say_how_much_is_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let key = |at: usize, length: usize| format!("k{at}_api_key: \"{at:05}{}\"\n", "x".repeat(length));
        let long: String = (0..500).map(|at| key(at, 1000)).collect();
        let many: String = (0..9000).map(|at| key(at, 10)).collect();
        for text in [long, many, key(1, 900_000)] {
            std::fs::write(folder.path().join("trae_config.yaml"), text + &key(7, 2)).unwrap();
            let found = project_secrets(folder.path());
            assert!(found.len() <= PROJECT_VALUES);
            assert!(found.iter().map(|(_, value)| value.len()).sum::<usize>() <= PROJECT_BYTES);
        }
        // A value that is too long does not hide the ones after it.
        assert!(project_secrets(folder.path()).iter().any(|(_, value)| value == "00007xx"));
    }

    #[test]
    fn instructions_of_a_project_lose_their_secrets_before_they_are_cut() {
        let secret = "kq-planted-0123456789";
        let redactor = Redactor::new([("KEY".to_owned(), secret.to_owned())]);
        for before in MODEL_BYTES - 30..MODEL_BYTES + 5 {
            let text = "x".repeat(before) + secret + "the end of it";
            let text = ProjectText { name: "AGENTS.md".to_owned(), text };
            let shown = project_texts(&[text], &redactor);
            assert!(!shown[0].1.contains("kq-p"), "{before}");
        }
    }
}
