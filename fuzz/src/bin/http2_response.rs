//! Entry point of libFuzzer for [`onrush_fuzz::http2_response`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| onrush_fuzz::http2_response(data));
