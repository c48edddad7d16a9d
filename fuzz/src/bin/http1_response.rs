//! Entry point of libFuzzer for [`onrush_fuzz::http1_response`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| onrush_fuzz::http1_response(data));
