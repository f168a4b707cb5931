//! Digest lists: buffering, filtering of duplicates and acknowledgement (P4Runtime,
//! "DigestEntry").
//!
//! Pure: messages and times (ns) go in, lists to send come out.

use std::collections::{BTreeMap, HashSet};

use crate::value::Value;

/// The fields of one digest message.
pub(crate) type DigestData = Vec<Value>;

/// How a digest is to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DigestConfig {
    /// Longest time a message may wait, ns.
    pub(crate) max_timeout_ns: u64,
    /// Messages per list; 0 leaves it to the server.
    pub(crate) max_list_size: usize,
    /// How long a sent message suppresses equal ones unless acknowledged, ns.
    pub(crate) ack_timeout_ns: u64,
}

/// A list that is ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DigestList {
    /// The digest's P4 id.
    pub(crate) digest_id: u32,
    /// To be acknowledged with.
    pub(crate) list_id: u64,
    /// Distinct messages, in the order of their arrival.
    pub(crate) data: Vec<DigestData>,
}

/// Messages per list where the client sets no limit.
const LIST_LIMIT: usize = 1024;
/// Unacknowledged lists kept per digest; the oldest are forgotten beyond.
const UNACKNOWLEDGED_LIMIT: usize = 4096;

/// The digests of one switch that are enabled.
#[derive(Debug, Default)]
pub(crate) struct Digests {
    by_id: BTreeMap<u32, Digest>,
}

#[derive(Debug, Default)]
struct Digest {
    config: DigestConfig,
    buffer: Vec<DigestData>,
    buffered_since: u64,
    /// Messages in the buffer or in an unacknowledged list.
    known: HashSet<DigestData>,
    unacknowledged: BTreeMap<u64, (u64, Vec<DigestData>)>,
    last_list: u64,
    /// Messages that may be known at a time.
    limit: usize,
}

impl Digests {
    /// Enables a digest, of which up to `limit` messages may wait or be unacknowledged. False if
    /// it is enabled already.
    pub(crate) fn insert(&mut self, id: u32, config: DigestConfig, limit: usize) -> bool {
        if self.by_id.contains_key(&id) {
            return false;
        }
        self.by_id.insert(
            id,
            Digest {
                config,
                limit: limit.max(1),
                ..Digest::default()
            },
        );
        true
    }

    /// Changes how an enabled digest is sent. False if it is not enabled.
    pub(crate) fn modify(&mut self, id: u32, config: DigestConfig) -> bool {
        let Some(digest) = self.by_id.get_mut(&id) else {
            return false;
        };
        digest.config = config;
        true
    }

    /// Disables a digest and forgets its messages; its configuration, if it was enabled.
    pub(crate) fn remove(&mut self, id: u32) -> Option<DigestConfig> {
        self.by_id.remove(&id).map(|digest| digest.config)
    }

    /// The configuration of an enabled digest.
    pub(crate) fn config(&self, id: u32) -> Option<DigestConfig> {
        self.by_id.get(&id).map(|digest| digest.config)
    }

    /// Takes a message of the data plane; the list that it fills, if it does.
    pub(crate) fn push(&mut self, id: u32, data: DigestData, now: u64) -> Option<DigestList> {
        let digest = self.by_id.get_mut(&id)?;
        digest.expire(now);
        // What finds no room is dropped; the program will say it again.
        if digest.known.len() >= digest.limit || !digest.known.insert(data.clone()) {
            return None;
        }
        if digest.buffer.is_empty() {
            digest.buffered_since = now;
        }
        digest.buffer.push(data);
        let limit = match digest.config.max_list_size {
            0 => LIST_LIMIT,
            size => size,
        };
        let full =
            digest.buffer.len() >= limit.min(digest.limit) || digest.config.max_timeout_ns == 0;
        full.then(|| digest.flush(id, now))
    }

    /// The lists whose oldest message has waited long enough.
    pub(crate) fn due(&mut self, now: u64) -> Vec<DigestList> {
        let mut lists = Vec::new();
        for (id, digest) in &mut self.by_id {
            digest.expire(now);
            if digest.deadline().is_some_and(|at| at <= now) {
                lists.push(digest.flush(*id, now));
            }
        }
        lists
    }

    /// When [`due`](Self::due) has something to do next, ns.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.by_id.values().filter_map(Digest::deadline).min()
    }

    /// Forgets that a list was sent, so that its messages may be sent again.
    pub(crate) fn acknowledge(&mut self, id: u32, list_id: u64) {
        if let Some(digest) = self.by_id.get_mut(&id) {
            digest.forget(list_id);
        }
    }
}

impl Digest {
    fn deadline(&self) -> Option<u64> {
        (!self.buffer.is_empty()).then(|| {
            self.buffered_since
                .saturating_add(self.config.max_timeout_ns)
        })
    }

    fn flush(&mut self, id: u32, now: u64) -> DigestList {
        self.last_list += 1;
        let data = std::mem::take(&mut self.buffer);
        self.unacknowledged
            .insert(self.last_list, (now, data.clone()));
        if self.config.ack_timeout_ns == 0 {
            self.forget(self.last_list);
        } else if self.unacknowledged.len() > UNACKNOWLEDGED_LIMIT
            && let Some(oldest) = self.unacknowledged.keys().next().copied()
        {
            self.forget(oldest);
        }
        DigestList {
            digest_id: id,
            list_id: self.last_list,
            data,
        }
    }

    /// Forgets lists that waited for an acknowledgement for too long.
    fn expire(&mut self, now: u64) {
        while let Some((list, (sent, _))) = self.unacknowledged.iter().next() {
            if now.saturating_sub(*sent) < self.config.ack_timeout_ns {
                break;
            }
            let list = *list;
            self.forget(list);
        }
    }

    fn forget(&mut self, list_id: u64) {
        if let Some((_, data)) = self.unacknowledged.remove(&list_id) {
            for message in data {
                self.known.remove(&message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn message(n: u64) -> DigestData {
        vec![Value::from(n)]
    }

    fn digests(max_timeout_ns: u64, max_list_size: usize, ack_timeout_ns: u64) -> Digests {
        let mut d = Digests::default();
        assert!(d.insert(
            5,
            DigestConfig {
                max_timeout_ns,
                max_list_size,
                ack_timeout_ns
            },
            8192,
        ));
        d
    }

    #[test]
    fn a_full_list_is_sent_at_once() {
        let mut d = digests(1000, 2, 0);
        assert_eq!(d.push(5, message(1), 0), None);
        let list = d.push(5, message(2), 1).unwrap();
        assert_eq!((list.digest_id, list.list_id), (5, 1));
        assert_eq!(list.data, [message(1), message(2)]);
    }

    #[test]
    fn a_part_list_is_sent_when_its_first_message_has_waited() {
        let mut d = digests(1000, 10, 0);
        d.push(5, message(1), 100);
        d.push(5, message(2), 900);
        assert_eq!(d.next_deadline(), Some(1100));
        assert!(d.due(1099).is_empty());
        assert_eq!(d.due(1100)[0].data.len(), 2);
        assert_eq!(d.next_deadline(), None);
        assert!(d.due(5000).is_empty());
    }

    #[test]
    fn no_timeout_sends_every_message() {
        let mut d = digests(0, 10, 0);
        assert!(d.push(5, message(1), 0).is_some());
        assert!(
            d.push(5, message(1), 0).is_some(),
            "no cache without an ack timeout"
        );
    }

    #[test]
    fn duplicates_in_the_buffer_are_dropped() {
        let mut d = digests(1000, 2, 0);
        d.push(5, message(1), 0);
        assert_eq!(d.push(5, message(1), 0), None);
        assert!(d.push(5, message(2), 0).is_some());
    }

    #[test]
    fn sent_messages_are_suppressed_until_acknowledged() {
        let mut d = digests(0, 1, 1000);
        let list = d.push(5, message(1), 0).unwrap();
        assert_eq!(d.push(5, message(1), 10), None);
        d.acknowledge(5, list.list_id + 1);
        assert_eq!(d.push(5, message(1), 20), None);
        d.acknowledge(5, list.list_id);
        assert_eq!(d.push(5, message(1), 30).unwrap().list_id, 2);
    }

    #[test]
    fn sent_messages_are_suppressed_until_the_ack_timeout() {
        let mut d = digests(0, 1, 1000);
        d.push(5, message(1), 0).unwrap();
        assert_eq!(d.push(5, message(1), 999), None);
        assert!(d.push(5, message(1), 1000).is_some());
    }

    #[test]
    fn disabled_digests_send_nothing() {
        let mut d = digests(0, 1, 0);
        assert_eq!(d.push(6, message(1), 0), None);
        assert!(!d.insert(5, DigestConfig::default(), 1));
        assert!(!d.modify(6, DigestConfig::default()));
        assert!(d.remove(5).is_some());
        assert!(d.remove(5).is_none());
        assert_eq!(d.push(5, message(1), 0), None);
    }

    #[test]
    fn without_a_limit_of_the_clients_lists_still_end() {
        let mut d = digests(u64::MAX, 0, 0);
        let lists = (0..3000).filter_map(|n| d.push(5, message(n), 0)).count();
        assert_eq!(lists, 2);
    }

    #[test]
    fn memory_is_bounded() {
        let mut d = Digests::default();
        let config = DigestConfig {
            max_timeout_ns: u64::MAX,
            max_list_size: usize::MAX,
            ack_timeout_ns: u64::MAX,
        };
        assert!(d.insert(5, config, 10));
        let lists: Vec<_> = (0..100).filter_map(|n| d.push(5, message(n), 0)).collect();
        assert_eq!(lists.len(), 1);
        assert_eq!(lists[0].data.len(), 10);
        d.acknowledge(5, lists[0].list_id);
        assert_eq!(d.push(5, message(1), 1), None);
        assert_eq!((2..20).filter_map(|n| d.push(5, message(n), 1)).count(), 1);
    }
}
