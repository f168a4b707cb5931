//! Desired state against actual state: read, compare, write in an order that never drops traffic.

mod diff;
mod state;

pub use diff::{Plan, Ranks, Update, apply, diff};
pub use state::{Action, Duplicate, Key, Match, State, default_entry, entry, key};
