//! What names a flow, and how a user writes it.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

/// IP protocols that flows are told apart in.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// The packets of one conversation in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// Sender.
    pub src: IpAddr,
    /// Receiver.
    pub dst: IpAddr,
    /// IP protocol.
    pub protocol: u8,
    /// 0 where there is none.
    pub src_port: u16,
    /// 0 where there is none.
    pub dst_port: u16,
    /// RoCEv2: destination queue pair.
    pub dest_qp: Option<u32>,
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}", self.src, self.dst)?;
        match (self.dest_qp, self.protocol) {
            (Some(qp), _) => write!(f, " roce qp {qp}"),
            (None, TCP) => write!(f, " tcp {} > {}", self.src_port, self.dst_port),
            (None, UDP) => write!(f, " udp {} > {}", self.src_port, self.dst_port),
            (None, other) => write!(f, " protocol {other}"),
        }
    }
}

/// Which flows to look at: what is `None` matches any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowFilter {
    /// Sender.
    pub src: Option<IpAddr>,
    /// Receiver.
    pub dst: Option<IpAddr>,
    /// IP protocol.
    pub protocol: Option<u8>,
    /// Source port.
    pub src_port: Option<u16>,
    /// Destination port.
    pub dst_port: Option<u16>,
    /// RoCEv2 destination queue pair.
    pub dest_qp: Option<u32>,
}

impl FlowFilter {
    /// Whether a flow is one of these.
    #[must_use]
    pub fn matches(&self, flow: &Flow) -> bool {
        fn any_or<T: PartialEq>(wanted: Option<T>, is: T) -> bool {
            wanted.is_none_or(|wanted| wanted == is)
        }
        any_or(self.src, flow.src)
            && any_or(self.dst, flow.dst)
            && any_or(self.protocol, flow.protocol)
            && any_or(self.src_port, flow.src_port)
            && any_or(self.dst_port, flow.dst_port)
            && self.dest_qp.is_none_or(|qp| flow.dest_qp == Some(qp))
    }
}

/// A flow that cannot be understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{part:?} in a flow: {why}; write a flow as \
    'src=10.0.0.1,dst=10.0.1.2,proto=udp,sport=50000,dport=4791,qp=17', each part optional, or 'all'"
)]
pub struct FlowError {
    /// What is wrong.
    pub part: String,
    /// Why.
    pub why: String,
}

impl FromStr for FlowFilter {
    type Err = FlowError;

    fn from_str(text: &str) -> Result<Self, FlowError> {
        let mut filter = FlowFilter::default();
        if text == "all" {
            return Ok(filter);
        }
        for part in text.split(',') {
            let wrong = |why: String| FlowError {
                part: part.to_owned(),
                why,
            };
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| wrong("expected key=value".to_owned()))?;
            let number = |most: u32| match value.parse::<u32>() {
                Ok(number) if number <= most => Ok(number),
                _ => Err(wrong(format!("expected a number from 0 to {most}"))),
            };
            let address = || match value.parse::<IpAddr>() {
                Ok(address) => Ok(address),
                Err(_) => Err(wrong("expected an IPv4 or IPv6 address".to_owned())),
            };
            match key.trim() {
                "src" => filter.src = Some(address()?),
                "dst" => filter.dst = Some(address()?),
                "proto" => {
                    filter.protocol = Some(match value {
                        "tcp" => TCP,
                        "udp" | "roce" => UDP,
                        _ => number(255)? as u8,
                    });
                }
                "sport" => filter.src_port = Some(number(0xffff)? as u16),
                "dport" => filter.dst_port = Some(number(0xffff)? as u16),
                "qp" => filter.dest_qp = Some(number(0xff_ffff)?),
                _ => {
                    let why = "known are src, dst, proto, sport, dport and qp";
                    return Err(wrong(why.to_owned()));
                }
            }
        }
        Ok(filter)
    }
}
