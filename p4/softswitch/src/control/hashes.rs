//! Operations on hashes whose parameters are the control plane's.

use super::{ControlError, CrcParameters, Result};
use crate::crc::Crc;
use crate::switch::Switch;

/// A custom CRC of the program, and what it computes now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomHash {
    /// The JSON's name of the calculation, or the full name of the action selector.
    pub name: String,
    /// Bits of the CRC.
    pub bits: u32,
    /// The statement that it is for, on one line, if the JSON has it.
    pub source: String,
    /// What it computes.
    pub parameters: CrcParameters,
}

impl Switch {
    /// The program's custom CRCs (`crc16_custom`, `crc32_custom`).
    ///
    /// # Errors
    /// When no program is installed.
    pub fn custom_hashes(&self) -> Result<Vec<CustomHash>> {
        let (program, state) = self.both()?;
        let all = program.custom_hashes().iter().zip(&state.crcs);
        Ok(all
            .map(|(info, crc)| CustomHash {
                name: info.name.clone(),
                bits: info.bits,
                source: info.source.clone(),
                parameters: crc.parameters(),
            })
            .collect())
    }

    /// Sets the parameters of a custom CRC, from the next packet on. They last until another
    /// program is installed.
    ///
    /// # Errors
    /// When the program has no such CRC, or a parameter has more bits than it.
    pub fn set_custom_hash(&mut self, name: &str, parameters: CrcParameters) -> Result<()> {
        let (program, state) = self.both_mut()?;
        let mut all = program.custom_hashes().iter().zip(&mut state.crcs);
        let Some((info, crc)) = all.find(|(info, _)| info.name == name) else {
            let names = program.custom_hashes().iter().map(|h| h.name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            return Err(ControlError::NotFound(match names.is_empty() {
                true => "the program has no hash with custom parameters \
                         (crc16_custom, crc32_custom)"
                    .to_owned(),
                false => format!("the program has no custom hash {name:?}; it has {names}"),
            }));
        };
        if let Some((field, value)) = parameters.misfit(info.bits) {
            return Err(ControlError::Invalid(format!(
                "{field} {value:#x} does not fit the {} bits of {name}",
                info.bits
            )));
        }
        *crc = Crc::new(info.bits, parameters);
        Ok(())
    }
}
