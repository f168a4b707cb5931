//! Reading entities (specification section 13).

use std::collections::VecDeque;

use tonic::Streaming;

use super::{Error, Session, rpc_error};
use crate::v1::{Entity, ReadRequest, ReadResponse};

/// Entities as they arrive; the switch sends them in messages of its choice.
#[derive(Debug)]
pub struct Entities {
    device: u64,
    inbound: Streaming<ReadResponse>,
    ready: VecDeque<Entity>,
}

impl Entities {
    /// The next entity; `None` after the last.
    ///
    /// # Errors
    /// [`Error::Rpc`] when the switch or the connection breaks off.
    pub async fn next(&mut self) -> Result<Option<Entity>, Error> {
        loop {
            if let Some(entity) = self.ready.pop_front() {
                return Ok(Some(entity));
            }
            match self.inbound.message().await {
                Ok(Some(response)) => self.ready = response.entities.into(),
                Ok(None) => return Ok(None),
                Err(status) => return Err(rpc_error(self.device, "Read", status)),
            }
        }
    }
}

impl Session {
    /// Reads what the patterns ask for: an id of 0, or a key left out, stands
    /// for all. A role other than the default sees what is its own.
    ///
    /// # Errors
    /// [`Error::EmptyEntity`], and [`Error::Rpc`] when the switch refuses.
    pub async fn read(&self, patterns: Vec<Entity>) -> Result<Entities, Error> {
        let device = self.config.device_id;
        if let Some(place) = patterns.iter().position(|pattern| pattern.entity.is_none()) {
            let call = "Read";
            return Err(Error::EmptyEntity {
                device,
                call,
                place,
            });
        }
        let request = self.request(ReadRequest {
            device_id: device,
            role: self.config.role_name(),
            entities: patterns,
        });
        let response = self.client.clone().read(request).await;
        Ok(Entities {
            device,
            inbound: (response.map_err(|status| self.rpc_error("Read", status))?).into_inner(),
            ready: VecDeque::new(),
        })
    }

    /// As [`read`](Self::read), all at once.
    ///
    /// # Errors
    /// As [`read`](Self::read), and when the answer breaks off.
    pub async fn read_all(&self, patterns: Vec<Entity>) -> Result<Vec<Entity>, Error> {
        let mut entities = self.read(patterns).await?;
        let mut all = Vec::new();
        while let Some(entity) = entities.next().await? {
            all.push(entity);
        }
        Ok(all)
    }
}
