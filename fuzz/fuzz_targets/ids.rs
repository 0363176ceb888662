#![no_main]

#[path = "../exercise.rs"]
#[allow(dead_code)]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::ids(bytes));
