//! Arrays of the program, as constants of generated code.

use crate::v1::{
    CounterData, CounterEntry, DigestEntry, Index, MeterConfig, MeterEntry, P4Data, RegisterEntry,
    digest_entry, p4_data,
};

/// An array of counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Counter {
    /// Its P4Info id.
    pub id: u32,
    /// Its alias.
    pub name: &'static str,
    /// How many cells it has.
    pub size: u32,
}

impl Counter {
    /// One cell, to read.
    #[must_use]
    pub fn cell(&self, index: u32) -> CounterEntry {
        CounterEntry {
            counter_id: self.id,
            index: cell(index),
            data: None,
        }
    }

    /// One cell, with a new value.
    #[must_use]
    pub fn set(&self, index: u32, data: CounterData) -> CounterEntry {
        CounterEntry {
            data: Some(data),
            ..self.cell(index)
        }
    }

    /// Every cell, to read.
    #[must_use]
    pub fn all(&self) -> CounterEntry {
        CounterEntry {
            counter_id: self.id,
            ..Default::default()
        }
    }

    /// Index and value of a cell of this counter that was read.
    #[must_use]
    pub fn read(&self, entry: &CounterEntry) -> Option<(u32, CounterData)> {
        if entry.counter_id != self.id {
            return None;
        }
        let index = u32::try_from(entry.index?.index).ok()?;
        Some((index, entry.data?))
    }
}

/// An array of meters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Meter {
    /// Its P4Info id.
    pub id: u32,
    /// Its alias.
    pub name: &'static str,
    /// How many cells it has.
    pub size: u32,
}

impl Meter {
    /// One cell: to read, or to set; without a config every packet is green.
    #[must_use]
    pub fn cell(&self, index: u32, config: Option<MeterConfig>) -> MeterEntry {
        MeterEntry {
            meter_id: self.id,
            index: cell(index),
            config,
            counter_data: None,
        }
    }

    /// Every cell, to read.
    #[must_use]
    pub fn all(&self) -> MeterEntry {
        MeterEntry {
            meter_id: self.id,
            ..Default::default()
        }
    }
}

/// An array of registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Register {
    /// Its P4Info id.
    pub id: u32,
    /// Its alias.
    pub name: &'static str,
    /// How many cells it has.
    pub size: u32,
}

impl Register {
    /// One cell, to read. Not every switch serves registers.
    #[must_use]
    pub fn cell(&self, index: u32) -> RegisterEntry {
        RegisterEntry {
            register_id: self.id,
            index: cell(index),
            data: None,
        }
    }

    /// One cell of a register of unsigned numbers, with a new value.
    #[must_use]
    pub fn set(&self, index: u32, value: u128) -> RegisterEntry {
        let value = p4_data::Data::Bitstring(crate::bytes::shortest(value));
        RegisterEntry {
            data: Some(P4Data { data: Some(value) }),
            ..self.cell(index)
        }
    }

    /// Every cell, to read.
    #[must_use]
    pub fn all(&self) -> RegisterEntry {
        RegisterEntry {
            register_id: self.id,
            ..Default::default()
        }
    }
}

/// A digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest {
    /// Its P4Info id.
    pub id: u32,
    /// Its alias.
    pub name: &'static str,
}

impl Digest {
    /// How the digest is to be sent; `None` to read it.
    #[must_use]
    pub fn entry(&self, config: Option<digest_entry::Config>) -> DigestEntry {
        DigestEntry {
            digest_id: self.id,
            config,
        }
    }
}

fn cell(index: u32) -> Option<Index> {
    Some(Index {
        index: index.into(),
    })
}
