//! What a switch keeps between packets: everything the control plane can
//! write, and everything the program can.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

use crate::control::idle::IdleQueue;
use crate::control::{CloneSession, Replica, ValueSetMember};
use crate::crc::{Crc, CrcParameters};
use crate::exec::registers::RegisterLocks;
use crate::ids::Port;
use crate::meter::Meter;
use crate::profile::Profile;
use crate::program::{MeterUnit, Program};
use crate::table::Table;

/// An indirect register array.
pub(crate) struct Register {
    /// Words per cell.
    pub(crate) limbs: usize,
    pub(crate) cells: Vec<AtomicU64>,
}

/// Forwarding state of one program on one switch.
pub(crate) struct State {
    pub(crate) tables: Vec<Table>,
    pub(crate) profiles: Vec<Profile>,
    /// Indirect meters; direct ones are empty here.
    pub(crate) meters: Vec<Vec<Mutex<Meter>>>,
    pub(crate) meter_bytes: Vec<bool>,
    /// Per table: its direct meter counts bytes.
    pub(crate) direct_meter_bytes: Vec<bool>,
    pub(crate) registers: Vec<Register>,
    /// Of registers; there where several lanes share them.
    pub(crate) locks: RegisterLocks,
    pub(crate) value_sets: Vec<ValueSet>,
    pub(crate) multicast: BTreeMap<u32, Vec<Replica>>,
    pub(crate) clones: BTreeMap<u32, CloneSession>,
    pub(crate) idle: IdleQueue,
    pub(crate) down: HashSet<Port>,
    /// Those of [`Program::custom_hashes`].
    pub(crate) crcs: Vec<Crc>,
}

/// A parser value set: as written, and as matched.
#[derive(Default)]
pub(crate) struct ValueSet {
    pub(crate) members: Vec<ValueSetMember>,
    pub(crate) matches: Vec<SetMatch>,
}

/// A member of a value set: for each word of the key, value and mask, and for
/// each field an interval if it is a range.
pub(crate) struct SetMatch {
    pub(crate) value: Vec<u64>,
    pub(crate) mask: Vec<u64>,
    pub(crate) ranges: Vec<Option<(crate::Value, crate::Value)>>,
}

/// Where a meter is.
#[derive(Clone, Copy)]
pub(crate) enum MeterAt {
    /// A cell of an indirect meter.
    Cell { meter: usize, index: usize },
    /// An entry's.
    Entry { table: usize, entry: usize },
    /// The default entry's of a table.
    Miss { table: usize },
}

impl State {
    pub(crate) fn meter(&self, at: MeterAt) -> Option<&Mutex<Meter>> {
        match at {
            MeterAt::Cell { meter, index } => self.meters[meter].get(index),
            MeterAt::Entry { table, entry } => self.tables[table].meters.get(entry),
            MeterAt::Miss { table } => Some(&self.tables[table].miss_meter),
        }
    }

    pub(crate) fn meter_mut(&mut self, at: MeterAt) -> Option<&mut Mutex<Meter>> {
        match at {
            MeterAt::Cell { meter, index } => self.meters[meter].get_mut(index),
            MeterAt::Entry { table, entry } => self.tables[table].meters.get_mut(entry),
            MeterAt::Miss { table } => Some(&mut self.tables[table].miss_meter),
        }
    }

    /// Empty state for a program. Const entries and default actions are the
    /// caller's to enter.
    pub(crate) fn new(program: &Program) -> Self {
        let defs = program.tables().iter().zip(&program.parts.tables);
        let bytes = |m: &crate::program::MeterInfo| m.unit == MeterUnit::Bytes;
        State {
            tables: defs.map(|(info, def)| Table::new(info, def)).collect(),
            profiles: program
                .profiles()
                .iter()
                .map(|_| Profile::default())
                .collect(),
            meters: program
                .meters()
                .iter()
                .map(|m| match m.is_indirect() {
                    true => (0..m.size).map(|_| Mutex::default()).collect(),
                    false => Vec::new(),
                })
                .collect(),
            meter_bytes: program.meters().iter().map(bytes).collect(),
            direct_meter_bytes: program
                .tables()
                .iter()
                .map(|t| {
                    t.direct_meter
                        .is_some_and(|m| bytes(&program.meters()[m.index()]))
                })
                .collect(),
            registers: program
                .registers()
                .iter()
                .map(|r| Register {
                    limbs: r.limbs(),
                    cells: (0..r.size * r.limbs()).map(|_| AtomicU64::new(0)).collect(),
                })
                .collect(),
            locks: RegisterLocks::default(),
            value_sets: program
                .value_sets()
                .iter()
                .map(|_| ValueSet::default())
                .collect(),
            multicast: BTreeMap::new(),
            clones: BTreeMap::new(),
            idle: IdleQueue::default(),
            down: HashSet::new(),
            crcs: program
                .custom_hashes()
                .iter()
                .map(|hash| Crc::new(hash.bits, CrcParameters::standard(hash.bits)))
                .collect(),
        }
    }
}
