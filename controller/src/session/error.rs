//! What can go wrong with one switch, and with many.

use crate::reconcile;
use std::fmt;

/// What went wrong with one switch.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// There is no way to it.
    #[error("no connection: {0}")]
    Unreachable(String),
    /// It was reached before and is not now; the controller keeps trying.
    #[error("not connected at the moment: {0}")]
    Disconnected(String),
    /// Another controller is primary.
    #[error(
        "another controller is primary, with election id {primary}: stop it, or choose an election id above"
    )]
    NotPrimary {
        /// The other one's election id.
        primary: String,
    },
    /// The session, or a call of it, failed.
    #[error(transparent)]
    Session(#[from] p4runtime::client::Error),
    /// It could not be brought to its desired state.
    #[error(transparent)]
    Reconcile(#[from] reconcile::Error),
    /// The program lacks something that is asked for.
    #[error(transparent)]
    Program(#[from] p4runtime::info::Error),
    /// What is to be written does not suit the program.
    #[error(transparent)]
    Entity(#[from] p4runtime::entry::Error),
    /// A header of what is to be sent does not suit the program.
    #[error(transparent)]
    Header(#[from] p4runtime::typed::Error),
    /// There is no way to where telemetry reports are to go.
    #[error("telemetry reports cannot be passed on: {0}")]
    Reports(std::io::Error),
    /// The topology has no endpoint for it, or an endpoint no switch.
    #[error("{0}")]
    Mismatch(String),
}

/// Something failed on some switches; it was done on the others.
#[derive(Debug)]
pub struct FleetError {
    /// What was tried.
    pub what: &'static str,
    /// Number of switches that it was tried on.
    pub switches: usize,
    /// Names of those that failed, and why.
    pub failures: Vec<(String, SwitchError)>,
}

/// Failures that a message spells out.
const SHOWN: usize = 5;

impl fmt::Display for FleetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed = self.failures.len();
        write!(
            f,
            "{} failed on {failed} of {} switches",
            self.what, self.switches
        )?;
        for (name, error) in self.failures.iter().take(SHOWN) {
            write!(f, "\n  {name}: {error}")?;
        }
        if failed > SHOWN {
            write!(f, "\n  and {} more", failed - SHOWN)?;
        }
        Ok(())
    }
}

impl std::error::Error for FleetError {}
