//! Desired state against actual state: read, compare, write in an order that never drops traffic.

mod copies;
mod diff;
mod run;
mod state;

pub use copies::{Copier, Copies};
pub use diff::{Plan, Ranks, Update, apply, diff};
pub use run::{
    Error, LARGEST_BATCH, Refusal, Report, describe, read_state, reconcile, write_batch,
    write_plan, write_resources,
};
pub use state::{Action, Duplicate, Key, Match, State, default_entry, entry, key};
