//! Settings that clients store on the server: names of tools, agent modes, models. Small JSON files in
//! `$LATHE_HOME/server`, for their owner only, written to a temporary file and renamed. Keys are not among them:
//! those are in the key store of the host.

use std::path::{Path, PathBuf};

use lathe_host::{own_folder, own_lock, own_text, own_write};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ApiError;

pub(crate) struct ServerSettings {
    folder: PathBuf,
}

impl ServerSettings {
    pub fn new(home: &Path) -> Self {
        Self { folder: home.join("server") }
    }

    /// The stored value of this name; none if there is no such file.
    pub fn read<T: DeserializeOwned + Default>(&self, name: &str) -> Result<T, ApiError> {
        let path = self.folder.join(name);
        match own_text(&path) {
            Ok(Some(text)) => serde_json::from_str(&text)
                .map_err(|error| ApiError::internal(format!("{} cannot be read: {error}", path.display()))),
            Ok(None) => Ok(T::default()),
            Err(error) => Err(ApiError::own_file(&format!("{} cannot be read", path.display()), &error)),
        }
    }

    /// Changes a stored value, one change at a time, even if two servers share a home. Nothing is written if the
    /// change is refused.
    pub fn change<T: DeserializeOwned + Default + Serialize, R>(
        &self,
        name: &str,
        change: impl FnOnce(&mut T) -> Result<R, ApiError>,
    ) -> Result<R, ApiError> {
        let wrong = |error: std::io::Error| ApiError::own_file(&format!("{name} cannot be written"), &error);
        own_folder(&self.folder).map_err(wrong)?;
        let _one = own_lock(&self.folder.join("settings.lock")).map_err(wrong)?;
        let mut kept: T = self.read(name)?;
        let done = change(&mut kept)?;
        let text =
            serde_json::to_string_pretty(&kept).map_err(|error| ApiError::internal(error.to_string()))?;
        own_write(&self.folder.join(name), text.as_bytes()).map_err(wrong)?;
        Ok(done)
    }
}

/// A name that can be shown, and written into an address.
pub(crate) fn good_name(name: &str) -> Result<(), ApiError> {
    let fine = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    if !name.trim().is_empty() && name.chars().count() <= 64 && name.chars().all(fine) {
        return Ok(());
    }
    Err(ApiError::unprocessable("A name has 1 to 64 letters, digits, spaces, dots, dashes or underscores."))
}

/// A request names an entry that is not stored; the response lists those that are.
pub(crate) fn unknown_setting<'a>(
    field: &str,
    name: &str,
    known: impl Iterator<Item = &'a String>,
) -> ApiError {
    let known: Vec<&str> = known.map(String::as_str).collect();
    let known = if known.is_empty() {
        "none is stored here".to_owned()
    } else {
        format!("there are: {}", known.join(", "))
    };
    let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    ApiError::unprocessable(format!("`{field}`: `{name}` is not known; {known}."))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lathe_host::{Home, Host};

    use super::*;

    #[test]
    fn two_servers_of_one_home_lose_nothing() {
        let home = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for server in 0..4 {
                let settings = ServerSettings::new(home.path());
                let host = Host::new(Home::at(home.path().to_owned()));
                scope.spawn(move || {
                    for at in 0..15 {
                        let name = format!("m{server}x{at}");
                        let change = |all: &mut BTreeMap<String, usize>| Ok(all.insert(name.clone(), at));
                        assert!(settings.change("models.json", change).is_ok(), "{name}");
                        // Not under the lock of the settings: `lathe auth` does not know it.
                        host.models().login(&name, "sk-0123456789").unwrap();
                        if at % 2 == 1 {
                            assert!(host.models().logout(&name).unwrap());
                        }
                    }
                });
            }
        });
        let kept: BTreeMap<String, usize> =
            ServerSettings::new(home.path()).read("models.json").ok().unwrap();
        assert_eq!(kept.len(), 60);
        let host = Host::new(Home::at(home.path().to_owned()));
        for (name, at) in kept {
            assert_eq!(host.models().stored_key(&name).unwrap().is_some(), at % 2 == 0, "{name}");
        }
    }
}
