//! Finds the items that two sequences have in common, within a bounded time.
//!
//! `similar` finds a near-shortest script, but on hundreds of thousands of lines with few distinct ones it takes
//! minutes and in the end overflows the stack. Its deadline would bound that and make the result depend on the
//! machine. So the bound here is one of size: long sequences are first cut at the items that occur exactly once on
//! each side, of which real files have many, and a stretch between two cuts that is still too long counts as replaced
//! as a whole. The result is always right; for such content it is merely not short.

use std::collections::HashMap;
use std::hash::Hash;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Up to this size no cuts are needed: it takes well under a tenth of a second.
const AT_ONCE: usize = 20_000;
/// The longest stretch between cuts that is compared.
const STRETCH: usize = 1_000;
/// Beyond this size, even the search for cuts would take noticeably long.
const AT_ALL: usize = 400_000;

/// Covers both sequences in order; two `Equal` never follow each other.
pub(crate) fn compare<T: Eq + Hash>(old: &[T], new: &[T]) -> Vec<DiffOp> {
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let tail =
        old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let size = old_end + new_end - 2 * head;

    let mut script = EditScript::default();
    script.equal(head);
    if size <= AT_ONCE {
        script.stretch(old, old_end, new, new_end, AT_ONCE);
    } else if size <= AT_ALL {
        for (old_cut, new_cut) in cuts(&old[head..old_end], &new[head..new_end]) {
            script.stretch(old, head + old_cut, new, head + new_cut, STRETCH);
            script.equal(1);
        }
        script.stretch(old, old_end, new, new_end, STRETCH);
    } else {
        script.replaced(old_end, new_end);
    }
    script.equal(tail);
    script.ops
}

/// The pairs of items that occur once on each side, as the longest run of them that is in order on both.
fn cuts<T: Eq + Hash>(old: &[T], new: &[T]) -> Vec<(usize, usize)> {
    let (once_old, once_new) = (once(old), once(new));
    let mut pairs: Vec<(usize, usize)> =
        once_old.iter().filter_map(|(item, at)| Some((*at, *once_new.get(item)?))).collect();
    pairs.sort_unstable();

    // Longest increasing run of the new positions: `ends[n]` is the pair with the
    // smallest new position that ends a run of n + 1.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, (_, new_at)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end].1 < *new_at);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() {
            ends.push(index);
        } else {
            ends[length] = index;
        }
    }
    let mut run = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(index) = next {
        run.push(pairs[index]);
        next = before[index];
    }
    run.reverse();
    run
}

fn once<T: Eq + Hash>(items: &[T]) -> HashMap<&T, usize> {
    let mut seen: HashMap<&T, Option<usize>> = HashMap::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        seen.entry(item).and_modify(|only| *only = None).or_insert(Some(at));
    }
    seen.into_iter().filter_map(|(item, only)| Some((item, only?))).collect()
}

/// The operations so far, and their end on each side.
#[derive(Default)]
struct EditScript {
    ops: Vec<DiffOp>,
    old: usize,
    new: usize,
}

impl EditScript {
    fn equal(&mut self, len: usize) {
        if len == 0 {
            return;
        }
        if let Some(DiffOp::Equal { len: so_far, .. }) = self.ops.last_mut() {
            *so_far += len;
        } else {
            self.ops.push(DiffOp::Equal { old_index: self.old, new_index: self.new, len });
        }
        self.old += len;
        self.new += len;
    }

    fn replaced(&mut self, old_end: usize, new_end: usize) {
        let (old_index, old_len) = (self.old, old_end - self.old);
        let (new_index, new_len) = (self.new, new_end - self.new);
        match (old_len, new_len) {
            (0, 0) => {}
            (0, _) => self.ops.push(DiffOp::Insert { old_index, new_index, new_len }),
            (_, 0) => self.ops.push(DiffOp::Delete { old_index, old_len, new_index }),
            (_, _) => self.ops.push(DiffOp::Replace { old_index, old_len, new_index, new_len }),
        }
        (self.old, self.new) = (old_end, new_end);
    }

    fn stretch<T: Eq + Hash>(&mut self, old: &[T], old_end: usize, new: &[T], new_end: usize, most: usize) {
        let (old_start, new_start) = (self.old, self.new);
        if old_end - old_start + new_end - new_start > most {
            return self.replaced(old_end, new_end);
        }
        for op in capture_diff_slices(Algorithm::Myers, &old[old_start..old_end], &new[new_start..new_end]) {
            match op {
                DiffOp::Equal { len, .. } => self.equal(len),
                DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                    self.replaced(old_start + op.old_range().end, new_start + op.new_range().end);
                }
            }
        }
    }
}
