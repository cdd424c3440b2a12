//! Origins of values, and what was wrong with them.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueSource {
    Default,
    /// The user's `config.toml`, or a TOML file named on the command line.
    User(PathBuf),
    /// The project's `.lathe/config.toml`.
    Project(PathBuf),
    /// A `trae_config.yaml` or `trae_config.json`, of the user or the project.
    Trae(PathBuf),
    /// The name of a variable.
    Environment(String),
    /// A flag as it is written, such as `--model`.
    Flag(String),
}

impl ValueSource {
    pub(crate) fn is_file(&self) -> bool {
        match self {
            ValueSource::User(_) | ValueSource::Project(_) | ValueSource::Trae(_) => true,
            ValueSource::Default | ValueSource::Environment(_) | ValueSource::Flag(_) => false,
        }
    }
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueSource::Default => f.write_str("default"),
            ValueSource::User(path) => write!(f, "user file {}", path.display()),
            ValueSource::Project(path) => write!(f, "project file {}", path.display()),
            ValueSource::Trae(path) => write!(f, "Trae file {}", path.display()),
            ValueSource::Environment(variable) => write!(f, "variable {variable}"),
            ValueSource::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

/// A source, and for a file the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub source: ValueSource,
    pub line: Option<u32>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        match self.line {
            Some(line) => write!(f, ":{line}"),
            None => Ok(()),
        }
    }
}

/// The kinds of faults. No message contains a secret: neither values of secret keys nor source lines are shown.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigFault {
    #[error("cannot be read: {0}")]
    Unreadable(String),
    #[error("is larger than {0} KiB, which no configuration is")]
    TooLarge(u64),
    #[error("syntax error: {0}")]
    Syntax(String),
    #[error("unknown key `{key}`{}", did_you_mean(.suggestion))]
    UnknownKey { key: String, suggestion: Option<String> },
    #[error("`{key}` must be {expected}, but is {found}{}", did_you_mean(.suggestion))]
    WrongValue { key: String, expected: String, found: String, suggestion: Option<String> },
    #[error("`{0}` is given twice; the last one counts")]
    GivenTwice(String),
    #[error("`{0}` is not available in this version")]
    NotYet(String),
    /// Keys of a foreign file.
    #[error("not available in this version, and left out: {}", .0.join(", "))]
    LeftOut(Vec<String>),
    #[error("`{key}` is ignored here: {reason}")]
    Refused { key: String, reason: String },
    #[error("`{key}`: {why}")]
    Tool { key: String, why: String },
    /// One of Trae's own messages about its file.
    #[error("{0}")]
    Trae(String),
    /// A foreign file that was not named cannot stop a run.
    #[error("the file is ignored, because it cannot be used and was not named by the user")]
    Ignored,
    #[error("YAML config not found, using JSON config: {}", .0.display())]
    JsonInstead(PathBuf),
    #[error(
        "Config file not found. Please specify a valid config file in the command line option --config-file"
    )]
    ConfigFileNotFound {
        /// The flag or variable that named it.
        named_by: &'static str,
    },
}

fn did_you_mean(suggestion: &Option<String>) -> String {
    match suggestion {
        Some(suggestion) => format!("; did you mean `{suggestion}`?"),
        None => String::new(),
    }
}

/// A [`ConfigFault`] and its place. It is an error or a warning by the list it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub source: ValueSource,
    pub line: Option<u32>,
    pub fault: ConfigFault,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // These two begin exactly with Trae's words; scripts may search for them.
        match (&self.fault, &self.source) {
            (ConfigFault::JsonInstead(_), _) => return write!(f, "{}", self.fault),
            (ConfigFault::ConfigFileNotFound { named_by }, ValueSource::Trae(path)) => {
                return write!(f, "{}\n  {} is not there; {named_by} names it", self.fault, path.display());
            }
            _ => {}
        }
        match (&self.source, self.line) {
            (ValueSource::User(path) | ValueSource::Project(path) | ValueSource::Trae(path), Some(line)) => {
                write!(f, "{}:{line}: ", path.display())?;
            }
            (ValueSource::User(path) | ValueSource::Project(path) | ValueSource::Trae(path), None) => {
                write!(f, "{}: ", path.display())?;
            }
            (ValueSource::Default | ValueSource::Environment(_) | ValueSource::Flag(_), _) => {
                write!(f, "{}: ", self.source)?
            }
        }
        write!(f, "{}", self.fault)
    }
}

/// Everything that keeps the configuration from being used; never empty.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct ConfigErrors {
    pub errors: Vec<Problem>,
    pub warnings: Vec<Problem>,
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}
