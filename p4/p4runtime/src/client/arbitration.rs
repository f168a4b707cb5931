//! Who is primary (specification section 5).

use tokio::sync::watch;

use super::{Config, Error, Session};
use crate::rpc::Code;
use crate::v1::{self, MasterArbitrationUpdate, StreamMessageRequest, stream_message_request};

/// What this client is to the switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The switch has not answered yet.
    Unknown,
    /// It may write.
    Primary,
    /// Another client is primary.
    Backup {
        /// That client's election id.
        primary: u128,
    },
    /// There is no primary; [`Session::arbitrate`] with at least this id.
    NoPrimary {
        /// The highest id that the switch has seen.
        highest: u128,
    },
    /// The stream ended; the session cannot be used any more.
    Closed {
        /// What ended it.
        reason: String,
    },
}

impl Standing {
    /// Whether the client may write.
    #[must_use]
    pub fn is_primary(&self) -> bool {
        *self == Standing::Primary
    }

    /// Whether the session is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, Standing::Closed { .. })
    }

    /// What the switch's word means.
    pub(super) fn told(update: &MasterArbitrationUpdate) -> Standing {
        let highest = update.election_id.map_or(0, u128::from);
        let code = update.status.as_ref().map_or(0, |status| status.code);
        match Code::try_from(code) {
            Ok(Code::Ok) => Standing::Primary,
            Ok(Code::NotFound) => Standing::NoPrimary { highest },
            _ => Standing::Backup { primary: highest },
        }
    }
}

/// A client's claim to be primary with this id.
pub(super) fn claim(config: &Config, election_id: u128) -> StreamMessageRequest {
    let role = config.role.as_ref().map(|role| v1::Role {
        name: role.name.clone(),
        config: role.config.clone(),
        ..Default::default()
    });
    let update = MasterArbitrationUpdate {
        device_id: config.device_id,
        role,
        election_id: Some(election_id.into()),
        status: None,
    };
    StreamMessageRequest {
        update: Some(stream_message_request::Update::Arbitration(update)),
    }
}

impl Session {
    /// What this client is to the switch now.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    /// Follows changes of the standing, to the end of the session.
    #[must_use]
    pub fn watch_standing(&self) -> watch::Receiver<Standing> {
        self.standing.clone()
    }

    /// Waits until this client is primary.
    ///
    /// # Errors
    /// [`Error::Closed`] when the session ends first.
    pub async fn until_primary(&self) -> Result<(), Error> {
        let mut standing = self.standing.clone();
        match standing.wait_for(|s| s.is_primary() || s.is_closed()).await {
            Ok(standing) if standing.is_primary() => Ok(()),
            _ => Err(self.closed()),
        }
    }

    /// Claims the role with another election id, and returns what came of it.
    ///
    /// # Errors
    /// [`Error::ElectionId`] for 0, [`Error::NoAnswer`] and [`Error::Closed`].
    pub async fn arbitrate(&self, election_id: u128) -> Result<Standing, Error> {
        if election_id == 0 {
            let device = self.config.device_id;
            return Err(Error::ElectionId { device });
        }
        let before = *self.answers.borrow();
        self.election_id.send_replace(election_id);
        let claim = claim(&self.config, election_id);
        if self.standing().is_closed() || self.requests.send(claim).await.is_err() {
            return Err(self.closed());
        }
        self.answer(election_id, before).await
    }

    /// The standing after the answer to a claim with this id. `before` is how
    /// many answers there were before the claim: the switch speaks unasked, too.
    /// What it says after the claim cannot name a primary, or a highest id, below
    /// the id that was claimed.
    pub(super) async fn answer(&self, election_id: u128, before: u64) -> Result<Standing, Error> {
        let mut answers = self.answers.clone();
        let answer = answers.wait_for(|count| {
            *count > before
                && match *self.standing.borrow() {
                    Standing::Unknown => false,
                    Standing::Primary | Standing::Closed { .. } => true,
                    Standing::Backup { primary: id } | Standing::NoPrimary { highest: id } => {
                        id >= election_id
                    }
                }
        });
        let waited = self.config.answer_timeout;
        match tokio::time::timeout(waited, answer).await {
            Err(_) => {
                let device = self.config.device_id;
                return Err(Error::NoAnswer { device, waited });
            }
            // The reader is gone, and has said why.
            Ok(Err(_)) => return Err(self.closed()),
            Ok(Ok(_)) => {}
        }
        match self.standing() {
            Standing::Closed { .. } => Err(self.closed()),
            standing => Ok(standing),
        }
    }
}
