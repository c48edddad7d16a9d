//! Parses numbers with wrk's units.

/// Error: a number in a form that wrk does not print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unprinted;

/// Parses a time and converts it to microseconds; `None` if wrk printed `nan`, because nothing was
/// measured.
pub fn time_us(text: &str) -> Result<Option<f64>, Unprinted> {
    // wrk truncates a cell to eight characters, so that 1000.00ms loses its `s`.
    if text == "1000.00m" {
        return Ok(Some(1e6));
    }
    parse_scaled(text, &[("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 6e7)])
}

/// Parses a number with an optional decimal prefix (`k`, `M`); `None` if wrk printed `nan`, because
/// nothing was measured.
pub fn metric(text: &str) -> Result<Option<f64>, Unprinted> {
    parse_scaled(text, &[("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)])
}

/// Parses a number of bytes; `KB` is 1,024 bytes.
pub fn bytes(text: &str) -> Result<f64, Unprinted> {
    const KIB: f64 = 1024.0;
    let units = [("B", 1.0), ("KB", KIB), ("MB", KIB.powi(2)), ("GB", KIB.powi(3)), ("TB", KIB.powi(4))];
    parse_scaled(text, &units)?.ok_or(Unprinted)
}

fn parse_scaled(text: &str, units: &[(&str, f64)]) -> Result<Option<f64>, Unprinted> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if number.is_empty() {
        let is_none = unit.strip_prefix('-').unwrap_or(unit).starts_with("nan");
        return if is_none { Ok(None) } else { Err(Unprinted) };
    }
    let number: f64 = number.parse().map_err(|_| Unprinted)?;
    let (_, scale) = units.iter().find(|(known, _)| *known == unit).ok_or(Unprinted)?;
    Ok(Some(number * scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_normalised() {
        let times = [
            ("23.54us", Ok(Some(23.54))),
            ("1.23s", Ok(Some(1.23e6))),
            ("850.00ms", Ok(Some(850e3))),
            ("2.00m", Ok(Some(12e7))),
            ("1000.00m", Ok(Some(1e6))),
            ("-nan", Ok(None)),
            ("-nanus", Ok(None)),
            ("1.00h", Err(Unprinted)),
            ("12", Err(Unprinted)),
            ("-1us", Err(Unprinted)),
            ("1.2.3ms", Err(Unprinted)),
        ];
        for (text, us) in times {
            assert_eq!(time_us(text), us, "{text}");
        }
        assert_eq!(
            [metric("63.26"), metric("1.33k"), metric("2M"), metric("nan")].map(Result::unwrap),
            [Some(63.26), Some(1330.0), Some(2e6), None]
        );
        assert_eq!(
            [bytes("204.00B"), bytes("2.00KB"), bytes("1.50MB")].map(Result::unwrap),
            [204.0, 2048.0, 1572864.0]
        );
        assert_eq!([bytes("1.00PB"), bytes("1K"), bytes("-nan")], [Err(Unprinted); 3]);
    }
}
