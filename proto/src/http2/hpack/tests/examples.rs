//! The examples of RFC 7541, appendix C.

use super::*;

/// Decodes consecutive blocks, each with its fields and the resulting table, the newest entry first.
#[track_caller]
fn check(size: Option<usize>, blocks: &[(&str, &[&str], &[&str], usize)]) {
    let mut decoder = Decoder::new(SIZE_USUAL);
    for &(block, fields, entries, table_size) in blocks {
        if let Some(size) = size.filter(|_| decoder.table().0.is_empty()) {
            decoder.on_settings_acknowledged(size as u32);
            // The update omitted in the examples: 256 in 5 bits.
            assert_eq!(size, 256);
            decoded(&mut decoder, &hex("3f e1 01")).unwrap();
        }
        assert_eq!(decoded(&mut decoder, &hex(block)).unwrap(), fields);
        let (table, is_size) = decoder.table();
        assert_eq!(table, entries);
        assert_eq!(is_size, table_size);
    }
}

#[test]
fn single_fields_of_rfc_7541_c2() {
    let custom = "custom-key: custom-header";
    check(None, &[("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", &[custom], &[custom], 55)]);
    check(None, &[("040c 2f73 616d 706c 652f 7061 7468", &[":path: /sample/path"], &[], 0)]);
    check(None, &[("1008 7061 7373 776f 7264 0673 6563 7265 74", &["password: secret"], &[], 0)]);
    check(None, &[("82", &[":method: GET"], &[], 0)]);
}

const FIRST_REQUEST: &[&str] = &[":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"];
const SECOND_REQUEST: &[&str] =
    &[":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com", "cache-control: no-cache"];
const THIRD_REQUEST: &[&str] = &[
    ":method: GET",
    ":scheme: https",
    ":path: /index.html",
    ":authority: www.example.com",
    "custom-key: custom-value",
];

#[test]
fn requests_of_rfc_7541_c3_and_c4() {
    for blocks in [
        [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ],
        [
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
            "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ],
    ] {
        check(
            None,
            &[
                (blocks[0], FIRST_REQUEST, &[":authority: www.example.com"], 57),
                (blocks[1], SECOND_REQUEST, &["cache-control: no-cache", ":authority: www.example.com"], 110),
                (
                    blocks[2],
                    THIRD_REQUEST,
                    &["custom-key: custom-value", "cache-control: no-cache", ":authority: www.example.com"],
                    164,
                ),
            ],
        );
    }
}

#[test]
fn responses_of_rfc_7541_c5_and_c6() {
    let location = "location: https://www.example.com";
    let date = "date: Mon, 21 Oct 2013 20:13:21 GMT";
    let later = "date: Mon, 21 Oct 2013 20:13:22 GMT";
    let cookie = "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
    for blocks in [
        [
            "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d
             546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "4803 3330 37c1 c0bf",
            "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f
             6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b
             2076 6572 7369 6f6e 3d31",
        ],
        [
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7
             8f0b 97c8 e9ae 82ae 43d3",
            "4883 640e ffc1 c0bf",
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335
             dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        ],
    ] {
        check(
            Some(256),
            &[
                (
                    blocks[0],
                    &[":status: 302", "cache-control: private", date, location],
                    &[location, date, "cache-control: private", ":status: 302"],
                    222,
                ),
                (
                    blocks[1],
                    &[":status: 307", "cache-control: private", date, location],
                    &[":status: 307", location, date, "cache-control: private"],
                    222,
                ),
                (
                    blocks[2],
                    &[":status: 200", "cache-control: private", later, location, "content-encoding: gzip", cookie],
                    &[cookie, "content-encoding: gzip", later],
                    215,
                ),
            ],
        );
    }
}
