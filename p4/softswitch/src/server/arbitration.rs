//! Who may write: client arbitration by role (P4Runtime, "Client Arbitration and Controller
//! Replication").
//!
//! Pure: requests come in as values, and what has to be told to which stream comes out as
//! values. The service holds the [`Arbiter`] in the same lock that serialises writes, so that no
//! write of an old primary is in flight when a new one is chosen.

use std::collections::BTreeMap;

use p4runtime::rpc::Code;

use super::fault::Fault;
use super::roles::Scope;

/// One open `StreamChannel`, numbered by the service in the order of opening.
pub type StreamId = u64;

/// The role configuration a primary sent: the type's URL and the message's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleConfig {
    /// What the bytes are, as in `google.protobuf.Any`.
    pub type_url: String,
    /// The encoded message.
    pub value: Vec<u8>,
}

/// A `MasterArbitrationUpdate` as a client sent it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The device the client wants to control.
    pub device_id: u64,
    /// The role's name; empty is the default role.
    pub role: String,
    /// The role's configuration, if the client gave one.
    pub config: Option<RoleConfig>,
    /// The election id; unset is below every other and never primary.
    pub election_id: Option<u128>,
}

/// A `MasterArbitrationUpdate` to send to one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whom to tell.
    pub stream: StreamId,
    /// The role it is about.
    pub role: String,
    /// The configuration the last primary set.
    pub config: Option<RoleConfig>,
    /// The highest election id of any primary so far; unset if there was none.
    pub election_id: Option<u128>,
    /// `Ok` for the primary, `AlreadyExists` for a backup of a primary, `NotFound` for a backup
    /// when there is no primary.
    pub status: Code,
}

fn refuse<T>(code: Code, message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::new(code, message))
}

#[derive(Clone, Debug, Default)]
struct Role {
    /// The highest election id of any primary so far.
    highest: Option<u128>,
    config: Option<RoleConfig>,
    clients: BTreeMap<StreamId, Option<u128>>,
    primary: Option<StreamId>,
}

/// The clients of one device, by role.
#[derive(Clone, Debug)]
pub struct Arbiter {
    device_id: u64,
    max_streams_per_role: usize,
    max_roles: usize,
    roles: BTreeMap<String, Role>,
    role_of: BTreeMap<StreamId, String>,
}

impl Arbiter {
    /// For the device `device_id`, with at most `max_streams_per_role` live clients in a role,
    /// and at most `max_roles` roles, which are never forgotten.
    pub fn new(device_id: u64, max_streams_per_role: usize, max_roles: usize) -> Self {
        Arbiter {
            device_id,
            max_streams_per_role,
            max_roles,
            roles: BTreeMap::new(),
            role_of: BTreeMap::new(),
        }
    }

    /// Takes a client's claim and returns whom to tell what, in the order in which to tell it:
    /// backups first, a new primary last.
    ///
    /// # Errors
    /// A [`Fault`] ends the stream with its code; nobody else is told until
    /// [`disconnect`](Self::disconnect) reports the stream's end.
    pub fn claim(&mut self, stream: StreamId, claim: Claim) -> Result<Vec<Notice>, Fault> {
        self.check_stream(stream, &claim)?;
        self.check_config(&claim)?;
        if !self.roles.contains_key(&claim.role) && self.roles.len() >= self.max_roles {
            return refuse(
                Code::ResourceExhausted,
                format!(
                    "there are {} roles already, which is the limit",
                    self.max_roles
                ),
            );
        }
        let role = self.roles.entry(claim.role.clone()).or_default();
        let taken = claim.election_id.is_some()
            && role
                .clients
                .iter()
                .any(|(s, id)| *s != stream && *id == claim.election_id);
        if taken {
            return refuse(
                Code::InvalidArgument,
                format!(
                    "election id {} is already used by another live client of role \"{}\"",
                    claim.election_id.unwrap_or_default(),
                    claim.role
                ),
            );
        }
        if !role.clients.contains_key(&stream) && role.clients.len() >= self.max_streams_per_role {
            return refuse(
                Code::ResourceExhausted,
                format!(
                    "role \"{}\" already has {} streams, which is the limit",
                    claim.role, self.max_streams_per_role
                ),
            );
        }
        role.clients.insert(stream, claim.election_id);
        self.role_of.insert(stream, claim.role.clone());

        let was_primary = role.primary == Some(stream);
        let becomes_primary = claim.election_id.is_some() && claim.election_id >= role.highest;
        if becomes_primary {
            role.primary = Some(stream);
            role.highest = claim.election_id;
            role.config = claim.config;
        } else if was_primary {
            role.primary = None;
        }
        if becomes_primary || was_primary {
            Ok(role.notices_to_all(&claim.role))
        } else {
            Ok(vec![role.notice(stream, &claim.role)])
        }
    }

    /// A config of a form that is not known, or that names what another role with live clients
    /// has for itself (or the other way round).
    fn check_config(&self, claim: &Claim) -> Result<(), Fault> {
        let scope = Scope::of(claim.config.as_ref())?;
        for (name, role) in &self.roles {
            if *name == claim.role || role.clients.is_empty() {
                continue;
            }
            if let Some(id) = scope.conflict(&Scope::of(role.config.as_ref())?) {
                return refuse(
                    Code::InvalidArgument,
                    format!(
                        "the configs of this role and of role \"{name}\" both name id {id:#x}, which one of them has for itself"
                    ),
                );
            }
        }
        Ok(())
    }

    /// A device or role that changes on a live stream, or a device that is not this one.
    fn check_stream(&self, stream: StreamId, claim: &Claim) -> Result<(), Fault> {
        let Some(current) = self.role_of.get(&stream) else {
            if claim.device_id != self.device_id {
                return refuse(
                    Code::NotFound,
                    format!(
                        "no device {} here; this is device {}",
                        claim.device_id, self.device_id
                    ),
                );
            }
            return Ok(());
        };
        if claim.device_id != self.device_id {
            return refuse(
                Code::FailedPrecondition,
                format!(
                    "this stream controls device {}; open another stream for device {}",
                    self.device_id, claim.device_id
                ),
            );
        }
        if *current != claim.role {
            return refuse(
                Code::FailedPrecondition,
                format!(
                    "this stream has role \"{current}\"; open another stream for role \"{}\"",
                    claim.role
                ),
            );
        }
        Ok(())
    }

    /// Forgets a stream that ended and returns whom to tell: every other client of the role if
    /// the primary is gone. Nobody is promoted; a backup has to claim again.
    pub fn disconnect(&mut self, stream: StreamId) -> Vec<Notice> {
        let Some(name) = self.role_of.remove(&stream) else {
            return Vec::new();
        };
        let Some(role) = self.roles.get_mut(&name) else {
            return Vec::new();
        };
        role.clients.remove(&stream);
        if role.primary == Some(stream) {
            role.primary = None;
            role.notices_to_all(&name)
        } else {
            Vec::new()
        }
    }

    /// Whether a client that calls itself (`role`, `election_id`) may write.
    ///
    /// # Errors
    /// `NotFound` for a role nobody has ever claimed (the default role always exists),
    /// `PermissionDenied` for anybody but the role's live primary.
    pub fn check_primary(&self, role: &str, election_id: Option<u128>) -> Result<(), Fault> {
        let Some(state) = self.roles.get(role) else {
            if role.is_empty() {
                return refuse(
                    Code::PermissionDenied,
                    "no client has become primary: send a MasterArbitrationUpdate on a StreamChannel",
                );
            }
            return refuse(
                Code::NotFound,
                format!("no client has ever claimed role \"{role}\""),
            );
        };
        let Some(id) = election_id else {
            return refuse(
                Code::PermissionDenied,
                "election_id is not set, so the client cannot be the primary",
            );
        };
        if state.primary.is_none() || state.highest != Some(id) {
            return refuse(
                Code::PermissionDenied,
                format!("election id {id} is not that of the primary for role \"{role}\""),
            );
        }
        Ok(())
    }

    /// Whether `stream` is the primary of its role.
    pub fn is_primary(&self, stream: StreamId) -> bool {
        self.role_of
            .get(&stream)
            .and_then(|name| self.roles.get(name))
            .is_some_and(|role| role.primary == Some(stream))
    }

    /// The role a stream has claimed.
    pub fn role_of(&self, stream: StreamId) -> Option<&str> {
        self.role_of.get(&stream).map(String::as_str)
    }

    /// The roles that anybody has ever claimed.
    pub fn role_names(&self) -> Vec<String> {
        self.roles.keys().cloned().collect()
    }

    /// The configuration that the last primary of `role` set; `None` is full access.
    pub fn config_of(&self, role: &str) -> Option<&RoleConfig> {
        self.roles.get(role).and_then(|r| r.config.as_ref())
    }

    /// The primaries of all roles: role name and stream.
    pub fn primaries(&self) -> impl Iterator<Item = (&str, StreamId)> {
        self.roles
            .iter()
            .filter_map(|(name, role)| role.primary.map(|stream| (name.as_str(), stream)))
    }
}

impl Role {
    fn notice(&self, stream: StreamId, name: &str) -> Notice {
        let status = match self.primary {
            Some(primary) if primary == stream => Code::Ok,
            Some(_) => Code::AlreadyExists,
            None => Code::NotFound,
        };
        Notice {
            stream,
            role: name.to_owned(),
            config: self.config.clone(),
            election_id: self.highest,
            status,
        }
    }

    fn notices_to_all(&self, name: &str) -> Vec<Notice> {
        let backups = self.clients.keys().filter(|s| Some(**s) != self.primary);
        backups
            .chain(self.primary.iter())
            .map(|s| self.notice(*s, name))
            .collect()
    }
}

#[cfg(test)]
mod tests;
