//! HPACK against its RFC, against other encoders, and against itself.

mod errors;
mod examples;
mod stories;

use proptest::prelude::*;

use super::*;
use crate::Breach;

/// The bytes that hexadecimal digits, with blanks anywhere, stand for.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pairs = digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap());
    pairs.collect()
}

/// The fields of a block as lines.
fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<String>, Breach> {
    let mut fields = Vec::new();
    decoder.decode(block, &mut Effects::default(), |name, value| {
        fields.push(format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
    })?;
    Ok(fields)
}

#[test]
fn huffman_pairs_round_trip() {
    for first in 0..=u8::MAX {
        for second in 0..=u8::MAX {
            let mut code = Vec::new();
            huffman::encode(&[first, second, first], &mut code);
            assert_eq!(code.len(), huffman::encoded_len(&[first, second, first]));
            let mut text = Vec::new();
            assert!(huffman::decode(&code, &mut text), "{first} {second}");
            assert_eq!(text, [first, second, first]);
        }
    }
}

#[test]
fn huffman_codes_match_the_rfc() {
    for (symbol, code) in [
        (b'0', "07"),
        (b' ', "53"),
        (b'X', "fc"),
        (b'!', "fe 3f"),
        (b'\\', "ff fe 1f"),
        (0, "ff c7"),
        (0xff, "ff ff fb bf"),
        (b'\n', "ff ff ff f3"),
        (b'\r', "ff ff ff f7"),
        (22, "ff ff ff fb"),
    ] {
        let mut bytes = Vec::new();
        huffman::encode(&[symbol], &mut bytes);
        assert_eq!(bytes, hex(code), "{symbol}");
    }
}

#[test]
fn huffman_padding_is_under_eight_ones() {
    for (code, is_good) in [
        ("", true),
        ("1f", true),           // "a" and three ones
        ("1e", false),          // not all of them ones
        ("1f ff", false),       // eleven ones
        ("ff", false),          // eight ones and no symbol
        ("3f ff ff ff", false), // a symbol and the beginning of EOS
        ("ff ff ff ff", false), // EOS and two ones
    ] {
        assert_eq!(huffman::decode(&hex(code), &mut Vec::new()), is_good, "{code}");
    }
}

#[test]
fn entries_are_evicted_when_full() {
    let mut table = table::DynamicTable::new();
    table.set_size_max(100);
    let entry = |name: &str| std::rc::Rc::new(Entry::new(name.as_bytes(), b""));
    let names = |table: &table::DynamicTable| {
        table.entries().map(|(name, _)| String::from_utf8(name.to_vec()).unwrap()).collect::<Vec<_>>()
    };
    for name in ["a", "bb", "ccc"] {
        table.insert(entry(name));
    }
    assert_eq!((names(&table), table.size()), (vec!["ccc".to_owned(), "bb".to_owned()], 69));
    table.set_size_max(68);
    assert_eq!((names(&table), table.size()), (vec!["ccc".to_owned()], 35));
    table.insert(entry(&"d".repeat(37)));
    assert_eq!((names(&table), table.size()), (vec![], 0));
}

#[test]
fn reinserting_equals_inserting_an_equal_entry() {
    let entries = ["a", "bb", "ccc", "bb"].map(|name| std::rc::Rc::new(Entry::new(name.as_bytes(), b"value")));
    let mut table = table::DynamicTable::new();
    let mut expected = table::DynamicTable::new();
    for (size_max, rounds) in [(200, 20), (38, 3), (10, 1), (160, 20)] {
        table.set_size_max(size_max);
        expected.set_size_max(size_max);
        for entry in entries.iter().cycle().take(rounds) {
            table.reinsert(entry);
            expected.insert(std::rc::Rc::new(Entry::new(entry.name(), entry.value())));
            assert!(table.entries().eq(expected.entries()));
            assert_eq!((table.size(), table.version()), (expected.size(), expected.version()));
        }
    }
}

#[test]
fn secrets_are_never_indexed() {
    let encoded = |name: &str, value: &str, secrecy| {
        let mut block = Vec::new();
        encode(name.as_bytes(), value.as_bytes(), secrecy, &mut block);
        block
    };
    assert_eq!(encoded(":method", "GET", Secrecy::Open), [0x82]);
    assert_eq!(encoded(":method", "PUT", Secrecy::Open), b"\x02\x03PUT");
    assert_eq!(encoded("authorization", "", Secrecy::Secret), [0x1f, 8, 0]);
    assert_eq!(encoded("authorization", "", Secrecy::Open), [0x97]);
    assert_eq!(encoded("x", "\0", Secrecy::Open), [0, 1, b'x', 1, 0]);
}

proptest! {
    #[test]
    fn any_fields_survive_encoding(
        fields in proptest::collection::vec(("[a-z:-]{1,20}", "\\PC{0,200}", any::<bool>()), 0..20)
    ) {
        let mut block = Vec::new();
        for (name, value, is_secret) in &fields {
            let secrecy = if *is_secret { Secrecy::Secret } else { Secrecy::Open };
            encode(name.as_bytes(), value.as_bytes(), secrecy, &mut block);
        }
        let lines: Vec<_> = fields.iter().map(|(name, value, _)| format!("{name}: {value}")).collect();
        let mut decoder = Decoder::new(SIZE_USUAL);
        prop_assert_eq!(decoded(&mut decoder, &block), Ok(lines));
        prop_assert!(decoder.table().0.is_empty());
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(block in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decoded(&mut Decoder::new(SIZE_USUAL), &block);
    }

    #[test]
    fn any_text_survives_the_huffman_code(text in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut code = Vec::new();
        huffman::encode(&text, &mut code);
        let mut decoded = Vec::new();
        prop_assert!(huffman::decode(&code, &mut decoded));
        prop_assert_eq!(decoded, text);
    }
}
