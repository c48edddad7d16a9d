//! The property for which the fuzzer seeks a counter-example, for its seeds and for random frames.

use std::fs;
use std::path::Path;

use super::*;

#[path = "../../../../fuzz/src/http2.rs"]
mod property;

use self::property::http2_response;

#[test]
fn fuzzer_seeds_and_prefixes_are_handled() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/http2_response");
    let mut seeds = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        let seed = fs::read(entry.unwrap().path()).unwrap();
        seeds += 1;
        for end in (0..=seed.len()).filter(|end| seed.len() < 500 || end % 100 == 0) {
            http2_response(&seed[..end]);
        }
    }
    assert!(seeds > 30);
}

/// A frame that is sometimes wrong.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let block = proptest::collection::vec(
        prop_oneof![
            Just(&b"\x88"[..]),
            Just(&b"\x8d"[..]),
            Just(&b"\x48\x03100"[..]),
            Just(&b"\x40\x01a\x01b"[..]),
            Just(&b"\xbe"[..]),
            Just(&b"\x0f\x0d\x013"[..]),
            Just(&b"\x20"[..]),
        ],
        0..4,
    );
    let payload = prop_oneof![
        4 => block.prop_map(|fields| fields.concat()),
        1 => proptest::collection::vec(0..10_u8, 0..20),
        1 => Just(b"\0\0\0\x03".to_vec()),
        1 => Just(b"\0\0\0\x03\0\0\0\0".to_vec()),
        1 => Just(b"\0\x04\0\0\0\x09".to_vec()),
    ];
    let kind = prop_oneof![
        6 => Just(kind::HEADERS),
        4 => Just(kind::DATA),
        1 => 0..11_u8,
    ];
    let flags =
        prop_oneof![4 => Just(flag::END_HEADERS), 2 => Just(flag::END_HEADERS | flag::END_STREAM), 1 => any::<u8>()];
    let stream = prop_oneof![6 => (0..6_u32).prop_map(|index| 2 * index + 1), 2 => Just(0), 1 => 0..12_u32];
    (kind, flags, stream, payload).prop_map(|(kind, flags, stream, payload)| {
        let mut frame = Vec::new();
        frame::write(&mut frame, kind, flags, stream, &payload);
        frame
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_frames_are_handled_alike_in_any_pieces(
        scene in any::<u8>(),
        split in any::<u8>(),
        frames in proptest::collection::vec(any_frame(), 0..20),
    ) {
        http2_response(&[&[scene | 16, split][..], &frames.concat()].concat());
    }

    #[test]
    fn any_bytes_are_handled(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        http2_response(&bytes);
    }
}
