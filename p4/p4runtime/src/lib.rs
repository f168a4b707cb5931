//! P4Runtime v1.5: messages, byte strings, the P4Info index and a client session.

mod messages;

pub use messages::FILE_DESCRIPTOR_SET;
pub use messages::google::rpc;
pub use messages::p4::v1;

/// Messages that describe a P4 program (`p4.config`).
pub mod config {
    pub use crate::messages::p4::config::v1;
}

pub mod bytes;
#[cfg(feature = "grpc")]
pub mod client;
pub mod entry;
#[cfg(feature = "grpc")]
pub mod error;
pub mod info;
pub mod text;
#[cfg(feature = "grpc")]
pub mod transport;
