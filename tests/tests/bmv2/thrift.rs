//! The one call that bmv2 takes over Thrift alone: how fast a port's queues are served.
//!
//! Thrift's binary protocol (strict, unframed, multiplexed by "service:method"), as far as this
//! call needs it.

use std::io::{self, Read, Write};
use std::net::TcpStream;

const VERSION_1_CALL: u32 = 0x8001_0001;
const VERSION_1_REPLY: u32 = 0x8001_0002;
const FIELD_STOP: u8 = 0;
const FIELD_I32: u8 = 8;
const FIELD_I64: u8 = 10;

/// Serves every queue of a port at `rate` packets per second.
pub(crate) fn set_queue_rate(thrift_port: u16, port: i32, rate: i64) -> io::Result<()> {
    let method = b"simple_switch:set_egress_queue_rate";
    let mut call = VERSION_1_CALL.to_be_bytes().to_vec();
    call.extend((method.len() as u32).to_be_bytes());
    call.extend(method);
    call.extend(1u32.to_be_bytes());
    call.extend([FIELD_I32, 0, 1]);
    call.extend(port.to_be_bytes());
    call.extend([FIELD_I64, 0, 2]);
    call.extend(rate.to_be_bytes());
    call.push(FIELD_STOP);

    let mut stream = TcpStream::connect(("127.0.0.1", thrift_port))?;
    stream.write_all(&call)?;
    let mut kind = [0; 4];
    stream.read_exact(&mut kind)?;
    if u32::from_be_bytes(kind) == VERSION_1_REPLY {
        Ok(())
    } else {
        Err(io::Error::other("bmv2 refused set_egress_queue_rate"))
    }
}
