//! Makes the typed entries of the fabric's pipeline from its P4Info.

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let p4info = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/compiled/fabric.p4info.txtpb");
    println!("cargo::rerun-if-changed={}", p4info.display());
    println!("cargo::rerun-if-changed=build.rs");
    let text = std::fs::read_to_string(&p4info)
        .map_err(|error| format!("cannot read {}: {error}", p4info.display()))?;
    let index = p4runtime::info::Index::parse_text(&text)?;
    let code = p4runtime::codegen::generate(index.p4info())?;
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&out).join("entries.rs"), code)?;
    Ok(())
}
