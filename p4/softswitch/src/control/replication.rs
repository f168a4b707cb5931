//! Multicast groups, clone sessions and digests.

use super::{CloneSession, ControlError, DigestMessage, Replica, Result};
use crate::switch::Switch;
use crate::switch::queue::PORTS;

fn check_replicas(replicas: &[Replica], what: &str) -> Result<()> {
    for (i, replica) in replicas.iter().enumerate() {
        if usize::from(replica.port) >= PORTS {
            let why = format!("{what}: port {} is not below {PORTS}", replica.port);
            return Err(ControlError::Invalid(why));
        }
        if replicas[..i].contains(replica) {
            let (port, instance) = (replica.port, replica.instance);
            let why = format!("{what}: port {port}, instance {instance} is there twice");
            return Err(ControlError::Invalid(why));
        }
    }
    Ok(())
}

fn group_name(id: u32) -> String {
    format!("multicast group {id}")
}

fn session_name(id: u32) -> String {
    format!("clone session {id}")
}

impl Switch {
    /// Adds a multicast group.
    ///
    /// # Errors
    /// When it is there already, its number is 0, a port does not exist or a
    /// replica is there twice.
    pub fn multicast_insert(&mut self, id: u32, replicas: &[Replica]) -> Result<()> {
        let (_, state) = self.both_mut()?;
        if id == 0 {
            let why = "multicast group 0 means no multicast; number groups from 1";
            return Err(ControlError::Invalid(why.to_owned()));
        }
        check_replicas(replicas, &group_name(id))?;
        if state.multicast.contains_key(&id) {
            return Err(ControlError::Exists(group_name(id)));
        }
        state.multicast.insert(id, replicas.to_vec());
        Ok(())
    }

    /// Replaces a multicast group's replicas.
    ///
    /// # Errors
    /// When it is not there, or as for an insert.
    pub fn multicast_modify(&mut self, id: u32, replicas: &[Replica]) -> Result<()> {
        let (_, state) = self.both_mut()?;
        check_replicas(replicas, &group_name(id))?;
        match state.multicast.get_mut(&id) {
            Some(group) => *group = replicas.to_vec(),
            None => return Err(ControlError::NotFound(group_name(id))),
        }
        Ok(())
    }

    /// Removes a multicast group.
    ///
    /// # Errors
    /// When it is not there.
    pub fn multicast_delete(&mut self, id: u32) -> Result<()> {
        let (_, state) = self.both_mut()?;
        match state.multicast.remove(&id) {
            Some(_) => Ok(()),
            None => Err(ControlError::NotFound(group_name(id))),
        }
    }

    /// All multicast groups, by number.
    pub fn multicast_groups(&self) -> Vec<(u32, Vec<Replica>)> {
        let groups = self.state.iter().flat_map(|s| &s.multicast);
        groups
            .map(|(&id, replicas)| (id, replicas.clone()))
            .collect()
    }

    /// Adds a clone session.
    ///
    /// # Errors
    /// When it is there already, a port does not exist, or a replica is there
    /// twice.
    pub fn clone_insert(&mut self, session: &CloneSession) -> Result<()> {
        let (_, state) = self.both_mut()?;
        check_replicas(&session.replicas, &session_name(session.id))?;
        if state.clones.contains_key(&session.id) {
            return Err(ControlError::Exists(session_name(session.id)));
        }
        state.clones.insert(session.id, session.clone());
        Ok(())
    }

    /// Replaces a clone session.
    ///
    /// # Errors
    /// When it is not there, or as for an insert.
    pub fn clone_modify(&mut self, session: &CloneSession) -> Result<()> {
        let (_, state) = self.both_mut()?;
        check_replicas(&session.replicas, &session_name(session.id))?;
        match state.clones.get_mut(&session.id) {
            Some(own) => *own = session.clone(),
            None => return Err(ControlError::NotFound(session_name(session.id))),
        }
        Ok(())
    }

    /// Removes a clone session.
    ///
    /// # Errors
    /// When it is not there.
    pub fn clone_delete(&mut self, id: u32) -> Result<()> {
        let (_, state) = self.both_mut()?;
        match state.clones.remove(&id) {
            Some(_) => Ok(()),
            None => Err(ControlError::NotFound(session_name(id))),
        }
    }

    /// All clone sessions, by number.
    pub fn clone_sessions(&self) -> Vec<CloneSession> {
        self.state
            .iter()
            .flat_map(|s| s.clones.values().cloned())
            .collect()
    }

    /// Takes the digest messages sent since the last call. At most
    /// [`crate::SwitchConfig::digest_limit`] are kept; later ones are dropped
    /// and counted.
    pub fn take_digests(&mut self) -> Vec<DigestMessage> {
        let mut digests = Vec::new();
        for ledger in self.ledgers_mut() {
            digests.append(&mut ledger.digests);
        }
        digests
    }
}
