//! The system calls: packet sockets, many frames per call, namespaces of threads.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Frames per system call.
pub(crate) const BATCH: usize = 64;
/// Bytes kept for a received frame.
const FRAME_MAX: usize = 2048;
const SOCKET_BUFFER: libc::c_int = 8 << 20;

/// What a socket is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Receives what comes in by the interface.
    Receive,
    /// Sends past the queueing discipline, as the fastest sender would.
    Blast,
    /// Sends as any program does.
    Send,
}

/// A packet socket on one interface of this thread's namespace.
pub(crate) struct Socket {
    fd: OwnedFd,
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn set<T>(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the pointer is to a `T` and the length is that of a `T`.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })?;
    Ok(())
}

impl Socket {
    pub(crate) fn open(interface: &str, usage: Use) -> io::Result<Socket> {
        let protocol = match usage {
            Use::Receive => libc::c_int::from((libc::ETH_P_ALL as u16).to_be()),
            Use::Blast | Use::Send => 0,
        };
        // SAFETY: `socket` takes no pointers.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, protocol) })?;
        // SAFETY: the descriptor is new and nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        if usage == Use::Receive {
            set(&fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &SOCKET_BUFFER)?;
        } else {
            set(&fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SOCKET_BUFFER)?;
        }
        if usage == Use::Blast {
            set(&fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1i32)?;
        }
        let name = CString::new(interface)?;
        // SAFETY: plain C structure for which all zeros is a valid value.
        let mut address = unsafe { zeroed::<libc::sockaddr_ll>() };
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        address.sll_protocol = protocol as libc::c_ushort;
        // SAFETY: the pointer is to a string that ends with a zero byte and outlives the call.
        address.sll_ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) } as libc::c_int;
        if address.sll_ifindex == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the address is a `sockaddr_ll` of the length given.
        check(unsafe {
            libc::bind(
                fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        })?;
        Ok(Socket { fd })
    }

    /// Sends up to [`BATCH`] frames, in order; how many the interface took.
    pub(crate) fn send<'f>(&self, frames: impl Iterator<Item = &'f [u8]>) -> io::Result<usize> {
        // SAFETY: plain C structures for which all zeros is a valid value.
        let (mut vectors, mut messages) = unsafe {
            (
                zeroed::<[libc::iovec; BATCH]>(),
                zeroed::<[libc::mmsghdr; BATCH]>(),
            )
        };
        let mut count = 0;
        for frame in frames.take(BATCH) {
            // The kernel only reads what a sent vector points to.
            vectors[count] = libc::iovec {
                iov_base: frame.as_ptr().cast_mut().cast(),
                iov_len: frame.len(),
            };
            messages[count].msg_hdr.msg_iov = &raw mut vectors[count];
            messages[count].msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        // SAFETY: the first `count` messages point to one vector each, which points to a frame
        // that outlives the call.
        let sent = check(unsafe {
            libc::sendmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        })?;
        Ok(sent as usize)
    }

    /// Receives up to [`BATCH`] frames that are there now, waiting up to 100 ms for the first.
    pub(crate) fn receive(&self, buffers: &mut Buffers) -> io::Result<()> {
        buffers.lengths.clear();
        let mut polled = libc::pollfd {
            fd: self.fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: plain C structures for which all zeros is a valid value.
        let (mut from, mut vectors, mut messages) = unsafe {
            (
                zeroed::<[libc::sockaddr_ll; BATCH]>(),
                zeroed::<[libc::iovec; BATCH]>(),
                zeroed::<[libc::mmsghdr; BATCH]>(),
            )
        };
        for (at, frame) in buffers.bytes.chunks_exact_mut(FRAME_MAX).enumerate() {
            vectors[at] = libc::iovec {
                iov_base: frame.as_mut_ptr().cast(),
                iov_len: FRAME_MAX,
            };
            let header = &mut messages[at].msg_hdr;
            header.msg_name = (&raw mut from[at]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            header.msg_iov = &raw mut vectors[at];
            header.msg_iovlen = 1;
        }
        let mut take = || {
            // SAFETY: every message points to an address and a vector of its own, which outlive
            // the call.
            check(unsafe {
                libc::recvmmsg(
                    self.fd.as_raw_fd(),
                    messages.as_mut_ptr(),
                    BATCH as libc::c_uint,
                    libc::MSG_DONTWAIT,
                    std::ptr::null_mut(),
                )
            })
        };
        let count = match take() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // SAFETY: the pointer is to one `pollfd`.
                match unsafe { libc::poll(&raw mut polled, 1, 100) } {
                    1 => take()?,
                    _ => 0,
                }
            }
            other => other?,
        };
        for (at, message) in messages.iter().enumerate().take(count as usize) {
            if from[at].sll_pkttype != libc::PACKET_OUTGOING {
                buffers.lengths.push((at, message.msg_len as usize));
            }
        }
        Ok(())
    }
}

/// Room for a batch of received frames.
pub(crate) struct Buffers {
    bytes: Vec<u8>,
    lengths: Vec<(usize, usize)>,
}

impl Default for Buffers {
    fn default() -> Self {
        Buffers {
            bytes: vec![0; BATCH * FRAME_MAX],
            lengths: Vec::with_capacity(BATCH),
        }
    }
}

impl Buffers {
    /// The frames of the last batch.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.lengths
            .iter()
            .map(|&(at, len)| &self.bytes[at * FRAME_MAX..][..len.min(FRAME_MAX)])
    }
}

/// Puts this thread into a new network namespace, which lives as long as the thread; the
/// thread's id, by which `ip link set ... netns` finds it.
pub(crate) fn new_namespace() -> io::Result<libc::pid_t> {
    // SAFETY: `unshare` and `gettid` take no pointers.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
    // SAFETY: as above.
    Ok(unsafe { libc::gettid() })
}
