//! A packet inside the switch.

use crate::exec::bits::PADDING;

/// A packet's bytes and what the switch knows of it besides its words.
#[derive(Default)]
pub(crate) struct Inner {
    /// The bytes it had on the way in (or after its last deparsing), and
    /// [`PADDING`] more.
    pub(crate) buf: Vec<u8>,
    /// Its bytes, without the padding.
    pub(crate) len: usize,
    /// Bytes that the parser took off its front.
    pub(crate) cursor: usize,
    /// Bytes it had when it entered: what counters and meters count.
    pub(crate) ingress_len: u64,
    /// Bytes it has, as `packet_length` tells egress: headers added and
    /// removed count.
    pub(crate) length: u64,
    /// It is cut to this many bytes when it leaves.
    pub(crate) cut: usize,
    /// Its words, while it is queued.
    pub(crate) words: Vec<u64>,
    /// Its words are in a lane's frame instead, while it is queued.
    pub(crate) is_resident: bool,
    /// The queue it waits in.
    pub(crate) queue: u8,
    /// Its number while the switch traces.
    pub(crate) number: u64,
    /// µs when it was queued.
    pub(crate) queued_at: u64,
    /// The same in ns.
    pub(crate) queued_ns: u64,
}

/// Packets move between pool, queues and interpreter as pointers.
pub(crate) type Boxed = Box<Inner>;

impl Inner {
    /// Fills it with bytes that arrive.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.buf.clear();
        self.buf.reserve(bytes.len() + PADDING);
        self.buf.extend_from_slice(bytes);
        self.buf.extend_from_slice(&[0; PADDING]);
        self.arrived(bytes.len());
    }

    /// As a new packet of `len` bytes, which are in its buffer.
    pub(crate) fn arrived(&mut self, len: usize) {
        self.len = len;
        self.cursor = 0;
        self.ingress_len = len as u64;
        self.length = len as u64;
        self.cut = usize::MAX;
        self.is_resident = false;
    }

    /// Copies another packet, its words excepted.
    pub(crate) fn copy(&mut self, from: &Inner) {
        self.buf.clear();
        self.buf.extend_from_slice(&from.buf);
        self.len = from.len;
        self.cursor = from.cursor;
        self.ingress_len = from.ingress_len;
        self.length = from.length;
        self.cut = usize::MAX;
        self.number = from.number;
        self.is_resident = false;
    }

    pub(crate) fn payload(&self) -> &[u8] {
        &self.buf[self.cursor..self.len]
    }

    /// Bytes it leaves with.
    pub(crate) fn out_len(&self) -> usize {
        self.len.min(self.cut)
    }

    /// Cuts it to `bytes`, unless it is cut shorter already.
    pub(crate) fn truncate(&mut self, bytes: u64) {
        self.cut = self.cut.min(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
}

/// What the program asked for while one pipeline ran.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {
    /// Clone session and list of the words that the clone keeps.
    pub(crate) clone: Option<(u32, u16)>,
    pub(crate) digest: Option<u16>,
    pub(crate) resubmit: Option<u16>,
    pub(crate) recirculate: Option<u16>,
    /// An assertion failed: the packet is gone.
    pub(crate) abort: bool,
    pub(crate) parser_error: u64,
    pub(crate) checksum_error: bool,
}
