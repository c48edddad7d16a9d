//! Cells of comma-separated values.

use super::escape_controls;

/// Characters that begin a formula in a spreadsheet, including full-width forms.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// A string as a cell: control characters escaped, quoted if necessary. A string that a spreadsheet would take for a
/// formula is preceded by an apostrophe, so that it stays text; a number is not.
pub fn csv_cell(text: &str) -> String {
    let is_formula = text.trim_start().starts_with(FORMULA) && text.trim().parse::<f64>().is_err();
    let text = format!("{}{}", if is_formula { "'" } else { "" }, escape_controls(text));
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_contain_no_formulas_or_separators() {
        for (text, expected) in [
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("=1+1,2", "\"'=1+1,2\""),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+x", "'+x"),
            ("-c 8", "'-c 8"),
            (" =x", "' =x"),
            ("＝x", "'＝x"),
            ("\t=x", "'\\u{9}=x"),
            ("-5", "-5"),
            ("+1e3", "+1e3"),
            ("a=b", "a=b"),
            ("-", "'-"),
            ("a,\"b\"\nc", "\"a,\"\"b\"\"\\u{a}c\""),
        ] {
            assert_eq!(csv_cell(text), expected);
        }
    }
}
