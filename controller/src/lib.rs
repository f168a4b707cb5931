//! The fabric's control plane: routing, placement, reconciliation.
//!
//! # From a topology to packets that are forwarded
//!
//! ```text
//!  topology ──> fabric (graph, targets) ──> routing ──┐
//!  links down ────────────────────────────────────────┼──> intent ──> typed entries per switch
//!  job file ──> workload ──> placement (hosts, rings, ┘    (entries, made from the P4Info
//!               bytes)       flows to paths) = pins         at build time)
//!                                                                │
//!                        desired: state per switch, and the changes from one to the next
//!                                                                │
//!  switch ──P4Runtime──> session ──> reconcile: read, diff, write in order, read again
//!     │                     ├──────> neighbour: ARP, ND, ping, TTL: packet in, packet out
//!     └─── counters ────────┴──────> telemetry: cross-LA share, load of uplinks, marks, drops
//! ```
//!
//! 1. [`fabric`] turns a topology into a graph of switches and a list of what has to be reachable.
//! 2. [`routing`] computes shortest up-down paths to every LA domain, around the links that are down.
//! 3. [`workload`] reads a job and says, to the byte, what its rings send; [`placement`] chooses hosts,
//!    orders the rings so that little crosses LA domains, and gives every flow a path such that the
//!    busiest link carries as little as possible. Bounds stand beside the results.
//!    [`simulate`] says how fast all that would be, with max-min fair rates instead of packets.
//! 4. [`intent`] makes each switch's table entries of all that; [`entries`] are their types.
//! 5. [`desired`] keeps the whole and tells what a change means for each switch; [`reaction`] says when, in
//!    fabric time, its writes take effect.
//! 6. [`reconcile`] compares tables as values and orders updates so that no packet is lost by them;
//!    [`session`] does so on all switches at once, and keeps the sessions alive.
//! 7. [`simulate`] says what would happen: jobs that come and go under the placer and under the rules of
//!    others.
//! 8. [`neighbour`] answers what hosts ask their router; [`telemetry`] reads what the data plane counted.
//!
//! All but [`session`] and the reading and writing in [`reconcile`] is pure: values in, values out, no
//! socket, clock or randomness of its own. Switches, hosts and links go by the topology's indices; bytes,
//! bits/s and ns are the units.

pub mod desired;
pub mod entries;
pub mod fabric;
pub mod intent;
pub mod neighbour;
pub mod placement;
pub mod reaction;
pub mod reconcile;
pub mod routing;
pub mod session;
pub mod simulate;
pub mod telemetry;
pub mod workload;
