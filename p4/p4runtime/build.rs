//! Makes Rust of the `.proto` files, with no compiler but Cargo's own.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;

/// What the generated code comes from; imports follow.
const ROOTS: [&str; 2] = ["p4/v1/p4runtime.proto", "google/rpc/code.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=build.rs");

    let mut descriptors = protox::compile(ROOTS, ["proto"])?;
    tonic_prost_build::configure()
        .emit_rerun_if_changed(false) // the directory above covers every file
        .client_mod_attribute("p4.v1", "#[cfg(feature = \"grpc\")]")
        .server_mod_attribute("p4.v1", "#[cfg(feature = \"grpc\")]")
        .btree_map(".p4.config.v1") // so that equal P4Infos encode to equal bytes
        .compile_fds(descriptors.clone())?;

    // Reflection wants names and numbers, not comments and columns.
    for file in &mut descriptors.file {
        file.source_code_info = None;
    }
    let out = PathBuf::from(env::var("OUT_DIR")?).join("descriptors.bin");
    fs::write(out, descriptors.encode_to_vec())?;
    Ok(())
}
