//! How long it takes from a failure to the last table write that repairs it, in fabric time.
//!
//! The emulator runs in virtual time, and how busy the machine is must not show in its results. So the
//! reaction has a stated cost:
//!
//! - **detection**: from the loss of the link to the controller's knowledge of it. 10 ms by default: a
//!   port-down interrupt, debouncing and a telemetry update (three missed 3.3 ms hellos come to the same).
//! - **computation**: from knowledge to the first write. 2 ms by default; measured planning of a fabric of a
//!   thousand NICs stays below it.
//! - **RPC**: each write costs a fixed time for the round trip and the agent; 500 us by default.
//! - **update**: each entry in a write costs a fixed time on top; 10 us by default, 100 000 updates per
//!   second, which is what hardware agents are reported to reach.
//!
//! The switches are written to in parallel; the batches of one switch follow each other, because their
//! order matters. A batch takes effect when its write returns.

/// Nanoseconds of fabric time.
pub type Ns = u64;

/// The cost of a reaction; see the module's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReactionModel {
    /// From the failure to the controller's knowledge, ns.
    pub detect_ns: Ns,
    /// From knowledge to the first write, ns.
    pub compute_ns: Ns,
    /// Of each write request, ns.
    pub rpc_ns: Ns,
    /// Of each update in a write request, ns.
    pub update_ns: Ns,
}

impl Default for ReactionModel {
    fn default() -> Self {
        Self {
            detect_ns: 10_000_000,
            compute_ns: 2_000_000,
            rpc_ns: 500_000,
            update_ns: 10_000,
        }
    }
}

/// When a batch takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Landing {
    /// Fabric time, ns.
    pub at: Ns,
    /// The switch.
    pub switch: u32,
    /// Position among the switch's batches.
    pub batch: usize,
}

impl ReactionModel {
    /// When each batch takes effect after a failure at `failed_at`: `batches` has, for every switch that
    /// changes, the number of updates in each of its batches. In order of time.
    #[must_use]
    pub fn landings<'a>(
        &self,
        failed_at: Ns,
        batches: impl IntoIterator<Item = (u32, &'a [usize])>,
    ) -> Vec<Landing> {
        let start = failed_at
            .saturating_add(self.detect_ns)
            .saturating_add(self.compute_ns);
        let mut landings = Vec::new();
        for (switch, sizes) in batches {
            let mut at = start;
            for (batch, updates) in sizes.iter().enumerate() {
                let updates = self.update_ns.saturating_mul(*updates as u64);
                at = at.saturating_add(self.rpc_ns).saturating_add(updates);
                landings.push(Landing { at, switch, batch });
            }
        }
        landings.sort_unstable();
        landings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_run_in_parallel_and_batches_one_after_the_other() {
        let model = ReactionModel {
            detect_ns: 100,
            compute_ns: 10,
            rpc_ns: 5,
            update_ns: 1,
        };
        let landings = model.landings(1000, [(7, &[2, 3][..]), (4, &[1][..])]);
        let at = |at, switch, batch| Landing { at, switch, batch };
        assert_eq!(landings, [at(1116, 4, 0), at(1117, 7, 0), at(1125, 7, 1)]);
    }

    #[test]
    fn nothing_to_write_lands_nowhere() {
        assert!(ReactionModel::default().landings(0, []).is_empty());
    }
}
