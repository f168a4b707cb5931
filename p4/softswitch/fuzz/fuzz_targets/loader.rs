//! Any bytes as a program.
#![no_main]

#[path = "../../tests/support/fuzz.rs"]
#[allow(dead_code)]
mod fuzz;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::loader(data));
