//! Entries of a project's file that name a program, and so count only when the user trusts them as they are.

use std::path::Path;

use serde_json::Value as Json;

use crate::check::{ReadingStrictness, TreeAuthor, check};
use crate::format::{ProjectFiles, parse_toml};
use crate::problem::{ConfigFault, Problem, ValueSource};

/// One entry of `[check]` or one `[field.NAME]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigPart {
    /// `check` or `field`.
    pub table: String,
    pub name: String,
    /// All members of the entry.
    pub value: Json,
    pub line: Option<u32>,
}

impl ConfigPart {
    /// Tells whether two parts are the same, regardless of their lines in the file.
    pub(crate) fn is_same(&self, other: &ConfigPart) -> bool {
        (&self.table, &self.name, &self.value) == (&other.table, &other.name, &other.value)
    }

    /// A member that is text.
    pub fn text(&self, member: &str) -> Option<&str> {
        self.value.get(member)?.as_str()
    }
}

/// The parts of a project's file; none if there is no file. Faults elsewhere in it do not matter here.
pub fn project_parts(path: &Path, files: &ProjectFiles) -> Result<Vec<ConfigPart>, Box<Problem>> {
    let source = ValueSource::Project(path.to_owned());
    let problem =
        |line: Option<u32>, fault: ConfigFault| Box::new(Problem { source: source.clone(), line, fault });
    let Some(text) = files.read(path).map_err(|fault| problem(None, fault))? else { return Ok(Vec::new()) };
    let tree = parse_toml(&text).map_err(|misreads| {
        let first = misreads.into_iter().next();
        let (line, fault) =
            first.map_or((None, ConfigFault::Ignored), |misread| (misread.line, misread.fault));
        problem(line, fault)
    })?;
    Ok(check(&tree, &source, ReadingStrictness::Exact, TreeAuthor::Project { instead: "", trusted: &[] })
        .parts)
}
