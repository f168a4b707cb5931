//! What was counted, over all lanes.

use super::queue::PORTS;
use super::{Ledger, Switch, SwitchStats};
use crate::control::{CounterData, EntryHandle};
use crate::ids::{Port, TableId};

/// Packets that the program dropped, by port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramDrops {
    /// In ingress, of packets that came in on the port.
    pub ingress: u64,
    /// In egress, of packets that would have left by the port.
    pub egress: u64,
}

impl Switch {
    /// The sum of what all lanes counted.
    pub(crate) fn sum(&self, of: impl Fn(&Ledger) -> CounterData) -> CounterData {
        let mut sum = of(&self.lane.ledger);
        for seat in &self.lanes {
            let one = of(&seat.lock().lane.ledger);
            sum.packets += one.packets;
            sum.bytes += one.bytes;
        }
        sum
    }

    /// Sets what [`sum`](Self::sum) gives.
    pub(crate) fn set_sum(
        &mut self,
        data: CounterData,
        mut set: impl FnMut(&mut Ledger, CounterData),
    ) {
        set(&mut self.lane.ledger, data);
        for seat in &mut self.lanes {
            set(&mut seat.get_mut().lane.ledger, CounterData::default());
        }
    }

    pub(crate) fn entry_count(&self, table: TableId, entry: EntryHandle) -> CounterData {
        self.sum(|ledger| ledger.hits(table.index(), entry.0 as usize))
    }

    pub(crate) fn set_entry_count(
        &mut self,
        table: TableId,
        entry: EntryHandle,
        data: CounterData,
    ) {
        let at = entry.0 as usize;
        self.set_sum(data, |ledger, data| {
            ledger.set_hits(table.index(), at, data)
        });
    }

    pub(crate) fn miss_count(&self, table: TableId) -> CounterData {
        self.sum(|ledger| ledger.misses[table.index()])
    }

    pub(crate) fn set_miss_count(&mut self, table: TableId, data: CounterData) {
        self.set_sum(data, |ledger, data| ledger.misses[table.index()] = data);
    }

    /// All lanes' ledgers.
    pub(crate) fn ledgers_mut(&mut self) -> impl Iterator<Item = &mut Ledger> {
        let others = self.lanes.iter_mut();
        let others = others.map(|seat| &mut seat.get_mut().lane.ledger);
        std::iter::once(&mut self.lane.ledger).chain(others)
    }

    /// Counts of what happened since the switch was built.
    pub fn stats(&self) -> SwitchStats {
        let mut stats = self.lane.ledger.stats;
        for seat in &self.lanes {
            stats += seat.lock().lane.ledger.stats;
        }
        stats
    }

    /// Packets that the program dropped, of the ports that had any.
    pub fn program_drops(&self) -> Vec<(Port, ProgramDrops)> {
        let mut drops = vec![ProgramDrops::default(); PORTS];
        let mut add = |ledger: &Ledger| {
            for (port, sum) in drops.iter_mut().enumerate() {
                let (ingress, egress) = ledger.drops(port);
                sum.ingress += ingress;
                sum.egress += egress;
            }
        };
        add(&self.lane.ledger);
        for seat in &self.lanes {
            add(&seat.lock().lane.ledger);
        }
        let ports = drops.into_iter().enumerate();
        let some = ports.filter(|(_, drops)| *drops != ProgramDrops::default());
        some.map(|(port, drops)| (port as Port, drops)).collect()
    }
}

impl std::ops::AddAssign for SwitchStats {
    fn add_assign(&mut self, other: SwitchStats) {
        let SwitchStats {
            received,
            sent,
            ingress_drops,
            egress_drops,
            queue_drops,
            priority_drops,
            loop_drops,
            no_program_drops,
            failed_asserts,
            endless_loops,
            digest_drops,
        } = other;
        self.received += received;
        self.sent += sent;
        self.ingress_drops += ingress_drops;
        self.egress_drops += egress_drops;
        self.queue_drops += queue_drops;
        self.priority_drops += priority_drops;
        self.loop_drops += loop_drops;
        self.no_program_drops += no_program_drops;
        self.failed_asserts += failed_asserts;
        self.endless_loops += endless_loops;
        self.digest_drops += digest_drops;
    }
}
