//! A switch that several threads have.

use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::Switch;

/// A switch shared between those who move packets and those who control it. Clones are the same
/// switch.
#[derive(Clone, Debug)]
pub struct SharedSwitch(Arc<RwLock<Switch>>);

/// The switch, and nobody else has it until this is dropped.
pub type Exclusive<'a> = RwLockWriteGuard<'a, Switch>;

impl SharedSwitch {
    /// Shares a switch.
    pub fn new(switch: Switch) -> Self {
        SharedSwitch(Arc::new(RwLock::new(switch)))
    }

    /// Waits until nobody else has the switch. Who waits gets it within about a millisecond
    /// of others' use, however often they take it.
    pub fn lock(&self) -> Exclusive<'_> {
        self.0.write()
    }

    /// Waits until nobody has the switch alone.
    pub(super) fn share(&self) -> RwLockReadGuard<'_, Switch> {
        self.0.read()
    }
}

impl From<Switch> for SharedSwitch {
    fn from(switch: Switch) -> Self {
        SharedSwitch::new(switch)
    }
}
