//! Bytes of an all-reduce in two levels, to the byte.
//!
//! Members are in domains. Inside a domain of `n` members the array is cut into `n` parts, and the member
//! at position `i` is left with part `i` of the domain's sum; then the parts are summed between domains, and
//! gathered inside. Domains may differ in size, so that their parts do too: where the cuts of all domains
//! are put together, each piece between two cuts has one owner in every domain, and the owners of a piece
//! form a ring. Every array crosses each boundary of the ring of domains once per direction of the
//! reduction: `2 (L - 1) S` bytes cross in all, which is the least there can be.

use super::ring::share;

/// A piece of the array and its owner in every domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes.
    pub bytes: u64,
    /// Position of the owner in each domain.
    pub owners: Vec<u32>,
}

/// The pieces of an array of `bytes` for domains of these sizes. Pieces without bytes are left out.
#[must_use]
pub fn pieces(bytes: u64, sizes: &[u32]) -> Vec<Piece> {
    let mut list = Vec::new();
    // Per domain: its member at hand, and where that one's part ends.
    let mut at: Vec<(u32, u64)> = sizes.iter().map(|n| (0, share(bytes, *n, 0))).collect();
    let mut from = 0;
    while from < bytes {
        let to = at.iter().map(|(_, end)| *end).min().unwrap_or(bytes);
        if to > from {
            list.push(Piece {
                bytes: to - from,
                owners: at.iter().map(|(member, _)| *member).collect(),
            });
        }
        for ((member, end), size) in at.iter_mut().zip(sizes) {
            while *end == to && *member + 1 < *size {
                *member += 1;
                *end += share(bytes, *size, *member);
            }
        }
        if to <= from && at.iter().all(|(_, end)| *end <= from) {
            break;
        }
        from = to;
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn unequal_domains_share_their_cuts() {
        let list = pieces(12, &[2, 3]);
        let found: Vec<(u64, &[u32])> = list.iter().map(|p| (p.bytes, &p.owners[..])).collect();
        assert_eq!(
            found,
            [(4, &[0, 0][..]), (2, &[0, 1]), (2, &[1, 1]), (4, &[1, 2])]
        );
    }

    proptest! {
        #[test]
        fn every_member_owns_its_part(
            bytes in 0u64..10_000, sizes in proptest::collection::vec(1u32..9, 1..6),
        ) {
            let list = pieces(bytes, &sizes);
            for (domain, size) in sizes.iter().enumerate() {
                for member in 0..*size {
                    let own: u64 = list.iter().filter(|p| p.owners[domain] == member).map(|p| p.bytes).sum();
                    prop_assert_eq!(own, share(bytes, *size, member));
                }
            }
        }
    }
}
