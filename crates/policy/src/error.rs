/// The faults of a rule file. Each names the place, so that the user can correct it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("{file}:{line}: {why}")]
    Syntax { file: String, line: usize, why: String },
    #[error("{file}:{line}: rule {rule}: {why}")]
    Rule { file: String, line: usize, rule: usize, why: String },
    #[error("{file}:{line}: rule {rule} should match `{example}`, but does not")]
    NoMatch { file: String, line: usize, rule: usize, example: String },
    #[error("{file}:{line}: rule {rule} should not match `{example}`, but does")]
    Match { file: String, line: usize, rule: usize, example: String },
}
