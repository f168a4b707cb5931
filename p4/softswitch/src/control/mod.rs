//! The control plane's side of a [`crate::Switch`]: typed operations by dense ids.
//!
//! Names are resolved once, with [`crate::Program`]'s `*_id` functions. All
//! operations are synchronous and validate everything; a refused operation
//! changes nothing. Times are the switch's clock in ns, as given to
//! [`crate::Switch::ingress`].
//!
//! Entries of tables without priorities are identified by their key, the
//! others by key and priority.

mod error;
mod externs;
mod hashes;
pub(crate) mod idle;
mod profiles;
mod replication;
mod resources;
mod tables;
mod types;

pub use crate::crc::CrcParameters;
pub use error::{ControlError, ErrorKind};
pub use hashes::CustomHash;
pub use types::*;

use crate::ids::ActionId;
use crate::program::Program;
use crate::program::code::limbs;
use crate::state::State;
use crate::switch::Switch;

type Result<T> = std::result::Result<T, ControlError>;

impl Switch {
    /// The program and its state.
    fn both(&self) -> Result<(&Program, &State)> {
        match (&self.program, &self.state) {
            (Some(program), Some(state)) => Ok((program, state)),
            _ => Err(ControlError::NoProgram),
        }
    }

    /// The program and its state, to change.
    fn both_mut(&mut self) -> Result<(&Program, &mut State)> {
        match (&self.program, &mut self.state) {
            (Some(program), Some(state)) => Ok((program, state)),
            _ => Err(ControlError::NoProgram),
        }
    }
}

/// Checks a call against what may be called, and brings its arguments into
/// words.
fn encode_call(
    program: &Program,
    owner: &str,
    allowed: &[ActionId],
    call: &ActionCall,
) -> Result<Vec<u64>> {
    let name = |id: &ActionId| program.actions().get(id.index()).map_or("?", |a| &a.name);
    if !allowed.contains(&call.action) {
        return Err(ControlError::ActionNotAllowed {
            owner: owner.to_owned(),
            action: name(&call.action).to_owned(),
            known: allowed.iter().map(name).collect::<Vec<_>>().join(", "),
        });
    }
    let action = &program.actions()[call.action.index()];
    if action.params.len() != call.params.len() {
        return Err(ControlError::ParamCount {
            action: action.name.clone(),
            expected: action.params.len(),
            got: call.params.len(),
        });
    }
    let mut words = Vec::new();
    for (param, value) in action.params.iter().zip(&call.params) {
        if value.bits() > param.width {
            return Err(ControlError::TooWide {
                what: format!("{}: parameter {}", action.name, param.name),
                value: value.to_string(),
                width: param.width,
            });
        }
        words.extend((0..limbs(param.width)).map(|i| value.limb(i)));
    }
    Ok(words)
}

/// An action's arguments out of words.
fn decode_call(program: &Program, action: ActionId, data: &[u64]) -> ActionCall {
    let mut at = 0;
    let params = program.actions()[action.index()]
        .params
        .iter()
        .map(|param| {
            let n = limbs(param.width);
            at += n;
            crate::Value::from_limbs(&data[at - n..at])
        })
        .collect();
    ActionCall { action, params }
}
