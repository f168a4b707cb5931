//! INT shim, INT-MD header and metadata stack in a packet (INT-MD v2.1 sections 5.7.2 and 5.8).

use super::metadata::{Metadata, Place, bytes_of_all};
use super::{Malformed, number, split};

/// Bytes of the shim, and of the INT-MD header.
pub const SHIM_BYTES: usize = 4;
/// Bytes of the INT-MD header without its stack.
pub const HEADER_BYTES: usize = 12;

/// What follows the INT stack (NPT of the shim).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// 0: the payload of the transport header in front; the DSCP that the packet had.
    InPlace {
        /// Of the packet before the source.
        dscp: u8,
    },
    /// 1: the payload of the UDP header in front, which had this destination port.
    Port(u16),
    /// 2: a transport header of this IP protocol; the UDP header in front was added.
    Protocol(u8),
}

/// A packet's INT-MD header and what the hops pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// What follows.
    pub next: Next,
    /// D: the sink discards the packet.
    pub discard: bool,
    /// E: a hop found no hop left and pushed nothing.
    pub hops_exceeded: bool,
    /// M: a hop found its MTU exceeded and pushed nothing.
    pub mtu_exceeded: bool,
    /// Words that each hop adds.
    pub hop_ml: u8,
    /// Hops that may still push.
    pub remaining_hops: u8,
    /// What each hop was asked for.
    pub instructions: u16,
    /// Domain that the domain specific bits belong to; 0: none.
    pub domain_id: u16,
    /// Domain specific instructions.
    pub ds_instructions: u16,
    /// Domain specific flags.
    pub ds_flags: u16,
    /// The hops, in the order that the packet met them.
    pub hops: Vec<Metadata>,
    /// What the source alone added, behind its own metadata.
    pub source_only: Vec<u8>,
}

impl Stack {
    /// Takes a stack from the front of `bytes`, which begin with the shim; also gives the rest.
    ///
    /// # Errors
    /// When it is not INT-MD v2, or its lengths contradict each other or the bytes.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (shim, rest) = split(bytes, SHIM_BYTES, "INT shim")?;
        let unknown = |what, found: u8, expected| Malformed::Unknown {
            what,
            found: found.into(),
            expected,
        };
        if shim[0] >> 4 != 1 {
            return Err(unknown(
                "type of the INT header",
                shim[0] >> 4,
                "1 (INT-MD)",
            ));
        }
        let next = match shim[0] >> 2 & 3 {
            0 => Next::InPlace { dscp: shim[3] >> 2 },
            1 => Next::Port(number(&shim[2..]) as u16),
            2 => Next::Protocol(shim[3]),
            other => return Err(unknown("NPT of the INT shim", other, "0, 1 or 2")),
        };
        let (body, after) = split(rest, usize::from(shim[1]) * 4, "INT-MD header and stack")?;
        let (header, stack) = split(body, HEADER_BYTES, "INT-MD header")?;
        if header[0] >> 4 != 2 {
            return Err(unknown("version of the INT-MD header", header[0] >> 4, "2"));
        }
        let word = |at: usize| number(&header[at..at + 2]) as u16;
        let mut decoded = Stack {
            next,
            discard: header[0] & 8 != 0,
            hops_exceeded: header[0] & 4 != 0,
            mtu_exceeded: header[0] & 2 != 0,
            hop_ml: header[2] & 0x1f,
            remaining_hops: header[3],
            instructions: word(4),
            domain_id: word(6),
            ds_instructions: word(8),
            ds_flags: word(10),
            hops: Vec::new(),
            source_only: Vec::new(),
        };
        decoded.read_hops(stack)?;
        Ok((decoded, after))
    }

    fn read_hops(&mut self, stack: &[u8]) -> Result<(), Malformed> {
        let hop = usize::from(self.hop_ml) * 4;
        let baseline = bytes_of_all(self.instructions);
        if hop == 0 {
            return match stack {
                [] => Ok(()),
                _ => Err(Malformed::Contradiction("a stack though Hop ML is 0")),
            };
        }
        let Some(own) = hop.checked_sub(baseline) else {
            let why = "Hop ML is less than the instructions ask for";
            return Err(Malformed::Contradiction(why));
        };
        let chunks = stack.chunks_exact(hop);
        self.source_only = chunks.remainder().to_vec();
        for bytes in chunks {
            let metadata = Metadata::decode(self.instructions, own, bytes, Place::Stack)?;
            self.hops.push(metadata);
        }
        self.hops.reverse();
        Ok(())
    }

    /// Writes shim, header and stack.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut stack: Vec<u8> = Vec::new();
        for hop in self.hops.iter().rev() {
            stack.extend(hop.encode(self.instructions, Place::Stack));
        }
        stack.extend(&self.source_only);
        let (npt, field) = match self.next {
            Next::InPlace { dscp } => (0, u16::from(dscp) << 2),
            Next::Port(port) => (1, port),
            Next::Protocol(protocol) => (2, protocol.into()),
        };
        let words = (HEADER_BYTES + stack.len()) / 4;
        let mut bytes = vec![1 << 4 | npt << 2, words as u8];
        bytes.extend(field.to_be_bytes());
        let flags = u8::from(self.discard) << 3
            | u8::from(self.hops_exceeded) << 2
            | u8::from(self.mtu_exceeded) << 1;
        bytes.extend([2 << 4 | flags, 0, self.hop_ml, self.remaining_hops]);
        let words = [
            self.instructions,
            self.domain_id,
            self.ds_instructions,
            self.ds_flags,
        ];
        bytes.extend(words.map(u16::to_be_bytes).concat());
        bytes.extend(stack);
        bytes
    }
}
