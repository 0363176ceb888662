#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dq::fuzzing::arguments(bytes));
