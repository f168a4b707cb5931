//! How a packet's way gets at what a switch keeps between packets.

use std::ops::Deref;

use crate::state::{MeterAt, State};

/// A switch's state, for one who has it alone or for one of several.
///
/// Everything that only the control plane changes is read through it by dereferencing. What
/// packets change is made so that it can be changed by several (registers are atomic words,
/// meters have locks); who has the state alone pays for none of it.
pub(crate) enum Access<'a> {
    /// Nobody else has it.
    Alone(&'a mut State),
    /// Others move packets through it as well; nobody changes anything else.
    Beside(&'a State),
}

impl Deref for Access<'_> {
    type Target = State;

    #[inline(always)]
    fn deref(&self) -> &State {
        match self {
            Access::Alone(state) => state,
            Access::Beside(state) => state,
        }
    }
}

impl Access<'_> {
    /// The same, for a while.
    #[inline(always)]
    pub(crate) fn again(&mut self) -> Access<'_> {
        match self {
            Access::Alone(state) => Access::Alone(state),
            Access::Beside(state) => Access::Beside(state),
        }
    }

    /// Executes a meter for a packet of `bytes` at `now` ns, `amount` tokens of it; its colour.
    pub(crate) fn colour(
        &mut self,
        meter: MeterAt,
        amount: u64,
        bytes: u64,
        now: u64,
    ) -> Option<u64> {
        match self {
            Access::Alone(state) => {
                let meter = state.meter_mut(meter)?.get_mut();
                Some(meter.colour(amount, bytes, now))
            }
            Access::Beside(state) => {
                let mut meter = state.meter(meter)?.lock();
                Some(meter.colour(amount, bytes, now))
            }
        }
    }
}
