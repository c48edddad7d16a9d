//! libFuzzer's way into [`onrush_fuzz::units`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| onrush_fuzz::units(data));
