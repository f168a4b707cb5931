//! The program against the model for packets and watches of any kind.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::chain::{Chain, kinds};
use crate::frames::{Frame, TCP, UDP, after_hops};
use crate::model::{Indicator, Watch, words_of};
use crate::node::{INT_DSCP, INT_PORT};

fn frames() -> impl Strategy<Value = Frame> {
    let header = (
        any::<[bool; 3]>(),
        any::<u8>(),
        10u8..,
        prop_oneof![Just(TCP), Just(UDP)],
    );
    let ports = (any::<u16>(), prop_oneof![any::<u16>(), Just(4791)]);
    (header, ports, vec(any::<u8>(), 0..200)).prop_map(
        |(([v6, tagged, checksum], tos, ttl, protocol), (src_port, dst_port), payload)| Frame {
            v6,
            tagged,
            tos,
            ttl,
            protocol,
            src_port,
            dst_port,
            checksum,
            payload,
        },
    )
}

fn watches() -> impl Strategy<Value = Watch> {
    let indicator = prop_oneof![
        Just(Indicator::Dscp(INT_DSCP)),
        Just(Indicator::Port(INT_PORT))
    ];
    let instructions = prop_oneof![any::<u16>().prop_map(|bits| bits & 0xff81), any::<u16>()];
    (indicator, instructions, 0u8..8, 0u8..6, any::<u16>()).prop_map(
        |(indicator, instructions, extra, max_hops, domain)| Watch {
            indicator,
            instructions,
            hop_ml: (words_of(instructions) + extra).min(31),
            max_hops,
            domain,
        },
    )
}

/// Data that a host must not send, or that the source leaves alone because it has INT's shape.
fn has_the_shape(frame: &Frame) -> bool {
    frame.tos >> 2 == INT_DSCP
        || frame.dst_port == INT_PORT
        || (frame.payload.first().is_some_and(|byte| byte >> 4 == 1)
            && frame.payload.get(4).is_some_and(|byte| byte >> 4 == 2))
}

/// A congestion notification, which rides another queue than the model assumes.
fn is_cnp(frame: &Frame) -> bool {
    frame.dst_port == 4791 && frame.payload.first() == Some(&0x81)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every hop does what the model does, and the host gets what the host sent.
    #[test]
    fn hops_agree_with_the_model(frame in frames(), watch in watches(), len in 2usize..6) {
        prop_assume!(!has_the_shape(&frame) && !is_cnp(&frame));
        // A TCP checksum of 0xffff is not measured: no sender computes it.
        Chain::new(len, watch).check(&frame, &watch);
    }

    /// Whatever bytes of a frame are changed or cut off, nothing breaks, and a packet that gets
    /// through does so as it came.
    #[test]
    fn broken_packets_leave_as_they_came_or_not_at_all(
        kind in 0usize..40,
        watch in watches(),
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let all = kinds();
        let mut bytes = all[kind % all.len()].bytes();
        let at = at.index(bytes.len());
        bytes[at] = value;
        bytes.truncate(60.min(bytes.len()).max(cut.index(bytes.len()) + 1));
        let mut input = bytes.clone();
        let mut chain = Chain::new(3, watch);
        for (number, node) in chain.nodes.iter_mut().enumerate() {
            let out = node.pass(1, &input, 1_000, 2_000);
            match out.iter().find(|(port, _)| *port == 2) {
                Some((_, next)) => input = next.clone(),
                None => return Ok(()),
            }
            if number == 2 {
                prop_assert_eq!(&input, &after_hops(&bytes, 3));
            }
        }
    }
}
