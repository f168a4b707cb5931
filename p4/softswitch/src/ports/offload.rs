//! Finishes frames that the kernel handed over half done.
//!
//! On a veth pair the sender's stack leaves checksums and TCP segmentation to "hardware" that
//! never comes: a packet socket sees the checksum field holding only the pseudo-header's sum,
//! and TCP frames of up to 64 kB. A wire would carry neither, and P4 programs must not see them.
//! The kernel says what is missing in a `virtio_net_hdr` and in the VLAN tag of the packet's
//! auxiliary data; this module does the rest. Pure: bytes in, frames out.

/// Free bytes that [`finish`] wants in front of a frame, to put back a VLAN tag in place.
pub const HEADROOM: usize = 4;

/// Bytes of the `virtio_net_hdr` that the kernel puts in front of a frame.
pub const VNET_HEADER_LEN: usize = 10;

const FLAG_NEEDS_CHECKSUM: u8 = 1;
const GSO_TCP_V4: u8 = 1;
const GSO_TCP_V6: u8 = 4;
const GSO_UDP: u8 = 5;
const GSO_ECN_BIT: u8 = 0x80;

const UDP_CHECKSUM_OFFSET: usize = 6;
const TCP_CHECKSUM_OFFSET: usize = 16;
const TCP_FIN_PSH: u8 = 0x09;
const TCP_CWR: u8 = 0x80;

/// What is still to do on a received frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// The checksum to complete: where summing starts, and where the field is, both in bytes
    /// from the frame's start.
    pub checksum: Option<(usize, usize)>,
    /// The payload bytes per segment if the frame has to be cut, and of which protocol.
    pub segment: Option<(Segmented, usize)>,
    /// The VLAN tag that the kernel took out: TPID and TCI.
    pub vlan: Option<(u16, u16)>,
    /// The frame begins with IP, without Ethernet: it comes from a TUN interface.
    pub is_ip: bool,
}

/// The protocol of a frame that has to be cut into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segmented {
    /// One TCP segment becomes several.
    Tcp,
    /// One UDP datagram becomes several.
    Udp,
}

impl Pending {
    /// Reads the `virtio_net_hdr` in front of a frame (fields in the machine's byte order, as
    /// packet sockets give it).
    pub fn from_vnet_header(header: &[u8; VNET_HEADER_LEN]) -> Self {
        let half = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
        let (gso_size, start, offset) = (half(4), half(6), half(8));
        let segmented = match header[1] & !GSO_ECN_BIT {
            GSO_TCP_V4 | GSO_TCP_V6 => Some(Segmented::Tcp),
            GSO_UDP => Some(Segmented::Udp),
            _ => None,
        };
        Pending {
            checksum: (header[0] & FLAG_NEEDS_CHECKSUM != 0).then_some((start, start + offset)),
            segment: segmented
                .filter(|_| gso_size > 0)
                .map(|kind| (kind, gso_size)),
            vlan: None,
            is_ip: false,
        }
    }
}

/// Calls `out` with every frame that the wire would have carried for the one in `buffer`, whose
/// first [`HEADROOM`] bytes are free. `scratch` is working memory, kept between calls.
///
/// A frame whose headers contradict what is pending is passed on as it came: what to do with
/// broken packets is the P4 program's business.
pub fn finish(
    buffer: &mut [u8],
    pending: &Pending,
    scratch: &mut Vec<u8>,
    mut out: impl FnMut(&[u8]),
) {
    if buffer.len() < HEADROOM {
        return;
    }
    let frame = &mut buffer[HEADROOM..];
    if let Some((kind, size)) = pending.segment
        && let Some(layout) = Layout::of(frame, kind, pending)
        && frame.len() - layout.payload > size
    {
        segment(frame, &layout, size, pending.vlan, scratch, out);
        return;
    }
    if let Some((start, field)) = pending.checksum {
        complete_checksum(frame, start, field);
    }
    out(with_vlan(buffer, pending.vlan));
}

/// Puts a VLAN tag after the MAC addresses, moving these into the headroom.
fn with_vlan(buffer: &mut [u8], vlan: Option<(u16, u16)>) -> &[u8] {
    const ADDRESSES: usize = 12;
    match vlan {
        Some((tpid, tci)) if buffer.len() >= HEADROOM + ADDRESSES => {
            buffer.copy_within(HEADROOM..HEADROOM + ADDRESSES, 0);
            buffer[ADDRESSES..ADDRESSES + 2].copy_from_slice(&tpid.to_be_bytes());
            buffer[ADDRESSES + 2..ADDRESSES + 4].copy_from_slice(&tci.to_be_bytes());
            buffer
        }
        _ => &buffer[HEADROOM..],
    }
}

/// The ones' complement sum of 16-bit words, not folded to the end.
fn sum(bytes: &[u8], start: u32) -> u32 {
    let mut words = bytes.chunks_exact(2);
    let mut total = start;
    for word in &mut words {
        total += u32::from(u16::from_be_bytes([word[0], word[1]]));
        // 2^15 words can overflow 32 bits only after 64 kB; frames may be longer.
        if total >= 0x8000_0000 {
            total = (total & 0xffff) + (total >> 16);
        }
    }
    if let [last] = words.remainder() {
        total += u32::from(*last) << 8;
    }
    total
}

fn fold(mut total: u32) -> u16 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    // At most 0xffff after the loop.
    total as u16
}

/// Sums from `start` to the end over the pseudo-header's sum that is already in the field.
fn complete_checksum(frame: &mut [u8], start: usize, field: usize) {
    if field + 2 > frame.len() || start > field {
        return;
    }
    let mut checksum = !fold(sum(&frame[start..], 0));
    if checksum == 0 && field - start == UDP_CHECKSUM_OFFSET {
        checksum = 0xffff;
    }
    frame[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// Where the headers of a frame to be segmented begin.
struct Layout {
    ip: usize,
    is_v6: bool,
    transport: usize,
    payload: usize,
    kind: Segmented,
}

impl Layout {
    fn of(frame: &[u8], kind: Segmented, pending: &Pending) -> Option<Layout> {
        let half = |at: usize| {
            frame
                .get(at..at + 2)
                .map(|b| u16::from_be_bytes([b[0], b[1]]))
        };
        let (ip, is_v6) = if pending.is_ip {
            match frame.first()? >> 4 {
                4 => (0, false),
                6 => (0, true),
                _ => return None,
            }
        } else {
            let mut at = 12;
            while matches!(half(at)?, 0x8100 | 0x88a8) {
                at += 4;
            }
            match half(at)? {
                0x0800 => (at + 2, false),
                0x86dd => (at + 2, true),
                _ => return None,
            }
        };
        let after_ip = if is_v6 {
            ip + 40
        } else {
            ip + usize::from(frame.get(ip)? & 0xf) * 4
        };
        // The kernel's word, where it has one, also covers IPv6 extension headers.
        let transport = pending.checksum.map_or(after_ip, |(start, _)| start);
        let payload = match kind {
            Segmented::Tcp => transport + usize::from(frame.get(transport + 12)? >> 4) * 4,
            Segmented::Udp => transport + 8,
        };
        let least = match kind {
            Segmented::Tcp => transport + 20,
            Segmented::Udp => transport + 8,
        };
        (after_ip >= ip + 20 && transport >= after_ip && payload >= least && payload <= frame.len())
            .then_some(Layout {
                ip,
                is_v6,
                transport,
                payload,
                kind,
            })
    }

    /// The pseudo-header's sum for a transport length.
    fn pseudo_header(&self, frame: &[u8], transport_len: usize) -> u32 {
        let addresses = if self.is_v6 {
            self.ip + 8..self.ip + 40
        } else {
            self.ip + 12..self.ip + 20
        };
        let protocol = match self.kind {
            Segmented::Tcp => 6,
            Segmented::Udp => 17,
        };
        sum(&frame[addresses], protocol + transport_len as u32)
    }
}

fn segment(
    frame: &[u8],
    layout: &Layout,
    size: usize,
    vlan: Option<(u16, u16)>,
    scratch: &mut Vec<u8>,
    mut out: impl FnMut(&[u8]),
) {
    let (headers, payload) = frame.split_at(layout.payload);
    let count = payload.len().div_ceil(size);
    for (index, chunk) in payload.chunks(size).enumerate() {
        scratch.clear();
        scratch.extend_from_slice(&[0; HEADROOM]);
        scratch.extend_from_slice(headers);
        scratch.extend_from_slice(chunk);
        let segment = &mut scratch[HEADROOM..];
        let place = Place {
            index,
            offset: index * size,
            last: index + 1 == count,
        };
        set_ip_header(segment, layout, index);
        set_transport_header(segment, layout, &place);
        out(with_vlan(scratch, vlan));
    }
}

/// Where a segment is in the frame it came from.
struct Place {
    index: usize,
    offset: usize,
    last: bool,
}

fn set_ip_header(segment: &mut [u8], layout: &Layout, index: usize) {
    let ip = layout.ip;
    if layout.is_v6 {
        let length = (segment.len() - ip - 40) as u16;
        segment[ip + 4..ip + 6].copy_from_slice(&length.to_be_bytes());
        return;
    }
    let length = (segment.len() - ip) as u16;
    segment[ip + 2..ip + 4].copy_from_slice(&length.to_be_bytes());
    let id = u16::from_be_bytes([segment[ip + 4], segment[ip + 5]]).wrapping_add(index as u16);
    segment[ip + 4..ip + 6].copy_from_slice(&id.to_be_bytes());
    segment[ip + 10..ip + 12].fill(0);
    let header_len = usize::from(segment[ip] & 0xf) * 4;
    let checksum = !fold(sum(&segment[ip..ip + header_len], 0));
    segment[ip + 10..ip + 12].copy_from_slice(&checksum.to_be_bytes());
}

fn set_transport_header(segment: &mut [u8], layout: &Layout, place: &Place) {
    let at = layout.transport;
    let length = segment.len() - at;
    let field = match layout.kind {
        Segmented::Tcp => {
            let seq = u32::from_be_bytes([
                segment[at + 4],
                segment[at + 5],
                segment[at + 6],
                segment[at + 7],
            ]);
            let seq = seq.wrapping_add(place.offset as u32);
            segment[at + 4..at + 8].copy_from_slice(&seq.to_be_bytes());
            if !place.last {
                segment[at + 13] &= !TCP_FIN_PSH;
            }
            if place.index > 0 {
                segment[at + 13] &= !TCP_CWR;
            }
            at + TCP_CHECKSUM_OFFSET
        }
        Segmented::Udp => {
            segment[at + 4..at + 6].copy_from_slice(&(length as u16).to_be_bytes());
            at + UDP_CHECKSUM_OFFSET
        }
    };
    let pseudo = fold(layout.pseudo_header(segment, length));
    segment[field..field + 2].copy_from_slice(&pseudo.to_be_bytes());
    complete_checksum(segment, at, field);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const TCP: u8 = 6;
    const UDP: u8 = 17;

    /// An Ethernet + IPv4 or IPv6 + TCP or UDP frame with the checksum field holding the
    /// pseudo-header's sum, as a sender with checksum offload leaves it.
    fn frame(v6: bool, protocol: u8, payload: &[u8]) -> (Vec<u8>, usize) {
        let mut transport = if protocol == TCP {
            let mut t = vec![0x12, 0x34, 0x00, 0x50];
            t.extend_from_slice(&0xffff_ff00u32.to_be_bytes());
            t.extend_from_slice(&[0, 0, 0, 9, 0x50, TCP_CWR | 0x19, 0x20, 0, 0, 0, 0, 0]);
            t
        } else {
            let len = (8 + payload.len()) as u16;
            let mut t = vec![0x12, 0x34, 0x00, 0x50];
            t.extend_from_slice(&len.to_be_bytes());
            t.extend_from_slice(&[0, 0]);
            t
        };
        transport.extend_from_slice(payload);
        let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        if v6 {
            f.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0]);
            f.extend_from_slice(&(transport.len() as u16).to_be_bytes());
            f.extend_from_slice(&[protocol, 64]);
            f.extend_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            f.extend_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        } else {
            f.extend_from_slice(&[0x08, 0, 0x45, 0]);
            f.extend_from_slice(&((20 + transport.len()) as u16).to_be_bytes());
            f.extend_from_slice(&[
                0xff, 0xff, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
            ]);
            let checksum = !fold(sum(&f[14..34], 0));
            f[24..26].copy_from_slice(&checksum.to_be_bytes());
        }
        let start = f.len();
        let length = transport.len();
        f.extend_from_slice(&transport);
        let layout = Layout {
            ip: 14,
            is_v6: v6,
            transport: start,
            payload: start,
            kind: if protocol == TCP {
                Segmented::Tcp
            } else {
                Segmented::Udp
            },
        };
        let pseudo = fold(layout.pseudo_header(&f, length));
        let field = start + if protocol == TCP { 16 } else { 6 };
        f[field..field + 2].copy_from_slice(&pseudo.to_be_bytes());
        (f, start)
    }

    fn run(f: &[u8], pending: &Pending) -> Vec<Vec<u8>> {
        let mut buffer = vec![0; HEADROOM];
        buffer.extend_from_slice(f);
        let mut frames = Vec::new();
        finish(&mut buffer, pending, &mut Vec::new(), |out| {
            frames.push(out.to_vec())
        });
        frames
    }

    /// Summing a right packet, pseudo-header included, gives all ones.
    fn transport_is_right(f: &[u8], v6: bool, protocol: u8) -> bool {
        let start = if v6 { 54 } else { 34 };
        let addresses = if v6 { &f[22..54] } else { &f[26..34] };
        let total = sum(addresses, u32::from(protocol) + (f.len() - start) as u32);
        fold(sum(&f[start..], total)) == 0xffff
    }

    #[test]
    fn completes_a_partial_checksum() {
        for v6 in [false, true] {
            for protocol in [TCP, UDP] {
                for len in [0usize, 1, 2, 333] {
                    let payload: Vec<u8> = (0..len).map(|i| i as u8).collect();
                    let (f, start) = frame(v6, protocol, &payload);
                    assert!(!transport_is_right(&f, v6, protocol));
                    let offset = if protocol == TCP { 16 } else { 6 };
                    let pending = Pending {
                        checksum: Some((start, start + offset)),
                        ..Pending::default()
                    };
                    let out = run(&f, &pending);
                    assert_eq!(out.len(), 1);
                    assert!(
                        transport_is_right(&out[0], v6, protocol),
                        "{v6} {protocol} {len}"
                    );
                }
            }
        }
    }

    #[test]
    fn udp_checksum_that_comes_out_zero_is_sent_as_ones() {
        let (mut f, start) = frame(false, UDP, &[0, 0]);
        // Choose the payload such that the sum is all ones.
        let total = fold(sum(&f[start..], 0));
        let at = f.len() - 2;
        f[at..].copy_from_slice(&(!total).to_be_bytes());
        let out = run(
            &f,
            &Pending {
                checksum: Some((start, start + 6)),
                ..Pending::default()
            },
        );
        assert_eq!(out[0][start + 6..start + 8], [0xff, 0xff]);
    }

    #[test]
    fn cuts_tcp_into_segments() {
        for v6 in [false, true] {
            let payload: Vec<u8> = (0..2500u32).map(|i| (i * 7) as u8).collect();
            let (f, start) = frame(v6, TCP, &payload);
            let pending = Pending {
                checksum: Some((start, start + 16)),
                segment: Some((Segmented::Tcp, 1000)),
                ..Pending::default()
            };
            let out = run(&f, &pending);
            assert_eq!(
                out.iter().map(|s| s.len() - start - 20).collect::<Vec<_>>(),
                [1000, 1000, 500]
            );
            let joined: Vec<u8> = out.iter().flat_map(|s| s[start + 20..].to_vec()).collect();
            assert_eq!(joined, payload);
            for (i, s) in out.iter().enumerate() {
                assert!(transport_is_right(s, v6, TCP));
                let seq = u32::from_be_bytes(s[start + 4..start + 8].try_into().unwrap());
                assert_eq!(seq, 0xffff_ff00u32.wrapping_add(1000 * i as u32));
                let flags = s[start + 13];
                assert_eq!(flags & TCP_CWR != 0, i == 0, "CWR only on the first");
                assert_eq!(
                    flags & TCP_FIN_PSH != 0,
                    i == 2,
                    "FIN and PSH only on the last"
                );
                if v6 {
                    assert_eq!(u16::from_be_bytes([s[18], s[19]]) as usize, s.len() - 54);
                } else {
                    assert_eq!(u16::from_be_bytes([s[16], s[17]]) as usize, s.len() - 14);
                    assert_eq!(fold(sum(&s[14..34], 0)), 0xffff, "IPv4 checksum");
                    assert_eq!(
                        u16::from_be_bytes([s[18], s[19]]),
                        0xffffu16.wrapping_add(i as u16)
                    );
                }
            }
        }
    }

    #[test]
    fn cuts_udp_into_datagrams() {
        let (f, start) = frame(false, UDP, &[5; 250]);
        let pending = Pending {
            checksum: Some((start, start + 6)),
            segment: Some((Segmented::Udp, 100)),
            ..Pending::default()
        };
        let out = run(&f, &pending);
        assert_eq!(out.len(), 3);
        for s in &out {
            assert!(transport_is_right(s, false, UDP));
            assert_eq!(
                u16::from_be_bytes([s[start + 4], s[start + 5]]) as usize,
                s.len() - start
            );
        }
    }

    #[test]
    fn cuts_what_begins_with_ip() {
        for v6 in [false, true] {
            let (f, start) = frame(v6, TCP, &[7; 700]);
            let ethernet = Pending {
                checksum: Some((start, start + 16)),
                segment: Some((Segmented::Tcp, 300)),
                ..Pending::default()
            };
            let raw = Pending {
                checksum: Some((start - 14, start + 2)),
                is_ip: true,
                ..ethernet
            };
            let want: Vec<_> = run(&f, &ethernet)
                .iter()
                .map(|s| s[14..].to_vec())
                .collect();
            assert_eq!(want.len(), 3);
            assert_eq!(run(&f[14..], &raw), want);
        }
    }

    #[test]
    fn puts_the_vlan_tag_back() {
        let (f, start) = frame(false, TCP, &[1; 300]);
        let tagged = Pending {
            vlan: Some((0x8100, 0x2005)),
            ..Pending::default()
        };
        let mut want = f[..12].to_vec();
        want.extend_from_slice(&[0x81, 0x00, 0x20, 0x05]);
        want.extend_from_slice(&f[12..]);
        assert_eq!(run(&f, &tagged), [want]);

        let pending = Pending {
            checksum: Some((start, start + 16)),
            segment: Some((Segmented::Tcp, 200)),
            vlan: Some((0x88a8, 1)),
            ..Pending::default()
        };
        let out = run(&f, &pending);
        assert_eq!(out.len(), 2);
        assert!(out.iter().all(|s| s[12..18] == [0x88, 0xa8, 0, 1, 0x08, 0]));
    }

    #[test]
    fn reads_the_kernels_header() {
        let mut header = [0u8; VNET_HEADER_LEN];
        header[0] = 1;
        header[1] = GSO_TCP_V4 | GSO_ECN_BIT;
        header[4..6].copy_from_slice(&1448u16.to_ne_bytes());
        header[6..8].copy_from_slice(&34u16.to_ne_bytes());
        header[8..10].copy_from_slice(&16u16.to_ne_bytes());
        let want = Pending {
            checksum: Some((34, 50)),
            segment: Some((Segmented::Tcp, 1448)),
            ..Pending::default()
        };
        assert_eq!(Pending::from_vnet_header(&header), want);
        assert_eq!(Pending::from_vnet_header(&[0; 10]), Pending::default());
    }

    proptest::proptest! {
        /// No bytes and no claims of the kernel's make it panic or lose a frame.
        #[test]
        fn survives_anything(
            f in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
            header in proptest::array::uniform10(proptest::num::u8::ANY),
            vlan in proptest::option::of((proptest::num::u16::ANY, proptest::num::u16::ANY)),
            is_ip in proptest::bool::ANY,
        ) {
            let pending = Pending { vlan, is_ip, ..Pending::from_vnet_header(&header) };
            proptest::prop_assert!(!run(&f, &pending).is_empty());
        }
    }
}
