//! Any bytes as P4Runtime messages, to a server in this process.
#![no_main]

#[path = "../../tests/support/fuzz.rs"]
#[allow(dead_code)]
mod fuzz;

use std::cell::RefCell;

thread_local! {
    static CONTROLLER: RefCell<fuzz::Controller> = RefCell::new(fuzz::Controller::new(
        include_bytes!("../../tests/programs/control.json"),
        include_str!("../../tests/programs/control.p4info.txtpb"),
    ));
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    CONTROLLER.with_borrow_mut(|controller| controller.message(data));
});
