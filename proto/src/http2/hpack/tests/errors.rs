//! Blocks that must be refused.

use super::*;

/// Checks the outcome of a block that comes after `before`.
#[track_caller]
fn check(before: &str, block: &str, result: Result<(), Breach>) {
    let mut decoder = Decoder::new(SIZE_USUAL);
    decoded(&mut decoder, &hex(before)).unwrap();
    assert_eq!(decoded(&mut decoder, &hex(block)).map(|_| ()), result, "{block}");
}

#[test]
fn indices_beyond_the_tables_are_refused() {
    check("", "80", Err(Breach::Index));
    check("", "bd", Ok(()));
    check("", "be", Err(Breach::Index));
    check("40 01 61 01 62", "be", Ok(()));
    check("40 01 61 01 62", "bf", Err(Breach::Index));
    check("", "7e 00", Err(Breach::Index));
    check("", "0f 2f 00", Err(Breach::Index));
}

#[test]
fn integers_are_limited_to_31_bits() {
    check("", "ff 80 80 80 80 80 00", Err(Breach::Integer));
    check("", "ff ff ff ff ff 0f", Err(Breach::Integer));
    check("", "ff 81 ff ff ff 07", Err(Breach::Index));
    check("", "ff 82 ff ff ff 07", Err(Breach::Integer));
    check("", "82 ff 80", Err(Breach::Truncated));
    check("", "bf 80 80 80 80 00", Err(Breach::Index));
    check("", "82 ff 80 80 80 80 00", Err(Breach::Index));
}

#[test]
fn truncated_fields_are_refused() {
    for block in ["40", "40 01", "40 01 61", "40 01 61 02 62", "00 85 1f", "ff", "48"] {
        check("", block, Err(Breach::Truncated));
    }
    check("", "40 81 ff 00", Err(Breach::Huffman));
}

#[test]
fn table_updates_come_first_and_within_limits() {
    check("", "20", Ok(()));
    check("", "20 3f e1 1f 82", Ok(()));
    check("", "3f e2 1f", Err(Breach::TableSize));
    check("", "82 20", Err(Breach::TableSize));
}

#[test]
fn smaller_tables_must_be_confirmed() {
    let mut decoder = Decoder::new(100);
    assert!(decoded(&mut decoder, &hex("40 01 61 01 62")).is_ok());
    decoder.on_settings_acknowledged(100);
    assert!(decoder.update_due());
    assert_eq!(decoded(&mut decoder, &hex("")), Ok(vec![]));
    assert_eq!(decoded(&mut decoder, &hex("82")), Err(Breach::TableSize));
    assert_eq!(decoded(&mut decoder, &hex("3f 46 be")), Err(Breach::TableSize), "101 bytes");
    assert_eq!(decoded(&mut decoder, &hex("3f 45 be")), Ok(vec!["a: b".to_owned()]));
    assert!(!decoder.update_due());
    assert!(decoded(&mut decoder, &hex("be")).is_ok());
}

#[test]
fn larger_tables_need_no_confirmation() {
    let mut decoder = Decoder::new(8192);
    assert!(decoded(&mut decoder, &hex("3f e1 3f")).is_ok());
    decoder.on_settings_acknowledged(8192);
    assert!(!decoder.update_due());
    assert_eq!(decoded(&mut decoder, &hex("3f e2 3f")), Err(Breach::TableSize));
}

#[test]
fn small_blocks_with_huge_fields_are_refused() {
    // A field of 4,000 bytes in the table, then references to it.
    let mut block = hex("40 01 61 7f a1 1e");
    block.extend([b'x'; 4000]);
    let mut decoder = Decoder::new(SIZE_USUAL);
    assert!(decoded(&mut decoder, &block).is_ok());
    assert!(decoded(&mut decoder, &[0xbe; 20]).is_ok());
    assert_eq!(decoded(&mut decoder, &[0xbe; 21]), Err(Breach::BlockTooLong));
    assert_eq!(decoded(&mut decoder, &[0x82; 3000]), Err(Breach::BlockTooLong));
}
