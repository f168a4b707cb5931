//! The pipeline's tables as types: a struct for each key, an enum for each table's actions, made at build
//! time from the committed P4Info. A table that is renamed or a field that changes its width is an error of
//! the compiler.
//!
//! The order of [`ranks`] is what keeps changes hitless; see [`reconcile`](crate::reconcile).

use crate::reconcile::Ranks;
use p4runtime::typed::TableKey;

include!(concat!(env!("OUT_DIR"), "/entries.rs"));

/// Tables in the order in which they have to be written: next hops, then what refers to them, ports
/// last, so that traffic comes in when there is a way on. Tables that are not listed come between.
#[must_use]
pub fn ranks() -> Ranks {
    let ranks = [
        (Nexthop::ID, 0),
        (GroupBucket::ID, 1),
        (GroupPort::ID, 1),
        (Group::ID, 2),
        (RouteV4::ID, 4),
        (RouteV6::ID, 4),
        (PlacedFlow::ID, 5),
        (PortConfig::ID, 6),
    ];
    let others = TABLES.iter().map(|(id, _)| (*id, 3));
    Ranks {
        of_table: others.chain(ranks).collect(),
    }
}
