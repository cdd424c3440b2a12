/// The mistakes in a user's list of hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    #[error("`{pattern}` cannot be used as a host: {why}")]
    Pattern { pattern: String, why: String },
}
