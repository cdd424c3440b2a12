//! The patch of a run: the one condition of completion that the loop knows today.

use lathe_protocol::BoxFuture;

/// Trae's message for a task that was called done without a change.
pub const EMPTY_PATCH: &str = "ERROR! Your Patch is empty. Please provide a patch that fixes the problem.";

/// An addition to that message if no git repository shows what changed.
pub(crate) const ONLY_RECORDED: &str =
    "(There is no git repository here: only changes that your calls made in the workspace count.)";

/// Compares the work tree with a baseline.
pub trait Patcher: Send + Sync {
    /// The tree as it is now, or the commit of this name. None if there is no git.
    fn baseline(&self, base: Option<String>) -> BoxFuture<'_, Result<Option<String>, String>>;

    /// Paths that differ from a baseline.
    fn changed(&self, tree: String) -> BoxFuture<'_, Result<Vec<String>, String>>;
}

/// Trae's patterns for files that do not count as a fix. `test_` must begin a name: `latest_news.py` is not a test.
pub fn is_test_path(path: &str) -> bool {
    let path = format!("/{}", path.trim_start_matches('/'));
    ["/test/", "/tests/", "/testing/", "/test_", "tox.ini"].iter().any(|pattern| path.contains(pattern))
}

#[cfg(test)]
mod tests {
    use super::is_test_path;

    #[test]
    fn tests_are_known_by_traes_patterns() {
        for path in ["tests/a.py", "src/test/A.java", "x/testing/y", "test_a.py", "pkg/test_b.py", "tox.ini"]
        {
            assert!(is_test_path(path), "{path}");
        }
        for path in ["src/latest_news.py", "contest.py", "src/a.rs", "attest/x"] {
            assert!(!is_test_path(path), "{path}");
        }
    }
}
