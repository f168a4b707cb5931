//! The generated messages, laid out as the `.proto` packages are, because the
//! generated code refers to its neighbours by relative paths.

#![allow(missing_docs, unreachable_pub, clippy::all, rustdoc::all)]

pub mod p4 {
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/p4.v1.rs"));
    }
    pub mod config {
        pub mod v1 {
            include!(concat!(env!("OUT_DIR"), "/p4.config.v1.rs"));
        }
    }
}

pub mod meridian {
    pub mod switch {
        pub mod v1 {
            include!(concat!(env!("OUT_DIR"), "/meridian.switch.v1.rs"));
        }
    }
}

pub mod google {
    pub mod rpc {
        include!(concat!(env!("OUT_DIR"), "/google.rpc.rs"));
    }
}

/// The `.proto` files as a serialised `google.protobuf.FileDescriptorSet`,
/// imports included, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
