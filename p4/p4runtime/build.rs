//! Makes Rust of the `.proto` files, with no compiler but Cargo's own.

use std::{
    env,
    error::Error,
    fs, io,
    path::{Path, PathBuf},
};

use prost::Message as _;

/// What the generated code comes from; imports follow.
const ROOTS: [&str; 3] = [
    "p4/v1/p4runtime.proto",
    "google/rpc/code.proto",
    "meridian/switch/v1/switch.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=build.rs");

    let mut descriptors = protox::compile(ROOTS, ["proto"])?;
    tonic_prost_build::configure()
        .emit_rerun_if_changed(false) // the directory above covers every file
        .client_mod_attribute(".", "#[cfg(feature = \"grpc\")]")
        .server_mod_attribute(".", "#[cfg(feature = \"grpc\")]")
        .codec_path("crate::codec::MessageCodec")
        .btree_map(".p4.config.v1") // so that equal P4Infos encode to equal bytes
        .compile_fds(descriptors.clone())?;

    let out = PathBuf::from(env::var("OUT_DIR")?);
    for file in ["p4.v1.rs", "p4.config.v1.rs", "google.rpc.rs"] {
        derive_eq(&out.join(file))?;
    }

    // Reflection wants names and numbers, not comments and columns.
    for file in &mut descriptors.file {
        file.source_code_info = None;
    }
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    Ok(())
}

/// Makes every message usable as a map's key. prost leaves out messages that
/// contain lists of messages; no message here contains a float, so all can be.
fn derive_eq(file: &Path) -> io::Result<()> {
    let mut code = fs::read_to_string(file)?;
    for kind in ["Message", "Oneof"] {
        code = code.replace(
            &format!("#[derive(Clone, PartialEq, ::prost::{kind})]"),
            &format!("#[derive(Clone, PartialEq, Eq, Hash, ::prost::{kind})]"),
        );
    }
    fs::write(file, code)
}
