//! The program that the switches run, its entries, and frames that take every way through it.

use p4runtime::client::Pipeline;
use p4runtime::entry;
use p4runtime::info::Index;

use crate::forwarders::Pipelined;
use crate::frames;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/control");

pub(crate) fn pipelined() -> Result<Pipelined, Box<dyn std::error::Error + Send + Sync>> {
    let info = std::fs::read_to_string(format!("{PROGRAM}.p4info.txtpb"))?;
    let index = Index::parse_text(&info)?;
    let json = std::fs::read(format!("{PROGRAM}.json"))?;
    let route = index.table("l2")?.entry();
    let route = route
        .exact("hdr.ethernet.dst", 0x0200_0000_0002u64)
        .action("send", [("port", 2u16)])
        .build()?;
    Ok(Pipelined {
        pipeline: Pipeline::new(index.p4info().clone(), json),
        updates: vec![entry::insert(route)],
    })
}

pub(crate) fn frames(length: usize) -> Vec<Vec<u8>> {
    (0..4096u32)
        .map(|n| {
            frames::udp(
                [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]],
                [0x0a00_0001, 0x0a01_0000 + n],
                n as u16,
                0,
                length,
            )
        })
        .collect()
}

pub(crate) fn check(sent: &[Vec<u8>], arrived: &[Vec<u8>]) -> Result<(), String> {
    if sent.len() != arrived.len() {
        return Err(format!(
            "of {} frames {} arrived",
            sent.len(),
            arrived.len()
        ));
    }
    Ok(())
}
