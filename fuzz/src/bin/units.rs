//! Entry point of libFuzzer for [`onrush_fuzz::units`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| onrush_fuzz::units(data));
