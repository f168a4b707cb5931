//! Hashes whose parameters the control plane sets.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use softswitch::control::{CrcParameters, ErrorKind};
use softswitch::{Program, Switch, SwitchConfig};

const JSON: &[u8] = include_bytes!("programs/hashes/hashes.json");
/// CRC-32/ISCSI.
const ISCSI: CrcParameters = CrcParameters {
    polynomial: 0x1edc_6f41,
    init: 0xffff_ffff,
    xor_out: 0xffff_ffff,
    reflect_in: true,
    reflect_out: true,
};
/// CRC-16/XMODEM.
const XMODEM: CrcParameters = CrcParameters {
    polynomial: 0x1021,
    init: 0,
    xor_out: 0,
    reflect_in: false,
    reflect_out: false,
};

fn switch() -> Switch {
    let mut switch = Switch::new(SwitchConfig::default());
    switch.install(Arc::new(Program::load(JSON).unwrap()));
    switch
}

/// crc32_custom of 33 bits 0 and `v`, and crc16_custom of 40 bits 0 and 0x1234, of a packet.
fn hashes(switch: &mut Switch, v: u64) -> (u32, u16) {
    let mut packet = vec![0; 9];
    packet.extend(&v.to_be_bytes()[2..]);
    packet.extend([0, 1]);
    switch.ingress(1, &packet, 0);
    let left = switch.dequeue(2, 0).unwrap().bytes;
    let out = &left[packet.len()..];
    let word = |at: usize| u32::from_be_bytes(out[at..at + 4].try_into().unwrap());
    (word(4), word(8) as u16)
}

/// A CRC by long division, bit by bit.
fn crc(bits: u32, parameters: CrcParameters, bytes: &[u8]) -> u64 {
    let top = 1u64 << (bits - 1);
    let mut register = parameters.init;
    for byte in bytes {
        for at in 0..8 {
            let bit = match parameters.reflect_in {
                true => byte >> at & 1,
                false => byte >> (7 - at) & 1,
            };
            let carry = (register & top != 0) != (bit == 1);
            register = register << 1 & ((top << 1).wrapping_sub(1));
            if carry {
                register ^= parameters.polynomial;
            }
        }
    }
    if parameters.reflect_out {
        register = (0..bits).fold(0, |r, at| r << 1 | register >> at & 1);
    }
    register ^ parameters.xor_out
}

/// The input of crc32_custom: 33 bits 0 and 48 of `v`, filled up with zeros.
fn input(v: u64) -> Vec<u8> {
    let bits = u128::from(v) << (88 - 81);
    bits.to_be_bytes()[5..].to_vec()
}

#[test]
fn parameters_are_the_control_planes() {
    let mut switch = switch();
    let found = switch.custom_hashes().unwrap();
    let names: Vec<_> = found.iter().map(|h| (h.name.as_str(), h.bits)).collect();
    assert_eq!(names, [("calc_0", 32), ("calc_2", 16)]);
    assert_eq!(found[0].parameters, CrcParameters::standard(32));

    let constant = [0, 0, 0, 0, 0, 0x12, 0x34];
    for (v, wide, narrow) in [
        (1, CrcParameters::standard(32), CrcParameters::standard(16)),
        (0x1234_5678_9abc, ISCSI, XMODEM),
        (0xffff_ffff_ffff, ISCSI, XMODEM),
    ] {
        switch.set_custom_hash("calc_0", wide).unwrap();
        switch.set_custom_hash("calc_2", narrow).unwrap();
        let expected = (
            crc(32, wide, &input(v)) as u32,
            crc(16, narrow, &constant) as u16,
        );
        assert_eq!(hashes(&mut switch, v), expected, "{v:#x}");
    }
    assert_eq!(switch.custom_hashes().unwrap()[0].parameters, ISCSI);
    // Another program begins anew.
    switch.install(Arc::new(Program::load(JSON).unwrap()));
    let again = switch.custom_hashes().unwrap();
    assert_eq!(again[0].parameters, CrcParameters::standard(32));
}

#[test]
fn what_is_not_there_or_does_not_fit_is_refused() {
    let mut switch = switch();
    let error = switch.set_custom_hash("calc", ISCSI).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("calc_0, calc_2"), "{error}");
    let error = switch.set_custom_hash("calc_2", ISCSI).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(
        error.to_string().contains("polynomial 0x1edc6f41"),
        "{error}"
    );
    let mut empty = Switch::new(SwitchConfig::default());
    let error = empty.set_custom_hash("calc", XMODEM).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FailedPrecondition);
}
