//! The direct resources of entries and default entries, and what meters counted.

use super::externs::{cell, cell_mut, check_meter, meter_name};
use super::tables::{check_handle, info};
use super::{ControlError, CounterData, DefaultResources, EntryHandle, MeterConfig, Result};
use crate::ids::{MeterId, TableId};
use crate::program::TableInfo;
use crate::switch::Switch;
use crate::table::Table;

fn lacks(info: &TableInfo, what: &str) -> ControlError {
    ControlError::Invalid(format!("{} has no direct {what}", info.name))
}

impl Switch {
    /// The table's part and its description, to change the resources of.
    fn resources(&mut self, table: TableId) -> Result<(&TableInfo, &mut Table)> {
        let (program, state) = self.both_mut()?;
        let info = info(program, table)?;
        Ok((info, &mut state.tables[table.index()]))
    }

    /// Sets the direct counter of an entry.
    ///
    /// # Errors
    /// When the entry is not there, or the table has no direct counter.
    pub fn set_entry_counter(
        &mut self,
        table: TableId,
        entry: EntryHandle,
        data: CounterData,
    ) -> Result<()> {
        let (info, own) = self.resources(table)?;
        check_handle(own, info, entry)?;
        if !own.has_counter() {
            return Err(lacks(info, "counter"));
        }
        self.set_entry_count(table, entry, data);
        Ok(())
    }

    /// Sets the direct meter of an entry, with full buckets; `None`: always green.
    ///
    /// # Errors
    /// When the entry is not there, or the table has no direct meter.
    pub fn set_entry_meter(
        &mut self,
        table: TableId,
        entry: EntryHandle,
        config: Option<MeterConfig>,
    ) -> Result<()> {
        check_meter(config.as_ref())?;
        let (info, own) = self.resources(table)?;
        check_handle(own, info, entry)?;
        let meter = own.meters.get_mut(entry.0 as usize);
        let meter = meter.ok_or_else(|| lacks(info, "meter"))?;
        meter.get_mut().configure(config);
        Ok(())
    }

    /// Starts counting what an entry's direct meter gives which colour anew.
    ///
    /// # Errors
    /// When the entry is not there, or the table has no direct meter.
    pub fn reset_entry_meter_counts(&mut self, table: TableId, entry: EntryHandle) -> Result<()> {
        let (info, own) = self.resources(table)?;
        check_handle(own, info, entry)?;
        let meter = own.meters.get_mut(entry.0 as usize);
        let meter = meter.ok_or_else(|| lacks(info, "meter"))?;
        meter.get_mut().reset_counts();
        Ok(())
    }

    /// The direct resources of the table's default entry.
    ///
    /// # Errors
    /// When there is no such table.
    pub fn default_resources(&self, table: TableId) -> Result<DefaultResources> {
        let (program, state) = self.both()?;
        info(program, table)?;
        let own = &state.tables[table.index()];
        let meter = own.miss_meter.lock();
        Ok(DefaultResources {
            counter: own.has_counter().then(|| self.miss_count(table)),
            meter: meter.config(),
            meter_counts: own.has_meter().then(|| meter.counts()),
        })
    }

    /// Sets the direct counter of the default entry.
    ///
    /// # Errors
    /// When the table has no direct counter.
    pub fn set_default_counter(&mut self, table: TableId, data: CounterData) -> Result<()> {
        let (info, own) = self.resources(table)?;
        if !own.has_counter() {
            return Err(lacks(info, "counter"));
        }
        self.set_miss_count(table, data);
        Ok(())
    }

    /// Sets the direct meter of the default entry, with full buckets; `None`: misses are not
    /// metered.
    ///
    /// # Errors
    /// When the table has no direct meter.
    pub fn set_default_meter(&mut self, table: TableId, config: Option<MeterConfig>) -> Result<()> {
        check_meter(config.as_ref())?;
        let (info, own) = self.resources(table)?;
        match own.has_meter() {
            true => own.miss_meter.get_mut().configure(config),
            false => return Err(lacks(info, "meter")),
        }
        Ok(())
    }

    /// Starts counting what the default entry's direct meter gives which colour anew.
    ///
    /// # Errors
    /// When the table has no direct meter.
    pub fn reset_default_meter_counts(&mut self, table: TableId) -> Result<()> {
        let (info, own) = self.resources(table)?;
        match own.has_meter() {
            true => own.miss_meter.get_mut().reset_counts(),
            false => return Err(lacks(info, "meter")),
        }
        Ok(())
    }

    /// What a cell of an indirect meter gave which colour: green, yellow, red.
    ///
    /// # Errors
    /// When there is no such meter or cell.
    pub fn meter_counts(&self, meter: MeterId, index: u64) -> Result<[CounterData; 3]> {
        let (program, state) = self.both()?;
        let name = meter_name(program, meter)?;
        let cell = cell(&state.meters[meter.index()], index, name)?;
        Ok(cell.lock().counts())
    }

    /// Starts counting what a cell of an indirect meter gives which colour anew.
    ///
    /// # Errors
    /// When there is no such meter or cell.
    pub fn reset_meter_counts(&mut self, meter: MeterId, index: u64) -> Result<()> {
        let (program, state) = self.both_mut()?;
        let name = meter_name(program, meter)?;
        let cell = cell_mut(&mut state.meters[meter.index()], index, name)?;
        cell.get_mut().reset_counts();
        Ok(())
    }
}
