//! The P4Runtime service against the specification, rule by rule: a client that says just what a
//! test wants, over an in-memory connection.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cloned_ref_to_slice_refs
)]

mod arbitration;
mod arrays;
mod batches;
mod common;
mod corners;
mod direct;
mod garbage;
mod initial;
mod limits;
mod p4info;
mod pipeline;
mod profiles;
mod reads;
mod replication;
mod robust;
mod roles;
mod rules;
mod selectors;
mod streams;
mod tables;
mod tls;
mod translation;
