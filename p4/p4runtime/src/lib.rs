//! P4Runtime v1.5 in Rust: the language between a controller and its switches.
//!
//! # The data's way
//!
//! p4c leaves a P4Info beside the program it compiled. [`info::Index`] reads it,
//! checks it and answers by id, name or alias. From there entries come about in
//! one of two ways, and both end in the same canonical messages:
//!
//! - For a program that is known when the controller is built, a build script
//!   calls [`codegen::generate`]; the entries are then Rust types ([`typed`]),
//!   and a table that was renamed is an error of the compiler.
//! - For any other program, [`entry::TableEntryBuilder`] resolves names when it
//!   runs, and says which names there are when one is unknown.
//!
//! [`entry::check`] holds the rules of the specification; a client applies them
//! before it writes, and a server before it believes. [`bytes`] is the codec
//! below: values of any width as the shortest byte strings. [`entry::read_entity`]
//! turns what comes back into text and JSON, and [`text`] speaks protobuf's text
//! format.
//!
//! With the feature `grpc` (on by default), [`transport`] finds the way to a
//! switch (TCP, TLS, Unix socket, or memory), and [`client::Session`] is the
//! conversation: arbitration, pipeline, batches of writes, reads, packets,
//! digests. [`error`] carries what became of each update of a batch through a
//! gRPC status, for clients and servers.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use p4runtime::client::{Config, Pipeline, Session};
//! use p4runtime::{entry, info::Index, transport};
//!
//! let index = Index::parse_text(&std::fs::read_to_string("fabric.p4info.txtpb")?)?;
//! let channel = transport::connect("10.0.0.1:9559").await?;
//! let (session, mut streams) = Session::open(channel, Config::new(1, 1)).await?;
//! session.until_primary().await?;
//! let json = std::fs::read("fabric.json")?;
//! session.verify_and_commit(&Pipeline::new(index.p4info().clone(), json)).await?;
//!
//! let route = index.table("route_v4")?.entry();
//! let route = route.exact("vrf", 1u16).lpm("dst_addr", [10, 0, 0, 0], 8);
//! let route = route.action("route_nexthop", [("nexthop_id", 7u32)]).build()?;
//! session.write_all(vec![entry::insert(route)]).await?;
//!
//! for entity in session.read_all(vec![index.table("route_v4")?.all(false).into()]).await? {
//!     println!("{}", entry::read_entity(&index, &entity));
//! }
//! let packet = streams.packets.recv().await;
//! # Ok(())
//! # }
//! ```
//!
//! The messages themselves are in [`v1`], [`config::v1`](config) and [`rpc`], made
//! from the `.proto` files in `proto/`. Servers implement
//! `v1::p4_runtime_server::P4Runtime`.

pub mod bytes;
#[cfg(feature = "grpc")]
pub mod client;
#[cfg(feature = "grpc")]
pub mod codec;
pub mod codegen;
pub mod entry;
#[cfg(feature = "grpc")]
pub mod error;
pub mod info;
mod messages;
pub mod text;
#[cfg(feature = "grpc")]
pub mod transport;
pub mod typed;

pub use messages::FILE_DESCRIPTOR_SET;
pub use messages::google::rpc;
pub use messages::p4::v1;

/// The service of meridian-switch beside P4Runtime: ports and queues (`meridian.switch`).
pub mod switch {
    pub use crate::messages::meridian::switch::v1;
}

/// Messages that describe a P4 program (`p4.config`).
pub mod config {
    pub use crate::messages::p4::config::v1;
}
