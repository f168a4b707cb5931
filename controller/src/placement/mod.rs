//! Where ranks go, how rings run, which path each flow takes; and how good any answer could be.

mod advice;
pub mod baseline;
mod bound;
mod colour;
mod cut;
mod dual;
pub mod export;
mod fitted;
mod flows;
mod halve;
mod host_groups;
#[cfg(test)]
mod idle_tests;
mod inventory;
mod job;
#[cfg(test)]
mod job_tests;
mod layered;
mod least;
mod outlook;
mod placer;
mod policy;
mod ranks;
mod regular;
mod search;
mod seats;
mod swaps;
#[cfg(test)]
mod tests;
pub mod traffic;
#[cfg(test)]
mod traffic_tests;

pub use advice::{Move, Running, defragment, moves_for};
pub use bound::{BoundBy, bound};
pub use colour::colour;
pub use cut::Cut;
pub use fitted::place_workload;
pub use flows::{
    Demand, FlowPlan, Network, Path, Port, Step, SwitchHop, Terminal, on_paths, place, replace,
};
pub use inventory::{Holder, Inventory, Occupancy, Piece, Room, Spot, TakeError, Usage};
pub use job::{JobFlow, JobPlan, RingPlan, Share, Strategy, place_job, terminals};
pub use least::least_crossing;
pub use outlook::{Drops, NEXT, Outlook, Term, Times, Worth};
pub use policy::Policy;
pub use ranks::{
    PlaceError, Site, choose, crossings, least_crossings, least_domains, ring_order, shuffle,
};
pub use search::{Costs, Found, MOVE_PRICE, Relocation, Resident, Search, best_relocation};
pub use seats::{Seating, seat};
