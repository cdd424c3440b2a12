//! The two sizes of a test: the gate's (`scripts/test`), which every change waits for, and the full run's
//! (`scripts/test --full`), which leaves nothing out.

/// True in `scripts/test --full`.
#[must_use]
pub fn is_full() -> bool {
    std::env::var("LATHE_TEST_FULL").is_ok_and(|value| value == "1")
}

/// The size for this run.
#[must_use]
pub fn size(gate: usize, full: usize) -> usize {
    if is_full() { full } else { gate }
}

/// Every case in the full run; at the gate every `one_in`-th, always the same ones.
///
/// # Panics
/// If the gate would look at nothing.
pub fn sample<T>(cases: impl IntoIterator<Item = T>, one_in: usize) -> Vec<T> {
    let cases: Vec<T> = cases.into_iter().step_by(size(one_in, 1)).collect();
    assert!(!cases.is_empty(), "no case is left at the gate");
    cases
}
