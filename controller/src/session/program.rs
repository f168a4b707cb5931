//! The P4 program that switches run.

use p4runtime::client::Pipeline;
use p4runtime::info::{Error, Index};

/// A program: its interface, and what a switch loads.
#[derive(Clone, Debug)]
pub struct Program {
    /// The interface by name.
    pub index: Index,
    /// What is pushed; its cookie tells whether a switch has it already.
    pub pipeline: Pipeline,
}

/// The committed artefacts, so that nothing has to be installed or found at run time.
const P4INFO: &str = include_str!("../../../p4/compiled/fabric.p4info.txtpb");
const DEVICE_CONFIG: &[u8] = include_bytes!("../../../p4/compiled/fabric.json");

impl Program {
    /// The fabric's pipeline, as it was compiled.
    ///
    /// # Errors
    /// Never for the committed P4Info, which the build has read as well.
    pub fn fabric() -> Result<Self, Error> {
        Self::new(P4INFO, DEVICE_CONFIG.to_vec())
    }

    /// A program from P4Info in text format and what p4c made for the target.
    ///
    /// # Errors
    /// The P4Info is not well formed.
    pub fn new(p4info: &str, device_config: Vec<u8>) -> Result<Self, Error> {
        let index = Index::parse_text(p4info)?;
        let pipeline = Pipeline::new(index.p4info().clone(), device_config);
        Ok(Self { index, pipeline })
    }
}
