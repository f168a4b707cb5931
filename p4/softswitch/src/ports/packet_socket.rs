//! Packet sockets (AF_PACKET): frames of one Linux interface, many per system call.
//!
//! Two sockets per interface: one receives (with the kernel's `virtio_net_hdr` and the VLAN tag
//! as auxiliary data, see [`offload`](super::offload)), the other sends, so that what is sent is
//! never received again and needs no header. The interface is promiscuous for as long as the
//! socket lives; closing it puts everything back.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::offload::{HEADROOM, Pending, VNET_HEADER_LEN};

/// Frames per system call.
pub(crate) const BATCH: usize = 64;

/// Longest frame, with what a segmentation offload makes of it.
const FRAME_MAX: usize = 65_536 + 64;
const CONTROL_LEN: usize = 64;
/// Socket buffers, bytes: room for what arrives while the loop is busy elsewhere.
const SOCKET_BUFFER: libc::c_int = 8 << 20;

/// An open interface.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    index: u32,
    receive: OwnedFd,
    send: OwnedFd,
}

/// Buffers for receiving, shared by all the interfaces of a thread. Pages that no frame has
/// touched take no memory.
pub(crate) struct ReceiveBuffers {
    frames: Vec<u8>,
    vnet: Vec<[u8; VNET_HEADER_LEN]>,
    control: Vec<Control>,
}

/// Space for control messages; `cmsghdr` wants the alignment of `size_t`.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_LEN]);

/// One received frame: the bytes, with [`HEADROOM`] free ones in front, and what is to do on it.
pub(crate) struct Received {
    /// Where the frame (headroom included) is in the buffers.
    range: std::ops::Range<usize>,
    /// What the kernel left undone.
    pub(crate) pending: Pending,
}

impl Default for ReceiveBuffers {
    fn default() -> Self {
        ReceiveBuffers {
            frames: vec![0; BATCH * (HEADROOM + FRAME_MAX)],
            vnet: vec![[0; VNET_HEADER_LEN]; BATCH],
            control: vec![Control([0; CONTROL_LEN]); BATCH],
        }
    }
}

impl ReceiveBuffers {
    /// The bytes of a frame, headroom included.
    pub(crate) fn frame(&mut self, received: &Received) -> &mut [u8] {
        &mut self.frames[received.range.clone()]
    }
}

impl PacketSocket {
    /// Opens interface `name`, promiscuous.
    ///
    /// # Errors
    /// `NotFound` when there is no such interface, `PermissionDenied` without CAP_NET_RAW.
    pub(crate) fn open(name: &str) -> io::Result<Self> {
        let index = interface_index(name)?;
        let receive = packet_socket(protocol_all())?;
        set_option(&receive, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1i32)?;
        set_option(&receive, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1i32)?;
        // Kernels before 4.20 lack it; `receive` skips outgoing frames by their type as well.
        let _ = set_option(&receive, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32);
        set_buffer(&receive, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)?;
        bind(&receive, index, protocol_all())?;
        let membership = libc::packet_mreq {
            mr_ifindex: index as libc::c_int,
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set_option(
            &receive,
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            &membership,
        )?;

        let send = packet_socket(0)?;
        set_buffer(&send, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)?;
        bind(&send, index, 0)?;
        Ok(PacketSocket {
            index,
            receive,
            send,
        })
    }

    /// The interface's index when it was opened.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// The descriptor to poll for frames.
    pub(crate) fn poll_fd(&self) -> RawFd {
        self.receive.as_raw_fd()
    }

    /// Receives up to [`BATCH`] frames that are there now; empty when there are none.
    ///
    /// # Errors
    /// What `recvmmsg` says, such as `NetworkDown` when the interface went down.
    pub(crate) fn receive(
        &self,
        buffers: &mut ReceiveBuffers,
        received: &mut Vec<Received>,
    ) -> io::Result<()> {
        received.clear();
        const STRIDE: usize = HEADROOM + FRAME_MAX;
        // SAFETY: all of these are plain C structures for which all zeros is a valid value.
        let (mut from, mut vectors, mut messages) = unsafe {
            (
                zeroed::<[libc::sockaddr_ll; BATCH]>(),
                zeroed::<[[libc::iovec; 2]; BATCH]>(),
                zeroed::<[libc::mmsghdr; BATCH]>(),
            )
        };
        for i in 0..BATCH {
            let frame = &mut buffers.frames[i * STRIDE + HEADROOM..(i + 1) * STRIDE];
            vectors[i] = [
                libc::iovec {
                    iov_base: buffers.vnet[i].as_mut_ptr().cast(),
                    iov_len: VNET_HEADER_LEN,
                },
                libc::iovec {
                    iov_base: frame.as_mut_ptr().cast(),
                    iov_len: frame.len(),
                },
            ];
            let header = &mut messages[i].msg_hdr;
            header.msg_name = (&raw mut from[i]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            header.msg_iov = vectors[i].as_mut_ptr();
            header.msg_iovlen = 2;
            header.msg_control = buffers.control[i].0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_LEN;
        }
        // SAFETY: every message points to an address, two vectors and a control buffer that are
        // distinct per message, as long as they say, and outlive the call.
        let count = unsafe {
            libc::recvmmsg(
                self.receive.as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
                _ => Err(error),
            };
        }
        for (i, message) in messages.iter().enumerate().take(count as usize) {
            let len = (message.msg_len as usize).saturating_sub(VNET_HEADER_LEN);
            if from[i].sll_pkttype == libc::PACKET_OUTGOING || len == 0 {
                continue;
            }
            let mut pending = Pending::from_vnet_header(&buffers.vnet[i]);
            pending.vlan = vlan_tag(&message.msg_hdr);
            let start = i * STRIDE;
            received.push(Received {
                range: start..start + HEADROOM + len,
                pending,
            });
        }
        Ok(())
    }

    /// Sends frames, in order, until the interface takes no more; returns how many it took.
    ///
    /// # Errors
    /// What `sendmmsg` says of the first frame, such as "message too long" for one above the
    /// interface's MTU; the caller skips that frame.
    pub(crate) fn send<'a>(&self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        // SAFETY: plain C structures for which all zeros is a valid value.
        let (mut vectors, mut messages) = unsafe {
            (
                zeroed::<[libc::iovec; BATCH]>(),
                zeroed::<[libc::mmsghdr; BATCH]>(),
            )
        };
        let mut count = 0;
        for (i, frame) in frames.take(BATCH).enumerate() {
            // The kernel only reads what a sent vector points to.
            vectors[i] = libc::iovec {
                iov_base: frame.as_ptr().cast_mut().cast(),
                iov_len: frame.len(),
            };
            messages[i].msg_hdr.msg_iov = &raw mut vectors[i];
            messages[i].msg_hdr.msg_iovlen = 1;
            count = i + 1;
        }
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: the first `count` messages point to one vector each, which points to a frame
        // borrowed for 'a.
        let sent = unsafe {
            libc::sendmmsg(
                self.send.as_raw_fd(),
                messages.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        if sent >= 0 {
            Ok(sent as usize)
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

/// Whether interface `name` is up and has a carrier; `None` when there is none of that name.
pub(crate) fn link_state(name: &str) -> Option<bool> {
    let socket = open_socket(libc::AF_INET, libc::SOCK_DGRAM, 0).ok()?;
    // SAFETY: plain C structure for which all zeros is a valid value.
    let mut request = unsafe { zeroed::<libc::ifreq>() };
    if name.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: SIOCGIFFLAGS reads the name and writes the flags of the `ifreq` it is given.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) };
    if result < 0 {
        return None;
    }
    // SAFETY: after SIOCGIFFLAGS the union holds the flags.
    let flags = i32::from(unsafe { request.ifr_ifru.ifru_flags });
    let wanted = libc::IFF_UP | libc::IFF_RUNNING;
    Some(flags & wanted == wanted)
}

/// The index of interface `name`.
pub(crate) fn interface_index(name: &str) -> io::Result<u32> {
    let c_name = CString::new(name).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "interface name contains a zero byte",
        )
    })?;
    // SAFETY: the pointer is to a string that ends with a zero byte and outlives the call.
    let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("there is no interface {name} here"),
        ));
    }
    Ok(index)
}

/// A socket that becomes readable when any interface of the namespace changes.
pub(crate) fn link_monitor() -> io::Result<OwnedFd> {
    let socket = open_socket(
        libc::AF_NETLINK,
        libc::SOCK_RAW | libc::SOCK_NONBLOCK,
        libc::NETLINK_ROUTE,
    )?;
    // SAFETY: plain C structure for which all zeros is a valid value.
    let mut address = unsafe { zeroed::<libc::sockaddr_nl>() };
    address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    address.nl_groups = libc::RTMGRP_LINK as u32;
    // SAFETY: the address is a `sockaddr_nl` of the length given.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_nl>() as libc::socklen_t,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(socket)
    }
}

/// Empties a socket or event descriptor that only tells that something happened.
pub(crate) fn drain(fd: RawFd) {
    let mut bytes = [0u8; 4096];
    // SAFETY: the buffer is as long as said; `read` on a descriptor of any kind is sound.
    while unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) } > 0 {
        // An event counter is empty after one read, a netlink socket after several.
    }
}

/// Waits until one of `fds` is readable or `timeout_ms` have passed; returns which are.
pub(crate) fn poll(fds: &[RawFd], timeout_ms: i32, ready: &mut Vec<usize>) -> io::Result<()> {
    ready.clear();
    let mut polled: Vec<libc::pollfd> = fds
        .iter()
        .map(|fd| libc::pollfd {
            fd: *fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    // SAFETY: the pointer is to as many `pollfd` as said.
    let count = unsafe {
        libc::poll(
            polled.as_mut_ptr(),
            polled.len() as libc::nfds_t,
            timeout_ms,
        )
    };
    if count < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted {
            Ok(())
        } else {
            Err(error)
        };
    }
    ready.extend(
        polled
            .iter()
            .enumerate()
            .filter(|(_, p)| p.revents != 0)
            .map(|(i, _)| i),
    );
    Ok(())
}

const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
/// `tp_status` bits of `tpacket_auxdata`.
const STATUS_VLAN_VALID: u32 = 1 << 4;
const STATUS_VLAN_TPID_VALID: u32 = 1 << 6;

fn protocol_all() -> libc::c_int {
    i32::from((libc::ETH_P_ALL as u16).to_be())
}

fn packet_socket(protocol: libc::c_int) -> io::Result<OwnedFd> {
    open_socket(libc::AF_PACKET, libc::SOCK_RAW, protocol)
}

fn open_socket(
    family: libc::c_int,
    kind: libc::c_int,
    protocol: libc::c_int,
) -> io::Result<OwnedFd> {
    // SAFETY: `socket` takes no pointers.
    let fd = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn bind(fd: &OwnedFd, index: u32, protocol: libc::c_int) -> io::Result<()> {
    // SAFETY: plain C structure for which all zeros is a valid value.
    let mut address = unsafe { zeroed::<libc::sockaddr_ll>() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = protocol as libc::c_ushort;
    address.sll_ifindex = index as libc::c_int;
    // SAFETY: the address is a `sockaddr_ll` of the length given.
    let result = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn set_option<T>(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the pointer is to a `T` and the length is that of a `T`.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Sets a buffer size past the system's limit where allowed, else up to it.
fn set_buffer(fd: &OwnedFd, force: libc::c_int, usual: libc::c_int) -> io::Result<()> {
    set_option(fd, libc::SOL_SOCKET, force, &SOCKET_BUFFER)
        .or_else(|_| set_option(fd, libc::SOL_SOCKET, usual, &SOCKET_BUFFER))
}

/// The VLAN tag that the kernel took out of the frame.
fn vlan_tag(header: &libc::msghdr) -> Option<(u16, u16)> {
    // SAFETY: `header` is one that `recvmmsg` filled, so its control buffer holds well-formed
    // messages up to `msg_controllen`, which is what CMSG_FIRSTHDR and CMSG_NXTHDR rely on. The
    // data may be unaligned, hence `read_unaligned`.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null() {
            let is_aux = (*message).cmsg_level == libc::SOL_PACKET
                && (*message).cmsg_type == libc::PACKET_AUXDATA;
            if is_aux {
                let data = libc::CMSG_DATA(message).cast::<libc::tpacket_auxdata>();
                let aux = data.read_unaligned();
                if aux.tp_status & STATUS_VLAN_VALID == 0 {
                    return None;
                }
                let tpid = if aux.tp_status & STATUS_VLAN_TPID_VALID != 0 {
                    aux.tp_vlan_tpid
                } else {
                    0x8100
                };
                return Some((tpid, aux.tp_vlan_tci));
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    None
}
