//! Ports of generated switches, handed out in order.

use crate::ids::{PortRef, SwitchId};

/// A generated switch and the next port to plug a cable into.
pub(crate) struct Free {
    pub(crate) switch: SwitchId,
    next: u16,
}

impl Free {
    pub(crate) fn new(switch: SwitchId) -> Self {
        Self { switch, next: 1 }
    }

    pub(crate) fn take(&mut self) -> PortRef {
        let port = self.next;
        self.next += 1;
        PortRef {
            switch: self.switch,
            port,
        }
    }
}
