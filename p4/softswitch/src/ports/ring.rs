//! Receives the frames of one Linux interface from memory that the kernel fills.
//!
//! A packet socket with a ring (TPACKET_V2): the kernel puts each frame into a slot, in front of
//! it the `virtio_net_hdr` and in the slot's header the VLAN tag, see
//! [`offload`](super::offload). Taking a frame costs no system call, and an idle thread is woken
//! by the first frame, not by a full block. A frame that is longer than a slot (a segmentation
//! offload's 64 kB, a jumbo frame) the kernel leaves in the socket's queue as well; that one is
//! read from there.
//!
//! The interface is promiscuous for as long as the socket lives; closing it puts everything back.
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::offload::{HEADROOM, Pending, VNET_HEADER_LEN};
use super::packet_socket::{
    bind, interface_index, packet_socket, protocol_all, set_buffer, set_option,
};

/// Longest frame, with what a segmentation offload leaves together.
const FRAME_MAX: usize = 256 << 10;
/// What a slot needs besides the frame: its header and the kernel's gaps.
const SLOT_OVERHEAD: usize = 128;
const SLOT_MIN: usize = 2048;
/// Longer frames go by the socket's queue.
const SLOT_MAX: usize = 16 << 10;
const BLOCK: usize = 256 << 10;

const TPACKET_V2: libc::c_int = 1;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
/// Bits of a slot's status.
const STATUS_KERNEL: u32 = 0;
const STATUS_USER: u32 = 1;
const STATUS_COPY: u32 = 1 << 1;
const STATUS_VLAN_VALID: u32 = 1 << 4;
const STATUS_VLAN_TPID_VALID: u32 = 1 << 6;

/// An open interface, its receiving half.
#[derive(Debug)]
pub(crate) struct Ring {
    index: u32,
    fd: OwnedFd,
    memory: NonNull<u8>,
    len: usize,
    slot: usize,
    slots: usize,
    /// The slot that comes next.
    next: usize,
    /// Frames that arrived longer than a slot and could not be had whole.
    cut: u64,
}

// SAFETY: the mapping belongs to this value alone; the kernel writes only into slots whose status
// says that they are its own.
unsafe impl Send for Ring {}

/// How much memory a ring takes and how long its slots are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Bytes for all slots, about.
    pub(crate) memory: usize,
    /// The interface's MTU, bytes; longer frames come as well, but slower.
    pub(crate) mtu: usize,
}

impl Shape {
    fn slot(self) -> usize {
        (self.mtu + SLOT_OVERHEAD)
            .next_power_of_two()
            .clamp(SLOT_MIN, SLOT_MAX)
    }
}

impl Ring {
    /// Opens interface `name`.
    ///
    /// # Errors
    /// `NotFound` when there is no such interface, `PermissionDenied` without CAP_NET_RAW.
    pub(crate) fn open(name: &str, shape: Shape) -> io::Result<Ring> {
        let index = interface_index(name)?;
        // No protocol yet: frames of other interfaces must not get in before `bind`.
        let fd = packet_socket(0)?;
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_VERSION, &TPACKET_V2)?;
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1i32)?;
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, &1i32)?;
        // Kernels before 4.20 lack it; `receive` skips outgoing frames by their type as well.
        let _ = set_option(&fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32);
        set_buffer(&fd, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)?;
        let slot = shape.slot();
        let blocks = (shape.memory / BLOCK).max(1);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as libc::c_uint,
            tp_block_nr: blocks as libc::c_uint,
            tp_frame_size: slot as libc::c_uint,
            tp_frame_nr: (blocks * BLOCK / slot) as libc::c_uint,
        };
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let len = blocks * BLOCK;
        let memory = map(&fd, len)?;
        let ring = Ring {
            index,
            fd,
            memory,
            len,
            slot,
            slots: len / slot,
            next: 0,
            cut: 0,
        };
        bind(&ring.fd, index, protocol_all())?;
        let membership = libc::packet_mreq {
            mr_ifindex: index as libc::c_int,
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set_option(
            &ring.fd,
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            &membership,
        )?;
        Ok(ring)
    }

    /// The interface's index when it was opened.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// The descriptor to poll for frames.
    pub(crate) fn poll_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Frames that arrived longer than a slot and could not be had whole.
    pub(crate) fn cut(&self) -> u64 {
        self.cut
    }

    /// Frames that found the ring full since the last call.
    pub(crate) fn lost(&self) -> u64 {
        let (mut counts, mut len) = ([0u32; 2], size_of::<[u32; 2]>() as libc::socklen_t);
        // SAFETY: the pointers are to a structure of two integers (packets and drops) and to its
        // length.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut counts).cast(),
                &raw mut len,
            )
        };
        if result < 0 { 0 } else { counts[1].into() }
    }

    /// Whether a frame is there.
    pub(crate) fn has_frame(&self) -> bool {
        self.status(self.next).load(Ordering::Acquire) & STATUS_USER != 0
    }

    /// Calls `each` with up to `limit` frames that are there now: the bytes, with [`HEADROOM`]
    /// free ones in front, and what is to do on them. How many slots it took.
    pub(crate) fn receive(
        &mut self,
        limit: usize,
        large: &mut Vec<u8>,
        mut each: impl FnMut(&mut [u8], &Pending),
    ) -> usize {
        for taken in 0..limit {
            let at = self.next;
            let status = self.status(at).load(Ordering::Acquire);
            if status & STATUS_USER == 0 {
                return taken;
            }
            self.take(at, status, large, &mut each);
            self.status(at).store(STATUS_KERNEL, Ordering::Release);
            self.next = (at + 1) % self.slots;
        }
        limit
    }

    /// Hands out the frame of a slot that is ours until its status says otherwise.
    fn take(
        &mut self,
        at: usize,
        status: u32,
        large: &mut Vec<u8>,
        each: &mut impl FnMut(&mut [u8], &Pending),
    ) {
        let start = at * self.slot;
        // SAFETY: the slot lies in the mapping, is ours by its status, and nothing else refers to
        // it while this call lasts.
        let slot =
            unsafe { std::slice::from_raw_parts_mut(self.memory.add(start).as_ptr(), self.slot) };
        // SAFETY: the slot begins with this header of plain integers, and slots are aligned far
        // beyond its needs.
        let header = unsafe { slot.as_ptr().cast::<libc::tpacket2_hdr>().read() };
        let vlan = (status & STATUS_VLAN_VALID != 0).then(|| {
            let tpid = match status & STATUS_VLAN_TPID_VALID {
                0 => 0x8100,
                _ => header.tp_vlan_tpid,
            };
            (tpid, header.tp_vlan_tci)
        });
        // The sender's address follows the header; byte 10 of it is the packet's type.
        const ADDRESS: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(16);
        let is_outgoing = slot[ADDRESS + 10] == libc::PACKET_OUTGOING;
        let (mac, len) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
        if header.tp_len == 0 {
            return;
        }
        if header.tp_snaplen < header.tp_len {
            if status & STATUS_COPY == 0 {
                self.cut += 1;
            } else if let Some((len, mut pending)) = self.receive_large(large)
                && !is_outgoing
            {
                pending.vlan = vlan;
                each(&mut large[..HEADROOM + len], &pending);
            }
            return;
        }
        if is_outgoing || mac < VNET_HEADER_LEN || mac + len > slot.len() {
            return;
        }
        let mut vnet = [0; VNET_HEADER_LEN];
        vnet.copy_from_slice(&slot[mac - VNET_HEADER_LEN..mac]);
        let mut pending = Pending::from_vnet_header(&vnet);
        pending.vlan = vlan;
        each(&mut slot[mac - HEADROOM..mac + len], &pending);
    }

    /// Reads the next long frame from the socket's queue; its length, and what is to do on it.
    /// `None` when the kernel has dropped it after all.
    fn receive_large(&mut self, large: &mut Vec<u8>) -> Option<(usize, Pending)> {
        large.resize(HEADROOM + FRAME_MAX, 0);
        let mut vnet = [0u8; VNET_HEADER_LEN];
        let mut vectors = [
            libc::iovec {
                iov_base: vnet.as_mut_ptr().cast(),
                iov_len: VNET_HEADER_LEN,
            },
            libc::iovec {
                iov_base: large[HEADROOM..].as_mut_ptr().cast(),
                iov_len: FRAME_MAX,
            },
        ];
        // SAFETY: plain C structure for which all zeros is a valid value.
        let mut message = unsafe { std::mem::zeroed::<libc::msghdr>() };
        message.msg_iov = vectors.as_mut_ptr();
        message.msg_iovlen = vectors.len();
        // SAFETY: the message points to two vectors, which point to buffers as long as they say;
        // all of them outlive the call.
        let count = unsafe {
            libc::recvmsg(
                self.fd.as_raw_fd(),
                &raw mut message,
                libc::MSG_DONTWAIT | libc::MSG_TRUNC,
            )
        };
        let len = usize::try_from(count).ok()?.checked_sub(VNET_HEADER_LEN)?;
        if len == 0 || len > FRAME_MAX {
            self.cut += u64::from(len > 0);
            return None;
        }
        Some((len, Pending::from_vnet_header(&vnet)))
    }

    fn status(&self, at: usize) -> &AtomicU32 {
        // SAFETY: a slot begins with its status, a `u32` that is aligned as slots are. Both sides
        // access it by atomic operations only, and the mapping lives as long as `self`.
        unsafe { AtomicU32::from_ptr(self.memory.add(at * self.slot).as_ptr().cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this address and length, and nobody refers to it.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.len) };
    }
}

fn map(fd: &OwnedFd, len: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            fd.as_raw_fd(),
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(memory.cast()).ok_or_else(|| io::Error::other("mmap gave address 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_suit_the_mtu_and_fit_blocks() {
        for (mtu, slot) in [(0, 2048), (1500, 2048), (1920, 2048), (1921, 4096)] {
            let shape = Shape { memory: 0, mtu };
            assert_eq!(shape.slot(), slot, "{mtu}");
        }
        let jumbo = Shape {
            memory: 0,
            mtu: 65_535,
        };
        assert_eq!(jumbo.slot(), SLOT_MAX);
        assert_eq!(BLOCK % SLOT_MAX, 0);
    }
}
