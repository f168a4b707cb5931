//! System calls about interfaces: packet sockets that send many frames per call, states, changes.
//!
//! Two sockets per interface: [`ring`](super::ring) receives, the one here sends, so that what is
//! sent is never received again and needs no header.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Frames per system call.
pub(crate) const BATCH: usize = 64;

/// Socket buffers, bytes: room for what the interface cannot take at once.
const SOCKET_BUFFER: libc::c_int = 8 << 20;

/// The sending half of an open interface.
#[derive(Debug)]
pub(crate) struct SendSocket {
    fd: OwnedFd,
}

impl SendSocket {
    /// Opens interface `name`.
    ///
    /// # Errors
    /// `NotFound` when there is no such interface, `PermissionDenied` without CAP_NET_RAW.
    pub(crate) fn open(name: &str) -> io::Result<Self> {
        let index = interface_index(name)?;
        let fd = packet_socket(0)?;
        set_buffer(&fd, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)?;
        bind(&fd, index, 0)?;
        Ok(SendSocket { fd })
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
                self.fd.as_raw_fd(),
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

/// What an interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// It is up and has a carrier.
    pub(crate) is_up: bool,
    /// Bytes that a frame carries at most.
    pub(crate) mtu: usize,
    /// Its frames begin with IP: a TUN interface, or a tunnel.
    pub(crate) is_ip: bool,
}

impl Link {
    /// Asks the system.
    ///
    /// # Errors
    /// When there is no interface of that name.
    pub(crate) fn of(name: &str) -> io::Result<Link> {
        let socket = open_socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        // SAFETY: plain C structure for which all zeros is a valid value.
        let mut request = unsafe { zeroed::<libc::ifreq>() };
        if name.len() >= request.ifr_name.len() {
            return Err(io::ErrorKind::NotFound.into());
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let mut ask = |what| {
            // SAFETY: each of these requests reads the name and writes its answer into the union
            // of the `ifreq` it is given.
            let result = unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut request) };
            if result < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(request.ifr_ifru)
        };
        // SAFETY: after SIOCGIFFLAGS the union holds the flags.
        let flags = i32::from(unsafe { ask(libc::SIOCGIFFLAGS)?.ifru_flags });
        // SAFETY: after SIOCGIFMTU the union holds the MTU.
        let mtu = unsafe { ask(libc::SIOCGIFMTU)?.ifru_mtu };
        // SAFETY: after SIOCGIFHWADDR the union holds the address, whose family is the kind of
        // interface.
        let kind = unsafe { ask(libc::SIOCGIFHWADDR)?.ifru_hwaddr.sa_family };
        let wanted = libc::IFF_UP | libc::IFF_RUNNING;
        Ok(Link {
            is_up: flags & wanted == wanted,
            mtu: usize::try_from(mtu).unwrap_or(0),
            is_ip: !matches!(kind, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK),
        })
    }
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

/// A descriptor that has something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its place in the list.
    pub(crate) at: usize,
    /// It has an error, which [`clear_error`] takes off.
    pub(crate) is_error: bool,
}

/// Waits until one of `fds` is readable or `timeout` has passed; tells which are.
pub(crate) fn poll(fds: &[RawFd], timeout: Duration, ready: &mut Vec<Event>) -> io::Result<()> {
    ready.clear();
    let mut polled: Vec<libc::pollfd> = fds
        .iter()
        .map(|fd| libc::pollfd {
            fd: *fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // SAFETY: the pointers are to as many `pollfd` as said and to a `timespec`; no signal mask.
    let count = unsafe {
        libc::ppoll(
            polled.as_mut_ptr(),
            polled.len() as libc::nfds_t,
            &raw const timeout,
            std::ptr::null(),
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
    let events = polled.iter().enumerate().filter(|(_, p)| p.revents != 0);
    ready.extend(events.map(|(at, p)| Event {
        at,
        is_error: p.revents & libc::POLLERR != 0,
    }));
    Ok(())
}

/// Takes a pending error off a socket, which else would be readable for ever.
pub(crate) fn clear_error(fd: RawFd) {
    let (mut error, mut len) = (0i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: the pointers are to an integer and to its length.
    unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut error).cast(),
            &raw mut len,
        )
    };
}

pub(super) fn protocol_all() -> libc::c_int {
    i32::from((libc::ETH_P_ALL as u16).to_be())
}

pub(super) fn packet_socket(protocol: libc::c_int) -> io::Result<OwnedFd> {
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

pub(super) fn bind(fd: &OwnedFd, index: u32, protocol: libc::c_int) -> io::Result<()> {
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

pub(super) fn set_option<T>(
    fd: &OwnedFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
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
pub(super) fn set_buffer(fd: &OwnedFd, force: libc::c_int, usual: libc::c_int) -> io::Result<()> {
    set_option(fd, libc::SOL_SOCKET, force, &SOCKET_BUFFER)
        .or_else(|_| set_option(fd, libc::SOL_SOCKET, usual, &SOCKET_BUFFER))
}
