//! Entry point of libFuzzer for [`onrush_fuzz::request`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| onrush_fuzz::request(data));
