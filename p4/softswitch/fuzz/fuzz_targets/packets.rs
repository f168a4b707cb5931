//! Any bytes as entries and packets, for each of the test programs in turn.
#![no_main]

#[path = "../../tests/support/fuzz.rs"]
#[allow(dead_code)]
mod fuzz;

use std::sync::{Arc, LazyLock};

use softswitch::Program;

static PROGRAMS: LazyLock<Vec<Arc<Program>>> = LazyLock::new(|| {
    [
        &include_bytes!("../../tests/programs/arithmetic.json")[..],
        include_bytes!("../../tests/programs/control.json"),
        include_bytes!("../../tests/programs/matching.json"),
        include_bytes!("../../tests/programs/router.json"),
        include_bytes!("../../../compiled/fabric.json"),
    ]
    .iter()
    .map(|json| Arc::new(Program::load(json).expect("the test programs load")))
    .collect()
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Some((which, data)) = data.split_first() {
        let program = &PROGRAMS[usize::from(*which) % PROGRAMS.len()];
        fuzz::packets(program.clone(), data);
    }
});
