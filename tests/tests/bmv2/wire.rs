//! The host's end of a cable to the switch: a raw packet socket on an interface.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// EtherType of all frames, in network byte order as packet(7) wants it.
const ALL_FRAMES: u16 = (libc::ETH_P_ALL as u16).to_be();

/// An interface that frames go out of and come in from.
pub(crate) struct Wire {
    socket: Socket,
}

impl Wire {
    /// Opens the interface with this name.
    pub(crate) fn open(interface: &str) -> io::Result<Self> {
        let name = CString::new(interface)?;
        // SAFETY: a C string that outlives the call. (/sys shows another namespace's interfaces.)
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        let protocol = Protocol::from(i32::from(ALL_FRAMES));
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(protocol))?;
        // SAFETY: the storage is zeroed and large enough for any address; a sockaddr_ll of plain
        // integers is written to its start and its length is what is handed back.
        let (_, address) = unsafe {
            SockAddr::try_init(|storage, len| {
                let address = storage.cast::<libc::sockaddr_ll>();
                (*address).sll_family = libc::AF_PACKET as u16;
                (*address).sll_protocol = ALL_FRAMES;
                (*address).sll_ifindex = index.cast_signed();
                *len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
                Ok(())
            })?
        };
        socket.bind(&address)?;
        Ok(Wire { socket })
    }

    /// Puts a frame on the cable.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.socket.send(frame).map(drop)
    }

    /// Frames from the switch, until there are `count` or the time is over.
    ///
    /// What this end sent itself is left out by its packet type.
    pub(crate) fn receive(&self, count: usize, within: Duration) -> io::Result<Vec<Vec<u8>>> {
        let deadline = Instant::now() + within;
        let mut frames = Vec::new();
        let mut buffer = [MaybeUninit::<u8>::uninit(); 16384];
        while frames.len() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.socket.set_read_timeout(Some(left))?;
            let (len, from) = match self.socket.recv_from(&mut buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            // SAFETY: the kernel wrote a sockaddr_ll, as for every packet socket, and `len` bytes.
            let (kind, bytes) = unsafe {
                (
                    (*from.as_ptr().cast::<libc::sockaddr_ll>()).sll_pkttype,
                    std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), len),
                )
            };
            if kind != libc::PACKET_OUTGOING {
                frames.push(bytes.to_vec());
            }
        }
        Ok(frames)
    }
}
