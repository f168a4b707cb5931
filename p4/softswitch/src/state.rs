//! What a switch keeps between packets: everything the control plane can
//! write, and everything the program can.

use std::collections::{BTreeMap, HashSet};

use crate::control::idle::IdleQueue;
use crate::control::{CloneSession, CounterData, DigestMessage, Replica, ValueSetMember};
use crate::crc::{Crc, CrcParameters};
use crate::ids::Port;
use crate::meter::Meter;
use crate::profile::Profile;
use crate::program::{MeterUnit, Program};
use crate::random::Random;
use crate::table::Table;

/// An indirect register array.
pub(crate) struct Register {
    /// Words per cell.
    pub(crate) limbs: usize,
    pub(crate) cells: Vec<u64>,
}

/// Forwarding state of one program on one switch.
pub(crate) struct State {
    pub(crate) tables: Vec<Table>,
    pub(crate) profiles: Vec<Profile>,
    /// Indirect counters; direct ones are empty here.
    pub(crate) counters: Vec<Vec<CounterData>>,
    /// Indirect meters; direct ones are empty here.
    pub(crate) meters: Vec<Vec<Meter>>,
    pub(crate) meter_bytes: Vec<bool>,
    /// Per table: its direct meter counts bytes.
    pub(crate) direct_meter_bytes: Vec<bool>,
    pub(crate) registers: Vec<Register>,
    pub(crate) value_sets: Vec<ValueSet>,
    pub(crate) multicast: BTreeMap<u32, Vec<Replica>>,
    pub(crate) clones: BTreeMap<u32, CloneSession>,
    pub(crate) digests: Vec<DigestMessage>,
    pub(crate) digest_limit: usize,
    pub(crate) idle: IdleQueue,
    pub(crate) down: HashSet<Port>,
    pub(crate) random: Random,
    /// Those of [`Program::custom_hashes`].
    pub(crate) crcs: Vec<Crc>,
    pub(crate) digest_drops: u64,
    pub(crate) failed_asserts: u64,
    pub(crate) endless_loops: u64,
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

impl State {
    /// Empty state for a program. Const entries and default actions are the
    /// caller's to enter.
    pub(crate) fn new(program: &Program, seed: u64, digest_limit: usize) -> Self {
        let defs = program.tables().iter().zip(&program.parts.tables);
        let bytes = |m: &crate::program::MeterInfo| m.unit == MeterUnit::Bytes;
        State {
            tables: defs.map(|(info, def)| Table::new(info, def)).collect(),
            profiles: program
                .profiles()
                .iter()
                .map(|_| Profile::default())
                .collect(),
            counters: program
                .counters()
                .iter()
                .map(|c| match c.is_indirect() {
                    true => vec![CounterData::default(); c.size],
                    false => Vec::new(),
                })
                .collect(),
            meters: program
                .meters()
                .iter()
                .map(|m| match m.is_indirect() {
                    true => vec![Meter::default(); m.size],
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
                    cells: vec![0; r.size * r.limbs()],
                })
                .collect(),
            value_sets: program
                .value_sets()
                .iter()
                .map(|_| ValueSet::default())
                .collect(),
            multicast: BTreeMap::new(),
            clones: BTreeMap::new(),
            digests: Vec::new(),
            digest_limit,
            idle: IdleQueue::default(),
            down: HashSet::new(),
            random: Random::new(seed),
            crcs: program
                .custom_hashes()
                .iter()
                .map(|hash| Crc::new(hash.bits, CrcParameters::standard(hash.bits)))
                .collect(),
            digest_drops: 0,
            failed_asserts: 0,
            endless_loops: 0,
        }
    }
}
