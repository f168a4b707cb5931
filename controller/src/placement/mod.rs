//! Where ranks go, how rings run, which path each flow takes; and how good any answer could be.

mod bound;
mod colour;
pub mod export;
mod flows;
mod halve;
mod job;
#[cfg(test)]
mod job_tests;
mod layered;
mod placer;
mod ranks;
mod regular;
#[cfg(test)]
mod tests;
pub mod traffic;
#[cfg(test)]
mod traffic_tests;

pub use bound::bound;
pub use colour::colour;
pub use flows::{
    Demand, FlowPlan, Network, Path, Port, Step, SwitchHop, Terminal, on_paths, place, replace,
};
pub use job::{JobFlow, JobPlan, RingPlan, Share, Strategy, place_job, terminals};
pub use ranks::{
    PlaceError, Site, choose, crossings, least_crossings, least_domains, ring_order, shuffle,
};
