//! What orders heaps of things that have a time or a level.

use std::cmp::Ordering;

/// Ordered by a number first, then by what it is of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct At<T>(pub(super) f64, pub(super) T);

impl<T: Ord> Eq for At<T> {}

impl<T: Ord> PartialOrd for At<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> Ord for At<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}
