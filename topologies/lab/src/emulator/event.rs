//! The event queue: virtual nanoseconds, and first come first served within one.
//!
//! Events at the same nanosecond leave in the order in which they were pushed, so a run depends on
//! nothing but its inputs.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A queue of future events, earliest first; ties in order of insertion.
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Entry<E>>,
    now: u64,
    pushed: u64,
}

#[derive(Debug)]
struct Entry<E> {
    /// Time in the upper half, insertion number in the lower: one comparison orders both.
    key: u128,
    event: E,
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        // Reversed: `BinaryHeap` gives the greatest first.
        other.key.cmp(&self.key)
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<E> Eq for Entry<E> {}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> EventQueue<E> {
    /// An empty queue at time 0.
    #[must_use]
    pub fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            now: 0,
            pushed: 0,
        }
    }

    /// The time of the last event taken, or the time moved to; ns.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Puts `event` at `at` ns; an event in the past happens now.
    pub fn push(&mut self, at: u64, event: E) {
        let at = at.max(self.now);
        let key = u128::from(at) << 64 | u128::from(self.pushed);
        self.pushed += 1;
        self.heap.push(Entry { key, event });
    }

    /// When the next event is due, ns.
    #[must_use]
    pub fn next_time(&self) -> Option<u64> {
        self.heap.peek().map(|entry| (entry.key >> 64) as u64)
    }

    /// Takes the next event if it is due at or before `until` ns, and moves time to it.
    pub fn pop_until(&mut self, until: u64) -> Option<E> {
        if self.next_time()? > until {
            return None;
        }
        let entry = self.heap.pop()?;
        self.now = (entry.key >> 64) as u64;
        Some(entry.event)
    }

    /// Moves time forward to `at` ns, but not past an event that is still due.
    pub fn advance_to(&mut self, at: u64) {
        let limit = self.next_time().unwrap_or(u64::MAX);
        self.now = self.now.max(at.min(limit));
    }

    /// How many events are waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no event is waiting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn time_first_then_insertion() {
        let mut queue = EventQueue::new();
        for (at, name) in [(5, "b"), (3, "a"), (5, "c"), (5, "d")] {
            queue.push(at, name);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop_until(u64::MAX)).collect();
        assert_eq!(order, ["a", "b", "c", "d"]);
        assert_eq!(queue.now(), 5);
    }

    #[test]
    fn the_past_is_now_and_the_future_waits() {
        let mut queue = EventQueue::new();
        queue.advance_to(100);
        queue.push(7, "late");
        queue.push(101, "next");
        assert_eq!(queue.pop_until(100), Some("late"));
        assert_eq!(queue.now(), 100);
        assert_eq!(queue.pop_until(100), None);
        queue.advance_to(1_000);
        assert_eq!(queue.now(), 101, "time does not jump over an event");
    }

    proptest! {
        #[test]
        fn leaves_as_a_stable_sort(times in prop::collection::vec(0u64..20, 0..60)) {
            let mut queue = EventQueue::new();
            for (index, at) in times.iter().enumerate() {
                queue.push(*at, (*at, index));
            }
            let mut sorted: Vec<_> = times.iter().copied().enumerate().map(|(i, t)| (t, i)).collect();
            sorted.sort_by_key(|(t, _)| *t);
            let out: Vec<_> = std::iter::from_fn(|| queue.pop_until(u64::MAX)).collect();
            prop_assert_eq!(out, sorted);
        }
    }
}
