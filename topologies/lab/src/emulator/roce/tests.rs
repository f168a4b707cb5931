#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

/// A CNP as a ConnectX sends it, from the IPv4 header on.
const GOLDEN_CNP: &str = "4589003C98C64000201169271616160816161607DBAE12B7002800008100FFFF\
                          400000D2000000000000000000000000\
                          0000000000000000DAFC1BEF";

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn framed(ip: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];
    frame.extend_from_slice(ip);
    frame
}

fn path(v6: bool) -> Path {
    let (src_ip, dst_ip) = if v6 {
        ("fd00::1:2".parse().unwrap(), "fd00::3:4".parse().unwrap())
    } else {
        ("10.0.1.2".parse().unwrap(), "10.0.3.4".parse().unwrap())
    };
    Path {
        src_mac: [2, 0, 0, 0, 0, 1],
        dst_mac: [2, 0, 0, 0, 0, 2],
        src_ip,
        dst_ip,
        udp_source_port: 0xC123,
    }
}

#[test]
fn golden_cnp_is_read_and_its_icrc_matches() {
    let parsed = parse(&framed(&hex(GOLDEN_CNP)), &ZeroRun::new(4096)).unwrap();
    assert_eq!(parsed.bth.opcode, Opcode::Cnp);
    assert_eq!(parsed.bth.dest_qp, 0xD2);
    assert!(parsed.bth.becn);
    assert_eq!((parsed.payload, parsed.udp_source_port), (0, 0xDBAE));
}

#[test]
fn a_cnp_written_for_the_golden_addresses_has_the_golden_transport_bytes() {
    let path = Path {
        src_ip: "22.22.22.8".parse().unwrap(),
        dst_ip: "22.22.22.7".parse().unwrap(),
        udp_source_port: 0xDBAE,
        ..path(false)
    };
    let template = Template::new(&path, Arc::new(ZeroRun::new(4096)));
    let bth = Bth {
        opcode: Opcode::Cnp,
        dest_qp: 0xD2,
        psn: 0,
        ack_request: false,
        becn: true,
    };
    let mut frame = Vec::new();
    template.write(&mut frame, DSCP_CNP << 2, &bth, &Extension::None, 0);
    let golden = hex(GOLDEN_CNP);
    // The IP identification is the sender's own and inside the CRC, so the ICRC differs; all else is equal.
    assert_eq!(frame[34..frame.len() - 4], golden[20..56]);
    assert!(parse(&frame, &ZeroRun::new(0)).is_ok());
}

#[test]
fn source_port_is_symmetric_and_in_the_dynamic_range() {
    for (a, b) in [(0x11, 0x12), (0xFF_FFFF, 0xFF_FFFE), (1, 0), (777, 0x1234)] {
        let port = udp_source_port(a, b);
        assert_eq!(port, udp_source_port(b, a));
        assert!(port >= 0xC000);
    }
    // 17 * 18 = 306 = 0x132.
    assert_eq!(udp_source_port(17, 18), 0xC132);
}

#[test]
fn marking_keeps_the_icrc_and_damage_does_not() {
    let zeros = Arc::new(ZeroRun::new(1024));
    for v6 in [false, true] {
        let template = Template::new(&path(v6), zeros.clone());
        let bth = Bth {
            opcode: Opcode::WriteMiddle,
            dest_qp: 0x1234,
            psn: 0xABCDEF,
            ack_request: true,
            becn: false,
        };
        let mut frame = Vec::new();
        template.write(
            &mut frame,
            DSCP_DATA << 2 | ECT0,
            &bth,
            &Extension::None,
            1024,
        );
        let mut marked = frame.clone();
        marked[15] |= if v6 { CE << 4 } else { CE };
        let parsed = parse(&marked, &zeros).unwrap();
        assert!(parsed.congestion_experienced());
        assert_eq!(parsed.dscp, DSCP_DATA);
        for at in [34, frame.len() / 2, frame.len() - 1] {
            let mut damaged = frame.clone();
            damaged[at] ^= 1;
            assert!(parse(&damaged, &zeros).is_err(), "byte {at}");
        }
    }
}

#[test]
fn cut_and_foreign_frames_are_errors() {
    let frame = framed(&hex(GOLDEN_CNP));
    let zeros = ZeroRun::new(0);
    for length in 0..frame.len() {
        assert!(parse(&frame[..length], &zeros).is_err(), "{length} bytes");
    }
    let mut other = frame.clone();
    other[37] = 0;
    assert_eq!(parse(&other, &zeros), Err(ParseError::NotRoce));
    let mut padded = frame;
    padded.resize(100, 0);
    assert!(
        parse(&padded, &zeros).is_ok(),
        "Ethernet padding is not payload"
    );
}

fn opcode() -> impl Strategy<Value = Opcode> {
    prop::sample::select(vec![
        Opcode::WriteFirst,
        Opcode::WriteMiddle,
        Opcode::WriteLast,
        Opcode::WriteOnly,
        Opcode::Acknowledge,
        Opcode::Cnp,
    ])
}

proptest! {
    #[test]
    fn written_packets_read_back(
        opcode in opcode(), dest_qp in 0u32..1 << 24, psn in 0u32..1 << 24, ack_request: bool,
        becn: bool, v6: bool, payload in 0usize..3_000, full in 0usize..3_000, class: u8,
        address: u64, length: u32,
    ) {
        let payload = if opcode.extension_length() == 4 || opcode == Opcode::Cnp { 0 } else { payload };
        let extension = match opcode.extension_length() {
            16 if opcode != Opcode::Cnp => Extension::Reth { address, key: length ^ 7, length },
            4 => Extension::Aeth { syndrome: class, msn: psn },
            _ => Extension::None,
        };
        let zeros = Arc::new(ZeroRun::new(full));
        let template = Template::new(&path(v6), zeros.clone());
        let bth = Bth { opcode, dest_qp, psn, ack_request, becn };
        let mut frame = vec![9; 10];
        template.write(&mut frame, class, &bth, &extension, payload);
        prop_assert_eq!(frame.len(), template.packet_length(opcode, payload));
        let parsed = parse(&frame, &zeros).unwrap();
        prop_assert_eq!(parsed.bth, bth);
        prop_assert_eq!(parsed.extension, extension);
        prop_assert_eq!(parsed.payload, payload);
        prop_assert_eq!(parsed.dscp << 2 | parsed.ecn, class);
        prop_assert_eq!(parsed.udp_source_port, 0xC123);
        if !v6 {
            // An IPv4 header that includes its checksum sums to all ones.
            let sum = words(&frame[14..34]);
            prop_assert_eq!((sum & 0xFFFF) + (sum >> 16), 0xFFFF);
        }
        // The cheap way and the plain way give the same CRC.
        prop_assert!(parse(&frame, &ZeroRun::new(full + 1)).is_ok());
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        // Reading must not panic, whatever arrives.
        let _ = parse(&bytes, &ZeroRun::new(0));
    }
}
