//! Entry point of libFuzzer for [`onrush_fuzz::url`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| onrush_fuzz::url(data));
