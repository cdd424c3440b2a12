//! A folder with files in it, variables and flags: everything `load` looks at.

use std::path::{Path, PathBuf};

use lathe_config::{
    Config, ConfigErrors, ConfigPart, Flag, Inputs, NamedFile, ProjectFiles, Secret, TrustedTrae, load,
};

pub struct Setup {
    folder: tempfile::TempDir,
    named: Option<PathBuf>,
    trusted: Vec<ConfigPart>,
    variables: Vec<(String, String)>,
    flags: Vec<(String, serde_json::Value, String)>,
    /// The keys of a `.env`, if the Trae file is trusted.
    trae_keys: Option<Vec<(String, Secret)>>,
}

impl Setup {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            named: None,
            trusted: Vec::new(),
            variables: Vec::new(),
            flags: Vec::new(),
            trae_keys: None,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.path(name), text).unwrap();
        self
    }

    /// `$LATHE_HOME/config.toml`
    pub fn user(self, text: &str) -> Self {
        self.file("user.toml", text)
    }

    /// `.lathe/config.toml`
    pub fn project(self, text: &str) -> Self {
        self.file("project.toml", text)
    }

    /// `trae_config.yaml` in the working folder, not named.
    pub fn trae(self, text: &str) -> Self {
        self.file("trae_config.yaml", text)
    }

    /// Everything the project's file says now that can be trusted.
    pub fn trusted(mut self) -> Self {
        self.trusted = self.config().parts;
        self
    }

    /// Trust in `trae_config.yaml`, with the keys of the `.env` next to it, by provider.
    pub fn trusted_trae(mut self, keys: &[(&str, &str)]) -> Self {
        let keys = keys.iter().map(|(provider, key)| ((*provider).to_owned(), Secret::new(*key)));
        self.trae_keys = Some(keys.collect());
        self
    }

    /// `--config-file`
    pub fn named(mut self, name: &str) -> Self {
        self.named = Some(self.path(name));
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn flag(mut self, key: &str, value: impl Into<serde_json::Value>, flag: &str) -> Self {
        self.flags.push((key.to_owned(), value.into(), flag.to_owned()));
        self
    }

    pub fn load(&self) -> Result<Config, ConfigErrors> {
        self.load_named(self.named.as_deref().map(NamedFile::Path))
    }

    /// With a named file that was read before.
    pub fn load_read(&self, path: &Path, text: &str) -> Result<Config, ConfigErrors> {
        self.load_named(Some(NamedFile::Read { path, text }))
    }

    fn load_named(&self, config_file: Option<NamedFile<'_>>) -> Result<Config, ConfigErrors> {
        let env = |name: &str| {
            let found = self.variables.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        let (path, keys) = (self.path("trae_config.yaml"), &self.trae_keys);
        let text = keys.as_ref().map(|_| std::fs::read_to_string(&path).unwrap()).unwrap_or_default();
        let trusted_trae = keys.as_ref().map(|keys| TrustedTrae { path: &path, text: &text, keys });
        let project = ProjectFiles::new(self.folder.path(), Path::new("/nonexistent/lathe"));
        load(Inputs {
            project: &project,
            user_file: Some(self.path("user.toml")),
            project_file: Some(self.path("project.toml")),
            config_file,
            trae_file: Some(self.path("trae_config.yaml")),
            trusted: &self.trusted,
            trusted_trae,
            env: &env,
            known_providers: &["openai", "anthropic", "google", "azure", "ollama", "openrouter", "doubao"],
            check_tool: &|name, _| match name.ends_with("xx") {
                true => Err(format!("there is no tool `{name}`")),
                false => Ok(()),
            },
            flags: self.flags.iter().map(|(key, value, flag)| Flag::new(key, value.clone(), flag)).collect(),
        })
    }

    pub fn config(&self) -> Config {
        self.load().unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// The errors, with the folder's name taken out.
    pub fn errors(&self) -> Vec<String> {
        let errors = self.load().expect_err("the configuration is refused").errors;
        errors.iter().map(|error| self.plain(error)).collect()
    }

    pub fn warnings(&self) -> Vec<String> {
        self.config().warnings.iter().map(|warning| self.plain(warning)).collect()
    }

    pub fn plain(&self, text: impl std::fmt::Display) -> String {
        text.to_string().replace(&format!("{}/", self.folder.path().display()), "")
    }

    /// `value from source` of a key, or `-`.
    pub fn shown(&self, key: &str) -> String {
        let rows = self.config().rows();
        match rows.into_iter().find(|row| row.key == key) {
            Some(row) => self.plain(format!("{} from {}", row.value, row.source)),
            None => "-".to_owned(),
        }
    }
}
