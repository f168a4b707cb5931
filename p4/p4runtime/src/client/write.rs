//! Writing in batches (specification section 12).

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use prost::Message as _;
use tonic::Status;

use super::{Error, Session, status_text};
use crate::entry;
use crate::error::{UpdateError, outcomes};
use crate::v1::write_request::Atomicity;
use crate::v1::{Entity, Update, WriteRequest, entity, update};

/// What became of one update.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// The switch refused it.
    Failed(UpdateError),
    /// Its call failed as a whole. Where the switch refused the call, nothing
    /// was done; where the connection broke, nobody knows.
    Unknown,
    /// An earlier call failed as a whole, so it was not sent.
    NotSent,
}

/// What became of a batch, update by update.
#[derive(Debug, Clone, Default)]
pub struct WriteReport {
    /// In the order of the updates.
    pub outcomes: Vec<Outcome>,
    /// What ended the batch early.
    pub ended: Option<Status>,
}

impl WriteReport {
    /// Whether every update was done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.ended.is_none() && self.outcomes.iter().all(|o| *o == Outcome::Done)
    }

    /// The updates that the switch refused, with their places in the batch.
    pub fn failures(&self) -> impl Iterator<Item = (usize, &UpdateError)> {
        let places = self.outcomes.iter().enumerate();
        places.filter_map(|(place, outcome)| match outcome {
            Outcome::Failed(error) => Some((place, error)),
            _ => None,
        })
    }

    fn append(&mut self, mut later: WriteReport) {
        self.outcomes.append(&mut later.outcomes);
        self.ended = self.ended.take().or(later.ended);
    }
}

impl fmt::Display for WriteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = self.outcomes.iter().filter(|o| **o == Outcome::Done);
        write!(
            f,
            "{} of {} updates done",
            done.count(),
            self.outcomes.len()
        )?;
        if let Some(status) = &self.ended {
            write!(f, "; the switch ended the batch: {}", status_text(status))?;
        }
        if let Some((place, error)) = self.failures().next() {
            let failed = self.failures().count();
            write!(
                f,
                "; {failed} refused, the first is number {place} (from 0): {error}"
            )?;
        }
        Ok(())
    }
}

/// Splits a batch so that each part fits a request. An update that is larger
/// than the limit has a part of its own.
fn parts(updates: &[Update], max_bytes: usize, max_updates: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (place, update) in updates.iter().enumerate() {
        let size = wire_len(update);
        let full = bytes + size > max_bytes || place - start >= max_updates.max(1);
        if full && place > start {
            parts.push(start..place);
            (start, bytes) = (place, 0);
        }
        bytes += size;
    }
    if start < updates.len() {
        parts.push(start..updates.len());
    }
    parts
}

/// Bytes that an update takes in a request.
fn wire_len(update: &Update) -> usize {
    let len = update.encoded_len();
    1 + prost::length_delimiter_len(len) + len
}

/// Parts of a batch such that the switch, which may run one request in any
/// order, cannot break a dependency: what others refer to is added before and
/// removed after them, and one request never has one key twice.
#[must_use]
pub fn in_order(updates: Vec<Update>) -> Vec<Vec<Update>> {
    let mut phases: Vec<Vec<Update>> = Vec::new();
    let mut segment: Vec<Vec<Update>> = vec![Vec::new(); RANKS];
    let mut keys: HashSet<Entity> = HashSet::new();
    for update in updates {
        let key = update.entity.as_ref().map(entry::key).unwrap_or_default();
        if !keys.insert(key.clone()) {
            phases.extend(segment.drain(..).filter(|phase| !phase.is_empty()));
            segment.resize(RANKS, Vec::new());
            keys.clear();
            keys.insert(key);
        }
        segment[rank(&update)].push(update);
    }
    phases.extend(segment.into_iter().filter(|phase| !phase.is_empty()));
    phases
}

const RANKS: usize = 6;

fn rank(update: &Update) -> usize {
    use entity::Entity as E;
    let entity = update.entity.as_ref().and_then(|e| e.entity.as_ref());
    let delete = update.r#type() == update::Type::Delete;
    match entity {
        Some(E::ActionProfileMember(_) | E::PacketReplicationEngineEntry(_)) => {
            if delete {
                5
            } else {
                0
            }
        }
        Some(E::ActionProfileGroup(_)) => {
            if delete {
                4
            } else {
                1
            }
        }
        // The counters and meters of entries come after the entries.
        Some(E::DirectCounterEntry(_) | E::DirectMeterEntry(_)) => 3,
        _ if delete => 3,
        _ => 2,
    }
}

impl Session {
    /// Sends updates in as few requests as the limits allow, one after another,
    /// and tells what became of each. The switch may run one request in any
    /// order; see [`in_order`]. After a request that fails as a whole nothing
    /// more is sent.
    ///
    /// # Errors
    /// Before anything is sent: [`Error::EmptyEntity`], and [`Error::TooLarge`]
    /// for an atomic batch that does not fit one request. What happens later is
    /// in the report.
    pub async fn write(
        &self,
        updates: Vec<Update>,
        atomicity: Atomicity,
    ) -> Result<WriteReport, Error> {
        let device = self.config.device_id;
        let empty = |update: &Update| update.entity.as_ref().is_none_or(|e| e.entity.is_none());
        if let Some(place) = updates.iter().position(empty) {
            let call = "Write";
            return Err(Error::EmptyEntity {
                device,
                call,
                place,
            });
        }
        let (limit, max_updates) = (
            self.config.max_request_bytes,
            self.config.max_request_updates,
        );
        let parts = parts(&updates, limit, max_updates);
        if parts.len() > 1 && atomicity != Atomicity::ContinueOnError {
            return Err(Error::TooLarge {
                device,
                updates: updates.len(),
                bytes: updates.iter().map(wire_len).sum(),
                limit,
                max_updates,
                atomicity: atomicity.words(),
            });
        }
        let total = updates.len();
        let mut rest = updates.into_iter();
        let mut report = WriteReport::default();
        for part in parts {
            let updates = rest.by_ref().take(part.len()).collect();
            report.append(self.write_part(updates, atomicity).await);
            if report.ended.is_some() {
                break;
            }
        }
        report.outcomes.resize(total, Outcome::NotSent);
        Ok(report)
    }

    /// One request.
    async fn write_part(&self, updates: Vec<Update>, atomicity: Atomicity) -> WriteReport {
        let count = updates.len();
        let request = self.request(WriteRequest {
            device_id: self.config.device_id,
            role: self.config.role_name(),
            election_id: self.election(),
            updates,
            atomicity: atomicity.into(),
            ..Default::default()
        });
        let Err(status) = self.client.clone().write(request).await else {
            return WriteReport {
                outcomes: vec![Outcome::Done; count],
                ended: None,
            };
        };
        match outcomes(&status, count) {
            Some(outcomes) => WriteReport {
                outcomes: outcomes
                    .into_iter()
                    .map(|outcome| outcome.map_or_else(Outcome::Failed, |()| Outcome::Done))
                    .collect(),
                ended: None,
            },
            None => WriteReport {
                outcomes: vec![Outcome::Unknown; count],
                ended: Some(status),
            },
        }
    }

    /// Writes every update, each tried whatever becomes of the others.
    ///
    /// # Errors
    /// As [`write`](Self::write), and [`Error::Updates`] when not all were done.
    pub async fn write_all(&self, updates: Vec<Update>) -> Result<(), Error> {
        let report = self.write(updates, Atomicity::ContinueOnError).await?;
        self.all_done(report)
    }

    /// As [`write_all`](Self::write_all), in the order that dependencies ask for.
    ///
    /// # Errors
    /// As [`write_all`](Self::write_all); the places in the report are those
    /// after ordering.
    pub async fn write_in_order(&self, updates: Vec<Update>) -> Result<(), Error> {
        let mut report = WriteReport::default();
        for phase in in_order(updates) {
            report.append(self.write(phase, Atomicity::ContinueOnError).await?);
        }
        self.all_done(report)
    }

    fn all_done(&self, report: WriteReport) -> Result<(), Error> {
        if report.is_done() {
            return Ok(());
        }
        Err(Error::Updates {
            device: self.config.device_id,
            report: Box::new(report),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;
    use crate::v1::{ActionProfileGroup, ActionProfileMember, TableEntry};

    fn entry(table_id: u32, bytes: usize) -> Update {
        entry::insert(TableEntry {
            table_id,
            metadata: vec![0; bytes],
            ..Default::default()
        })
    }

    proptest! {
        #[test]
        fn parts_cover_the_batch_and_fit(
            sizes in prop::collection::vec(0usize..300, 0..40),
            max_bytes in 50usize..1000,
            max_updates in 1usize..10,
        ) {
            let updates: Vec<_> = sizes.iter().map(|size| entry(1, *size)).collect();
            let parts = parts(&updates, max_bytes, max_updates);
            let covered: Vec<usize> = parts.iter().cloned().flatten().collect();
            prop_assert_eq!(covered, (0..updates.len()).collect::<Vec<_>>());
            for part in parts {
                let request = WriteRequest { updates: updates[part.clone()].to_vec(), ..Default::default() };
                prop_assert!(part.len() <= max_updates);
                prop_assert!(part.len() == 1 || request.encoded_len() <= max_bytes);
            }
        }
    }

    #[test]
    fn dependencies_come_first() {
        let member = ActionProfileMember {
            member_id: 1,
            ..Default::default()
        };
        let group = ActionProfileGroup {
            group_id: 1,
            ..Default::default()
        };
        let phases = in_order(vec![
            entry(1, 0),
            entry::delete(ActionProfileMember {
                member_id: 2,
                ..Default::default()
            }),
            entry::insert(group.clone()),
            entry::delete(TableEntry {
                table_id: 2,
                ..Default::default()
            }),
            entry::insert(member.clone()),
        ]);
        let order: Vec<usize> = phases.iter().flatten().map(rank).collect();
        assert_eq!(order, [0, 1, 2, 3, 5]);
        assert_eq!(phases.len(), 5);
    }

    #[test]
    fn a_key_is_in_a_request_once() {
        let gone = entry::delete(TableEntry {
            table_id: 1,
            ..Default::default()
        });
        let phases = in_order(vec![gone.clone(), entry(1, 5), entry(2, 0)]);
        assert_eq!(phases, [vec![gone], vec![entry(1, 5), entry(2, 0)]]);
    }

    #[test]
    fn reports_are_readable() {
        let error = UpdateError::new(crate::rpc::Code::NotFound, "no such entry");
        let report = WriteReport {
            outcomes: vec![Outcome::Done, Outcome::Failed(error), Outcome::NotSent],
            ended: None,
        };
        assert_eq!(
            report.to_string(),
            "1 of 3 updates done; 1 refused, the first is number 1 (from 0): NOT_FOUND: no such entry"
        );
        assert!(!report.is_done());
    }
}
